// SPDX-License-Identifier: Apache-2.0
/* monitor_inside - what the files of monitor share. */
#pragma once

#include <pthread.h>

#include "device-plugin/health.h"
#include "device-plugin/monitor.h"
#include "device-plugin/usage.h"
#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/model/claim.h"

enum { MONITOR_XIDS_MAX = 128 };

struct monitor_pod {
    struct arena arena; /* the texts and the claim */
    const char *key, *ns, *name, *uid;
    int64_t asked_mib; /* gpu-mem; 0: it asked for none */
    struct claim claim;
    enum mode_resource whole; /* what claim.group is of */
    bool looked;              /* usage is known */
    struct usage usage;
    struct monitor_audit {
        bool known;       /* our library is in its containers */
        int64_t confined; /* processes that have it, alive */
        int64_t
            loose; /* processes on the cards beside them, when that has been so for some looks */
        int looks; /* in a row that found some */
        bool told;
    } audit;
};

struct monitor_xid {
    int32_t card;
    int64_t xid, count;
};

struct monitor {
    struct monitor_config config;
    const struct scan *scan;
    struct loop_timer watchdog;
    bool hung;
    int32_t hung_card;
    char scan_error[ERROR_TEXT_SIZE];
    bool cpu_static; /* the kubelet's CPU manager is, beside a shared mode */
    struct health health;

    pthread_mutex_t lock; /* what is below is read by the thread that renders the metrics */
    struct arena arena;
    struct gpu_inventory cards;
    int64_t offered[GPU_CARDS_MAX][MODE_RESOURCES]; /* healthy ids, by card index */
    struct monitor_xid xids[MONITOR_XIDS_MAX];
    size_t xids_len;
    struct monitor_pod **pods;
    size_t pods_len, pods_cap;
    bool pods_listed; /* all that there are have been told */
    bool usage_known;
    int64_t outside_mib, outside_processes; /* of processes in no pod */
};

/* What the pods use now, with Events about those that use more than they asked for. */
void monitor_pods_look(struct monitor *m, const struct scan_letter *l, int64_t now_ms);
/* Under the lock, after their usage is known: processes that got past the library, with Events. */
void monitor_audit_look(struct monitor *m);
void monitor_pods_free(struct monitor *m);
/* Registers the metrics of this monitor. */
void monitor_metrics_init(struct monitor *m);
void monitor_metrics_hung(bool hung);
void monitor_metrics_cpu_static(bool is_static);
