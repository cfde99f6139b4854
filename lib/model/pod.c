// SPDX-License-Identifier: Apache-2.0
/*
 * A pod's effective request. For each resource a pod counts with its peak over its life:
 *
 *     init containers in order:  [s1]      [i1]      [s2]      [i2]        then the containers
 *     running meanwhile:          s1      s1+i1     s1+s2    s1+s2+i2     s1+s2 + c1+c2+...
 *
 * s are sidecars (restartable init containers): once started they stay. The start of a sidecar is
 * never the peak, because all sidecars also run beside the containers.
 *
 * During an in-place resize there are three lists: spec, allocated (by the kubelet) and actual.
 * Until they agree the largest counts; once the kubelet has reported the resize Infeasible, only
 * allocated and actual count.
 */
#include "lib/model/pod.h"

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/names.h"

void pod_free(struct pod *p)
{
    if (!p)
        return;
    struct arena arena = p->arena; /* the pod lies in it */
    arena_deinit(&arena);
}

bool pod_is_finished(const struct pod *p)
{
    return p->phase == POD_SUCCEEDED || p->phase == POD_FAILED;
}

/* Each function below returns whether it took every name; one that did not takes the others. */
static bool largest(const struct pod *p, const struct resources *spec, const struct resized *status,
                    struct arena *a, struct resources *out)
{
    *out = (struct resources){0};
    bool all = p->resize_infeasible || resources_max(out, spec, a);
    all &= !status->has_allocated || resources_max(out, &status->allocated, a);
    return resources_max(out, &status->actual, a) && all;
}

/* The resources of one container: borrowed from it, or built in *space. */
static const struct resources *container_request(const struct pod *p, const struct container *c,
                                                 struct arena *a, struct resources *space,
                                                 bool *all)
{
    if (!c->resized || !c->resized->has_actual)
        return &c->requests;
    *all &= largest(p, &c->requests, c->resized, a, space);
    return space;
}

static bool sum_of_containers(const struct pod *p, struct arena *a, struct resources *out)
{
    bool all = true;
    for (size_t i = 0; i < p->containers_len; i++) {
        struct resources space;
        all &= resources_add(out, container_request(p, &p->containers[i], a, &space, &all), a);
    }
    return all;
}

/* The amounts while an init container runs beside these sidecars, for the names that it requests.
 * Of all others the whole pod needs no less, because it has the same sidecars. So the cost does not
 * grow with what the sidecars request. */
static bool at_moment(const struct resources *r, const struct resources *sidecars, struct arena *a,
                      struct resources *out)
{
    struct resources beside = *sidecars;
    beside.extra_len = 0;
    bool all = resources_add(out, r, a);
    for (uint32_t i = 0; i < out->extra_len; i++)
        out->extra[i].value =
            num_add_sat(out->extra[i].value, resources_get(sidecars, out->extra[i].name, NULL));
    return resources_add(out, &beside, a) && all;
}

/* Adds the sidecars to out, which holds the sum of the containers, and raises it to the peak of
 * initialization. */
static bool with_init_containers(const struct pod *p, struct arena *a, struct resources *out)
{
    struct resources sidecars = {0}, peak = {0};
    bool all = true;

    for (size_t i = 0; i < p->init_containers_len; i++) {
        const struct container *c = &p->init_containers[i];
        struct resources space, moment = {0};
        if (c->sidecar) {
            const struct resources *r = container_request(p, c, a, &space, &all);
            all &= resources_add(out, r, a);
            all &= resources_add(&sidecars, r, a);
        } else {
            all &= at_moment(&c->requests, &sidecars, a, &moment);
            all &= resources_max(&peak, &moment, a);
        }
    }
    return resources_max(out, &peak, a) && all;
}

/* spec.resources replaces the containers' sum for the resources it names. Only these three kinds
 * are allowed. */
static bool with_pod_level(const struct pod *p, struct arena *a, struct resources *out)
{
    const struct resources *spec = &p->sizes->requests, *from = spec;
    struct resources space;
    bool all = true;

    if (!p->sizes->has_requests)
        return true;
    if (p->sizes->status.has_actual) {
        all &= largest(p, spec, &p->sizes->status, a, &space);
        from = &space;
    }
    if (spec->has & RESOURCES_HAS_CPU) {
        out->cpu_milli = from->cpu_milli;
        out->has |= RESOURCES_HAS_CPU;
    }
    if (spec->has & RESOURCES_HAS_MEMORY) {
        out->memory_bytes = from->memory_bytes;
        out->has |= RESOURCES_HAS_MEMORY;
    }
    for (uint32_t i = 0; i < spec->extra_len; i++) {
        const char *name = spec->extra[i].name;
        if (!str_starts(name, "hugepages-"))
            continue;
        /* max adds the name to the list, with 0 or more. */
        struct resource_extra zero = {name, 0};
        all &= resources_max(out, &(struct resources){.extra = &zero, .extra_len = 1}, a);
        for (uint32_t k = 0; k < out->extra_len; k++)
            if (str_eq(out->extra[k].name, name))
                out->extra[k].value = resources_get(from, name, NULL);
    }
    return all;
}

/* Resources of a ResourceClaim do not come out of the node's allocatable. */
static void without_claimed(const struct pod *p, struct resources *out)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < out->extra_len; i++) {
        bool claimed = false;
        for (size_t k = 0; k < p->claimed_len && !claimed; k++)
            claimed = str_eq(out->extra[i].name, p->claimed[k]);
        if (!claimed)
            out->extra[kept++] = out->extra[i];
    }
    out->extra_len = kept;
}

bool pod_effective_request(const struct pod *p, struct arena *a, struct resources *out)
{
    *out = (struct resources){0};
    bool all = sum_of_containers(p, a, out);
    if (p->init_containers_len > 0)
        all &= with_init_containers(p, a, out);
    if (p->sizes) {
        all &= with_pod_level(p, a, out);
        all &= resources_add(out, &p->sizes->overhead, a);
    }
    if (p->claimed_len > 0)
        without_claimed(p, out);
    return all;
}

bool toleration_covers(const struct toleration *t, const char *key, const char *value,
                       enum taint_effect effect)
{
    if (t->effect != TAINT_ALL && t->effect != effect)
        return false;
    if (str_or_empty(t->key)[0] != '\0' && !str_eq(t->key, key))
        return false;
    return t->op == TOLERATION_EXISTS || str_eq(str_or_empty(t->value), str_or_empty(value));
}

size_t pod_container_count(const struct pod *p)
{
    return p->containers_len + p->init_containers_len;
}

const struct container *pod_container(const struct pod *p, size_t i)
{
    return i < p->containers_len ? &p->containers[i] : &p->init_containers[i - p->containers_len];
}

bool pod_container_is_init(const struct pod *p, size_t i)
{
    return i >= p->containers_len && !p->init_containers[i - p->containers_len].sidecar;
}

static const char mirror[] = "kubernetes.io/config.mirror";

size_t pod_annotation_bytes(const char *key)
{
    enum { SHORT = 5 * 1024, LONG = 33 * 1024, CPUS = 129 * 1024 };
    static const struct {
        const char *key;
        size_t bytes;
    } keys[] = {
        {NAME_ANN_ALLOCATION, LONG},
        {NAME_ANN_CORE, LONG},
        {NAME_ANN_ASSUME_TIME, SHORT},
        {NAME_ANN_ASSIGNED, SHORT},
        {NAME_ANN_OLD_IDX, SHORT},
        {NAME_ANN_OLD_DEV, SHORT},
        {NAME_ANN_OLD_POD, SHORT},
        {NAME_ANN_OLD_ASSIGNED, SHORT},
        {NAME_ANN_OLD_ASSUME_TIME, SHORT},
        {NAME_ANN_GPU_GROUP, SHORT},
        {NAME_ANN_GPU_VISIBLE, SHORT},
        {NAME_ANN_CPUSET, CPUS},
        {NAME_ANN_CPUSET_APPLIED, CPUS},
        {NAME_ANN_CPUSET_SCHEDULER, SHORT},
        {NAME_ANN_CPU_POLICY, SHORT},
        {NAME_ANN_NUMA_SPEC, SHORT},
        {NAME_ANN_GANG_KOORD_NAME, SHORT},
        {NAME_ANN_GANG_KOORD_MIN, SHORT},
        {NAME_ANN_GANG_GROUPS, LONG},
        {NAME_ANN_GANG_KOORD_GROUPS, LONG},
        {NAME_ANN_GANG_MATCH, SHORT},
        {NAME_ANN_GANG_KOORD_MATCH, SHORT},
        {NAME_ANN_BURST, SHORT},
        {NAME_ANN_DELETION_COST, SHORT},
        {mirror, SHORT},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (str_eq(key, keys[i].key))
            return keys[i].bytes;
    /* By prefix: a result that another version wrote is emptied by the next Binding. */
    return str_starts(key, NAME_PREFIX_OWN) || str_starts(key, NAME_PREFIX_LOCAL) ? LONG : 0;
}

bool pod_is_mirror(const struct pod *p)
{
    return labels_get(&p->annotations, mirror) != NULL;
}

const char *pod_mirrored_uid(const struct pod *p)
{
    return labels_get(&p->annotations, mirror);
}

static const char *const feature_names[POD_FEATURES] = {"RestartAllContainersOnContainerExits",
                                                        "UserNamespacesHostNetworkSupport"};

const char *pod_feature_name(unsigned bit)
{
    for (unsigned i = 0; i < POD_FEATURES; i++)
        if (bit == 1U << i)
            return feature_names[i];
    return NULL;
}

unsigned pod_feature_of(const char *name)
{
    for (unsigned i = 0; i < POD_FEATURES; i++)
        if (str_eq(feature_names[i], name))
            return 1U << i;
    return 0;
}

bool pod_may_use_node(const struct pod *p, const struct labels *labels, const char *name)
{
    for (size_t i = 0; i < p->node_selector.len; i++)
        if (!str_eq(labels_get(labels, p->node_selector.items[i].key),
                    p->node_selector.items[i].value))
            return false;
    return !p->has_required_affinity || node_selector_matches(&p->required_affinity, labels, name);
}
