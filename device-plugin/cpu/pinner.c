// SPDX-License-Identifier: Apache-2.0
/*
 * pinner - decides which pods hold which CPUs (pinner_plan) and confirms it; pinner_groups applies
 * it to the cgroups.
 *
 *   pod ──put──► asked ──pinner_plan──► held ──pinner_groups_work──► cgroups ──► answer:
 *                                                                 cosched.io/cpuset-applied
 *
 * After a restart the state file (pinner_memory) tells what was confirmed, so that an annotation
 * edited meanwhile is recognised; without a file the answer is used. When a list of pods arrives,
 * all of that is read before any decision. Otherwise a pod edited onto another's CPUs could win by
 * being earlier in the list.
 *
 * A grant is answered once every existing group of the pod obeys it, even if there is none yet:
 * later groups are pinned as they appear, and a scheduler that reclaims a CPU loan need not wait
 * for a container that cannot start.
 */
#include "device-plugin/cpu/pinner_internal.h"

#include <stdlib.h>
#include <string.h>

#include "device-plugin/cpu/cpumanager.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/model/names.h"

enum { HASH_LEN = 32 };

/* Reports a text once, until it changes. */
static bool say(struct pinner *p, struct pinner_pod *x, char last[ERROR_TEXT_SIZE],
                const char *reason, const char *text)
{
    if (!error_is_news(last, text))
        return false;
    log_warn("pod is not pinned as its annotation says", kv("pod", x->pod->key), kv("why", last));
    p->config.pod_event(p->config.arg, x->pod, true, reason, last);
    return true;
}

void pinner_fail(struct pinner *p, struct pinner_pod *pod, const char *text)
{
    (void)say(p, pod, pod->failed, "CpusetFailed", text);
}

static const char *answered(const struct pinner_pod *x)
{
    return labels_get(&x->pod->annotations, NAME_ANN_CPUSET_APPLIED);
}

static struct pinner_pod *pod_new(void)
{
    struct pinner_pod *x = mem_new(struct pinner_pod, 1);
    arena_init(&x->arena, 0);
    arena_init(&x->held_arena, 0);
    x->wd = -1;
    return x;
}

static void drop(struct pinner *p, struct pinner_pod *x)
{
    pinner_groups_forget(p, x);
    arena_deinit(&x->arena);
    arena_deinit(&x->held_arena);
    free(x->sent);
    free(x);
}

static void hold(struct pinner_pod *x, const struct cpu_grant *c)
{
    AUTO_STRBUF text;
    struct arena next;
    strbuf_init(&text);
    arena_init(&next, 0);
    cpu_grant_encode(c, x->pod, &text);
    cpu_grant_copy(&x->held, c, &next);
    x->held_text = arena_strdup(&next, strbuf_str(&text));
    arena_deinit(&x->held_arena);
    x->held_arena = next;
    x->released = false;
    x->obeyed = false;
}

/* Restores what the pod holds from the state file; without a file, from the answer on the pod. */
static void recall(struct pinner *p, struct pinner_pod *x, const struct pinner_remembered *r)
{
    const char *text = r != NULL                            ? r->text
                       : p->memory.known || !pinner_pins(x) ? NULL
                                                            : answered(x);
    struct cpu_grant c;
    struct arena a;
    if (x->held.len > 0 || text == NULL)
        return;
    arena_init(&a, 0);
    if (cpu_grant_decode(text, x->pod, &a, &c, NULL) == 0 && c.len > 0) {
        hold(x, &c);
        x->released = r != NULL && r->released;
        p->memory.unsaved = p->memory.unsaved || r == NULL;
    }
    arena_deinit(&a);
}

/* The kubelet runs a static pod under the hash of its file; the API server has a mirror pod, which
 * names that hash. No regular uid is 32 digits without '-', so a forged hash cannot name a regular
 * pod, and a pod that asks for pinning is only pinned under its own uid. */
const char *pinner_group_uid(const struct pod *pod)
{
    const char *hash = pod_mirrored_uid(pod);
    bool is_hash =
        hash != NULL && strlen(hash) == HASH_LEN && strspn(hash, "0123456789abcdef") == HASH_LEN;
    return is_hash && !cpu_request_pins(&pod->annotations) ? hash : pod->uid;
}

/* pods/resize: the webhook refuses it, but may not be installed. */
static void look_for_resize(struct pinner *p, struct pinner_pod *x, size_t i, int64_t before_milli)
{
    const struct container *c = pod_container(x->pod, i);
    char text[ERROR_TEXT_SIZE];
    if (c->limits.cpu_milli == before_milli)
        return;
    (void)str_format(text, sizeof text,
                     "limits.cpu of container %.63s was changed; it keeps the CPUs that it has",
                     c->name);
    p->memory.unsaved = true;
    p->config.pod_event(p->config.arg, x->pod, true, "CpusetResized", text);
}

/* Updates the record from this version of the pod. */
static void store(struct pinner *p, const struct pod *pod)
{
    struct pinner_pod *x = map_get(&p->pods, pod->uid);
    const struct pinner_remembered *r = NULL;
    struct error err = ERROR_INIT;
    if (x == NULL) {
        r = pinner_memory_find(p, pod->uid);
        x = pod_new();
    }
    const struct pod *before = x->pod; /* still valid in the cache */
    (void)map_put(&p->pods, pod->uid, x);
    x->pod = pod;
    x->undecided = true;
    arena_reset(&x->arena);
    x->unreadable = NULL;
    x->asked = (struct cpu_grant){0};
    if (cpu_grant_decode(labels_get(&pod->annotations, NAME_ANN_CPUSET), pod, &x->arena, &x->asked,
                         &err) < 0)
        x->unreadable = arena_strdup(&x->arena, err.text);
    recall(p, x, r);
    size_t n = r != NULL ? r->limits_len : before != NULL ? pod_container_count(before) : 0;
    for (size_t i = 0; x->held.len > 0 && i < n && i < pod_container_count(pod); i++)
        look_for_resize(
            p, x, i, r != NULL ? r->limits_milli[i] : pod_container(before, i)->limits.cpu_milli);
}

static bool holds(const struct pinner_pod *x)
{
    return x->held.len > 0 && !x->released && !pod_is_finished(x->pod);
}

/* CPUs of other pods that this one may not have, unless both agree to share. */
static void taken_by_others(struct pinner *p, const struct pinner_pod *x, struct cpuset *out)
{
    const char *key;
    void *value;
    cpuset_clear(out);
    for (size_t i = 0; map_next(&p->pods, &i, &key, &value);) {
        const struct pinner_pod *y = value;
        struct cpuset theirs;
        if (y == x || !holds(y) || (pinner_shares(y) && pinner_shares(x)))
            continue;
        pinner_plan_all(&y->held, &theirs);
        cpuset_union(out, &theirs);
    }
}

/* --shared-pool: all other containers adapt at once. */
static void pool_changed(struct pinner *p)
{
    const char *key;
    void *value;
    if (!p->config.shared_pool)
        return;
    for (size_t i = 0; map_next(&p->pods, &i, &key, &value);)
        ((struct pinner_pod *)value)->dirty = true;
    pinner_hurry(p, 0);
}

static void decide(struct pinner *p, struct pinner_pod *x)
{
    AUTO_STRBUF why;
    struct cpuset taken;
    strbuf_init(&why);
    x->undecided = false;
    if (!p->known || pod_is_finished(x->pod) || (!pinner_pins(x) && x->held.len == 0))
        return;
    taken_by_others(p, x, &taken);
    struct pinner_facts facts = {.asked = &x->asked,
                                 .unreadable = x->unreadable,
                                 .held = &x->held,
                                 .released = x->released,
                                 .is_static = p->is_static,
                                 .machine = &p->machine,
                                 .taken = &taken};
    strbuf_adds(&why, "annotation " NAME_ANN_CPUSET " is not applied: ");
    enum pinner_verdict verdict = pinner_plan(&facts, &why);
    if (verdict != PINNER_REFUSE)
        x->refused[0] = '\0';
    switch (verdict) {
    case PINNER_TAKE:
        hold(x, &x->asked);
        p->memory.unsaved = true;
        pool_changed(p);
        log_info("pod is pinned", kv("pod", x->pod->key), kv("cpus", x->held_text));
        pinner_metrics_count("taken");
        break;
    case PINNER_RELEASE:
        x->released = true;
        x->obeyed = false;
        p->memory.unsaved = true;
        pool_changed(p);
        log_info("pod is no longer pinned", kv("pod", x->pod->key));
        pinner_metrics_count("released");
        break;
    case PINNER_REFUSE:
        if (say(p, x, x->refused, "CpusetRefused", strbuf_str(&why)))
            pinner_metrics_count("refused");
        break;
    case PINNER_NOTHING:
    case PINNER_KEEP:
        break;
    }
}

static void answer(struct pinner *p, struct pinner_pod *x, const char *text)
{
    int64_t now_ms = loop_now_ms(p->config.loop);
    /* The watch may show an older answer than the one sent last. */
    if (x->sent != NULL && str_eq(x->sent, text)
            ? now_ms - x->sent_ms < PINNER_ANSWER_MS || str_eq(str_or_empty(answered(x)), text)
            : x->sent == NULL && str_eq(str_or_empty(answered(x)), text))
        return;
    pinner_memory_save(p);
    free(x->sent);
    x->sent = mem_strdup(text);
    x->sent_ms = now_ms;
    p->config.applied(p->config.arg, x->pod, text);
}

static void work(struct pinner *p, struct pinner_pod *x)
{
    x->dirty = false;
    x->hurry = false;
    if (!p->open && holds(x))
        pinner_fail(p, x, p->complaint);
    if (!p->open || !p->known || p->is_static)
        return;
    pinner_groups_work(p, x);
    if (holds(x) && x->obeyed)
        answer(p, x, x->held_text);
    else if (x->released && x->obeyed)
        answer(p, x, "");
}

static void open_cgroups(struct pinner *p)
{
    struct error err = ERROR_INIT;
    p->open = cgroups_open(&p->cgroups, p->config.cgroup_mount, p->config.cgroup_root, &err) == 0;
    if (error_is_news(p->complaint, err.text))
        log_warn("no container can be pinned", kv("error", err.text));
}

static void on_hurry(void *arg);

void pinner_hurry(struct pinner *p, int64_t delay_ms)
{
    loop_timer_set(p->config.loop, &p->hurry, delay_ms, on_hurry, p);
}

static void on_hurry(void *arg)
{
    struct pinner *p = arg;
    const char *key;
    void *value;
    bool again = false;
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; map_next(&p->pods, &i, &key, &value);) {
        struct pinner_pod *x = value;
        if (x->dirty || x->hurry)
            work(p, x);
        again = again || x->hurry;
    }
    pthread_mutex_unlock(&p->lock);
    if (again)
        pinner_hurry(p, PINNER_HURRY_MS);
}

static void all(struct pinner *p)
{
    const char *key;
    void *value;
    bool again = false;
    for (size_t i = 0; map_next(&p->pods, &i, &key, &value);)
        decide(p, value);
    /* before any change: an unrecorded pool would never be given back */
    if (p->listed)
        pinner_memory_save(p);
    for (size_t i = 0; map_next(&p->pods, &i, &key, &value);) {
        work(p, value);
        again = again || ((struct pinner_pod *)value)->hurry;
    }
    if (again)
        pinner_hurry(p, PINNER_HURRY_MS);
    if (p->give_back && p->listed && p->open && p->known && !p->is_static) {
        p->give_back = false;
        p->memory.unsaved = true;
        pinner_memory_save(p);
    }
}

static bool has_pods(const struct pinner *p)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&p->pods, &i, &key, &value);) {
        const struct pinner_pod *x = value;
        if (pinner_pins(x) || x->held.len > 0)
            return true;
    }
    return false;
}

static void look(struct pinner *p)
{
    if (!p->open)
        open_cgroups(p);
    if (p->open)
        pinner_groups_scan(p);
    p->is_static =
        p->config.cpu_manager_state != NULL && cpumanager_is_static(p->config.cpu_manager_state);
}

/* Most nodes have no pinned pod; those are not woken every second. */
static void on_tick(void *arg)
{
    struct pinner *p = arg;
    pthread_mutex_lock(&p->lock);
    look(p);
    all(p);
    p->resting = !has_pods(p);
    pthread_mutex_unlock(&p->lock);
    if (p->resting)
        loop_timer_beat(p->config.loop, &p->tick, PINNER_REST_MS, on_tick, p);
    else
        loop_timer_set(p->config.loop, &p->tick, p->config.tick_ms, on_tick, p);
}

/* Before the first pinned pod is stored: the last check may be old. */
static void rise(struct pinner *p, const struct pod *pod)
{
    if (!p->resting || !cpu_request_pins(&pod->annotations))
        return;
    p->resting = false;
    look(p);
    loop_timer_set(p->config.loop, &p->tick, p->config.tick_ms, on_tick, p);
}

const char *pinner_closed(const struct pinner *p)
{
    if (p->is_static)
        return "the kubelet's cpuManagerPolicy is static";
    return p->open ? NULL : p->complaint;
}

void pinner_machine(struct pinner *p, const struct cpu_topology *machine)
{
    AUTO_STRBUF text;
    struct arena next;
    struct cpu_topology copy;
    strbuf_init(&text);
    arena_init(&next, 0);
    cpu_topology_encode(machine, &text);
    if (cpu_topology_decode(strbuf_str(&text), text.len, &next, &copy, NULL) < 0) {
        arena_deinit(&next);
        return; /* too long to be published: stays unknown */
    }
    pthread_mutex_lock(&p->lock);
    arena_deinit(&p->machine_arena);
    p->machine_arena = next;
    p->machine = copy;
    p->known = true;
    all(p);
    pthread_mutex_unlock(&p->lock);
}

static void on_put(void *arg, const struct podcache_pod *now)
{
    struct pinner *p = arg;
    if (now->remembered) /* lacks the fields read here */
        return;
    pthread_mutex_lock(&p->lock);
    rise(p, now->pod);
    store(p, now->pod);
    pthread_mutex_unlock(&p->lock);
}

/* Its CPUs are free at once; the state file drops it with the next write. */
static void on_gone(void *arg, const struct podcache_pod *was)
{
    struct pinner *p = arg;
    pthread_mutex_lock(&p->lock);
    struct pinner_pod *x = map_remove(&p->pods, was->pod->uid);
    if (x != NULL && x->held.len > 0) {
        p->memory.unsaved = true;
        pool_changed(p);
    }
    if (x != NULL)
        drop(p, x);
    pthread_mutex_unlock(&p->lock);
}

static void on_told(void *arg, bool listed)
{
    struct pinner *p = arg;
    const char *uid;
    void *value;
    bool again = false;
    pthread_mutex_lock(&p->lock);
    if (listed) {
        pinner_memory_forget(p);
        p->listed = true;
        all(p);
    }
    for (size_t i = 0; map_next(&p->pods, &i, &uid, &value);) {
        struct pinner_pod *x = value;
        if (!x->undecided)
            continue;
        decide(p, x);
        work(p, x);
        again = again || x->hurry;
    }
    pthread_mutex_unlock(&p->lock);
    if (again)
        pinner_hurry(p, PINNER_HURRY_MS);
}

int pinner_start(struct pinner **out, const struct pinner_config *c, struct error *err)
{
    struct pinner *p = mem_new(struct pinner, 1);
    p->config = *c;
    if (c->tick_ms == 0)
        p->config.tick_ms = PINNER_TICK_MS;
    map_init(&p->pods);
    arena_init(&p->machine_arena, 0);
    pthread_mutex_init(&p->lock, NULL);
    pinner_memory_load(p);
    p->memory.unsaved = p->memory.pool != c->shared_pool;
    p->give_back = p->memory.pool && !c->shared_pool;
    *out = p;
    if (pinner_groups_start(p, err) < 0)
        return -1;
    pinner_metrics_register(p);
    podcache_subscribe(c->pods, &(struct podcache_subscriber){on_put, on_gone, on_told, p});
    on_tick(p);
    return 0;
}

void pinner_stop(struct pinner *p)
{
    const char *key;
    void *value;
    if (p == NULL)
        return;
    loop_timer_cancel(p->config.loop, &p->tick);
    loop_timer_cancel(p->config.loop, &p->hurry);
    for (size_t i = 0; map_next(&p->pods, &i, &key, &value);) {
        (void)map_remove(&p->pods, key);
        drop(p, value);
    }
    pinner_groups_stop(p);
    map_deinit(&p->pods);
    pinner_memory_deinit(p);
    arena_deinit(&p->machine_arena);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
