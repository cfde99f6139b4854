// SPDX-License-Identifier: Apache-2.0
/*
 * spread - one of a pod's topologySpreadConstraints, with Kubernetes' defaults filled in.
 *
 * matchLabelKeys: kube-scheduler adds `key In [the pod's current value]` to the selector whether or
 * not the API server (since 1.34) did so at creation. Decoding does the same without duplicates.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/str.h"
#include "lib/model/selector.h"

struct spread {
    const char *topology_key;
    int32_t max_skew;
    int32_t min_domains; /* 1 when absent */
    bool hard;           /* whenUnsatisfiable: DoNotSchedule, or an unknown value */
    /* nodeAffinityPolicy: Honor (default): nodes excluded by the pod's node affinity are no
     * domain */
    bool honor_affinity;
    bool honor_taints;        /* nodeTaintsPolicy: Honor; Ignore is the default */
    struct selector selector; /* .nothing when absent; includes matchLabelKeys */
};

/* Whether a placed, not terminating pod of the same namespace is counted. As in kube-scheduler, an
 * empty selector counts no placed pod, although it selects the pod itself. */
bool spread_counts(const struct spread *s, const struct labels *labels);
/* Whether the pod to be placed adds to its domain's count. */
bool spread_selects_self(const struct spread *s, const struct labels *labels);
void spread_merge_keys(struct spread *s, const char *const *keys, size_t len,
                       const struct labels *labels, struct arena *a);
/* Canonical text, as podterm_print. */
void spread_print(const struct spread *s, struct strbuf *out);
