// SPDX-License-Identifier: Apache-2.0
#include "kubectl/facts.h"

#include <string.h>

#include "kubectl/doctor.h"
#include "kubectl/validity.h"
#include "lib/base/base64.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/base/vec.h"
#include "lib/model/names.h"

#define PART_OF "?labelSelector=app.kubernetes.io%2Fpart-of%3Dcosched"
#define ADMISSION "/apis/admissionregistration.k8s.io/v1/"

/* Each node needs its own request, so a large cluster is sampled. */
enum { KUBELETS_MAX = 100 };
static const int64_t SECOND_NS = 1000 * 1000 * 1000;

struct fetch {
    struct kube_client *client;
    const struct kube_options *options;
    struct json_writer w;
    struct strbuf unasked; /* JSON array without its closing bracket */
    /* From the programs' options, or their defaults. */
    struct strbuf home; /* namespace; "" if nothing is installed */
    struct strbuf lease, lease_home, secret, mutating, validating;
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

/* True if there is a document or the server says that none exists (*out is NULL). */
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

static void put_items(struct fetch *f, const char *key, const char *path, struct json_doc **out)
{
    if (!ask(f, key, path, out))
        return;
    json_key(&f->w, key);
    json_put_value(&f->w, json_get(json_root(*out), "items"));
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
    static const char *const names[] = {DOCTOR_CRD_SIGS, DOCTOR_CRD_X, DOCTOR_CRD_POLICIES};
    json_key(&f->w, "crds");
    json_array_begin(&f->w);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        AUTO_JSON *doc = NULL;
        AUTO_STRBUF path = {0};
        strbuf_addf(&path, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/%s", names[i]);
        if (!ask(f, "crds", strbuf_str(&path), &doc))
            break;
        if (doc != NULL)
            json_put_str(&f->w, names[i]);
    }
    json_array_end(&f->w);
}

/* ---- programs and their options ---- */

static void take_option(json *d, const char *option, const char *fallback, struct strbuf *out)
{
    const char *value = doctor_option(d, option);
    strbuf_adds(out, value != NULL ? value : fallback);
}

static void find_home(struct fetch *f, json *items)
{
    json *scheduler = doctor_workload(items, "cosched-scheduler");
    json *webhook = doctor_workload(items, "cosched-webhook");
    json *meta = json_get(scheduler != NULL ? scheduler : webhook, "metadata");
    strbuf_adds(&f->home, str_or_empty(json_get_str(meta, "namespace")));
    take_option(scheduler, "--lease-name=", "cosched-scheduler", &f->lease);
    take_option(scheduler, "--lease-namespace=", strbuf_str(&f->home), &f->lease_home);
    take_option(webhook, "--secret-name=", "cosched-webhook-cert", &f->secret);
    take_option(webhook, "--webhook-config=", "cosched-webhook", &f->mutating);
    take_option(webhook, "--validating-config=", "cosched-webhook", &f->validating);
}

static void put_configurations(struct fetch *f)
{
    AUTO_STRBUF mutating = {0}, validating = {0};
    strbuf_addf(&mutating, ADMISSION "mutatingwebhookconfigurations/%s", strbuf_str(&f->mutating));
    strbuf_addf(&validating, ADMISSION "validatingwebhookconfigurations/%s",
                strbuf_str(&f->validating));
    put_object(f, "mutating", strbuf_str(&mutating));
    put_object(f, "validating", strbuf_str(&validating));
}

/* Without a Deployment the namespace is unknown, so the Lease is searched by name. */
static void put_lease(struct fetch *f)
{
    AUTO_JSON *doc = NULL;
    AUTO_STRBUF path = {0};
    int64_t duration = 15;
    if (f->home.len > 0) {
        kube_api_path(&path, &kube_leases, strbuf_str(&f->lease_home), strbuf_str(&f->lease), NULL);
    } else {
        kube_api_path(&path, &kube_leases, NULL, NULL, NULL);
        strbuf_addf(&path, "?fieldSelector=metadata.name%%3D%s", strbuf_str(&f->lease));
    }
    if (!ask(f, "lease", strbuf_str(&path), &doc) || doc == NULL)
        return;
    json *lease = f->home.len > 0 ? json_root(doc) : json_at(json_get(json_root(doc), "items"), 0);
    if (lease == NULL)
        return;
    json *spec = json_get(lease, "spec");
    int64_t renewed = clock_parse_rfc3339(str_or_empty(json_get_str(spec, "renewTime")));
    (void)json_get_int(spec, "leaseDurationSeconds", &duration);
    json_key(&f->w, "lease");
    json_object_begin(&f->w);
    json_kv_str(&f->w, "holder", str_or_empty(json_get_str(spec, "holderIdentity")));
    json_kv_int(&f->w, "silentSeconds", num_max((clock_wall_ns() - renewed) / SECOND_NS, 0));
    json_kv_int(&f->w, "durationSeconds", duration);
    json_object_end(&f->w);
}

/* ---- rights of the accounts ---- */

static void print_review(const struct fetch *f, const struct doctor_right *r, const char *verb,
                         const char *account, struct strbuf *out)
{
    struct json_writer w;
    bool lease = r->scope == DOCTOR_LEASE || str_eq(r->resource, "leases");
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_kv_str(&w, "apiVersion", "authorization.k8s.io/v1");
    json_kv_str(&w, "kind", "SubjectAccessReview");
    json_key(&w, "spec");
    json_object_begin(&w);
    json_kv_str(&w, "user", account);
    json_key(&w, "resourceAttributes");
    json_object_begin(&w);
    json_kv_str(&w, "verb", verb);
    json_kv_str(&w, "group", r->group);
    json_kv_str(&w, "resource", r->resource);
    if (r->sub != NULL)
        json_kv_str(&w, "subresource", r->sub);
    if (r->scope == DOCTOR_AT_HOME || r->scope == DOCTOR_LEASE || r->scope == DOCTOR_SECRET)
        json_kv_str(&w, "namespace", strbuf_str(lease ? &f->lease_home : &f->home));
    if (r->scope == DOCTOR_LEASE)
        json_kv_str(&w, "name", strbuf_str(&f->lease));
    if (r->scope == DOCTOR_SECRET)
        json_kv_str(&w, "name", strbuf_str(&f->secret));
    if (r->scope == DOCTOR_MUTATING)
        json_kv_str(&w, "name", strbuf_str(&f->mutating));
    if (r->scope == DOCTOR_VALIDATING)
        json_kv_str(&w, "name", strbuf_str(&f->validating));
    json_object_end(&w);
    json_object_end(&w);
    json_object_end(&w);
}

static bool put_right(struct fetch *f, const struct doctor_right *r, const char *verb)
{
    AUTO_JSON *doc = NULL;
    AUTO_STRBUF account = {0}, body = {0}, resource = {0};
    struct error err = ERROR_INIT;
    strbuf_addf(&account, "system:serviceaccount:%s:cosched-%s", strbuf_str(&f->home), r->program);
    print_review(f, r, verb, strbuf_str(&account), &body);
    if (request(f, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", strbuf_str(&body),
                &doc, &err) < 0)
        return false;
    strbuf_addf(&resource, "%s%s%s%s%s", r->resource, r->sub != NULL ? "/" : "",
                str_or_empty(r->sub), r->group[0] != '\0' ? "." : "", r->group);
    json_object_begin(&f->w);
    json_kv_str(&f->w, "account", strbuf_str(&account));
    json_kv_str(&f->w, "verb", verb);
    json_kv_str(&f->w, "resource", strbuf_str(&resource));
    json_kv_bool(&f->w, "allowed",
                 json_get_bool(json_get(json_root(doc), "status"), "allowed", false));
    json_object_end(&f->w);
    return true;
}

static bool put_verbs(struct fetch *f, const struct doctor_right *r)
{
    bool asked = true;
    for (const char *at = r->verbs; asked && *at != '\0';) {
        AUTO_STRBUF verb = {0};
        size_t n = strcspn(at, " ");
        strbuf_add(&verb, at, n);
        asked = put_right(f, r, strbuf_str(&verb));
        at += n + strspn(at + n, " ");
    }
    return asked;
}

static void put_rights(struct fetch *f)
{
    bool asked = true;
    json_key(&f->w, "rights");
    json_array_begin(&f->w);
    for (size_t i = 0; asked && i < doctor_rights_len; i++)
        asked = put_verbs(f, &doctor_rights[i]);
    json_array_end(&f->w);
    if (!asked)
        note_unasked(f, "rights");
}

/* ---- webhook and kubelets ---- */

/* Creates a dry-run pod that requests GPUs and names no scheduler. The API server calls the
 * webhook, which sets ours, and stores nothing. */
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

/* Reports the validity and the CA, which the configurations have too. Nothing else leaves the
 * Secret. */
static void put_certificate(struct fetch *f)
{
    AUTO_JSON *doc = NULL;
    AUTO_STRBUF path = {0}, pem = {0};
    struct validity v;
    kube_api_path(&path, &kube_secrets, strbuf_str(&f->home), strbuf_str(&f->secret), NULL);
    if (!ask(f, "certificate", strbuf_str(&path), &doc) || doc == NULL)
        return;
    json *data = json_get(json_root(doc), "data");
    const char *leaf = str_or_empty(json_get_str(data, "tls.crt"));
    const char *ca = json_get_str(data, "ca.crt");
    if (ca == NULL) /* certificates come from elsewhere */
        return;
    json_key(&f->w, "certificate");
    json_object_begin(&f->w);
    json_kv_str(&f->w, "ca", ca);
    if (base64_decode(leaf, strlen(leaf), &pem) && validity_read(strbuf_str(&pem), pem.len, &v)) {
        int64_t from = clock_parse_rfc3339(v.not_before), to = clock_parse_rfc3339(v.not_after);
        if (from >= 0 && to >= 0) { /* 9999-12-31 ("no expiry") does not fit */
            json_kv_int(&f->w, "leftSeconds", (to - clock_wall_ns()) / SECOND_NS);
            json_kv_int(&f->w, "lifeSeconds", (to - from) / SECOND_NS);
        }
    }
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
            AUTO_STRBUF key = {0};
            refused = err.code == ERROR_DENIED;
            strbuf_addf(&key, "kubelet of %s", n->name);
            if (!refused)
                note_unasked(f, strbuf_str(&key));
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
    AUTO_JSON *version = NULL, *deployments = NULL, *daemonsets = NULL;
    if (request(&f, "GET", "/version", NULL, &version, err) < 0)
        return error_wrap(err, "version");
    json_writer_init(&f.w, out);
    json_object_begin(&f.w);
    json_key(&f.w, "version");
    json_put_value(&f.w, json_root(version));
    put_items(&f, "deployments", "/apis/apps/v1/deployments" PART_OF, &deployments);
    put_items(&f, "daemonsets", "/apis/apps/v1/daemonsets" PART_OF, &daemonsets);
    put_crds(&f);
    find_home(&f, json_get(json_root(deployments), "items"));
    put_configurations(&f);
    put_names(&f, "policies", ADMISSION "validatingadmissionpolicies");
    put_names(&f, "policyBindings", ADMISSION "validatingadmissionpolicybindings");
    put_lease(&f);
    if (f.home.len > 0) {
        put_rights(&f);
        put_certificate(&f);
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
    strbuf_deinit(&f.home);
    strbuf_deinit(&f.lease);
    strbuf_deinit(&f.lease_home);
    strbuf_deinit(&f.secret);
    strbuf_deinit(&f.mutating);
    strbuf_deinit(&f.validating);
    return 0;
}
