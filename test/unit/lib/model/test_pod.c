// SPDX-License-Identifier: Apache-2.0
/*
 * A pod in one line: containers are separated by blanks. "c" a container, "i" an ordinary init
 * container, "s" a sidecar; then requests, and with '@' the actual and with '#' the allocated
 * resources of its status:
 *
 *     "s:cpu=1 i:cpu=2 c:cpu=3@cpu=4#cpu=2"
 */
#include "lib/model/pod.h"

#include "lib/model/names.h"
#include "test/unit/lib/model/build.h"
#include "test/unit/lib/model/links_kit.h"

/* Cuts s at the mark; what follows, or NULL. */
static char *cut(char *s, char mark)
{
    char *at = s ? strchr(s, mark) : NULL;
    if (!at)
        return NULL;
    *at = '\0';
    return at + 1;
}

static struct resized resized_of(const char *actual, const char *allocated)
{
    return (struct resized){.has_actual = actual != NULL,
                            .has_allocated = allocated != NULL,
                            .actual = build_resources(&arena, actual),
                            .allocated = build_resources(&arena, allocated)};
}

static struct pod pod_of(const char *line)
{
    struct pod p = {.sizes = arena_new(&arena, struct pod_sizes, 1),
                    .containers = arena_new(&arena, struct container, 8),
                    .init_containers = arena_new(&arena, struct container, 8)};
    char *rest = arena_strdup(&arena, line);

    while (rest && *rest) {
        char *word = rest;
        rest = cut(word, ' ');
        struct container *c = word[0] == 'c' ? &p.containers[p.containers_len++]
                                             : &p.init_containers[p.init_containers_len++];
        char *allocated = cut(word, '#'), *actual = cut(word, '@');
        c->sidecar = word[0] == 's';
        c->requests = build_resources(&arena, word + 2);
        c->resized = arena_new(&arena, struct resized, 1);
        *c->resized = resized_of(actual, allocated);
    }
    return p;
}

static void expect_request(const char *row, const struct pod *p, const char *expected)
{
    struct resources got, want = build_resources(&arena, expected);
    AUTO_STRBUF a;
    AUTO_STRBUF b;

    strbuf_init(&a);
    strbuf_init(&b);
    expect_true(row, pod_effective_request(p, &arena, &got));
    resources_print(&want, &a);
    resources_print(&got, &b);
    expect_str(row, strbuf_str(&a), strbuf_str(&b));
}

static void containers_sidecars_and_init_containers_make_the_largest_moment(void **state)
{
    (void)state;
    static const struct {
        const char *row, *pod, *request;
    } rows[] = {
        {"a pod of nothing", "", ""},
        {"one container", "c:cpu=1,memory=1Gi", "cpu=1,memory=1Gi"},
        {"containers add up", "c:cpu=1 c:cpu=2,memory=1 c:memory=5", "cpu=3,memory=6"},
        {"a smaller init container hides", "c:cpu=3 i:cpu=2", "cpu=3"},
        {"a larger init container decides", "c:cpu=3 i:cpu=4", "cpu=4"},
        {"init containers run one after the other", "c:cpu=1 i:cpu=2 i:cpu=2", "cpu=2"},
        {"each resource has its own moment", "c:cpu=3,memory=1 i:cpu=1,memory=7", "cpu=3,memory=7"},
        {"a sidecar adds to the containers", "s:cpu=2 c:cpu=3", "cpu=5"},
        {"sidecars add up", "s:cpu=2 s:cpu=1 c:cpu=3", "cpu=6"},
        {"an init container has the sidecars before it beside it", "s:cpu=2 i:cpu=4 c:cpu=3",
         "cpu=6"},
        {"and not those after it", "i:cpu=4 s:cpu=2 c:cpu=1", "cpu=4"},
        {"between two sidecars only the first counts", "s:cpu=1 i:cpu=5 s:cpu=3 c:cpu=1", "cpu=6"},
        {"behind two sidecars both count", "s:cpu=1 s:cpu=3 i:cpu=5 c:cpu=1", "cpu=9"},
        {"sidecars alone", "s:cpu=1 s:cpu=3", "cpu=4"},
        {"only an init container", "i:cpu=1,aliyun.com/gpu-mem=4", "cpu=1,aliyun.com/gpu-mem=4"},
        {"gpu-mem like cpu",
         "s:aliyun.com/gpu-mem=1 i:aliyun.com/gpu-mem=4 c:aliyun.com/gpu-mem=2 c:cpu=1",
         "cpu=1,aliyun.com/gpu-mem=5"},
        {"different extended resources", "i:b/b=2,a/a=1 c:c/c=3 s:a/a=1", "a/a=1,b/b=2,c/c=3"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pod p = pod_of(rows[i].pod);
        expect_request(rows[i].row, &p, rows[i].request);
    }
    expect_done();
}

static void overhead_comes_on_top_of_everything(void **state)
{
    (void)state;
    struct pod p = pod_of("i:cpu=4 c:cpu=3,memory=1");

    p.sizes->overhead = build_resources(&arena, "cpu=250m,memory=100");
    expect_request("overhead", &p, "cpu=4250m,memory=101");
    p.sizes->has_requests = true;
    p.sizes->requests = build_resources(&arena, "cpu=1");
    expect_request("overhead on pod-level requests", &p, "cpu=1250m,memory=101");
    expect_done();
}

static void pod_level_requests_replace_what_they_name(void **state)
{
    (void)state;
    static const struct {
        const char *row, *pod, *level, *request;
    } rows[] = {
        {"larger", "c:cpu=1,memory=1", "cpu=2", "cpu=2,memory=1"},
        {"smaller", "c:cpu=3,memory=1", "cpu=2", "cpu=2,memory=1"},
        {"memory", "c:cpu=3,memory=1", "memory=7", "cpu=3,memory=7"},
        {"smaller than an init container", "i:cpu=9 c:cpu=1", "cpu=2", "cpu=2"},
        {"of a resource that no container names", "c:memory=1", "cpu=2", "cpu=2,memory=1"},
        {"explicitly 0", "c:cpu=3", "cpu=0", ""},
        {"huge pages", "c:hugepages-2Mi=2Mi,b/b=1", "hugepages-2Mi=4Mi", "hugepages-2Mi=4Mi,b/b=1"},
        {"huge pages that no container names", "c:b/b=1", "hugepages-1Gi=1Gi",
         "hugepages-1Gi=1Gi,b/b=1"},
        {"smaller huge pages", "c:hugepages-2Mi=8Mi", "hugepages-2Mi=4Mi", "hugepages-2Mi=4Mi"},
        {"extended resources and storage have no pod level", "c:b/b=1,ephemeral-storage=1",
         "b/b=5,ephemeral-storage=9,cpu=1", "cpu=1,b/b=1,ephemeral-storage=1"},
        {"and alone they change nothing", "c:cpu=1,b/b=1", "b/b=5", "cpu=1,b/b=1"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pod p = pod_of(rows[i].pod);
        p.sizes->has_requests = true;
        p.sizes->requests = build_resources(&arena, rows[i].level);
        expect_request(rows[i].row, &p, rows[i].request);
    }
    expect_done();
}

static void under_resize_the_largest_counts(void **state)
{
    (void)state;
    static const struct {
        const char *row, *pod;
        bool infeasible;
        const char *request;
    } rows[] = {
        {"spec is larger: the resize is still to come", "c:cpu=3@cpu=1#cpu=2", false, "cpu=3"},
        {"allocated is larger", "c:cpu=1@cpu=2#cpu=3", false, "cpu=3"},
        {"actual is larger: the resize down is not done", "c:cpu=1@cpu=3#cpu=1", false, "cpu=3"},
        {"without allocated", "c:cpu=1@cpu=2", false, "cpu=2"},
        {"each resource by itself", "c:cpu=1,memory=9@cpu=3,memory=5#cpu=2,memory=7", false,
         "cpu=3,memory=9"},
        {"infeasible: spec does not count", "c:cpu=9@cpu=1#cpu=2", true, "cpu=2"},
        {"infeasible, actual larger", "c:cpu=9@cpu=3#cpu=2", true, "cpu=3"},
        {"infeasible without a status: spec is all there is", "c:cpu=9", true, "cpu=9"},
        {"infeasible names only what the status names", "c:cpu=9,memory=5@cpu=3#cpu=2", true,
         "cpu=3"},
        {"status without resources does not count", "c:cpu=1#cpu=5", false, "cpu=1"},
        {"status with empty resources", "c:cpu=1@#cpu=5", false, "cpu=5"},
        {"a sidecar likewise", "s:cpu=1@cpu=3#cpu=2 c:cpu=1", false, "cpu=4"},
        {"a sidecar beside an init container", "s:cpu=1@cpu=3#cpu=2 i:cpu=5 c:cpu=1", false,
         "cpu=8"},
        {"an infeasible sidecar", "s:cpu=9@cpu=3#cpu=2 c:cpu=1", true, "cpu=4"},
        {"an ordinary init container only by spec", "i:cpu=2@cpu=7#cpu=8 c:cpu=1", false, "cpu=2"},
        {"also when infeasible", "i:cpu=2@cpu=1#cpu=1 c:cpu=1", true, "cpu=2"},
        {"one of two containers", "c:cpu=1@cpu=4#cpu=4 c:cpu=1", false, "cpu=5"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pod p = pod_of(rows[i].pod);
        p.resize_infeasible = rows[i].infeasible;
        expect_request(rows[i].row, &p, rows[i].request);
    }
    expect_done();
}

static void pod_level_status_counts_likewise(void **state)
{
    (void)state;
    static const struct {
        const char *row, *level, *actual, *allocated;
        bool infeasible;
        const char *request;
    } rows[] = {
        {"spec is larger", "cpu=3", "cpu=1", "cpu=2", false, "cpu=3,memory=1"},
        {"allocated is larger", "cpu=1", "cpu=2", "cpu=3", false, "cpu=3,memory=1"},
        {"actual is larger", "cpu=1", "cpu=3", "cpu=2", false, "cpu=3,memory=1"},
        {"without allocated", "cpu=1", "cpu=3", NULL, false, "cpu=3,memory=1"},
        {"without actual the status does not count", "cpu=1", NULL, "cpu=3", false,
         "cpu=1,memory=1"},
        {"infeasible", "cpu=9", "cpu=3", "cpu=2", true, "cpu=3,memory=1"},
        {"infeasible and not named by the status", "cpu=9", "memory=3", NULL, true, "memory=1"},
        {"what spec does not name stays the containers'", "cpu=1", "cpu=1,memory=50", "memory=60",
         false, "cpu=1,memory=1"},
        {"huge pages", "hugepages-2Mi=2Mi", "hugepages-2Mi=4Mi", "", false,
         "cpu=7,memory=1,hugepages-2Mi=4Mi"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pod p = pod_of("c:cpu=7,memory=1");
        p.sizes->has_requests = true;
        p.sizes->requests = build_resources(&arena, rows[i].level);
        p.sizes->status = resized_of(rows[i].actual, rows[i].allocated);
        p.resize_infeasible = rows[i].infeasible;
        expect_request(rows[i].row, &p, rows[i].request);
    }
    struct pod p = pod_of("c:cpu=7");
    p.sizes->status.has_actual = true;
    p.sizes->status.actual = build_resources(&arena, "cpu=50");
    expect_request("pod-level status without pod-level requests", &p, "cpu=7");
    expect_done();
}

static void sums_saturate(void **state)
{
    (void)state;
    static const struct {
        const char *row, *pod;
        int64_t sum;
    } rows[] = {
        {"containers", "c:memory=9223372036854775806 c:memory=2", RESOURCES_TOO_LARGE},
        {"containers at the end", "c:memory=9223372036854775805 c:memory=1",
         RESOURCES_TOO_LARGE - 1},
        {"a sidecar", "s:memory=9223372036854775807 c:memory=1", RESOURCES_TOO_LARGE},
        {"an init container and a sidecar", "s:memory=1 i:memory=9223372036854775807",
         RESOURCES_TOO_LARGE},
    };
    struct resources out;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pod p = pod_of(rows[i].pod);
        expect_true(rows[i].row, pod_effective_request(&p, &arena, &out));
        expect_int(rows[i].row, rows[i].sum, out.memory_bytes);
        expect_int("other resources stay right", 0, out.cpu_milli);
    }
    struct pod p = pod_of("c:memory=1");
    p.sizes->overhead = build_resources(&arena, "memory=9223372036854775807");
    expect_true("overhead", pod_effective_request(&p, &arena, &out));
    expect_int("overhead", RESOURCES_TOO_LARGE, out.memory_bytes);
    expect_done();
}

/* 300 names each. */
static struct resources names(const char *prefix)
{
    struct resources r = {0};

    for (unsigned i = 0; i < 300; i++) {
        const char *name = arena_printf(&arena, "%s%u", prefix, i);
        assert_int_equal(
            0, resources_set_text(&r, &arena, name, strlen(name), "1", 1, QUANTITY_UP, NULL));
    }
    return r;
}

static void too_many_names_are_said(void **state)
{
    (void)state;
    struct resources out;

    struct pod p = pod_of("c:cpu=1@cpu=1 c:cpu=1");
    p.containers[0].requests = names("a/");
    p.containers[0].resized->actual = names("b/");
    expect_int("in one container's status", false, pod_effective_request(&p, &arena, &out));
    p = pod_of("s:cpu=1@cpu=1");
    p.init_containers[0].requests = names("a/");
    p.init_containers[0].resized->actual = names("b/");
    expect_int("in a sidecar's status", false, pod_effective_request(&p, &arena, &out));
    p = pod_of("c:cpu=1 i:cpu=1");
    p.containers[0].requests = names("a/");
    p.init_containers[0].requests = names("b/");
    expect_int("in an init container", false, pod_effective_request(&p, &arena, &out));
    p = pod_of("c:cpu=1");
    p.sizes->has_requests = p.sizes->status.has_actual = true;
    p.sizes->requests = names("a/");
    p.sizes->status.actual = names("b/");
    expect_int("in the pod-level status", false, pod_effective_request(&p, &arena, &out));
    p = pod_of("c:cpu=1");
    p.sizes->has_requests = true;
    p.containers[0].requests = names("a/");
    p.sizes->requests = names("hugepages-");
    expect_int("in the pod-level requests", false, pod_effective_request(&p, &arena, &out));
    expect_done();
}

static void tolerations_cover_as_in_kubernetes(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        struct toleration t;
        const char *key, *value;
        enum taint_effect effect;
        bool covers;
    } rows[] = {
        {"the same in everything",
         {"k", TOLERATION_EQUAL, "v", TAINT_NO_SCHEDULE},
         "k",
         "v",
         TAINT_NO_SCHEDULE,
         true},
        {"another value",
         {"k", TOLERATION_EQUAL, "v", TAINT_NO_SCHEDULE},
         "k",
         "w",
         TAINT_NO_SCHEDULE,
         false},
        {"another key",
         {"k", TOLERATION_EQUAL, "v", TAINT_NO_SCHEDULE},
         "l",
         "v",
         TAINT_NO_SCHEDULE,
         false},
        {"another effect",
         {"k", TOLERATION_EQUAL, "v", TAINT_NO_SCHEDULE},
         "k",
         "v",
         TAINT_NO_EXECUTE,
         false},
        {"every effect", {"k", TOLERATION_EQUAL, "v", TAINT_ALL}, "k", "v", TAINT_NO_EXECUTE, true},
        {"Exists takes every value",
         {"k", TOLERATION_EXISTS, "", TAINT_NO_SCHEDULE},
         "k",
         "v",
         TAINT_NO_SCHEDULE,
         true},
        {"but not every key",
         {"k", TOLERATION_EXISTS, "", TAINT_ALL},
         "l",
         "v",
         TAINT_NO_SCHEDULE,
         false},
        {"Exists without a key takes everything",
         {"", TOLERATION_EXISTS, "", TAINT_ALL},
         "l",
         "v",
         TAINT_NO_EXECUTE,
         true},
        {"also when the key is not there at all",
         {NULL, TOLERATION_EXISTS, NULL, TAINT_ALL},
         "l",
         "v",
         TAINT_NO_EXECUTE,
         true},
        {"Equal without a value means the empty one",
         {"k", TOLERATION_EQUAL, NULL, TAINT_ALL},
         "k",
         "",
         TAINT_NO_SCHEDULE,
         true},
        {"a taint without a value",
         {"k", TOLERATION_EQUAL, "", TAINT_ALL},
         "k",
         NULL,
         TAINT_NO_SCHEDULE,
         true},
        {"a taint without a value is not every value",
         {"k", TOLERATION_EQUAL, "v", TAINT_ALL},
         "k",
         NULL,
         TAINT_NO_SCHEDULE,
         false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_int(rows[i].row, rows[i].covers,
                   toleration_covers(&rows[i].t, rows[i].key, rows[i].value, rows[i].effect));
    expect_done();
}

static void finished_pods_hold_nothing(void **state)
{
    (void)state;
    static const bool finished[] = {[POD_PENDING] = false,
                                    [POD_RUNNING] = false,
                                    [POD_SUCCEEDED] = true,
                                    [POD_FAILED] = true,
                                    [POD_UNKNOWN] = false};

    for (int phase = POD_PENDING; phase <= POD_UNKNOWN; phase++) {
        struct pod p = {.phase = (enum pod_phase)phase};
        expect_int("phase", finished[phase], pod_is_finished(&p));
    }
    expect_done();
}

static void a_pod_goes_with_its_arena(void **state)
{
    (void)state;
    struct arena own;

    arena_init(&own, 0);
    struct pod *p = arena_new(&own, struct pod, 1);
    p->name = arena_strdup(&own, "a");
    p->arena = own;
    pod_free(p); /* the leak checker is the judge */
    pod_free(NULL);
}

/* Kubernetes' formula, moment by moment, with all names of each. */
static void by_moments(const struct pod *p, struct resources *out)
{
    struct resources sidecars = {0}, peak = {0};
    *out = (struct resources){0};
    for (size_t i = 0; i < p->containers_len; i++)
        (void)resources_add(out, &p->containers[i].requests, &arena);
    for (size_t i = 0; i < p->init_containers_len; i++) {
        const struct container *c = &p->init_containers[i];
        struct resources moment = {0};
        (void)resources_add(&moment, &c->requests, &arena);
        (void)resources_add(&moment, &sidecars, &arena);
        if (c->sidecar)
            sidecars = moment;
        (void)resources_max(&peak, &moment, &arena);
    }
    (void)resources_add(out, &sidecars, &arena);
    (void)resources_max(out, &peak, &arena);
}

static void random_container(struct container *c, uint64_t *state)
{
    static const char *const names[] = {"cpu", "memory", "pods", "a/a",
                                        "b/b", "c/c",    "d/d",  "aliyun.com/gpu-mem"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        uint64_t r = links_kit_random(state) % 16;
        const char *text = r == 15 ? "9223372036854775807" : arena_printf(&arena, "%d", (int)r % 6);
        if (r >= 4)
            assert_int_equal(0, resources_set_text(&c->requests, &arena, names[i], strlen(names[i]),
                                                   text, strlen(text), QUANTITY_UP, NULL));
    }
}

static void any_pod_by_moments(void **state)
{
    (void)state;
    uint64_t seed = 20;
    for (int round = 0; round < 20000; round++) {
        struct container list[12] = {0};
        size_t inits = links_kit_random(&seed) % 9;
        struct pod p = {.containers = list + inits,
                        .containers_len = links_kit_random(&seed) % 4,
                        .init_containers = list,
                        .init_containers_len = inits};
        for (size_t i = 0; i < inits + p.containers_len; i++) {
            random_container(&list[i], &seed);
            list[i].sidecar = i < inits && links_kit_random(&seed) % 2 == 0;
        }
        struct resources got, want;
        by_moments(&p, &want);
        assert_true(pod_effective_request(&p, &arena, &got));
        if (!resources_equal(&want, &got) || want.has != got.has || want.extra_len != got.extra_len)
            fail_msg("round %d differs", round);
        arena_reset(&arena);
    }
}

/* A sidecar of many names beside many init containers: the cost is that of the spec. */
static void sidecars_beside_many(void **state)
{
    enum { INITS = 1000 };
    (void)state;
    struct pod p = {.init_containers = arena_new(&arena, struct container, INITS + 1),
                    .init_containers_len = INITS + 1};
    p.init_containers[0] = (struct container){.sidecar = true, .requests = names("a/")};
    for (int i = 1; i <= INITS; i++)
        p.init_containers[i].requests = build_resources(&arena, "cpu=1,b/b=2");
    struct arena own;
    struct resources out;
    arena_init(&own, 0);
    expect_true("all names", pod_effective_request(&p, &own, &out));
    expect_int("beside them", 2, resources_get(&out, "b/b", NULL));
    expect_int("and theirs", 1, resources_get(&out, "a/7", NULL));
    expect_true("the sidecar's names are not copied for each", arena_bytes(&own) < 256 * 1024);
    arena_deinit(&own);
    expect_done();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(containers_sidecars_and_init_containers_make_the_largest_moment),
        TEST(overhead_comes_on_top_of_everything),
        TEST(pod_level_requests_replace_what_they_name),
        TEST(under_resize_the_largest_counts),
        TEST(pod_level_status_counts_likewise),
        TEST(sums_saturate),
        TEST(too_many_names_are_said),
        TEST(any_pod_by_moments),
        TEST(sidecars_beside_many),
        TEST(tolerations_cover_as_in_kubernetes),
        TEST(finished_pods_hold_nothing),
        TEST(a_pod_goes_with_its_arena),
    };
    return cmocka_run_group_tests_name("pod", tests, NULL, NULL);
}
