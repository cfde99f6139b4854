// SPDX-License-Identifier: Apache-2.0
#include "scheduler/framework/refusals.h"

#include <stdlib.h>

#include "lib/base/mem.h"
#include "scheduler/framework/plugin.h"

void refusals_init(struct refusals *r)
{
    *r = (struct refusals){0};
    arena_init(&r->arena, 0);
}

void refusals_deinit(struct refusals *r)
{
    free(r->nodes);
    arena_deinit(&r->arena);
}

size_t refusals_bytes(const struct refusals *r)
{
    return r->len * sizeof *r->nodes + arena_bytes(&r->arena);
}

void refusals_forget(struct refusals *r)
{
    r->generation = 0;
}

/* Finds or creates the row; -1: too many. */
static int32_t row_of(struct refusals *r, const struct reason *why, uint32_t wakes)
{
    for (int32_t i = 0; i < r->rows_len; i++)
        if (r->rows[i].reason.kind == why->kind && str_eq(r->rows[i].reason.what, why->what) &&
            r->rows[i].wakes == wakes)
            return i;
    if (r->rows_len == REASONS_MAX)
        return -1;
    struct refusals_row *row = &r->rows[r->rows_len];
    row->reason = *why;
    row->reason.what = why->what != NULL ? arena_strdup(&r->arena, why->what) : NULL;
    row->wakes = wakes;
    return r->rows_len++;
}

static bool ask_node(struct refusals *r, const struct plugin_ask *ask, uint32_t place,
                     struct arena *a)
{
    struct reason why = {0};
    const struct plugin *no = plugin_refusing(ask, ask->cluster->table->rows[place].node, a, &why);
    int32_t row = no == NULL ? -1 : row_of(r, &why, no->wakes);
    r->nodes[place] = (struct refusals_node){
        .free = why.free, .free_percent = why.free_percent, .card = why.card, .row = row};
    return row >= 0;
}

static bool ask_all(struct refusals *r, const struct plugin_ask *ask, struct arena *a)
{
    const struct node_table *t = ask->cluster->table;
    if (r->nodes == NULL || r->len != t->len) {
        free(r->nodes);
        r->nodes = mem_new(struct refusals_node, t->len);
        r->len = t->len;
    }
    arena_reset(&r->arena);
    r->rows_len = 0;
    for (uint32_t i = 0; i < t->len; i++)
        if (!ask_node(r, ask, i, a))
            return false;
    r->generation = t->generation;
    r->seen = t->logged;
    return true;
}

static bool ask_changed(struct refusals *r, const struct plugin_ask *ask, struct arena *a)
{
    uint32_t place;
    bool object;
    while (node_table_next(ask->cluster->table, &r->seen, &place, &object))
        if (!ask_node(r, ask, place, a))
            return false;
    return true;
}

static struct reason reason_of(const struct refusals *r, const struct refusals_node *n)
{
    struct reason why = r->rows[n->row].reason;
    why.free = n->free;
    why.free_percent = n->free_percent;
    why.card = n->card;
    return why;
}

/* Like reasons_add in node order: of equally promising ones the first by name wins. Rows have the
 * same numbers, so there is no search. */
static void sum_up(const struct refusals *r, const struct node_table *t, struct reasons *out)
{
    for (uint32_t i = 0; i < r->len; i++) {
        const struct refusals_node *n = &r->nodes[i];
        struct reasons_row *row = &out->rows[n->row];
        if (row->nodes++ > 0 && row->reason.want_percent == 0 && n->free <= row->reason.free)
            continue;
        struct reason why = reason_of(r, n);
        if (row->nodes > 1 && !reasons_is_better(&why, &row->reason))
            continue;
        row->reason = why;
        row->best_node = t->rows[i].node->name;
    }
}

bool refusals_tally(struct refusals *r, const struct plugin_ask *ask, struct arena *a,
                    struct reasons *out, uint32_t *wakes)
{
    const struct node_table *t = ask->cluster->table;
    bool known = node_table_can_follow(t, r->generation, r->seen) ? ask_changed(r, ask, a)
                                                                  : ask_all(r, ask, a);
    if (!known) {
        refusals_forget(r);
        return false;
    }
    struct reasons by_row = {0}, sum;
    sum_up(r, t, &by_row);
    reasons_init(&sum);
    for (int32_t i = 0; i < r->rows_len; i++)
        if (by_row.rows[i].nodes > 0) { /* no node has the others any more */
            *wakes |= r->rows[i].wakes;
            reasons_add_row(&sum, &by_row.rows[i]); /* two plugins may give the same */
        }
    reasons_copy(out, &sum, a);
    return true;
}
