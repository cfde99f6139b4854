// SPDX-License-Identifier: Apache-2.0
/* looped - a loop for each test, and a line of text to which its callbacks add what happened. */
#pragma once

#include "lib/base/loop.h"
#include "lib/base/str.h"
#include "test/unit/lib/base/expect.h"

static struct loop *loop;
static struct strbuf seen; /* what happened, in order */

static inline int begin(void **state)
{
    (void)state;
    strbuf_init(&seen);
    return loop_new(&loop, NULL);
}

static inline int end(void **state)
{
    (void)state;
    loop_free(loop);
    loop = NULL;
    strbuf_deinit(&seen);
    return 0;
}

static inline void note(void *arg)
{
    strbuf_adds(&seen, arg);
}

static inline void stop(void *arg)
{
    (void)arg;
    loop_stop(loop);
}
