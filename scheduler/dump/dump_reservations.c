// SPDX-License-Identifier: Apache-2.0
#include "scheduler/dump/dump_reservations.h"

#include <stdlib.h>
#include <string.h>

#include "scheduler/dump/dump_parts.h"
#include "scheduler/dump/dump_pod.h"

enum { NS_PER_MS = 1000000 };

static int by_key(const void *a, const void *b)
{
    struct gang *const *x = a, *const *y = b;
    return strcmp((*x)->key, (*y)->key);
}

static void print_aging(const struct cluster *c, struct arena *a, struct json_writer *w)
{
    struct gang **all = arena_new(a, struct gang *, c->several.len);
    size_t n = 0;
    for (size_t i = 0; i < c->several.len; i++) {
        const struct reservation_wait *wait = reservations_of(c, c->several.items[i]);
        if (wait->since_ms != 0 || wait->lapses > 0)
            all[n++] = c->several.items[i];
    }
    if (n == 0)
        return;
    qsort(all, n, sizeof *all, by_key);
    dump_parts_array(w, "aging");
    for (size_t i = 0; i < n; i++) {
        const struct reservation_wait *wait = reservations_of(c, all[i]);
        json_object_begin(w);
        json_kv_str(w, "gang", all[i]->key);
        if (wait->since_ms != 0)
            dump_parts_time(w, "since", wait->since_ms * NS_PER_MS);
        if (wait->lapses > 0)
            json_kv_int(w, "lapses", wait->lapses);
        json_object_end(w);
    }
    json_array_end(w);
}

static int by_name(const void *a, const void *b)
{
    const struct reservation_node *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static void print_nodes(const struct reservation *r, struct arena *a, struct json_writer *w)
{
    size_t n = 0, count = map_count(&r->nodes);
    const struct reservation_node **all = arena_new(a, const struct reservation_node *, count);
    const char *name;
    void *value;
    for (size_t i = 0; map_next(&r->nodes, &i, &name, &value);)
        all[n++] = value;
    if (n > 1)
        qsort(all, n, sizeof *all, by_name);
    dump_parts_object(w, "nodes");
    for (size_t i = 0; i < n; i++) {
        dump_parts_array(w, all[i]->name);
        for (size_t k = 0; k < all[i]->members.len; k++)
            json_put_str(w, all[i]->members.items[k]);
        json_array_end(w);
    }
    json_object_end(w);
}

static void print_reservation(const struct reservation *r, struct arena *a, struct json_writer *w)
{
    json_object_begin(w);
    json_kv_str(w, "for", r->gang->key);
    dump_parts_array(w, "gangs");
    for (size_t i = 0; i < r->gangs.len; i++)
        json_put_str(w, r->gangs.items[i]->key);
    json_array_end(w);
    json_kv_int(w, "priority", r->priority);
    dump_parts_time(w, "made", r->made_ms * NS_PER_MS);
    dump_parts_time(w, "planned", r->planned_ms * NS_PER_MS);
    dump_parts_time(w, "start", r->start_ms * NS_PER_MS);
    dump_parts_time(w, "until", r->until_ms * NS_PER_MS);
    print_nodes(r, a, w);
    json_object_end(w);
}

static void print_reservations(const struct cluster *c, struct arena *a, struct json_writer *w)
{
    const struct reservations *all = c->reservations;
    if (all->items.len == 0)
        return;
    dump_parts_object(w, "reserving");
    dump_parts_time(w, "clock", all->clock_ms * NS_PER_MS);
    json_object_end(w);
    dump_parts_array(w, "reservations");
    for (size_t i = 0; i < all->items.len; i++)
        print_reservation(all->items.items[i], a, w);
    json_array_end(w);
}

/* In the order of templates. */
static void print_run_times(const struct run_times *r, struct json_writer *w)
{
    if (r->ended == 0)
        return;
    dump_parts_object(w, "runTimes");
    json_kv_int(w, "ended", (int64_t)r->ended);
    json_kv_int(w, "weight", r->weight);
    json_kv_int(w, "totalMs", r->total_ms);
    dump_parts_array(w, "templates");
    for (size_t i = 0; i < r->len; i++) {
        json_object_begin(w);
        json_kv_int(w, "template", (int64_t)r->items[i].template);
        json_kv_int(w, "meanMs", r->items[i].mean_ms);
        json_kv_int(w, "deviationMs", r->items[i].deviation_ms);
        json_kv_int(w, "last", (int64_t)r->items[i].last);
        json_object_end(w);
    }
    json_array_end(w);
    json_object_end(w);
}

/* In the order of loss, which is also the order of use. */
static void print_holds(const struct cluster *c, struct json_writer *w)
{
    struct replacement_hold_view s;
    if (replacement_hold_count(c) == 0)
        return;
    dump_parts_array(w, "slots");
    for (size_t i = 0; replacement_hold_at(c, i, &s); i++) {
        struct pod lost = *s.pod;
        lost.nominated_node = NULL;
        json_object_begin(w);
        json_kv_str(w, "gang", s.gang);
        json_kv_str(w, "node", s.node);
        json_key(w, "pod");
        dump_pod_print(&lost, false, w);
        json_object_end(w);
    }
    json_array_end(w);
}

void dump_reservations_print(const struct cluster *c, struct arena *a, struct json_writer *w)
{
    print_run_times(&c->reservations->run_times, w);
    print_aging(c, a, w);
    print_reservations(c, a, w);
    print_holds(c, w);
}
