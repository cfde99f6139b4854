// SPDX-License-Identifier: Apache-2.0
/*
 * openb_trace - the openb files as arrays, and the order in which their pods arrive: sorted by
 * name, shuffled by a seed, then samples with replacement. The generator is our own, so that the
 * same seed is the same order everywhere.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/base/vec.h"
#include "lib/model/names.h"
#include "scheduler/accounts/demand.h"
#include "test/bench/simulate/csv.h"

enum { OPENB_CARD = DEMAND_CARD, OPENB_CARDS_MAX = 8, OPENB_SHAPES_MAX = 4096 };

struct openb_node {
    int64_t cpu, mib, cards;
    uint32_t model;
};

/* What a pod asks for. Pods that ask the same are one shape. */
struct openb_shape {
    int64_t cpu, mib, cards, milli; /* of each card */
    uint64_t models;                /* 0: any */
    int64_t pods;
};

struct openb_pod {
    char name[64];
    uint32_t shape;
    int64_t lasts_s;
};

struct openb_trace {
    struct VEC(struct openb_node) nodes;
    struct VEC(struct openb_shape) shapes;
    struct VEC(struct openb_pod) pods; /* by name */
    char *models[DEMAND_MODELS_MAX];
    uint32_t models_len;
    int64_t capacity; /* milli-cards */
};

static inline int64_t openb_milli(const struct openb_shape *s)
{
    return s->cards * s->milli;
}

static inline uint32_t openb_model(struct openb_trace *t, const char *name, size_t len)
{
    for (uint32_t i = 0; i < t->models_len; i++)
        if (strlen(t->models[i]) == len && memcmp(t->models[i], name, len) == 0)
            return i;
    if (t->models_len == DEMAND_MODELS_MAX)
        return DEMAND_MODELS_MAX - 1;
    char *copy = mem_new(char, len + 1);
    memcpy(copy, name, len);
    t->models[t->models_len] = copy;
    return t->models_len++;
}

static inline int openb_take_node(struct csv *c, struct error *err)
{
    struct openb_trace *t = c->arg;
    struct openb_node n = {0};
    const char *model = str_or_empty(csv_cell(c, "model"));
    if (csv_number(c, "cpu_milli", INT32_MAX, &n.cpu, err) < 0 ||
        csv_number(c, "memory_mib", INT32_MAX, &n.mib, err) < 0 ||
        csv_number(c, "gpu", OPENB_CARDS_MAX, &n.cards, err) < 0)
        return -1;
    if (n.cards == 0)
        return 0;
    n.model = openb_model(t, model, strlen(model));
    t->capacity += n.cards * OPENB_CARD;
    vec_push(&t->nodes, n);
    return 0;
}

static inline uint32_t openb_shape_of(struct openb_trace *t, const struct openb_shape *want)
{
    size_t i = 0;
    for (; i < t->shapes.len; i++) {
        const struct openb_shape *s = &t->shapes.items[i];
        if (s->cpu == want->cpu && s->mib == want->mib && s->cards == want->cards &&
            s->milli == want->milli && s->models == want->models)
            break;
    }
    if (i == t->shapes.len)
        vec_push(&t->shapes, *want);
    t->shapes.items[i].pods++;
    return (uint32_t)i;
}

static inline int openb_take_pod(struct csv *c, struct error *err)
{
    struct openb_trace *t = c->arg;
    struct openb_shape s = {0};
    struct openb_pod p = {0};
    int64_t created = 0, deleted = 0;
    if (csv_number(c, "cpu_milli", INT32_MAX, &s.cpu, err) < 0 ||
        csv_number(c, "memory_mib", INT32_MAX, &s.mib, err) < 0 ||
        csv_number(c, "num_gpu", OPENB_CARDS_MAX, &s.cards, err) < 0 ||
        csv_number(c, "gpu_milli", OPENB_CARD, &s.milli, err) < 0)
        return -1;
    if (csv_cell(c, "deletion_time") != NULL &&
        (csv_number(c, "creation_time", INT32_MAX, &created, err) < 0 ||
         csv_number(c, "deletion_time", INT32_MAX, &deleted, err) < 0))
        return -1;
    if (t->shapes.len == OPENB_SHAPES_MAX)
        return error_set(err, ERROR_TOO_LARGE, "more than %d different shapes", OPENB_SHAPES_MAX);
    if (s.cards == 0 || s.milli == 0)
        s.cards = s.milli = 0;
    const char *at = s.cards > 0 ? csv_cell(c, "gpu_spec") : NULL;
    while (at != NULL && at[0] != '\0') {
        size_t n = strcspn(at, "|");
        s.models |= UINT64_C(1) << openb_model(t, at, n);
        at = at[n] == '|' ? at + n + 1 : NULL;
    }
    p.shape = openb_shape_of(t, &s);
    p.lasts_s = num_max(deleted - created, 1);
    (void)str_format(p.name, sizeof p.name, "%.63s", str_or_empty(csv_cell(c, "name")));
    vec_push(&t->pods, p);
    return 0;
}

static inline int openb_by_name(const void *a, const void *b)
{
    const struct openb_pod *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* -1: ERROR_NOT_FOUND where a file is missing. */
static inline int openb_read(struct openb_trace *t, const char *nodes, const char *pods,
                             struct csv_warn warn, struct error *err)
{
    static const char *const of_node[] = {"sn", "cpu_milli", "memory_mib", "gpu", "model", NULL};
    static const char *const of_pod[] = {"name",    "cpu_milli", "memory_mib",
                                         "num_gpu", "gpu_milli", NULL};
    if (csv_read(nodes, of_node, openb_take_node, t, warn, err) < 0 ||
        csv_read(pods, of_pod, openb_take_pod, t, warn, err) < 0)
        return -1;
    if (t->nodes.len == 0 || t->pods.len == 0)
        return error_set(err, ERROR_INVALID, "%s: no GPU nodes, or no pods", pods);
    qsort(t->pods.items, t->pods.len, sizeof t->pods.items[0], openb_by_name);
    return 0;
}

static inline void openb_free(struct openb_trace *t)
{
    for (uint32_t i = 0; i < t->models_len; i++)
        free(t->models[i]);
    vec_deinit(&t->nodes);
    vec_deinit(&t->shapes);
    vec_deinit(&t->pods);
}

/* ---- chance ---- */

/* splitmix64 */
static inline uint64_t openb_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline uint32_t openb_below(uint64_t *state, uint32_t n)
{
    return (uint32_t)(((openb_random(state) >> 32) * n) >> 32);
}

static inline void openb_shuffle(uint32_t *items, uint32_t len, uint64_t *state)
{
    for (uint32_t i = 0; i < len; i++)
        items[i] = i;
    for (uint32_t i = len; i > 1; i--) {
        uint32_t k = openb_below(state, i), held = items[i - 1];
        items[i - 1] = items[k];
        items[k] = held;
    }
}

/* Pods in order of arrival, until they ask for so many percent of the capacity; of the heap. */
static inline uint32_t *openb_arrivals(const struct openb_trace *t, int64_t percent,
                                       uint64_t *state, uint32_t *len)
{
    uint32_t n = (uint32_t)t->pods.len, cap = n + 1024;
    uint32_t *order = mem_new(uint32_t, cap);
    int64_t sum = 0;
    openb_shuffle(order, n, state);
    for (uint32_t i = 0; i < n; i++)
        sum += openb_milli(&t->shapes.items[t->pods.items[i].shape]);
    for (*len = n; sum > 0 && sum < t->capacity / 100 * percent;) {
        if (*len == cap) {
            uint32_t *more = mem_new(uint32_t, (size_t)cap * 2);
            memcpy(more, order, cap * sizeof *order);
            free(order);
            order = more;
            cap *= 2;
        }
        order[*len] = openb_below(state, n);
        sum += openb_milli(&t->shapes.items[t->pods.items[order[(*len)++]].shape]);
    }
    return order;
}
