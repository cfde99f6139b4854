// SPDX-License-Identifier: Apache-2.0
/*
 * dump - the cluster, as the scheduler sees it, as JSON. Pure.
 *
 * A Kubernetes List of the objects in the model, so that `kubectl get nodes,pods -A -o json` and a dump are the same thing to whoever reads them (cosched-replay, jq):
 *
 *     {"apiVersion":"v1","kind":"List","cosched":{"dump":1,"schedulerName":"ack-co-scheduler"},"items":[
 *     {"apiVersion":"v1","kind":"Node",...},
 *     {"apiVersion":"v1","kind":"Pod",...}]}
 *
 * One object in a line: nodes, namespaces and storage, PodGroups, pods, each by name: equal clusters give equal bytes (I4), whatever the way to them.
 *
 * "cosched" also has how long gangs have waited for room, and what is kept for them (dump_kept.h).
 *
 * Where the model knows more than the objects say: a pod that is assumed has its node, its claim, and "cosched":{"assumed":true}; a bound pod has the claim that is accounted, also where somebody
 * edited the annotation later; a pod that could not be read says so in "cosched":{"unreadable":"..."}. So loading a dump gives the same digest.
 */
#pragma once

#include "lib/base/str.h"
#include "scheduler/cache/cluster.h"

enum { DUMP_VERSION = 1 };

/* Appended to out. */
void dump_cluster(const struct cluster *c, struct strbuf *out);
/* One pod as it stands in the dump. */
void dump_one_pod(const struct cluster_pod *cp, struct strbuf *out);
/* What an assumed pod of a dump was given: cards and CPUs. */
int dump_read_claim(const struct pod *p, struct arena *a, struct claim *out, struct error *err);
