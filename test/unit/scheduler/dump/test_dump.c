// SPDX-License-Identifier: Apache-2.0
/*
 * dump: each object comes back as it was (rows are objects in the very form of the dump), and a
 * whole cluster, by any way, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/json.h"
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/dump/dump.h"
#include "scheduler/model/nominations.h"
#include "scheduler/replay/replay_load.h"
#include "scheduler/cache/gangs.h"
#include "test/unit/scheduler/fixture.h"
#include "test/unit/scheduler/world.h"

#define HEAD                                                                                       \
    "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"cosched\":{\"dump\":1,\"schedulerName\":\"ack-co-" \
    "scheduler\"},\"items\":["

static void count_warning(void *arg, const char *text)
{
    (void)text;
    ++*(size_t *)arg;
}

static void load_text(struct cluster *c, const char *text, size_t n, size_t *warnings)
{
    struct replay_load l;
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    replay_load_init(&l, c, NULL);
    l.warn = count_warning;
    l.arg = warnings;
    if (json_parse(&doc, text, n, &err) < 0)
        fail_msg("not JSON: %s: %s", err.text, text);
    replay_load_object(&l, json_root(doc), "dump");
    replay_load_finish(&l);
    assert_null(replay_load_skipped(&l));
    c->scheduler_name = NAME_SCHEDULER; /* the loader's own copy goes with it */
    replay_load_deinit(&l);
}

static char *printed(const struct cluster *c)
{
    struct strbuf b = {0};
    dump_cluster(c, &b);
    return strbuf_take(&b);
}

/* ---- objects ---- */

static const struct {
    const char *name;
    const char *object;
} objects[] = {
    {"a node with everything",
     "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"7\","
     "\"deletionTimestamp\":\"1970-01-01T00:00:00Z\",\"labels\":{\"a\":\"b\",\"c\":\"\"},"
     "\"annotations\":{\"cosched.io/gpu-inventory\":\"{}\"}},"
     "\"spec\":{\"unschedulable\":true,\"taints\":[{\"key\":\"k\",\"value\":\"v\",\"effect\":\"NoSchedule\"},"
     "{\"key\":\"k\",\"effect\":\"NoExecute\"},{\"key\":\"l\",\"effect\":\"PreferNoSchedule\"}]},"
     "\"status\":{\"capacity\":{\"cpu\":\"8\",\"memory\":\"16Gi\",\"ephemeral-storage\":\"1025\",\"pods\":\"110\","
     "\"aliyun.com/gpu-mem\":\"30\",\"hugepages-2Mi\":\"0\"},"
     "\"allocatable\":{\"cpu\":\"7500m\",\"memory\":\"15Gi\",\"pods\":\"110\",\"aliyun.com/gpu-mem\":\"0\"},"
     "\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"192.0.2.1\"}],"
     "\"declaredFeatures\":[\"RestartAllContainersOnContainerExits\"],"
     "\"images\":[{\"names\":[\"#00000000000000ff\"],\"sizeBytes\":5},{\"names\":[\"#8000000000000001\"],"
     "\"sizeBytes\":9}],"
     "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}"},
    {"a node with nothing",
     "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"},"
     "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}]}}"},
    {"a pod with everything that decides where it may go",
     "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"d\",\"name\":\"p\",\"uid\":\"u\","
     "\"resourceVersion\":\"9\",\"creationTimestamp\":\"2026-02-28T23:59:59Z\","
     "\"labels\":{\"app\":\"x\"},\"annotations\":{\"alibabacloud.com/burst-resource\":\"eci\","
     "\"cpuset-scheduler\":\"true\"},"
     "\"ownerReferences\":[{\"kind\":\"Job\",\"name\":\"j\",\"uid\":\"o\",\"controller\":true}]},"
     "\"spec\":{\"schedulerName\":\"ack-co-scheduler\",\"priority\":-5,\"preemptionPolicy\":\"Never\","
     "\"activeDeadlineSeconds\":90,\"schedulingGates\":[{\"name\":\"gate\"}],\"resourceClaims\":[{\"name\":\"claim\"}],"
     "\"schedulingGroup\":{\"podGroupName\":\"g\"},\"nodeSelector\":{\"disk\":\"ssd\"},"
     "\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":["
     "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"x\",\"y\"]},"
     "{\"key\":\"b\",\"operator\":\"NotIn\",\"values\":[\"z\"]},{\"key\":\"c\",\"operator\":\"Exists\"},"
     "{\"key\":\"d\",\"operator\":\"DoesNotExist\"},{\"key\":\"e\",\"operator\":\"Gt\",\"values\":[\"5\"]},"
     "{\"key\":\"f\",\"operator\":\"Lt\",\"values\":[\"abc\"]}],"
     "\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"n1\"]}]},{}]},"
     "\"preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":10,\"preference\":{\"matchExpressions\":["
     "{\"key\":\"a\",\"operator\":\"Exists\"}]}}]},"
     "\"podAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{\"labelSelector\":{\"matchExpressions\":["
     "{\"key\":\"app\",\"operator\":\"In\",\"values\":[\"x\"]}]},\"namespaces\":[\"d\",\"e\"],"
     "\"namespaceSelector\":{},\"topologyKey\":\"zone\"}]},"
     "\"podAntiAffinity\":{\"preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":7,\"podAffinityTerm\":{"
     "\"namespaceSelector\":{\"matchExpressions\":[{\"key\":\"t\",\"operator\":\"Exists\"}]},"
     "\"topologyKey\":\"kubernetes.io/hostname\"}}]}},"
     "\"tolerations\":[{\"key\":\"k\",\"operator\":\"Equal\",\"value\":\"v\",\"effect\":\"NoSchedule\"},"
     "{\"operator\":\"Exists\"}],"
     "\"topologySpreadConstraints\":[{\"topologyKey\":\"zone\",\"maxSkew\":2,\"minDomains\":3,"
     "\"whenUnsatisfiable\":\"DoNotSchedule\",\"nodeAffinityPolicy\":\"Ignore\",\"nodeTaintsPolicy\":\"Honor\","
     "\"labelSelector\":{\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"In\",\"values\":[\"x\"]}]}},"
     "{\"topologyKey\":\"rack\",\"maxSkew\":1,\"whenUnsatisfiable\":\"ScheduleAnyway\",\"labelSelector\":{}}],"
     "\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"c\",\"readOnly\":true}},"
     "{\"name\":\"w\",\"ephemeral\":{}},{\"name\":\"x\",\"csi\":{\"driver\":\"s\"}},"
     "{\"name\":\"y\",\"awsElasticBlockStore\":{\"volumeID\":\"vol-1\"}},"
     "{\"name\":\"z\",\"rbd\":{\"monitors\":[\"m1\",\"m2\"],\"pool\":\"p\",\"image\":\"i\"}},"
     "{\"name\":\"s\",\"iscsi\":{\"iqn\":\"iqn.x\"}},{\"image\":{\"reference\":\"busybox:1\"}}],"
     "\"hostNetwork\":true,\"hostUsers\":false,\"overhead\":{\"cpu\":\"10m\"},"
     "\"resources\":{\"requests\":{\"cpu\":\"3\"}},"
     "\"initContainers\":[{\"name\":\"i\",\"image\":\"im\",\"restartPolicy\":\"Always\","
     "\"resources\":{\"limits\":{\"memory\":\"1Gi\"},\"requests\":{\"memory\":\"1Gi\"}}}],"
     "\"containers\":[{\"name\":\"c\",\"restartPolicyRules\":[{\"action\":\"RestartAllContainers\"}],"
     "\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"3\"},"
     "\"requests\":{\"cpu\":\"1500m\",\"memory\":\"0\",\"aliyun.com/gpu-mem\":\"3\"}},"
     "\"ports\":[{\"hostPort\":80,\"hostIP\":\"127.0.0.1\",\"protocol\":\"UDP\"},"
     "{\"hostPort\":81,\"protocol\":\"TCP\"}]}]},"
     "\"status\":{\"phase\":\"Pending\",\"nominatedNodeName\":\"n2\","
     "\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":\"Unschedulable\","
     "\"message\":\"0/1\"}]}}"},
    {"a running pod of another scheduler, resized in place",
     "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"d\",\"name\":\"p\",\"uid\":\"u\","
     "\"creationTimestamp\":\"2024-12-31T00:00:00.000000001Z\",\"deletionTimestamp\":\"1970-01-01T00:00:00Z\"},"
     "\"spec\":{\"nodeName\":\"gone\",\"schedulerName\":\"default-scheduler\","
     "\"resources\":{\"requests\":{\"cpu\":\"3\"}},"
     "\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]},"
     "\"status\":{\"phase\":\"Running\",\"startTime\":\"2025-01-01T00:00:00Z\","
     "\"extendedResourceClaimStatus\":{\"requestMappings\":[{\"resourceName\":\"x.y/z\"}]},"
     "\"conditions\":[{\"type\":\"PodResizePending\",\"status\":\"True\",\"reason\":\"Infeasible\"}],"
     "\"allocatedResources\":{\"cpu\":\"2\"},\"resources\":{\"requests\":{\"cpu\":\"2\"}},"
     "\"containerStatuses\":[{\"name\":\"c\",\"allocatedResources\":{\"cpu\":\"2\"},"
     "\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]}}"},
    {"a pod of which not all could be read",
     "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"d\",\"name\":\"p\",\"uid\":\"u\"},"
     "\"spec\":{\"nodeName\":\"n\",\"schedulerName\":\"x\"},\"status\":{\"phase\":\"Running\"},"
     "\"cosched\":{\"unplaceable\":\"spec.overhead: must be an object, not number\"}}"},
    {"a PodGroup",
     "{\"apiVersion\":\"scheduling.sigs.k8s.io/v1alpha1\",\"kind\":\"PodGroup\",\"metadata\":{\"namespace\":\"d\","
     "\"name\":\"g\",\"uid\":\"u\",\"resourceVersion\":\"1\"},\"spec\":{\"minMember\":3,"
     "\"scheduleTimeoutSeconds\":90,\"minResources\":{\"cpu\":\"3\"}},\"status\":{\"phase\":\"Pending\"}}"},
    {"a PodGroup of the other API group",
     "{\"apiVersion\":\"scheduling.x-k8s.io/v1alpha1\",\"kind\":\"PodGroup\",\"metadata\":{\"namespace\":\"d\","
     "\"name\":\"g\"},\"spec\":{\"minMember\":0,\"scheduleTimeoutSeconds\":60}}"},
    {"a PodGroup that goes with another one",
     "{\"apiVersion\":\"scheduling.sigs.k8s.io/v1alpha1\",\"kind\":\"PodGroup\",\"metadata\":{\"namespace\":\"d\","
     "\"name\":\"g\",\"annotations\":{\"pod-group.scheduling.sigs.k8s.io/groups\":\"[\\\"d/g\\\",\\\"d/h\\\"]\","
     "\"pod-group.scheduling.sigs.k8s.io/match-policy\":\"only-waiting\"}},"
     "\"spec\":{\"minMember\":2,\"scheduleTimeoutSeconds\":60}}"},
    {"a PodGroup of Kubernetes' own gangs",
     "{\"apiVersion\":\"scheduling.k8s.io/v1alpha2\",\"kind\":\"PodGroup\",\"metadata\":{\"namespace\":\"d\","
     "\"name\":\"g\"},\"spec\":{\"schedulingPolicy\":{\"gang\":{\"minCount\":3}}}}"},
    {"a namespace",
     "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"d\",\"labels\":{\"t\":\"a\"}}}"},
    {"a claim that waits",
     "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"d\",\"name\":\"c\","
     "\"annotations\":{\"volume.kubernetes.io/selected-node\":\"n\"},"
     "\"ownerReferences\":[{\"uid\":\"o\",\"controller\":true}]},"
     "\"spec\":{\"storageClassName\":\"\",\"volumeAttributesClassName\":\"gold\","
     "\"accessModes\":[\"ReadWriteOnce\",\"ReadWriteOncePod\"],\"volumeMode\":\"Block\",\"selector\":{},"
     "\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}},\"status\":{\"phase\":\"Pending\"}}"},
    {"a claim that is bound",
     "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"d\",\"name\":\"c\","
     "\"annotations\":{\"pv.kubernetes.io/bind-completed\":\"yes\"}},"
     "\"spec\":{\"volumeName\":\"v\",\"resources\":{\"requests\":{\"storage\":\"1\"}}},"
     "\"status\":{\"phase\":\"Bound\"}}"},
    {"a volume of a CSI driver",
     "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":\"v\",\"labels\":{\"z\":\"a\"}},"
     "\"spec\":{\"storageClassName\":\"s\",\"accessModes\":[\"ReadOnlyMany\",\"ReadWriteMany\"],"
     "\"capacity\":{\"storage\":\"5Gi\"},\"claimRef\":{\"namespace\":\"d\",\"name\":\"c\",\"uid\":\"u\"},"
     "\"nodeAffinity\":{\"required\":{\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"z\","
     "\"operator\":\"In\",\"values\":[\"a\"]}]}]}},\"csi\":{\"driver\":\"x\",\"volumeHandle\":\"h\"}},"
     "\"status\":{\"phase\":\"Bound\"}}"},
    {"a volume of the old kind",
     "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":\"v\"},"
     "\"spec\":{\"capacity\":{\"storage\":\"5Gi\"},\"gcePersistentDisk\":{\"pdName\":\"disk\"}},"
     "\"status\":{\"phase\":\"Available\"}}"},
    {"a storage class",
     "{\"apiVersion\":\"storage.k8s.io/v1\",\"kind\":\"StorageClass\",\"metadata\":{\"name\":\"s\"},"
     "\"provisioner\":\"x\",\"volumeBindingMode\":\"WaitForFirstConsumer\",\"allowedTopologies\":["
     "{\"matchLabelExpressions\":[{\"key\":\"z\",\"values\":[\"a\",\"b\"]}]}]}"},
    {"a CSI node",
     "{\"apiVersion\":\"storage.k8s.io/v1\",\"kind\":\"CSINode\",\"metadata\":{\"name\":\"n\"},"
     "\"spec\":{\"drivers\":[{\"name\":\"x\",\"topologyKeys\":[\"z\"],\"allocatable\":{\"count\":5}},"
     "{\"name\":\"y\"}]}}"},
    {"a CSI driver",
     "{\"apiVersion\":\"storage.k8s.io/v1\",\"kind\":\"CSIDriver\",\"metadata\":{\"name\":\"x\"},"
     "\"spec\":{\"storageCapacity\":true,\"preventPodSchedulingIfMissing\":true}}"},
    {"storage capacity",
     "{\"apiVersion\":\"storage.k8s.io/v1\",\"kind\":\"CSIStorageCapacity\",\"metadata\":{\"namespace\":\"d\","
     "\"name\":\"k\"},\"storageClassName\":\"s\",\"nodeTopology\":{\"matchExpressions\":[{\"key\":\"z\","
     "\"operator\":\"In\",\"values\":[\"a\"]}]},\"capacity\":\"10Gi\",\"maximumVolumeSize\":\"1Gi\"}"},
    {"an attachment",
     "{\"apiVersion\":\"storage.k8s.io/v1\",\"kind\":\"VolumeAttachment\",\"metadata\":{\"name\":\"a\"},"
     "\"spec\":{\"attacher\":\"x\",\"nodeName\":\"n\",\"source\":{\"persistentVolumeName\":\"v\"}}}"},
    {"a disruption budget",
     "{\"apiVersion\":\"policy/v1\",\"kind\":\"PodDisruptionBudget\",\"metadata\":{\"namespace\":\"d\","
     "\"name\":\"b\"},\"spec\":{\"selector\":{\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"Exists\"}]}},"
     "\"status\":{\"disruptionsAllowed\":1,\"disruptedPods\":{\"p\":\"1970-01-01T00:00:00Z\"}}}"},
    {"a device class",
     "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"DeviceClass\",\"metadata\":{\"name\":\"c\"},"
     "\"spec\":{\"extendedResourceName\":\"x.y/z\"}}"},
};

static void test_objects(void **state)
{
    (void)state;
    size_t failed = 0;
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        struct cluster c;
        size_t warnings = 0;
        AUTO_STRBUF list = {0};
        strbuf_addf(&list, HEAD "\n%s]}\n", objects[i].object);
        cluster_init(&c, NAME_SCHEDULER);
        load_text(&c, strbuf_str(&list), list.len, &warnings);
        char *got = printed(&c);
        const char *items = strstr(got, "\"items\":["), /* what it asks of cards is in the head */
            *said = strstr(strbuf_str(&list), "\"items\":[");
        if (warnings > 0 || items == NULL || strcmp(items, said) != 0) {
            print_error("%s (%zu warnings):\nexpected %sgot      %s\n", objects[i].name, warnings,
                        strbuf_str(&list), got);
            failed++;
        }
        free(got);
        cluster_deinit(&c);
    }
    assert_int_equal(failed, 0);
}

/* ---- what GPU pods asked for ---- */

#define DEMAND(text)                                                                               \
    "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"cosched\":{\"dump\":1,\"schedulerName\":\"ack-co-" \
    "scheduler\",\"gpuDemand\":" text "},\"items\":[]}\n"

static void test_demand(void **state)
{
    (void)state;
    static const struct {
        const char *row, *text;
        bool same;
    } rows[] = {
        {"as it was",
         DEMAND("{\"seen\":900,\"cpuMilli\":4096000,\"milliCards\":8192000,\"sizes\":["
                "{\"gib\":3,\"weight\":5},{\"gib\":7,\"weight\":4096}],\"sets\":["
                "{\"models\":[\"A10\",\"T4\"],\"weight\":77}]}"),
         true},
        {"no number", DEMAND("{\"seen\":\"x\",\"cpuMilli\":1,\"milliCards\":1,\"sizes\":[]}"),
         false},
        {"below 0", DEMAND("{\"seen\":1,\"cpuMilli\":-1,\"milliCards\":1,\"sizes\":[]}"), false},
        {"no GiB",
         DEMAND("{\"seen\":1,\"cpuMilli\":1,\"milliCards\":1,\"sizes\":[{\"gib\":0,"
                "\"weight\":1}]}"),
         false},
        {"twice",
         DEMAND("{\"seen\":1,\"cpuMilli\":1,\"milliCards\":1,\"sizes\":[{\"gib\":2,"
                "\"weight\":1},{\"gib\":2,\"weight\":1}]}"),
         false},
        {"too heavy",
         DEMAND("{\"seen\":1,\"cpuMilli\":1,\"milliCards\":1,\"sizes\":[],\"sets\":[{"
                "\"models\":[\"a\"],\"weight\":9223372036854775807}]}"),
         false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cluster c;
        size_t warnings = 0;
        cluster_init(&c, NAME_SCHEDULER);
        load_text(&c, rows[i].text, strlen(rows[i].text), &warnings);
        char *got = printed(&c);
        if (warnings != !rows[i].same || (strcmp(got, rows[i].text) == 0) != rows[i].same)
            fail_msg("%s: %zu warnings: %s", rows[i].row, warnings, got);
        free(got);
        cluster_deinit(&c);
    }
}

/* ---- annotations ---- */

static bool dump_has(const struct cluster *c, const char *text)
{
    char *all = printed(c);
    bool has = strstr(all, text) != NULL;
    free(all);
    return has;
}

static void test_only_what_is_read(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, NAME_SCHEDULER);
    cluster_put_pod(&c,
                    POD(.name = "p", .annotations = PAIRS(
                                         "kubectl.kubernetes.io/last-applied-configuration",
                                         "PASSWORD", "note", "PASSWORD", NAME_ANN_BURST, "eci")),
                    NULL);
    assert_false(dump_has(&c, "PASSWORD"));
    assert_true(dump_has(&c, "\"" NAME_ANN_BURST "\":\"eci\""));
    cluster_deinit(&c);
}

/* A grant edited after the pod was bound counts neither in the accounts nor in the dump. */
static void test_edited_grants(void **state)
{
    (void)state;
    static const struct {
        const char *name, *before, *after, *expected;
    } rows[] = {
        {"a claim stays as it was", "{\"0\":{\"0\":3}}", "{\"0\":{\"0\":3}}",
         "{\\\"0\\\":{\\\"0\\\":3}}"},
        {"another card was written into it", "{\"0\":{\"0\":3}}", "{\"0\":{\"1\":3}}",
         "{\\\"0\\\":{\\\"0\\\":3}}"},
        {"it was emptied", "{\"0\":{\"0\":3}}", "", "{\\\"0\\\":{\\\"0\\\":3}}"},
        {"a wrong one was made right", "{\"0\":{\"0\":9}}", "{\"0\":{\"0\":3}}", NULL},
        {"a wrong one stays wrong", "{\"0\":{\"0\":9}}", "{\"0\":{\"0\":9}}",
         "{\\\"0\\\":{\\\"0\\\":9}}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cluster c, again;
        size_t warnings = 0;
        cluster_init(&c, NAME_SCHEDULER);
        cluster_init(&again, NAME_SCHEDULER);
        for (int v = 0; v < 2; v++)
            cluster_put_pod(
                &c,
                POD(.name = "p", .node = "n", .c = {{.gib = 3}},
                    .annotations = PAIRS(NAME_ANN_ALLOCATION, v ? rows[i].after : rows[i].before)),
                NULL);
        char *text = printed(&c);
        AUTO_STRBUF key = {0};
        strbuf_addf(&key, "\"" NAME_ANN_ALLOCATION "\":\"%s", str_or_empty(rows[i].expected));
        bool has = strstr(text, strbuf_str(&key)) != NULL;
        load_text(&again, text, strlen(text), &warnings);
        if (has != (rows[i].expected != NULL) || cluster_digest(&c) != cluster_digest(&again) ||
            warnings > 0)
            fail_msg("%s: digests %llx and %llx, %zu warnings, %s", rows[i].name,
                     (unsigned long long)cluster_digest(&c),
                     (unsigned long long)cluster_digest(&again), warnings, text);
        free(text);
        cluster_deinit(&c);
        cluster_deinit(&again);
    }
}

/* ---- whole clusters ---- */

static void test_order(void **state)
{
    (void)state;
    char *text[2];
    for (int order = 0; order < 2; order++) {
        struct cluster c;
        cluster_init(&c, NAME_SCHEDULER);
        for (int i = 0; i < 2; i++) {
            cluster_put_node(&c, NODE(.name = i == order ? "n1" : "n2"));
            cluster_put_pod(&c, POD(.name = i == order ? "a" : "b"), NULL);
            gangs_put_group(&c, fixture_make_group("g", 1, i == order), NULL);
        }
        text[order] = printed(&c);
        cluster_deinit(&c);
    }
    assert_string_equal(text[0], text[1]);
    free(text[0]);
    free(text[1]);
}

static void test_quorum(void **state)
{
    (void)state;
    const char *const *labels = PAIRS(NAME_LABEL_GANG_NAME, "g", NAME_LABEL_GANG_MIN, "2");
    struct cluster c, again;
    size_t warnings = 0;
    cluster_init(&c, NAME_SCHEDULER);
    cluster_init(&again, NAME_SCHEDULER);
    cluster_put_pod(&c, POD(.name = "a", .labels = labels, .node = "n1"), NULL);
    cluster_put_pod(&c, POD(.name = "b", .labels = labels, .node = "n1"), NULL);
    cluster_remove_pod(&c, "d/b", NULL, NULL);
    char *text = printed(&c);
    load_text(&again, text, strlen(text), &warnings);
    const struct gang *g = map_get(&again.gangs, "gang d/g");
    if (warnings > 0 || g == NULL || !g->satisfied)
        fail_msg("the gang had its quorum once, which the dump must say: %s", text);
    free(text);
    cluster_deinit(&c);
    cluster_deinit(&again);
}

static void test_burst(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct cluster c, again;
    size_t warnings = 0;
    cluster_init(&c, NAME_SCHEDULER);
    assert_false(dump_has(&c, "virtualNode"));
    assert_false(dump_has(&c, "gangBurst"));
    assert_int_equal(0, cluster_set_virtuals(&c, "a=b", "c=d,e", &err));
    c.gang_pools = CLUSTER_GANG_WHOLE;
    cluster_put_node(&c, NODE(.name = "n1", .labels = PAIRS("a", "b")));
    cluster_put_node(&c, NODE(.name = "n2", .labels = PAIRS("type", "virtual-kubelet")));
    char *text = printed(&c);
    cluster_init(&again, NAME_SCHEDULER);
    load_text(&again, text, strlen(text), &warnings);
    char *second = printed(&again);
    assert_string_equal(text, second);
    assert_int_equal(warnings, 0);
    assert_int_equal(again.gang_pools, CLUSTER_GANG_WHOLE);
    assert_true(cluster_find_node(&again, "n1")->is_virtual);
    assert_false(cluster_find_node(&again, "n2")->is_virtual);
    free(text);
    free(second);
    cluster_deinit(&c);
    cluster_deinit(&again);
}

static void check_round_trip(const struct cluster *c, const char *said, uint64_t seed, int step)
{
    struct cluster again;
    size_t warnings = 0;
    char *text = printed(c);
    cluster_init(&again, NAME_SCHEDULER);
    load_text(&again, text, strlen(text), &warnings);
    char *second = printed(&again);
    if (cluster_digest(c) != cluster_digest(&again))
        fail_msg("seed %llu, step %d (%s): digest %llx, of the loaded dump %llx\n%s",
                 (unsigned long long)seed, step, said, (unsigned long long)cluster_digest(c),
                 (unsigned long long)cluster_digest(&again), text);
    if (strcmp(text, second) != 0)
        fail_msg("seed %llu, step %d (%s): %zu warnings\nfirst  %s\nsecond %s",
                 (unsigned long long)seed, step, said, warnings, text, second);
    assert_int_equal(warnings, 0);
    free(text);
    free(second);
    cluster_deinit(&again);
}

/* The story also nominates pods that are bound, which the scheduler never does, and which a dump
 * does not say. */
static void drop_idle_nominations(struct cluster *c)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&c->pods, &i, &key, &value);) {
        struct cluster_pod *cp = value;
        if (cp->state == CLUSTER_BOUND || cp->state == CLUSTER_FINISHED)
            (void)nominations_set(c, cp, NULL);
    }
}

static void test_random_clusters(void **state)
{
    (void)state;
    enum { SEEDS = 12, STEPS = 400, EVERY = 7 };
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        static struct world w;
        world_init(&w, seed);
        for (int step = 0; step < STEPS; step++) {
            world_step(&w);
            if (step % EVERY != 0)
                continue;
            drop_idle_nominations(&w.cluster);
            check_round_trip(&w.cluster, w.said, seed, step);
        }
        world_deinit(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objects),
        cmocka_unit_test(test_demand),
        cmocka_unit_test(test_only_what_is_read),
        cmocka_unit_test(test_edited_grants),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_quorum),
        cmocka_unit_test(test_burst),
        cmocka_unit_test(test_random_clusters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
