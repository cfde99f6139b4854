// SPDX-License-Identifier: Apache-2.0
#include "lib/model/podterm.h"

#include "lib/model/spread.h"
#include "test/local/api/selector_parse.h"
#include "test/unit/lib/model/build.h"

static struct selector selector_of(struct arena *a, const char *text)
{
    struct selector s = {.nothing = true};
    struct error err = ERROR_INIT;
    if (text && selector_parse(text, a, &s, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return s;
}

static void a_term_means_some_pods(void **state)
{
    (void)state;
    static const struct {
        const char *row, *namespaces, *of_namespaces, *of_pods; /* NULL selector: absent */
        const char *ns, *ns_labels, *labels;                    /* ns_labels NULL: not known */
        bool matches;
    } rows[] = {
        {"a listed namespace", "a", NULL, "app=web", "a", "", "app=web", true},
        {"not the right labels", "a", NULL, "app=web", "a", "", "app=db", false},
        {"another namespace", "a", NULL, "app=web", "b", "", "app=web", false},
        {"chosen by its labels", "", "team=x", "app=web", "b", "team=x", "app=web", true},
        {"not chosen", "", "team=x", "app=web", "b", "team=y", "app=web", false},
        {"listed though not chosen", "b", "team=x", "app=web", "b", "team=y", "app=web", true},
        {"an empty selector chooses every namespace", "", "", "app=web", "b", "team=y", "app=web",
         true},
        {"also one that is not known", "", "", "app=web", "b", NULL, "app=web", true},
        {"a selector does not choose one that is not known", "", "team=x", "app=web", "b", NULL,
         "app=web", false},
        {"unless it asks for what is not there", "", "!team", "app=web", "b", NULL, "app=web",
         true},
        {"no selector of pods means none", "a", NULL, NULL, "a", "", "app=web", false},
        {"an empty one means all", "a", NULL, "", "a", "", "", true},
    };
    struct arena a;
    arena_init(&a, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *ns[] = {rows[i].namespaces};
        struct podterm t = {.topology_key = "zone",
                            .namespaces = ns,
                            .namespaces_len = rows[i].namespaces[0] ? 1 : 0,
                            .namespace_selector = selector_of(&a, rows[i].of_namespaces),
                            .selector = selector_of(&a, rows[i].of_pods)};
        struct labels labels = build_labels(&a, rows[i].labels);
        struct labels ns_labels = build_labels(&a, rows[i].ns_labels);
        expect_int(rows[i].row, rows[i].matches,
                   podterm_matches(&t, rows[i].ns, rows[i].ns_labels ? &ns_labels : NULL, &labels));
    }
    arena_deinit(&a);
    expect_done();
}

static void equal_selectors_have_equal_texts(void **state)
{
    (void)state;
    static const struct {
        const char *row, *selector, *text;
    } rows[] = {
        {"everything", "", ""},
        {"one", "a=b", "a in (b)"},
        {"order does not matter", "c,b in (y,x),!a,a notin (q)", "!a,a notin (q),b in (x,y),c"},
        {"what is said twice is said once", "a in (x,x),a in (x)", "a in (x)"},
        {"numbers", "b<3,a>5", "a>5,b<3"},
        {"the empty value", "a=", "a in ()"},
    };
    struct arena a;
    arena_init(&a, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO_STRBUF text = {0};
        struct selector s = selector_of(&a, rows[i].selector);
        selector_print(&s, &text);
        expect_str(rows[i].row, rows[i].text, strbuf_str(&text));
    }
    AUTO_STRBUF text = {0};
    struct selector nothing = {.nothing = true}, s = selector_of(&a, "a=b");
    selector_print(&nothing, &text);
    expect_str("nothing", "<nothing>", strbuf_str(&text));
    const struct selector before = s;
    selector_add(&s, "c", SELECTOR_NOT_IN, "d", &a);
    selector_add(&s, "e", SELECTOR_EXISTS, NULL, &a);
    strbuf_reset(&text);
    selector_print(&s, &text);
    expect_str("added", "a in (b),c notin (d),e", strbuf_str(&text));
    expect_int("a copy keeps what it had", 1, (int64_t)before.len);
    arena_deinit(&a);
    expect_done();
}

static void spread_counts_what_it_selects(void **state)
{
    (void)state;
    static const struct {
        const char *row, *selector, *labels;
        bool counts, self;
    } rows[] = {
        {"selected", "app=web", "app=web", true, true},
        {"not selected", "app=web", "app=db", false, false},
        {"an empty selector counts nobody who is there, and the pod itself", "", "app=web", false,
         true},
        {"none", NULL, "app=web", false, false},
    };
    struct arena a;
    arena_init(&a, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct spread s = {.selector = selector_of(&a, rows[i].selector)};
        struct labels labels = build_labels(&a, rows[i].labels);
        expect_int(rows[i].row, rows[i].counts, spread_counts(&s, &labels));
        expect_int(rows[i].row, rows[i].self, spread_selects_self(&s, &labels));
    }
    arena_deinit(&a);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_term_means_some_pods),
        cmocka_unit_test(equal_selectors_have_equal_texts),
        cmocka_unit_test(spread_counts_what_it_selects),
    };
    return cmocka_run_group_tests_name("podterm", tests, NULL, NULL);
}
