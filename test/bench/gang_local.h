// SPDX-License-Identifier: Apache-2.0
/*
 * gang_local - (b) of bench_gang: 1,000 gangs of 8 on 1,000 hollow nodes of cosched-local, over
 * plain HTTP, while they are being created. The baseline is the same 8,000 pods without gangs, in
 * turns in the same run: eight pods that have the same number are counted like a gang.
 */
#pragma once

#include "test/bench/gang_cluster.h"

enum { GANG_LOCAL_NODES = 1000, GANG_LOCAL_GANGS = 1000 };

static inline void gang_local_print(int64_t plain[GANG_REPEATS][GANG_FIGURES],
                                    int64_t gangs[GANG_REPEATS][GANG_FIGURES])
{
    int64_t all = gang_median(gangs, GANG_ALL_MS), all_plain = gang_median(plain, GANG_ALL_MS);
    gang_result("gang_local_rate", GANG_LOCAL_GANGS * INT64_C(1000) / num_max(all, 1),
                "gangs_per_s", GANG_LOCAL_GANGS * INT64_C(1000) / num_max(all_plain, 1), 0);
    gang_result("gang_local_wait_p50", gang_median(gangs, GANG_WAIT_50), "us",
                gang_median(plain, GANG_WAIT_50), 0);
    gang_result("gang_local_wait_p99", gang_median(gangs, GANG_WAIT_99), "us",
                gang_median(plain, GANG_WAIT_99), 0);
    gang_result("gang_local_burst_p50", gang_median(gangs, GANG_BURST_50), "us",
                gang_median(plain, GANG_BURST_50), 0);
    gang_result("gang_local_burst_p99", gang_median(gangs, GANG_BURST_99), "us",
                gang_median(plain, GANG_BURST_99), -GANG_BURST_GOAL_US);
    gang_result("gang_local_cpu", gang_median(gangs, GANG_CPU_US), "us_per_pod",
                gang_median(plain, GANG_CPU_US), 0);
}

static inline void gang_local_run(void)
{
    static struct local server;
    static int64_t plain[GANG_REPEATS][GANG_FIGURES], gangs[GANG_REPEATS][GANG_FIGURES];
    int64_t ignored[GANG_FIGURES];
    struct reflector *observer = NULL;
    gang_noisy = process_is_noisy();
    local_start(&server, GANG_LOCAL_NODES);
    real_load_config(server.kubeconfig);
    real_open_log();
    real.http_port = local_free_port();
    gang_begin(&observer);
    pid_t scheduler = real_start_ours();
    struct gang_load warm_up = {"warm-up", NAME_SCHEDULER, NULL, GANG_LOAD_LABELS, 50};
    gang_measure(&warm_up, scheduler, ignored);
    for (int i = 0; i < GANG_REPEATS; i++)
        for (int turn = 0; turn < 2; turn++) {
            bool is_gang = (turn + i) % 2 == 1;
            char prefix[32];
            str_format(prefix, sizeof prefix, "%s%d", is_gang ? "gangs" : "plain", i);
            struct gang_load load = {prefix, NAME_SCHEDULER, NULL,
                                     is_gang ? GANG_LOAD_LABELS : GANG_LOAD_PLAIN,
                                     GANG_LOCAL_GANGS};
            gang_measure(&load, scheduler, is_gang ? gangs[i] : plain[i]);
        }
    process_stop(scheduler);
    gang_end(observer);
    process_stop(server.pid);
    gang_local_print(plain, gangs);
    real_end();
}
