// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/cards/inventory.h"

#include "test/unit/lib/base/expect.h"

#include "lib/base/str.h"
#include "test/unit/device-plugin/cards.h"

static struct arena a;

static int setup(void **state)
{
    (void)state;
    arena_init(&a, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_deinit(&a);
    return 0;
}

static void which_cards_can_be_offered(void **state)
{
    (void)state;
    static char long_uuid[INVENTORY_UUID_MAX + 2];
    memset(long_uuid, 'x', INVENTORY_UUID_MAX + 1);
    const struct {
        const char *row;
        const char *uuid[2];
        int64_t mib;
        int32_t second;
        const char *error; /* NULL: they can */
        const char *left;  /* the uuids of those that can */
    } rows[] = {
        {"two ordinary cards", {"GPU-1", "GPU-2"}, 16160, 1, NULL, "GPU-1 GPU-2"},
        {"the longest uuid", {long_uuid + 1, "GPU-2"}, 1, 1, NULL, NULL},
        {"a uuid one too long",
         {long_uuid, "GPU-2"},
         1,
         1,
         "card 0: uuid: must be 1 to 48 letters, digits, '-', '_', '.': 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'",
         "GPU-2"},
        {"no uuid",
         {"", "GPU-2"},
         1,
         1,
         "card 0: uuid: must be 1 to 48 letters, digits, '-', '_', '.': ''",
         "GPU-2"},
        {"a uuid with our separator in it",
         {"GPU-_-1", "GPU-2"},
         1,
         1,
         "card 0: uuid: must be 1 to 48 letters, digits, '-', '_', '.': 'GPU-_-1'",
         "GPU-2"},
        {"a uuid with a blank",
         {"GPU 1", "b"},
         1,
         1,
         "card 0: uuid: must be 1 to 48 letters, digits, '-', '_', '.': 'GPU 1'",
         "b"},
        {"the same uuid twice",
         {"GPU-1", "GPU-1"},
         1,
         1,
         "cards 0 and 1 have the same uuid GPU-1",
         "GPU-1"},
        {"the same index twice", {"GPU-1", "GPU-2"}, 1, 0, "two cards have the index 0", "GPU-1"},
        {"no memory",
         {"GPU-1", "GPU-2"},
         0,
         1,
         "card 0: memory: must be 1 MiB to 1024 GiB: 0 MiB",
         ""},
        {"the largest card", {"GPU-1", "GPU-2"}, 1024 * 1024 + 1023, 1, NULL, "GPU-1 GPU-2"},
        {"a larger one",
         {"GPU-1", "GPU-2"},
         1025 * 1024,
         1,
         "card 0: memory: must be 1 MiB to 1024 GiB: 1049600 MiB",
         ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gpu_card cards[2] = {
            {.index = 0, .uuid = rows[i].uuid[0], .mib = rows[i].mib},
            {.index = rows[i].second, .uuid = rows[i].uuid[1], .mib = rows[i].mib}};
        struct gpu_inventory inv = {.cards = cards, .cards_len = 2};
        struct error err = ERROR_INIT;
        struct gpu_inventory picked;
        expect_int(rows[i].row, rows[i].error == NULL ? 0 : -1,
                   inventory_pick(&inv, &a, &picked, &err));
        if (rows[i].error != NULL)
            expect_str(rows[i].row, rows[i].error, err.text);
        if (rows[i].left == NULL)
            continue;
        char *left = arena_strdup(&a, "");
        for (size_t k = 0; k < picked.cards_len; k++)
            left = arena_printf(&a, "%s%s%s", left, k > 0 ? " " : "", picked.cards[k].uuid);
        expect_str(rows[i].row, rows[i].left, left);
    }
    expect_done();
}

static void too_many_cards(void **state)
{
    (void)state;
    static struct gpu_card cards[GPU_CARDS_MAX + 1];
    struct gpu_inventory many = {.cards = cards, .cards_len = GPU_CARDS_MAX + 1}, picked;
    struct error err = ERROR_INIT;
    for (size_t i = 0; i <= GPU_CARDS_MAX; i++)
        cards[i] = (struct gpu_card){
            .index = (int32_t)i, .uuid = arena_printf(&a, "GPU-%zu", i), .mib = 1024};
    expect_int("one card too many", -1, inventory_pick(&many, &a, &picked, &err));
    expect_str("is named", "card 64: at most 64 cards are supported", err.text);
    expect_int("the others are offered", GPU_CARDS_MAX, (int64_t)picked.cards_len);
    error_clear(&err);
    for (size_t i = 0; i <= GPU_CARDS_MAX; i++)
        cards[i].mib = (int64_t)INVENTORY_CARD_GIB_MAX * 1024;
    expect_int("more ids than fit into one message", -1, inventory_pick(&many, &a, &picked, &err));
    expect_str("by the first card", "card 32: memory: with it the node would offer over 32768 GiB",
               err.text);
    expect_int("up to the bound", INVENTORY_GIB_MAX, gpu_inventory_gib(&picked));

    struct gpu_inventory three;
    cards_make(&three, &a, (const int64_t[]){1024, 1024, 1024, 0});
    three.links = (const char *[]){"X", "NV1", "NV2", "NV1", "X", "PIX", "NV2", "PIX", "X"};
    three.cards[1].mib = 0;
    expect_int("the card in the middle", -1, inventory_pick(&three, &a, &picked, NULL));
    expect_int("two are left", 2, (int64_t)picked.cards_len);
    expect_str("with their link", "NV2", picked.links[1]);
    expect_str("both ways", "NV2", picked.links[2]);
    expect_done();
}

static void lists_for_the_kubelet(void **state)
{
    (void)state;
    struct gpu_inventory inv;
    cards_make(&inv, &a, (const int64_t[]){16160, 1023, 24 * 1024, 0});
    inv.cards[2].health = GPU_HEALTH_SICK;
    inv.cards[2].numa = 1;
    static const struct {
        const char *row;
        enum mode_resource r;
        size_t len, healthy;
        const char *first, *last;
    } rows[] = {
        {"each card by its own size, a card below 1 GiB offers nothing", MODE_GPU_MEM, 15 + 24, 15,
         "GPU-a-_-0", "GPU-c-_-23"},
        {"a hundred per cent of each card", MODE_GPU_CORE, 300, 200, "GPU-a-_-0", "GPU-c-_-99"},
        {"whole cards", MODE_GPU, 3, 2, "GPU-a", "GPU-c"},
        {"whole cards, exclusively", MODE_NVIDIA_GPU, 3, 2, "GPU-a", "GPU-c"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct inventory_devices d;
        inventory_devices(&inv, rows[i].r, NULL, &a, &d);
        size_t healthy = 0;
        for (size_t k = 0; k < d.len; k++) {
            healthy += d.items[k].healthy;
            expect_true("ids are short enough", strlen(d.items[k].id) <= INVENTORY_ID_MAX);
            expect_true("every id is found again",
                        inventory_find(&inv, rows[i].r, d.items[k].id) >= 0);
        }
        expect_int(rows[i].row, (int64_t)rows[i].len, (int64_t)d.len);
        expect_int(rows[i].row, (int64_t)rows[i].healthy, (int64_t)healthy);
        expect_str(rows[i].row, rows[i].first, d.items[0].id);
        expect_str(rows[i].row, rows[i].last, d.items[d.len - 1].id);
        expect_int("only whole cards carry a NUMA node", mode_resource_is_whole(rows[i].r) ? 1 : -1,
                   d.items[d.len - 1].numa);
    }
    struct inventory_ids held = cards_ids(&a, "GPU-c:3 GPU-a:0");
    struct inventory_devices d;
    inventory_devices(&inv, MODE_GPU_MEM, &held, &a, &d);
    expect_int("during a switch exactly the held ids", 2, (int64_t)d.len);
    expect_true("all healthy, the sick card's too", d.items[0].healthy && d.items[1].healthy);
    expect_done();
}

static void ids_and_their_cards(void **state)
{
    (void)state;
    struct gpu_inventory inv;
    cards_make(&inv, &a, (const int64_t[]){16160, 4096, 0});
    inv.cards[1].uuid = "GPU-a-1"; /* its uuid begins like the other's */
    static const struct {
        const char *row;
        enum mode_resource r;
        const char *id;
        int32_t card;
    } rows[] = {
        {"the first slice", MODE_GPU_MEM, "GPU-a-_-0", 0},
        {"the last slice", MODE_GPU_MEM, "GPU-a-_-14", 0},
        {"one past the last", MODE_GPU_MEM, "GPU-a-_-15", -1},
        {"a slice of the other resource", MODE_GPU_CORE, "GPU-a-_-99", 0},
        {"beyond a hundred", MODE_GPU_CORE, "GPU-a-_-100", -1},
        {"the longer uuid", MODE_GPU_MEM, "GPU-a-1-_-3", 1},
        {"past the smaller card", MODE_GPU_MEM, "GPU-a-1-_-4", -1},
        {"a leading zero is another id", MODE_GPU_MEM, "GPU-a-_-01", -1},
        {"negative", MODE_GPU_MEM, "GPU-a-_--1", -1},
        {"no number", MODE_GPU_MEM, "GPU-a-_-", -1},
        {"text after the number", MODE_GPU_MEM, "GPU-a-_-1x", -1},
        {"a card where a slice is wanted", MODE_GPU_MEM, "GPU-a", -1},
        {"a whole card", MODE_GPU, "GPU-a", 0},
        {"the other whole card", MODE_GPU, "GPU-a-1", 1},
        {"a slice where a card is wanted", MODE_GPU, "GPU-a-_-0", -1},
        {"nobody's", MODE_GPU, "GPU-z", -1},
        {"nothing", MODE_GPU, "", -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_int(rows[i].row, rows[i].card, inventory_find(&inv, rows[i].r, rows[i].id));
    expect_int("by index", 1, inventory_card(&inv, 1));
    expect_int("no such index", INVENTORY_NONE, inventory_card(&inv, 2));
    expect_done();
}

static void cards_come_and_go(void **state)
{
    (void)state;
    struct gpu_inventory three, two, out, again;
    cards_make(&three, &a, (const int64_t[]){16160, 16160, 16160, 0});
    three.links = arena_new(&a, const char *, 9);
    for (size_t i = 0; i < 9; i++)
        three.links[i] = i % 4 == 0 ? "X" : i == 1 || i == 3 ? "NV2" : "PHB";
    two = three;
    two.cards = arena_new(&a, struct gpu_card, 2);
    two.cards[0] = three.cards[0];
    two.cards[1] = three.cards[2];
    two.cards_len = 2;
    two.links = arena_new(&a, const char *, 4);
    two.links[0] = two.links[3] = "X";
    two.links[1] = two.links[2] = "PHB";

    inventory_merge(NULL, &three, &a, &out);
    expect_true("the first scan is taken as it is", inventory_equal(&three, &out));
    inventory_merge(&out, &two, &a, &again);
    expect_int("a card that vanished stays", 3, (int64_t)again.cards_len);
    expect_int("in its place", 1, again.cards[1].index);
    expect_int("as sick", GPU_HEALTH_SICK, again.cards[1].health);
    expect_int("the others are well", GPU_HEALTH_OK, again.cards[2].health);
    expect_str("its links are remembered", "NV2", again.links[1]);
    expect_int("that is a change", false, inventory_equal(&out, &again));
    inventory_merge(&again, &three, &a, &out);
    expect_true("it comes back well", inventory_equal(&three, &out));

    struct gpu_inventory replaced = three;
    replaced.cards = arena_new(&a, struct gpu_card, 3);
    memcpy(replaced.cards, three.cards, 3 * sizeof *replaced.cards);
    replaced.cards[1].uuid = "GPU-new";
    inventory_merge(&three, &replaced, &a, &out);
    expect_int("a card whose index was taken is gone", 3, (int64_t)out.cards_len);
    expect_str("the new one is there", "GPU-new", out.cards[1].uuid);

    struct gpu_inventory bigger = three;
    bigger.cards = arena_new(&a, struct gpu_card, 3);
    memcpy(bigger.cards, three.cards, 3 * sizeof *bigger.cards);
    bigger.cards[0].mib++;
    expect_int("a MiB more is a change", false, inventory_equal(&three, &bigger));
    bigger.cards[0].mib--;
    bigger.cards[0].why = "XID 79";
    expect_int("another reason is a change", false, inventory_equal(&three, &bigger));
    inventory_merge(NULL, &bigger, &a, &out);
    expect_str("which is copied", "XID 79", out.cards[0].why);
    struct gpu_inventory relinked = three;
    relinked.links = arena_new(&a, const char *, 9);
    memcpy(relinked.links, three.links, 9 * sizeof *relinked.links);
    relinked.links[5] = "SYS";
    expect_int("another link is a change", false, inventory_equal(&three, &relinked));
    relinked.links = NULL;
    expect_int("no links at all is a change", false, inventory_equal(&three, &relinked));
    expect_done();
}

static void accelerator_labels(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        const char *models[4];
        int64_t mib[5];
        const char *name, *mem, *count;
    } rows[] = {
        {"one kind",
         {"Tesla V100-SXM2-32GB", "Tesla V100-SXM2-32GB"},
         {32510, 32510, 0},
         "Tesla-V100-SXM2-32GB",
         "32510MiB",
         "2"},
        {"mixed: the model of most cards, the smallest memory",
         {"A10", "Tesla T4", "Tesla T4"},
         {24000, 15360, 16000, 0},
         "Tesla-T4",
         "15360MiB",
         "3"},
        {"even: the first", {"A10", "T4"}, {24000, 15360, 0}, "A10", "15360MiB", "2"},
        {"characters that no label takes",
         {"(R) Graphics / X®"},
         {1024, 0},
         "R_-Graphics-_-X",
         "1024MiB",
         "1"},
        {"63 characters",
         {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
         {1024, 0},
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         "1024MiB",
         "1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gpu_inventory inv;
        struct labels l;
        cards_make(&inv, &a, rows[i].mib);
        for (size_t k = 0; k < inv.cards_len; k++)
            inv.cards[k].model = rows[i].models[k];
        inventory_labels(&inv, &a, &l);
        expect_str(rows[i].row, rows[i].name, labels_get(&l, "aliyun.accelerator/nvidia_name"));
        expect_str(rows[i].row, rows[i].mem, labels_get(&l, "aliyun.accelerator/nvidia_mem"));
        expect_str(rows[i].row, rows[i].count, labels_get(&l, "aliyun.accelerator/nvidia_count"));
    }
    struct gpu_inventory none = {0};
    struct labels l;
    inventory_labels(&none, &a, &l);
    for (size_t i = 0; i < l.len; i++)
        expect_str("no cards, no labels", NULL, l.items[i].value);
    expect_int("those that were there go", 3, (int64_t)l.len);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(which_cards_can_be_offered, setup, teardown),
        cmocka_unit_test_setup_teardown(too_many_cards, setup, teardown),
        cmocka_unit_test_setup_teardown(lists_for_the_kubelet, setup, teardown),
        cmocka_unit_test_setup_teardown(ids_and_their_cards, setup, teardown),
        cmocka_unit_test_setup_teardown(cards_come_and_go, setup, teardown),
        cmocka_unit_test_setup_teardown(accelerator_labels, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
