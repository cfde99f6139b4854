// SPDX-License-Identifier: Apache-2.0
/* The annotation is untrusted: its size is bounded before it is parsed, numbers must be possible
 * and in the one form that we write, and duplicates are refused: two readers must never get
 * different CPUs. */
#include "lib/model/cpu_grant.h"

#include <stdlib.h>

#include "lib/base/json.h"
#include "lib/base/num.h"

static bool find_container(const struct pod *p, const char *name, uint32_t *out)
{
    for (size_t i = 0; i < pod_container_count(p); i++)
        if (str_eq(pod_container(p, i)->name, name)) {
            *out = (uint32_t)i;
            return true;
        }
    return false;
}

/* {"elems":{"0":{},...}} */
static int read_elems(json *j, struct cpuset *seen, struct cpuset *out, struct error *err)
{
    json *elems = json_get(j, "elems");
    if (!json_is_object(j) || !json_is_object(elems) || json_len(j) != 1)
        return error_set(err, ERROR_INVALID, "must be {\"elems\":{...}}");
    if (json_len(elems) == 0)
        return error_set(err, ERROR_INVALID, "elems: is empty");
    for (struct json_iter it = json_iter(elems); json_next(&it);) {
        size_t cpu;
        if (!num_parse_index(it.key, it.key_len, CPUSET_MAX, &cpu))
            return error_set(err, ERROR_INVALID, "elems: not a CPU from 0 to %d: '%.32s'",
                             CPUSET_MAX - 1, it.key);
        if (!json_is_object(it.value) || json_len(it.value) != 0)
            return error_set(err, ERROR_INVALID, "elems: CPU %zu: must be {}", cpu);
        if (cpuset_has(seen, (unsigned)cpu))
            return error_set(err, ERROR_INVALID, "elems: CPU %zu is there twice", cpu);
        cpuset_add(seen, (unsigned)cpu);
        cpuset_add(out, (unsigned)cpu);
    }
    return 0;
}

static int read_container(json *j, uint32_t container, struct cpu_grant *out, struct error *err)
{
    struct cpuset seen = {{0}};
    size_t first = out->len;
    if (!json_is_object(j) || json_len(j) == 0)
        return error_set(err, ERROR_INVALID, "must be an object of NUMA nodes");
    for (struct json_iter it = json_iter(j); json_next(&it);) {
        struct cpu_grant_part *part = &out->parts[out->len++];
        size_t numa;
        if (!num_parse_index(it.key, it.key_len, CPU_GRANT_NUMA_MAX, &numa))
            return error_set(err, ERROR_INVALID, "not a NUMA node: '%.32s'", it.key);
        *part = (struct cpu_grant_part){.container = container, .numa = (int32_t)numa};
        for (size_t i = first; i + 1 < out->len; i++)
            if (out->parts[i].numa == part->numa)
                return error_set(err, ERROR_INVALID, "NUMA node %zu is there twice", numa);
        if (read_elems(it.value, &seen, &part->cpus, err) < 0)
            return error_wrap(err, "NUMA node %zu", numa);
    }
    return 0;
}

static int read_grant(json *root, const struct pod *p, struct arena *a, struct cpu_grant *out,
                      struct error *err)
{
    size_t n = 0;
    if (!json_is_object(root))
        return error_set(err, ERROR_INVALID, "must be an object of containers, not %s",
                         json_kind_name(root));
    if (json_len(root) > pod_container_count(p))
        return error_set(err, ERROR_INVALID, "more containers than the pod has");
    bool *seen = arena_new(a, bool, pod_container_count(p));
    for (struct json_iter it = json_iter(root); json_next(&it);) {
        if (json_len(it.value) > CPU_GRANT_PARTS_MAX)
            return error_set(err, ERROR_INVALID, "container '%.64s': more than %d NUMA nodes",
                             it.key, CPU_GRANT_PARTS_MAX);
        n += json_len(it.value);
    }
    out->parts = arena_new(a, struct cpu_grant_part, n);
    for (struct json_iter it = json_iter(root); json_next(&it);) {
        uint32_t container = 0;
        if (!find_container(p, it.key, &container))
            return error_set(err, ERROR_INVALID, "the pod has no container '%.64s'", it.key);
        if (seen[container])
            return error_set(err, ERROR_INVALID, "container '%.64s' is there twice", it.key);
        seen[container] = true;
        if (read_container(it.value, container, out, err) < 0)
            return error_wrap(err, "container '%.64s'", it.key);
    }
    return 0;
}

static int by_place(const void *a, const void *b)
{
    const struct cpu_grant_part *x = a, *y = b;
    if (x->container != y->container)
        return x->container < y->container ? -1 : 1;
    return x->numa < y->numa ? -1 : x->numa > y->numa;
}

int cpu_grant_decode(const char *text, const struct pod *p, struct arena *a, struct cpu_grant *out,
                     struct error *err)
{
    AUTO_JSON *doc = NULL;
    size_t n = text != NULL ? strlen(text) : 0;
    *out = (struct cpu_grant){0};
    if (n == 0)
        return 0;
    if (n > CPU_GRANT_BYTES_MAX)
        return error_set(err, ERROR_INVALID, "longer than %d bytes", CPU_GRANT_BYTES_MAX);
    if (json_parse(&doc, text, n, err) < 0 || read_grant(json_root(doc), p, a, out, err) < 0) {
        if (err != NULL)
            err->code = ERROR_INVALID;
        *out = (struct cpu_grant){0};
        return -1;
    }
    if (out->len > 1)
        qsort(out->parts, out->len, sizeof *out->parts, by_place);
    return 0;
}

static void write_number(struct json_writer *w, int number)
{
    char key[16];
    str_format(key, sizeof key, "%d", number);
    json_key(w, key);
    json_object_begin(w);
}

void cpu_grant_encode(const struct cpu_grant *c, const struct pod *p, struct strbuf *out)
{
    struct json_writer w;
    json_writer_init(&w, out);
    json_object_begin(&w);
    for (size_t i = 0; i < c->len; i++) {
        const struct cpu_grant_part *part = &c->parts[i];
        if (i == 0 || part[-1].container != part->container) {
            json_key(&w, pod_container(p, part->container)->name);
            json_object_begin(&w);
        }
        write_number(&w, part->numa);
        json_key(&w, "elems");
        json_object_begin(&w);
        for (int cpu = -1; (cpu = cpuset_next(&part->cpus, cpu)) >= 0;) {
            write_number(&w, cpu);
            json_object_end(&w);
        }
        json_object_end(&w);
        json_object_end(&w);
        if (i + 1 == c->len || part[1].container != part->container)
            json_object_end(&w);
    }
    json_object_end(&w);
}

void cpu_grant_of(const struct cpu_grant *c, uint32_t container, struct cpuset *out)
{
    cpuset_clear(out);
    for (size_t i = 0; i < c->len; i++)
        if (c->parts[i].container == container)
            cpuset_union(out, &c->parts[i].cpus);
}

bool cpu_grant_is_within(const struct cpu_grant *part, const struct cpu_grant *whole)
{
    for (size_t i = 0; i < part->len; i++) {
        struct cpuset all;
        cpu_grant_of(whole, part->parts[i].container, &all);
        if (!cpuset_is_subset(&part->parts[i].cpus, &all))
            return false;
    }
    return true;
}

bool cpu_grant_equal(const struct cpu_grant *a, const struct cpu_grant *b)
{
    if (a->len != b->len)
        return false;
    for (size_t i = 0; i < a->len; i++)
        if (by_place(&a->parts[i], &b->parts[i]) != 0 ||
            !cpuset_equal(&a->parts[i].cpus, &b->parts[i].cpus))
            return false;
    return true;
}

/* The part of `more` that c lacks; if both have a CPU, c's NUMA node applies. */
static void lacking(const struct cpu_grant *c, const struct cpu_grant *more, struct arena *a,
                    struct cpu_grant *out)
{
    *out = (struct cpu_grant){.parts = arena_new(a, struct cpu_grant_part, more->len)};
    for (size_t i = 0; i < more->len; i++) {
        struct cpuset has;
        struct cpu_grant_part *part = &out->parts[out->len];
        *part = more->parts[i];
        cpu_grant_of(c, part->container, &has);
        cpuset_subtract(&part->cpus, &has);
        out->len += !cpuset_is_empty(&part->cpus);
    }
}

void cpu_grant_union(struct cpu_grant *c, const struct cpu_grant *more, struct arena *a)
{
    struct cpu_grant rest, out = {.parts = arena_new(a, struct cpu_grant_part, c->len + more->len)};
    lacking(c, more, a, &rest);
    for (size_t i = 0, k = 0; i < c->len || k < rest.len;) {
        int order = i == c->len ? 1 : k == rest.len ? -1 : by_place(&c->parts[i], &rest.parts[k]);
        struct cpu_grant_part *part = &out.parts[out.len++];
        *part = order <= 0 ? c->parts[i++] : rest.parts[k++];
        if (order == 0)
            cpuset_union(&part->cpus, &rest.parts[k++].cpus);
    }
    *c = out;
}

void cpu_grant_copy(struct cpu_grant *to, const struct cpu_grant *from, struct arena *a)
{
    *to = (struct cpu_grant){.len = from->len};
    if (from->len == 0)
        return;
    to->parts = arena_new(a, struct cpu_grant_part, from->len);
    memcpy(to->parts, from->parts, from->len * sizeof *to->parts);
}
