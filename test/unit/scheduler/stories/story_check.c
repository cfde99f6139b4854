// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "lib/base/json.h"
#include "lib/base/str.h"
#include "scheduler/cache/gangs.h"
#include "scheduler/cache/replacement_hold.h"
#include "scheduler/cycle/node_victims.h"
#include "scheduler/dump/dump.h"
#include "scheduler/replay/replay_load.h"
#include "test/unit/scheduler/stories/story.h"
#include "test/unit/scheduler/world_internal.h"

/* What the next attempt would do, as attempt.c runs it. It is undone unless it placed something. */
static bool ask(struct world *w, struct gang *g, struct cycle_result *r)
{
    struct plan lent, plan;
    arena_reset(&w->arena);
    plan_begin(&lent, &w->cluster);
    world_lend(g, &lent);
    plan_begin(&plan, &w->cluster);
    cycle_run(&w->pipeline, g, &plan, &w->arena, r);
    bool placed = plan.committed;
    plan_end(&plan);
    plan_end(&lent);
    return placed;
}

/* Whether it would evict somebody now. If a pod is leaving where it would go, or wherever its own
 * mask says, that wakes it soon: nothing is lost. */
static bool would_preempt(const struct world *w, uint32_t wake, const struct cycle_result *r)
{
    const char *key;
    void *value;
    if (w->attempt.all_stay || r->victims_len == 0)
        return false;
    for (size_t i = 0; map_next(&w->cluster.pods, &i, &key, &value);) {
        const struct cluster_pod *cp = value;
        if (cp->on == NULL || !node_victims_is_leaving(cp))
            continue;
        if ((wake & EVENT_POD_LEFT) != 0)
            return false;
        for (size_t k = 0; k < r->nominations_len; k++)
            if (r->nominations[k].node == cp->on)
                return false;
    }
    return true;
}

static bool would_recall(const struct cycle_result *r)
{
    for (size_t i = 0; i < r->recalls_len; i++) {
        const struct cycle_recall *one = &r->recalls[i];
        if (one->pod->giving == NULL || !cpuset_is_subset(&one->cpus, one->pod->giving))
            return true;
    }
    return false;
}

bool story_check_sleepers(struct story *s, struct world *w)
{
    w->said = "sleeping gangs asked";
    for (size_t i = 0; i < w->queue.parked.items.len; i++) {
        const struct queue_entry *e = w->queue.parked.items.items[i];
        struct gang *g = e->gang;
        struct cycle_result r;
        if (queue_parked_is_lucky(e))
            continue; /* a wake is on its way */
        s->asked++;
        const char *what = ask(w, g, &r)                   ? "fits"
                           : would_preempt(w, e->wake, &r) ? "could preempt"
                           : would_recall(&r)              ? "could reclaim CPUs"
                                                           : NULL;
        if (what == NULL)
            continue;
        story_fail(s, what, "%s sleeps with wake mask %x and %s; it was told: %s", g->key,
                   (unsigned)e->wake, what, str_or_empty(e->why.sentence));
        return false;
    }
    return true;
}

/* ---- a model made from a list of everything ---- */

static void warned(void *arg, const char *text)
{
    struct story *s = arg;
    story_fail(s, "a dump that cannot be read", "%s", text);
}

/* The first place where the lists of both differ, and what is before it. */
static void tell_difference(struct story *s, const struct cluster *fresh, const char *text)
{
    enum { BEFORE = 150, AFTER = 80 };
    AUTO_STRBUF other = {0};
    size_t at = 0;
    dump_cluster(fresh, &other);
    const char *also = strbuf_str(&other);
    while (text[at] != '\0' && text[at] == also[at])
        at++;
    size_t from = at > BEFORE ? at - BEFORE : 0;
    story_fail(s, "digests differ", "of the model and of one made from its list: %.*s and %.*s",
               BEFORE + AFTER, &text[from], AFTER, &also[at]);
}

/* A reservation whose node or member is gone ends when the next one is due; until then the list
 * names what is not there. */
static bool is_reserved_for_all(const struct cluster *c, const struct reservation *r)
{
    const char *name;
    void *value;
    for (size_t i = 0; map_next(&r->nodes, &i, &name, &value);) {
        const struct reservation_node *at = value;
        for (size_t k = 0; k < at->members.len; k++)
            if (cluster_find_pod(c, at->members.items[k]) == NULL ||
                cluster_find_node(c, name) == NULL)
                return false;
    }
    return true;
}

/* Of an assumed pod the list has neither the volumes that it was promised, which were free then,
 * nor the unit of its policy that a node had which is gone. Both are chosen again. */
static bool is_all_listed(const struct world *w)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&w->cluster.pods, &i, &key, &value);) {
        const struct cluster_pod *cp = value;
        if (cp->state == CLUSTER_ASSUMED && (cp->pod->volumes_len > 0 || cp->on->node == NULL))
            return false;
    }
    for (size_t i = 0; i < w->cluster.reservations->items.len; i++)
        if (!is_reserved_for_all(&w->cluster, w->cluster.reservations->items.items[i]))
            return false;
    return true;
}

bool story_check_fresh(struct story *s, struct world *w)
{
    AUTO_STRBUF text = {0};
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    struct cluster fresh;
    struct replay_load load;
    if (!is_all_listed(w))
        return true;
    dump_cluster(&w->cluster, &text);
    cluster_init(&fresh, w->cluster.scheduler_name);
    replacement_hold_enable(&fresh, true);
    replay_load_init(&load, &fresh, NULL);
    load.warn = warned;
    load.arg = s;
    if (json_parse(&doc, strbuf_str(&text), text.len, &err) < 0) {
        story_fail(s, "a dump that cannot be read", "%s", err.text);
    } else {
        replay_load_object(&load, json_root(doc), "dump");
        replay_load_finish(&load);
        if (s->kind == NULL && cluster_digest(&fresh) != cluster_digest(&w->cluster))
            tell_difference(s, &fresh, strbuf_str(&text));
    }
    replay_load_deinit(&load);
    cluster_deinit(&fresh);
    return s->kind == NULL;
}
