// SPDX-License-Identifier: Apache-2.0
/* What a command says about how long it runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "test/local/nodes/runplan.h"

enum { FOREVER = RUNPLAN_FOREVER };

static void test_commands(void **state)
{
    (void)state;
    const struct {
        const char *argv[5];
        int64_t run_ms;
        int exit_code;
        bool known;
    } rows[] = {
        {{NULL}, FOREVER, 0, false},
        {{"nginx", "-g", "daemon off;"}, FOREVER, 0, false},
        {{"sleep", "5"}, 5000, 0, true},
        {{"/bin/sleep", "0.25"}, 250, 0, true},
        {{"sleep", "2m"}, 120000, 0, true},
        {{"sleep", "1h"}, 3600000, 0, true},
        {{"sleep", "infinity"}, FOREVER, 0, true},
        {{"sleep", "5x"}, FOREVER, 0, false},
        {{"sleep"}, FOREVER, 0, false},
        {{"sleep", "99999999999999999999"}, FOREVER, 0, false},
        {{"true"}, 0, 0, true},
        {{"/bin/false"}, 0, 1, true},
        {{"sh", "-c", "exit 3"}, 0, 3, true},
        {{"sh", "-c", "exit 256"}, FOREVER, 0, false},
        {{"sh", "-c", "exit"}, 0, 0, true},
        {{"/bin/bash", "-ec", "sleep 1; sleep 2; exit 7; sleep 100"}, 3000, 7, true},
        {{"sh", "-c", "echo hello && sleep 2 && false"}, 2000, 1, true},
        {{"sh", "-c", "false && sleep 9 && sleep 9; sleep 1"}, 1000, 0, true},
        {{"sh", "-c", "false && exit 0"}, 0, 1, true},
        {{"sh", "-c", "echo 'a; exit 9'\nsleep 1"}, 1000, 0, true},
        {{"sh", "-c", "sleep 1; python3 train.py"}, FOREVER, 0, false},
        {{"sh", "-c", "sleep 1 & sleep 2"}, FOREVER, 0, false},
        {{"sh", "-c", ""}, 0, 0, true},
        {{"sh"}, FOREVER, 0, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct runplan p;
        runplan_of_command(rows[i].argv, &p);
        if (p.run_ms != rows[i].run_ms || p.exit_code != rows[i].exit_code ||
            p.known != rows[i].known)
            fail_msg("%s %s %s: expected %d ms, exit %d, known %d; got %d ms, exit %d, known %d",
                     rows[i].argv[0] ? rows[i].argv[0] : "(none)",
                     rows[i].argv[0] && rows[i].argv[1] ? rows[i].argv[1] : "",
                     rows[i].argv[0] && rows[i].argv[1] && rows[i].argv[2] ? rows[i].argv[2] : "",
                     (int)rows[i].run_ms, rows[i].exit_code, rows[i].known, (int)p.run_ms,
                     p.exit_code, p.known);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_commands)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
