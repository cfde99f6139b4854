// SPDX-License-Identifier: Apache-2.0
/* rules_internal - functions that the rules' files share; see rules.h. */
#pragma once

#include "webhook/rules/pod_view.h"
#include "webhook/rules/rules.h"

/* Rules for a pod or template. Each reports nothing if none of its keys is present. */
void rules_gpu_check(struct pod_view *l);
void rules_env_check(struct pod_view *l);
void rules_mount_check(struct pod_view *l);
void rules_gang_check(struct pod_view *l);
void rules_cpuset_check(struct pod_view *l);
void rules_virtual_check(struct pod_view *l);
void rules_place_check(struct pod_view *l);

/* How many pods a valid gang needs, to compare with the workload's size. */
struct rules_quorum {
    const char *name;
    int64_t pods;       /* 0: unknown */
    const char *path;   /* of pods, in the template: "metadata.labels[...]" */
    const char *source; /* "min-available" or "minMember of PodGroup ns/g" */
};
bool rules_gang_quorum(const struct pod_view *l, struct rules_quorum *out);
/* The gang's name, valid or not, under any scheduler; NULL: none. */
const char *rules_gang_name(const struct pod_view *l);

/* Whether the pod asks for a resource that only our device plugin serves. */
bool rules_gpu_asks_ours(const struct pod_view *l);

/* What GPU pods must not do. The admission policies have the same lists (test_policies.c). */
extern const char *const rules_env_names[];    /* variables; NULL-terminated */
extern const char *const rules_env_prefixes[]; /* of variables; NULL-terminated */
extern const char *const rules_mount_paths[];  /* absolute; NULL-terminated */
/* Whether something mounted at path hides one of rules_mount_paths, or may do so. */
bool rules_mount_hides(const char *path);

/* Updates of a running pod: limits.cpu of pinned containers must not change, and an added debug
 * container must neither set the device plugin's variables nor hide its mounts. own: the current
 * pod, decided; later: the requested one. */
void rules_cpuset_resize(struct pod_view *own, json *later);
void rules_env_debug(struct pod_view *own, size_t index, json *container);
void rules_mount_debug(struct pod_view *own, size_t index, json *container);

/* The first policy, by key, that selects the pod, or NULL. */
const struct rules_policy *rules_virtual_policy(const struct pod_view *l);

/* Warns about our keys on a workload's own metadata that none of its templates (at least one) has.
 * kind: "Deployment" etc. before: metadata whose keys were already reported, or NULL. */
void rules_place_own(struct pod_view *own, json *before, const struct pod_view *templates, size_t n,
                     const char *kind);

/* Decides whether the view's pods are ours: sets trigger, inject, ours, judged. */
void rules_decide(struct pod_view *l);
/* Applies all rules above to a decided view. */
void rules_check(struct pod_view *l);

/* Whole objects. The view has labels, annotations and an empty path prefix. */
int rules_workload_check(struct pod_view *own, const struct rules_subject *s, struct error *err);
bool rules_workload_is(const struct rules_config *config, const struct rules_subject *s);
void rules_group_check(struct pod_view *own, const struct rules_subject *s);
void rules_policy_check(struct pod_view *own, const struct rules_subject *s);
void rules_node_check(struct pod_view *own, const struct rules_subject *s);

/* Fields of such objects. Each refuses with its path and accepts an absent field unless stated. */
bool rules_field_int(struct pod_view *l, json *v, const char *path, int64_t min, int64_t max,
                     int64_t *out);
void rules_field_bool(struct pod_view *l, json *v, const char *path);
/* words: NULL-terminated; all: "a, b or c" */
void rules_field_word(struct pod_view *l, json *v, const char *path, const char *const *words,
                      const char *all);
void rules_field_amounts(struct pod_view *l, json *v, const char *path);
void rules_field_known(struct pod_view *l, json *object, const char *path,
                       const char *const *names);
