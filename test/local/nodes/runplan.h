// SPDX-License-Identifier: Apache-2.0
/*
 * runplan - how long a simulated container runs, and how it ends. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RUNPLAN_FOREVER = -1 };

struct runplan {
    int64_t run_ms; /* RUNPLAN_FOREVER: until it is killed */
    int exit_code;
    bool known; /* false: the command is not understood; it runs forever */
};

/* argv: command, then args; NULL-terminated, may be empty (the image's own command). */
void runplan_of_command(const char *const *argv, struct runplan *out);
/* "sleep 5; exit 3": commands separated by ; && or newlines. */
void runplan_of_script(const char *script, struct runplan *out);
/* "5", "0.5", "2m", "1h", "1d", "infinity" (sleep's own form) in ms; false: none of these. */
bool runplan_duration(const char *text, size_t n, int64_t *ms);
