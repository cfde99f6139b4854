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
struct shares_worker;

struct monitor_pod {
    const struct pod *pod; /* this and the grant belong to the cache */
    const struct grant *grant;
    bool asks;                /* for cards or shares, also another device plugin's */
    int64_t asked_mib;        /* gpu-mem; 0: none requested */
    enum mode_resource whole; /* resource of grant->group */
    bool looked;              /* usage is known */
    struct usage usage;
    struct monitor_audit {
        bool known;                         /* its containers have our library */
        int64_t confined;                   /* live processes with the library */
        int64_t loose_now;                  /* processes without it, at the last look */
        int64_t context_mib[GPU_CARDS_MAX]; /* charged for each context */
        int64_t beyond_mib;                 /* memory beyond its share now */
        char beyond[256];                   /* text about the worst of it */
        struct monitor_window {             /* device time since the last verdict on it */
            int64_t began_ns, seen_ns;      /* 0: not measured yet */
            int64_t busy_ns[GPU_CARDS_MAX];
        } window;
        bool time_over;      /* it used more time than its percentage */
        char time_text[128]; /* about that */
        bool changed;        /* that its container did on purpose */
        char broken[256];    /* text about a region that does not count; "": none */
        /* After several findings: processes without the library, and memory beyond the limits. */
        int64_t loose, over_mib;
        int64_t looks; /* consecutive findings */
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
    bool confined;                /* our own library is the active engine */
    bool limited;                 /* the active engine cannot hold every process to its share */
    struct shares_worker *worker; /* NULL: none */
    struct mailbox *looks;        /* from the worker */
    bool worker_ended;
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
/* Under the lock, after the usage is known: reports pods that have more than their share and
 * containers whose time is not measured, with Events. */
void monitor_audit_scan(struct monitor *m, const struct scan_message *l);
int monitor_audit_init(struct monitor *m, struct error *err);
/* Adds up the pods' device time, as the driver measured it, and compares it with their percentage
 * over a long window. */
void monitor_audit_time(struct monitor *m, const struct scan_message *l);
/* Writes device time into the regions. */
void monitor_time_scan(struct monitor *m, const struct scan_message *l);
/* Tells the scan whether to measure device time. */
void monitor_time_wanted(struct monitor *m);
/* The card's index, or BACKEND_NO_CARD. */
int32_t monitor_card_of(const struct monitor *m, const unsigned char uuid[16]);
/* The pod the folder was made for, from the node's own record; NULL: unknown. By its uid, so that
 * a pod is not taken for an earlier one of its name; older plugins recorded the name alone. */
struct monitor_pod *monitor_pod_of(const struct monitor *m, const struct shares_folder *f);
/* Does the process run in the container with this folder? Its cgroup names the pod. Its mounts may
 * only choose among the pod's containers: a process that names none of them counts for each. */
bool monitor_is_in(const struct monitor *m, const struct usage_process *p,
                   const struct shares_folder *list, size_t len, size_t at);
void monitor_pods_init(struct monitor *m);
void monitor_pods_free(struct monitor *m);
void monitor_metrics_init(struct monitor *m);
void monitor_metrics_hung(bool hung);
void monitor_metrics_cpu_static(bool is_static);
