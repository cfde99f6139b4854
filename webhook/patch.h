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
    struct strbuf text; /* the operations: "[{...},{...}" until patch_text closes it */
    struct json_writer writer;
    size_t len; /* operations */
    bool closed;
};

void patch_init(struct patch *p);
void patch_deinit(struct patch *p);
static inline void patch_cleanup(struct patch *p)
{
    patch_deinit(p);
}
#define AUTO_PATCH __attribute__((cleanup(patch_cleanup))) struct patch

/* The member names of the path follow, ended by NULL; '~' and '/' in them are escaped here. */
void patch_remove(struct patch *p, ...) __attribute__((sentinel));
/* Sets a member: adds or replaces it. Its parent must exist. */
void patch_add_str(struct patch *p, const char *value, ...) __attribute__((sentinel));
/* The same with any value; NULL is an empty object. */
void patch_add_value(struct patch *p, json *value, ...) __attribute__((sentinel));

bool patch_is_empty(const struct patch *p);
/* The whole patch, "[]" when nothing was added. Nothing can be added afterwards. Borrowed. */
const char *patch_text(struct patch *p);
