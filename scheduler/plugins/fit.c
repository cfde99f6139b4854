// SPDX-License-Identifier: Apache-2.0
/*
 * fit - capacity for the effective request: CPU, memory, ephemeral storage, pod slots and every
 * extended resource. A node that does not list a resource is refused even if the kubelet would
 * start the pod without it; if a DeviceClass offers it (dynamic resource allocation) the reason
 * says that we do not serve that. Capacity reserved for a gang is not available to others.
 *
 * Score: half is how full the node would be (emptiest or fullest first: plugin_ask.packing), half
 * how evenly its CPU and memory would be used. A node whose kubelet has just rejected such a pod is
 * the last resort. Pod slots count a little, so that pods without requests do not all go to one
 * node. Evenness works against packing pods that request only one resource, so the two orders for a
 * gang that does not fit (CLUSTER_TIGHTEST_FIRST, CLUSTER_LOOSEST_FIRST) ignore it. Pods with cards
 * are scored by gpu and pinned pods by cpu: fit scores them only in these two orders.
 */
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/cache/expected_end.h"
#include "scheduler/model/nominations.h"
#include "scheduler/plugins/all.h"
#include "scheduler/model/rejections.h"
#include "scheduler/plugins/reservation_capacity.h"
#include "scheduler/framework/class_key.h"

enum { LAST_RESORT = -1000000 /* more than all plugins' scores together, far from overflow */ };

static bool lacks(const char *what, int64_t want, int64_t total, int64_t used, struct reason *why)
{
    int64_t left = num_max(num_sub_sat(total, used), 0);
    if (want <= left || want == 0)
        return false;
    if (why != NULL)
        *why = (struct reason){.kind = REASON_RESOURCE, .what = what, .want = want, .free = left};
    return true;
}

static bool refuse(struct reason *why, enum reason_kind kind, const char *what)
{
    if (why != NULL)
        *why = (struct reason){.kind = kind, .what = what};
    return false;
}

static bool not_offered(const struct plugin_ask *ask, const char *name, struct arena *a,
                        struct reason *why)
{
    const struct device_class *class =
        why != NULL ? api_objects_find_offer(ask->cluster->objects, name) : NULL;
    if (class == NULL)
        return refuse(why, REASON_NOT_OFFERED, name);
    return refuse(why, REASON_DEVICE_CLASS,
                  arena_printf(a, "%s only by dynamic resource allocation (DeviceClass %s)", name,
                               class->object.name));
}

static bool is_gpu(const char *resource)
{
    return str_eq(resource, NAME_RES_GPU_MEM) || str_eq(resource, NAME_RES_GPU_CORE) ||
           str_eq(resource, NAME_RES_GPU) || str_eq(resource, NAME_RES_NVIDIA_GPU);
}

/* An unhealthy card lowers what the node offers: the reason then names it. */
static void name_sick_card(const struct cluster_pod *pod, const struct cluster_node *node,
                           struct reason *why)
{
    const char *trouble =
        gpu_accounts_trouble(&node->gpu_accounts, &pod->gpu, num_sub_sat(why->want, why->free));
    if (trouble != NULL)
        *why = (struct reason){.kind = REASON_CARD_SICK, .what = trouble};
}

static bool has_extra(const struct plugin_ask *ask, const struct cluster_node *node,
                      const struct resource_vector *used, struct arena *a, struct reason *why)
{
    const struct resource_vector *want = &ask->pod->request;
    for (uint32_t i = 0; i < want->extra_len; i++) {
        int64_t offered = 0, taken = 0;
        if (want->extra[i].value == 0)
            continue;
        if (!resource_vector_get(&node->allocatable, want->extra[i].id, &offered))
            return not_offered(ask, want->extra[i].name, a, why);
        (void)resource_vector_get(used, want->extra[i].id, &taken);
        if (!lacks(want->extra[i].name, want->extra[i].value, offered, taken, why))
            continue;
        if (why != NULL && is_gpu(want->extra[i].name))
            name_sick_card(ask->pod, node, why);
        return false;
    }
    return true;
}

static bool has_capacity(const struct plugin_ask *ask, const struct cluster_node *node,
                         const struct resource_vector *used, struct arena *a, struct reason *why)
{
    const struct resource_vector *want = &ask->pod->request, *total = &node->allocatable;
    if (num_sub_sat(total->pods, used->pods) < 1)
        return refuse(why, REASON_PODS, NULL);
    if (lacks("cpu", want->cpu_milli, total->cpu_milli, used->cpu_milli, why) ||
        lacks("memory", want->memory_bytes, total->memory_bytes, used->memory_bytes, why) ||
        lacks("ephemeral-storage", want->ephemeral_bytes, total->ephemeral_bytes,
              used->ephemeral_bytes, why))
        return false;
    return has_extra(ask, node, used, a, why);
}

/* What the empty node lacks comes before what pods hold: their end does not help. */
static void look_at_size(const struct plugin_ask *ask, const struct cluster_node *node,
                         struct arena *a, struct reason *why)
{
    static const struct resource_vector nothing;
    struct reason empty;
    if (why == NULL || (why->kind != REASON_RESOURCE && why->kind != REASON_PODS) ||
        plugin_gpu_is_too_large(ask, node, a, why) || has_capacity(ask, node, &nothing, a, &empty))
        return;
    if (empty.kind == REASON_RESOURCE)
        empty.kind = REASON_RESOURCE_SIZE;
    if (empty.kind != REASON_CARD_SICK)
        *why = empty;
}

static bool filter(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                   struct reason *why)
{
    const struct cluster_pod *other;
    const char *lacked = rejections_against(ask->cluster, ask->pod, node);
    if (lacked != NULL)
        return refuse(why, REASON_REJECTED, lacked);
    if (node->nominated == NULL) {
        if (has_capacity(ask, node, &node->used, a, why))
            return reservation_capacity_allows(ask->cluster, ask->pod, node, why);
        look_at_size(ask, node, a, why);
        return false;
    }
    struct resource_vector used = {0};
    resource_vector_account(&used, &node->used, 1);
    for (size_t i = 0; (other = nominations_next(ask->pod, node, &i)) != NULL;)
        resource_vector_account(&used, &other->request, 1);
    bool has = has_capacity(ask, node, &used, a, why);
    resource_vector_deinit(&used);
    if (has)
        return reservation_capacity_allows(ask->cluster, ask->pod, node, why);
    look_at_size(ask, node, a, why);
    return false;
}

/* The share of the total left after this request, 0..PLUGIN_SCORE_MAX. 24 bits suffice and are much
 * faster. */
static int32_t share_left(int64_t want, int64_t total, int64_t left)
{
    if (total <= 0 || want >= left)
        return 0;
    int shift = 40 - __builtin_clzll((uint64_t)total);
    shift = shift > 0 ? shift : 0;
    uint32_t whole = (uint32_t)(total >> shift), part = (uint32_t)((left - want) >> shift);
    return (int32_t)(part * PLUGIN_SCORE_MAX / whole);
}

/* Of the scarcest resource. */
static int32_t least_left(const struct resource_vector *want, const struct node_table_row *row,
                          int32_t cpu, int32_t memory)
{
    int32_t left = cpu < memory ? cpu : memory;
    for (uint32_t i = 0; i < want->extra_len; i++) {
        int64_t offered = 0, taken = 0;
        (void)resource_vector_get(&row->node->allocatable, want->extra[i].id, &offered);
        (void)resource_vector_get(&row->node->used, want->extra[i].id, &taken);
        int32_t extra = share_left(want->extra[i].value, offered, num_sub_sat(offered, taken));
        left = extra < left ? extra : left;
    }
    return left;
}

static int32_t score_row(const struct plugin_ask *ask, const struct node_table_row *row)
{
    if (row->closer && rejections_avoid(ask->cluster, ask->pod, row->node))
        return LAST_RESORT;
    const struct resource_vector *want = &ask->pod->request;
    int32_t cpu = share_left(want->cpu_milli, row->cpu_milli, row->free_cpu_milli);
    int32_t memory = share_left(want->memory_bytes, row->memory_bytes, row->free_memory_bytes);
    if (ask->packing == CLUSTER_TIGHTEST_FIRST)
        return PLUGIN_SCORE_MAX - least_left(want, row, cpu, memory);
    if (ask->packing == CLUSTER_LOOSEST_FIRST)
        return least_left(want, row, cpu, memory);
    if (ask->pod->gpu.any || ask->pod->cpu != NULL)
        return 0;
    int32_t pods = share_left(1, row->pods, row->free_pods);
    int32_t left = (2 * cpu + 2 * memory + pods) / 5;
    int32_t even = PLUGIN_SCORE_MAX - (cpu > memory ? cpu - memory : memory - cpu);
    bool pack = ask->packing == CLUSTER_FULLEST_FIRST;
    return ((pack ? PLUGIN_SCORE_MAX - left : left) + even) / 2;
}

static int64_t score(const struct plugin_ask *ask, const struct cluster_node *node)
{
    return score_row(ask, &ask->cluster->table->rows[node->place]);
}

static int32_t rate(const struct plugin_ask *ask, const struct node_table_row *row)
{
    const struct resource_vector *want = &ask->pod->request;
    if (row->free_pods < 1 || want->cpu_milli > row->free_cpu_milli ||
        want->memory_bytes > row->free_memory_bytes ||
        want->ephemeral_bytes > row->free_ephemeral_bytes ||
        (want->extra_len > 0 && !has_extra(ask, row->node, &row->node->used, NULL, NULL)) ||
        (row->closer && !filter(ask, row->node, NULL, NULL)))
        return SCORE_TREE_NO;
    return score_row(ask, row);
}

/* DeviceClasses affect only the reason's text. */
static uint64_t version(const struct cluster *c)
{
    return c->objects->generation[API_OBJECTS_DEVICE_CLASSES];
}

static void key_of_request(struct strbuf *out, const struct resource_vector *r)
{
    strbuf_addc(out, 'R');
    class_key_number(out, r->cpu_milli);
    class_key_number(out, r->memory_bytes);
    class_key_number(out, r->ephemeral_bytes);
    for (uint32_t i = 0; i < r->extra_len; i++) {
        if (r->extra[i].value == 0)
            continue;
        strbuf_addc(out, 'x');
        class_key_text(out, r->extra[i].name);
        class_key_number(out, r->extra[i].value);
    }
}

static void key(const struct plugin_ask *ask, struct strbuf *out)
{
    const struct cluster_pod *cp = ask->pod;
    key_of_request(out, &cp->request);
    strbuf_addc(out, 'Y');
    class_key_number(out, cp->pod->priority);
    class_key_number(out, ask->packing);
    /* A lone pod's own nomination matters on one node only: pod_class.own_place. */
    if (cp->nominated != NULL && cp->gang != NULL && cp->gang->form != GANG_NONE)
        class_key_text(out, cp->gang->key);
    if (ask->cluster->reservations->items.len > 0) {
        strbuf_addc(out, 'D');
        class_key_number(out, expected_end_runtime(ask->cluster, cp));
    }
    const struct reservation *kept =
        cp->gang != NULL ? reservations_of(ask->cluster, cp->gang)->kept : NULL;
    if (kept != NULL) {
        strbuf_addc(out, 'K'); /* a gang may use its own reservation */
        class_key_text(out, kept->gang->key);
    }
}

/* How long a pod runs matters only while capacity is reserved. */
static uint64_t key_version(const struct plugin_ask *ask)
{
    const struct cluster *c = ask->cluster;
    return c->reservations->items.len > 0 ? (uint64_t)expected_end_runtime(c, ask->pod) : 0;
}

const struct plugin plugin_fit = {
    .name = "fit",
    .amounts_only = true,
    .key = key,
    .key_version = key_version,
    PLUGIN_READS(FACET_CAPACITY | FACET_HELD | FACET_NOMINATED | FACET_REJECTIONS | FACET_RESERVED),
    .score_depends = PLUGIN_HELD,
    .version = version,
    .filter = filter,
    .score = score,
    .rate = rate,
    .weight = 2};
