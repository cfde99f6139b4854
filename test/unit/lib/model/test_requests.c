// SPDX-License-Identifier: Apache-2.0
/* The one reading of requests, on the table that every program reads. */
#include "test/unit/lib/base/expect.h"

#include "test/unit/lib/model/requests_kit.h"

static void expect_errors(const char *row, const struct request_errors *expected,
                          const struct request_errors *got, const char *illegal)
{
    for (size_t i = 0; i < expected->len || i < got->len; i++)
        expect_str(row, i < expected->len ? expected->items[i] : NULL,
                   i < got->len ? got->items[i] : NULL);
    expect_int(row, 0, (int64_t)got->left_out);
    expect_str(row, request_errors_first(expected), illegal);
}

static void check_row(const struct requests_row *row, struct arena *a)
{
    struct pod *p = requests_kit_pod(row);
    struct gpu_request gpu;
    struct request_errors errors;
    gpu_request_read(p, a, &gpu, &errors);
    expect_errors(row->name, &row->gpu_errors, &errors, gpu.illegal);
    if (row->gpu_errors.len == 0)
        expect_str(row->name, row->gpu, requests_kit_gpu(&gpu, a));
    const struct cpu_request *cpu = cpu_request_read(p, a, &errors);
    expect_errors(row->name, &row->cpu_errors, &errors, cpu != NULL ? cpu->illegal : NULL);
    if (row->cpu_errors.len == 0)
        expect_str(row->name, row->cpu, requests_kit_cpu(cpu, a));
    pod_free(p);
}

static void every_row_is_read_as_the_table_says(void **state)
{
    (void)state;
    requests_kit_each(check_row);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_read_as_the_table_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
