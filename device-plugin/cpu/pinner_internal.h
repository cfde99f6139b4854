// SPDX-License-Identifier: Apache-2.0
/*
 * pinner_internal - what the files of the pinner share. Nobody else includes it.
 */
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
    uint32_t container;           /* PINNER_ANY: which one it is, is not known */
    uint32_t mounted;             /* as its mounts say; PINNER_ANY: they say nothing (yet) */
    unsigned looks;               /* at its mounts */
    int wd;                       /* of cpuset.cpus; -1: none */
    bool seen;                    /* by the listing in hand */
    struct cpuset cpus;           /* what it was given; empty: not ours to say */
    int64_t since_ms;             /* when it was right for the first time; 0: never yet */
    int64_t repairs;
    unsigned tries; /* in a row in which its files were not there */
};

struct pinner_pod {
    /* Of the pod's newest version, which is the cache's. */
    const struct pod *pod;
    struct arena arena; /* of the two below */
    struct cpu_grant asked;
    const char *unreadable;

    /* For as long as it lives. */
    struct arena held_arena;
    struct cpu_grant held; /* the first that was confirmed, or what it has shrunk to */
    const char *held_text; /* in the form in which it is answered */
    bool released;
    bool obeyed;                 /* every group has the CPUs that it should, or was let go */
    char dir[CGROUPS_PATH_SIZE]; /* "": not found yet */
    int wd;
    struct pinner_box *boxes;
    bool dirty, hurry;
    bool undecided;     /* a version that decide has not seen */
    int64_t missing_ms; /* since when a container has no group; 0: none lacks one */
    char *sent;         /* the answer given last */
    int64_t sent_ms;
    /* The Events sent last, so that each is sent once; "": all is well. */
    char refused[ERROR_TEXT_SIZE], failed[ERROR_TEXT_SIZE];
};

/* Whether it asks for CPUs of its own, and whether it lets others have those that it was given. */
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
    struct map grants; /* uid → struct pinner_remembered, of pods that have not been seen yet */
    bool known;        /* there is a file that can be read: who is not in it was never confirmed */
    bool pool;         /* it says that other containers were kept off pinned CPUs */
    bool unsaved;      /* something has changed since it was written */
    char complaint[ERROR_TEXT_SIZE];
};

struct pinner {
    struct pinner_config config;
    pthread_mutex_t lock; /* the metrics are asked for by another thread */
    bool open;            /* cgroups are found */
    bool is_static;       /* the kubelet's CPU manager pins by itself */
    struct cgroups cgroups;
    struct arena machine_arena;
    bool known;
    struct cpu_topology machine;
    struct map pods; /* uid → struct pinner_pod *, owned */
    int inotify;
    int class_wd[CGROUPS_PLACES];
    struct loop_timer tick, hurry;
    bool resting; /* no pod has to do with it */
    bool listed;  /* a list of all pods has come */
    struct pinner_memory memory;
    bool give_back; /* --shared-pool is off, and was on: others have CPUs to get back */
    char complaint[ERROR_TEXT_SIZE];
};

/* pinner: the uid in the name of its cgroup. */
const char *pinner_group_uid(const struct pod *pod);
/* pinner: an Event on the pod: a group cannot be made to obey. */
void pinner_fail(struct pinner *p, struct pinner_pod *pod, const char *text);
/* pinner: pods that are dirty or in a hurry are worked on. */
void pinner_hurry(struct pinner *p, int64_t delay_ms);

/* pinner_groups: makes the pod's groups have the CPUs that they should. */
void pinner_groups_work(struct pinner *p, struct pinner_pod *pod);
/* Lets go of what is watched. */
void pinner_groups_forget(struct pinner *p, struct pinner_pod *pod);
int pinner_groups_start(struct pinner *p, struct error *err);
void pinner_groups_stop(struct pinner *p);
/* The places where pods appear are watched, as far as they exist. */
void pinner_groups_look(struct pinner *p);

/* pinner_memory: the state file. */
void pinner_memory_load(struct pinner *p);
/* Where there is something new. A grant is answered only after that. */
void pinner_memory_save(struct pinner *p);
/* NULL: it was never confirmed, or the pod has been seen since. Borrowed. */
const struct pinner_remembered *pinner_memory_find(const struct pinner *p, const char *uid);
/* All pods are known: whoever is not among them is gone. */
void pinner_memory_forget(struct pinner *p);
void pinner_memory_deinit(struct pinner *p);

/* pinner_metrics */
void pinner_metrics_register(struct pinner *p);
void pinner_metrics_count(const char *result);
