// SPDX-License-Identifier: Apache-2.0
/*
 * The verbs. Every request goes through attempt(), which applies three rules:
 *
 *   time    one deadline covers the verb: waiting for the rate limiter, every try, every pause
 *           between them. A try gets the remaining time, and writes send it to the server
 *           (?timeout=), so that it does not act on a request we no longer wait for. Fencing
 *           relies on it: a Binding that may take 4 s is over after 4 s. Nothing is sent after the
 *           deadline: a process that was stopped for a minute does not send when it resumes.
 *   retry   429 means "not done": waits for Retry-After and tries again, reads and writes alike
 *           (except an eviction, whose 429 is a refusal by the disruption budget). A request that
 *           was never sent is also tried again. Reads are repeated after a lost connection too; a
 *           write that may have arrived is not.
 *   rate    one token bucket for the process, refilled at --kube-qps up to --kube-burst.
 */
#include "lib/kube/api.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/model/names.h"

enum {
    TRIES_MAX = 6,
    RETRY_FIRST_MS = 50,
    RETRY_MAX_MS = 2000,
    PAUSE_WISH_MAX_MS = 10000, /* a longer Retry-After is cut to this */
    THROTTLE_DEFAULT_MS = 1000,
};

#define KIND(var, g, v, r, k, n)   \
    const struct kube_kind var = { \
        .group = g, .version = v, .resource = r, .kind = k, .namespaced = n}
KIND(kube_pods, "", "v1", "pods", "Pod", true);
KIND(kube_nodes, "", "v1", "nodes", "Node", false);
KIND(kube_events, "", "v1", "events", "Event", true);
KIND(kube_leases, "coordination.k8s.io", "v1", "leases", "Lease", true);
KIND(kube_namespaces, "", "v1", "namespaces", "Namespace", false);
KIND(kube_configmaps, "", "v1", "configmaps", "ConfigMap", true);
KIND(kube_secrets, "", "v1", "secrets", "Secret", true);
KIND(kube_mutating_webhooks, "admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations",
     "MutatingWebhookConfiguration", false);
KIND(kube_claims, "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true);
KIND(kube_volumes, "", "v1", "persistentvolumes", "PersistentVolume", false);
KIND(kube_storage_classes, "storage.k8s.io", "v1", "storageclasses", "StorageClass", false);
KIND(kube_csi_nodes, "storage.k8s.io", "v1", "csinodes", "CSINode", false);
KIND(kube_csi_drivers, "storage.k8s.io", "v1", "csidrivers", "CSIDriver", false);
KIND(kube_csi_capacities, "storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity",
     true);
KIND(kube_volume_attachments, "storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment",
     false);
KIND(kube_budgets, "policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true);
KIND(kube_device_classes, "resource.k8s.io", "v1", "deviceclasses", "DeviceClass", false);
KIND(kube_pod_groups, NAME_GROUP_PODGROUP, NAME_VERSION_PODGROUP, "podgroups", "PodGroup", true);
KIND(kube_pod_groups_x, NAME_GROUP_PODGROUP_X, NAME_VERSION_PODGROUP_X, "podgroups", "PodGroup",
     true);
KIND(kube_pod_groups_native, NAME_GROUP_PODGROUP_NATIVE, NAME_VERSION_PODGROUP_NATIVE, "podgroups",
     "PodGroup", true);
KIND(kube_resource_policies, NAME_GROUP_POLICY, NAME_VERSION_POLICY, "resourcepolicies",
     NAME_KIND_POLICY, true);
#undef KIND

struct kube_client {
    struct kube_http *http;
    struct kube_options options;
};

int kube_client_new(struct kube_client **out, struct kube_config *config,
                    const struct kube_options *o, const char *user_agent, struct error *err)
{
    struct kube_client *c = mem_new(struct kube_client, 1);
    c->options = *o;
    if (kube_http_new(&c->http, config, o, user_agent, err) < 0) {
        free(c);
        return -1;
    }
    *out = c;
    return 0;
}

void kube_client_free(struct kube_client *c)
{
    if (!c)
        return;
    kube_http_free(c->http);
    free(c);
}

void kube_client_cancel(struct kube_client *c)
{
    kube_http_cancel(c->http);
}

struct kube_http *kube_client_http(struct kube_client *c)
{
    return c->http;
}

void kube_client_set_timeout(struct kube_client *c, int64_t ms)
{
    c->options.request_timeout_ms = ms;
}

static struct {
    pthread_mutex_t lock;
    bool started;
    /* thousandths of a request that may be sent now; negative: promised to waiting requests */
    int64_t milli;
    int64_t at_ms;
} bucket = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Takes a token; returns how long to wait for it. */
static int64_t bucket_take(int64_t qps, int64_t burst)
{
    pthread_mutex_lock(&bucket.lock);
    int64_t now_ms = clock_mono_ms(); /* under the lock: it never goes back */
    int64_t full = num_max(burst, 1) * 1000;
    int64_t since = bucket.started ? num_min(now_ms - bucket.at_ms, 3600 * 1000) : 0;
    bucket.milli = bucket.started ? num_min(full, bucket.milli + since * qps) : full;
    bucket.started = true;
    bucket.at_ms = now_ms;
    bucket.milli -= 1000;
    int64_t wait = bucket.milli >= 0 ? 0 : (-bucket.milli + qps - 1) / qps;
    pthread_mutex_unlock(&bucket.lock);
    return wait;
}

/* Returns an unused token. */
static void bucket_return(void)
{
    pthread_mutex_lock(&bucket.lock);
    bucket.milli += 1000;
    pthread_mutex_unlock(&bucket.lock);
}

static int wait_for_rate(struct kube_client *c, int64_t deadline_ms, struct error *err)
{
    if (c->options.qps <= 0)
        return 0;
    int64_t wait = bucket_take(c->options.qps, c->options.burst);
    if (wait > 0 && clock_mono_ms() + wait >= deadline_ms) {
        bucket_return();
        error_set(err, ERROR_THROTTLED,
                  "our own limit of %lld requests per second would delay it past its deadline",
                  (long long)c->options.qps);
        err->retry_after_ms = wait;
        return -1;
    }
    if (wait > 0 && !kube_http_sleep(c->http, wait))
        return error_set(err, ERROR_CANCELLED, "cancelled");
    return 0;
}

struct call {
    const char *method;
    const char *path; /* with or without a query */
    const char *content_type;
    const char *body;
    size_t body_len;
    int64_t timeout_ms; /* 0: from the options */
    int64_t began_ms;   /* 0: now */
    bool no_throttle_retry;
    bool dry_run;
};

bool kube_client_pause(struct kube_client *c, int64_t first_ms, int attempt,
                       const struct error *err)
{
    int64_t ms = num_min(first_ms << num_min(attempt, 16), RETRY_MAX_MS);
    int64_t wish_ms = num_min(err->retry_after_ms, PAUSE_WISH_MAX_MS);
    return kube_http_sleep(c->http, num_max(ms / 2 + clock_jitter(ms), wish_ms));
}

static int64_t pause_before(int attempt, const struct error *e)
{
    if (e->code == ERROR_THROTTLED)
        return e->retry_after_ms > 0 ? e->retry_after_ms : THROTTLE_DEFAULT_MS;
    int64_t ms = num_min((int64_t)RETRY_FIRST_MS << attempt, RETRY_MAX_MS);
    return num_max(ms / 2 + clock_jitter(ms), e->retry_after_ms);
}

static bool may_retry(const struct call *q, const struct error *e, bool never_sent)
{
    if (e->code == ERROR_THROTTLED)
        return !q->no_throttle_retry;
    if (e->code != ERROR_UNAVAILABLE)
        return false;
    return never_sent || (str_eq(q->method, "GET") && e->http_status == 0);
}

/* "GET /api/v1/pods: ..." */
static int in_call(struct error *err, const struct call *q)
{
    return error_wrap(err, "%s %.*s", q->method, (int)strcspn(q->path, "?"), q->path);
}

/* Appends the reply's body to `body`. */
static int attempt(struct kube_client *c, const struct call *q, struct strbuf *body,
                   bool *never_sent, struct error *err)
{
    struct error mine;
    err = err ? err : &mine;
    bool ignored;
    never_sent = never_sent ? never_sent : &ignored;
    int64_t deadline = (q->began_ms > 0 ? q->began_ms : clock_mono_ms()) +
                       (q->timeout_ms > 0 ? q->timeout_ms : c->options.request_timeout_ms);
    bool write = !str_eq(q->method, "GET");
    AUTO_STRBUF path = {0};
    for (int i = 0;; i++) {
        *never_sent = true;
        if (wait_for_rate(c, deadline, err) < 0)
            return in_call(err, q);
        int64_t left = deadline - clock_mono_ms();
        if (left <= 0) {
            error_set(err, ERROR_TIMEOUT, "its time was over before it was sent");
            return in_call(err, q);
        }
        strbuf_reset(&path);
        strbuf_adds(&path, q->path);
        if (write)
            strbuf_addf(&path, "%stimeout=%lldms", strchr(q->path, '?') ? "&" : "?",
                        (long long)left);
        struct kube_request r = {.method = q->method,
                                 .path = strbuf_str(&path),
                                 .content_type = q->content_type,
                                 .body = q->body,
                                 .body_len = q->body_len,
                                 .timeout_ms = left,
                                 .not_after_ms = deadline};
        strbuf_reset(body);
        if (kube_http_do(c->http, &r, body, NULL, never_sent, err) == 0)
            return 0;
        if (i + 1 >= TRIES_MAX || !may_retry(q, err, *never_sent))
            return -1;
        int64_t wait = pause_before(i, err);
        if (clock_mono_ms() + wait >= deadline)
            return -1;
        if (!kube_http_sleep(c->http, wait)) {
            *never_sent = true; /* or refused: what may be retried was not done */
            error_set(err, ERROR_CANCELLED, "cancelled");
            return in_call(err, q);
        }
    }
}

static int call(struct kube_client *c, const struct call *q, struct json_doc **out,
                bool *never_sent, struct error *err)
{
    AUTO_STRBUF body = {0};
    if (attempt(c, q, &body, never_sent, err) < 0)
        return -1;
    if (!out)
        return 0;
    if (json_parse(out, strbuf_str(&body), body.len, err) < 0) {
        error_wrap(err, "reply");
        return in_call(err, q);
    }
    return 0;
}

void kube_api_path(struct strbuf *out, const struct kube_kind *k, const char *ns, const char *name,
                   const char *sub)
{
    strbuf_adds(out, k->group[0] ? "/apis/" : "/api/");
    if (k->group[0]) {
        strbuf_adds(out, k->group);
        strbuf_addc(out, '/');
    }
    strbuf_adds(out, k->version);
    if (ns && k->namespaced) {
        strbuf_adds(out, "/namespaces/");
        kube_http_escape(out, ns);
    }
    strbuf_addc(out, '/');
    strbuf_adds(out, k->resource);
    if (name) {
        strbuf_addc(out, '/');
        kube_http_escape(out, name);
    }
    if (sub) {
        strbuf_addc(out, '/');
        strbuf_adds(out, sub);
    }
}

/* The caller passes NULL for an absent part. "" would address the collection instead of an object,
 * and "." or ".." a parent: a DELETE there would remove more than intended. No object has such a
 * name. */
static bool may_be_in_path(const char *part)
{
    return !part || !(str_eq(part, "") || str_eq(part, ".") || str_eq(part, ".."));
}

static int check_names(const char *method, const struct kube_kind *k, const char *ns,
                       const char *name, struct error *err)
{
    if (may_be_in_path(name) && (!k->namespaced || may_be_in_path(ns)))
        return 0;
    return error_set(err, ERROR_INVALID, "%s %s: no object can be called '%s' in namespace '%s'",
                     method, k->resource, str_or_empty(name), str_or_empty(ns));
}

/* The call for an object; name NULL: for its collection. */
static int on_object(struct kube_client *c, struct call q, const struct kube_kind *k,
                     const char *ns, const char *name, const char *sub, struct json_doc **out,
                     bool *never_sent, struct error *err)
{
    if (check_names(q.method, k, ns, name, err) < 0) {
        if (never_sent)
            *never_sent = true;
        return -1;
    }
    AUTO_STRBUF path = {0};
    kube_api_path(&path, k, ns, name, sub);
    if (q.dry_run)
        strbuf_adds(&path, "?dryRun=All");
    q.path = strbuf_str(&path);
    return call(c, &q, out, never_sent, err);
}

static struct call writing(const char *method, const char *type, const char *body, size_t n)
{
    return (struct call){.method = method, .content_type = type, .body = body, .body_len = n};
}

static const char as_json[] = "application/json";

int kube_get(struct kube_client *c, const struct kube_kind *k, const char *ns, const char *name,
             struct json_doc **out, struct error *err)
{
    return on_object(c, (struct call){.method = "GET"}, k, ns, name, NULL, out, NULL, err);
}

int kube_create(struct kube_client *c, const struct kube_kind *k, const char *ns, const char *body,
                size_t n, struct json_doc **out, struct error *err)
{
    return on_object(c, writing("POST", as_json, body, n), k, ns, NULL, NULL, out, NULL, err);
}

int kube_update(struct kube_client *c, const struct kube_kind *k, const char *ns, const char *name,
                const char *sub, const char *body, size_t n, struct json_doc **out,
                struct error *err)
{
    return on_object(c, writing("PUT", as_json, body, n), k, ns, name, sub, out, NULL, err);
}

int kube_patch(struct kube_client *c, const struct kube_kind *k, const char *ns, const char *name,
               const char *sub, enum kube_patch how, const char *body, size_t n,
               struct json_doc **out, struct error *err)
{
    static const char *const types[] = {[KUBE_PATCH_MERGE] = "application/merge-patch+json",
                                        [KUBE_PATCH_STRATEGIC] =
                                            "application/strategic-merge-patch+json",
                                        [KUBE_PATCH_JSON] = "application/json-patch+json"};
    return on_object(c, writing("PATCH", types[how], body, n), k, ns, name, sub, out, NULL, err);
}

static void put_delete_options(struct json_writer *w, const char *uid, int64_t grace_s)
{
    json_object_begin(w);
    json_kv_str(w, "apiVersion", "v1");
    json_kv_str(w, "kind", "DeleteOptions");
    if (grace_s >= 0)
        json_kv_int(w, "gracePeriodSeconds", grace_s);
    if (uid) {
        json_key(w, "preconditions");
        json_object_begin(w);
        json_kv_str(w, "uid", uid);
        json_object_end(w);
    }
    json_object_end(w);
}

int kube_delete(struct kube_client *c, const struct kube_kind *k, const char *ns, const char *name,
                const char *uid, int64_t grace_s, struct error *err)
{
    AUTO_STRBUF body = {0};
    struct json_writer w;
    json_writer_init(&w, &body);
    put_delete_options(&w, uid, grace_s);
    return on_object(c, writing("DELETE", as_json, strbuf_str(&body), body.len), k, ns, name, NULL,
                     NULL, NULL, err);
}

int kube_evict(struct kube_client *c, const char *ns, const char *pod, const char *uid,
               struct error *err)
{
    AUTO_STRBUF body = {0};
    struct json_writer w;
    json_writer_init(&w, &body);
    json_object_begin(&w);
    json_kv_str(&w, "apiVersion", "policy/v1");
    json_kv_str(&w, "kind", "Eviction");
    json_key(&w, "metadata");
    json_object_begin(&w);
    json_kv_str(&w, "name", pod);
    json_kv_str(&w, "namespace", ns);
    json_object_end(&w);
    json_key(&w, "deleteOptions");
    put_delete_options(&w, uid, -1);
    json_object_end(&w);
    struct call q = writing("POST", as_json, strbuf_str(&body), body.len);
    q.no_throttle_retry = true;
    return on_object(c, q, &kube_pods, ns, pod, "eviction", NULL, NULL, err);
}

static void put_texts(struct json_writer *w, const char *name, const struct labels *l)
{
    json_key(w, name);
    json_object_begin(w);
    for (size_t i = 0; i < l->len; i++)
        json_kv_str(w, l->items[i].key, l->items[i].value);
    json_object_end(w);
}

struct kube_binding kube_binding_copy(const struct kube_binding *from, struct arena *a)
{
    struct kube_binding to = *from;
    if (from->annotations.len > 0)
        to.annotations = labels_copy(&from->annotations, a);
    if (from->labels.len > 0)
        to.labels = labels_copy(&from->labels, a);
    to.ns = arena_strdup(a, from->ns);
    to.pod = arena_strdup(a, from->pod);
    to.uid = from->uid ? arena_strdup(a, from->uid) : NULL;
    to.node = arena_strdup(a, from->node);
    return to;
}

static void put_binding(struct strbuf *out, const struct kube_binding *b)
{
    struct json_writer w;
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_kv_str(&w, "apiVersion", "v1");
    json_kv_str(&w, "kind", "Binding");
    json_key(&w, "metadata");
    json_object_begin(&w);
    json_kv_str(&w, "name", b->pod);
    json_kv_str(&w, "namespace", b->ns);
    if (b->uid)
        json_kv_str(&w, "uid", b->uid);
    put_texts(&w, "annotations", &b->annotations);
    if (b->labels.len > 0)
        put_texts(&w, "labels", &b->labels);
    json_object_end(&w);
    json_key(&w, "target");
    json_object_begin(&w);
    json_kv_str(&w, "apiVersion", "v1");
    json_kv_str(&w, "kind", "Node");
    json_kv_str(&w, "name", b->node);
    json_object_end(&w);
    json_object_end(&w);
}

int kube_bind(struct kube_client *c, const struct kube_binding *b, bool *never_sent,
              struct error *err)
{
    AUTO_STRBUF body = {0};
    put_binding(&body, b);
    struct call q = writing("POST", as_json, strbuf_str(&body), body.len);
    q.timeout_ms = b->timeout_ms;
    q.began_ms = b->began_ms;
    q.dry_run = b->dry_run;
    return on_object(c, q, &kube_pods, b->ns, b->pod, "binding", NULL, never_sent, err);
}

int kube_bind_compose(const struct kube_binding *b, struct strbuf *path, struct strbuf *body,
                      struct error *err)
{
    if (check_names("POST", &kube_pods, b->ns, b->pod, err) < 0)
        return -1;
    kube_api_path(path, &kube_pods, b->ns, b->pod, "binding");
    put_binding(body, b);
    return 0;
}
