// SPDX-License-Identifier: Apache-2.0
/*
 * controllers - just enough of kube-controller-manager for the documents' manifests: Job, Deployment, ReplicaSet, TFJob, namespaces (default service account, cascade), owner garbage
 * collection, pods on vanished nodes. Level-triggered: a change marks the object dirty, the loop's next round brings it to what it should be.
 */
#pragma once

#include "lib/base/error.h"
#include "lib/base/loop.h"
#include "test/local/api.h"
#include "test/local/store.h"

struct controllers;
int controllers_start(struct controllers **out, struct loop *l, struct api *a, struct store *s,
                      struct error *err);
void controllers_stop(struct controllers *c);
