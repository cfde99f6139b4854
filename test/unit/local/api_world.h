// SPDX-License-Identifier: Apache-2.0
/*
 * api_world - a store, an API and requests to it; for the tests of the API, one file per program.
 */
#pragma once

#include "test/local/api/api.h"

#include "lib/base/clock.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/local/fake_call.h"

#define J "application/json"
#define JP "application/json-patch+json"
#define MP "application/merge-patch+json"
#define SP "application/strategic-merge-patch+json"
#define AP "application/apply-patch+yaml"
#define PODS "/api/v1/namespaces/default/pods"
#define MAPS "/api/v1/namespaces/default/configmaps"

struct world {
    struct loop *loop;
    struct store *store;
    struct api *api;
};

static int setup(void **state)
{
    struct world *w = mem_new(struct world, 1);
    struct error err = ERROR_INIT;
    assert_int_equal(0, loop_new(&w->loop, &err));
    w->store = store_new(64);
    w->api =
        api_new(&(struct api_config){.loop = w->loop, .store = w->store, .now_ns = clock_wall_ns});
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    api_free(w->api);
    store_free(w->store);
    loop_free(w->loop);
    free(w);
    return 0;
}

static struct call *ask(struct world *w, const char *method, const char *url, const char *type,
                        const char *body)
{
    struct call *c = fake_call(method, url, type, body);
    api_handle(w->api, c);
    if (!c->done && !c->stream)
        fail_msg("%s %s: not answered", method, url);
    return c;
}

/* Asks, expects the status, gives the reply's tree. */
static struct jsontree *must(struct world *w, int status, const char *method, const char *url,
                             const char *type, const char *body)
{
    struct call *c = ask(w, method, url, type, body);
    struct jsontree *t = NULL;
    if (c->status != status) {
        print_error("%s %s %s\n  expected: %d\n  got:      %d %s\n", method, url,
                    str_or_empty(body), status, c->status, strbuf_str(&c->out));
        expect_failures++;
    }
    if (jsontree_parse(&t, strbuf_str(&c->out), c->out.len, NULL) < 0)
        t = jsontree_new();
    fake_call_free(c);
    return t;
}

static void done(struct world *w, int status, const char *method, const char *url, const char *type,
                 const char *body)
{
    jsontree_free(must(w, status, method, url, type, body));
}

#define POD(meta, more)                                           \
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{" meta \
    "},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]" more "}}"
#define BINDING(meta, target) \
    "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{" meta "},\"target\":{" target "}}"

/* The value at a path of dots, printed. */
static inline void expect_at(const char *row, struct jsontree *t, const char *path,
                             const char *expected)
{
    struct jsonnode *n = jsontree_root(t);
    AUTO_STRBUF out;
    char key[128];
    strbuf_init(&out);
    for (const char *p = path; n && *p != '\0';) {
        size_t len = strcspn(p, ".");
        (void)str_format(key, sizeof key, "%.*s", (int)len, p);
        n = jsonnode_is_array(n) ? jsonnode_at(n, (size_t)(key[0] - '0')) : jsonnode_get(n, key);
        p += len + (p[len] == '.' ? 1 : 0);
    }
    if (n)
        jsonnode_print(n, &out);
    char where[256];
    (void)str_format(where, sizeof where, "%s: %s", row, path);
    expect_str(where, expected, n ? strbuf_str(&out) : NULL);
}

struct refusal {
    const char *method, *url, *type, *body;
    int status;
    const char *message;
    const char *reason;  /* NULL: none */
    const char *details; /* NULL: none; "*": not looked at */
};

static inline void expect_refusals(struct world *w, const struct refusal *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct refusal *r = &rows[i];
        char row[300];
        (void)str_format(row, sizeof row, "%s %s %.160s", r->method, r->url, str_or_empty(r->body));
        AUTO_JSONTREE *t = must(w, r->status, r->method, r->url, r->type, r->body);
        struct jsonnode *root = jsontree_root(t);
        AUTO_STRBUF details;
        strbuf_init(&details);
        if (jsonnode_get(root, "details"))
            jsonnode_print(jsonnode_get(root, "details"), &details);
        expect_str(row, "Status", jsonnode_get_str(root, "kind"));
        expect_str(row, "Failure", jsonnode_get_str(root, "status"));
        expect_str(row, r->message, jsonnode_get_str(root, "message"));
        expect_str(row, r->reason, jsonnode_get_str(root, "reason"));
        if (!r->details || strcmp(r->details, "*") != 0)
            expect_str(row, r->details,
                       jsonnode_get(root, "details") ? strbuf_str(&details) : NULL);
        int64_t code = 0;
        (void)jsonnode_int(jsonnode_get(root, "code"), &code);
        expect_int(row, r->status, code);
    }
    expect_done();
}
#define REFUSALS(w, rows) expect_refusals(w, rows, sizeof rows / sizeof rows[0])
