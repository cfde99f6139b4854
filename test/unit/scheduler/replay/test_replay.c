// SPDX-License-Identifier: Apache-2.0
/*
 * replay: what is read from files, what the controllers would make of a manifest, and that
 * explaining changes nothing. What is printed is test/scenario's.
 */
#include "test/unit/lib/base/expect.h"
#include "test/unit/lib/base/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/replay/replay_add.h"
#include "scheduler/replay/replay_explain.h"
#include "scheduler/replay/replay_load.h"
#include "scheduler/replay/replay_run.h"
#include "test/unit/scheduler/fixture.h"

struct rig {
    struct cluster cluster;
    struct replay_run run;
    struct replay_load load;
    struct replay_add add;
    struct strbuf warnings;
    char folder[SCRATCH_PATH];
    char path[SCRATCH_PATH + 32];
};

static void note(void *arg, const char *text)
{
    struct rig *r = arg;
    strbuf_addf(&r->warnings, "%s\n", text);
}

static void rig_init(struct rig *r)
{
    *r = (struct rig){0};
    scratch_folder(r->folder, "replay");
    cluster_init(&r->cluster, NAME_SCHEDULER);
    replay_run_init(&r->run, &r->cluster);
    replay_load_init(&r->load, &r->cluster, &r->run.hooks);
    replay_add_init(&r->add, &r->load);
    r->load.warn = note;
    r->load.arg = r;
}

static void rig_deinit(struct rig *r)
{
    if (r->path[0] != '\0')
        (void)unlink(r->path);
    (void)rmdir(r->folder);
    strbuf_deinit(&r->warnings);
    replay_add_deinit(&r->add);
    replay_run_deinit(&r->run);
    cluster_deinit(&r->cluster);
    replay_load_deinit(&r->load);
}

static const char *file(struct rig *r, const char *name, const char *text)
{
    if (r->path[0] != '\0')
        (void)unlink(r->path);
    (void)str_format(r->path, sizeof r->path, "%s/%s", r->folder, name);
    FILE *f = fopen(r->path, "we");
    expect_true("a file", f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
    return r->path;
}

/* The text without the folder's name. */
static const char *local(const struct rig *r, char *text)
{
    char *at;
    size_t n = strlen(r->folder) + 1;
    while ((at = strstr(text, r->folder)) != NULL)
        memmove(at, at + n, strlen(at + n) + 1);
    return text;
}

/* ---- files ---- */

static void files_are_read_or_refused_in_a_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *row, *name, *text;
        size_t objects, max;
        const char *error, *warnings;
    } rows[] = {
        {.row = "JSON by its name",
         .name = "a.json",
         .text = "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"}}",
         .objects = 1},
        {.row = "JSON by its first character",
         .name = "a",
         .text = "\n {\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"}}",
         .objects = 1},
        {.row = "YAML by its name, in braces",
         .name = "a.yaml",
         .text = "{kind: Node, metadata: {name: n1}}",
         .objects = 1},
        {.row = "two documents",
         .name = "a.yml",
         .text = "kind: Node\nmetadata: {name: n1}\n---\nkind: Node\nmetadata: {name: m}\n",
         .objects = 2},
        {.row = "as large as may be",
         .name = "a.json",
         .text = "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"}}",
         .objects = 1,
         .max = 40},
        {.row = "larger",
         .name = "a.json",
         .text = "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"}}",
         .max = 39,
         .error = "a.json: larger than 39 bytes (--max-input)"},
        {.row = "nothing", .name = "a.yaml", .text = "# nothing\n", .error = "a.yaml: is empty"},
        {.row = "not JSON",
         .name = "a.json",
         .text = "{]",
         .error =
             "a.json: not JSON: byte 1: unexpected character, expected a string for object key"},
        {.row = "the second document is no object",
         .name = "a.yaml",
         .text = "kind: Node\nmetadata: {name: n1}\n---\n5\n",
         .objects = 1,
         .warnings = "a.yaml: document 2: must be an object, not number\n"},
        {.row = "a List without items",
         .name = "a.json",
         .text = "{\"kind\":\"List\"}",
         .warnings = "a.json: items: must be a list, not nothing\n"},
        {.row = "an empty list", .name = "a.json", .text = "{\"kind\":\"PodList\",\"items\":null}"},
        {.row = "a list in a list is not looked into",
         .name = "a.json",
         .text =
             "{\"kind\":\"List\",\"items\":[{\"kind\":\"List\",\"items\":[{\"kind\":\"Node\"}]}]}"},
        {.row = "a field of the wrong kind",
         .name = "a.json",
         .text =
             "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"},\"spec\":{\"priority\":\"high\"}}",
         .objects = 1,
         .warnings = "a.json: pod default/p: spec.priority: must be an integer\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rig r;
        struct error err = ERROR_INIT;
        rig_init(&r);
        if (rows[i].max > 0)
            r.load.documents.max_bytes = rows[i].max;
        int rc = replay_load_file(&r.load, file(&r, rows[i].name, rows[i].text), &err);
        expect_int(rows[i].row, rows[i].error != NULL ? -1 : 0, rc);
        expect_str(rows[i].row, str_or_empty(rows[i].error), local(&r, err.text));
        strbuf_addc(&r.warnings, '\0');
        expect_str(rows[i].row, str_or_empty(rows[i].warnings), local(&r, r.warnings.ptr));
        expect_int(rows[i].row, (int64_t)rows[i].objects, (int64_t)r.load.objects);
        rig_deinit(&r);
    }
    expect_done();
}

static void what_the_api_server_fills_in_is_filled_in(void **state)
{
    (void)state;
    struct rig r;
    struct error err = ERROR_INIT;
    rig_init(&r);
    r.load.ns = "team";
    expect_int(
        "loaded", 0,
        replay_load_file(
            &r.load,
            file(&r, "a.yaml",
                 "{kind: PriorityClass, metadata: {name: high}, value: 7}\n---\n"
                 "{kind: PriorityClass, metadata: {name: usual}, value: 3, globalDefault: "
                 "true}\n---\n"
                 "{kind: Node, metadata: {name: n1}, status: {capacity: {cpu: 4, pods: 5}}}\n---\n"
                 "{kind: Pod, metadata: {name: a}, spec: {priorityClassName: high, containers: "
                 "[{name: c, resources: "
                 "{limits: {cpu: 2, memory: 1Gi, x.y/z: 3}, requests: {cpu: 1}}}]}}\n---\n"
                 "{kind: Pod, metadata: {name: b}, spec: {priority: 1, priorityClassName: "
                 "high}}\n---\n"
                 "{kind: Pod, metadata: {name: c}}\n---\n"
                 "{kind: Pod, metadata: {name: d}, spec: {priorityClassName: "
                 "system-node-critical}}\n---\n"
                 "{kind: Pod, metadata: {name: e}, spec: {priorityClassName: what}}\n---\n"
                 "{kind: Pod, metadata: {name: f}, spec: {priorityClassName: what}}\n"),
            &err));
    const struct cluster_node *n = cluster_find_node(&r.cluster, "n1");
    expect_int("allocatable from capacity", 4000, n->allocatable.cpu_milli);
    const struct pod *a = cluster_find_pod(&r.cluster, "team/a")->pod;
    expect_int("a request that is given stays", 1000, a->request.cpu_milli);
    expect_int("memory from the limit", INT64_C(1) << 30, a->request.memory_bytes);
    expect_int("an extended resource too", 3, resources_get(&a->request, "x.y/z", NULL));
    static const struct {
        const char *pod;
        int32_t priority;
    } rows[] = {{"team/a", 7},          {"team/b", 1}, {"team/c", 3},
                {"team/d", 2000001000}, {"team/e", 3}, {"team/f", 3}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_int(rows[i].pod, rows[i].priority,
                   cluster_find_pod(&r.cluster, rows[i].pod)->pod->priority);
    expect_str("an unknown class is told once",
               "team/e: spec.priorityClassName: the input has no PriorityClass what; priority 3 is "
               "taken\n",
               strbuf_str(&r.warnings));
    rig_deinit(&r);
    expect_done();
}

/* ---- --add ---- */

#define TEMPLATE "template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c}]}}"

static void manifests_become_the_pods_that_their_controllers_make(void **state)
{
    (void)state;
    static const struct {
        const char *row, *text;
        const char *pods;  /* keys, each with the labels beyond the template's own */
        const char *error; /* or */
    } rows[] = {
        {"a pod", "{kind: Pod, metadata: {name: p}, spec: {containers: [{name: c}]}}", "default/p",
         NULL},
        {"a Deployment",
         "{kind: Deployment, metadata: {name: d, namespace: ns}, spec: {replicas: 2, " TEMPLATE
         "}}",
         "ns/d-0 pod-template-hash ns/d-1 pod-template-hash", NULL},
        {"one replica when none are named",
         "{kind: ReplicaSet, metadata: {name: r}, spec: {" TEMPLATE "}}", "default/r-0", NULL},
        {"a StatefulSet", "{kind: StatefulSet, metadata: {name: s}, spec: {" TEMPLATE "}}",
         "default/s-0 apps.kubernetes.io/pod-index=0 statefulset.kubernetes.io/pod-name=s-0", NULL},
        {"a Job runs as many as are left",
         "{kind: Job, metadata: {name: j}, spec: {parallelism: 5, completions: 1, " TEMPLATE "}}",
         "default/j-0 batch.kubernetes.io/job-name=j job-name=j", NULL},
        {"an indexed Job",
         "{kind: Job, metadata: {name: j}, spec: {completionMode: Indexed, " TEMPLATE "}}",
         "default/j-0 batch.kubernetes.io/job-completion-index=0 batch.kubernetes.io/job-name=j "
         "job-name=j",
         NULL},
        {"a PyTorchJob",
         "{kind: PyTorchJob, metadata: {name: t}, spec: {pytorchReplicaSpecs: {Master: {" TEMPLATE
         "}, Worker: {replicas: 2, " TEMPLATE "}}}}",
         "default/t-master-0 default/t-worker-0 default/t-worker-1", NULL},
        {"a List",
         "{kind: List, items: [{kind: Pod, metadata: {name: p}, spec: {containers: [{name: c}]}}]}",
         "default/p", NULL},
        {"no replicas",
         "{kind: Deployment, metadata: {name: d}, spec: {replicas: 0, " TEMPLATE "}}", NULL,
         "neither a Pod nor a kind that makes some (0 replicas?)"},
        {"too many",
         "{kind: Deployment, metadata: {name: d}, spec: {replicas: 100001, " TEMPLATE "}}", NULL,
         "a.yaml: Deployment d: 100001 pods: more than 100000 are not tried"},
        {"replicas of the wrong kind",
         "{kind: Deployment, metadata: {name: d}, spec: {replicas: -1, " TEMPLATE "}}", NULL,
         "a.yaml: Deployment d: spec.replicas: must be an integer of 0 or more"},
        {"no template", "{kind: Job, metadata: {name: j}, spec: {}}", NULL,
         "a.yaml: Job j: spec.template.spec: missing"},
        {"no name", "{kind: Pod, spec: {}}", NULL, "a.yaml: Pod: metadata.name: missing"},
        {"no containers", "{kind: Pod, metadata: {name: p}}", NULL,
         "a.yaml: pod default/p: spec.containers: missing"},
        {"a node is given",
         "{kind: Pod, metadata: {name: p}, spec: {nodeName: n1, containers: [{name: c}]}}", NULL,
         "a.yaml: pod default/p: spec.nodeName is set: nothing is left to decide"},
        {"it is there already",
         "{kind: Pod, metadata: {name: there}, spec: {containers: [{name: c}]}}", NULL,
         "a.yaml: pod default/there: exists already in the input"},
        {"not an object", "5", NULL, "a.yaml: kind: missing: not a Kubernetes object"},
        {"a PodGroup that cannot be read",
         "{kind: PodGroup, metadata: {name: g}, spec: {minMember: x}}", NULL,
         "a.yaml: kind PodGroup: see above"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rig r;
        struct error err = ERROR_INIT;
        AUTO_STRBUF got = {0};
        rig_init(&r);
        struct pod *there = POD(.name = "there", .created_s = 30);
        there->key = "default/there";
        r.load.latest_ns = there->created_ns;
        cluster_put_pod(&r.cluster, there, &r.run.hooks);
        int rc = replay_add_file(&r.add, file(&r, "a.yaml", rows[i].text), &err);
        if (rc == 0)
            rc = replay_add_finish(&r.add, &err);
        expect_int(rows[i].row, rows[i].error != NULL ? -1 : 0, rc);
        expect_str(rows[i].row, str_or_empty(rows[i].error), local(&r, err.text));
        const char *key;
        void *value;
        for (size_t k = 0; rc == 0 && map_next(&r.add.keys, &k, &key, &value);) {
            const struct pod *p = cluster_find_pod(&r.cluster, key)->pod;
            strbuf_addf(&got, "%s%s", got.len > 0 ? " " : "", key);
            for (size_t l = 0; l < p->labels.len; l++) {
                const struct label *label = &p->labels.items[l];
                if (str_eq(label->key, "pod-template-hash")) /* any, but one */
                    strbuf_addf(&got, " %s", label->key);
                else if (!str_eq(label->key, "app"))
                    strbuf_addf(&got, " %s=%s", label->key, label->value);
            }
            expect_str(rows[i].row, NAME_SCHEDULER, p->scheduler);
            expect_true("younger than all that is there", p->created_ns > there->created_ns);
        }
        expect_str(rows[i].row, str_or_empty(rows[i].pods), strbuf_str(&got));
        rig_deinit(&r);
    }
    expect_done();
}

/* ---- explain ---- */

static void explaining_changes_nothing(void **state)
{
    (void)state;
    static const char *const who[] = {"d/bound", "d/waiting", "d/placed", "d/other", "d/g0"};
    for (size_t i = 0; i < sizeof who / sizeof *who; i++) {
        uint64_t digest[2];
        for (int explained = 0; explained < 2; explained++) {
            struct rig r;
            struct replay_explain e;
            rig_init(&r);
            for (int n = 0; n < 3; n++)
                cluster_put_node(&r.cluster,
                                 NODE(.name = (const char *const[]){"n1", "n2", "n3"}[n]));
            const char *const *gang = PAIRS(NAME_LABEL_GANG_NAME, "g", NAME_LABEL_GANG_MIN, "2");
            cluster_put_pod(&r.cluster,
                            POD(.name = "bound", .node = "n1", .c = {{.cpu_milli = 3000}}),
                            &r.run.hooks);
            cluster_put_pod(&r.cluster, POD(.name = "waiting", .c = {{.cpu_milli = 9000}}),
                            &r.run.hooks);
            cluster_put_pod(&r.cluster, POD(.name = "placed", .c = {{.cpu_milli = 4000}}),
                            &r.run.hooks);
            cluster_put_pod(&r.cluster, POD(.name = "other", .scheduler = "x"), &r.run.hooks);
            cluster_put_pod(
                &r.cluster,
                POD(.name = "g0", .labels = gang, .c = {{.cpu_milli = 7000}}, .created_s = 5),
                &r.run.hooks);
            cluster_put_pod(
                &r.cluster,
                POD(.name = "g1", .labels = gang, .c = {{.cpu_milli = 7000}}, .created_s = 5),
                &r.run.hooks);
            replay_explain_init(&e, who[i]);
            if (explained)
                expect_true(who[i], replay_explain_prepare(&e, &r.run.pipeline, &r.run.hooks));
            replay_run_all(&r.run);
            if (explained) {
                const struct cluster_pod *cp = cluster_find_pod(&r.cluster, who[i]);
                if (cp->gang != NULL && cp->state == CLUSTER_ASSUMED)
                    replay_explain_placed(&e, &r.run.pipeline, cp->gang);
                replay_explain_waiting(&e, &r.run.pipeline);
                expect_int(who[i], 3, (int64_t)e.nodes.len);
            }
            digest[explained] = cluster_digest(&r.cluster);
            replay_explain_deinit(&e);
            rig_deinit(&r);
        }
        expect_true(who[i], digest[0] == digest[1]);
    }
    expect_done();
}

/* Of one node, without the tally around it. */
static void a_reason_is_said_of_one_node(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        struct fixture_pod pod;
        const char *says;
    } rows[] = {
        {"too large",
         {.name = "p", .c = {{.cpu_milli = 9000}}},
         "has too little cpu even when empty (asked: 9, has: 8)"},
        {"something is wrong with the pod itself",
         {.name = "p",
          .spec = "\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"c\"}}]"},
         "claim d/c does not exist"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rig r;
        struct replay_explain e;
        rig_init(&r);
        cluster_put_node(&r.cluster, NODE(.name = "n1"));
        cluster_put_pod(&r.cluster, fixture_make_pod(&rows[i].pod), &r.run.hooks);
        replay_explain_init(&e, "d/p");
        expect_true(rows[i].row, replay_explain_prepare(&e, &r.run.pipeline, &r.run.hooks));
        replay_run_all(&r.run);
        replay_explain_waiting(&e, &r.run.pipeline);
        expect_str(rows[i].row, rows[i].says, e.nodes.len == 1 ? e.nodes.items[0].no : NULL);
        replay_explain_deinit(&e);
        rig_deinit(&r);
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_read_or_refused_in_a_sentence),
        cmocka_unit_test(what_the_api_server_fills_in_is_filled_in),
        cmocka_unit_test(manifests_become_the_pods_that_their_controllers_make),
        cmocka_unit_test(explaining_changes_nothing),
        cmocka_unit_test(a_reason_is_said_of_one_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
