// SPDX-License-Identifier: Apache-2.0
/*
 * A packed pod says all that the pod said. Both are printed, every field of every struct in them,
 * and the texts compared; the first one is freed before the second print, so that a pointer that
 * was not packed is seen (by the asan variant, where each allocation is its own, at the first
 * byte).
 */
#include <fcntl.h>
#include <glob.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/yaml.h"
#include "test/unit/lib/kube/decode_kit.h"

/* ---- everything that is in a pod ---- */

static void say(struct strbuf *b, const char *what, const char *text)
{
    strbuf_addf(b, "%s=%s;\n", what, text ? text : "(none)");
}

static void say_int(struct strbuf *b, const char *what, int64_t n)
{
    strbuf_addf(b, "%s=%lld;\n", what, (long long)n);
}

static void say_texts(struct strbuf *b, const char *what, const char *const *texts, size_t len)
{
    say_int(b, what, (int64_t)len);
    for (size_t i = 0; i < len; i++)
        say(b, what, texts[i]);
}

static void say_labels(struct strbuf *b, const char *what, const struct labels *l)
{
    say_int(b, what, (int64_t)l->len);
    for (size_t i = 0; i < l->len; i++)
        say(b, l->items[i].key, l->items[i].value);
}

static void say_resources(struct strbuf *b, const char *what, const struct resources *r)
{
    say(b, what, "");
    say_int(b, "cpu", r->cpu_milli);
    say_int(b, "memory", r->memory_bytes);
    say_int(b, "ephemeral", r->ephemeral_bytes);
    say_int(b, "pods", r->pods);
    say_int(b, "has", r->has);
    for (uint32_t i = 0; i < r->extra_len; i++)
        say_int(b, r->extra[i].name, r->extra[i].value);
}

static void say_resized(struct strbuf *b, const struct resized *r)
{
    say_int(b, "resized", r != NULL);
    if (!r)
        return;
    say_int(b, "has allocated", r->has_allocated);
    say_int(b, "has actual", r->has_actual);
    say_resources(b, "allocated", &r->allocated);
    say_resources(b, "actual", &r->actual);
}

static void say_selector(struct strbuf *b, const char *what, const struct selector *s)
{
    say_int(b, what, (int64_t)s->len);
    say_int(b, "nothing", s->nothing);
    for (size_t i = 0; i < s->len; i++) {
        say(b, "key", s->reqs[i].key);
        say_int(b, "op", s->reqs[i].op);
        say_int(b, "number", s->reqs[i].number);
        say_texts(b, "values", s->reqs[i].values, s->reqs[i].values_len);
    }
}

static void say_term(struct strbuf *b, const struct node_term *t)
{
    say_selector(b, "term labels", &t->labels);
    say_selector(b, "term fields", &t->fields);
    say(b, "invalid", t->invalid);
}

static void say_podterms(struct strbuf *b, const char *what, const struct podterm *t, size_t len)
{
    say_int(b, what, (int64_t)len);
    for (size_t i = 0; i < len; i++) {
        say(b, "topology key", t[i].topology_key);
        say_texts(b, "namespaces", t[i].namespaces, t[i].namespaces_len);
        say_selector(b, "namespace selector", &t[i].namespace_selector);
        say_selector(b, "selector", &t[i].selector);
        say_int(b, "weight", t[i].weight);
    }
}

static void say_containers(struct strbuf *b, const char *what, const struct container *c,
                           size_t len)
{
    say_int(b, what, (int64_t)len);
    for (size_t i = 0; i < len; i++) {
        say(b, "name", c[i].name);
        say(b, "image", c[i].image);
        say_resources(b, "requests", &c[i].requests);
        say_resources(b, "limits", &c[i].limits);
        say_resized(b, c[i].resized);
        say_int(b, "sidecar", c[i].sidecar);
        say_int(b, "has id", c[i].has_id);
        for (size_t k = 0; k < c[i].ports_len; k++) {
            say_int(b, "port", c[i].ports[k].host_port);
            say(b, "ip", c[i].ports[k].host_ip);
            say(b, "protocol", c[i].ports[k].protocol);
        }
    }
}

static void say_metadata(struct strbuf *b, const struct pod *p)
{
    say(b, "ns", p->ns);
    say(b, "name", p->name);
    say(b, "key", p->key);
    say(b, "uid", p->uid);
    say(b, "version", p->resource_version);
    say_labels(b, "labels", &p->labels);
    say_labels(b, "annotations", &p->annotations);
    say_int(b, "created", p->created_ns);
    say_int(b, "terminating", p->terminating);
    say_int(b, "leaves", p->leaves_ns);
    say(b, "owner kind", p->owner_kind);
    say(b, "owner name", p->owner_name);
    say(b, "owner uid", p->owner_uid);
}

static void say_where(struct strbuf *b, const struct pod *p)
{
    say_labels(b, "node selector", &p->node_selector);
    say_int(b, "required", p->has_required_affinity);
    for (size_t i = 0; i < p->required_affinity.len; i++)
        say_term(b, &p->required_affinity.terms[i]);
    for (size_t i = 0; i < p->preferred_affinity_len; i++) {
        say_int(b, "preferred", p->preferred_affinity[i].weight);
        say_term(b, &p->preferred_affinity[i].term);
    }
    for (size_t i = 0; i < p->tolerations_len; i++) {
        say(b, "toleration", p->tolerations[i].key);
        say(b, "value", p->tolerations[i].value);
        say_int(b, "op", p->tolerations[i].op);
        say_int(b, "effect", p->tolerations[i].effect);
    }
    if (p->terms) {
        say_podterms(b, "affinity", p->terms->affinity, p->terms->affinity_len);
        say_podterms(b, "anti", p->terms->anti_affinity, p->terms->anti_affinity_len);
        say_podterms(b, "preferred", p->terms->preferred, p->terms->preferred_len);
        say_podterms(b, "preferred anti", p->terms->preferred_anti, p->terms->preferred_anti_len);
    }
    for (size_t i = 0; i < p->spread_len; i++) {
        const struct spread *s = &p->spread[i];
        say(b, "spread", s->topology_key);
        strbuf_addf(b, "%d %d %d %d %d", s->max_skew, s->min_domains, s->hard, s->honor_affinity,
                    s->honor_taints);
        say_selector(b, "selector", &s->selector);
    }
    for (size_t i = 0; i < p->volumes_len; i++) {
        const struct pod_volume *v = &p->volumes[i];
        strbuf_addf(b, "%d %d", v->kind, v->read_only);
        say(b, "volume", v->name);
        say(b, "claim", v->claim);
        say(b, "driver", v->driver);
        say(b, "id", v->id);
        say_texts(b, "monitors", v->monitors, v->monitors_len);
    }
    say_texts(b, "image volumes", p->image_volumes, p->image_volumes_len);
}

static void say_pod(struct strbuf *b, const struct pod *p)
{
    say_metadata(b, p);
    say(b, "node", p->node);
    say(b, "scheduler", p->scheduler);
    strbuf_addf(b, "%d %d %d %d %d %d %u %d\n", p->priority, p->preempt_never, p->gated,
                p->resource_claims, p->resize_infeasible, p->host_network, (unsigned)p->features,
                p->phase);
    say(b, "group", p->scheduling_group);
    say_containers(b, "containers", p->containers, p->containers_len);
    say_containers(b, "init containers", p->init_containers, p->init_containers_len);
    say_int(b, "sizes", p->sizes != NULL);
    if (p->sizes) {
        say_resources(b, "overhead", &p->sizes->overhead);
        say_resources(b, "requests", &p->sizes->requests);
        say_int(b, "has requests", p->sizes->has_requests);
        say_resized(b, &p->sizes->status);
    }
    say_where(b, p);
    say(b, "status reason", p->status_reason);
    say_int(b, "started", p->started_ns);
    say_int(b, "deadline", p->active_deadline_s);
    say(b, "nominated", p->nominated_node);
    say_texts(b, "claimed", p->claimed, p->claimed_len);
    say(b, "condition", p->scheduled.type);
    say(b, "status", p->scheduled.status);
    say(b, "reason", p->scheduled.reason);
    say(b, "message", p->scheduled.message);
    say(b, "unplaceable", p->unplaceable);
    say(b, "unreadable", p->unreadable);
    say_resources(b, "request", &p->request);
}

static void say_node(struct strbuf *b, const struct node *n)
{
    say(b, "name", n->name);
    say(b, "uid", n->uid);
    say(b, "version", n->resource_version);
    say_labels(b, "labels", &n->labels);
    say_labels(b, "annotations", &n->annotations);
    strbuf_addf(b, "%d %d %d %u\n", n->unschedulable, n->terminating, n->ready,
                (unsigned)n->features);
    for (size_t i = 0; i < n->taints_len; i++) {
        say(b, "taint", n->taints[i].key);
        say(b, "value", n->taints[i].value);
        say_int(b, "effect", n->taints[i].effect);
    }
    say_resources(b, "capacity", &n->capacity);
    say_resources(b, "allocatable", &n->allocatable);
    say(b, "ip", n->internal_ip);
    for (size_t i = 0; i < n->images_len; i++)
        strbuf_addf(b, "%llx %lld\n", (unsigned long long)n->images[i].hash,
                    (long long)n->images[i].bytes);
}

/* ---- packing ---- */

/* Frees p. */
static void check_pod(const char *row, struct pod *p)
{
    AUTO_STRBUF before = {0}, after = {0};
    say_pod(&before, p);
    struct pod *packed = pod_pack(p);
    pod_free(p);
    say_pod(&after, packed);
    expect_str(row, strbuf_str(&before), strbuf_str(&after));
    struct pod *again = pod_pack(packed);
    expect_int("no byte more the second time", (int64_t)arena_bytes(&packed->arena),
               (int64_t)arena_bytes(&again->arena));
    size_t whole = arena_bytes(&again->arena);
    (void)arena_strdup(&again->arena, "");
    expect_true("and none to spare", arena_bytes(&again->arena) > whole);
    pod_free(packed);
    pod_free(again);
}

static void check_node(const char *row, struct node *n)
{
    AUTO_STRBUF before = {0}, after = {0};
    say_node(&before, n);
    struct node *packed = node_pack(n);
    node_free(n);
    say_node(&after, packed);
    expect_str(row, strbuf_str(&before), strbuf_str(&after));
    node_free(packed);
}

static int pods_checked, nodes_checked;

/* Whatever it decodes to. */
static void check_object(const char *row, json *j)
{
    struct pod *p = NULL;
    struct node *n = NULL;
    struct error why = ERROR_INIT, err = ERROR_INIT;
    if (decode_pod(j, &p, &why) == 0 || decode_pod_remains(j, &why, &p, &err) == 0) {
        check_pod(row, p);
        pods_checked++;
    }
    if (decode_node(j, &n, &err) == 0) {
        check_node(row, n);
        nodes_checked++;
    }
    json *items = json_get(j, "items");
    if (json_is_array(items))
        for (struct json_iter it = json_iter(items); json_next(&it);)
            check_object(row, it.value);
}

#define SELECTOR \
    "{'matchLabels':{'l':'1'},'matchExpressions':[{'key':'k','operator':'In','values':['v1','v2']}]}"
#define TERM                                                                       \
    "{'topologyKey':'zone','namespaces':['n2','n1'],'namespaceSelector':" SELECTOR \
    ",'labelSelector':" SELECTOR "}"
#define NODE_TERM                                                                                                           \
    "{'matchExpressions':[{'key':'disk','operator':'In','values':['ssd']},{'key':'cores','operator':'Lt','values':['x']}]," \
    "'matchFields':[{'key':'metadata.name','operator':'In','values':['n1']}]}"
#define AMOUNTS \
    "{'cpu':'1','memory':'1Gi','ephemeral-storage':'1Gi','example.com/fpga':'2','aliyun.com/gpu-mem':'3'}"
#define OTHER "{'cpu':'2','memory':'1Gi','example.com/fpga':'2'}"

/* A string literal has its limit. */
static const char *const everything[] = {
    "{'metadata':{'name':'a','namespace':'ns','uid':'u-1','resourceVersion':'77','creationTimestamp':'1970-01-01T00:00:01Z',"
    "'deletionTimestamp':'1970-01-01T00:00:02Z','labels':{'b':'2','a':'1'},'annotations':{'cpuset':'x','cpu-policy':'y'},"
    "'ownerReferences':[{'controller':true,'kind':'Widget','name':'w','uid':'u-w'}]},",
    "'spec':{'nodeName':'n1','schedulerName':'mine','priority':-5,'preemptionPolicy':'Never','schedulingGates':[{'name':'g'}],"
    "'resourceClaims':[{'name':'c'}],'schedulingGroup':{'podGroupName':'pg'},'hostNetwork':true,'hostUsers':false,"
    "'containers':[{'name':'c','image':'i','resources':{'requests':" AMOUNTS ",'limits':" AMOUNTS
    "},"
    "'ports':[{'hostPort':80,'hostIP':'10.0.0.1','protocol':'ODD'},{'containerPort':1},{'hostPort':81}]},{'name':'d','image':'j'}],"
    "'initContainers':[{'name':'s','image':'k','restartPolicy':'Always','resources':{'requests':" AMOUNTS
    "}},{'name':'o'}],"
    "'overhead':" AMOUNTS ",'resources':{'requests':" AMOUNTS "},'nodeSelector':{'disk':'ssd'},",
    "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[" NODE_TERM
    "]},"
    "'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':5,'preference':" NODE_TERM "}]},"
    "'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[" TERM "],"
    "'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':3,'podAffinityTerm':" TERM "}]},"
    "'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[" TERM
    ",{'topologyKey':'host'}],"
    "'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':4,'podAffinityTerm':" TERM
    "}]}},",
    "'tolerations':[{'key':'gpu','operator':'Exists','effect':'NoSchedule'},{'key':'node.kubernetes.io/not-ready','operator':'Exists'},{'key':'k','value':'v'},{'operator':'Odd'}],"
    "'topologySpreadConstraints':[{'topologyKey':'zone','maxSkew':2,'minDomains':3,'whenUnsatisfiable':'DoNotSchedule','labelSelector':" SELECTOR
    ",'matchLabelKeys':['a']}],"
    "'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'claim'}},{'name':'e','ephemeral':{}},{'name':'csi','csi':{'driver':'d'}},"
    "{'name':'r','rbd':{'image':'i','monitors':['m1','m2']}},{'name':'disk','awsElasticBlockStore':{'volumeID':'aws://z/vol-1'}},"
    "{'name':'i','image':{'reference':'registry/i:1'}},{'name':'t','emptyDir':{}}]},",
    "'status':{'phase':'Failed','reason':'OutOfcpu','startTime':'1970-01-01T00:00:09Z','nominatedNodeName':'n2',"
    "'conditions':[{'type':'PodScheduled','status':'False','reason':'Odd','message':'no room'},{'type':'PodResizePending','status':'True','reason':'Infeasible'}],"
    "'containerStatuses':[{'name':'c','containerID':'x://1','allocatedResources':" OTHER
    ",'resources':{'requests':" OTHER "}}],"
    "'initContainerStatuses':[{'name':'s','containerID':'x://2','resources':{'requests':" OTHER
    "}}],"
    "'allocatedResources':" OTHER ",'resources':{'requests':" OTHER "},"
    "'extendedResourceClaimStatus':{'requestMappings':[{'resourceName':'example.com/z'},{'resourceName':'example.com/y'}]}}}"};

static void a_pod_with_everything(void **state)
{
    (void)state;
    AUTO_STRBUF text = {0};
    AUTO_STRBUF all = {0};
    for (size_t i = 0; i < sizeof everything / sizeof *everything; i++)
        strbuf_adds(&all, everything[i]);
    struct pod *p = decode_kit_pod(strbuf_str(&all));
    say_pod(&text, p);
    static const char *const somewhere[] = {
        "fpga=2",       "gpu-mem=3", "=n1;",        "key=k;",    "values=v2;",   "ip=10.0.0.1;",
        "protocol=ODD", "nothing=1", "invalid=",    "op=5",      "value=v;",     "claim=claim;",
        "claim=a-e;",   "driver=d;", "monitors=m2", "id=vol-1;", "registry/i:1", "example.com/y",
        "OutOfcpu",     "no room",   "resized=1"};
    for (size_t i = 0; i < sizeof somewhere / sizeof *somewhere; i++)
        if (!strstr(strbuf_str(&text), somewhere[i]))
            fail_msg("the pod with everything lacks '%s'", somewhere[i]);
    check_pod("everything", p);
    /* Whoever adds a field adds it to the packer, and then here. */
    expect_int("fields of struct pod", 504, sizeof(struct pod));
    expect_int("fields of struct container (id is not packed)", 152, sizeof(struct container));
    expect_int("fields of struct node", 232, sizeof(struct node));
    expect_done();
}

static void sizes_that_status_repeats_are_dropped(void **state)
{
    (void)state;
#define RESIZE(allocated, actual)                                                                \
    "{'metadata':{'name':'a','namespace':'ns'},'spec':{'containers':[{'name':'c','resources':"   \
    "{'requests':{'cpu':'1','x/y':'2'}}}]},'status':{'containerStatuses':[{'name':'c'" allocated \
        actual "}]}}"
    static const struct {
        const char *row, *text;
        bool kept;
        int64_t cpu_milli;
    } rows[] = {
        {"status says nothing", RESIZE("", ""), false, 1000},
        {"the same sizes",
         RESIZE(",'allocatedResources':{'cpu':'1','x/y':'2'}",
                ",'resources':{'requests':{'x/y':'2','cpu':'1000m'}}"),
         false, 1000},
        {"only allocated, which alone counts for nothing",
         RESIZE(",'allocatedResources':{'cpu':'3'}", ""), false, 1000},
        {"more allocated",
         RESIZE(",'allocatedResources':{'cpu':'3','x/y':'2'}",
                ",'resources':{'requests':{'cpu':'1','x/y':'2'}}"),
         true, 3000},
        {"more in use", RESIZE("", ",'resources':{'requests':{'cpu':'2','x/y':'2'}}"), true, 2000},
        {"no requests in use", RESIZE("", ",'resources':{}"), true, 1000},
        {"another extended resource", RESIZE("", ",'resources':{'requests':{'cpu':'1','x/z':'2'}}"),
         true, 1000},
        {"one that is 0 instead of absent",
         RESIZE("", ",'resources':{'requests':{'cpu':'1','memory':'0','x/y':'2'}}"), true, 1000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pod *p = decode_kit_pod(rows[i].text);
        expect_int(rows[i].row, rows[i].kept, p->containers[0].resized != NULL);
        expect_int(rows[i].row, rows[i].cpu_milli, p->request.cpu_milli);
        pod_free(p);
    }
    expect_done();
}

static void read_whole(const char *path, struct strbuf *out)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    for (;;) {
        strbuf_reserve(out, 65536);
        ssize_t n = read(fd, out->ptr + out->len, 65535);
        assert_true(n >= 0);
        if (n == 0)
            break;
        out->len += (size_t)n;
    }
    strbuf_str(out);
}

static void the_seeds_of_the_fuzzer(void **state)
{
    (void)state;
    glob_t files;
    pods_checked = nodes_checked = 0;
    assert_int_equal(0, glob("test/fuzz/corpus/decode/*", 0, NULL, &files));
    for (size_t i = 0; i < files.gl_pathc; i++) {
        AUTO_STRBUF text = {0};
        AUTO_JSON *doc = NULL;
        struct error err = ERROR_INIT;
        read_whole(files.gl_pathv[i], &text);
        if (json_parse(&doc, strbuf_str(&text), text.len, &err) == 0)
            check_object(files.gl_pathv[i], json_root(doc));
    }
    globfree(&files);
    expect_true("pods among them", pods_checked >= 5);
    expect_true("nodes among them", nodes_checked >= 3);
    expect_done();
}

/* Each pod template in it, wherever it is, as a pod. */
static void check_templates(const char *row, json *v)
{
    if (json_is_object(json_get(v, "spec")) && json_get(json_get(v, "spec"), "containers")) {
        AUTO_STRBUF text = {0};
        AUTO_JSON *doc = NULL;
        struct json_writer w;
        struct error err = ERROR_INIT;
        json_writer_init(&w, &text);
        json_object_begin(&w);
        json_key(&w, "metadata");
        json_object_begin(&w);
        json_kv_str(&w, "name", "a");
        json_kv_str(&w, "namespace", "default");
        for (struct json_iter it = json_iter(json_get(v, "metadata")); json_next(&it);)
            if (str_eq(it.key, "labels") || str_eq(it.key, "annotations")) {
                json_key(&w, it.key);
                json_put_value(&w, it.value);
            }
        json_object_end(&w);
        json_key(&w, "spec");
        json_put_value(&w, json_get(v, "spec"));
        json_object_end(&w);
        if (json_parse(&doc, strbuf_str(&text), text.len, &err) < 0)
            fail_msg("%s: %s", row, err.text);
        check_object(row, json_root(doc));
    }
    if (json_is_object(v) || json_is_array(v))
        for (struct json_iter it = json_iter(v); json_next(&it);)
            check_templates(row, it.value);
}

static void the_examples_manifests(void **state)
{
    (void)state;
    glob_t files;
    pods_checked = 0;
    assert_int_equal(0, glob("deploy/examples/documents/*.yaml", 0, NULL, &files));
    for (size_t i = 0; i < files.gl_pathc; i++) {
        AUTO_STRBUF text = {0};
        AUTO_STRBUF lines = {0};
        struct error err = ERROR_INIT;
        read_whole(files.gl_pathv[i], &text);
        if (yaml_to_json(strbuf_str(&text), text.len, 1 << 20, &lines, &err) < 0)
            fail_msg("%s: %s", files.gl_pathv[i], err.text);
        for (const char *at = strbuf_str(&lines); *at; at += strcspn(at, "\n") + 1) {
            AUTO_JSON *doc = NULL;
            if (json_parse(&doc, at, strcspn(at, "\n"), &err) < 0)
                fail_msg("%s: %s", files.gl_pathv[i], err.text);
            check_templates(files.gl_pathv[i], json_root(doc));
        }
    }
    globfree(&files);
    expect_true("pods among them", pods_checked >= 9);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_with_everything),
        cmocka_unit_test(sizes_that_status_repeats_are_dropped),
        cmocka_unit_test(the_seeds_of_the_fuzzer),
        cmocka_unit_test(the_examples_manifests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
