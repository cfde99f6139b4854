// SPDX-License-Identifier: Apache-2.0
/*
 * rules - what the webhook thinks of an object that is being created or changed. Pure: an object and what is known of its surroundings in, a verdict out.
 *
 * Of a pod, three questions in this order:
 *   1. Is it ours? It asks for something of the contract (the table of triggers in rules.c) and nobody opted out. Then, if it names no scheduler or the
 *      default one, it gets our name. A pod that asks for nothing of ours is never touched.
 *   2. Which annotations does it carry that only we may write (claim_is_result_key)? They are removed from every pod, with a warning for each.
 *   3. Does it say something to us that cannot be? One file of rules for each subject: rules_gpu.c, rules_env.c, rules_gang.c, rules_cpuset.c, rules_burst.c,
 *      rules_place.c. Each refusal is one sentence: where, what, and what to write instead. What is odd and does no harm is a warning.
 * The verdict on the changed pod is empty: applied twice, nothing changes (I6).
 *
 * Workloads (rules_workload.c) are asked the third question about their templates, so that the user hears at `kubectl apply` what the pods would be told an
 * hour later; PodGroups and ResourcePolicies (rules_group.c, rules_policy.c) are looked at field by field; of Nodes (rules_node.c), two labels. Of a change
 * only what it changes is judged: an object that was there before we were must still be scaled and deleted.
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
#include "webhook/ruling.h"

/* A list of rules_crd, separated by commas. Strings live in a. */
int rules_crds_parse(const char *text, struct arena *a, struct rules_crd **out, size_t *len,
                     struct error *err);

/* A new pod. Everything in *out lives in a or in pod's document. ERROR_INVALID: this is not a pod (a part of it has the wrong kind). */
int rules_pod(const struct rules_config *config, const struct rules_context *context, json *pod,
              struct arena *a, struct rules_verdict *out, struct error *err);
/* Any object: a new pod as above, a workload, a PodGroup, a ResourcePolicy, a Node; the verdict on all else is empty. */
int rules_object(const struct rules_config *config, const struct rules_context *context,
                 const struct rules_subject *s, struct arena *a, struct rules_verdict *out,
                 struct error *err);
