// SPDX-License-Identifier: Apache-2.0
/*
 * admission_webhooks - the webhooks that match a request: MutatingWebhookConfigurations, then
 * ValidatingWebhookConfigurations, parsed once after each change, sorted by name and then in the
 * order of their entries.
 *
 * matchPolicy has no effect (each kind has one version). matchConditions are CEL, which is not
 * supported: they count as true.
 */
#include "test/local/admission/admission_internal.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"

enum { TIMEOUT_DEFAULT_S = 10, TIMEOUT_MAX_S = 30, PORT_DEFAULT = 443, HOOKS_MAX = 1000 };

struct admission_webhooks {
    struct store *store;
    struct store_listener mutating, validating;
    bool stale;
    bool said_cel;
    struct admission_hooks *now; /* NULL: none */
};

struct reading {
    struct admission_webhooks *owner;
    struct admission_hooks *set;
    struct VEC(struct json_doc *) docs;
    struct VEC(struct admission_hook) hooks;
};

void admission_hooks_unref(struct admission_hooks *h)
{
    if (!h || --h->refs > 0)
        return;
    for (size_t i = 0; i < h->docs_len; i++)
        json_free(h->docs[i]);
    free(h->docs);
    free(h->items);
    arena_deinit(&h->arena);
    free(h);
}

/* An absent selector selects everything. */
static int read_selector(json *v, struct arena *a, struct selector *out, struct error *err)
{
    if (!v || json_is_null(v)) {
        *out = (struct selector){0};
        return 0;
    }
    return selector_decode(v, a, out, err);
}

static int read_client(json *client, struct admission_hook *h, struct error *err)
{
    h->url = json_get_str(client, "url");
    h->ca = json_get_str(client, "caBundle");
    if (h->ca && !*h->ca)
        h->ca = NULL;
    json *service = json_get(client, "service");
    h->svc_ns = json_get_str(service, "namespace");
    h->svc_name = json_get_str(service, "name");
    h->path = str_or_empty(json_get_str(service, "path"));
    h->port = PORT_DEFAULT;
    json_get_int(service, "port", &h->port);
    if (!h->url && !(h->svc_ns && h->svc_name))
        return error_set(err, ERROR_INVALID, "clientConfig has neither url nor service");
    return 0;
}

static int read_hook(json *v, struct arena *a, struct admission_hook *h, struct error *err)
{
    *h = (struct admission_hook){.name = json_get_str(v, "name"), .timeout_s = TIMEOUT_DEFAULT_S};
    if (!h->name)
        return error_set(err, ERROR_INVALID, "a webhook has no name");
    if (read_client(json_get(v, "clientConfig"), h, err) < 0 ||
        read_selector(json_get(v, "namespaceSelector"), a, &h->namespaces, err) < 0 ||
        read_selector(json_get(v, "objectSelector"), a, &h->objects, err) < 0)
        return error_wrap(err, "%s", h->name);
    int64_t timeout;
    if (json_get_int(v, "timeoutSeconds", &timeout) && timeout >= 1 && timeout <= TIMEOUT_MAX_S)
        h->timeout_s = timeout;
    h->ignore_failure = str_eq(json_get_str(v, "failurePolicy"), "Ignore");
    h->reinvoke = str_eq(json_get_str(v, "reinvocationPolicy"), "IfNeeded");
    const char *effects = json_get_str(v, "sideEffects");
    h->dry_run_safe = str_eq(effects, "None") || str_eq(effects, "NoneOnDryRun");
    for (struct json_iter it = json_iter(json_get(v, "admissionReviewVersions")); json_next(&it);)
        h->speaks_v1 |= str_eq(json_str(it.value), "v1");
    json *rules = json_get(v, "rules");
    h->rules = arena_new(a, struct admission_rule, json_len(rules));
    for (struct json_iter it = json_iter(rules); json_next(&it);) {
        h->rules[h->rules_len++] = (struct admission_rule){
            .groups = json_get(it.value, "apiGroups"),
            .versions = json_get(it.value, "apiVersions"),
            .operations = json_get(it.value, "operations"),
            .resources = json_get(it.value, "resources"),
            .scope = json_get_str(it.value, "scope"),
        };
    }
    return 0;
}

static bool read_configuration(void *arg, struct object *o)
{
    struct reading *r = arg;
    struct json_doc *doc = NULL;
    if (json_parse(&doc, o->text, o->text_len, NULL) < 0)
        return true;
    vec_push(&r->docs, doc);
    for (struct json_iter it = json_iter(json_get(json_root(doc), "webhooks")); json_next(&it);) {
        struct admission_hook h;
        struct error err = ERROR_INIT;
        if (r->hooks.len >= HOOKS_MAX)
            return false;
        if (read_hook(it.value, &r->set->arena, &h, &err) < 0) {
            log_warn("webhook left out", kv("configuration", o->name), kv("error", err.text));
            continue;
        }
        if (json_len(json_get(it.value, "matchConditions")) > 0 && !r->owner->said_cel) {
            r->owner->said_cel = true;
            log_warn("webhook: matchConditions count as true here", kv("webhook", h.name));
        }
        h.validating = o->kind == &kind_validating_webhooks;
        vec_push(&r->hooks, h);
    }
    return true;
}

struct admission_hooks *admission_webhooks_get(struct admission_webhooks *w)
{
    if (w->stale) {
        w->stale = false;
        admission_hooks_unref(w->now);
        w->now = NULL;
        struct reading r = {.owner = w, .set = mem_new(struct admission_hooks, 1)};
        r.set->refs = 1;
        arena_init(&r.set->arena, 0);
        store_each(w->store, &kind_mutating_webhooks, NULL, NULL, read_configuration, &r);
        store_each(w->store, &kind_validating_webhooks, NULL, NULL, read_configuration, &r);
        r.set->docs = r.docs.items;
        r.set->docs_len = r.docs.len;
        r.set->items = r.hooks.items;
        r.set->len = r.hooks.len;
        if (r.set->len > 0)
            w->now = r.set;
        else
            admission_hooks_unref(r.set);
    }
    if (w->now)
        w->now->refs++;
    return w->now;
}

/* ---- matching ---- */

static bool has_word(json *list, const char *word)
{
    for (struct json_iter it = json_iter(list); json_next(&it);) {
        const char *s = json_str(it.value);
        if (str_eq(s, "*") || str_eq(s, word))
            return true;
    }
    return false;
}

/* Either side of the slash may be a star; "pods" is not "pods/status", a star after the slash is
 * both. */
static bool has_resource(json *list, const char *resource, const char *sub)
{
    for (struct json_iter it = json_iter(list); json_next(&it);) {
        const char *s = json_str(it.value);
        if (!s)
            continue;
        size_t n = strcspn(s, "/");
        const char *its = s[n] ? s + n + 1 : "";
        bool same =
            (n == 1 && *s == '*') || (strlen(resource) == n && strncmp(s, resource, n) == 0);
        if (same && (str_eq(its, "*") || str_eq(its, str_or_empty(sub))))
            return true;
    }
    return false;
}

static bool rule_matches(const struct admission_rule *rule, const struct admission_request *r)
{
    bool cluster = !r->kind->namespaced;
    if (str_eq(rule->scope, "Namespaced") && cluster)
        return false;
    if (str_eq(rule->scope, "Cluster") && !cluster)
        return false;
    return has_word(rule->operations, r->operation) && has_word(rule->groups, r->kind->group) &&
           has_word(rule->versions, r->kind->version) &&
           has_resource(rule->resources, r->kind->resource, r->sub);
}

static bool namespace_matches(const struct admission_hook *h, struct store *s,
                              const struct admission_request *r, const struct labels *object,
                              const struct labels *old)
{
    if (h->namespaces.len == 0 && !h->namespaces.nothing)
        return true;
    if (r->kind == &kind_namespaces)
        return selector_matches(&h->namespaces, object ? object : old);
    if (!r->kind->namespaced)
        return true;
    static const struct labels none = {0};
    const struct object *ns = store_get(s, &kind_namespaces, NULL, str_or_empty(r->ns));
    return selector_matches(&h->namespaces, ns ? &ns->labels : &none);
}

bool admission_hook_matches(const struct admission_hook *h, struct store *s,
                            const struct admission_request *r, const struct labels *object,
                            const struct labels *old)
{
    /* Configurations of webhooks never go through webhooks: a broken one could not be repaired. */
    if (str_eq(r->kind->group, "admissionregistration.k8s.io"))
        return false;
    bool rule = false;
    for (size_t i = 0; i < h->rules_len && !rule; i++)
        rule = rule_matches(&h->rules[i], r);
    if (!rule || !namespace_matches(h, s, r, object, old))
        return false;
    if (h->objects.len == 0 && !h->objects.nothing)
        return true;
    return (object && selector_matches(&h->objects, object)) ||
           (old && selector_matches(&h->objects, old));
}

/* ---- beginning and end ---- */

static void changed(void *arg, const struct store_event *e)
{
    (void)e;
    struct admission_webhooks *w = arg;
    w->stale = true;
}

struct admission_webhooks *admission_webhooks_new(struct store *s)
{
    struct admission_webhooks *w = mem_new(struct admission_webhooks, 1);
    w->store = s;
    w->stale = true;
    w->mutating = (struct store_listener){.kind = &kind_mutating_webhooks, .fn = changed, .arg = w};
    w->validating =
        (struct store_listener){.kind = &kind_validating_webhooks, .fn = changed, .arg = w};
    store_listen(s, &w->mutating);
    store_listen(s, &w->validating);
    return w;
}

void admission_webhooks_free(struct admission_webhooks *w)
{
    if (!w)
        return;
    store_unlisten(w->store, &w->mutating);
    store_unlisten(w->store, &w->validating);
    admission_hooks_unref(w->now);
    free(w);
}
