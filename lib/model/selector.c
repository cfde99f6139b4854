// SPDX-License-Identifier: Apache-2.0
/*
 * Labels, label selectors, node selectors. Three of Kubernetes' rules that are easy to get wrong:
 *
 *   - NotIn and DoesNotExist hold for an object that lacks the key; In, Gt and Lt do not.
 *   - An absent LabelSelector selects nothing, an empty one everything; an empty node term selects
 *     nothing.
 *   - The API server accepts some node terms that can never match: Gt with "abc", values that no
 *     label can have. Like kube-scheduler we ignore that one term and try the others
 *     (node_term.invalid says why): a decode error would hide the pod and what it uses.
 */
#include "lib/model/selector.h"

#include <stdlib.h>

#include "lib/base/num.h"
#include "lib/base/str.h"

const char *labels_get(const struct labels *l, const char *key)
{
    size_t lo = 0, hi = l->len;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = strcmp(key, l->items[mid].key);
        if (c == 0)
            return l->items[mid].value;
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

static int label_order(const void *a, const void *b)
{
    const struct label *x = a, *y = b;
    int c = strcmp(x->key, y->key);
    return c != 0 ? c : (x->key > y->key) - (x->key < y->key); /* in the order of the text */
}

void labels_sort(struct labels *l)
{
    if (l->len > 1)
        qsort(l->items, l->len, sizeof l->items[0], label_order);
}

/* The API server writes maps sorted, so usually nothing is moved. Of duplicates the last stays. */
static int sort_labels(struct label *items, size_t *n, struct error *err)
{
    size_t sorted = 1, kept = 1;
    int rc = 0;

    while (sorted < *n && strcmp(items[sorted - 1].key, items[sorted].key) < 0)
        sorted++;
    if (sorted >= *n)
        return 0;
    labels_sort(&(struct labels){items, *n});
    for (size_t i = 1; i < *n; i++) {
        if (strcmp(items[kept - 1].key, items[i].key) == 0) {
            rc = error_set(rc < 0 ? NULL : err, ERROR_INVALID, "key '%s' is there twice",
                           items[i].key);
            kept--;
        }
        items[kept++] = items[i];
    }
    *n = kept;
    return rc;
}

struct labels labels_copy(const struct labels *from, struct arena *a)
{
    struct labels to = {.items = arena_new(a, struct label, from->len), .len = from->len};
    for (size_t i = 0; i < from->len; i++)
        to.items[i] = (struct label){arena_strdup(a, from->items[i].key),
                                     arena_strdup(a, from->items[i].value)};
    return to;
}

/* What is wrong with a member; false: nothing. */
static bool is_bad_label(const struct json_iter *it, struct error *err)
{
    if (memchr(it->key, '\0', it->key_len))
        return error_set(err, ERROR_INVALID, "key '%s' holds a NUL", it->key) < 0;
    if (!json_str(it->value))
        return error_set(err, ERROR_INVALID, "key '%s': must be a string without NUL, not %s",
                         it->key, json_kind_name(it->value)) < 0;
    return false;
}

/* Bytes of the value that are taken: whole characters. */
static size_t taken(json *value, size_t longest)
{
    size_t len = json_str_len(value);
    if (len <= longest)
        return len;
    const char *text = json_str(value);
    while (longest > 0 && ((unsigned char)text[longest] & 0xC0) == 0x80)
        longest--;
    return longest;
}

int labels_decode_some(json *j, size_t (*longest)(const char *key), struct arena *a,
                       struct labels *out, struct error *err)
{
    size_t bytes = 0, n = 0;
    int rc = 0;

    *out = (struct labels){0};
    if (!j || json_is_null(j))
        return 0;
    if (!json_is_object(j))
        return error_set(err, ERROR_INVALID, "must be an object, not %s", json_kind_name(j));
    for (struct json_iter it = json_iter(j); json_next(&it);) {
        size_t most = longest ? longest(it.key) : SIZE_MAX;
        if (most == 0)
            continue;
        if (is_bad_label(&it, rc < 0 ? NULL : err)) {
            rc = -1;
            continue;
        }
        bytes += it.key_len + taken(it.value, most) + 2;
        n++;
    }
    if (n == 0)
        return rc;

    /* All text in one allocation: a list of pods has tens of thousands of these. */
    struct label *items = arena_new(a, struct label, n);
    char *text = arena_alloc(a, bytes);
    size_t i = 0;
    for (struct json_iter it = json_iter(j); json_next(&it);) {
        size_t most = longest ? longest(it.key) : SIZE_MAX;
        if (most == 0 || (rc < 0 && is_bad_label(&it, NULL)))
            continue;
        size_t value_len = taken(it.value, most);
        items[i].key = memcpy(text, it.key, it.key_len);
        text += it.key_len + 1; /* arena memory is zeroed: NUL-terminated */
        items[i].value = memcpy(text, json_str(it.value), value_len);
        text += value_len + 1;
        i++;
    }
    if (sort_labels(items, &n, rc < 0 ? NULL : err) < 0)
        rc = -1;
    *out = (struct labels){items, n};
    return rc;
}

int labels_decode(json *j, struct arena *a, struct labels *out, struct error *err)
{
    return labels_decode_some(j, NULL, a, out, err);
}

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* [A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?, at most 63 bytes. */
static bool is_name(const char *s, size_t n)
{
    if (n == 0 || n > 63 || !is_alnum(s[0]) || !is_alnum(s[n - 1]))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!is_alnum(s[i]) && s[i] != '-' && s[i] != '_' && s[i] != '.')
            return false;
    return true;
}

/* Lower-case labels joined by dots, at most 253 bytes. */
static bool is_subdomain(const char *s, size_t n)
{
    if (n == 0 || n > 253)
        return false;
    for (size_t i = 0; i < n; i++) {
        bool edge = i == 0 || i == n - 1 || s[i - 1] == '.' || s[i + 1] == '.';
        bool inner = s[i] == '-' && !edge;
        bool dot = s[i] == '.' && i > 0 && i < n - 1 && s[i - 1] != '.' && s[i - 1] != '-';
        if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= '0' && s[i] <= '9') || inner || dot))
            return false;
    }
    return true;
}

bool selector_key_is_legal(const char *key)
{
    const char *slash = strchr(key, '/');

    if (!slash)
        return is_name(key, strlen(key));
    return is_subdomain(key, (size_t)(slash - key)) && is_name(slash + 1, strlen(slash + 1));
}

bool selector_value_is_legal(const char *value)
{
    return value[0] == '\0' || is_name(value, strlen(value));
}

static bool has_value(const struct requirement *r, const char *value)
{
    for (size_t i = 0; i < r->values_len; i++)
        if (strcmp(r->values[i], value) == 0)
            return true;
    return false;
}

static bool requirement_matches(const struct requirement *r, const char *value)
{
    int64_t number;

    switch (r->op) {
    case SELECTOR_IN:
        return value && has_value(r, value);
    case SELECTOR_NOT_IN:
        return !value || !has_value(r, value);
    case SELECTOR_EXISTS:
        return value != NULL;
    case SELECTOR_NOT_EXISTS:
        return value == NULL;
    case SELECTOR_GT:
    case SELECTOR_LT:
        if (!value || num_parse(value, strlen(value), &number, NULL) < 0)
            return false;
        return r->op == SELECTOR_GT ? number > r->number : number < r->number;
    }
    return false;
}

bool selector_matches(const struct selector *s, const struct labels *l)
{
    if (s->nothing)
        return false;
    for (size_t i = 0; i < s->len; i++)
        if (!requirement_matches(&s->reqs[i], labels_get(l, s->reqs[i].key)))
            return false;
    return true;
}

static bool op_parse(const char *text, bool numbers, enum selector_op *out)
{
    static const char *const names[] = {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"};

    for (size_t i = 0; text && i < (numbers ? 6 : 4); i++)
        if (strcmp(names[i], text) == 0) {
            *out = (enum selector_op)i;
            return true;
        }
    return false;
}

/* path: "matchExpressions[0]", for messages. */
static int values_decode(json *j, const char *path, struct arena *a, struct requirement *r,
                         struct error *err)
{
    size_t i = 0;

    if (!j || json_is_null(j))
        return 0;
    if (!json_is_array(j))
        return error_set(err, ERROR_INVALID, "%s.values: must be an array, not %s", path,
                         json_kind_name(j));
    r->values = arena_new(a, const char *, json_len(j));
    for (struct json_iter it = json_iter(j); json_next(&it); i++) {
        const char *s = json_str(it.value);
        if (!s)
            return error_set(err, ERROR_INVALID,
                             "%s.values[%zu]: must be a string without NUL, not %s", path, i,
                             json_kind_name(it.value));
        r->values[i] = arena_strdup(a, s);
    }
    r->values_len = i;
    return 0;
}

/* Checks the number of values for the operator. */
static int values_check(const struct requirement *r, const char *path, struct error *err)
{
    switch (r->op) {
    case SELECTOR_IN:
    case SELECTOR_NOT_IN:
        if (r->values_len == 0)
            return error_set(err, ERROR_INVALID, "%s.values: In and NotIn need at least one", path);
        break;
    case SELECTOR_EXISTS:
    case SELECTOR_NOT_EXISTS:
        if (r->values_len != 0)
            return error_set(err, ERROR_INVALID, "%s.values: Exists and DoesNotExist take none",
                             path);
        break;
    case SELECTOR_GT:
    case SELECTOR_LT:
        if (r->values_len != 1)
            return error_set(err, ERROR_INVALID, "%s.values: Gt and Lt need exactly one", path);
        break;
    }
    return 0;
}

static int requirement_decode(json *j, const char *path, bool numbers, struct arena *a,
                              struct requirement *out, struct error *err)
{
    const char *key = json_get_str(j, "key");
    const char *op = json_get_str(j, "operator");

    if (!json_is_object(j))
        return error_set(err, ERROR_INVALID, "%s: must be an object, not %s", path,
                         json_kind_name(j));
    if (!key)
        return error_set(err, ERROR_INVALID, "%s.key: must be a string", path);
    if (!op_parse(op, numbers, &out->op))
        return error_set(err, ERROR_INVALID, "%s.operator: unknown operator '%s'", path,
                         str_or_empty(op));
    out->key = arena_strdup(a, key);
    if (values_decode(json_get(j, "values"), path, a, out, err) < 0)
        return -1;
    return values_check(out, path, err);
}

/* Appends the array under `name` to out->reqs, which has the space. */
static int requirements_decode(json *j, const char *name, bool numbers, struct arena *a,
                               struct selector *out, struct error *err)
{
    size_t i = 0;

    for (struct json_iter it = json_iter(j); json_next(&it); i++) {
        char path[64];
        (void)str_format(path, sizeof path, "%s[%zu]", name, i);
        if (requirement_decode(it.value, path, numbers, a, &out->reqs[out->len], err) < 0)
            return -1;
        out->len++;
    }
    return 0;
}

static int array_member(json *j, const char *name, json **out, struct error *err)
{
    *out = json_get(j, name);
    if (*out && !json_is_null(*out) && !json_is_array(*out))
        return error_set(err, ERROR_INVALID, "%s: must be an array, not %s", name,
                         json_kind_name(*out));
    return 0;
}

int selector_decode(json *j, struct arena *a, struct selector *out, struct error *err)
{
    struct labels equal;
    json *expressions;

    *out = (struct selector){.nothing = true};
    if (!j || json_is_null(j))
        return 0;
    if (!json_is_object(j))
        return error_set(err, ERROR_INVALID, "must be an object, not %s", json_kind_name(j));
    if (labels_decode(json_get(j, "matchLabels"), a, &equal, err) < 0)
        return error_wrap(err, "matchLabels");
    if (array_member(j, "matchExpressions", &expressions, err) < 0)
        return -1;

    struct selector s = {.reqs =
                             arena_new(a, struct requirement, equal.len + json_len(expressions))};
    for (; s.len < equal.len; s.len++) {
        const char **value = arena_new(a, const char *, 1);
        value[0] = equal.items[s.len].value;
        s.reqs[s.len] = (struct requirement){
            .key = equal.items[s.len].key, .op = SELECTOR_IN, .values = value, .values_len = 1};
    }
    if (requirements_decode(expressions, "matchExpressions", false, a, &s, err) < 0)
        return -1;
    for (size_t i = 0; i < s.len; i++) {
        const struct requirement *r = &s.reqs[i];
        if (!selector_key_is_legal(r->key))
            return error_set(err, ERROR_INVALID, "not a label key: '%s'", r->key);
        for (size_t k = 0; k < r->values_len; k++)
            if (!selector_value_is_legal(r->values[k]))
                return error_set(err, ERROR_INVALID, "key '%s': not a label value: '%s'", r->key,
                                 r->values[k]);
    }
    *out = s;
    return 0;
}

/* An error: the expression can never match, although the API server may accept it. */
static int expression_finish(struct requirement *r, size_t i, struct error *err)
{
    if (!selector_key_is_legal(r->key))
        return error_set(err, ERROR_INVALID, "matchExpressions[%zu].key: not a label key: '%s'", i,
                         r->key);
    for (size_t k = 0; k < r->values_len; k++)
        if (!selector_value_is_legal(r->values[k]))
            return error_set(err, ERROR_INVALID,
                             "matchExpressions[%zu].values[%zu]: not a label value: '%s'", i, k,
                             r->values[k]);
    if ((r->op == SELECTOR_GT || r->op == SELECTOR_LT) &&
        num_parse(r->values[0], strlen(r->values[0]), &r->number, NULL) < 0)
        return error_set(err, ERROR_INVALID,
                         "matchExpressions[%zu].values[0]: not an integer: '%s'", i, r->values[0]);
    return 0;
}

static int field_check(const struct requirement *r, size_t i, struct error *err)
{
    if (strcmp(r->key, "metadata.name") != 0)
        return error_set(err, ERROR_INVALID,
                         "matchFields[%zu].key: only metadata.name is known: '%s'", i, r->key);
    if (r->op != SELECTOR_IN && r->op != SELECTOR_NOT_IN)
        return error_set(err, ERROR_INVALID,
                         "matchFields[%zu].operator: fields know In and NotIn only", i);
    if (r->values_len != 1)
        return error_set(err, ERROR_INVALID, "matchFields[%zu].values: fields need exactly one", i);
    return 0;
}

static int term_decode(json *j, struct arena *a, struct node_term *out, struct error *err)
{
    json *expressions, *fields;

    if (!json_is_object(j))
        return error_set(err, ERROR_INVALID, "must be an object, not %s", json_kind_name(j));
    if (array_member(j, "matchExpressions", &expressions, err) < 0 ||
        array_member(j, "matchFields", &fields, err) < 0)
        return -1;
    out->labels.reqs = arena_new(a, struct requirement, json_len(expressions));
    out->fields.reqs = arena_new(a, struct requirement, json_len(fields));
    if (requirements_decode(expressions, "matchExpressions", true, a, &out->labels, err) < 0 ||
        requirements_decode(fields, "matchFields", true, a, &out->fields, err) < 0)
        return -1;

    for (size_t i = 0; i < out->labels.len; i++)
        if (expression_finish(&out->labels.reqs[i], i, err) < 0)
            return -1;
    for (size_t i = 0; i < out->fields.len; i++)
        if (field_check(&out->fields.reqs[i], i, err) < 0)
            return -1;
    return 0;
}

void node_term_decode(json *j, struct arena *a, struct node_term *out)
{
    struct error why = ERROR_INIT;

    *out = (struct node_term){0};
    if (term_decode(j, a, out, &why) < 0)
        out->invalid = arena_strdup(a, why.text);
}

int node_selector_decode(json *j, struct arena *a, struct node_selector *out, struct error *err)
{
    json *terms;
    size_t i = 0;

    *out = (struct node_selector){0};
    if (!j || json_is_null(j))
        return 0;
    if (!json_is_object(j))
        return error_set(err, ERROR_INVALID, "must be an object, not %s", json_kind_name(j));
    if (array_member(j, "nodeSelectorTerms", &terms, err) < 0)
        return -1;
    out->terms = arena_new(a, struct node_term, json_len(terms));
    for (struct json_iter it = json_iter(terms); json_next(&it); i++)
        node_term_decode(it.value, a, &out->terms[i]);
    out->len = i;
    return 0;
}

bool node_term_matches(const struct node_term *t, const struct labels *node_labels,
                       const char *node_name)
{
    if (t->invalid || t->labels.len + t->fields.len == 0)
        return false;
    if (!selector_matches(&t->labels, node_labels))
        return false;
    for (size_t i = 0; i < t->fields.len; i++)
        if (!requirement_matches(&t->fields.reqs[i], node_name))
            return false;
    return true;
}

bool node_selector_matches(const struct node_selector *s, const struct labels *node_labels,
                           const char *node_name)
{
    for (size_t i = 0; i < s->len; i++)
        if (node_term_matches(&s->terms[i], node_labels, node_name))
            return true;
    return false;
}
