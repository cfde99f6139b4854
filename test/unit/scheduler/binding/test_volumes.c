// SPDX-License-Identifier: Apache-2.0
/*
 * Claims that are bound before their pod, from the placement to the Binding or to its undoing: the
 * real loop, with messages as from the watches, also for what the volume controller does, and the
 * API server's twin, which answers the writes.
 */
#include "scheduler/binding/volumes.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/kube/http.h"
#include "lib/model/names.h"
#include "scheduler/sched_loop.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/sched_loop_kit.h"
#include "test/unit/scheduler/storage_kit.h"

static struct sched_loop_kit k;
static int64_t timeout_ms, long_ms;
static struct cluster_pod *waits_long;

/* Instead of writing it to the pod, which would take an answer that is meant for others. */
static void note_long(void *arg, struct cluster_pod *cp)
{
    (void)arg;
    waits_long = cp;
}

static void adjust(struct volumes_config *c)
{
    c->timeout_ms = timeout_ms;
    c->long_ms = long_ms > 0 ? long_ms : (int64_t)2 * SHELL_WAIT_MS; /* no timer helps */
    c->waits_long = note_long;
}

static int setup(void **state)
{
    (void)state;
    waits_long = NULL;
    sched_loop_kit_init_with(&k, &(struct sched_loop_kit_config){.no_events = true,
                                                                 .no_conditions = true,
                                                                 .adjust_volumes = adjust});
    sched_loop_kit_start(&k);
    return 0;
}

static int setup_impatient(void **state)
{
    timeout_ms = 300; /* the first look comes before it, so only the timer ends the wait */
    return setup(state);
}

static int setup_talkative(void **state)
{
    long_ms = 1;
    return setup(state);
}

static int teardown(void **state)
{
    (void)state;
    sched_loop_kit_deinit(&k);
    timeout_ms = long_ms = 0;
    return 0;
}

/* Replies of the API server, as volumes_write sees them. */
#define OF(uid, version) "\"metadata\":{\"uid\":\"u-" uid "\",\"resourceVersion\":\"" version "\""
#define AT(node) ",\"annotations\":{\"volume.kubernetes.io/selected-node\":\"" node "\"}"
#define CLAIM_FREE "{" OF("c", "5") "},\"spec\":{}}"
#define CLAIM_AT(node) "{" OF("c", "6") AT(node) "},\"spec\":{}}"
#define VOLUME_FREE "{" OF("v", "5") "},\"spec\":{}}"
#define VOLUME_TAKEN                                                                         \
    "{" OF("v", "6") "},\"spec\":{\"claimRef\":{\"namespace\":\"d\",\"name\":\"c\",\"uid\":" \
                     "\"u-c\"}}}"

/* The same as messages of the watches, with a version. */
#define SEEN_CLAIM(version, annotations, more)                                            \
    "{'kind':'PersistentVolumeClaim','metadata':{'name':'c','namespace':'d','uid':'u-c'," \
    "'resourceVersion':'" version "','annotations':{" annotations                         \
    "}},'spec':{'storageClassName':'s','resources':{'requests':{'storage':'1Gi'}}" more "}}"
#define SELECTED "'volume.kubernetes.io/selected-node':'n'"
#define DONE "'pv.kubernetes.io/bind-completed':'yes'"
#define SEEN_BOUND SEEN_CLAIM("8", SELECTED "," DONE, ",'volumeName':'v'")
#define SEEN_VOLUME(version, more)                                                              \
    "{'kind':'PersistentVolume','metadata':{'name':'v','uid':'u-v','resourceVersion':'" version \
    "'},'spec':{'storageClassName':'s','capacity':{'storage':'1Gi'}" more                       \
    "},'status':{'phase':'Available'}}"
#define FOR_CLAIM ",'claimRef':{'namespace':'d','name':'c','uid':'u-c'}"

#define USES_CLAIM "\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"c\"}}]"

static struct cluster_pod *find(const char *key)
{
    return sched_loop_kit_find(&k, key);
}

static void settle(void)
{
    sched_loop_kit_settle(&k);
}

static void await(const char *what, bool (*is_so)(void))
{
    for (int64_t end = clock_mono_ms() + SHELL_WAIT_MS; !is_so(); loop_once(k.loop, 5))
        if (clock_mono_ms() >= end)
            fail_msg("never: %s", what);
}

static bool is_back(void)
{
    return find("d/p") != NULL && find("d/p")->state == CLUSTER_PENDING;
}

static bool is_idle(void)
{
    return volumes_pending(k.volumes) == 0;
}

static bool is_written(void)
{
    return volumes_waiting(k.volumes) == 1;
}

static bool are_both_written(void)
{
    return volumes_waiting(k.volumes) == 2;
}

static bool is_alone(void)
{
    return volumes_pending(k.volumes) == 1;
}

static bool is_posted(void)
{
    return shell_count(k.twin, "POST", "/pods/p/binding") > 0;
}

/* A message is handled completely when it arrives, so an entry that still waits would wait
 * forever. */
static void expect_waiting(const char *row)
{
    settle();
    expect_int(row, 1, (int64_t)volumes_waiting(k.volumes));
}

static void put_pod(void)
{
    SEND(&k.intake, INTAKE_PODS, REFLECTOR_PUT, POD(.name = "p", .spec = USES_CLAIM));
    settle();
}

/* A pod on n whose claim waits for a new volume. */
static void begin(void)
{
    RESET(&k.intake, INTAKE_NODES, NODE(.name = "n"));
    storage_kit_send(&k.intake, LATE_CLASS);
    storage_kit_send(&k.intake, SEEN_CLAIM("5", "", ""));
    twin_script(k.twin, 200, "", CLAIM_FREE);
    twin_script(k.twin, 200, "", CLAIM_AT("n"));
    put_pod();
    expect_int("assumed", CLUSTER_ASSUMED, find("d/p")->state);
    await("the node is written into the claim", is_written);
}

static void a_volume_is_made_then_the_pod_is_bound(void **state)
{
    (void)state;
    begin();
    storage_kit_send(&k.intake, SEEN_CLAIM("6", SELECTED, ""));
    expect_waiting("not before the claim is bound");
    storage_kit_send(&k.intake, SEEN_BOUND);
    expect_waiting("not before its volume is seen");
    twin_script(k.twin, 201, "", "{}");
    storage_kit_send(&k.intake, SEEN_VOLUME("9", FOR_CLAIM));
    await("the Binding is posted", is_posted);
    expect_int("nothing is pending", 0, (int64_t)volumes_pending(k.volumes));
    SEND(&k.intake, INTAKE_PODS, REFLECTOR_PUT, POD(.name = "p", .node = "n", .spec = USES_CLAIM));
    expect_int("the watch confirms", CLUSTER_BOUND, find("d/p")->state);
    expect_done();
}

static void a_volume_is_reserved_then_the_pod_is_bound(void **state)
{
    (void)state;
    RESET(&k.intake, INTAKE_NODES, NODE(.name = "n"));
    storage_kit_send(&k.intake, STATIC_CLASS);
    storage_kit_send(&k.intake, SEEN_CLAIM("5", "", ""));
    storage_kit_send(&k.intake, SEEN_VOLUME("5", ""));
    twin_script(k.twin, 200, "", VOLUME_FREE);
    twin_script(k.twin, 200, "", VOLUME_TAKEN);
    put_pod();
    await("the volume is reserved", is_written);
    expect_int("by a PATCH of the volume", 1, shell_count(k.twin, "PATCH", "/persistentvolumes/v"));
    twin_script(k.twin, 201, "", "{}");
    storage_kit_send(&k.intake, SEEN_VOLUME("6", FOR_CLAIM));
    storage_kit_send(&k.intake, SEEN_CLAIM("8", DONE, ",'volumeName':'v'"));
    await("the Binding is posted", is_posted);
    expect_done();
}

static void what_makes_volumes_gives_the_node_back(void **state)
{
    (void)state;
    begin();
    /* An older object proves nothing: our write is newer. */
    storage_kit_send(&k.intake, SEEN_CLAIM("5", "'x':'y'", ""));
    expect_waiting("still waiting");
    twin_script(k.twin, 200, "", CLAIM_FREE);
    storage_kit_send(&k.intake, SEEN_CLAIM("6", SELECTED, ""));
    storage_kit_send(&k.intake, SEEN_CLAIM("7", "", ""));
    await("the pod is taken back", is_back);
    expect_int("after a backoff it is tried again", GANG_BACKOFF,
               queue_state(&k.sched.queue, find("d/p")->gang));
    expect_int("no Binding", 0, shell_count(k.twin, "POST", "/binding"));
    expect_int("and no promise", 0, (int64_t)map_count(&k.sched.cluster.volumes->by_claim));
    expect_done();
}

static void time_is_over(void **state)
{
    (void)state;
    twin_script(k.twin, 200, "", CLAIM_FREE);
    twin_script(k.twin, 200, "", CLAIM_AT("n"));
    twin_script(k.twin, 200, "", CLAIM_AT("n")); /* undo looks, */
    twin_script(k.twin, 200, "", CLAIM_FREE);    /* and writes */
    RESET(&k.intake, INTAKE_NODES, NODE(.name = "n"));
    storage_kit_send(&k.intake, LATE_CLASS);
    storage_kit_send(&k.intake, SEEN_CLAIM("5", "", ""));
    put_pod();
    await("the pod is taken back", is_back);
    expect_int("the node is taken from the claim", 1,
               shell_count(k.twin, "PATCH", "selected-node\":null"));
    expect_int("no Binding", 0, shell_count(k.twin, "POST", "/binding"));
    expect_done();
}

static void somebody_else_was_first(void **state)
{
    (void)state;
    twin_script(k.twin, 200, "", CLAIM_AT("m"));
    RESET(&k.intake, INTAKE_NODES, NODE(.name = "n"));
    storage_kit_send(&k.intake, LATE_CLASS);
    storage_kit_send(&k.intake, SEEN_CLAIM("5", "", ""));
    put_pod();
    await("the pod is taken back", is_back);
    expect_int("nothing was written", 0, shell_count(k.twin, "PATCH", "/persistentvolumeclaims/"));
    expect_done();
}

static void the_pod_goes_while_it_waits(void **state)
{
    (void)state;
    begin();
    twin_script(k.twin, 200, "", CLAIM_AT("n"));
    twin_script(k.twin, 200, "", CLAIM_FREE);
    RESET_EMPTY(&k.intake, INTAKE_PODS);
    await("nothing is pending", is_idle);
    expect_int("the node is taken from the claim", 1,
               shell_count(k.twin, "PATCH", "selected-node\":null"));
    expect_int("no Binding", 0, shell_count(k.twin, "POST", "/binding"));
    expect_done();
}

static void the_node_goes_while_it_waits(void **state)
{
    (void)state;
    begin();
    twin_script(k.twin, 200, "", CLAIM_AT("n"));
    twin_script(k.twin, 200, "", CLAIM_FREE);
    RESET_EMPTY(&k.intake, INTAKE_NODES);
    await("the pod is taken back", is_back);
    expect_int("the node is taken from the claim", 1,
               shell_count(k.twin, "PATCH", "selected-node\":null"));
    expect_done();
}

static void a_claim_that_another_pod_counts_on(void **state)
{
    (void)state;
    begin();
    twin_script(k.twin, 200, "", CLAIM_AT("n"));
    SEND(&k.intake, INTAKE_PODS, REFLECTOR_PUT, POD(.name = "q", .spec = USES_CLAIM));
    settle();
    expect_int("assumed beside the first", CLUSTER_ASSUMED, find("d/q")->state);
    await("the claim has its node already", are_both_written);
    size_t asked = twin_requests(k.twin, TWIN_OTHER);
    RESET(&k.intake, INTAKE_PODS, POD(.name = "q", .spec = USES_CLAIM));
    await("the first gives up", is_alone);
    expect_int("nobody touches the claim", (int64_t)asked,
               (int64_t)twin_requests(k.twin, TWIN_OTHER));
    twin_script(k.twin, 201, "", "{}");
    storage_kit_send(&k.intake, SEEN_BOUND);
    storage_kit_send(&k.intake, SEEN_VOLUME("9", FOR_CLAIM));
    await("nothing is pending", is_idle);
    shell_await(k.twin, "POST", "/pods/q/binding", 1);
    expect_int("and the first is not bound", 0, shell_count(k.twin, "POST", "/pods/p/binding"));
    expect_done();
}

static bool was_said(void)
{
    return waits_long != NULL;
}

static void a_long_wait_is_said_once(void **state)
{
    (void)state;
    begin();
    await("it is said", was_said);
    expect_true("of the pod", waits_long == find("d/p"));
    waits_long = NULL;
    storage_kit_send(&k.intake, SEEN_CLAIM("6", SELECTED, ""));
    expect_waiting("it goes on waiting");
    expect_true("and nothing more is said", waits_long == NULL);
    expect_done();
}

static void an_end_in_the_middle_leaves_nothing(void **state)
{
    (void)state;
    begin(); /* teardown comes while it waits */
    expect_int("pending", 1, (int64_t)volumes_pending(k.volumes));
    expect_done();
}

int main(void)
{
    kube_http_global_init();
    log_setup(LOG_ERROR, LOG_TEXT, "test");
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_volume_is_made_then_the_pod_is_bound),
        CASE(a_volume_is_reserved_then_the_pod_is_bound),
        CASE(what_makes_volumes_gives_the_node_back),
        cmocka_unit_test_setup_teardown(time_is_over, setup_impatient, teardown),
        CASE(somebody_else_was_first),
        CASE(the_pod_goes_while_it_waits),
        CASE(the_node_goes_while_it_waits),
        CASE(a_claim_that_another_pod_counts_on),
        cmocka_unit_test_setup_teardown(a_long_wait_is_said_once, setup_talkative, teardown),
        CASE(an_end_in_the_middle_leaves_nothing),
    };
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    kube_http_global_cleanup();
    return rc;
}
