// SPDX-License-Identifier: Apache-2.0
#include "scheduler/accounts/cpu_request.h"

#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/names.h"

enum { CPUS_MAX = 1 << 20, SPEC_BYTES_MAX = 4096 };

static const char *annotation(const struct pod *p, const char *key)
{
    const char *v = labels_get(&p->annotations, key);
    return v != NULL && v[0] != '\0' ? v : NULL;
}

static bool asks(const struct pod *p)
{
    const char *wish = annotation(p, NAME_ANN_CPUSET_SCHEDULER);
    return wish != NULL && !str_eq(wish, "false");
}

/* Somebody may take the request away from a pod that runs. That is for new pods: this one stays on the CPUs that the node agent has bound it to, and they are nobody else's. */
static bool has_cpus(const struct pod *p)
{
    return p->node != NULL && annotation(p, NAME_ANN_CPUSET_APPLIED) != NULL;
}

bool cpu_request_is_passing(const struct pod *p, size_t container)
{
    return container >= p->containers_len &&
           !p->init_containers[container - p->containers_len].sidecar;
}

static const struct container *container_at(const struct pod *p, size_t i)
{
    return i < p->containers_len ? &p->containers[i] : &p->init_containers[i - p->containers_len];
}

/* An init container without a limit is not bound, nor is an ordinary one with a part of a CPU, as those that other webhooks inject have. */
static uint32_t cpus_of(const struct pod *p, size_t i, struct arena *a, const char **illegal)
{
    const struct container *c = container_at(p, i);
    bool has = (c->limits.has & RESOURCES_HAS_CPU) != 0;
    int64_t milli = has ? c->limits.cpu_milli : 0;
    bool whole = milli >= 1000 && milli % 1000 == 0;
    if ((!has && i >= p->containers_len) || (!whole && cpu_request_is_passing(p, i)))
        return 0;
    if (!has)
        *illegal = arena_printf(a, "container %s has no limits.cpu, and %s pins as many CPUs",
                                str_or_empty(c->name), NAME_ANN_CPUSET_SCHEDULER);
    else if (!whole)
        *illegal = arena_printf(a, "container %s: limits.cpu must be a whole number of CPUs for %s",
                                str_or_empty(c->name), NAME_ANN_CPUSET_SCHEDULER);
    return (uint32_t)num_min(milli / 1000, CPUS_MAX);
}

/* As the effective request: all that run side by side, or an init container with the sidecars before it. */
static uint32_t most_at_once(const struct pod *p, const uint32_t *each)
{
    int64_t running = 0, sidecars = 0, peak = 0;
    for (size_t i = 0; i < p->containers_len; i++)
        running += each[i];
    for (size_t i = p->containers_len; i < p->containers_len + p->init_containers_len; i++) {
        if (cpu_request_is_passing(p, i))
            peak = num_max(peak, sidecars + each[i]);
        else
            sidecars += each[i];
    }
    return (uint32_t)num_min(num_max(running + sidecars, peak), CPUS_MAX);
}

static bool read_policy(json *root, struct cpu_request *r)
{
    static const struct {
        const char *name;
        enum cpu_request_numa numa;
    } names[] = {{"SingleNUMANode", CPU_REQUEST_SINGLE},
                 {"Restricted", CPU_REQUEST_RESTRICTED},
                 {"BestEffort", CPU_REQUEST_BEST_EFFORT}};
    const char *text = json_get_str(root, "numaTopologyPolicy");
    if (json_get(root, "numaTopologyPolicy") == NULL || str_eq(text, ""))
        return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_eq(text, names[i].name)) {
            r->numa = names[i].numa;
            return true;
        }
    return false;
}

static const char *read_spec(const char *text, struct cpu_request *r, struct arena *a)
{
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    if (strlen(text) > SPEC_BYTES_MAX)
        return arena_printf(a, "annotation %s: longer than %d bytes", NAME_ANN_NUMA_SPEC,
                            SPEC_BYTES_MAX);
    if (json_parse(&doc, text, strlen(text), &err) < 0)
        return arena_printf(a, "annotation %s: %s", NAME_ANN_NUMA_SPEC, err.text);
    json *root = json_root(doc);
    const char *apart = json_get_str(root, "singleNUMANodeExclusive");
    if (!json_is_object(root) || !read_policy(root, r))
        return arena_printf(a,
                            "annotation %s: numaTopologyPolicy must be SingleNUMANode, Restricted "
                            "or BestEffort",
                            NAME_ANN_NUMA_SPEC);
    r->apart = str_eq(apart, "Required")    ? CPU_REQUEST_APART
               : str_eq(apart, "Preferred") ? CPU_REQUEST_APART_PREFERRED
                                            : CPU_REQUEST_BESIDE;
    if (json_get(root, "singleNUMANodeExclusive") != NULL && r->apart == CPU_REQUEST_BESIDE &&
        !str_eq(apart, ""))
        return arena_printf(a,
                            "annotation %s: singleNUMANodeExclusive must be Required or Preferred",
                            NAME_ANN_NUMA_SPEC);
    return NULL;
}

static void read_annotations(const struct pod *p, struct cpu_request *r, struct arena *a)
{
    const char *wish = annotation(p, NAME_ANN_CPUSET_SCHEDULER);
    const char *policy = annotation(p, NAME_ANN_CPU_POLICY);
    const char *spec = annotation(p, NAME_ANN_NUMA_SPEC);
    if (spec != NULL)
        r->illegal = read_spec(spec, r, a);
    if (str_eq(wish, "true")) { /* the fewest NUMA nodes are preferred, and not insisted on */
        r->numa = CPU_REQUEST_BEST_EFFORT;
        r->apart = CPU_REQUEST_BESIDE;
    } else if (str_eq(wish, "required")) {
        r->insists = true;
    } else if (asks(p)) {
        r->illegal = arena_printf(a, "annotation %s: must be true, required or false: '%.32s'",
                                  NAME_ANN_CPUSET_SCHEDULER, wish);
    }
    r->burst = str_eq(policy, "static-burst");
    if (policy != NULL && !r->burst)
        r->illegal = arena_printf(a, "annotation %s: only static-burst is known: '%.32s'",
                                  NAME_ANN_CPU_POLICY, policy);
    r->shared = str_eq(annotation(p, NAME_ANN_CPUSET_SHARED), "true");
}

const struct cpu_request *cpu_request_of(const struct pod *p, struct arena *a)
{
    if ((!asks(p) && !has_cpus(p)) || p->unreadable != NULL)
        return NULL;
    struct cpu_request *r = arena_new(a, struct cpu_request, 1);
    read_annotations(p, r, a);
    r->each_len = p->containers_len + p->init_containers_len;
    r->each = arena_new(a, uint32_t, r->each_len);
    for (size_t i = 0; i < r->each_len; i++)
        r->each[i] = cpus_of(p, i, a, &r->illegal);
    r->cpus = most_at_once(p, r->each);
    return r;
}
