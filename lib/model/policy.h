// SPDX-License-Identifier: Apache-2.0
/*
 * policy - a ResourcePolicy (contract, section 5): in which order the pods that it selects use pools of nodes, its units, and how many may be in each.
 *
 * The webhook refuses what is wrong with one; the scheduler reads it as if there were no webhook. What cannot be understood makes the whole policy `invalid`: it is kept, so that its
 * author can be told, and selects no pod. A key that a policy may not give to pods is left out, and `warning` says so: the rest of the policy is still what its author meant.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/model/node.h"
#include "lib/model/object.h"
#include "lib/model/pod.h"
#include "lib/model/resources.h"
#include "lib/model/selector.h"

enum {
    POLICY_UNITS_MAX = 64,
    POLICY_KEYS_MAX = 16,  /* of matchLabelKeys */
    POLICY_LABELS_MAX = 64 /* in any one map of labels or annotations */
};

/* ecs and elastic are real nodes, eci and acs virtual ones. A unit of elastic nodes is one that an autoscaler fills: it is worth waiting for even where it has no limit. */
enum policy_resource { POLICY_ECS, POLICY_ECI, POLICY_ELASTIC, POLICY_ACS };

/* When a pod may look at the units behind one. */
enum policy_when {
    POLICY_LACK_OR_MAX,            /* no node of it fits, or it is full */
    POLICY_MAX,                    /* it is full */
    POLICY_TIMEOUT_OR_MAX,         /* it is full, or the pod has waited for it long enough */
    POLICY_LACK_AND_NO_TERMINATING /* no node of it fits or it is full, and none of its pods is leaving */
};

struct policy_unit {
    enum policy_resource resource;
    struct labels node_selector;
    int64_t max; /* pods; -1: any number */
    bool has_max_resources;
    struct resources max_resources; /* only what `has` and extra name is limited */
    struct labels pod_labels;       /* given to the pods of this unit: legal keys only */
    struct labels pod_annotations;
    bool awaited; /* worth waiting for without a limit: elastic, or its podLabels say so */
};

struct policy {
    struct object object;
    int64_t created_ns;
    const char *invalid;    /* "spec.units[1].max: not an integer"; NULL: it is in force */
    const char *warning;    /* what of it was left out; NULL: nothing */
    struct labels selector; /* labels that a pod must have; none: every pod of the namespace */
    struct policy_unit *units;
    size_t units_len;
    bool preempt_before_next; /* preemptPolicy: BeforeNextUnit */
    bool ignore_previous;
    bool ignore_terminating;
    const char **match_keys; /* sorted, each once */
    size_t match_keys_len;
    enum policy_when when;
    int64_t timeout_ms;
};

/* In its namespace and with the labels that it selects by; an invalid one selects nobody. */
bool policy_selects(const struct policy *p, const struct pod *pod);
/* Whether the unit is where this node is: its kind, and its labels. */
bool policy_unit_has_node(const struct policy_unit *u, const struct labels *node_labels,
                          bool is_virtual);
/* Whether the pod carries the labels that the unit gives to its pods. (Of annotations only those are kept that this system reads.) */
bool policy_unit_is_on(const struct policy_unit *u, const struct pod *pod);
/* Says the same, but for status and other metadata. */
bool policy_equal(const struct policy *a, const struct policy *b);
/* Older first, then by name: the first of those that select a pod is the one that holds. */
int policy_order(const struct policy *a, const struct policy *b);
/* A key that no policy may give to pods: what this system or Kubernetes steers by. */
bool policy_key_is_reserved(const char *key);
/* "15m", "1h30m", "90s", "500ms": not zero, at most a year. false: it is none. */
bool policy_parse_duration(const char *text, int64_t *ms);
const char *policy_resource_name(enum policy_resource r);
const char *policy_when_name(enum policy_when w);
