// SPDX-License-Identifier: Apache-2.0
/*
 * json - reads and writes JSON. Only json.c and jsontree_internal.h include yyjson.
 *
 * Reading: values are borrowed from their document. Every accessor treats NULL and the wrong kind
 * as absent, so a path through optional fields needs no checks. Numbers keep their text and never
 * become floats. Writing: struct json_writer appends to a strbuf, with commas and escapes, and
 * keeps no tree.
 *
 * Nothing here recurses, so json_parse accepts any depth; code that recurses limits itself to
 * JSON_MAX_DEPTH. The caller bounds the document's size.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/str.h"

enum { JSON_MAX_DEPTH = 128 };

struct json_doc;   /* opaque */
struct json_value; /* opaque, borrowed from its document */
typedef const struct json_value json;

/* Parses a copy of n bytes. ERROR_INVALID gives the byte offset and cause. Of duplicate keys the
 * first wins (yyjson's lookup); do not rely on it. */
int json_parse(struct json_doc **out, const char *text, size_t n, struct error *err);
/* Parses in place: buf has JSON_PADDING writable bytes after n, is overwritten, and outlives the
 * document. */
enum { JSON_PADDING = 4 };
int json_parse_insitu(struct json_doc **out, char *buf, size_t n, struct error *err);
/* A reusable buffer for successive documents, which spares malloc. It holds one document at a time
 * (others use the heap) and outlives its documents. Zero-initialise all but `keep`. */
struct json_memory {
    void *block;
    size_t size;
    bool lent;
    size_t keep; /* a larger block is freed with its document */
};
void json_memory_deinit(struct json_memory *m);
/* In place, like json_parse_insitu. */
int json_parse_within(struct json_doc **out, char *buf, size_t n, struct json_memory *m,
                      struct error *err);
void json_free(struct json_doc *doc); /* NULL is fine */
static inline void json_freep(struct json_doc **doc)
{
    json_free(*doc);
}
#define AUTO_JSON __attribute__((cleanup(json_freep))) struct json_doc
json *json_root(const struct json_doc *doc);

bool json_is_object(json *v);
bool json_is_array(json *v);
bool json_is_string(json *v);
bool json_is_number(json *v);
bool json_is_bool(json *v);
bool json_is_null(json *v); /* false for NULL (absent) */
/* "object", "array", "string", "number", "boolean", "null"; "nothing" for NULL. For messages. */
const char *json_kind_name(json *v);

json *json_get(json *obj, const char *key);          /* member, or NULL */
json *json_path(json *obj, const char *const *keys); /* NULL-terminated keys */
json *json_at(json *arr, size_t i);                  /* O(n): use json_iter in loops */
size_t json_len(json *v);                            /* members or elements; 0 for others */

/* NULL if not a string or with an embedded NUL. Borrowed. */
const char *json_str(json *v);
size_t json_str_len(json *v);
const char *json_get_str(json *obj, const char *key);
/* A number's text as written, NUL-terminated; NULL for anything else. */
const char *json_number_text(json *v);
/* True only for an integer that fits: 5, -5; not 5.0, not 5e0. */
bool json_int(json *v, int64_t *out);
bool json_get_int(json *obj, const char *key, int64_t *out);
/* fallback if absent or not boolean */
bool json_bool(json *v, bool fallback);
bool json_get_bool(json *obj, const char *key, bool fallback);

/* for (struct json_iter it = json_iter(v); json_next(&it);) { it.key (objects; NULL in arrays),
 * it.key_len, it.value } */
struct json_iter {
    const char *key;
    size_t key_len;
    json *value;
    void *at_;
    size_t left_;
    bool object_;
};
struct json_iter json_iter(json *v);
bool json_next(struct json_iter *it);

/* Ignores the order of members; numbers by text (1 is not 1.0); NULL equals only NULL. */
bool json_equal(json *a, json *b);

enum { JSON_WRITER_DEPTH = JSON_MAX_DEPTH + 8 };
struct json_writer {
    struct strbuf *out;
    unsigned depth;
    bool comma_[JSON_WRITER_DEPTH]; /* comma due at this level */
    bool after_key_;
};
/* At depth 0 values are concatenated. Nesting beyond JSON_WRITER_DEPTH or an unmatched end aborts:
 * only our own code nests. */
void json_writer_init(struct json_writer *w, struct strbuf *out);
void json_object_begin(struct json_writer *w);
void json_object_end(struct json_writer *w);
void json_array_begin(struct json_writer *w);
void json_array_end(struct json_writer *w);
void json_key(struct json_writer *w, const char *key);
void json_key_n(struct json_writer *w, const char *key, size_t n);
/* NULL writes null. Invalid UTF-8 becomes U+FFFD. */
void json_put_str(struct json_writer *w, const char *s);
void json_put_str_n(struct json_writer *w, const char *s, size_t n);
void json_put_int(struct json_writer *w, int64_t n);
void json_put_bool(struct json_writer *w, bool b);
void json_put_null(struct json_writer *w);
/* Text that is already JSON. */
void json_put_raw(struct json_writer *w, const char *text, size_t n);
/* A parsed value of any depth, compact. NULL writes null. */
void json_put_value(struct json_writer *w, json *v);
/* Key and value in one call. */
void json_kv_str(struct json_writer *w, const char *key, const char *s);
void json_kv_int(struct json_writer *w, const char *key, int64_t n);
void json_kv_bool(struct json_writer *w, const char *key, bool b);
/* Quotes and escapes s, without a writer. */
void json_escape(struct strbuf *out, const char *s, size_t n);
