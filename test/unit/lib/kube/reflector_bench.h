// SPDX-License-Identifier: Apache-2.0
/* reflector_bench - a reflector between the twin and a receiver whose copy can be compared with the
 * twin's pods. */
#pragma once

#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/map.h"
#include "lib/base/num.h"
#include "lib/kube/decode.h"
#include "lib/kube/http.h"
#include "lib/kube/reflector.h"
#include "test/fake/api/twin.h"

enum { WAIT_MS = 30000 };

/* ---- a receiver ----------------------------------------------------------------------------- */

struct copy {
    pthread_mutex_t lock;
    struct map pods; /* name → struct pod */
    int64_t resets, puts, deletes, parts, listings;
    bool closed;
};

static inline int decode(json *j, void **out, struct error *err)
{
    struct pod *p = NULL;
    int rc = decode_pod(j, &p, err);
    *out = p;
    return rc;
}

static inline void free_pod(void *p)
{
    pod_free(p);
}

static inline void empty(struct copy *c)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&c->pods, &i, &key, &value);) {
        map_remove(&c->pods, key);
        pod_free(value);
    }
}

static inline bool deliver(void *arg, struct reflector_message *l)
{
    struct copy *c = arg;
    pthread_mutex_lock(&c->lock);
    bool open = !c->closed;
    if (open && l->event == REFLECTOR_RESET) {
        c->resets++;
        empty(c);
    }
    c->parts += l->event == REFLECTOR_PART;
    c->listings += l->event == REFLECTOR_LISTED;
    for (size_t i = 0; open && i < l->len; i++) {
        struct pod *p = l->objects[i];
        if (l->event == REFLECTOR_DELETE) {
            c->deletes++;
            pod_free(map_remove(&c->pods, p->name));
            continue;
        }
        c->puts += l->event == REFLECTOR_PUT;
        l->objects[i] = NULL;
        pod_free(map_put(&c->pods, p->name, p));
    }
    pthread_mutex_unlock(&c->lock);
    reflector_message_free(l);
    return open;
}

static inline void copy_init(struct copy *c)
{
    *c = (struct copy){0};
    pthread_mutex_init(&c->lock, NULL);
    map_init(&c->pods);
}

static inline void copy_deinit(struct copy *c)
{
    empty(c);
    map_deinit(&c->pods);
    pthread_mutex_destroy(&c->lock);
}

/* "" when equal, else the first difference. */
static inline void compare(struct copy *c, struct twin *t, char *out, size_t size)
{
    struct twin_pod *want;
    size_t n = twin_pods(t, &want);
    out[0] = 0;
    pthread_mutex_lock(&c->lock);
    if (map_count(&c->pods) != n)
        str_format(out, size, "expected %zu pods, got %zu", n, map_count(&c->pods));
    for (size_t i = 0; i < n && !out[0]; i++) {
        const struct pod *p = map_get(&c->pods, want[i].name);
        const char *label = p ? str_or_empty(labels_get(&p->labels, "n")) : "";
        if (!p)
            str_format(out, size, "pod %s is missing", want[i].name);
        else if (!str_eq(p->uid, want[i].uid) || !str_eq(p->resource_version, want[i].version) ||
                 !str_eq(label, want[i].version))
            str_format(out, size, "pod %s: expected %s at %s, got %s at %s, label %s", want[i].name,
                       want[i].uid, want[i].version, p->uid, p->resource_version, label);
    }
    pthread_mutex_unlock(&c->lock);
    free(want);
}

static inline void expect_equal(struct copy *c, struct twin *t, const char *when)
{
    char difference[256];
    int64_t end = clock_mono_ms() + WAIT_MS;
    do {
        compare(c, t, difference, sizeof difference);
        if (!difference[0])
            return;
        clock_sleep_ms(1);
    } while (clock_mono_ms() < end);
    fail_msg("%s: not equal after %d ms: %s", when, WAIT_MS, difference);
}

/* ---- setting up ----------------------------------------------------------------------------- */

struct bench {
    struct twin *twin;
    struct kube_config *config;
    struct kube_options options;
    struct copy copy;
    struct reflector *reflector;
};

static inline void bench_init(struct bench *b)
{
    *b = (struct bench){.twin = twin_start(NULL, false), .options = twin_options()};
    b->config = twin_config(b->twin);
    copy_init(&b->copy);
}

static inline struct reflector_config plain_config(struct bench *b)
{
    return (struct reflector_config){.kind = &kube_pods,
                                     .type = {.decode = decode, .free = free_pod},
                                     .deliver = deliver,
                                     .arg = &b->copy,
                                     .backoff_first_ms = 2,
                                     .backoff_max_ms = 50,
                                     .optional_ms = 20};
}

static inline void start(struct bench *b, const struct reflector_config *c)
{
    struct error err = ERROR_INIT;
    if (reflector_start(&b->reflector, b->config, &b->options, c, &err) < 0)
        fail_msg("reflector_start: %s", err.text);
}

static inline void bench_deinit(struct bench *b)
{
    reflector_stop(b->reflector);
    twin_stop(b->twin);
    kube_config_free(b->config);
    copy_deinit(&b->copy);
}

/* Polls a figure until it is at least n. */
static inline void await(int64_t (*figure)(struct bench *), struct bench *b, int64_t n,
                         const char *what)
{
    int64_t end = clock_mono_ms() + WAIT_MS, got;
    while ((got = figure(b)) < n) {
        if (clock_mono_ms() >= end)
            fail_msg("%s: expected at least %lld, got %lld after %d ms", what, (long long)n,
                     (long long)got, WAIT_MS);
        clock_sleep_ms(1);
    }
}

#define STAT(field)                                     \
    static inline int64_t stat_##field(struct bench *b) \
    {                                                   \
        struct reflector_stats s;                       \
        reflector_stats(b->reflector, &s);              \
        return s.field;                                 \
    }
STAT(lists)
STAT(watches)
STAT(events)
STAT(bookmarks)
STAT(gone)
STAT(failures)
STAT(undecodable)

static inline int64_t copy_resets(struct bench *b)
{
    pthread_mutex_lock(&b->copy.lock);
    int64_t n = b->copy.resets;
    pthread_mutex_unlock(&b->copy.lock);
    return n;
}

static inline int64_t running_watches(struct bench *b)
{
    return (int64_t)twin_break(b->twin, TWIN_NONE);
}

static inline int64_t broken(struct bench *b)
{
    return (int64_t)twin_broken(b->twin);
}

static inline int64_t faults_met(struct bench *b)
{
    return -(int64_t)twin_faults_left(b->twin);
}

static inline void put(struct bench *b, unsigned i)
{
    char name[32];
    str_format(name, sizeof name, "p%u", i);
    twin_put(b->twin, name, NULL);
}

static inline void put_many(struct bench *b, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        put(b, i);
}

static inline void drop_line(void *arg, const char *line, size_t n)
{
    (void)arg, (void)line, (void)n;
}
