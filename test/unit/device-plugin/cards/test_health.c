// SPDX-License-Identifier: Apache-2.0
/* When a card leaves, and when it comes back. */
#include "device-plugin/cards/health.h"

#include "test/unit/lib/base/expect.h"

#include "lib/base/str.h"

enum { HOLD = 1000 };

static const struct health_sight good = {.index = 1, .uuid = "GPU-b", .ecc = 0};

static void setup(struct health *h)
{
    health_init(h, HOLD);
    (void)health_seen(h, &(struct health_sight){.index = 0, .uuid = "GPU-a", .ecc = -1}, 0);
    (void)health_seen(h, &good, 0);
}

static void xids_by_their_class(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        int64_t number;
        bool sick;
        const char *why;
    } rows[] = {
        {"an illegal instruction is the program's", 13, false, ""},
        {"a page fault too", 31, false, ""},
        {"a stopped channel too", 43, false, ""},
        {"a cleanup too", 45, false, ""},
        {"a decoder error too", 68, false, ""},
        {"a slow context switch too", 109, false, ""},
        {"a row noted for repair is dealt with", 63, false, ""},
        {"corrected errors are corrected", 92, false, ""},
        {"a double bit error is the card's", 48, true,
         "XID 48: a memory error could not be corrected"},
        {"an NVLink error too", 74, true, "XID 74: an NVLink failed"},
        {"off the bus", 79, true, "XID 79: the card has fallen off the bus"},
        {"a number that nobody knows", 7777, true,
         "XID 7777: not in our table, so the card's until it proves well"},
        {"no number", 0, true, "XID 0: not in our table, so the card's until it proves well"},
        {"a negative one", -5, true,
         "XID -5: not in our table, so the card's until it proves well"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct health h;
        setup(&h);
        expect_int(rows[i].row, rows[i].sick, health_xid_seen(&h, "GPU-b", rows[i].number, 5));
        expect_int(rows[i].row, rows[i].sick, health_find(&h, "GPU-b")->sick);
        expect_str(rows[i].row, rows[i].why, health_find(&h, "GPU-b")->why);
        expect_int("the other card does not mind", false, health_find(&h, "GPU-a")->sick);
        expect_int("a second one changes nothing", false,
                   health_xid_seen(&h, "GPU-b", rows[i].number, 6));
        expect_int("nobody's card", false, health_xid_seen(&h, "GPU-z", rows[i].number, 6));
    }
    expect_done();
}

static void the_way_back(void **state)
{
    (void)state;
    struct health h;
    setup(&h);
    expect_int("sick", true, health_xid_seen(&h, "GPU-b", 79, 100));
    expect_int("a good probe", false, health_seen(&h, &good, 200));
    expect_int("a second", false, health_seen(&h, &good, 300));
    expect_int("a third, but too soon", false, health_seen(&h, &good, 100 + HOLD - 1));
    expect_int("when the time is up", true, health_seen(&h, &good, 100 + HOLD));
    expect_int("it is well", false, health_find(&h, "GPU-b")->sick);
    expect_int("once", false, health_seen(&h, &good, 101 + HOLD));

    expect_int("again", true, health_ecc_seen(&h, "GPU-b", 2000));
    for (int64_t t = 2100; t < 2000 + 2 * HOLD; t += 100)
        expect_int("the hold is twice as long", false, health_seen(&h, &good, t));
    expect_int("and over", true, health_seen(&h, &good, 2000 + 2 * HOLD));

    expect_int("an hour later", true, health_hangs(&h, 1, 2000 + 2 * HOLD + HEALTH_RELAPSE_MS));
    int64_t t = 2000 + 2 * HOLD + HEALTH_RELAPSE_MS;
    expect_int("one probe after the hold is not enough", false, health_seen(&h, &good, t + HOLD));
    expect_int("nor two", false, health_seen(&h, &good, t + HOLD + 1));
    expect_int("three are, and the hold is the first one again", true,
               health_seen(&h, &good, t + HOLD + 2));

    int64_t hold = HOLD;
    for (int i = 0; i < 20; i++) {
        t += HEALTH_RELAPSE_MS / 2;
        expect_int("a card that flaps", true, health_ecc_seen(&h, "GPU-b", t));
        hold = health_find(&h, "GPU-b")->hold_ms;
        for (int k = 0; k < 3; k++)
            (void)health_seen(&h, &good, t + hold);
    }
    expect_int("is held for ten minutes at most", HEALTH_HOLD_MAX_MS, hold);
    expect_done();
}

static void what_a_scan_sees(void **state)
{
    (void)state;
    const struct health_sight lost = {.index = 1, .sick = "GPU is lost", .gone = true, .ecc = -1};
    const struct health_sight silent = {.index = 1, .sick = "Unknown Error", .ecc = -1};
    const struct health_sight ill = {
        .index = 1, .uuid = "GPU-b", .sick = "it says so", .gone = true};
    struct health h;
    setup(&h);
    expect_int("a lost card is sick at once", true, health_seen(&h, &lost, 10));
    expect_str("and why", "GPU is lost", health_find(&h, "GPU-b")->why);
    expect_int("said once", false, health_seen(&h, &lost, 20));
    expect_int("good", false, health_seen(&h, &good, 20 + HOLD));
    expect_int("good", false, health_seen(&h, &good, 21 + HOLD));
    expect_int("bad between", false, health_seen(&h, &silent, 22 + HOLD));
    for (int i = 0; i < 3; i++)
        expect_int("begins the count and the hold again", false,
                   health_seen(&h, &good, 23 + HOLD + i));
    expect_int("back", true, health_seen(&h, &good, 22 + 2 * HOLD));

    setup(&h);
    expect_int("a scan that fails may be chance", false, health_seen(&h, &silent, 10));
    expect_int("if the next one does not", false, health_seen(&h, &good, 20));
    expect_int("not in a row", false, health_seen(&h, &silent, 30));
    expect_int("but two in a row are not", true, health_seen(&h, &silent, 40));

    setup(&h);
    expect_int("what the backend itself calls sick", true, health_seen(&h, &ill, 10));
    setup(&h);
    expect_int("a card that was never seen", false,
               health_seen(&h, &(struct health_sight){.index = 5, .sick = "x", .gone = true}, 10));
    expect_int(
        "an index of nobody", false,
        health_seen(&h, &(struct health_sight){.index = GPU_CARDS_MAX, .uuid = "GPU-q"}, 10));
    expect_int("below 0", false,
               health_seen(&h, &(struct health_sight){.index = -1, .uuid = "GPU-q"}, 1));
    expect_int("hangs nowhere", false, health_hangs(&h, -1, 10));
    expect_int("nor there", false, health_hangs(&h, GPU_CARDS_MAX, 10));
    expect_done();
}

static void memory_errors(void **state)
{
    (void)state;
    struct health_sight s = good;
    struct health h;
    setup(&h);
    s.ecc = 2;
    expect_int("new uncorrected errors", true, health_seen(&h, &s, 10));
    expect_str("are counted", "2 uncorrected memory errors", health_find(&h, "GPU-b")->why);
    s.repair = "a reset";
    for (int i = 0; i < 5; i++)
        expect_int("no way back without the repair", false, health_seen(&h, &s, 20 + HOLD + i));
    s.repair = NULL;
    s.ecc = 0; /* a reset begins the count again */
    expect_int("good", false, health_seen(&h, &s, 30 + HOLD));
    expect_int("good", false, health_seen(&h, &s, 31 + HOLD));
    expect_int("back", true, health_seen(&h, &s, 32 + HOLD));
    s.repair = "a reset";
    expect_int("a repair alone makes nobody sick", false, health_seen(&h, &s, 40 + HOLD));

    health_init(&h, HOLD);
    s = (struct health_sight){.index = 0, .uuid = "GPU-c", .ecc = 3};
    expect_int("errors from before our time", false, health_seen(&h, &s, 0));
    health_init(&h, HOLD);
    s.repair = "a reset";
    expect_int("that were not repaired", true, health_seen(&h, &s, 0));
    expect_str("say so", "3 uncorrected memory errors, and the card waits for a reset",
               health_find(&h, "GPU-c")->why);
    expect_done();
}

static void cards_change_places(void **state)
{
    (void)state;
    struct health h;
    setup(&h);
    expect_int("sick", true, health_xid_seen(&h, "GPU-b", 79, 10));
    expect_int("under another index", false,
               health_seen(&h, &(struct health_sight){.index = 0, .uuid = "GPU-b", .ecc = 0}, 20));
    expect_int("it is still sick", true, health_find(&h, "GPU-b")->sick);
    expect_true("and who was there is forgotten", health_find(&h, "GPU-a") == NULL);
    expect_int("a new card in its place", false,
               health_seen(&h, &(struct health_sight){.index = 0, .uuid = "GPU-n", .ecc = 0}, 30));
    expect_int("is well", false, health_find(&h, "GPU-n")->sick);
    expect_done();
}

static void a_restart_is_no_cure(void **state)
{
    (void)state;
    struct health h, later;
    struct health_memory sick[GPU_CARDS_MAX];
    setup(&h);
    expect_int("nobody is sick", 0, (int64_t)health_remember(&h, sick));
    struct health_sight s = good;
    s.ecc = 2;
    expect_int("sick", true, health_seen(&h, &s, 10));
    expect_int("one is", 1, (int64_t)health_remember(&h, sick));
    expect_str("this one", "GPU-b", sick[0].uuid);

    health_init(&later, HOLD);
    health_recall(&later, &sick[0]);
    expect_int("before it is seen it is not forgotten", 1, (int64_t)health_remember(&later, sick));
    (void)health_seen(&later, &(struct health_sight){.index = 0, .uuid = "GPU-a", .ecc = 0}, 5000);
    expect_int("the other one is well", false, health_find(&later, "GPU-a")->sick);
    expect_int("no news", false, health_seen(&later, &s, 5000));
    expect_int("but sick from the first look on", true, health_find(&later, "GPU-b")->sick);
    expect_str("for the same reason", "2 uncorrected memory errors",
               health_find(&later, "GPU-b")->why);
    expect_int("good", false, health_seen(&later, &s, 5001));
    expect_int("three good ones, but too soon", false, health_seen(&later, &s, 5000 + HOLD - 1));
    expect_int("when the time is up", true, health_seen(&later, &s, 5000 + HOLD));
    expect_int("it is well", false, health_find(&later, "GPU-b")->sick);
    expect_int("and forgotten", 0, (int64_t)health_remember(&later, sick));

    static const struct {
        const char *row;
        int64_t remembered, hold;
    } holds[] = {
        {"a shorter hold than ours", HOLD - 1, HOLD},
        {"a longer one stays", 4 * HOLD, 4 * HOLD},
        {"not for ever", INT64_MAX, HEALTH_HOLD_MAX_MS},
    };
    for (size_t i = 0; i < sizeof holds / sizeof holds[0]; i++) {
        health_init(&later, HOLD);
        health_recall(&later, &(struct health_memory){
                                  .uuid = "GPU-b", .hold_ms = holds[i].remembered, .ecc = -1});
        (void)health_seen(&later, &good, 0);
        expect_int(holds[i].row, holds[i].hold, health_find(&later, "GPU-b")->hold_ms);
    }
    health_init(&later, HOLD);
    for (int i = 0; i < GPU_CARDS_MAX + 3; i++)
        health_recall(&later, &(struct health_memory){.uuid = "GPU-x", .ecc = -1});
    expect_int("no more than there can be", GPU_CARDS_MAX, (int64_t)later.recalled_len);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(xids_by_their_class), cmocka_unit_test(the_way_back),
        cmocka_unit_test(what_a_scan_sees),    cmocka_unit_test(memory_errors),
        cmocka_unit_test(cards_change_places), cmocka_unit_test(a_restart_is_no_cure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
