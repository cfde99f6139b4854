// SPDX-License-Identifier: Apache-2.0
/*
 * store_object - see store_object.h.
 *
 * The store itself writes only the version, which changes with each write. Printing the whole
 * object again would cost more than the rest of a write, so the digits are replaced in the text (or
 * inserted at the end of metadata). A scan that knows only strings and brackets finds the place,
 * which suffices for text that the parser has accepted.
 *
 * An object is one block:   struct | labels | fields | key NUL | ns NUL | values... | text NUL
 * 100,000 pods are 100,000 allocations, and reading one touches one place in memory.
 */
#include "test/local/store/store_object.h"

#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/base/num.h"

/* ---- the position of the version ---- */

static size_t skip_blank(const char *t, size_t n, size_t i)
{
    while (i < n && (t[i] == ' ' || t[i] == '\t' || t[i] == '\n' || t[i] == '\r'))
        i++;
    return i;
}

/* Behind the closing quote; t[i] is the opening one. */
static size_t skip_string(const char *t, size_t n, size_t i)
{
    for (i++; i < n && t[i] != '"'; i++)
        if (t[i] == '\\')
            i++;
    return i + 1;
}

static size_t skip_value(const char *t, size_t n, size_t i)
{
    if (t[i] == '"')
        return skip_string(t, n, i);
    size_t depth = 0;
    while (i < n) {
        char c = t[i];
        if (c == '"') {
            i = skip_string(t, n, i);
            continue;
        }
        if (c == '{' || c == '[')
            depth++;
        else if (depth == 0 && (c == ',' || c == '}' || c == ']'))
            return i;
        else if ((c == '}' || c == ']') && --depth == 0)
            return i + 1;
        i++;
    }
    return n;
}

/* The value of a member of the object that begins at i; 0: it has none. *end: the object's '}'. */
static size_t find_member(const char *t, size_t n, size_t i, const char *key, size_t *end)
{
    size_t found = 0, len = strlen(key);
    for (i = skip_blank(t, n, i + 1); i < n && t[i] == '"'; i = skip_blank(t, n, i)) {
        bool same =
            !found && n - i > len + 2 && memcmp(t + i + 1, key, len) == 0 && t[i + 1 + len] == '"';
        i = skip_blank(t, n, skip_string(t, n, i)) + 1; /* behind the colon */
        i = skip_blank(t, n, i);
        if (same)
            found = i;
        if (same && !end)
            return found;
        i = skip_blank(t, n, skip_value(t, n, i));
        if (i < n && t[i] == ',')
            i++;
    }
    if (end)
        *end = i;
    return found;
}

bool store_object_span(const char *text, size_t n, const char *key, size_t *from, size_t *to)
{
    size_t at = find_member(text, n, skip_blank(text, n, 0), key, NULL);
    if (at == 0)
        return false;
    *from = at;
    *to = skip_value(text, n, at);
    return true;
}

static int find_version(struct store_draft *d, struct error *err)
{
    const char *t = d->text;
    size_t metadata = find_member(t, d->n, skip_blank(t, d->n, 0), "metadata", NULL);
    /* Keys with escapes in them would be read by the parser and not by the scan. */
    if (metadata == 0 || t[metadata] != '{')
        return error_set(err, ERROR_INVALID, "metadata: Required value");
    size_t end, version = find_member(t, d->n, metadata, "resourceVersion", &end);
    if (version > 0) {
        d->cut = version;
        d->resume = skip_value(t, d->n, version);
        d->lead = "\"";
        d->trail = "\"";
    } else {
        d->cut = d->resume = end;
        d->lead = t[skip_blank(t, d->n, metadata + 1)] == '}' ? "\"resourceVersion\":\""
                                                              : ",\"resourceVersion\":\"";
        d->trail = "\"";
    }
    return 0;
}

/* ---- reading ---- */

int store_draft_read(struct store_draft *d, const struct kind *k, const char *text, size_t n,
                     struct error *err)
{
    *d = (struct store_draft){.text = text, .n = n};
    if (n > STORE_TEXT_MAX)
        return error_set(err, ERROR_TOO_LARGE, "an object of %zu bytes", n);
    if (json_parse(&d->doc, text, n, err) < 0)
        return -1;
    json *metadata = json_get(json_root(d->doc), "metadata");
    d->name = json_get_str(metadata, "name");
    d->ns = k->namespaced ? json_get_str(metadata, "namespace") : "";
    d->uid = str_or_empty(json_get_str(metadata, "uid"));
    int rc = 0;
    if (!d->name || !*d->name)
        rc = error_set(err, ERROR_INVALID, "metadata.name: Required value");
    else if (!d->ns || (k->namespaced && !*d->ns))
        rc = error_set(err, ERROR_INVALID, "metadata.namespace: Required value");
    else
        rc = find_version(d, err);
    if (rc < 0 || !d->name || !d->ns) {
        store_draft_deinit(d);
        return -1;
    }
    d->ns_len = strlen(d->ns);
    d->name_len = strlen(d->name);
    return 0;
}

void store_draft_deinit(struct store_draft *d)
{
    json_free(d->doc);
    d->doc = NULL;
}

void store_draft_key(const struct store_draft *d, struct strbuf *out)
{
    strbuf_reset(out);
    if (d->ns_len > 0) {
        strbuf_add(out, d->ns, d->ns_len);
        strbuf_addc(out, '/');
    }
    strbuf_add(out, d->name, d->name_len);
}

uint64_t store_draft_version(const struct store_draft *d)
{
    const char *text = json_get_str(json_get(json_root(d->doc), "metadata"), "resourceVersion");
    int64_t version = 0;
    if (!text || num_parse(text, strlen(text), &version, NULL) < 0 || version < 0)
        return 0;
    return (uint64_t)version;
}

/* Fields that are not simply what is at their path, as Kubernetes selects by them. */
static const struct {
    const char *field, *path, *absent;
} odd_fields[] = {
    {"spec.hostNetwork", "spec.hostNetwork", "false"},
    {"spec.unschedulable", "spec.unschedulable", "false"},
    {"source", "source.component", ""},
};

/* "spec.nodeName" → its value as text; "" when it is absent or no scalar. */
static const char *field_value(json *root, const char *path, size_t *len)
{
    json *at = root;
    const char *text = "";
    for (size_t i = 0; i < sizeof odd_fields / sizeof odd_fields[0]; i++)
        if (str_eq(path, odd_fields[i].field)) {
            path = odd_fields[i].path;
            text = odd_fields[i].absent;
            break;
        }
    while (at && *path) {
        char key[128];
        size_t n = strcspn(path, ".");
        if (n >= sizeof key)
            return *len = 0, "";
        memcpy(key, path, n);
        key[n] = '\0';
        at = json_get(at, key);
        path += n + (path[n] == '.');
    }
    if (json_is_bool(at))
        text = json_bool(at, false) ? "true" : "false";
    else if (json_is_number(at))
        text = json_number_text(at);
    else if (json_is_string(at))
        text = str_or_empty(json_str(at));
    *len = strlen(text);
    return text;
}

/* ---- making ---- */

static void sort_labels(struct labels *l)
{
    for (size_t i = 1; i < l->len; i++) { /* few, and mostly in order */
        struct label x = l->items[i];
        size_t at = i;
        for (; at > 0 && strcmp(l->items[at - 1].key, x.key) > 0; at--)
            l->items[at] = l->items[at - 1];
        l->items[at] = x;
    }
}

static const char *put(char **to, const char *s, size_t n)
{
    char *at = *to;
    memcpy(at, s, n);
    at[n] = '\0';
    *to += n + 1;
    return at;
}

enum { FIELDS = 32, DIGITS = 24 };

static size_t fields_count(const struct kind *k)
{
    size_t n = 0;
    while (k->fields && k->fields[n])
        n++;
    if (n > FIELDS)
        abort(); /* kinds are rows of our own table */
    return n;
}

/* In decimal; returns the length. This and not printf: it is done at every write. */
static size_t print_version(uint64_t version, char out[DIGITS])
{
    char reversed[DIGITS];
    size_t n = 0;
    do
        reversed[n++] = (char)('0' + version % 10);
    while ((version /= 10) > 0);
    for (size_t i = 0; i < n; i++)
        out[i] = reversed[n - 1 - i];
    out[n] = '\0';
    return n;
}

int store_draft_make(const struct store_draft *d, const struct kind *k, uint64_t version,
                     struct object **out, struct error *err)
{
    json *root = json_root(d->doc);
    json *labels = json_get(json_get(root, "metadata"), "labels");
    char digits[DIGITS];
    size_t lead = strlen(d->lead), digits_len = print_version(version, digits);
    size_t trail = strlen(d->trail);
    size_t text_len = d->cut + lead + digits_len + trail + (d->n - d->resume);
    size_t uid_len = strlen(d->uid), extra = fields_count(k);
    size_t labels_len = json_len(labels), fields_len = extra + 1 + (k->namespaced ? 1 : 0);
    size_t bytes = d->ns_len + 1 + d->name_len + 1 + d->ns_len + 1 + uid_len + 1 + text_len + 1;

    for (struct json_iter it = json_iter(labels); json_next(&it);) {
        if (!it.key || !json_str(it.value))
            return error_set(err, ERROR_INVALID, "metadata.labels: '%s' is not a string",
                             it.key ? it.key : "(element)");
        bytes += it.key_len + 1 + strlen(json_str(it.value)) + 1;
    }
    const char *values[FIELDS];
    size_t values_len[FIELDS];
    for (size_t i = 0; i < extra; i++) {
        values[i] = field_value(root, k->fields[i], &values_len[i]);
        bytes += values_len[i] + 1;
    }
    size_t head = sizeof(struct object) + (labels_len + fields_len) * sizeof(struct label);
    char *block = malloc(head + bytes);
    if (!block)
        abort();
    struct object *o = (struct object *)(void *)block;
    struct label *items = (struct label *)(void *)(block + sizeof *o);
    char *at = block + head;
    *o = (struct object){.refs = 1, .kind = k, .version = version, .text_len = text_len};
    o->key = at;
    if (d->ns_len > 0) {
        put(&at, d->ns, d->ns_len);
        at[-1] = '/';
    }
    o->name = put(&at, d->name, d->name_len);
    o->ns = put(&at, d->ns, d->ns_len);
    o->uid = put(&at, d->uid, uid_len);
    o->labels = (struct labels){.items = items, .len = labels_len};
    for (struct json_iter it = json_iter(labels); json_next(&it);) {
        const char *value = json_str(it.value);
        items->key = put(&at, it.key, it.key_len);
        items++->value = put(&at, value, strlen(value));
    }
    o->fields = (struct labels){.items = items, .len = fields_len};
    *items++ = (struct label){.key = "metadata.name", .value = o->name};
    if (k->namespaced)
        *items++ = (struct label){.key = "metadata.namespace", .value = o->ns};
    for (size_t i = 0; i < extra; i++)
        *items++ = (struct label){.key = k->fields[i], .value = put(&at, values[i], values_len[i])};
    sort_labels(&o->labels);
    sort_labels(&o->fields);
    o->text = at;
    memcpy(at, d->text, d->cut);
    memcpy(at += d->cut, d->lead, lead);
    memcpy(at += lead, digits, digits_len);
    memcpy(at += digits_len, d->trail, trail);
    memcpy(at += trail, d->text + d->resume, d->n - d->resume);
    at[d->n - d->resume] = '\0';
    *out = o;
    return 0;
}

bool store_draft_equals(const struct store_draft *d, const struct object *o)
{
    char digits[DIGITS];
    if (d->cut + strlen(d->lead) + print_version(o->version, digits) + strlen(d->trail) +
            (d->n - d->resume) !=
        o->text_len)
        return false; /* both are compact: another order of members is as long */
    struct object *same = NULL;
    if (store_draft_make(d, o->kind, o->version, &same, NULL) < 0 || !same)
        return false; /* then it is refused when it is made */
    bool equal = memcmp(same->text, o->text, o->text_len) == 0;
    if (!equal) { /* as long, and yet other bytes: perhaps only in another order */
        struct json_doc *a = NULL, *b = NULL;
        equal = json_parse(&a, same->text, same->text_len, NULL) == 0 &&
                json_parse(&b, o->text, o->text_len, NULL) == 0 &&
                json_equal(json_root(a), json_root(b));
        json_free(a);
        json_free(b);
    }
    object_unref(same);
    return equal;
}
