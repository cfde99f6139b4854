// SPDX-License-Identifier: Apache-2.0
/*
 * doctor finds each fault that is planted into a healthy cluster (doctor.json), that fault alone,
 * and nothing in the healthy one.
 */
#include "kubectl/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/yaml.h"
#include "lib/kube/decode.h"
#include "test/unit/lib/base/expect.h"

enum { OBJECTS_MAX = 8 };

static struct strbuf healthy;

static void read_file(const char *path, struct strbuf *out)
{
    char piece[4096];
    size_t n;
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    while ((n = fread(piece, 1, sizeof piece, f)) > 0)
        strbuf_add(out, piece, n);
    assert_int_equal(0, fclose(f));
}

static int setup(void **state)
{
    (void)state;
    read_file("test/unit/kubectl/doctor.json", &healthy);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    strbuf_deinit(&healthy);
    return 0;
}

/* The cluster with the first `from` behind `after` replaced. */
static void plant(struct strbuf *out, const char *name, const char *after, const char *from,
                  const char *to)
{
    const char *begin = strstr(strbuf_str(&healthy), after);
    const char *at = begin != NULL ? strstr(begin, from) : NULL;
    if (at == NULL)
        fail_msg("%s: the healthy cluster has no '%s' after '%s'", name, from, after);
    strbuf_add(out, strbuf_str(&healthy), (size_t)(at - strbuf_str(&healthy)));
    strbuf_adds(out, to);
    strbuf_adds(out, at + strlen(from));
}

struct examined {
    struct json_doc *doc;
    struct node *nodes[OBJECTS_MAX];
    struct pod *pods[OBJECTS_MAX];
    size_t nodes_len, pods_len;
    struct arena arena;
    struct view view;
    struct doctor doctor;
};

static void examine(struct examined *e, const char *name, const struct strbuf *text)
{
    struct error err = ERROR_INIT;
    *e = (struct examined){0};
    arena_init(&e->arena, 0);
    if (json_parse(&e->doc, strbuf_str(text), text->len, &err) < 0)
        fail_msg("%s: %s", name, err.text);
    json *root = json_root(e->doc);
    for (struct json_iter it = json_iter(json_get(root, "nodes")); json_next(&it);)
        if (decode_node(it.value, &e->nodes[e->nodes_len++], &err) < 0)
            fail_msg("%s: %s", name, err.text);
    for (struct json_iter it = json_iter(json_get(root, "pods")); json_next(&it);)
        if (decode_pod(it.value, &e->pods[e->pods_len++], &err) < 0)
            fail_msg("%s: %s", name, err.text);
    view_build(&e->view, e->nodes, e->nodes_len, e->pods, e->pods_len, &e->arena);
    e->doctor =
        (struct doctor){.facts = json_get(root, "facts"), .view = &e->view, .arena = &e->arena};
    doctor_examine(&e->doctor);
}

static void release(struct examined *e)
{
    for (size_t i = 0; i < e->nodes_len; i++)
        node_free(e->nodes[i]);
    for (size_t i = 0; i < e->pods_len; i++)
        pod_free(e->pods[i]);
    vec_deinit(&e->doctor.findings);
    arena_deinit(&e->arena);
    json_free(e->doc);
}

static void healthy_has_no_finding(void **state)
{
    (void)state;
    struct examined e;
    AUTO_STRBUF out = {0};
    examine(&e, "healthy", &healthy);
    doctor_print(&e.doctor, &out);
    assert_string_equal("0 findings; checked 3 nodes, 4 cards and 2 pods that hold some\n",
                        strbuf_str(&out));
    release(&e);
}

static const struct {
    const char *name, *after, *from, *to;
    const char *what; /* begins so; NULL: no finding */
    size_t findings;
} faults[] = {
    {"a Kubernetes without admission policies", "version", "\"36\"", "\"29+\"",
     "Kubernetes 1.29+: admission policies need 1.30", 1},
    {"the first Kubernetes with them", "version", "\"36\"", "\"30\"", NULL, 0},
    {"no scheduler", "deployments", "\"app.kubernetes.io/name\": \"cosched-scheduler\"",
     "\"app.kubernetes.io/name\": \"x\"", "cosched-scheduler: is not installed: no pod is placed",
     1},
    {"a scheduler of which one replica is down", "deployments", "\"readyReplicas\": 2",
     "\"readyReplicas\": 1", "cosched-scheduler: 1 of 2 replicas are Ready", 1},
    {"a scheduler that is down", "deployments", "\"readyReplicas\": 2", "\"readyReplicas\": 0",
     "cosched-scheduler: 0 of 2 replicas are Ready: no pod is placed", 1},
    {"a webhook that is down", "cosched-webhook", "\"readyReplicas\": 2", "\"readyReplicas\": 0",
     "cosched-webhook: 0 of 2 replicas are Ready: no pod is checked", 1},
    {"a plugin that is not on every node", "daemonsets", "\"numberReady\": 3", "\"numberReady\": 2",
     "cosched-device-plugin: is Ready on 2 of 3 nodes", 1},
    {"no plugin", "daemonsets", "\"app.kubernetes.io/name\": \"cosched-device-plugin\"",
     "\"app.kubernetes.io/name\": \"x\"", "cosched-device-plugin: is not installed", 1},
    {"programs of different versions", "daemonsets", "plugin:0.1.0", "plugin:0.2.0",
     "versions differ: scheduler 0.1.0, webhook 0.1.0, device plugin 0.2.0", 1},
    {"no custom resource of gangs", "crds",
     "\"podgroups.scheduling.sigs.k8s.io\",\n   \"podgroups.scheduling.x-k8s.io\",", "",
     "PodGroup: neither custom resource is there", 1},
    {"one of the two custom resources of gangs", "crds", "\"podgroups.scheduling.sigs.k8s.io\",",
     "", NULL, 0},
    {"no custom resource of policies", "crds",
     ",\n   \"resourcepolicies.scheduling.alibabacloud.com\"", "",
     "ResourcePolicy: the custom resource is not there", 1},
    {"a scheduler that is scaled to nothing", "deployments", "\"replicas\": 2", "\"replicas\": 0",
     "cosched-scheduler: is scaled to 0: no pod is placed", 1},
    {"a webhook that gives pods to another scheduler", "cosched-webhook:", "=ack-co-scheduler",
     "=other", "the webhook gives pods schedulerName other, the scheduler places those with ack",
     1},
    {"nobody leads", "lease", "\"one\"", "\"\"", "cosched-scheduler: no replica holds the Lease",
     1},
    {"a leader that is silent for just as long as the Lease lasts", "lease", "Seconds\": 1,",
     "Seconds\": 15,", NULL, 0},
    {"a leader that is silent for longer", "lease", "Seconds\": 1,", "Seconds\": 16,",
     "cosched-scheduler: one holds the Lease and was last heard of 16 s ago", 1},
    {"a right that is missing", "pods/binding", "true", "false",
     "system:serviceaccount:cosched-system:cosched-scheduler may not create pods/binding", 1},
    {"rights that are missing", "\"rights\"",
     "true\n   },\n   {\n    \"account\": \"system:serviceaccount"
     ":cosched-system:cosched-scheduler\",\n    \"verb\": \"create\",\n    \"resource\": "
     "\"pods/binding\",\n    \"allowed\": true",
     "false\n   },\n   {\n    \"account\": \"system:"
     "serviceaccount:cosched-system:cosched-scheduler\",\n    \"verb\": \"create\",\n    "
     "\"resource\": \"pods/binding\",\n    \"allowed\": false",
     "system:serviceaccount:cosched-system:cosched-scheduler may not list pods, create pods/binding",
     1},
    {"no webhook configuration", "facts", "\"mutating\"", "\"other\"",
     "MutatingWebhookConfiguration cosched-webhook: is not there", 1},
    {"a webhook without caBundle", "mutating", "Q0E=", "",
     "mutating webhook pods.cosched.io: no caBundle", 1},
    {"a validating webhook without caBundle", "validating", "Q0E=", "",
     "validating webhook pods.cosched.io: no caBundle", 1},
    {"another CA in a configuration than the webhook's", "mutating",
     "Q0E=", "b3RoZXI=", "mutating webhook pods.cosched.io: caBundle is not the CA that signed", 1},
    {"a certificate that has ended", "certificate", "6000000", "-60",
     "cosched-webhook: its certificate ended 60 s ago", 1},
    {"a certificate that should have been renewed", "certificate", "6000000", "1943999",
     "cosched-webhook: its certificate ends in 1943999 s and was not renewed", 1},
    {"a certificate that will be renewed in time", "certificate", "6000000", "1944000", NULL, 0},
    {"a webhook that the API server does not reach", "probe", "true", "false",
     "cosched-webhook: does not answer the API server", 1},
    {"no policy for result keys", "policies", "\"cosched-result-keys\"", "\"x\"",
     "admission policy cosched-result-keys: is not there", 1},
    {"a policy that is not bound", "policyBindings", "\"cosched-plugin-nodes\"", "\"x\"",
     "admission policy cosched-plugin-nodes: is not bound", 1},
    {"a mode that does not exist", "\"name\": \"shared\"", "\"share\"", "\"shares\"",
     "node shared: label ack.node.gpu.schedule=shares: there is no such mode", 1},
    {"a label that the plugin did not follow", "\"name\": \"shared\"", "\"share\"", "\"mps\"",
     "node shared: label ack.node.gpu.schedule=mps, but the node is in mode share", 1},
    {"a label on a node without a plugin", "\"name\": \"plain\"", "\"labels\": {}",
     "\"labels\": {\"ack.node.gpu.schedule\":\"share\"}",
     "node plain: label ack.node.gpu.schedule=share, but no device plugin has published", 1},
    {"a switch that waits", "\"name\": \"shared\"", "\\\"switchingTo\\\":null",
     "\\\"switchingTo\\\":\\\"mps\\\"", "node shared: the switch from mode share to mps waits", 1},
    {"an inventory that cannot be read", "\"name\": \"links\"", "\\\"v\\\":1", "\\\"v\\\":9",
     "node links: annotation cosched.io/gpu-inventory:", 1},
    {"a sick card, of which the kubelet does not know yet", "\"name\": \"links\"", "\\\"ok\\\"",
     "\\\"sick\\\"", "node links: GPU2 (GPU-2) is unhealthy", 2},
    {"less memory offered than the cards have", "\"name\": \"shared\"", "\"30\"", "\"29\"",
     "node shared: offers aliyun.com/gpu-mem 29, but its cards have 30", 1},
    {"no memory offered", "\"name\": \"shared\"", "\"30\"", "\"0\"",
     "node shared: offers aliyun.com/gpu-mem 0, but its cards have 30", 1},
    {"another plugin on a shared node", "\"name\": \"shared\"", "\"nvidia.com/gpu\": \"0\"",
     "\"nvidia.com/gpu\": \"2\"", "node shared: another plugin offers nvidia.com/gpu", 1},
    {"a number of cards that nobody wrote", "\"name\": \"shared\"",
     "\"aliyun.com/gpu-count\": \"2\"", "\"aliyun.com/gpu-count\": \"0\"",
     "node shared: says aliyun.com/gpu-count 0, but has 2 cards", 1},
    {"a label that says another number of cards", "\"name\": \"shared\"", "nvidia_count\": \"2\"",
     "nvidia_count\": \"4\"", "node shared: label aliyun.accelerator/nvidia_count=4, but has 2", 1},
    {"percents that are not offered", "\"name\": \"shared\"",
     "\"share\",\n     \"aliyun.accelerator/nvidia_count\": \"2\"\n    },\n    \"annotations\": {\n     "
     "\"cosched.io/cpu-topology\": \"{}\",\n     \"cosched.io/gpu-inventory\": "
     "\"{\\\"v\\\":1,\\\"mode\\\":\\\"share\\\"",
     "\"core_mem\"\n    },\n    \"annotations\": {\n     \"cosched.io/gpu-inventory\": "
     "\"{\\\"v\\\":1,\\\"mode\\\":\\\"core_mem\\\"",
     "node shared: offers aliyun.com/gpu-core.percentage 0, but 2 cards that are well have 200", 1},
    {"a kubelet that pins by itself", "kubelets", "\"none\"", "\"static\"",
     "node shared: the kubelet's cpuManagerPolicy is static", 1},
    {"a claim on a card that does not exist", "\"name\": \"two\"", "\\\"1\\\":8", "\\\"7\\\":8",
     "pod d/two on node shared: its grant is not valid:", 1},
    {"a claim that is less than the request", "\"name\": \"two\"", "\\\"1\\\":8", "\\\"1\\\":7",
     "pod d/two on node shared: its grant is not valid:", 1},
    {"a pod without a claim", "\"name\": \"two\"", "scheduler.framework.gpushare.allocation",
     "other", "pod d/two on node shared: asks for 8 GiB and has no grant", 1},
    {"two pods on a card that is too small for both", "\"name\": \"two\"", "\\\"1\\\":8",
     "\\\"0\\\":8", "node shared: GPU0 is promised beyond its size: 16 of 15 GiB", 1},
    {"a claim on a node that is gone", "\"name\": \"two\"", "\"nodeName\": \"shared\"",
     "\"nodeName\": \"zombie\"", "pod d/two: holds cards of node zombie, which does not exist", 1},
    {"a claim on a node that is gone, by name before all others", "\"name\": \"two\"",
     "\"nodeName\": \"shared\"", "\"nodeName\": \"a\"", "pod d/two: holds cards of node a,", 1},
    {"an edited claim", "\"name\": \"one\"", "\\\"0\\\":8}}\",", "\\\"1\\\":8}}\",",
     "pod d/one on node shared: its annotation says", 2},
};

static void faults_are_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct examined e;
        AUTO_STRBUF text = {0}, out = {0};
        plant(&text, faults[i].name, faults[i].after, faults[i].from, faults[i].to);
        examine(&e, faults[i].name, &text);
        doctor_print(&e.doctor, &out);
        bool found = false;
        for (size_t k = 0; k < e.doctor.findings.len; k++)
            found = found || (faults[i].what != NULL &&
                              str_starts(e.doctor.findings.items[k].what, faults[i].what));
        for (size_t k = 0; k < e.doctor.findings.len; k++)
            assert_int_not_equal(0, strlen(e.doctor.findings.items[k].advice));
        if (e.doctor.findings.len != faults[i].findings || found != (faults[i].what != NULL))
            fail_msg("%s: expected '%s', got:\n%s", faults[i].name, faults[i].what,
                     strbuf_str(&out));
        release(&e);
    }
}

/* Programs outside the cluster are recognised by their effects; without any they are missing. */
static void programs_outside_the_cluster_are_no_fault(void **state)
{
    (void)state;
    static const struct {
        const char *name, *after, *from, *to, *what;
    } cases[] = {
        {"all work", "lease", "\"one\"", "\"one\"", NULL},
        {"a scheduler that is silent", "lease", "Seconds\": 1,", "Seconds\": 16,",
         "cosched-scheduler: is not installed"},
        {"a webhook that does not answer", "probe", "true", "false",
         "cosched-webhook: is not installed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct examined e;
        AUTO_STRBUF text = {0}, out = {0}, before = {0};
        strbuf_adds(&before, strbuf_str(&healthy));
        for (size_t k = 0; k < 2; k++) {
            AUTO_STRBUF without = {0};
            plant(&without, cases[i].name, "facts", k == 0 ? "\"deployments\"" : "\"daemonsets\"",
                  "\"others\"");
            strbuf_reset(&healthy);
            strbuf_adds(&healthy, strbuf_str(&without));
        }
        plant(&text, cases[i].name, cases[i].after, cases[i].from, cases[i].to);
        strbuf_reset(&healthy);
        strbuf_adds(&healthy, strbuf_str(&before));
        examine(&e, cases[i].name, &text);
        doctor_print(&e.doctor, &out);
        if (e.doctor.findings.len != (cases[i].what != NULL) ||
            (cases[i].what != NULL && !str_starts(e.doctor.findings.items[0].what, cases[i].what)))
            fail_msg("%s: expected '%s', got:\n%s", cases[i].name, cases[i].what, strbuf_str(&out));
        release(&e);
    }
}

/* What may not be read is listed and leads to no finding. */
static void what_was_not_asked_is_no_fault(void **state)
{
    (void)state;
    struct examined e;
    AUTO_STRBUF text = {0}, out = {0};
    plant(&text, "unasked", "unasked", "[]", "[\"deployments\",\"lease\",\"mutating\",\"crds\"]");
    examine(&e, "unasked", &text);
    doctor_print(&e.doctor, &out);
    if (e.doctor.findings.len > 0 ||
        !str_starts(strbuf_str(&out), "not checked: deployments\nnot checked: lease\n"))
        fail_msg("got:\n%s", strbuf_str(&out));
    release(&e);
}

/* ---- the table of rights is what the chart grants ---- */

struct rights {
    char lines[256][160];
    size_t len;
};

static void note_right(struct rights *r, const char *program, const char *verb, const char *group,
                       const char *resource, bool named)
{
    assert_true(r->len < sizeof r->lines / sizeof r->lines[0]);
    assert_true(str_format(r->lines[r->len++], sizeof r->lines[0], "%s %s %s/%s%s", program, verb,
                           group, resource, named ? " by name" : ""));
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void read_role(struct rights *r, const char *program, json *role)
{
    for (struct json_iter rule = json_iter(json_get(role, "rules")); json_next(&rule);)
        for (struct json_iter g = json_iter(json_get(rule.value, "apiGroups")); json_next(&g);)
            for (struct json_iter o = json_iter(json_get(rule.value, "resources")); json_next(&o);)
                for (struct json_iter v = json_iter(json_get(rule.value, "verbs")); json_next(&v);)
                    note_right(r, program, json_str(v.value), json_str(g.value), json_str(o.value),
                               json_len(json_get(rule.value, "resourceNames")) > 0);
}

static void read_manifest(struct rights *r, const char *program)
{
    AUTO_STRBUF text = {0}, lines = {0};
    char path[64];
    struct error err = ERROR_INIT;
    assert_true(str_format(path, sizeof path, "deploy/manifests/%s.yaml", program));
    read_file(path, &text);
    if (yaml_to_json(strbuf_str(&text), text.len, (size_t)1 << 22, &lines, &err) < 0)
        fail_msg("%s: %s", path, err.text);
    for (const char *at = strbuf_str(&lines); *at != '\0';) {
        AUTO_JSON *doc = NULL;
        size_t n = strcspn(at, "\n");
        if (json_parse(&doc, at, n, &err) < 0)
            fail_msg("%s: %s", path, err.text);
        read_role(r, program, json_root(doc));
        at += n + strspn(at + n, "\n");
    }
}

static void rights_are_those_of_the_manifests(void **state)
{
    (void)state;
    static struct rights granted, asked;
    static const char *const programs[] = {"scheduler", "webhook", "device-plugin"};
    granted.len = asked.len = 0;
    for (size_t i = 0; i < 3; i++)
        read_manifest(&granted, programs[i]);
    for (size_t i = 0; i < doctor_rights_len; i++) {
        const struct doctor_right *r = &doctor_rights[i];
        AUTO_STRBUF resource = {0}, verb = {0};
        strbuf_addf(&resource, "%s%s%s", r->resource, r->sub != NULL ? "/" : "",
                    str_or_empty(r->sub));
        for (const char *at = r->verbs; *at != '\0'; at += strspn(at, " ")) {
            strbuf_reset(&verb);
            strbuf_add(&verb, at, strcspn(at, " "));
            note_right(&asked, r->program, strbuf_str(&verb), r->group, strbuf_str(&resource),
                       r->scope != DOCTOR_ANYWHERE && r->scope != DOCTOR_AT_HOME);
            at += strcspn(at, " ");
        }
    }
    assert_true(granted.len > 50);
    qsort(granted.lines, granted.len, sizeof granted.lines[0], by_text);
    qsort(asked.lines, asked.len, sizeof asked.lines[0], by_text);
    for (size_t i = 0; i < granted.len || i < asked.len; i++)
        assert_string_equal(i < granted.len ? granted.lines[i] : "(no more)",
                            i < asked.len ? asked.lines[i] : "(no more)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(healthy_has_no_finding),
        cmocka_unit_test(faults_are_found),
        cmocka_unit_test(programs_outside_the_cluster_are_no_fault),
        cmocka_unit_test(what_was_not_asked_is_no_fault),
        cmocka_unit_test(rights_are_those_of_the_manifests),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
