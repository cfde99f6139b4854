// SPDX-License-Identifier: Apache-2.0
#include "lib/model/gang.h"

#include "lib/model/names.h"
#include "test/unit/lib/model/build.h"

static struct arena arena;

static int setup(void **state)
{
    (void)state;
    arena_init(&arena, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

#define P "pod-group.scheduling.sigs.k8s.io"
#define K "gang.scheduling.koordinator.sh"

static void five_forms_name_a_gang(void **state)
{
    (void)state;
    static const struct {
        const char *row, *labels, *annotations, *group;
        enum gang_form form;
        const char *name;
        int32_t min;
        bool mentioned;
    } rows[] = {
        {"no gang", "a=b", "c=d", NULL, GANG_NONE, NULL, 0, false},
        {"labels", P "/name=g," P "/min-available=3", "", NULL, GANG_LABELS, "g", 3, true},
        {"the smallest gang", P "/name=g," P "/min-available=1", "", NULL, GANG_LABELS, "g", 1,
         true},
        {"the largest gang", P "/name=g," P "/min-available=100000", "", NULL, GANG_LABELS, "g",
         100000, true},
        {"the bare label", P "=g", "", NULL, GANG_BARE, "g", 0, true},
        {"scheduler-plugins' label", "scheduling.x-k8s.io/pod-group=g", "", NULL, GANG_X, "g", 0,
         true},
        {"koordinator's annotations", "", K "/name=g," K "/min-available=2", NULL, GANG_KOORD, "g",
         2, true},
        {"Kubernetes' own", "", "", "g", GANG_NATIVE, "g", 0, true},
        {"labels before the bare label", P "/name=g," P "/min-available=3," P "=h", "", NULL,
         GANG_LABELS, "g", 3, true},
        {"the bare label before x", P "=g,scheduling.x-k8s.io/pod-group=h", "", NULL, GANG_BARE,
         "g", 0, true},
        {"x before koordinator", "scheduling.x-k8s.io/pod-group=g",
         K "/name=h," K "/min-available=2", NULL, GANG_X, "g", 0, true},
        {"koordinator before Kubernetes' own", "", K "/name=g," K "/min-available=2", "h",
         GANG_KOORD, "g", 2, true},
        {"labels of one form do not count as annotations", K "/name=g," K "/min-available=2",
         P "=h", NULL, GANG_NONE, NULL, 0, false},
        {"names with all that is allowed", P "=aZ0-_.9", "", NULL, GANG_BARE, "aZ0-_.9", 0, true},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pod p = {.labels = build_labels(&arena, rows[i].labels),
                        .annotations = build_labels(&arena, rows[i].annotations),
                        .scheduling_group = rows[i].group};
        struct gang_ref got;
        struct error err = ERROR_INIT;
        expect_int(rows[i].row, 0, gang_of_pod(&p, &got, &err));
        expect_str(rows[i].row, "", err.text);
        expect_int(rows[i].row, rows[i].form, got.form);
        expect_str(rows[i].row, rows[i].name, got.name);
        expect_int(rows[i].row, rows[i].min, got.min_available);
        expect_int(rows[i].row, rows[i].mentioned,
                   gang_is_mentioned(&p.labels, &p.annotations, p.scheduling_group));
    }
    expect_done();
}

static void a_form_that_is_begun_must_be_whole(void **state)
{
    (void)state;
    static const struct {
        const char *labels, *annotations, *group, *message;
    } rows[] = {
        {P "/name=g", "", NULL, "label " P "/name: needs " P "/min-available as well"},
        {P "/min-available=3", "", NULL, "label " P "/min-available: needs " P "/name as well"},
        {P "/min-available=3," P "=g", "", NULL,
         "label " P "/min-available: needs " P "/name as well"},
        {P "/name=g," P "/min-available=0", "", NULL,
         "label " P "/min-available: must be between 1 and 100000: '0'"},
        {P "/name=g," P "/min-available=100001", "", NULL,
         "label " P "/min-available: must be between 1 and 100000: '100001'"},
        {P "/name=g," P "/min-available=-1", "", NULL,
         "label " P "/min-available: must be between 1 and 100000: '-1'"},
        {P "/name=g," P "/min-available=99999999999999999999", "", NULL,
         "label " P "/min-available: must be between 1 and 100000: '99999999999999999999'"},
        {P "/name=g," P "/min-available=two", "", NULL,
         "label " P "/min-available: not an integer: 'two'"},
        {P "/name=g," P "/min-available=", "", NULL,
         "label " P "/min-available: not an integer: ''"},
        {P "/name=," P "/min-available=2", "", NULL,
         "label " P "/name: must have 1 to 253 letters, digits, '-', '_' or '.': ''"},
        {P "=", "", NULL, "label " P ": must have 1 to 253 letters, digits, '-', '_' or '.': ''"},
        {"scheduling.x-k8s.io/pod-group=a/b", "", NULL,
         "label scheduling.x-k8s.io/pod-group: must have 1 to 253 letters, digits, '-', '_' or '.': 'a/b'"},
        {"", K "/name=g", NULL, "annotation " K "/name: needs " K "/min-available as well"},
        {"", K "/min-available=2", NULL,
         "annotation " K "/min-available: needs " K "/name as well"},
        {"", K "/name=a b," K "/min-available=2", NULL,
         "annotation " K "/name: must have 1 to 253 letters, digits, '-', '_' or '.': 'a b'"},
        {"", "", "",
         "field spec.schedulingGroup: must have 1 to 253 letters, digits, '-', '_' or '.': ''"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pod p = {.labels = build_labels(&arena, rows[i].labels),
                        .annotations = build_labels(&arena, rows[i].annotations),
                        .scheduling_group = rows[i].group};
        struct gang_ref got;
        struct error err = ERROR_INIT;
        expect_int(rows[i].message, -1, gang_of_pod(&p, &got, &err));
        expect_str(rows[i].message, rows[i].message, err.text);
        expect_int(rows[i].message, ERROR_INVALID, err.code);
        expect_int(rows[i].message, GANG_NONE, got.form);
        expect_true(rows[i].message,
                    gang_is_mentioned(&p.labels, &p.annotations, p.scheduling_group));
    }
    expect_done();
}

static void names_have_a_bound(void **state)
{
    (void)state;
    char name[GANG_NAME_MAX + 2];
    struct pod p = {.annotations = {0}};
    struct gang_ref got;

    memset(name, 'a', sizeof name);
    name[GANG_NAME_MAX + 1] = '\0';
    build_annotate(&arena, &p, NAME_ANN_GANG_KOORD_NAME, name);
    build_annotate(&arena, &p, NAME_ANN_GANG_KOORD_MIN, "2");
    expect_int("254 bytes", -1, gang_of_pod(&p, &got, NULL));
    name[GANG_NAME_MAX] = '\0';
    expect_int("253 bytes", 0, gang_of_pod(&p, &got, NULL));
    expect_done();
}

static void a_group_goes_with_its_arena(void **state)
{
    (void)state;
    struct arena own;

    arena_init(&own, 0);
    struct pod_group *g = arena_new(&own, struct pod_group, 1);
    g->name = arena_strdup(&own, "a");
    g->arena = own;
    pod_group_free(g); /* the leak checker is the judge */
    pod_group_free(NULL);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(five_forms_name_a_gang),
        TEST(a_form_that_is_begun_must_be_whole),
        TEST(names_have_a_bound),
        TEST(a_group_goes_with_its_arena),
    };
    return cmocka_run_group_tests_name("gang", tests, NULL, NULL);
}
