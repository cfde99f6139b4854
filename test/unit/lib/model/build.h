// SPDX-License-Identifier: Apache-2.0
/*
 * build - an arena for each test, and model objects out of short texts, for tables:
 * "cpu=1,memory=2Gi", "a=b,c=d". For one file per program.
 */
#pragma once

#include "lib/base/arena.h"
#include "lib/model/pod.h"
#include "lib/model/resources.h"
#include "lib/model/selector.h"
#include "test/unit/lib/base/expect.h"

static struct arena arena;

static inline int setup(void **state)
{
    (void)state;
    arena_init(&arena, 0);
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

/* With " for ', so that JSON can be read in a table. */
static inline char *quoted(const char *text)
{
    char *out = arena_strdup(&arena, text);
    for (char *s = out; *s; s++)
        if (*s == '\'')
            *s = '"';
    return out;
}

/* Calls fn(key, key_len, value, value_len) for each "key=value" of a list. */
#define BUILD_EACH(text, key, key_len, value, value_len)                                     \
    for (const char *at_ = (text), *key = at_, *value = at_ ? strchr(at_, '=') + 1 : NULL,   \
                    *end_ = at_ ? strchrnul(at_, ',') : NULL;                                \
         at_ && *at_ != '\0'; at_ = *end_ ? end_ + 1 : end_, key = at_,                      \
                    value = *at_ ? strchr(at_, '=') + 1 : at_, end_ = strchrnul(at_, ','))   \
        for (size_t key_len = (size_t)(value - key - 1), value_len = (size_t)(end_ - value), \
                    once_ = 1;                                                               \
             once_ == 1; once_ = 0)

static inline struct resources build_resources(struct arena *a, const char *text)
{
    struct resources r = {0};

    BUILD_EACH(text, key, key_len, value, value_len)
    {
        struct error err = ERROR_INIT;
        if (resources_set_text(&r, a, key, key_len, value, value_len, QUANTITY_UP, &err) < 0)
            fail_msg("%s: %s", text, err.text);
    }
    return r;
}

static inline int build_label_order(const void *a, const void *b)
{
    return strcmp(((const struct label *)a)->key, ((const struct label *)b)->key);
}

static inline struct labels build_labels(struct arena *a, const char *text)
{
    struct labels l = {.items = arena_new(a, struct label, 64)};

    BUILD_EACH(text, key, key_len, value, value_len)
    l.items[l.len++] =
        (struct label){arena_strndup(a, key, key_len), arena_strndup(a, value, value_len)};
    qsort(l.items, l.len, sizeof l.items[0], build_label_order);
    return l;
}

static inline void build_annotate(struct arena *a, struct pod *p, const char *key,
                                  const char *value)
{
    if (!p->annotations.items)
        p->annotations.items = arena_new(a, struct label, 64);
    p->annotations.items[p->annotations.len++] = (struct label){key, value};
    qsort(p->annotations.items, p->annotations.len, sizeof p->annotations.items[0],
          build_label_order);
}
