// SPDX-License-Identifier: Apache-2.0
/* The thread that works on containers' files hangs: nobody waits for it. */
#include "device-plugin/isolation/shares_worker.h"

#include "test/unit/device-plugin/isolation/crew.h"

#include <semaphore.h>

#include "device-plugin/isolation/shares_metrics.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "lib/base/probes.h"
#include "test/unit/lib/base/wire.h"

#define UID "0f0e0d0c-1111-2222-3333-444455556666"

static sem_t reached, go_on;

static void hang(void *arg)
{
    (void)arg;
    sem_post(&reached);
    sem_wait(&go_on);
}

static void ignore(void *arg, const char *line, size_t n)
{
    (void)arg, (void)line, (void)n;
}

static void expect_reply(const char *row, uint16_t port, const char *path, const char *part)
{
    AUTO_STRBUF request = {0}, reply = {0};
    strbuf_addf(&request, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path);
    expect_true(row, wire_ask(port, strbuf_str(&request), &reply));
    expect_int(row, 200, wire_status(&reply));
    expect_true(row, strstr(wire_body(&reply), part) != NULL);
}

static void count(void *arg, const struct shares_scan *l)
{
    (void)l;
    ++*(int *)arg;
}

static void it_hangs(void **state)
{
    struct error err = ERROR_INIT;
    struct loop *loop;
    struct probes probes;
    struct shares_worker *w;
    char base[SCRATCH_PATH], library[CREW_PATH], command[2 * SCRATCH_PATH];
    struct shares_plan plan = {.base = base,
                               .folder = UID ".0",
                               .ns = "team",
                               .pod = "train",
                               .container = "main",
                               .limits = {.len = 1}};
    int rows = 0;
    (void)state;
    sem_init(&reached, 0, 0);
    sem_init(&go_on, 0, 0);
    log_set_sink(ignore, NULL);
    scratch_folder(base, "worker");
    plan.limits.cards[0] = (struct limits_card){.uuid = {1}, .bytes = 64 * MIB, .percent = 50};
    (void)str_format(library, sizeof library, "%s/lib/libcosched-gpu.so", crew_build());
    assert_int_equal(0, shares_prepare(library, &plan, &err));
    assert_int_equal(0, loop_new(&loop, &err));
    probes_init(&probes, loop);
    assert_int_equal(
        0, probes_start(&probes, &(struct probes_options){"127.0.0.1", 0}, NULL, NULL, &err));
    uint16_t port = httpd_port(probes.httpd);
    assert_int_equal(
        0, shares_worker_start(&w, &(struct shares_worker_config){.base = base, .looked = hang},
                               &err));
    shares_metrics_init(w);
    shares_worker_each(w, count, &rows);
    expect_int("nothing is known before the first look", 0, rows);
    expect_true("a look", shares_worker_ask(w));
    sem_wait(&reached);
    shares_worker_each(w, count, &rows);
    expect_int("the look", 1, rows);
    expect_true("another one", shares_worker_ask(w));
    expect_true("no third", !shares_worker_ask(w));
    for (int i = 0; i < SHARES_WORKER_MEASURES + 10; i++)
        shares_worker_measure(w, UID ".0", 0, 1, 1);
    expect_reply("healthz", port, "/healthz", "ok\n");
    expect_reply("metrics", port, "/metrics", "container_share_mib{namespace=\"team\"");
    expect_true("it does not end either", !shares_worker_stop(w, 0));
    sem_post(&go_on);
    sem_post(&go_on);
    expect_true("now it does", shares_worker_stop(w, 60 * 1000));
    probes_stop(&probes);
    metrics_reset();
    shares_worker_free(w);
    loop_free(loop);
    log_set_sink(NULL, NULL);
    (void)str_format(command, sizeof command, "rm -r '%s'", base);
    assert_int_equal(0, system(command));
    expect_done();
}

/* What is measured is written, and every folder is looked at. */
static void it_works(void **state)
{
    struct error err = ERROR_INIT;
    struct shares_worker *w;
    struct regionfile r;
    char base[SCRATCH_PATH], library[CREW_PATH], path[CREW_PATH], command[2 * SCRATCH_PATH];
    struct shares_plan plan = {.base = base,
                               .folder = UID ".0",
                               .ns = "team",
                               .pod = "train",
                               .container = "main",
                               .limits = {.len = 1}};
    (void)state;
    sem_init(&reached, 0, 0);
    sem_init(&go_on, 0, 2);
    log_set_sink(ignore, NULL);
    scratch_folder(base, "worker");
    plan.limits.cards[0] = (struct limits_card){.uuid = {1}, .bytes = 64 * MIB, .percent = 50};
    (void)str_format(library, sizeof library, "%s/lib/libcosched-gpu.so", crew_build());
    assert_int_equal(0, shares_prepare(library, &plan, &err));
    plan.folder = "aaaa.0";
    assert_int_equal(0, shares_prepare(library, &plan, &err));
    assert_int_equal(
        0, shares_worker_start(&w, &(struct shares_worker_config){.base = base, .looked = hang},
                               &err));
    shares_worker_measure(w, UID ".0", 0, 40, 1);
    shares_worker_measure(w, UID ".0", 0, 2, 7);
    shares_worker_settle(w);
    (void)str_format(path, sizeof path, "%s/" UID ".0/region", base);
    assert_int_equal(0, regionfile_attach(&r, path));
    expect_int("summed", 42, (int64_t)region_card(&r.region, 0)->measured_ns);
    expect_int("as of the last", 7, (int64_t)region_card(&r.region, 0)->measured_at_ns);
    regionfile_detach(&r);
    expect_true("asked", shares_worker_ask(w));
    shares_worker_settle(w);
    int rows = 0;
    shares_worker_each(w, count, &rows);
    expect_int("a row for each folder", 2, rows);
    expect_true("it ends", shares_worker_stop(w, 60 * 1000));
    shares_worker_free(w);
    log_set_sink(NULL, NULL);
    (void)str_format(command, sizeof command, "rm -r '%s'", base);
    assert_int_equal(0, system(command));
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_hangs), cmocka_unit_test(it_works)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
