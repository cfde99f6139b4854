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

/* kubectl prints warnings one by one, and the API server cuts them at 256 bytes each and 4 KiB together. */
enum { RULES_SENTENCES_MAX = 12, RULES_WARNING_BYTES = 256, RULES_REFUSAL_BYTES = 512 };
enum { RULES_PATH_MAX = 8, RULES_CRDS_MAX = 32 };

/* A custom resource with pod templates: "kubeflow.org/TFJob=spec.tfReplicaSpecs.*.template". Beside each template, `replicas`. */
struct rules_crd {
    const char *group, *kind;
    const char *path[RULES_PATH_MAX]; /* "*": each member, or each element */
    size_t path_len;
};
/* A list of them, separated by commas. Strings live in a. */
int rules_crds_parse(const char *text, struct arena *a, struct rules_crd **out, size_t *len,
                     struct error *err);

struct rules_config {
    const char *scheduler; /* the name that is put in */
    const char
        *own_ns; /* never injected there: our own pods must not wait for ourselves; NULL: none */
    bool inject_nvidia;   /* plain nvidia.com/gpu pods as well, in every namespace */
    bool guard_variables; /* NVIDIA_VISIBLE_DEVICES is refused in every pod */
    const struct rules_crd *crds;
    size_t crds_len;
};

/* How much of a collection is known: all of it; nothing yet (a warning where a rule would need it); some (no rule concludes from what is not there). */
enum rules_known { RULES_NOT_YET, RULES_ALL, RULES_SOME };

struct rules_group { /* a PodGroup */
    int32_t min_member;
};
struct rules_policy { /* a ResourcePolicy */
    const char *ns, *name;
    struct labels selector; /* empty: all pods of the namespace */
};

/* What is known about the object's surroundings; borrowed for the call. */
struct rules_context {
    const char *ns;
    const struct labels *ns_labels; /* NULL: not known (yet), counts as none */
    enum rules_known groups_known;
    const struct map *groups; /* "namespace/name" -> struct rules_group; NULL: empty */
    enum rules_known policies_known;
    const struct map *policies; /* "namespace/name" -> struct rules_policy; NULL: empty */
};

struct rules_subject {
    const char *group, *kind, *subresource, *operation;
    json *object;
    json *old; /* NULL on CREATE */
};

struct rules_sentences {
    const char *items[RULES_SENTENCES_MAX]; /* printable, no line breaks */
    size_t len;
    size_t left_out; /* more were found; the last item says how many */
};

/* A part of a request that is missing: /spec/<list>/<index>/resources/<missing>/<resource> becomes value. */
struct rules_fill {
    const char *list;
    size_t index;
    const char *missing; /* "limits" or "requests" */
    bool make;           /* and so is the object around it */
    const char *resource;
    json *value;
};

struct rules_verdict {
    const char *
        trigger; /* what makes the pod ours, a static word for metrics ("gpu-mem", "gang"); NULL: nothing, or opted out */
    bool inject; /* spec.schedulerName must become config->scheduler */
    bool ours;   /* scheduled by us, after the patch */
    const char **remove; /* annotations to remove; borrowed from the pod's document */
    size_t remove_len;
    struct rules_fill *fill;
    size_t fill_len;
    struct rules_sentences warnings;
    struct rules_sentences refusals;
};

/* A new pod. Everything in *out lives in a or in pod's document. ERROR_INVALID: this is not a pod (a part of it has the wrong kind). */
int rules_pod(const struct rules_config *config, const struct rules_context *context, json *pod,
              struct arena *a, struct rules_verdict *out, struct error *err);
/* Any object: a new pod as above, a workload, a PodGroup, a ResourcePolicy, a Node; the verdict on all else is empty. */
int rules_object(const struct rules_config *config, const struct rules_context *context,
                 const struct rules_subject *s, struct arena *a, struct rules_verdict *out,
                 struct error *err);
