// SPDX-License-Identifier: Apache-2.0
/*
 *     text ──events──► compose ──nodes in an arena──► emit ──► one line of JSON per document
 *
 * libyaml's own tree tags every untagged scalar "str", so `!!str 5` and `5` would be the same. Our
 * tree keeps the tag as written. Defences against hostile input:
 *   deep nesting             DEPTH_MAX bounds recursion while composing, and while emitting, where
 *                            nested aliases add up.
 *   an alias inside itself   its node is still open when the alias is read.
 *   aliases that multiply    max_bytes; merged members count too, since merging can take time
 *                            without writing a byte.
 *   many keys                a map finds duplicates in linear time.
 */
#include "lib/base/yaml.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "lib/base/arena.h"
#include "lib/base/map.h"
#include "lib/base/yaml_scalar.h"

enum {
    DEPTH_MAX = 64,
    SHOWN = 64, /* bytes of an invalid key or tag shown in a message */
};

enum node_kind { NODE_SCALAR, NODE_SEQUENCE, NODE_MAPPING };

struct node {
    enum node_kind kind;
    bool open; /* end not yet seen: an alias to it would contain itself */
    size_t line;
    size_t column;
    /* scalar */
    enum yaml_scalar_tag tag;
    bool plain; /* written without quotes */
    const char *text;
    size_t len;
    /* sequence, mapping */
    struct member *first;
};

struct member {
    struct node *key; /* NULL in a sequence */
    struct node *value;
    struct member *next;
};

struct reader {
    yaml_parser_t parser;
    const char *text;
    size_t n;
    struct arena arena; /* nodes of one document */
    struct map anchors; /* of one document */
    struct strbuf *out;
    struct json_writer writer;
    size_t start; /* out->len at the start */
    size_t max_bytes;
    size_t merged; /* members visited for merge keys */
    struct error *err;
};

/* ---- compose ---- */

static int fail_at(struct reader *r, enum error_code code, size_t line, size_t column,
                   const char *what)
{
    return error_set(r->err, code, "line %zu, column %zu: %s", line, column, what);
}

static int fail(struct reader *r, enum error_code code, const struct node *n, const char *what)
{
    return fail_at(r, code, n->line, n->column, what);
}

/* libyaml's reader (invalid UTF-8, control characters) gives only an offset. */
static int fail_reader(struct reader *r)
{
    size_t line = 1;
    size_t column = 1;
    for (size_t i = 0; i < r->parser.problem_offset && i < r->n; i++) {
        column = r->text[i] == '\n' ? 1 : column + 1;
        line += r->text[i] == '\n';
    }
    return fail_at(r, ERROR_INVALID, line, column,
                   r->parser.problem ? r->parser.problem : "not UTF-8 text");
}

static int next_event(struct reader *r, yaml_event_t *e)
{
    const yaml_parser_t *p = &r->parser;
    if (yaml_parser_parse(&r->parser, e))
        return 0;
    if (p->error == YAML_MEMORY_ERROR)
        abort();
    if (p->error == YAML_READER_ERROR)
        return fail_reader(r);
    return error_set(r->err, ERROR_INVALID, "line %zu, column %zu: %s%s%s",
                     p->problem_mark.line + 1, p->problem_mark.column + 1, str_or_empty(p->context),
                     p->context ? ", " : "", p->problem ? p->problem : "not YAML");
}

/* Accepts only the core tags, each only where it makes sense. */
static int check_tag(struct reader *r, struct node *n, const yaml_char_t *written)
{
    static const struct {
        const char *tag;
        enum node_kind kind;
        enum yaml_scalar_tag scalar;
    } core[] = {
        {YAML_STR_TAG, NODE_SCALAR, SCALAR_TAG_STRING},
        {YAML_INT_TAG, NODE_SCALAR, SCALAR_TAG_INTEGER},
        {YAML_FLOAT_TAG, NODE_SCALAR, SCALAR_TAG_FLOAT},
        {YAML_BOOL_TAG, NODE_SCALAR, SCALAR_TAG_BOOLEAN},
        {YAML_NULL_TAG, NODE_SCALAR, SCALAR_TAG_NULL},
        {YAML_SEQ_TAG, NODE_SEQUENCE, SCALAR_TAG_NONE},
        {YAML_MAP_TAG, NODE_MAPPING, SCALAR_TAG_NONE},
        {"!", NODE_SCALAR, SCALAR_TAG_PLAIN_BANG},
        {"!", NODE_SEQUENCE, SCALAR_TAG_NONE},
        {"!", NODE_MAPPING, SCALAR_TAG_NONE},
    };
    const char *tag = (const char *)written;
    bool known = false;
    if (!tag)
        return 0;
    for (size_t i = 0; i < sizeof core / sizeof core[0]; i++) {
        if (!str_eq(core[i].tag, tag))
            continue;
        known = true;
        if (core[i].kind == n->kind) {
            n->tag = core[i].scalar;
            return 0;
        }
    }
    return error_set(r->err, known ? ERROR_INVALID : ERROR_UNSUPPORTED,
                     "line %zu, column %zu: the tag '%.*s' %s", n->line, n->column, SHOWN, tag,
                     known ? "does not fit what it stands before" : "is not supported");
}

static int new_node(struct reader *r, const yaml_event_t *e, enum node_kind kind,
                    const yaml_char_t *tag, const yaml_char_t *anchor, struct node **out)
{
    struct node *n = arena_new(&r->arena, struct node, 1);
    n->kind = kind;
    n->line = e->start_mark.line + 1;
    n->column = e->start_mark.column + 1;
    if (anchor)
        (void)map_put(&r->anchors, arena_strdup(&r->arena, (const char *)anchor), n);
    *out = n;
    return check_tag(r, n, tag);
}

static int compose(struct reader *r, unsigned depth, const yaml_event_t *e, struct node **out);

/* Reads one more node; *out is NULL at the end of the collection. */
static int compose_next(struct reader *r, unsigned depth, struct node **out)
{
    yaml_event_t e;
    if (next_event(r, &e) < 0)
        return -1;
    *out = NULL;
    int rc = 0;
    if (e.type != YAML_SEQUENCE_END_EVENT && e.type != YAML_MAPPING_END_EVENT)
        rc = compose(r, depth, &e, out);
    yaml_event_delete(&e);
    return rc;
}

static int compose_members(struct reader *r, unsigned depth, struct node *n)
{
    struct member **end = &n->first;
    n->open = true;
    for (;;) {
        struct node *key = NULL;
        struct node *value;
        if (n->kind == NODE_MAPPING) {
            if (compose_next(r, depth, &key) < 0)
                return -1;
            if (!key)
                break;
            if (key->kind != NODE_SCALAR)
                return fail(r, ERROR_UNSUPPORTED, key, "a key must be a scalar: JSON has no other");
        }
        if (compose_next(r, depth, &value) < 0)
            return -1;
        if (!value)
            break;
        struct member *m = arena_new(&r->arena, struct member, 1);
        m->key = key;
        m->value = value;
        *end = m;
        end = &m->next;
    }
    n->open = false;
    return 0;
}

static int compose_alias(struct reader *r, const yaml_event_t *e, struct node **out)
{
    const char *name = (const char *)e->data.alias.anchor;
    *out = map_get(&r->anchors, name);
    if (*out && !(*out)->open)
        return 0;
    return error_set(r->err, ERROR_INVALID, "line %zu, column %zu: the alias '%.*s' %s",
                     e->start_mark.line + 1, e->start_mark.column + 1, SHOWN, name,
                     *out ? "is inside what it names" : "names nothing");
}

static int compose(struct reader *r, unsigned depth, const yaml_event_t *e, struct node **out)
{
    if (depth >= DEPTH_MAX)
        return fail_at(r, ERROR_TOO_LARGE, e->start_mark.line + 1, e->start_mark.column + 1,
                       "nested too deeply");
    switch (e->type) {
    case YAML_ALIAS_EVENT:
        return compose_alias(r, e, out);
    case YAML_SCALAR_EVENT:
        if (new_node(r, e, NODE_SCALAR, e->data.scalar.tag, e->data.scalar.anchor, out) < 0)
            return -1;
        (*out)->plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        (*out)->len = e->data.scalar.length;
        (*out)->text =
            arena_strndup(&r->arena, (const char *)e->data.scalar.value, e->data.scalar.length);
        return 0;
    case YAML_SEQUENCE_START_EVENT:
        if (new_node(r, e, NODE_SEQUENCE, e->data.sequence_start.tag, e->data.sequence_start.anchor,
                     out) < 0)
            return -1;
        return compose_members(r, depth + 1, *out);
    case YAML_MAPPING_START_EVENT:
        if (new_node(r, e, NODE_MAPPING, e->data.mapping_start.tag, e->data.mapping_start.anchor,
                     out) < 0)
            return -1;
        return compose_members(r, depth + 1, *out);
    default:
        return fail_at(r, ERROR_INTERNAL, e->start_mark.line + 1, e->start_mark.column + 1,
                       "an event out of order");
    }
}

/* ---- emit ---- */

static int emit(struct reader *r, unsigned depth, const struct node *n);

static int check_size(struct reader *r)
{
    if (r->out->len - r->start <= r->max_bytes && r->merged <= r->max_bytes)
        return 0;
    return error_set(r->err, ERROR_TOO_LARGE, "more than %zu bytes as JSON", r->max_bytes);
}

static int resolve(struct reader *r, const struct node *n, enum yaml_scalar_kind *kind,
                   struct strbuf *number)
{
    if (yaml_scalar_resolve(n->text, n->len, n->tag, n->plain, kind, number, r->err) < 0)
        return error_wrap(r->err, "line %zu, column %zu", n->line, n->column);
    return 0;
}

static int emit_scalar(struct reader *r, const struct node *n)
{
    AUTO_STRBUF number = {0};
    enum yaml_scalar_kind kind;
    if (resolve(r, n, &kind, &number) < 0)
        return -1;
    switch (kind) {
    case SCALAR_NULL:
        json_put_null(&r->writer);
        break;
    case SCALAR_TRUE:
    case SCALAR_FALSE:
        json_put_bool(&r->writer, kind == SCALAR_TRUE);
        break;
    case SCALAR_NUMBER:
        json_put_raw(&r->writer, strbuf_str(&number), number.len);
        break;
    case SCALAR_STRING:
        json_put_str_n(&r->writer, n->text, n->len);
        break;
    }
    return 0;
}

/* The key's JSON text: 0x10 is "16", yes is "true", as in kubectl. */
static int key_text(struct reader *r, const struct node *key, const char **out)
{
    AUTO_STRBUF number = {0};
    enum yaml_scalar_kind kind;
    if (resolve(r, key, &kind, &number) < 0)
        return -1;
    switch (kind) {
    case SCALAR_NULL:
        return fail(r, ERROR_UNSUPPORTED, key, "a key may not be null");
    case SCALAR_TRUE:
    case SCALAR_FALSE:
        *out = kind == SCALAR_TRUE ? "true" : "false";
        return 0;
    case SCALAR_NUMBER:
        *out = arena_strdup(&r->arena, strbuf_str(&number));
        return 0;
    case SCALAR_STRING:
        break;
    }
    if (memchr(key->text, '\0', key->len))
        return fail(r, ERROR_UNSUPPORTED, key, "a key may not contain a NUL");
    *out = key->text;
    return 0;
}

static bool is_merge(const struct member *m)
{
    return m->key->plain && m->key->tag == SCALAR_TAG_NONE && str_eq(m->key->text, "<<");
}

static int emit_member(struct reader *r, unsigned depth, const char *key, const struct node *value)
{
    json_key(&r->writer, key);
    return emit(r, depth, value);
}

static int merge(struct reader *r, unsigned depth, const struct node *from, struct map *seen);

/* Adds members with new keys from the merge keys of n; the first one wins. */
static int merge_keys_of(struct reader *r, unsigned depth, const struct node *n, struct map *seen)
{
    for (const struct member *m = n->first; m; m = m->next)
        if (is_merge(m) && merge(r, depth, m->value, seen) < 0)
            return -1;
    return 0;
}

/* from is a mapping or a sequence of mappings. */
static int merge(struct reader *r, unsigned depth, const struct node *from, struct map *seen)
{
    r->merged++;
    if (check_size(r) < 0)
        return -1;
    if (depth >= DEPTH_MAX)
        return fail(r, ERROR_TOO_LARGE, from, "nested too deeply");
    if (from->kind == NODE_SCALAR)
        return fail(r, ERROR_INVALID, from, "a merge key takes a mapping or a list of mappings");
    for (struct member *m = from->first; m; m = m->next) {
        const char *key = NULL;
        r->merged++;
        if (from->kind == NODE_SEQUENCE) {
            if (m->value->kind != NODE_MAPPING)
                return fail(r, ERROR_INVALID, m->value,
                            "a merge key takes a mapping or a list of mappings");
            if (merge(r, depth + 1, m->value, seen) < 0)
                return -1;
            continue;
        }
        if (is_merge(m))
            continue;
        if (key_text(r, m->key, &key) < 0)
            return -1;
        if (map_get(seen, key))
            continue;
        (void)map_put(seen, key, m);
        if (emit_member(r, depth, key, m->value) < 0)
            return -1;
    }
    return from->kind == NODE_MAPPING ? merge_keys_of(r, depth + 1, from, seen) : 0;
}

static int emit_members(struct reader *r, unsigned depth, const struct node *n, struct map *seen)
{
    for (struct member *m = n->first; m; m = m->next) {
        const char *key = NULL;
        if (is_merge(m))
            continue;
        if (key_text(r, m->key, &key) < 0)
            return -1;
        if (map_put(seen, key, m))
            return error_set(r->err, ERROR_INVALID,
                             "line %zu, column %zu: the key '%.*s' is there twice", m->key->line,
                             m->key->column, SHOWN, key);
        if (emit_member(r, depth, key, m->value) < 0)
            return -1;
    }
    return merge_keys_of(r, depth, n, seen);
}

static int emit_mapping(struct reader *r, unsigned depth, const struct node *n)
{
    struct map seen;
    map_init(&seen);
    json_object_begin(&r->writer);
    int rc = emit_members(r, depth, n, &seen);
    if (rc == 0)
        json_object_end(&r->writer);
    map_deinit(&seen);
    return rc;
}

static int emit(struct reader *r, unsigned depth, const struct node *n)
{
    if (check_size(r) < 0)
        return -1;
    if (depth >= DEPTH_MAX)
        return fail(r, ERROR_TOO_LARGE, n, "nested too deeply");
    if (n->kind == NODE_SCALAR)
        return emit_scalar(r, n);
    if (n->kind == NODE_MAPPING)
        return emit_mapping(r, depth + 1, n);
    json_array_begin(&r->writer);
    for (const struct member *m = n->first; m; m = m->next)
        if (emit(r, depth + 1, m->value) < 0)
            return -1;
    json_array_end(&r->writer);
    return 0;
}

/* ---- documents ---- */

/* Its start has been read. *wrote: it was not empty. */
static int read_document(struct reader *r, bool *wrote)
{
    struct node *root = NULL;
    yaml_event_t end;
    if (compose_next(r, 0, &root) < 0 || next_event(r, &end) < 0)
        return -1;
    assert(root); /* libyaml gives an empty scalar for nothing */
    yaml_event_delete(&end);
    *wrote = !(root->kind == NODE_SCALAR && root->plain && root->tag == SCALAR_TAG_NONE &&
               root->len == 0);
    if (!*wrote)
        return 0;
    json_writer_init(&r->writer, r->out);
    if (emit(r, 0, root) < 0)
        return -1;
    strbuf_addc(r->out, '\n');
    return check_size(r);
}

static int read_stream(struct reader *r, bool first_only)
{
    for (;;) {
        yaml_event_t e;
        if (next_event(r, &e) < 0)
            return -1;
        yaml_event_type_t type = e.type;
        yaml_event_delete(&e);
        if (type == YAML_STREAM_END_EVENT)
            return 0;
        if (type == YAML_STREAM_START_EVENT)
            continue;
        bool wrote = false;
        map_init(&r->anchors);
        int rc = read_document(r, &wrote);
        map_deinit(&r->anchors);
        arena_reset(&r->arena);
        if (rc < 0 || (wrote && first_only))
            return rc;
    }
}

static int convert(const char *text, size_t n, size_t max_bytes, bool first_only,
                   struct strbuf *out, struct error *err)
{
    struct reader r = {
        .text = text, .n = n, .out = out, .start = out->len, .max_bytes = max_bytes, .err = err};
    if (!yaml_parser_initialize(&r.parser))
        abort();
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, n);
    arena_init(&r.arena, 4096);
    int rc = read_stream(&r, first_only);
    arena_deinit(&r.arena);
    yaml_parser_delete(&r.parser);
    if (rc < 0 && out->len > r.start) {
        out->len = r.start;
        out->ptr[out->len] = '\0';
    }
    return rc;
}

int yaml_to_json(const char *text, size_t n, size_t max_bytes, struct strbuf *out,
                 struct error *err)
{
    return convert(text, n, max_bytes, false, out, err);
}

int yaml_parse(struct json_doc **out, const char *text, size_t n, size_t max_bytes,
               struct error *err)
{
    AUTO_STRBUF line = {0};
    *out = NULL;
    if (convert(text, n, max_bytes, true, &line, err) < 0)
        return -1;
    if (line.len == 0)
        return error_set(err, ERROR_INVALID, "there is no YAML document");
    return json_parse(out, line.ptr, line.len, err);
}
