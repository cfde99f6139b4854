// SPDX-License-Identifier: Apache-2.0
#include "scheduler/model/failures.h"

#include "lib/model/names.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/fixture.h"

static void note(struct failures *f, struct pod *p)
{
    failures_note(f, p);
    pod_free(p);
}

static void members_are_counted_by_gang(void **state)
{
    (void)state;
    struct failures f;
    failures_init(&f);
    note(&f, POD(.name = "a", .phase = "Failed", .labels = PAIRS(NAME_LABEL_GANG_BARE, "g")));
    note(&f, POD(.name = "b", .phase = "Failed",
                 .labels = PAIRS(NAME_LABEL_GANG_NAME, "g", NAME_LABEL_GANG_MIN, "2")));
    note(&f, POD(.name = "c", .phase = "Failed", .labels = PAIRS(NAME_LABEL_GANG_X, "h")));
    expect_int("two of g, by different forms", 2, failures_count(&f, "d/g"));
    expect_int("one of h", 1, failures_count(&f, "d/h"));
    note(&f, POD(.name = "a", .phase = "Failed", .labels = PAIRS(NAME_LABEL_GANG_BARE, "g")));
    expect_int("twice is once", 2, failures_count(&f, "d/g"));
    note(&f, POD(.name = "l", .phase = "Failed"));
    note(&f, POD(.name = "r", .phase = "Running", .labels = PAIRS(NAME_LABEL_GANG_BARE, "g")));
    note(&f, POD(.name = "w", .phase = "Failed", .labels = PAIRS(NAME_LABEL_GANG_NAME, "g")));
    expect_int("neither lone, nor running, nor of no legal gang", 3, (int64_t)map_count(&f.pods));
    failures_drop(&f, "d/a", "another");
    expect_int("another pod of that name", 2, failures_count(&f, "d/g"));
    failures_drop(&f, "d/a", "u-a");
    failures_drop(&f, "d/b", NULL);
    failures_drop(&f, "d/b", NULL);
    expect_int("deleted", 0, failures_count(&f, "d/g"));
    expect_int("nothing is left of it", 1, (int64_t)map_count(&f.gangs));
    failures_deinit(&f);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(members_are_counted_by_gang)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
