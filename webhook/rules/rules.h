// SPDX-License-Identifier: Apache-2.0
/*
 * rules - the webhook's verdict on an object that is being created or changed, given what is known
 * around it. Pure.
 *
 * For a pod, three questions in this order:
 *   1. Is it ours? It asks for something of the contract (the table of triggers in rules.c) and
 *      has no opt-out. Then, if it names no scheduler or the default one, it gets our name. A pod
 *      that asks for nothing of ours is never touched.
 *   2. Which annotations does it carry that only we may write (grant_is_result_key)? They are
 *      removed from every pod, with a warning for each.
 *   3. Does it say something to us that cannot be? One file of rules for each subject: rules_gpu.c,
 *      rules_env.c, rules_gang.c, rules_cpuset.c, rules_virtual.c, rules_place.c. Each refusal is
 *      one sentence: where, what, and what to write instead. What is odd and does no harm is a
 *      warning.
 * The verdict on the changed pod is empty: applied twice, nothing changes (I6).
 *
 * For workloads (rules_workload.c) the third question applies to their templates, so that mistakes
 * are reported at apply time; PodGroups and ResourcePolicies (rules_group.c, rules_policy.c) are
 * checked field by field; of Nodes (rules_node.c), two labels. Of an update only the changes are
 * judged: an object older than the webhook must still be scalable and deletable.
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

/* A list of rules_crd, separated by commas. Strings live in a. */
int rules_crds_parse(const char *text, struct arena *a, struct rules_crd **out, size_t *len,
                     struct error *err);

/* A new pod. Everything in *out lives in a or in pod's document. ERROR_INVALID: this is not a pod
 * (a part of it has the wrong kind). */
int rules_pod(const struct rules_config *config, const struct rules_context *context, json *pod,
              struct arena *a, struct rules_verdict *out, struct error *err);
/* Any object: a new pod as above, a workload, a PodGroup, a ResourcePolicy, a Node; the verdict on
 * others is empty. */
int rules_object(const struct rules_config *config, const struct rules_context *context,
                 const struct rules_subject *s, struct arena *a, struct rules_verdict *out,
                 struct error *err);
