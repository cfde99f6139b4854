// SPDX-License-Identifier: Apache-2.0
/*
 * Keeps two maps of names: per policy what was reported last; per pod what was sent and not seen
 * yet, or what was reported. A pod that is up to date is in neither, so a cluster without policies
 * costs nothing, and one with policies a pass over its pods every POLICY_WRITER_SCAN_MS.
 *
 * Labels: servers from 1.35 on merge those of a Binding into the pod. If a confirmed pod lacks
 * them, they are patched in. So the server's version does not matter, nor whether that feature is
 * off.
 */
#include "scheduler/binding/policy_writer.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "lib/base/metrics.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/binding/loop_time.h"
#include "scheduler/cycle/policies_lines.h"
#include "scheduler/cache/policies.h"

/* A policy. */
struct account {
    char *key, *uid;
    uint64_t status;   /* hash of the last write; 0: none */
    int64_t status_ms; /* when it was last computed */
    uint64_t trouble;  /* hash of the last Event; 0: none */
    bool seen;
};

/* A pod. */
struct errand {
    char *key, *uid;
    enum policies_cost cost; /* what was sent, or reported */
    int32_t value;
    int64_t sent_ms;
    uint64_t others; /* hash of the other policies reported; 0: none */
    bool labels;     /* check them when it is confirmed */
    bool seen;
};

struct policy_writer {
    struct policy_writer_config config;
    struct arena arena;  /* reset by each pass */
    struct map accounts; /* "ns/name" of a policy -> struct account */
    struct map errands;  /* "ns/name" of a pod -> struct errand */
    uint64_t scanned;    /* generation of the policies at the last pass over the pods */
    uint64_t moves;      /* of the cluster's policies, then */
    int64_t scanned_ms;
    struct loop_timer timer;
};

static struct metric costs = {.kind = METRIC_COUNTER,
                              .name = "cosched_scheduler_deletion_costs_total",
                              .help =
                                  "Deletion costs of placed pods that were written, taken back, "
                                  "or left alone because a user had set them.",
                              .label = "what"};

static void next_by(int64_t *next_ms, int64_t due_ms)
{
    *next_ms = num_min(*next_ms, due_ms);
}

static void account_free(struct account *a)
{
    free(a->key);
    free(a->uid);
    free(a);
}

static void errand_free(struct errand *e)
{
    free(e->key);
    free(e->uid);
    free(e);
}

static uint64_t hash(const char *text)
{
    return str_hash(text, strlen(text)) | 1; /* 0 means none */
}

static void print_units(struct json_writer *w, const struct policies_line *lines, size_t len)
{
    json_key(w, "units");
    json_array_begin(w);
    for (size_t i = 0; i < len; i++) {
        json_object_begin(w);
        json_kv_int(w, "unit", lines[i].unit);
        json_kv_str(w, "resource", lines[i].resource);
        json_kv_int(w, "pods", lines[i].pods);
        if (lines[i].terminating > 0)
            json_kv_int(w, "terminating", lines[i].terminating);
        if (lines[i].max >= 0)
            json_kv_int(w, "max", lines[i].max);
        if (lines[i].skipped != NULL)
            json_kv_str(w, "skipped", lines[i].skipped);
        json_object_end(w);
    }
    json_array_end(w);
}

/* "ecs 3/3, ecs 2, eci 5": one line for kubectl; a CRD column shows one value of a list. */
static void print_summary(struct json_writer *w, const struct policies_line *lines, size_t len)
{
    AUTO_STRBUF b = {0};
    for (size_t i = 0; i < len; i++) {
        strbuf_addf(&b, "%s%s %lld", i > 0 ? ", " : "", lines[i].resource,
                    (long long)lines[i].pods);
        if (lines[i].max >= 0)
            strbuf_addf(&b, "/%lld", (long long)lines[i].max);
    }
    json_kv_str(w, "summary", strbuf_str(&b));
}

/* In a merge patch a list replaces the whole list; other fields stay unless named, so the message
 * is always written, even if empty. */
static void print_status(struct policy_writer *p, const struct policy *policy, struct strbuf *out)
{
    struct json_writer w;
    struct policies_line *lines = NULL;
    int64_t waiting = 0;
    size_t len = policies_lines(p->config.pipeline, policy, &p->arena, &lines, &waiting);
    const char *message = policy->invalid != NULL ? policy->invalid : policy->warning;
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_key(&w, "metadata");
    json_object_begin(&w);
    json_kv_str(&w, "uid", policy->object.uid);
    json_object_end(&w);
    json_key(&w, "status");
    json_object_begin(&w);
    json_kv_str(&w, "phase", policy->invalid != NULL ? "Invalid" : "InForce");
    json_kv_str(&w, "message", str_or_empty(message));
    json_kv_int(&w, "waiting", waiting);
    print_summary(&w, lines, len);
    print_units(&w, lines, len);
    json_object_end(&w);
    json_object_end(&w);
}

static struct account *account_of(struct policy_writer *p, const struct policy *policy)
{
    struct account *a = map_get(&p->accounts, policy->object.key);
    if (a == NULL) {
        a = mem_new(struct account, 1);
        a->key = mem_strdup(policy->object.key);
        (void)map_put(&p->accounts, a->key, a);
    }
    if (!str_eq(a->uid, policy->object.uid)) {
        free(a->uid);
        *a = (struct account){.key = a->key, .uid = mem_strdup(policy->object.uid)};
    }
    a->seen = true;
    return a;
}

static void tell_trouble(struct policy_writer *p, const struct policy *policy, struct account *a)
{
    const char *text = policy->invalid != NULL ? policy->invalid : policy->warning;
    uint64_t said = text != NULL ? hash(text) : 0;
    if (said != 0 && said != a->trouble)
        pod_writer_report_policy(p->config.pod_writer, policy, true,
                                 policy->invalid != NULL ? "InvalidPolicy" : "PolicyIgnoredInPart",
                                 text);
    a->trouble = said;
}

int64_t policy_writer_interval_ms(size_t policies, size_t units, size_t pods, size_t nodes)
{
    enum { PASSES_PER_MS = 2000, PODS_PER_NODE = 20 /* asking plugins costs that much more */ };
    return POLICY_WRITER_STATUS_MS +
           (int64_t)(policies * (pods + PODS_PER_NODE * units * nodes) / PASSES_PER_MS);
}

static int64_t status_interval_ms(const struct policy_writer *p, const struct policy *policy)
{
    const struct cluster *c = p->config.cluster;
    return policy_writer_interval_ms(map_count(&c->objects->by_key[API_OBJECTS_POLICIES]),
                                     policy->units_len, map_count(&c->pods), map_count(&c->nodes));
}

static void inspect_policy(struct policy_writer *p, const struct policy *policy, int64_t now_ms,
                           int64_t *next_ms)
{
    struct account *a = account_of(p, policy);
    tell_trouble(p, policy, a);
    int64_t again_ms = a->status_ms + status_interval_ms(p, policy);
    if (a->status != 0 && now_ms < again_ms) {
        next_by(next_ms, again_ms);
        return;
    }
    AUTO_STRBUF text = {0};
    print_status(p, policy, &text);
    a->status_ms = now_ms; /* finding no change took as long */
    uint64_t now = hash(strbuf_str(&text));
    if (now == a->status)
        return;
    if (pod_writer_write_policy(p->config.pod_writer, policy, strbuf_str(&text)))
        a->status = now;
    if (a->status != now) /* the queue is full */
        next_by(next_ms, now_ms + POLICY_WRITER_AGAIN_MS);
}

static void forget_policies(struct policy_writer *p)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&p->accounts, &i, &key, &value);) {
        struct account *a = value;
        bool gone = !a->seen;
        a->seen = false;
        if (gone)
            account_free(map_remove(&p->accounts, key));
    }
}

static void inspect_policies(struct policy_writer *p, int64_t now_ms, int64_t *next_ms)
{
    const struct api_objects *o = p->config.cluster->objects;
    policies_set_now(p->config.cluster, clock_wall_ns());
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&o->by_key[API_OBJECTS_POLICIES], &i, &key, &value);)
        inspect_policy(p, value, now_ms, next_ms);
    forget_policies(p);
}

static struct errand *errand_of(struct policy_writer *p, const struct pod *pod)
{
    struct errand *e = map_get(&p->errands, pod->key);
    if (e == NULL) {
        e = mem_new(struct errand, 1);
        e->key = mem_strdup(pod->key);
        (void)map_put(&p->errands, e->key, e);
    }
    if (!str_eq(e->uid, pod->uid)) {
        free(e->uid);
        *e = (struct errand){.key = e->key, .uid = mem_strdup(pod->uid)};
    }
    return e;
}

static bool write_cost(struct policy_writer *p, const struct pod *pod, bool remove, int32_t value)
{
    const char *text = remove ? NULL : arena_printf(&p->arena, "%d", (int)value);
    struct label both[] = {{NAME_ANN_DELETION_COST, text}, {NAME_ANN_DELETION_COST_OURS, text}};
    return pod_writer_write_metadata(p->config.pod_writer, pod, &(struct labels){both, 2}, NULL);
}

static void tell_conflict(const struct policy_writer *p, struct cluster_pod *cp, int32_t value)
{
    AUTO_STRBUF b = {0};
    strbuf_addf(&b,
                "Its own " NAME_ANN_DELETION_COST " is kept; ResourcePolicy %s would have set %d, "
                "so it may not leave in the order of the policy's units",
                policies_of(cp)->object.name, (int)value);
    pod_writer_report_pod(p->config.pod_writer, cp->pod, true, "DeletionCostConflict",
                          strbuf_str(&b));
}

/* false: it may not have been sent. */
static bool carry_out(struct policy_writer *p, struct cluster_pod *cp, enum policies_cost what,
                      int32_t value)
{
    switch (what) {
    case POLICIES_COST_WRITE:
        metrics_inc(&costs, "written");
        return write_cost(p, cp->pod, false, value);
    case POLICIES_COST_REMOVE:
        metrics_inc(&costs, "taken back");
        return write_cost(p, cp->pod, true, 0);
    case POLICIES_COST_CONFLICT:
        metrics_inc(&costs, "left alone");
        tell_conflict(p, cp, value);
        return true;
    case POLICIES_COST_NONE:
    case POLICIES_COST_RIGHT:
        break;
    }
    return true;
}

/* Returns the number of writes. */
static size_t inspect_cost(struct policy_writer *p, struct cluster_pod *cp, int64_t now_ms,
                           int64_t *next_ms)
{
    int32_t value = 0;
    enum policies_cost what =
        cp->state == CLUSTER_BOUND ? policies_deletion_cost(cp, &value) : POLICIES_COST_NONE;
    if (what == POLICIES_COST_NONE || what == POLICIES_COST_RIGHT)
        return 0;
    struct errand *e = errand_of(p, cp->pod);
    e->seen = true;
    if (e->sent_ms > 0 && e->cost == what && what == POLICIES_COST_CONFLICT)
        return 0;
    if (e->sent_ms > 0 && e->cost == what && e->value == value &&
        now_ms - e->sent_ms < POLICY_WRITER_AGAIN_MS) {
        next_by(next_ms, e->sent_ms + POLICY_WRITER_AGAIN_MS);
        return 0;
    }
    e->cost = what;
    e->value = value;
    e->sent_ms = carry_out(p, cp, what, value) ? now_ms : 0;
    next_by(next_ms, now_ms + POLICY_WRITER_AGAIN_MS);
    return 1;
}

/* What a waiting pod was told is not repeated when it is bound. */
static bool is_waiting(const struct policy_writer *p, const struct errand *e)
{
    const struct cluster_pod *cp =
        e->others != 0 ? cluster_find_pod(p->config.cluster, e->key) : NULL;
    return cp != NULL && str_eq(cp->pod->uid, e->uid) && cp->state != CLUSTER_BOUND;
}

static void forget_errands(struct policy_writer *p)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&p->errands, &i, &key, &value);) {
        struct errand *e = value;
        bool gone = !e->seen && !e->labels && !is_waiting(p, e);
        e->seen = false;
        if (gone)
            errand_free(map_remove(&p->errands, key));
    }
}

static bool is_scan_due(const struct policy_writer *p, int64_t now_ms, int64_t *next_ms)
{
    const struct cluster *c = p->config.cluster;
    if (p->scanned != c->objects->generation[API_OBJECTS_POLICIES] + 1)
        return true;
    if (map_count(&c->objects->by_key[API_OBJECTS_POLICIES]) == 0 && map_count(&p->errands) == 0)
        return false;
    bool late = map_count(&p->errands) > 0 && now_ms - p->scanned_ms >= POLICY_WRITER_AGAIN_MS;
    bool moved = p->moves != c->policies->moves;
    if (late || now_ms - p->scanned_ms >= (moved ? POLICY_WRITER_STATUS_MS : POLICY_WRITER_SCAN_MS))
        return true;
    next_by(next_ms, p->scanned_ms + (moved                        ? POLICY_WRITER_STATUS_MS
                                      : map_count(&p->errands) > 0 ? POLICY_WRITER_AGAIN_MS
                                                                   : POLICY_WRITER_SCAN_MS));
    return false;
}

/* An interrupted pass restarts next time and gets further, since it skips what was sent. */
static void inspect_costs(struct policy_writer *p, int64_t now_ms, int64_t *next_ms)
{
    const struct cluster *c = p->config.cluster;
    const char *key;
    void *value;
    size_t written = 0;
    if (!is_scan_due(p, now_ms, next_ms))
        return;
    for (size_t i = 0; map_next(&c->pods, &i, &key, &value);) {
        written += inspect_cost(p, value, now_ms, next_ms);
        if (written >= POLICY_WRITER_WRITES) {
            next_by(next_ms, now_ms + POLICY_WRITER_DELAY_MS);
            return;
        }
    }
    forget_errands(p);
    p->moves = c->policies->moves;
    p->scanned = c->objects->generation[API_OBJECTS_POLICIES] + 1;
    p->scanned_ms = now_ms;
}

static void inspect_labels(struct policy_writer *p, int64_t now_ms, int64_t *next_ms)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&p->errands, &i, &key, &value);) {
        struct errand *e = value;
        struct cluster_pod *cp = e->labels ? cluster_find_pod(p->config.cluster, key) : NULL;
        if (cp == NULL || !str_eq(cp->pod->uid, e->uid) || cp->state == CLUSTER_PENDING) {
            e->labels = false;
            continue;
        }
        if (cp->state != CLUSTER_BOUND) {
            next_by(next_ms, now_ms + POLICY_WRITER_STATUS_MS);
            continue;
        }
        struct labels missing = policies_labels(cp, &p->arena);
        e->labels = missing.len > 0 &&
                    !pod_writer_write_metadata(p->config.pod_writer, cp->pod, NULL, &missing);
    }
}

static void tell_others(struct policy_writer *p, const struct cluster_pod *cp)
{
    const char *others = policies_others(p->config.cluster, cp, &p->arena);
    if (others == NULL)
        return;
    struct errand *e = errand_of(p, cp->pod);
    AUTO_STRBUF b = {0};
    strbuf_addf(&b, "ResourcePolicy %s holds for it, the oldest that selects it; not: %s",
                policies_of(cp)->object.name, others);
    uint64_t said = hash(strbuf_str(&b));
    if (said == e->others)
        return;
    e->others = said;
    pod_writer_report_pod(p->config.pod_writer, cp->pod, true, "SeveralPolicies", strbuf_str(&b));
}

static void tell_labels(const struct policy_writer *p, const struct cluster_pod *cp,
                        const char *kept)
{
    AUTO_STRBUF b = {0};
    strbuf_addf(&b,
                "It keeps its label %s: ResourcePolicy %s gives labels only to pods without them",
                kept, policies_of(cp)->object.name);
    pod_writer_report_pod(p->config.pod_writer, cp->pod, true, "PolicyIgnoredInPart",
                          strbuf_str(&b));
}

void policy_writer_bound(struct policy_writer *p, struct cluster_pod *cp)
{
    int32_t value = 0;
    if (!policies_holds(cp))
        return;
    const char *kept = policies_labels_kept(cp, &p->arena);
    if (policies_labels(cp, &p->arena).len > 0)
        errand_of(p, cp->pod)->labels = true;
    if (policies_deletion_cost(cp, &value) == POLICIES_COST_CONFLICT) {
        struct errand *e = errand_of(p, cp->pod);
        e->cost = POLICIES_COST_CONFLICT;
        e->value = value;
        e->sent_ms = clock_mono_ms();
        metrics_inc(&costs, "left alone");
        tell_conflict(p, cp, value);
    }
    if (kept != NULL)
        tell_labels(p, cp, kept);
    tell_others(p, cp);
    policy_writer_reconcile(p);
}

void policy_writer_refused(struct policy_writer *p, const struct gang *g)
{
    const struct cluster *c = p->config.cluster;
    for (size_t i = 0; c->policies->entries.len > 1 && i < g->members.len; i++)
        if (cluster_pod_is_schedulable(g->members.items[i]))
            tell_others(p, g->members.items[i]);
}

static void inspect_all(void *arg)
{
    struct policy_writer *p = arg;
    int64_t began_us = clock_mono_us();
    int64_t now_ms = clock_mono_ms(), next_ms = INT64_MAX;
    arena_reset(&p->arena);
    inspect_policies(p, now_ms, &next_ms);
    inspect_labels(p, now_ms, &next_ms);
    inspect_costs(p, now_ms, &next_ms);
    if (next_ms < INT64_MAX)
        loop_timer_set(p->config.loop, &p->timer, num_max(next_ms - now_ms, POLICY_WRITER_DELAY_MS),
                       inspect_all, p);
    loop_time_add(LOOP_TIME_POLICIES, began_us);
}

/* No policies, and no pods left from any. */
static bool is_idle(const struct policy_writer *p)
{
    const struct api_objects *o = p->config.cluster->objects;
    return p->scanned == o->generation[API_OBJECTS_POLICIES] + 1 &&
           map_count(&o->by_key[API_OBJECTS_POLICIES]) == 0 && map_count(&p->errands) == 0;
}

void policy_writer_reconcile(struct policy_writer *p)
{
    if (is_idle(p) ||
        (heap_has(&p->timer.node) && p->timer.due_ms <= clock_mono_ms() + POLICY_WRITER_DELAY_MS))
        return;
    loop_timer_set(p->config.loop, &p->timer, POLICY_WRITER_DELAY_MS, inspect_all, p);
}

struct policy_writer *policy_writer_new(const struct policy_writer_config *c)
{
    metrics_register(&costs);
    struct policy_writer *p = mem_new(struct policy_writer, 1);
    p->config = *c;
    arena_init(&p->arena, 4096);
    map_init(&p->accounts);
    map_init(&p->errands);
    return p;
}

void policy_writer_free(struct policy_writer *p)
{
    const char *key;
    void *value;
    if (p == NULL)
        return;
    loop_timer_cancel(p->config.loop, &p->timer);
    for (size_t i = 0; map_next(&p->accounts, &i, &key, &value);)
        account_free(value);
    for (size_t i = 0; map_next(&p->errands, &i, &key, &value);)
        errand_free(value);
    map_deinit(&p->accounts);
    map_deinit(&p->errands);
    arena_deinit(&p->arena);
    free(p);
}
