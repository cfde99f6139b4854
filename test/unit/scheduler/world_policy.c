// SPDX-License-Identifier: Apache-2.0
/*
 * ResourcePolicies in the world: they come, change and go under waiting, assumed and bound pods.
 * What is counted incrementally equals a recount, and nobody is promised a place beyond a max.
 */
#include "test/unit/scheduler/world_internal.h"

#include <string.h>

#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/kube/decode.h"
#include "lib/model/names.h"
#include "scheduler/cycle/policies_lines.h"

enum { NS_PER_MS = 1000000 };

/* Pods of the fixture are made in the first minute of 2026. */
static const int64_t begin_ms = INT64_C(1767225600) * 1000;

static const char *pick(struct world *w, const char *const *words, size_t len)
{
    return words[world_random(w, len)];
}
#define PICK(w, ...)                            \
    pick(w, (const char *const[]){__VA_ARGS__}, \
         sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static void print_unit(struct world *w, struct strbuf *b)
{
    strbuf_addf(b, "{\"resource\":\"%s\"", PICK(w, "ecs", "ecs", "ecs", "elastic", "eci"));
    if (world_chance(w, 60))
        strbuf_addf(b, ",\"nodeSelector\":{\"zone\":\"%s\"}", PICK(w, "a", "b", "c"));
    if (world_chance(w, 50))
        strbuf_addf(b, ",\"max\":%d", (int)world_random(w, 8));
    if (world_chance(w, 25))
        strbuf_addf(b, ",\"maxResources\":{\"cpu\":\"%d\"%s}", 1 + (int)world_random(w, 8),
                    PICK(w, "", ",\"aliyun.com/gpu-mem\":20"));
    if (world_chance(w, 10))
        strbuf_adds(b, ",\"podLabels\":{\"tier\":\"x\"}");
    strbuf_addc(b, '}');
}

static void print_policy(struct world *w, const char *name, struct strbuf *b)
{
    strbuf_addf(b,
                "{\"metadata\":{\"namespace\":\"d\",\"name\":\"%s\",\"uid\":\"u-%s\","
                "\"creationTimestamp\":\"2026-01-01T00:00:%02dZ\"},\"spec\":{\"units\":[",
                name, name, (int)world_random(w, 2));
    for (uint64_t i = world_random(w, 4); i > 0; i--) {
        print_unit(w, b);
        strbuf_addc(b, ',');
    }
    strbuf_addf(b, "{\"resource\":\"%s\"}]", PICK(w, "ecs", "ecs", "ecs", "eci", "none"));
    if (world_chance(w, 50))
        strbuf_addf(b, ",\"selector\":{\"app\":\"%s\"}", PICK(w, "a", "b"));
    if (world_chance(w, 30))
        strbuf_addf(b, ",\"preemptPolicy\":\"BeforeNextUnit\"");
    if (world_chance(w, 30))
        strbuf_addf(b, ",\"ignorePreviousPod\":true");
    if (world_chance(w, 30))
        strbuf_addf(b, ",\"ignoreTerminatingPod\":false");
    if (world_chance(w, 20))
        strbuf_addf(b, ",\"matchLabelKeys\":[\"app\"]");
    strbuf_addf(b, ",\"whenTryNextUnits\":{\"policy\":\"%s\",\"timeout\":\"%ds\"}}}",
                PICK(w, "LackResourceOrExceedMax", "LackResourceOrExceedMax", "ExceedMax",
                     "TimeoutOrExceedMax", "LackResourceAndNoTerminating"),
                1 + (int)world_random(w, 90));
}

/* Wakes only whom it concerns. */
static void settle(struct world *w)
{
    struct cluster_hooks hooks = world_hooks(w);
    policies_settle(&w->cluster, &hooks);
    world_spread_events(w, policies_take_events(&w->cluster));
}

void world_put_policy(struct world *w)
{
    const char *name = PICK(w, "p", "q");
    AUTO_STRBUF key = {0};
    AUTO_STRBUF text = {0};
    AUTO_JSON *doc = NULL;
    struct policy *p = NULL;
    struct error err = ERROR_INIT;
    strbuf_addf(&key, "d/%s", name);
    if (world_chance(w, 40)) {
        w->said = "policy removed";
        (void)policies_submit_removal(&w->cluster, strbuf_str(&key), NULL);
        settle(w);
        return;
    }
    w->said = "policy put";
    print_policy(w, name, &text);
    MUST(w,
         json_parse(&doc, strbuf_str(&text), text.len, &err) == 0 &&
             decode_resource_policy(json_root(doc), &p, &err) == 0,
         "%s: %s", err.text, strbuf_str(&text));
    (void)policies_submit(&w->cluster, p);
    settle(w);
}

/* What a status says is asked of placed pods as if they were not there: all is as it was
 * afterwards, and nobody is woken. */
static void ask_for_statuses(struct world *w)
{
    struct cluster *c = &w->cluster;
    const uint64_t before = cluster_digest(c);
    const uint32_t events = c->policies->events;
    struct arena a;
    const char *key;
    void *value;
    arena_init(&a, 0);
    for (size_t i = 0; map_next(&c->objects->by_key[API_OBJECTS_POLICIES], &i, &key, &value);) {
        struct policies_line *lines;
        int64_t waiting;
        (void)policies_lines(&w->pipeline, value, &a, &lines, &waiting);
        MUST(w, before == cluster_digest(c), "asking for the status of %s changed the model", key);
        MUST(w, events == c->policies->events, "asking for the status of %s woke somebody", key);
    }
    arena_deinit(&a);
}

int64_t world_now_ns(const struct world *w)
{
    return (begin_ms + w->now_ms) * NS_PER_MS;
}

/* Time went by: whom that alone may help is woken, as the shell does. */
void world_policies_wait(struct world *w)
{
    const char *key;
    void *value;
    int64_t now_ns = world_now_ns(w);
    bool due = false;
    for (size_t i = 0; map_next(&w->cluster.gangs, &i, &key, &value);) {
        int64_t at = policies_due_ns(&w->cluster, value);
        due |= at > 0 && at <= now_ns;
    }
    policies_set_now(&w->cluster, now_ns);
    ask_for_statuses(w);
    if (due)
        world_spread_events(w, EVENT_UNIT);
}

/* Pods of a group that a unit counts. */
static int64_t count(const struct cluster *c, const struct policies_group *g, int32_t unit,
                     bool leaving, int64_t *cpu_milli)
{
    int64_t n = 0;
    const char *key;
    void *value;
    *cpu_milli = 0;
    for (size_t i = 0; map_next(&c->pods, &i, &key, &value);) {
        const struct cluster_pod *cp = value;
        if (cp->membership.group != g || policies_unit_of(cp) != unit ||
            cp->pod->terminating != leaving ||
            (cp->membership.previous && g->of->policy->ignore_previous &&
             cp->pod->created_ns <= g->of->policy->created_ns))
            continue;
        n++;
        *cpu_milli = num_add_sat(*cpu_milli, cp->request.cpu_milli);
    }
    return n;
}

static void check_group(const struct world *w, const struct policies_group *g)
{
    const struct policy *p = g->of->policy;
    size_t pods = 0;
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&w->cluster.pods, &i, &key, &value);)
        pods += ((const struct cluster_pod *)value)->membership.group == g;
    MUST(w, pods == g->pods && pods > 0, "%s has %zu pods, not %zu", g->key, pods, g->pods);
    for (size_t u = 0; u < p->units_len; u++)
        for (int leaving = 0; leaving < 2; leaving++) {
            const struct policies_tally *t = leaving ? &g->counts[u].leaving : &g->counts[u].live;
            int64_t cpu, n = count(&w->cluster, g, (int32_t)u, leaving, &cpu);
            MUST(w, t->pods == n, "%s: units[%zu]: %lld counted, %lld there", g->key, u,
                 (long long)t->pods, (long long)n);
            MUST(w, !p->units[u].has_max_resources || t->used.cpu_milli == cpu,
                 "%s: units[%zu]: cpu", g->key, u);
        }
}

void world_check_policies(const struct world *w)
{
    const struct cluster *c = &w->cluster;
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&c->policies->groups, &i, &key, &value);)
        check_group(w, value);
    for (size_t i = 0; map_next(&c->pods, &i, &key, &value);) {
        const struct cluster_pod *cp = value;
        const struct policy *first = NULL;
        const char *name;
        void *at;
        for (size_t k = 0; map_next(&c->objects->by_key[API_OBJECTS_POLICIES], &k, &name, &at);)
            if (policy_selects(at, cp->pod) && (first == NULL || policy_order(at, first) < 0))
                first = at;
        MUST(w, policies_of(cp) == first, "%s follows the wrong policy", key);
        MUST(w, cp->on != NULL || !cp->membership.held, "%s counts and is nowhere", key);
    }
}

/* Who was just placed is in a unit that has his node, and within its limits. */
void world_check_seat(const struct world *w, const struct cluster_pod *cp)
{
    const struct policy *p = policies_of(cp);
    int32_t unit = policies_unit_of(cp);
    int64_t cpu = 0, leaving_cpu = 0;
    if (p == NULL)
        return;
    MUST(w, unit >= 0 && (size_t)unit < p->units_len, "%s is in no unit", cp->pod->key);
    const struct policy_unit *u = &p->units[unit];
    MUST(w, policy_unit_has_node(u, &cp->on->node->labels, cp->on->is_virtual), "%s", cp->pod->key);
    int64_t n = count(&w->cluster, cp->membership.group, unit, false, &cpu);
    int64_t leaving = count(&w->cluster, cp->membership.group, unit, true, &leaving_cpu);
    if (!p->ignore_terminating) {
        n += leaving;
        cpu = num_add_sat(cpu, leaving_cpu);
    }
    MUST(w, u->max < 0 || n <= u->max, "%s: %lld pods in units[%d], max %lld", cp->pod->key,
         (long long)n, (int)unit, (long long)u->max);
    MUST(w,
         (u->max_resources.has & RESOURCES_HAS_CPU) == 0 || cp->request.cpu_milli == 0 ||
             cpu <= u->max_resources.cpu_milli,
         "%s: cpu of units[%d]", cp->pod->key, (int)unit);
}
