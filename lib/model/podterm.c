// SPDX-License-Identifier: Apache-2.0
#include "lib/model/podterm.h"

#include "lib/base/json.h"

bool podterm_has_namespace(const struct podterm *t, const char *ns, const struct labels *ns_labels)
{
    static const struct labels none = {0};
    for (size_t i = 0; i < t->namespaces_len; i++)
        if (str_eq(t->namespaces[i], ns))
            return true;
    return selector_matches(&t->namespace_selector, ns_labels ? ns_labels : &none);
}

bool podterm_matches(const struct podterm *t, const char *ns, const struct labels *ns_labels,
                     const struct labels *labels)
{
    return selector_matches(&t->selector, labels) && podterm_has_namespace(t, ns, ns_labels);
}

/* Whether the selector has one of the keys in the API server's merged form. */
static bool is_merged(const struct selector *s, const char *const *keys, size_t len,
                      enum selector_op op)
{
    for (size_t i = 0; i < s->len; i++) {
        const struct requirement *r = &s->reqs[i];
        if (r->op != op || r->values_len != 1)
            continue;
        for (size_t k = 0; k < len; k++)
            if (str_eq(r->key, keys[k]))
                return true;
    }
    return false;
}

static void merge(struct selector *s, const char *const *keys, size_t len, enum selector_op op,
                  const struct labels *labels, struct arena *a)
{
    for (size_t k = 0; k < len; k++) {
        const char *value = labels_get(labels, keys[k]);
        if (value)
            selector_add(s, keys[k], op, value, a);
    }
}

void podterm_merge_keys(struct podterm *t, const char *const *match, size_t match_len,
                        const char *const *mismatch, size_t mismatch_len,
                        const struct labels *labels, struct arena *a)
{
    struct selector *s = &t->selector;
    if (s->nothing || is_merged(s, match, match_len, SELECTOR_IN) ||
        is_merged(s, mismatch, mismatch_len, SELECTOR_NOT_IN))
        return;
    merge(s, match, match_len, SELECTOR_IN, labels, a);
    merge(s, mismatch, mismatch_len, SELECTOR_NOT_IN, labels, a);
}

void podterm_print(const struct podterm *t, struct strbuf *out)
{
    json_escape(out, t->topology_key, strlen(t->topology_key));
    strbuf_adds(out, " in [");
    for (size_t i = 0; i < t->namespaces_len; i++) {
        if (i)
            strbuf_addc(out, ',');
        json_escape(out, t->namespaces[i], strlen(t->namespaces[i]));
    }
    strbuf_adds(out, "] or {");
    selector_print(&t->namespace_selector, out);
    strbuf_adds(out, "} of {");
    selector_print(&t->selector, out);
    strbuf_addc(out, '}');
}
