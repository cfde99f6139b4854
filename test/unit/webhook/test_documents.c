// SPDX-License-Identifier: Apache-2.0
/*
 * The mistakes that the five documents warn of, each made in the document's own manifest by one
 * edit: every one is refused or warned of. (The manifests as they are pass without a word:
 * test_check.c.)
 */
#include "webhook/check.h"

#include "test/unit/lib/base/expect.h"

#include <stdio.h>

#include "lib/base/file.h"
#include "lib/model/names.h"
#include "test/unit/lib/base/scratch.h"

#define DOCUMENTS "deploy/examples/documents/"
#define NODE "apiVersion: v1\nkind: Node\nmetadata: {name: n, labels: {"
#define TEMPLATE "      annotations:\n        cpuset-scheduler: \"true\"\n"

static const struct rules_crd crds[] = {{.group = "kubeflow.org",
                                         .kind = "TFJob",
                                         .path = {"spec", "tfReplicaSpecs", "*", "template"},
                                         .path_len = 4}};
static const struct rules_config rules = {.scheduler = NAME_SCHEDULER, .crds = crds, .crds_len = 1};

static const struct {
    const char *warning;  /* what the document says, shortened */
    const char *document; /* NULL: `to` is all of it */
    const char *beside;   /* another manifest that is checked with it; NULL: none */
    const char *from, *to;
    const char *said; /* a part of what must be said */
    bool refused;
    const char *drop; /* and this is taken out first; NULL: nothing */
} mistakes[] = {
    /* Use the ack-co-scheduler component */
    {"set schedulerName on every pod template in the job", "co-scheduler-tfjob.yaml", NULL,
     "schedulerName: ack-co-scheduler", "schedulerName: volcano",
     "spec.tfReplicaSpecs.PS.template.spec.schedulerName: 'volcano', but the gang's pods", false,
     NULL},
    {"min-available is the minimum number of pods: a number", "co-scheduler-tfjob.yaml", NULL,
     "min-available: \"2\"", "min-available: \"two\"", "'two' is not a number of pods", true, NULL},
    {"a label's value is a string", "co-scheduler-tfjob.yaml", NULL, "min-available: \"2\"",
     "min-available: 2", "'2' is not a string; write it in quotes", true, NULL},
    {"at least 2 of the pods must be schedulable: one alone never is", "co-scheduler-tfjob.yaml",
     NULL, "replicas: 4", "replicas: 0", "but all replicas of the gang here are 1", false, NULL},
    {"all pods sharing the same name are scheduled together: a name without a number",
     "co-scheduler-tfjob.yaml", NULL,
     "            pod-group.scheduling.sigs.k8s.io/min-available: \"2\"\n", "",
     "pod-group.scheduling.sigs.k8s.io/min-available]: is missing", true, NULL},
    {"cpuset-scheduler must be set under template.metadata.annotations", "co-scheduler-cpuset.yaml",
     NULL, "  labels:\n    app: nginx-numa\nspec:",
     "  annotations:\n    cpuset-scheduler: \"true\"\nspec:",
     "metadata.annotations[cpuset-scheduler]: 'true' means nothing on a Deployment itself; write it "
     "into spec.template.metadata.annotations",
     false, TEMPLATE},
    {"burst-resource is eci or eci_only", "co-scheduler-burst.yaml", NULL, "burst-resource: eci",
     "burst-resource: ecs", "'ecs' is not known; write eci (real nodes first) or eci_only", true,
     NULL},
    /* Use gang scheduling */
    {"parallelism must be greater than or equal to minMember", "gang-job.yaml",
     "gang-podgroup.yaml", "parallelism: 3", "parallelism: 2",
     "3 pods must start together by minMember of PodGroup default/demo-job-podgroup, but "
     "spec.parallelism is 2",
     false, NULL},
    {"a GPU model must be specified for the GPU compute class", "gang-job.yaml", NULL,
     "        alibabacloud.com/gpu-model-series: \"example-model\"", "",
     "alibabacloud.com/gpu-model-series]: is missing while alibabacloud.com/compute-class is gpu-hpn",
     false, NULL},
    {"minMember sets the minimum number of pods", "gang-podgroup.yaml", NULL, "minMember: 3",
     "minMember: 0", "spec.minMember: '0' is not an integer from 1", true, NULL},
    {"scheduleTimeoutSeconds sets how long the scheduler waits", "gang-podgroup.yaml", NULL,
     "scheduleTimeoutSeconds: 10", "scheduleTimeoutSeconds: -1",
     "spec.scheduleTimeoutSeconds: '-1' is not an integer from 1", true, NULL},
    {"the label on the pod template associates every pod with the PodGroup", "gang-job.yaml", NULL,
     "  namespace: default\nspec:",
     "  namespace: default\n  labels: {pod-group.scheduling.sigs.k8s.io: demo-job-podgroup}\nspec:",
     "metadata.labels[pod-group.scheduling.sigs.k8s.io]: 'demo-job-podgroup' means nothing on a Job "
     "itself; write it into spec.template.metadata.labels",
     false, "        pod-group.scheduling.sigs.k8s.io: demo-job-podgroup"},
    {"all pods must belong to the same compute class", "co-scheduler-tfjob.yaml", NULL,
     "          labels:\n            pod-group",
     "          labels:\n            alibabacloud.com/compute-class: general-purpose\n            "
     "pod-group",
     "alibabacloud.com/compute-class]: ''", true, NULL},
    /* GPU scheduling labels */
    {"one of six modes", NULL, NULL, NULL, NODE "ack.node.gpu.schedule: exclusive}}\n",
     "'exclusive' is not a mode; write one of default, cgpu", true, NULL},
    {"binpack or spread", NULL, NULL, NULL,
     NODE "ack.node.gpu.schedule: cgpu, ack.node.gpu.placement: \"binpack,spread\"}}\n",
     "'binpack,spread' is not known; write binpack or spread", true, NULL},
    {"placement only applies when shared scheduling is enabled", NULL, NULL, NULL,
     NODE "ack.node.gpu.schedule: default, ack.node.gpu.placement: spread}}\n",
     "'spread' means nothing in mode default", false, NULL},
    {"a topology node no longer accepts other GPU workloads", "gpu-share.yaml", NULL,
     "      schedulerName: ack-co-scheduler",
     "      nodeSelector: {ack.node.gpu.schedule: topology}",
     "nodes in mode topology do not offer aliyun.com/gpu-mem", false, NULL},
    {"a node supports only one mode at a time", "gpu-share.yaml", NULL, "aliyun.com/gpu-mem: 3",
     "aliyun.com/gpu-mem: 3\n            nvidia.com/gpu: 1",
     "does not go together with aliyun.com/gpu-mem in one pod", true, NULL},
    /* CPU topology-aware scheduling */
    {"do not specify nodeName directly on a pod", "cpuset-general.yaml", NULL,
     "    spec:\n      containers:", "    spec:\n      nodeName: n1\n      containers:",
     "spec.nodeName: 'n1' is set, so no scheduler chooses CPUs for the pod; write nodeSelector",
     false, NULL},
    {"limits.cpu must be an integer", "cpuset-general.yaml", NULL, "limits:\n            cpu: 4",
     "limits:\n            cpu: 3500m", "'3500m' is not a whole number of CPUs", true, NULL},
    {"limits.cpu must be there", "cpuset-general.yaml", NULL,
     "          limits:\n            cpu: 4",
     "          limits:", "resources.limits.cpu: is missing", true, NULL},
    {"cpuset-scheduler is \"true\"", "cpuset-general.yaml", NULL, "cpuset-scheduler: \"true\"",
     "cpuset-scheduler: \"on\"", "'on' is not known; write \"true\"", true, NULL},
    {"for a Deployment: under spec.template.metadata.annotations", "cpuset-general.yaml", NULL,
     "  labels:\n    app: nginx\nspec:",
     "  labels:\n    app: nginx\n  annotations: {cpu-policy: static-burst}\nspec:",
     "metadata.annotations[cpu-policy]: 'static-burst' means nothing on a Deployment itself; write "
     "it into spec.template.metadata.annotations",
     false, NULL},
    {"two annotations: cpuset-scheduler and cpu-policy", "cpuset-automatic.yaml", NULL,
     "        cpuset-scheduler: \"true\"", "",
     "'static-burst' means nothing without annotation cpuset-scheduler", false, NULL},
    {"cpu-policy is static-burst", "cpuset-automatic.yaml", NULL, "static-burst", "static",
     "'static' is not known; write static-burst", true, NULL},
    {"annotations, not labels", "cpuset-general.yaml", NULL, TEMPLATE "      labels:\n",
     "      labels:\n        cpuset-scheduler: \"true\"\n",
     "'true' means nothing as a label; write it into metadata.annotations", false, NULL},
    /* Shared GPU scheduling */
    {"GPU memory in GiB", "gpu-share.yaml", NULL, "aliyun.com/gpu-mem: 3",
     "aliyun.com/gpu-mem: 3Gi", "the resource counts GiB and not bytes; write 3", true, NULL},
    {"whole GiB", "gpu-share.yaml", NULL, "aliyun.com/gpu-mem: 3", "aliyun.com/gpu-mem: 5.5",
     "'5.5' is not a whole number of GiB; write 5 or 6", true, NULL},
    {"the resource is aliyun.com/gpu-mem", "gpu-share.yaml", NULL, "aliyun.com/gpu-mem: 3",
     "aliyun.com/gpu-memory: 3", "is a resource that no node has; write aliyun.com/gpu-mem", false,
     NULL},
    {"memory is isolated between pods: nobody sets it himself", "gpu-share.yaml", NULL,
     "        resources:",
     "        env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]\n        resources:",
     "env[NVIDIA_VISIBLE_DEVICES]: 'all' would win over what the device plugin sets", true, NULL},
};

/* text with the first `from` replaced */
static void replace(size_t i, const char *text, const char *from, const char *to,
                    struct strbuf *out)
{
    const char *at = strstr(text, from);
    if (!at)
        fail_msg("%s: %s has no '%s'", mistakes[i].warning, mistakes[i].document, from);
    strbuf_add(out, text, (size_t)(at - text));
    strbuf_addf(out, "%s%s", to, at + strlen(from));
}

static void edit(size_t i, struct strbuf *out)
{
    struct error err = ERROR_INIT;
    AUTO_STRBUF path = {0};
    AUTO_STRBUF text = {0};
    AUTO_STRBUF less = {0};
    if (!mistakes[i].document) {
        strbuf_adds(out, mistakes[i].to);
        return;
    }
    strbuf_addf(&path, "%s%s", DOCUMENTS, mistakes[i].document);
    if (file_read(strbuf_str(&path), 1 << 20, &text, &err) < 0)
        fail_msg("%s", err.text);
    if (mistakes[i].drop)
        replace(i, strbuf_str(&text), mistakes[i].drop, "", &less);
    replace(i, strbuf_str(mistakes[i].drop ? &less : &text), mistakes[i].from, mistakes[i].to, out);
}

static void every_mistake_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        struct check_summary sum;
        AUTO_STRBUF text = {0};
        AUTO_STRBUF other = {0};
        AUTO_STRBUF out = {0};
        char name[SCRATCH_PATH];
        edit(i, &text);
        int fd = scratch_file(name, "mistake");
        assert_int_equal(text.len, write(fd, text.ptr, text.len));
        close(fd);
        strbuf_addf(&other, "%s%s", DOCUMENTS, str_or_empty(mistakes[i].beside));
        const char *paths[] = {name, strbuf_str(&other)};
        check_files(&rules, "default", paths, mistakes[i].beside ? 2 : 1, &out, &sum);
        unlink(name);
        if (!strstr(strbuf_str(&out), mistakes[i].said))
            expect_str(mistakes[i].warning, mistakes[i].said, strbuf_str(&out));
        expect_int(mistakes[i].warning, mistakes[i].refused, sum.refused > 0);
        expect_true(mistakes[i].warning, sum.refused + sum.warnings > 0);
        expect_int(mistakes[i].warning, 0, (int64_t)sum.errors);
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mistake_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
