// SPDX-License-Identifier: Apache-2.0
/*
 * policies_index - which policy selects a pod, and which pods a policy selects, without trying all
 * of them. Pure; for policies*.c.
 *
 * Each namespace has its pods. Once it has had a valid policy, it also has them by label, and its
 * policies by one label of their selector: the one by which the fewest policies are found. So a pod
 * is compared with the policies found by its labels, and a policy with the pods that have the
 * rarest label of its selector. The pods of a namespace without policies cost one pointer each.
 */
#pragma once

#include "scheduler/cache/policies.h"

/* A label of pods or of selectors of a namespace. */
struct policies_pair {
    char *key;                                /* "label\nvalue" */
    struct VEC(struct policies_posting) pods; /* that have it, unordered */
    struct policies_entries entries;          /* found by it, oldest first */
    size_t selectors;                         /* that have it */
};

struct policies_posting {
    struct cluster_pod *pod;
    uint32_t mark; /* of the pod, for this pair */
};

/* Where a pod is in the pair of one of its labels. */
struct policies_mark {
    struct policies_pair *pair;
    uint32_t place;
};

/* The pod is new: into its namespace, which may be new too. */
void policies_index_enter(struct policies *ps, struct cluster_pod *cp);
/* Its labels may have changed. */
void policies_index_follow(struct cluster_pod *cp);
/* It is about to be removed; so may its namespace be. */
void policies_index_leave(struct policies *ps, struct cluster_pod *cp);
/* Enters a pod's labels, unless it has been done. */
void policies_index_mark(struct policies_space *space, struct cluster_pod *cp);

struct policies_space *policies_index_find(const struct policies *ps, const char *ns);
struct policies_space *policies_index_space(struct policies *ps, const char *ns);
/* Frees the namespace's record if nothing is in it. */
void policies_index_drop_if_unused(struct policies *ps, struct policies_space *space);

/* A valid policy selects pods from now on, or no longer. */
void policies_index_add(struct policies_space *space, struct policies_entry *e);
void policies_index_withdraw(struct policies_entry *e);

/* The oldest policy that selects the pod, or NULL. */
struct policies_entry *policies_index_entry(struct policies *ps, const struct cluster_pod *cp);
/* At most `most` policies that select it, the oldest ones, oldest first; returns how many. */
size_t policies_index_all(struct policies *ps, const struct cluster_pod *cp, size_t most,
                          struct policies_entry **out);
/* The label of its selector that the fewest pods have; NULL: it selects all pods. */
const struct policies_pair *policies_index_rarest(const struct policies_entry *e);

void policies_index_deinit(struct policies *ps);
