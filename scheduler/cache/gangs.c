// SPDX-License-Identifier: Apache-2.0
/*
 * A gang is created with its first member and freed with its last; a lone pod's gang is freed when
 * the pod is bound. Members or the PodGroup give its settings (gangs_settings.c); a PodGroup
 * without members is only stored. Members that name the same gang are in one gang, whatever form
 * they use.
 *
 * A member's change must not cost a walk over all members, or reading n of them would cost n * n.
 * Counts are updated by the difference (gangs_retally). Settings are read again from all members
 * only if these do not say all the same (gang.uniform), which keeps the gang waiting anyway.
 */
#include "scheduler/cache/gangs.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/cache/gangs_bundle.h"
#include "scheduler/cache/gangs_settings.h"
#include "scheduler/model/reservations.h"

bool gangs_is_lone(const struct gang *g)
{
    return g->form == GANG_NONE;
}

static void key_of(const struct pod *p, const struct gang_ref *ref, struct strbuf *out)
{
    if (ref->form == GANG_NONE)
        strbuf_addf(out, "pod %s", p->key);
    else
        strbuf_addf(out, "gang %s/%s", p->ns, ref->name);
}

/* A pod with an invalid gang form becomes a lone pod that waits with the reason
 * (gangs_has_quorum). */
static void ref_of(const struct pod *p, struct gang_ref *ref)
{
    struct error err = ERROR_INIT;
    if (gang_of_pod(p, ref, &err) < 0)
        *ref = (struct gang_ref){.form = GANG_NONE};
}

const char *gangs_name(const struct gang *g)
{
    return g->key + strlen("gang ");
}

const struct pod_group *gangs_group_of(const struct cluster *c, const struct gang *g)
{
    const struct cluster_groups *all =
        gangs_is_lone(g) ? NULL : map_get(&c->pod_groups, gangs_name(g));
    for (int api = 0; all != NULL && api < POD_GROUP_APIS; api++)
        if (all->of[api] != NULL)
            return all->of[api];
    return NULL;
}

/* Bound according to the API server, not only assumed. */
static bool is_bound(const struct cluster_pod *cp)
{
    return (cp->state == CLUSTER_BOUND || cp->state == CLUSTER_FINISHED) && !cp->pod->terminating;
}

static bool says_satisfied(const struct cluster_pod *cp)
{
    return cp->pod->node != NULL && cp->said.name != NULL &&
           str_eq(labels_get(&cp->pod->annotations, NAME_ANN_GANG_SATISFIED), cp->said.name);
}

/* Whether the member counts for a quorum that is not yet complete. */
static bool is_open(const struct gang *g, const struct cluster_pod *cp)
{
    return g->match != GANG_ONLY_WAITING || !cp->in_quorum;
}

static void list_for_record(struct cluster *c, struct gang *g)
{
    if (g->to_record || g->min_available < 2 || g->match == GANG_WAITING_AND_RUNNING)
        return;
    g->to_record = true;
    g->record_place = c->satisfied.len;
    vec_push(&c->satisfied, g);
}

static void unlist(struct cluster *c, struct gang *g)
{
    if (!g->to_record)
        return;
    g->to_record = false;
    c->satisfied.items[g->record_place] = c->satisfied.items[--c->satisfied.len];
    c->satisfied.items[g->record_place]->record_place = g->record_place;
}

static unsigned tally_of(const struct cluster_pod *cp)
{
    bool exists = !cp->pod->gated && !cp->pod->terminating, bound = is_bound(cp);
    return (unsigned)gangs_settings_counts(cp) << GANG_COUNT_VOICES |
           (unsigned)exists << GANG_COUNT_EXISTING |
           (unsigned)(exists && cp->in_quorum) << GANG_COUNT_EXISTING_IN_QUORUM |
           (unsigned)bound << GANG_COUNT_BOUND |
           (unsigned)(bound && cp->in_quorum) << GANG_COUNT_BOUND_IN_QUORUM |
           (unsigned)cluster_pod_is_schedulable(cp) << GANG_COUNT_WAITING;
}

static void set_tally(struct gang *g, struct cluster_pod *cp, unsigned now)
{
    unsigned differs = cp->tally ^ now;
    for (int i = 0; differs != 0; i++, differs >>= 1)
        if (differs & 1)
            g->counts[i] += now >> i & 1 ? 1 : -1;
    cp->tally = (uint8_t)now;
}

void gangs_retally(struct cluster_pod *cp)
{
    if (cp->gang != NULL)
        set_tally(cp->gang, cp, tally_of(cp));
}

/* Members that are bound and were not in a quorum. */
static int32_t count_fresh(const struct gang *g)
{
    return g->counts[GANG_COUNT_BOUND] - g->counts[GANG_COUNT_BOUND_IN_QUORUM];
}

static void hear_record(struct cluster_pod *cp)
{
    if (!cp->in_quorum && says_satisfied(cp))
        cp->in_quorum = cp->recorded = true;
    gangs_retally(cp);
}

static void enter_quorum(struct cluster_pod *cp)
{
    if (!is_bound(cp) || cp->in_quorum)
        return;
    cp->in_quorum = true;
    gangs_retally(cp);
}

/* changed: the only member that did; NULL: any. */
static void look_for_quorum(struct cluster *c, struct gang *g, struct cluster_pod *changed)
{
    for (size_t i = 0; changed == NULL && i < g->members.len; i++)
        hear_record(g->members.items[i]);
    if (changed != NULL)
        hear_record(changed);
    int32_t bound = g->match == GANG_ONLY_WAITING ? count_fresh(g) : g->counts[GANG_COUNT_BOUND];
    bool complete = g->min_available > 0 && g->min_conflict == 0 && bound >= g->min_available;
    bool fresh = complete && count_fresh(g) > 0;
    if (fresh && changed != NULL)
        enter_quorum(changed); /* once the quorum was complete there is no other */
    for (size_t i = 0; fresh && count_fresh(g) > 0 && i < g->members.len; i++)
        enter_quorum(g->members.items[i]);
    g->satisfied = g->counts[GANG_COUNT_BOUND_IN_QUORUM] > 0;
    if (fresh)
        list_for_record(c, g);
}

/* With once-satisfied one live recorded member is enough: the first by name. */
static struct cluster_pod *unrecorded(const struct gang *g)
{
    struct cluster_pod *first = NULL;
    for (size_t i = 0; i < g->members.len; i++) {
        struct cluster_pod *cp = g->members.items[i];
        if (!cp->in_quorum || cp->state != CLUSTER_BOUND || cp->pod->terminating)
            continue;
        if (cp->recorded && g->match != GANG_ONLY_WAITING)
            return NULL;
        if (!cp->recorded && (first == NULL || strcmp(cp->pod->name, first->pod->name) < 0))
            first = cp;
    }
    return first;
}

struct cluster_pod *gangs_take_unrecorded(struct cluster *c)
{
    while (c->satisfied.len > 0) {
        struct gang *g = c->satisfied.items[0];
        struct cluster_pod *cp = unrecorded(g);
        if (cp != NULL) {
            cp->recorded = g->recording = true;
            return cp;
        }
        unlist(c, g);
    }
    return NULL;
}

/* We wrote the annotation, but the watch has not shown it yet. */
static bool is_on_its_way(const struct cluster_pod *cp)
{
    return cp->recorded && cp->state == CLUSTER_BOUND && !cp->pod->terminating &&
           !says_satisfied(cp);
}

int64_t gangs_follow_record(struct cluster *c, struct gang *g, int64_t *since_ms, int64_t now_ms,
                            int64_t again_ms, bool *again)
{
    bool any = false;
    for (size_t i = 0; g->recording && i < g->members.len; i++)
        any |= is_on_its_way(g->members.items[i]);
    g->recording = any;
    if (!any) {
        *since_ms = 0;
        return -1;
    }
    if (*since_ms == 0)
        *since_ms = now_ms;
    if (now_ms - *since_ms < again_ms)
        return *since_ms + again_ms;
    for (size_t i = 0; i < g->members.len; i++)
        if (is_on_its_way(g->members.items[i]))
            g->members.items[i]->recorded = false;
    *since_ms = 0;
    list_for_record(c, g);
    *again = true;
    return now_ms + again_ms;
}

const char *gangs_record_of(const struct cluster_pod *cp)
{
    const struct gang *g = cp->gang;
    bool once = g != NULL && g->satisfied && g->match == GANG_ONCE_SATISFIED;
    return once && g->min_available > 1 ? cp->said.name : NULL;
}

static bool is_ready(const struct cluster *c, const struct gang *g);

static bool are_uniform(const struct gang *g)
{
    for (size_t i = 1; i < g->members.len; i++)
        if (!gangs_settings_equal(g->members.items[0], g->members.items[i]))
            return false;
    return true;
}

static void refresh(struct cluster *c, struct gang *g)
{
    gangs_settings_read(c, g);
    g->reads++;
    if (gangs_is_lone(g)) {
        gangs_retally(g->members.items[0]);
        return;
    }
    g->uniform = are_uniform(g);
    look_for_quorum(c, g, NULL);
    gangs_bundle_read(c, g);
}

/* Only this member came or changed (NULL: one has left), and the gang's settings are the same. */
static bool settings_stay(struct gang *g, struct cluster_pod *cp, bool had_voices)
{
    if (gangs_is_lone(g) || !g->uniform || had_voices != (g->counts[GANG_COUNT_VOICES] > 0))
        return false;
    if (cp == NULL || g->members.len == 1)
        return cp == NULL;
    const struct cluster_pod *other = g->members.items[g->members.items[0] == cp];
    return gangs_settings_equal(cp, other);
}

static const struct cluster_pod *oldest(const struct gang *g)
{
    return container_of_const(heap_top(&g->ages), struct cluster_pod, by_age);
}

static uint32_t tell(struct cluster *c, struct gang *g, const struct cluster_hooks *hooks)
{
    if (gangs_bundle_is_named(c, g))
        gangs_bundle_tell(c, g, is_ready(c, g), hooks);
    bool waiting = gangs_has_waiting(g);
    if (hooks != NULL && waiting)
        hooks->gang_changed(hooks->arg, g);
    return waiting ? EVENT_GANG : 0;
}

static uint32_t changed(struct cluster *c, struct gang *g, const struct cluster_hooks *hooks)
{
    refresh(c, g);
    return tell(c, g, hooks);
}

/* As changed, but only this member did; NULL: one has left. */
static uint32_t one_changed(struct cluster *c, struct gang *g, struct cluster_pod *cp,
                            bool had_voices, const struct cluster_hooks *hooks)
{
    if (cp != NULL)
        gangs_retally(cp);
    if (!settings_stay(g, cp, had_voices))
        return changed(c, g, hooks);
    g->since_ns = oldest(g)->pod->created_ns;
    look_for_quorum(c, g, cp != NULL ? cp : g->members.items[0]);
    return tell(c, g, hooks);
}

static bool has_voices(const struct gang *g)
{
    return g->counts[GANG_COUNT_VOICES] > 0;
}

uint32_t gangs_refresh(struct cluster *c, struct cluster_pod *cp, const struct cluster_hooks *hooks)
{
    return one_changed(c, cp->gang, cp, has_voices(cp->gang), hooks);
}

static bool is_older(const struct heap_node *a, const struct heap_node *b)
{
    return container_of_const(a, struct cluster_pod, by_age)->pod->created_ns <
           container_of_const(b, struct cluster_pod, by_age)->pod->created_ns;
}

/* Nearly all gangs are lone pods, so the key and storage for one member lie behind the struct. */
static struct gang *gang_new(struct cluster *c, const char *key, size_t key_len,
                             enum gang_form form)
{
    struct gang *g = mem_array_(1, sizeof *g + key_len + 1);
    g->key = (char *)(g + 1);
    memcpy(g->key, key, key_len + 1);
    g->id = ids_take(&c->gang_ids);
    g->form = form;
    g->members.items = mem_new(struct cluster_pod *, 1);
    g->members.cap = 1;
    heap_init(&g->ages, is_older);
    return g;
}

/* A bound lone pod waits for nothing, so it has no gang. Most pods of a cluster are such pods. */
static bool is_settled(const struct cluster_pod *cp)
{
    return cp->said.form == GANG_NONE && cp->state == CLUSTER_BOUND;
}

uint32_t gangs_join(struct cluster *c, struct cluster_pod *cp, const struct cluster_hooks *hooks)
{
    AUTO_STRBUF key = {0};
    ref_of(cp->pod, &cp->said);
    if (is_settled(cp))
        return 0;
    key_of(cp->pod, &cp->said, &key);
    struct gang *g = map_get(&c->gangs, strbuf_str(&key));
    if (g == NULL) {
        g = gang_new(c, strbuf_str(&key), key.len, cp->said.form);
        map_put(&c->gangs, g->key, g);
        if (!gangs_is_lone(g)) {
            g->several_place = c->several.len;
            vec_push(&c->several, g);
        }
    }
    bool had_voices = has_voices(g);
    cp->gang = g;
    cp->gang_place = g->members.len;
    vec_push(&g->members, cp);
    gangs_bundle_count(cp);
    if (!gangs_is_lone(g))
        heap_push(&g->ages, &cp->by_age);
    return one_changed(c, g, cp, had_voices, hooks);
}

static void gang_free(struct gang *g)
{
    vec_deinit(&g->members);
    heap_deinit(&g->ages);
    free(g);
}

uint32_t gangs_leave(struct cluster *c, struct cluster_pod *cp, const struct cluster_hooks *hooks)
{
    struct gang *g = cp->gang;
    bool had_voices = has_voices(g);
    gangs_bundle_discount(cp);
    cp->gang = NULL;
    cp->in_quorum = cp->recorded = false;
    set_tally(g, cp, 0);
    heap_remove(&g->ages, &cp->by_age);
    vec_remove_swap(&g->members, cp->gang_place);
    if (cp->gang_place < g->members.len)
        g->members.items[cp->gang_place]->gang_place = cp->gang_place;
    if (g->members.len > 0)
        return one_changed(c, g, NULL, had_voices, hooks);
    if (hooks != NULL)
        hooks->gang_vanishing(hooks->arg, g);
    uint32_t events = reservations_end(c, g);
    map_remove(&c->gangs, g->key);
    if (!gangs_is_lone(g)) {
        vec_remove_swap(&c->several, g->several_place);
        if (g->several_place < c->several.len)
            c->several.items[g->several_place]->several_place = g->several_place;
    }
    unlist(c, g);
    gangs_bundle_leave(c, g, hooks);
    ids_give(&c->gang_ids, g->id);
    gang_free(g);
    return events;
}

static bool same_gang(const struct pod *a, const struct pod *b)
{
    struct gang_ref x, y;
    ref_of(a, &x);
    ref_of(b, &y);
    return (x.form == GANG_NONE) == (y.form == GANG_NONE) && str_eq(x.name, y.name);
}

static bool tolerations_equal(const struct pod *a, const struct pod *b)
{
    if (a->tolerations_len != b->tolerations_len)
        return false;
    for (size_t i = 0; i < a->tolerations_len; i++) {
        const struct toleration *x = &a->tolerations[i], *y = &b->tolerations[i];
        if (x->op != y->op || x->effect != y->effect || !str_eq(x->key, y->key) ||
            !str_eq(x->value, y->value))
            return false;
    }
    return true;
}

/* Whether another attempt could end differently. A changed condition of a waiting pod is often our
 * own write, so it is no reason to retry. Fields that only a gated pod may change (selectors,
 * affinity) are not compared. */
static bool matters(const struct pod *old, const struct pod *now)
{
    return old->gated != now->gated || old->terminating != now->terminating ||
           old->priority != now->priority || old->phase != now->phase ||
           old->active_deadline_s != now->active_deadline_s || /* it may use reserved room now */
           !str_eq(old->node, now->node) || !resources_equal(&old->request, &now->request) ||
           !cluster_labels_equal(&old->labels, &now->labels) ||
           !cluster_labels_equal(&old->annotations, &now->annotations) ||
           !tolerations_equal(old, now);
}

uint32_t gangs_member_changed(struct cluster *c, struct cluster_pod *cp, const struct pod *old,
                              const struct cluster_hooks *hooks)
{
    bool ours = str_eq(cp->pod->scheduler, c->scheduler_name);
    uint32_t events = 0;
    if (cp->gang != NULL && (!ours || !same_gang(old, cp->pod)))
        events = gangs_leave(c, cp, hooks);
    if (!ours)
        return events;
    if (cp->gang == NULL)
        return events | gangs_join(c, cp, hooks);
    bool had_voices = has_voices(cp->gang);
    ref_of(cp->pod, &cp->said); /* it borrows from the pod object, which was replaced */
    gangs_bundle_count(cp);
    if (is_settled(cp))
        return gangs_leave(c, cp, hooks);
    if (heap_has(&cp->by_age))
        heap_update(&cp->gang->ages, &cp->by_age);
    if (matters(old, cp->pod))
        return one_changed(c, cp->gang, cp, had_voices, hooks);
    gangs_retally(cp);
    return 0;
}

struct gang *gangs_find(const struct cluster *c, const char *key)
{
    AUTO_STRBUF gang_key = {0};
    strbuf_addf(&gang_key, "gang %s", key);
    return map_get(&c->gangs, strbuf_str(&gang_key));
}

static uint32_t group_changed(struct cluster *c, const char *key, const struct cluster_hooks *hooks)
{
    struct gang *g = gangs_find(c, key);
    return g != NULL ? changed(c, g, hooks) : 0;
}

static void groups_free(struct cluster_groups *all)
{
    for (int api = 0; api < POD_GROUP_APIS; api++)
        pod_group_free(all->of[api]);
    free(all->key);
    free(all);
}

/* Whether another attempt could end differently. A changed status is often our own write. */
static bool group_matters(const struct pod_group *old, const struct pod_group *now)
{
    return old == NULL || !str_eq(old->uid, now->uid) || old->min_member != now->min_member ||
           old->schedule_timeout_s != now->schedule_timeout_s || !str_eq(old->list, now->list) ||
           !str_eq(old->match, now->match);
}

uint32_t gangs_put_group(struct cluster *c, struct pod_group *g, const struct cluster_hooks *hooks)
{
    struct cluster_groups *all = map_get(&c->pod_groups, g->key);
    if (all == NULL) {
        all = mem_new(struct cluster_groups, 1);
        all->key = mem_strdup(g->key);
        all->id = ids_take(&c->group_ids);
        map_put(&c->pod_groups, all->key, all);
    }
    bool matters_now = group_matters(all->of[g->api], g);
    pod_group_free(all->of[g->api]);
    all->of[g->api] = g;
    return matters_now ? group_changed(c, all->key, hooks) : 0;
}

uint32_t gangs_remove_group(struct cluster *c, const char *key, enum pod_group_api api,
                            const struct cluster_hooks *hooks)
{
    struct cluster_groups *all = map_get(&c->pod_groups, key);
    if (all == NULL || all->of[api] == NULL)
        return 0;
    pod_group_free(all->of[api]);
    all->of[api] = NULL;
    uint32_t events = group_changed(c, all->key, hooks);
    for (int i = 0; i < POD_GROUP_APIS; i++)
        if (all->of[i] != NULL)
            return events;
    map_remove(&c->pod_groups, all->key);
    ids_give(&c->group_ids, all->id);
    groups_free(all);
    return events;
}

void gangs_deinit(struct cluster *c)
{
    const char *key;
    void *value;
    gangs_bundle_deinit(c);
    vec_deinit(&c->satisfied);
    for (size_t i = 0; map_next(&c->gangs, &i, &key, &value);)
        gang_free(value);
    for (size_t i = 0; map_next(&c->pod_groups, &i, &key, &value);)
        groups_free(value);
    map_deinit(&c->gangs);
    vec_deinit(&c->several);
    map_deinit(&c->pod_groups);
}

bool gangs_has_waiting(const struct gang *g)
{
    return g->counts[GANG_COUNT_WAITING] > 0;
}

int32_t gangs_count_existing(const struct gang *g)
{
    return g->counts[GANG_COUNT_EXISTING];
}

/* Whether an existing member counts for the required quorum. */
static bool counts(const struct gang *g, const struct cluster_pod *cp)
{
    return !cp->pod->gated && !cp->pod->terminating && is_open(g, cp);
}

static int32_t count_open(const struct gang *g)
{
    return g->counts[GANG_COUNT_EXISTING] -
           (g->match == GANG_ONLY_WAITING ? g->counts[GANG_COUNT_EXISTING_IN_QUORUM] : 0);
}

static int by_age(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

int64_t gangs_quorum_since_ns(const struct gang *g)
{
    size_t n = 0, need = g->min_available > 0 ? (size_t)g->min_available : 1;
    int64_t *created = mem_new(int64_t, g->members.len);
    for (size_t i = 0; i < g->members.len; i++) {
        const struct cluster_pod *cp = g->members.items[i];
        if (counts(g, cp))
            created[n++] = cp->pod->created_ns;
    }
    if (n > 1)
        qsort(created, n, sizeof *created, by_age);
    int64_t since_ns = n >= need ? created[need - 1] : 0;
    free(created);
    return since_ns;
}

static bool is_placed(const struct cluster_pod *cp)
{
    return (cp->on != NULL || cp->state == CLUSTER_FINISHED) && !cp->pod->terminating;
}

int32_t gangs_count_placed(const struct gang *g)
{
    int32_t n = 0;
    for (size_t i = 0; i < g->members.len; i++)
        n += is_placed(g->members.items[i]);
    return n;
}

/* Each member may be placed alone: the quorum was complete once and is not required again. */
static bool is_free(const struct gang *g)
{
    return g->satisfied && g->match == GANG_ONCE_SATISFIED;
}

static int32_t count_placed_open(const struct gang *g)
{
    int32_t placed = 0;
    for (size_t i = 0; i < g->members.len; i++)
        placed += is_placed(g->members.items[i]) && is_open(g, g->members.items[i]);
    return placed;
}

int32_t gangs_count_missing(const struct gang *g)
{
    if (is_free(g))
        return 0;
    int32_t placed = count_placed_open(g);
    return placed < g->min_available ? g->min_available - placed : 0;
}

int32_t gangs_count_spare(const struct gang *g)
{
    if (is_free(g))
        return INT32_MAX;
    int32_t placed = count_placed_open(g);
    return placed > g->min_available ? placed - g->min_available : 0;
}

/* Whether the gang itself is ready, regardless of the gangs in its bundle. */
static bool has_own_quorum(const struct cluster *c, const struct gang *g, struct arena *a,
                           const char **why)
{
    if (g->min_available == 0) {
        *why = arena_printf(a, "PodGroup %s does not exist", gangs_name(g));
        return false;
    }
    if ((*why = gangs_settings_conflict(c, g, a)) != NULL ||
        (*why = gangs_bundle_conflict(c, g, a)) != NULL)
        return false;
    int32_t existing = count_open(g);
    if (existing >= g->min_available || is_free(g))
        return true;
    *why = arena_printf(a, "gang %s: %d of %d pods %s%s", gangs_name(g), existing, g->min_available,
                        existing == 1 ? "exists" : "exist",
                        g->match == GANG_ONLY_WAITING && g->satisfied
                            ? " beside those that had their quorum (match-policy only-waiting)"
                            : "");
    return false;
}

static bool is_ready(const struct cluster *c, const struct gang *g)
{
    const char *why;
    struct arena scratch;
    arena_init(&scratch, 0);
    bool ready = has_own_quorum(c, g, &scratch, &why);
    arena_deinit(&scratch);
    return ready;
}

bool gangs_has_quorum(const struct cluster *c, const struct gang *g, struct arena *a,
                      const char **why)
{
    if (!gangs_is_lone(g)) {
        if (!has_own_quorum(c, g, a, why))
            return false;
        *why = gangs_bundle_waits(c, g, is_ready, a);
        return *why == NULL;
    }
    struct gang_ref ref;
    struct error err = ERROR_INIT;
    if (gang_of_pod(g->members.items[0]->pod, &ref, &err) == 0)
        return true;
    *why = arena_strdup(a, err.text);
    return false;
}
