// SPDX-License-Identifier: Apache-2.0
/*
 *      bursts_submit ─► GATHERING ── all claims bound ─► REHEARSING ── all answered ─► posted: the burst is over
 *        (no claims: at once)  │      (no rehearsal: posted at once)  │
 *                              │ a member was lost (look_at)          │
 *                              ├──────────────────────────────────────┘
 *                              ├── its gangs still have their quorum ─► goes on without it
 *                              └── else ─► dissolved: every member is reported as LOST, which the drive takes back
 *
 * A member is lost when its pod is not assumed for this ticket any more: it was deleted, its claims could not be bound (then the drive took it back when volumes.c said
 * so), or it was refused in the rehearsal. Which gangs have their quorum is asked of the model, where members of this burst count as placed.
 */
#include "scheduler/bursts.h"

#include <stdlib.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/base/vec.h"
#include "scheduler/gangs.h"

struct member {
    const char *pod; /* "ns/name" */
    struct kube_binding binding;
    bool claims;    /* waits for its claims */
    bool rehearsed; /* the server has answered */
    bool lost;
};

struct burst {
    struct arena arena;
    uint64_t ticket; /* of the first member; the others follow */
    struct member *members;
    size_t len;
    bool rehearsing;
};

struct bursts {
    struct bursts_config config;
    struct VEC(struct burst *) all;
};

static void burst_free(struct burst *u)
{
    struct arena arena = u->arena; /* it lies in it */
    arena_deinit(&arena);
}

static struct member *find(const struct bursts *b, uint64_t ticket, struct burst **out)
{
    for (size_t i = 0; i < b->all.len; i++) {
        struct burst *u = b->all.items[i];
        if (ticket >= u->ticket && ticket - u->ticket < u->len) {
            *out = u;
            return &u->members[ticket - u->ticket];
        }
    }
    return NULL;
}

static struct cluster_pod *pod_of(const struct bursts *b, const struct burst *u, size_t i)
{
    struct cluster_pod *cp = cluster_find_pod(b->config.cluster, u->members[i].pod);
    bool same =
        cp != NULL && cp->state == CLUSTER_ASSUMED && cp->bind_ticket == u->ticket + (uint64_t)i;
    return same ? cp : NULL;
}

static void report(const struct bursts *b, const struct burst *u, size_t i,
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

/* Pods are deleted, and gangs with them: what is gone has no say, and what is left of a gang has its own quorum. */
static const struct gang *find_broken(const struct bursts *b, const struct burst *u)
{
    for (size_t i = 0; i < u->len; i++) {
        const struct cluster_pod *cp = pod_of(b, u, i);
        if (cp != NULL && cp->gang != NULL && gangs_count_missing(cp->gang) > 0)
            return cp->gang;
    }
    return NULL;
}

static void dissolve(const struct bursts *b, const struct burst *u, const struct gang *broken)
{
    struct error why = ERROR_INIT;
    (void)error_set(&why, ERROR_CANCELLED, "%s lost members before the first was bound",
                    broken->key);
    log_info("gang is not bound", kv("gang", broken->key), kv("why", why.text));
    for (size_t i = 0; i < u->len; i++)
        if (pod_of(b, u, i) != NULL)
            report(b, u, i, BINDER_LOST, &why);
}

static void post(const struct bursts *b, const struct burst *u)
{
    for (size_t i = 0; i < u->len; i++)
        if (!u->members[i].lost)
            binder_submit(b->config.binder, &u->members[i].binding, u->ticket + (uint64_t)i);
}

static void rehearse(const struct bursts *b, struct burst *u)
{
    u->rehearsing = true;
    for (size_t i = 0; i < u->len; i++)
        if (!u->members[i].lost)
            rehearsal_submit(b->config.rehearsal, &u->members[i].binding, u->ticket + (uint64_t)i);
}

/* Whether the burst is over. */
static bool look_at(struct bursts *b, struct burst *u)
{
    bool claims = false, answers = false, taken_back = true;
    for (size_t i = 0; i < u->len; i++) {
        struct member *m = &u->members[i];
        bool assumed = pod_of(b, u, i) != NULL;
        taken_back &= !m->lost || !assumed; /* one that was refused still counts as placed */
        m->lost = m->lost || !assumed;
        claims |= !m->lost && m->claims;
        answers |= !m->lost && !m->rehearsed;
    }
    const struct gang *broken = find_broken(b, u);
    if (broken != NULL) {
        dissolve(b, u, broken);
        return true;
    }
    if (claims || !taken_back)
        return false;
    if (b->config.rehearsal != NULL && !u->rehearsing)
        rehearse(b, u);
    if (u->rehearsing && answers)
        return false;
    post(b, u);
    return true;
}

void bursts_look(struct bursts *b)
{
    size_t kept = 0;
    for (size_t i = 0; i < b->all.len; i++) {
        struct burst *u = b->all.items[i];
        if (look_at(b, u))
            burst_free(u);
        else
            b->all.items[kept++] = u;
    }
    b->all.len = kept;
}

void bursts_submit(struct bursts *b, const struct bursts_member *members, size_t n)
{
    struct arena arena;
    arena_init(&arena, 1024);
    struct burst *u = arena_new(&arena, struct burst, 1);
    u->ticket = members[0].ticket;
    u->members = arena_new(&arena, struct member, n);
    u->len = n;
    for (size_t i = 0; i < n; i++) {
        const struct kube_binding *from = &members[i].binding;
        u->members[i] =
            (struct member){.pod = arena_strdup(&arena, members[i].pod->pod->key),
                            .binding = {.ns = arena_strdup(&arena, from->ns),
                                        .pod = arena_strdup(&arena, from->pod),
                                        .uid = arena_strdup(&arena, from->uid),
                                        .node = arena_strdup(&arena, from->node),
                                        .annotations = labels_copy(&from->annotations, &arena)},
                            .claims = members[i].pod->volumes != NULL};
    }
    u->arena = arena;
    vec_push(&b->all, u);
    for (size_t i = 0; i < n; i++)
        if (u->members[i].claims)
            volumes_submit(b->config.volumes, members[i].pod, &u->members[i].binding,
                           members[i].ticket);
    bursts_look(b);
}

void bursts_ready(struct bursts *b, const struct kube_binding *binding, uint64_t ticket)
{
    struct burst *u;
    struct member *m = find(b, ticket, &u);
    if (m == NULL) { /* a pod that goes alone */
        binder_submit(b->config.binder, binding, ticket);
        return;
    }
    m->claims = false;
    bursts_look(b);
}

void bursts_rehearsed(struct bursts *b, const struct rehearsal_result *r)
{
    struct burst *u;
    struct member *m = find(b, r->ticket, &u);
    if (m == NULL)
        return; /* dissolved meanwhile */
    m->rehearsed = true;
    if (r->refused) {
        m->lost = true;
        report(b, u, (size_t)(r->ticket - u->ticket), BINDER_FAILED, &r->error);
        return; /* the drive takes it back, and looks */
    }
    bursts_look(b);
}

size_t bursts_pending(const struct bursts *b)
{
    return b->all.len;
}

struct bursts *bursts_new(const struct bursts_config *c)
{
    struct bursts *b = mem_new(struct bursts, 1);
    b->config = *c;
    return b;
}

void bursts_free(struct bursts *b)
{
    if (b == NULL)
        return;
    for (size_t i = 0; i < b->all.len; i++)
        burst_free(b->all.items[i]);
    vec_deinit(&b->all);
    free(b);
}
