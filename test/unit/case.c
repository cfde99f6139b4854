/* SPDX-License-Identifier: Apache-2.0
 *
 * `make unit T=queue CASE=name` runs the cases whose name has "name": cmocka has a filter, but no
 * way to set it from outside. Linked into every test program by -u case_choose (Makefile). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

__attribute__((constructor)) void case_choose(void);
void case_choose(void)
{
    static char pattern[256];
    const char *name = getenv("UNIT_CASE");
    if (name && *name) {
        snprintf(pattern, sizeof pattern, "*%s*", name);
        cmocka_set_test_filter(pattern);
    }
}
