// SPDX-License-Identifier: Apache-2.0
/*
 * A plugin made by the recipe in CONTRIBUTING.md, in a table of its own instead of plugins/all.c:
 * the core knows no plugin by name, and what the plugin prints by key is enough to keep pods apart.
 */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scheduler/framework/class_key.h"
#include "scheduler/plugins/all.h"
#include "test/unit/scheduler/model_kit.h"

#define COLOUR "example.com/colour"

/* For pods without a colour; stands for anything in the cluster that a key reads. */
static const char *fashion;
static uint64_t fashions;

static const char *wanted_by(const struct plugin_ask *ask)
{
    const char *own = labels_get(&ask->pod->pod->labels, COLOUR);
    return own != NULL ? own : fashion;
}

static bool filter(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                   struct reason *why)
{
    const char *wanted = wanted_by(ask);
    const char *has = labels_get(&node->node->labels, COLOUR);
    if (wanted == NULL || str_eq(wanted, has))
        return true;
    if (why != NULL)
        *why = (struct reason){.kind = REASON_COMPUTE,
                               .what = arena_printf(a, "%s=%s", COLOUR, str_or_empty(has))};
    return false;
}

static void key(const struct plugin_ask *ask, struct strbuf *out)
{
    strbuf_addc(out, '~');
    class_key_text(out, wanted_by(ask));
}

static uint64_t key_version(const struct plugin_ask *ask)
{
    (void)ask;
    return fashions;
}

static const struct plugin plugin_toy = {.name = "toy",
                                         PLUGIN_READS(FACET_LABELS),
                                         .key = key,
                                         .key_version = key_version,
                                         .filter = filter};

const struct plugin *const plugin_table[] = {&plugin_toy, &plugin_fit, NULL};

static void pods_go_where_the_toy_lets_them(void **state)
{
    (void)state;
    cluster_put_node(&c, NODE(.name = "n-blue", .labels = PAIRS(COLOUR, "blue")));
    cluster_put_node(&c, NODE(.name = "n-red", .labels = PAIRS(COLOUR, "red")));
    struct cluster_pod *red = PUT(.name = "red", .labels = PAIRS(COLOUR, "red"));
    struct cluster_pod *blue = PUT(.name = "blue", .labels = PAIRS(COLOUR, "blue"));
    struct cluster_pod *too = PUT(.name = "too", .labels = PAIRS(COLOUR, "red"));
    struct cluster_pod *green = PUT(.name = "green", .labels = PAIRS(COLOUR, "green"));
    expect_str("red", "n-red", best(red));
    expect_str("blue, after red was asked about", "n-blue", best(blue));
    expect_str("another red one", "n-red", best(too));
    expect_str("green has no node", NULL, best(green));
    expect_str("nor is there any that it could use", "", open_nodes(green));
    expect_true("equal pods share a class",
                equivalence_ask(&pipeline, red) == equivalence_ask(&pipeline, too));
    expect_true("others do not",
                equivalence_ask(&pipeline, red) != equivalence_ask(&pipeline, blue));
    struct pipeline_choice choice;
    pipeline_choose(&pipeline, green, &arena, &choice);
    expect_true("its event wakes", (choice.wakes & EVENT_NODE_LABELS) != 0);
    struct cluster_pod *plain = PUT(.name = "plain");
    expect_str("any colour", "n-blue n-red", open_nodes(plain));
    fashion = "red";
    fashions++;
    expect_str("until there is a fashion, and its class follows", "n-red", best(plain));
    expect_int("what is remembered is what the plugin says", 0,
               (int64_t)pipeline.classes->disagreed);
    expect_done();
}

#ifdef FACETS_GUARDED
/* Reads labels and declares taints. */
static const struct plugin plugin_liar = {
    .name = "liar", PLUGIN_READS(FACET_TAINTS), .filter = filter};

/* In a process of its own: it ends there. */
static void a_filter_cannot_read_what_it_does_not_declare(void **state)
{
    (void)state;
    int status = 0;
    cluster_put_node(&c, NODE(.name = "n", .labels = PAIRS(COLOUR, "blue")));
    struct cluster_pod *red = PUT(.name = "red", .labels = PAIRS(COLOUR, "red"));
    struct plugin_ask ask = pipeline_ask(&pipeline, red);
    const struct cluster_node *node = cluster_find_node(&c, "n");
    expect_true("declared", !plugin_filter(&plugin_toy, &ask, node, &arena, NULL));
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        (void)freopen("/dev/null", "w", stderr);
        (void)plugin_filter(&plugin_liar, &ask, node, &arena, NULL);
        _exit(0);
    }
    expect_true("it ends", waitpid(child, &status, 0) == child && status != 0);
    expect_str("nobody else is kept from reading", "blue", labels_get(&node->node->labels, COLOUR));
    expect_done();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(pods_go_where_the_toy_lets_them),
#ifdef FACETS_GUARDED
        T(a_filter_cannot_read_what_it_does_not_declare),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
