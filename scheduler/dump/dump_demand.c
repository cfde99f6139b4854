// SPDX-License-Identifier: Apache-2.0
#include "scheduler/dump/dump_demand.h"

#include <stdlib.h>
#include <string.h>

#include "lib/model/gpu_request.h"
#include "scheduler/dump/dump_parts.h"

/* Far above any decayed demand, far below overflow. */
#define WEIGHT_MAX (INT64_C(1) << 58)
#define SEEN_MAX (INT64_C(1) << 53)

static int by_text(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

static void print_set(const struct gpu_prices *g, const struct demand_set *s, struct json_writer *w)
{
    const char *names[DEMAND_MODELS_MAX];
    size_t n = 0;
    for (uint32_t i = 0; i < g->models_len; i++)
        if ((s->models >> i & 1) != 0)
            names[n++] = g->models[i];
    qsort(names, n, sizeof names[0], by_text);
    json_object_begin(w);
    dump_parts_strings(w, "models", names, n);
    json_kv_int(w, "weight", s->weight);
    json_object_end(w);
}

void dump_demand_print(const struct gpu_prices *g, struct json_writer *w)
{
    const struct demand *d = &g->demand;
    if (d->seen == 0)
        return;
    dump_parts_object(w, "gpuDemand");
    json_kv_int(w, "seen", (int64_t)d->seen);
    json_kv_int(w, "cpuMilli", d->cpu_milli);
    json_kv_int(w, "milliCards", d->milli_cards);
    dump_parts_array(w, "sizes");
    for (size_t i = 0; i < d->sizes_len; i++) {
        json_object_begin(w);
        json_kv_int(w, "gib", d->sizes[i].size);
        json_kv_int(w, "weight", d->sizes[i].weight);
        json_object_end(w);
    }
    json_array_end(w);
    dump_parts_array(w, "sets");
    for (size_t i = 0; i < d->sets_len; i++)
        print_set(g, &d->sets[i], w);
    json_array_end(w);
    json_object_end(w);
}

static int read_int(json *j, const char *key, int64_t min, int64_t max, int64_t *out,
                    struct error *err)
{
    if (!json_get_int(j, key, out) || *out < min || *out > max)
        return error_set(err, ERROR_INVALID, "%s: not an integer from %lld to %lld", key,
                         (long long)min, (long long)max);
    return 0;
}

static int by_size(const void *a, const void *b)
{
    const struct card_value_ask *x = a, *y = b;
    return (x->size > y->size) - (x->size < y->size);
}

static int read_sizes(json *list, struct demand *out, struct error *err)
{
    struct json_iter it = json_iter(list);
    while (json_next(&it)) {
        struct card_value_ask *a = &out->sizes[out->sizes_len];
        if (out->sizes_len == DEMAND_SIZES_MAX)
            return error_set(err, ERROR_TOO_LARGE, "sizes: more than %d", DEMAND_SIZES_MAX);
        if (read_int(it.value, "gib", 1, GPU_REQUEST_MAX, &a->size, err) < 0 ||
            read_int(it.value, "weight", 1, WEIGHT_MAX, &a->weight, err) < 0)
            return error_wrap(err, "sizes[%zu]", out->sizes_len);
        out->sizes_len++;
    }
    qsort(out->sizes, out->sizes_len, sizeof out->sizes[0], by_size);
    for (size_t i = 1; i < out->sizes_len; i++)
        if (out->sizes[i].size == out->sizes[i - 1].size)
            return error_set(err, ERROR_INVALID, "sizes: %lld GiB twice",
                             (long long)out->sizes[i].size);
    return 0;
}

static int by_models(const void *a, const void *b)
{
    const struct demand_set *x = a, *y = b;
    return (x->models > y->models) - (x->models < y->models);
}

static int read_sets(json *list, struct gpu_prices *g, struct demand *out, struct error *err)
{
    struct json_iter it = json_iter(list);
    while (json_next(&it)) {
        struct demand_set *s = &out->sets[out->sets_len];
        if (out->sets_len == DEMAND_SETS_MAX)
            return error_set(err, ERROR_TOO_LARGE, "sets: more than %d", DEMAND_SETS_MAX);
        if (read_int(it.value, "weight", 1, WEIGHT_MAX, &s->weight, err) < 0)
            return error_wrap(err, "sets[%zu]", out->sets_len);
        struct json_iter name = json_iter(json_get(it.value, "models"));
        while (json_next(&name)) {
            uint32_t model = gpu_prices_model(g, json_str(name.value));
            s->models |= model < DEMAND_MODELS_MAX ? UINT64_C(1) << model : 0;
        }
        out->sets_len += s->models != 0;
    }
    qsort(out->sets, out->sets_len, sizeof out->sets[0], by_models);
    return 0;
}

int dump_demand_read(json *j, struct gpu_prices *g, struct demand *out, struct error *err)
{
    int64_t seen;
    *out = (struct demand){0};
    if (read_int(j, "seen", 1, SEEN_MAX, &seen, err) < 0 ||
        read_int(j, "cpuMilli", 0, WEIGHT_MAX, &out->cpu_milli, err) < 0 ||
        read_int(j, "milliCards", 1, WEIGHT_MAX, &out->milli_cards, err) < 0 ||
        read_sizes(json_get(j, "sizes"), out, err) < 0 ||
        read_sets(json_get(j, "sets"), g, out, err) < 0)
        return error_wrap(err, "gpuDemand");
    out->seen = (uint64_t)seen;
    return 0;
}
