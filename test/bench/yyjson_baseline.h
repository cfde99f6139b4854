// SPDX-License-Identifier: Apache-2.0
/*
 * yyjson_baseline - what yyjson alone needs for the same bytes. The only test file that knows
 * yyjson: a baseline through our own lib/base/json would measure us against ourselves.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <yyjson.h>

/* A bare parse with default flags, and its release. */
static inline bool yyjson_baseline_parse(const char *text, size_t n)
{
    yyjson_doc *doc = yyjson_read(text, n, 0);
    bool ok = doc != NULL;
    yyjson_doc_free(doc);
    return ok;
}
