// SPDX-License-Identifier: Apache-2.0
/*
 * rules_inside - the subjects of the rules, one function for each question; see rules.h for who asks it.
 */
#pragma once

#include "webhook/look.h"
#include "webhook/rules.h"

/* Of a pod or a template. Each says nothing when none of its keys is there. */
void rules_gpu_check(struct look *l);
void rules_env_check(struct look *l);
void rules_gang_check(struct look *l);
void rules_cpuset_check(struct look *l);
void rules_burst_check(struct look *l);
void rules_place_check(struct look *l);

/* What a gang that is legal needs, for the comparison with the workload's size: its name, how many pods, and the path and words for that number. */
struct rules_quorum {
    const char *name;
    int64_t pods;       /* 0: not known */
    const char *path;   /* "metadata.labels[...]", of the template */
    const char *source; /* "min-available" or "minMember of PodGroup ns/g" */
};
bool rules_gang_quorum(const struct look *l, struct rules_quorum *out);
/* The name of its gang, legal or not, whoever schedules it; NULL: none. */
const char *rules_gang_name(const struct look *l);

/* A change of a pod that runs: limits.cpu of pinned containers stay; a container for debugging has no variables of the device plugin. own: the pod as it is,
 * decided; later: as it shall be. */
void rules_cpuset_resize(struct look *own, json *later);
void rules_env_debug(struct look *own, json *later);

/* The policy that selects the pod, the first by its key; or NULL. */
const struct rules_policy *rules_burst_policy(const struct look *l);

/* Keys of ours on a workload's own metadata that none of its templates (at least one) has. kind: "Deployment". before: metadata whose keys were told of
 * already, or NULL. */
void rules_place_own(struct look *own, json *before, const struct look *templates, size_t n,
                     const char *kind);

/* Are the pods of this look ours? Sets trigger, inject, ours, judged. */
void rules_decide(struct look *l);
/* All rules above on a look that was decided. */
void rules_check(struct look *l);

/* Whole objects. The look has labels, annotations and an empty place. */
int rules_workload_check(struct look *own, const struct rules_subject *s, struct error *err);
bool rules_workload_is(const struct rules_config *config, const struct rules_subject *s);
void rules_group_check(struct look *own, const struct rules_subject *s);
void rules_policy_check(struct look *own, const struct rules_subject *s);
void rules_node_check(struct look *own, const struct rules_subject *s);

/* Fields of such objects (rules_field.c). Each refuses in a sentence with its path; absent is fine unless it says so. */
bool rules_field_int(struct look *l, json *v, const char *path, int64_t min, int64_t max,
                     int64_t *out);
void rules_field_bool(struct look *l, json *v, const char *path);
/* words: NULL-terminated; all: "a, b or c" */
void rules_field_word(struct look *l, json *v, const char *path, const char *const *words,
                      const char *all);
void rules_field_amounts(struct look *l, json *v, const char *path);
void rules_field_known(struct look *l, json *object, const char *path, const char *const *names);
