// SPDX-License-Identifier: Apache-2.0
/*
 * dump - the scheduler's model of the cluster as JSON. Pure.
 *
 * A Kubernetes List of the objects in the model, so that readers (cosched-replay, jq) treat it like
 * `kubectl get nodes,pods -A -o json`:
 *
 *     {"apiVersion":"v1","kind":"List","cosched":{"dump":1,"schedulerName":"ack-co-scheduler"},
 *     "items":[{"apiVersion":"v1","kind":"Node",...}, {"apiVersion":"v1","kind":"Pod",...}]}
 *
 * One object per line: nodes, namespaces and storage, PodGroups, pods, each by name. Equal clusters
 * give equal bytes (I4), whatever their history.
 *
 * "cosched" also has the settings that affect decisions (print_head, read back by
 * replay/replay_load_dump.c), the waiting times and reservations of gangs (dump_reservations.h,
 * same reader), and the demand for GPUs (dump_demand.h, with its reader). dump_pod.c writes a pod's
 * fields, and replay/replay_load.c reads them.
 *
 * Where the model knows more than the objects: an assumed pod has its node, its grant, and
 * "cosched":{"assumed":true}; a bound pod has the accounted grant, even if its annotation was
 * edited later; a pod of which not all could be read has
 * "cosched":{"unplaceable":"..."}. So loading a dump gives the
 * same digest.
 */
#pragma once

#include "lib/base/str.h"
#include "scheduler/cache/cluster.h"

enum { DUMP_VERSION = 1 };

/* Appends to out. */
void dump_cluster(const struct cluster *c, struct strbuf *out);
/* A copy of the pod as in the dump, which the caller frees. */
struct pod *dump_copy_pod(const struct cluster_pod *cp);
/* The grant of an assumed pod of a dump: cards and CPUs. */
int dump_read_grant(const struct pod *p, struct arena *a, struct grant *out, struct error *err);
