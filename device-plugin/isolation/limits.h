// SPDX-License-Identifier: Apache-2.0
/*
 * limits - the file with a container's limits: a line per card. Pure.
 *
 *     cosched-gpu-limits 1
 *     card GPU-6c9b1d3e-0000-4000-8000-000000000000 mib=3072 percent=30 context=0
 *
 * mib: its memory. percent: its share of the card's time, 100 is no limit. context: MiB that the
 * driver takes per context. A later plugin may add words to a line and lines of another kind, which
 * readers skip; the number in the first line rises if skipping would be wrong.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device-plugin/isolation/region.h"

enum { LIMITS_CARDS = REGION_CARDS, LIMITS_BYTES_MAX = 8192, LIMITS_MIB_MAX = 1 << 20 };

struct limits_card {
    unsigned char uuid[16];
    uint64_t bytes, context_bytes;
    uint32_t percent;
};

struct limits {
    struct limits_card cards[LIMITS_CARDS]; /* the n-th is the n-th of the region */
    uint32_t len;
};

/* false: not such a file, or a relevant line is invalid; then out has no cards. */
bool limits_parse(const char *text, size_t len, struct limits *out);
/* "GPU-6c9b1d3e-…" → 16 bytes. */
bool limits_uuid(const char *text, size_t len, unsigned char uuid[16]);
/* The row of the card, -1: no limit. */
int limits_find(const struct limits *l, const unsigned char uuid[16]);
/* Writes the file; returns its length, 0: it does not fit. */
size_t limits_print(const struct limits *l, char *out, size_t size);
