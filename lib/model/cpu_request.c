// SPDX-License-Identifier: Apache-2.0
#include "lib/model/cpu_request.h"

#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "lib/model/quantity.h"

enum { CPUS_MAX = 1 << 20 };

#define WISH "metadata.annotations[" NAME_ANN_CPUSET_SCHEDULER "]"
#define POLICY "metadata.annotations[" NAME_ANN_CPU_POLICY "]"
#define NUMA "metadata.annotations[" NAME_ANN_NUMA_SPEC "]"
#define SHARED "metadata.annotations[" NAME_ANN_CPUSET_SHARED "]"

static const char *annotation(const struct pod *p, const char *key)
{
    return labels_get(&p->annotations, key);
}

static bool is_empty(const char *value)
{
    return value == NULL || value[0] == '\0';
}

bool cpu_request_pins(const struct labels *annotations)
{
    const char *wish = labels_get(annotations, NAME_ANN_CPUSET_SCHEDULER);
    return str_eq(wish, "true") || str_eq(wish, "required");
}

bool cpu_request_shares(const struct labels *annotations)
{
    return str_eq(labels_get(annotations, NAME_ANN_CPUSET_SHARED), "true");
}

/* A client may remove the request from a running pod. That only affects new pods: this one stays on
 * the CPUs that the node agent pinned it to, and they stay in use. */
static bool has_cpus(const struct pod *p)
{
    return p->node != NULL && !is_empty(annotation(p, NAME_ANN_CPUSET_APPLIED));
}

struct reading {
    const struct pod *pod;
    struct arena *arena;
    struct request_errors errors;
    struct cpu_request *out;
};

static const char *print_milli(int64_t milli, struct arena *a)
{
    AUTO_STRBUF text = {0};
    quantity_print_milli(milli, &text);
    return arena_strdup(a, strbuf_str(&text));
}

/* An init container without a limit is not pinned, nor is an ordinary one with a fraction of a CPU,
 * as other webhooks inject them. */
static uint32_t read_cpus(struct reading *r, size_t i)
{
    const struct container *c = pod_container(r->pod, i);
    bool has = (c->limits.has & RESOURCES_HAS_CPU) != 0;
    int64_t milli = has ? c->limits.cpu_milli : 0;
    bool whole = milli >= 1000 && milli % 1000 == 0;
    if ((!has && i >= r->pod->containers_len) || (!whole && pod_container_is_init(r->pod, i)))
        return 0;
    if (!has)
        request_errors_add(&r->errors, r->arena,
                           "%s.resources.limits.cpu: is missing; " NAME_ANN_CPUSET_SCHEDULER
                           " pins whole CPUs: write how many",
                           request_container_path(r->pod, i, r->arena));
    else if (!whole)
        request_errors_add(&r->errors, r->arena,
                           "%s.resources.limits.cpu: '%s' is not a whole number of CPUs, "
                           "which " NAME_ANN_CPUSET_SCHEDULER " needs; write an integer from 1 on",
                           request_container_path(r->pod, i, r->arena),
                           print_milli(milli, r->arena));
    return (uint32_t)num_min(milli / 1000, CPUS_MAX);
}

/* As for the effective request: all concurrent containers, or an init container with the sidecars
 * before it. */
static uint32_t most_at_once(const struct pod *p, const uint32_t *each)
{
    int64_t running = 0, sidecars = 0, peak = 0;
    for (size_t i = 0; i < p->containers_len; i++)
        running += each[i];
    for (size_t i = p->containers_len; i < pod_container_count(p); i++) {
        if (pod_container_is_init(p, i))
            peak = num_max(peak, sidecars + each[i]);
        else
            sidecars += each[i];
    }
    return (uint32_t)num_min(num_max(running + sidecars, peak), CPUS_MAX);
}

/* The index of the word; -1: unknown. "" is the first, which means not set. */
static int word_of(json *value, const char *const *words)
{
    for (int i = 0; words[i] != NULL; i++)
        if (str_eq(json_str(value), words[i]))
            return i;
    return -1;
}

/* The user's value of a member, for a message. */
static const char *quote(json *v, struct arena *a)
{
    if (json_is_bool(v))
        return json_bool(v, false) ? "'true'" : "'false'";
    const char *text = json_str(v) != NULL ? json_str(v) : json_number_text(v);
    return text != NULL ? request_quote(text, a) : json_kind_name(v);
}

static void read_member(struct reading *r, const char *key, json *value)
{
    static const char *const policies[] = {"", "BestEffort", "Restricted", "SingleNUMANode", NULL};
    static const enum cpu_request_numa numa[] = {CPU_REQUEST_BEST_EFFORT, CPU_REQUEST_BEST_EFFORT,
                                                 CPU_REQUEST_RESTRICTED, CPU_REQUEST_SINGLE};
    static const char *const exclusive[] = {"", "Preferred", "Required", NULL};
    static const enum cpu_request_apart apart[] = {CPU_REQUEST_BESIDE, CPU_REQUEST_APART_PREFERRED,
                                                   CPU_REQUEST_APART};
    bool policy = str_eq(key, "numaTopologyPolicy");
    if (!policy && !str_eq(key, "singleNUMANodeExclusive"))
        return;
    int word = word_of(value, policy ? policies : exclusive);
    if (word < 0)
        request_errors_add(&r->errors, r->arena, NUMA ": %s %s is not known; write %s", key,
                           quote(value, r->arena),
                           policy ? "SingleNUMANode, Restricted or BestEffort"
                                  : "Required or Preferred");
    else if (policy)
        r->out->numa = numa[word];
    else
        r->out->apart = apart[word];
}

static void read_spec(struct reading *r, const char *text)
{
    AUTO_JSON *doc = NULL;
    if (strlen(text) > CPU_REQUEST_NUMA_SPEC_MAX) {
        request_errors_add(&r->errors, r->arena, NUMA ": is longer than %d bytes; write less",
                           CPU_REQUEST_NUMA_SPEC_MAX);
        return;
    }
    if (json_parse(&doc, text, strlen(text), NULL) < 0 || !json_is_object(json_root(doc))) {
        request_errors_add(&r->errors, r->arena,
                           NUMA ": %s is no JSON object; write "
                                "{\"numaTopologyPolicy\":\"SingleNUMANode\"} or the like",
                           request_quote(text, r->arena));
        return;
    }
    for (struct json_iter it = json_iter(json_root(doc)); json_next(&it);)
        read_member(r, it.key, it.value);
}

static void read_annotations(struct reading *r)
{
    const char *wish = annotation(r->pod, NAME_ANN_CPUSET_SCHEDULER);
    const char *policy = annotation(r->pod, NAME_ANN_CPU_POLICY);
    const char *spec = annotation(r->pod, NAME_ANN_NUMA_SPEC);
    const char *shared = annotation(r->pod, NAME_ANN_CPUSET_SHARED);
    r->out->insists = str_eq(wish, "required");
    r->out->burst = str_eq(policy, "static-burst");
    r->out->shared = cpu_request_shares(&r->pod->annotations);
    if (!is_empty(policy) && !r->out->burst)
        request_errors_add(
            &r->errors, r->arena,
            POLICY ": %s is not known; write static-burst, or remove it for one to one pinning",
            request_quote(policy, r->arena));
    if (!is_empty(spec))
        read_spec(r, spec);
    if (shared != NULL && !r->out->shared && !str_eq(shared, "false"))
        request_errors_add(&r->errors, r->arena,
                           SHARED ": %s is not known; write \"true\" or \"false\"",
                           request_quote(shared, r->arena));
    if (str_eq(wish, "true")) { /* the fewest NUMA nodes are preferred, not required */
        r->out->numa = CPU_REQUEST_BEST_EFFORT;
        r->out->apart = CPU_REQUEST_BESIDE;
    }
}

const struct cpu_request *cpu_request_read(const struct pod *p, struct arena *a,
                                           struct request_errors *errors)
{
    const char *wish = annotation(p, NAME_ANN_CPUSET_SCHEDULER);
    bool pins = cpu_request_pins(&p->annotations), bound = has_cpus(p);
    struct reading r = {.pod = p, .arena = a};
    if (errors != NULL)
        *errors = r.errors;
    if (!pins && !bound && (wish == NULL || str_eq(wish, "false")))
        return NULL;
    r.out = arena_new(a, struct cpu_request, 1);
    r.out->each_len = pod_container_count(p);
    r.out->each = arena_new(a, uint32_t, r.out->each_len);
    if (!pins && !bound) {
        request_errors_add(&r.errors, a,
                           WISH ": %s is not known; write \"true\", \"required\" or \"false\"",
                           request_quote(wish, a));
    } else {
        read_annotations(&r);
        for (size_t i = 0; i < r.out->each_len; i++)
            r.out->each[i] = read_cpus(&r, i);
        r.out->cpus = most_at_once(p, r.out->each);
    }
    r.out->illegal = request_errors_first(&r.errors);
    if (errors != NULL)
        *errors = r.errors;
    return r.out;
}
