// SPDX-License-Identifier: Apache-2.0
/*
 * The table of requests through the scheduler: what nobody can serve is the reason why the pod
 * waits, in the same words; all else is placed, and given what it asks for.
 */
#include "test/unit/lib/model/requests_kit.h"
#include "test/unit/scheduler/model_kit.h"

static struct cycle_result result;

/* A node that offers what the row asks for: the emptiest card is taken, so that shares which need
 * not be on one card are not. */
static void put_node(const struct requests_row *row)
{
    bool cards = str_ends(row->gpu, " cards"), exclusive = str_ends(row->gpu, " exclusive");
    (void)cluster_put_node(
        &c, NODE(.name = "n", .cpu_milli = 64000,
                 .inventory = fixture_inventory(&arena,
                                                cards       ? "topology"
                                                : exclusive ? "default"
                                                            : "core_mem",
                                                "80,80,80,80,80,80,80,80"),
                 .placement = "spread", .topology = fixture_topology(&arena, 2, 2, 16, 1, NULL),
                 .gib = cards || exclusive ? 0 : 640, .percent = cards || exclusive ? 0 : 800,
                 .cards = cards ? 8 : 0, .other = exclusive ? NAME_RES_NVIDIA_GPU : NULL,
                 .other_amount = 8));
}

static size_t different_cards(const struct grant *grant)
{
    uint64_t set = 0;
    for (size_t i = 0; i < grant->shares_len; i++)
        set |= UINT64_C(1) << grant->shares[i].card;
    return (size_t)__builtin_popcountll(set);
}

/* As many CPUs for each container as it asks for; burst may give more. */
static void check_cpus(const struct requests_row *row, const struct cluster_pod *cp)
{
    for (size_t i = 0; cp->cpu != NULL && i < cp->cpu->each_len; i++) {
        struct cpuset cpus;
        cpu_grant_of(&cp->grant.cpus, (uint32_t)i, &cpus);
        if (!cp->cpu->burst)
            expect_int(row->name, cp->cpu->each[i], cpuset_count(&cpus));
        expect_true(row->name, cpuset_count(&cpus) >= cp->cpu->each[i]);
    }
}

static void check_row(const struct requests_row *row, struct arena *a)
{
    fresh();
    put_node(row);
    (void)cluster_put_pod(&c, requests_kit_pod(row), NULL);
    const struct cluster_pod *cp = cluster_find_pod(&c, "d/p");
    (void)run_gang("pod d/p", &result);
    if (!requests_kit_is_legal(row)) {
        const struct request_errors *errors =
            row->gpu_errors.len > 0 ? &row->gpu_errors : &row->cpu_errors;
        expect_true(row->name, cp->on == NULL);
        expect_str(row->name, errors->items[0], result.sentence);
        return;
    }
    expect_str(row->name, NULL, result.sentence);
    expect_true(row->name, cp->on != NULL);
    if (!str_ends(row->gpu, " exclusive")) /* the kubelet chooses those */
        expect_str(row->name, requests_kit_given(row, a), requests_kit_grant(&cp->grant, a));
    if (requests_kit_on_one_card(row))
        expect_int(row->name, 1, (int64_t)different_cards(&cp->grant));
    else if (cp->gpu.spread_over == 1)
        expect_int(row->name, (int64_t)cp->grant.shares_len, (int64_t)different_cards(&cp->grant));
    expect_str(row->name, row->cpu, requests_kit_cpu(cp->cpu, a));
    check_cpus(row, cp);
}

static void every_row_is_read_as_the_table_says(void **state)
{
    (void)state;
    requests_kit_each(check_row);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(every_row_is_read_as_the_table_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
