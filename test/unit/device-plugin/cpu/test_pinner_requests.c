// SPDX-License-Identifier: Apache-2.0
/* The table of requests through the node agent: who is pinned, and who shares CPUs. */
#include "device-plugin/cpu/pinner_internal.h"
#include "test/unit/device-plugin/pinner_kit.h"
#include "test/unit/lib/model/requests_kit.h"

static void check_row(const struct requests_row *row, struct arena *a)
{
    (void)a;
    const char *error = request_errors_first(&row->cpu_errors);
    bool unknown = str_starts(error, "metadata.annotations[cpuset-scheduler]");
    struct pod *p = requests_kit_pod(row);
    podcache_put(&f.pods, p);
    const struct pinner_pod *x = map_get(&f.pinner->pods, p->uid);
    expect_true(row->name, x != NULL);
    expect_int(row->name, row->cpu[0] != '\0' || (error != NULL && !unknown),
               x != NULL && pinner_pins(x));
    if (error == NULL)
        expect_int(row->name, str_ends(row->cpu, " shared"), x != NULL && pinner_shares(x));
}

static void every_row_is_read_as_the_table_says(void **state)
{
    (void)state;
    start();
    requests_kit_each(check_row);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_row_is_read_as_the_table_says, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
