// SPDX-License-Identifier: Apache-2.0
/*
 * replay_load - files → cluster: dumps, Lists from kubectl, objects in JSON or YAML.
 *
 * An object that cannot be read is a warning that names file, object and field; everything else
 * goes on. A pod that cannot be read closes its node, as in the scheduler.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/base/map.h"
#include "lib/base/vec.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/replay/replay_documents.h"

/* The "cosched" of a List, or NULL, in its document. */
struct replay_load_rest {
    json *own;
    const char *where;
};

struct replay_load {
    struct cluster *cluster;
    const struct cluster_hooks *hooks;
    void (*warn)(void *arg, const char *text);
    void *arg;
    const char *ns;      /* of objects that have none */
    bool named;          /* the scheduler's name was given: a dump's own does not count */
    bool scored;         /* which nodes are filled first was given, likewise */
    bool any_scheduler;  /* waiting pods of other schedulers are ours as well */
    struct arena arena;  /* for as long as this lives */
    struct map skipped;  /* kind -> size_t: objects that play no part */
    struct map priority; /* PriorityClass -> int32_t */
    struct map unknown;  /* names of PriorityClasses that are nowhere */
    int32_t default_priority;
    int64_t latest_ns;                /* the youngest pod's creation */
    size_t objects;                   /* taken */
    size_t refused;                   /* not taken, or taken as unreadable: each was a warning */
    struct VEC(struct pod *) assumed; /* until all nodes are there */
    struct VEC(struct replay_load_rest) rest; /* until all pods are there */
    struct replay_documents documents;        /* of the files */
};

void replay_load_init(struct replay_load *l, struct cluster *c, const struct cluster_hooks *hooks);
void replay_load_deinit(struct replay_load *l);

/* path "-" is standard input. -1: the file as a whole is of no use. */
int replay_load_file(struct replay_load *l, const char *path, struct error *err);
/* One object (also a List), as found in `where` ("FILE: items[3]"). It lives until
 * replay_load_finish. */
void replay_load_object(struct replay_load *l, json *j, const char *where);
/* After the last file: pods that a dump says are assumed get their node and grant. */
void replay_load_finish(struct replay_load *l);
/* "2 Service, 1 ConfigMap": kinds that play no part; NULL when there were none. In the arena. */
const char *replay_load_skipped(struct replay_load *l);

/* Notes and warns: what is at `where` was not taken. */
void replay_load_refuse(struct replay_load *l, const char *where, const struct error *err);
/* Decodes a pod, defaults filled in; one that cannot be read is what remains of it, and a warning.
 * NULL: not even that, and err says why. The caller's. */
struct pod *replay_load_pod(struct replay_load *l, json *j, const char *where, struct error *err);
/* What the API server fills in when it takes a pod: requests where only limits are given, the
 * priority. */
void replay_load_defaults(struct replay_load *l, struct pod *p, json *spec);
