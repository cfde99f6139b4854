// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as a query, a label selector and a node selector; each that is read is tried on a few
 * label sets. A selector that was refused must select nothing that it did not say.
 */
#include "lib/base/json.h"
#include "lib/model/selector.h"
#include "test/fuzz/fuzz_kit.h"
#include "test/local/api/selector_parse.h"

static void try_selector(const struct selector *s)
{
    struct label items[] = {{"a", "b"}, {"c", ""}, {"kubernetes.io/os", "linux"}, {"n", "12"}};

    for (size_t n = 0; n <= sizeof items / sizeof items[0]; n++) {
        struct labels l = {items, n};
        bool selects = selector_matches(s, &l);
        must(!(selects && s->nothing));
        must(selects || s->nothing || s->len > 0);
    }
}

static void try_node_selector(const struct node_selector *s)
{
    struct label items[] = {{"a", "b"}, {"n", "12"}};
    struct labels l = {items, 2};
    bool any = false;

    for (size_t i = 0; i < s->len; i++) {
        bool matches = node_term_matches(&s->terms[i], &l, "n1");
        must(!(matches && s->terms[i].invalid));
        must(!(matches && s->terms[i].labels.len + s->terms[i].fields.len == 0));
        any = any || matches;
    }
    must(any == node_selector_matches(s, &l, "n1"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = text_of(data, size);
    AUTO_JSON *doc = NULL;
    struct arena arena;
    struct error err = ERROR_INIT;
    struct selector s;

    arena_init(&arena, 0);
    if (selector_parse(text, &arena, &s, &err) == 0)
        try_selector(&s);
    else
        must(err.code == ERROR_INVALID || err.code == ERROR_TOO_LARGE || err.code == ERROR_RANGE);
    if (json_parse(&doc, text, size, NULL) == 0) {
        struct node_selector n;
        struct labels l;
        error_clear(&err);
        if (labels_decode(json_root(doc), &arena, &l, &err) == 0)
            for (size_t i = 0; i < l.len; i++)
                must(labels_get(&l, l.items[i].key) == l.items[i].value);
        if (selector_decode(json_root(doc), &arena, &s, &err) == 0)
            try_selector(&s);
        if (node_selector_decode(json_root(doc), &arena, &n, &err) == 0)
            try_node_selector(&n);
    }
    arena_deinit(&arena);
    free(text);
    return 0;
}
