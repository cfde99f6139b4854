// SPDX-License-Identifier: Apache-2.0
/*
 * The search for the best k cards.
 *
 * The weakest link decides first, so link kinds are tried from the best down: at the first kind
 * that has k cards linked pairwise at least that well, all such sets are compared by the rest of
 * the order. Cards are tried in ascending order, so that of equal choices the lowest cards win.
 *
 * Most machines are symmetric: eight cards behind one switch make 70 equal choices of four. Two
 * cards are twins if exchanging them changes nothing that is compared; once one is skipped, its
 * later twins are not tried instead. That leaves a handful of choices on real machines, and a step
 * limit bounds the cost of a contrived matrix.
 */
#include "lib/model/links.h"

#include <string.h>

#include "lib/base/num.h"
#include "lib/model/topology.h"

enum {
    SEARCH_STEPS = 1 << LINKS_EXACT, /* at least the number of sets of so many cards */
    ISLAND_STEPS = 4096
};

static uint64_t bit(size_t i)
{
    return UINT64_C(1) << i;
}

static size_t count_of(uint64_t set)
{
    return (size_t)__builtin_popcountll(set);
}

static size_t lowest(uint64_t set)
{
    return (size_t)__builtin_ctzll(set);
}

static uint64_t above(size_t i)
{
    return ~(bit(i) | (bit(i) - 1));
}

/* "X" between two different cards is ignored. */
static int32_t score_of(const char *link)
{
    int32_t score = topology_link_score(link);
    return score == INT32_MAX ? 0 : score;
}

void links_of(const struct gpu_inventory *inv, struct links *out)
{
    out->len = inv->cards_len;
    for (size_t i = 0; i < out->len; i++) {
        out->numa[i] = inv->cards[i].numa;
        out->score[i][i] = 0;
        for (size_t k = 0; k < i; k++) {
            int32_t there = inv->links ? score_of(inv->links[i * out->len + k]) : 0;
            int32_t back = inv->links ? score_of(inv->links[k * out->len + i]) : 0;
            out->score[i][k] = out->score[k][i] = there < back ? there : back;
        }
    }
}

struct parts {
    uint64_t set[GPU_CARDS_MAX];
    size_t len;
};

struct level {
    int32_t score;
    uint64_t joined[GPU_CARDS_MAX]; /* per card: the cards linked to it at least this well */
    struct parts islands;           /* of all free cards */
    /* links are transitive: the rest of an island is one island */
    bool firm;
    bool plain; /* one island, or single cards only: every choice leaves the same */
};

struct search {
    const struct links *links;
    const struct links_ask *ask;
    uint64_t free;
    struct level levels[LINKS_LEVELS + 1]; /* best first */
    size_t levels_len;
    struct parts numa;
    uint64_t twins[GPU_CARDS_MAX];
    int64_t steps;
    uint64_t best;
    int64_t best_sum;
    /* its remainder at levels that are not firm, computed on demand */
    struct parts best_left[LINKS_LEVELS];
    uint32_t best_known;
};

static void note_level(struct search *s, int32_t score)
{
    size_t at = 0;
    while (at < s->levels_len && s->levels[at].score > score)
        at++;
    if ((at < s->levels_len && s->levels[at].score == score) || at == LINKS_LEVELS)
        return;
    if (s->levels_len < LINKS_LEVELS)
        s->levels_len++;
    for (size_t i = s->levels_len - 1; i > at; i--)
        s->levels[i].score = s->levels[i - 1].score;
    s->levels[at].score = score;
}

static void find_levels(struct search *s)
{
    for (uint64_t rest = s->free; rest != 0; rest &= rest - 1) {
        size_t i = lowest(rest);
        for (uint64_t others = rest & above(i); others != 0; others &= others - 1)
            note_level(s, s->links->score[i][lowest(others)]);
    }
}

static void join(struct search *s, struct level *l)
{
    for (uint64_t rest = s->free; rest != 0; rest &= rest - 1) {
        size_t i = lowest(rest);
        l->joined[i] = 0;
        for (uint64_t others = s->free & ~bit(i); others != 0; others &= others - 1)
            if (s->links->score[i][lowest(others)] >= l->score)
                l->joined[i] |= bit(lowest(others));
    }
}

struct island {
    const struct level *level;
    uint64_t best;
    int64_t steps;
};

/* The largest set linked pairwise; of equal sizes the first found. */
static void grow_island(struct island *f, uint64_t set, uint64_t candidates)
{
    if (count_of(set) > count_of(f->best))
        f->best = set;
    while (candidates != 0 && count_of(set) + count_of(candidates) > count_of(f->best)) {
        size_t i = lowest(candidates);
        candidates &= candidates - 1;
        if (f->steps-- <= 0)
            return;
        grow_island(f, set | bit(i), candidates & f->level->joined[i]);
    }
}

static void divide(const struct level *l, uint64_t cards, struct parts *out)
{
    out->len = 0;
    while (cards != 0) {
        struct island f = {.level = l, .steps = ISLAND_STEPS};
        grow_island(&f, 0, cards);
        out->set[out->len++] = f.best;
        cards &= ~f.best;
    }
}

static void find_islands(struct search *s)
{
    for (size_t i = 0; i < s->levels_len; i++) {
        struct level *l = &s->levels[i];
        join(s, l);
        l->islands.len = 0;
        divide(l, s->free, &l->islands);
        l->plain = l->islands.len == 1 || l->islands.len == count_of(s->free);
        l->firm = true;
        for (size_t k = 0; k < l->islands.len; k++)
            for (uint64_t rest = l->islands.set[k]; rest != 0; rest &= rest - 1)
                l->firm &= (l->joined[lowest(rest)] | bit(lowest(rest))) == l->islands.set[k];
    }
}

static void find_numa(struct search *s)
{
    s->numa.len = 0;
    for (uint64_t rest = s->free; rest != 0;) {
        uint64_t set = 0;
        for (uint64_t r = rest; r != 0; r &= r - 1)
            if (s->links->numa[lowest(r)] == s->links->numa[lowest(rest)])
                set |= bit(lowest(r));
        s->numa.set[s->numa.len++] = set;
        rest &= ~set;
    }
}

static bool are_twins(const struct search *s, size_t x, size_t y)
{
    const struct links *l = s->links;
    uint64_t pair = bit(x) | bit(y);
    if (l->numa[x] != l->numa[y] || (s->ask->near & pair) == bit(x) ||
        (s->ask->near & pair) == bit(y) || (s->ask->must & pair) != 0)
        return false;
    for (uint64_t rest = s->free & ~pair; rest != 0; rest &= rest - 1)
        if (l->score[x][lowest(rest)] != l->score[y][lowest(rest)])
            return false;
    return true;
}

/* If islands are not firm their division depends on the order of the cards, so no two are twins. */
static void find_twins(struct search *s)
{
    bool firm = true;
    for (size_t i = 0; i < s->levels_len; i++)
        firm &= s->levels[i].firm;
    for (uint64_t rest = s->free; rest != 0; rest &= rest - 1) {
        size_t i = lowest(rest);
        s->twins[i] = 0;
        for (uint64_t later = firm ? rest & above(i) : 0; later != 0; later &= later - 1)
            if (are_twins(s, i, lowest(later)))
                s->twins[i] |= bit(lowest(later));
    }
}

/* Compares the sizes of two sets' parts: the larger part decides, then the number of parts. > 0: x
 * is better. */
static int compare_parts(const struct parts *p, uint64_t x, const struct parts *q, uint64_t y)
{
    int8_t more[GPU_CARDS_MAX + 1] = {0};
    size_t top = 0;
    for (size_t i = 0; i < p->len; i++) {
        size_t n = count_of(p->set[i] & x);
        more[n]++;
        top = n > top ? n : top;
    }
    for (size_t i = 0; i < q->len; i++) {
        size_t n = count_of(q->set[i] & y);
        more[n]--;
        top = n > top ? n : top;
    }
    while (top > 0 && more[top] == 0)
        top--;
    return top == 0 ? 0 : more[top];
}

/* Compares what a choice leaves of a level's islands with what the best one leaves. */
static int compare_islands(struct search *s, size_t level, uint64_t set)
{
    const struct level *l = &s->levels[level];
    uint64_t left = s->free & ~set, best_left = s->free & ~s->best;
    struct parts parts;
    if (l->plain)
        return 0;
    if (l->firm)
        return compare_parts(&l->islands, left, &l->islands, best_left);
    if (!(s->best_known & 1U << level))
        divide(l, best_left, &s->best_left[level]);
    s->best_known |= 1U << level;
    divide(l, left, &parts);
    return compare_parts(&parts, left, &s->best_left[level], best_left);
}

static int64_t numa_pairs(const struct search *s, uint64_t set)
{
    int64_t pairs = 0;
    for (size_t i = 0; i < s->numa.len; i++) {
        int64_t n = (int64_t)count_of(s->numa.set[i] & set);
        if (s->links->numa[lowest(s->numa.set[i])] >= 0)
            pairs += n * (n - 1) / 2;
    }
    return pairs;
}

/* Whether a choice is better than the best one, which has the same links. */
static bool is_better(struct search *s, uint64_t set)
{
    for (size_t i = 0; i < s->levels_len; i++) {
        int c = compare_islands(s, i, set);
        if (c != 0)
            return c > 0;
    }
    size_t near = count_of(set & s->ask->near), best_near = count_of(s->best & s->ask->near);
    if (near != best_near)
        return near > best_near;
    int64_t pairs = numa_pairs(s, set), best_pairs = numa_pairs(s, s->best);
    if (pairs != best_pairs)
        return pairs > best_pairs;
    return compare_parts(&s->numa, s->free & ~set, &s->numa, s->free & ~s->best) > 0;
}

static int64_t links_with(const struct search *s, size_t card, uint64_t set)
{
    int64_t sum = 0;
    for (; set != 0; set &= set - 1)
        sum += s->links->score[card][lowest(set)];
    return sum;
}

/* Whether adding cards, each pair with the best link, could still reach the best sum. */
static bool is_worth_it(const struct search *s, size_t have, int64_t sum)
{
    int64_t k = (int64_t)s->ask->count, n = (int64_t)have;
    int64_t pairs = k * (k - 1) / 2 - n * (n - 1) / 2;
    return s->best == 0 || sum + pairs * s->levels[0].score >= s->best_sum;
}

static void extend(struct search *s, const struct level *l, uint64_t set, uint64_t candidates,
                   int64_t sum)
{
    size_t have = count_of(set);
    if (have == s->ask->count) {
        if (s->best == 0 || sum > s->best_sum || (sum == s->best_sum && is_better(s, set))) {
            s->best = set;
            s->best_sum = sum;
            s->best_known = 0;
        }
        return;
    }
    while (have + count_of(candidates) >= s->ask->count && is_worth_it(s, have, sum)) {
        size_t i = lowest(candidates);
        candidates &= candidates - 1;
        if (s->steps-- <= 0)
            return;
        extend(s, l, set | bit(i), candidates & l->joined[i], sum + links_with(s, i, set));
        candidates &= ~s->twins[i];
    }
}

static void search_level(struct search *s, const struct level *l)
{
    uint64_t must = s->ask->must, candidates = s->free & ~must;
    int64_t sum = 0;
    s->steps = SEARCH_STEPS;
    for (uint64_t rest = must; rest != 0; rest &= rest - 1) {
        size_t i = lowest(rest);
        if ((must & ~bit(i) & ~l->joined[i]) != 0)
            return; /* the mandatory cards are not linked that well */
        candidates &= l->joined[i];
        sum += links_with(s, i, must & above(i));
    }
    extend(s, l, must, candidates, sum);
}

static void search(struct search *s)
{
    find_levels(s);
    find_islands(s);
    find_numa(s);
    find_twins(s);
    for (size_t i = 0; i < s->levels_len && s->best == 0; i++)
        search_level(s, &s->levels[i]);
    if (s->best != 0)
        return;
    struct level *rest = &s->levels[s->levels_len]; /* kinds beyond LINKS_LEVELS share one level */
    rest->score = 0;
    join(s, rest);
    search_level(s, rest);
}

uint64_t links_choose(const struct links *l, const struct links_ask *ask)
{
    uint64_t all = l->len < GPU_CARDS_MAX ? bit(l->len) - 1 : UINT64_MAX;
    struct search s;
    s.links = l;
    s.ask = ask;
    s.free = (ask->free | ask->must) & all;
    s.levels_len = 0;
    s.best = 0;
    s.best_known = 0;
    if (ask->count == 0 || (ask->must & ~all) != 0 || count_of(ask->must) > ask->count ||
        count_of(s.free) < ask->count)
        return 0;
    if (count_of(s.free) == ask->count)
        return s.free;
    search(&s);
    return s.best;
}
