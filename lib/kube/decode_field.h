// SPDX-License-Identifier: Apache-2.0
/* decode_field - helpers shared by the decoders. null counts as absent and leaves *out unchanged;
 * the wrong kind is ERROR_INVALID that names the field. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/model/resources.h"
#include "lib/model/selector.h"

/* FIELD(it, "spec"): whether the member has that name. Objects are walked once, so each name is
 * compared with few others. */
#define FIELD(it, name) \
    ((it).key_len == sizeof(name) - 1 && memcmp((it).key, name, sizeof(name) - 1) == 0)

int decode_field_str(json *v, const char *name, struct arena *a, const char **out,
                     struct error *err);
int decode_field_int(json *v, const char *name, int64_t min, int64_t max, int64_t *out,
                     struct error *err);
int decode_field_bool(json *v, const char *name, bool *out, struct error *err);
/* RFC 3339, in nanoseconds since the epoch. */
int decode_field_time(json *v, const char *name, int64_t *out, struct error *err);
int decode_field_labels(json *v, const char *name, struct arena *a, struct labels *out,
                        struct error *err);
/* {"cpu": "100m", ...}; *present: whether there was an object (may be NULL). After an error, which
 * is the first, *out has all amounts that can be read. */
int decode_field_resources(json *v, const char *name, struct arena *a, enum quantity_round round,
                           struct resources *out, bool *present, struct error *err);
/* Sets *len of an array of at most max elements; 0 when absent. ERROR_TOO_LARGE: *len is its
 * length. */
int decode_field_array(json *v, const char *name, size_t max, size_t *len, struct error *err);
/* A list of strings, in order; NULL and 0 when absent. */
int decode_field_strings(json *v, const char *name, struct arena *a, const char ***out, size_t *len,
                         struct error *err);
/* The same as a set: sorted, without duplicates. */
int decode_field_set(json *v, const char *name, struct arena *a, const char ***out, size_t *len,
                     struct error *err);
/* Sorts words and drops duplicates. */
void decode_field_sort(const char **words, size_t *len);
/* One quantity, text or number. */
int decode_field_quantity(json *v, const char *name, enum quantity_round round, int64_t *out,
                          struct error *err);
/* An object, or absent (then *present is false). */
int decode_field_object(json *v, const char *name, bool *present, struct error *err);

/* The metadata that we read. Names that cannot be read are an error. All else that cannot is
 * absent: anybody may write a NUL into an annotation. */
struct decode_metadata {
    const char *ns, *name, *uid, *resource_version; /* never NULL */
    struct labels labels, annotations;
    int64_t created_ns;
    bool terminating;
    int64_t leaves_ns; /* deletionTimestamp */
    json *owners;      /* ownerReferences, borrowed */
};
/* annotation chooses those to keep; NULL: all. */
int decode_field_metadata(json *v, size_t (*annotation)(const char *key), struct arena *a,
                          struct decode_metadata *out, struct error *err);
