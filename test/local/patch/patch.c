// SPDX-License-Identifier: Apache-2.0
/*
 * patch - JSON patch (RFC 6902) and merge patch (RFC 7386); patch_strategic.c and patch_apply.c
 * have the other two.
 *
 * Where the API server differs from the RFC this follows the API server (tried): `replace` of a
 * member that is not there adds it, `copy` from a member that is not there copies null, a value
 * that is not there is null, an index may count from the end, ~2 stands for itself, and what stands
 * before a path's first slash counts for nothing.
 *
 * A short patch can double a document many times by copying it into itself: copied bytes and the
 * number of operations are limited as in the API server.
 */
#include "test/local/patch/patch.h"

#include <string.h>

#include "lib/base/str.h"
#include "test/local/patch/patch_keys.h"

enum { MAX_OPERATIONS = 10000, MAX_COPIED_BYTES = 3 * 1024 * 1024 };

/* Where a JSON pointer leads: the last token in its container. */
struct place {
    struct jsonnode *parent; /* NULL: the whole document */
    struct strbuf token;     /* unescaped */
};

/* The next token of a pointer, unescaped. A ~ followed by neither 0 nor 1 stands for itself. */
static void next_token(const char **at, struct strbuf *token)
{
    const char *p = *at + 1; /* behind the slash */
    strbuf_reset(token);
    for (; *p != '\0' && *p != '/'; p++) {
        bool escape = *p == '~' && (p[1] == '0' || p[1] == '1');
        strbuf_addc(token, !escape ? *p : p[1] == '0' ? '~' : '/');
        p += escape;
    }
    *at = p;
}

/* A place in a list of `len`; negative ones count from its end. At most `max`. */
static bool index_of(const char *token, size_t len, size_t max, size_t *out)
{
    size_t n = 0;
    bool from_end = token[0] == '-';
    token += from_end;
    if (token[0] == '\0')
        return false;
    for (const char *p = token; *p != '\0'; p++) {
        if (*p < '0' || *p > '9' || n > max)
            return false;
        n = n * 10 + (size_t)(*p - '0');
    }
    if (from_end && n > len)
        return false;
    *out = from_end ? len - n : n;
    return *out <= max;
}

static struct jsonnode *child(const struct jsonnode *n, const char *token)
{
    size_t i = 0;
    if (jsonnode_is_array(n))
        return index_of(token, jsonnode_len(n), SIZE_MAX / 16, &i) ? jsonnode_at(n, i) : NULL;
    return jsonnode_get(n, token);
}

static int walk(struct jsontree *t, const char *pointer, struct place *out, struct error *err)
{
    out->parent = NULL;
    if (pointer[0] == '\0')
        return 0;
    struct jsonnode *at = jsontree_root(t);
    const char *rest = strchr(pointer, '/'); /* text before the first slash is ignored */
    if (!rest)
        return patch_fail(err, 422, "path '%s' has no slash", pointer);
    for (;;) {
        next_token(&rest, &out->token);
        if (*rest == '\0')
            break;
        at = child(at, strbuf_str(&out->token));
        if (!at)
            return patch_fail(err, 422, "path '%s': there is no '%s'", pointer,
                              strbuf_str(&out->token));
    }
    if (!jsonnode_is_object(at) && !jsonnode_is_array(at))
        return patch_fail(err, 422, "path '%s' leads into a value that has no members", pointer);
    out->parent = at;
    return 0;
}

static struct jsonnode *get(struct jsontree *t, const struct place *p)
{
    return p->parent ? child(p->parent, strbuf_str(&p->token)) : jsontree_root(t);
}

static int add(struct jsontree *t, const struct place *p, const char *pointer,
               struct jsonnode *value, struct error *err)
{
    const char *token = strbuf_str(&p->token);
    size_t i = 0;
    if (!p->parent) {
        jsontree_set_root(t, value);
    } else if (jsonnode_is_object(p->parent)) {
        jsonnode_set(t, p->parent, token, value);
    } else if (str_eq(token, "-")) {
        jsonnode_append(p->parent, value);
    } else {
        if (!index_of(token, jsonnode_len(p->parent) + 1, jsonnode_len(p->parent), &i))
            return patch_fail(err, 422, "path '%s': '%s' is no place in a list of %zu", pointer,
                              token, jsonnode_len(p->parent));
        (void)jsonnode_insert(p->parent, i, value);
    }
    return 0;
}

static int replace(struct jsontree *t, const struct place *p, const char *pointer,
                   struct jsonnode *value, struct error *err)
{
    size_t i = 0;
    if (!p->parent || jsonnode_is_object(p->parent))
        return add(t, p, pointer, value, err);
    if (!index_of(strbuf_str(&p->token), jsonnode_len(p->parent), SIZE_MAX / 16, &i) ||
        !jsonnode_replace_at(p->parent, i, value))
        return patch_fail(err, 422, "replace: there is nothing at '%s'", pointer);
    return 0;
}

static int take(struct jsontree *t, const struct place *p, const char *pointer,
                struct jsonnode **out, struct error *err)
{
    struct jsonnode *there = get(t, p);
    size_t i = 0;
    if (!there || !p->parent)
        return patch_fail(err, 422, "there is nothing to remove at '%s'", pointer);
    if (jsonnode_is_object(p->parent))
        (void)jsonnode_remove(p->parent, strbuf_str(&p->token));
    else if (index_of(strbuf_str(&p->token), jsonnode_len(p->parent), SIZE_MAX / 16, &i))
        (void)jsonnode_remove_at(p->parent, i);
    *out = there;
    return 0;
}

static int copy(struct jsontree *t, struct jsonnode *from, const struct place *to,
                const char *pointer, size_t *copied, struct error *err)
{
    if (!from)
        return add(t, to, pointer, jsonnode_null(t), err);
    AUTO_STRBUF text;
    strbuf_init(&text);
    jsonnode_print(from, &text);
    *copied += text.len;
    if (*copied > MAX_COPIED_BYTES)
        return patch_fail(err, 422, "copies more than %d bytes", MAX_COPIED_BYTES);
    return add(t, to, pointer, jsonnode_clone(t, from), err);
}

static int two_places(struct jsontree *t, const char *op, const char *from, const char *pointer,
                      struct place *p, size_t *copied, struct error *err)
{
    struct jsonnode *moved = NULL;
    if (!from)
        return patch_fail(err, 422, "%s: no from", op);
    if (walk(t, from, p, err) < 0)
        return -1;
    if (str_eq(op, "copy")) {
        moved = get(t, p);
    } else {
        size_t n = strlen(from);
        if (strncmp(from, pointer, n) == 0 && (pointer[n] == '/' || n == 0))
            return patch_fail(err, 422, "move: '%s' lies inside '%s'", pointer, from);
        if (take(t, p, from, &moved, err) < 0)
            return -1;
    }
    if (walk(t, pointer, p, err) < 0)
        return -1;
    return str_eq(op, "copy") ? copy(t, moved, p, pointer, copied, err)
                              : add(t, p, pointer, moved, err);
}

static int test(struct jsontree *t, const struct place *p, const char *pointer, json *value,
                struct error *err)
{
    struct jsonnode *there = get(t, p);
    struct jsonnode *wanted = jsonnode_copy(t, value);
    bool absent = !there && jsonnode_is_null(wanted); /* null equals what is not there */
    if (!absent && !jsonnode_equal(there, wanted))
        return patch_fail(err, 422, "test: the value at '%s' is another one", pointer);
    return 0;
}

static int operation(struct jsontree *t, json *o, struct place *p, size_t *copied,
                     struct error *err)
{
    const char *op = json_get_str(o, "op");
    const char *pointer = json_get_str(o, "path");
    json *value = json_get(o, "value");
    if (!json_is_object(o) && !json_is_null(o))
        return patch_fail(err, 400,
                          "error decoding patch: json: cannot unmarshal %s into Go value of type "
                          "handlers.jsonPatchOp",
                          json_kind_name(o));
    if (!op || !pointer)
        return patch_fail(err, 422, "op and path are required");
    if (str_eq(op, "move") || str_eq(op, "copy"))
        return two_places(t, op, json_get_str(o, "from"), pointer, p, copied, err);
    if (walk(t, pointer, p, err) < 0)
        return -1;
    struct jsonnode *gone = NULL;
    if (str_eq(op, "remove"))
        return take(t, p, pointer, &gone, err);
    if (!str_eq(op, "add") && !str_eq(op, "replace") && !str_eq(op, "test"))
        return patch_fail(err, 422, "unknown op '%s'", op);
    if (str_eq(op, "test"))
        return test(t, p, pointer, value, err);
    struct jsonnode *fresh = value ? jsonnode_copy(t, value) : jsonnode_null(t);
    if (str_eq(op, "add") && !*pointer)
        return patch_fail(err, 422, "add: the whole document is there already");
    return str_eq(op, "add") ? add(t, p, pointer, fresh, err) : replace(t, p, pointer, fresh, err);
}

int patch_json(struct jsontree *t, json *patch, struct error *err)
{
    if (!json_is_array(patch))
        return patch_fail(err, 400,
                          "error decoding patch: json: cannot unmarshal %s into Go value of type "
                          "[]handlers.jsonPatchOp",
                          json_kind_name(patch));
    if (json_len(patch) > MAX_OPERATIONS)
        return patch_fail(
            err, 413,
            "Request entity too large: The allowed maximum operations in a JSON patch is %d, got %zu",
            MAX_OPERATIONS, json_len(patch));
    struct place p = {0};
    size_t copied = 0;
    size_t i = 0;
    int rc = 0;
    strbuf_init(&p.token);
    for (struct json_iter it = json_iter(patch); rc == 0 && json_next(&it); i++) {
        rc = operation(t, it.value, &p, &copied, err);
        if (rc < 0 && err && err->http_status == 422)
            (void)error_wrap(err, "operation %zu", i);
    }
    strbuf_deinit(&p.token);
    return rc;
}

/* RFC 7386. What the patch puts in the place of nothing has its nulls left out, too. */
static int merge(struct jsontree *t, struct jsonnode *target, json *patch, int depth,
                 struct error *err)
{
    if (depth > JSON_MAX_DEPTH)
        return patch_fail(err, 400, "patch is nested deeper than %d levels", JSON_MAX_DEPTH);
    for (struct json_iter it = json_iter(patch); json_next(&it);) {
        if (strlen(it.key) != it.key_len)
            return patch_fail(err, 400, "a key has a NUL in it");
        if (json_is_null(it.value)) {
            (void)jsonnode_remove(target, it.key);
        } else if (json_is_object(it.value)) {
            if (merge(t, jsonnode_need_object(t, target, it.key), it.value, depth + 1, err) < 0)
                return -1;
        } else {
            jsonnode_set(t, target, it.key, jsonnode_copy(t, it.value));
        }
    }
    return 0;
}

int patch_merge(struct jsontree *t, json *patch, struct error *err)
{
    if (!json_is_object(patch))
        return patch_fail(err, 400,
                          "error decoding patch: json: cannot unmarshal %s into Go value of type "
                          "map[string]interface {}",
                          json_kind_name(patch));
    if (!jsonnode_is_object(jsontree_root(t)))
        jsontree_set_root(t, jsonnode_object(t));
    return merge(t, jsontree_root(t), patch, 0, err);
}
