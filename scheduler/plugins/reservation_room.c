// SPDX-License-Identifier: Apache-2.0
#include "scheduler/plugins/reservation_room.h"

#include "lib/base/num.h"
#include "scheduler/accounts/ledger.h"
#include "scheduler/cache/expected_end.h"

static bool outlasts(const struct cluster *c, const struct reservation *r,
                     const struct cluster_pod *cp)
{
    return (cp->gang != NULL && cp->gang->kept == r) ||
           expected_end_of(c, cp, r->made_ms) > r->start_ms;
}

/* The members that still wait: they are looked up, since any of them may have gone. */
static const struct cluster_pod *member(const struct cluster *c, const struct reservation_node *at,
                                        size_t i)
{
    const struct cluster_pod *cp = cluster_find_pod(c, at->members.items[i]);
    return cp != NULL && cp->state == CLUSTER_PENDING ? cp : NULL;
}

static bool has_room(int64_t want, int64_t total, int64_t held)
{
    return want == 0 || want <= num_sub_sat(total, held);
}

static bool amounts_fit(const struct amounts *want, const struct amounts *total,
                        const struct amounts *held)
{
    if (!has_room(want->pods, total->pods, held->pods) ||
        !has_room(want->cpu_milli, total->cpu_milli, held->cpu_milli) ||
        !has_room(want->memory_bytes, total->memory_bytes, held->memory_bytes) ||
        !has_room(want->ephemeral_bytes, total->ephemeral_bytes, held->ephemeral_bytes))
        return false;
    for (uint32_t i = 0; i < want->extra_len; i++) {
        int64_t offered = 0, taken = 0;
        (void)amounts_get(total, want->extra[i].id, &offered);
        (void)amounts_get(held, want->extra[i].id, &taken);
        if (!has_room(want->extra[i].value, offered, taken))
            return false;
    }
    return true;
}

/* Who is there at the start, the members among them. */
static bool amounts_beside(const struct cluster *c, const struct reservation *r,
                           const struct reservation_node *at, const struct cluster_pod *pod,
                           const struct cluster_node *node)
{
    struct amounts held = {0};
    const struct cluster_pod *cp;
    for (size_t i = 0; i < node->pods.len; i++)
        if (outlasts(c, r, node->pods.items[i]))
            amounts_account(&held, &node->pods.items[i]->request, 1);
    for (size_t i = 0; i < at->members.len; i++)
        if ((cp = member(c, at, i)) != NULL)
            amounts_account(&held, &cp->request, 1);
    bool fits = amounts_fit(&pod->request, &node->allocatable, &held);
    amounts_deinit(&held);
    return fits;
}

/* The same for cards. Which card the pod gets is not decided here: where cards differ, or are shared, it may get one that the members would have liked. */
static bool cards_beside(const struct cluster *c, const struct reservation *r,
                         const struct reservation_node *at, const struct cluster_pod *pod,
                         const struct cluster_node *node)
{
    struct ledger room;
    struct ledger_why no;
    struct arena a;
    const struct cluster_pod *cp;
    if (!pod->gpu.any)
        return true;
    arena_init(&a, 0);
    ledger_try_on(&node->ledger, &a, &room);
    for (size_t i = 0; i < node->pods.len; i++) {
        cp = node->pods.items[i];
        if (!outlasts(c, r, cp))
            ledger_account(&room, &cp->claim, cp->claim_trusted, &cp->gpu, -1);
    }
    for (size_t i = 0; i < at->members.len; i++) {
        struct claim claim = {0};
        if ((cp = member(c, at, i)) == NULL || !cp->gpu.any)
            continue;
        bool known = ledger_choose(&room, &cp->gpu, &a, &claim, &no);
        ledger_account(&room, &claim, known, &cp->gpu, 1);
    }
    bool fits = ledger_choose(&room, &pod->gpu, &a, NULL, &no);
    arena_deinit(&a);
    return fits;
}

static bool cpus_beside(const struct cluster *c, const struct reservation *r,
                        const struct reservation_node *at, const struct cluster_pod *pod,
                        const struct cluster_node *node)
{
    struct cpu_book room;
    struct arena a;
    const struct cluster_pod *cp;
    struct cpuclaim claim;
    if (pod->cpu == NULL)
        return true;
    arena_init(&a, 0);
    cpu_book_try_on(&node->cpus, &a, &room);
    for (size_t i = 0; i < node->pods.len; i++) {
        cp = node->pods.items[i];
        if (!outlasts(c, r, cp))
            cpu_book_account(&room, &cp->claim.cpus, cp->cpu, -1);
    }
    for (size_t i = 0; i < at->members.len; i++)
        if ((cp = member(c, at, i)) != NULL && cp->cpu != NULL)
            cpu_book_expect(&room, cp->pod, cp->cpu, &a, &claim);
    bool fits = cpu_book_has_room(&room, pod->cpu, NULL);
    arena_deinit(&a);
    return fits;
}

bool reservation_room_allows(const struct cluster *c, const struct cluster_pod *pod,
                             const struct cluster_node *node, struct reason *why)
{
    for (size_t i = 0; node->reserved > 0 && i < c->reservations->items.len; i++) {
        const struct reservation *r = c->reservations->items.items[i];
        const struct reservation_node *at = map_get(&r->nodes, node->name);
        if (at == NULL || pod->pod->priority > r->priority ||
            (pod->gang != NULL && pod->gang->kept == r))
            continue;
        int64_t end_ms = num_add_sat(c->reservations->clock_ms, expected_end_runtime(c, pod));
        if (end_ms <= r->start_ms ||
            (amounts_beside(c, r, at, pod, node) && cards_beside(c, r, at, pod, node) &&
             cpus_beside(c, r, at, pod, node)))
            continue;
        if (why != NULL)
            *why = (struct reason){.kind = REASON_RESERVED, .what = r->what};
        return false;
    }
    return true;
}
