// SPDX-License-Identifier: Apache-2.0
/*
 * gang_cluster - gangs of eight on a cluster that runs, as a watch shows them. Shared by (b) and
 * (d) of bench_gang.
 *
 * All times are of events on one watch on pods: a gang begins when its last pod is shown, is under
 * way from the first pod that is shown with a node, and is whole when all have one. So what a
 * request to create takes, and how long our own client waits for a core, is in no figure.
 */
#pragma once

#include <pthread.h>

#include "lib/model/names.h"
#include "test/bench/local.h"
#include "test/bench/real.h"

enum {
    GANG_SIZE = 8,
    GANG_CLUSTER_MAX = 1000,
    GANG_MAKERS = 8,
    GANG_REPEATS = 3,
    GANG_BURST_GOAL_US = 200 * 1000
};
enum gang_load_form { GANG_LOAD_PLAIN, GANG_LOAD_LABELS, GANG_LOAD_NATIVE };

static const unsigned gang_all = (1U << GANG_SIZE) - 1;

struct gang_seen {
    unsigned shown, bound, gone; /* members, by bit */
    int64_t shown_us, first_us, whole_us, room_us;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char prefix[32]; /* pods are PREFIX-GANG-MEMBER; others are ignored */
    int64_t gangs, whole, gone;
    int room_after; /* members to evict for another gang */
    struct gang_seen seen[GANG_CLUSTER_MAX];
} gang_watch = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* What is made: gangs of pods that each ask for one CPU. */
struct gang_load {
    const char *prefix, *scheduler;
    const char *pool; /* the nodes' label; NULL: any */
    enum gang_load_form form;
    int64_t gangs;
};

/* ---- the watch ---- */

static inline void gang_note(const struct pod *pod, bool gone, int64_t now_us)
{
    size_t n = strlen(gang_watch.prefix);
    if (!str_starts(pod->name, gang_watch.prefix) || pod->name[n] != '-')
        return;
    const char *member = strchr(pod->name + n + 1, '-');
    int64_t gang = process_number_after(pod->name + n + 1, NULL);
    int64_t i = member ? process_number_after(member + 1, NULL) : GANG_SIZE;
    if (gang >= gang_watch.gangs || i >= GANG_SIZE)
        return;
    struct gang_seen *g = &gang_watch.seen[gang];
    unsigned bit = 1U << i, shown = g->shown, bound = g->bound, left = g->gone;
    g->shown |= bit;
    if (g->shown == gang_all && shown != gang_all)
        g->shown_us = now_us;
    if (gone) {
        g->gone |= bit;
        if (__builtin_popcount(g->gone) == gang_watch.room_after && g->gone != left)
            g->room_us = now_us;
        gang_watch.gone += g->gone != left;
        return;
    }
    if (str_or_empty(pod->node)[0] == '\0')
        return;
    g->bound |= bit;
    if (bound == 0)
        g->first_us = now_us;
    if (g->bound == gang_all && bound != gang_all) {
        g->whole_us = now_us;
        gang_watch.whole++;
    }
}

static inline bool gang_observe(void *arg, struct reflector_message *message)
{
    (void)arg;
    int64_t now_us = clock_mono_us();
    pthread_mutex_lock(&gang_watch.lock);
    for (size_t i = 0; i < message->len; i++)
        gang_note(message->objects[i], message->event == REFLECTOR_DELETE, now_us);
    pthread_cond_broadcast(&gang_watch.changed);
    pthread_mutex_unlock(&gang_watch.lock);
    reflector_message_free(message);
    return true;
}

static inline void gang_expect(const struct gang_load *l, int room_after)
{
    pthread_mutex_lock(&gang_watch.lock);
    str_format(gang_watch.prefix, sizeof gang_watch.prefix, "%s", l->prefix);
    gang_watch.gangs = l->gangs;
    gang_watch.room_after = room_after;
    gang_watch.whole = gang_watch.gone = 0;
    for (int64_t i = 0; i < l->gangs; i++)
        gang_watch.seen[i] = (struct gang_seen){0};
    pthread_mutex_unlock(&gang_watch.lock);
}

static inline void gang_wait(const int64_t *value, int64_t want, const char *what)
{
    char words[128];
    str_format(words, sizeof words, "%s, %s", gang_watch.prefix, what);
    if (!real_wait(&gang_watch.lock, &gang_watch.changed, value, want, words))
        die("no progress in a minute");
}

/* ---- pods ---- */

static inline void gang_print_pod(struct strbuf *out, const struct gang_load *l, int64_t gang,
                                  int64_t member)
{
    strbuf_addf(out,
                "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s-%lld-%lld\","
                "\"labels\":{\"app\":\"bench\"",
                l->prefix, (long long)gang, (long long)member);
    if (l->form == GANG_LOAD_LABELS)
        strbuf_addf(out,
                    ",\"" NAME_LABEL_GANG_NAME "\":\"%s-%lld\",\"" NAME_LABEL_GANG_MIN "\":\"%d\"",
                    l->prefix, (long long)gang, (int)GANG_SIZE);
    strbuf_addf(out, "}},\"spec\":{\"schedulerName\":\"%s\",", l->scheduler);
    if (l->form == GANG_LOAD_NATIVE)
        strbuf_addf(out, "\"schedulingGroup\":{\"podGroupName\":\"%s-%lld\"},", l->prefix,
                    (long long)gang);
    if (l->pool)
        strbuf_addf(out, "\"nodeSelector\":{\"pool\":\"%s\"},", l->pool);
    strbuf_adds(out, "\"terminationGracePeriodSeconds\":0,\"automountServiceAccountToken\":false,"
                     "\"containers\":[{\"name\":\"main\",\"image\":"
                     "\"registry.example.org/bench:v1\",\"resources\":{\"requests\":{\"cpu\":\"1\","
                     "\"memory\":\"128Mi\"}}}]}}");
}

static inline void gang_make_pod(struct kube_client *client, const struct gang_load *l,
                                 int64_t gang, int64_t member)
{
    AUTO_STRBUF body = {0};
    struct error err = ERROR_INIT;
    gang_print_pod(&body, l, gang, member);
    if (kube_create(client, &kube_pods, "default", body.ptr, body.len, NULL, &err) < 0)
        die(err.text);
}

/* The PodGroup of Kubernetes' own API, of all gangs. */
static inline void gang_make_groups(struct kube_client *client, const struct gang_load *l)
{
    for (int64_t i = 0; l->form == GANG_LOAD_NATIVE && i < l->gangs; i++) {
        AUTO_STRBUF body = {0};
        struct error err = ERROR_INIT;
        strbuf_addf(&body,
                    "{\"apiVersion\":\"scheduling.k8s.io/v1alpha2\",\"kind\":\"PodGroup\","
                    "\"metadata\":{\"name\":\"%s-%lld\"},\"spec\":{\"schedulingPolicy\":{\"gang\":"
                    "{\"minCount\":%d}}}}",
                    l->prefix, (long long)i, (int)GANG_SIZE);
        if (kube_create(client, &kube_pod_groups_native, "default", body.ptr, body.len, NULL,
                        &err) < 0)
            die(err.text);
    }
}

struct gang_maker {
    struct kube_client *client;
    pthread_t thread;
    const struct gang_load *load;
    int64_t first;
    bool deletes;
};
static struct gang_maker gang_makers[GANG_MAKERS];

static inline void gang_delete_pod(struct kube_client *client, const struct gang_load *l,
                                   int64_t gang, int64_t member)
{
    char name[64];
    struct error err = ERROR_INIT;
    str_format(name, sizeof name, "%s-%lld-%lld", l->prefix, (long long)gang, (long long)member);
    if (kube_delete(client, &kube_pods, "default", name, NULL, 0, &err) < 0)
        die(err.text);
}

static inline void *gang_work(void *arg)
{
    const struct gang_maker *m = arg;
    for (int64_t gang = m->first; gang < m->load->gangs; gang += GANG_MAKERS)
        for (int64_t i = 0; i < GANG_SIZE; i++) {
            if (m->deletes)
                gang_delete_pod(m->client, m->load, gang, i);
            else
                gang_make_pod(m->client, m->load, gang, i);
        }
    return NULL;
}

/* All of them, on eight connections, a gang's pods one after the other on one. */
static inline void gang_work_all(const struct gang_load *l, bool deletes)
{
    for (int64_t i = 0; i < GANG_MAKERS; i++) {
        struct gang_maker *m = &gang_makers[i];
        m->load = l;
        m->first = i;
        m->deletes = deletes;
        if (pthread_create(&m->thread, NULL, gang_work, m) != 0)
            die("thread");
    }
    for (int64_t i = 0; i < GANG_MAKERS; i++)
        pthread_join(gang_makers[i].thread, NULL);
    process_check();
    if (deletes)
        gang_wait(&gang_watch.gone, l->gangs * GANG_SIZE, "gone");
}

/* The clients and the watch; real.config is loaded. */
static inline void gang_begin(struct reflector **observer)
{
    struct error err = ERROR_INIT;
    for (int64_t i = 0; i < GANG_MAKERS; i++)
        if (kube_client_new(&gang_makers[i].client, real.config, &real.options, "bench", &err) < 0)
            die(err.text);
    real_watch_pods(observer, gang_observe, NULL);
}

static inline void gang_end(struct reflector *observer)
{
    reflector_stop(observer);
    for (int64_t i = 0; i < GANG_MAKERS; i++) {
        kube_client_free(gang_makers[i].client);
        gang_makers[i].client = NULL;
    }
}

/* ---- figures ---- */

enum gang_figure {
    GANG_ALL_MS,  /* first request to create until all are whole */
    GANG_WAIT_50, /* of a gang, from its last pod to whole */
    GANG_WAIT_99,
    GANG_BURST_50, /* first to last Binding */
    GANG_BURST_99,
    GANG_CPU_US, /* of the scheduler, by the pod */
    GANG_FIGURES
};

/* Makes them and waits for them; deletes them at the end. */
static inline void gang_measure(const struct gang_load *l, pid_t scheduler,
                                int64_t figures[GANG_FIGURES])
{
    static int64_t waits[GANG_CLUSTER_MAX], bursts[GANG_CLUSTER_MAX];
    gang_make_groups(gang_makers[0].client, l);
    gang_expect(l, 0);
    int64_t cpu_us = process_cpu_us(scheduler), began_us = clock_mono_us(), last_us = began_us;
    gang_work_all(l, false);
    gang_wait(&gang_watch.whole, l->gangs, "whole");
    cpu_us = process_cpu_us(scheduler) - cpu_us;
    for (int64_t i = 0; i < l->gangs; i++) {
        const struct gang_seen *g = &gang_watch.seen[i];
        waits[i] = g->whole_us - g->shown_us;
        bursts[i] = g->whole_us - g->first_us;
        last_us = num_max(last_us, g->whole_us);
    }
    figures[GANG_ALL_MS] = (last_us - began_us) / 1000;
    figures[GANG_WAIT_50] = quantile(waits, l->gangs, 50);
    figures[GANG_WAIT_99] = quantile(waits, l->gangs, 99);
    figures[GANG_BURST_50] = quantile(bursts, l->gangs, 50);
    figures[GANG_BURST_99] = quantile(bursts, l->gangs, 99);
    figures[GANG_CPU_US] = cpu_us / (l->gangs * GANG_SIZE);
    printf("%s: %lld gangs of %d: all whole after %lld ms; a gang's last pod to whole p50 %lld us, "
           "p99 %lld us; first to last bind p50 %lld us, p99 %lld us; scheduler CPU %lld us a "
           "pod\n",
           l->prefix, (long long)l->gangs, (int)GANG_SIZE, (long long)figures[GANG_ALL_MS],
           (long long)figures[GANG_WAIT_50], (long long)figures[GANG_WAIT_99],
           (long long)figures[GANG_BURST_50], (long long)figures[GANG_BURST_99],
           (long long)figures[GANG_CPU_US]);
    gang_work_all(l, true);
}

static bool gang_noisy;

/* A goal of time, judged only where the machine is ours. */
static inline void gang_result(const char *name, int64_t value, const char *unit, int64_t baseline,
                               int64_t goal)
{
    print_result(name, value, unit, baseline, gang_noisy ? 0 : goal);
}

/* The median of one figure over the repeats. */
static inline int64_t gang_median(int64_t all[GANG_REPEATS][GANG_FIGURES], enum gang_figure f)
{
    int64_t values[GANG_REPEATS];
    for (int i = 0; i < GANG_REPEATS; i++)
        values[i] = all[i][f];
    return quantile(values, GANG_REPEATS, 50);
}
