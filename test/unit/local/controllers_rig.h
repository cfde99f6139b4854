// SPDX-License-Identifier: Apache-2.0
/*
 * controllers_rig - a store, an API, admission and controllers on one loop, without a server: for
 * the tests of admission and of the controllers.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/loop.h"
#include "lib/base/mem.h"
#include "lib/kube/http.h"
#include "test/local/admission/admission.h"
#include "test/local/api/api.h"
#include "test/local/controllers/controllers.h"
#include "test/local/patch/jsonnode.h"
#include "test/local/store/store.h"

struct rig {
    struct loop *loop;
    struct store *store;
    struct admission *admission;
    struct api *api;
    struct controllers *controllers;
};

static inline void rig_check(int rc, const struct error *err, const char *what)
{
    if (rc < 0)
        fail_msg("%s: %s", what, err->text);
}

static inline struct rig *rig_up(bool with_controllers)
{
    static bool once;
    struct rig *r = mem_new(struct rig, 1);
    struct error err = ERROR_INIT;
    if (!once) {
        kube_http_global_init();
        once = true;
    }
    rig_check(loop_new(&r->loop, &err), &err, "loop");
    r->store = store_new(10000);
    rig_check(admission_new(&r->admission, r->loop, r->store, &err), &err, "admission");
    const struct api_config c = {
        .loop = r->loop, .store = r->store, .admission = r->admission, .now_ns = clock_wall_ns};
    r->api = api_new(&c);
    if (with_controllers) {
        rig_check(controllers_start(&r->controllers, r->loop, r->api, r->store, &err), &err,
                  "controllers");
        controllers_use_admission(r->controllers, r->admission);
    }
    return r;
}

static inline void rig_down(struct rig *r)
{
    controllers_stop(r->controllers);
    admission_free(r->admission);
    api_free(r->api);
    store_free(r->store);
    loop_free(r->loop);
    free(r);
}

/* A few rounds: whatever is due at once is done. */
static inline void rig_settle(struct rig *r)
{
    for (int i = 0; i < 50; i++)
        loop_once(r->loop, 0);
}

static inline int rig_try(struct rig *r, const struct kind *k, const char *ns, const char *text,
                          struct error *err)
{
    AUTO_JSONTREE *t = NULL;
    rig_check(jsontree_parse(&t, text, strlen(text), err), err, text);
    return api_create(r->api, k, ns, t, NULL, err);
}

static inline void rig_make(struct rig *r, const struct kind *k, const char *ns, const char *text)
{
    struct error err = ERROR_INIT;
    rig_check(rig_try(r, k, ns, text, &err), &err, text);
}

/* The value at a path with slashes, a string or a number, as text; "" when it is not there. In a
 * buffer that the next call but seven overwrites. */
static inline const char *rig_read(struct rig *r, const struct kind *k, const char *ns,
                                   const char *name, const char *path)
{
    static char ring[8][2048];
    static int at;
    char *out = ring[at++ % 8];
    out[0] = '\0';
    const struct object *o = store_get(r->store, k, ns, name);
    AUTO_JSONTREE *t = NULL;
    if (!o || jsontree_parse(&t, o->text, o->text_len, NULL) < 0)
        return "<none>";
    struct jsonnode *n = jsontree_root(t);
    char *copy = mem_strdup(path), *rest = NULL;
    for (char *p = strtok_r(copy, "|", &rest); p && n; p = strtok_r(NULL, "|", &rest)) {
        if (!jsonnode_is_array(n)) {
            n = jsonnode_get(n, p);
            continue;
        }
        /* In a list: the element of that type or name, or the first. */
        struct jsonnode *found = NULL;
        for (size_t i = 0; i < jsonnode_len(n) && !found; i++) {
            struct jsonnode *e = jsonnode_at(n, i);
            if (str_eq(jsonnode_get_str(e, "type"), p) || str_eq(jsonnode_get_str(e, "name"), p) ||
                str_eq(p, "0"))
                found = e;
        }
        n = found;
    }
    free(copy);
    if (n && jsonnode_str(n))
        str_format(out, sizeof ring[0], "%s", jsonnode_str(n));
    else if (n) {
        struct strbuf b = {0};
        jsonnode_print(n, &b);
        str_format(out, sizeof ring[0], "%s", strbuf_str(&b));
        strbuf_deinit(&b);
    }
    return out;
}

struct rig_list {
    const char *owner; /* part of the text that must occur; NULL: any */
    char names[64][128];
    size_t len;
};

static inline bool rig_list_one(void *arg, struct object *o)
{
    struct rig_list *l = arg;
    if ((!l->owner || strstr(o->text, l->owner)) && l->len < 64) {
        str_format(l->names[l->len], sizeof l->names[0], "%s", o->name);
        l->len++;
    }
    return true;
}

/* Objects of a namespace whose text has `part` in it. */
static inline struct rig_list rig_list(struct rig *r, const struct kind *k, const char *ns,
                                       const char *part)
{
    struct rig_list l = {.owner = part};
    store_each(r->store, k, ns, NULL, rig_list_one, &l);
    return l;
}

static inline bool rig_merge_fn(void *arg, struct jsontree *t, struct jsonnode *object)
{
    const char *const *a = arg;
    struct jsonnode *at = object;
    char *copy = mem_strdup(a[0]), *rest = NULL, *next;
    char *p = strtok_r(copy, "|", &rest);
    for (; (next = strtok_r(NULL, "|", &rest)); p = next)
        at = jsonnode_need_object(t, at, p);
    AUTO_JSONTREE *v = NULL;
    if (jsontree_parse(&v, a[1], strlen(a[1]), NULL) == 0)
        jsonnode_set(t, at, p, jsonnode_clone(t, jsontree_root(v)));
    free(copy);
    return true;
}

/* Sets the member at a path (bars between its parts) to JSON text. */
static inline void rig_set(struct rig *r, const struct kind *k, const char *ns, const char *name,
                           const char *sub, const char *path, const char *text)
{
    const char *a[2] = {path, text};
    struct error err = ERROR_INIT;
    rig_check(api_modify(r->api, k, ns, name, sub, rig_merge_fn, a, &err), &err, path);
}

static inline void rig_phase(struct rig *r, const char *ns, const char *pod, const char *phase)
{
    char text[64];
    str_format(text, sizeof text, "\"%s\"", phase);
    rig_set(r, &kind_pods, ns, pod, "status", "status|phase", text);
    if (str_eq(phase, "Running"))
        rig_set(r, &kind_pods, ns, pod, "status", "status|conditions",
                "[{\"type\":\"Ready\",\"status\":\"True\",\"lastTransitionTime\":"
                "\"2026-01-01T00:00:00Z\"}]");
}

#define rig_expect(r, kind, ns, name, path, want)                                        \
    do {                                                                                 \
        const char *got_ = rig_read((r), (kind), (ns), (name), (path));                  \
        if (!str_eq(got_, (want)))                                                       \
            fail_msg("%s of %s: expected '%s', got '%s'", (path), (name), (want), got_); \
    } while (0)

#define rig_expect_count(list, want)                                         \
    do {                                                                     \
        size_t got_ = (list).len;                                            \
        if (got_ != (size_t)(want))                                          \
            fail_msg("expected %zu objects, got %zu", (size_t)(want), got_); \
    } while (0)
