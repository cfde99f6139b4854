// SPDX-License-Identifier: Apache-2.0
#include "webhook/cert_store.h"

#include <stdlib.h>

#include "lib/base/base64.h"
#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "lib/kube/decode.h"
#include "webhook/patch.h"

enum { WEBHOOKS_MAX = 64 };

void cert_store_content_deinit(struct cert_store_content *c)
{
    free(c->resource_version);
    free(c->ca_bundle);
    certs_wipe(c->ca_key);
    certs_pair_deinit(&c->leaf);
    *c = (struct cert_store_content){.resource_version = NULL};
}

/* Decodes a member of data. NULL if absent, not base64 or too long: the caller recreates it. */
static char *take_data(json *data, const char *key)
{
    const char *text = json_get_str(data, key);
    if (!text || strlen(text) > (size_t)CERTS_PEM_MAX * 2)
        return NULL;
    struct strbuf out = {0};
    strbuf_reserve(&out, strlen(text)); /* never reallocated, so no copy of a key stays */
    if (!base64_decode(text, strlen(text), &out) || strlen(strbuf_str(&out)) != out.len) {
        certs_wipe_buf(&out);
        return NULL;
    }
    return strbuf_take(&out);
}

int cert_store_read(const struct cert_store *v, struct cert_store_content *out, struct error *err)
{
    *out = (struct cert_store_content){.resource_version = NULL};
    AUTO_JSON *doc = NULL;
    struct error why = ERROR_INIT;
    if (kube_get(v->client, &kube_secrets, v->ns, v->secret, &doc, &why) < 0) {
        if (why.code == ERROR_NOT_FOUND)
            return 0;
        *err = why;
        return error_wrap(err, "secret %s/%s", v->ns, v->secret);
    }
    struct object_meta meta;
    decode_meta(json_root(doc), &meta);
    json *data = json_get(json_root(doc), "data");
    out->resource_version = mem_strdup(meta.resource_version);
    out->ca_bundle = take_data(data, "ca.crt");
    out->ca_key = take_data(data, "ca.key");
    out->leaf.cert_pem = take_data(data, "tls.crt");
    out->leaf.key_pem = take_data(data, "tls.key");
    return 0;
}

static void put_data(struct json_writer *w, const char *key, const char *value)
{
    struct strbuf text = {0};
    base64_encode(value, strlen(value), &text);
    json_kv_str(w, key, strbuf_str(&text));
    certs_wipe_buf(&text);
}

static void print_secret(const struct cert_store *v, const struct cert_store_content *c,
                         struct strbuf *out)
{
    struct json_writer w;
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_kv_str(&w, "apiVersion", "v1");
    json_kv_str(&w, "kind", "Secret");
    if (!c->resource_version) /* the type is immutable */
        json_kv_str(&w, "type", "kubernetes.io/tls");
    json_key(&w, "metadata");
    json_object_begin(&w);
    json_kv_str(&w, "namespace", v->ns);
    json_kv_str(&w, "name", v->secret);
    if (c->resource_version)
        json_kv_str(&w, "resourceVersion", c->resource_version);
    json_object_end(&w);
    json_key(&w, "data");
    json_object_begin(&w);
    put_data(&w, "ca.crt", c->ca_bundle);
    put_data(&w, "ca.key", c->ca_key);
    put_data(&w, "tls.crt", c->leaf.cert_pem);
    put_data(&w, "tls.key", c->leaf.key_pem);
    json_object_end(&w);
    json_object_end(&w);
}

int cert_store_write(const struct cert_store *v, const struct cert_store_content *c,
                     struct error *err)
{
    struct strbuf body = {0};
    strbuf_reserve(&body, (size_t)64 * 1024);
    print_secret(v, c, &body);
    /* A merge patch keeps the labels and owners set by an installer. Its resourceVersion makes it
     * fail after a concurrent write. */
    int rc = c->resource_version
                 ? kube_patch(v->client, &kube_secrets, v->ns, v->secret, NULL, KUBE_PATCH_MERGE,
                              body.ptr, body.len, NULL, err)
                 : kube_create(v->client, &kube_secrets, v->ns, body.ptr, body.len, NULL, err);
    certs_wipe_buf(&body);
    if (rc < 0 && c->resource_version && err->code == ERROR_NOT_FOUND)
        err->code = ERROR_CONFLICT; /* deleted since it was read: retry */
    return rc < 0 ? error_wrap(err, "secret %s/%s", v->ns, v->secret) : 0;
}

static void put_op(struct json_writer *w, const char *op, const char *path, const char *value)
{
    json_object_begin(w);
    json_kv_str(w, "op", op);
    json_kv_str(w, "path", path);
    json_kv_str(w, "value", value);
    json_object_end(w);
}

/* Prints the operations that set caBundle of every webhook; returns their number. */
static size_t print_publish(json *config, const char *base64, struct strbuf *out)
{
    struct json_writer w;
    struct object_meta meta;
    size_t ops = 0;
    size_t index = 0;
    json_writer_init(&w, out);
    decode_meta(config, &meta);
    json_array_begin(&w);
    /* Replacing resourceVersion is a precondition: the indexes below refer to what we read. */
    put_op(&w, "replace", "/metadata/resourceVersion", meta.resource_version);
    json *webhooks = json_get(config, "webhooks");
    for (struct json_iter it = json_iter(webhooks); index < WEBHOOKS_MAX && json_next(&it);
         index++) {
        json *client = json_get(it.value, "clientConfig");
        if (!json_is_object(client) || str_eq(json_get_str(client, "caBundle"), base64))
            continue;
        char path[64];
        (void)str_format(path, sizeof path, "/webhooks/%zu/clientConfig/caBundle", index);
        put_op(&w, "add", path, base64);
        ops++;
    }
    json_array_end(&w);
    return ops;
}

static const struct kube_kind validating_kind = {.group = "admissionregistration.k8s.io",
                                                 .version = "v1",
                                                 .resource = "validatingwebhookconfigurations",
                                                 .kind = "ValidatingWebhookConfiguration"};

int cert_store_published(const struct cert_store *v, char **out, struct error *err)
{
    AUTO_JSON *doc = NULL;
    struct error why = ERROR_INIT;
    const struct kube_kind *kind = v->webhook_config ? &kube_mutating_webhooks : &validating_kind;
    const char *name = v->webhook_config ? v->webhook_config : v->validating_config;
    *out = NULL;
    if (!name)
        return 0;
    if (kube_get(v->client, kind, NULL, name, &doc, &why) < 0) {
        if (why.code == ERROR_NOT_FOUND)
            return 0;
        *err = why;
        return error_wrap(err, "webhook configuration %s", name);
    }
    json *first = json_at(json_get(json_root(doc), "webhooks"), 0);
    *out = take_data(json_get(first, "clientConfig"), "caBundle");
    return 0;
}

struct source {
    const char *pem;
    const char *base64;
    bool of_secret;
};

/* The configuration is read before this and patched with its resourceVersion. A bundle published
 * after that read fails our patch; one published before it was in the Secret, which we read now. */
static int check_source(const struct cert_store *v, const struct source *s, struct error *err)
{
    struct cert_store_content c;
    if (!s->of_secret)
        return 0;
    if (cert_store_read(v, &c, err) < 0)
        return -1;
    bool same = str_eq(c.ca_bundle, s->pem);
    cert_store_content_deinit(&c);
    return same ? 0
                : error_set(err, ERROR_CONFLICT, "secret %s/%s: has other CAs meanwhile", v->ns,
                            v->secret);
}

static int publish_one(const struct cert_store *v, const struct kube_kind *kind, const char *name,
                       const struct source *s, bool *changed, struct error *err)
{
    AUTO_JSON *doc = NULL;
    AUTO_STRBUF body = {0};
    if (!name)
        return 0;
    if (kube_get(v->client, kind, NULL, name, &doc, err) < 0)
        return error_wrap(err, "webhook configuration %s", name);
    if (print_publish(json_root(doc), s->base64, &body) == 0)
        return 0;
    if (check_source(v, s, err) < 0)
        return -1;
    if (kube_patch(v->client, kind, NULL, name, NULL, KUBE_PATCH_JSON, body.ptr, body.len, NULL,
                   err) < 0)
        return error_wrap(err, "webhook configuration %s: caBundle", name);
    *changed = true;
    return 0;
}

int cert_store_publish(const struct cert_store *v, const char *ca_bundle, bool of_secret,
                       bool *changed, struct error *err)
{
    *changed = false;
    AUTO_STRBUF base64 = {0};
    base64_encode(ca_bundle, strlen(ca_bundle), &base64);
    struct source s = {.pem = ca_bundle, .base64 = strbuf_str(&base64), .of_secret = of_secret};
    if (publish_one(v, &kube_mutating_webhooks, v->webhook_config, &s, changed, err) < 0)
        return -1;
    return publish_one(v, &validating_kind, v->validating_config, &s, changed, err);
}
