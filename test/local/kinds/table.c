// SPDX-License-Identifier: Apache-2.0
/*
 * table - the cells of `kubectl get`, which the server prints; a row has the object's metadata too,
 * for names, labels (-L) and --sort-by. kinds_print.c says which columns there are.
 */
#include "test/local/kinds/table.h"

#include "lib/base/json.h"
#include "test/local/kinds/kinds_row.h"

/* Of kinds that no page or test lists. */
static const struct kind_column plain_columns[] = {COLUMN_NAME, COLUMN_AGE, COLUMN_END};

static const struct kind_column *columns_of(const struct kind *k)
{
    return k->columns ? k->columns : plain_columns;
}

static void print_columns(const struct kind *k, struct json_writer *w)
{
    json_key(w, "columnDefinitions");
    json_array_begin(w);
    for (const struct kind_column *c = columns_of(k); c->name; c++) {
        json_object_begin(w);
        json_kv_str(w, "name", c->name);
        json_kv_str(w, "type", c->type);
        json_kv_str(w, "format", c->format);
        json_kv_str(w, "description", c->description);
        json_kv_int(w, "priority", c->wide ? 1 : 0);
        json_object_end(w);
    }
    json_array_end(w);
}

static void print_absent(const struct kind_column *c, struct json_writer *w)
{
    if (c->absent)
        json_put_raw(w, c->absent, strlen(c->absent));
    else if (str_eq(c->type, "integer"))
        json_put_int(w, 0);
    else if (str_eq(c->type, "boolean"))
        json_put_bool(w, false);
    else
        json_put_str(w, "<none>");
}

/* kubectl cannot print lists and objects in a cell: they become text. */
static void print_cell(const struct kind_column *c, json *object, int64_t now_ns,
                       struct json_writer *w)
{
    if (c->print) {
        c->print(object, now_ns, w);
        return;
    }
    json *v = kinds_print_at(object, c->path);
    if (!v || json_is_null(v) || (json_is_string(v) && json_str_len(v) == 0)) {
        print_absent(c, w);
    } else if (json_is_object(v) || json_is_array(v)) {
        AUTO_STRBUF text = {0};
        struct json_writer inner;
        json_writer_init(&inner, &text);
        json_put_value(&inner, v);
        json_put_str_n(w, strbuf_str(&text), text.len);
    } else {
        json_put_value(w, v);
    }
}

static void print_row(const struct kind *k, struct object *o, bool include_object, int64_t now_ns,
                      struct json_writer *w)
{
    AUTO_JSON *doc = NULL;
    /* Stored text was parsed before, so this cannot fail; if it did, the cells would be empty. */
    json *root = json_parse(&doc, o->text, o->text_len, NULL) == 0 ? json_root(doc) : NULL;
    json_object_begin(w);
    json_key(w, "cells");
    json_array_begin(w);
    for (const struct kind_column *c = columns_of(k); c->name; c++)
        print_cell(c, root, now_ns, w);
    json_array_end(w);
    json_key(w, "object");
    if (include_object) {
        json_put_raw(w, o->text, o->text_len);
    } else {
        json_object_begin(w);
        json_kv_str(w, "kind", "PartialObjectMetadata");
        json_kv_str(w, "apiVersion", "meta.k8s.io/v1");
        json_key(w, "metadata");
        json_put_value(w, json_get(root, "metadata"));
        json_object_end(w);
    }
    json_object_end(w);
}

static void begin(struct json_writer *w, struct strbuf *out)
{
    json_writer_init(w, out);
    json_object_begin(w);
    json_kv_str(w, "kind", "Table");
    json_kv_str(w, "apiVersion", "meta.k8s.io/v1");
    json_key(w, "metadata");
}

void table_print_list(const struct kind *k, struct object *const *objs, size_t n,
                      const char *list_metadata_json, bool include_object, int64_t now_ns,
                      struct strbuf *out)
{
    struct json_writer w;
    begin(&w, out);
    const char *metadata = list_metadata_json ? list_metadata_json : "{}";
    json_put_raw(&w, metadata, strlen(metadata));
    print_columns(k, &w);
    json_key(&w, "rows");
    json_array_begin(&w);
    for (size_t i = 0; i < n; i++)
        print_row(k, objs[i], include_object, now_ns, &w);
    json_array_end(&w);
    json_object_end(&w);
}

void table_print_event_object(const struct kind *k, struct object *o, bool include_object,
                              bool first, int64_t now_ns, struct strbuf *out)
{
    struct json_writer w;
    begin(&w, out);
    json_object_begin(&w);
    AUTO_STRBUF version = {0};
    strbuf_addf(&version, "%llu", (unsigned long long)o->version);
    json_kv_str(&w, "resourceVersion", strbuf_str(&version));
    json_object_end(&w);
    if (first) {
        print_columns(k, &w);
    } else {
        json_key(&w, "columnDefinitions");
        json_put_null(&w);
    }
    json_key(&w, "rows");
    json_array_begin(&w);
    print_row(k, o, include_object, now_ns, &w);
    json_array_end(&w);
    json_object_end(&w);
}
