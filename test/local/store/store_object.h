// SPDX-License-Identifier: Apache-2.0
/*
 * store_object - an object's text, read and stamped with its version. For store*.c, and
 * for hollow.c, which changes texts by the thousand. Pure.
 */
#pragma once

#include "test/local/store/store.h"

/* An object before it has a version: its text was read, its places are known. */
struct store_draft {
    const char *text;
    size_t n;
    struct json_doc *doc;
    size_t cut, resume; /* text[0..cut) VERSION text[resume..n); quotes included in neither */
    const char *lead;   /* the text before the version's digits */
    const char *trail;
    const char *ns, *name, *uid;
    size_t ns_len, name_len;
};

enum { STORE_TEXT_MAX = 64 * 1024 * 1024 };

/* text lives as long as the draft. */
int store_draft_read(struct store_draft *d, const struct kind *k, const char *text, size_t n,
                     struct error *err);
void store_draft_deinit(struct store_draft *d);
/* The object with that version; one reference. */
int store_draft_make(const struct store_draft *d, const struct kind *k, uint64_t version,
                     struct object **out, struct error *err);
/* True if the draft says what the object says, the version apart. */
bool store_draft_equals(const struct store_draft *d, const struct object *o);
/* "ns/name" or "name". */
void store_draft_key(const struct store_draft *d, struct strbuf *out);
/* Where the value of a member of the object in `text` stands: [*from, *to). false: there is none.
 * The text was accepted by the parser before. */
bool store_object_span(const char *text, size_t n, const char *key, size_t *from, size_t *to);
/* The version that the text names, 0 if none. */
uint64_t store_draft_version(const struct store_draft *d);
