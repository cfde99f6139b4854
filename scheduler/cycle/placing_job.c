// SPDX-License-Identifier: Apache-2.0
#include "scheduler/cycle/placing_job.h"

#include <stdlib.h>

#include "lib/base/num.h"
#include "lib/model/links.h"
#include "scheduler/cache/topology_job.h"

static int64_t count_of(uint64_t cards)
{
    return __builtin_popcountll(cards);
}

static int64_t held_on(const struct placing *p, const struct cluster_node *node)
{
    int64_t n = 0;
    for (size_t g = 0; g < p->gangs_len; g++) {
        const struct gang *gang = p->gangs[g].gang;
        for (size_t i = 0; i < gang->members.len; i++)
            n += gang->members.items[i]->on == node;
    }
    return n;
}

/* The weakest link and the sum of links among the GPUs that would be chosen. */
static void rate_links(struct placing_job_node *n, const struct gpu_accounts *l, int64_t want)
{
    struct links links;
    links_of(&l->inventory, &links);
    uint64_t set =
        links_choose(&links, &(struct links_ask){.free = n->free, .count = (size_t)want});
    n->weakest = INT64_MAX;
    for (uint64_t x = set; x != 0; x &= x - 1)
        for (uint64_t y = x & (x - 1); y != 0; y &= y - 1) {
            int32_t score = links.score[__builtin_ctzll(x)][__builtin_ctzll(y)];
            n->weakest = num_min(n->weakest, score);
            n->sum += score;
        }
}

static int more(int64_t x, int64_t y)
{
    return x == y ? 0 : x > y ? -1 : 1;
}

static int by_place(const struct placing_job_node *x, const struct placing_job_node *y)
{
    return x->place < y->place ? -1 : 1;
}

/* Most members of the job first, then the fewest free GPUs. */
static int by_tightness(const void *a, const void *b)
{
    const struct placing_job_node *x = a, *y = b;
    int c = more(x->held, y->held);
    if (c == 0)
        c = more(count_of(y->free), count_of(x->free));
    return c != 0 ? c : by_place(x, y);
}

static int by_links(const void *a, const void *b)
{
    const struct placing_job_node *x = a, *y = b;
    int c = more(x->held, y->held);
    if (c == 0)
        c = more(x->weakest, y->weakest);
    if (c == 0)
        c = more(x->sum, y->sum);
    return c != 0 ? c : by_tightness(a, b);
}

/* Most members of the job first, then the most free GPUs. */
static int by_free(const void *a, const void *b)
{
    const struct placing_job_node *x = a, *y = b;
    int c = more(x->held, y->held);
    if (c == 0)
        c = more(count_of(x->free), count_of(y->free));
    return c != 0 ? c : by_place(x, y);
}

static void sort(struct placing_job_node *nodes, size_t n, int (*order)(const void *, const void *))
{
    if (n > 1)
        qsort(nodes, n, sizeof *nodes, order);
}

static void list_nodes(struct placing_job *j)
{
    const struct node_table *t = j->placing->cluster->table;
    j->nodes = arena_new(j->placing->arena, struct placing_job_node, t->len);
    for (uint32_t i = 0; i < t->len; i++) {
        uint64_t cards = gpu_accounts_free_cards(&t->rows[i].node->gpu_accounts);
        if (cards != 0)
            j->nodes[j->nodes_len++] = (struct placing_job_node){
                .place = i, .free = cards, .held = held_on(j->placing, t->rows[i].node)};
    }
}

/* Nodes with enough GPUs for all members come first, best first. */
static void list_singles(struct placing_job *j)
{
    const struct node_table *t = j->placing->cluster->table;
    size_t n = 0;
    for (size_t i = 0; i < j->nodes_len; i++)
        if (count_of(j->nodes[i].free) >= j->want) {
            struct placing_job_node fits = j->nodes[i];
            j->nodes[i] = j->nodes[n];
            j->nodes[n++] = fits;
        }
    sort(j->nodes, n, by_tightness);
    n = (size_t)num_min((int64_t)n, PLACING_JOB_NODES);
    for (size_t i = 0; i < n; i++)
        rate_links(&j->nodes[i], &t->rows[j->nodes[i].place].node->gpu_accounts, j->want);
    sort(j->nodes, n, by_links);
    j->singles_len = (size_t)num_min((int64_t)n, PLACING_JOB_TRIES);
}

void placing_job_init(struct placing_job *j, struct placing *p)
{
    const struct cluster_pod *first = p->members_len > 0 ? p->members[0].pod : NULL;
    *j = (struct placing_job){.placing = p};
    for (size_t i = 0; i < p->members_len; i++) {
        if (!topology_job_are(first, p->members[i].pod))
            return;
        j->want = num_add_sat(j->want, p->members[i].pod->gpu.total[GPU_REQUEST_CARDS]);
    }
    if (j->want == 0)
        return;
    list_nodes(j);
    list_singles(j);
}

static bool next_several(struct placing_job *j, struct placing_domain *out)
{
    if (j->tries == 0) {
        int64_t cards = 0;
        sort(j->nodes, j->nodes_len, by_free);
        while (j->several < j->nodes_len && (cards < j->want || j->several < 2))
            cards += count_of(j->nodes[j->several++].free);
        if (cards < j->want || j->several < 2)
            j->tries = PLACING_JOB_TRIES;
        else
            j->several--;
    }
    if (j->tries++ >= PLACING_JOB_TRIES || j->several++ >= j->nodes_len)
        return false;
    out->places = arena_new(j->placing->arena, uint32_t, j->several);
    out->len = j->several;
    for (size_t i = 0; i < j->several; i++)
        out->places[i] = j->nodes[i].place;
    return true;
}

bool placing_job_next(struct placing_job *j, struct placing_domain *out)
{
    if (j->nodes_len == 0)
        return false;
    if (j->single >= j->singles_len)
        return next_several(j, out);
    out->places = &j->nodes[j->single++].place;
    out->len = 1;
    return true;
}
