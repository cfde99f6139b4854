// SPDX-License-Identifier: Apache-2.0
/*
 * bench_decode - a list of 5,000 pods, from bytes to struct pod, against yyjson's bare parse of the
 * same bytes in the same run.
 *
 * The pods are made here, the same on every machine: like those of a training cluster, about 3.8 KB
 * each with their managedFields. The two are measured in turns, so that a noisy neighbour hits
 * both, and the median of each is taken. Ours parses in place, as the reflector does with its reply
 * buffer; the copy that puts the bytes back for the next round is not timed. Releasing the parse is
 * timed on both sides, the pods stay. Peak memory is that of a child that does one decode of one
 * copy of the list, nothing else.
 *
 *     bench_decode [PODS [ROUNDS]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/kube/decode.h"
#include "test/bench/result.h"
#include "test/bench/yyjson_baseline.h"

static void add_metadata(struct strbuf *b, unsigned i)
{
    strbuf_addf(
        b,
        "{\"metadata\":{\"name\":\"train-%u-worker-%u\",\"generateName\":\"train-%u-worker-\","
        "\"namespace\":\"team-%u\",\"uid\":\"%08x-4b1d-4c3e-9f00-%012x\",\"resourceVersion\":\"%u\""
        ",\"generation\":1,\"creationTimestamp\":\"2026-03-01T12:%02u:%02uZ\",\"labels\":{\"app\":\""
        "train-%u\",\"batch.kubernetes.io/job-name\":\"train-%u\",\"controller-uid\":\"%08x-77aa-4c"
        "3e-9f00-0123456789ab\",\"pod-group.scheduling.sigs.k8s.io/min-available\":\"8\",\"pod-grou"
        "p.scheduling.sigs.k8s.io/name\":\"train-%u\"},\"annotations\":{\"cosched.io/note\":\"attem"
        "pt %u\",\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"%u\\\":8}}\",\"sched"
        "uler.framework.gpushare.assigned\":\"true\",\"scheduler.framework.gpushare.assume-time\":\""
        "17723664000000%05u\"},\"ownerReferences\":[{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\","
        "\"name\":\"train-%u\",\"uid\":\"%08x-77aa-4c3e-9f00-0123456789ab\",\"controller\":true,"
        "\"blockOwnerDeletion\":true}],",
        i / 8, i % 8, i / 8, i % 17, i * 2654435761u, i, 100000 + i, i / 60 % 60, i % 60, i / 8,
        i / 8, i / 8 * 40503u, i / 8, i % 5, i % 8, i, i / 8, i / 8 * 40503u);
    strbuf_adds(
        b,
        "\"managedFields\":[{\"manager\":\"kube-controller-manager\",\"operation\":\"Update\","
        "\"apiVersion\":\"v1\",\"time\":\"2026-03-01T12:00:00Z\",\"fieldsType\":\"FieldsV1\","
        "\"fieldsV1\":{\"f:metadata\":{\"f:generateName\":{},\"f:labels\":{\".\":{},\"f:app\":{},"
        "\"f:batch.kubernetes.io/job-name\":{},\"f:controller-uid\":{},\"f:pod-group.scheduling.sig"
        "s.k8s.io/name\":{}},\"f:ownerReferences\":{\".\":{},\"k:{\\\"uid\\\":\\\"0123\\\"}\":{}}},"
        "\"f:spec\":{\"f:containers\":{\"k:{\\\"name\\\":\\\"main\\\"}\":{\".\":{},\"f:command\":{}"
        ",\"f:image\":{},\"f:imagePullPolicy\":{},\"f:name\":{},\"f:resources\":{\".\":{},\"f:limit"
        "s\":{\".\":{},\"f:aliyun.com/gpu-mem\":{},\"f:cpu\":{},\"f:memory\":{}},\"f:requests\":{\""
        ".\":{},\"f:cpu\":{},\"f:memory\":{}}}}},\"f:restartPolicy\":{},\"f:schedulerName\":{}}}},"
        "{\"manager\":\"kubelet\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":\"2026-03"
        "-01T12:00:09Z\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:status\":{\"f:conditions\":{"
        "\"k:{\\\"type\\\":\\\"Ready\\\"}\":{\".\":{},\"f:lastTransitionTime\":{},\"f:status\":{},"
        "\"f:type\":{}}},\"f:containerStatuses\":{},\"f:hostIP\":{},\"f:phase\":{},\"f:podIP\":{},"
        "\"f:startTime\":{}}},\"subresource\":\"status\"}]},");
}

static void add_spec(struct strbuf *b, unsigned i)
{
    strbuf_addf(
        b,
        "\"spec\":{\"volumes\":[{\"name\":\"data-x%u\",\"emptyDir\":{}}],\"containers\":[{\"name\":"
        "\"main\",\"image\":\"registry.example/train:v1.%u\",\"command\":[\"python\",\"train.py\"],"
        "\"env\":[{\"name\":\"RANK\",\"value\":\"%u\"},{\"name\":\"WORLD_SIZE\",\"value\":\"8\"}],"
        "\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"8\",\"cpu\":\"4\",\"memory\":\"16Gi\"}"
        ",\"requests\":{\"aliyun.com/gpu-mem\":\"8\",\"cpu\":\"%u00m\",\"memory\":\"16Gi\"}},"
        "\"volumeMounts\":[{\"name\":\"data-x%u\",\"readOnly\":true,\"mountPath\":\"/var/run/secret"
        "s\"}],\"terminationMessagePath\":\"/dev/termination-log\",\"terminationMessagePolicy\":\"F"
        "ile\",\"imagePullPolicy\":\"IfNotPresent\"}],\"restartPolicy\":\"Never\",\"terminationGrac"
        "ePeriodSeconds\":30,\"dnsPolicy\":\"ClusterFirst\",\"serviceAccountName\":\"default\","
        "\"serviceAccount\":\"default\",\"nodeName\":\"gpu-node-%04u\",\"securityContext\":{},"
        "\"schedulerName\":\"ack-co-scheduler\",\"tolerations\":[{\"key\":\"node.kubernetes.io/not-"
        "ready\",\"operator\":\"Exists\",\"effect\":\"NoExecute\",\"tolerationSeconds\":300},"
        "{\"key\":\"node.kubernetes.io/unreachable\",\"operator\":\"Exists\",\"effect\":\"NoExecute"
        "\",\"tolerationSeconds\":300}],\"priority\":0,\"enableServiceLinks\":true,\"preemptionPoli"
        "cy\":\"PreemptLowerPriority\"},",
        i, i % 9, i % 8, 20 + i % 20, i, i % 1000);
}

static void add_status(struct strbuf *b, unsigned i)
{
    strbuf_addf(
        b,
        "\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\""
        "True\",\"lastProbeTime\":null,\"lastTransitionTime\":\"2026-03-01T12:00:01Z\"},{\"type\":\""
        "Ready\",\"status\":\"True\",\"lastProbeTime\":null,\"lastTransitionTime\":\"2026-03-01T12:"
        "00:09Z\"}],\"hostIP\":\"10.0.%u.%u\",\"podIP\":\"10.1.%u.%u\",\"startTime\":\"2026-03-01T1"
        "2:00:01Z\",\"containerStatuses\":[{\"name\":\"main\",\"state\":{\"running\":{\"startedAt\""
        ":\"2026-03-01T12:00:08Z\"}},\"lastState\":{},\"ready\":true,\"restartCount\":0,\"image\":\""
        "registry.example/train:v1.%u\",\"imageID\":\"registry.example/train@sha256:%08x%08x%08x%08x"
        "\",\"containerID\":\"containerd://%08x%08x%08x%08x%08x%08x%08x%08x\",\"started\":true,"
        "\"allocatedResources\":{\"aliyun.com/gpu-mem\":\"8\",\"cpu\":\"%u00m\",\"memory\":\"16Gi\""
        "},\"resources\":{\"requests\":{\"aliyun.com/gpu-mem\":\"8\",\"cpu\":\"%u00m\",\"memory\":\""
        "16Gi\"}}}],\"qosClass\":\"Burstable\"}}",
        i % 256, i % 250, i % 256, i % 250, i % 9, i, i * 3, i * 5, i * 7, i, i * 11, i * 13,
        i * 17, i * 19, i * 23, i * 29, i * 31, 20 + i % 20, 20 + i % 20);
}

static void make_list(struct strbuf *b, unsigned pods)
{
    strbuf_adds(
        b,
        "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"999999\"},"
        "\"items\":[");
    for (unsigned i = 0; i < pods; i++) {
        if (i)
            strbuf_addc(b, ',');
        add_metadata(b, i);
        add_spec(b, i);
        add_status(b, i);
    }
    strbuf_adds(b, "]}");
}

/* Parses in place and decodes all; how many, and what their arenas hold. */
static size_t decode_list(char *buf, size_t n, struct pod **pods, size_t max, size_t *arena_total)
{
    struct error err = ERROR_INIT;
    AUTO_JSON *doc = NULL;
    size_t done = 0;
    if (json_parse_insitu(&doc, buf, n, &err) < 0) {
        fprintf(stderr, "bench_decode: %s\n", err.text);
        exit(1);
    }
    for (struct json_iter it = json_iter(json_get(json_root(doc), "items"));
         done < max && json_next(&it);) {
        if (decode_pod(it.value, &pods[done], &err) < 0) {
            fprintf(stderr, "bench_decode: %s\n", err.text);
            exit(1);
        }
        *arena_total += arena_bytes(&pods[done]->arena);
        done++;
    }
    return done;
}

static void free_pods(struct pod **pods, size_t n)
{
    for (size_t i = 0; i < n; i++)
        pod_free(pods[i]);
}

static int64_t high_water_kib(void)
{
    char line[256];
    int64_t kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f)) {
        if (!str_starts(line, "VmHWM:"))
            continue;
        const char *p = line + 6 + strspn(line + 6, " \t");
        if (num_parse(p, strspn(p, "0123456789"), &kib, NULL) < 0)
            kib = 0;
    }
    if (f)
        fclose(f);
    return kib;
}

/* In a child: the peak of one process that does this once. */
static void print_memory(unsigned count)
{
    fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        return;
    if (child > 0) {
        waitpid(child, NULL, 0);
        return;
    }
    struct strbuf list = {0};
    size_t arenas = 0;
    make_list(&list, count);
    struct pod **pods = calloc(count, sizeof *pods);
    strbuf_reserve(&list, JSON_PADDING);
    size_t bytes = list.len;
    if (!pods)
        abort();
    decode_list(list.ptr, list.len, pods, count, &arenas);
    printf(
        "memory: VmHWM %lld KiB with the list of %zu KiB, its parse and the pods; %zu bytes of aren"
        "a per pod\n",
        (long long)high_water_kib(), bytes / 1024, arenas / count);
    fflush(stdout);
    _exit(0);
}

int main(int argc, char **argv)
{
    int64_t count = 5000, rounds = 15;
    struct error err = ERROR_INIT;
    if ((argc > 1 && num_parse_range(argv[1], 1, 1000000, &count, &err) < 0) ||
        (argc > 2 && num_parse_range(argv[2], 1, 1000, &rounds, &err) < 0)) {
        fprintf(stderr, "bench_decode: %s\n", err.text);
        return 2;
    }
    print_memory((unsigned)count);
    struct strbuf list = {0};
    make_list(&list, (unsigned)count);
    size_t n = list.len;
    char *work = malloc(n + JSON_PADDING);
    struct pod **pods = calloc((size_t)count, sizeof *pods);
    int64_t *ours = calloc((size_t)rounds, sizeof *ours),
            *bare = calloc((size_t)rounds, sizeof *bare);
    if (!work || !pods || !ours || !bare)
        abort();
    printf("list: %lld pods, %zu bytes, %zu per pod, %lld rounds\n", (long long)count, n,
           n / (size_t)count, (long long)rounds);
    for (int64_t i = 0; i < rounds; i++) {
        int64_t began = clock_mono_us();
        if (!yyjson_baseline_parse(list.ptr, n))
            abort();
        bare[i] = clock_mono_us() - began;
        memcpy(work, list.ptr, n);
        memset(work + n, 0, JSON_PADDING);
        size_t arenas = 0;
        began = clock_mono_us();
        size_t done = decode_list(work, n, pods, (size_t)count, &arenas);
        ours[i] = clock_mono_us() - began;
        free_pods(pods, done);
        if (done != (size_t)count)
            abort();
    }
    double ours_ms = (double)quantile(ours, rounds, 50) / 1000;
    double bare_ms = (double)quantile(bare, rounds, 50) / 1000;
    result_print(&(struct result){.name = "decode",
                                  .unit = "ms",
                                  .places = 3,
                                  .value = ours_ms,
                                  .baseline = bare_ms,
                                  .goal = 2 * bare_ms,
                                  .met = result_met(ours_ms <= 2 * bare_ms)},
                 "%s", "");
    strbuf_deinit(&list);
    free(work);
    free(pods);
    free(ours);
    free(bare);
    return 0;
}
