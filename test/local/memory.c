// SPDX-License-Identifier: Apache-2.0
#include "test/local/memory.h"

#include <malloc.h>

#include "lib/base/metrics.h"

/* A sanitizer has an allocator of its own and counts by this function; without one there is
 * none. */
extern size_t
__sanitizer_get_current_allocated_bytes(void) /* NOLINT(bugprone-reserved-identifier,cert-*) */
    __attribute__((weak));

int64_t memory_in_use_bytes(void)
{
    if (__sanitizer_get_current_allocated_bytes)
        return (int64_t)__sanitizer_get_current_allocated_bytes();
    struct mallinfo2 m = mallinfo2();
    return (int64_t)(m.uordblks + m.hblkhd);
}

static int64_t read_gauge(void *arg)
{
    (void)arg;
    return memory_in_use_bytes();
}

void memory_register(void)
{
    static struct metric gauge = {.kind = METRIC_GAUGE,
                                  .name = "cosched_local_memory_bytes",
                                  .help = "Memory that was asked for and not given back.",
                                  .read = read_gauge};
    metrics_register(&gauge);
}
