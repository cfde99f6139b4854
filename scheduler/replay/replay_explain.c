// SPDX-License-Identifier: Apache-2.0
#include "scheduler/replay/replay_explain.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"
#include "scheduler/model/volumes_held.h"
#include "scheduler/dump/dump.h"
#include "scheduler/framework/pipeline.h"
#include "scheduler/cycle/plan.h"

void replay_explain_init(struct replay_explain *e, const char *key)
{
    *e = (struct replay_explain){.key = key};
    arena_init(&e->arena, 16 * 1024);
}

void replay_explain_deinit(struct replay_explain *e)
{
    vec_deinit(&e->nodes);
    arena_deinit(&e->arena);
}

static int node_order(const void *a, const void *b)
{
    const struct replay_explain_node *x = a, *y = b;
    if (x->chosen != y->chosen)
        return x->chosen ? -1 : 1;
    if ((x->no == NULL) != (y->no == NULL))
        return x->no == NULL ? -1 : 1;
    if (x->no == NULL && x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Appends text without what only a tally over many nodes needs: the largest of what they have, and
 * the node's name. */
static void add_plain(struct strbuf *b, const char *text, const char *node)
{
    static const struct {
        const char *from, *to;
    } superlatives[] = {{"largest free: ", "free: "},
                        {"most free: ", "free: "},
                        {", largest: ", ", has: "},
                        {"most: ", "has: "}};
    AUTO_STRBUF on = {0};
    strbuf_addf(&on, " on %s", node);
    while (*text != '\0') {
        const char *after = str_starts(text, strbuf_str(&on)) ? text + on.len : NULL;
        if (after != NULL && (*after == ')' || *after == ',')) {
            text = after;
            continue;
        }
        if (after != NULL && *after == '/') { /* keep the card */
            strbuf_adds(b, " on ");
            text = after + 1;
            continue;
        }
        size_t i = 0, len = sizeof superlatives / sizeof *superlatives;
        while (i < len && !str_starts(text, superlatives[i].from))
            i++;
        if (i < len) {
            strbuf_adds(b, superlatives[i].to);
            text += strlen(superlatives[i].from);
        } else {
            strbuf_addc(b, *text++);
        }
    }
}

/* "0/1 nodes fit: 1 has too little cpu (asked: 5, largest free: 1 on n1)" → "has too little cpu
 * (asked: 5, free: 1)": the tally of one node. Problems of the pod itself have no count: "0/1 nodes
 * fit: claim d/c does not exist". */
static const char *sentence(const struct reason *why, const char *node, struct arena *a)
{
    struct reasons tally;
    AUTO_STRBUF b = {0};
    reasons_init(&tally);
    tally.of = "nodes"; /* of the cluster, about which the tally says nothing then */
    reasons_add(&tally, why, node);
    const char *text = strstr(reasons_sentence(&tally, a), ": ") + strlen(": ");
    add_plain(&b, str_starts(text, "1 ") ? text + strlen("1 ") : text, node);
    return arena_strdup(a, strbuf_str(&b));
}

static void ask_all(struct replay_explain *e, const struct pipeline *p, struct cluster_pod *cp,
                    const struct cluster_node *chosen)
{
    const struct cluster *c = p->cluster;
    const char *name;
    void *value;
    struct plugin_ask ask = pipeline_ask(p, cp);
    for (size_t i = 0; map_next(&c->nodes, &i, &name, &value);) {
        const struct cluster_node *cn = value;
        struct reason why = {0};
        if (cn->node == NULL)
            continue;
        struct replay_explain_node row = {.name = arena_strdup(&e->arena, name),
                                          .chosen = cn == chosen};
        const struct plugin *no = plugin_refusing(&ask, cn, &e->arena, &why);
        if (no != NULL) {
            row.no = sentence(&why, row.name, &e->arena);
            row.plugin = no->name;
        } else {
            row.score = pipeline_score(&ask, cn);
        }
        vec_push(&e->nodes, row);
    }
    if (e->nodes.len > 0)
        qsort(e->nodes.items, e->nodes.len, sizeof *e->nodes.items, node_order);
    e->done = true;
}

/* Evaluates the nodes with the pod removed from its node, then restores it. */
static void ask_without(struct replay_explain *e, const struct pipeline *ask,
                        const struct cluster_pod *cp, const struct cluster_hooks *hooks)
{
    struct cluster *c = ask->cluster;
    struct pod *loose = dump_copy_pod(cp), *bound = dump_copy_pod(cp);
    const struct cluster_node *on = cp->on;
    loose->node = NULL;
    (void)cluster_remove_pod(c, e->key, NULL, hooks);
    (void)cluster_put_pod(c, loose, hooks);
    ask_all(e, ask, cluster_find_pod(c, e->key), on);
    (void)cluster_remove_pod(c, e->key, NULL, hooks);
    (void)cluster_put_pod(c, bound, hooks);
}

bool replay_explain_prepare(struct replay_explain *e, const struct pipeline *ask,
                            const struct cluster_hooks *hooks)
{
    struct cluster *c = ask->cluster;
    struct cluster_pod *cp = cluster_find_pod(c, e->key);
    if (cp == NULL)
        return false;
    if (cp->state == CLUSTER_FINISHED) {
        e->note = "it is finished and holds nothing";
        e->done = true;
    } else if (cp->state == CLUSTER_BOUND) {
        e->note =
            arena_printf(&e->arena, "it is bound to %s; this is as if it were not", cp->on->name);
        e->bound = true;
        if (cp->on->node == NULL) /* it would vanish with its last pod */
            ask_all(e, ask, cp, cp->on);
        else
            ask_without(e, ask, cp, hooks);
    } else if (cp->state == CLUSTER_PENDING && cp->gang == NULL) {
        e->note = arena_printf(&e->arena,
                               "its spec.schedulerName is %s, so it is not placed here (see "
                               "--any-scheduler)",
                               cp->pod->scheduler);
        ask_all(e, ask, cp, NULL);
    }
    return true;
}

void replay_explain_preempts(struct replay_explain *e, const struct pipeline *ask,
                             const struct gang *g, const struct cycle_result *result)
{
    struct cluster *c = ask->cluster;
    struct cluster_pod *cp = cluster_find_pod(c, e->key);
    if (e->done || cp == NULL || cp->gang != g || cp->state != CLUSTER_PENDING)
        return;
    const struct cluster_node *node = NULL;
    for (size_t i = 0; i < result->nominations_len; i++)
        if (result->nominations[i].pod == cp)
            node = result->nominations[i].node;
    if (node == NULL)
        return;
    AUTO_STRBUF b = {0};
    for (size_t i = 0; i < result->victims_len; i++)
        strbuf_addf(&b, "%s%s from %s", i == 0 ? "it evicts " : ", ",
                    result->victims[i].pod->pod->key, result->victims[i].pod->on->name);
    for (size_t i = 0; i < result->recalls_len; i++) {
        strbuf_adds(&b, i == 0 ? "it reclaims CPUs " : ", ");
        cpuset_print(&result->recalls[i].cpus, &b);
        strbuf_addf(&b, " from %s", result->recalls[i].pod->pod->key);
    }
    strbuf_addf(&b, "%s",
                b.len > 0 ? "; this is before that" : "it waits for pods that are leaving");
    e->note = arena_strdup(&e->arena, strbuf_str(&b));
    ask_all(e, ask, cp, node);
}

void replay_explain_placed(struct replay_explain *e, const struct pipeline *ask,
                           const struct gang *g)
{
    struct cluster *c = ask->cluster;
    struct cluster_pod *cp = cluster_find_pod(c, e->key);
    if (e->done || cp == NULL || cp->gang != g || cp->state != CLUSTER_ASSUMED)
        return;
    struct cluster_node *on = cp->on;
    struct arena a;
    size_t len = cp->volumes != NULL ? cp->volumes->len : 0;
    arena_init(&a, 0);
    struct volumes_choice *choices = arena_new(&a, struct volumes_choice, len);
    for (size_t i = 0; i < len; i++)
        choices[i] = (struct volumes_choice){
            arena_strdup(&a, cp->volumes->items[i]->claim),
            cp->volumes->items[i]->volume ? arena_strdup(&a, cp->volumes->items[i]->volume) : NULL};
    /* As if it were not placed: else its own affinity or its claims may match its node. */
    struct plan trial;
    plan_begin(&trial, c);
    (void)plan_evict(&trial, cp);
    volumes_held_withdraw(c, cp);
    if (g->members.len > 1)
        e->note = "the other members of its gang are in place";
    ask_all(e, ask, cp, on);
    plan_end(&trial);
    if (len > 0)
        volumes_held_give(c, cp, on, choices, len);
    arena_deinit(&a);
}

static int by_key(const void *a, const void *b)
{
    struct cluster_pod *const *x = a, *const *y = b;
    return strcmp((*x)->pod->key, (*y)->pod->key);
}

static void place_others(const struct pipeline *ask, const struct gang *g,
                         const struct cluster_pod *but, struct plan *plan, struct arena *a)
{
    size_t n = 0;
    struct cluster_pod **members = arena_new(a, struct cluster_pod *, g->members.len);
    for (size_t i = 0; i < g->members.len; i++)
        if (g->members.items[i] != but && cluster_pod_is_schedulable(g->members.items[i]))
            members[n++] = g->members.items[i];
    qsort(members, n, sizeof(struct cluster_pod *), by_key);
    for (size_t i = 0; i < n && strcmp(members[i]->pod->key, but->pod->key) < 0; i++) {
        struct pipeline_choice *choice = arena_new(a, struct pipeline_choice, 1);
        pipeline_choose(ask, members[i], a, choice);
        if (choice->node != NULL)
            plan_place(plan, members[i], choice->node, &choice->grant);
    }
}

void replay_explain_waiting(struct replay_explain *e, const struct pipeline *ask)
{
    struct cluster *c = ask->cluster;
    struct cluster_pod *cp = cluster_find_pod(c, e->key);
    struct plan plan;
    if (e->done || cp == NULL)
        return;
    plan_begin(&plan, c);
    if (cp->gang != NULL && cp->gang->members.len > 1)
        place_others(ask, cp->gang, cp, &plan, &e->arena);
    if (plan.steps.len > 0)
        e->note = arena_printf(&e->arena, "%zu of its gang placed before it", plan.steps.len);
    ask_all(e, ask, cp, NULL);
    plan_end(&plan);
}
