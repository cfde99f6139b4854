// SPDX-License-Identifier: Apache-2.0
/*
 * Pods that the API server accepts and that no sane person writes, beside honest ones. Each is
 * decoded, waits, then runs on each node, and goes: the honest pods' verdicts are those of a
 * cluster without it, and the cluster is as before when it is gone.
 */
#include "test/unit/scheduler/model_kit.h"

#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"

enum { MANY = 5000 };

/* A list of so many elements, the number of each where it has a %d. */
struct list {
    const char *before, *element, *after;
    int n;
};

struct poison {
    const char *row;
    const char *metadata, *spec; /* members, with ' for "; %s in spec: the list */
    struct list list;
    const char *waits; /* the verdict on itself; NULL: it is placed */
};

#define C(resources) "'containers':[{'name':'c','image':'i','resources':{" resources "}}]"
#define BOTH(amounts) C("'limits':{" amounts "},'requests':{" amounts "}")

static const struct poison rows[] = {
    {.row = "a NUL in an annotation", .metadata = "'annotations':{'note':'a\\u0000b'}"},
    {.row = "a NUL in one of ours", .metadata = "'annotations':{'cpuset-scheduler':'a\\u0000b'}"},
    {.row = "a NUL in an owner",
     .metadata = "'ownerReferences':[{'controller':true,'kind':'\\u0000','name':'x','uid':'u'}]"},
    {.row = "a NUL in an image", .spec = "'containers':[{'name':'c','image':'a\\u0000b'}]"},
    {.row = "a NUL in a host address",
     .spec = "'containers':[{'name':'c','ports':[{'hostPort':9,'hostIP':'a\\u0000b'}]}]"},
    {.row = "a NUL in a claim's name",
     .spec = "'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'a\\u0000b'}}]",
     .waits = "spec.volumes[0]: persistentVolumeClaim.claimName: must be a string without NUL, not "
              "string"},
    {.row = "a NUL in a disk's name",
     .spec = "'volumes':[{'name':'v','rbd':{'image':'a\\u0000b','monitors':['\\u0000']}}]",
     .waits = "spec.volumes[0]: rbd.image: must be a string without NUL, not string"},
    {.row = "a NUL in node affinity",
     .spec = "'affinity':{'nodeAffinity':{'" REQUIRED "':{'nodeSelectorTerms':[{'matchExpressions':"
             "[{'key':'a','operator':'NotIn','values':['a\\u0000b']}]}]}}}",
     .waits = "0/2 nodes fit: 2 do not match the pod's node selector or affinity"},
    {.row = "1e30 CPUs",
     .spec = BOTH("'cpu':'1e30'"),
     .waits = "0/2 nodes fit: 2 have too little cpu"},
    {.row = "1e30 CPUs and some memory",
     .spec = BOTH("'cpu':'1e30','memory':'1Gi'"),
     .waits = "0/2 nodes fit: 2 have too little cpu"},
    {.row = "1e30 bytes of disk",
     .spec = BOTH("'ephemeral-storage':'1e30'"),
     .waits = "0/2 nodes fit: 2 have too little ephemeral-storage"},
    {.row = "1e30 GiB of a card",
     .spec = BOTH("'aliyun.com/gpu-mem':'1e30'"),
     .waits = "spec.containers[0].resources.limits[aliyun.com/gpu-mem]: is "},
    {.row = "1e30 of what nobody has",
     .spec = BOTH("'a.b/c':'1e30'"),
     .waits = "0/2 nodes fit: 2 do not offer a.b/c"},
    {.row = "two halves that are too much",
     .spec = "'containers':[{'resources':{'requests':{'memory':'7Ei'}}},{'resources':{'requests':{"
             "'memory':'7Ei'}}}]",
     .waits = "0/2 nodes fit: 2 have too little memory"},
    {.row = "an exponent that is 0 to the API server", .spec = BOTH("'cpu':'1e4294967296'")},
    {.row = "a thousand digits",
     .spec = "'containers':[{'resources':{'requests':{'cpu':'%s'}}}]",
     .list = {"", "9", "", 1000},
     .waits = "0/2 nodes fit: 2 have too little cpu"},
    {.row = "a thousand zeros before a 1",
     .spec = "'containers':[{'resources':{'requests':{'cpu':'%s'}}}]",
     .list = {"", "0", "1", 1000}},
    {.row = "many containers",
     .spec = "'containers':[%s]",
     .list = {"", "{'name':'c%d'}", "", MANY},
     .waits = "spec.containers: has 5000 entries, more than 1024"},
    {.row = "many resources",
     .spec = "'containers':[{'resources':{'requests':{%s}}}]",
     .list = {"", "'a.b/%d':'1'", "", MANY},
     .waits = "spec.containers[0]: resources.requests: resource a.b/"},
    {.row = "many host ports",
     .spec = "'containers':[{'ports':[%s]}]",
     .list = {"", "{'hostPort':%d}", "", MANY},
     .waits = "spec.containers: have 4999 host ports, more than 1024"},
    {.row = "many ports",
     .spec = "'containers':[{'ports':[%s]}]",
     .list = {"", "{'containerPort':%d}", "", MANY}},
    {.row = "many tolerations",
     .spec = "'tolerations':[%s]",
     .list = {"", "{'key':'k%d'}", "", MANY},
     .waits = "spec.tolerations: has 5000 entries, more than 4096"},
    {.row = "many terms",
     .spec = "'affinity':{'podAntiAffinity':{'" REQUIRED "':[%s]}}",
     .list = {"", "{'topologyKey':'host','labelSelector':{'matchLabels':{'a':'v%d'}}}", "", MANY},
     .waits = "spec.affinity.podAntiAffinity: " REQUIRED ": has 5000 entries, more than 128"},
    {.row = "many volumes",
     .spec = "'volumes':[%s]",
     .list = {"", "{'name':'v%d','awsElasticBlockStore':{'volumeID':'d%d'}}", "", MANY},
     .waits = "spec.volumes: has 5000 entries, more than 4096"},
    {.row = "many labels", .metadata = "'labels':{%s}", .list = {"", "'l%d':'v'", "", MANY}},
};

static void add_quoted(struct strbuf *out, const char *text, const char *list)
{
    for (const char *at = text; at != NULL && *at != '\0'; at++) {
        if (at[0] == '%' && at[1] == 's') {
            add_quoted(out, list, NULL);
            at++;
        } else {
            strbuf_addc(out, (char)(*at == '\'' ? '"' : *at));
        }
    }
}

static const char *print_list(const struct list *l)
{
    AUTO_STRBUF b = {0};
    if (l->element == NULL)
        return "";
    bool members = l->element[1] != '\0'; /* not digits of a number */
    strbuf_adds(&b, l->before);
    for (int i = 0; i < l->n; i++) {
        strbuf_adds(&b, i > 0 && members ? "," : "");
        for (const char *at = l->element; *at != '\0'; at++) {
            if (at[0] == '%' && at[1] == 'd') {
                strbuf_addf(&b, "%d", i);
                at++;
            } else {
                strbuf_addc(&b, *at);
            }
        }
    }
    strbuf_adds(&b, l->after);
    return arena_strdup(&arena, strbuf_str(&b));
}

/* NULL: it waits. */
static struct pod *poisoned(const struct poison *r, const char *node)
{
    AUTO_STRBUF text = {0};
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    struct pod *p = NULL;
    const char *list = print_list(&r->list);
    add_quoted(&text, "{'metadata':{'namespace':'evil','name':'a','uid':'u'", NULL);
    strbuf_adds(&text, r->metadata != NULL ? "," : "");
    add_quoted(&text, r->metadata, list);
    add_quoted(&text, "},'spec':{'schedulerName':'" NAME_SCHEDULER "'", NULL);
    strbuf_adds(&text, r->spec != NULL ? "," : "");
    add_quoted(&text, r->spec, list);
    if (node != NULL)
        strbuf_addf(&text, ",\"nodeName\":\"%s\"", node);
    strbuf_adds(&text, "}}");
    if (json_parse(&doc, strbuf_str(&text), text.len, &err) < 0 ||
        decode_pod(json_root(doc), &p, &err) < 0)
        fail_msg("%s: %s", r->row, err.text);
    return p;
}

/* The honest pods: each may use each node, by every plugin. */
static const char *bystanders(void)
{
    AUTO_STRBUF b = {0};
    for (char name = 'a'; name <= 'd'; name++)
        strbuf_addf(&b, "%c: %s. ", name,
                    open_nodes(cluster_find_pod(&c, (const char[]){'d', '/', name, '\0'})));
    return arena_strdup(&arena, strbuf_str(&b));
}

static void put_bystanders(void)
{
    for (const char *const *name = (const char *const[]){"n1", "n2", NULL}; *name != NULL; name++) {
        (void)cluster_put_node(&c, fixture_make_node(&(struct fixture_node){
                                       .name = *name,
                                       .labels = PAIRS("host", *name),
                                       .inventory = fixture_inventory(&arena, "cgpu", "15,15"),
                                       .gib = 30,
                                       .topology = fixture_topology(&arena, 1, 1, 8, 1, NULL)}));
    }
    PUT(.name = "r", .node = "n1", .c = {{.cpu_milli = 1000, .memory_bytes = 1 << 30}});
    PUT(.name = "a", .c = {{.cpu_milli = 5000, .memory_bytes = 1 << 30}});
    PUT(.name = "b", .c = {{.gib = 15}});
    PUT(.name = "c", .annotations = PAIRS(NAME_ANN_CPUSET_SCHEDULER, "true"),
        .c = {{.cpu_milli = 4000}});
    PUT(.name = "d", .ports = "{\"hostPort\":80}");
}

static void no_pod_changes_the_fate_of_another(void **state)
{
    (void)state;
    struct cycle_result result;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct poison *r = &rows[i];
        fresh();
        put_bystanders();
        uint64_t before = cluster_digest(&c);
        (void)cluster_put_pod(&c, poisoned(r, NULL), NULL);
        expect_str(r->row, "a: n1 n2. b: n1 n2. c: n1 n2. d: n1 n2. ", bystanders());
        (void)run_gang("pod evil/a", &result);
        expect_int(r->row, r->waits == NULL, result.verdict == CYCLE_PLACED);
        if (r->waits != NULL && !str_starts(result.sentence, r->waits))
            expect_str(r->row, r->waits, result.sentence);
        (void)cluster_remove_pod(&c, "evil/a", "u", NULL);
        expect_true("as before", cluster_digest(&c) == before);
        for (const char *const *on = (const char *const[]){"n1", "n2", NULL}; *on != NULL; on++) {
            (void)cluster_put_pod(&c, poisoned(r, *on), NULL);
            bool port = cluster_find_pod(&c, "evil/a")->has_ports && r->list.n > 0; /* of d's */
            expect_str(r->row,
                       !port               ? "a: n1 n2. b: n1 n2. c: n1 n2. d: n1 n2. "
                       : str_eq(*on, "n1") ? "a: n1 n2. b: n1 n2. c: n1 n2. d: n2. "
                                           : "a: n1 n2. b: n1 n2. c: n1 n2. d: n1. ",
                       bystanders());
            (void)cluster_remove_pod(&c, "evil/a", "u", NULL);
            expect_true("as before", cluster_digest(&c) == before);
        }
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {T(no_pod_changes_the_fate_of_another)};
    return cmocka_run_group_tests_name("poison", tests, NULL, NULL);
}
