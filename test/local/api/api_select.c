// SPDX-License-Identifier: Apache-2.0
/*
 * api_select - labelSelector and fieldSelector of a request. A field selector becomes requirements
 * on the fields that the store keeps with each object, so that both are matched alike.
 */
#include <string.h>

#include "test/local/api/api_internal.h"
#include "test/local/api/selector_parse.h"

static bool is_known(const struct kind *k, const char *field)
{
    if (str_eq(field, "metadata.name") || str_eq(field, "metadata.namespace"))
        return true;
    for (const char *const *f = k->fields; f && *f; f++)
        if (str_eq(*f, field))
            return true;
    return false;
}

static int unknown(const struct kind *k, const char *field, struct error *err)
{
    if (k->fields && !k->custom)
        return api_fail(err, 400, "field label not supported: %s", field);
    return api_fail(err, 400,
                    "\"%s\" is not a known field selector: only \"metadata.name\", "
                    "\"metadata.namespace\"",
                    field);
}

/* One term: a=b, a==b, a!=b; \\ \, \= in the value stand for themselves. */
static int term(const char *text, size_t n, const char *whole, const struct kind *k,
                struct arena *a, struct requirement *out, struct error *err)
{
    const char *eq = memchr(text, '=', n);
    if (!eq)
        return api_fail(err, 400, "invalid selector: '%s'; can't understand '%.*s'", whole, (int)n,
                        text);
    bool not = eq > text && eq[-1] == '!';
    const char *value = eq + 1;
    const char *end = text + n;
    if (!not &&value < end && *value == '=')
        value++;
    char *key = arena_strndup(a, text, (size_t)(eq - text) - (not ? 1 : 0));
    char *plain = arena_strndup(a, value, (size_t)(end - value));
    char *to = plain;
    for (const char *p = plain; *p != '\0'; p++) {
        if (*p == '\\' && p[1] != '\0')
            p++;
        *to++ = *p;
    }
    *to = '\0';
    if (!is_known(k, key))
        return unknown(k, key, err);
    *out = (struct requirement){.key = key, .op = not ? SELECTOR_NOT_IN : SELECTOR_IN};
    out->values = arena_new(a, const char *, 1);
    out->values[0] = plain;
    out->values_len = 1;
    return 0;
}

static int parse_fields(const char *text, const struct kind *k, struct arena *a,
                        struct selector *out, struct error *err)
{
    size_t most = 1;
    if (strlen(text) > SELECTOR_TEXT_MAX)
        return api_fail(err, 400, "invalid selector: it is longer than %d bytes",
                        SELECTOR_TEXT_MAX);
    for (const char *p = text; *p != '\0'; p++)
        most += *p == ',';
    out->reqs = arena_new(a, struct requirement, most);
    for (const char *at = text; *at != '\0';) {
        const char *end = at;
        while (*end != '\0' && *end != ',')
            end += *end == '\\' && end[1] != '\0' ? 2 : 1;
        if (end > at && term(at, (size_t)(end - at), text, k, a, &out->reqs[out->len++], err) < 0)
            return -1;
        at = *end == ',' ? end + 1 : end;
    }
    return 0;
}

/* A watch of one object, by its path: a field selector may only say the same. */
static int select_name(struct api_selection *s, const char *name, struct error *err)
{
    bool same = s->fields.len == 0;
    for (size_t i = 0; i < s->fields.len; i++) {
        const struct requirement *q = &s->fields.reqs[i];
        same = same || (q->op == SELECTOR_IN && str_eq(q->key, "metadata.name") &&
                        str_eq(q->values[0], name));
    }
    if (!same)
        return api_fail(err, 400, "fieldSelector metadata.name doesn't match requested name");
    if (s->fields.len > 0)
        return 0;
    struct requirement *q = arena_new(&s->arena, struct requirement, 1);
    *q = (struct requirement){.key = "metadata.name", .op = SELECTOR_IN, .values_len = 1};
    q->values = arena_new(&s->arena, const char *, 1);
    q->values[0] = arena_strdup(&s->arena, name);
    s->fields = (struct selector){.reqs = q, .len = 1};
    s->all = false;
    return 0;
}

int api_select(const struct call *c, const struct api_target *t, struct api_selection *out,
               struct error *err)
{
    const char *labels = call_query(c, "labelSelector");
    const char *fields = call_query(c, "fieldSelector");
    *out = (struct api_selection){.all = !(labels && *labels) && !(fields && *fields)};
    arena_init(&out->arena, 0);
    if (labels && selector_parse(labels, &out->arena, &out->labels, err) < 0) {
        (void)error_wrap(err, "unable to parse requirement");
        err->http_status = 400;
        err->code = ERROR_INVALID;
        return -1;
    }
    if (fields && parse_fields(fields, t->kind, &out->arena, &out->fields, err) < 0)
        return -1;
    return t->name ? select_name(out, t->name, err) : 0;
}

void api_selection_deinit(struct api_selection *s)
{
    arena_deinit(&s->arena);
}

bool api_selected(const struct api_selection *s, const char *ns, const struct object *o)
{
    if (ns && strcmp(ns, o->ns) != 0)
        return false;
    return s->all ||
           (selector_matches(&s->labels, &o->labels) && selector_matches(&s->fields, &o->fields));
}
