// SPDX-License-Identifier: Apache-2.0
/*
 * discovery_openapi - as much of OpenAPI as kubectl needs to apply manifests and for
 * --dry-run=server.
 *
 * Each kind that can be patched has its path with PATCH, the kind's name, and the parameters
 * `dryRun` and `fieldValidation`, which tell kubectl that the server supports dry runs and
 * validates. Both versions are needed, since the README promises kubectl from 1.20 and
 * suite_kubectl.py is run with old and new ones: up to 1.26 kubectl reads v2, as protobuf only
 * (gnostic's openapi.v2.Document), later v3, one document per group and version. There are no
 * schemas: kubectl leaves the checks to the server, and `kubectl explain` has nothing to show.
 */
#include "lib/base/json.h"
#include "test/local/kinds/discovery_internal.h"

static const char title[] = "cosched-local", version[] = "v1";
static const char name_of_kind[] = "x-kubernetes-group-version-kind";
static const char *const patch_parameters[] = {"dryRun", "fieldValidation", NULL};

static bool is_listed(const struct kind *k)
{
    return kinds_has_verb(k, "patch");
}

static void add_path(struct strbuf *b, const struct kind *k)
{
    strbuf_addc(b, '/');
    discovery_add_prefix(b, k);
    strbuf_addf(b, "/%s%s/{name}", k->namespaced ? "namespaces/{namespace}/" : "", k->resource);
}

static void put_name(struct json_writer *w, const struct kind *k)
{
    json_object_begin(w);
    json_kv_str(w, "group", k->group);
    json_kv_str(w, "version", k->version);
    json_kv_str(w, "kind", k->kind);
    json_object_end(w);
}

/* ---- v3, as JSON ---- */

static void put_info(struct json_writer *w)
{
    json_key(w, "info");
    json_object_begin(w);
    json_kv_str(w, "title", title);
    json_kv_str(w, "version", version);
    json_object_end(w);
}

static void put_parameter(struct json_writer *w, const char *name)
{
    json_object_begin(w);
    json_kv_str(w, "name", name);
    json_kv_str(w, "in", "query");
    json_key(w, "schema");
    json_object_begin(w);
    json_kv_str(w, "type", "string");
    json_object_end(w);
    json_object_end(w);
}

static void put_path(struct json_writer *w, const struct kind *k)
{
    AUTO_STRBUF path = {0};
    add_path(&path, k);
    json_key(w, strbuf_str(&path));
    json_object_begin(w);
    json_key(w, "patch");
    json_object_begin(w);
    json_key(w, "parameters");
    json_array_begin(w);
    for (const char *const *p = patch_parameters; *p; p++)
        put_parameter(w, *p);
    json_array_end(w);
    json_key(w, "responses");
    json_put_raw(w, "{}", 2);
    json_key(w, name_of_kind);
    put_name(w, k);
    json_object_end(w);
    json_object_end(w);
}

void discovery_openapi_index(struct strbuf *out)
{
    struct json_writer w;
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_key(&w, "paths");
    json_object_begin(&w);
    AUTO_STRBUF path = {0}, url = {0};
    for (size_t i = 0; kinds_all[i]; i++) {
        if (!discovery_begins_version(i))
            continue;
        strbuf_reset(&path);
        strbuf_reset(&url);
        discovery_add_prefix(&path, kinds_all[i]);
        strbuf_addf(&url, "/openapi/v3/%s", strbuf_str(&path));
        json_key(&w, strbuf_str(&path));
        json_object_begin(&w);
        json_kv_str(&w, "serverRelativeURL", strbuf_str(&url));
        json_object_end(&w);
    }
    json_object_end(&w);
    json_object_end(&w);
}

void discovery_openapi_version(size_t first, struct strbuf *out)
{
    struct json_writer w;
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_kv_str(&w, "openapi", "3.0.0");
    put_info(&w);
    json_key(&w, "paths");
    json_object_begin(&w);
    for (size_t i = first; discovery_same_version(kinds_all[first], kinds_all[i]); i++)
        if (is_listed(kinds_all[i]))
            put_path(&w, kinds_all[i]);
    json_object_end(&w);
    json_key(&w, "components");
    json_put_raw(&w, "{\"schemas\":{}}", 14);
    json_object_end(&w);
}

/* ---- v2 as protobuf ---- */

/* Numbers of the fields that we fill, by message. All of them are texts or messages. */
enum { DOCUMENT_SWAGGER = 1, DOCUMENT_INFO = 2, DOCUMENT_PATHS = 8 };
enum { INFO_TITLE = 1, INFO_VERSION = 2 };
enum { PATHS_PATH = 2 };
enum { NAMED_NAME = 1, NAMED_VALUE = 2 }; /* NamedPathItem, NamedAny */
enum { PATH_ITEM_PATCH = 8 };
enum { OPERATION_PARAMETERS = 8, OPERATION_EXTENSION = 13 };
enum { ITEM_PARAMETER = 1, PARAMETER_NON_BODY = 2, NON_BODY_QUERY = 3 };
enum { QUERY_IN = 2, QUERY_NAME = 4, QUERY_TYPE = 6 };
enum { ANY_YAML = 2 };

static void put_bytes(struct strbuf *out, unsigned field, const char *bytes, size_t n)
{
    enum { LENGTH_DELIMITED = 2 };
    strbuf_addc(out, (char)(field << 3 | LENGTH_DELIMITED)); /* one byte: all are below 16 */
    size_t left = n;
    for (; left >= 0x80; left >>= 7)
        strbuf_addc(out, (char)(left | 0x80));
    strbuf_addc(out, (char)left);
    strbuf_add(out, bytes, n);
}

static void put_text(struct strbuf *out, unsigned field, const char *text)
{
    put_bytes(out, field, text, strlen(text));
}

static void put_message(struct strbuf *out, unsigned field, const struct strbuf *message)
{
    put_bytes(out, field, strbuf_str(message), message->len);
}

/* The message becomes the only field of the one around it. */
static void wrap(struct strbuf *message, unsigned field)
{
    AUTO_STRBUF inside = *message;
    *message = (struct strbuf){0};
    put_message(message, field, &inside);
}

static void put_query_parameter(struct strbuf *operation, const char *name)
{
    AUTO_STRBUF item = {0};
    put_text(&item, QUERY_IN, "query");
    put_text(&item, QUERY_NAME, name);
    put_text(&item, QUERY_TYPE, "string");
    wrap(&item, NON_BODY_QUERY);
    wrap(&item, PARAMETER_NON_BODY);
    wrap(&item, ITEM_PARAMETER);
    put_message(operation, OPERATION_PARAMETERS, &item);
}

/* What an extension says is YAML; JSON is. */
static void put_kind_extension(struct strbuf *operation, const struct kind *k)
{
    AUTO_STRBUF json_text = {0}, any = {0}, named = {0};
    struct json_writer w;
    json_writer_init(&w, &json_text);
    put_name(&w, k);
    put_message(&any, ANY_YAML, &json_text);
    put_text(&named, NAMED_NAME, name_of_kind);
    put_message(&named, NAMED_VALUE, &any);
    put_message(operation, OPERATION_EXTENSION, &named);
}

static void put_path_item(struct strbuf *paths, const struct kind *k)
{
    AUTO_STRBUF path = {0}, operation = {0}, named = {0};
    for (const char *const *p = patch_parameters; *p; p++)
        put_query_parameter(&operation, *p);
    put_kind_extension(&operation, k);
    wrap(&operation, PATH_ITEM_PATCH);
    add_path(&path, k);
    put_message(&named, NAMED_NAME, &path);
    put_message(&named, NAMED_VALUE, &operation);
    put_message(paths, PATHS_PATH, &named);
}

void discovery_openapi_v2(struct strbuf *out)
{
    AUTO_STRBUF info = {0}, paths = {0};
    put_text(out, DOCUMENT_SWAGGER, "2.0");
    put_text(&info, INFO_TITLE, title);
    put_text(&info, INFO_VERSION, version);
    put_message(out, DOCUMENT_INFO, &info);
    for (size_t i = 0; kinds_all[i]; i++)
        if (is_listed(kinds_all[i]))
            put_path_item(&paths, kinds_all[i]);
    put_message(out, DOCUMENT_PATHS, &paths);
}
