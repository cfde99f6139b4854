// SPDX-License-Identifier: Apache-2.0
/* monitor_internal - shared by the monitor's files. */
#pragma once

#include <pthread.h>

#include "device-plugin/monitor/context_probe.h"
#include "device-plugin/cards/health.h"
#include "device-plugin/monitor/monitor.h"
#include "device-plugin/cards/usage.h"
#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/vec.h"
#include "lib/model/grant.h"

enum { MONITOR_XIDS_MAX = 128 };

struct shares_folder;

struct monitor_pod {
    const struct pod *pod; /* this and the grant belong to the cache */
    const struct grant *grant;
    int64_t asked_mib;        /* gpu-mem; 0: none requested */
    enum mode_resource whole; /* resource of grant->group */
    bool looked;              /* usage is known */
    struct usage usage;
    struct monitor_audit {
        bool known;         /* its containers have our library */
        int64_t confined;   /* live processes with the library */
        int64_t beyond_mib; /* memory of its containers beyond their limits now */
        char beyond[256];   /* text about the worst of them */
        /* After several findings: processes without the library, and memory beyond the limits. */
        int64_t loose, over_mib;
        int looks; /* consecutive findings */
        bool told;
        bool unmeasured; /* one of its containers' time, now */
        int blind_looks;
        bool blind_told;
    } audit;
};

struct monitor_xid {
    int32_t card;
    int64_t xid, count;
};

struct monitor {
    struct monitor_config config;
    struct scan *scan;
    enum gpu_mode mode;
    bool confined;                  /* our own library is the active engine */
    struct context_probe *contexts; /* NULL: none */
    struct loop_timer watchdog;
    bool hung;
    int32_t hung_card;
    char scan_error[ERROR_TEXT_SIZE];
    bool cpu_static; /* static CPU manager policy in a shared mode */
    struct health health;

    pthread_mutex_t lock; /* guards what follows, which the metrics thread reads */
    struct arena arena;
    struct gpu_inventory cards;
    int64_t offered[GPU_CARDS_MAX][MODE_RESOURCES]; /* healthy ids, by card index */
    struct monitor_xid xids[MONITOR_XIDS_MAX];
    size_t xids_len;
    struct VEC(struct monitor_pod *) pods;
    bool pods_listed; /* all pods have been delivered */
    bool usage_known;
    int64_t outside_mib, outside_processes; /* of processes outside pods */
};

/* Updates the pods' usage, with Events about pods that exceed their request. */
void monitor_pods_scan(struct monitor *m, const struct scan_message *l, int64_t now_ms);
/* Under the lock, after the usage is known: reports pods that bypass the library and containers
 * whose time is not measured, with Events. */
void monitor_audit_scan(struct monitor *m, const struct scan_message *l, bool processes_known);
/* Writes device time into the regions. */
void monitor_time_scan(struct monitor *m, const struct scan_message *l);
/* Tells the scan whether to measure device time. */
void monitor_time_wanted(struct monitor *m);
/* The card's index, or BACKEND_NO_CARD. */
int32_t monitor_card_of(const struct monitor *m, const unsigned char uuid[16]);
/* The pod the folder was made for, from the node's own record (ns and pod: its owner); NULL:
 * unknown. */
struct monitor_pod *monitor_pod_of(const struct monitor *m, const char *folder, const char *ns,
                                   const char *pod);
/* Does the process run in the container with this folder? A process whose mounts do not tell is
 * assigned to its pod's container, if there is one. Its mounts are not trusted to name another
 * pod's folder. */
bool monitor_is_in(const struct monitor *m, const struct usage_process *p,
                   const struct shares_folder *list, size_t len, size_t at);
void monitor_pods_init(struct monitor *m);
void monitor_pods_free(struct monitor *m);
void monitor_metrics_init(struct monitor *m);
void monitor_metrics_hung(bool hung);
void monitor_metrics_cpu_static(bool is_static);
