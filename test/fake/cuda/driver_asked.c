// SPDX-License-Identifier: Apache-2.0
/*
 * driver_asked - records what cuGetProcAddress was asked for and where the answer was to be
 * written, so that a test can see which function the caller got in the end.
 */
#include "test/fake/cuda/driver.h"

#include <stdio.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* found by name */

enum { ASKED = 2048 };

static struct {
    char symbol[64];
    int version;
    uint64_t flags;
    void **out;
} asked[ASKED];
static int asked_len;

void driver_asked(const char *symbol, int version, uint64_t flags, void **out)
{
    driver_lock();
    if (asked_len < ASKED) {
        snprintf(asked[asked_len].symbol, sizeof asked[0].symbol, "%s", symbol);
        asked[asked_len].version = version;
        asked[asked_len].flags = flags;
        asked[asked_len++].out = out;
    }
    driver_unlock();
}

/* The i-th question; NULL: there was none. */
EXPORT const char *cosched_fake_asked(int i, int *version, uint64_t *flags, void ***out)
{
    if (i < 0 || i >= asked_len)
        return NULL;
    *version = asked[i].version;
    *flags = asked[i].flags;
    *out = asked[i].out;
    return asked[i].symbol;
}
