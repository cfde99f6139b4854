// SPDX-License-Identifier: Apache-2.0
#include "lib/model/spread.h"

#include "lib/base/json.h"

bool spread_counts(const struct spread *s, const struct labels *labels)
{
    return s->selector.len > 0 && selector_matches(&s->selector, labels);
}

bool spread_selects_self(const struct spread *s, const struct labels *labels)
{
    return selector_matches(&s->selector, labels);
}

/* Whether the selector already has `key in (value)`. */
static bool says(const struct selector *s, const char *key, const char *value)
{
    for (size_t i = 0; i < s->len; i++) {
        const struct requirement *r = &s->reqs[i];
        if (r->op == SELECTOR_IN && r->values_len == 1 && str_eq(r->key, key) &&
            str_eq(r->values[0], value))
            return true;
    }
    return false;
}

void spread_merge_keys(struct spread *s, const char *const *keys, size_t len,
                       const struct labels *labels, struct arena *a)
{
    for (size_t i = 0; !s->selector.nothing && i < len; i++) {
        const char *value = labels_get(labels, keys[i]);
        if (value && !says(&s->selector, keys[i], value))
            selector_add(&s->selector, keys[i], SELECTOR_IN, value, a);
    }
}

void spread_print(const struct spread *s, struct strbuf *out)
{
    json_escape(out, s->topology_key, strlen(s->topology_key));
    strbuf_addf(out, " skew %d domains %d %s affinity %s taints %s of {", (int)s->max_skew,
                (int)s->min_domains, s->hard ? "hard" : "soft",
                s->honor_affinity ? "honored" : "ignored", s->honor_taints ? "honored" : "ignored");
    selector_print(&s->selector, out);
    strbuf_addc(out, '}');
}
