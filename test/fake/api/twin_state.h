// SPDX-License-Identifier: Apache-2.0
/* twin_state - what the twin's two files share: twin.c changes it for the tests, twin_serve.c shows
 * it to clients. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/vec.h"
#include "test/fake/api/twin.h"
#include "test/fake/api/wire.h"

enum { REQUESTS_KEPT = 64, TICK_MS = 5, HANG_MAX_MS = 60000, OVERSIZE = 4 * 1024 * 1024 };

struct stored {
    char name[64];
    char uid[64];
    int64_t version;
    char *json; /* without the versions of lists */
};

struct entry { /* of the log */
    int64_t version;
    const char *type;
    char *json;
};

struct queued {
    enum twin_class class;
    enum twin_fault fault;
};

struct scripted {
    char *part; /* of the path; NULL: any */
    int status; /* 0: body is all there is to say, in two pieces, and then? */
    char *headers, *body;
    size_t cut;
    bool close;
};

struct twin {
    int fd;
    uint16_t port;
    struct wire_context *tls;
    pthread_t acceptor;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stopping;
    struct twin_fds VEC(int) fds; /* of live connections */
    struct twin_threads VEC(pthread_t) threads;

    int64_t version, floor;
    struct twin_pods_ VEC(struct stored) pods; /* sorted by name */
    struct twin_log VEC(struct entry) log;
    struct twin_pages VEC(char *) snapshot; /* of a list in pages */
    int64_t snapshot_version;
    bool absent;

    struct twin_faults VEC(struct queued) faults;
    struct twin_scripts VEC(struct scripted) scripts;
    size_t watches;            /* running */
    size_t broken;             /* watches that met twin_break */
    enum twin_fault break_how; /* what the next watch to look meets; TWIN_NONE: nothing */
    uint64_t bookmarks;
    size_t counts[TWIN_ANY];
    size_t connections;

    struct twin_seen VEC(char *) seen;
    char *lease; /* spec as JSON, NULL: no Lease */
    char lease_holder[256];
    int64_t lease_version;
};

/* Serves one connection; takes the malloc'ed struct twin_handed. */
struct twin_handed {
    struct twin *t;
    int fd;
};
void *twin_serve(void *handed);
/* Under the lock. */
void twin_drop_snapshot(struct twin *t);
void twin_store_lease(struct twin *t, const char *spec, const char *holder);
char *twin_printed(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
