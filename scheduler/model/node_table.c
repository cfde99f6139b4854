// SPDX-License-Identifier: Apache-2.0
#include "scheduler/model/node_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "scheduler/model/model.h"

void node_table_init(struct node_table *t)
{
    *t = (struct node_table){.stale = true, .log_len = NODE_TABLE_LOG};
}

void node_table_deinit(struct node_table *t)
{
    free(t->rows);
    free(t->log);
    *t = (struct node_table){.stale = true};
}

void node_table_set_stale(struct node_table *t)
{
    t->stale = true;
}

static int64_t left(int64_t total, int64_t used)
{
    return num_max(num_sub_sat(total, used), 0);
}

enum { PODS_MAX = (1 << 30) - 1 };

static void fill(struct node_table_row *row, struct cluster_node *cn)
{
    const struct resource_vector *total = &cn->allocatable, *used = &cn->used;
    int64_t places = left(total->pods, used->pods);
    row->free_cpu_milli = left(total->cpu_milli, used->cpu_milli);
    row->free_memory_bytes = left(total->memory_bytes, used->memory_bytes);
    row->free_ephemeral_bytes = left(total->ephemeral_bytes, used->ephemeral_bytes);
    row->cpu_milli = total->cpu_milli;
    row->memory_bytes = total->memory_bytes;
    row->free_pods = (int32_t)num_min(places, INT32_MAX);
    row->pods = (uint32_t)num_min(num_max(total->pods, 0), PODS_MAX) & PODS_MAX;
    row->cards = cn->cards > 0;
    row->closer = cn->nominated != NULL || cn->rejections > 0 || cn->reserved > 0;
    row->node = cn;
}

static int by_name(const void *a, const void *b)
{
    const struct node_table_row *x = a, *y = b;
    return strcmp(x->node->name, y->node->name);
}

static void reserve(struct node_table *t, size_t n)
{
    assert(n < NODE_TABLE_OBJECT);
    if (t->log == NULL)
        t->log = mem_new(uint32_t, t->log_len);
    if (n <= t->cap)
        return;
    free(t->rows);
    t->cap = (uint32_t)(n + n / 4 + 16);
    t->rows = aligned_alloc(64, t->cap * sizeof *t->rows);
    if (t->rows == NULL)
        abort();
}

void node_table_refresh(struct node_table *t, const struct map *nodes)
{
    const char *name;
    void *value;
    if (!t->stale)
        return;
    reserve(t, map_count(nodes));
    t->len = 0;
    for (size_t i = 0; map_next(nodes, &i, &name, &value);) {
        struct cluster_node *cn = value;
        cn->place = NODE_TABLE_NOWHERE;
        if (cn->node == NULL)
            continue;
        t->rows[t->len] = (struct node_table_row){.changed = NODE_TABLE_UNCHANGED};
        fill(&t->rows[t->len++], cn);
    }
    if (t->len > 0)
        qsort(t->rows, t->len, sizeof *t->rows, by_name);
    for (uint32_t i = 0; i < t->len; i++)
        t->rows[i].node->place = (int32_t)i;
    t->stale = false;
    t->generation++;
}

void node_table_touch(struct node_table *t, struct cluster_node *cn, bool object)
{
    if (t->stale || cn->place == NODE_TABLE_NOWHERE)
        return; /* all rows will be rebuilt, or no pod fits there */
    struct node_table_row *row = &t->rows[cn->place];
    fill(row, cn);
    row->changed = t->logged;
    t->log[t->logged++ & (t->log_len - 1)] = (uint32_t)cn->place | (object ? NODE_TABLE_OBJECT : 0);
}
