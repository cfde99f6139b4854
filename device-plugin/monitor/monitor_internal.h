// SPDX-License-Identifier: Apache-2.0
/* monitor_internal - what the files of monitor share. */
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
    const struct pod *pod; /* this and the grant are the cache's */
    const struct grant *grant;
    int64_t asked_mib;        /* gpu-mem; 0: it asked for none */
    enum mode_resource whole; /* what grant->group is of */
    bool looked;              /* usage is known */
    struct usage usage;
    struct monitor_audit {
        bool known;         /* our library is in its containers */
        int64_t confined;   /* processes that have it, alive */
        int64_t beyond_mib; /* what its containers have beyond their limits now */
        char beyond[256];   /* the worst of them in words */
        /* When it has been so for some looks: processes on the cards beside the confined ones, and
         * memory beyond the limits. */
        int64_t loose, over_mib;
        int looks; /* in a row that found some */
        bool told;
        bool unmeasured; /* the time of one of its containers, now */
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
    bool confined;                  /* our own library is the engine in force */
    struct context_probe *contexts; /* NULL: none */
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
    struct VEC(struct monitor_pod *) pods;
    bool pods_listed; /* all that there are have been told */
    bool usage_known;
    int64_t outside_mib, outside_processes; /* of processes in no pod */
};

/* What the pods use now, with Events about those that use more than they asked for. */
void monitor_pods_look(struct monitor *m, const struct scan_letter *l, int64_t now_ms);
/* Under the lock, after their usage is known: what got past the library, and containers whose time
 * nobody measures, with Events. */
void monitor_audit_look(struct monitor *m, const struct scan_letter *l, bool processes_known);
/* Device time into the regions. */
void monitor_time_look(struct monitor *m, const struct scan_letter *l);
/* Tells the scan whether device time is to be measured. */
void monitor_time_wanted(struct monitor *m);
/* The index of the card, or BACKEND_NO_CARD. */
int32_t monitor_card_of(const struct monitor *m, const unsigned char uuid[16]);
/* The pod that the folder was made for, by the node's own word (ns and pod: its owner); NULL: it is
 * not known. */
struct monitor_pod *monitor_pod_of(const struct monitor *m, const char *folder, const char *ns,
                                   const char *pod);
/* Does the process run in the container with this folder? One whose mounts do not tell it is in its
 * pod's container, if that has one. What it has mounted is its own word: it is not believed about
 * another pod's. */
bool monitor_is_in(const struct monitor *m, const struct usage_process *p,
                   const struct shares_folder *list, size_t len, size_t at);
void monitor_pods_init(struct monitor *m);
void monitor_pods_free(struct monitor *m);
/* Registers the metrics of this monitor. */
void monitor_metrics_init(struct monitor *m);
void monitor_metrics_hung(bool hung);
void monitor_metrics_cpu_static(bool is_static);
