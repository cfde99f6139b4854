// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_kit - what the fuzz targets share: their entry, a condition that must hold, and the input as
 * a text.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void must(bool holds)
{
    if (!holds)
        abort();
}

/* The bytes and a NUL, in memory that is exactly as long, so that an overrun is seen. To be
 * freed. */
static inline char *text_of(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    must(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}
