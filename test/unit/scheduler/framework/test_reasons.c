// SPDX-License-Identifier: Apache-2.0
#include "scheduler/framework/reasons.h"

#include "test/unit/lib/base/expect.h"

struct met {
    const char *node;
    struct reason reason;
};

static const int64_t gi = INT64_C(1) << 30;

static void sentences(void **state)
{
    (void)state;
    const struct {
        const char *row;
        struct met met[6];
        const char *sentence;
    } rows[] = {
        {"a cluster without nodes", {{0}}, "0/0 nodes fit: the cluster has no nodes"},
        {"one node, singular",
         {{"n1", {.kind = REASON_RESOURCE, .what = "cpu", .want = 1500, .free = 500}}},
         "0/1 nodes fit: 1 has too little cpu (asked: 1500m, largest free: 500m on n1)"},
        {"several nodes, plural, the most promising is named",
         {{"n1", {.kind = REASON_RESOURCE, .what = "memory", .want = 4 * gi, .free = gi}},
          {"n2", {.kind = REASON_RESOURCE, .what = "memory", .want = 4 * gi, .free = 3 * gi}}},
         "0/2 nodes fit: 2 have too little memory (asked: 4Gi, largest free: 3Gi on n2)"},
        {"bytes are rounded to something readable",
         {{"n1",
           {.kind = REASON_RESOURCE, .what = "memory", .want = 16 * gi, .free = 16654082048}}},
         "0/1 nodes fit: 1 has too little memory (asked: 16Gi, largest free: 15Gi on n1)"},
        {"small ones with a digit behind the point",
         {{"n1",
           {.kind = REASON_RESOURCE,
            .what = "ephemeral-storage",
            .want = 2 * gi,
            .free = gi + gi / 2 + 1}}},
         "0/1 nodes fit: 1 has too little ephemeral-storage (asked: 2Gi, largest free: 1.5Gi on "
         "n1)"},
        {"unless the two would read the same",
         {{"n1",
           {.kind = REASON_RESOURCE, .what = "memory", .want = 2 * gi + 1024, .free = 2 * gi}}},
         "0/1 nodes fit: 1 has too little memory (asked: 2097153Ki, largest free: 2Gi on n1)"},
        {"an extended resource is a number",
         {{"n1", {.kind = REASON_RESOURCE, .what = "example.com/x", .want = 2, .free = 0}}},
         "0/1 nodes fit: 1 has too little example.com/x (asked: 2, largest free: 0 on n1)"},
        {"the example of our style",
         {{"n3", {.kind = REASON_CARD, .what = "no card with 12 GiB", .want = 12, .free = 1}},
          {"n2",
           {.kind = REASON_CARD, .what = "no card with 12 GiB", .want = 12, .free = 9, .card = 1}},
          {"n1", {.kind = REASON_CARD, .what = "no card with 12 GiB", .want = 12, .free = 9}},
          {"n4", {.kind = REASON_GPU_MODE, .what = "topology"}}},
         "0/4 nodes fit: 3 have no card with 12 GiB free (largest free: 9 GiB on n1/GPU0), "
         "1 is in mode topology"},
        {"percent is said where it is asked for; the card with enough memory is the nearer one",
         {{"n1",
           {.kind = REASON_CARD,
            .what = "no card with 3 GiB and 50 % of its compute",
            .want = 3,
            .free = 9,
            .want_percent = 50,
            .free_percent = 20}},
          {"n2",
           {.kind = REASON_CARD,
            .what = "no card with 3 GiB and 50 % of its compute",
            .want = 3,
            .free = 4,
            .want_percent = 50,
            .free_percent = 45,
            .card = 2}}},
         "0/2 nodes fit: 2 have no card with 3 GiB and 50 % of its compute free (largest free: 4 "
         "GiB and 45 % on n2/GPU2)"},
        {"a node whose cards are all gone",
         {{"n1", {.kind = REASON_CARD, .what = "no card with 3 GiB", .want = 3, .card = -1}}},
         "0/1 nodes fit: 1 has no card with 3 GiB free (largest free: 0 GiB on n1)"},
        {"a sick card: which, why and where",
         {{"n3", {.kind = REASON_CARD_SICK, .what = "GPU0 unhealthy (XID 79)"}},
          {"n2", {.kind = REASON_CARD_SICK, .what = "GPU0 unhealthy (XID 79)"}},
          {"n4", {.kind = REASON_CARD_SICK, .what = "GPU1 unhealthy"}}},
         "0/3 nodes fit: 2 have GPU0 unhealthy (XID 79) and too little free beside it (on n2), "
         "1 has GPU1 unhealthy and too little free beside it (on n4)"},
        {"one whole card, singular",
         {{"n1", {.kind = REASON_CARDS, .want = 1, .free = 0}}},
         "0/1 nodes fit: 1 has fewer than 1 free card (most free: 0 on n1)"},
        {"whole cards, plural",
         {{"n1", {.kind = REASON_CARDS, .want = 4, .free = 2}},
          {"n2", {.kind = REASON_CARDS, .want = 4, .free = 3}}},
         "0/2 nodes fit: 2 have fewer than 4 free cards (most free: 3 on n2)"},
        {"no node could ever take it: the largest of what they have",
         {{"n1", {.kind = REASON_CARD_SIZE, .what = "no card with 40 GiB", .want = 40, .free = 16}},
          {"n2",
           {.kind = REASON_CARD_SIZE,
            .what = "no card with 40 GiB",
            .want = 40,
            .free = 24,
            .card = 1}},
          {"n3", {.kind = REASON_TAINT, .what = "a=b:NoSchedule"}},
          {"n4", {.kind = REASON_NOT_OFFERED, .what = "aliyun.com/gpu-mem"}}},
         "0/4 nodes fit: 2 have no card with 40 GiB even when empty (largest: 24 GiB on n2/GPU1), "
         "1 does not offer aliyun.com/gpu-mem, 1 has the taint a=b:NoSchedule that the pod does not "
         "tolerate; no node could ever take it"},
        {"one could, and is full: how many could ever is how many are full",
         {{"n1", {.kind = REASON_CARD_SIZE, .what = "no card with 40 GiB", .want = 40, .free = 24}},
          {"n2", {.kind = REASON_CARD_SIZE, .what = "no card with 40 GiB", .want = 40, .free = 24}},
          {"n3", {.kind = REASON_CARD, .what = "no card with 40 GiB", .want = 40, .free = 9}}},
         "0/3 nodes fit: 2 have no card with 40 GiB even when empty (largest: 24 GiB on n1/GPU0), "
         "1 has no card with 40 GiB free (largest free: 9 GiB on n3/GPU0)"},
        {"a cordoned node may be large enough",
         {{"n1", {.kind = REASON_CARDS_SIZE, .want = 8, .free = 4}},
          {"n2", {.kind = REASON_UNSCHEDULABLE}}},
         "0/2 nodes fit: 1 is cordoned, 1 has fewer than 8 cards even when empty (most: 4 on n1)"},
        {"too large for the empty node",
         {{"n1", {.kind = REASON_RESOURCE_SIZE, .what = "cpu", .want = 9000, .free = 8000}}},
         "0/1 nodes fit: 1 has too little cpu even when empty (asked: 9, largest: 8 on n1); no "
         "node could ever take it"},
        {"nobody is too small: nothing about ever",
         {{"n1", {.kind = REASON_TAINT, .what = "a=b:NoSchedule"}}},
         "0/1 nodes fit: 1 has the taint a=b:NoSchedule that the pod does not tolerate"},
        {"the common reason first, equal counts by kind",
         {{"n1", {.kind = REASON_NOT_VIRTUAL}},
          {"n2", {.kind = REASON_TAINT, .what = "a=b:NoSchedule"}},
          {"n3", {.kind = REASON_SELECTOR}},
          {"n4", {.kind = REASON_SELECTOR}},
          {"n5", {.kind = REASON_UNSCHEDULABLE}}},
         "0/5 nodes fit: 2 do not match the pod's node selector or affinity, 1 is cordoned, 1 has "
         "the taint a=b:NoSchedule that the pod does not tolerate, 1 is not virtual and the pod "
         "asks for virtual nodes only"},
        {"the rest, plural",
         {{"n1", {.kind = REASON_NOT_OFFERED, .what = "aliyun.com/gpu-mem"}},
          {"n2", {.kind = REASON_NOT_OFFERED, .what = "aliyun.com/gpu-mem"}},
          {"n3", {.kind = REASON_PODS}},
          {"n4", {.kind = REASON_PODS}}},
         "0/4 nodes fit: 2 do not offer aliyun.com/gpu-mem, 2 have no pod place left"},
        {"the rest, singular",
         {{"n1", {.kind = REASON_NOT_OFFERED, .what = "aliyun.com/gpu"}},
          {"n2", {.kind = REASON_NO_INVENTORY, .what = "none published"}},
          {"n3", {.kind = REASON_GPU_SWITCHING, .what = "mps"}},
          {"n4", {.kind = REASON_GPU_UNPLACED}},
          {"n5", {.kind = REASON_VIRTUAL}},
          {"n6", {.kind = REASON_SELECTOR}}},
         "0/6 nodes fit: 1 does not offer aliyun.com/gpu, 1 does not match the pod's node selector "
         "or affinity, 1 has no GPU inventory (none published), 1 is switching to mode mps, 1 has "
         "pods with GPUs on cards that are not known, 1 is virtual and the pod does not burst"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct arena a;
        struct reasons forwards, backwards;
        arena_init(&a, 0);
        reasons_init(&forwards);
        reasons_init(&backwards);
        size_t n = 0;
        while (n < 6 && rows[i].met[n].node != NULL)
            n++;
        for (size_t k = 0; k < n; k++) {
            reasons_add(&forwards, &rows[i].met[k].reason, rows[i].met[k].node);
            reasons_add(&backwards, &rows[i].met[n - 1 - k].reason, rows[i].met[n - 1 - k].node);
        }
        expect_str(rows[i].row, rows[i].sentence, reasons_sentence(&forwards, &a));
        expect_str(rows[i].row, rows[i].sentence, reasons_sentence(&backwards, &a));
        expect_true(rows[i].row, reasons_class(&forwards) == reasons_class(&backwards));
        arena_deinit(&a);
    }
    expect_done();
}

static void the_class_ignores_amounts_and_counts(void **state)
{
    (void)state;
    struct reasons a, b;
    reasons_init(&a);
    reasons_init(&b);
    expect_true("nothing and nothing", reasons_class(&a) == reasons_class(&b));
    struct reason cpu = {.kind = REASON_RESOURCE, .what = "cpu", .want = 100, .free = 7};
    reasons_add(&a, &cpu, "n1");
    expect_true("nodes with a reason are not a cluster without nodes",
                reasons_class(&a) != reasons_class(&b));
    cpu.free = 9;
    reasons_add(&b, &cpu, "n2");
    reasons_add(&b, &cpu, "n3");
    expect_true("other amounts and more nodes are the same class",
                reasons_class(&a) == reasons_class(&b));
    reasons_add(&b, &(struct reason){.kind = REASON_SELECTOR}, "n4");
    expect_true("another kind is another class", reasons_class(&a) != reasons_class(&b));
    reasons_init(&b);
    reasons_add(&b, &(struct reason){.kind = REASON_RESOURCE, .what = "memory"}, "n1");
    expect_true("another name is another class", reasons_class(&a) != reasons_class(&b));
    expect_done();
}

/* Two plugins may find the same card sick: what was counted for each is one row. */
static void rows_that_say_the_same_become_one(void **state)
{
    struct arena a;
    (void)state;
    arena_init(&a, 0);
    static const struct reasons_row rows[] = {
        {.reason = {.kind = REASON_CARD_SICK, .what = "GPU2 unhealthy"}, 1, "n6"},
        {.reason = {.kind = REASON_CARD_SICK, .what = "GPU1 unhealthy"}, 1, "n5"},
        {.reason = {.kind = REASON_CARD_SICK, .what = "GPU2 unhealthy"}, 2, "n4"},
    };
    struct reasons t;
    reasons_init(&t);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        reasons_add_row(&t, &rows[i]);
    expect_str("three nodes, the first by name",
               "0/4 nodes fit: 3 have GPU2 unhealthy and too little free beside it (on n4), 1 has "
               "GPU1 unhealthy and too little free beside it (on n5)",
               reasons_sentence(&t, &a));
    arena_deinit(&a);
    expect_done();
}

static void too_many_reasons_are_counted_together(void **state)
{
    (void)state;
    struct arena a;
    struct reasons t;
    arena_init(&a, 0);
    reasons_init(&t);
    for (int i = 0; i < REASONS_MAX + 3; i++)
        reasons_add(
            &t,
            &(struct reason){.kind = REASON_TAINT, .what = arena_printf(&a, "t%02d:NoSchedule", i)},
            "n");
    expect_int("all nodes are counted", REASONS_MAX + 3, t.nodes);
    expect_int("rows are bounded", REASONS_MAX, (int64_t)t.len);
    expect_true("the rest is told", str_ends(reasons_sentence(&t, &a), ", 3 for other reasons"));
    arena_deinit(&a);
    expect_done();
}

static void every_kind_has_its_sentence(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 0);
    for (int kind = 0; kind < REASON_KINDS; kind++) {
        struct reasons t;
        reasons_init(&t);
        reasons_add(&t, &(struct reason){.kind = (enum reason_kind)kind, .what = "x"}, "n1");
        reasons_add(&t, &(struct reason){.kind = REASON_PODS}, "n2"); /* not the pod's fault */
        const char *said = reasons_sentence(&t, &a);
        expect_true("with all words replaced", strpbrk(said, "{}") == NULL);
        expect_true("and something said", !str_ends(said, "1 "));
    }
    arena_deinit(&a);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sentences),
        cmocka_unit_test(every_kind_has_its_sentence),
        cmocka_unit_test(the_class_ignores_amounts_and_counts),
        cmocka_unit_test(rows_that_say_the_same_become_one),
        cmocka_unit_test(too_many_reasons_are_counted_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
