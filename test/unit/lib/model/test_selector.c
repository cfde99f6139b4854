// SPDX-License-Identifier: Apache-2.0
#include "lib/model/selector.h"

#include "lib/base/str.h"
#include "test/unit/lib/model/build.h"

/* Decodes, with ' for " in the text; the document is gone before the result is looked at. */

typedef int decode_fn(json *, struct arena *, void *, struct error *);

static int decode_labels(json *j, struct arena *a, void *out, struct error *err)
{
    return labels_decode(j, a, out, err);
}
static int decode_selector(json *j, struct arena *a, void *out, struct error *err)
{
    return selector_decode(j, a, out, err);
}
static int decode_term(json *j, struct arena *a, void *out, struct error *err)
{
    (void)err;
    node_term_decode(j, a, out);
    return 0;
}
static int decode_node_selector(json *j, struct arena *a, void *out, struct error *err)
{
    return node_selector_decode(j, a, out, err);
}

static int decode(decode_fn *fn, const char *text, void *out, struct error *err)
{
    AUTO_JSON *doc = NULL;

    if (!text)
        return fn(NULL, &arena, out, err);
    assert_int_equal(0, json_parse(&doc, quoted(text), strlen(text), err));
    return fn(json_root(doc), &arena, out, err);
}

static void labels_are_sorted_and_found(void **state)
{
    (void)state;
    struct labels l;
    struct error err = ERROR_INIT;

    assert_int_equal(0, decode(decode_labels, "{'b':'2','a':'1','d':'','c':'3'}", &l, &err));
    expect_int("four", 4, (int64_t)l.len);
    expect_str("first", "a", l.items[0].key);
    expect_str("last", "d", l.items[3].key);
    expect_str("a", "1", labels_get(&l, "a"));
    expect_str("b", "2", labels_get(&l, "b"));
    expect_str("c", "3", labels_get(&l, "c"));
    expect_str("d is there and empty", "", labels_get(&l, "d"));
    expect_str("before all", NULL, labels_get(&l, ""));
    expect_str("between", NULL, labels_get(&l, "bb"));
    expect_str("behind all", NULL, labels_get(&l, "e"));
    assert_int_equal(0, decode(decode_labels, "{'a':'1','b':'2'}", &l, &err));
    expect_str("already sorted", "2", labels_get(&l, "b"));
    struct labels copy = labels_copy(&l, &arena);
    expect_int("a copy has as many", 2, (int64_t)copy.len);
    expect_str("the same", "2", labels_get(&copy, "b"));
    expect_true("of its own", copy.items != l.items && copy.items[0].key != l.items[0].key &&
                                  copy.items[0].value != l.items[0].value);
    copy = labels_copy(&(struct labels){0}, &arena);
    expect_int("of nothing: nothing", 0, (int64_t)copy.len);
    static const char *const empty[] = {NULL, "null", "{}"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(0, decode(decode_labels, empty[i], &l, &err));
        expect_int("empty", 0, (int64_t)l.len);
        expect_str("empty", NULL, labels_get(&l, "a"));
    }
    expect_done();
}

static void bad_labels_are_refused_with_their_key(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"[]", "must be an object, not array"},
        {"'a'", "must be an object, not string"},
        {"{'a':1}", "key 'a': must be a string without NUL, not number"},
        {"{'a':'x','b':null}", "key 'b': must be a string without NUL, not null"},
        {"{'a':'x\\u0000y'}", "key 'a': must be a string without NUL, not string"},
        {"{'a\\u0000b':'x'}", "key 'a' holds a NUL"},
        {"{'a':'x','a':'y'}", "key 'a' is there twice"},
        {"{'a':'x','b':'z','a':'x'}", "key 'a' is there twice"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct labels l;
        struct error err = ERROR_INIT;
        expect_int(rows[i].text, -1, decode(decode_labels, rows[i].text, &l, &err));
        expect_str(rows[i].text, rows[i].message, err.text);
        expect_int(rows[i].text, ERROR_INVALID, err.code);
    }
    expect_done();
}

static void label_selectors_select_as_in_kubernetes(void **state)
{
    (void)state;
    static const struct {
        const char *row, *selector, *labels;
        bool selects;
    } rows[] = {
        {"an absent selector selects nothing", NULL, "a=b", false},
        {"null selects nothing", "null", "a=b", false},
        {"an empty one selects everything", "{}", "a=b", true},
        {"also what has no labels", "{}", "", true},
        {"empty lists are empty", "{'matchLabels':{},'matchExpressions':[]}", "", true},
        {"null lists are empty", "{'matchLabels':null,'matchExpressions':null}", "", true},
        {"matchLabels: equal", "{'matchLabels':{'a':'b'}}", "a=b,c=d", true},
        {"matchLabels: another value", "{'matchLabels':{'a':'b'}}", "a=c", false},
        {"matchLabels: absent", "{'matchLabels':{'a':'b'}}", "c=b", false},
        {"matchLabels: an empty value is a value", "{'matchLabels':{'a':''}}", "a=", true},
        {"matchLabels: absent is not empty", "{'matchLabels':{'a':''}}", "", false},
        {"all must hold", "{'matchLabels':{'a':'b','c':'d'}}", "a=b,c=d", true},
        {"one that does not is enough", "{'matchLabels':{'a':'b','c':'d'}}", "a=b,c=e", false},
        {"In: first of two",
         "{'matchExpressions':[{'key':'a','operator':'In','values':['b','c']}]}", "a=b", true},
        {"In: second of two",
         "{'matchExpressions':[{'key':'a','operator':'In','values':['b','c']}]}", "a=c", true},
        {"In: neither", "{'matchExpressions':[{'key':'a','operator':'In','values':['b','c']}]}",
         "a=d", false},
        {"In: absent", "{'matchExpressions':[{'key':'a','operator':'In','values':['b','c']}]}", "",
         false},
        {"NotIn: another",
         "{'matchExpressions':[{'key':'a','operator':'NotIn','values':['b','c']}]}", "a=d", true},
        {"NotIn: one of them",
         "{'matchExpressions':[{'key':'a','operator':'NotIn','values':['b','c']}]}", "a=c", false},
        {"NotIn: absent holds",
         "{'matchExpressions':[{'key':'a','operator':'NotIn','values':['b','c']}]}", "", true},
        {"Exists", "{'matchExpressions':[{'key':'a','operator':'Exists'}]}", "a=", true},
        {"Exists: absent", "{'matchExpressions':[{'key':'a','operator':'Exists','values':[]}]}",
         "b=a", false},
        {"DoesNotExist",
         "{'matchExpressions':[{'key':'a','operator':'DoesNotExist','values':null}]}", "b=a", true},
        {"DoesNotExist: there", "{'matchExpressions':[{'key':'a','operator':'DoesNotExist'}]}",
         "a=", false},
        {"both parts hold",
         "{'matchLabels':{'a':'b'},'matchExpressions':[{'key':'c','operator':'Exists'}]}",
         "a=b,c=d", true},
        {"only one part holds",
         "{'matchLabels':{'a':'b'},'matchExpressions':[{'key':'c','operator':'Exists'}]}", "a=b",
         false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct selector s;
        struct error err = ERROR_INIT;
        struct labels l = build_labels(&arena, rows[i].labels);
        expect_int(rows[i].row, 0, decode(decode_selector, rows[i].selector, &s, &err));
        expect_str(rows[i].row, "", err.text);
        expect_int(rows[i].row, rows[i].selects, selector_matches(&s, &l));
    }
    expect_done();
}

static void bad_label_selectors_say_where(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"[]", "must be an object, not array"},
        {"{'matchLabels':[]}", "matchLabels: must be an object, not array"},
        {"{'matchLabels':{'a':1}}",
         "matchLabels: key 'a': must be a string without NUL, not number"},
        {"{'matchLabels':{'a b':'c'}}", "not a label key: 'a b'"},
        {"{'matchLabels':{'a':'b c'}}", "key 'a': not a label value: 'b c'"},
        {"{'matchExpressions':{}}", "matchExpressions: must be an array, not object"},
        {"{'matchExpressions':[1]}", "matchExpressions[0]: must be an object, not number"},
        {"{'matchExpressions':[{'operator':'In'}]}", "matchExpressions[0].key: must be a string"},
        {"{'matchExpressions':[{'key':'a','operator':'in','values':['b']}]}",
         "matchExpressions[0].operator: unknown operator 'in'"},
        {"{'matchExpressions':[{'key':'a'}]}", "matchExpressions[0].operator: unknown operator ''"},
        {"{'matchExpressions':[{'key':'a','operator':'Gt','values':['1']}]}",
         "matchExpressions[0].operator: unknown operator 'Gt'"},
        {"{'matchExpressions':[{'key':'a','operator':'Exists'},{'key':'a','operator':'In'}]}",
         "matchExpressions[1].values: In and NotIn need at least one"},
        {"{'matchExpressions':[{'key':'a','operator':'NotIn','values':[]}]}",
         "matchExpressions[0].values: In and NotIn need at least one"},
        {"{'matchExpressions':[{'key':'a','operator':'Exists','values':['b']}]}",
         "matchExpressions[0].values: Exists and DoesNotExist take none"},
        {"{'matchExpressions':[{'key':'a','operator':'In','values':'b'}]}",
         "matchExpressions[0].values: must be an array, not string"},
        {"{'matchExpressions':[{'key':'a','operator':'In','values':['b',2]}]}",
         "matchExpressions[0].values[1]: must be a string without NUL, not number"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct selector s;
        struct error err = ERROR_INIT;
        struct labels none = {0};
        expect_int(rows[i].text, -1, decode(decode_selector, rows[i].text, &s, &err));
        expect_str(rows[i].text, rows[i].message, err.text);
        expect_int("what is left selects nothing", false, selector_matches(&s, &none));
    }
    expect_done();
}

static void node_selectors_match_as_in_kubernetes(void **state)
{
    (void)state;
#define TERM(e) "{'nodeSelectorTerms':[{'matchExpressions':[" e "]}]}"
#define FIELD(e) "{'nodeSelectorTerms':[{'matchFields':[" e "]}]}"
    static const struct {
        const char *row, *selector, *labels;
        bool matches;
    } rows[] = {
        {"absent", NULL, "a=1", false},
        {"no terms match nothing", "{}", "a=1", false},
        {"an empty list of terms matches nothing", "{'nodeSelectorTerms':[]}", "a=1", false},
        {"an empty term matches nothing", "{'nodeSelectorTerms':[{}]}", "a=1", false},
        {"a term of empty lists matches nothing",
         "{'nodeSelectorTerms':[{'matchExpressions':[],'matchFields':[]}]}", "", false},
        {"an empty term does not spoil another",
         "{'nodeSelectorTerms':[{},{'matchExpressions':[{'key':'a','operator':'Exists'}]}]}", "a=1",
         true},
        {"terms are ORed",
         "{'nodeSelectorTerms':[{'matchExpressions':[{'key':'x','operator':'Exists'}]},{'matchExpressions':[{'key':'a','operator':'Exists'}]}]}",
         "a=1", true},
        {"expressions of a term are ANDed",
         TERM("{'key':'a','operator':'Exists'},{'key':'x','operator':'Exists'}"), "a=1", false},
        {"In", TERM("{'key':'a','operator':'In','values':['0','1']}"), "a=1", true},
        {"In: absent", TERM("{'key':'a','operator':'In','values':['0','1']}"), "b=1", false},
        {"NotIn", TERM("{'key':'a','operator':'NotIn','values':['0']}"), "a=1", true},
        {"NotIn: it is", TERM("{'key':'a','operator':'NotIn','values':['1']}"), "a=1", false},
        {"NotIn: absent holds", TERM("{'key':'a','operator':'NotIn','values':['1']}"), "", true},
        {"DoesNotExist", TERM("{'key':'a','operator':'DoesNotExist'}"), "", true},
        {"Gt: greater", TERM("{'key':'a','operator':'Gt','values':['4']}"), "a=5", true},
        {"Gt: equal", TERM("{'key':'a','operator':'Gt','values':['5']}"), "a=5", false},
        {"Gt: as numbers, not as text", TERM("{'key':'a','operator':'Gt','values':['9']}"), "a=10",
         true},
        {"Gt: absent", TERM("{'key':'a','operator':'Gt','values':['4']}"), "", false},
        {"Gt: the label is no number", TERM("{'key':'a','operator':'Gt','values':['4']}"), "a=5x",
         false},
        {"Gt: the label is too large a number", TERM("{'key':'a','operator':'Gt','values':['4']}"),
         "a=9223372036854775808", false},
        {"Gt: the largest", TERM("{'key':'a','operator':'Gt','values':['9223372036854775806']}"),
         "a=9223372036854775807", true},
        {"Lt: less", TERM("{'key':'a','operator':'Lt','values':['6']}"), "a=5", true},
        {"Lt: equal", TERM("{'key':'a','operator':'Lt','values':['5']}"), "a=5", false},
        {"Lt: absent", TERM("{'key':'a','operator':'Lt','values':['4']}"), "", false},
        {"Gt with a word matches nothing", TERM("{'key':'a','operator':'Gt','values':['abc']}"),
         "a=5", false},
        {"Gt with a negative number: not a label value",
         TERM("{'key':'a','operator':'Gt','values':['-1']}"), "a=5", false},
        {"Lt with a number that does not fit",
         TERM("{'key':'a','operator':'Lt','values':['9223372036854775808']}"), "a=5", false},
        {"a value that no label can have spoils even NotIn",
         TERM("{'key':'a','operator':'NotIn','values':['b c']}"), "a=5", false},
        {"but not the other terms",
         "{'nodeSelectorTerms':[{'matchExpressions':[{'key':'a','operator':'Gt','values':['x']}]},{'matchExpressions':[{'key':'a','operator':'Exists'}]}]}",
         "a=1", true},
        {"field In: this node", FIELD("{'key':'metadata.name','operator':'In','values':['n1']}"),
         "", true},
        {"field In: another node", FIELD("{'key':'metadata.name','operator':'In','values':['n2']}"),
         "", false},
        {"field NotIn: another node",
         FIELD("{'key':'metadata.name','operator':'NotIn','values':['n2']}"), "", true},
        {"field NotIn: this node",
         FIELD("{'key':'metadata.name','operator':'NotIn','values':['n1']}"), "", false},
        {"fields and expressions are ANDed",
         "{'nodeSelectorTerms':[{'matchExpressions':[{'key':'a','operator':'Exists'}],'matchFields':[{'key':'metadata.name','operator':'In','values':['n1']}]}]}",
         "b=1", false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct node_selector s;
        struct error err = ERROR_INIT;
        struct labels l = build_labels(&arena, rows[i].labels);
        expect_int(rows[i].row, 0, decode(decode_node_selector, rows[i].selector, &s, &err));
        expect_str(rows[i].row, "", err.text);
        expect_int(rows[i].row, rows[i].matches, node_selector_matches(&s, &l, "n1"));
    }
    expect_done();
}

static void a_term_that_never_matches_says_why(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"{'matchExpressions':[{'key':'a','operator':'Gt','values':['5']}]}", NULL},
        {"{'matchExpressions':[{'key':'a','operator':'Exists'},{'key':'a','operator':'Gt','values':['x']}]}",
         "matchExpressions[1].values[0]: not an integer: 'x'"},
        {"{'matchExpressions':[{'key':'a','operator':'In','values':['x','-']}]}",
         "matchExpressions[0].values[1]: not a label value: '-'"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct node_term t;
        struct error err = ERROR_INIT;
        expect_int(rows[i].text, 0, decode(decode_term, rows[i].text, &t, &err));
        expect_str(rows[i].text, rows[i].why, t.invalid);
    }
    expect_done();
}

static size_t longest(const char *key)
{
    return key[0] == 'u' ? 0 : key[0] == 'b' ? 3 : SIZE_MAX;
}

static void what_is_wrong_with_a_label_voids_that_label(void **state)
{
    (void)state;
    static const struct {
        const char *row, *text, *message, *a, *b;
        size_t len;
    } rows[] = {
        {"a NUL", "{'a':'x\\u0000y','b':'2'}", "key 'a': must be a string without NUL, not string",
         NULL, "2", 1},
        {"a NUL in a key", "{'a':'1','b\\u0000':'2'}", "key 'b' holds a NUL", "1", NULL, 1},
        {"a number, and unsorted", "{'c':3,'b':'2','a':'1'}",
         "key 'c': must be a string without NUL, not number", "1", "2", 2},
        {"twice: the last", "{'b':'1','a':'1','a':'2','b':'3','a':'3'}", "key 'a' is there twice",
         "3", "3", 2},
        {"what nobody reads cannot hurt", "{'a':'1','unread':'x\\u0000y','u\\u0000':7}", "", "1",
         NULL, 1},
        {"too long", "{'b':'abcd','a':'abcdef'}", "", "abcdef", "abc", 2},
        {"as long as it may be", "{'b':'abc','a':'1'}", "", "1", "abc", 2},
        {"cut at a character", "{'b':'ab\\u00fc','a':'1'}", "", "1", "ab", 2},
        {"of three bytes", "{'b':'a\\u20ac','a':'1'}", "", "1", "a", 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct labels l;
        struct error err = ERROR_INIT;
        AUTO_STRBUF text = {0};
        AUTO_JSON *doc = NULL;
        for (const char *at = rows[i].text; *at != '\0'; at++)
            strbuf_addc(&text, (char)(*at == '\'' ? '"' : *at));
        assert_int_equal(0, json_parse(&doc, strbuf_str(&text), text.len, &err));
        int rc = labels_decode_some(json_root(doc), longest, &arena, &l, &err);
        expect_int(rows[i].row, rows[i].message[0] ? -1 : 0, rc);
        expect_str(rows[i].row, rows[i].message, err.text);
        expect_int(rows[i].row, (int64_t)rows[i].len, (int64_t)l.len);
        expect_str(rows[i].row, rows[i].a, labels_get(&l, "a"));
        expect_str(rows[i].row, rows[i].b, labels_get(&l, "b"));
    }
    expect_done();
}

static void bad_node_selectors_say_where(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"[]", "must be an object, not array"},
        {"{'nodeSelectorTerms':{}}", "nodeSelectorTerms: must be an array, not object"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct node_selector s;
        struct error err = ERROR_INIT;
        expect_int(rows[i].text, -1, decode(decode_node_selector, rows[i].text, &s, &err));
        expect_str(rows[i].text, rows[i].message, err.text);
        expect_int(rows[i].text, ERROR_INVALID, err.code);
    }
    expect_done();
}

/* One term that cannot be read hides neither the others nor the pod. */
static void a_term_that_cannot_be_read_never_matches(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"{'nodeSelectorTerms':[7]}", "must be an object, not number"},
        {TERM("{'key':'a','operator':'NotIn','values':['x\\u0000y']}"),
         "matchExpressions[0].values[0]: must be a string without NUL, not string"},
        {"{'nodeSelectorTerms':[{'matchExpressions':{}}]}",
         "matchExpressions: must be an array, not object"},
        {"{'nodeSelectorTerms':[{'matchFields':''}]}", "matchFields: must be an array, not string"},
        {TERM("{'key':'a','operator':'gt','values':['1']}"),
         "matchExpressions[0].operator: unknown operator 'gt'"},
        {TERM("{'key':'a','operator':'Gt','values':['1','2']}"),
         "matchExpressions[0].values: Gt and Lt need exactly one"},
        {TERM("{'key':'a','operator':'Lt'}"),
         "matchExpressions[0].values: Gt and Lt need exactly one"},
        {TERM("{'key':'a/b/c','operator':'Exists'}"),
         "matchExpressions[0].key: not a label key: 'a/b/c'"},
        {FIELD("{'key':'metadata.uid','operator':'In','values':['1']}"),
         "matchFields[0].key: only metadata.name is known: 'metadata.uid'"},
        {FIELD("{'key':'metadata.name','operator':'Exists'}"),
         "matchFields[0].operator: fields know In and NotIn only"},
        {FIELD("{'key':'metadata.name','operator':'Gt','values':['1']}"),
         "matchFields[0].operator: fields know In and NotIn only"},
        {FIELD("{'key':'metadata.name','operator':'In','values':['a','b']}"),
         "matchFields[0].values: fields need exactly one"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct node_selector s;
        struct error err = ERROR_INIT;
        struct labels l = build_labels(&arena, "a=1");
        expect_int(rows[i].text, 0, decode(decode_node_selector, rows[i].text, &s, &err));
        expect_str(rows[i].text, rows[i].why, s.terms[0].invalid);
        expect_int(rows[i].text, false, node_selector_matches(&s, &l, "n1"));
    }
    expect_done();
}

static void keys_and_values_are_what_kubernetes_allows(void **state)
{
    (void)state;
#define A63 "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggg"
    static const struct {
        const char *text;
        bool key, value;
    } rows[] = {
        {"a", true, true},
        {"", false, true},
        {"A-b_c.9", true, true},
        {"-a", false, false},
        {"a-", false, false},
        {"_a", false, false},
        {"a.", false, false},
        {"a b", false, false},
        {"a/b", true, false},
        {"a.b-c/d", true, false},
        {"/b", false, false},
        {"a/", false, false},
        {"a/b/c", false, false},
        {"A/b", false, false},
        {"a./b", false, false},
        {".a/b", false, false},
        {"a..b/c", false, false},
        {"a-.b/c", false, false},
        {"a.-b/c", false, false},
        {"-a/b", false, false},
        {"a-/b", false, false},
        {"a_b/c", false, false},
        {"kubernetes.io/os", true, false},
        {A63, true, true},
        {A63 "h", false, false},
        {"a/" A63, true, false},
        {"a/" A63 "h", false, false},
        {"\xc3\xa4", false, false},
        {"a=b", false, false},
        {"a,b", false, false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        expect_int(rows[i].text, rows[i].key, selector_key_is_legal(rows[i].text));
        expect_int(rows[i].text, rows[i].value, selector_value_is_legal(rows[i].text));
    }
    char key[253 + 1 + 2 + 2];
    memset(key, 'a', sizeof key);
    memcpy(key + 253, "/b", 3);
    expect_true("a prefix of 253 bytes", selector_key_is_legal(key));
    memset(key, 'a', sizeof key);
    memcpy(key + 254, "/b", 3);
    expect_int("a prefix of 254 bytes", false, selector_key_is_legal(key));
    expect_done();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(labels_are_sorted_and_found),
        TEST(bad_labels_are_refused_with_their_key),
        TEST(label_selectors_select_as_in_kubernetes),
        TEST(bad_label_selectors_say_where),
        TEST(node_selectors_match_as_in_kubernetes),
        TEST(a_term_that_never_matches_says_why),
        TEST(bad_node_selectors_say_where),
        TEST(a_term_that_cannot_be_read_never_matches),
        TEST(what_is_wrong_with_a_label_voids_that_label),
        TEST(keys_and_values_are_what_kubernetes_allows),
    };
    return cmocka_run_group_tests_name("selector", tests, NULL, NULL);
}
