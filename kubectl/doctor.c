// SPDX-License-Identifier: Apache-2.0
#include "kubectl/doctor.h"

#include <stdarg.h>
#include <string.h>

#include "kubectl/grid.h"
#include "lib/base/num.h"
#include "lib/model/names.h"

#define LABEL "app.kubernetes.io/name"

__attribute__((format(printf, 3, 4))) static void find(struct doctor *d, const char *advice,
                                                       const char *fmt, ...)
{
    AUTO_STRBUF what = {0};
    va_list args;
    va_start(args, fmt);
    strbuf_vaddf(&what, fmt, args);
    va_end(args);
    const struct doctor_finding f = {.what = arena_strdup(d->arena, strbuf_str(&what)),
                                     .advice = arena_strdup(d->arena, advice)};
    vec_push(&d->findings, f);
}

static bool is_asked(const struct doctor *d, const char *key)
{
    for (struct json_iter it = json_iter(json_get(d->facts, "unasked")); json_next(&it);)
        if (str_eq(json_str(it.value), key))
            return false;
    return true;
}

/* ---- programs ---- */

json *doctor_workload(json *items, const char *name)
{
    for (struct json_iter it = json_iter(items); json_next(&it);) {
        json *meta = json_get(it.value, "metadata");
        if (str_eq(json_get_str(json_get(meta, "labels"), LABEL), name))
            return it.value;
    }
    return NULL;
}

static json *container_of(json *w)
{
    static const char *const path[] = {"spec", "template", "spec", "containers", NULL};
    return json_at(json_path(w, path), 0);
}

const char *doctor_option(json *workload, const char *option)
{
    const char *value = NULL;
    json *args = json_get(container_of(workload), "args");
    for (struct json_iter it = json_iter(args); json_next(&it);)
        if (str_starts(str_or_empty(json_str(it.value)), option))
            value = json_str(it.value) + strlen(option); /* the last one wins */
    return value;
}

static json *workload(const struct doctor *d, const char *list, const char *name)
{
    return doctor_workload(json_get(d->facts, list), name);
}

static const char *image_of(json *w)
{
    return json_get_str(container_of(w), "image");
}

static const char *tag_of(const char *image)
{
    const char *colon = image != NULL ? strrchr(image, ':') : NULL;
    return colon != NULL ? colon + 1 : "";
}

/* Whether some scheduler replica renews the Lease. */
static bool is_led(const struct doctor *d)
{
    json *lease = json_get(d->facts, "lease");
    int64_t silent = 0, duration = 0;
    return str_or_empty(json_get_str(lease, "holder"))[0] != '\0' &&
           json_get_int(lease, "silentSeconds", &silent) &&
           json_get_int(lease, "durationSeconds", &duration) && silent <= duration;
}

static bool is_answered(const struct doctor *d)
{
    return json_get_bool(json_get(d->facts, "probe"), "answered", false);
}

/* Programs may run outside the cluster (under systemd, or beside the embedded cluster), where only
 * their effects show that they run. But once one is a workload of the cluster, a missing one is a
 * fault of the installation, even if something still answers. */
static bool is_outside(const struct doctor *d, bool works)
{
    return works && json_len(json_get(d->facts, "deployments")) == 0 &&
           json_len(json_get(d->facts, "daemonsets")) == 0;
}

static void check_deployment(struct doctor *d, const char *name, const char *without, bool works)
{
    json *w = workload(d, "deployments", name);
    int64_t ready = 0, wanted = 0;
    if (!is_asked(d, "deployments") || is_outside(d, works))
        return;
    if (w == NULL) {
        find(d, "install the chart (docs/install.md)", "%s: is not installed: %s", name, without);
        return;
    }
    (void)json_get_int(json_get(w, "status"), "readyReplicas", &ready);
    (void)json_get_int(json_get(w, "spec"), "replicas", &wanted);
    if (wanted == 0)
        find(d,
             arena_printf(d->arena, "kubectl -n %s scale deployment %s --replicas=2",
                          str_or_empty(json_get_str(json_get(w, "metadata"), "namespace")),
                          str_or_empty(json_get_str(json_get(w, "metadata"), "name"))),
             "%s: is scaled to 0: %s", name, without);
    if (ready < wanted)
        find(d,
             arena_printf(d->arena,
                          "kubectl -n %s describe pod -l " LABEL "=%s; its log says what /readyz "
                          "waits for",
                          str_or_empty(json_get_str(json_get(w, "metadata"), "namespace")), name),
             "%s: %lld of %lld replicas are Ready%s%s", name, (long long)ready, (long long)wanted,
             ready == 0 ? ": " : "", ready == 0 ? without : "");
}

static int64_t offered(const struct view_node *n, const char *resource)
{
    return resources_get(&n->node->allocatable, resource, NULL);
}

/* The resource that advertises the cards in this mode. */
static const char *mode_resource(enum gpu_mode mode)
{
    return gpu_mode_is_shared(mode)    ? NAME_RES_GPU_MEM
           : mode == GPU_MODE_TOPOLOGY ? NAME_RES_GPU
                                       : NAME_RES_NVIDIA_GPU;
}

/* Checks the resource, which the kubelet withdraws without the plugin; an inventory may be
 * stale. */
static bool is_served(const struct doctor *d)
{
    for (size_t i = 0; i < d->view->nodes_len; i++) {
        const struct view_node *n = &d->view->nodes[i];
        if (n->known && !n->guessed && offered(n, mode_resource(n->inventory.mode)) > 0)
            return true;
    }
    return false;
}

static void check_plugin(struct doctor *d)
{
    json *w = workload(d, "daemonsets", "cosched-device-plugin");
    json *status = json_get(w, "status");
    int64_t ready = 0, wanted = 0;
    if (!is_asked(d, "daemonsets") || is_outside(d, is_served(d)))
        return;
    if (w == NULL) {
        find(d, "install the chart (docs/install.md)",
             "cosched-device-plugin: is not installed: no node offers cards");
        return;
    }
    (void)json_get_int(status, "numberReady", &ready);
    (void)json_get_int(status, "desiredNumberScheduled", &wanted);
    if (ready < wanted)
        find(d, "kubectl get pods -A -o wide -l " LABEL "=cosched-device-plugin shows on which",
             "cosched-device-plugin: is Ready on %lld of %lld nodes", (long long)ready,
             (long long)wanted);
}

static void check_versions(struct doctor *d)
{
    json *server = json_get(d->facts, "version");
    int64_t minor = 0;
    struct error bad = ERROR_INIT;
    const char *text = json_get_str(server, "minor");
    size_t digits = text != NULL ? strspn(text, "0123456789") : 0; /* "30+" */
    if (digits > 0 && num_parse(text, digits, &minor, &bad) == 0 && minor < 30)
        find(d, "upgrade Kubernetes; until then watch who may write pods",
             "Kubernetes %s.%s: admission policies need 1.30, so result keys are not protected",
             str_or_empty(json_get_str(server, "major")), text);
    const char *scheduler = image_of(workload(d, "deployments", "cosched-scheduler"));
    const char *webhook = image_of(workload(d, "deployments", "cosched-webhook"));
    const char *plugin = image_of(workload(d, "daemonsets", "cosched-device-plugin"));
    if (scheduler != NULL && webhook != NULL && plugin != NULL &&
        (!str_eq(tag_of(scheduler), tag_of(webhook)) || !str_eq(tag_of(scheduler), tag_of(plugin))))
        find(d, "finish the upgrade: neighbouring versions work together, others are not tried",
             "versions differ: scheduler %s, webhook %s, device plugin %s", tag_of(scheduler),
             tag_of(webhook), tag_of(plugin));
}

static bool lists(const struct doctor *d, const char *key, const char *name)
{
    for (struct json_iter it = json_iter(json_get(d->facts, key)); json_next(&it);)
        if (str_eq(json_str(it.value), name))
            return true;
    return false;
}

static void check_crds(struct doctor *d)
{
    static const char advice[] = "kubectl apply -k deploy/crds";
    if (!is_asked(d, "crds"))
        return;
    if (!lists(d, "crds", DOCTOR_CRD_SIGS) && !lists(d, "crds", DOCTOR_CRD_X))
        find(d, advice,
             "PodGroup: neither custom resource is there, so gangs are made by labels only");
    if (!lists(d, "crds", DOCTOR_CRD_POLICIES))
        find(d, advice,
             "ResourcePolicy: the custom resource is not there, so pods know no order of nodes");
}

static void check_scheduler_name(struct doctor *d)
{
    static const char option[] = "--scheduler-name=";
    const char *served = doctor_option(workload(d, "deployments", "cosched-scheduler"), option);
    const char *injected = doctor_option(workload(d, "deployments", "cosched-webhook"), option);
    if (served != NULL && injected != NULL && !str_eq(served, injected))
        find(d, "give both the same --scheduler-name (chart: schedulerName)",
             "the webhook gives pods schedulerName %s, the scheduler places those with %s: no "
             "scheduler places the pods that the webhook marks",
             injected, served);
}

static void check_lease(struct doctor *d)
{
    json *lease = json_get(d->facts, "lease");
    int64_t silent = 0, duration = 0;
    if (!is_asked(d, "lease") || workload(d, "deployments", "cosched-scheduler") == NULL)
        return;
    const char *holder = json_get_str(lease, "holder");
    if (holder == NULL || holder[0] == '\0') {
        find(d, "the schedulers' logs say why none leads",
             "cosched-scheduler: no replica holds the Lease: no pod is placed");
        return;
    }
    (void)json_get_int(lease, "silentSeconds", &silent);
    (void)json_get_int(lease, "durationSeconds", &duration);
    if (silent > duration)
        find(d, "the schedulers' logs say why none leads; are their clocks right?",
             "cosched-scheduler: %s holds the Lease and was last heard of %lld s ago", holder,
             (long long)silent);
}

/* Reports a lost role as one finding: the facts group rights by account. */
static void check_rights(struct doctor *d)
{
    enum { NAMED = 4 };
    AUTO_STRBUF lacks = {0};
    const char *account = NULL;
    size_t lacking = 0;
    struct json_iter it = json_iter(json_get(d->facts, "rights"));
    for (bool more = true; more;) {
        more = json_next(&it);
        const char *next = more ? json_get_str(it.value, "account") : NULL;
        if (lacking > 0 && !str_eq(next, account)) {
            if (lacking > NAMED)
                strbuf_addf(&lacks, " and %zu more", lacking - NAMED);
            find(d, "install the chart's roles again (helm upgrade; chart: rbac.create)",
                 "%s may not %s", str_or_empty(account), strbuf_str(&lacks));
            strbuf_reset(&lacks);
            lacking = 0;
        }
        account = next;
        if (more && !json_get_bool(it.value, "allowed", true) && lacking++ < NAMED)
            strbuf_addf(&lacks, "%s%s %s", lacking > 1 ? ", " : "",
                        str_or_empty(json_get_str(it.value, "verb")),
                        str_or_empty(json_get_str(it.value, "resource")));
    }
}

/* ---- admission ---- */

static bool check_bundles(struct doctor *d, const char *key)
{
    const char *ca = json_get_str(json_get(d->facts, "certificate"), "ca");
    for (struct json_iter it = json_iter(json_get(json_get(d->facts, key), "webhooks"));
         json_next(&it);) {
        const char *bundle = json_get_str(json_get(it.value, "clientConfig"), "caBundle");
        if (bundle != NULL && bundle[0] != '\0' && (ca == NULL || str_eq(ca, bundle)))
            continue;
        if (bundle != NULL && bundle[0] != '\0') {
            find(d,
                 "the webhook writes the CA of its Secret there (--webhook-config, "
                 "--validating-config); its log says why it does not",
                 "%s webhook %s: caBundle is not the CA that signed the webhook's certificate", key,
                 str_or_empty(json_get_str(it.value, "name")));
            return false;
        }
        find(d,
             "the webhook writes it (--webhook-config, --validating-config); its log says why "
             "it does not",
             "%s webhook %s: no caBundle: the API server cannot verify who answers", key,
             str_or_empty(json_get_str(it.value, "name")));
        return false;
    }
    return true;
}

/* The webhook renews it at two thirds of its lifetime. */
static bool check_certificate(struct doctor *d)
{
    static const char advice[] = "the webhook's log says why it is not renewed; to begin anew, "
                                 "delete its Secret (docs/security.md)";
    json *c = json_get(d->facts, "certificate");
    int64_t left = 0, life = 0;
    if (!json_get_int(c, "leftSeconds", &left) || !json_get_int(c, "lifeSeconds", &life))
        return true;
    if (left <= 0)
        find(d, advice, "cosched-webhook: its certificate ended %lld s ago", (long long)-left);
    else if (left < life / 4)
        find(d, advice, "cosched-webhook: its certificate ends in %lld s and was not renewed",
             (long long)left);
    return left > 0;
}

static void check_webhook(struct doctor *d)
{
    json *probe = json_get(d->facts, "probe");
    bool outside = is_outside(d, is_answered(d));
    if (!is_asked(d, "mutating") ||
        (workload(d, "deployments", "cosched-webhook") == NULL && !outside))
        return;
    if (json_get(d->facts, "mutating") == NULL || json_is_null(json_get(d->facts, "mutating"))) {
        find(d, "install the chart again",
             "MutatingWebhookConfiguration cosched-webhook: is not there: no pod is checked");
        return;
    }
    bool trusted = check_bundles(d, "mutating");
    trusted = check_bundles(d, "validating") && trusted;
    trusted = check_certificate(d) && trusted;
    const char *error = json_get_str(probe, "error");
    int64_t ready = 0;
    (void)json_get_int(json_get(workload(d, "deployments", "cosched-webhook"), "status"),
                       "readyReplicas", &ready);
    /* Without replicas or a CA there is no answer either; that is already reported. */
    if (ready > 0 && trusted && json_is_object(probe) && !json_get_bool(probe, "answered", false))
        find(d,
             "can the API server reach the webhook's Service or URL, and does its certificate "
             "name it? The API server's log says what failed",
             "cosched-webhook: does not answer the API server%s%s",
             str_or_empty(error)[0] != '\0' ? ": " : "", str_or_empty(error));
}

static void check_policies(struct doctor *d)
{
    static const char *const grants =
        "anyone who may write pods or nodes can grant themselves a GPU";
    const struct {
        const char *name, *otherwise;
    } rows[] = {
        {"cosched-result-keys", grants},
        {"cosched-result-keys-in-bindings", grants},
        {"cosched-gpu-pods", "while the webhook is down, GPU pods can hide their limits"},
        {"cosched-plugin-nodes", grants},
        {"cosched-plugin-pods", grants},
        {"cosched-plugin-events", "a stolen plugin token can write any Event"},
        {"cosched-mirror-pods", "a forged static pod can name a cgroup to the CPU pinner"},
        {"cosched-webhook-secret", "a stolen webhook token can create tokens of other accounts"},
        {"cosched-webhook-configurations",
         "a stolen webhook token can have every object of the cluster sent elsewhere"}};
    static const char *const keys[] = {"policies", "policyBindings"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t k = 0; k < 2; k++) {
            if (!is_asked(d, keys[k]) || lists(d, keys[k], rows[i].name))
                continue;
            find(
                d,
                "kubectl apply -f deploy/manifests/result-keys.yaml -f "
                "deploy/manifests/gpu-pods.yaml -f deploy/manifests/plugin-policies.yaml (chart: policies.enabled)",
                "admission policy %s: %s: %s", rows[i].name,
                k == 0 ? "is not there" : "is not bound", rows[i].otherwise);
            break;
        }
}

/* ---- nodes ---- */

static void check_mode(struct doctor *d, const struct view_node *n)
{
    const char *label = labels_get(&n->node->labels, NAME_LABEL_GPU_MODE), *name = n->node->name;
    enum gpu_mode wanted;
    if (n->problem != NULL)
        find(d, "does a device plugin of another version run there?", "node %s: %s", name,
             n->problem);
    if (label == NULL || n->problem != NULL)
        return;
    if (!gpu_mode_parse(label, &wanted))
        find(d,
             arena_printf(d->arena,
                          "kubectl label --overwrite node %s " NAME_LABEL_GPU_MODE "=MODE", name),
             "node %s: label " NAME_LABEL_GPU_MODE "=%s: there is no such mode (%s)", name, label,
             gpu_mode_names());
    else if (!n->known)
        find(d, "does the device plugin run on it? Its nodeSelector and the pod's log say why not",
             "node %s: label " NAME_LABEL_GPU_MODE "=%s, but no device plugin has published its "
             "cards",
             name, label);
    else if (!n->guessed && wanted != n->inventory.mode && !n->inventory.switching)
        find(d, "the device plugin's log, and Events of the node, say why",
             "node %s: label " NAME_LABEL_GPU_MODE "=%s, but the node is in mode %s", name, label,
             gpu_mode_name(n->inventory.mode));
    else if (n->inventory.switching)
        find(d, "it is finished when the last pod that holds a card there is gone",
             "node %s: the switch from mode %s to %s waits for running pods", name,
             gpu_mode_name(n->inventory.mode), gpu_mode_name(n->inventory.switching_to));
}

/* Checks what accompanies memory in the shared modes: percents in core_mem, the number of cards
 * (including unhealthy ones), and the labels that describe the cards. */
static void check_patched(struct doctor *d, const struct view_node *n, bool offers, int64_t well)
{
    static const char advice[] =
        "the device plugin there writes it again within seconds; its log "
        "says why it does not (kubectl inspect cgpu doctor shows its rights)";
    const char *name = n->node->name;
    int64_t count = offered(n, NAME_RES_GPU_COUNT), core = offered(n, NAME_RES_GPU_CORE);
    if (offers && gpu_mode_is_shared(n->inventory.mode) && count != (int64_t)n->cards_len)
        find(d, advice, "node %s: says " NAME_RES_GPU_COUNT " %lld, but has %zu cards", name,
             (long long)count, n->cards_len);
    if (offers && n->inventory.mode == GPU_MODE_CORE_MEM && core != well * 100)
        find(d, "is the kubelet's registration of the plugin lost? Restart the device plugin there",
             "node %s: offers " NAME_RES_GPU_CORE " %lld, but %lld cards that are well have %lld",
             name, (long long)core, (long long)well, (long long)well * 100);
    const char *label = labels_get(&n->node->labels, NAME_LABEL_ACCEL_COUNT);
    if (label != NULL && n->cards_len > 0 &&
        !str_eq(label, arena_printf(d->arena, "%zu", n->cards_len)))
        find(d, advice, "node %s: label " NAME_LABEL_ACCEL_COUNT "=%s, but has %zu cards", name,
             label, n->cards_len);
}

/* Compares what the kubelet advertises with what the plugin found. Unhealthy cards are not
 * advertised; during a mode switch only what pods hold is. */
static void check_offer(struct doctor *d, const struct view_node *n)
{
    int64_t gib = 0, well = 0;
    if (n->guessed || n->inventory.switching)
        return;
    for (size_t i = 0; i < n->cards_len; i++) {
        const struct gpu_card *c = n->cards[i].card;
        if (c->health == GPU_HEALTH_OK) {
            gib = num_add_sat(gib, n->cards[i].total_gib);
            well++;
        } else {
            find(d, "docs/device-plugin-cards.md; it comes back by itself when it proves well",
                 "node %s: GPU%d (%s) is %s", n->node->name, (int)c->index, c->uuid,
                 gpu_card_trouble(c, d->arena));
        }
    }
    bool shared = gpu_mode_is_shared(n->inventory.mode);
    const char *resource = mode_resource(n->inventory.mode);
    int64_t found = shared ? gib : well, said = offered(n, resource);
    if (said != found && (n->inventory.mode != GPU_MODE_DEFAULT || said < found))
        find(d,
             said == 0 ? "an Event of the node says why: without an engine for isolation modes "
                         "cgpu, core_mem and mps offer nothing"
                       : "is the kubelet's registration of the plugin lost, or does another "
                         "plugin serve the resource? Restart the device plugin there",
             "node %s: offers %s %lld, but its cards have %lld", n->node->name, resource,
             (long long)said, (long long)found);
    check_patched(d, n, said > 0, well);
    if (n->inventory.mode != GPU_MODE_DEFAULT && offered(n, NAME_RES_NVIDIA_GPU) > 0)
        find(d, "keep NVIDIA's plugin off nodes in other modes than default (docs/migrating.md)",
             "node %s: another plugin offers " NAME_RES_NVIDIA_GPU " beside mode %s: cards can be "
             "promised twice",
             n->node->name, gpu_mode_name(n->inventory.mode));
}

static void check_cards(struct doctor *d, const struct view_node *n)
{
    for (size_t i = 0; i < n->cards_len; i++) {
        const struct view_card *c = &n->cards[i];
        bool whole = c->holders > 1 || (c->holders > 0 && c->used_gib > 0);
        if (c->used_gib > c->total_gib || whole)
            find(d, "kubectl inspect cgpu -d shows whose; delete one of them",
                 "node %s: GPU%d is promised beyond its size: %lld of %lld GiB, %lld pods with the "
                 "whole card",
                 n->node->name, (int)c->card->index, (long long)c->used_gib,
                 (long long)c->total_gib, (long long)c->holders);
    }
}

static void check_kubelet(struct doctor *d, const struct view_node *n)
{
    json *kubelet = json_get(json_get(d->facts, "kubelets"), n->node->name);
    const char *policy = json_get_str(kubelet, "cpuManagerPolicy");
    if (policy != NULL && !str_eq(policy, "none") && policy[0] != '\0' &&
        labels_get(&n->node->annotations, NAME_ANN_CPU_TOPOLOGY) != NULL)
        find(d, "set cpuManagerPolicy: none and restart the kubelet",
             "node %s: the kubelet's cpuManagerPolicy is %s: no container is pinned there",
             n->node->name, policy);
}

/* ---- pods ---- */

static void check_pod(struct doctor *d, const struct view_node *n, const struct view_pod *vp)
{
    const struct pod *p = vp->pod;
    int64_t gib = vp->request.total[GPU_REQUEST_MEM];
    struct grant c = {0};
    struct error err = ERROR_INIT;
    const char *given = labels_get(&p->annotations, NAME_ANN_ALLOCATION);
    const char *confirmed = labels_get(&p->annotations, NAME_ANN_GPU_CONFIRMED);
    if (grant_decode(p, d->arena, &c, &err) < 0 ||
        (!grant_is_empty(&c) && n->known && grant_check(&c, p, &n->inventory, &err) < 0))
        find(d,
             "it counts with its whole request until the device plugin corrects it; if it does "
             "not, delete the pod",
             "pod %s on node %s: its grant is not valid: %s", p->key, n->node->name, err.text);
    else if (grant_is_empty(&c) && n->known && gpu_mode_is_shared(n->inventory.mode) && gib > 0)
        find(d,
             "was it placed by another scheduler? Let the webhook inject ours; the device "
             "plugin writes the grant when the pod starts",
             "pod %s on node %s: asks for %lld GiB and has no grant (schedulerName %s)", p->key,
             n->node->name, (long long)gib, str_or_empty(p->scheduler));
    if (confirmed != NULL && confirmed[0] != '\0' && given != NULL && !str_eq(given, confirmed))
        find(d,
             "somebody edited the annotation; the kubelet's allocation counts, and the device "
             "plugin restores it",
             "pod %s on node %s: its annotation says %s, the device plugin confirmed %s", p->key,
             n->node->name, given, confirmed);
}

/* Grants on deleted nodes cannot be honoured, and Kubernetes deletes such pods only if its node
 * lifecycle controller runs. */
static void check_orphans(struct doctor *d)
{
    for (size_t i = 0; i < d->view->orphans_len; i++) {
        const struct pod *p = d->view->orphans[i];
        find(d, arena_printf(d->arena, "kubectl delete pod -n %s %s --force", p->ns, p->name),
             "pod %s: holds cards of node %s, which does not exist", p->key, p->node);
    }
}

void doctor_examine(struct doctor *d)
{
    check_versions(d);
    check_crds(d);
    check_deployment(d, "cosched-scheduler", "no pod is placed", is_led(d));
    check_lease(d);
    check_deployment(d, "cosched-webhook", "no pod is checked", is_answered(d));
    check_scheduler_name(d);
    check_plugin(d);
    check_rights(d);
    check_webhook(d);
    check_policies(d);
    for (size_t i = 0; i < d->view->nodes_len; i++) {
        const struct view_node *n = &d->view->nodes[i];
        check_mode(d, n);
        if (n->known) {
            check_offer(d, n);
            check_cards(d, n);
        }
        check_kubelet(d, n);
        for (size_t k = 0; k < n->pods_len; k++)
            check_pod(d, n, &n->pods[k]);
    }
    check_orphans(d);
}

void doctor_print(const struct doctor *d, struct strbuf *out)
{
    size_t pods = 0, cards = 0;
    for (size_t i = 0; i < d->view->nodes_len; i++) {
        pods += d->view->nodes[i].pods_len;
        cards += d->view->nodes[i].cards_len;
    }
    for (struct json_iter it = json_iter(json_get(d->facts, "unasked")); json_next(&it);)
        strbuf_addf(out, "not checked: %s\n", grid_clean(json_str(it.value), d->arena));
    for (size_t i = 0; i < d->findings.len; i++)
        strbuf_addf(out, "%s\n    to do: %s\n", grid_clean(d->findings.items[i].what, d->arena),
                    grid_clean(d->findings.items[i].advice, d->arena));
    strbuf_addf(out, "%s%zu %s; checked %zu nodes, %zu cards and %zu pods that hold some\n",
                d->findings.len > 0 ? "\n" : "", d->findings.len,
                d->findings.len == 1 ? "finding" : "findings", d->view->nodes_len, cards, pods);
}
