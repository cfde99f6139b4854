// SPDX-License-Identifier: Apache-2.0
/*
 * typed - see typed.h. The types are the tables that protobody reads protobuf by: they have every
 * member of a message with its name in JSON, its type, and whether a zero is written.
 *
 *   object ──► members in the order of the text: no such field ──► noted, goes
 *                                                 null, or a zero that Go would not print ──► goes
 *                                                 by its type: value, list, map, object again
 *
 * The tables have no circle, so recursion ends. Go's sentence names the innermost struct and the
 * path of keys to the member, without the places in lists; the notes have the places.
 */
#include "test/local/kinds/typed.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/base64.h"
#include "lib/base/clock.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "test/local/kinds/kinds_amount.h"
#include "test/local/kinds/protobody_internal.h"

struct typing {
    struct jsontree *t;
    struct typed_notes *notes;
    struct strbuf path; /* "spec.containers[0].env" */
    struct error *err;
};

static const struct protobody_field *table_of(const char *api_version, const char *kind)
{
    for (const struct protobody_kind *k = protobody_kinds; k->kind; k++)
        if (str_eq(kind, k->kind) && (!k->api_version || str_eq(api_version, k->api_version)))
            return k->fields;
    return NULL;
}

bool typed_knows(const char *api_version, const char *kind)
{
    return table_of(api_version, kind) != NULL;
}

void typed_notes_deinit(struct typed_notes *n)
{
    for (size_t i = 0; i < n->len; i++)
        free(n->items[i]);
    vec_deinit(n);
}

/* ---- words ---- */

/* "protobody_http_get_action" -> "HTTPGetAction" */
static void add_go_name(struct strbuf *out, const char *c_name)
{
    static const char *const prefixes[] = {"protobody_", "core_", "events_"};
    static const char *const capitals[] = {"api", "aws",  "csi",  "dns", "fc", "fs",
                                           "gce", "grpc", "http", "io",  "ip", "iscsi",
                                           "nfs", "os",   "rbd",  "se",  "tcp"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (str_starts(c_name, prefixes[i]))
            c_name += strlen(prefixes[i]);
    for (size_t n; *c_name; c_name += n + (c_name[n] == '_')) {
        n = strcspn(c_name, "_");
        bool all = false;
        for (size_t i = 0; i < sizeof capitals / sizeof *capitals; i++)
            all = all || (strlen(capitals[i]) == n && strncmp(capitals[i], c_name, n) == 0);
        for (size_t i = 0; i < n; i++)
            strbuf_addc(out, (i == 0 || all) && c_name[i] >= 'a' && c_name[i] <= 'z'
                                 ? (char)(c_name[i] - 'a' + 'A')
                                 : c_name[i]);
    }
}

/* element: of what a list or map holds. */
static void add_go_type(struct strbuf *out, const struct protobody_field *f, bool element)
{
    switch ((enum protobody_how)f->how) {
    case PROTOBODY_INT:
    case PROTOBODY_INT0:
        strbuf_adds(out, "int32");
        break;
    case PROTOBODY_LONG:
    case PROTOBODY_LONG0:
        strbuf_adds(out, "int64");
        break;
    case PROTOBODY_BOOL:
    case PROTOBODY_BOOL0:
        strbuf_adds(out, "bool");
        break;
    case PROTOBODY_STRS:
        strbuf_adds(out, element ? "string" : "[]string");
        break;
    case PROTOBODY_INTS:
        strbuf_adds(out, element ? "int32" : "[]int32");
        break;
    case PROTOBODY_LONGS:
        strbuf_adds(out, element ? "int64" : "[]int64");
        break;
    case PROTOBODY_MSG:
    case PROTOBODY_LIST:
        strbuf_adds(out, f->how == PROTOBODY_LIST && !element ? "[]v1." : "v1.");
        add_go_name(out, f->type);
        break;
    case PROTOBODY_MAP_STR:
        strbuf_adds(out, element ? "string" : "map[string]string");
        break;
    case PROTOBODY_MAP_BYTES:
        strbuf_adds(out, element ? "[]uint8" : "map[string][]uint8");
        break;
    case PROTOBODY_MAP_AMOUNT:
        strbuf_adds(out, element ? "resource.Quantity" : "v1.ResourceList");
        break;
    case PROTOBODY_MAP_TIME:
        strbuf_adds(out, element ? "v1.Time" : "map[string]v1.Time");
        break;
    default:
        strbuf_adds(out, "string");
    }
}

/* The path without the places in lists. */
static void add_keys(struct strbuf *out, const struct strbuf *path)
{
    bool inside = false;
    for (size_t i = 0; i < path->len; i++) {
        inside = path->ptr[i] == '[' || (inside && path->ptr[i] != ']');
        if (!inside && path->ptr[i] != ']')
            strbuf_addc(out, path->ptr[i]);
    }
}

static int wrong_type(struct typing *x, const struct protobody_field *f, const char *owner,
                      const struct jsonnode *value, bool element)
{
    AUTO_STRBUF text = {0};
    const char *number = jsonnode_number_text(value);
    strbuf_addf(&text, "json: cannot unmarshal %s",
                jsonnode_is_object(value)   ? "object"
                : jsonnode_is_array(value)  ? "array"
                : jsonnode_is_string(value) ? "string"
                : jsonnode_is_bool(value)   ? "bool"
                                            : "number");
    bool wants_number = (f->how >= PROTOBODY_INT && f->how <= PROTOBODY_LONG) ||
                        f->how == PROTOBODY_INT0 || f->how == PROTOBODY_LONG0 ||
                        f->how == PROTOBODY_INTS || f->how == PROTOBODY_LONGS;
    if (number && wants_number)
        strbuf_addf(&text, " %s", number);
    strbuf_addf(&text, " into Go struct field %s.", owner);
    add_keys(&text, &x->path);
    strbuf_adds(&text, " of type ");
    add_go_type(&text, f, element);
    return error_set(x->err, ERROR_INVALID, "%s", strbuf_str(&text));
}

static void note(struct typing *x, const char *what)
{
    AUTO_STRBUF text = {0};
    if (!x->notes || x->notes->len >= TYPED_NOTES_MAX)
        return;
    strbuf_addf(&text, "%s field \"%s\"", what, strbuf_str(&x->path));
    vec_push(x->notes, strbuf_take(&text));
}

/* ---- paths ---- */

static size_t path_push(struct typing *x, const char *key)
{
    size_t before = x->path.len;
    strbuf_addf(&x->path, "%s%s", before > 0 ? "." : "", key);
    return before;
}

static size_t path_push_place(struct typing *x, size_t i)
{
    size_t before = x->path.len;
    strbuf_addf(&x->path, "[%zu]", i);
    return before;
}

static void path_pop(struct typing *x, size_t before)
{
    x->path.len = before;
    if (x->path.ptr)
        x->path.ptr[before] = '\0';
}

/* ---- values ---- */

static bool is_int(const struct jsonnode *v, bool wide)
{
    int64_t n = 0;
    return jsonnode_int(v, &n) && (wide || (n >= INT32_MIN && n <= INT32_MAX));
}

static int wrong_time(struct typing *x, const char *s, bool micro)
{
    size_t digits = strspn(s, "0123456789");
    const char *second = strlen(s) > 19 ? s + 19 : "";
    bool early = digits != 4 || s[4] != '-' || !*second;
    size_t fraction = *second == '.' ? strspn(second + 1, "0123456789") : 0;
    return error_set(
        x->err, ERROR_INVALID,
        "parsing time \"%s\" as \"2006-01-02T15:04:05%sZ07:00\": cannot parse \"%s\" as \"%s\"", s,
        micro ? ".000000" : "",
        early                   ? s
        : micro && fraction > 6 ? second + 7
                                : second,
        early                    ? "2006"
        : micro && fraction <= 6 ? ".000000"
                                 : "Z07:00");
}

/* A time is stored in UTC, to the second (micro: to the microsecond). */
static int check_time(struct typing *x, struct jsonnode *parent, const char *key, const char *s,
                      bool micro)
{
    char text[CLOCK_RFC3339_SIZE];
    int64_t ns = clock_parse_rfc3339(s);
    const char *fraction = strchr(s, '.');
    bool six = fraction && strspn(fraction + 1, "0123456789") == 6;
    bool ancient = strlen(s) >= 20 && strncmp(s, "1970", 4) < 0; /* before our own clock */
    if ((ns < 0 && !ancient) || (micro && !six))
        return wrong_time(x, s, micro);
    if (ns < 0)
        return 0;
    clock_rfc3339(ns, micro, text);
    if (parent && !str_eq(text, s))
        jsonnode_set_str(x->t, parent, key, text);
    return 0;
}

static int check_base64(struct typing *x, const char *s)
{
    AUTO_STRBUF bytes = {0};
    if (base64_decode(s, strlen(s), &bytes))
        return 0;
    size_t good = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
    return error_set(x->err, ERROR_INVALID, "illegal base64 data at input byte %zu", good);
}

static int check_amount(struct typing *x, struct jsonnode *value)
{
    AUTO_STRBUF text = {0};
    if (kinds_amount_canonical(value, &text))
        return 0;
    return error_set(x->err, ERROR_INVALID,
                     "quantities must match the regular expression "
                     "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
}

/* ---- maps and lists ---- */

static int check_entry(struct typing *x, const struct protobody_field *f, const char *owner,
                       struct jsonnode *value)
{
    const char *s = jsonnode_str(value);
    if (f->how == PROTOBODY_MAP_AMOUNT)
        return check_amount(x, value);
    if (!jsonnode_is_string(value))
        return wrong_type(x, f, owner, value, true);
    if (f->how == PROTOBODY_MAP_BYTES)
        return check_base64(x, str_or_empty(s));
    return f->how == PROTOBODY_MAP_TIME ? check_time(x, NULL, NULL, str_or_empty(s), false) : 0;
}

static int walk_map(struct typing *x, const struct protobody_field *f, const char *owner,
                    struct jsonnode *map)
{
    struct VEC(const char *) empty = {0}; /* keys whose value is null */
    struct map seen;
    int rc = 0;
    map_init(&seen);
    for (struct jsonnode_iter it = jsonnode_iter(map); rc == 0 && jsonnode_next(&it);) {
        if (map_put(&seen, it.key, it.value)) {
            size_t before = path_push(x, it.key);
            note(x, "duplicate");
            path_pop(x, before);
        }
        if (jsonnode_is_null(it.value))
            vec_push(&empty, it.key);
        else
            rc = check_entry(x, f, owner, it.value);
    }
    for (size_t i = 0; i < empty.len && rc == 0; i++)
        jsonnode_set_str(x->t, map, empty.items[i], f->how == PROTOBODY_MAP_AMOUNT ? "0" : "");
    /* Of a key that comes twice the last counts. */
    if (rc == 0 && map_count(&seen) < jsonnode_len(map)) {
        const char *key = NULL;
        void *value = NULL;
        while (jsonnode_len(map) > 0) {
            struct jsonnode_iter it = jsonnode_iter(map);
            (void)jsonnode_next(&it);
            (void)jsonnode_remove(map, it.key);
        }
        for (size_t i = 0; map_next(&seen, &i, &key, &value);)
            jsonnode_set(x->t, map, key, value);
    }
    if (rc == 0 && f->how == PROTOBODY_MAP_AMOUNT)
        kinds_amount_canonicalize(x->t, map);
    map_deinit(&seen);
    vec_deinit(&empty);
    return rc;
}

static int walk_object(struct typing *x, const struct protobody_field *table, const char *owner,
                       struct jsonnode *object);

static int walk_list(struct typing *x, const struct protobody_field *f, const char *owner,
                     struct jsonnode *list)
{
    AUTO_STRBUF name = {0};
    int rc = 0;
    size_t i = 0;
    if (f->of)
        add_go_name(&name, f->type);
    for (struct jsonnode_iter it = jsonnode_iter(list); rc == 0 && jsonnode_next(&it); i++) {
        size_t before = path_push_place(x, i);
        bool good = f->of                      ? jsonnode_is_object(it.value)
                    : f->how == PROTOBODY_STRS ? jsonnode_is_string(it.value)
                                               : is_int(it.value, f->how == PROTOBODY_LONGS);
        if (!good && !jsonnode_is_null(it.value))
            rc = wrong_type(x, f, owner, it.value, true);
        else if (f->of && good)
            rc = walk_object(x, f->of, strbuf_str(&name), it.value);
        path_pop(x, before);
    }
    return rc;
}

/* ---- members ---- */

/* A zero that Go leaves out, or a list or map of nothing. */
static bool is_left_out(const struct protobody_field *f, const struct jsonnode *v)
{
    int64_t n = 1;
    switch ((enum protobody_how)f->how) {
    case PROTOBODY_STR:
        return str_eq(jsonnode_str(v), "");
    case PROTOBODY_INT:
    case PROTOBODY_LONG:
        return jsonnode_int(v, &n) && n == 0;
    case PROTOBODY_BOOL:
        return !jsonnode_bool(v, true);
    case PROTOBODY_STRS:
    case PROTOBODY_INTS:
    case PROTOBODY_LONGS:
    case PROTOBODY_LIST:
    case PROTOBODY_MAP_STR:
    case PROTOBODY_MAP_BYTES:
    case PROTOBODY_MAP_AMOUNT:
    case PROTOBODY_MAP_TIME:
        return jsonnode_len(v) == 0;
    default:
        return false;
    }
}

static int check_value(struct typing *x, const struct protobody_field *f, const char *owner,
                       struct jsonnode *parent, const char *key, struct jsonnode *v)
{
    AUTO_STRBUF name = {0};
    switch ((enum protobody_how)f->how) {
    case PROTOBODY_STR:
    case PROTOBODY_STR0:
        return jsonnode_is_string(v) ? 0 : wrong_type(x, f, owner, v, false);
    case PROTOBODY_INT:
    case PROTOBODY_INT0:
        return is_int(v, false) ? 0 : wrong_type(x, f, owner, v, false);
    case PROTOBODY_LONG:
    case PROTOBODY_LONG0:
        return is_int(v, true) ? 0 : wrong_type(x, f, owner, v, false);
    case PROTOBODY_BOOL:
    case PROTOBODY_BOOL0:
        return jsonnode_is_bool(v) ? 0 : wrong_type(x, f, owner, v, false);
    case PROTOBODY_STRS:
    case PROTOBODY_INTS:
    case PROTOBODY_LONGS:
    case PROTOBODY_LIST:
        return jsonnode_is_array(v) ? walk_list(x, f, owner, v) : wrong_type(x, f, owner, v, false);
    case PROTOBODY_MAP_STR:
    case PROTOBODY_MAP_BYTES:
    case PROTOBODY_MAP_AMOUNT:
    case PROTOBODY_MAP_TIME:
        return jsonnode_is_object(v) ? walk_map(x, f, owner, v) : wrong_type(x, f, owner, v, false);
    case PROTOBODY_MSG:
        if (!jsonnode_is_object(v))
            return wrong_type(x, f, owner, v, false);
        add_go_name(&name, f->type);
        return walk_object(x, f->of, strbuf_str(&name), v);
    case PROTOBODY_TIME:
    case PROTOBODY_MICRO:
        if (!jsonnode_is_string(v))
            return wrong_type(x, f, owner, v, false);
        return check_time(x, parent, key, str_or_empty(jsonnode_str(v)), f->how == PROTOBODY_MICRO);
    case PROTOBODY_AMOUNT:
        return check_amount(x, v);
    case PROTOBODY_PORT:
        return jsonnode_is_string(v) || is_int(v, false) ? 0 : wrong_type(x, f, owner, v, false);
    default:
        return 0;
    }
}

static const struct protobody_field *find_field(const struct protobody_field *table,
                                                const char *key)
{
    const struct protobody_field *found = NULL;
    for (; table->number != 0 && !found; table++) {
        if (table->how == PROTOBODY_INLINE)
            found = find_field(table->of, key);
        else if (strcmp(table->name, key) == 0)
            found = table;
    }
    return found;
}

/* A member that comes twice: of values the last counts, objects are laid one over the other. */
static void unite(struct typing *x, struct jsonnode *object, const char *key)
{
    struct jsonnode *all = NULL;
    for (struct jsonnode_iter it = jsonnode_iter(object); jsonnode_next(&it);) {
        if (!str_eq(it.key, key))
            continue;
        if (!jsonnode_is_object(all) || !jsonnode_is_object(it.value)) {
            all = it.value;
            continue;
        }
        for (struct jsonnode_iter in = jsonnode_iter(it.value); jsonnode_next(&in);)
            jsonnode_set(x->t, all, in.key, jsonnode_clone(x->t, in.value));
    }
    all = jsonnode_clone(x->t, all);
    (void)jsonnode_remove(object, key);
    jsonnode_set(x->t, object, key, all);
}

struct names VEC(const char *);

static bool has_name(const struct names *n, const char *name)
{
    for (size_t i = 0; i < n->len; i++)
        if (strcmp(n->items[i], name) == 0)
            return true;
    return false;
}

static bool is_about(const struct typing *x, const char *key)
{
    return x->path.len == 0 && (str_eq(key, "apiVersion") || str_eq(key, "kind"));
}

static int walk_object(struct typing *x, const struct protobody_field *table, const char *owner,
                       struct jsonnode *object)
{
    struct names gone = {0};  /* may be as many as the members */
    struct names known = {0}; /* at most as many as the table has */
    struct names twice = {0};
    struct names times = {0};
    int rc = 0;
    for (struct jsonnode_iter it = jsonnode_iter(object); rc == 0 && jsonnode_next(&it);) {
        if (is_about(x, it.key))
            continue;
        const struct protobody_field *f = find_field(table, it.key);
        size_t before = path_push(x, it.key);
        if (!f) {
            note(x, "unknown");
            vec_push(&gone, it.key);
        } else if (has_name(&known, it.key)) {
            note(x, "duplicate");
            if (!has_name(&twice, it.key))
                vec_push(&twice, it.key);
        } else {
            vec_push(&known, it.key);
        }
        if (f && jsonnode_is_null(it.value))
            vec_push(&gone, it.key);
        else if (f && (f->how == PROTOBODY_TIME || f->how == PROTOBODY_MICRO))
            vec_push(&times, it.key); /* may be written anew, which an iterator does not survive */
        else if (f)
            rc = check_value(x, f, owner, object, it.key, it.value);
        if (rc == 0 && f && is_left_out(f, it.value) && !has_name(&twice, it.key))
            vec_push(&gone, it.key);
        path_pop(x, before);
    }
    for (size_t i = 0; i < twice.len && rc == 0; i++)
        unite(x, object, twice.items[i]);
    for (size_t i = 0; i < times.len && rc == 0; i++) {
        size_t before = path_push(x, times.items[i]);
        rc = check_value(x, find_field(table, times.items[i]), owner, object, times.items[i],
                         jsonnode_get(object, times.items[i]));
        path_pop(x, before);
    }
    for (size_t i = 0; i < gone.len && rc == 0; i++)
        (void)jsonnode_remove(object, gone.items[i]);
    vec_deinit(&gone);
    vec_deinit(&known);
    vec_deinit(&twice);
    vec_deinit(&times);
    return rc;
}

int typed_decode(struct jsontree *t, const char *api_version, const char *kind,
                 struct typed_notes *notes, struct error *err)
{
    const struct protobody_field *table = table_of(api_version, kind);
    struct typing x = {.t = t, .notes = notes, .err = err};
    if (!table || !jsonnode_is_object(jsontree_root(t)))
        return 0;
    int rc = walk_object(&x, table, kind, jsontree_root(t));
    strbuf_deinit(&x.path);
    return rc;
}
