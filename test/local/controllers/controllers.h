// SPDX-License-Identifier: Apache-2.0
/*
 * controllers - just enough of kube-controller-manager (and of the training operator) for the
 * documents' manifests: Job, ReplicaSet, Deployment, TFJob, namespaces (default service account,
 * cascade), owner garbage collection, pods on vanished and on hollow nodes, PodDisruptionBudget
 * status. Level-triggered: a change marks the object dirty, and the loop's next round syncs it.
 */
#pragma once

#include "lib/base/error.h"
#include "lib/base/loop.h"
#include "test/local/api/api.h"
#include "test/local/store/store.h"

/* A node with this annotation ("true") has no kubelet, neither a real one nor a twin: its
 * terminating pods go away after their grace period. */
#define CONTROLLERS_HOLLOW "cosched.io/hollow"

struct controllers;
int controllers_start(struct controllers **out, struct loop *l, struct api *a, struct store *s,
                      struct error *err);
void controllers_stop(struct controllers *c);
/* Pods that controllers make go through these webhooks as well, as in a real cluster (api_create
 * asks none). Before the first round of the loop. */
void controllers_use_admission(struct controllers *c, struct admission *a);
