// SPDX-License-Identifier: Apache-2.0
/*
 * pinner - which pods hold which CPUs (pinner_plan decides), and the answer. pinner_groups does it to the cgroups.
 *
 *   pod ──put──► asked ──pinner_plan──► held ──pinner_groups_work──► cgroups ──► answer: cosched.io/cpuset-applied
 *
 * After a restart of the pinner its memory (pinner_memory) says what was confirmed, so that an annotation that was edited meanwhile is still recognised; without one, the answer has to do.
 * When a list of pods comes, all of that is read before anything is decided, or a pod edited onto the CPUs of another one could win by standing earlier in the list.
 *
 * A claim is answered once every group that the pod has obeys it, also when it has none yet: whatever starts later is pinned as it appears, and the scheduler, who calls back a loan, need
 * not wait for a container that cannot start.
 */
#include "device-plugin/cpu/pinner_inside.h"

#include <stdlib.h>
#include <string.h>

#include "device-plugin/cpu/cpumanager.h"
#include "lib/base/json.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/model/names.h"

enum { HASH_LEN = 32 };

/* ---- Events ---- */

/* Once, until it is another text. */
static bool say(struct pinner *p, struct pinner_pod *x, char last[ERROR_TEXT_SIZE],
                const char *reason, const char *text)
{
    char cut[ERROR_TEXT_SIZE];
    (void)str_format(cut, sizeof cut, "%s", text);
    if (str_eq(last, cut))
        return false;
    (void)str_format(last, ERROR_TEXT_SIZE, "%s", cut);
    log_warn("pod is not pinned as its annotation says", kv("pod", x->key), kv("why", cut));
    p->config.pod_event(p->config.arg, x->ns, x->name, x->uid, true, reason, cut);
    return true;
}

void pinner_fail(struct pinner *p, struct pinner_pod *pod, const char *text)
{
    (void)say(p, pod, pod->failed, "CpusetFailed", text);
}

/* ---- one pod ---- */

static bool asks(const struct pod *pod)
{
    const char *value = labels_get(&pod->annotations, NAME_ANN_CPUSET_SCHEDULER);
    return str_eq(value, "true") || str_eq(value, "required");
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

static void hold(struct pinner_pod *x, const struct cpuclaim *c, const char *text)
{
    struct arena next;
    arena_init(&next, 0);
    cpuclaim_copy(&x->held, c, &next);
    x->held_text = arena_strdup(&next, text);
    arena_deinit(&x->held_arena);
    x->held_arena = next;
    x->released = false;
    x->obeyed = false;
}

static const char *canonical(const struct cpuclaim *c, const struct pod *pod, struct arena *a)
{
    AUTO_STRBUF text;
    strbuf_init(&text);
    cpuclaim_encode(c, pod, &text);
    return arena_strdup(a, strbuf_str(&text));
}

/* What the pod holds, as an earlier pinner has written it down; where nothing was written, by the answer that it left on the pod. */
static void recall(struct pinner *p, struct pinner_pod *x, const struct pod *pod)
{
    const struct pinner_remembered *r = pinner_memory_find(p, x->uid);
    const char *text = r != NULL ? r->text : p->memory.known || !x->wants ? NULL : x->answered;
    struct cpuclaim c;
    struct arena a;
    if (x->held.len > 0 || text == NULL)
        return;
    arena_init(&a, 0);
    if (cpuclaim_decode(text, pod, &a, &c, NULL) == 0 && c.len > 0) {
        hold(x, &c, canonical(&c, pod, &a));
        x->released = r != NULL && r->released;
        p->memory.unsaved = p->memory.unsaved || r == NULL;
    }
    arena_deinit(&a);
}

/* The kubelet runs a static pod under the hash of its file and shows it to the API server as another pod, which names the hash. Nobody else's uid is 32 digits without '-', so whoever makes that
 * up says nothing of an ordinary pod; and pinned is only who is here under his own name. */
static const char *group_uid(const struct pod *pod)
{
    const char *hash = pod_mirrored_uid(pod);
    bool is_hash =
        hash != NULL && strlen(hash) == HASH_LEN && strspn(hash, "0123456789abcdef") == HASH_LEN;
    return is_hash && !asks(pod) ? hash : pod->uid;
}

static void take_containers(struct pinner_pod *x, const struct pod *pod)
{
    size_t n = pod->containers_len + pod->init_containers_len;
    x->containers_len = n;
    x->names = arena_new(&x->arena, const char *, n);
    x->ids = arena_new(&x->arena, const char *, n);
    x->limits_milli = arena_new(&x->arena, int64_t, n);
    for (size_t i = 0; i < n; i++) {
        const struct container *c = i < pod->containers_len
                                        ? &pod->containers[i]
                                        : &pod->init_containers[i - pod->containers_len];
        x->names[i] = arena_strdup(&x->arena, c->name);
        x->ids[i] = arena_strdup(&x->arena, cgroups_path_id(c->id));
        x->limits_milli[i] = c->limits.cpu_milli;
    }
}

/* pods/resize: the webhook refuses it, but not everywhere is a webhook. */
static void look_for_resize(struct pinner *p, struct pinner_pod *x, const int64_t *before,
                            size_t before_len)
{
    char text[ERROR_TEXT_SIZE];
    for (size_t i = 0; x->held.len > 0 && i < x->containers_len && i < before_len; i++)
        if (x->limits_milli[i] != before[i]) {
            (void)str_format(
                text, sizeof text,
                "limits.cpu of container %.63s was changed; it keeps the CPUs that it has",
                x->names[i]);
            p->memory.unsaved = true;
            p->config.pod_event(p->config.arg, x->ns, x->name, x->uid, true, "CpusetResized", text);
        }
}

/* The record now says what this version of the pod says. */
static struct pinner_pod *store(struct pinner *p, const struct pod *pod)
{
    struct pinner_pod *x = map_get(&p->pods, pod->key);
    if (x != NULL && !str_eq(x->uid, pod->uid)) {
        (void)map_remove(&p->pods, pod->key);
        drop(p, x);
        x = NULL;
    }
    if (x == NULL)
        x = pod_new();
    struct arena old = x->arena; /* the map's key is in it until map_put */
    const struct pinner_remembered *r =
        x->uid == NULL ? pinner_memory_find(p, str_or_empty(pod->uid)) : NULL;
    const int64_t *limits = r != NULL ? r->limits_milli : x->limits_milli;
    size_t limits_len = r != NULL ? r->limits_len : x->containers_len;
    struct error err = ERROR_INIT;
    arena_init(&x->arena, 0);
    x->key = arena_strdup(&x->arena, pod->key);
    x->ns = arena_strdup(&x->arena, pod->ns);
    x->name = arena_strdup(&x->arena, pod->name);
    x->uid = arena_strdup(&x->arena, str_or_empty(pod->uid));
    x->group = arena_strdup(&x->arena, str_or_empty(group_uid(pod)));
    x->wants = asks(pod);
    x->shares = str_eq(labels_get(&pod->annotations, NAME_ANN_CPUSET_SHARED), "true");
    x->finished = pod_is_finished(pod);
    const char *answered = labels_get(&pod->annotations, NAME_ANN_CPUSET_APPLIED);
    x->answered = answered != NULL ? arena_strdup(&x->arena, answered) : NULL;
    x->unreadable = NULL;
    x->asked = (struct cpuclaim){0};
    if (cpuclaim_decode(labels_get(&pod->annotations, NAME_ANN_CPUSET), pod, &x->arena, &x->asked,
                        &err) < 0)
        x->unreadable = arena_strdup(&x->arena, err.text);
    x->asked_text = canonical(&x->asked, pod, &x->arena);
    take_containers(x, pod);
    recall(p, x, pod);
    look_for_resize(p, x, limits, limits_len);
    (void)map_put(&p->pods, x->key, x);
    arena_deinit(&old);
    return x;
}

/* ---- decisions ---- */

static bool holds(const struct pinner_pod *x)
{
    return x->held.len > 0 && !x->released && !x->finished;
}

/* CPUs that this pod may not have: those of others, unless one of the two is content to share. */
static void taken_by_others(struct pinner *p, const struct pinner_pod *x, struct cpuset *out)
{
    const char *key;
    void *value;
    cpuset_clear(out);
    for (size_t i = 0; map_next(&p->pods, &i, &key, &value);) {
        const struct pinner_pod *y = value;
        struct cpuset theirs;
        if (y == x || !holds(y) || y->shares || x->shares)
            continue;
        pinner_plan_all(&y->held, &theirs);
        cpuset_union(out, &theirs);
    }
}

/* --shared-pool: others make room at once, or get it. */
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
    if (!p->known || x->finished || (!x->wants && x->held.len == 0))
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
        hold(x, &x->asked, x->asked_text);
        p->memory.unsaved = true;
        pool_changed(p);
        log_info("pod is pinned", kv("pod", x->key), kv("cpus", x->held_text));
        pinner_metrics_count("taken");
        break;
    case PINNER_RELEASE:
        x->released = true;
        x->obeyed = false;
        p->memory.unsaved = true;
        pool_changed(p);
        log_info("pod is no longer pinned", kv("pod", x->key));
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
    AUTO_STRBUF patch;
    struct json_writer w;
    int64_t now_ms = loop_now_ms(p->config.loop);
    strbuf_init(&patch);
    /* What the watch shows may be older than what was sent last. */
    if (x->sent != NULL && str_eq(x->sent, text)
            ? now_ms - x->sent_ms < PINNER_ANSWER_MS || str_eq(str_or_empty(x->answered), text)
            : x->sent == NULL && str_eq(str_or_empty(x->answered), text))
        return;
    pinner_memory_save(p);
    json_writer_init(&w, &patch);
    json_object_begin(&w);
    json_key(&w, "metadata");
    json_object_begin(&w);
    json_kv_str(&w, "uid", x->uid);
    json_key(&w, "annotations");
    json_object_begin(&w);
    json_kv_str(&w, NAME_ANN_CPUSET_APPLIED, text);
    json_object_end(&w);
    json_object_end(&w);
    json_object_end(&w);
    free(x->sent);
    x->sent = mem_strdup(text);
    x->sent_ms = now_ms;
    p->config.applied(p->config.arg, x->ns, x->name, x->uid, &patch);
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

/* ---- from outside ---- */

static void open_cgroups(struct pinner *p)
{
    struct error err = ERROR_INIT;
    p->open = cgroups_open(&p->cgroups, p->config.cgroup_mount, p->config.cgroup_root, &err) == 0;
    if (!p->open && !str_eq(p->complaint, err.text))
        log_warn("no container can be pinned", kv("error", err.text));
    (void)str_format(p->complaint, sizeof p->complaint, "%s", err.text);
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
    if (p->listed) /* before anything is done: a pool that nobody remembers would be kept off for good */
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
        if (x->wants || x->held.len > 0)
            return true;
    }
    return false;
}

static void look(struct pinner *p)
{
    if (!p->open)
        open_cgroups(p);
    if (p->open)
        pinner_groups_look(p);
    p->is_static =
        p->config.cpu_manager_state != NULL && cpumanager_is_static(p->config.cpu_manager_state);
}

/* Most nodes have no pod that is pinned: there nobody is woken every second. */
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

/* Before the first pod that asks is taken in: what was seen last may be old. */
static void rise(struct pinner *p, const struct pod *pod)
{
    if (!p->resting || !asks(pod))
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
        return; /* longer than may be published: not known then */
    }
    pthread_mutex_lock(&p->lock);
    arena_deinit(&p->machine_arena);
    p->machine_arena = next;
    p->machine = copy;
    p->known = true;
    all(p);
    pthread_mutex_unlock(&p->lock);
}

void pinner_pod_put(struct pinner *p, const struct pod *pod)
{
    pthread_mutex_lock(&p->lock);
    rise(p, pod);
    struct pinner_pod *x = store(p, pod);
    decide(p, x);
    work(p, x);
    bool hurry = x->hurry;
    pthread_mutex_unlock(&p->lock);
    if (hurry)
        pinner_hurry(p, PINNER_HURRY_MS);
}

/* Its CPUs are free, and it need not be remembered: at the next writing is soon enough. */
static void gone(struct pinner *p, const struct pinner_pod *x)
{
    if (x->held.len == 0)
        return;
    p->memory.unsaved = true;
    pool_changed(p);
}

void pinner_pod_delete(struct pinner *p, const char *key)
{
    pthread_mutex_lock(&p->lock);
    struct pinner_pod *x = map_remove(&p->pods, key);
    if (x != NULL) {
        gone(p, x);
        drop(p, x);
    }
    pthread_mutex_unlock(&p->lock);
}

void pinner_pods_reset(struct pinner *p, struct pod *const *pods, size_t len)
{
    const char *key;
    void *value;
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; map_next(&p->pods, &i, &key, &value);)
        ((struct pinner_pod *)value)->listed = false;
    for (size_t i = 0; i < len; i++) {
        rise(p, pods[i]);
        store(p, pods[i])->listed = true;
    }
    for (size_t i = 0; map_next(&p->pods, &i, &key, &value);)
        if (!((struct pinner_pod *)value)->listed) {
            (void)map_remove(&p->pods, key);
            gone(p, value);
            drop(p, value);
        }
    pinner_memory_forget(p);
    p->listed = true;
    all(p);
    pthread_mutex_unlock(&p->lock);
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
