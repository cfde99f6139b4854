// SPDX-License-Identifier: Apache-2.0
#include "test/unit/lib/kube/decode_kit.h"

#define POD(rest) "{'metadata':{'name':'a','namespace':'ns'}," rest "}"
#define SPEC(rest) POD("'spec':{" rest "}")
#define CONTAINER(rest) SPEC("'containers':[{'name':'c'," rest "}]")

static void test_full_pod(void **state)
{
    (void)state;
    struct pod *p = decode_kit_pod(
        "{'status':{'phase':'Running','nominatedNodeName':'n2','conditions':[{'type':'Ready','status':'True'},"
        "{'type':'PodScheduled','status':'False','reason':'Unschedulable','message':'no room'},{'type':'PodResizePending','status':'True',"
        "'reason':'Infeasible'}],'containerStatuses':[{'name':'d','containerID':'containerd://d'},{'name':'c','containerID':'containerd://c',"
        "'allocatedResources':{'cpu':'2','aliyun.com/gpu-mem':'3'},'resources':{'requests':{'cpu':'3'}}},{'name':'nobody'}],'initContainerStatuses':[{'name':'s',"
        "'containerID':''}],'allocatedResources':{'cpu':'1'},'resources':{'requests':{'memory':'1Gi'}}},"
        "'metadata':{'name':'a','namespace':'ns','uid':'u-1','resourceVersion':'77','creationTimestamp':'1970-01-01T00:00:01Z',"
        "'deletionTimestamp':'1970-01-01T00:00:02Z','labels':{'b':'2','a':'1'},'annotations':{'x':'y','cpuset':'y'},'managedFields':[{'a':[1,2]}],"
        "'ownerReferences':[{'kind':'X','name':'x','uid':'x'},{'kind':'Job','name':'j','uid':'u-j','controller':true}]},"
        "'spec':{'nodeName':'n1','schedulerName':'ack-co-scheduler','priority':-5,'preemptionPolicy':'Never','activeDeadlineSeconds':90,'schedulingGates':[{'name':'g'}],"
        "'resourceClaims':[{'name':'r'}],'schedulingGroup':{'podGroupName':'pg'},'overhead':{'cpu':'10m'},'resources':{'requests':{'cpu':'2'}},"
        "'containers':[{'name':'c','image':'i','ports':[{'containerPort':80},{'hostPort':8080,'hostIP':'10.0.0.1','protocol':'UDP'},"
        "{'hostPort':81}],'resources':{'requests':{'cpu':'100.5m','memory':1024,'aliyun.com/gpu-mem':'3'},'limits':{'aliyun.com/gpu-mem':'3'}}},"
        "{'name':'d','restartPolicy':'Always'}],'initContainers':[{'name':'s','restartPolicy':'Always'},{'name':'i'}],"
        "'nodeSelector':{'disk':'ssd'},'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':["
        "{'matchExpressions':[{'key':'k','operator':'In','values':['v']}]}]},'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':5,"
        "'preference':{'matchExpressions':[{'key':'k','operator':'Exists'}]}}]}},'tolerations':[{'key':'t','operator':'Equal','value':'v',"
        "'effect':'NoSchedule'},{'operator':'Exists'},{'key':'e','effect':'NoExecute'},{'key':'p','effect':'PreferNoSchedule'},"
        "{'key':'n','operator':'Lt','value':'3'},{'key':'w','effect':'Whatever'}]}}");
    expect_str("namespace", "ns", p->ns);
    expect_str("name", "a", p->name);
    expect_str("key", "ns/a", p->key);
    expect_str("uid", "u-1", p->uid);
    expect_str("version", "77", p->resource_version);
    expect_str("labels are sorted", "a", p->labels.items[0].key);
    expect_str("label", "2", labels_get(&p->labels, "b"));
    expect_str("an annotation that is read", "y", labels_get(&p->annotations, "cpuset"));
    expect_int("others are not kept", 1, (int64_t)p->annotations.len);
    expect_int("created", 1000000000, p->created_ns);
    expect_true("terminating", p->terminating);
    expect_str("the controlling owner", "Job", p->owner_kind);
    expect_str("owner", "j", p->owner_name);
    expect_str("owner", "u-j", p->owner_uid);
    expect_str("node", "n1", p->node);
    expect_str("scheduler", "ack-co-scheduler", p->scheduler);
    expect_int("priority", -5, p->priority);
    expect_true("preemption policy", p->preempt_never);
    expect_int("deadline", 90, p->active_deadline_s);
    expect_true("gated", p->gated);
    expect_true("claims", p->resource_claims);
    expect_str("group", "pg", p->scheduling_group);
    expect_int("containers", 2, (int64_t)p->containers_len);
    const struct container *c = &p->containers[0];
    expect_str("container", "c", c->name);
    expect_str("image", "i", c->image);
    expect_int("cpu rounds up", 101, c->requests.cpu_milli);
    expect_int("memory as a number", 1024, c->requests.memory_bytes);
    expect_int("limit", 3, resources_get(&c->limits, "aliyun.com/gpu-mem", NULL));
    expect_int("ports with a host port", 2, (int64_t)c->ports_len);
    expect_int("host port", 8080, c->ports[0].host_port);
    expect_str("host address", "10.0.0.1", c->ports[0].host_ip);
    expect_str("protocol", "UDP", c->ports[0].protocol);
    expect_str("protocol by default", "TCP", c->ports[1].protocol);
    expect_str("no address", "", c->ports[1].host_ip);
    expect_true("resized", c->resized != NULL);
    expect_true("allocated", c->resized->has_allocated);
    expect_int("allocated", 2000, c->resized->allocated.cpu_milli);
    expect_true("actual", c->resized->has_actual);
    expect_int("actual", 3000, c->resized->actual.cpu_milli);
    expect_true("container id, out of order", c->has_id);
    expect_true("which one is not kept unless asked for", c->id == NULL);
    expect_true("container id", p->containers[1].has_id);
    expect_true("only init containers are sidecars", !p->containers[1].sidecar);
    expect_true("sidecar", p->init_containers[0].sidecar);
    expect_true("not a sidecar", !p->init_containers[1].sidecar);
    expect_true("an empty container id is none", !p->init_containers[0].has_id);
    expect_int("overhead", 10, p->sizes->overhead.cpu_milli);
    expect_true("pod-level requests", p->sizes->has_requests && p->sizes->status.has_allocated &&
                                          p->sizes->status.has_actual);
    expect_int("pod-level request", 2000, p->sizes->requests.cpu_milli);
    expect_int("pod-level actual", 1 << 30, p->sizes->status.actual.memory_bytes);
    expect_true("infeasible", p->resize_infeasible);
    expect_str("node selector", "ssd", labels_get(&p->node_selector, "disk"));
    expect_true("required", p->has_required_affinity);
    expect_int("terms", 1, (int64_t)p->required_affinity.len);
    expect_int("preferred", 1, (int64_t)p->preferred_affinity_len);
    expect_int("weight", 5, p->preferred_affinity[0].weight);
    expect_int("tolerations in words we know", 4, (int64_t)p->tolerations_len);
    expect_int("toleration", TAINT_NO_SCHEDULE, p->tolerations[0].effect);
    expect_int("toleration of everything", TOLERATION_EXISTS, p->tolerations[1].op);
    expect_int("toleration of every effect", TAINT_ALL, p->tolerations[1].effect);
    expect_str("toleration of every key", "", p->tolerations[1].key);
    expect_int("phase", POD_RUNNING, p->phase);
    expect_str("nominated", "n2", p->nominated_node);
    expect_str("condition", "Unschedulable", p->scheduled.reason);
    expect_str("condition", "no room", p->scheduled.message);
    expect_true("the effective request is there", p->request.cpu_milli > 0);
    expect_int("extended resources in it", 3,
               resources_get(&p->request, "aliyun.com/gpu-mem", NULL));
    pod_free(p);
    expect_done();
}

static void test_defaults(void **state)
{
    (void)state;
    struct pod *p = decode_kit_pod(
        "{'metadata':{'name':'a','namespace':'ns','labels':null},'spec':null,'status':{'phase':null,'nominatedNodeName':''}}");
    expect_str("scheduler", "default-scheduler", p->scheduler);
    expect_str("node", NULL, p->node);
    expect_str("uid", "", p->uid);
    expect_str("nominated", NULL, p->nominated_node);
    expect_int("phase", POD_PENDING, p->phase);
    expect_int("labels", 0, (int64_t)p->labels.len);
    expect_int("containers", 0, (int64_t)p->containers_len);
    expect_str("condition", NULL, p->scheduled.type);
    expect_true("not terminating", !p->terminating);
    pod_free(p);
    p = decode_kit_pod(POD("'spec':{'nodeName':'','schedulingGates':[]},'status':{'phase':'Odd'}"));
    expect_str("an empty node is none", NULL, p->node);
    expect_true("no gates", !p->gated);
    expect_int("an unknown phase", POD_UNKNOWN, p->phase);
    pod_free(p);
    p = decode_kit_pod(CONTAINER(
        "'ports':[{'hostPort':1}],'ports':[{'hostPort':2},{'hostPort':3},{'hostPort':4}],'resources':null"));
    expect_int("a member that is there twice", 3, (int64_t)p->containers[0].ports_len);
    pod_free(p);
    expect_done();
}

static void test_bad_pods(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"3", "pod: must be an object, not number"},
        {"{}", "pod /: metadata: name or namespace missing"},
        {"{'metadata':3}", "pod /: metadata: must be an object, not number"},
        {"{'metadata':{'name':'a'}}", "pod /a: metadata: name or namespace missing"},
        {"{'metadata':{'name':3,'namespace':'ns'}}",
         "pod ns/: metadata.name: must be a string without NUL, not number"},
        {"{'metadata':{'name':'a\\u0000b','namespace':'ns'}}",
         "pod ns/: metadata.name: must be a string without NUL, not string"},
        {POD("'spec':[]"), "pod ns/a: spec: must be an object, not array"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pod *p = NULL;
        struct error err = ERROR_INIT;
        AUTO_JSON *doc = decode_kit_parse(rows[i].text);
        expect_int(rows[i].text, -1, decode_pod(json_root(doc), &p, &err));
        expect_str(rows[i].text, rows[i].says, err.text);
    }
    expect_done();
}

#define META(members) "{'metadata':{'name':'a','namespace':'ns'," members "}}"
#define NODE_AFFINITY(members) SPEC("'affinity':{'nodeAffinity':{" members "}}")
#define REQUIRED "'requiredDuringSchedulingIgnoredDuringExecution':"
#define PREFERRED "'preferredDuringSchedulingIgnoredDuringExecution':"

/* A value that cannot be read voids that value, never the pod. */
static void test_bad_values(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *unplaceable; /* NULL: it may still be placed */
    } rows[] = {
        {META("'labels':{'x':1}"), NULL},
        {META("'labels':{'x':'1','x':'2'}"), NULL},
        {META("'annotations':[]"), NULL},
        {META("'annotations':{'note':'a\\u0000b'}"), NULL},
        {META("'annotations':{'cosched.io/x':'a\\u0000b','cpuset':3}"), NULL},
        {META("'creationTimestamp':'yesterday'"), NULL},
        {META("'creationTimestamp':3"), NULL},
        {META("'ownerReferences':{}"), NULL},
        {META("'ownerReferences':[{'controller':true,'kind':3,'name':'\\u0000','uid':[]}]"), NULL},
        {POD("'status':[]"), NULL},
        {POD("'status':{'conditions':3,'containerStatuses':3,'resources':3,'startTime':'x'}"),
         NULL},
        {POD("'status':{'conditions':[{'type':'PodScheduled','reason':3,'message':'\\u0000'}]}"),
         NULL},
        {POD("'spec':{'containers':[{'name':'c'}]},'status':{'containerStatuses':[{'name':'c',"
             "'resources':3,'containerID':3,'allocatedResources':{'cpu':'x'}}]}"),
         NULL},
        {POD("'status':{'allocatedResources':3,'reason':3,'nominatedNodeName':3}"), NULL},
        {POD("'status':{'extendedResourceClaimStatus':{'requestMappings':[{'resourceName':3}]}}"),
         NULL},
        {SPEC("'schedulerName':'a\\u0000b'"),
         "spec.schedulerName: must be a string without NUL, not string"},
        {SPEC("'nodeName':[]"), "spec.nodeName: must be a string without NUL, not array"},
        {SPEC("'priority':'x'"), "spec.priority: must be an integer"},
        {SPEC("'priority':2147483648"),
         "spec.priority: must be between -2147483648 and 2147483647: 2147483648"},
        {SPEC("'activeDeadlineSeconds':0"),
         "spec.activeDeadlineSeconds: must be between 1 and 2147483647: 0"},
        {SPEC("'containers':{}"), "spec.containers: must be a list, not object"},
        {SPEC("'containers':[{},3]"), "spec.containers[1]: must be an object, not number"},
        {CONTAINER("'name':3,'image':'a\\u0000b','ports':3,'resources':3"), NULL},
        {CONTAINER("'ports':[{'hostPort':1,'hostIP':'a\\u0000b'}]"), NULL},
        {CONTAINER("'ports':[{},{'hostPort':65536}]"),
         "spec.containers[0]: ports[1]: hostPort: must be between 0 and 65535: 65536"},
        {CONTAINER("'resources':{'requests':{'cpu':'1e30','memory':'16Ei','a/b':'1e30'}}"), NULL},
        {CONTAINER("'resources':{'requests':{'cpu':'x'}}"),
         "spec.containers[0]: resources.requests: resource cpu: not a quantity: 'x'"},
        {CONTAINER("'resources':{'limits':{'cpu':[]}}"),
         "spec.containers[0]: resources.limits: resource cpu: must be a quantity, not array"},
        {CONTAINER("'resources':{'requests':{'memory':'-1'}}"),
         "spec.containers[0]: resources.requests: resource memory: must not be negative: '-1'"},
        {SPEC("'containers':[{'resources':{'requests':{'memory':'7Ei'}}},{'resources':{'requests':"
              "{'memory':'7Ei'}}}]"),
         NULL},
        {SPEC("'initContainers':3"), "spec.initContainers: must be a list, not number"},
        {SPEC("'tolerations':3"), "spec.tolerations: must be a list, not number"},
        {SPEC("'tolerations':[3,{'key':3},{'key':'a','value':'\\u0000'}]"), NULL},
        {SPEC("'schedulingGates':3,'resourceClaims':3"), NULL},
        {SPEC("'overhead':3"), "spec.overhead: must be an object, not number"},
        {SPEC("'resources':3"), NULL},
        {SPEC("'nodeSelector':3"), "spec.nodeSelector: must be an object, not number"},
        {SPEC("'nodeSelector':{'a':'\\u0000'}"),
         "spec.nodeSelector: key 'a': must be a string without NUL, not string"},
        {SPEC("'affinity':3"), "spec.affinity: must be an object, not number"},
        {SPEC("'affinity':{'nodeAffinity':3}"),
         "spec.affinity.nodeAffinity: must be an object, not number"},
        {NODE_AFFINITY(REQUIRED "3"),
         "spec.affinity.nodeAffinity.required: must be an object, not number"},
        {NODE_AFFINITY(REQUIRED "{'nodeSelectorTerms':[{'matchExpressions':[{'key':'a',"
                                "'operator':'In','values':['\\u0000']}]}]}"),
         NULL},
        {NODE_AFFINITY(PREFERRED "3"),
         "spec.affinity.nodeAffinity.preferred: must be a list, not number"},
        {NODE_AFFINITY(PREFERRED "[{'weight':101},3]"), NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pod *p = NULL;
        AUTO_JSON *doc = decode_kit_parse(rows[i].text);
        expect_int(rows[i].text, 0, decode_pod(json_root(doc), &p, NULL));
        expect_str(rows[i].text, rows[i].unplaceable, p->unplaceable);
        expect_str(rows[i].text, NULL, p->unreadable);
        pod_free(p);
    }
    expect_done();
}

/* What is beside such a value is read. */
static void test_beside_bad_values(void **state)
{
    (void)state;
    struct pod *p = decode_kit_pod(
        "{'metadata':{'name':'a','namespace':'ns','labels':{'bad':1,'l':'x'},'annotations':{"
        "'cosched.io/a':'a\\u0000b','cosched.io/b':'y','note':'a\\u0000b'}},'spec':{'nodeName':'n',"
        "'containers':[3,{'name':'c','image':'\\u0000','ports':[{'hostPort':70000},{'hostPort':7}],"
        "'resources':{'requests':{'cpu':'x','memory':'5','a/b':'1e30','c/d':'3'}}},{'resources':{"
        "'requests':{'cpu':'2','a/b':'4'}}}],'tolerations':[3,{'key':'k','operator':'Exists'}],"
        "'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'\\u0000'}},{'name':'w',"
        "'persistentVolumeClaim':{'claimName':'q'}}],'topologySpreadConstraints':[{},{'maxSkew':1,"
        "'topologyKey':'z'}],'affinity':{'podAntiAffinity':{" REQUIRED
        "[{},{'topologyKey':'z'}]}}}}");
    expect_str("label", "x", labels_get(&p->labels, "l"));
    expect_str("annotation", "y", labels_get(&p->annotations, "cosched.io/b"));
    expect_str("a bad one is absent", NULL, labels_get(&p->annotations, "cosched.io/a"));
    expect_str("node", "n", p->node);
    expect_int("containers", 3, (int64_t)p->containers_len);
    expect_int("port", 7, p->containers[1].ports[0].host_port);
    expect_int("cpu", 2000, p->request.cpu_milli);
    expect_int("memory", 5, p->request.memory_bytes);
    expect_int("too large: the largest", RESOURCES_TOO_LARGE,
               resources_get(&p->request, "a/b", NULL));
    expect_int("its neighbour", 3, resources_get(&p->request, "c/d", NULL));
    expect_int("toleration", 1, (int64_t)p->tolerations_len);
    expect_int("volume", 1, (int64_t)p->volumes_len);
    expect_str("volume", "q", p->volumes[0].claim);
    expect_int("spread", 1, (int64_t)p->spread_len);
    expect_int("term", 1, (int64_t)p->terms->anti_affinity_len);
    expect_str("the first is said", "spec.containers[0]: must be an object, not number",
               p->unplaceable);
    pod_free(p);
    expect_done();
}

/* n times the element, as a list under that path: why the pod may not be placed. */
static const char *decode_with_list(const char *before, const char *element, size_t n,
                                    const char *after, struct arena *a)
{
    AUTO_STRBUF text = {0};
    struct pod *p = NULL;
    strbuf_adds(&text, before);
    for (size_t i = 0; i < n; i++)
        strbuf_addf(&text, "%s%s", i ? "," : "", element);
    strbuf_adds(&text, after);
    AUTO_JSON *doc = decode_kit_parse(strbuf_str(&text));
    assert_int_equal(0, decode_pod(json_root(doc), &p, NULL));
    const char *why = p->unplaceable ? arena_strdup(a, p->unplaceable) : NULL;
    pod_free(p);
    return why;
}

static void test_what_remains(void **state)
{
    (void)state;
    static const struct {
        const char *row, *text;
        const char *key; /* NULL: nothing remains */
        const char *label;
        enum pod_phase phase;
        bool terminating;
    } rows[] = {
        {"metadata and phase",
         "{'metadata':{'name':'a','namespace':'ns','labels':{'l':'x'}},'spec':[],'status':{'phase':'Running'}}",
         "ns/a", "x", POD_RUNNING, false},
        {"going and finished",
         "{'metadata':{'name':'a','namespace':'ns','deletionTimestamp':'x'},'spec':[],'status':{'phase':'Failed'}}",
         "ns/a", NULL, POD_FAILED, true},
        {"nobody knows which", "{'metadata':{'name':'a'},'spec':[]}", NULL, NULL, POD_PENDING,
         false},
        {"no object", "[]", NULL, NULL, POD_PENDING, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pod *p = NULL;
        struct error why = ERROR_INIT, err = ERROR_INIT;
        AUTO_JSON *doc = decode_kit_parse(rows[i].text);
        expect_int(rows[i].row, -1, decode_pod(json_root(doc), &p, &why));
        int rc = decode_pod_remains(json_root(doc), &why, &p, &err);
        expect_int(rows[i].row, rows[i].key ? 0 : -1, rc);
        if (rc < 0) {
            expect_int(rows[i].row, ERROR_INVALID, err.code);
            continue;
        }
        expect_str(rows[i].row, rows[i].key, p->key);
        expect_str(rows[i].row, rows[i].label, labels_get(&p->labels, "l"));
        expect_int(rows[i].row, rows[i].phase, p->phase);
        expect_int(rows[i].row, rows[i].terminating, p->terminating);
        expect_str(rows[i].row, why.text, p->unreadable);
        pod_free(p);
    }
    expect_done();
}

static void test_bounds(void **state)
{
    (void)state;
    static const struct {
        const char *before, *element;
        size_t most;
        const char *after, *says;
    } rows[] = {
        {"containers':[", "{}", DECODE_CONTAINERS_MAX, "]",
         "spec.containers: has 1025 entries, more than 1024"},
        {"containers':[{'ports':[", "{'hostPort':1}", DECODE_PORTS_MAX, "]}]",
         "spec.containers: have 1025 host ports, more than 1024"},
        {"tolerations':[", "{'key':'k'}", DECODE_LIST_MAX, "]",
         "spec.tolerations: has 4097 entries, more than 4096"},
        {"volumes':[", "{'emptyDir':{}}", DECODE_LIST_MAX, "]",
         "spec.volumes: has 4097 entries, more than 4096"},
        {"volumes':[", "{'csi':{'driver':'d'}}", DECODE_VOLUMES_MAX, "]",
         "spec.volumes[256]: more than 256 volumes with a disk or a claim"},
        {"topologySpreadConstraints':[", "{'maxSkew':1,'topologyKey':'k'}", DECODE_TERMS_MAX, "]",
         "spec.topologySpreadConstraints: has 129 entries, more than 128"},
        {"affinity':{'podAffinity':{" REQUIRED "[", "{'topologyKey':'k'}", DECODE_TERMS_MAX, "]}}",
         "spec.affinity.podAffinity: requiredDuringSchedulingIgnoredDuringExecution: has 129 "
         "entries, more than 128"},
    };
    struct arena a;
    arena_init(&a, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO_STRBUF before = {0}, after = {0};
        strbuf_addf(&before, "{'metadata':{'name':'a','namespace':'ns'},'spec':{'%s",
                    rows[i].before);
        strbuf_addf(&after, "%s}}", rows[i].after);
        expect_str("as many as allowed", NULL,
                   decode_with_list(strbuf_str(&before), rows[i].element, rows[i].most,
                                    strbuf_str(&after), &a));
        expect_str("one more", rows[i].says,
                   decode_with_list(strbuf_str(&before), rows[i].element, rows[i].most + 1,
                                    strbuf_str(&after), &a));
    }
    arena_deinit(&a);
    expect_done();
}

/* ---- nodes ---------------------------------------------------------------------------------- */

static void test_node(void **state)
{
    (void)state;
    AUTO_JSON *doc = decode_kit_parse(
        "{'metadata':{'name':'n1','uid':'u','resourceVersion':'3','labels':{'a':'b'},'annotations':{'c':'d'},"
        "'deletionTimestamp':'2026-01-01T00:00:00Z'},'spec':{'unschedulable':true,'taints':[{'key':'k','value':'v',"
        "'effect':'NoSchedule'},{'key':'l','effect':'NoExecute'},{'key':'m','effect':'PreferNoSchedule'}]},"
        "'status':{'images':[{}],'capacity':{'cpu':'8','memory':'1.5','pods':'110'},'allocatable':{'cpu':'7999.9m',"
        "'aliyun.com/gpu-mem':'30'},'addresses':[{'type':'Hostname','address':'h'},{'type':'InternalIP','address':'10.0.0.1'},"
        "{'type':'InternalIP','address':'fd00::1'}],'conditions':[{'type':'MemoryPressure','status':'True'},{'type':'Ready',"
        "'status':'True'}]}}");
    struct node *n = NULL;
    struct error err = ERROR_INIT;
    if (decode_node(json_root(doc), &n, &err) < 0)
        fail_msg("%s", err.text);
    expect_str("name", "n1", n->name);
    expect_str("version", "3", n->resource_version);
    expect_str("label", "b", labels_get(&n->labels, "a"));
    expect_str("annotation", "d", labels_get(&n->annotations, "c"));
    expect_true("terminating", n->terminating);
    expect_true("unschedulable", n->unschedulable);
    expect_int("taints", 3, (int64_t)n->taints_len);
    expect_str("taint", "v", n->taints[0].value);
    expect_int("effect", TAINT_NO_EXECUTE, n->taints[1].effect);
    expect_int("effect", TAINT_PREFER_NO_SCHEDULE, n->taints[2].effect);
    expect_int("capacity", 8000, n->capacity.cpu_milli);
    expect_int("capacity rounds down", 1, n->capacity.memory_bytes);
    expect_int("pods", 110, n->capacity.pods);
    expect_int("allocatable rounds down", 7999, n->allocatable.cpu_milli);
    expect_int("extended", 30, resources_get(&n->allocatable, "aliyun.com/gpu-mem", NULL));
    expect_str("the first internal address", "10.0.0.1", n->internal_ip);
    expect_true("ready", n->ready);
    node_free(n);
    expect_done();
}

static void test_bad_nodes(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says; /* NULL: accepted */
    } rows[] = {
        {"{'metadata':{'name':'n'}}", NULL},
        {"{'metadata':{'name':'n'},'spec':{'taints':null},'status':null}", NULL},
        {"[]", "node: must be an object, not array"},
        {"{'metadata':{}}", "node : metadata.name: missing"},
        {"{'metadata':[]}", "node : metadata: must be an object, not array"},
        {"{'metadata':{'name':'n'},'spec':3}", "node n: spec: must be an object, not number"},
        {"{'metadata':{'name':'n'},'spec':{'unschedulable':'yes'}}",
         "node n: spec.unschedulable: must be true or false, not string"},
        {"{'metadata':{'name':'n'},'spec':{'taints':3}}",
         "node n: spec.taints: must be a list, not number"},
        {"{'metadata':{'name':'n'},'spec':{'taints':[3,{'key':3},{'effect':'Odd'}]}}", NULL},
        {"{'metadata':{'name':'n'},'status':3}", "node n: status: must be an object, not number"},
        {"{'metadata':{'name':'n','annotations':{'a':'\\u0000'},'labels':{'b':3}}}", NULL},
        {"{'metadata':{'name':'n'},'status':{'capacity':{'cpu':true},'allocatable':{'cpu':'1e30'}}}",
         NULL},
        {"{'metadata':{'name':'n'},'status':{'addresses':3,'conditions':3,'images':[{'sizeBytes':-1}]}}",
         NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct node *n = NULL;
        struct error err = ERROR_INIT;
        AUTO_JSON *doc = decode_kit_parse(rows[i].text);
        expect_int(rows[i].text, rows[i].says ? -1 : 0, decode_node(json_root(doc), &n, &err));
        expect_str(rows[i].text, rows[i].says ? rows[i].says : "", err.text);
        node_free(n);
    }
    expect_done();
}

/* ---- PodGroups, metadata -------------------------------------------------------------------- */

static void test_pod_groups(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"3", "podgroup: must be an object, not number"},
        {"{'metadata':{'name':'g'}}", "podgroup /g: metadata: name or namespace missing"},
        {"{'metadata':{'name':'g','namespace':'ns'},'spec':3}",
         "podgroup ns/g: spec: must be an object, not number"},
        {"{'metadata':{'name':'g','namespace':'ns'},'spec':{'minMember':-1}}",
         "podgroup ns/g: spec.minMember: must be between 0 and 2147483647: -1"},
        {"{'metadata':{'name':'g','namespace':'ns'},'spec':{'minResources':{'cpu':'x'}}}",
         "podgroup ns/g: spec.minResources: resource cpu: not a quantity: 'x'"},
        {"{'metadata':{'name':'g','namespace':'ns'},'spec':{'schedulingPolicy':[]}}",
         "podgroup ns/g: spec.schedulingPolicy: must be an object, not array"},
        {"{'metadata':{'name':'g','namespace':'ns'},'spec':{'schedulingPolicy':{'gang':3}}}",
         "podgroup ns/g: spec.schedulingPolicy.gang: must be an object, not number"},
        {"{'metadata':{'name':'g','namespace':'ns'},'spec':{'schedulingPolicy':{'gang':{'minCount':-1}}}}",
         "podgroup ns/g: spec.schedulingPolicy.gang.minCount: must be between 0 and 2147483647: -1"},
        {"{'metadata':{'name':'g','namespace':'ns'},'status':{'phase':3}}",
         "podgroup ns/g: status.phase: must be a string without NUL, not number"},
    };
    struct error err = ERROR_INIT;
    struct pod_group *g = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO_JSON *bad = decode_kit_parse(rows[i].text);
        expect_int(rows[i].text, -1, decode_pod_group(json_root(bad), &g, &err));
        expect_str(rows[i].text, rows[i].says, err.text);
    }
    AUTO_JSON *doc = decode_kit_parse(
        "{'apiVersion':'scheduling.x-k8s.io/v1alpha1','metadata':{'name':'g','namespace':'ns','uid':'u','resourceVersion':'1'},"
        "'spec':{'minMember':3,'scheduleTimeoutSeconds':30,'minResources':{'cpu':'1500u'}},'status':{'phase':'Running',"
        "'scheduled':4,'running':3,'succeeded':1,'failed':'many','scheduleStartTime':'1970-01-01T00:00:02Z'}}");
    assert_int_equal(0, decode_pod_group(json_root(doc), &g, &err));
    expect_str("key", "ns/g", g->key);
    expect_int("x group", POD_GROUP_X, g->api);
    expect_int("min", 3, g->min_member);
    expect_int("timeout", 30, g->schedule_timeout_s);
    expect_int("rounds up", 2, g->min_resources.cpu_milli);
    expect_str("phase", "Running", g->phase);
    expect_int("scheduled", 4, g->scheduled);
    expect_int("running", 3, g->running);
    expect_int("succeeded", 1, g->succeeded);
    expect_int("what is no number is written again", -1, g->failed);
    expect_int("start", 2000000000, g->schedule_start_ns);
    pod_group_free(g);
    AUTO_JSON *small = decode_kit_parse(
        "{'apiVersion':'scheduling.sigs.k8s.io/v1alpha1','metadata':{'name':'g','namespace':'ns'}}");
    assert_int_equal(0, decode_pod_group(json_root(small), &g, &err));
    expect_int("the other group", POD_GROUP_SIGS, g->api);
    expect_int("timeout by default", 60, g->schedule_timeout_s);
    expect_str("no phase", "", g->phase);
    expect_int("no count", -1, g->scheduled);
    expect_int("no start", 0, g->schedule_start_ns);
    expect_str("no list", NULL, g->list);
    expect_str("no policy", NULL, g->match);
    pod_group_free(g);
    AUTO_JSON *native = decode_kit_parse(
        "{'apiVersion':'scheduling.k8s.io/v1alpha2','metadata':{'name':'g','namespace':'ns','annotations':{"
        "'gang.scheduling.koordinator.sh/groups':'[]','pod-group.scheduling.sigs.k8s.io/match-policy':'only-waiting'}},"
        "'spec':{'schedulingPolicy':{'gang':{'minCount':4}}}}");
    assert_int_equal(0, decode_pod_group(json_root(native), &g, &err));
    expect_int("Kubernetes' own", POD_GROUP_NATIVE, g->api);
    expect_int("its number", 4, g->min_member);
    expect_str("its list, as it stands there", "[]", g->list);
    expect_str("its policy", "only-waiting", g->match);
    pod_group_free(g);
    AUTO_JSON *basic = decode_kit_parse(
        "{'metadata':{'name':'g','namespace':'ns'},'spec':{'schedulingPolicy':{'basic':{}}}}");
    assert_int_equal(0, decode_pod_group(json_root(basic), &g, &err));
    expect_int("no gang: each may go alone", 1, g->min_member);
    pod_group_free(g);
    expect_done();
}

static void test_meta(void **state)
{
    (void)state;
    struct object_meta m;
    AUTO_JSON *doc = decode_kit_parse(
        "{'metadata':{'name':'a','namespace':'ns','uid':'u','resourceVersion':'9'}}");
    decode_meta(json_root(doc), &m);
    assert_string_equal("a", m.name);
    assert_string_equal("ns", m.ns);
    assert_string_equal("u", m.uid);
    assert_string_equal("9", m.resource_version);
    decode_meta(NULL, &m);
    assert_string_equal("", m.name);
    assert_string_equal("", m.resource_version);
}

static void test_container_ids(void **state)
{
    (void)state;
    AUTO_JSON *doc = decode_kit_parse(
        "{'metadata':{'name':'a','namespace':'ns'},'spec':{'containers':[{'name':'c'},{'name':'d'}],'initContainers':[{'name':'i'},{'name':'k'}]},"
        "'status':{'containerStatuses':[{'name':'x','containerID':'o://9'},{'name':'d','containerID':'o://1','state':{'running':{}}},"
        "{'name':'c','containerID':'','state':{'running':{}}}],'initContainerStatuses':[{'name':'i','containerID':'o://2','state':{'running':{}}},"
        "{'name':'k','containerID':'o://3','state':{'terminated':{}}}]}}");
    struct pod *p;
    assert_int_equal(0, decode_pod(json_root(doc), &p, NULL));
    decode_container_ids(json_root(doc), p);
    expect_true("an empty one is none", p->containers[0].id == NULL);
    expect_str("out of order", "o://1", p->containers[1].id);
    expect_str("of an init container", "o://2", p->init_containers[0].id);
    expect_true("one that has ended", p->init_containers[1].id == NULL);
    pod_free(p);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_pod),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_bad_pods),
        cmocka_unit_test(test_bad_values),
        cmocka_unit_test(test_beside_bad_values),
        cmocka_unit_test(test_what_remains),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_node),
        cmocka_unit_test(test_bad_nodes),
        cmocka_unit_test(test_pod_groups),
        cmocka_unit_test(test_meta),
        cmocka_unit_test(test_container_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
