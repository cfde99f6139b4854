// SPDX-License-Identifier: Apache-2.0
/*
 *    gang_bind_submit ─► GATHERING ── claims of quorum bound ─► DRY RUN ──── all answered ─► posted
 *      (no claims: at once)  │        (no dry run: posted at once)        │
 *                            │ a member was lost (advance)                  │
 *                            ├──────────────────────────────────────────────┘
 *                            ├── its gangs still have their quorum ─► goes on without it
 *                            └── else, or timeout (expire) ─► dissolved: every member is reported
 *                                     as LOST, and the loop forgets their placements
 *
 * It does not matter which members make the quorum: a gang is posted as soon as it does not need
 * the members whose claims are unbound. These follow later like lone pods (gang_bind_ready).
 *
 * A member is lost when its pod is no longer assumed for this ticket: it was deleted, its claims
 * could not be bound (the loop forgot it when volumes.c said so), or the dry run refused it. The
 * model decides which gangs have their quorum; there members of this batch count as placed.
 */
#include "scheduler/binding/gang_bind.h"

#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/base/vec.h"
#include "scheduler/cache/gangs.h"
#include "scheduler/cache/progress.h"

struct member {
    const char *pod; /* "ns/name" */
    struct kube_binding binding;
    bool claims;      /* waits for its claims */
    bool asked;       /* the dry run was sent */
    bool dryrun_done; /* and answered */
    bool lost;
};

struct batch {
    struct arena arena;
    uint64_t ticket; /* of the first member; the others follow */
    struct member *members;
    size_t len;
    int64_t began_ms, timeout_ms;
    struct part *parts; /* as of the last survey */
    size_t parts_len;
};

/* One gang of the batch. */
struct part {
    const struct gang *gang;
    int32_t unready; /* members whose claims are not bound yet */
};

struct gang_bind {
    struct gang_bind_config config;
    struct VEC(struct batch *) all;
    struct loop_timer timer;
};

static void batch_free(struct batch *u)
{
    struct arena arena = u->arena; /* it contains u */
    arena_deinit(&arena);
}

static struct member *find(const struct gang_bind *b, uint64_t ticket, struct batch **out)
{
    for (size_t i = 0; i < b->all.len; i++) {
        struct batch *u = b->all.items[i];
        if (ticket >= u->ticket && ticket - u->ticket < u->len) {
            *out = u;
            return &u->members[ticket - u->ticket];
        }
    }
    return NULL;
}

static struct cluster_pod *pod_of(const struct gang_bind *b, const struct batch *u, size_t i)
{
    struct cluster_pod *cp = cluster_find_pod(b->config.cluster, u->members[i].pod);
    bool same = cp != NULL && cp->state == CLUSTER_ASSUMED &&
                pod_trace_ticket(b->config.trace, cp) == u->ticket + (uint64_t)i;
    return same ? cp : NULL;
}

static void report(const struct gang_bind *b, const struct batch *u, size_t i,
                   enum binder_outcome outcome, const struct error *why)
{
    struct binder_result *r = mem_new(struct binder_result, 1);
    *r = (struct binder_result){.outcome = outcome,
                                .ticket = u->ticket + (uint64_t)i,
                                .pod = mem_strdup(u->members[i].pod),
                                .node = mem_strdup(u->members[i].binding.node),
                                .error = *why};
    (void)mailbox_post(b->config.results, r);
}

static struct part *part_of(struct batch *u, const struct gang *g)
{
    size_t i = 0;
    while (i < u->parts_len && u->parts[i].gang != g)
        i++;
    if (i == u->parts_len)
        u->parts[u->parts_len++] = (struct part){.gang = g};
    return &u->parts[i];
}

/* Updates the lost members and what each gang still waits for. Ignores deleted pods and gangs; the
 * rest of a gang has its own quorum. false: a refused member is still assumed (counts as
 * placed). */
static bool survey(const struct gang_bind *b, struct batch *u)
{
    bool taken_back = true;
    u->parts_len = 0;
    for (size_t i = 0; i < u->len; i++) {
        struct member *m = &u->members[i];
        const struct cluster_pod *cp = pod_of(b, u, i);
        taken_back &= !m->lost || cp == NULL;
        m->lost = m->lost || cp == NULL;
        if (cp != NULL && cp->gang != NULL)
            part_of(u, cp->gang)->unready += !m->lost && m->claims;
    }
    return taken_back;
}

static const struct gang *find_broken(const struct batch *u)
{
    for (size_t i = 0; i < u->parts_len; i++)
        if (gangs_count_missing(u->parts[i].gang) > 0)
            return u->parts[i].gang;
    return NULL;
}

static bool may_go(const struct batch *u)
{
    for (size_t i = 0; i < u->parts_len; i++)
        if (u->parts[i].unready > 0 && u->parts[i].unready > gangs_count_spare(u->parts[i].gang))
            return false;
    return true;
}

static void dissolve(const struct gang_bind *b, const struct batch *u, const struct error *why)
{
    log_info("gang is not bound", kv("pod", u->members[0].pod), kv("why", why->text));
    for (size_t i = 0; i < u->len; i++)
        if (pod_of(b, u, i) != NULL)
            report(b, u, i, BINDER_LOST, why);
}

/* Reports FAILED, which makes an Event, for members that kept the others waiting. */
static void expire(const struct gang_bind *b, struct batch *u)
{
    struct error why = ERROR_INIT;
    (void)error_set(&why, ERROR_TIMEOUT,
                    "its claims were not bound within %lld s (scheduleTimeoutSeconds of its gang)",
                    (long long)(u->timeout_ms / 1000));
    for (size_t i = 0; i < u->len; i++)
        if (!u->members[i].lost && u->members[i].claims) {
            report(b, u, i, BINDER_FAILED, &why);
            u->members[i].lost = true;
        }
    error_clear(&why);
    (void)error_set(&why, ERROR_CANCELLED, "claims of its gang were not bound in time");
    for (size_t i = 0; i < u->len; i++)
        if (!u->members[i].lost)
            report(b, u, i, BINDER_LOST, &why);
}

static void post(const struct gang_bind *b, const struct batch *u)
{
    for (size_t i = 0; i < u->len; i++)
        if (!u->members[i].lost && !u->members[i].claims)
            binder_submit(b->config.binder, &u->members[i].binding, u->ticket + (uint64_t)i);
}

/* Whether the dry run accepted all ready members; submits those not asked yet. */
static bool is_dryrun_done(const struct gang_bind *b, struct batch *u)
{
    bool all = true;
    for (size_t i = 0; i < u->len; i++) {
        struct member *m = &u->members[i];
        if (m->lost || m->claims)
            continue;
        if (!m->asked)
            bind_dryrun_submit(b->config.dryrun, &m->binding, u->ticket + (uint64_t)i);
        m->asked = true;
        all &= m->dryrun_done;
    }
    return all;
}

static bool advance(struct gang_bind *b, struct batch *u, int64_t now_ms)
{
    bool taken_back = survey(b, u);
    const struct gang *broken = find_broken(u);
    if (broken != NULL) {
        struct error why = ERROR_INIT;
        (void)error_set(&why, ERROR_CANCELLED, "%s lost members before the first was bound",
                        broken->key);
        dissolve(b, u, &why);
        return true;
    }
    if (!may_go(u)) {
        if (now_ms - u->began_ms < u->timeout_ms)
            return false;
        expire(b, u);
        return true;
    }
    if (!taken_back || (b->config.dryrun != NULL && !is_dryrun_done(b, u)))
        return false;
    post(b, u);
    return true;
}

static void on_time(void *arg)
{
    gang_bind_reconcile(arg);
}

void gang_bind_reconcile(struct gang_bind *b)
{
    size_t kept = 0;
    int64_t now_ms = b->all.len > 0 ? clock_mono_ms() : 0, next_ms = INT64_MAX;
    for (size_t i = 0; i < b->all.len; i++) {
        struct batch *u = b->all.items[i];
        if (advance(b, u, now_ms)) {
            batch_free(u);
            continue;
        }
        b->all.items[kept++] = u;
        if (u->began_ms + u->timeout_ms > now_ms) /* or it waits for answers, which arrive */
            next_ms = num_min(next_ms, u->began_ms + u->timeout_ms);
    }
    b->all.len = kept;
    if (next_ms < INT64_MAX)
        loop_timer_set(b->config.loop, &b->timer, next_ms - now_ms, on_time, b);
}

/* The shortest timeout of its gangs. */
static int64_t timeout_of(const struct gang_bind *b, const struct gang_bind_member *members,
                          size_t n)
{
    int64_t least_ms = INT64_MAX;
    const struct gang *last = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct gang *g = members[i].pod->gang;
        if (g == last || g == NULL)
            continue;
        last = g;
        least_ms = num_min(least_ms, progress_timeout_ms(gangs_group_of(b->config.cluster, g)));
    }
    return least_ms < INT64_MAX ? least_ms : PROGRESS_TIMEOUT_MS;
}

void gang_bind_submit(struct gang_bind *b, const struct gang_bind_member *members, size_t n)
{
    struct arena arena;
    arena_init(&arena, 1024);
    struct batch *u = arena_new(&arena, struct batch, 1);
    u->ticket = members[0].ticket;
    u->members = arena_new(&arena, struct member, n);
    u->len = n;
    u->parts = arena_new(&arena, struct part, n);
    u->began_ms = clock_mono_ms();
    u->timeout_ms = timeout_of(b, members, n);
    for (size_t i = 0; i < n; i++) {
        const struct kube_binding *from = &members[i].binding;
        u->members[i] = (struct member){.pod = arena_strdup(&arena, members[i].pod->pod->key),
                                        .binding = kube_binding_copy(from, &arena),
                                        .claims = members[i].pod->volumes != NULL};
    }
    u->arena = arena;
    vec_push(&b->all, u);
    for (size_t i = 0; i < n; i++)
        if (u->members[i].claims)
            volumes_submit(b->config.volumes, members[i].pod, &u->members[i].binding,
                           members[i].ticket);
    gang_bind_reconcile(b);
}

void gang_bind_ready(struct gang_bind *b, const struct kube_binding *binding, uint64_t ticket)
{
    struct batch *u;
    struct member *m = find(b, ticket, &u);
    if (m == NULL) { /* a lone pod */
        binder_submit(b->config.binder, binding, ticket);
        return;
    }
    m->claims = false;
    gang_bind_reconcile(b);
}

void gang_bind_dryrun_done(struct gang_bind *b, const struct bind_dryrun_result *r)
{
    struct batch *u;
    struct member *m = find(b, r->ticket, &u);
    if (m == NULL)
        return; /* dissolved meanwhile */
    m->dryrun_done = true;
    if (r->refused) {
        m->lost = true;
        report(b, u, (size_t)(r->ticket - u->ticket), BINDER_FAILED, &r->error);
        return; /* the loop forgets it, and calls gang_bind_reconcile */
    }
    gang_bind_reconcile(b);
}

size_t gang_bind_pending(const struct gang_bind *b)
{
    return b->all.len;
}

struct gang_bind *gang_bind_new(const struct gang_bind_config *c)
{
    struct gang_bind *b = mem_new(struct gang_bind, 1);
    b->config = *c;
    return b;
}

void gang_bind_free(struct gang_bind *b)
{
    if (b == NULL)
        return;
    loop_timer_cancel(b->config.loop, &b->timer);
    for (size_t i = 0; i < b->all.len; i++)
        batch_free(b->all.items[i]);
    vec_deinit(&b->all);
    free(b);
}
