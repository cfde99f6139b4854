// SPDX-License-Identifier: Apache-2.0
/*
 * podterm - one term of a pod's affinity to, or anti-affinity against, other pods.
 *
 * Decoding leaves one effective term; whoever uses it need not know of defaults:
 *
 *   namespaces   a term that names neither namespaces nor a namespaceSelector means the pod's own namespace: it is then listed here.
 *                namespaceSelector: absent selects no namespace, {} selects every one (also one that we have not seen yet).
 *   selector     with matchLabelKeys and mismatchLabelKeys in it. The API server merges them into labelSelector when it creates the pod, and
 *                kube-scheduler then looks at the selector alone. A label that is changed later therefore changes nothing, so they are not put in a
 *                second time: if one of the keys is there in the merged form (`key In [one value]`, `key NotIn [one value]`), the selector is taken as
 *                it is. If none is, the server did not merge, and the pod's labels are put in here.
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

/* What a pod has of them. All of required must be met; each weight of preferred is won or (anti) lost. */
struct podterms {
    struct podterm *affinity, *anti_affinity;
    size_t affinity_len, anti_affinity_len;
    struct podterm *preferred, *preferred_anti;
    size_t preferred_len, preferred_anti_len;
};

/* Whether a pod in namespace ns, which has the labels ns_labels (NULL: not known, so empty), with these labels is meant. */
bool podterm_matches(const struct podterm *t, const char *ns, const struct labels *ns_labels,
                     const struct labels *labels);
/* Whether the namespace alone is meant. */
bool podterm_has_namespace(const struct podterm *t, const char *ns, const struct labels *ns_labels);
/* Puts `key in (value)` and `key notin (value)` for those of the keys that the labels have into t->selector, unless the API server did it already. */
void podterm_merge_keys(struct podterm *t, const char *const *match, size_t match_len,
                        const char *const *mismatch, size_t mismatch_len,
                        const struct labels *labels, struct arena *a);
/* Canonical text: equal texts if and only if the terms say the same with the same requirements, in whatever order. The weight is not in it. */
void podterm_print(const struct podterm *t, struct strbuf *out);
