// SPDX-License-Identifier: Apache-2.0
/*
 * ResourcePolicies on the pure core, in simulated time: the table in policy_cases.json, whose head
 * says what a case may hold. The integration suite runs the rows marked "live" from the same file
 * on both clusters.
 *
 * Nothing is woken but by the events that the model names and by the times that policies_due_ns
 * gives, so a wake that is missing fails a row. After each step everything that was placed is seen
 * bound as the watch would show it; the model is built anew from nodes, policies and pods, in
 * another order, and must come to the same digest (restart, I1); and no unit has more pods than its
 * max unless it had before.
 */
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/kube/decode.h"
#include "lib/model/names.h"
#include "scheduler/framework/equivalence.h"
#include "scheduler/dump/dump.h"
#include "scheduler/dump/dump_pod.h"
#include "scheduler/cache/policies.h"
#include "scheduler/replay/replay_run.h"
#include "scheduler/cycle/policies_lines.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/policy_texts.h"

#define CASES "test/unit/scheduler/policy_cases.json"

struct world {
    const char *name; /* of the case */
    size_t step;
    struct cluster *cluster; /* heap: the model does not move */
    struct replay_run run;
    struct arena arena;
    struct map nodes;    /* name -> JSON text, in the arena */
    struct map policies; /* the same */
    int64_t now_s;
    size_t away; /* of run.away, before this step */
};

static const char *where(struct world *w, const char *what)
{
    return arena_printf(&w->arena, "%s: step %zu: %s", w->name, w->step, what);
}

static json *parse(struct world *w, const char *text, struct json_doc **doc)
{
    struct error err = ERROR_INIT;
    if (json_parse(doc, text, strlen(text), &err) < 0)
        fail_msg("%s: %s: %s", where(w, "not JSON"), err.text, text);
    return json_root(*doc);
}

static void wake(struct world *w, uint32_t events)
{
    (void)queue_wake(&w->run.queue, events, w->run.now_ms);
}

static const char *pod_text(struct world *w, const char *name, json *step, const char *node)
{
    return policy_texts_pod(name, step, node, w->now_s, &w->arena);
}

/* ---- into a model ---- */

static uint32_t take_node(struct world *w, struct cluster *c, const char *text)
{
    AUTO_JSON *doc = NULL;
    struct node *n;
    struct error err = ERROR_INIT;
    if (decode_node(parse(w, text, &doc), &n, &err) < 0)
        fail_msg("%s: %s", where(w, "node"), err.text);
    return cluster_put_node(c, n);
}

static uint32_t take_policy(struct world *w, struct cluster *c, const char *text)
{
    AUTO_JSON *doc = NULL;
    struct policy *p;
    struct error err = ERROR_INIT;
    if (decode_resource_policy(parse(w, text, &doc), &p, &err) < 0)
        fail_msg("%s: %s", where(w, "policy"), err.text);
    return policies_put(c, p);
}

static uint32_t take_pod(struct world *w, struct cluster *c, const char *text, bool terminating,
                         const struct cluster_hooks *hooks)
{
    AUTO_JSON *doc = NULL;
    struct pod *p;
    struct error err = ERROR_INIT;
    if (decode_pod(parse(w, text, &doc), &p, &err) < 0)
        fail_msg("%s: %s", where(w, "pod"), err.text);
    p->terminating |= terminating;
    return cluster_put_pod(c, p, hooks);
}

/* ---- what must always hold ---- */

/* As the API server has it. */
static void print_pod(const struct cluster_pod *cp, struct strbuf *out)
{
    struct json_writer w;
    struct pod *p = dump_copy_pod(cp);
    json_writer_init(&w, out);
    dump_pod_print(p, false, &w);
    pod_free(p);
}

/* The watch shows what was bound, with what the Binding wrote. */
static void confirm(struct world *w)
{
    const char *key;
    void *value;
    struct VEC(char *) texts = {0};
    for (size_t i = 0; map_next(&w->cluster->pods, &i, &key, &value);) {
        const struct cluster_pod *cp = value;
        AUTO_STRBUF text = {0};
        if (cp->state != CLUSTER_ASSUMED)
            continue;
        print_pod(cp, &text);
        vec_push(&texts, mem_strdup(strbuf_str(&text)));
    }
    for (size_t i = 0; i < texts.len; i++) {
        wake(w, take_pod(w, w->cluster, texts.items[i], false, &w->run.hooks));
        free(texts.items[i]);
    }
    vec_deinit(&texts);
}

/* From what the API server has: pods before nodes before policies, the other way round than
 * here. */
static void restart(struct world *w, struct cluster *to)
{
    const char *key;
    void *value;
    cluster_init(to, NAME_SCHEDULER);
    for (size_t i = 0; map_next(&w->cluster->pods, &i, &key, &value);) {
        AUTO_STRBUF text = {0};
        const struct cluster_pod *cp = value;
        print_pod(cp, &text);
        (void)take_pod(w, to, strbuf_str(&text), cp->pod->terminating, NULL);
    }
    for (size_t i = 0; map_next(&w->nodes, &i, &key, &value);)
        (void)take_node(w, to, value);
    for (size_t i = 0; map_next(&w->policies, &i, &key, &value);)
        (void)take_policy(w, to, value);
    policies_set_now(to, (POLICY_TEXTS_BEGIN_S + w->now_s) * 1000000000);
}

static void check_restart(struct world *w)
{
    struct cluster again;
    const char *key;
    void *value;
    restart(w, &again);
    for (size_t i = 0; map_next(&w->cluster->pods, &i, &key, &value);) {
        const struct cluster_pod *was = value, *is = cluster_find_pod(&again, key);
        expect_int(where(w, arena_printf(&w->arena, "unit of %s after a restart", key)),
                   policies_unit_of(was), policies_unit_of(is));
        expect_true(where(w, arena_printf(&w->arena, "%s counts alike after a restart", key)),
                    policies_digest(was) == policies_digest(is));
    }
    cluster_deinit(&again);
}

/* How many count beyond the max of any unit; what was there before a policy may be more than it
 * allows. */
static int64_t count_beyond(const struct cluster *c)
{
    int64_t beyond = 0;
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&c->policies->groups, &i, &key, &value);) {
        const struct policies_group *g = value;
        const struct policy *p = g->of->policy;
        for (size_t u = 0; u < p->units_len; u++) {
            int64_t n = 0;
            const char *pod;
            void *at;
            for (size_t k = 0; map_next(&c->pods, &k, &pod, &at);) {
                const struct cluster_pod *cp = at;
                n += cp->membership.group == g && policies_unit_of(cp) == (int32_t)u &&
                     !(cp->pod->terminating && p->ignore_terminating) &&
                     !(cp->membership.previous && p->ignore_previous &&
                       cp->pod->created_ns <= p->created_ns);
            }
            if (p->units[u].max >= 0)
                beyond += num_max(n - p->units[u].max, 0);
        }
    }
    return beyond;
}

static void settle(struct world *w)
{
    int64_t before = count_beyond(w->cluster);
    policies_set_now(w->cluster, (POLICY_TEXTS_BEGIN_S + w->now_s) * 1000000000);
    replay_run_all(&w->run);
    expect_true(where(w, "no unit beyond its max"), count_beyond(w->cluster) <= before);
    confirm(w);
    replay_run_all(&w->run);
    confirm(w);
    expect_int(where(w, "what is remembered and the plugins disagree"), 0,
               (int64_t)w->run.pipeline.classes->disagreed);
    check_restart(w);
}

/* ---- steps ---- */

static struct cluster_pod *find(struct world *w, const char *name)
{
    struct cluster_pod *cp = cluster_find_pod(w->cluster, arena_printf(&w->arena, "d/%s", name));
    if (cp == NULL)
        cp = cluster_find_pod(w->cluster, arena_printf(&w->arena, "e/%s", name));
    return cp;
}

static void do_pods(struct world *w, json *step)
{
    for (struct json_iter it = json_iter(json_get(step, "pods")); json_next(&it);)
        wake(w, take_pod(w, w->cluster, pod_text(w, json_str(it.value), step, NULL), false,
                         &w->run.hooks));
}

static void do_bound(struct world *w, json *step)
{
    for (struct json_iter it = json_iter(json_get(step, "bound")); json_next(&it);)
        wake(w, take_pod(w, w->cluster,
                         pod_text(w, arena_strndup(&w->arena, it.key, it.key_len), step,
                                  json_str(it.value)),
                         false, &w->run.hooks));
}

static void do_terminate(struct world *w, json *list)
{
    for (struct json_iter it = json_iter(list); json_next(&it);) {
        AUTO_STRBUF text = {0};
        struct cluster_pod *cp = find(w, json_str(it.value));
        assert_non_null(cp);
        print_pod(cp, &text);
        wake(w, take_pod(w, w->cluster, strbuf_str(&text), true, &w->run.hooks));
    }
}

static void do_remove(struct world *w, json *list)
{
    for (struct json_iter it = json_iter(list); json_next(&it);) {
        struct cluster_pod *cp = find(w, json_str(it.value));
        assert_non_null(cp);
        const char *key = arena_strdup(&w->arena, cp->pod->key);
        wake(w, cluster_remove_pod(w->cluster, key, NULL, &w->run.hooks));
    }
}

static void do_policies(struct world *w, json *list)
{
    for (struct json_iter it = json_iter(list); json_next(&it);) {
        char *text = policy_texts_policy(it.value, w->now_s, &w->arena);
        (void)map_put(&w->policies, arena_strdup(&w->arena, json_get_str(it.value, "name")), text);
        wake(w, take_policy(w, w->cluster, text));
    }
}

static void do_nodes(struct world *w, json *nodes)
{
    for (struct json_iter it = json_iter(nodes); json_next(&it);) {
        const char *name = arena_strndup(&w->arena, it.key, it.key_len);
        char *text = policy_texts_node(name, it.value, &w->arena);
        (void)map_put(&w->nodes, name, text);
        wake(w, take_node(w, w->cluster, text));
    }
}

/* Time goes by: whom that alone may help is woken, as the shell's timer would. */
static void do_wait(struct world *w, int64_t s)
{
    const char *key;
    void *value;
    bool due = false;
    w->now_s += s;
    for (size_t i = 0; map_next(&w->cluster->gangs, &i, &key, &value);) {
        int64_t at = policies_due_ns(w->cluster, value);
        due |= at > 0 && at <= (POLICY_TEXTS_BEGIN_S + w->now_s) * 1000000000;
    }
    if (due)
        wake(w, EVENT_UNIT);
}

static void do_restart(struct world *w)
{
    struct cluster *again = mem_new(struct cluster, 1);
    restart(w, again);
    replay_run_deinit(&w->run);
    cluster_deinit(w->cluster);
    free(w->cluster);
    w->cluster = again;
    replay_run_init(&w->run, w->cluster);
    w->away = 0;
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&w->cluster->gangs, &i, &key, &value);)
        queue_touch(&w->run.queue, value, w->run.now_ms);
}

/* ---- what is expected ---- */

static void check_count(struct world *w, const char *what, int64_t expected)
{
    int64_t n = 0;
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&w->cluster->pods, &i, &key, &value);) {
        const struct cluster_pod *cp = value;
        const char *is = cp->on == NULL ? "waiting"
                         : policies_unit_of(cp) == POLICIES_NO_UNIT
                             ? "elsewhere"
                             : arena_printf(&w->arena, "units[%d]", (int)policies_unit_of(cp));
        n += str_eq(is, what);
    }
    expect_int(where(w, what), expected, n);
}

static void check_where(struct world *w, json *expected)
{
    for (struct json_iter it = json_iter(expected); json_next(&it);) {
        const char *name = arena_strndup(&w->arena, it.key, it.key_len);
        int64_t n = 0;
        if (json_int(it.value, &n)) {
            check_count(w, name, n);
            continue;
        }
        const struct cluster_pod *cp = find(w, name);
        expect_str(where(w, name), json_str(it.value),
                   cp == NULL       ? "gone"
                   : cp->on != NULL ? cp->on->name
                                    : "waiting");
    }
}

static void check_why(struct world *w, json *why)
{
    for (struct json_iter it = json_iter(why); json_next(&it);) {
        const struct cluster_pod *cp = find(w, arena_strndup(&w->arena, it.key, it.key_len));
        assert_non_null(cp);
        const char *is = replay_run_why(&w->run, cp);
        if (strstr(is, json_str(it.value)) == NULL)
            fail_msg("%s: expected '%s' in '%s'", where(w, "why"), json_str(it.value), is);
    }
}

static void check_sent_away(struct world *w, json *list)
{
    AUTO_STRBUF expected = {0};
    AUTO_STRBUF got = {0};
    for (struct json_iter it = json_iter(list); json_next(&it);)
        strbuf_addf(&expected, "%s ", json_str(it.value));
    for (size_t i = w->away; i < w->run.away.len; i++)
        strbuf_addf(&got, "%s ", strchr(w->run.away.items[i].pod, '/') + 1);
    expect_str(where(w, "sent away"), strbuf_str(&expected), strbuf_str(&got));
}

/* What is written into a pod with its Binding, beside the unit itself. */
static void check_written(struct world *w, json *written)
{
    for (struct json_iter it = json_iter(written); json_next(&it);) {
        const struct cluster_pod *cp = find(w, arena_strndup(&w->arena, it.key, it.key_len));
        assert_non_null(cp);
        struct labels notes = policies_annotations(cp, &w->arena),
                      labels = policies_labels(cp, &w->arena);
        for (struct json_iter at = json_iter(it.value); json_next(&at);) {
            const char *key = arena_strndup(&w->arena, at.key, at.key_len), *got = NULL;
            for (size_t i = 0; i < notes.len; i++)
                got = str_eq(notes.items[i].key, key) ? notes.items[i].value : got;
            for (size_t i = 0; i < labels.len; i++)
                got = str_eq(labels.items[i].key, key) ? labels.items[i].value : got;
            expect_str(where(w, key), json_is_null(at.value) ? NULL : json_str(at.value), got);
        }
    }
}

static void check_status(struct world *w, json *status)
{
    for (struct json_iter it = json_iter(status); json_next(&it);) {
        const char *key = arena_printf(&w->arena, "d/%.*s", (int)it.key_len, it.key);
        const struct policy *p =
            (const void *)api_objects_find(w->cluster->objects, API_OBJECTS_POLICIES, key);
        struct policies_line *lines;
        int64_t waiting;
        uint64_t before = cluster_digest(w->cluster);
        size_t i = 0, n = policies_lines(&w->run.pipeline, p, &w->arena, &lines, &waiting);
        expect_true(where(w, "asking changes nothing"), before == cluster_digest(w->cluster));
        expect_int(where(w, "lines"), (int64_t)json_len(it.value), (int64_t)n);
        for (struct json_iter at = json_iter(it.value); json_next(&at); i++)
            expect_str(where(w, "status"), json_str(at.value),
                       arena_printf(&w->arena, "%lld%s%s", (long long)lines[i].pods,
                                    lines[i].skipped != NULL ? " " : "",
                                    str_or_empty(lines[i].skipped)));
    }
}

static void run_step(struct world *w, json *step)
{
    int64_t s = 0;
    w->away = w->run.away.len;
    if (json_get(step, "nodes") != NULL)
        do_nodes(w, json_get(step, "nodes"));
    do_policies(w, json_get(step, "policies"));
    const char *drop = json_get_str(step, "dropPolicy");
    if (drop != NULL) {
        (void)map_remove(&w->policies, drop);
        wake(w, policies_remove(w->cluster, arena_printf(&w->arena, "d/%s", drop), NULL));
    }
    if (json_get_bool(step, "restart", false))
        do_restart(w);
    do_bound(w, step);
    do_pods(w, step);
    do_terminate(w, json_get(step, "terminate"));
    do_remove(w, json_get(step, "remove"));
    if (json_get_int(step, "wait", &s))
        do_wait(w, s);
    settle(w);
    check_where(w, json_get(step, "expect"));
    check_why(w, json_get(step, "why"));
    if (json_get(step, "sentAway") != NULL)
        check_sent_away(w, json_get(step, "sentAway"));
    check_written(w, json_get(step, "written"));
    check_status(w, json_get(step, "status"));
    w->step++;
}

static void run_case(json *row)
{
    static const char *const known[] = {
        "nodes",  "policies",    "dropPolicy", "restart", "bound",    "pods",         "terminate",
        "remove", "wait",        "expect",     "why",     "sentAway", "written",      "status",
        "labels", "annotations", "requests",   "limits",  "priority", "nodeSelector", "namespace"};
    struct world w = {.name = json_get_str(row, "name"), .cluster = mem_new(struct cluster, 1)};
    assert_non_null(w.name);
    cluster_init(w.cluster, NAME_SCHEDULER);
    arena_init(&w.arena, 0);
    map_init(&w.nodes);
    map_init(&w.policies);
    replay_run_init(&w.run, w.cluster);
    do_nodes(&w, json_get(row, "nodes"));
    do_policies(&w, json_get(row, "policies"));
    for (struct json_iter it = json_iter(json_get(row, "steps")); json_next(&it);) {
        for (struct json_iter at = json_iter(it.value); json_next(&at);) {
            bool is_known = false;
            for (size_t i = 0; i < sizeof known / sizeof *known; i++)
                is_known |=
                    strlen(known[i]) == at.key_len && memcmp(known[i], at.key, at.key_len) == 0;
            expect_true(where(&w, arena_printf(&w.arena, "%.*s is a word of the table",
                                               (int)at.key_len, at.key)),
                        is_known);
        }
        run_step(&w, it.value);
    }
    replay_run_deinit(&w.run);
    map_deinit(&w.nodes);
    map_deinit(&w.policies);
    cluster_deinit(w.cluster);
    free(w.cluster);
    arena_deinit(&w.arena);
}

static void all_cases_come_out_as_the_table_says(void **state)
{
    (void)state;
    AUTO_STRBUF text = {0};
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    if (file_read(CASES, 1 << 20, &text, &err) < 0 ||
        json_parse(&doc, strbuf_str(&text), text.len, &err) < 0)
        fail_msg("%s: %s", CASES, err.text);
    json *cases = json_get(json_root(doc), "cases");
    size_t live = 0;
    expect_true("at least 60 cases", json_len(cases) >= 60);
    for (struct json_iter it = json_iter(cases); json_next(&it);) {
        live += json_get_bool(it.value, "live", false);
        run_case(it.value);
    }
    expect_true("a third of them for clusters, too", 3 * live >= json_len(cases));
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_cases_come_out_as_the_table_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
