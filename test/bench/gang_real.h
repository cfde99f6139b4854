// SPDX-License-Identifier: Apache-2.0
/*
 * gang_real - (d) of bench_gang: our gangs and kube-scheduler's own (feature gates GenericWorkload
 * and GangScheduling, alpha in 1.36) on one real API server, in turns, with the same objects:
 * PodGroups of scheduling.k8s.io/v1alpha2 and pods that name them in spec.schedulingGroup. Only
 * spec.schedulerName differs. While one has its turn the other is stopped.
 *
 *     two    two gangs of 8, their pods created in turns, on capacity for 10: how long the first
 *            takes from its last pod; then, after more than both schedulers' backoff, the first is
 *            deleted: how long the second takes from the moment when it fits
 *     many   50 gangs of 8 on 100 nodes, with kube-scheduler's limits on requests lifted
 */
#pragma once

#include "test/bench/gang_cluster.h"

enum { GANG_KUBE, GANG_OURS, GANG_KINDS };
enum { GANG_REAL_NODES = 100, GANG_REAL_MANY = 50, GANG_TWO_ROUNDS = 7, GANG_BACKOFF_MS = 1300 };
#define GANG_GATES "--feature-gates=GenericWorkload=true,GangScheduling=true"

static pid_t gang_pids[GANG_KINDS];
static const char *const gang_schedulers[GANG_KINDS] = {"bench-kube", NAME_SCHEDULER};
static const char *const gang_kinds[GANG_KINDS] = {"kube", "ours"};

static struct {
    int64_t first[GANG_TWO_ROUNDS], second[GANG_TWO_ROUNDS];
    int64_t many[GANG_REPEATS][GANG_FIGURES];
} gang_times[GANG_KINDS];

/* A stopped one would not hear that it is to end. */
static inline void gang_real_down(void)
{
    if (gang_pids[GANG_KUBE] > 0)
        kill(gang_pids[GANG_KUBE], SIGCONT);
    real_down();
}

static inline struct gang_load gang_real_load(char *prefix, size_t size, int kind, const char *what,
                                              int number, const char *pool, int64_t gangs)
{
    str_format(prefix, size, "%s-%s%d", gang_kinds[kind], what, number);
    return (struct gang_load){prefix, gang_schedulers[kind], pool, GANG_LOAD_NATIVE, gangs};
}

/* One is awake; a gang that does not count shows that it has caught up with what it missed. */
static inline void gang_turn(int kind)
{
    static int turns;
    char prefix[32];
    for (int other = 0; other < GANG_KINDS; other++)
        kill(gang_pids[other], other == kind ? SIGCONT : SIGSTOP);
    struct gang_load l = gang_real_load(prefix, sizeof prefix, kind, "turn", turns++, "many", 1);
    gang_make_groups(gang_makers[0].client, &l);
    gang_expect(&l, 0);
    gang_work_all(&l, false);
    gang_wait(&gang_watch.whole, 1, "whole");
    gang_work_all(&l, true);
}

static inline void gang_two(int kind, int round)
{
    enum { ROOM = 10 };
    char prefix[32];
    struct kube_client *client = gang_makers[0].client;
    struct gang_load l = gang_real_load(prefix, sizeof prefix, kind, "two", round, "pair", 2);
    gang_make_groups(client, &l);
    gang_expect(&l, 2 * GANG_SIZE - ROOM);
    for (int64_t i = 0; i < GANG_SIZE; i++)
        for (int64_t gang = 0; gang < 2; gang++)
            gang_make_pod(client, &l, (gang + i + round) % 2, i);
    gang_wait(&gang_watch.whole, 1, "the first is whole");
    clock_sleep_ms(GANG_BACKOFF_MS);
    const struct gang_seen *seen = gang_watch.seen;
    int64_t first = seen[0].bound == gang_all ? 0 : 1;
    if (seen[1 - first].bound != 0)
        die("some of the second gang is bound while the first runs");
    for (int64_t i = 0; i < GANG_SIZE; i++)
        gang_delete_pod(client, &l, first, i);
    gang_wait(&gang_watch.whole, 2, "the second is whole");
    gang_times[kind].first[round] = seen[first].whole_us - seen[first].shown_us;
    gang_times[kind].second[round] = seen[1 - first].whole_us - seen[first].room_us;
    printf(
        "%s: two gangs: the first %lld us after its last pod, the second %lld us after there was "
        "room\n",
        gang_kinds[kind], (long long)gang_times[kind].first[round],
        (long long)gang_times[kind].second[round]);
    for (int64_t i = 0; i < GANG_SIZE; i++)
        gang_delete_pod(client, &l, 1 - first, i);
    gang_wait(&gang_watch.gone, 2 * GANG_SIZE, "gone");
}

static inline void gang_real_start(void)
{
    real_up(GANG_REAL_NODES,
            (const char *[]){"--node-label", "pool=many",
                             "--apiserver-arg=--runtime-config=scheduling.k8s.io/v1alpha2=true",
                             "--apiserver-arg=" GANG_GATES, NULL});
    process_at_end = gang_real_down;
    real_k8s(NULL, "nodes",
             (const char *[]){"--nodes", "2", "--node-prefix", "pair", "--node-cpu", "5",
                              "--node-label", "pool=pair", NULL});
    gang_pids[GANG_KUBE] =
        real_start_kube(gang_schedulers[GANG_KUBE], "--scheduler-arg=" GANG_GATES);
    gang_pids[GANG_OURS] = real_start_ours();
}

static inline void gang_real_print(void)
{
    int64_t two[GANG_KINDS][2], many[GANG_KINDS][GANG_FIGURES];
    for (int kind = 0; kind < GANG_KINDS; kind++) {
        two[kind][0] = quantile(gang_times[kind].first, GANG_TWO_ROUNDS, 50);
        two[kind][1] = quantile(gang_times[kind].second, GANG_TWO_ROUNDS, 50);
        for (int f = 0; f < GANG_FIGURES; f++)
            many[kind][f] = gang_median(gang_times[kind].many, (enum gang_figure)f);
    }
    const int64_t *k = many[GANG_KUBE], *o = many[GANG_OURS];
    gang_result("gang_real_first", two[GANG_OURS][0], "us", two[GANG_KUBE][0],
                -(two[GANG_KUBE][0] / 2));
    gang_result("gang_real_second", two[GANG_OURS][1], "us", two[GANG_KUBE][1],
                -(two[GANG_KUBE][1] / 2));
    gang_result("gang_real_many_all", o[GANG_ALL_MS], "ms", k[GANG_ALL_MS], -(k[GANG_ALL_MS] / 2));
    gang_result("gang_real_many_wait_p50", o[GANG_WAIT_50], "us", k[GANG_WAIT_50],
                -(k[GANG_WAIT_50] / 2));
    gang_result("gang_real_many_wait_p99", o[GANG_WAIT_99], "us", k[GANG_WAIT_99], 0);
    gang_result("gang_real_many_burst_p99", o[GANG_BURST_99], "us", k[GANG_BURST_99],
                -GANG_BURST_GOAL_US);
    gang_result("gang_real_many_cpu", o[GANG_CPU_US], "us_per_pod", k[GANG_CPU_US], 0);
}

static inline void gang_real_run(void)
{
    struct reflector *observer = NULL;
    gang_noisy = process_is_noisy();
    gang_real_start();
    gang_begin(&observer);
    for (int i = 0; i < GANG_TWO_ROUNDS; i++)
        for (int turn = 0; turn < GANG_KINDS; turn++) {
            int kind = (turn + i) % GANG_KINDS;
            gang_turn(kind);
            gang_two(kind, i);
        }
    for (int i = 0; i < GANG_REPEATS; i++)
        for (int turn = 0; turn < GANG_KINDS; turn++) {
            char prefix[32];
            int kind = (turn + i) % GANG_KINDS;
            struct gang_load l =
                gang_real_load(prefix, sizeof prefix, kind, "many", i, "many", GANG_REAL_MANY);
            gang_turn(kind);
            gang_measure(&l, gang_pids[kind], gang_times[kind].many[i]);
        }
    for (int kind = 0; kind < GANG_KINDS; kind++)
        kill(gang_pids[kind], SIGCONT);
    real_stop_kube();
    process_stop(gang_pids[GANG_OURS]);
    gang_pids[GANG_KUBE] = 0;
    gang_end(observer);
    gang_real_print();
    real_end();
}
