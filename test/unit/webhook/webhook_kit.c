// SPDX-License-Identifier: Apache-2.0
#include "test/unit/webhook/webhook_kit.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/base64.h"

void webhook_kit_review(struct strbuf *out, const char *pod_json, const char *ns,
                        const char *operation)
{
    strbuf_addf(out,
                "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{"
                "\"uid\":\"705ab4f5-6393-11e8-b7cc-42010a800002\","
                "\"kind\":{\"group\":\"\",\"version\":\"v1\",\"kind\":\"Pod\"},"
                "\"resource\":{\"group\":\"\",\"version\":\"v1\",\"resource\":\"pods\"},"
                "\"namespace\":\"%s\",\"operation\":\"%s\",\"userInfo\":{\"username\":\"u\"},"
                "\"object\":%s,\"oldObject\":null,\"dryRun\":false,\"options\":{}}}",
                ns, operation, pod_json);
}

void webhook_kit_answer(const struct review_config *config, const char *body, struct arena *a,
                        struct strbuf *reply, struct review_outcome *outcome)
{
    size_t n = strlen(body);
    char *copy = calloc(1, n + JSON_PADDING);
    if (!copy)
        abort();
    memcpy(copy, body, n);
    review_answer(config, true, copy, n, a, reply, outcome);
    free(copy);
}

int webhook_kit_patch_of(const char *reply, struct strbuf *out, struct error *err)
{
    AUTO_JSON *doc = NULL;
    if (json_parse(&doc, reply, strlen(reply), err) < 0)
        return -1;
    json *response = json_get(json_root(doc), "response");
    const char *patch = json_get_str(response, "patch");
    if (!patch)
        return 0;
    if (!str_eq(json_get_str(response, "patchType"), "JSONPatch"))
        return error_set(err, ERROR_INVALID, "a patch without patchType JSONPatch");
    return base64_decode(patch, strlen(patch), out) ? 0
                                                    : error_set(err, ERROR_INVALID, "not base64");
}

/* Does the last token of the pointer equal key? `at` is what the pointer has after the parent's
 * path. */
static bool is_token(const char *token, const char *key)
{
    for (; *token != '\0' && *key != '\0'; token++, key++) {
        char c = *token;
        if (c == '/')
            return false;
        if (c == '~') {
            token++;
            c = *token == '0' ? '~' : '/';
        }
        if (c != *key)
            return false;
    }
    return *token == '\0' && *key == '\0';
}

struct walk {
    json *ops;
    struct json_writer w;
    struct strbuf path; /* of the object being written */
    size_t used;        /* operations that found their place */
};

/* The rest of the operation's path behind "<parent>/", or NULL. */
static const char *below(const struct walk *k, json *op)
{
    const char *path = json_get_str(op, "path");
    size_t n = k->path.len;
    return path && strncmp(path, strbuf_str(&k->path), n) == 0 && path[n] == '/' ? path + n + 1
                                                                                 : NULL;
}

static json *op_for(const struct walk *k, const char *key)
{
    for (struct json_iter it = json_iter(k->ops); json_next(&it);) {
        const char *rest = below(k, it.value);
        if (rest && is_token(rest, key))
            return it.value;
    }
    return NULL;
}

static void put(struct walk *k, json *v);

/* v, which stands at key below the present path */
static void put_below(struct walk *k, const char *key, json *v)
{
    size_t before = k->path.len;
    strbuf_addc(&k->path, '/');
    for (const char *s = key; *s != '\0'; s++)
        strbuf_adds(&k->path, *s == '~' ? "~0" : *s == '/' ? "~1" : (char[]){*s, '\0'});
    put(k, v);
    k->path.len = before;
    k->path.ptr[before] = '\0';
}

static void put_member(struct walk *k, const char *key, json *v)
{
    json *op = op_for(k, key);
    k->used += op != NULL;
    if (op && str_eq(json_get_str(op, "op"), "remove"))
        return;
    json_key(&k->w, key);
    put_below(k, key, op ? json_get(op, "value") : v);
}

static void unescape(const char *token, char out[256])
{
    size_t n = 0;
    for (; *token != '\0' && n < 255; token++) {
        if (*token == '~')
            out[n++] = *++token == '0' ? '~' : '/';
        else
            out[n++] = *token;
    }
    out[n] = '\0';
}

/* Members that an "add" brings to this object. What later operations add to them is found on the
 * way. */
static void put_new(struct walk *k, json *object)
{
    for (struct json_iter it = json_iter(k->ops); json_next(&it);) {
        char key[256];
        const char *rest = below(k, it.value);
        if (!rest || strchr(rest, '/') || !str_eq(json_get_str(it.value, "op"), "add"))
            continue;
        unescape(rest, key);
        if (json_get(object, key))
            continue;
        k->used++;
        json_key(&k->w, key);
        put_below(k, key, json_get(it.value, "value"));
    }
}

static void put(struct walk *k, json *v)
{
    size_t i = 0;
    if (json_is_array(v)) { /* our patches reach into elements, and leave their number as it is */
        json_array_begin(&k->w);
        for (struct json_iter it = json_iter(v); json_next(&it); i++) {
            char index[24];
            (void)str_format(index, sizeof index, "%zu", i);
            put_below(k, index, it.value);
        }
        json_array_end(&k->w);
        return;
    }
    if (!json_is_object(v)) {
        json_put_value(&k->w, v);
        return;
    }
    json_object_begin(&k->w);
    for (struct json_iter it = json_iter(v); json_next(&it);)
        put_member(k, it.key, it.value);
    put_new(k, v);
    json_object_end(&k->w);
}

int webhook_kit_apply(const char *object, const char *patch, struct strbuf *out, struct error *err)
{
    AUTO_JSON *doc = NULL;
    AUTO_JSON *ops = NULL;
    if (*patch == '\0') {
        strbuf_adds(out, object);
        return 0;
    }
    if (json_parse(&doc, object, strlen(object), err) < 0 ||
        json_parse(&ops, patch, strlen(patch), err) < 0)
        return -1;
    struct walk k = {.ops = json_root(ops)};
    json_writer_init(&k.w, out);
    strbuf_init(&k.path);
    strbuf_adds(&k.path, "");
    put(&k, json_root(doc));
    strbuf_deinit(&k.path);
    if (k.used != json_len(k.ops))
        return error_set(err, ERROR_INVALID, "only %zu of the %zu operations apply: %s", k.used,
                         json_len(k.ops), patch);
    return 0;
}
