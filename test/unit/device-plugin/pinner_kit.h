// SPDX-License-Identifier: Apache-2.0
/*
 * pinner_kit - a pinner on a directory tree instead of the kernel's, with pods, and what it says of
 * them.
 */
#pragma once

#include "device-plugin/cpu/pinner.h"

#include "test/unit/device-plugin/tree.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "lib/kube/decode.h"
#include "test/unit/lib/kube/decode_kit.h"

#define UID "11111111-0000-4000-8000-000000000000"
#define UID2 "22222222-0000-4000-8000-000000000000"
#define ID(x) #x "000000000000000000000000000000000000000000000000000000000000000"
#define POD "kubepods/burstable/pod" UID
#define POD2 "kubepods/pod" UID2
#define CPU(n) "{\\\"elems\\\":{" n "}}"
#define ON(x) "\\\"" #x "\\\":{}"
#define ONE "{\\\"a\\\":{\\\"0\\\":" CPU(ON(1)) "}}"
#define TWO "{\\\"a\\\":{\\\"0\\\":" CPU(ON(1)) "},\\\"b\\\":{\\\"1\\\":" CPU(ON(2)) "}}"

struct pinner_kit {
    struct tree tree;
    struct loop *loop;
    struct podcache pods;
    struct pinner *pinner;
    struct pinner_config config;
    char state[SCRATCH_PATH + 32], memory[SCRATCH_PATH + 32], proc[SCRATCH_PATH + 32];
    int events, answers;
    char reason[64], message[512], answer[512], pod[64];
};

static struct pinner_kit f;

static inline void on_event(void *arg, const struct pod *pod, bool warning, const char *reason,
                            const char *message)
{
    (void)arg, (void)warning;
    f.events++;
    (void)str_format(f.pod, sizeof f.pod, "%s/%s/%.4s", pod->ns, pod->name, pod->uid);
    (void)str_format(f.reason, sizeof f.reason, "%s", reason);
    (void)str_format(f.message, sizeof f.message, "%s", message);
}

static inline void on_applied(void *arg, const struct pod *pod, const char *cpuset)
{
    (void)arg, (void)pod;
    f.answers++;
    (void)str_format(f.answer, sizeof f.answer, "%s", cpuset);
}

static inline void ignore(void *arg, const char *line, size_t n)
{
    (void)arg, (void)line, (void)n;
}

static inline void start(void)
{
    static const char text[] =
        "{\"v\":1,\"sockets\":[\"0-3\"],\"numa\":[\"0-1\",\"2-3\"],\"l3\":[\"0-3\"],\"cores\":\"smt1:4\"}";
    struct cpu_topology t;
    struct arena a;
    arena_init(&a, 0);
    podcache_init(&f.pods);
    f.config.pods = &f.pods;
    assert_int_equal(0, pinner_start(&f.pinner, &f.config, NULL));
    assert_int_equal(0, cpu_topology_decode(text, sizeof text - 1, &a, &t, NULL));
    pinner_machine(f.pinner, &t);
    arena_deinit(&a);
}

static inline void stop(void)
{
    pinner_stop(f.pinner);
    podcache_deinit(&f.pods);
}

static inline int setup(void **state)
{
    (void)state;
    f = (struct pinner_kit){.events = 0};
    log_set_sink(ignore, NULL);
    tree_make(&f.tree);
    tree_group(&f.tree, "cpuset", "0-3\n");
    tree_group(&f.tree, "cpuset/kubepods", "0-3\n");
    tree_group(&f.tree, "cpuset/kubepods/burstable", "0-3\n");
    assert_true(str_format(f.state, sizeof f.state, "%s/state", f.tree.top));
    assert_true(str_format(f.memory, sizeof f.memory, "%s/memory", f.tree.top));
    assert_true(str_format(f.proc, sizeof f.proc, "%s/proc", f.tree.top));
    assert_int_equal(0, loop_new(&f.loop, NULL));
    f.config = (struct pinner_config){.loop = f.loop,
                                      .cgroup_mount = f.tree.top,
                                      .cgroup_root = "",
                                      .cpu_manager_state = f.state,
                                      .state_dir = f.memory,
                                      .proc = f.proc,
                                      .tick_ms = 100,
                                      .pod_event = on_event,
                                      .applied = on_applied};
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    if (f.pinner != NULL)
        stop();
    metrics_reset();
    loop_free(f.loop);
    tree_remove(&f.tree, "");
    log_set_sink(NULL, NULL);
    return 0;
}

static inline struct pod *make(const char *name, const char *uid, const char *annotations,
                               const char *more)
{
    AUTO_STRBUF text;
    AUTO_JSON *doc = NULL;
    struct pod *p;
    struct error err = ERROR_INIT;
    strbuf_init(&text);
    strbuf_addf(
        &text,
        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"%s\",\"annotations\":{%s}},\"spec\":{\"nodeName\":\"n\","
        "\"containers\":[{\"name\":\"a\"},{\"name\":\"b\"}],\"initContainers\":[{\"name\":\"i\"}]}%s}",
        name, uid, annotations, more);
    assert_int_equal(0, json_parse(&doc, strbuf_str(&text), text.len, NULL));
    if (decode_pod(json_root(doc), &p, &err) < 0)
        fail_msg("%s", err.text);
    decode_container_ids(json_root(doc), p);
    return p;
}

#define ASKS "\"cpuset-scheduler\":\"true\","
#define GRANT(x) "\"cpuset\":\"" x "\""
#define STATUS(name, id)                                    \
    ",\"status\":{\"containerStatuses\":[{\"name\":\"" name \
    "\",\"containerID\":\"containerd://" id "\",\"state\":{\"running\":{}}}]}"

static inline void put(const char *name, const char *uid, const char *annotations, const char *more)
{
    podcache_put(&f.pods, make(name, uid, annotations, more));
}

static inline const char *cpus(const char *group)
{
    char below[512];
    assert_true(str_format(below, sizeof below, "cpuset/%s", group));
    return tree_get(&f.tree, below, "cpuset.cpus");
}

/* Turns the loop until the group has these CPUs; at most limit_ms, or the test fails with what it
 * has. */
static inline void wait_cpus(const char *row, const char *group, const char *want)
{
    for (int64_t until = clock_mono_ms() + 10000; clock_mono_ms() < until;) {
        if (str_eq(cpus(group), want))
            return;
        loop_once(f.loop, 20);
    }
    expect_str(row, want, cpus(group));
}

static inline void box(const char *group, const char *has)
{
    char below[512];
    assert_true(str_format(below, sizeof below, "cpuset/%s", group));
    tree_group(&f.tree, below, has);
}
