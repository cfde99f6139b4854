// SPDX-License-Identifier: Apache-2.0
/*
 * store_dump - the store as lines of JSON:
 *
 *     {"version":1234}
 *     {"apiVersion":"v1","kind":"Pod","metadata":{...,"resourceVersion":"1200"},...}
 *
 * Objects keep their versions; the history is not kept, so that a watch that resumes from before
 * the dump is 410, as with an API server that has just started.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "test/local/store/store_internal.h"
#include "test/local/store/store_object.h"

static bool print(void *arg, struct object *o)
{
    struct strbuf *out = arg;
    strbuf_add(out, o->text, o->text_len);
    strbuf_addc(out, '\n');
    return true;
}

void store_dump(struct store *s, struct strbuf *out)
{
    strbuf_addf(out, "{\"version\":%llu}\n", (unsigned long long)s->version);
    for (size_t i = 0; i < s->tables.len; i++)
        store_each(s, s->tables.items[i]->kind, NULL, NULL, print, out);
}

static int load_object(struct store *s, const char *line, size_t n, struct error *err)
{
    AUTO_JSON *doc = NULL;
    if (json_parse(&doc, line, n, err) < 0)
        return -1;
    const char *api_version = json_get_str(json_root(doc), "apiVersion");
    const char *kind_name = json_get_str(json_root(doc), "kind");
    const struct kind *k = api_version && kind_name ? kinds_by_name(api_version, kind_name) : NULL;
    if (!k)
        return error_set(err, ERROR_INVALID, "no such kind: %s %s", str_or_empty(api_version),
                         str_or_empty(kind_name));
    struct store_draft d;
    if (store_draft_read(&d, k, line, n, err) < 0)
        return -1;
    struct store_table *t = store_table(s, k);
    uint64_t version = store_draft_version(&d);
    struct object *o = NULL;
    store_draft_key(&d, &s->key);
    int rc;
    if (version == 0 || version > s->version)
        rc =
            error_set(err, ERROR_INVALID, "%s: a version outside the store's", strbuf_str(&s->key));
    else if (map_get(&t->by_key, strbuf_str(&s->key)))
        rc = error_set(err, ERROR_INVALID, "%s: twice", strbuf_str(&s->key));
    else
        rc = store_draft_make(&d, k, version, &o, err);
    store_draft_deinit(&d);
    if (rc < 0 || !o)
        return -1;
    struct store_slot *slot = mem_new(struct store_slot, 1);
    slot->now = o;
    map_put(&t->by_key, o->key, slot);
    store_order_insert(&t->order, slot);
    return 0;
}

static int load_version(struct store *s, const char *line, size_t n, struct error *err)
{
    AUTO_JSON *doc = NULL;
    int64_t version;
    if (json_parse(&doc, line, n, err) < 0)
        return -1;
    if (!json_get_int(json_root(doc), "version", &version) || version < 0)
        return error_set(err, ERROR_INVALID, "version: Required value");
    s->version = (uint64_t)version;
    return 0;
}

int store_load(struct store *s, const char *text, size_t n, struct error *err)
{
    if (s->version != 0)
        return error_set(err, ERROR_INVALID, "the store is not empty");
    int64_t number = 0;
    while (n > 0) {
        const char *lf = memchr(text, '\n', n);
        size_t len = lf ? (size_t)(lf - text) : n;
        int rc = number++ == 0 ? load_version(s, text, len, err) : load_object(s, text, len, err);
        if (rc < 0)
            return error_wrap(err, "line %lld", (long long)number);
        size_t step = lf ? len + 1 : len;
        text += step;
        n -= step;
    }
    if (number == 0)
        return error_set(err, ERROR_INVALID, "the dump is empty");
    store_compact(s);
    return 0;
}
