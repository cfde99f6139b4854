// SPDX-License-Identifier: Apache-2.0
/* clock - time and jitter. Pure files take now_ms as a parameter instead. */
#pragma once

#include <stddef.h>
#include <stdint.h>

int64_t clock_mono_ms(void); /* CLOCK_MONOTONIC */
int64_t clock_mono_us(void);
int64_t clock_boot_ms(void); /* CLOCK_BOOTTIME: includes time in suspend */
int64_t clock_wall_ns(void); /* since the epoch */
/* A signal ends the sleep early. */
void clock_sleep_ms(int64_t ms);
void clock_sleep_us(int64_t us);

enum { CLOCK_RFC3339_SIZE = 32 };
/* "2026-03-01T12:00:00.123456Z" (MicroTime, as in a Lease); no fraction if !micros. */
void clock_rfc3339(int64_t wall_ns, int micros, char out[CLOCK_RFC3339_SIZE]);
/* Nanoseconds since the epoch, or -1. Accepts Z, numeric offsets and any fraction (truncated to
 * nanoseconds). Otherwise strict: capital T and Z, existing days, no leap second, 1970 to 2262. */
int64_t clock_parse_rfc3339(const char *s);
/* A random number in [0, n) for jitter, not for secrets; 0 if n <= 0. Thread-safe. */
int64_t clock_jitter(int64_t n);
