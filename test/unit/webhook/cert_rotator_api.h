// SPDX-License-Identifier: Apache-2.0
/*
 * cert_rotator_api - a small API server for test_cert_rotator.c: one Secret and one configuration
 * of two webhooks, with conflicts, and another replica that is faster.
 */
#pragma once

#include <pthread.h>
#include <stdlib.h>

#include "lib/base/base64.h"
#include "lib/base/httpd.h"
#include "lib/base/json.h"
#include "lib/kube/api.h"
#include "lib/kube/config.h"
#include "test/unit/lib/base/expect.h"
#include "webhook/cert_store.h"

struct api {
    struct httpd *httpd;
    struct kube_config *config;
    pthread_mutex_t lock;
    struct strbuf secret; /* its "data" as JSON; empty: there is none */
    int secret_version;
    bool has_config;
    char *bundles[2]; /* caBundle of the two webhooks, base64 */
    int config_version;
    int conflicts; /* answer so many writes with 409 first */
    /* another replica, which is quicker: puts this in the Secret and publishes it, when the
     * configuration is read next */
    const struct cert_store_content *quicker;
    int undone; /* writes of caBundle that took the quicker one's CA out again */
};

static const struct kube_options kube = {
    .max_reply_bytes = 1 << 20, .request_timeout_ms = 10000, .page_size = 500};

static void answer(struct httpd_response *reply, int status, const char *text)
{
    reply->status = status;
    reply->content_type = "application/json";
    strbuf_adds(&reply->body, text);
}

static void answer_secret(struct api *api, const struct httpd_request *r,
                          struct httpd_response *reply)
{
    bool exists = api->secret.len > 0;
    if (str_eq(r->method, "GET")) {
        if (!exists) {
            answer(reply, 404, "{\"kind\":\"Status\",\"code\":404,\"reason\":\"NotFound\"}");
            return;
        }
        reply->content_type = "application/json";
        strbuf_addf(&reply->body,
                    "{\"metadata\":{\"name\":\"s\",\"resourceVersion\":\"%d\"},\"data\":%s}",
                    api->secret_version, api->secret.ptr);
        return;
    }
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    if (json_parse(&doc, r->body, r->body_len, &err) < 0) {
        answer(reply, 400, "{}");
        return;
    }
    AUTO_STRBUF version;
    strbuf_init(&version);
    strbuf_addf(&version, "%d", api->secret_version);
    const char *sent = json_get_str(json_get(json_root(doc), "metadata"), "resourceVersion");
    bool create = str_eq(r->method, "POST");
    if ((create && exists) || (!create && !str_eq(sent, version.ptr)) || api->conflicts > 0) {
        api->conflicts -= api->conflicts > 0;
        answer(reply, 409, "{\"kind\":\"Status\",\"code\":409,\"reason\":\"Conflict\"}");
        return;
    }
    struct json_writer w;
    strbuf_reset(&api->secret);
    json_writer_init(&w, &api->secret);
    json_put_value(&w, json_get(json_root(doc), "data"));
    api->secret_version++;
    answer(reply, create ? 201 : 200, "{}");
}

static void put_base64(struct json_writer *w, const char *key, const char *value)
{
    AUTO_STRBUF text = {0};
    base64_encode(value, strlen(value), &text);
    json_kv_str(w, key, strbuf_str(&text));
}

static void put_secret(struct api *api, const struct cert_store_content *c)
{
    struct json_writer w;
    strbuf_reset(&api->secret);
    json_writer_init(&w, &api->secret);
    json_object_begin(&w);
    put_base64(&w, "ca.crt", c->ca_bundle);
    put_base64(&w, "ca.key", c->ca_key);
    put_base64(&w, "tls.crt", c->leaf.cert_pem);
    put_base64(&w, "tls.key", c->leaf.key_pem);
    json_object_end(&w);
    api->secret_version++;
}

static void set_bundles(struct api *api, const char *pem)
{
    AUTO_STRBUF text = {0};
    base64_encode(pem, strlen(pem), &text);
    for (int i = 0; i < 2; i++) {
        free(api->bundles[i]);
        api->bundles[i] = strdup(text.ptr);
    }
    api->config_version++;
}

static void be_quicker(struct api *api)
{
    put_secret(api, api->quicker);
    set_bundles(api, api->quicker->ca_bundle);
    api->quicker = NULL;
}

static void patch_config(struct api *api, const struct httpd_request *r)
{
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    if (json_parse(&doc, r->body, r->body_len, &err) < 0)
        return;
    for (struct json_iter it = json_iter(json_root(doc)); json_next(&it);) {
        const char *path = json_get_str(it.value, "path");
        int i = str_eq(path, "/webhooks/0/clientConfig/caBundle")   ? 0
                : str_eq(path, "/webhooks/1/clientConfig/caBundle") ? 1
                                                                    : -1;
        if (i < 0)
            continue;
        /* A bundle only ever grows here: one that is shorter lacks a CA. */
        api->undone +=
            strlen(str_or_empty(json_get_str(it.value, "value"))) < strlen(api->bundles[i]);
        free(api->bundles[i]);
        api->bundles[i] = strdup(str_or_empty(json_get_str(it.value, "value")));
    }
    api->config_version++;
}

static void answer_config(struct api *api, const struct httpd_request *r,
                          struct httpd_response *reply)
{
    if (!api->has_config) {
        answer(reply, 404, "{\"kind\":\"Status\",\"code\":404,\"reason\":\"NotFound\"}");
        return;
    }
    if (str_eq(r->method, "PATCH"))
        patch_config(api, r);
    else if (api->quicker)
        be_quicker(api);
    reply->content_type = "application/json";
    strbuf_addf(
        &reply->body,
        "{\"metadata\":{\"name\":\"w\",\"resourceVersion\":\"%d\"},\"webhooks\":["
        "{\"clientConfig\":{\"caBundle\":\"%s\"}},{\"clientConfig\":{\"caBundle\":\"%s\"}}]}",
        api->config_version, api->bundles[0], api->bundles[1]);
}

static void handle(void *arg, const struct httpd_request *r, struct httpd_response *reply)
{
    struct api *api = arg;
    pthread_mutex_lock(&api->lock);
    if (str_starts(r->path, "/api/v1/namespaces/ns/secrets"))
        answer_secret(api, r, reply);
    else if (str_ends(r->path, "/mutatingwebhookconfigurations/w"))
        answer_config(api, r, reply);
    else
        answer(reply, 404, "{}");
    pthread_mutex_unlock(&api->lock);
}

static void api_start(struct api *api)
{
    *api = (struct api){.secret_version = 1, .config_version = 1};
    pthread_mutex_init(&api->lock, NULL);
    strbuf_init(&api->secret);
    api->bundles[0] = strdup("");
    api->bundles[1] = strdup("");
    struct error err = ERROR_INIT;
    struct httpd_config config = {.address = "127.0.0.1",
                                  .threads = 1,
                                  .max_body_bytes = 1 << 20,
                                  .handler = handle,
                                  .arg = api};
    if (httpd_start(&api->httpd, &config, &err) < 0)
        fail_msg("%s", err.text);
    AUTO_STRBUF text;
    strbuf_init(&text);
    strbuf_addf(&text,
                "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                "clusters: [{name: k, cluster: {server: \"http://127.0.0.1:%u\"}}]\n"
                "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
                "users: [{name: u, user: {token: t}}]\n",
                (unsigned)httpd_port(api->httpd));
    if (kube_config_parse(&api->config, text.ptr, text.len, NULL, "", false, &err) < 0)
        fail_msg("%s", err.text);
}

static void api_stop(struct api *api)
{
    httpd_stop(api->httpd);
    kube_config_free(api->config);
    strbuf_deinit(&api->secret);
    free(api->bundles[0]);
    free(api->bundles[1]);
    pthread_mutex_destroy(&api->lock);
}
