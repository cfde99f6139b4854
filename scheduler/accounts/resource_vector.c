// SPDX-License-Identifier: Apache-2.0
#include "scheduler/accounts/resource_vector.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/str.h"

void resource_vector_names_init(struct resource_vector_names *n)
{
    *n = (struct resource_vector_names){0};
    map_init(&n->ids);
}

void resource_vector_names_deinit(struct resource_vector_names *n)
{
    for (size_t i = 0; i < n->names.len; i++)
        free(n->names.items[i]);
    vec_deinit(&n->names);
    map_deinit(&n->ids);
}

/* The value in the map is the number + 1, as a pointer: NULL means absent. */
uint32_t resource_vector_id(struct resource_vector_names *n, const char *name)
{
    void *found = map_get(&n->ids, name);
    if (found != NULL)
        return (uint32_t)((uintptr_t)found - 1);
    vec_push(&n->names, mem_strdup(name));
    map_put(&n->ids, n->names.items[n->names.len - 1], (void *)(uintptr_t)n->names.len);
    return (uint32_t)(n->names.len - 1);
}

const char *resource_vector_name(const struct resource_vector_names *n, uint32_t id)
{
    return n->names.items[id];
}

static uint32_t id_of_pods_name(struct resource_vector_names *n, const char *name)
{
    bool full = n->names.len >= RESOURCE_VECTOR_NAMES_MAX && map_get(&n->ids, name) == NULL;
    return resource_vector_id(n, full ? "a resource that no node offers" : name);
}

static void copy_as(struct resource_vector *out, const struct resources *r,
                    struct resource_vector_names *names, struct arena *a,
                    uint32_t (*id_of)(struct resource_vector_names *n, const char *name))
{
    *out = (struct resource_vector){.cpu_milli = r->cpu_milli,
                                    .memory_bytes = r->memory_bytes,
                                    .ephemeral_bytes = r->ephemeral_bytes,
                                    .pods = r->pods};
    if (r->extra_len == 0)
        return;
    out->extra = arena_new(a, struct resource_vector_extra, r->extra_len);
    out->extra_len = r->extra_len;
    for (uint32_t i = 0; i < r->extra_len; i++) {
        uint32_t id = id_of(names, r->extra[i].name);
        out->extra[i] = (struct resource_vector_extra){
            .id = id, .name = resource_vector_name(names, id), .value = r->extra[i].value};
    }
}

void resource_vector_of(struct resource_vector *out, const struct resources *r,
                        struct resource_vector_names *names, struct arena *a)
{
    copy_as(out, r, names, a, resource_vector_id);
}

void resource_vector_of_pod(struct resource_vector *out, const struct resources *r,
                            struct resource_vector_names *names, struct arena *a)
{
    copy_as(out, r, names, a, id_of_pods_name);
}

bool resource_vector_get(const struct resource_vector *a, uint32_t id, int64_t *value)
{
    for (uint32_t i = 0; i < a->extra_len; i++)
        if (a->extra[i].id == id) {
            *value = a->extra[i].value;
            return true;
        }
    return false;
}

/* The index of an entry, created if necessary. */
static uint32_t index_of(struct resource_vector *a, const struct resource_vector_extra *of)
{
    uint32_t at = 0;
    while (at < a->extra_len && a->extra[at].id != of->id &&
           strcmp(a->extra[at].name, of->name) < 0)
        at++;
    if (at < a->extra_len && a->extra[at].id == of->id)
        return at;
    size_t cap = a->extra_cap;
    a->extra = vec_grow_(a->extra, &cap, (size_t)a->extra_len + 1, sizeof *a->extra);
    a->extra_cap = (uint32_t)cap;
    memmove(&a->extra[at + 1], &a->extra[at], (a->extra_len - at) * sizeof *a->extra);
    a->extra[at] = (struct resource_vector_extra){.id = of->id, .name = of->name};
    a->extra_len++;
    return at;
}

static void account(struct resource_vector *a, int64_t *dst, int64_t value, int sign)
{
    if (sign > 0 ? num_add(*dst, value, dst) : num_sub(*dst, value, dst))
        return;
    *dst = sign > 0 ? INT64_MAX : INT64_MIN;
    a->saturated = true;
}

static void account_extra(struct resource_vector *dst, const struct resource_vector_extra *src,
                          int sign)
{
    if (src->value == 0)
        return;
    uint32_t at = index_of(dst, src);
    account(dst, &dst->extra[at].value, src->value, sign);
    if (dst->extra[at].value != 0)
        return;
    dst->extra_len--;
    memmove(&dst->extra[at], &dst->extra[at + 1], (dst->extra_len - at) * sizeof *dst->extra);
}

static void account_fields(struct resource_vector *dst, const struct resource_vector *src, int sign)
{
    account(dst, &dst->cpu_milli, src->cpu_milli, sign);
    account(dst, &dst->memory_bytes, src->memory_bytes, sign);
    account(dst, &dst->ephemeral_bytes, src->ephemeral_bytes, sign);
    account(dst, &dst->pods, src->pods, sign);
}

void resource_vector_account(struct resource_vector *dst, const struct resource_vector *src,
                             int sign)
{
    account_fields(dst, src, sign);
    for (uint32_t i = 0; i < src->extra_len; i++)
        account_extra(dst, &src->extra[i], sign);
}

void resource_vector_account_offered(struct resource_vector *dst, const struct resource_vector *src,
                                     const struct resource_vector *offered, int sign)
{
    int64_t ignored;
    account_fields(dst, src, sign);
    for (uint32_t i = 0; i < src->extra_len; i++)
        if (resource_vector_get(offered, src->extra[i].id, &ignored))
            account_extra(dst, &src->extra[i], sign);
}

void resource_vector_deinit(struct resource_vector *a)
{
    if (a->extra_cap > 0)
        free(a->extra);
    *a = (struct resource_vector){0};
}

bool resource_vector_grew(const struct resource_vector *a, const struct resource_vector *b)
{
    if (b->cpu_milli > a->cpu_milli || b->memory_bytes > a->memory_bytes ||
        b->ephemeral_bytes > a->ephemeral_bytes || b->pods > a->pods)
        return true;
    for (uint32_t i = 0; i < b->extra_len; i++) {
        int64_t before = 0;
        if (!resource_vector_get(a, b->extra[i].id, &before) || b->extra[i].value > before)
            return true;
    }
    return false;
}

static bool has_capacity(int64_t want, int64_t total, int64_t used, int64_t without)
{
    return want == 0 || want <= num_sub_sat(total, num_sub_sat(used, without));
}

bool resource_vector_fits(const struct resource_vector *want, const struct resource_vector *total,
                          const struct resource_vector *used, const struct resource_vector *without)
{
    static const struct resource_vector nothing;
    const struct resource_vector *gone = without != NULL ? without : &nothing;
    if (!has_capacity(want->pods, total->pods, used->pods, gone->pods) ||
        !has_capacity(want->cpu_milli, total->cpu_milli, used->cpu_milli, gone->cpu_milli) ||
        !has_capacity(want->memory_bytes, total->memory_bytes, used->memory_bytes,
                      gone->memory_bytes) ||
        !has_capacity(want->ephemeral_bytes, total->ephemeral_bytes, used->ephemeral_bytes,
                      gone->ephemeral_bytes))
        return false;
    for (uint32_t i = 0; i < want->extra_len; i++) {
        int64_t offered = 0, taken = 0;
        bool is_offered = resource_vector_get(total, want->extra[i].id, &offered);
        (void)resource_vector_get(used, want->extra[i].id, &taken);
        if (want->extra[i].value > 0 &&
            (!is_offered || !has_capacity(want->extra[i].value, offered, taken,
                                          without != NULL ? without->extra[i].value : 0)))
            return false;
    }
    return true;
}

uint64_t resource_vector_digest(const struct resource_vector *a)
{
    int64_t fixed[4] = {a->cpu_milli, a->memory_bytes, a->ephemeral_bytes, a->pods};
    uint64_t h = str_hash((const char *)fixed, sizeof fixed);
    for (uint32_t i = 0; i < a->extra_len; i++) {
        if (a->extra[i].value == 0)
            continue;
        int64_t row[2] = {(int64_t)str_hash(a->extra[i].name, strlen(a->extra[i].name)),
                          a->extra[i].value};
        h = (h ^ str_hash((const char *)row, sizeof row)) * 1099511628211u;
    }
    return h;
}
