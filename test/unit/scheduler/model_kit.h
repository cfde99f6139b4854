// SPDX-License-Identifier: Apache-2.0
/*
 * model_kit - one cluster model and what the tests of the pure core do with it: pods are put in, a
 * pod is given a node, a gang is tried. For one file per program, as expect.h is: each test has the
 * cluster c and the arena to itself, and a row that wants them empty calls fresh.
 */
#pragma once

#include "lib/base/json.h"
#include "lib/base/str.h"
#include "lib/kube/decode.h"
#include "lib/model/names.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/cycle/cycle.h"
#include "scheduler/framework/equivalence.h"
#include "scheduler/framework/pipeline.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/fixture.h"

static struct cluster c;
static struct pipeline pipeline; /* on c */
static struct arena arena;
static const struct cluster_hooks *hooks; /* of the pods that are put; NULL: no hooks */

static inline int setup(void **state)
{
    (void)state;
    cluster_init(&c, NAME_SCHEDULER);
    pipeline_init(&pipeline, &c);
    arena_init(&arena, 0);
    hooks = NULL;
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    pipeline_deinit(&pipeline);
    cluster_deinit(&c);
    arena_deinit(&arena);
    return 0;
}

static inline void fresh(void)
{
    (void)teardown(NULL);
    (void)setup(NULL);
}

/* What came of it. */
static inline uint32_t put_events(const struct fixture_pod *f)
{
    return cluster_put_pod(&c, fixture_make_pod(f), hooks);
}
#define EVENTS(...) put_events(&(struct fixture_pod){__VA_ARGS__})

/* The pod as the cluster has it; NULL: it keeps none. */
static inline struct cluster_pod *put(const struct fixture_pod *f)
{
    (void)put_events(f);
    return cluster_find_pod(&c,
                            arena_printf(&arena, "%s/%s", f->ns != NULL ? f->ns : "d", f->name));
}
#define PUT(...) put(&(struct fixture_pod){__VA_ARGS__})
#define CPU(n) .c = {{.cpu_milli = (n)}}
#define MEMBER(gang, min) PAIRS(NAME_LABEL_GANG_NAME, gang, NAME_LABEL_GANG_MIN, min)

/* A disruption budget for the pods with the label app. */
static inline void put_budget(const char *name, const char *app, int allowed)
{
    struct error err = ERROR_INIT;
    AUTO_STRBUF text = {0};
    strbuf_addf(&text,
                "{\"metadata\":{\"namespace\":\"d\",\"name\":\"%s\"},\"spec\":{\"selector\":{"
                "\"matchLabels\":{\"app\":\"%s\"}}},\"status\":{\"disruptionsAllowed\":%d}}",
                name, app, allowed);
    AUTO_JSON *doc = NULL;
    struct pdb *b = NULL;
    if (json_parse(&doc, strbuf_str(&text), text.len, &err) < 0 ||
        decode_pdb(json_root(doc), &b, &err) < 0)
        fail_msg("%s", err.text);
    (void)api_objects_put(c.objects, API_OBJECTS_BUDGETS, &b->object);
}

/* The nodes that no plugin refuses, in the order of the table: "a1 b1". */
static inline const char *open_nodes(struct cluster_pod *cp)
{
    AUTO_STRBUF b = {0};
    struct plugin_ask ask = pipeline_ask(&pipeline, cp);
    for (uint32_t i = 0; i < c.table->len; i++)
        if (plugin_refusing(&ask, c.table->rows[i].node, &arena, NULL) == NULL)
            strbuf_addf(&b, "%s%s", b.len > 0 ? " " : "", c.table->rows[i].node->name);
    return arena_strdup(&arena, strbuf_str(&b));
}

/* The node's name, or NULL. */
static inline const char *best(struct cluster_pod *cp)
{
    struct pipeline_choice choice;
    pipeline_choose(&pipeline, cp, &arena, &choice);
    return choice.node != NULL ? choice.node->name : NULL;
}

/* Where the pods named a to z of a gang are, or of all gangs (NULL): "a@n1 b@-". */
static inline const char *places(const struct gang *g)
{
    AUTO_STRBUF b = {0};
    for (char name = 'a'; name <= 'z'; name++) {
        const struct cluster_pod *cp = cluster_find_pod(&c, (const char[]){'d', '/', name, '\0'});
        if (cp != NULL && cp->gang != NULL && (g == NULL || cp->gang == g))
            strbuf_addf(&b, "%s%c@%s", b.len > 0 ? " " : "", name,
                        cp->on != NULL ? cp->on->name : "-");
    }
    return arena_strdup(&arena, strbuf_str(&b));
}

/* One cycle, and what holds after every one. Returns the gang. */
static inline struct gang *run_gang(const char *key, struct cycle_result *result)
{
    struct gang *g = map_get(&c.gangs, key);
    struct plan plan;
    if (g == NULL)
        fail_msg("there is no %s", key);
    uint64_t before = cluster_digest(&c);
    plan_begin(&plan, &c);
    cycle_run(&pipeline, g, &plan, &arena, result);
    bool committed = plan.committed;
    plan_end(&plan);
    expect_int("committed where something is placed",
               result->verdict == CYCLE_PLACED || result->verdict == CYCLE_PARTLY, committed);
    expect_true("the cluster is as before where nothing is",
                committed || cluster_digest(&c) == before);
    return g;
}

/* For main. A kit with a setup of its own has its own. */
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
