// SPDX-License-Identifier: Apache-2.0
#include "webhook/check.h"

#include "test/unit/lib/base/expect.h"

#include <glob.h>
#include <stdio.h>

#include "lib/base/str.h"
#include "lib/model/names.h"
#include "test/unit/lib/base/scratch.h"

static const struct rules_crd crds[] = {{.group = "kubeflow.org",
                                         .kind = "TFJob",
                                         .path = {"spec", "tfReplicaSpecs", "*", "template"},
                                         .path_len = 4}};
static const struct rules_config rules = {.scheduler = NAME_SCHEDULER, .crds = crds, .crds_len = 1};

#define GROUP                                                                                   \
    "apiVersion: scheduling.sigs.k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: g}\nspec: {" \
    "minMember: 3}\n"
#define JOB                                                                                        \
    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec:\n  parallelism: 2\n  template:\n" \
    "    metadata: {labels: {pod-group.scheduling.sigs.k8s.io: g}}\n    spec: {containers: []}\n"
#define POD "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  namespace: ns1\n"
#define HALF "spec: {containers: [{name: a, resources: {limits: {aliyun.com/gpu-mem: 5.5}}}]}\n"

#define PINNED                                       \
    "  annotations: {cpuset-scheduler: \"maybe\"}\n" \
    "spec: {containers: [{name: a}]}\n"

static void files_are_judged_as_the_cluster_would(void **state)
{
    (void)state;
    static const struct {
        const char *row, *text, *out;
        bool starts; /* the rest is the parser's */
        size_t objects, refused, warnings, errors;
    } rows[] = {
        {"nothing", "", "", false, 0, 0, 0, 0},
        {"a legal pod", POD "spec: {containers: []}\n", "", false, 1, 0, 0, 0},
        {"a pod with half a GiB", POD HALF,
         "F: Pod ns1/p: refused: spec.containers[0].resources.limits[aliyun.com/gpu-mem]: '5.5' is not a "
         "whole number of GiB; write 5 or 6\n",
         false, 1, 1, 0, 0},
        {"JSON",
         "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"x\",\"labels\":{\"ack.node.gpu.schedule\":\"x\"}}}",
         "F: Node x: refused: metadata.labels[ack.node.gpu.schedule]: 'x' is not a mode; "
         "write one of default, cgpu, core_mem, share, mps, topology\n",
         false, 1, 1, 0, 0},
        {"a Job before its PodGroup", JOB "---\n" GROUP,
         "F: Job default/j: warning: spec.template.metadata.labels[pod-group.scheduling.sigs.k8s.io]: "
         "3 pods must start together by minMember of PodGroup default/g, but spec.parallelism is 2; "
         "write at most 2, or raise it\n",
         false, 2, 0, 1, 0},
        {"a Job whose PodGroup is elsewhere", JOB, "", false, 1, 0, 0, 0},
        {"a label without quotes",
         "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {x: 2}}\nspec: {}\n",
         "F: Pod default/p: refused: metadata.labels[x]: '2' is not a string; write it in quotes\n",
         false, 1, 1, 0, 0},
        {"a List",
         "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"labels\":{\"x\":1}},\"spec\":{}},"
         "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\"}}]}",
         "F: Pod default/p: refused: metadata.labels[x]: '1' is not a string; write it in quotes\n",
         false, 2, 1, 0, 0},
        {"a List in a List",
         "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{\"apiVersion\":\"v1\",\"kind\":\"Pod\","
         "\"metadata\":{\"name\":\"p\",\"labels\":{\"x\":1}},\"spec\":{}}]}]}",
         "F: Pod default/p: refused: metadata.labels[x]: '1' is not a string; write it in quotes\n",
         false, 1, 1, 0, 0},
        {"a list as the API server sends it, whose items have no kind",
         "{\"apiVersion\":\"v1\",\"kind\":\"PodList\",\"items\":[{\"metadata\":{\"generateName\":\"p-\",\"labels\":{\"x\":1}},\"spec\":{}}]}",
         "F: Pod default/p-*: refused: metadata.labels[x]: '1' is not a string; write it in quotes\n",
         false, 1, 1, 0, 0},
        {"a List with an item that is none",
         "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[5]}",
         "F: error: an object without apiVersion and kind, which every manifest has\n", false, 0, 0,
         0, 1},
        {"a namespace and its label",
         "apiVersion: v1\nkind: Namespace\nmetadata: {name: ns1, labels: {cosched.io/inject: "
         "disabled}}\n---\n" POD PINNED,
         "", false, 2, 0, 0, 0},
        {"without that label", POD PINNED, "F: Pod ns1/p: refused", true, 1, 1, 0, 0},
        {"no object, and one after it", "a: b\n---\n" POD HALF,
         "F: error: document 1: an object without apiVersion and kind, which every manifest has\nF: Pod ns1/p: refused",
         true, 1, 1, 0, 1},
        {"a pod that is none", POD "spec: 1\n",
         "F: error: Pod: spec: must be an object, not number\n", false, 0, 0, 0, 1},
        {"documents of comments only", "---\n# nothing\n---\n" POD "spec: {containers: []}\n---\n",
         "", false, 1, 0, 0, 0},
        {"no YAML", "a: [", "F: error: ", true, 0, 0, 0, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct check_summary sum;
        AUTO_STRBUF out = {0};
        AUTO_STRBUF expected = {0};
        char name[SCRATCH_PATH];
        const char *path = name;
        int fd = scratch_file(name, "check");
        size_t n = strlen(rows[i].text);
        assert_int_equal(n, write(fd, rows[i].text, n));
        close(fd);
        check_files(&rules, "default", &path, 1, &out, &sum);
        unlink(path);
        for (const char *p = rows[i].out;
             *p != '\0';) { /* F at the beginning of a line is the file */
            size_t line = strcspn(p, "\n");
            strbuf_addf(&expected, "%s%.*s%s", path, (int)line - 1, p + 1, p[line] ? "\n" : "");
            p += line + (p[line] == '\n');
        }
        if (!rows[i].starts || !str_starts(strbuf_str(&out), strbuf_str(&expected)))
            expect_str(rows[i].row, strbuf_str(&expected), strbuf_str(&out));
        expect_int(rows[i].row, (int64_t)rows[i].objects, (int64_t)sum.objects);
        expect_int(rows[i].row, (int64_t)rows[i].refused, (int64_t)sum.refused);
        expect_int(rows[i].row, (int64_t)rows[i].warnings, (int64_t)sum.warnings);
        expect_int(rows[i].row, (int64_t)rows[i].errors, (int64_t)sum.errors);
    }
    expect_done();
}

static void the_documents_pass_without_a_word(void **state)
{
    (void)state;
    struct check_summary sum;
    glob_t files;
    AUTO_STRBUF out = {0};
    assert_int_equal(0, glob("deploy/examples/documents/*.yaml", 0, NULL, &files));
    const char **paths = calloc(files.gl_pathc, sizeof *paths);
    for (size_t i = 0; i < files.gl_pathc; i++)
        paths[i] = files.gl_pathv[i];
    check_files(&rules, "default", paths, files.gl_pathc, &out, &sum);
    expect_str("no refusal, no warning", "", strbuf_str(&out));
    expect_true("all of them", sum.objects >= 11);
    free(paths);
    globfree(&files);
    expect_done();
}

/* Of a directory its manifests, by name, as kubectl -f takes them. */
static void a_directory(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
    } files[] = {
        {"b.yml", "apiVersion: v1\nkind: Pod\nmetadata: {name: b, labels: {x: 2}}\nspec: {}\n"},
        {"a.json",
         "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":1}},\"spec\":{}}"},
        {"notes.txt", "a: ["},
        {".hidden.yaml", "a: ["}};
    char dir[SCRATCH_PATH];
    const char *path = dir;
    struct check_summary sum;
    AUTO_STRBUF out = {0};
    AUTO_STRBUF expected = {0};
    scratch_folder(dir, "check");
    check_files(&rules, "default", &path, 1, &out, &sum);
    strbuf_addf(&expected, "%s: error: has no *.yaml, *.yml or *.json\n", dir);
    expect_str("an empty one", strbuf_str(&expected), strbuf_str(&out));
    strbuf_reset(&out);
    strbuf_reset(&expected);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        AUTO_STRBUF name = {0};
        strbuf_addf(&name, "%s/%s", dir, files[i].name);
        FILE *f = fopen(strbuf_str(&name), "w");
        assert_non_null(f);
        (void)fputs(files[i].text, f);
        (void)fclose(f);
    }
    check_files(&rules, "default", &path, 1, &out, &sum);
    strbuf_addf(
        &expected,
        "%s/a.json: Pod default/a: refused: metadata.labels[x]: '1' is not a string; write it "
        "in quotes\n%s/b.yml: Pod default/b: refused: metadata.labels[x]: '2' is not a "
        "string; write it in quotes\n",
        dir, dir);
    expect_str("its manifests", strbuf_str(&expected), strbuf_str(&out));
    expect_int("and nothing else", 0, (int64_t)sum.errors);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        AUTO_STRBUF name = {0};
        strbuf_addf(&name, "%s/%s", dir, files[i].name);
        unlink(strbuf_str(&name));
    }
    rmdir(dir);
    expect_done();
}

static void a_file_that_is_not_there(void **state)
{
    (void)state;
    static const char *const paths[] = {"build/no-such-file.yaml", "deploy/manifests/webhook.yaml"};
    struct check_summary sum;
    AUTO_STRBUF out = {0};
    check_files(&rules, "default", paths, 2, &out, &sum);
    expect_int("an error", 1, (int64_t)sum.errors);
    expect_str("that names it", "build/no-such-file.yaml: error: No such file or directory\n",
               strbuf_str(&out));
    expect_true("and the other one is looked at", sum.objects > 5);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_judged_as_the_cluster_would),
        cmocka_unit_test(the_documents_pass_without_a_word),
        cmocka_unit_test(a_directory),
        cmocka_unit_test(a_file_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
