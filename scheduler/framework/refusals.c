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
    *row = (struct refusals_row){.reason = *why, .wakes = wakes};
    row->reason.what = why->what != NULL ? arena_strdup(&r->arena, why->what) : NULL;
    return r->rows_len++;
}

static struct reason reason_of(const struct refusals *r, const struct refusals_node *n)
{
    struct reason why = r->rows[n->row].reason;
    why.free = n->free;
    why.free_percent = n->free_percent;
    why.card = n->card;
    return why;
}

/* Like reasons_add in node order: of equally promising nodes the first by name wins. */
static void offer(struct refusals *r, struct refusals_row *row, uint32_t place)
{
    const struct refusals_node *n = &r->nodes[place];
    struct reason why = reason_of(r, n), best = reason_of(r, &r->nodes[row->best]);
    if (reasons_is_better(&why, &best) || (place < row->best && !reasons_is_better(&best, &why)))
        row->best = place;
}

static void enter(struct refusals *r, uint32_t place)
{
    struct refusals_row *row = &r->rows[r->nodes[place].row];
    if (row->nodes++ == 0) {
        row->best = place;
        row->stale = false;
    } else if (!row->stale) {
        offer(r, row, place);
    }
}

static void leave(struct refusals *r, uint32_t place)
{
    struct refusals_row *row = &r->rows[r->nodes[place].row];
    row->nodes--;
    row->stale |= row->best == place;
}

enum { NO_ROW = -1 };

static bool ask_node(struct refusals *r, const struct plugin_ask *ask, uint32_t place,
                     struct arena *a)
{
    struct reason why = {0};
    const struct plugin *no = plugin_refusing(ask, ask->cluster->table->rows[place].node, a, &why);
    int32_t row = no == NULL ? NO_ROW : row_of(r, &why, no->wakes);
    struct refusals_node *n = &r->nodes[place];
    if (row == n->row && why.free == n->free && why.free_percent == n->free_percent &&
        why.card == n->card)
        return row != NO_ROW;
    if (n->row != NO_ROW)
        leave(r, place);
    *n = (struct refusals_node){
        .free = why.free, .free_percent = why.free_percent, .card = why.card, .row = row};
    if (row != NO_ROW)
        enter(r, place);
    return row != NO_ROW;
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
        r->nodes[i].row = NO_ROW;
    for (uint32_t i = 0; i < t->len; i++)
        if (!ask_node(r, ask, i, a))
            return false;
    r->generation = t->generation;
    r->seen = t->logged;
    r->own_place = NODE_TABLE_NOWHERE;
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

/* Where the pod that asked last was nominated, and where this one is. */
static bool ask_own(struct refusals *r, const struct plugin_ask *ask, int32_t own_place,
                    struct arena *a)
{
    const int32_t places[] = {r->own_place, own_place};
    r->own_place = places[1];
    for (size_t i = places[0] == places[1]; i < 2; i++)
        if (places[i] != NODE_TABLE_NOWHERE && !ask_node(r, ask, (uint32_t)places[i], a))
            return false;
    return true;
}

static void find_best(struct refusals *r)
{
    bool any = false;
    for (int32_t i = 0; i < r->rows_len; i++)
        any |= r->rows[i].stale && r->rows[i].nodes > 0;
    for (uint32_t i = 0; any && i < r->len; i++) {
        struct refusals_row *row = &r->rows[r->nodes[i].row];
        if (row->stale && r->nodes[row->best].row != r->nodes[i].row)
            row->best = i; /* the best one so far has left the row */
        if (row->stale)
            offer(r, row, i);
    }
    for (int32_t i = 0; i < r->rows_len; i++)
        r->rows[i].stale = false;
}

bool refusals_tally(struct refusals *r, const struct plugin_ask *ask, int32_t own_place,
                    struct arena *a, struct reasons *out, uint32_t *wakes)
{
    const struct node_table *t = ask->cluster->table;
    bool known = node_table_can_follow(t, r->generation, r->seen) ? ask_changed(r, ask, a)
                                                                  : ask_all(r, ask, a);
    if (!known || !ask_own(r, ask, own_place, a)) {
        refusals_forget(r);
        return false;
    }
    struct reasons sum;
    find_best(r);
    reasons_init(&sum);
    for (int32_t i = 0; i < r->rows_len; i++) {
        const struct refusals_row *row = &r->rows[i];
        if (row->nodes == 0)
            continue; /* no node has it any more */
        struct reasons_row add = {.reason = reason_of(r, &r->nodes[row->best]),
                                  .nodes = row->nodes,
                                  .best_node = t->rows[row->best].node->name};
        *wakes |= row->wakes;
        reasons_add_row(&sum, &add); /* two plugins may give the same */
    }
    reasons_copy(out, &sum, a);
    return true;
}
