// SPDX-License-Identifier: Apache-2.0
/*
 * Protobuf bodies: what kubectl 1.36 sends (captured: the fuzz target's seeds), objects that Go's
 * own serializer printed in both forms with their fields filled at random (protobody/), and bytes
 * that no client sends. Rows marked (tried) were given to a real API server.
 */
#include <stdio.h>

#include "lib/base/json.h"
#include "test/local/kinds/protobody.h"
#include "test/local/kinds/protobody_internal.h"
#include "test/unit/local/plain_json.h"

static void read_file(const char *path, struct strbuf *out)
{
    char buf[4096];
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("%s: cannot be opened", path);
    for (size_t n; (n = fread(buf, 1, sizeof buf, f)) > 0;)
        strbuf_add(out, buf, n);
    assert_int_equal(0, fclose(f));
}

/* A copy on the heap, so that a byte too far is seen. */
static int translate(const struct strbuf *bytes, struct strbuf *out, struct error *err)
{
    char *copy = malloc(bytes->len + (bytes->len == 0));
    assert_non_null(copy);
    if (bytes->len > 0)
        memcpy(copy, bytes->ptr, bytes->len);
    int rc = protobody_to_json(copy, bytes->len, out, err);
    free(copy);
    return rc;
}

/* ---- what kubectl sends ---- */

static void what_kubectl_sends(void **state)
{
    (void)state;
    static const struct {
        const char *name, *expected;
    } rows[] = {
        {"ns", "{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'test-gang'},'spec':{},"
               "'status':{}}"},
        {"job",
         "{'apiVersion':'batch/v1','kind':'Job','metadata':{'name':'j'},'spec':{'template':{"
         "'metadata':{},'spec':{'containers':[{'name':'j','image':'busybox','command':['date'],"
         "'resources':{}}],'restartPolicy':'Never'}}},'status':{}}"},
        {"cronjob",
         "{'apiVersion':'batch/v1','kind':'CronJob','metadata':{'name':'cj'},'spec':{'schedule':"
         "'@hourly','jobTemplate':{'metadata':{'name':'cj'},'spec':{'template':{'metadata':{},'spec':{"
         "'containers':[{'name':'cj','image':'busybox','resources':{}}],'restartPolicy':'OnFailure'}}}}"
         "},'status':{}}"},
        {"deployment", /* no replicas are said, not left out */
         "{'apiVersion':'apps/v1','kind':'Deployment','metadata':{'name':'d','labels':{'app':'d'}},"
         "'spec':{'replicas':0,'selector':{'matchLabels':{'app':'d'}},'template':{'metadata':{'labels':{"
         "'app':'d'}},'spec':{'containers':[{'name':'nginx','image':'nginx','ports':[{'containerPort':"
         "80}],'resources':{}}]}},'strategy':{}},'status':{}}"},
        {"quota",
         "{'apiVersion':'v1','kind':'ResourceQuota','metadata':{'name':'q'},'spec':{'hard':{"
         "'cpu':'2','pods':'50'},'scopes':['Terminating']},'status':{}}"},
        {"configmap",
         "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'c'},'data':{'a':'b'},"
         "'binaryData':{'bin':'/wA='}}"},
        {"secret",
         "{'apiVersion':'v1','kind':'Secret','metadata':{'name':'s'},'data':{'a':'Yg=='}}"},
        {"serviceaccount",
         "{'apiVersion':'v1','kind':'ServiceAccount','metadata':{'name':'robot'}}"},
        {"priorityclass",
         "{'apiVersion':'scheduling.k8s.io/v1','kind':'PriorityClass','metadata':{'name':'p'},'value':7,"
         "'preemptionPolicy':'PreemptLowerPriority'}"},
        {"pdb",
         "{'apiVersion':'policy/v1','kind':'PodDisruptionBudget','metadata':{'name':'p'},'spec':{"
         "'selector':{'matchLabels':{'app':'x'}},'maxUnavailable':'50%'},'status':{"
         "'disruptionsAllowed':0,'currentHealthy':0,'desiredHealthy':0,'expectedPods':0}}"},
        {"role",
         "{'apiVersion':'rbac.authorization.k8s.io/v1','kind':'ClusterRole','metadata':{'name':"
         "'r'},'rules':[{'verbs':['get','list'],'apiGroups':[''],'resources':['pods']}]}"},
        {"rolebinding",
         "{'apiVersion':'rbac.authorization.k8s.io/v1','kind':'RoleBinding','metadata':{'name':'r'},"
         "'subjects':[{'kind':'User','apiGroup':'rbac.authorization.k8s.io','name':'u'}],'roleRef':{"
         "'apiGroup':'rbac.authorization.k8s.io','kind':'ClusterRole','name':'a'}}"},
        {"service",
         "{'apiVersion':'v1','kind':'Service','metadata':{'name':'s','labels':{'app':'s'}},"
         "'spec':{'ports':[{'name':'80-http','protocol':'TCP','port':80,'targetPort':'http'}],"
         "'selector':{'app':'s'},'type':'ClusterIP'},'status':{'loadBalancer':{}}}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        AUTO_STRBUF bytes = {0};
        AUTO_STRBUF expected = {0};
        AUTO_STRBUF got = {0};
        char path[128];
        struct error err = ERROR_INIT;
        (void)str_format(path, sizeof path, "test/fuzz/corpus/protobody/%s", rows[i].name);
        read_file(path, &bytes);
        plain_json(rows[i].expected, &expected);
        expect_int(rows[i].name, 0, translate(&bytes, &got, &err));
        expect_str(rows[i].name, "", err.text);
        expect_str(rows[i].name, strbuf_str(&expected), strbuf_str(&got));
        /* Cut off anywhere it is an error, or (behind a whole field of the envelope) less. */
        size_t whole = bytes.len - 4; /* two empty fields end the envelope */
        for (size_t n = bytes.len; n-- > 0;) {
            strbuf_reset(&got);
            bytes.len = n;
            int rc = translate(&bytes, &got, &err);
            expect_true(rows[i].name, rc < 0 || got.len < expected.len || n >= whole);
        }
    }
    expect_done();
}

static void what_go_prints(void **state)
{
    (void)state;
    static const char *const names[] = {
        "binding", "clusterrole", "deleteoptions", "event",       "eviction",
        "job",     "lease",       "limitrange",    "pod",         "poddisruptionbudget",
        "scale",   "secret",      "service",       "statefulset",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        AUTO_STRBUF bytes = {0};
        AUTO_STRBUF text = {0};
        AUTO_STRBUF got = {0};
        AUTO_JSON *expected = NULL;
        AUTO_JSON *doc = NULL;
        char path[128];
        struct error err = ERROR_INIT;
        (void)str_format(path, sizeof path, "test/unit/local/kinds/protobody/%s.pb", names[i]);
        read_file(path, &bytes);
        (void)str_format(path, sizeof path, "test/unit/local/kinds/protobody/%s.json", names[i]);
        read_file(path, &text);
        expect_int(names[i], 0, translate(&bytes, &got, &err));
        expect_str(names[i], "", err.text);
        assert_int_equal(0, json_parse(&expected, strbuf_str(&text), text.len, NULL));
        assert_int_equal(0, json_parse(&doc, strbuf_str(&got), got.len, NULL));
        if (!json_equal(json_root(expected), json_root(doc)))
            expect_str(names[i], strbuf_str(&text), strbuf_str(&got));
    }
    expect_done();
}

/* ---- bytes made by hand ---- */

/* A row's bytes, written as text: blanks are nothing, `NN` in hex is a byte, 'text' is itself, and
 * N( ... ) is field N (1 to 15, in hex) of wire type 2 with what is inside. */
static const char *assemble(const char *s, struct strbuf *out)
{
    static const char hex[] = "0123456789abcdef";
    while (*s && *s != ')') {
        const char *digit = strchr(hex, *s);
        if (*s == ' ') {
            s++;
        } else if (*s == '\'') {
            for (s++; *s != '\''; s++)
                strbuf_addc(out, *s);
            s++;
        } else if (s[1] == '(') {
            AUTO_STRBUF inside = {0};
            s = assemble(s + 2, &inside) + 1;
            strbuf_addc(out, (char)((digit - hex) << 3 | 2));
            assert_true(inside.len < 16384);
            if (inside.len >= 128)
                strbuf_addc(out, (char)((inside.len & 0x7f) | 0x80));
            strbuf_addc(out, (char)(inside.len >= 128 ? inside.len >> 7 : inside.len));
            strbuf_add(out, strbuf_str(&inside), inside.len);
        } else {
            strbuf_addc(out, (char)((digit - hex) << 4 | (strchr(hex, s[1]) - hex)));
            s += 2;
        }
    }
    return s;
}

#define OBJECT(kind, raw) "'k8s' 00 1(1('v1')2('" kind "'))2(" raw ")"
#define NS(raw) OBJECT("Namespace", raw)
#define NS_JSON(rest) "{'apiVersion':'v1','kind':'Namespace'" rest "}"

static void bytes_that_no_client_sends(void **state)
{
    (void)state;
    static const struct {
        const char *name, *bytes;
        const char *expected; /* JSON, or the error */
        enum error_code code;
    } rows[] = {
        {"nothing (tried)", "", "empty data", ERROR_INVALID},
        {"other magic (tried)", "'k8t' 00 00",
         "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
         ERROR_INVALID},
        {"half of the magic", "'k8s'",
         "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
         ERROR_INVALID},
        {"only the magic (tried)", "'k8s' 00", "empty body", ERROR_INVALID},
        {"a kind nobody knows", OBJECT("Nonsense", ""),
         "kind Nonsense of v1 is not read in its protobuf form", ERROR_UNSUPPORTED},
        {"a kind of another group", OBJECT("Job", ""),
         "kind Job of v1 is not read in its protobuf form", ERROR_UNSUPPORTED},
        {"no kind", "'k8s' 00 2()", "Object ~Kind~ is missing", ERROR_INVALID},
        {"DeleteOptions belong to every group", "'k8s' 00 1(1('x/v9')2('DeleteOptions'))2(08 05)",
         "{'apiVersion':'x/v9','kind':'DeleteOptions','gracePeriodSeconds':5}", ERROR_NONE},
        {"no object", "'k8s' 00 1(1('v1')2('Namespace'))", NS_JSON(""), ERROR_NONE},
        {"an empty object", NS(""), NS_JSON(""), ERROR_NONE},
        {"the envelope's other fields are not looked at", NS("") "3('gzip')4('x')", NS_JSON(""),
         ERROR_NONE},
        {"an object that is a number", "'k8s' 00 1(1('v1')2('Namespace')) 10 01",
         "proto: wrong wireType = 0 for field 2", ERROR_INVALID},
        {"metadata that is a number (tried)", NS("08 05"),
         "proto: wrong wireType = 0 for field metadata", ERROR_INVALID},
        {"a grace period that is a string", "'k8s' 00 1(1('v1')2('DeleteOptions'))2(1('5'))",
         "proto: wrong wireType = 2 for field gracePeriodSeconds", ERROR_INVALID},
        {"an inline message that is a number", OBJECT("Pod", "2(1(10 01))"),
         "spec: volumes: proto: wrong wireType = 0 for field inline", ERROR_INVALID},
        {"where it is, is said", NS("1(d(0a 05))"), "metadata: ownerReferences: unexpected EOF",
         ERROR_INVALID},
        {"unknown fields of each wire type are skipped",
         NS("50 01 51 01 02 03 04 05 06 07 08 55 01 02 03 04 a('x') 1(1('n'))"),
         NS_JSON(",'metadata':{'name':'n'}"), ERROR_NONE},
        {"a group in a group is skipped", NS("53 5b 08 01 5c 0a 01 78 54 1(1('n'))"),
         NS_JSON(",'metadata':{'name':'n'}"), ERROR_NONE},
        {"a group without an end", NS("53 08 01"), "unexpected EOF", ERROR_INVALID},
        {"an end without a group", NS("54"), "proto: illegal wireType 4", ERROR_INVALID},
        {"wire type 6", NS("56"), "proto: illegal wireType 6", ERROR_INVALID},
        {"wire type 7 in a group", NS("53 57 54"), "proto: illegal wireType 7", ERROR_INVALID},
        {"field 0", NS("00 00"), "proto: illegal tag 0", ERROR_INVALID},
        {"field 2^29 and more", NS("80 80 80 80 80 01 00"), "proto: illegal tag 4294967296",
         ERROR_INVALID},
        {"8 bytes of which 7 are there", NS("51 01 02 03 04 05 06 07"), "unexpected EOF",
         ERROR_INVALID},
        {"4 bytes of which 3 are there", NS("55 01 02 03"), "unexpected EOF", ERROR_INVALID},
        {"a length of 2^64 - 1", NS("0a ff ff ff ff ff ff ff ff ff 01"), "unexpected EOF",
         ERROR_INVALID},
        {"a number of eleven bytes", NS("50 ff ff ff ff ff ff ff ff ff ff 01"),
         "proto: integer overflow", ERROR_INVALID},
        {"of a string that comes twice the last, messages are merged (tried)",
         NS("1(1('a')1('b')) 1(b(1('k')2('1'))b(1('k')2('2')))"),
         NS_JSON(",'metadata':{'name':'b','labels':{'k':'2'}}"), ERROR_NONE},
        {"keys in order, one a part of another", NS("1(b(1('b')2('1'))b(1('ab')2('2'))b(1('a')))"),
         NS_JSON(",'metadata':{'labels':{'a':'','ab':'2','b':'1'}}"), ERROR_NONE},
        {"an entry of a map without a key", NS("1(b(2('1')))"),
         NS_JSON(",'metadata':{'labels':{'':'1'}}"), ERROR_NONE},
        {"an entry of a map that is broken", NS("1(b(0a))"), "metadata: labels: unexpected EOF",
         ERROR_INVALID},
        {"bytes that are no UTF-8", NS("1(1(ff 'a'))"),
         NS_JSON(",'metadata':{'name':'\xef\xbf\xbd"
                 "a'}"),
         ERROR_NONE},
        {"a time of no bytes is none", NS("1(8())"), NS_JSON(",'metadata':{}"), ERROR_NONE},
        {"the epoch", NS("1(8(08 00))"),
         NS_JSON(",'metadata':{'creationTimestamp':'1970-01-01T00:00:00Z'}"), ERROR_NONE},
        {"a second before it", NS("1(8(08 ff ff ff ff ff ff ff ff ff 01))"),
         NS_JSON(",'metadata':{'creationTimestamp':'1969-12-31T23:59:59Z'}"), ERROR_NONE},
        {"the last second of 9999", NS("1(8(08 ff 82 d1 ff af 07))"),
         NS_JSON(",'metadata':{'creationTimestamp':'9999-12-31T23:59:59Z'}"), ERROR_NONE},
        {"the year 10000", NS("1(8(08 80 83 d1 ff af 07))"),
         "metadata: creationTimestamp: not a time between the years 1 and 9999", ERROR_INVALID},
        {"an amount without text", OBJECT("ResourceQuota", "2(1(1('cpu')))"),
         "{'apiVersion':'v1','kind':'ResourceQuota','spec':{'hard':{'cpu':'0'}}}", ERROR_NONE},
        {"an amount that is broken", OBJECT("ResourceQuota", "2(1(1('cpu')2(0a)))"),
         "spec: hard: unexpected EOF", ERROR_INVALID},
        {"a port by number", OBJECT("Service", "2(1(4(08 00 10 50)))"),
         "{'apiVersion':'v1','kind':'Service','spec':{'ports':[{'targetPort':80}]}}", ERROR_NONE},
        {"a port of a third kind", OBJECT("Service", "2(1(4(08 02)))"),
         "spec: ports: targetPort: impossible IntOrString.Type", ERROR_INVALID},
        {"a port that is broken", OBJECT("Service", "2(1(4(08)))"),
         "spec: ports: targetPort: unexpected EOF", ERROR_INVALID},
        {"numbers one by one and packed", OBJECT("Pod", "2(e(20 01 4(02 03) 20 04))"),
         "{'apiVersion':'v1','kind':'Pod','spec':{'securityContext':{'supplementalGroups':[1,2,3,4]}}}",
         ERROR_NONE},
        {"packed numbers that are cut off", OBJECT("Pod", "2(e(4(02 83)))"),
         "spec: securityContext: supplementalGroups: unexpected EOF", ERROR_INVALID},
        {"32 bits: what is above is dropped", OBJECT("Service", "2(1(18 ff ff ff ff ff 7f))"),
         "{'apiVersion':'v1','kind':'Service','spec':{'ports':[{'port':-1}]}}", ERROR_NONE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        AUTO_STRBUF bytes = {0};
        AUTO_STRBUF expected = {0};
        AUTO_STRBUF got = {0};
        struct error err = ERROR_INIT;
        (void)assemble(rows[i].bytes, &bytes);
        plain_json(rows[i].expected, &expected);
        int rc = translate(&bytes, &got, &err);
        expect_str(rows[i].name, strbuf_str(&expected), rc < 0 ? err.text : strbuf_str(&got));
        expect_int(rows[i].name, rows[i].code, err.code);
    }
    expect_done();
}

/* Fields that each become much longer names are refused at the bound, not written without end. */
static void the_json_has_a_bound(void **state)
{
    (void)state;
    AUTO_STRBUF bytes = {0};
    AUTO_STRBUF raw = {0};
    AUTO_STRBUF got = {0};
    struct error err = ERROR_INIT;
    /* Six bytes: a control character in a finalizer is \u0001 in JSON. */
    static const char finalizer[] = {0x72, 0x20};
    for (size_t i = 0; i < 200000; i++) {
        strbuf_add(&raw, finalizer, sizeof finalizer);
        for (size_t k = 0; k < 32; k++)
            strbuf_addc(&raw, 1);
    }
    (void)assemble("'k8s' 00 1(1('v1')2('Namespace'))", &bytes);
    AUTO_STRBUF metadata = {0};
    const struct strbuf *inside[] = {&raw, &metadata};
    struct strbuf *into[] = {&metadata, &bytes};
    for (size_t i = 0; i < 2; i++) { /* metadata{...}, then raw{...}, with lengths of four bytes */
        size_t n = inside[i]->len;
        strbuf_addc(into[i], i == 0 ? 0x0a : 0x12);
        for (int b = 0; b < 3; b++, n >>= 7)
            strbuf_addc(into[i], (char)((n & 0x7f) | 0x80));
        strbuf_addc(into[i], (char)n);
        strbuf_add(into[i], inside[i]->ptr, inside[i]->len);
    }
    expect_int("refused", -1, translate(&bytes, &got, &err));
    expect_int("as too large", ERROR_TOO_LARGE, err.code);
    expect_done();
}

/* ---- the tables ---- */

enum { MAX_DEPTH = 24 };

static void check_table(const char *kind, const struct protobody_field *table, unsigned depth)
{
    size_t n = 0;
    if (depth > MAX_DEPTH)
        fail_msg("%s: a circle, or deeper than %d", kind, MAX_DEPTH);
    while (table[n].number != 0)
        n++;
    expect_true(kind, n > 0 && n <= PROTOBODY_MAX_FIELDS);
    for (size_t i = 0; i < n; i++) {
        bool is_message = table[i].how == PROTOBODY_MSG || table[i].how == PROTOBODY_LIST ||
                          table[i].how == PROTOBODY_INLINE;
        expect_true(kind, is_message == (table[i].of != NULL));
        expect_true(kind, (table[i].how == PROTOBODY_INLINE) == (table[i].name == NULL));
        for (size_t k = 0; k < i; k++) {
            expect_true(kind, table[i].number != table[k].number);
            expect_true(kind, !table[i].name || !str_eq(table[i].name, table[k].name));
        }
        if (table[i].of)
            check_table(table[i].name ? table[i].name : kind, table[i].of, depth + 1);
    }
}

static void tables_are_sound(void **state)
{
    (void)state;
    for (const struct protobody_kind *k = protobody_kinds; k->kind; k++)
        check_table(k->kind, k->fields, 1);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_kubectl_sends),         cmocka_unit_test(what_go_prints),
        cmocka_unit_test(bytes_that_no_client_sends), cmocka_unit_test(the_json_has_a_bound),
        cmocka_unit_test(tables_are_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
