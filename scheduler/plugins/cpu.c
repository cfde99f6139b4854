// SPDX-License-Identifier: Apache-2.0
/*
 * cpu - CPUs of their own for pods with the annotation cpuset-scheduler. The book of the node counts and chooses (cpu_book.h). Behind gpu in the table: the CPUs are chosen on the NUMA node of the cards
 * that the pod has just got. Where that has not enough of them, a pod that insists on a NUMA policy gets other cards, of a NUMA node that has; other pods get another card only if that is just like the one that
 * was chosen, and otherwise keep the cards that fit the cluster best.
 */
#include "lib/base/str.h"
#include "scheduler/accounts/cpu_book.h"
#include "scheduler/cache/gangs.h"
#include "scheduler/cache/nominations.h"
#include "scheduler/cache/peers.h"
#include "scheduler/plugins/all.h"
#include "scheduler/framework/class_key.h"

/* What is left for the pod when those that wait here before it have got their CPUs: the node's book itself, or one in *room. */
static const struct cpu_book *book_for(const struct plugin_ask *ask,
                                       const struct cluster_node *node, struct arena *a,
                                       struct cpu_book *room)
{
    const struct cluster_pod *other;
    const struct cpu_book *b = &node->cpus;
    for (size_t i = 0; (other = nominations_next(ask->cluster, ask->pod, node, &i)) != NULL;) {
        struct cpuclaim claim;
        if (other->cpu == NULL)
            continue;
        if (b != room)
            cpu_book_try_on(b, a, room);
        b = room;
        cpu_book_expect(room, other->pod, other->cpu, a, &claim);
    }
    return b;
}

static void explain(const struct cpu_book *b, const struct cpu_book_why *no, struct reason *why)
{
    switch (no->no) {
    case CPU_BOOK_FITS:
    case CPU_BOOK_NO_TOPOLOGY:
        *why = (struct reason){.kind = REASON_NO_TOPOLOGY,
                               .what = b->shape != NULL ? b->shape->problem : "none published"};
        break;
    case CPU_BOOK_CLOSED:
        *why = (struct reason){.kind = REASON_CPUS_CLOSED, .what = b->shape->closed};
        break;
    case CPU_BOOK_TOO_FEW:
        *why = (struct reason){.kind = REASON_CPUS, .want = no->want, .free = no->free};
        break;
    case CPU_BOOK_NO_NUMA:
        *why = (struct reason){.kind = REASON_CPUS_NUMA, .want = no->want, .free = no->free};
        break;
    case CPU_BOOK_TOO_MANY_NUMA:
        *why = (struct reason){.kind = REASON_CPUS_SPLIT, .want = no->want, .free = -no->free};
        break;
    case CPU_BOOK_ON_LOAN:
        *why = (struct reason){.kind = REASON_CPUS_LENT, .want = no->want, .free = no->free};
        break;
    }
}

static bool filter(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                   struct reason *why)
{
    struct cpu_book room;
    struct cpu_book_why no;
    if (ask->pod->cpu == NULL)
        return true;
    const struct cpu_book *b = book_for(ask, node, a, &room);
    if (cpu_book_has_room(b, ask->pod->cpu, why != NULL ? &no : NULL))
        return true;
    if (why != NULL)
        explain(b, &no, why);
    return false;
}

/* A NUMA node that has the CPUs and the cards: all the better. */
static bool has_both(const struct plugin_ask *ask, const struct cluster_node *node)
{
    const struct cpus_layout *l = &node->cpus.shape->layout;
    struct arena a;
    bool found = false;
    arena_init(&a, 0);
    for (size_t i = 0; i < l->numa_len && !found; i++) {
        struct claim claim = {0};
        found = cpu_book_fits_on(&node->cpus, ask->pod->cpu, i) &&
                plugin_gpu_choose_on(ask, node, l->numa_id[i], &a, &claim);
    }
    arena_deinit(&a);
    return found;
}

static int64_t score(const struct plugin_ask *ask, const struct cluster_node *node)
{
    if (ask->pod->cpu == NULL)
        return 0;
    int64_t points = cpu_book_score(&node->cpus, ask->pod->cpu);
    return points > 0 && ask->pod->gpu.any && !has_both(ask, node) ? (points + 1) / 2 : points;
}

/* The NUMA nodes of the cards. */
static struct cpu_book_near near_cards(const struct cluster_node *node, const struct claim *claim,
                                       struct arena *a)
{
    size_t len = 0;
    int32_t *numa = arena_new(a, int32_t, claim->shares_len + claim->group_len);
    for (size_t i = 0; i < claim->shares_len + claim->group_len; i++) {
        int32_t card =
            i < claim->shares_len ? claim->shares[i].card : claim->group[i - claim->shares_len];
        int32_t at = ledger_find_card(&node->ledger, card);
        if (at >= 0 && node->ledger.inventory.cards[at].numa >= 0)
            numa[len++] = node->ledger.inventory.cards[at].numa;
    }
    return (struct cpu_book_near){.numa = numa, .len = len};
}

/* Whether all CPUs are where the cards are; and if the pod has to be on one NUMA node, the cards too. */
static bool is_near(const struct cpuclaim *cpus, const struct cpu_book_near *near,
                    const struct cpu_request *r)
{
    for (size_t i = 1; r->numa == CPU_REQUEST_SINGLE && i < near->len; i++)
        if (near->numa[i] != near->numa[0])
            return false;
    for (size_t i = 0; i < cpus->len; i++) {
        bool found = false;
        for (size_t k = 0; k < near->len && !found; k++)
            found = near->numa[k] == cpus->parts[i].numa;
        if (!found)
            return false;
    }
    return true;
}

/* The one card that a claim is on; -1: there are several. */
static int32_t only_card(const struct claim *c)
{
    int32_t card = c->shares_len > 0 ? c->shares[0].card : c->group_len == 1 ? c->group[0] : -1;
    for (size_t i = 1; i < c->shares_len; i++)
        if (c->shares[i].card != card)
            return -1;
    return card;
}

/* To everybody else the one is as good as the other. */
static bool are_alike(const struct ledger *l, int32_t x, int32_t y)
{
    int32_t a = ledger_find_card(l, x), b = ledger_find_card(l, y);
    if (a < 0 || b < 0)
        return false;
    const struct ledger_card *p = &l->cards[a], *q = &l->cards[b];
    return p->used_gib == q->used_gib && p->used_percent == q->used_percent &&
           p->whole_holders == q->whole_holders &&
           gpu_card_gib(&l->inventory.cards[a]) == gpu_card_gib(&l->inventory.cards[b]) &&
           str_eq(l->inventory.cards[a].model, l->inventory.cards[b].model);
}

static bool may_move(const struct plugin_ask *ask, const struct cluster_node *node,
                     const struct claim *from, const struct claim *to)
{
    return ask->pod->cpu->insists || (!peers_are(ask->pod, ask->pod) &&
                                      are_alike(&node->ledger, only_card(from), only_card(to)));
}

/* Other cards: those of a NUMA node that has the CPUs. Where there is none the claim stays as it is. */
static void move_cards(const struct plugin_ask *ask, const struct cluster_node *node,
                       const struct cpu_book *b, struct arena *a, struct claim *claim)
{
    const struct cpus_layout *l = &b->shape->layout;
    const struct cpu_request *r = ask->pod->cpu;
    for (size_t i = 0; i < l->numa_len; i++) {
        int32_t numa = l->numa_id[i];
        struct cpu_book_near near = {.numa = &numa, .len = 1};
        struct claim other = *claim;
        if (plugin_gpu_choose_on(ask, node, numa, a, &other) &&
            may_move(ask, node, claim, &other) &&
            cpu_book_choose(b, ask->pod->pod, r, &near, a, &other.cpus) &&
            is_near(&other.cpus, &near, r)) {
            *claim = other;
            return;
        }
    }
}

static bool reserve(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                    struct claim *claim)
{
    struct cpu_book room;
    const struct cpu_request *r = ask->pod->cpu;
    if (r == NULL)
        return true;
    const struct cpu_book *b = book_for(ask, node, a, &room);
    struct cpu_book_near near = near_cards(node, claim, a);
    if (!cpu_book_choose(b, ask->pod->pod, r, &near, a, &claim->cpus))
        return false;
    if (near.len > 0 && !is_near(&claim->cpus, &near, r))
        move_cards(ask, node, b, a, claim);
    if (ask->pod->gang == NULL || gangs_is_lone(ask->pod->gang)) /* else loans_lend does it */
        cpu_book_lend(b, ask->pod->pod, r, a, &claim->cpus);
    return true;
}

static void lend(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                 struct cpuclaim *c)
{
    struct cpu_book room;
    cpu_book_lend(book_for(ask, node, a, &room), ask->pod->pod, ask->pod->cpu, a, c);
}

static bool applies(const struct cluster_pod *pod)
{
    return pod->cpu != NULL;
}

static void key(const struct plugin_ask *ask, struct strbuf *out)
{
    const struct cpu_request *r = ask->pod->cpu;
    if (r == NULL)
        return;
    strbuf_addc(out, 'U');
    class_key_number(out, r->cpus);
    class_key_number(out, r->numa);
    class_key_number(out, r->apart);
    class_key_number(out, r->insists);
    class_key_number(out, r->burst);
    class_key_number(out, r->shared);
}

const struct plugin plugin_cpu = {.name = "cpu",
                                  .key = key,
                                  .wakes = EVENT_NODE_CPU | EVENT_POD_GONE,
                                  .depends = PLUGIN_HELD,
                                  .score_depends = PLUGIN_HELD,
                                  .applies = applies,
                                  .filter = filter,
                                  .score = score,
                                  .weight = 4,
                                  .reserve = reserve,
                                  .lend = lend};
