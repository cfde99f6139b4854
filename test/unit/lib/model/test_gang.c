// SPDX-License-Identifier: Apache-2.0
#include "lib/model/gang.h"

#include "lib/model/names.h"
#include "test/unit/lib/model/build.h"

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
        {"labels before the bare label", P "/name=g," P "/min-available=3," P "=g", "", NULL,
         GANG_LABELS, "g", 3, true},
        {"the bare label before x", P "=g,scheduling.x-k8s.io/pod-group=g", "", NULL, GANG_BARE,
         "g", 0, true},
        {"x before koordinator, whose number counts", "scheduling.x-k8s.io/pod-group=g",
         K "/name=g," K "/min-available=2", NULL, GANG_X, "g", 2, true},
        {"koordinator before Kubernetes' own", "", K "/name=g," K "/min-available=2", "g",
         GANG_KOORD, "g", 2, true},
        {"two forms with the same number", P "/name=g," P "/min-available=2",
         K "/name=g," K "/min-available=2", NULL, GANG_LABELS, "g", 2, true},
        {"labels of one form do not count as annotations", K "/name=g," K "/min-available=2",
         P "=h", NULL, GANG_NONE, NULL, 0, false},
        {"a topology job", "gpu-topology=g,gpu-topology-replica=4", "", NULL, GANG_TOPOLOGY, "g", 4,
         false},
        {"a topology job of a size that nobody says", "gpu-topology=g", "", NULL, GANG_TOPOLOGY,
         "g", 0, false},
        {"the same said as true", "gpu-topology=g,gpu-topology-replica=true", "", NULL,
         GANG_TOPOLOGY, "g", 0, false},
        {"true names no topology job", "gpu-topology=true,gpu-topology-replica=2", "", NULL,
         GANG_NONE, NULL, 0, false},
        {"a gang before the topology job, whatever that says",
         P "=g,gpu-topology=h,gpu-topology-replica=x", "", NULL, GANG_BARE, "g", 0, true},
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

static void a_topology_job_has_a_name_and_perhaps_a_number(void **state)
{
    (void)state;
    static const struct {
        const char *labels, *error;
    } rows[] = {
        {"gpu-topology-replica=2", "label gpu-topology-replica: needs gpu-topology as well"},
        {"gpu-topology=g,gpu-topology-replica=0",
         "label gpu-topology-replica: must be between 1 and 100000: '0'"},
        {"gpu-topology=g,gpu-topology-replica=yes",
         "label gpu-topology-replica: not an integer: 'yes'"},
        {"gpu-topology=a b",
         "label gpu-topology: must have 1 to 253 letters, digits, '-', '_' or '.': 'a b'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pod p = {.ns = "d", .labels = build_labels(&arena, rows[i].labels)};
        struct gang_ref got;
        struct error err = ERROR_INIT;
        expect_int(rows[i].labels, -1, gang_of_pod(&p, &got, &err));
        expect_str(rows[i].labels, rows[i].error, err.text);
        expect_int(rows[i].labels, GANG_NONE, got.form);
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
        {P "/name=g," P "/min-available=2," P "=h", "", NULL,
         P "/name names gang 'g', " P " names 'h'"},
        {P "=g", "", "h", P " names gang 'g', spec.schedulingGroup names 'h'"},
        {P "/name=g," P "/min-available=2", K "/name=g," K "/min-available=3", NULL,
         P "/min-available says 2 pods, " K "/min-available says 3"},
        {P "=g,scheduling.x-k8s.io/pod-group=g", K "/name=g", NULL,
         "annotation " K "/name: needs " K "/min-available as well"},
        {P "=g", P "/match-policy=always", NULL,
         "annotation " P
         "/match-policy: must be once-satisfied, waiting-and-running or only-waiting: 'always'"},
        {P "=g", P "/match-policy=only-waiting," K "/match-policy=once-satisfied", NULL,
         P "/match-policy and " K "/match-policy differ"},
        {P "=g," P "/match-policy=never", "", NULL,
         "label " P
         "/match-policy: must be once-satisfied, waiting-and-running or only-waiting: 'never'"},
        {P "=g", K "/groups=d/g", NULL,
         "annotation " K
         "/groups: must be a JSON list of gangs such as [\"ns/a\",\"ns/b\"]: 'd/g'"},
        {P "=g", K "/groups=[\"d/h\"]", NULL,
         "annotation " K "/groups: does not name d/g, whose list it is"},
        {"", "", "",
         "field spec.schedulingGroup: must have 1 to 253 letters, digits, '-', '_' or '.': ''"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pod p = {.ns = "d",
                        .labels = build_labels(&arena, rows[i].labels),
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

static void a_list_without_a_gang_is_an_error_and_a_policy_is_not(void **state)
{
    (void)state;
    struct gang_ref got;
    struct error err = ERROR_INIT;
    struct pod p = {.ns = "d", .annotations = build_labels(&arena, P "/match-policy=anything")};
    expect_int("a policy without a gang means nothing", 0, gang_of_pod(&p, &got, &err));
    p.annotations = build_labels(&arena, P "/groups=[]");
    expect_int("a list without a gang", -1, gang_of_pod(&p, &got, &err));
    expect_str("says so", "annotation " P "/groups: the pod is in no gang", err.text);
    expect_done();
}

static void what_a_pod_wishes_for_its_gang(void **state)
{
    (void)state;
    struct gang_ref got;
    struct error err = ERROR_INIT;
    struct label wishes[] = {{.key = K "/match-policy", .value = "only-waiting"},
                             {.key = P "/groups", .value = "[\"d/g\", \"e/h\"]"}};
    struct pod p = {.ns = "d",
                    .labels = build_labels(&arena, P "=g,scheduling.x-k8s.io/pod-group=g"),
                    .annotations = {.items = wishes, .len = 2}};
    expect_int("it is legal", 0, gang_of_pod(&p, &got, &err));
    expect_str("no error", "", err.text);
    expect_int("its policy", GANG_ONLY_WAITING, got.match);
    expect_str("its list", wishes[1].value, got.list);
    expect_int("both forms", 1 << GANG_BARE | 1 << GANG_X, got.forms);
    p.ns = NULL;
    p.labels = build_labels(&arena, P "=other");
    expect_int("without a namespace nobody can tell whether it is in its list", 0,
               gang_of_pod(&p, &got, &err));
    p.labels = build_labels(&arena, P "=g," P "/match-policy=waiting-and-running");
    p.annotations = (struct labels){0};
    expect_int("a policy as a label", 0, gang_of_pod(&p, &got, &err));
    expect_int("counts too", GANG_WAITING_AND_RUNNING, got.match);
    p.labels = build_labels(&arena, P "=g");
    expect_int("without wishes", 0, gang_of_pod(&p, &got, &err));
    expect_int("nothing is said", GANG_MATCH_UNSAID, got.match);
    expect_str("about any list", NULL, got.list);
    expect_str("which is once-satisfied", "once-satisfied", gang_match_name(got.match));
    expect_done();
}

static void lists_of_gangs(void **state)
{
    (void)state;
    struct strbuf many = {0}, most = {0}, large = {0}, deep = {0};
    strbuf_addc(&many, '[');
    for (int i = 0; i <= GANG_LIST_MAX; i++) {
        if (i == GANG_LIST_MAX) {
            strbuf_add(&most, strbuf_str(&many), many.len);
            strbuf_addc(&most, ']');
        }
        strbuf_addf(&many, "%s\"d/g%d\"", i > 0 ? "," : "", i);
    }
    strbuf_addc(&many, ']');
    for (int i = 0; i <= GANG_LIST_BYTES; i++)
        strbuf_addc(&large, ' ');
    for (int i = 0; i < 10000; i++)
        strbuf_addc(&deep, '[');
    const struct {
        const char *row, *text, *own, *message;
        size_t len;
    } rows[] = {
        {"two", "[\"d/b\",\"d/a\"]", "d/a", NULL, 2},
        {"one", "[\"d/a\"]", "d/a", NULL, 1},
        {"of several namespaces", "[\"d/a\",\"e/a\"]", NULL, NULL, 2},
        {"as many as may be", strbuf_str(&most), "d/g0", NULL, GANG_LIST_MAX},
        {"one too many", strbuf_str(&many), NULL, "must name 1 to 64 gangs, not 65", 0},
        {"none", "[]", NULL, "must name 1 to 64 gangs, not 0", 0},
        {"too large", strbuf_str(&large), NULL, "has 32769 bytes, more than 32768", 0},
        {"not JSON", "d/a,d/b", NULL,
         "must be a JSON list of gangs such as [\"ns/a\",\"ns/b\"]: 'd/a,d/b'", 0},
        {"an object", "{\"d/a\":1}", NULL,
         "must be a JSON list of gangs such as [\"ns/a\",\"ns/b\"]: '{\"d/a\":1}'", 0},
        {"nothing", "", NULL, "must be a JSON list of gangs such as [\"ns/a\",\"ns/b\"]: ''", 0},
        {"deep", strbuf_str(&deep), NULL,
         "must be a JSON list of gangs such as [\"ns/a\",\"ns/b\"]: "
         "'[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[['",
         0},
        {"a number in it", "[\"d/a\",7]", NULL, "[1]: must be namespace/name of a gang: number", 0},
        {"no namespace", "[\"a\"]", NULL, "[0]: must be namespace/name of a gang: 'a'", 0},
        {"an empty namespace", "[\"/a\"]", NULL, "[0]: must be namespace/name of a gang: '/a'", 0},
        {"an empty name", "[\"d/\"]", NULL, "[0]: must be namespace/name of a gang: 'd/'", 0},
        {"two slashes", "[\"d/a/b\"]", NULL, "[0]: must be namespace/name of a gang: 'd/a/b'", 0},
        {"a NUL", "[\"d/a\\u0000\"]", NULL, "[0]: must be namespace/name of a gang: string", 0},
        {"twice the same", "[\"d/a\",\"d/b\",\"d/a\"]", NULL, "names d/a twice", 0},
        {"without itself", "[\"d/b\"]", "d/a", "does not name d/a, whose list it is", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct error err = ERROR_INIT;
        const char **names = NULL;
        size_t len = 0;
        int rc = gang_read_list(rows[i].text, rows[i].own, &arena, &names, &len, &err);
        expect_int(rows[i].row, rows[i].message != NULL ? -1 : 0, rc);
        expect_str(rows[i].row, rows[i].message != NULL ? rows[i].message : "", err.text);
        if (rc == 0) {
            expect_int(rows[i].row, (int64_t)rows[i].len, (int64_t)len);
            for (size_t k = 1; k < len; k++)
                expect_true("sorted", strcmp(names[k - 1], names[k]) < 0);
        }
    }
    strbuf_deinit(&many);
    strbuf_deinit(&most);
    strbuf_deinit(&large);
    strbuf_deinit(&deep);
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
        TEST(a_topology_job_has_a_name_and_perhaps_a_number),
        TEST(names_have_a_bound),
        TEST(a_list_without_a_gang_is_an_error_and_a_policy_is_not),
        TEST(what_a_pod_wishes_for_its_gang),
        TEST(lists_of_gangs),
        TEST(a_group_goes_with_its_arena),
    };
    return cmocka_run_group_tests_name("gang", tests, NULL, NULL);
}
