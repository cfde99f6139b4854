// SPDX-License-Identifier: Apache-2.0
/*
 * patch - builds a JSON Patch (RFC 6902), in base64 for an AdmissionResponse. Pure.
 *
 *     // path /metadata/annotations/cosched.io~1x
 *     patch_remove(&p, "metadata", "annotations", "cosched.io/x", NULL);
 *     patch_add_str(&p, "ack-co-scheduler", "spec", "schedulerName", NULL);
 *
 * Offers only operations that cannot fail on the object they were made for.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/json.h"
#include "lib/base/str.h"

struct patch {
    struct strbuf text; /* "[{...},{...}" until patch_text closes it */
    struct json_writer writer;
    size_t len; /* number of operations */
    bool closed;
};

void patch_init(struct patch *p);
void patch_deinit(struct patch *p);
static inline void patch_cleanup(struct patch *p)
{
    patch_deinit(p);
}
#define AUTO_PATCH __attribute__((cleanup(patch_cleanup))) struct patch

/* The path's member names follow, terminated by NULL. '~' and '/' in them are escaped. */
void patch_remove(struct patch *p, ...) __attribute__((sentinel));
/* Adds or replaces a member. Its parent must exist. */
void patch_add_str(struct patch *p, const char *value, ...) __attribute__((sentinel));
/* Likewise with any value; NULL is an empty object. */
void patch_add_value(struct patch *p, json *value, ...) __attribute__((sentinel));

bool patch_is_empty(const struct patch *p);
/* The whole patch, "[]" if empty. Borrowed. Nothing can be added afterwards. */
const char *patch_text(struct patch *p);
