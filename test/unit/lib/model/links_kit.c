// SPDX-License-Identifier: Apache-2.0
#include "test/unit/lib/model/links_kit.h"

#include <string.h>

#include "lib/base/num.h"
#include "lib/base/str.h"

static int size_of(uint64_t set)
{
    return __builtin_popcountll(set);
}

/* ---- what a choice is worth, number by number ---- */

struct worth {
    int64_t numbers[LINKS_LEVELS * (LINKS_EXACT + 1) + 64];
    size_t len;
};

struct divided {
    uint64_t set[LINKS_EXACT];
    size_t len;
};

static bool all_linked(const struct links *l, uint64_t set, int64_t level)
{
    for (size_t i = 0; i < l->len; i++)
        for (size_t k = 0; k < i; k++)
            if ((set >> i & 1) && (set >> k & 1) && l->score[i][k] < level)
                return false;
    return true;
}

/* Whether x has the lower cards: compared as ascending lists of equal length. */
static bool is_lower(uint64_t x, uint64_t y)
{
    uint64_t differ = x ^ y;
    return differ != 0 && (x & (differ & (~differ + 1))) != 0;
}

static void divide(const struct links *l, uint64_t free, int64_t level, struct divided *out)
{
    for (out->len = 0; free != 0; free &= ~out->set[out->len - 1]) {
        uint64_t best = 0;
        for (uint64_t set = free; set != 0; set = (set - 1) & free)
            if (all_linked(l, set, level) &&
                (size_of(set) > size_of(best) ||
                 (size_of(set) == size_of(best) && is_lower(set, best))))
                best = set;
        out->set[out->len++] = best;
    }
}

static void add_rests(const struct divided *d, uint64_t rest, struct worth *w)
{
    for (int size = LINKS_EXACT; size > 0; size--) {
        int64_t n = 0;
        for (size_t i = 0; i < d->len; i++)
            n += size_of(d->set[i] & rest) == size;
        w->numbers[w->len++] = n;
    }
}

struct kinds {
    int64_t level[LINKS_LEVELS];
    size_t len;
    struct divided numa;
};

static void find_kinds(const struct links *l, uint64_t free, struct kinds *out)
{
    int64_t below = INT64_MAX;
    for (out->len = 0; out->len < LINKS_LEVELS; out->len++) {
        int64_t best = -1;
        for (size_t i = 0; i < l->len; i++)
            for (size_t k = 0; k < i; k++)
                if ((free >> i & 1) && (free >> k & 1) && l->score[i][k] < below &&
                    l->score[i][k] > best)
                    best = l->score[i][k];
        if (best < 0)
            break;
        below = out->level[out->len] = best;
    }
    out->numa.len = 0;
    for (int32_t numa = -1; numa < GPU_CARDS_MAX; numa++) {
        uint64_t set = 0;
        for (size_t i = 0; i < l->len; i++)
            if ((free >> i & 1) && l->numa[i] == numa)
                set |= UINT64_C(1) << i;
        if (set != 0)
            out->numa.set[out->numa.len++] = set;
    }
}

static void weigh(const struct links *l, const struct links_ask *ask, uint64_t free,
                  const struct kinds *kinds, uint64_t set, struct worth *w)
{
    int64_t least = INT64_MAX, sum = 0, pairs = 0;
    for (size_t i = 0; i < l->len; i++)
        for (size_t k = 0; k < i; k++) {
            if (!(set >> i & 1) || !(set >> k & 1))
                continue;
            least = num_min(least, l->score[i][k]);
            sum += l->score[i][k];
            pairs += l->numa[i] == l->numa[k] && l->numa[i] >= 0;
        }
    w->len = 0;
    w->numbers[w->len++] = least;
    w->numbers[w->len++] = sum;
    for (size_t i = 0; i < kinds->len; i++) {
        struct divided islands;
        divide(l, free & ~set, kinds->level[i], &islands);
        add_rests(&islands, free & ~set, w);
    }
    w->numbers[w->len++] = size_of(set & ask->near);
    w->numbers[w->len++] = pairs;
    add_rests(&kinds->numa, free & ~set, w);
}

static int compare(const struct worth *x, const struct worth *y)
{
    for (size_t i = 0; i < x->len; i++)
        if (x->numbers[i] != y->numbers[i])
            return x->numbers[i] > y->numbers[i] ? 1 : -1;
    return 0;
}

uint64_t links_kit_brute(const struct links *l, const struct links_ask *ask)
{
    uint64_t free = (ask->free | ask->must) & ((UINT64_C(1) << l->len) - 1), best = 0;
    struct kinds kinds;
    struct worth of_best = {.len = 0}, of_set;
    find_kinds(l, free, &kinds);
    for (uint64_t set = free; set != 0; set = (set - 1) & free) {
        if (size_of(set) != (int)ask->count || (ask->must & ~set) != 0)
            continue;
        weigh(l, ask, free, &kinds, set, &of_set);
        int c = best == 0 ? 1 : compare(&of_set, &of_best);
        if (c > 0 || (c == 0 && is_lower(set, best))) {
            best = set;
            of_best = of_set;
        }
    }
    return best;
}

/* ---- machines ---- */

static const char *next_word(const char **at, struct arena *a)
{
    *at += strspn(*at, " \t\r");
    size_t n = strcspn(*at, " \t\r\n");
    const char *word = n > 0 ? arena_strndup(a, *at, n) : NULL;
    *at += n;
    return word;
}

static void number_card(struct gpu_card *c, size_t i, struct arena *a)
{
    *c = (struct gpu_card){.index = (int32_t)i,
                           .uuid = arena_printf(a, "GPU-%zu", i),
                           .model = "",
                           .pci = "",
                           .mib = 1024,
                           .numa = -1};
}

static int read_row(const char *line, const char *what, size_t n, struct arena *a,
                    struct gpu_inventory *out, struct error *err)
{
    struct gpu_card *card = &out->cards[out->cards_len];
    const char *word;
    int64_t numa;
    number_card(card, out->cards_len, a);
    for (size_t k = 0; k < n; k++)
        if ((out->links[out->cards_len * n + k] = next_word(&line, a)) == NULL)
            return error_set(err, ERROR_INVALID, "%s: has fewer than %zu links", what, n);
    if (next_word(&line, a) != NULL && (word = next_word(&line, a)) != NULL) {
        if (num_parse(word, strlen(word), &numa, err) < 0)
            return error_wrap(err, "%s: NUMA node", what);
        card->numa = (int32_t)numa;
    }
    out->cards_len++;
    return 0;
}

int links_kit_parse(const char *text, struct arena *a, struct gpu_inventory *out, struct error *err)
{
    size_t n = 0;
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += line != text;
        n += str_starts(line, "GPU");
    }
    if (n == 0 || n > GPU_CARDS_MAX)
        return error_set(err, ERROR_INVALID, "has %zu cards", n);
    *out = (struct gpu_inventory){.cards = arena_new(a, struct gpu_card, n),
                                  .links = arena_new(a, const char *, n *n)};
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += line != text;
        const char *at = line, *word = str_starts(line, "GPU") ? next_word(&at, a) : NULL;
        if (word != NULL && read_row(at, word, n, a, out, err) < 0)
            return -1;
    }
    return 0;
}

uint64_t links_kit_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void links_kit_invent(uint64_t *state, size_t n, struct arena *a, struct gpu_inventory *out)
{
    static const char *const kinds[] = {"NV4", "NV2", "PIX", "NODE", "SYS", "NV1", "??"};
    uint64_t few = 1 + links_kit_random(state) % (sizeof kinds / sizeof kinds[0]);
    *out = (struct gpu_inventory){.cards = arena_new(a, struct gpu_card, n),
                                  .cards_len = n,
                                  .links = arena_new(a, const char *, n *n)};
    for (size_t i = 0; i < n; i++) {
        number_card(&out->cards[i], i, a);
        out->cards[i].numa = (int32_t)(links_kit_random(state) % 3) - 1;
        out->links[i * n + i] = "X";
        for (size_t k = 0; k < i; k++)
            out->links[i * n + k] = out->links[k * n + i] = kinds[links_kit_random(state) % few];
    }
}
