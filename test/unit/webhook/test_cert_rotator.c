// SPDX-License-Identifier: Apache-2.0
/* The rotator's thread against a small API server that knows one Secret and one configuration; the
 * rule is in test_cert_rotator_rule.c. */
#include "webhook/cert_rotator.h"

#include "test/unit/lib/base/expect.h"
#include "test/unit/lib/base/scratch.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "lib/base/base64.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/httpd.h"
#include "lib/base/metrics.h"
#include "lib/kube/http.h"
#include "test/unit/webhook/cert_rotator_api.h"

enum { DAY = 86400 };
static const char *const names[] = {"hook.ns.svc"};
static const struct cert_rotator_policy policy = {.names = names,
                                                  .names_len = 1,
                                                  .ca_life_s = 300 * (int64_t)DAY,
                                                  .leaf_life_s = 30 * (int64_t)DAY};

static int64_t now_seconds(void)
{
    return clock_wall_ns() / 1000000000;
}

/* What a replica's server would know. */
struct replica {
    struct cert_rotator *rotator;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct certs_pair served;
    int installs, passes;
    bool usable, published;
    int64_t ahead_s; /* its clock */
};

static int64_t its_clock(void *arg)
{
    struct replica *r = arg;
    pthread_mutex_lock(&r->lock);
    int64_t ahead_s = r->ahead_s;
    pthread_mutex_unlock(&r->lock);
    return now_seconds() + ahead_s;
}

static int install(void *arg, const char *cert_pem, const char *key_pem, struct error *err)
{
    (void)err;
    struct replica *r = arg;
    pthread_mutex_lock(&r->lock);
    certs_pair_deinit(&r->served);
    r->served = (struct certs_pair){strdup(cert_pem), strdup(key_pem)};
    r->installs++;
    pthread_mutex_unlock(&r->lock);
    return 0;
}

static void note_state(void *arg, bool usable, bool published)
{
    struct replica *r = arg;
    pthread_mutex_lock(&r->lock);
    r->usable = usable;
    r->published = published;
    r->passes++;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

static void replica_start_ahead(struct replica *r, const struct cert_rotator_options *o,
                                struct api *api, int64_t ahead_s)
{
    struct error err = ERROR_INIT;
    struct kube_client *client = NULL;
    struct cert_rotator_callbacks cb = {
        .install = install, .state = note_state, .now_s = its_clock, .arg = r};
    *r = (struct replica){.ahead_s = ahead_s};
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    if (api && kube_client_new(&client, api->config, &kube, "test", &err) < 0)
        fail_msg("%s", err.text);
    if (cert_rotator_start(&r->rotator, o, "ns", client, &cb, &err) < 0)
        fail_msg("%s", err.text);
}

static void replica_start(struct replica *r, const struct cert_rotator_options *o, struct api *api)
{
    replica_start_ahead(r, o, api, 0);
}

static void replica_stop(struct replica *r)
{
    cert_rotator_stop(r->rotator);
    certs_pair_deinit(&r->served);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->changed);
}

/* Waits (20 s at most) until so many installs happened and the two flags are these. */
static void wait_for(const char *row, struct replica *r, int installs, bool usable, bool published)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    pthread_mutex_lock(&r->lock);
    int rc = 0;
    while (rc == 0 && (r->installs < installs || r->usable != usable || r->published != published))
        rc = pthread_cond_timedwait(&r->changed, &r->lock, &until);
    if (rc != 0)
        print_error("%s: %d installs, usable %d, published %d\n", row, r->installs, r->usable,
                    r->published);
    pthread_mutex_unlock(&r->lock);
    expect_int(row, 0, rc);
}

/* Until the rotator has checked everything once more, from the beginning. */
static void wait_for_pass(struct replica *r)
{
    pthread_mutex_lock(&r->lock);
    for (int enough = r->passes + 2; r->passes < enough;)
        pthread_cond_wait(&r->changed, &r->lock);
    pthread_mutex_unlock(&r->lock);
}

static const struct cert_rotator_options usual = {.service = "hook",
                                                  .san = "127.0.0.1,,extra.example",
                                                  .secret = "s",
                                                  .webhook_config = "w",
                                                  .ca_life_ms = INT64_C(3600000) * 24,
                                                  .leaf_life_ms = 3600000,
                                                  .check_ms = 50};

/* What a replica with these options makes. */
static const char *const all[] = {
    "hook.ns.svc", "hook.ns.svc.cluster.local", "hook.ns", "hook", "127.0.0.1", "extra.example"};
static const struct cert_rotator_policy of_usual = {
    .names = all, .names_len = 6, .ca_life_s = 3600 * 24, .leaf_life_s = 3600};

static void published_bundle(struct api *api, struct strbuf *out)
{
    pthread_mutex_lock(&api->lock);
    expect_str("both webhooks have the same", api->bundles[0], api->bundles[1]);
    expect_true("base64", base64_decode(api->bundles[0], strlen(api->bundles[0]), out));
    pthread_mutex_unlock(&api->lock);
}

static void replicas_share_one_ca(void **state)
{
    (void)state;
    struct api api;
    struct replica a;
    struct replica b;
    struct error err = ERROR_INIT;
    AUTO_STRBUF bundle;
    strbuf_init(&bundle);
    api_start(&api);
    api.has_config = true;
    api.conflicts = 1;
    replica_start(&a, &usual, &api);
    replica_start(&b, &usual, &api);
    wait_for("the first", &a, 1, true, true);
    wait_for("the second", &b, 1, true, true);
    expect_str("one certificate", a.served.cert_pem, b.served.cert_pem);
    expect_int("written once", 2, api.secret_version);
    published_bundle(&api, &bundle);
    if (certs_check(bundle.ptr, &a.served, all, 6, now_seconds(), &err) < 0)
        expect_str("the API server accepts it under each name", "", err.text);
    /* An installer that applies its manifest again leaves caBundle empty. */
    pthread_mutex_lock(&api.lock);
    free(api.bundles[1]);
    api.bundles[1] = strdup("");
    pthread_mutex_unlock(&api.lock);
    for (int64_t end = clock_mono_ms() + 20000; clock_mono_ms() < end;) {
        pthread_mutex_lock(&api.lock);
        bool back = str_eq(api.bundles[0], api.bundles[1]);
        pthread_mutex_unlock(&api.lock);
        if (back)
            break;
        clock_sleep_ms(10);
    }
    strbuf_reset(&bundle);
    published_bundle(&api, &bundle);
    replica_stop(&a);
    replica_stop(&b);
    api_stop(&api);
    expect_done();
}

static void readiness_waits_for_the_configuration(void **state)
{
    (void)state;
    struct api api;
    struct replica a;
    api_start(&api);
    replica_start(&a, &usual, &api);
    wait_for("a certificate, but nobody who trusts it", &a, 1, true, false);
    pthread_mutex_lock(&api.lock);
    api.has_config = true;
    pthread_mutex_unlock(&api.lock);
    wait_for("the configuration appears", &a, 1, true, true);
    replica_stop(&a);
    api_stop(&api);
    expect_done();
}

static void a_leaf_is_renewed_in_time_and_a_spoiled_secret_made_anew(void **state)
{
    (void)state;
    struct api api;
    struct replica a;
    struct cert_rotator_options o = usual;
    struct error err = ERROR_INIT;
    AUTO_STRBUF bundle;
    strbuf_init(&bundle);
    o.leaf_life_ms = 3000;
    api_start(&api);
    api.has_config = true;
    replica_start(&a, &o, &api);
    wait_for("two renewals", &a, 3, true, true);
    pthread_mutex_lock(&api.lock);
    strbuf_reset(&api.secret);
    api.secret_version++;
    strbuf_adds(&api.secret, "{\"ca.crt\":\"!\",\"ca.key\":7,\"tls.crt\":\"aGVsbG8=\"}");
    pthread_mutex_unlock(&api.lock);
    pthread_mutex_lock(&a.lock);
    int before = a.installs;
    pthread_mutex_unlock(&a.lock);
    wait_for("all anew", &a, before + 2, true, true);
    cert_rotator_stop(a.rotator);
    a.rotator = NULL;
    published_bundle(&api, &bundle);
    /* it is short: the check is made at its beginning, however slow we are */
    struct certs_life life;
    assert_int_equal(0, certs_life(a.served.cert_pem, &life, &err));
    if (certs_check(bundle.ptr, &a.served, names, 1, life.not_before_s, &err) < 0)
        expect_str("accepted", "", err.text);
    replica_stop(&a);
    api_stop(&api);
    expect_done();
}

/* The CAs that are published, and the certificate that a replica serves, at any moment. */
static void expect_trusted(const char *row, struct api *api, struct replica *r)
{
    AUTO_STRBUF bundle = {0};
    struct error err = ERROR_INIT;
    published_bundle(api, &bundle);
    pthread_mutex_lock(&r->lock);
    if (certs_check(strbuf_str(&bundle), &r->served, names, 1, now_seconds(), &err) < 0)
        expect_str(row, "", err.text);
    pthread_mutex_unlock(&r->lock);
}

static void a_secret_that_is_deleted_costs_no_trust(void **state)
{
    (void)state;
    struct api api;
    struct replica a;
    struct replica b;
    struct cert_rotator_options o = usual;
    o.settle_ms = o.leaf_life_ms / 3; /* so long that nothing of the next CA is served */
    api_start(&api);
    api.has_config = true;
    replica_start(&a, &o, &api);
    replica_start(&b, &o, &api);
    wait_for("the first", &a, 1, true, true);
    wait_for("the second", &b, 1, true, true);
    for (int spoiled = 0; spoiled < 2; spoiled++) {
        pthread_mutex_lock(&api.lock);
        strbuf_reset(&api.secret);
        api.secret_version += spoiled;
        strbuf_adds(&api.secret, spoiled ? "{\"ca.crt\":\"aGVsbG8=\"}" : "");
        pthread_mutex_unlock(&api.lock);
        wait_for_pass(&a);
        wait_for_pass(&b);
        expect_trusted("the first is trusted", &api, &a);
        expect_trusted("the second is trusted", &api, &b);
    }
    pthread_mutex_lock(&api.lock);
    expect_int("it is made again, by one of them", 5, api.secret_version);
    expect_int("nothing that was trusted is taken back", 0, api.undone);
    pthread_mutex_unlock(&api.lock);
    expect_int("the first serves what it served", 1, a.installs);
    expect_int("so does the second", 1, b.installs);
    replica_stop(&a);
    replica_stop(&b);
    api_stop(&api);
    expect_done();
}

/* A node whose clock is right only after a while (it was in local time): what was made before is
 * not valid yet for anybody else. */
static void a_clock_that_is_set_back_costs_new_certificates(void **state)
{
    (void)state;
    struct api api;
    struct replica a;
    api_start(&api);
    api.has_config = true;
    replica_start_ahead(&a, &usual, &api, 8 * 3600);
    wait_for("made eight hours ahead", &a, 1, true, true);
    wait_for_pass(&a);
    pthread_mutex_lock(&a.lock);
    a.ahead_s = 0;
    pthread_mutex_unlock(&a.lock);
    wait_for("made anew", &a, 2, true, true);
    wait_for_pass(&a);
    expect_trusted("now", &api, &a);
    pthread_mutex_lock(&a.lock); /* and forward, beyond the end of it: a machine that slept */
    a.ahead_s = 2 * 3600;
    pthread_mutex_unlock(&a.lock);
    wait_for("made anew once more", &a, 3, true, true);
    replica_stop(&a);
    api_stop(&api);
    expect_done();
}

/* Another replica still serves a certificate of the CA that is published; the Secret is gone, and a
 * new replica is the first to see it. */
static void a_new_replica_keeps_the_published_cas(void **state)
{
    (void)state;
    struct api api;
    struct replica a;
    struct error err = ERROR_INIT;
    struct cert_store_content old = {0};
    AUTO_STRBUF bundle = {0};
    api_start(&api);
    api.has_config = true;
    assert_int_equal(0, cert_rotator_renew(&policy, CERT_ROTATOR_ALL, &old, now_seconds(), &err));
    set_bundles(&api, old.ca_bundle);
    replica_start(&a, &usual, &api);
    wait_for("the new one", &a, 1, true, true);
    expect_trusted("is trusted", &api, &a);
    published_bundle(&api, &bundle);
    if (certs_check(strbuf_str(&bundle), &old.leaf, names, 1, now_seconds(), &err) < 0)
        expect_str("the old one is too", "", err.text);
    replica_stop(&a);
    cert_store_content_deinit(&old);
    api_stop(&api);
    expect_done();
}

static void a_leaf_of_a_new_ca_waits_until_that_has_settled(void **state)
{
    (void)state;
    struct api api;
    struct replica a;
    struct error err = ERROR_INIT;
    struct cert_store_content c = {0};
    struct cert_rotator_options o = usual;
    o.settle_ms = o.leaf_life_ms / 3;
    api_start(&api);
    api.has_config = true;
    assert_int_equal(0, cert_rotator_renew(&of_usual, CERT_ROTATOR_ALL, &c, now_seconds(), &err));
    put_secret(&api, &c);
    replica_start(&a, &o, &api);
    wait_for("the first", &a, 1, true, true);
    /* Another replica, which has lost its memory, is at the end of the way at once. */
    assert_int_equal(0, cert_rotator_renew(&of_usual, CERT_ROTATOR_CA, &c, now_seconds(), &err));
    assert_int_equal(0, cert_rotator_renew(&of_usual, CERT_ROTATOR_LEAF, &c, now_seconds(), &err));
    pthread_mutex_lock(&api.lock);
    put_secret(&api, &c);
    pthread_mutex_unlock(&api.lock);
    wait_for_pass(&a);
    expect_int("nothing else is served", 1, a.installs);
    expect_trusted("and that is trusted", &api, &a);
    replica_stop(&a);
    cert_store_content_deinit(&c);
    api_stop(&api);
    expect_done();
}

/* A new replica knows nothing that has settled; but a leaf of the same CA is trusted as the one
 * before is. */
static void a_renewed_leaf_is_served_while_its_ca_settles(void **state)
{
    (void)state;
    struct api api;
    struct replica a;
    struct error err = ERROR_INIT;
    struct cert_store_content c = {0};
    struct cert_rotator_options o = usual;
    o.settle_ms = o.leaf_life_ms / 3;
    api_start(&api);
    api.has_config = true;
    assert_int_equal(0, cert_rotator_renew(&of_usual, CERT_ROTATOR_ALL, &c, now_seconds(), &err));
    put_secret(&api, &c);
    replica_start(&a, &o, &api);
    wait_for("the first", &a, 1, true, true);
    assert_int_equal(0, cert_rotator_renew(&of_usual, CERT_ROTATOR_LEAF, &c, now_seconds(), &err));
    pthread_mutex_lock(&api.lock);
    put_secret(&api, &c);
    pthread_mutex_unlock(&api.lock);
    wait_for("the renewed one", &a, 2, true, true);
    expect_trusted("which is trusted", &api, &a);
    replica_stop(&a);
    cert_store_content_deinit(&c);
    api_stop(&api);
    expect_done();
}

/* The Secret is deleted just after a renewal, and put back by a replica that has not seen that yet,
 * with the leaf before. */
static void an_older_leaf_that_is_put_back_is_not_served(void **state)
{
    (void)state;
    struct api api;
    struct replica a;
    struct error err = ERROR_INIT;
    struct cert_store_content c = {0};
    struct certs_pair older = {0};
    struct cert_rotator_options o = usual;
    o.settle_ms = o.leaf_life_ms / 3;
    api_start(&api);
    api.has_config = true;
    assert_int_equal(0, cert_rotator_renew(&of_usual, CERT_ROTATOR_ALL, &c, now_seconds(), &err));
    struct certs_pair ca = {.cert_pem = c.ca_bundle, .key_pem = c.ca_key};
    assert_int_equal(0, certs_make_leaf(&ca, all, 6, now_seconds(), 1800, &older, &err));
    put_secret(&api, &c);
    replica_start(&a, &o, &api);
    wait_for("the newer", &a, 1, true, true);
    assert_int_equal(0, cert_rotator_renew(&of_usual, CERT_ROTATOR_CA, &c, now_seconds(), &err));
    certs_pair_deinit(&c.leaf);
    c.leaf = older;
    pthread_mutex_lock(&api.lock);
    put_secret(&api, &c);
    pthread_mutex_unlock(&api.lock);
    wait_for_pass(&a);
    expect_int("is served", 1, a.installs);
    expect_trusted("and trusted", &api, &a);
    replica_stop(&a);
    cert_store_content_deinit(&c);
    api_stop(&api);
    expect_done();
}

static void a_replica_that_was_held_up_undoes_nothing(void **state)
{
    (void)state;
    struct api api;
    struct replica a;
    struct error err = ERROR_INIT;
    struct cert_store_content newer = {0};
    api_start(&api);
    api.has_config = true;
    /* [CA1 | leaf of CA1] is in the Secret; while the replica is on its way to the configuration,
     * another one goes on to [CA2 CA1 | leaf of CA2]. */
    assert_int_equal(0,
                     cert_rotator_renew(&of_usual, CERT_ROTATOR_ALL, &newer, now_seconds(), &err));
    put_secret(&api, &newer);
    assert_int_equal(0,
                     cert_rotator_renew(&of_usual, CERT_ROTATOR_CA, &newer, now_seconds(), &err));
    assert_int_equal(0,
                     cert_rotator_renew(&of_usual, CERT_ROTATOR_LEAF, &newer, now_seconds(), &err));
    api.quicker = &newer;
    replica_start(&a, &usual, &api);
    wait_for("it takes what the other one made", &a, 2, true, true);
    wait_for_pass(&a);
    expect_trusted("which is trusted", &api, &a);
    expect_str("the other one's", newer.leaf.cert_pem, a.served.cert_pem);
    pthread_mutex_lock(&api.lock);
    expect_int("and never was not", 0, api.undone);
    pthread_mutex_unlock(&api.lock);
    replica_stop(&a);
    cert_store_content_deinit(&newer);
    api_stop(&api);
    expect_done();
}

static void write_file(const char *path, const char *text)
{
    AUTO_STRBUF temporary;
    strbuf_init(&temporary);
    strbuf_addf(&temporary, "%s.new", path);
    int fd = open(temporary.ptr, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal((ssize_t)strlen(text), write(fd, text, strlen(text)));
    close(fd);
    assert_int_equal(0, rename(temporary.ptr, path));
}

static void files_are_read_again_when_they_fit_together(void **state)
{
    (void)state;
    char dir[SCRATCH_PATH];
    scratch_folder(dir, "rotator");
    AUTO_STRBUF cert;
    AUTO_STRBUF key;
    strbuf_init(&cert);
    strbuf_init(&key);
    strbuf_addf(&cert, "%s/tls.crt", dir);
    strbuf_addf(&key, "%s/tls.key", dir);
    struct error err = ERROR_INIT;
    struct cert_store_content one = {0};
    struct cert_store_content two = {0};
    assert_int_equal(0, cert_rotator_renew(&policy, CERT_ROTATOR_ALL, &one, now_seconds(), &err));
    assert_int_equal(0, cert_rotator_renew(&policy, CERT_ROTATOR_ALL, &two, now_seconds(), &err));
    struct cert_rotator_options o = {
        .service = "hook", .cert_file = cert.ptr, .key_file = key.ptr, .check_ms = 50};
    struct replica a;
    replica_start(&a, &o, NULL);
    wait_for("no files yet", &a, 0, false, false);
    write_file(cert.ptr, one.leaf.cert_pem);
    write_file(key.ptr, one.leaf.key_pem);
    wait_for("the first pair", &a, 1, true, true);
    write_file(cert.ptr, two.leaf.cert_pem);
    wait_for_pass(&a);
    pthread_mutex_lock(&a.lock);
    expect_str("half of the second pair changes nothing", one.leaf.cert_pem, a.served.cert_pem);
    pthread_mutex_unlock(&a.lock);
    write_file(key.ptr, two.leaf.key_pem);
    wait_for("the second pair", &a, 2, true, true);
    expect_str("is served", two.leaf.cert_pem, a.served.cert_pem);
    replica_stop(&a);
    cert_store_content_deinit(&one);
    cert_store_content_deinit(&two);
    unlink(cert.ptr);
    unlink(key.ptr);
    rmdir(dir);
    expect_done();
}

static int set_up(void **state)
{
    (void)state;
    kube_http_global_init();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    metrics_reset();
    kube_http_global_cleanup();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replicas_share_one_ca),
        cmocka_unit_test(readiness_waits_for_the_configuration),
        cmocka_unit_test(a_leaf_is_renewed_in_time_and_a_spoiled_secret_made_anew),
        cmocka_unit_test(a_secret_that_is_deleted_costs_no_trust),
        cmocka_unit_test(a_clock_that_is_set_back_costs_new_certificates),
        cmocka_unit_test(a_new_replica_keeps_the_published_cas),
        cmocka_unit_test(a_leaf_of_a_new_ca_waits_until_that_has_settled),
        cmocka_unit_test(a_renewed_leaf_is_served_while_its_ca_settles),
        cmocka_unit_test(an_older_leaf_that_is_put_back_is_not_served),
        cmocka_unit_test(a_replica_that_was_held_up_undoes_nothing),
        cmocka_unit_test(files_are_read_again_when_they_fit_together),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
