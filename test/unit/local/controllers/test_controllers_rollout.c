// SPDX-License-Identifier: Apache-2.0
/*
 * Rollouts that are stuck, because pods of the new template do not fit, and what happens to them
 * then: the numbers of test/integration/suite_rollout.py, which come from the real controller; and
 * random sequences, with the bounds checked after each step.
 */
#include "test/unit/local/controllers_rig.h"

#include <stdio.h>

#include "lib/base/num.h"

enum { TEMPLATES = 3, STEPS = 6, NONE = -1, STORIES = 24, STORY_STEPS = 25 };

static int up(void **state)
{
    *state = rig_up(true);
    rig_settle(*state);
    return 0;
}

static int down(void **state)
{
    rig_down(*state);
    return 0;
}

/* ---- what is done ---- */

static void make(struct rig *r, int replicas, const char *strategy)
{
    char text[1000];
    str_format(
        text, sizeof text,
        "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"web\"},\"spec\":{\"replicas\":%d,%s"
        "\"selector\":{\"matchLabels\":{\"app\":\"x\"}},\"template\":{\"metadata\":{\"labels\":{\"app\":\"x\"},"
        "\"annotations\":{\"v\":\"1\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}}",
        replicas, strategy);
    rig_make(r, &kind_deployments, "default", text);
    rig_settle(r);
}

static void set_spec(struct rig *r, const char *key, const char *text)
{
    char path[100];
    str_format(path, sizeof path, "spec|%s", key);
    rig_set(r, &kind_deployments, "default", "web", NULL, path, text);
}

static void set_template(struct rig *r, int v)
{
    char text[16];
    str_format(text, sizeof text, "\"%d\"", v);
    set_spec(r, "template|metadata|annotations|v", text);
}

static void set_replicas(struct rig *r, int n)
{
    char text[16];
    str_format(text, sizeof text, "%d", n);
    set_spec(r, "replicas", text);
}

static struct rig_list of_template(struct rig *r, const struct kind *k, int v)
{
    static char part[2][16];
    static int at;
    char *text = part[at++ % 2];
    str_format(text, sizeof part[0], "\"v\":\"%d\"", v);
    return rig_list(r, k, "default", text);
}

static bool runs(struct rig *r, const char *pod)
{
    return str_eq(rig_read(r, &kind_pods, "default", pod, "status|phase"), "Running");
}

static int running(struct rig *r, int v)
{
    struct rig_list pods = of_template(r, &kind_pods, v);
    int n = 0;
    for (size_t i = 0; i < pods.len; i++)
        n += runs(r, pods.names[i]);
    return n;
}

/* Up to n pods of a template begin to run, or run no longer. */
static void mark(struct rig *r, int v, int n, bool run)
{
    struct rig_list pods = of_template(r, &kind_pods, v);
    for (size_t i = 0; i < pods.len && n > 0; i++) {
        if (runs(r, pods.names[i]) == run)
            continue;
        n--;
        rig_phase(r, "default", pods.names[i], run ? "Running" : "Pending");
        if (!run)
            rig_set(r, &kind_pods, "default", pods.names[i], "status", "status|conditions", "[]");
    }
}

/* ---- what comes of it ---- */

static int64_t number(struct rig *r, const struct kind *k, const char *name, const char *path)
{
    const char *text = rig_read(r, k, "default", name, path);
    int64_t n = 0;
    if (*text && num_parse(text, strlen(text), &n, NULL) < 0)
        fail_msg("%s of %s: expected a number, got '%s'", path, name, text);
    return n;
}

/* The size of a template's set, NONE without one; its status and its pods agree. */
static int size_of(struct rig *r, int v)
{
    struct rig_list sets = of_template(r, &kind_replicasets, v);
    if (sets.len == 0)
        return NONE;
    rig_expect_count(sets, 1);
    const char *name = sets.names[0];
    int64_t n = number(r, &kind_replicasets, name, "spec|replicas");
    int64_t seen = number(r, &kind_replicasets, name, "status|replicas"),
            available = number(r, &kind_replicasets, name, "status|availableReplicas"),
            pods = (int64_t)of_template(r, &kind_pods, v).len;
    if (seen != n || pods != n || available != running(r, v))
        fail_msg("set %d of %lld: status.replicas %lld, pods %lld, available %lld of %d", v,
                 (long long)n, (long long)seen, (long long)pods, (long long)available,
                 running(r, v));
    return (int)n;
}

static void check_status(struct rig *r, int newest)
{
    int64_t total = 0, available = 0;
    for (int v = 1; v <= TEMPLATES; v++) {
        total += num_max(0, size_of(r, v));
        available += running(r, v);
    }
    const struct {
        const char *path;
        int64_t want;
    } rows[] = {{"status|replicas", total},
                {"status|updatedReplicas", num_max(0, size_of(r, newest))},
                {"status|availableReplicas", available},
                {"status|unavailableReplicas", total - available}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t got = number(r, &kind_deployments, "web", rows[i].path);
        if (got != rows[i].want)
            fail_msg("%s: expected %lld, got %lld", rows[i].path, (long long)rows[i].want,
                     (long long)got);
    }
}

/* ---- stories ---- */

struct step {
    enum { END, RUN, FAIL, TEMPLATE, SCALE, SCALE_WITH_TEMPLATE, PAUSE, RESUME } what;
    int v, n;
    int sizes[TEMPLATES]; /* afterwards, by template */
};

struct story {
    const char *sentence;
    int replicas;
    const char *strategy;
    struct step steps[STEPS];
};

#define ROLLING(surge, unavailable)                                                   \
    "\"strategy\":{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"maxSurge\":" surge \
    ",\"maxUnavailable\":" unavailable "}},"
#define ALL_RUN(n)          \
    {                       \
        RUN, 1, (n),        \
        {                   \
            (n), NONE, NONE \
        }                   \
    }
#define STALLED         \
    ALL_RUN(5),         \
    {                   \
        TEMPLATE, 2, 0, \
        {               \
            4, 3, NONE  \
        }               \
    }

static const struct story stories[] = {
    {"5 at 25% stand still at 4 + 3 and go on with each pod that runs",
     5,
     "",
     {STALLED, {RUN, 2, 1, {3, 4, NONE}}, {RUN, 2, 3, {0, 5, NONE}}, {RUN, 2, 1, {0, 5, NONE}}}},
    {"an old pod that fails is kept while as many new ones wait",
     5,
     "",
     {STALLED, {FAIL, 1, 1, {4, 3, NONE}}}},
    {"old pods that never ran are kept as well", 5, "", {{TEMPLATE, 2, 0, {4, 3, NONE}}}},
    {"a third template takes the second one's place, back to the first both go",
     5,
     "\"revisionHistoryLimit\":0,",
     {STALLED,
      {TEMPLATE, 3, 0, {4, 0, 3}},
      {TEMPLATE, 1, 0, {5, 0, 0}},
      {RUN, 1, 1, {5, NONE, NONE}}}},
    {"scaled, sets grow and shrink in proportion",
     5,
     "",
     {STALLED,
      {SCALE, 0, 8, {6, 4, NONE}},
      {SCALE, 0, 2, {2, 1, NONE}},
      {SCALE, 0, 0, {0, 0, NONE}},
      {SCALE, 0, 3, {0, 3, NONE}}}},
    {"scaled by the change that brings the template, the old set is scaled first",
     5,
     "",
     {ALL_RUN(5), {SCALE_WITH_TEMPLATE, 2, 8, {6, 4, NONE}}}},
    {"scaled by the change that brings a third template",
     5,
     "",
     {STALLED, {SCALE_WITH_TEMPLATE, 3, 2, {2, 0, 1}}}},
    {"no surge", 3, ROLLING("0", "1"), {ALL_RUN(3), {TEMPLATE, 2, 0, {2, 1, NONE}}}},
    {"nothing unavailable", 3, ROLLING("1", "0"), {ALL_RUN(3), {TEMPLATE, 2, 0, {3, 1, NONE}}}},
    {"a surge beyond the number",
     4,
     ROLLING("10", "0"),
     {ALL_RUN(4), {TEMPLATE, 2, 0, {4, 4, NONE}}}},
    {"all may be unavailable", 4, ROLLING("0", "10"), {ALL_RUN(4), {TEMPLATE, 2, 0, {0, 4, NONE}}}},
    {"surge is rounded up, unavailable down",
     3,
     ROLLING("\"1%\"", "\"99%\""),
     {ALL_RUN(3), {TEMPLATE, 2, 0, {1, 3, NONE}}}},
    {"both rounded to nothing: one may be unavailable",
     3,
     ROLLING("\"0%\"", "\"1%\""),
     {ALL_RUN(3), {TEMPLATE, 2, 0, {2, 1, NONE}}}},
    {"paused, the number is followed and the template is not",
     2,
     "",
     {ALL_RUN(2),
      {PAUSE, 2, 0, {2, NONE, NONE}},
      {SCALE, 0, 4, {4, NONE, NONE}},
      {RUN, 1, 2, {4, NONE, NONE}},
      {RESUME, 0, 0, {3, 2, NONE}}}},
    {"paused in a rollout, it is scaled in proportion and goes no further",
     5,
     "",
     {STALLED,
      {PAUSE, 2, 0, {4, 3, NONE}},
      {SCALE, 0, 8, {6, 4, NONE}},
      {RUN, 2, 4, {6, 4, NONE}}}},
};

static void take(struct rig *r, const struct step *s)
{
    switch (s->what) {
    case RUN:
    case FAIL:
        mark(r, s->v, s->n, s->what == RUN);
        break;
    case TEMPLATE:
        set_template(r, s->v);
        break;
    case SCALE_WITH_TEMPLATE:
        set_template(r, s->v);
        set_replicas(r, s->n);
        break;
    case SCALE:
        set_replicas(r, s->n);
        break;
    case PAUSE:
        set_spec(r, "paused", "true");
        set_template(r, s->v);
        break;
    case RESUME:
        set_spec(r, "paused", "false");
        break;
    case END:
        break;
    }
    rig_settle(r);
}

static void stories_come_to_the_real_numbers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof stories / sizeof *stories; i++) {
        const struct story *story = &stories[i];
        struct rig *r = rig_up(true);
        make(r, story->replicas, story->strategy);
        int newest = 1;
        for (size_t k = 0; k < STEPS && story->steps[k].what != END; k++) {
            const struct step *s = &story->steps[k];
            take(r, s);
            if (s->what == TEMPLATE || s->what == SCALE_WITH_TEMPLATE || s->what == PAUSE)
                newest = s->v;
            int got[TEMPLATES];
            for (int v = 1; v <= TEMPLATES; v++)
                got[v - 1] = size_of(r, v);
            if (memcmp(got, s->sizes, sizeof got) != 0)
                fail_msg("%s, step %zu: expected %d, %d, %d, got %d, %d, %d", story->sentence,
                         k + 1, s->sizes[0], s->sizes[1], s->sizes[2], got[0], got[1], got[2]);
            check_status(r, newest);
        }
        rig_down(r);
    }
}

/* ---- random stories ---- */

static uint64_t seed;
static int dice(int n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (int)(seed % (uint64_t)n);
}

struct bounds {
    const char *strategy;
    int surge_percent, unavailable_percent;
};

/* Not too many pods, and no step left: the new set is complete or may not grow, and the old ones
 * may not shrink. */
static void check_rest(struct rig *r, const struct bounds *b, int replicas, int newest)
{
    int surge = (replicas * b->surge_percent + 99) / 100,
        unavailable = replicas * b->unavailable_percent / 100, old = 0;
    if (surge == 0 && unavailable == 0)
        unavailable = replicas > 0;
    for (int v = 1; v <= TEMPLATES; v++)
        old += v == newest ? 0 : (int)num_max(0, size_of(r, v));
    int new = size_of(r, newest), live = running(r, newest);
    bool full = new == replicas || old + new == replicas + surge;
    if (new == NONE || new > replicas || old + new > replicas + surge || !full ||
        (old > 0 && old + live > replicas - unavailable))
        fail_msg("replicas %d + %d - %d: %d old and %d new pods, %d of these run", replicas, surge,
                 unavailable, old, new, live);
    check_status(r, newest);
}

static void whatever_comes_the_bounds_hold_and_nothing_is_left_to_do(void **state)
{
    (void)state;
    static const struct bounds bounds[] = {
        {"", 25, 25},
        {ROLLING("\"50%\"", "\"0%\""), 50, 0},
        {ROLLING("\"0%\"", "\"34%\""), 0, 34},
        {ROLLING("\"100%\"", "\"100%\""), 100, 100},
    };
    for (unsigned n = 0; n < STORIES; n++) {
        const struct bounds *b = &bounds[n % (sizeof bounds / sizeof *bounds)];
        seed = 88172645463325252u + n;
        struct rig *r = rig_up(true);
        int replicas = dice(9), newest = 1;
        make(r, replicas, b->strategy);
        for (int i = 0; i < STORY_STEPS; i++) {
            int what = dice(10);
            if (what < 4)
                mark(r, 1 + dice(TEMPLATES), 1 + dice(5), what > 0);
            if (what >= 3 && what < 7)
                set_replicas(r, replicas = dice(9));
            if (what >= 6)
                set_template(r, newest = 1 + dice(TEMPLATES));
            rig_settle(r);
            check_rest(r, b, replicas, newest);
        }
        rig_down(r);
    }
}

/* ---- what it says of itself ---- */

static void expect_progressing(struct rig *r, const char *key, const char *want)
{
    char path[100];
    str_format(path, sizeof path, "status|conditions|Progressing|%s", key);
    rig_expect(r, &kind_deployments, "default", "web", path, want);
}

static void a_pause_does_not_count_against_the_deadline(void **state)
{
    struct rig *r = *state;
    make(r, 2, "");
    mark(r, 1, 2, true);
    rig_settle(r);
    expect_progressing(r, "reason", "NewReplicaSetAvailable");
    set_replicas(r, 3);
    rig_settle(r);
    expect_progressing(r, "reason", "NewReplicaSetAvailable");
    set_spec(r, "paused", "true");
    rig_settle(r);
    expect_progressing(r, "reason", "DeploymentPaused");
    expect_progressing(r, "status", "Unknown");
    set_spec(r, "paused", "false");
    rig_settle(r);
    expect_progressing(r, "reason", "DeploymentResumed");
    mark(r, 1, 1, true);
    rig_settle(r);
    expect_progressing(r, "reason", "NewReplicaSetAvailable");
}

static void the_current_set_follows_annotations_and_min_ready_seconds(void **state)
{
    struct rig *r = *state;
    make(r, 1, "");
    const char *path = "metadata|annotations|kubernetes.io/change-cause";
    struct rig_list sets = of_template(r, &kind_replicasets, 1);
    rig_set(r, &kind_deployments, "default", "web", NULL, path, "\"because\"");
    set_spec(r, "minReadySeconds", "7");
    rig_settle(r);
    rig_expect(r, &kind_replicasets, "default", sets.names[0], path, "because");
    rig_expect(r, &kind_replicasets, "default", sets.names[0], "spec|minReadySeconds", "7");
    set_template(r, 2);
    set_spec(r, "minReadySeconds", "0");
    rig_settle(r);
    rig_expect(r, &kind_replicasets, "default", sets.names[0], "spec|minReadySeconds", "7");
    rig_expect(r, &kind_replicasets, "default", of_template(r, &kind_replicasets, 2).names[0], path,
               "because");
}

/* Edited annotations change the proportions, not the bounds. */
static void notes_that_someone_wrote(void **state)
{
    (void)state;
    static const struct {
        const char *sentence, *desired, *max;
        bool paused; /* then the shares are seen as they are */
        int sizes[2];
    } rows[] = {
        {"as they were", "\"5\"", "\"7\"", true, {6, 4}},
        {"an empty desired: it is no scaling, the new set alone grows",
         "\"\"",
         "\"7\"",
         false,
         {4, 6}},
        {"a desired that is no number: the same", "\"x\"", "\"7\"", false, {4, 6}},
        {"an empty max: the status counts instead", "\"5\"", "\"\"", true, {6, 4}},
        {"a max that is no number", "\"5\"", "\"-7\"", true, {6, 4}},
        {"a max of 0", "\"5\"", "\"0\"", true, {6, 4}},
        {"a max beyond all numbers", "\"5\"", "\"99999999999\"", true, {6, 4}},
        {"a max of 1: no more is given than there is", "\"5\"", "\"1\"", true, {7, 3}},
        {"a max of 2^31 - 1: one set is left", "\"5\"", "\"2147483647\"", true, {8, 0}},
        {"the same, not paused", "\"5\"", "\"2147483647\"", false, {6, 4}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rig *r = rig_up(true);
        make(r, 5, "");
        mark(r, 1, 5, true);
        rig_settle(r);
        set_template(r, 2);
        rig_settle(r);
        for (int v = 1; v <= 2; v++) {
            struct rig_list sets = of_template(r, &kind_replicasets, v);
            const char *notes = "metadata|annotations|deployment.kubernetes.io/";
            char path[200];
            str_format(path, sizeof path, "%sdesired-replicas", notes);
            rig_set(r, &kind_replicasets, "default", sets.names[0], NULL, path, rows[i].desired);
            str_format(path, sizeof path, "%smax-replicas", notes);
            rig_set(r, &kind_replicasets, "default", sets.names[0], NULL, path, rows[i].max);
        }
        set_spec(r, "paused", rows[i].paused ? "true" : "false");
        set_replicas(r, 8);
        rig_settle(r);
        int got[2] = {size_of(r, 1), size_of(r, 2)};
        if (memcmp(got, rows[i].sizes, sizeof got) != 0)
            fail_msg("%s: expected %d, %d, got %d, %d", rows[i].sentence, rows[i].sizes[0],
                     rows[i].sizes[1], got[0], got[1]);
        rig_down(r);
    }
}

/* As if the set were much older: the API changes no creationTimestamp. */
static void age(struct rig *r, const char *set)
{
    const struct object *o = store_get(r->store, &kind_replicasets, "default", set);
    AUTO_JSONTREE *t = NULL;
    struct error err = ERROR_INIT;
    rig_check(jsontree_parse(&t, o->text, o->text_len, &err), &err, "set");
    jsonnode_set_str(t, jsonnode_get(jsontree_root(t), "metadata"), "creationTimestamp",
                     "2026-01-01T00:00:00Z");
    AUTO_STRBUF text = {0};
    jsontree_print(t, &text);
    rig_check(store_update(r->store, &kind_replicasets, strbuf_str(&text), text.len, 0, NULL, &err),
              &err, "age");
}

static void of_equal_sets_the_newer_one_grows_and_the_older_one_shrinks(void **state)
{
    (void)state;
    static const struct {
        int older, replicas, sizes[2];
    } rows[] = {{1, 7, {4, 5}}, {2, 7, {5, 4}}, {1, 5, {3, 4}}, {2, 5, {4, 3}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rig *r = rig_up(true);
        make(r, 6, ROLLING("2", "2"));
        mark(r, 1, 6, true);
        rig_settle(r);
        set_template(r, 2);
        rig_settle(r);
        assert_int_equal(size_of(r, 1), 4);
        assert_int_equal(size_of(r, 2), 4);
        age(r, of_template(r, &kind_replicasets, rows[i].older).names[0]);
        set_spec(r, "paused", "true"); /* only the shares */
        set_replicas(r, rows[i].replicas);
        rig_settle(r);
        int got[2] = {size_of(r, 1), size_of(r, 2)};
        if (memcmp(got, rows[i].sizes, sizeof got) != 0)
            fail_msg("set %d is older, %d replicas: expected %d, %d, got %d, %d", rows[i].older,
                     rows[i].replicas, rows[i].sizes[0], rows[i].sizes[1], got[0], got[1]);
        rig_down(r);
    }
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, up, down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stories_come_to_the_real_numbers),
        cmocka_unit_test(whatever_comes_the_bounds_hold_and_nothing_is_left_to_do),
        cmocka_unit_test(notes_that_someone_wrote),
        cmocka_unit_test(of_equal_sets_the_newer_one_grows_and_the_older_one_shrinks),
        T(a_pause_does_not_count_against_the_deadline),
        T(the_current_set_follows_annotations_and_min_ready_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
