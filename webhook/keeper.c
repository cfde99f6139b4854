// SPDX-License-Identifier: Apache-2.0
/*
 * The life of our own certificates. Every replica runs the same passes over one Secret; a write carries the
 * resourceVersion that was read, so of two that want to renew one wins (vault_write) and the other reads the winner's:
 *
 *             vault_read
 *   (no Secret, no usable CA) ── KEEPER_ALL ──► [CA1 | leaf of CA1]
 *                                                    │        ▲
 *                       leaf at 2/3 of its life:     │        │
 *                       KEEPER_LEAF, the CA stays    └────────┘
 *                                                    │
 *                       CA1 at 2/3 of its life: KEEPER_CA
 *                                                    ▼
 *                                        [CA2 CA1 | leaf of CA1]       caBundle = CA2 CA1 (vault_publish)
 *                                                    │
 *                       CA2 published for settle_ms: KEEPER_LEAF
 *                                                    ▼
 *                                        [CA2 CA1 | leaf of CA2]       CA1 leaves at the next KEEPER_CA after its end
 *
 * No request fails on the way: an API server that has not seen the new bundle yet meets a leaf of the old CA, and a replica that
 * has not seen the new leaf yet meets an API server which trusts both. A pass that fails changes nothing that is served.
 *
 * Nor does one fail when the Secret is deleted or spoiled: the replica that sees it first still has the leaf and the bundle that
 * are in use (recover), and goes on as if only the CA's key were lost, by KEEPER_CA above. One that has just started does not; it keeps the CAs that are
 * published in the bundle (adopt), so that the others stay trusted; and they serve its leaf only when its CA has settled (may_serve).
 *
 * A pass in which nothing has changed reads no certificate: OpenSSL's code, two megabytes of it, would never leave our memory (struct keeper.quiet).
 *
 * A replica may be held up for minutes between two calls. Its write of the Secret then fails by the resourceVersion; its write of caBundle
 * must not undo a newer one, so vault_publish looks at the Secret once more after it has read the configuration, whose resourceVersion the write carries.
 */
#include "webhook/keeper.h"

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

struct keeper {
    struct keeper_options options;
    struct keeper_policy policy;
    struct keeper_callbacks cb;
    struct vault vault;
    struct arena arena; /* names */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopping; /* under lock */

    /* the thread's own */
    struct certs_pair served; /* what is installed; NULL: nothing */
    int64_t begins_s, ends_s; /* of it */
    char *bundle;             /* as last seen in the source */
    char *trusted;            /* the last one that has settled; NULL: none */
    int64_t bundle_since_ms;  /* when that bundle was published; -1: not yet */
    bool published;
    int64_t next_due_s; /* when the next renewal is due; 0: not known */
    /* The Secret of this version needs nothing in this time, unless the CA has settled meanwhile. Before it: the clock was wrong when they were made, and
     * has been set back; whoever has the right time does not accept them yet. */
    struct {
        char *version;
        int64_t from_s, until_s;
        bool settled;
    } quiet;
};

/* ---- the rule ------------------------------------------------------------------------------- */

static enum keeper_need need_of(enum keeper_need need, const char *reason, const char **why)
{
    *why = reason;
    return need;
}

/* The newest CA of the bundle alone, so that a leaf of an older one does not pass. */
static bool is_of_newest(const struct vault_content *c, int64_t now_s)
{
    AUTO_STRBUF first = {0};
    return certs_first(c->ca_bundle, &first, NULL) == 0 &&
           certs_check(strbuf_str(&first), &c->leaf, NULL, 0, now_s, NULL) == 0;
}

static bool is_usable_ca(const struct vault_content *c, int64_t now_s)
{
    struct certs_pair ca = {.cert_pem = c->ca_bundle, .key_pem = c->ca_key};
    return c->ca_bundle && c->ca_key && certs_check_ca(&ca, now_s, NULL) == 0;
}

/* By whoever trusts the bundle, under every name. */
static bool is_accepted(const struct keeper_policy *p, const struct vault_content *c, int64_t now_s)
{
    return c->ca_bundle && c->leaf.cert_pem && c->leaf.key_pem &&
           certs_check(c->ca_bundle, &c->leaf, p->names, p->names_len, now_s, NULL) == 0;
}

static bool is_due(const char *cert_pem, int64_t now_s)
{
    struct certs_life life;
    return certs_life(cert_pem, &life, NULL) < 0 || now_s >= life.renew_s;
}

enum keeper_need keeper_judge(const struct keeper_policy *p, const struct vault_content *c,
                              int64_t now_s, bool settled, const char **why)
{
    bool has_leaf = is_accepted(p, c, now_s);
    if (!c->ca_bundle || !c->ca_key)
        return need_of(has_leaf ? KEEPER_CA : KEEPER_ALL, "there is no CA yet", why);
    if (!is_usable_ca(c, now_s))
        return need_of(has_leaf ? KEEPER_CA : KEEPER_ALL, "the CA cannot be used", why);
    if (!has_leaf)
        return need_of(KEEPER_LEAF, "the certificate cannot be used", why);
    bool of_newest = is_of_newest(c, now_s);
    if (settled && !of_newest)
        return need_of(KEEPER_LEAF, "the certificate is of an older CA", why);
    /* Before the CA: a fresh leaf outlasts the time in which the next CA settles. Who trusts the leaf before it trusts this one. */
    if (of_newest && is_due(c->leaf.cert_pem, now_s))
        return need_of(KEEPER_LEAF, "the certificate is near its end", why);
    if (is_due(c->ca_bundle, now_s))
        return need_of(KEEPER_CA, "the CA is near its end", why);
    return need_of(KEEPER_NOTHING, "", why);
}

static int renew_ca(const struct keeper_policy *p, struct vault_content *c, int64_t now_s,
                    struct error *err)
{
    struct certs_pair ca = {.cert_pem = NULL};
    struct strbuf bundle = {0};
    if (certs_make_ca("cosched-webhook-ca", now_s, p->ca_life_s, &ca, err) < 0)
        return -1;
    /* A bundle that cannot be read is left behind: nobody can have trusted it. */
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

static int renew_leaf(const struct keeper_policy *p, struct vault_content *c, int64_t now_s,
                      struct error *err)
{
    struct certs_pair ca = {.cert_pem = c->ca_bundle, .key_pem = c->ca_key};
    struct certs_pair leaf = {.cert_pem = NULL};
    if (certs_make_leaf(&ca, p->names, p->names_len, now_s, p->leaf_life_s, &leaf, err) < 0)
        return -1;
    certs_pair_deinit(&c->leaf);
    c->leaf = leaf;
    return 0;
}

int keeper_renew(const struct keeper_policy *p, enum keeper_need need, struct vault_content *c,
                 int64_t now_s, struct error *err)
{
    if ((need == KEEPER_ALL || need == KEEPER_CA) && renew_ca(p, c, now_s, err) < 0)
        return -1;
    if ((need == KEEPER_ALL || need == KEEPER_LEAF) && renew_leaf(p, c, now_s, err) < 0)
        return -1;
    return 0;
}

/* ---- one pass -------------------------------------------------------------------------------- */

static int64_t now_seconds(const struct keeper *k)
{
    return k->cb.now_s ? k->cb.now_s(k->cb.arg) : clock_wall_ns() / 1000000000;
}

static bool is_in_life(const struct keeper *k)
{
    int64_t now_s = now_seconds(k);
    return k->served.cert_pem && now_s >= k->begins_s && now_s < k->ends_s;
}

static bool is_settled(const struct keeper *k)
{
    return k->bundle_since_ms >= 0 && clock_mono_ms() - k->bundle_since_ms >= k->options.settle_ms;
}

static bool publishes(const struct keeper *k)
{
    return k->vault.webhook_config || k->vault.validating_config;
}

static void note_bundle(struct keeper *k, const char *bundle)
{
    if (str_eq(k->bundle, bundle))
        return;
    free(k->bundle);
    k->bundle = mem_strdup(bundle);
    /* Without a configuration to write, whoever copies the bundle gets the same time for it. */
    k->bundle_since_ms = publishes(k) ? -1 : clock_mono_ms();
}

/* A Secret without a CA that can be used, while we serve a certificate that is trusted: what was lost is put back, but for the CA's key. */
static void recover(const struct keeper *k, struct vault_content *c, int64_t now_s)
{
    struct vault_content known = {.ca_bundle = k->bundle, .leaf = k->served};
    if (is_usable_ca(c, now_s) || !is_accepted(&k->policy, &known, now_s))
        return;
    free(c->ca_bundle);
    certs_wipe(c->ca_key);
    certs_pair_deinit(&c->leaf);
    c->ca_bundle = mem_strdup(k->bundle);
    c->ca_key = NULL;
    c->leaf = (struct certs_pair){mem_strdup(k->served.cert_pem), mem_strdup(k->served.key_pem)};
}

/* There is no CA: but somebody may serve a certificate of those that are published. */
static int adopt(struct keeper *k, struct vault_content *c, struct error *err)
{
    free(c->ca_bundle);
    return vault_published(&k->vault, &c->ca_bundle, err);
}

static bool is_quiet(const struct keeper *k, const struct vault_content *c, int64_t now_s)
{
    return c->resource_version && str_eq(k->quiet.version, c->resource_version) &&
           now_s >= k->quiet.from_s && now_s < k->quiet.until_s &&
           k->quiet.settled == is_settled(k);
}

/* Nothing is needed: until when? */
static void note_quiet(struct keeper *k, const struct vault_content *c)
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

/* The Secret as it should be: read, and renewed where needed. Others may write at the same time. */
static int refresh(struct keeper *k, struct vault_content *c, struct error *err)
{
    for (int i = 0; i < CONFLICTS_MAX; i++) {
        const char *why = "";
        vault_content_deinit(c);
        if (vault_read(&k->vault, c, err) < 0)
            return -1;
        int64_t now_s = now_seconds(k);
        if (is_quiet(k, c, now_s))
            return 0;
        recover(k, c, now_s);
        note_bundle(k, c->ca_bundle);
        enum keeper_need need = keeper_judge(&k->policy, c, now_s, is_settled(k), &why);
        if (need == KEEPER_NOTHING) {
            note_quiet(k, c);
            return 0;
        }
        if ((need == KEEPER_ALL && adopt(k, c, err) < 0) ||
            keeper_renew(&k->policy, need, c, now_s, err) < 0)
            return -1;
        if (vault_write(&k->vault, c, err) == 0) {
            if (need != KEEPER_LEAF)
                metrics_inc(&renewals, "ca");
            if (need != KEEPER_CA)
                metrics_inc(&renewals, "leaf");
            log_info("certificates renewed", kv("why", why), kv("secret", k->vault.secret),
                     kv("namespace", k->vault.ns));
            note_bundle(k, c->ca_bundle);
            return 0;
        }
        if (err->code != ERROR_CONFLICT)
            return -1;
        error_clear(err);
    }
    return error_set(err, ERROR_CONFLICT, "secret %s/%s: changed under our hands %d times",
                     k->vault.ns, k->vault.secret, CONFLICTS_MAX);
}

static int install(struct keeper *k, const struct certs_pair *leaf, struct error *err)
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
    k->next_due_s = k->options.cert_file ? 0 : life.renew_s; /* renewing files is not ours */
    metrics_set(&expiry, NULL, life.not_after_s);
    log_info("certificate installed", kv("not_after_s", life.not_after_s));
    return 0;
}

static int publish(struct keeper *k, const char *bundle, struct error *err)
{
    bool changed = false;
    if (!publishes(k)) {
        k->published = true;
        return 0;
    }
    if (vault_publish(&k->vault, bundle, k->options.cert_file == NULL, &changed, err) < 0) {
        k->bundle_since_ms =
            changed ? -1 : k->bundle_since_ms; /* one of the two: it settles anew */
        return -1;
    }
    if (changed)
        log_info("caBundle written", kv("webhook_config", str_or_empty(k->vault.webhook_config)),
                 kv("validating_config", str_or_empty(k->vault.validating_config)));
    if (changed || k->bundle_since_ms < 0)
        k->bundle_since_ms = clock_mono_ms();
    k->published = true;
    return 0;
}

/* Not yet when it is of a CA that the API server may not have seen, while what we serve is accepted. */
static bool may_serve(const struct keeper *k, const struct vault_content *c, int64_t now_s)
{
    struct vault_content before = {.ca_bundle = c->ca_bundle, .leaf = k->served};
    struct vault_content after = {.ca_bundle = k->trusted, .leaf = c->leaf};
    /* Both of the newest CA, or both of older ones: who trusts the one trusts the other. */
    return str_eq(k->served.cert_pem, c->leaf.cert_pem) || is_settled(k) ||
           !is_accepted(&k->policy, &before, now_s) ||
           is_of_newest(&before, now_s) == is_of_newest(c, now_s) ||
           is_accepted(&k->policy, &after, now_s);
}

/* The Secret was lost, and put back (recover) by a replica that had not yet seen the leaf which we serve: ours lasts longer, and stays until the new CA has settled. */
static bool is_step_back(const struct keeper *k, const struct vault_content *c, int64_t now_s)
{
    struct vault_content ours = {.ca_bundle = c->ca_bundle, .leaf = k->served};
    struct certs_life life;
    return k->served.cert_pem && !str_eq(k->served.cert_pem, c->leaf.cert_pem) &&
           certs_life(c->leaf.cert_pem, &life, NULL) == 0 && life.not_after_s < k->ends_s &&
           !is_of_newest(c, now_s) && is_accepted(&k->policy, &ours, now_s);
}

static void note_trusted(struct keeper *k)
{
    if (!is_settled(k) || str_eq(k->trusted, k->bundle))
        return;
    free(k->trusted);
    k->trusted = mem_strdup(k->bundle);
}

static int pass_secret(struct keeper *k, struct error *err)
{
    struct vault_content c = {.resource_version = NULL};
    int rc = refresh(k, &c, err);
    int64_t now_s = now_seconds(k);
    if (rc == 0 && may_serve(k, &c, now_s) && !is_step_back(k, &c, now_s))
        rc = install(k, &c.leaf, err);
    if (rc == 0)
        rc = publish(k, c.ca_bundle, err);
    if (rc == 0)
        note_trusted(k);
    vault_content_deinit(&c);
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

/* Files are written by others, one after the other: until they fit together the old ones stay. */
static int pass_files(struct keeper *k, struct error *err)
{
    const struct keeper_options *o = &k->options;
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

/* Another replica, or the installer, writes at the same time: everything is looked at again. */
static int pass(struct keeper *k, struct error *err)
{
    for (int i = 1;; i++) {
        int rc = k->options.cert_file ? pass_files(k, err) : pass_secret(k, err);
        if (rc == 0 || err->code != ERROR_CONFLICT || i == CONFLICTS_MAX)
            return rc;
        error_clear(err);
    }
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Until the next look: the interval, or sooner when a renewal is due or the last pass failed. */
static int64_t pause_ms(const struct keeper *k, int failures)
{
    int64_t ms = k->options.check_ms;
    if (failures > 0)
        ms = num_min(ms, (int64_t)RETRY_MIN_MS << (failures < 16 ? failures - 1 : 15));
    else if (k->next_due_s > now_seconds(k)) /* later it waits for the new CA to settle */
        ms = num_min(ms, (k->next_due_s - now_seconds(k)) * 1000);
    return num_max(ms, 50);
}

/* false: stopping */
static bool sleep_ms(struct keeper *k, int64_t ms)
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
    struct keeper *k = arg;
    int failures = 0;
    char last[ERROR_TEXT_SIZE] = "";
    do {
        struct error err = ERROR_INIT;
        int rc = pass(k, &err);
        failures = rc == 0 ? 0 : failures + 1;
        /* One line per new reason, not one per attempt. */
        if (rc < 0 && err.code != ERROR_CANCELLED && !str_eq(last, err.text))
            log_warn("certificates wait", kv("error", err.text));
        (void)str_format(last, sizeof last, "%s", rc < 0 ? err.text : "");
        k->cb.state(k->cb.arg, is_in_life(k), k->published);
    } while (sleep_ms(k, pause_ms(k, failures)));
    return NULL;
}

/* ---- start and stop -------------------------------------------------------------------------- */

/* The names under which a Service is reached, the one the API server uses first; then the extra ones. */
static int collect_names(struct keeper *k, const char *ns, struct error *err)
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
    k->policy = (struct keeper_policy){.names = names,
                                       .names_len = n,
                                       .ca_life_s = k->options.ca_life_ms / 1000,
                                       .leaf_life_s = k->options.leaf_life_ms / 1000};
    return 0;
}

static int check_options(const struct keeper_options *o, struct error *err)
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

static void destroy(struct keeper *k)
{
    pthread_mutex_destroy(&k->lock);
    pthread_cond_destroy(&k->wake);
    kube_client_free(k->vault.client);
    arena_deinit(&k->arena);
    certs_pair_deinit(&k->served);
    free(k->bundle);
    free(k->trusted);
    free(k->quiet.version);
    free(k);
}

int keeper_start(struct keeper **out, const struct keeper_options *o, const char *ns,
                 struct kube_client *client, const struct keeper_callbacks *cb, struct error *err)
{
    struct keeper *k = mem_new(struct keeper, 1);
    k->options = *o;
    k->cb = *cb;
    k->bundle_since_ms = -1;
    arena_init(&k->arena, 0);
    k->vault = (struct vault){.client = client,
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

void keeper_stop(struct keeper *k)
{
    if (!k)
        return;
    pthread_mutex_lock(&k->lock);
    k->stopping = true;
    pthread_cond_signal(&k->wake);
    pthread_mutex_unlock(&k->lock);
    if (k->vault.client)
        kube_client_cancel(k->vault.client);
    pthread_join(k->thread, NULL);
    destroy(k);
}
