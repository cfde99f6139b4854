// SPDX-License-Identifier: Apache-2.0
#include "scheduler/dump/dump.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/model/names.h"
#include "scheduler/dump/dump_demand.h"
#include "scheduler/dump/dump_reservations.h"
#include "scheduler/dump/dump_node.h"
#include "scheduler/dump/dump_objects.h"
#include "scheduler/dump/dump_parts.h"
#include "scheduler/dump/dump_pod.h"

static bool grants_equal(const struct grant *a, const struct grant *b)
{
    if (a->shares_len != b->shares_len || a->group_len != b->group_len)
        return false;
    for (size_t i = 0; i < a->shares_len; i++) {
        const struct grant_share *x = &a->shares[i], *y = &b->shares[i];
        if (x->container != y->container || x->card != y->card || x->gib != y->gib ||
            x->percent != y->percent)
            return false;
    }
    for (size_t i = 0; i < a->group_len; i++)
        if (a->group[i] != b->group[i])
            return false;
    return true;
}

int dump_read_grant(const struct pod *p, struct arena *a, struct grant *out, struct error *err)
{
    const char *cpus = labels_get(&p->annotations, NAME_ANN_CPUSET);
    return grant_decode(p, a, out, err) < 0 ? -1 : cpu_grant_decode(cpus, p, a, &out->cpus, err);
}

static bool cards_hold(const struct cluster_pod *cp, struct arena *a)
{
    struct grant said = {0};
    struct error err = ERROR_INIT;
    if (!cp->gpu.any)
        return true;
    bool trusted = grant_decode(cp->pod, a, &said, &err) == 0 &&
                   grant_adds_up(&said, cp->pod, &cp->gpu, &err) == 0;
    return trusted == cp->grant_trusted && (!trusted || grants_equal(&said, &cp->grant));
}

static bool cpus_hold(const struct cluster_pod *cp, struct arena *a)
{
    struct cpu_grant said = {0};
    if (cp->cpu == NULL)
        return true;
    cluster_grant_cpus(cp->pod, a, &said);
    return cpu_grant_equal(&said, &cp->grant.cpus);
}

/* Whether the pod's current annotations yield the accounted grant. */
static bool annotations_hold(const struct cluster_pod *cp, struct arena *a)
{
    return cards_hold(cp, a) && cpus_hold(cp, a);
}

/* The pod's annotations with result keys replaced by those of the accounted grant. */
static struct labels replaced(const struct cluster_pod *cp, struct arena *a)
{
    const struct labels *own = &cp->pod->annotations;
    struct labels granted = {0};
    if (!grant_is_empty(&cp->grant) || cp->grant.cpus.len > 0) {
        int64_t dev_gib = cp->grant.shares_len > 0 ? gpu_accounts_card_gib(&cp->on->gpu_accounts,
                                                                           cp->grant.shares[0].card)
                                                   : 0;
        grant_encode(&cp->grant, cp->pod, dev_gib, a, &granted);
    }
    const struct labels unit = policies_annotations(cp, a);
    struct labels out = {.items = arena_new(a, struct label, own->len + granted.len + 1)};
    for (size_t i = 0; i < own->len; i++)
        if (!grant_is_result_key(own->items[i].key))
            out.items[out.len++] = own->items[i];
    for (size_t i = 0; i < granted.len; i++)
        if (granted.items[i].value[0] != '\0' && !str_eq(granted.items[i].key, NAME_ANN_UNIT))
            out.items[out.len++] = granted.items[i];
    for (size_t i = 0; i < unit.len; i++)
        if (str_eq(unit.items[i].key, NAME_ANN_UNIT))
            out.items[out.len++] = unit.items[i];
    labels_sort(&out);
    return out;
}

/* Most members have no annotation for their gang's quorum. */
static struct labels with_quorum(const struct cluster_pod *cp, const struct labels *given,
                                 struct arena *a)
{
    struct labels out = {.items = arena_new(a, struct label, given->len + 1)};
    for (size_t i = 0; i < given->len; i++)
        if (strcmp(given->items[i].key, NAME_ANN_GANG_SATISFIED) != 0)
            out.items[out.len++] = given->items[i];
    out.items[out.len++] = (struct label){.key = NAME_ANN_GANG_SATISFIED, .value = cp->said.name};
    labels_sort(&out);
    return out;
}

/* The pod as the model knows it; new parts are in a. */
static struct pod shown(const struct cluster_pod *cp, struct arena *a)
{
    struct pod p = *cp->pod;
    p.nominated_node = cp->nominated;
    if (cp->on != NULL && (cp->state == CLUSTER_ASSUMED || !annotations_hold(cp, a))) {
        p.annotations = replaced(cp, a);
        p.node = cp->on->name;
    }
    if (cp->in_quorum)
        p.annotations = with_quorum(cp, &p.annotations, a);
    return p;
}

static void print_pod(const struct cluster_pod *cp, struct arena *a, struct strbuf *out)
{
    struct json_writer w;
    arena_reset(a);
    struct pod p = shown(cp, a);
    json_writer_init(&w, out);
    dump_pod_print(&p, cp->state == CLUSTER_ASSUMED, &w);
}

struct pod *dump_copy_pod(const struct cluster_pod *cp)
{
    struct arena a;
    arena_init(&a, 0);
    struct pod p = shown(cp, &a), *copy = pod_pack(&p);
    arena_deinit(&a);
    return copy;
}

struct entry {
    const char *key;
    const void *value;
};

static int entry_order(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return strcmp(x->key, y->key);
}

static size_t sorted(const struct map *m, struct arena *a, struct entry **out)
{
    const char *key;
    void *value;
    size_t n = 0;
    *out = arena_new(a, struct entry, map_count(m));
    for (size_t i = 0; map_next(m, &i, &key, &value);)
        (*out)[n++] = (struct entry){.key = key, .value = value};
    qsort(*out, n, sizeof **out, entry_order);
    return n;
}

static void next_line(struct strbuf *out, bool *first)
{
    strbuf_adds(out, *first ? "\n" : ",\n");
    *first = false;
}

static void print_head(const struct cluster *c, struct arena *list, struct strbuf *out)
{
    struct json_writer w;
    strbuf_adds(out, "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"cosched\":");
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_kv_int(&w, "dump", DUMP_VERSION);
    json_kv_str(&w, "schedulerName", c->scheduler_name);
    if (c->packing == CLUSTER_FULLEST_FIRST)
        json_kv_str(&w, "scoring", CLUSTER_FULLEST_NAME);
    if (!virtuals_are_default(&c->virtuals)) {
        json_kv_str(&w, "virtualNodeLabels", c->virtuals.labels_text);
        json_kv_str(&w, "virtualNodeTaints", c->virtuals.taints_text);
    }
    if (c->gang_pools != CLUSTER_GANG_TOGETHER)
        json_kv_str(&w, "gangBurst",
                    c->gang_pools == CLUSTER_GANG_WHOLE ? CLUSTER_GANG_WHOLE_NAME
                                                        : CLUSTER_GANG_MEMBER_NAME);
    if (map_count(&c->policies->entries) > 0 && c->policies->now_ns > 0)
        dump_parts_time(&w, "policiesAt", c->policies->now_ns);
    dump_reservations_print(c, list, &w);
    dump_demand_print(c->gpu_prices, &w);
    json_object_end(&w);
    strbuf_adds(out, ",\"items\":[");
}

static void print_group(const struct pod_group *g, struct strbuf *out, bool *first)
{
    struct json_writer w;
    if (g == NULL)
        return;
    next_line(out, first);
    json_writer_init(&w, out);
    dump_node_print_group(g, &w);
}

static void print_nodes(const struct cluster *c, struct arena *list, struct strbuf *out,
                        bool *first)
{
    struct entry *e;
    size_t n = sorted(&c->nodes, list, &e);
    for (size_t i = 0; i < n; i++) {
        const struct cluster_node *cn = e[i].value;
        struct json_writer w;
        if (cn->node == NULL) /* known only from its pods, which restore it */
            continue;
        next_line(out, first);
        json_writer_init(&w, out);
        dump_node_print(cn->node, &w);
    }
}

static void print_objects(const struct cluster *c, struct arena *list, struct strbuf *out,
                          bool *first)
{
    struct entry *e;
    for (int kind = 0; kind < API_OBJECTS_KINDS; kind++) {
        size_t n = sorted(&c->objects->by_key[kind], list, &e);
        for (size_t i = 0; i < n; i++) {
            struct json_writer w;
            if (kind == API_OBJECTS_POLICIES &&
                ((const struct policy *)e[i].value)->invalid != NULL)
                continue; /* invalid: nothing else of it is known */
            next_line(out, first);
            json_writer_init(&w, out);
            dump_objects_print((enum api_objects_kind)kind, e[i].value, &w);
        }
    }
}

void dump_cluster(const struct cluster *c, struct strbuf *out)
{
    struct arena list, scratch;
    struct entry *e;
    bool first = true;
    arena_init(&list, 0);
    arena_init(&scratch, 16 * 1024);
    print_head(c, &list, out);
    print_nodes(c, &list, out, &first);
    print_objects(c, &list, out, &first);
    size_t n = sorted(&c->pod_groups, &list, &e);
    for (size_t i = 0; i < n; i++) {
        const struct cluster_groups *all = e[i].value;
        for (int api = 0; api < POD_GROUP_APIS; api++)
            print_group(all->of[api], out, &first);
    }
    n = sorted(&c->pods, &list, &e);
    for (size_t i = 0; i < n; i++) {
        next_line(out, &first);
        print_pod(e[i].value, &scratch, out);
    }
    strbuf_adds(out, "]}\n");
    arena_deinit(&scratch);
    arena_deinit(&list);
}
