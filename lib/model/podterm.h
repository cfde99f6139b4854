// SPDX-License-Identifier: Apache-2.0
/*
 * podterm - one term of a pod's affinity to, or anti-affinity against, other pods.
 *
 * Decoding yields an effective term, with defaults applied:
 *
 *   namespaces   a term that names neither namespaces nor a namespaceSelector means the pod's own
 *                namespace: it is then listed here. namespaceSelector: absent selects no namespace,
 *                {} selects every one (also one not seen yet).
 *   selector     includes matchLabelKeys and mismatchLabelKeys. The API server merges them into
 *                labelSelector at creation, and kube-scheduler then uses the selector alone, so
 *                later label changes have no effect. If one of the keys is present in the merged
 *                form (`key In [one value]`, `key NotIn [one value]`), the selector is taken as it
 *                is. Otherwise the server did not merge, and the pod's labels are merged here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/str.h"
#include "lib/model/selector.h"

struct podterm {
    const char *topology_key;
    const char **namespaces; /* sorted, each once */
    size_t namespaces_len;
    struct selector namespace_selector; /* .nothing when absent */
    struct selector selector;           /* of pods; .nothing when absent */
    int32_t weight;                     /* preferred terms: 1 to 100; required ones: 0 */
};

/* A pod's terms. All required ones must be met; each preferred one's weight is added or (anti)
 * subtracted. */
struct podterms {
    struct podterm *affinity, *anti_affinity;
    size_t affinity_len, anti_affinity_len;
    struct podterm *preferred, *preferred_anti;
    size_t preferred_len, preferred_anti_len;
};

/* Whether the term selects a pod with these labels in namespace ns, whose labels are ns_labels
 * (NULL: unknown, taken as empty). */
bool podterm_matches(const struct podterm *t, const char *ns, const struct labels *ns_labels,
                     const struct labels *labels);
/* Whether the term selects the namespace. */
bool podterm_has_namespace(const struct podterm *t, const char *ns, const struct labels *ns_labels);
/* Adds `key in (value)` and `key notin (value)` to t->selector for the keys that the labels have,
 * unless the API server already did. */
void podterm_merge_keys(struct podterm *t, const char *const *match, size_t match_len,
                        const char *const *mismatch, size_t mismatch_len,
                        const struct labels *labels, struct arena *a);
/* Canonical text without the weight: the same for equal terms, in any order of requirements. */
void podterm_print(const struct podterm *t, struct strbuf *out);
