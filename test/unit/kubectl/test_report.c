// SPDX-License-Identifier: Apache-2.0
/*
 * What is printed for a cluster, as text: one cluster, and what each command says of it. The
 * walk-throughs of the documents are test/integration/suite_inspect.py.
 */
#include "kubectl/report.h"

#include "lib/base/json.h"
#include "lib/kube/decode.h"
#include "test/unit/lib/base/expect.h"

static struct arena arena;
static struct node *nodes[8];
static struct pod *pods[16];
static size_t nodes_len, pods_len;
static struct view view;
static struct report report;

#define CARD(i, gib, health)                                                               \
    "{'i':" #i ",'uuid':'GPU-" #i "','model':'T4','mib':" #gib "360,'numa':0,'pci':'','he" \
    "alth':'" health "'}"

/* ' stands for " in a text, and for \" in the annotation of an object. */
static char *quoted(const char *text, const char *quote)
{
    AUTO_STRBUF b = {0};
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            strbuf_adds(&b, quote);
        else
            strbuf_addc(&b, *text);
    }
    return arena_strdup(&arena, strbuf_str(&b));
}

static void put_node(const char *name, const char *inventory, const char *amounts)
{
    AUTO_JSON *doc = NULL;
    AUTO_STRBUF b = {0};
    struct error err = ERROR_INIT;
    strbuf_addf(&b, "{\"metadata\":{\"name\":\"%s\",\"annotations\":{", name);
    if (inventory != NULL)
        strbuf_addf(&b, "\"cosched.io/gpu-inventory\":\"%s\"", quoted(inventory, "\\\""));
    strbuf_addf(&b, "}},\"status\":{\"allocatable\":{%s}}}", quoted(amounts, "\""));
    if (json_parse(&doc, strbuf_str(&b), b.len, &err) < 0 ||
        decode_node(json_root(doc), &nodes[nodes_len++], &err) < 0)
        fail_msg("%s: %s", strbuf_str(&b), err.text);
}

static void put_pod(const char *name, const char *limits, const char *node, const char *annotations)
{
    AUTO_JSON *doc = NULL;
    AUTO_STRBUF b = {0};
    struct error err = ERROR_INIT;
    strbuf_addf(&b,
                "{\"metadata\":{\"namespace\":\"d\",\"name\":\"%s\",\"uid\":\"%s\",\"annotations\":"
                "{%s}},\"spec\":{%s\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{%s},"
                "\"requests\":{%s}}}]},\"status\":{\"phase\":\"%s\"}}",
                name, name, annotations,
                node != NULL ? arena_printf(&arena, "\"nodeName\":\"%s\",", node) : "",
                quoted(limits, "\""), quoted(limits, "\""), node != NULL ? "Running" : "Pending");
    if (json_parse(&doc, strbuf_str(&b), b.len, &err) < 0 ||
        decode_pod(json_root(doc), &pods[pods_len++], &err) < 0)
        fail_msg("%s: %s", strbuf_str(&b), err.text);
}

#define GRANT(x) "\"scheduler.framework.gpushare.allocation\":\"" x "\""

static int setup(void **state)
{
    (void)state;
    arena_init(&arena, 0);
    nodes_len = pods_len = 0;
    put_node("two",
             "{'v':1,'mode':'core_mem','cards':[" CARD(0, 15, "ok") "," CARD(
                 1, 15, "sick','why':'XID 79: the card has fallen off the bus") "]}",
             "");
    put_node("old", NULL, "'aliyun.com/gpu-mem':'16','aliyun.com/gpu-count':'2'");
    put_node("links",
             "{'v':1,'mode':'topology','cards':[" CARD(0, 15, "ok") "," CARD(
                 1, 15, "ok") "],'links'"
                              ":[['X','NV2'],['NV2','X']]}",
             "");
    put_node("bad", "{", "");
    put_node("none", NULL, "");
    put_pod("a", "'aliyun.com/gpu-mem':'6','aliyun.com/gpu-core.percentage':'40'", "two",
            GRANT("{\\\"0\\\":{\\\"0\\\":6}}") ",\"gpushare.alibabacloud.com/core-percentage\":\"{"
                                               "\\\"0\\\":{\\\"0\\\":40}}\"");
    put_pod("b", "'aliyun.com/gpu-mem':'4'", "old", "");
    put_pod("c", "'aliyun.com/gpu':'1'", "links", "\"topology.kubernetes.io/gpu-group\":\"1\"");
    put_pod("w", "'aliyun.com/gpu-mem':'8','aliyun.com/gpu-core.percentage':'70'", NULL, "");
    put_pod("v", "'aliyun.com/gpu-mem':'16','aliyun.com/gpu-core.percentage':'20'", NULL, "");
    put_pod("x", "'aliyun.com/gpu':'2'", NULL, "");
    put_pod("y", "'cpu':'1'", NULL, "");
    view_build(&view, nodes, nodes_len, pods, pods_len, &arena);
    report = (struct report){.view = &view, .arena = &arena};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (size_t i = 0; i < nodes_len; i++)
        node_free(nodes[i]);
    for (size_t i = 0; i < pods_len; i++)
        pod_free(pods[i]);
    arena_deinit(&arena);
    return 0;
}

static void a_table(void **state)
{
    (void)state;
    AUTO_STRBUF out = {0};
    struct error err = ERROR_INIT;
    expect_int("printed", 0, report_table(&report, &out, &err));
    expect_str("all nodes in shared modes",
               "NAME  IPADDRESS  GPU0(Allocated/Total)  GPU1(Allocated/Total)  PENDING(Allocated)  "
               "GPU Memory(GiB)\n"
               "old   unknown    0/8                    0/8                    4                   "
               "4/16\n"
               "two   unknown    6/15                   0/15                   0                   "
               "6/30\n"
               "----------------------------------------------------------------------------------"
               "----------------\n"
               "Allocated/Total GPU Memory In Cluster:\n10/46 (21%)\n",
               strbuf_str(&out));
    strbuf_reset(&out);
    report.node = "links";
    expect_int("a node in another mode", 0, report_table(&report, &out, &err));
    expect_true("has no row", strstr(strbuf_str(&out), "links") == NULL);
    report.node = "nobody";
    expect_int("no such node", -1, report_table(&report, &out, &err));
    expect_str("the error", "node nobody does not exist", err.text);
    expect_done();
}

static void details(void **state)
{
    (void)state;
    AUTO_STRBUF out = {0};
    struct error err = ERROR_INIT;
    report.node = "two";
    expect_int("printed", 0, report_details(&report, &out, &err));
    expect_true(strbuf_str(&out),
                strstr(strbuf_str(&out), "NAME  NAMESPACE  GPU0(Allocated)  GPU1(Allocated) sick\n"
                                         "a     d          6 (40%)          0\n"
                                         "Allocated : 6 (20%)\nTotal :     30\n") != NULL);
    put_pod("e", "'aliyun.com/gpu-mem':'1'", "two",
            GRANT("{\\\"0\\\":{\\\"0\\\":1}}") ",\"cosched.io/gpu-used\":\"{\\\"mib\\\":1025,"
                                               "\\\"processes\\\":2}\"");
    put_pod("f", "'aliyun.com/gpu-mem':'1'", "two",
            GRANT("{\\\"0\\\":{\\\"0\\\":1}}") ",\"cosched.io/gpu-used\":\"{\\\"mib\\\":1024,"
                                               "\\\"processes\\\":1}\"");
    view_build(&view, nodes, nodes_len, pods, pods_len, &arena);
    strbuf_reset(&out);
    expect_int("printed", 0, report_details(&report, &out, &err));
    expect_true(strbuf_str(&out),
                strstr(strbuf_str(&out),
                       "NAME  NAMESPACE  GPU0(Allocated)  GPU1(Allocated) sick  MiB(Used/Asked)\n"
                       "a     d          6 (40%)          0                     -\n"
                       "e     d          1                0                     1025/1024 over\n"
                       "f     d          1                0                     1024/1024\n") !=
                    NULL);
    expect_done();
}

static void links_and_holders(void **state)
{
    (void)state;
    AUTO_STRBUF out = {0};
    struct error err = ERROR_INIT;
    report.node = "links";
    expect_int("printed", 0, report_topology(&report, &out, &err));
    expect_str("the matrix",
               "links: mode topology, 2 cards\n"
               "      GPU0  GPU1  NUMA  MODEL  HEALTH  HELD BY\n"
               "GPU0  X     NV2   0     T4     ok      -\n"
               "GPU1  NV2   X     0     T4     ok      d/c\n",
               strbuf_str(&out));
    report.node = "bad";
    expect_int("an inventory that cannot be read", -1, report_topology(&report, &out, &err));
    expect_true(err.text, str_starts(err.text, "node bad: annotation cosched.io/gpu-inventory: "));
    report.node = "none";
    expect_int("none at all", -1, report_topology(&report, &out, &err));
    expect_str("says so", "node none: no annotation cosched.io/gpu-inventory", err.text);
    expect_done();
}

static const char *why(const char *name)
{
    AUTO_STRBUF out = {0};
    for (size_t i = 0; i < pods_len; i++)
        if (str_eq(pods[i]->name, name))
            report_why(&report, pods[i], &out);
    return arena_strdup(&arena, strbuf_str(&out));
}

static void reasons(void **state)
{
    (void)state;
    const char *text = why("w");
    expect_true(text,
                str_starts(text, "d/w waits\nneeds 8 GiB and 70 % of the compute on one card\n"));
    expect_true(text, strstr(text, "links  -     mode topology\n") != NULL);
    expect_true(text,
                strstr(text, "old    -     no annotation cosched.io/gpu-inventory\n") != NULL);
    expect_true(text, strstr(text, "two    GPU0  too full: 9 of 15 GiB free, 60 % of the compute; "
                                   "held by d/a 6 GiB\n") != NULL);
    expect_true(text, strstr(text, "two    GPU1  unhealthy (XID 79)\n") != NULL);
    expect_true(text, strstr(text, "none ") == NULL);
    text = why("v");
    expect_true(text, strstr(text, "two    GPU0  too small: 9 of 15 GiB free, 60 % of the compute; "
                                   "held by d/a 6 GiB\n") != NULL);
    text = why("x");
    expect_true(text, strstr(text, "links  GPU0  free\nlinks  GPU1  held by d/c\n"
                                   "links  all   1 of 2 cards free\n") != NULL);
    expect_str("it has a card", "d/a is on node two: 6 GiB of GPU0\n", why("a"));
    expect_str("it has a whole card", "d/c is on node links: GPU1\n", why("c"));
    expect_str("nobody knows", "d/b is on node old, and no grant says which card it has\n",
               why("b"));
    expect_str("it wants none", "d/y asks for no card\n", why("y"));
    expect_done();
}

static void as_json(void **state)
{
    (void)state;
    AUTO_STRBUF out = {0};
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    int64_t percent = 0;
    expect_int("printed", 0, report_json(&report, &out, &err));
    assert_int_equal(0, json_parse(&doc, strbuf_str(&out), out.len, &err));
    json *all = json_get(json_root(doc), "nodes");
    expect_int("nodes with cards, or with a problem", 4, (int64_t)json_len(all));
    expect_str("by name", "bad", json_get_str(json_at(all, 0), "name"));
    expect_true("the problem", json_get_str(json_at(all, 0), "problem") != NULL);
    expect_true("percent", json_get_int(json_root(doc), "percent", &percent) && percent == 21);
    expect_done();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {TEST(a_table), TEST(details), TEST(links_and_holders),
                                       TEST(reasons), TEST(as_json)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
