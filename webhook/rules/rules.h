// SPDX-License-Identifier: Apache-2.0
/*
 * rules - the webhook's verdict on a created or changed object, given the cluster context. Pure.
 *
 * For a pod, in this order:
 *   1. Is it ours? It is if a trigger in rules.c applies and nothing opts out. If it then names no
 *      scheduler or the default one, it gets our name. Other pods keep their scheduler.
 *   2. Annotations that only cosched may write (grant_is_result_key) are removed from every pod,
 *      with a warning for each.
 *   3. Invalid settings are refused: path, value, and what to write instead. Harmless mistakes get
 *      a warning. Rules are in rules_gpu.c, rules_env.c, rules_mount.c, rules_gang.c,
 *      rules_cpuset.c, rules_virtual.c and rules_place.c; the general ones and the order of all in
 *      rules.c. Amounts of GPU, variables and mounts of a pod that our device plugin serves are
 *      judged even if it is not ours.
 * The verdict on the patched pod is empty: applied twice, nothing changes (I6).
 *
 * Step 3 also applies to the templates of workloads (rules_workload.c), so mistakes are reported at
 * apply time. PodGroups and ResourcePolicies (rules_group.c, rules_policy.c) are checked field by
 * field, Nodes (rules_node.c) by two labels. Of an update only the changes are judged: an object
 * older than the webhook must stay scalable and deletable.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/base/map.h"
#include "lib/model/selector.h"
#include "webhook/rules/ruling.h"

/* Parses a comma-separated list of rules_crd. Strings live in a. */
int rules_crds_parse(const char *text, struct arena *a, struct rules_crd **out, size_t *len,
                     struct error *err);

/* A new pod. *out lives in a and in pod's document. ERROR_INVALID: a part has the wrong type. */
int rules_pod(const struct rules_config *config, const struct rules_context *context, json *pod,
              struct arena *a, struct rules_verdict *out, struct error *err);
/* Any object: a new pod, workload, PodGroup, ResourcePolicy or Node. Others get an empty
 * verdict. */
int rules_object(const struct rules_config *config, const struct rules_context *context,
                 const struct rules_subject *s, struct arena *a, struct rules_verdict *out,
                 struct error *err);
