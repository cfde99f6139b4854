// SPDX-License-Identifier: Apache-2.0
#include "lib/model/gpuuse.h"

#include "test/unit/lib/model/build.h"

static void it_is_read_and_written(void **state)
{
    (void)state;
    static const struct {
        const char *row, *text, *error; /* text NULL: the pod has no such annotation */
        int result;
        int64_t mib, processes;
    } rows[] = {
        {"absent", NULL, "", 0, 0, 0},
        {"empty counts as absent", "", "", 0, 0, 0},
        {"used", "{'mib':3072,'processes':2}", "", 1, 3072, 2},
        {"nothing is used", "{'mib':0,'processes':0}", "", 1, 0, 0},
        {"no JSON", "{", "cosched.io/gpu-used: ", -1, 0, 0},
        {"a negative amount", "{'mib':-1,'processes':2}",
         "cosched.io/gpu-used: mib: must be an integer of at least 0", -1, 0, 0},
        {"a fraction", "{'mib':1.5,'processes':2}",
         "cosched.io/gpu-used: mib: must be an integer of at least 0", -1, 0, 0},
        {"no processes", "{'mib':1}",
         "cosched.io/gpu-used: processes: must be an integer of at least 0", -1, 0, 0},
        {"a list", "[1,2]", "cosched.io/gpu-used: mib: must be an integer of at least 0", -1, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct label label = {.key = "cosched.io/gpu-used",
                              .value = rows[i].text != NULL ? quoted(rows[i].text) : ""};
        struct pod p = {.annotations = {.items = &label, .len = rows[i].text != NULL}};
        struct gpuuse u;
        struct error err = ERROR_INIT;
        AUTO_STRBUF out = {0};
        expect_int(rows[i].row, rows[i].result, gpuuse_read(&p, &u, &err));
        expect_int(rows[i].row, rows[i].mib, u.mib);
        expect_int(rows[i].row, rows[i].processes, u.processes);
        expect_true(err.text, str_starts(err.text, rows[i].error));
        if (rows[i].result == 1) {
            gpuuse_print(&u, &out);
            expect_str(rows[i].row, label.value, strbuf_str(&out));
        }
    }
    char long_text[GPUUSE_BYTES_MAX + 2];
    memset(long_text, ' ', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    struct label label = {.key = "cosched.io/gpu-used", .value = long_text};
    struct pod p = {.annotations = {.items = &label, .len = 1}};
    struct gpuuse u;
    struct error err = ERROR_INIT;
    expect_int("too long", -1, gpuuse_read(&p, &u, &err));
    expect_str("says so", "cosched.io/gpu-used: longer than 256 bytes", err.text);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_is_read_and_written, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
