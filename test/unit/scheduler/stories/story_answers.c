// SPDX-License-Identifier: Apache-2.0
/*
 * The answers of every filter about every waiting pod and every node, before and after a step.
 * Where a no became a yes although the pod is the same, one of the events of that step must be in
 * the filter's wakes.
 */
#include <string.h>

#include "lib/base/str.h"
#include "scheduler/framework/pipeline.h"
#include "test/unit/scheduler/stories/story.h"
#include "test/unit/scheduler/world_internal.h"

enum { PLUGINS = 32 };

static struct answer {
    char uid[24];
    uint32_t version;
    uint32_t refused[WORLD_NODES + 1]; /* a bit for each plugin */
} answers[WORLD_PODS];
static size_t answers_len;

static uint32_t refusing(struct world *w, struct cluster_pod *cp, const struct cluster_node *cn)
{
    uint32_t bits = 0;
    struct plugin_ask ask = pipeline_ask(&w->pipeline, cp);
    for (size_t i = 0; plugin_table[i] != NULL; i++)
        if (plugin_table[i]->filter != NULL &&
            !plugin_filter(plugin_table[i], &ask, cn, &w->arena, NULL))
            bits |= 1u << i;
    return bits;
}

/* 0: there is no such node. */
static struct cluster_node *node(struct world *w, uint64_t i)
{
    char name[16];
    (void)str_format(name, sizeof name, "n%llu", (unsigned long long)i);
    struct cluster_node *cn = cluster_find_node(&w->cluster, name);
    return cn != NULL && cn->node != NULL ? cn : NULL;
}

static bool is_asked(const struct cluster_pod *cp)
{
    return cluster_pod_is_schedulable(cp) && cp->gang != NULL && cp->pod->unplaceable == NULL &&
           cp->gpu.illegal == NULL && (cp->cpu == NULL || cp->cpu->illegal == NULL);
}

void story_answers_note(struct world *w)
{
    const char *key;
    void *value;
    answers_len = 0;
    arena_reset(&w->arena);
    for (size_t i = 0; map_next(&w->cluster.pods, &i, &key, &value);) {
        struct cluster_pod *cp = value;
        if (!is_asked(cp))
            continue;
        struct answer *a = &answers[answers_len++];
        (void)str_format(a->uid, sizeof a->uid, "%s", cp->pod->uid);
        a->version = cp->version;
        for (uint64_t k = 0; k <= w->nodes; k++) {
            const struct cluster_node *cn = node(w, k);
            a->refused[k] = cn != NULL ? refusing(w, cp, cn) : 0;
        }
    }
}

static bool compare(struct story *s, struct world *w, const struct answer *a,
                    struct cluster_pod *cp)
{
    for (uint64_t k = 0; k <= w->nodes; k++) {
        const struct cluster_node *cn = node(w, k);
        uint32_t freed = cn != NULL ? a->refused[k] & ~refusing(w, cp, cn) : 0;
        for (size_t i = 0; plugin_table[i] != NULL; i++) {
            const struct plugin *p = plugin_table[i];
            uint32_t events = w->events | ((w->events & EVENT_POD_GONE) != 0 ? EVENT_POD_LEFT : 0);
            if ((freed >> i & 1) == 0 || (events & (p->wakes | EVENT_NODE_ADDED)) != 0)
                continue;
            story_fail(
                s, p->name,
                "the filter refused %s on %s and does no longer after '%s', whose events are "
                "%x; it wakes for %x",
                cp->pod->key, cn->name, s->said, (unsigned)w->events, (unsigned)p->wakes);
            return false;
        }
    }
    return true;
}

bool story_answers_check(struct story *s, struct world *w)
{
    const char *key;
    void *value;
    arena_reset(&w->arena);
    for (size_t i = 0; map_next(&w->cluster.pods, &i, &key, &value);) {
        struct cluster_pod *cp = value;
        for (size_t k = 0; is_asked(cp) && k < answers_len; k++)
            if (str_eq(answers[k].uid, cp->pod->uid) && answers[k].version == cp->version &&
                queue_state(&w->queue, cp->gang) == GANG_PARKED && !compare(s, w, &answers[k], cp))
                return false;
    }
    return true;
}
