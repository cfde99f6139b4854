// SPDX-License-Identifier: Apache-2.0
/*
 * policy - a ResourcePolicy: in which order the pods that it selects use its units, which are pools
 * of nodes, and how many may be in each.
 *
 * The webhook rejects invalid policies, but the scheduler does not rely on it. An invalid policy is
 * stored, so that its author can be informed, and selects no pod. A key that a policy may not set
 * on pods is dropped with a `warning`; the rest of the policy applies.
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

/* ecs and elastic are real nodes, eci and acs virtual ones. An autoscaler fills a unit of elastic
 * nodes: pods wait for it even if it has no limit. */
enum policy_resource { POLICY_ECS, POLICY_ECI, POLICY_ELASTIC, POLICY_ACS };

/* When a pod may use the units after this one. */
enum policy_when {
    POLICY_LACK_OR_MAX,    /* no node in it fits, or it is full */
    POLICY_MAX,            /* it is full */
    POLICY_TIMEOUT_OR_MAX, /* it is full, or the pod has waited for it long enough */
    /* no node in it fits or it is full, and none of its pods is terminating */
    POLICY_LACK_AND_NO_TERMINATING
};

struct policy_unit {
    enum policy_resource resource;
    struct labels node_selector;
    int64_t max; /* pods; -1: unlimited */
    bool has_max_resources;
    struct resources max_resources; /* limits only what `has` and extra name */
    struct labels pod_labels;       /* set on the pods of this unit: allowed keys only */
    struct labels pod_annotations;
    bool awaited; /* pods wait for it without a limit: elastic, or its podLabels request it */
};

struct policy {
    struct object object;
    int64_t created_ns;
    const char *invalid;    /* "spec.units[1].max: not an integer"; NULL: valid */
    const char *warning;    /* what was dropped; NULL: nothing */
    struct labels selector; /* labels that a pod must have; empty: every pod of the namespace */
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

/* Matches namespace and labels; an invalid policy selects no pod. */
bool policy_selects(const struct policy *p, const struct pod *pod);
/* Whether the node belongs to the unit, by kind and labels. */
bool policy_unit_has_node(const struct policy_unit *u, const struct labels *node_labels,
                          bool is_virtual);
/* Whether the pod has the labels that the unit sets on its pods. (Annotations are not compared:
 * only those that we read are kept.) */
bool policy_unit_is_on(const struct policy_unit *u, const struct pod *pod);
/* Whether two valid versions of one policy select the same pods, with the same age. */
bool policy_selects_like(const struct policy *a, const struct policy *b);
/* Equal except for status and other metadata. */
bool policy_equal(const struct policy *a, const struct policy *b);
/* Older first, then by name: the first one that selects a pod applies. */
int policy_order(const struct policy *a, const struct policy *b);
/* Whether no policy may set this key on pods, because this system or Kubernetes acts on it. */
bool policy_key_is_reserved(const char *key);
/* "15m", "1h30m", "90s", "500ms": not zero, at most a year. */
bool policy_parse_duration(const char *text, int64_t *ms);
const char *policy_resource_name(enum policy_resource r);
const char *policy_when_name(enum policy_when w);
