// SPDX-License-Identifier: Apache-2.0
/*
 * The scheduler's core in simulated time. A gang that needs 90 % of the cluster among a steady
 * stream of small jobs: with a reservation it starts within a bounded number of completions,
 * without one never. And the trace: what is read, what is compared.
 */
#include "test/bench/simulate/simulation.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "scheduler/cycle/reservation.h"
#include "test/bench/simulate/gang_trace.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/lib/base/scratch.h"

enum { S = 1000, MINUTE = 60 * S, NODES = 5, CARDS = 4, BIG = 18, SMALL = 1000, EVERY_MS = 17 * S };

static const struct reservation_options keeps = {.after_ms = 5 * MINUTE};

/* 20 cards. Every 17 s a job of one card that runs 5 minutes: 17 or 18 cards are in use at any
 * time. The gang of 18 comes after half an hour; *ended counts the small jobs that ended between
 * that and its start. -1: it never started. */
static int64_t big_starts_after(const struct reservation_options *o, bool tells_time,
                                int64_t *ended)
{
    struct simulation_job *jobs = mem_new(struct simulation_job, SMALL + 1);
    struct simulation s;
    struct error err = ERROR_INIT;
    char(*names)[16] = mem_array_(SMALL + 1, 16);
    size_t big = 100, n = 0;
    for (size_t i = 0; i <= SMALL; i++, n++) {
        (void)str_format(names[n], 16, "j%05zu", n);
        jobs[n] = (struct simulation_job){.name = names[n],
                                          .submit_ms = (int64_t)i * EVERY_MS,
                                          .run_ms = 5 * MINUTE,
                                          .pods = n == big ? BIG : 1,
                                          .tells_time = tells_time};
    }
    if (simulation_init(&s, NODES, CARDS, o, &err) < 0 ||
        simulation_run(&s, jobs, n, jobs[n - 1].submit_ms, &err) < 0)
        fail_msg("%s", err.text);
    int64_t start_ms = jobs[big].start_ms;
    *ended = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t end_ms = jobs[i].start_ms + jobs[i].run_ms;
        *ended += i != big && jobs[i].start_ms >= 0 && end_ms >= jobs[big].submit_ms &&
                  (start_ms < 0 || end_ms <= start_ms);
    }
    expect_int("no card was ever held by an incomplete gang", 0, s.incomplete_ms);
    simulation_deinit(&s);
    free(jobs);
    free(names);
    return start_ms < 0 ? -1 : start_ms - (int64_t)big * EVERY_MS;
}

static void a_large_gang_among_small_jobs(void **state)
{
    (void)state;
    static const struct row {
        const char *name;
        bool kept, tells_time;
        int64_t age_ms; /* before room is kept */
    } rows[] = {
        {"small jobs of unknown run time", true, false, RESERVATION_PATIENCE_MEANS * 5 * MINUTE},
        {"small jobs that tell their run time", true, true, 5 * MINUTE},
        {"nothing is kept", false, false, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct reservation_options off = {0};
        int64_t ended = 0, waited_ms = big_starts_after(rows[i].kept ? &keeps : &off,
                                                        rows[i].tells_time, &ended);
        if (!rows[i].kept) {
            expect_int(rows[i].name, -1, waited_ms);
            expect_true("while hundreds of others came and went", ended > SMALL / 2);
            continue;
        }
        expect_true(rows[i].name, waited_ms >= 0);
        /* It ages, then the 20 cards are given back within the 5 minutes that a job takes: at most
         * 20 completions in 5 minutes. */
        int64_t bound_ms = rows[i].age_ms + 6 * MINUTE;
        if (waited_ms > bound_ms || ended > (bound_ms / (5 * MINUTE) + 1) * NODES * CARDS)
            fail_msg("%s: it waited for %lld s, and %lld jobs ended meanwhile", rows[i].name,
                     (long long)waited_ms / S, (long long)ended);
    }
    expect_done();
}

/* ---- the trace ---- */

static void warn(void *arg, const char *text)
{
    strbuf_addf(arg, "%s\n", text);
}

static int run_trace(const char *csv, struct gang_trace *t, struct strbuf *warnings,
                     struct strbuf *out, struct error *err)
{
    char path[SCRATCH_PATH];
    int fd = scratch_file(path, "trace");
    assert_true(write(fd, csv, strlen(csv)) == (ssize_t)strlen(csv));
    (void)close(fd);
    int rc = gang_trace_read(t, path, (struct csv_warn){warn, warnings}, err);
    if (rc == 0)
        rc = gang_trace_run(t, err);
    if (rc == 0)
        gang_trace_print(t, out);
    (void)unlink(path);
    gang_trace_deinit(t);
    return rc;
}

/* Two cards. b wants both and comes while a has one; c is small and comes later. FIFO lets c wait
 * behind b; one that reserves and waits gives b the other card for nothing. */
static void three_schedulers(void **state)
{
    (void)state;
    AUTO_STRBUF warnings = {0};
    AUTO_STRBUF out = {0};
    struct error err = ERROR_INIT;
    struct gang_trace t = {
        .options = {.nodes = 1, .cards = 2, .timeout_ms = 60 * S, .reservation = keeps}};
    int rc = run_trace("job_id,num_gpu,submit_time,duration\n"
                       "a,1,0,100000\n"
                       "b,2,10000,100000\n"
                       "c,1,20000,30000\n"
                       "d,3,0,1\n"
                       "e,x,0,1\n"
                       "f,0,0,1\n",
                       &t, &warnings, &out, &err);
    expect_int(err.text, 0, rc);
    expect_int("one asks for more cards than there are", 1, (int64_t)t.too_large);
    expect_true("rows that cannot be read are named",
                strstr(strbuf_str(&warnings), "line 6: num_gpu: not an integer: 'x'") != NULL &&
                    strstr(strbuf_str(&warnings), "line 7: num_gpu: must not be 0") != NULL);
    expect_int("cosched: c goes at once, b when a has ended", (90 + 0) * S / 3, t.cosched.mean_ms);
    expect_int("FIFO: c waits for b", (90 + 180) * S / 3, t.fifo.mean_ms);
    expect_int("reserve and wait: b holds a card in vain for a minute", 60 * S,
               t.wait.incomplete_ms);
    expect_int("cosched holds none in vain", 0, t.cosched.incomplete_ms);
    expect_int("nor does FIFO", 0, t.fifo.incomplete_ms);
    expect_true("it is said", strstr(strbuf_str(&out), "33 % of strict FIFO's") != NULL);
    expect_done();
}

static void traces_of_no_use(void **state)
{
    (void)state;
    static const struct row {
        const char *name, *csv, *error;
    } rows[] = {
        {"a column is missing", "job_id,num_gpu,submit_time\n1,1,1\n",
         "line 1: there is no column duration"},
        {"nothing in it", "", "is empty"},
        {"no job that fits", "job_id,num_gpu,submit_time,duration\n1,9,0,1\n",
         "no job that could run"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        AUTO_STRBUF warnings = {0};
        AUTO_STRBUF out = {0};
        struct error err = ERROR_INIT;
        struct gang_trace t = {.options = {.nodes = 1, .cards = 2, .timeout_ms = 1}};
        expect_int(rows[i].name, -1, run_trace(rows[i].csv, &t, &warnings, &out, &err));
        if (strstr(err.text, rows[i].error) == NULL)
            expect_str(rows[i].name, rows[i].error, err.text);
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_gang_among_small_jobs),
        cmocka_unit_test(three_schedulers),
        cmocka_unit_test(traces_of_no_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
