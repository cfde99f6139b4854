// SPDX-License-Identifier: Apache-2.0
/*
 * ResourcePolicies in the running scheduler: what a Binding says, and the timer that opens the next
 * unit.
 */
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/log.h"
#include "lib/base/str.h"
#include "lib/kube/decode.h"
#include "lib/kube/http.h"
#include "lib/model/names.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/sched_loop_kit.h"

static struct sched_loop_kit k;

static int setup(void **state)
{
    (void)state;
    sched_loop_kit_init_with(&k, &(struct sched_loop_kit_config){.no_events = true});
    sched_loop_kit_start(&k);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sched_loop_kit_deinit(&k);
    return 0;
}

/* ' for ". It was made now. */
static struct policy *policy(const char *spec)
{
    AUTO_STRBUF text = {0};
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    struct policy *p = NULL;
    char created[CLOCK_RFC3339_SIZE];
    clock_rfc3339(clock_wall_ns(), 0, created);
    strbuf_addf(
        &text,
        "{'metadata':{'namespace':'d','name':'web','uid':'u-1','creationTimestamp':'%s'},'spec':%s}",
        created, spec);
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] == '\'')
            text.ptr[i] = '"';
    if (json_parse(&doc, strbuf_str(&text), text.len, &err) < 0 ||
        decode_resource_policy(json_root(doc), &p, &err) < 0 || p->invalid != NULL)
        fail_msg("%s: %s", spec, err.text);
    return p;
}

static void two_pools(void)
{
    RESET(&k.intake, INTAKE_NODES,
          NODE(.name = "a1", .cpu_milli = 1000, .labels = PAIRS("pool", "a")),
          NODE(.name = "b1", .cpu_milli = 4000, .labels = PAIRS("pool", "b")));
}

#define UNITS(more)                                                     \
    "{'units':[{'resource':'ecs','nodeSelector':{'pool':'a'}" more "}," \
    "{'resource':'ecs','nodeSelector':{'pool':'b'}}]"

static void a_binding_says_the_unit_and_what_it_gives(void **state)
{
    (void)state;
    two_pools();
    SEND(&k.intake, INTAKE_POLICIES, REFLECTOR_PUT,
         policy(UNITS(
             ",'podLabels':{'tier':'one','app':'stolen'},'podAnnotations':{'who':'me'}") "}"));
    SEND(&k.intake, INTAKE_PODS, REFLECTOR_PUT,
         POD(.name = "p", .labels = PAIRS("app", "mine"),
             .annotations = PAIRS(NAME_ANN_UNIT, "web/1/u-1", "cpuset", "x"),
             .c = {{.cpu_milli = 1000}}));
    sched_loop_kit_settle(&k);
    shell_await(k.twin, "POST", "/pods/p/binding", 1);
    expect_int("the unit", 1,
               shell_count(k.twin, "POST", "\"cosched.io/resource-unit\":\"web/0/u-1\""));
    expect_int("and not what it brought along, nor blanked", 0,
               shell_count(k.twin, "POST", "\"cosched.io/resource-unit\":\"\""));
    expect_int("other results are blanked", 1, shell_count(k.twin, "POST", "\"cpuset\":\"\""));
    expect_int("the deletion cost", 1,
               shell_count(k.twin, "POST", "\"" NAME_ANN_DELETION_COST "\":\"64\""));
    expect_int("noted as ours", 1,
               shell_count(k.twin, "POST", "\"" NAME_ANN_DELETION_COST_OURS "\":\"64\""));
    expect_int("the annotation", 1, shell_count(k.twin, "POST", "\"who\":\"me\""));
    expect_int("the label", 1, shell_count(k.twin, "POST", "\"labels\":{\"tier\":\"one\"}"));
    expect_done();
}

/* Nothing happens but that time goes by. */
static void time_opens_the_next_unit(void **state)
{
    (void)state;
    two_pools();
    SEND(&k.intake, INTAKE_POLICIES, REFLECTOR_PUT,
         policy(UNITS(",'max':5") ",'whenTryNextUnits':{'policy':'TimeoutOrExceedMax',"
                                  "'timeout':'1500ms'}}"));
    SEND(&k.intake, INTAKE_PODS, REFLECTOR_PUT, POD(.name = "p", .c = {{.cpu_milli = 2000}}));
    sched_loop_kit_settle(&k);
    struct cluster_pod *cp = sched_loop_kit_find(&k, "d/p");
    expect_int("it waits for the first unit", CLUSTER_PENDING, cp->state);
    expect_true("as it says", strstr(queue_why(&k.sched.queue, cp->gang)->sentence,
                                     "units[0] is waited for, at most 2 s") != NULL);
    sched_loop_kit_await(&k, "POST", "/pods/p/binding", 1);
    expect_str("then it goes to the second", "b1", cp->on->name);
    expect_int("which it is in", 1, policies_unit_of(cp));
    expect_done();
}

/* The first unit is full for good; ExceedMax lets the next pod on at once, and one that goes makes
 * a place again. */
static void a_unit_fills_and_empties(void **state)
{
    (void)state;
    two_pools();
    SEND(&k.intake, INTAKE_POLICIES, REFLECTOR_PUT,
         policy(UNITS(",'max':1") ",'whenTryNextUnits':{'policy':'ExceedMax'}}"));
    SEND(&k.intake, INTAKE_PODS, REFLECTOR_PUT, POD(.name = "p", .c = {{.cpu_milli = 100}}));
    SEND(&k.intake, INTAKE_PODS, REFLECTOR_PUT, POD(.name = "q", .c = {{.cpu_milli = 100}}));
    sched_loop_kit_settle(&k);
    expect_str("the first", "a1", sched_loop_kit_find(&k, "d/p")->on->name);
    expect_str("the second", "b1", sched_loop_kit_find(&k, "d/q")->on->name);
    SEND(&k.intake, INTAKE_PODS, REFLECTOR_DELETE, POD(.name = "p"));
    SEND(&k.intake, INTAKE_PODS, REFLECTOR_PUT, POD(.name = "r", .c = {{.cpu_milli = 100}}));
    sched_loop_kit_settle(&k);
    expect_str("the next", "a1", sched_loop_kit_find(&k, "d/r")->on->name);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_binding_says_the_unit_and_what_it_gives, setup, teardown),
        cmocka_unit_test_setup_teardown(time_opens_the_next_unit, setup, teardown),
        cmocka_unit_test_setup_teardown(a_unit_fills_and_empties, setup, teardown),
    };
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    kube_http_global_init();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kube_http_global_cleanup();
    return failed;
}
