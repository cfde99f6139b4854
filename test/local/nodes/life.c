// SPDX-License-Identifier: Apache-2.0
/*
 * life - of one pod, as the kubelet lives it:
 *
 *            life_init
 *                │
 *           (not admitted)──life_reject──► Failed: UnexpectedAdmissionError, OutOfcpu, …
 *                │life_admit                 ▲ for good
 *                ▼                           │
 *   Pending: sandbox (create_ms) ─► init containers one by one, sidecars stay
 *                │ life_due, life_started      an ordinary one that fails: again, or Failed (Never)
 *                ▼
 *   Running: all containers started ◄─────────────┐ life_due after a pause:
 *                │ life_tick: run_ms is over      │ 0, 10 s, 20 s, … 300 s
 *                ▼                                │
 *   exited ── restartPolicy wants another run ────┘
 *                │ otherwise, when all have exited; sidecars are ended then
 *                ▼
 *   Succeeded, or Failed if one exit code is not 0
 *
 *   life_terminate at any time: at kill_ns (life_tick) whatever runs exits with 137; stopped. The
 *   caller deletes the pod then.
 *
 * A restarted kubelet starts with life_adopt, which reads status instead of starting over.
 */
#include "test/local/nodes/life.h"

#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/base/num.h"

static const int64_t ms_ns = 1000 * 1000;
static const int64_t second_ns = 1000 * 1000 * 1000;
enum { KILLED = 137, BACKOFF_FIRST_S = 10, BACKOFF_MAX_S = 300, CALM_S = 600, RETRY_S = 10 };

void life_init(struct life *l, const struct podview *v)
{
    *l = (struct life){.view = v, .kill_ns = LIFE_NEVER};
    l->containers = mem_new(struct life_container, v->containers_len + 1);
    for (size_t i = 0; i < v->containers_len; i++) {
        l->containers[i].view = &v->containers[i];
        l->containers[i].why = v->init_len > 0 ? "PodInitializing" : "ContainerCreating";
    }
}

void life_deinit(struct life *l)
{
    free(l->containers);
    l->containers = NULL;
}

void life_admit(struct life *l, int64_t now_ns, int64_t create_ms)
{
    l->admitted = true;
    l->admitted_ns = l->view->started_ns > 0 ? l->view->started_ns : now_ns;
    l->ready_ns = num_add_sat(now_ns, create_ms * ms_ns);
}

/* As the kubelet: the first time at once, then 10 s, 20 s, 40 s, at most 300 s; after ten calm
 * minutes from the beginning. */
static int64_t backoff_s(const struct life_container *c, int64_t ran_ns)
{
    int64_t wait = BACKOFF_FIRST_S;
    if (c->restarts == 0 || ran_ns >= CALM_S * second_ns)
        return 0;
    for (int64_t n = 1; n < c->restarts && wait < BACKOFF_MAX_S; n++)
        wait *= 2;
    return num_min(wait, BACKOFF_MAX_S);
}

static void wait_after(const struct life *l, struct life_container *c, int64_t started_ns,
                       int64_t finished_ns)
{
    int64_t wait = backoff_s(c, finished_ns - started_ns);
    c->state = LIFE_WAITING;
    c->not_before_ns = num_add_sat(finished_ns, wait * second_ns);
    c->why = "CrashLoopBackOff";
    (void)str_format(c->message, sizeof c->message,
                     "back-off %ds restarting failed container=%s pod=%s_%s(%s)", (int)wait,
                     c->view->model->name, l->view->model->name, l->view->model->ns,
                     l->view->model->uid);
}

static void adopt_one(struct life *l, struct life_container *c)
{
    const struct podview_container *v = c->view;
    c->restarts = v->restarts;
    if (v->has_last) {
        c->has_last = true;
        c->last_started_ns = v->last_started_ns;
        c->last_finished_ns = v->last_finished_ns;
        c->last_exit = (int)v->last_exit_code;
        (void)str_format(c->last_id, sizeof c->last_id, "%s", str_or_empty(v->last_id));
    }
    if (v->seen == PODVIEW_RUNNING || v->seen == PODVIEW_EXITED) {
        c->state = v->seen == PODVIEW_RUNNING ? LIFE_RUNNING : LIFE_EXITED;
        c->started_ns = v->started_ns;
        c->finished_ns = v->finished_ns;
        c->exit_code = (int)v->exit_code;
        (void)str_format(c->id, sizeof c->id, "%s", str_or_empty(v->id));
    } else if (v->has_last) {
        wait_after(l, c, v->last_started_ns, v->last_finished_ns);
    }
}

bool life_adopt(struct life *l)
{
    bool any = false;
    for (size_t i = 0; i < l->view->containers_len; i++) {
        const struct podview_container *v = &l->view->containers[i];
        adopt_one(l, &l->containers[i]);
        any = any || v->seen == PODVIEW_RUNNING || v->seen == PODVIEW_EXITED || v->has_last;
    }
    if (any) {
        l->admitted = true;
        l->admitted_ns = l->ready_ns = l->view->started_ns;
    }
    return any;
}

void life_reject(struct life *l, int64_t now_ns, const char *reason, const char *message)
{
    l->rejected = true;
    l->admitted_ns = now_ns;
    (void)str_format(l->reason, sizeof l->reason, "%s", reason);
    (void)str_format(l->message, sizeof l->message, "%s", message);
}

void life_terminate(struct life *l, int64_t now_ns, int64_t grace_ms)
{
    int64_t at = num_add_sat(now_ns, grace_ms * ms_ns);
    l->kill_ns = num_min(l->kill_ns, at);
}

static bool is_app(const struct life_container *c)
{
    return !c->view->init;
}

static bool is_sidecar(const struct life_container *c)
{
    return c->view->init && c->view->model->sidecar;
}

/* Whether the kubelet would restart it after this exit. */
static bool runs_again(const struct life *l, const struct life_container *c, int exit_code)
{
    if (is_sidecar(c))
        return true;
    if (is_app(c))
        return l->view->restart == PODVIEW_ALWAYS ||
               (l->view->restart == PODVIEW_ON_FAILURE && exit_code != 0);
    return exit_code != 0 && l->view->restart != PODVIEW_NEVER;
}

/* The pod's work is done, by itself: sidecars do not count. */
static bool work_is_done(const struct life *l)
{
    bool all = true;
    for (size_t i = 0; i < l->view->containers_len; i++) {
        const struct life_container *c = &l->containers[i];
        if (is_sidecar(c))
            continue;
        if (!is_app(c)) {
            if (c->state == LIFE_EXITED && c->exit_code != 0 && !runs_again(l, c, c->exit_code))
                return true;
            continue;
        }
        all = all && c->state == LIFE_EXITED && !runs_again(l, c, c->exit_code);
    }
    return all && l->view->containers_len > 0;
}

bool life_is_over(const struct life *l)
{
    if (l->rejected || l->stopped)
        return true;
    if (!l->admitted || !work_is_done(l))
        return false;
    for (size_t i = 0; i < l->view->containers_len; i++)
        if (l->containers[i].state == LIFE_RUNNING)
            return false;
    return true;
}

size_t life_due(const struct life *l, int64_t now_ns)
{
    if (!l->admitted || l->rejected || l->stopped || l->kill_ns != LIFE_NEVER ||
        now_ns < l->ready_ns || work_is_done(l))
        return LIFE_NONE;
    for (size_t i = 0; i < l->view->containers_len; i++) {
        const struct life_container *c = &l->containers[i];
        if (c->state == LIFE_WAITING && now_ns >= c->not_before_ns)
            return i;
        if (is_app(c))
            continue;
        bool passed = is_sidecar(c) ? c->state == LIFE_RUNNING || c->has_last
                                    : c->state == LIFE_EXITED && c->exit_code == 0;
        if (!passed)
            return LIFE_NONE;
    }
    return LIFE_NONE;
}

void life_started(struct life *l, size_t i, int64_t now_ns, const char *id)
{
    struct life_container *c = &l->containers[i];
    c->state = LIFE_RUNNING;
    c->started_ns = now_ns;
    c->finished_ns = 0;
    c->exit_code = 0;
    c->message[0] = '\0';
    if (c->has_last)
        c->restarts++;
    (void)str_format(c->id, sizeof c->id, "%s", id);
}

void life_failed(struct life *l, size_t i, int64_t now_ns, const char *why, const char *message)
{
    struct life_container *c = &l->containers[i];
    c->why = why;
    c->not_before_ns = num_add_sat(now_ns, RETRY_S * second_ns);
    (void)str_format(c->message, sizeof c->message, "%s", message);
}

static void exit_now(struct life_container *c, int64_t at_ns, int code)
{
    c->state = LIFE_EXITED;
    c->finished_ns = at_ns;
    c->exit_code = code;
}

static void wait_for_next_run(const struct life *l, struct life_container *c)
{
    c->has_last = true;
    memcpy(c->last_id, c->id, sizeof c->last_id);
    c->last_started_ns = c->started_ns;
    c->last_finished_ns = c->finished_ns;
    c->last_exit = c->exit_code;
    wait_after(l, c, c->started_ns, c->finished_ns);
}

static int64_t ends_ns(const struct life_container *c)
{
    int64_t run = 0;
    if (c->state != LIFE_RUNNING || c->view->plan.run_ms < 0 ||
        !num_mul(c->view->plan.run_ms, ms_ns, &run))
        return LIFE_NEVER;
    return num_add_sat(c->started_ns, run);
}

static void stop_all(struct life *l, int64_t at_ns)
{
    for (size_t i = 0; i < l->view->containers_len; i++) {
        struct life_container *c = &l->containers[i];
        if (c->state == LIFE_RUNNING)
            exit_now(c, at_ns, KILLED);
    }
}

bool life_tick(struct life *l, int64_t now_ns)
{
    bool changed = false;
    if (l->rejected || l->stopped)
        return false;
    if (now_ns >= l->kill_ns) {
        stop_all(l, l->kill_ns);
        l->stopped = true;
        return true;
    }
    for (size_t i = 0; i < l->view->containers_len; i++) {
        struct life_container *c = &l->containers[i];
        int64_t at = ends_ns(c);
        if (at > now_ns && c->state != LIFE_EXITED)
            continue;
        if (c->state == LIFE_RUNNING) {
            exit_now(c, at, c->view->plan.exit_code);
            changed = true;
        }
        if (c->state == LIFE_EXITED && l->kill_ns == LIFE_NEVER && runs_again(l, c, c->exit_code) &&
            !work_is_done(l)) {
            wait_for_next_run(l, c);
            changed = true;
        }
    }
    if (l->admitted && work_is_done(l))
        for (size_t i = 0; i < l->view->containers_len; i++)
            if (is_sidecar(&l->containers[i]) && l->containers[i].state == LIFE_RUNNING) {
                exit_now(&l->containers[i], now_ns, 0);
                changed = true;
            }
    return changed;
}

int64_t life_next_ns(const struct life *l)
{
    int64_t next = l->kill_ns;
    if (l->rejected || l->stopped || !l->admitted)
        return l->stopped || l->rejected ? LIFE_NEVER : next;
    bool done = work_is_done(l);
    for (size_t i = 0; i < l->view->containers_len; i++) {
        const struct life_container *c = &l->containers[i];
        next = num_min(next, ends_ns(c));
        if (c->state == LIFE_WAITING && !done && l->kill_ns == LIFE_NEVER)
            next = num_min(next, num_max(l->ready_ns, c->not_before_ns));
        /* Later containers wait for an init container that is not done. */
        if (!is_app(c) && !is_sidecar(c) && !(c->state == LIFE_EXITED && c->exit_code == 0))
            break;
        if (is_sidecar(c) && c->state == LIFE_WAITING && !c->has_last)
            break;
    }
    return next;
}

enum pod_phase life_phase(const struct life *l)
{
    bool started = false, failed = false;
    if (l->rejected)
        return POD_FAILED;
    for (size_t i = 0; i < l->view->containers_len; i++) {
        const struct life_container *c = &l->containers[i];
        started = started || (is_app(c) && (c->state != LIFE_WAITING || c->has_last));
        failed = failed || (!is_sidecar(c) && c->state == LIFE_EXITED && c->exit_code != 0);
    }
    if (life_is_over(l)) /* one that was ended before it began has not succeeded */
        return failed || !started ? POD_FAILED : POD_SUCCEEDED;
    return started ? POD_RUNNING : POD_PENDING;
}
