// SPDX-License-Identifier: Apache-2.0
#include "scheduler/binding/policy_status.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "scheduler/cache/policies.h"
#include "scheduler/cycle/policies_lines.h"

/* A policy. */
struct account {
    char *key, *uid;
    uint64_t status;   /* hash of the last write; 0: none */
    int64_t status_ms; /* when it was last computed */
    uint64_t trouble;  /* hash of the last Event; 0: none */
    uint64_t round;    /* in which it was last computed */
    bool seen;
    /* The status being computed. */
    uint64_t serial;      /* of the policy's content; 0: none is being computed */
    struct arena arena;   /* of skipped */
    const char **skipped; /* by unit */
    size_t units;         /* so many are done */
};

struct policy_status {
    struct policy_status_config config;
    struct arena arena;  /* reset by each pass */
    struct map accounts; /* "ns/name" of a policy -> struct account */
    uint64_t round;
    uint64_t looked;
};

static void account_free(struct account *a)
{
    arena_deinit(&a->arena);
    free(a->key);
    free(a->uid);
    free(a);
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
static void print_status(struct policy_status *s, const struct policy *policy,
                         const char *const *skipped, struct strbuf *out)
{
    struct json_writer w;
    struct policies_line *lines = NULL;
    int64_t waiting = 0;
    size_t len = policies_lines_of(s->config.cluster, policy, skipped, &s->arena, &lines, &waiting);
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

static struct account *account_of(struct policy_status *s, const struct policy *policy)
{
    struct account *a = map_get(&s->accounts, policy->object.key);
    if (a == NULL) {
        a = mem_new(struct account, 1);
        a->key = mem_strdup(policy->object.key);
        arena_init(&a->arena, 0);
        (void)map_put(&s->accounts, a->key, a);
    }
    if (!str_eq(a->uid, policy->object.uid)) {
        arena_deinit(&a->arena);
        free(a->uid);
        *a = (struct account){.key = a->key, .uid = mem_strdup(policy->object.uid)};
        arena_init(&a->arena, 0);
    }
    a->seen = true;
    return a;
}

static void tell_trouble(struct policy_status *s, const struct policy *policy, struct account *a)
{
    const char *text = policy->invalid != NULL ? policy->invalid : policy->warning;
    uint64_t said = text != NULL ? hash(text) : 0;
    if (said != 0 && said != a->trouble)
        pod_writer_report_policy(s->config.pod_writer, policy, true,
                                 policy->invalid != NULL ? "InvalidPolicy" : "PolicyIgnoredInPart",
                                 text);
    a->trouble = said;
}

/* false: some units are left for the next pass. */
static bool compute(struct policy_status *s, const struct policy *policy, struct account *a,
                    uint64_t until)
{
    const struct policies_entry *e =
        map_get(&s->config.cluster->policies->entries, policy->object.key);
    uint64_t serial = e != NULL ? e->serial : UINT64_MAX;
    if (a->serial != serial) {
        arena_reset(&a->arena);
        a->serial = serial;
        a->units = 0;
        a->skipped = arena_new(&a->arena, const char *, policy->units_len);
    }
    while (a->units < policy->units_len && s->looked < until) {
        struct policies_look look =
            policies_lines_look(s->config.pipeline, policy, a->units, &a->arena);
        a->skipped[a->units++] = look.skipped;
        s->looked += look.looks + 1;
    }
    return a->units == policy->units_len;
}

static void inspect(struct policy_status *s, const struct policy *policy, struct account *a,
                    int64_t now_ms, int64_t *next_ms)
{
    AUTO_STRBUF text = {0};
    print_status(s, policy, a->skipped, &text);
    a->serial = 0;
    a->round = s->round;
    a->status_ms = now_ms; /* finding no change took as long */
    uint64_t now = hash(strbuf_str(&text));
    if (now == a->status)
        return;
    if (pod_writer_write_policy(s->config.pod_writer, policy, strbuf_str(&text)))
        a->status = now;
    else /* the queue is full */
        *next_ms = num_min(*next_ms, now_ms + s->config.again_ms);
}

static void forget(struct policy_status *s)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&s->accounts, &i, &key, &value);) {
        struct account *a = value;
        bool gone = !a->seen;
        a->seen = false;
        if (gone)
            account_free(map_remove(&s->accounts, key));
    }
}

void policy_status_pass(struct policy_status *s, int64_t now_ms, int64_t *next_ms)
{
    struct cluster *c = s->config.cluster;
    const uint64_t until = s->looked + POLICY_STATUS_LOOKS;
    bool waits = false, had_turn = false;
    const char *key;
    void *value;
    arena_reset(&s->arena);
    policies_set_now(c, clock_wall_ns());
    for (size_t i = 0; map_next(&c->objects->by_key[API_OBJECTS_POLICIES], &i, &key, &value);) {
        const struct policy *policy = value;
        struct account *a = account_of(s, policy);
        int64_t due_ms = a->status != 0 ? a->status_ms + s->config.every_ms : 0;
        tell_trouble(s, policy, a);
        if (policies_is_changing(c, policy->object.ns)) /* its counts are incomplete */
            due_ms = now_ms + POLICY_STATUS_SLICE_MS;
        if (now_ms < due_ms)
            *next_ms = num_min(*next_ms, due_ms);
        else if (a->round == s->round)
            had_turn = true;
        else if (s->looked >= until || !compute(s, policy, a, until))
            waits = true;
        else
            inspect(s, policy, a, now_ms, next_ms);
    }
    s->round += !waits;
    if (waits || had_turn)
        *next_ms = num_min(*next_ms, now_ms + POLICY_STATUS_SLICE_MS);
    forget(s);
}

uint64_t policy_status_looked(const struct policy_status *s)
{
    return s->looked;
}

struct policy_status *policy_status_new(const struct policy_status_config *c)
{
    struct policy_status *s = mem_new(struct policy_status, 1);
    s->config = *c;
    s->round = 1;
    arena_init(&s->arena, 4096);
    map_init(&s->accounts);
    return s;
}

void policy_status_free(struct policy_status *s)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&s->accounts, &i, &key, &value);)
        account_free(value);
    map_deinit(&s->accounts);
    arena_deinit(&s->arena);
    free(s);
}
