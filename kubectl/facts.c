// SPDX-License-Identifier: Apache-2.0
#include "kubectl/facts.h"

#include <string.h>

#include "kubectl/doctor.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/base/vec.h"
#include "lib/model/names.h"

#define PART_OF "?labelSelector=app.kubernetes.io%2Fpart-of%3Dcosched"
#define ADMISSION "/apis/admissionregistration.k8s.io/v1/"

/* Each node is asked for itself: in a large cluster the first ones stand for all. */
enum { KUBELETS_MAX = 100 };

struct fetch {
    struct kube_client *client;
    const struct kube_options *options;
    struct json_writer w;
    struct strbuf unasked; /* a JSON array without its end */
};

static int request(struct fetch *f, const char *method, const char *path, const char *body,
                   struct json_doc **out, struct error *err)
{
    AUTO_STRBUF reply = {0};
    const struct kube_request r = {.method = method,
                                   .path = path,
                                   .content_type = body != NULL ? "application/json" : NULL,
                                   .body = body,
                                   .body_len = body != NULL ? strlen(body) : 0,
                                   .max_bytes = f->options->max_list_bytes};
    if (kube_http_do(kube_client_http(f->client), &r, &reply, NULL, NULL, err) < 0)
        return -1;
    return json_parse(out, strbuf_str(&reply), reply.len, err);
}

static void note_unasked(struct fetch *f, const char *key)
{
    strbuf_adds(&f->unasked, f->unasked.len > 0 ? "," : "");
    json_escape(&f->unasked, key, strlen(key));
}

/* true: there is a document, or the server says that there is no such thing (*out is NULL then). */
static bool ask(struct fetch *f, const char *key, const char *path, struct json_doc **out)
{
    struct error err = ERROR_INIT;
    *out = NULL;
    if (request(f, "GET", path, NULL, out, &err) == 0 || err.code == ERROR_NOT_FOUND)
        return true;
    note_unasked(f, key);
    return false;
}

static void put_object(struct fetch *f, const char *key, const char *path)
{
    AUTO_JSON *doc = NULL;
    if (!ask(f, key, path, &doc) || doc == NULL)
        return;
    json_key(&f->w, key);
    json_put_value(&f->w, json_root(doc));
}

static void put_items(struct fetch *f, const char *key, const char *path)
{
    AUTO_JSON *doc = NULL;
    if (!ask(f, key, path, &doc))
        return;
    json_key(&f->w, key);
    json_put_value(&f->w, json_get(json_root(doc), "items"));
}

static void put_names(struct fetch *f, const char *key, const char *path)
{
    AUTO_JSON *doc = NULL;
    if (!ask(f, key, path, &doc))
        return;
    json_key(&f->w, key);
    json_array_begin(&f->w);
    for (struct json_iter it = json_iter(json_get(json_root(doc), "items")); json_next(&it);)
        json_put_str(&f->w, json_get_str(json_get(it.value, "metadata"), "name"));
    json_array_end(&f->w);
}

static void put_crds(struct fetch *f)
{
    static const char *const names[] = {"podgroups.scheduling.sigs.k8s.io",
                                        "podgroups.scheduling.x-k8s.io"};
    json_key(&f->w, "podgroupCrds");
    json_array_begin(&f->w);
    for (size_t i = 0; i < 2; i++) {
        AUTO_JSON *doc = NULL;
        AUTO_STRBUF path = {0};
        strbuf_addf(&path, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/%s", names[i]);
        if (ask(f, "podgroupCrds", strbuf_str(&path), &doc) && doc != NULL)
            json_put_str(&f->w, names[i]);
    }
    json_array_end(&f->w);
}

/* ---- the scheduler's Lease ------------------------------------------------------------------- */

/* Where the programs are, by the scheduler's Deployment; "" when there is none. */
static void find_home(struct fetch *f, struct strbuf *ns, struct strbuf *lease)
{
    static const char *const path[] = {"spec", "template", "spec", "containers", NULL};
    AUTO_JSON *doc = NULL;
    strbuf_adds(lease, "cosched-scheduler");
    if (!ask(f, "lease",
             "/apis/apps/v1/deployments?labelSelector=app.kubernetes.io%2Fname%3Dcosched-scheduler",
             &doc))
        return;
    json *first = json_at(json_get(json_root(doc), "items"), 0);
    strbuf_adds(ns, str_or_empty(json_get_str(json_get(first, "metadata"), "namespace")));
    json *args = json_get(json_at(json_path(first, path), 0), "args");
    for (struct json_iter it = json_iter(args); json_next(&it);)
        if (str_starts(str_or_empty(json_str(it.value)), "--lease-name=")) {
            strbuf_reset(lease);
            strbuf_adds(lease, json_str(it.value) + strlen("--lease-name="));
        }
}

static void put_lease(struct fetch *f, const char *ns, const char *name)
{
    AUTO_JSON *doc = NULL;
    AUTO_STRBUF path = {0};
    int64_t duration = 15;
    kube_api_path(&path, &kube_leases, ns, name, NULL);
    if (!ask(f, "lease", strbuf_str(&path), &doc) || doc == NULL)
        return;
    json *spec = json_get(json_root(doc), "spec");
    int64_t renewed = clock_parse_rfc3339(str_or_empty(json_get_str(spec, "renewTime")));
    (void)json_get_int(spec, "leaseDurationSeconds", &duration);
    json_key(&f->w, "lease");
    json_object_begin(&f->w);
    json_kv_str(&f->w, "holder", str_or_empty(json_get_str(spec, "holderIdentity")));
    json_kv_int(&f->w, "silentSeconds",
                num_max((clock_wall_ns() - renewed) / ((int64_t)1000 * 1000 * 1000), 0));
    json_kv_int(&f->w, "durationSeconds", duration);
    json_object_end(&f->w);
}

/* ---- what the accounts may do ---------------------------------------------------------------- */

static void print_review(const struct doctor_right *r, const char *ns, const char *account,
                         struct strbuf *out)
{
    struct json_writer w;
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_kv_str(&w, "apiVersion", "authorization.k8s.io/v1");
    json_kv_str(&w, "kind", "SubjectAccessReview");
    json_key(&w, "spec");
    json_object_begin(&w);
    json_kv_str(&w, "user", account);
    json_key(&w, "resourceAttributes");
    json_object_begin(&w);
    json_kv_str(&w, "verb", r->verb);
    json_kv_str(&w, "group", r->group);
    json_kv_str(&w, "resource", r->resource);
    if (r->sub != NULL)
        json_kv_str(&w, "subresource", r->sub);
    /* Rights that are granted for one object of ours only. */
    if (str_eq(r->resource, "leases") || str_eq(r->resource, "secrets"))
        json_kv_str(&w, "namespace", ns);
    if (str_eq(r->resource, "leases"))
        json_kv_str(&w, "name", "cosched-scheduler");
    if (str_eq(r->resource, "secrets"))
        json_kv_str(&w, "name", "cosched-webhook-cert");
    if (str_eq(r->resource, "mutatingwebhookconfigurations"))
        json_kv_str(&w, "name", "cosched-webhook");
    json_object_end(&w);
    json_object_end(&w);
    json_object_end(&w);
}

static bool put_right(struct fetch *f, const struct doctor_right *r, const char *ns)
{
    AUTO_JSON *doc = NULL;
    AUTO_STRBUF account = {0}, body = {0}, resource = {0};
    struct error err = ERROR_INIT;
    strbuf_addf(&account, "system:serviceaccount:%s:cosched-%s", ns, r->program);
    print_review(r, ns, strbuf_str(&account), &body);
    if (request(f, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", strbuf_str(&body),
                &doc, &err) < 0)
        return false;
    strbuf_addf(&resource, "%s%s%s", r->resource, r->sub != NULL ? "/" : "", str_or_empty(r->sub));
    json_object_begin(&f->w);
    json_kv_str(&f->w, "account", strbuf_str(&account));
    json_kv_str(&f->w, "verb", r->verb);
    json_kv_str(&f->w, "resource", strbuf_str(&resource));
    json_kv_bool(&f->w, "allowed",
                 json_get_bool(json_get(json_root(doc), "status"), "allowed", false));
    json_object_end(&f->w);
    return true;
}

static void put_rights(struct fetch *f, const char *ns)
{
    bool asked = true;
    json_key(&f->w, "rights");
    json_array_begin(&f->w);
    for (size_t i = 0; asked && i < doctor_rights_len; i++)
        asked = put_right(f, &doctor_rights[i], ns);
    json_array_end(&f->w);
    if (!asked)
        note_unasked(f, "rights");
}

/* ---- the webhook and the kubelets ------------------------------------------------------------ */

/* A pod that asks for cards and names no scheduler: the API server asks the webhook, which gives it ours, and then keeps nothing. */
static void put_probe(struct fetch *f)
{
    static const char pod[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"generateName\":\"cosched-doctor-"
        "\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"none\",\"resources\":{\"limits\""
        ":{\"" NAME_RES_GPU_MEM "\":\"1\"}}}]}}";
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    bool done =
        request(f, "POST", "/api/v1/namespaces/default/pods?dryRun=All", pod, &doc, &err) == 0;
    const char *scheduler = json_get_str(json_get(json_root(doc), "spec"), "schedulerName");
    if (!done && err.code == ERROR_DENIED && strstr(err.text, "webhook") == NULL) {
        note_unasked(f, "probe");
        return;
    }
    json_key(&f->w, "probe");
    json_object_begin(&f->w);
    json_kv_bool(&f->w, "answered",
                 done && scheduler != NULL && !str_eq(scheduler, "default-scheduler"));
    json_kv_str(&f->w, "error", done ? "" : err.text);
    json_object_end(&f->w);
}

static void put_kubelets(struct fetch *f, const struct load *l)
{
    size_t asked = 0;
    bool refused = false;
    json_key(&f->w, "kubelets");
    json_object_begin(&f->w);
    for (size_t i = 0; i < l->nodes.len && asked < KUBELETS_MAX && !refused; i++) {
        AUTO_JSON *doc = NULL;
        AUTO_STRBUF path = {0};
        struct error err = ERROR_INIT;
        const struct node *n = l->nodes.items[i];
        if (labels_get(&n->annotations, NAME_ANN_CPU_TOPOLOGY) == NULL)
            continue;
        asked++;
        kube_api_path(&path, &kube_nodes, NULL, n->name, "proxy");
        strbuf_adds(&path, "/configz");
        kube_client_set_timeout(f->client, 5000);
        if (request(f, "GET", strbuf_str(&path), NULL, &doc, &err) < 0) {
            refused = err.code == ERROR_DENIED;
            continue;
        }
        json_key(&f->w, n->name);
        json_object_begin(&f->w);
        json_kv_str(&f->w, "cpuManagerPolicy",
                    str_or_empty(json_get_str(json_get(json_root(doc), "kubeletconfig"),
                                              "cpuManagerPolicy")));
        json_object_end(&f->w);
    }
    json_object_end(&f->w);
    if (refused)
        note_unasked(f, "kubelets");
}

int facts_fetch(struct kube_client *client, const struct kube_options *o, const struct load *l,
                struct strbuf *out, struct error *err)
{
    struct fetch f = {.client = client, .options = o};
    AUTO_STRBUF ns = {0}, lease = {0};
    AUTO_JSON *version = NULL;
    if (request(&f, "GET", "/version", NULL, &version, err) < 0)
        return error_wrap(err, "version");
    json_writer_init(&f.w, out);
    json_object_begin(&f.w);
    json_key(&f.w, "version");
    json_put_value(&f.w, json_root(version));
    put_items(&f, "deployments", "/apis/apps/v1/deployments" PART_OF);
    put_items(&f, "daemonsets", "/apis/apps/v1/daemonsets" PART_OF);
    put_crds(&f);
    put_object(&f, "mutating", ADMISSION "mutatingwebhookconfigurations/cosched-webhook");
    put_object(&f, "validating", ADMISSION "validatingwebhookconfigurations/cosched-webhook");
    put_names(&f, "policies", ADMISSION "validatingadmissionpolicies");
    put_names(&f, "policyBindings", ADMISSION "validatingadmissionpolicybindings");
    find_home(&f, &ns, &lease);
    if (ns.len > 0) {
        put_lease(&f, strbuf_str(&ns), strbuf_str(&lease));
        put_rights(&f, strbuf_str(&ns));
    }
    put_probe(&f);
    put_kubelets(&f, l);
    json_key(&f.w, "unasked");
    json_array_begin(&f.w);
    if (f.unasked.len > 0)
        json_put_raw(&f.w, strbuf_str(&f.unasked), f.unasked.len);
    json_array_end(&f.w);
    json_object_end(&f.w);
    strbuf_deinit(&f.unasked);
    return 0;
}
