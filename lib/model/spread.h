// SPDX-License-Identifier: Apache-2.0
/*
 * spread - one of a pod's topologySpreadConstraints, with Kubernetes' defaults filled in.
 *
 * matchLabelKeys: kube-scheduler adds `key In [the pod's value]` to the selector whether or not the API server (since 1.34) has done so before, from the
 * labels of the pod as they are now. Decoding does the same; a requirement that is there already is not added again.
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
    bool hard; /* whenUnsatisfiable: DoNotSchedule; a word that we do not know counts as that */
    bool
        honor_affinity; /* nodeAffinityPolicy: Honor, the default: nodes that the pod's node affinity refuses are no domain */
    bool honor_taints;  /* nodeTaintsPolicy: Honor; Ignore is the default */
    struct selector selector; /* .nothing when absent; matchLabelKeys are in it */
};

/* Whether a placed pod of the same namespace, not terminating, is counted. As kube-scheduler has it, a selector without any requirement counts no
 * placed pod, although it selects the pod itself. */
bool spread_counts(const struct spread *s, const struct labels *labels);
/* Whether the pod to be placed adds to the domain that it goes to. */
bool spread_selects_self(const struct spread *s, const struct labels *labels);
void spread_merge_keys(struct spread *s, const char *const *keys, size_t len,
                       const struct labels *labels, struct arena *a);
/* Canonical text, as podterm_print. */
void spread_print(const struct spread *s, struct strbuf *out);
