// SPDX-License-Identifier: Apache-2.0
/* The table of requests through the rules: what nobody can serve is refused, in the same words. */
#include "webhook/rules/rules.h"

#include "test/unit/lib/base/expect.h"

#include "lib/base/str.h"
#include "lib/model/names.h"
#include "test/unit/lib/model/requests_kit.h"

/* What makes a pod that asks for this ours. */
static const char *trigger_of(const struct requests_row *row)
{
    if (str_ends(row->gpu, " cards"))
        return "gpu";
    if (row->gpu[0] != '\0' && !str_ends(row->gpu, " exclusive"))
        return "gpu-mem";
    return row->cpu[0] != '\0' ? "cpuset" : NULL;
}

static void check_row(const struct requests_row *row, struct arena *a)
{
    static const struct rules_config config = {.scheduler = NAME_SCHEDULER};
    struct rules_context context = {
        .ns = "d", .groups_known = RULES_ALL, .policies_known = RULES_ALL};
    struct rules_verdict v;
    struct error err = ERROR_INIT;
    AUTO_JSON *doc = NULL;
    size_t gpus = row->gpu_errors.len, errors = gpus + row->cpu_errors.len;
    if (json_parse(&doc, row->pod, strlen(row->pod), &err) < 0 ||
        rules_pod(&config, &context, json_root(doc), a, &v, &err) < 0)
        fail_msg("%s: %s", row->name, err.text);
    for (size_t i = 0; i < errors || i < v.refusals.len; i++)
        expect_str(row->name,
                   i < gpus     ? row->gpu_errors.items[i]
                   : i < errors ? row->cpu_errors.items[i - gpus]
                                : NULL,
                   i < v.refusals.len ? v.refusals.items[i] : NULL);
    if (errors == 0)
        expect_str(row->name, trigger_of(row), v.trigger);
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
