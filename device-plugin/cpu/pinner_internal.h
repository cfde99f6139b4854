// SPDX-License-Identifier: Apache-2.0
/* pinner_internal - shared by the pinner's files only. */
#pragma once

#include <pthread.h>

#include "device-plugin/cpu/cgroups.h"
#include "device-plugin/cpu/pinner.h"
#include "device-plugin/cpu/pinner_plan.h"
#include "lib/base/arena.h"
#include "lib/base/map.h"
#include "lib/model/cpu_request.h"

/* One group below a pod's: a container, or the pod's sandbox. */
struct pinner_box {
    struct pinner_box *next;
    char id[CGROUPS_ID_SIZE];
    char path[CGROUPS_PATH_SIZE]; /* below the hierarchy's top */
    uint32_t container;           /* PINNER_ANY: not known yet */
    uint32_t mounted;             /* by its mounts; PINNER_ANY: unknown (yet) */
    unsigned looks;               /* attempts to read its mounts */
    int wd;                       /* of cpuset.cpus; -1: none */
    bool seen;                    /* in the current listing */
    struct cpuset cpus;           /* what we gave it; empty: nothing */
    int64_t since_ms;             /* when it first had its CPUs; 0: not yet */
    int64_t repairs;
    unsigned tries; /* consecutive, without its files */
};

struct pinner_pod {
    /* Of the pod's newest version, owned by the cache. */
    const struct pod *pod;
    struct arena arena; /* of the two below */
    struct cpu_grant asked;
    const char *unreadable;

    /* For the pod's lifetime. */
    struct arena held_arena;
    struct cpu_grant held; /* the grant confirmed first, or what it has shrunk to */
    const char *held_text; /* as answered */
    bool released;
    bool obeyed;                 /* every group has its CPUs, or was released */
    char dir[CGROUPS_PATH_SIZE]; /* "": not found yet */
    int wd;
    struct pinner_box *boxes;
    bool dirty, hurry;
    bool undecided;     /* a new version, not decided yet */
    int64_t missing_ms; /* since when a container lacks its group; 0: none does */
    char *sent;         /* the last answer */
    int64_t sent_ms;
    /* The last Events, each sent once; "": none. */
    char refused[ERROR_TEXT_SIZE], failed[ERROR_TEXT_SIZE];
};

/* Does it ask for CPUs of its own; does it share those it was granted? */
static inline bool pinner_pins(const struct pinner_pod *x)
{
    return cpu_request_pins(&x->pod->annotations);
}
static inline bool pinner_shares(const struct pinner_pod *x)
{
    return cpu_request_shares(&x->pod->annotations);
}

/* What was confirmed before a restart. */
struct pinner_remembered {
    const char *text; /* the grant */
    bool released;
    int64_t *limits_milli; /* limits.cpu of the containers, in the order of pod_container */
    size_t limits_len;
};

struct pinner_memory {
    struct arena arena;
    struct map grants; /* uid → struct pinner_remembered, of pods not seen yet */
    bool known;        /* the file was readable: pods not in it were never confirmed */
    bool pool;         /* it says that others were kept off pinned CPUs */
    bool unsaved;      /* changed since it was written */
    char complaint[ERROR_TEXT_SIZE];
};

struct pinner {
    struct pinner_config config;
    pthread_mutex_t lock; /* the metrics are collected on another thread */
    bool open;            /* cgroups were found */
    bool is_static;       /* the kubelet's CPU manager pins itself */
    struct cgroups cgroups;
    struct arena machine_arena;
    bool known;
    struct cpu_topology machine;
    struct map pods; /* uid → struct pinner_pod *, owned */
    int inotify;
    int class_wd[CGROUPS_PLACES];
    struct loop_timer tick, hurry;
    bool resting; /* no pinned pods */
    bool listed;  /* all pods were listed */
    struct pinner_memory memory;
    bool give_back; /* --shared-pool was on and is off: others get their CPUs back */
    char complaint[ERROR_TEXT_SIZE];
};

/* pinner: the uid in the name of the pod's cgroup. */
const char *pinner_group_uid(const struct pod *pod);
/* pinner: reports that a group cannot be pinned, as an Event on the pod. */
void pinner_fail(struct pinner *p, struct pinner_pod *pod, const char *text);
/* pinner: schedules work on pods that are dirty or in a hurry. */
void pinner_hurry(struct pinner *p, int64_t delay_ms);

/* pinner_groups: gives the pod's groups their CPUs. */
void pinner_groups_work(struct pinner *p, struct pinner_pod *pod);
/* Removes the pod's watches. */
void pinner_groups_forget(struct pinner *p, struct pinner_pod *pod);
int pinner_groups_start(struct pinner *p, struct error *err);
void pinner_groups_stop(struct pinner *p);
/* Watches those directories of pods that exist. */
void pinner_groups_scan(struct pinner *p);

/* pinner_memory: the state file. */
void pinner_memory_load(struct pinner *p);
/* Only if something changed. A grant is answered only after this. */
void pinner_memory_save(struct pinner *p);
/* NULL: never confirmed, or the pod has been seen since. Borrowed. */
const struct pinner_remembered *pinner_memory_find(const struct pinner *p, const char *uid);
/* All pods are known: forgets the others. */
void pinner_memory_forget(struct pinner *p);
void pinner_memory_deinit(struct pinner *p);

/* pinner_metrics */
void pinner_metrics_register(struct pinner *p);
void pinner_metrics_count(const char *result);
