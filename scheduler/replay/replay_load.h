// SPDX-License-Identifier: Apache-2.0
/* replay_load - files → cluster: dumps, Lists from kubectl, objects in JSON or YAML. An unreadable
 * object is a warning that names file, object and field; the rest is loaded. */
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
    bool named;          /* the scheduler's name was given: ignore the dump's */
    bool scored;         /* the scoring was given, likewise */
    bool any_scheduler;  /* take waiting pods of other schedulers too */
    struct arena arena;  /* lives as long as this */
    struct map skipped;  /* kind -> size_t: ignored objects */
    struct map priority; /* PriorityClass -> int32_t */
    struct map unknown;  /* PriorityClasses that do not exist */
    int32_t default_priority;
    int64_t latest_ns;                        /* the youngest pod's creation */
    size_t objects;                           /* loaded */
    size_t refused;                           /* not loaded; each with a warning */
    struct VEC(struct pod *) assumed;         /* until all nodes are loaded */
    struct VEC(struct replay_load_rest) rest; /* until all pods are loaded */
    struct replay_documents documents;        /* of the files */
};

void replay_load_init(struct replay_load *l, struct cluster *c, const struct cluster_hooks *hooks);
void replay_load_deinit(struct replay_load *l);

/* path "-" is standard input. -1: the whole file is unusable. */
int replay_load_file(struct replay_load *l, const char *path, struct error *err);
/* One object or List, found at `where` ("FILE: items[3]"); must live until replay_load_finish. */
void replay_load_object(struct replay_load *l, json *j, const char *where);
/* After the last file: gives a dump's assumed pods their node and grant. */
void replay_load_finish(struct replay_load *l);
/* "2 Service, 1 ConfigMap": ignored kinds; NULL: none. In the arena. */
const char *replay_load_skipped(struct replay_load *l);

/* Counts and warns that the object at `where` was not loaded. */
void replay_load_refuse(struct replay_load *l, const char *where, const struct error *err);
/* Decodes a pod and fills in defaults; warns if no node may take it. NULL: err says why. The caller
 * owns it. */
struct pod *replay_load_pod(struct replay_load *l, json *j, const char *where, struct error *err);
/* Fills in the API server's defaults: requests where only limits are given, the priority. */
void replay_load_defaults(struct replay_load *l, struct pod *p, json *spec);
