// SPDX-License-Identifier: Apache-2.0
/*
 * scan - the thread that may hang.
 *
 *   open ─► scan ─► message ─► wait for events (messages) until the next scan is due ─► scan ...
 *
 * The thread notes the time before each backend call and clears it afterwards, so that others can
 * see which call hangs and for which card (scan_busy_ms). Such a call cannot be ended; the loop
 * decides what to do. Waiting for events is also such a call. It is cut into slices, long ones,
 * because every slice is a needless wakeup on a healthy node.
 */
#include "device-plugin/monitor/scan.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "device-plugin/isolation/shares.h"
#include "device-plugin/cpu/podcgroup.h"
#include "device-plugin/monitor/mounted.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/num.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

struct scan {
    struct scan_config config;
    _Atomic int32_t asking;
    _Atomic int64_t began_ms; /* of the current call; 0: none */
    _Atomic bool listening;   /* the current call waits for an event */
    _Atomic bool timed;       /* scan_want_time */
    struct mounted mounted;   /* of its thread */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop, poked;
};

void scan_message_free(void *message)
{
    struct scan_message *l = message;
    if (l == NULL)
        return;
    arena_deinit(&l->arena);
    free(l);
}

static struct timespec after_ms(clockid_t clock, int64_t ms)
{
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += (long)(ms % 1000) * 1000000L;
    if (t.tv_nsec >= 1000000000L) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000L;
    }
    return t;
}

/* Returns earlier when poked. */
static bool stopped_within(struct scan *s, int64_t ms)
{
    struct timespec until = after_ms(CLOCK_MONOTONIC, ms);
    pthread_mutex_lock(&s->lock);
    while (!s->stop && !s->poked && pthread_cond_timedwait(&s->wake, &s->lock, &until) == 0)
        ;
    bool stop = s->stop;
    s->poked = false;
    pthread_mutex_unlock(&s->lock);
    return stop;
}

static struct scan_message *message_new(enum scan_kind kind)
{
    struct scan_message *l = mem_new(struct scan_message, 1);
    l->kind = kind;
    arena_init(&l->arena, 0);
    return l;
}

static void call_begins(struct scan *s)
{
    atomic_store(&s->began_ms, clock_mono_ms());
}

static void call_ended(struct scan *s)
{
    atomic_store(&s->began_ms, 0);
    atomic_store(&s->asking, BACKEND_NO_CARD);
}

/* Sets the process's pod ("": none, or the process has ended). */
static void find_pod(const struct scan *s, struct strbuf *text, struct usage_process *p)
{
    char path[256];
    struct podcgroup pod = {0};
    strbuf_reset(text);
    if (str_format(path, sizeof path, "%s/%lld/cgroup", s->config.proc, (long long)p->pid) &&
        file_read(path, PODCGROUP_BYTES_MAX, text, NULL) == 0)
        (void)podcgroup_parse(strbuf_str(text), text->len, &pod);
    (void)str_format(p->uid, sizeof p->uid, "%s", pod.uid);
}

/* The folder with its container's limits: its own pod's, or one made while the pod was unknown. */
static void find_folder(struct scan *s, struct strbuf *text, struct usage_process *p)
{
    size_t n = strlen(p->uid);
    if (n == 0)
        return;
    const char *folder = mounted_folder(&s->mounted, s->config.proc, p->pid, text);
    if ((str_starts(folder, p->uid) && folder[n] == '.') || str_starts(folder, SHARES_UNKNOWN))
        (void)str_format(p->folder, sizeof p->folder, "%s", folder);
}

static void find_pods(const struct scan *s, struct scan_message *l)
{
    const struct backend_sight *sight = &l->sight;
    size_t total = 0;
    for (size_t i = 0; i < sight->inventory.cards_len; i++)
        total += sight->cards[i].processes_len;
    if (total > SCAN_PROCESSES_MAX)
        total = SCAN_PROCESSES_MAX;
    l->processes = arena_new(&l->arena, struct usage_process, total);
    AUTO_STRBUF text;
    strbuf_init(&text);
    for (size_t i = 0; i < sight->inventory.cards_len; i++) {
        const struct backend_card *c = &sight->cards[i];
        for (size_t k = 0; k < c->processes_len && l->processes_len < total; k++) {
            struct usage_process *p = &l->processes[l->processes_len++];
            *p = (struct usage_process){.card = sight->inventory.cards[i].index,
                                        .pid = c->processes[k].pid,
                                        .mib = c->processes[k].mib};
            find_pod(s, &text, p);
        }
    }
}

static struct scan_message *look(struct scan *s, struct backend *b)
{
    struct scan_message *l = message_new(SCAN_CARDS);
    call_begins(s);
    int result = s->config.type->scan(b, &l->arena, &l->sight, &l->err);
    call_ended(s);
    if (result == 0) {
        find_pods(s, l);
        return l;
    }
    l->kind = SCAN_FAILED;
    l->sight = (struct backend_sight){0};
    return l;
}

static struct scan_message *inspect_time(struct scan *s, struct backend *b)
{
    struct scan_message *l = message_new(SCAN_TIME);
    struct backend_time *cards = NULL;
    call_begins(s);
    size_t len = s->config.type->busy(b, &l->arena, &cards), total = 0;
    call_ended(s);
    l->at_ns = clock_mono_us() * 1000;
    for (size_t i = 0; i < len; i++)
        total += cards[i].processes_len;
    l->busy = arena_new(&l->arena, struct scan_busy, total);
    AUTO_STRBUF text;
    strbuf_init(&text);
    for (size_t i = 0; i < len; i++) {
        l->timed[cards[i].index] = cards[i].known;
        for (size_t k = 0; k < cards[i].processes_len; k++) {
            struct scan_busy *p = &l->busy[l->busy_len++];
            *p = (struct scan_busy){
                .process = {.card = cards[i].index, .pid = cards[i].processes[k].pid, .mib = -1},
                .ns = cards[i].processes[k].ns};
            find_pod(s, &text, &p->process);
            find_folder(s, &text, &p->process);
        }
    }
    return l;
}

/* Waits for an event or the timeout. -1: stop. */
static int listen_for(struct scan *s, struct backend *b, int64_t ms)
{
    struct backend_event event;
    int heard = -1;
    if (s->config.type->wait != NULL) {
        call_begins(s);
        atomic_store(&s->listening, true);
        heard = s->config.type->wait(b, num_min(ms, s->config.slice_ms), &event);
        atomic_store(&s->listening, false);
        call_ended(s);
    }
    if (heard > 0) {
        struct scan_message *l = message_new(SCAN_EVENT);
        l->event = event;
        if (!mailbox_post(s->config.mailbox, l))
            return -1;
    }
    return stopped_within(s, heard < 0 ? ms : 0) ? -1 : 0;
}

/* Until the next scan is due. false: stop. */
static bool listen(struct scan *s, struct backend *b, int64_t until_ms)
{
    int64_t timed_ms = 0;
    for (int64_t now; (now = clock_mono_ms()) < until_ms;) {
        bool timed = atomic_load(&s->timed) && s->config.type->busy != NULL;
        if (timed && now - timed_ms >= SCAN_TIME_MS) {
            timed_ms = now;
            if (!mailbox_post(s->config.mailbox, inspect_time(s, b)))
                return false;
        }
        int64_t next_ms = timed ? num_min(timed_ms + SCAN_TIME_MS, until_ms) : until_ms;
        if (next_ms > now && listen_for(s, b, next_ms - now) < 0)
            return false;
    }
    return true;
}

static void *worker_scan(void *arg)
{
    struct scan *s = arg;
    struct backend *b = NULL;
    struct error err = ERROR_INIT;
    call_begins(s);
    int result = s->config.type->open(&b, &s->config.backend, &err);
    call_ended(s);
    if (result < 0) {
        struct scan_message *l = message_new(SCAN_FATAL);
        l->err = err;
        (void)mailbox_post(s->config.mailbox, l);
        return NULL;
    }
    int64_t began_ms = clock_mono_ms();
    while (mailbox_post(s->config.mailbox, look(s, b)) &&
           listen(s, b, began_ms + s->config.interval_ms))
        began_ms = clock_mono_ms();
    call_begins(s);
    s->config.type->close(b);
    call_ended(s);
    return NULL;
}

void scan_want_time(struct scan *s, bool wanted)
{
    if (atomic_exchange(&s->timed, wanted) == wanted)
        return;
    pthread_mutex_lock(&s->lock);
    s->poked = true;
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

int64_t scan_busy_ms(const struct scan *s, int64_t now_ms, int32_t *card)
{
    int64_t began_ms = atomic_load(&s->began_ms);
    *card = atomic_load(&s->asking);
    return began_ms == 0 ? 0 : num_max(now_ms - began_ms, 0);
}

bool scan_is_listening(const struct scan *s)
{
    return atomic_load(&s->listening);
}

int scan_start(struct scan **out, const struct scan_config *c, struct error *err)
{
    struct scan *s = mem_new(struct scan, 1);
    s->config = *c;
    s->config.backend.asking = &s->asking;
    if (c->slice_ms == 0)
        s->config.slice_ms = SCAN_SLICE_MS;
    atomic_store(&s->asking, BACKEND_NO_CARD);
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int e = pthread_create(&s->thread, NULL, worker_scan, s);
    if (e != 0) {
        free(s);
        return error_errno(err, e, "scan thread");
    }
    *out = s;
    return 0;
}

bool scan_stop(struct scan *s, int64_t wait_ms)
{
    if (s == NULL)
        return true;
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
    mailbox_close(s->config.mailbox);
    struct timespec until = after_ms(CLOCK_REALTIME, wait_ms);
    if (pthread_timedjoin_np(s->thread, NULL, &until) != 0)
        return false;
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    free(s);
    return true;
}
