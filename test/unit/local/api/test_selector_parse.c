// SPDX-License-Identifier: Apache-2.0
#include "test/local/api/selector_parse.h"

#include "lib/base/str.h"
#include "test/unit/lib/model/build.h"

static void queries_select_as_kubectl_does(void **state)
{
    (void)state;
    static const struct {
        const char *query, *labels;
        bool selects;
    } rows[] = {
        {"", "a=b", true},
        {"  \t", "", true},
        {"a=b", "a=b", true},
        {"a=b", "a=c", false},
        {"a=b", "", false},
        {"a==b", "a=b", true},
        {"a==b", "a=c", false},
        {"a = b", "a=b", true},
        {" a\t==  b ", "a=b", true},
        {"a=", "a=", true},
        {"a=", "a=b", false},
        {"a=,c=d", "a=,c=d", true},
        {"a!=b", "a=c", true},
        {"a!=b", "a=b", false},
        {"a!=b", "", true},
        {"a!=", "a=", false},
        {"a", "a=", true},
        {"a", "b=", false},
        {"!a", "b=", true},
        {"! a", "a=", false},
        {"a in (x)", "a=x", true},
        {"a in (x,y)", "a=y", true},
        {"a in ( x , y )", "a=y", true},
        {"a in(x)", "a=x", true},
        {"a in (x,y)", "a=z", false},
        {"a in (x,y)", "", false},
        {"a in ()", "a=", true},
        {"a in ()", "a=x", false},
        {"a in (x,)", "a=", true},
        {"a in (,x)", "a=", true},
        {"a in (x,,y)", "a=y", true},
        {"a notin (x)", "a=x", false},
        {"a notin (x,y)", "a=z", true},
        {"a notin (x,y)", "", true},
        {"a>5", "a=6", true},
        {"a>5", "a=5", false},
        {"a > 5", "a=10", true},
        {"a<5", "a=4", true},
        {"a<5", "a=5", false},
        {"a<5", "a=x", false},
        {"a<5", "", false},
        {"a=b,c!=d,e in (x,y),f notin (z),g,!h", "a=b,c=x,e=y,f=y,g=1", true},
        {"a=b,c!=d,e in (x,y),f notin (z),g,!h", "a=b,c=d,e=y,f=y,g=1", false},
        {"a=b,c!=d,e in (x,y),f notin (z),g,!h", "a=b,c=x,e=z,f=y,g=1", false},
        {"a=b,c!=d,e in (x,y),f notin (z),g,!h", "a=b,c=x,e=y,f=z,g=1", false},
        {"a=b,c!=d,e in (x,y),f notin (z),g,!h", "a=b,c=x,e=y,f=y", false},
        {"a=b,c!=d,e in (x,y),f notin (z),g,!h", "a=b,c=x,e=y,f=y,g=1,h=1", false},
        {"in in (in)", "in=in", true},
        {"notin", "notin=1", true},
        {"in=notin", "in=notin", true},
        {"x-y.z/a_b.c=1", "x-y.z/a_b.c=1", true},
        {"a=b,a!=c", "a=b", true},
        {"a=b,a=c", "a=b", false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct selector s;
        struct error err = ERROR_INIT;
        struct labels l = build_labels(&arena, rows[i].labels);
        char row[256];
        (void)str_format(row, sizeof row, "'%s' on '%s'", rows[i].query, rows[i].labels);
        expect_int(row, 0, selector_parse(rows[i].query, &arena, &s, &err));
        expect_str(row, "", err.text);
        expect_int(row, rows[i].selects, selector_matches(&s, &l));
    }
    expect_done();
}

static void bad_queries_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *query, *message;
    } rows[] = {
        {",", "selector, byte 0: expected a key, found ','"},
        {"a,", "selector, byte 2: expected a key, found ''"},
        {",a", "selector, byte 0: expected a key, found ',a'"},
        {"a,,b", "selector, byte 2: expected a key, found ',b'"},
        {"=b", "selector, byte 0: expected a key, found '=b'"},
        {"!", "selector, byte 1: expected a key, found ''"},
        {"!!a", "selector, byte 1: expected a key, found '!a'"},
        {"!a=b", "selector, byte 2: expected ',' or the end, found '=b'"},
        {"a b", "selector, byte 2: expected an operator, found 'b'"},
        {"a In (b)", "selector, byte 2: expected an operator, found 'In (b)'"},
        {"a in b", "selector, byte 5: expected '(', found 'b'"},
        {"a in", "selector, byte 4: expected '(', found ''"},
        {"a in (b", "selector, byte 7: expected ',' or ')', found ''"},
        {"a in (b c)", "selector, byte 8: expected ',' or ')', found 'c)'"},
        {"a in ((b))", "selector, byte 6: expected ',' or ')', found '(b))'"},
        {"a in (b))", "selector, byte 8: expected ',' or the end, found ')'"},
        {"a===b", "selector, byte 3: expected ',' or the end, found '=b'"},
        {"a=b c", "selector, byte 4: expected ',' or the end, found 'c'"},
        {"a=(b)", "selector, byte 2: expected ',' or the end, found '(b)'"},
        {"a(b)", "selector, byte 1: expected an operator, found '(b)'"},
        {"a!b", "selector, byte 1: expected an operator, found '!b'"},
        {"a/b/c", "not a label key: 'a/b/c'"},
        {"-a=b", "not a label key: '-a'"},
        {"a=-b", "key 'a': not a label value: '-b'"},
        {"a in (b,b/c)", "key 'a': not a label value: 'b/c'"},
        {"a>x", "key 'a': not an integer: 'x'"},
        {"a>", "key 'a': not an integer: ''"},
        {"a<1.5", "key 'a': not an integer: '1.5'"},
        {"a>=5", "key 'a': not an integer: ''"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct selector s;
        struct error err = ERROR_INIT;
        expect_int(rows[i].query, -1, selector_parse(rows[i].query, &arena, &s, &err));
        expect_str(rows[i].query, rows[i].message, err.text);
        expect_int(rows[i].query, ERROR_INVALID, err.code);
    }
    expect_done();
}

static void there_is_a_bound_on_the_text(void **state)
{
    (void)state;
    char *text = arena_alloc(&arena, SELECTOR_TEXT_MAX + 2);
    struct selector s;
    struct error err = ERROR_INIT;

    memset(text, ' ', SELECTOR_TEXT_MAX + 1);
    text[0] = 'a';
    expect_int("one byte too many", -1, selector_parse(text, &arena, &s, &err));
    expect_int("one byte too many", ERROR_TOO_LARGE, err.code);
    text[SELECTOR_TEXT_MAX] = '\0';
    expect_int("the longest", 0, selector_parse(text, &arena, &s, &err));
    expect_int("the longest", 1, (int64_t)s.len);
    expect_done();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(queries_select_as_kubectl_does),
        TEST(bad_queries_are_refused),
        TEST(there_is_a_bound_on_the_text),
    };
    return cmocka_run_group_tests_name("selector_parse", tests, NULL, NULL);
}
