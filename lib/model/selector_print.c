// SPDX-License-Identifier: Apache-2.0
/* A selector as canonical text: requirements and their values are sorted and unique. Pods that
 * select by the same requirements get the same text, and so share counters. Keys and values are
 * valid labels (selector_decode checks), so none contains a separator. */
#include "lib/model/selector.h"

#include <stdlib.h>

#include "lib/base/str.h"

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorts, drops duplicates, returns the number left. */
static size_t sort_words(const char **words, size_t n)
{
    size_t kept = 0;
    if (n > 1)
        qsort(words, n, sizeof *words, by_text);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || strcmp(words[kept - 1], words[i]) != 0)
            words[kept++] = words[i];
    return kept;
}

static const char *requirement_text(const struct requirement *r, struct arena *a)
{
    switch (r->op) {
    case SELECTOR_EXISTS:
        return r->key;
    case SELECTOR_NOT_EXISTS:
        return arena_printf(a, "!%s", r->key);
    case SELECTOR_GT:
    case SELECTOR_LT:
        return arena_printf(a, "%s%c%lld", r->key, r->op == SELECTOR_GT ? '>' : '<',
                            (long long)r->number);
    case SELECTOR_IN:
    case SELECTOR_NOT_IN:
        break;
    }
    AUTO_STRBUF text = {0};
    const char **values = arena_new(a, const char *, r->values_len);
    for (size_t i = 0; i < r->values_len; i++)
        values[i] = r->values[i];
    size_t n = sort_words(values, r->values_len);
    strbuf_addf(&text, "%s %s (", r->key, r->op == SELECTOR_IN ? "in" : "notin");
    for (size_t i = 0; i < n; i++)
        strbuf_addf(&text, "%s%s", i ? "," : "", values[i]);
    strbuf_addc(&text, ')');
    return arena_strdup(a, strbuf_str(&text));
}

void selector_print(const struct selector *s, struct strbuf *out)
{
    if (s->nothing) {
        strbuf_adds(out, "<nothing>");
        return;
    }
    struct arena a;
    arena_init(&a, 0);
    const char **texts = arena_new(&a, const char *, s->len);
    for (size_t i = 0; i < s->len; i++)
        texts[i] = requirement_text(&s->reqs[i], &a);
    size_t n = sort_words(texts, s->len);
    for (size_t i = 0; i < n; i++)
        strbuf_addf(out, "%s%s", i ? "," : "", texts[i]);
    arena_deinit(&a);
}

void selector_add(struct selector *s, const char *key, enum selector_op op, const char *value,
                  struct arena *a)
{
    struct requirement *reqs = arena_new(a, struct requirement, s->len + 1);
    const char **values = arena_new(a, const char *, 1);
    if (s->len)
        memcpy(reqs, s->reqs, s->len * sizeof *reqs);
    values[0] = value;
    reqs[s->len] =
        (struct requirement){.key = key, .op = op, .values = values, .values_len = value ? 1 : 0};
    s->reqs = reqs;
    s->len++;
}
