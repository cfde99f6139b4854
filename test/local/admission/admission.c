// SPDX-License-Identifier: Apache-2.0
/*
 * admission - runs one object through admission. Mutating webhooks are called in turn, each with
 * the object as the previous ones left it; those with reinvocationPolicy IfNeeded are called again
 * if the object changed after their call; then the validating ones are called.
 *
 *   admission_run ──► built-in ──► next ──► no webhook left ──► quota ──► done
 *                                  │  ▲
 *                             ask  ▼  │ answered (patch, warnings; or refused ──► done)
 *                                worker
 */
#include "test/local/admission/admission.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lib/base/cleanup.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/vec.h"
#include "test/local/admission/admission_internal.h"
#include "test/local/patch/patch.h"
#include "test/local/kinds/typed.h"
#include "test/local/store/uid.h"

struct run {
    struct admission *owner;
    struct run *next, **prev;
    struct admission_request request; /* its strings are ours */
    char *ns, *name, *sub, *user, *operation;
    struct object *old;
    struct jsontree *object;
    admission_done done;
    void *arg;
    struct admission_hooks *hooks;
    size_t at;
    enum { FIRST, AGAIN, VALIDATING, PASSES } pass;
    bool *invoked; /* by hook: asked, and willing to be asked again */
    bool *wanted;  /* by hook: the object changed after it */
    char uid[UID_SIZE];
    struct VEC(char *) warnings;
};

struct admission {
    struct loop *loop;
    struct store *store;
    struct admission_builtin *builtin;
    struct admission_quota *quota;
    struct admission_webhooks *webhooks;
    struct admission_caller *caller;
    struct map services; /* "ns/name" to "host:port"; both owned */
    struct run *runs;
};

static void next(struct run *r);

/* ---- a run ---- */

static void run_free(struct run *r)
{
    *r->prev = r->next;
    if (r->next)
        r->next->prev = r->prev;
    for (size_t i = 0; i < r->warnings.len; i++)
        free(r->warnings.items[i]);
    vec_deinit(&r->warnings);
    admission_hooks_unref(r->hooks);
    object_unref(r->old);
    free(r->invoked);
    free(r->wanted);
    free(r->ns);
    free(r->name);
    free(r->sub);
    free(r->user);
    free(r->operation);
    free(r);
}

static void finish(struct run *r, const struct error *err)
{
    struct error quota = ERROR_INIT;
    struct jsonnode *root = r->object ? jsontree_root(r->object) : NULL;
    if (!err && admission_quota_check(r->owner->quota, &r->request, root, &quota) < 0)
        err = &quota;
    vec_push(&r->warnings, NULL);
    AUTO_FREE const char **list = mem_new(const char *, r->warnings.len);
    for (size_t i = 0; i < r->warnings.len; i++)
        list[i] = r->warnings.items[i];
    admission_done done = r->done;
    void *arg = r->arg;
    done(arg, err, r->warnings.len > 1 ? list : NULL);
    run_free(r);
}

/* The webhook could not be asked, or what it said is no answer. */
static void failed(struct run *r, const struct admission_hook *h, const char *why)
{
    if (h->ignore_failure) {
        log_warn("webhook failed, ignored as it wishes", kv("webhook", h->name), kv("error", why));
        r->at++;
        next(r);
        return;
    }
    struct error err = ERROR_INIT;
    error_set(&err, ERROR_INTERNAL, "Internal error occurred: failed calling webhook \"%s\": %s",
              h->name, why);
    err.http_status = 500;
    finish(r, &err);
}

static void refused(struct run *r, const struct admission_hook *h,
                    const struct admission_verdict *v)
{
    struct error err = ERROR_INIT;
    if (*v->message)
        error_set(&err, ERROR_DENIED, "admission webhook \"%s\" denied the request: %s", h->name,
                  v->message);
    else
        error_set(&err, ERROR_DENIED,
                  "admission webhook \"%s\" denied the request without explanation", h->name);
    err.http_status = v->code;
    finish(r, &err);
}

/* Applies the patch; true when the object is another one now. */
static int change(struct run *r, json *patch, bool *changed, struct error *err)
{
    *changed = false;
    if (!patch || !r->object || json_len(patch) == 0)
        return 0;
    struct strbuf before = {0}, after = {0};
    jsontree_print(r->object, &before);
    const struct kind *k = r->request.kind;
    int rc = patch_json(r->object, patch, err);
    if (rc == 0)
        rc = typed_decode(r->object, k->api_version, k->kind, NULL, err);
    if (rc == 0) {
        if (k->fill_defaults && !r->request.sub)
            k->fill_defaults(r->object, jsontree_root(r->object));
        jsontree_print(r->object, &after);
        *changed = !str_eq(strbuf_str(&before), strbuf_str(&after));
        if (*changed && r->request.changed)
            *r->request.changed = true;
    }
    strbuf_deinit(&before);
    strbuf_deinit(&after);
    return rc;
}

static void answered(struct admission_call *call)
{
    struct run *r = call->arg;
    const struct admission_hook *h = &r->hooks->items[r->at];
    struct admission_verdict v = {0};
    struct error err = ERROR_INIT;
    bool changed = false;
    if (call->failed) {
        /* As Go's client puts it: the whole URL, then what went wrong. */
        char prefix[600], why[1200];
        str_format(prefix, sizeof prefix, "POST %.*s: ", (int)strcspn(call->path, "?"), call->path);
        const char *text = call->error.text;
        if (str_starts(text, prefix))
            text += strlen(prefix);
        if (call->error.http_status > 0)
            str_format(why, sizeof why,
                       "failed to call webhook: an error on the server (\"unknown\") has "
                       "prevented the request from succeeding");
        else
            str_format(why, sizeof why, "failed to call webhook: Post \"%s%s\": %s", call->server,
                       call->path, text);
        failed(r, h, why);
    } else if (admission_review_read(strbuf_str(&call->reply), call->reply.len, r->uid, &v, &err) <
               0)
        failed(r, h, err.text);
    else {
        for (struct json_iter it = json_iter(v.warnings); json_next(&it);)
            if (json_str(it.value))
                vec_push(&r->warnings, mem_strdup(json_str(it.value)));
        if (!v.allowed)
            refused(r, h, &v);
        else if (h->validating && v.patch)
            failed(
                r, h,
                "received invalid webhook response: a validating webhook may not return a patch");
        else if (change(r, json_root(v.patch), &changed, &err) < 0) {
            struct error internal = ERROR_INIT;
            error_set(&internal, ERROR_INTERNAL, "Internal error occurred: %s", err.text);
            internal.http_status = 500;
            finish(r, &internal);
        } else {
            for (size_t i = 0; changed && i < r->hooks->len; i++)
                r->wanted[i] |= r->invoked[i];
            r->invoked[r->at] = h->reinvoke;
            r->at++;
            next(r);
        }
    }
    admission_verdict_deinit(&v);
    admission_call_free(call);
}

/* ---- asking ---- */

static void make_uid(char out[UID_SIZE])
{
    unsigned char bytes[UID_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        abort();
    uid_print(bytes, out);
}

/* A kubeconfig for the webhook's server, and the path there. */
static int locate(struct admission *a, const struct admission_hook *h, struct admission_call *call,
                  struct error *err)
{
    struct strbuf server = {0}, path = {0};
    char host[600] = "";
    if (h->url) {
        if (!str_starts(h->url, "https://"))
            return error_set(err, ERROR_INVALID, "url: '%s' is not https", h->url);
        size_t n = strlen("https://") + strcspn(h->url + strlen("https://"), "/?#");
        strbuf_add(&server, h->url, n);
        size_t rest = strcspn(h->url + n, "?#");
        strbuf_add(&path, h->url + n, rest);
    } else {
        char key[600];
        str_format(key, sizeof key, "%s/%s", h->svc_ns, h->svc_name);
        const char *at = map_get(&a->services, key);
        if (!at)
            return error_set(err, ERROR_NOT_FOUND,
                             "Post \"https://%s.%s.svc:%lld%s?timeout=%llds\": service \"%s\" not "
                             "found: there is no service network here, see --webhook-services (%s)",
                             h->svc_name, h->svc_ns, (long long)h->port, *h->path ? h->path : "/",
                             (long long)h->timeout_s, h->svc_name, key);
        strbuf_addf(&server, "https://%s", at);
        strbuf_adds(&path, h->path);
        str_format(host, sizeof host, "%s.%s.svc", h->svc_name, h->svc_ns);
    }
    if (path.len == 0 || path.ptr[0] != '/') {
        char *old = strbuf_take(&path);
        strbuf_addf(&path, "/%s", old);
        free(old);
    }
    strbuf_addf(&path, "?timeout=%llds", (long long)h->timeout_s);
    call->path = strbuf_take(&path);
    struct strbuf text = {0};
    struct json_writer w;
    json_writer_init(&w, &text);
    strbuf_adds(&text,
                "{\"apiVersion\":\"v1\",\"kind\":\"Config\",\"current-context\":\"w\",\"contexts\":"
                "[{\"name\":\"w\",\"context\":{\"cluster\":\"w\"}}],"
                "\"clusters\":[{\"name\":\"w\",\"cluster\":");
    json_object_begin(&w);
    json_kv_str(&w, "server", strbuf_str(&server));
    if (*host)
        json_kv_str(&w, "tls-server-name", host);
    if (h->ca)
        json_kv_str(&w, "certificate-authority-data", h->ca);
    json_object_end(&w);
    strbuf_adds(&text, "}]}");
    call->kubeconfig = strbuf_take(&text);
    if (*host) {
        strbuf_reset(&server);
        strbuf_addf(&server, "https://%s:%lld", host, (long long)h->port);
    }
    call->server = strbuf_take(&server);
    return 0;
}

static void ask(struct run *r, const struct admission_hook *h)
{
    struct error err = ERROR_INIT;
    if (r->request.dry_run && !h->dry_run_safe) {
        error_set(&err, ERROR_INVALID, "admission webhook \"%s\" does not support dry run",
                  h->name);
        err.http_status = 400;
        finish(r, &err);
        return;
    }
    if (!h->speaks_v1) {
        failed(r, h, "failed to call webhook: admissionReviewVersions has no v1");
        return;
    }
    struct admission_call *call = mem_new(struct admission_call, 1);
    if (locate(r->owner, h, call, &err) < 0) {
        admission_call_free(call);
        error_wrap(&err, "failed to call webhook");
        failed(r, h, err.text);
        return;
    }
    make_uid(r->uid);
    struct strbuf object = {0};
    if (r->object)
        jsontree_print(r->object, &object);
    admission_review_print(&r->request, r->uid, r->object ? strbuf_str(&object) : NULL,
                           r->old ? r->old->text : NULL, &call->body);
    strbuf_deinit(&object);
    call->timeout_ms = h->timeout_s * 1000;
    call->done = answered;
    call->arg = r;
    admission_caller_send(r->owner->caller, call);
}

static bool labels_of(struct run *r, struct arena *a, struct labels *out)
{
    if (!r->object)
        return false;
    struct strbuf text = {0};
    struct jsonnode *node = jsonnode_path(jsontree_root(r->object), "metadata", "labels", NULL);
    struct json_doc *doc = NULL;
    *out = (struct labels){0};
    if (node) {
        jsonnode_print(node, &text);
        if (json_parse(&doc, strbuf_str(&text), text.len, NULL) == 0 &&
            labels_decode(json_root(doc), a, out, NULL) < 0)
            *out = (struct labels){0};
    }
    json_free(doc);
    strbuf_deinit(&text);
    return true;
}

static bool is_in_pass(const struct run *r, const struct admission_hook *h)
{
    return r->pass == VALIDATING ? h->validating
                                 : !h->validating && (r->pass == FIRST || r->wanted[r->at]);
}

/* Goes on to the next webhook that is to be asked. */
static void next(struct run *r)
{
    struct arena arena;
    arena_init(&arena, 0);
    struct labels labels;
    bool there = labels_of(r, &arena, &labels);
    const struct admission_hook *found = NULL;
    for (;;) {
        if (r->at == r->hooks->len) {
            if (++r->pass == PASSES)
                break;
            r->at = 0;
            continue;
        }
        const struct admission_hook *h = &r->hooks->items[r->at];
        if (is_in_pass(r, h) &&
            admission_hook_matches(h, r->owner->store, &r->request, there ? &labels : NULL,
                                   r->old ? &r->old->labels : NULL)) {
            found = h;
            break;
        }
        r->at++;
    }
    arena_deinit(&arena);
    if (found)
        ask(r, found);
    else
        finish(r, NULL);
}

/* ---- from outside ---- */

int admission_check(struct admission *a, const struct admission_request *r, struct jsontree *object,
                    struct error *err)
{
    if (admission_builtin_run(a->builtin, r, object, err) < 0)
        return -1;
    return admission_quota_check(a->quota, r, object ? jsontree_root(object) : NULL, err);
}

static bool may_match(const struct admission_hooks *hooks, struct store *s,
                      const struct admission_request *r)
{
    /* Rules alone: selectors that look at labels come later. */
    for (size_t i = 0; i < hooks->len; i++) {
        struct admission_hook h = hooks->items[i];
        h.namespaces = h.objects = (struct selector){0};
        if (admission_hook_matches(&h, s, r, NULL, NULL))
            return true;
    }
    return false;
}

void admission_run(struct admission *a, const struct admission_request *r, struct jsontree *object,
                   admission_done done, void *arg)
{
    struct error err = ERROR_INIT;
    if (admission_builtin_run(a->builtin, r, object, &err) < 0) {
        done(arg, &err, NULL);
        return;
    }
    struct admission_hooks *hooks = admission_webhooks_get(a->webhooks);
    if (!hooks || !may_match(hooks, a->store, r)) {
        admission_hooks_unref(hooks);
        bool ok =
            admission_quota_check(a->quota, r, object ? jsontree_root(object) : NULL, &err) == 0;
        done(arg, ok ? NULL : &err, NULL);
        return;
    }
    struct run *run = mem_new(struct run, 1);
    run->owner = a;
    run->ns = mem_strdup(r->ns);
    run->name = mem_strdup(r->name);
    run->sub = mem_strdup(r->sub);
    run->user = mem_strdup(r->user);
    run->operation = mem_strdup(r->operation);
    if (r->old) {
        struct object *stored;
        memcpy(&stored, &r->old, sizeof stored);
        run->old = object_ref(stored);
    }
    run->request = (struct admission_request){.kind = r->kind,
                                              .operation = run->operation,
                                              .ns = run->ns,
                                              .name = run->name,
                                              .dry_run = r->dry_run,
                                              .sub = run->sub,
                                              .old = run->old,
                                              .user = run->user,
                                              .changed = r->changed};
    run->object = object;
    run->done = done;
    run->arg = arg;
    run->hooks = hooks;
    run->invoked = mem_new(bool, hooks->len);
    run->wanted = mem_new(bool, hooks->len);
    run->next = a->runs;
    run->prev = &a->runs;
    if (a->runs)
        a->runs->prev = &run->next;
    a->runs = run;
    next(run);
}

/* ---- services ---- */

static int add_service(struct admission *a, const char *text, struct error *err)
{
    const char *equals = strchr(text, '='), *slash = strchr(text, '/');
    const char *colon = equals ? strrchr(equals, ':') : NULL;
    int64_t port;
    if (!equals || !slash || slash > equals || slash == text || slash + 1 == equals || !colon ||
        colon == equals + 1)
        return error_set(err, ERROR_INVALID, "not NAMESPACE/NAME=HOST:PORT: '%s'", text);
    if (num_parse_range(colon + 1, 1, 65535, &port, err) < 0)
        return error_wrap(err, "port of '%s'", text);
    char *key = mem_strdup(text);
    key[equals - text] = '\0';
    const char *old = NULL;
    void *value = NULL;
    for (size_t i = 0; map_next(&a->services, &i, &old, &value);) {
        if (!str_eq(old, key))
            continue;
        void *owned;
        memcpy(&owned, &old, sizeof owned);
        map_remove(&a->services, key);
        free(owned);
        free(value);
        break;
    }
    map_put(&a->services, key, mem_strdup(equals + 1));
    return 0;
}

int admission_add_services(struct admission *a, const char *list, struct error *err)
{
    AUTO_FREE char *copy = mem_strdup(str_or_empty(list));
    char *rest = NULL;
    for (char *one = strtok_r(copy, ",", &rest); one; one = strtok_r(NULL, ",", &rest))
        if (add_service(a, one, err) < 0)
            return -1;
    return 0;
}

/* ---- beginning and end ---- */

int admission_new(struct admission **out, struct loop *l, struct store *s, struct error *err)
{
    struct admission *a = mem_new(struct admission, 1);
    a->loop = l;
    a->store = s;
    map_init(&a->services);
    a->builtin = admission_builtin_new(s);
    a->quota = admission_quota_new(l, s);
    a->webhooks = admission_webhooks_new(s);
    if (admission_caller_new(&a->caller, l, err) < 0) {
        admission_free(a);
        return -1;
    }
    *out = a;
    return 0;
}

void admission_free(struct admission *a)
{
    if (!a)
        return;
    admission_caller_free(a->caller);
    struct error err = ERROR_INIT;
    error_set(&err, ERROR_CANCELLED, "the server is shutting down");
    err.http_status = 503;
    for (struct run *r = a->runs, *later; r; r = later) {
        later = r->next;
        finish(r, &err);
    }
    admission_webhooks_free(a->webhooks);
    admission_quota_free(a->quota);
    admission_builtin_free(a->builtin);
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&a->services, &i, &key, &value);) {
        void *owned;
        memcpy(&owned, &key, sizeof owned);
        free(owned);
        free(value);
    }
    map_deinit(&a->services);
    free(a);
}
