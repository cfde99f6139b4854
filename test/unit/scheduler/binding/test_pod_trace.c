// SPDX-License-Identifier: Apache-2.0
#include "scheduler/binding/pod_trace.h"

#include "lib/model/names.h"
#include "scheduler/cache/cluster.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/fixture.h"

static struct cluster c;

static const struct cluster_pod *put(const char *uid)
{
    (void)cluster_put_pod(&c, fixture_make_pod(&(struct fixture_pod){.name = "p", .uid = uid}),
                          NULL);
    return cluster_find_pod(&c, "d/p");
}

static void a_pod_on_its_way(void **state)
{
    (void)state;
    struct pod_trace t;
    cluster_init(&c, NAME_SCHEDULER);
    pod_trace_init(&t);
    const struct cluster_pod *cp = put("u1");
    expect_int("not seen yet", 0, pod_trace_seen_us(&t, cp));
    expect_int("no Binding yet", 0, (int64_t)pod_trace_ticket(&t, cp));
    pod_trace_see(&t, cp, 7);
    pod_trace_see(&t, cp, 8);
    expect_int("the first time counts", 7, pod_trace_seen_us(&t, cp));
    uint64_t first = pod_trace_give_ticket(&t, cp), second = pod_trace_give_ticket(&t, cp);
    expect_true("each Binding has a ticket of its own", first != 0 && second != first);
    expect_int("the last one holds", (int64_t)second, (int64_t)pod_trace_ticket(&t, cp));
    cp = put("u1");
    expect_int("another version is the same pod", 7, pod_trace_seen_us(&t, cp));
    cp = put("u2");
    expect_int("another pod of the name is not", 0, pod_trace_seen_us(&t, cp));
    expect_int("nor is the Binding its own", 0, (int64_t)pod_trace_ticket(&t, cp));
    expect_true("tickets are not used again", pod_trace_give_ticket(&t, cp) > second);
    pod_trace_deinit(&t);
    cluster_deinit(&c);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_pod_on_its_way)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
