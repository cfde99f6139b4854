// SPDX-License-Identifier: Apache-2.0
/*
 * Rotation of our own certificates. Every replica runs the same passes over one Secret. Writes
 * carry the resourceVersion that was read, so one of two concurrent renewals wins
 * (cert_store_write) and the other replica reads the result:
 *             cert_store_read
 *   (no Secret, no usable CA) ── CERT_ROTATOR_ALL ──► [CA1 | leaf of CA1]
 *                                                    │        ▲
 *                       leaf at 2/3 of its life:     │        │
 *                       CERT_ROTATOR_LEAF,           ├────────┘
 *                       the CA stays                 │
 *                       CA1 at 2/3 of its life:      │
 *                       CERT_ROTATOR_CA              ▼
 *                                        [CA2 CA1 | leaf of CA1]    caBundle = CA2 CA1
 *                                                    │              (cert_store_publish)
 *                       CA2 published for settle_ms: │
 *                       CERT_ROTATOR_LEAF            ▼
 *                                        [CA2 CA1 | leaf of CA2]    CA1 leaves at the next
 *                                                                   CERT_ROTATOR_CA after its end
 *
 * Rotation never fails a request: until an API server has the new bundle it gets a leaf of the old
 * CA, and by the time replicas serve the new leaf it trusts both CAs. A failed pass does not change
 * what is served. The same holds if the Secret is deleted or corrupted: the first replica to see it
 * still has the leaf and the bundle (recover) and continues as if only the CA key were lost, with
 * CERT_ROTATOR_CA. A replica that has just started keeps the published CAs in the bundle (adopt),
 * so the others stay trusted; they serve its leaf only once its CA has settled (may_serve).
 *
 * A pass without changes parses no certificate, which keeps 2 MB of OpenSSL code out of memory
 * (cert_rotator.quiet).
 *
 * A replica may stall for minutes between calls. Its Secret write then fails by resourceVersion.
 * Its caBundle write must not undo a newer one, so cert_store_publish reads the Secret again after
 * it has read the configuration, whose resourceVersion the write carries.
 */
#include "webhook/cert_rotator.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/metrics.h"
#include "lib/base/num.h"

enum { CONFLICTS_MAX = 5, RETRY_MIN_MS = 250, NAMES_PER_SERVICE = 4 };

static struct metric expiry = {.kind = METRIC_GAUGE,
                               .name = "cosched_webhook_certificate_expiry_timestamp_seconds",
                               .help = "When the certificate that is served ends."};
static struct metric renewals = {.kind = METRIC_COUNTER,
                                 .name = "cosched_webhook_certificate_renewals_total",
                                 .help = "Certificates made by this replica: ca, leaf.",
                                 .label = "what"};

struct cert_rotator {
    struct cert_rotator_options options;
    struct cert_rotator_policy policy;
    struct cert_rotator_callbacks cb;
    struct cert_store store;
    struct arena arena; /* owns policy.names */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopping; /* guarded by lock */

    /* Only the rotator's thread uses the fields below. */
    struct certs_pair served; /* the installed pair; NULL members: none */
    int64_t begins_s, ends_s; /* validity of served */
    char *bundle;             /* as last read from the source */
    char *trusted;            /* the last bundle that has settled; NULL: none */
    int64_t bundle_since_ms;  /* when bundle was published; -1: not yet */
    bool published;
    int64_t next_due_s; /* 0: unknown */
    /* This version of the Secret needs no renewal in [from_s, until_s) unless the CA settles. A
     * clock below from_s was wrong at creation: other clients do not accept the certificates
     * yet. */
    struct {
        char *version;
        int64_t from_s, until_s;
        bool settled;
    } quiet;
};

/* ---- what to renew ---- */

static enum cert_rotator_need need_of(enum cert_rotator_need need, const char *reason,
                                      const char **why)
{
    *why = reason;
    return need;
}

/* Checks against the newest CA alone, to reject a leaf of an older one. */
static bool is_of_newest(const struct cert_store_content *c, int64_t now_s)
{
    AUTO_STRBUF first = {0};
    return certs_first(c->ca_bundle, &first, NULL) == 0 &&
           certs_check(strbuf_str(&first), &c->leaf, NULL, 0, now_s, NULL) == 0;
}

static bool is_usable_ca(const struct cert_store_content *c, int64_t now_s)
{
    struct certs_pair ca = {.cert_pem = c->ca_bundle, .key_pem = c->ca_key};
    return c->ca_bundle && c->ca_key && certs_check_ca(&ca, now_s, NULL) == 0;
}

/* Whether clients that trust the bundle accept the leaf under every name. */
static bool is_accepted(const struct cert_rotator_policy *p, const struct cert_store_content *c,
                        int64_t now_s)
{
    return c->ca_bundle && c->leaf.cert_pem && c->leaf.key_pem &&
           certs_check(c->ca_bundle, &c->leaf, p->names, p->names_len, now_s, NULL) == 0;
}

static bool is_due(const char *cert_pem, int64_t now_s)
{
    struct certs_life life;
    return certs_life(cert_pem, &life, NULL) < 0 || now_s >= life.renew_s;
}

enum cert_rotator_need cert_rotator_judge(const struct cert_rotator_policy *p,
                                          const struct cert_store_content *c, int64_t now_s,
                                          bool settled, const char **why)
{
    bool has_leaf = is_accepted(p, c, now_s);
    if (!c->ca_bundle || !c->ca_key)
        return need_of(has_leaf ? CERT_ROTATOR_CA : CERT_ROTATOR_ALL, "there is no CA yet", why);
    if (!is_usable_ca(c, now_s))
        return need_of(has_leaf ? CERT_ROTATOR_CA : CERT_ROTATOR_ALL, "the CA cannot be used", why);
    if (!has_leaf)
        return need_of(CERT_ROTATOR_LEAF, "the certificate cannot be used", why);
    bool of_newest = is_of_newest(c, now_s);
    if (settled && !of_newest)
        return need_of(CERT_ROTATOR_LEAF, "the certificate is of an older CA", why);
    /* The leaf is renewed before the CA so that it outlasts the time the next CA takes to settle.
     * Clients that trust the old leaf trust the new one. */
    if (of_newest && is_due(c->leaf.cert_pem, now_s))
        return need_of(CERT_ROTATOR_LEAF, "the certificate is near its end", why);
    if (is_due(c->ca_bundle, now_s))
        return need_of(CERT_ROTATOR_CA, "the CA is near its end", why);
    return need_of(CERT_ROTATOR_NOTHING, "", why);
}

static int renew_ca(const struct cert_rotator_policy *p, struct cert_store_content *c,
                    int64_t now_s, struct error *err)
{
    struct certs_pair ca = {.cert_pem = NULL};
    struct strbuf bundle = {0};
    if (certs_make_ca("cosched-webhook-ca", now_s, p->ca_life_s, &ca, err) < 0)
        return -1;
    /* An unreadable bundle is dropped: no client can have trusted it. */
    if (certs_bundle(ca.cert_pem, c->ca_bundle, now_s, &bundle, NULL) < 0) {
        strbuf_reset(&bundle);
        strbuf_adds(&bundle, ca.cert_pem);
    }
    free(c->ca_bundle);
    certs_wipe(c->ca_key);
    c->ca_bundle = strbuf_take(&bundle);
    c->ca_key = take_ptr(&ca.key_pem);
    certs_pair_deinit(&ca);
    return 0;
}

static int renew_leaf(const struct cert_rotator_policy *p, struct cert_store_content *c,
                      int64_t now_s, struct error *err)
{
    struct certs_pair ca = {.cert_pem = c->ca_bundle, .key_pem = c->ca_key};
    struct certs_pair leaf = {.cert_pem = NULL};
    if (certs_make_leaf(&ca, p->names, p->names_len, now_s, p->leaf_life_s, &leaf, err) < 0)
        return -1;
    certs_pair_deinit(&c->leaf);
    c->leaf = leaf;
    return 0;
}

int cert_rotator_renew(const struct cert_rotator_policy *p, enum cert_rotator_need need,
                       struct cert_store_content *c, int64_t now_s, struct error *err)
{
    if ((need == CERT_ROTATOR_ALL || need == CERT_ROTATOR_CA) && renew_ca(p, c, now_s, err) < 0)
        return -1;
    if ((need == CERT_ROTATOR_ALL || need == CERT_ROTATOR_LEAF) && renew_leaf(p, c, now_s, err) < 0)
        return -1;
    return 0;
}

/* ---- one pass ---- */

static int64_t now_seconds(const struct cert_rotator *k)
{
    return k->cb.now_s ? k->cb.now_s(k->cb.arg) : clock_wall_ns() / 1000000000;
}

static bool is_in_life(const struct cert_rotator *k)
{
    int64_t now_s = now_seconds(k);
    return k->served.cert_pem && now_s >= k->begins_s && now_s < k->ends_s;
}

static bool is_settled(const struct cert_rotator *k)
{
    return k->bundle_since_ms >= 0 && clock_mono_ms() - k->bundle_since_ms >= k->options.settle_ms;
}

static bool publishes(const struct cert_rotator *k)
{
    return k->store.webhook_config || k->store.validating_config;
}

static void note_bundle(struct cert_rotator *k, const char *bundle)
{
    if (str_eq(k->bundle, bundle))
        return;
    free(k->bundle);
    k->bundle = mem_strdup(bundle);
    /* Without a configuration to write, an operator copies the bundle and needs the same time. */
    k->bundle_since_ms = publishes(k) ? -1 : clock_mono_ms();
}

/* If the Secret has no usable CA and we serve a trusted leaf, restores all but the CA key. */
static void recover(const struct cert_rotator *k, struct cert_store_content *c, int64_t now_s)
{
    struct cert_store_content known = {.ca_bundle = k->bundle, .leaf = k->served};
    if (is_usable_ca(c, now_s) || !is_accepted(&k->policy, &known, now_s))
        return;
    free(c->ca_bundle);
    certs_wipe(c->ca_key);
    certs_pair_deinit(&c->leaf);
    c->ca_bundle = mem_strdup(k->bundle);
    c->ca_key = NULL;
    c->leaf = (struct certs_pair){mem_strdup(k->served.cert_pem), mem_strdup(k->served.key_pem)};
}

/* The Secret has no CA, but other replicas may serve a certificate of a published one. */
static int adopt(struct cert_rotator *k, struct cert_store_content *c, struct error *err)
{
    free(c->ca_bundle);
    return cert_store_published(&k->store, &c->ca_bundle, err);
}

static bool is_quiet(const struct cert_rotator *k, const struct cert_store_content *c,
                     int64_t now_s)
{
    return c->resource_version && str_eq(k->quiet.version, c->resource_version) &&
           now_s >= k->quiet.from_s && now_s < k->quiet.until_s &&
           k->quiet.settled == is_settled(k);
}

static void note_quiet(struct cert_rotator *k, const struct cert_store_content *c)
{
    struct certs_life leaf, ca;
    free(k->quiet.version);
    k->quiet.version = NULL;
    if (certs_life(c->leaf.cert_pem, &leaf, NULL) < 0 || certs_life(c->ca_bundle, &ca, NULL) < 0)
        return;
    k->quiet.version = mem_strdup(c->resource_version);
    k->quiet.from_s = num_max(leaf.not_before_s, ca.not_before_s);
    k->quiet.until_s = num_min(leaf.renew_s, ca.renew_s);
    k->quiet.settled = is_settled(k);
}

/* Reads the Secret and renews it if needed. Other replicas may write concurrently. */
static int refresh(struct cert_rotator *k, struct cert_store_content *c, struct error *err)
{
    for (int i = 0; i < CONFLICTS_MAX; i++) {
        const char *why = "";
        cert_store_content_deinit(c);
        if (cert_store_read(&k->store, c, err) < 0)
            return -1;
        int64_t now_s = now_seconds(k);
        if (is_quiet(k, c, now_s))
            return 0;
        recover(k, c, now_s);
        note_bundle(k, c->ca_bundle);
        enum cert_rotator_need need = cert_rotator_judge(&k->policy, c, now_s, is_settled(k), &why);
        if (need == CERT_ROTATOR_NOTHING) {
            note_quiet(k, c);
            return 0;
        }
        if ((need == CERT_ROTATOR_ALL && adopt(k, c, err) < 0) ||
            cert_rotator_renew(&k->policy, need, c, now_s, err) < 0)
            return -1;
        if (cert_store_write(&k->store, c, err) == 0) {
            if (need != CERT_ROTATOR_LEAF)
                metrics_inc(&renewals, "ca");
            if (need != CERT_ROTATOR_CA)
                metrics_inc(&renewals, "leaf");
            log_info("certificates renewed", kv("why", why), kv("secret", k->store.secret),
                     kv("namespace", k->store.ns));
            note_bundle(k, c->ca_bundle);
            return 0;
        }
        if (err->code != ERROR_CONFLICT)
            return -1;
        error_clear(err);
    }
    return error_set(err, ERROR_CONFLICT, "secret %s/%s: changed under our hands %d times",
                     k->store.ns, k->store.secret, CONFLICTS_MAX);
}

static int install(struct cert_rotator *k, const struct certs_pair *leaf, struct error *err)
{
    struct certs_life life;
    if (!leaf->cert_pem || !leaf->key_pem)
        return error_set(err, ERROR_INTERNAL, "install certificate: there is none");
    if (str_eq(k->served.cert_pem, leaf->cert_pem))
        return 0;
    if (certs_life(leaf->cert_pem, &life, err) < 0)
        return -1;
    if (k->cb.install(k->cb.arg, leaf->cert_pem, leaf->key_pem, err) < 0)
        return error_wrap(err, "install certificate");
    certs_pair_deinit(&k->served);
    k->served = (struct certs_pair){mem_strdup(leaf->cert_pem), mem_strdup(leaf->key_pem)};
    k->begins_s = life.not_before_s;
    k->ends_s = life.not_after_s;
    k->next_due_s = k->options.cert_file ? 0 : life.renew_s; /* another program renews files */
    metrics_set(&expiry, NULL, life.not_after_s);
    log_info("certificate installed", kv("not_after_s", life.not_after_s));
    return 0;
}

static int publish(struct cert_rotator *k, const char *bundle, struct error *err)
{
    bool changed = false;
    if (!publishes(k)) {
        k->published = true;
        return 0;
    }
    if (cert_store_publish(&k->store, bundle, k->options.cert_file == NULL, &changed, err) < 0) {
        k->bundle_since_ms =
            changed ? -1 : k->bundle_since_ms; /* restart settling if one changed */
        return -1;
    }
    if (changed)
        log_info("caBundle written", kv("webhook_config", str_or_empty(k->store.webhook_config)),
                 kv("validating_config", str_or_empty(k->store.validating_config)));
    if (changed || k->bundle_since_ms < 0)
        k->bundle_since_ms = clock_mono_ms();
    k->published = true;
    return 0;
}

/* A new leaf waits while the API server may not know its CA and still accepts the served one. */
static bool may_serve(const struct cert_rotator *k, const struct cert_store_content *c,
                      int64_t now_s)
{
    struct cert_store_content before = {.ca_bundle = c->ca_bundle, .leaf = k->served};
    struct cert_store_content after = {.ca_bundle = k->trusted, .leaf = c->leaf};
    /* If both are of the newest CA, or both of older ones, clients trust both or neither. */
    return str_eq(k->served.cert_pem, c->leaf.cert_pem) || is_settled(k) ||
           !is_accepted(&k->policy, &before, now_s) ||
           is_of_newest(&before, now_s) == is_of_newest(c, now_s) ||
           is_accepted(&k->policy, &after, now_s);
}

/* A replica that had not seen our leaf restored a lost Secret (recover). Our leaf lasts longer, so
 * we keep it until the new CA has settled. */
static bool is_step_back(const struct cert_rotator *k, const struct cert_store_content *c,
                         int64_t now_s)
{
    struct cert_store_content ours = {.ca_bundle = c->ca_bundle, .leaf = k->served};
    struct certs_life life;
    return k->served.cert_pem && !str_eq(k->served.cert_pem, c->leaf.cert_pem) &&
           certs_life(c->leaf.cert_pem, &life, NULL) == 0 && life.not_after_s < k->ends_s &&
           !is_of_newest(c, now_s) && is_accepted(&k->policy, &ours, now_s);
}

static void note_trusted(struct cert_rotator *k)
{
    if (!is_settled(k) || str_eq(k->trusted, k->bundle))
        return;
    free(k->trusted);
    k->trusted = mem_strdup(k->bundle);
}

static int pass_secret(struct cert_rotator *k, struct error *err)
{
    struct cert_store_content c = {.resource_version = NULL};
    int rc = refresh(k, &c, err);
    int64_t now_s = now_seconds(k);
    if (rc == 0 && may_serve(k, &c, now_s) && !is_step_back(k, &c, now_s))
        rc = install(k, &c.leaf, err);
    if (rc == 0)
        rc = publish(k, c.ca_bundle, err);
    if (rc == 0)
        note_trusted(k);
    cert_store_content_deinit(&c);
    return rc;
}

static int read_file(const char *path, char **out, struct error *err)
{
    struct strbuf text = {0};
    if (file_read(path, CERTS_PEM_MAX, &text, err) < 0) {
        certs_wipe_buf(&text);
        return -1;
    }
    *out = strbuf_take(&text);
    return 0;
}

/* Other programs write the files one by one; until they match, the installed pair stays. */
static int pass_files(struct cert_rotator *k, struct error *err)
{
    const struct cert_rotator_options *o = &k->options;
    struct certs_pair leaf = {.cert_pem = NULL};
    char *bundle = NULL;
    int rc = read_file(o->cert_file, &leaf.cert_pem, err);
    if (rc == 0)
        rc = read_file(o->key_file, &leaf.key_pem, err);
    if (rc == 0 && o->ca_file)
        rc = read_file(o->ca_file, &bundle, err);
    bool same = rc == 0 && str_eq(leaf.cert_pem, k->served.cert_pem) &&
                str_eq(leaf.key_pem, k->served.key_pem) && str_eq(bundle, k->bundle) &&
                is_in_life(k);
    if (rc == 0 && !same && certs_check(bundle, &leaf, NULL, 0, now_seconds(k), err) < 0)
        rc = error_wrap(err, "%s, %s", o->cert_file, o->key_file);
    if (rc == 0)
        rc = install(k, &leaf, err);
    if (rc == 0) {
        note_bundle(k, bundle);
        rc = publish(k, bundle, err);
    }
    certs_pair_deinit(&leaf);
    free(bundle);
    return rc;
}

/* On a conflict with another replica or the installer, everything is checked again. */
static int pass(struct cert_rotator *k, struct error *err)
{
    for (int i = 1;; i++) {
        int rc = k->options.cert_file ? pass_files(k, err) : pass_secret(k, err);
        if (rc == 0 || err->code != ERROR_CONFLICT || i == CONFLICTS_MAX)
            return rc;
        error_clear(err);
    }
}

/* ---- thread ---- */

/* The check interval, or less when a renewal is due or the last pass failed. */
static int64_t pause_ms(const struct cert_rotator *k, int failures)
{
    int64_t ms = k->options.check_ms;
    if (failures > 0)
        ms = num_min(ms, (int64_t)RETRY_MIN_MS << (failures < 16 ? failures - 1 : 15));
    else if (k->next_due_s > now_seconds(k)) /* once due, the new CA is settling */
        ms = num_min(ms, (k->next_due_s - now_seconds(k)) * 1000);
    return num_max(ms, 50);
}

/* False if stopping. */
static bool sleep_ms(struct cert_rotator *k, int64_t ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(ms / 1000);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&k->lock);
    while (!k->stopping && pthread_cond_timedwait(&k->wake, &k->lock, &until) == 0)
        ;
    bool go_on = !k->stopping;
    pthread_mutex_unlock(&k->lock);
    return go_on;
}

static void *worker_main(void *arg)
{
    struct cert_rotator *k = arg;
    int failures = 0;
    char last[ERROR_TEXT_SIZE] = "";
    do {
        struct error err = ERROR_INIT;
        int rc = pass(k, &err);
        failures = rc == 0 ? 0 : failures + 1;
        /* Log each new reason once, not every attempt. */
        if (rc < 0 && err.code != ERROR_CANCELLED && !str_eq(last, err.text))
            log_warn("certificates not up to date", kv("error", err.text));
        (void)str_format(last, sizeof last, "%s", rc < 0 ? err.text : "");
        k->cb.state(k->cb.arg, is_in_life(k), k->published);
    } while (sleep_ms(k, pause_ms(k, failures)));
    return NULL;
}

/* ---- start and stop ---- */

/* The Service's DNS names, starting with the one the API server uses, then --san. */
static int collect_names(struct cert_rotator *k, const char *ns, struct error *err)
{
    const char **names = arena_new(&k->arena, const char *, CERTS_NAMES_MAX);
    const char *service = k->options.service;
    size_t n = 0;
    names[n++] = arena_printf(&k->arena, "%s.%s.svc", service, ns);
    names[n++] = arena_printf(&k->arena, "%s.%s.svc.cluster.local", service, ns);
    names[n++] = arena_printf(&k->arena, "%s.%s", service, ns);
    names[n++] = arena_strdup(&k->arena, service);
    for (const char *s = str_or_empty(k->options.san); *s != '\0';) {
        size_t len = strcspn(s, ",");
        if (n == CERTS_NAMES_MAX)
            return error_set(err, ERROR_INVALID, "--san: at most %d names",
                             CERTS_NAMES_MAX - NAMES_PER_SERVICE);
        if (len > 0)
            names[n++] = arena_strndup(&k->arena, s, len);
        s += len + (s[len] == ',');
    }
    k->policy = (struct cert_rotator_policy){.names = names,
                                             .names_len = n,
                                             .ca_life_s = k->options.ca_life_ms / 1000,
                                             .leaf_life_s = k->options.leaf_life_ms / 1000};
    return 0;
}

static int check_options(const struct cert_rotator_options *o, struct error *err)
{
    if (!o->cert_file != !o->key_file)
        return error_set(err, ERROR_INVALID, "--cert-file and --key-file go together");
    if (o->ca_file && !o->cert_file)
        return error_set(err, ERROR_INVALID, "--ca-file goes with --cert-file and --key-file");
    if (o->cert_file && (o->webhook_config || o->validating_config) && !o->ca_file)
        return error_set(
            err, ERROR_INVALID,
            "--webhook-config with --cert-file needs --ca-file: what should caBundle be?");
    if (!o->cert_file && o->leaf_life_ms > o->ca_life_ms)
        return error_set(err, ERROR_INVALID, "--cert-lifetime is longer than --ca-lifetime");
    if (!o->cert_file && o->settle_ms > o->leaf_life_ms / 3)
        return error_set(err, ERROR_INVALID,
                         "--ca-settle is longer than a third of --cert-lifetime: the certificate "
                         "could end while a new CA settles");
    return 0;
}

static void destroy(struct cert_rotator *k)
{
    pthread_mutex_destroy(&k->lock);
    pthread_cond_destroy(&k->wake);
    kube_client_free(k->store.client);
    arena_deinit(&k->arena);
    certs_pair_deinit(&k->served);
    free(k->bundle);
    free(k->trusted);
    free(k->quiet.version);
    free(k);
}

int cert_rotator_start(struct cert_rotator **out, const struct cert_rotator_options *o,
                       const char *ns, struct kube_client *client,
                       const struct cert_rotator_callbacks *cb, struct error *err)
{
    struct cert_rotator *k = mem_new(struct cert_rotator, 1);
    k->options = *o;
    k->cb = *cb;
    k->bundle_since_ms = -1;
    arena_init(&k->arena, 0);
    k->store = (struct cert_store){.client = client,
                                   .ns = arena_strdup(&k->arena, ns),
                                   .secret = o->secret,
                                   .webhook_config = o->webhook_config,
                                   .validating_config = o->validating_config};
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&k->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&k->lock, NULL);
    metrics_register(&expiry);
    metrics_register(&renewals);
    int rc = check_options(o, err) < 0 ? -1 : collect_names(k, ns, err);
    if (rc == 0 && (rc = pthread_create(&k->thread, NULL, worker_main, k)) != 0)
        rc = error_errno(err, rc, "thread");
    if (rc < 0) {
        destroy(k);
        return -1;
    }
    *out = k;
    return 0;
}

void cert_rotator_stop(struct cert_rotator *k)
{
    if (!k)
        return;
    pthread_mutex_lock(&k->lock);
    k->stopping = true;
    pthread_cond_signal(&k->wake);
    pthread_mutex_unlock(&k->lock);
    if (k->store.client)
        kube_client_cancel(k->store.client);
    pthread_join(k->thread, NULL);
    destroy(k);
}
