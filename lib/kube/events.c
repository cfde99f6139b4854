// SPDX-License-Identifier: Apache-2.0
/*
 * events_emit is called from threads that must not wait, so it only queues a copy. A repetition of
 * a queued message raises its count there; a repetition of one sent within ten minutes raises the
 * count of the existing Event; anything else is a new Event. The queue, the memory of sent messages
 * (oldest out) and the rate are always bounded.
 *
 * An Event that the server does not accept is dropped and counted: nothing may wait for it or
 * depend on it.
 */
#include "lib/kube/events.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/log.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/metrics.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/kube/api.h"

enum {
    MESSAGE_MAX = 1024,
    NAME_MAX_BYTES =
        230, /* of the object's name inside the Event's name, which is limited to 253 */
    SENT_MAX = 4096,
    SENT_MS = 10 * 60 * 1000,
    REQUEST_MS = 5000,
    LOG_EVERY_MS = 10000,
    BUSY_POLL_MS = 50, /* how soon the end of a busy period is noticed */
};

const struct option_row events_option_rows[] = {
    {.section = "EVENTS"},
    {.name = "event-queue",
     .kind = OPTION_INT,
     .offset = offsetof(struct events_options, queue),
     .fallback = "10000",
     .min = 1,
     .max = 1000000,
     .meta = "N",
     .help = "Events that may wait to be sent; beyond it the newest is dropped and counted."},
    {.name = "event-qps",
     .kind = OPTION_INT,
     .offset = offsetof(struct events_options, qps),
     .fallback = "50",
     .min = 1,
     .max = 100000,
     .meta = "N",
     .help =
         "Events sent in one second at most; the scheduler's conditions of waiting pods are counted with them."},
    {.name = "event-max-age",
     .kind = OPTION_DURATION,
     .offset = offsetof(struct events_options, max_age_ms),
     .fallback = "60s",
     .min = 1,
     .max = 3600 * 1000,
     .meta = "TIME",
     .help = "An Event that could not be sent for so long is old news: dropped and counted."},
    {0}};

static struct metric said = {.kind = METRIC_COUNTER,
                             .name = "cosched_events_total",
                             .help = "Events by result.",
                             .label = "result"};

/* One message. It waits in the queue, then moves to the sent list. */
struct note {
    struct note *next, *prev; /* queue or sent list, oldest first */
    struct arena arena;       /* owns the note */
    const char *key;          /* object, type, reason, message */
    const char *api_version, *kind, *ns, *name, *uid, *reason, *message;
    bool warning;
    int64_t count; /* waiting: repetitions since it was queued; sent: count known to the server */
    int64_t first_ns; /* wall clock */
    int64_t last_ns;
    const char *event;          /* name of the Event object */
    int64_t queued_ms, sent_ms; /* monotonic */
};

struct notes {
    struct note *first, *last;
    struct map by_key;
};

struct events {
    struct events_options options;
    struct kube_client *client;
    char *component;
    char host[256]; /* a node's name has 253 at most */
    pthread_t thread;

    pthread_mutex_t lock; /* of the fields below */
    pthread_cond_t wake;
    struct notes waiting;
    bool stopping;
    int64_t stop_by_ms;

    struct notes sent;     /* only the thread uses it */
    struct rate_limit own; /* unless options.shared */
    int64_t logged_ms;
    uint64_t serial;

    _Atomic int64_t dropped;
};

static void notes_add(struct notes *l, struct note *n)
{
    n->next = NULL;
    n->prev = l->last;
    *(l->last ? &l->last->next : &l->first) = n;
    l->last = n;
    map_put(&l->by_key, n->key, n);
}

static void notes_remove(struct notes *l, struct note *n)
{
    *(n->prev ? &n->prev->next : &l->first) = n->next;
    *(n->next ? &n->next->prev : &l->last) = n->prev;
    map_remove(&l->by_key, n->key);
}

static void note_free(struct note *n)
{
    struct arena arena = n->arena;
    arena_deinit(&arena);
}

static void notes_deinit(struct notes *l)
{
    for (struct note *n; (n = l->first);) {
        notes_remove(l, n);
        note_free(n);
    }
    map_deinit(&l->by_key);
}

/* At most n bytes, not splitting a character. */
static size_t cut(const char *s, size_t n)
{
    size_t len = strnlen(s, n + 1);
    if (len <= n)
        return len;
    for (len = n; len > 0 && ((unsigned char)s[len] & 0xc0) == 0x80;)
        len--;
    return len;
}

static void make_key(struct strbuf *key, const struct events_object *o, bool warning,
                     const char *reason, const char *message)
{
    const char *parts[] = {o->api_version,      o->kind, o->ns, o->name, str_or_empty(o->uid),
                           warning ? "1" : "0", reason};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        strbuf_adds(key, parts[i]);
        strbuf_addc(key, '\x1f');
    }
    strbuf_add(key, message, cut(message, MESSAGE_MAX));
}

static struct note *note_new(const struct events_object *o, bool warning, const char *reason,
                             const char *message, const char *key)
{
    struct arena a;
    arena_init(&a, 1024);
    struct note *n = arena_new(&a, struct note, 1);
    n->key = arena_strdup(&a, key);
    n->api_version = arena_strdup(&a, o->api_version);
    n->kind = arena_strdup(&a, o->kind);
    n->ns = arena_strdup(&a, str_or_empty(o->ns));
    n->name = arena_strdup(&a, o->name);
    n->uid = arena_strdup(&a, str_or_empty(o->uid));
    n->reason = arena_strdup(&a, reason);
    n->message = arena_strndup(&a, message, cut(message, MESSAGE_MAX));
    n->warning = warning;
    n->arena = a;
    return n;
}

static void drop(struct events *e, const char *why)
{
    atomic_fetch_add(&e->dropped, 1);
    metrics_inc(&said, why);
}

void events_emit(struct events *e, const struct events_object *o, bool warning, const char *reason,
                 const char *message)
{
    AUTO_STRBUF key = {0};
    struct events_object object = *o;
    object.ns = str_or_empty(o->ns);
    make_key(&key, &object, warning, reason, message);
    int64_t now = clock_wall_ns();
    pthread_mutex_lock(&e->lock);
    struct note *n = map_get(&e->waiting.by_key, strbuf_str(&key));
    if (!n && !e->stopping && map_count(&e->waiting.by_key) < (size_t)e->options.queue) {
        n = note_new(&object, warning, reason, message, strbuf_str(&key));
        n->first_ns = now;
        n->queued_ms = clock_mono_ms();
        /* A thread that waits for a token checks the queue when that is due. */
        if (!e->waiting.first)
            pthread_cond_signal(&e->wake);
        notes_add(&e->waiting, n);
    }
    if (n) {
        n->count++;
        n->last_ns = now;
    } else {
        drop(e, e->stopping ? "stopping" : "queue full");
    }
    pthread_mutex_unlock(&e->lock);
}

static const char *namespace_of(const struct note *n)
{
    return n->ns[0] ? n->ns : "default";
}

static void put_time(struct json_writer *w, const char *key, int64_t wall_ns)
{
    char text[CLOCK_RFC3339_SIZE];
    clock_rfc3339(wall_ns, 0, text);
    json_kv_str(w, key, text);
}

/* How much of the object's name goes into the Event's. The part before a dot must end in a letter
 * or digit, or the server refuses the name. */
static int name_len(const char *name)
{
    size_t n = cut(name, NAME_MAX_BYTES);
    while (n > 0 && (name[n - 1] == '-' || name[n - 1] == '.'))
        n--;
    return (int)n;
}

static int create(struct events *e, struct note *n, struct error *err)
{
    AUTO_STRBUF body = {0};
    struct json_writer w;
    n->event = arena_printf(&n->arena, "%.*s.%016llx", name_len(n->name), n->name,
                            (unsigned long long)n->first_ns ^ ++e->serial << 48);
    json_writer_init(&w, &body);
    json_object_begin(&w);
    json_kv_str(&w, "apiVersion", "v1");
    json_kv_str(&w, "kind", "Event");
    json_key(&w, "metadata");
    json_object_begin(&w);
    json_kv_str(&w, "name", n->event);
    json_kv_str(&w, "namespace", namespace_of(n));
    json_object_end(&w);
    json_key(&w, "involvedObject");
    json_object_begin(&w);
    json_kv_str(&w, "apiVersion", n->api_version);
    json_kv_str(&w, "kind", n->kind);
    if (n->ns[0])
        json_kv_str(&w, "namespace", n->ns);
    json_kv_str(&w, "name", n->name);
    if (n->uid[0])
        json_kv_str(&w, "uid", n->uid);
    json_object_end(&w);
    json_kv_str(&w, "reason", n->reason);
    json_kv_str(&w, "message", n->message);
    json_kv_str(&w, "type", n->warning ? "Warning" : "Normal");
    json_kv_int(&w, "count", n->count);
    put_time(&w, "firstTimestamp", n->first_ns);
    put_time(&w, "lastTimestamp", n->last_ns);
    json_key(&w, "source");
    json_object_begin(&w);
    json_kv_str(&w, "component", e->component);
    json_kv_str(&w, "host", e->host);
    json_object_end(&w);
    json_kv_str(&w, "reportingComponent", e->component);
    json_kv_str(&w, "reportingInstance", e->host);
    json_object_end(&w);
    return kube_create(e->client, &kube_events, namespace_of(n), strbuf_str(&body), body.len, NULL,
                       err);
}

static int raise_count(struct events *e, const struct note *n, int64_t count, int64_t last_ns,
                       struct error *err)
{
    AUTO_STRBUF body = {0};
    struct json_writer w;
    json_writer_init(&w, &body);
    json_object_begin(&w);
    json_kv_int(&w, "count", count);
    put_time(&w, "lastTimestamp", last_ns);
    json_object_end(&w);
    return kube_patch(e->client, &kube_events, namespace_of(n), n->event, NULL, KUBE_PATCH_MERGE,
                      strbuf_str(&body), body.len, NULL, err);
}

static void forget(struct events *e, struct note *n)
{
    notes_remove(&e->sent, n);
    note_free(n);
}

static void forget_old(struct events *e, int64_t now_ms)
{
    while (e->sent.first &&
           (map_count(&e->sent.by_key) > SENT_MAX || now_ms - e->sent.first->sent_ms >= SENT_MS))
        forget(e, e->sent.first);
}

/* Takes n. */
static int send_note(struct events *e, struct note *n, struct error *err)
{
    int64_t now = clock_mono_ms();
    forget_old(e, now);
    struct note *known = map_get(&e->sent.by_key, n->key);
    if (known) {
        int rc = raise_count(e, known, known->count + n->count, n->last_ns, err);
        if (rc == 0) {
            known->count += n->count;
            known->last_ns = n->last_ns;
            known->sent_ms = now;
            notes_remove(&e->sent, known);
            notes_add(&e->sent, known); /* moves to the end as the youngest */
        }
        if (rc == 0 || err->code != ERROR_NOT_FOUND) {
            note_free(n);
            return rc;
        }
        forget(e, known); /* the Event has expired on the server: create a new one */
    }
    if (create(e, n, err) < 0) {
        note_free(n);
        return -1;
    }
    n->sent_ms = now;
    notes_add(&e->sent, n);
    forget_old(e, now);
    return 0;
}

/* How long until the rate allows one more; 0: now, and the token is taken. */
static int64_t take_token(struct events *e, int64_t now_ms)
{
    const struct events_limit *shared = e->options.shared;
    if (!shared)
        return rate_limit_take(&e->own, false, now_ms);
    bool busy = shared->is_busy(shared->arg);
    int64_t ms = rate_limit_take(shared->rate, busy, now_ms);
    return busy ? num_min(ms, BUSY_POLL_MS) : ms;
}

/* Drops messages that waited too long; the oldest come first. */
static void drop_old(struct events *e, int64_t now_ms)
{
    while (e->waiting.first && now_ms - e->waiting.first->queued_ms >= e->options.max_age_ms) {
        struct note *n = e->waiting.first;
        notes_remove(&e->waiting, n);
        note_free(n);
        drop(e, "too old");
    }
}

static struct timespec after_ms(clockid_t clock, int64_t ms)
{
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += ms % 1000 * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

static void wait_ms(struct events *e, int64_t ms)
{
    struct timespec until = after_ms(CLOCK_MONOTONIC, ms);
    pthread_cond_timedwait(&e->wake, &e->lock, &until);
}

/* Waits for the next note to send; NULL: stopped. */
static struct note *next_note(struct events *e)
{
    struct note *n = NULL;
    pthread_mutex_lock(&e->lock);
    for (;;) {
        int64_t now = clock_mono_ms();
        if (e->stopping && (!e->waiting.first || now >= e->stop_by_ms))
            break;
        drop_old(e, now);
        if (!e->waiting.first) {
            pthread_cond_wait(&e->wake, &e->lock);
            continue;
        }
        int64_t wait = take_token(e, now);
        if (wait == 0) {
            n = e->waiting.first;
            notes_remove(&e->waiting, n);
            break;
        }
        wait_ms(e, e->stopping ? num_min(wait, num_max(e->stop_by_ms - now, 1)) : wait);
    }
    if (n && e->stopping)
        kube_client_set_timeout(e->client, num_max(e->stop_by_ms - clock_mono_ms(), 1));
    pthread_mutex_unlock(&e->lock);
    return n;
}

static void *run(void *arg)
{
    struct events *e = arg;
    for (struct note *n; (n = next_note(e));) {
        struct error err = ERROR_INIT;
        if (send_note(e, n, &err) == 0) {
            metrics_inc(&said, "sent");
            continue;
        }
        drop(e, "refused");
        int64_t now = clock_mono_ms();
        if (e->logged_ms == 0 || now - e->logged_ms >= LOG_EVERY_MS) {
            log_warn("event not sent", kv("error", err.text),
                     kv("dropped", atomic_load(&e->dropped)));
            e->logged_ms = now;
        }
    }
    return NULL;
}

static void events_free(struct events *e)
{
    notes_deinit(&e->waiting);
    notes_deinit(&e->sent);
    pthread_cond_destroy(&e->wake);
    pthread_mutex_destroy(&e->lock);
    rate_limit_deinit(&e->own);
    kube_client_free(e->client);
    free(e->component);
    free(e);
}

int events_start(struct events **out, struct kube_config *kube, const struct kube_options *k,
                 const struct events_options *o, const char *component, struct error *err)
{
    metrics_register(&said);
    struct events *e = mem_new(struct events, 1);
    pthread_condattr_t attr;
    e->component = mem_strdup(component);
    e->options = *o;
    if (e->options.max_age_ms == 0)
        e->options.max_age_ms = EVENTS_MAX_AGE_MS;
    rate_limit_init(&e->own, o->qps, o->qps, clock_mono_ms());
    pthread_mutex_init(&e->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&e->wake, &attr);
    pthread_condattr_destroy(&attr);
    map_init(&e->waiting.by_key);
    map_init(&e->sent.by_key);
    if (o->host)
        (void)str_format(e->host, sizeof e->host, "%s", o->host);
    else if (gethostname(e->host, sizeof e->host - 1) < 0)
        e->host[0] = '\0';
    struct kube_options limits = *k;
    limits.qps = 0; /* it has its own rate */
    limits.request_timeout_ms = num_min(limits.request_timeout_ms, REQUEST_MS);
    int rc = kube_client_new(&e->client, kube, &limits, component, err);
    int why = rc < 0 ? 0 : pthread_create(&e->thread, NULL, run, e);
    if (why != 0)
        rc = error_errno(err, why, "events thread");
    if (rc < 0) {
        events_free(e);
        return -1;
    }
    *out = e;
    return 0;
}

void events_stop(struct events *e, int64_t drain_ms)
{
    if (!e)
        return;
    struct timespec by = after_ms(CLOCK_REALTIME, drain_ms);
    pthread_mutex_lock(&e->lock);
    e->stopping = true;
    e->stop_by_ms = clock_mono_ms() + drain_ms;
    pthread_cond_signal(&e->wake);
    pthread_mutex_unlock(&e->lock);
    /* A request that started before the drain may hang longer than that. */
    if (pthread_timedjoin_np(e->thread, NULL, &by) != 0) {
        kube_client_cancel(e->client);
        pthread_join(e->thread, NULL);
    }
    events_free(e);
}

int64_t events_dropped(const struct events *e)
{
    return atomic_load(&e->dropped);
}
