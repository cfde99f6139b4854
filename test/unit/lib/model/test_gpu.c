// SPDX-License-Identifier: Apache-2.0
#include "lib/model/gpu.h"

#include "test/unit/lib/model/build.h"

#define CARD(i)                                                                               \
    "{'i':" #i ",'uuid':'GPU-" #i "','model':'T4','mib':15360,'numa':0,'pci':'0000:3b:00." #i \
    "','health':'ok'}"

static const char example[] =
    "{'v':1,'mode':'cgpu','switchingTo':null,'isolation':'mps','cards':["
    "{'i':0,'uuid':'GPU-a','model':'Tesla T4','mib':15360,'numa':0,'pci':'0000:3b:00.0','health':'ok'},"
    "{'i':3,'uuid':'GPU-b','model':'Tesla \\'V100\\'','mib':32510,'numa':-1,'pci':'','health':'sick'}],"
    "'links':[['X','NV2'],['NV2','X']]}";

static void an_inventory_is_read(void **state)
{
    (void)state;
    char *text = quoted(example);
    struct gpu_inventory inv;
    struct error err = ERROR_INIT;

    assert_int_equal(0, gpu_inventory_decode(text, strlen(text), &arena, &inv, &err));
    expect_int("mode", GPU_MODE_CGPU, inv.mode);
    expect_int("not switching", false, inv.switching);
    expect_str("isolation", "mps", inv.isolation);
    expect_int("two cards", 2, (int64_t)inv.cards_len);
    expect_int("index", 3, inv.cards[1].index);
    expect_str("uuid", "GPU-a", inv.cards[0].uuid);
    expect_str("model", "Tesla \"V100\"", inv.cards[1].model);
    expect_int("mib", 15360, inv.cards[0].mib);
    expect_int("numa", 0, inv.cards[0].numa);
    expect_int("numa unknown", -1, inv.cards[1].numa);
    expect_str("pci", "0000:3b:00.0", inv.cards[0].pci);
    expect_int("healthy", GPU_HEALTH_OK, inv.cards[0].health);
    expect_int("sick", GPU_HEALTH_SICK, inv.cards[1].health);
    expect_str("link", "NV2", inv.links[1]);
    expect_int("GiB are rounded down for each card", 15 + 31, gpu_inventory_gib(&inv));
    expect_done();
}

static void an_inventory_survives_the_way_there_and_back(void **state)
{
    (void)state;
    static const char *const rows[] = {
        example,
        "{'v':1,'mode':'default','switchingTo':null,'cards':[]}",
        "{'v':1,'mode':'share','switchingTo':'topology','cards':[" CARD(0) "]}",
        "{'v':1,'mode':'share','switchingTo':null,'cards':[{'i':0,'uuid':'u','model':'','mib':1,'numa':0,'pci':'',"
        "'health':'sick','why':'XID 79: the card has fallen off the bus'}]}",
        "{'v':1,'mode':'mps','switchingTo':'default','isolation':'none','cards':[" CARD(
            63) "],'links':[['X']]}",
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *text = quoted(rows[i]);
        struct gpu_inventory inv;
        struct error err = ERROR_INIT;
        AUTO_STRBUF out;
        strbuf_init(&out);
        expect_int(text, 0, gpu_inventory_decode(text, strlen(text), &arena, &inv, &err));
        expect_str(text, "", err.text);
        gpu_inventory_encode(&inv, &out);
        expect_str("written again", text, strbuf_str(&out));
    }
    expect_done();
}

static void what_is_wrong_with_a_card(void **state)
{
    (void)state;
    static const struct {
        const char *row, *why, *says;
    } rows[] = {
        {"an error number says enough", "XID 79: the card has fallen off the bus",
         "unhealthy (XID 79)"},
        {"nothing behind the number", "XID 79", "unhealthy (XID 79)"},
        {"words", "2 uncorrected memory errors: row 7",
         "unhealthy (2 uncorrected memory errors: row 7)"},
        {"an old plugin does not say", "", "unhealthy"},
        {"nor does a card that was never asked", NULL, "unhealthy"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gpu_card c = {.health = GPU_HEALTH_SICK, .why = rows[i].why};
        expect_str(rows[i].row, rows[i].says, gpu_card_trouble(&c, &arena));
    }
    expect_done();
}

static void what_may_be_missing_may_be_missing(void **state)
{
    (void)state;
    char *text = quoted(
        "{'v':1,'mode':'topology','new':[1],'cards':[{'i':1,'uuid':'u','mib':1,'health':'ok'},"
        "{'i':0,'uuid':'w','mib':1023,'health':'ok','numa':null,'model':null}],'links':null}");
    struct gpu_inventory inv;
    struct error err = ERROR_INIT;

    assert_int_equal(0, gpu_inventory_decode(text, strlen(text), &arena, &inv, &err));
    expect_str("isolation", NULL, inv.isolation);
    expect_true("links", inv.links == NULL);
    expect_str("model", "", inv.cards[0].model);
    expect_str("pci", "", inv.cards[1].pci);
    expect_int("numa", -1, inv.cards[0].numa);
    expect_int("numa null", -1, inv.cards[1].numa);
    expect_int("the order of the text stays", 1, inv.cards[0].index);
    expect_int("less than one GiB is none", 0, gpu_inventory_gib(&inv));
    expect_done();
}

static void bad_inventories_are_refused_with_the_field(void **state)
{
    (void)state;
#define INV(cards, links) "{'v':1,'mode':'cgpu','cards':[" cards "]" links "}"
#define ONE(field) INV("{'i':0,'uuid':'u','mib':1,'health':'ok'," field "}", "")
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"[]", "must be an object, not array"},
        {"{}", "v: only version 1 is known"},
        {"{'v':2,'mode':'cgpu','cards':[]}", "v: only version 1 is known"},
        {"{'v':'1','mode':'cgpu','cards':[]}", "v: only version 1 is known"},
        {"{'v':1,'cards':[]}",
         "mode: must be one of default, cgpu, core_mem, share, mps, topology: ''"},
        {"{'v':1,'mode':'CGPU','cards':[]}",
         "mode: must be one of default, cgpu, core_mem, share, mps, topology: 'CGPU'"},
        {"{'v':1,'mode':'cgpu','switchingTo':7,'cards':[]}",
         "switchingTo: must be one of default, cgpu, core_mem, share, mps, topology: ''"},
        {"{'v':1,'mode':'cgpu','isolation':1,'cards':[]}",
         "isolation: must be a string, not number"},
        {"{'v':1,'mode':'cgpu'}", "cards: must be an array, not nothing"},
        {"{'v':1,'mode':'cgpu','cards':{}}", "cards: must be an array, not object"},
        {INV("7", ""), "cards[0]: must be an object, not number"},
        {INV("{}", ""), "cards[0]: i: must be an integer from 0 to 63"},
        {INV("{'i':-1}", ""), "cards[0]: i: must be an integer from 0 to 63"},
        {INV("{'i':64}", ""), "cards[0]: i: must be an integer from 0 to 63"},
        {INV("{'i':0.5}", ""), "cards[0]: i: must be an integer from 0 to 63"},
        {INV("{'i':0,'mib':1,'health':'ok'}", ""), "cards[0]: uuid: must not be empty"},
        {INV("{'i':0,'uuid':'','mib':1,'health':'ok'}", ""), "cards[0]: uuid: must not be empty"},
        {INV("{'i':0,'uuid':5,'mib':1,'health':'ok'}", ""),
         "cards[0]: uuid: must be a string, not number"},
        {INV("{'i':0,'uuid':'u','health':'ok'}", ""),
         "cards[0]: mib: must be an integer from 1 to 1073741824"},
        {INV("{'i':0,'uuid':'u','mib':0,'health':'ok'}", ""),
         "cards[0]: mib: must be an integer from 1 to 1073741824"},
        {INV("{'i':0,'uuid':'u','mib':-5,'health':'ok'}", ""),
         "cards[0]: mib: must be an integer from 1 to 1073741824"},
        {INV("{'i':0,'uuid':'u','mib':1073741825,'health':'ok'}", ""),
         "cards[0]: mib: must be an integer from 1 to 1073741824"},
        {INV("{'i':0,'uuid':'u','mib':1}", ""), "cards[0]: health: must be ok or sick: ''"},
        {ONE("'why':7"), "cards[0]: why: must be a string, not number"},
        {INV("{'i':0,'uuid':'u','mib':1,'health':'dead'}", ""),
         "cards[0]: health: must be ok or sick: 'dead'"},
        {ONE("'numa':-2"), "cards[0]: numa: must be an integer from -1 to 1023"},
        {ONE("'numa':1024"), "cards[0]: numa: must be an integer from -1 to 1023"},
        {ONE("'numa':'0'"), "cards[0]: numa: must be an integer from -1 to 1023"},
        {ONE("'model':[]"), "cards[0]: model: must be a string, not array"},
        {ONE("'pci':{}"), "cards[0]: pci: must be a string, not object"},
        {INV(CARD(1) "," CARD(1), ""), "cards[1].i: card 1 is there twice"},
        {INV(CARD(1) ",{'i':2,'uuid':'GPU-1','mib':1,'health':'ok'}", ""),
         "cards[1].uuid: 'GPU-1' is there twice"},
        {INV(CARD(0), ",'links':{}"), "links: must be an array of 1 rows"},
        {INV(CARD(0), ",'links':[]"), "links: must be an array of 1 rows"},
        {INV(CARD(0), ",'links':[['X'],['X']]"), "links: must be an array of 1 rows"},
        {INV(CARD(0), ",'links':['X']"), "links[0]: must be an array of 1 links"},
        {INV(CARD(0) "," CARD(1), ",'links':[['X','SYS'],['X']]"),
         "links[1]: must be an array of 2 links"},
        {INV(CARD(0), ",'links':[[1]]"), "links[0][0]: must be a string of 1 to 16 bytes"},
        {INV(CARD(0), ",'links':[['']]"), "links[0][0]: must be a string of 1 to 16 bytes"},
        {INV(CARD(0), ",'links':[['01234567890123456']]"),
         "links[0][0]: must be a string of 1 to 16 bytes"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *text = quoted(rows[i].text);
        struct gpu_inventory inv;
        struct error err = ERROR_INIT;
        expect_int(text, -1, gpu_inventory_decode(text, strlen(text), &arena, &inv, &err));
        expect_str(text, arena_printf(&arena, "gpu inventory: %s", rows[i].message), err.text);
        expect_int(text, ERROR_INVALID, err.code);
        expect_int("nothing is left in it", 0, (int64_t)inv.cards_len);
    }
    struct gpu_inventory inv;
    struct error err = ERROR_INIT;
    expect_int("not JSON", -1, gpu_inventory_decode("{", 1, &arena, &inv, &err));
    expect_true("not JSON", strncmp(err.text, "gpu inventory: ", 15) == 0);
    expect_done();
}

/* An inventory of n cards whose uuid has this many bytes. */
static void write_cards(struct strbuf *out, unsigned n, unsigned uuid_bytes)
{
    strbuf_adds(out, "{\"v\":1,\"mode\":\"cgpu\",\"cards\":[");
    for (unsigned i = 0; i < n; i++)
        strbuf_addf(out, "%s{\"i\":%u,\"uuid\":\"%0*u\",\"mib\":1024,\"health\":\"ok\"}",
                    i ? "," : "", i % 64, (int)uuid_bytes, i);
    strbuf_adds(out, "]}");
}

static void sizes_are_bounded(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        unsigned cards, uuid_bytes, padding;
        const char *message;
    } rows[] = {
        {"64 cards", 64, 40, 0, ""},
        {"65 cards", 65, 40, 0, "gpu inventory: cards: more than 64"},
        {"a uuid of 128 bytes", 1, 128, 0, ""},
        {"a uuid of 129 bytes", 1, 129, 0, "gpu inventory: cards[0]: uuid: longer than 128 bytes"},
        {"64 KiB", 1, 40, GPU_INVENTORY_BYTES_MAX, ""},
        {"one byte more", 1, 40, GPU_INVENTORY_BYTES_MAX + 1,
         "gpu inventory: longer than 65536 bytes"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        AUTO_STRBUF text;
        struct gpu_inventory inv;
        struct error err = ERROR_INIT;
        strbuf_init(&text);
        write_cards(&text, rows[i].cards, rows[i].uuid_bytes);
        while (text.len < rows[i].padding)
            strbuf_addc(&text, ' ');
        (void)gpu_inventory_decode(text.ptr, text.len, &arena, &inv, &err);
        expect_str(rows[i].row, rows[i].message, err.text);
    }
    expect_done();
}

static void modes_have_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum gpu_mode mode;
        bool shared;
    } rows[] = {{"default", GPU_MODE_DEFAULT, false},  {"cgpu", GPU_MODE_CGPU, true},
                {"core_mem", GPU_MODE_CORE_MEM, true}, {"share", GPU_MODE_SHARE, true},
                {"mps", GPU_MODE_MPS, true},           {"topology", GPU_MODE_TOPOLOGY, false}};
    AUTO_STRBUF all;
    enum gpu_mode mode;

    strbuf_init(&all);
    expect_int("a row for each mode", GPU_MODES, sizeof rows / sizeof rows[0]);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        expect_true(rows[i].name, gpu_mode_parse(rows[i].name, &mode));
        expect_int(rows[i].name, rows[i].mode, mode);
        expect_str(rows[i].name, rows[i].name, gpu_mode_name(rows[i].mode));
        expect_int(rows[i].name, rows[i].shared, gpu_mode_is_shared(rows[i].mode));
        strbuf_addf(&all, "%s%s", i ? ", " : "", rows[i].name);
    }
    expect_str("all of them", strbuf_str(&all), gpu_mode_names());
    expect_int("unknown", false, gpu_mode_parse("gpu", &mode));
    expect_int("empty", false, gpu_mode_parse("", &mode));
    expect_int("none", false, gpu_mode_parse(NULL, &mode));
    expect_str("a number that is no mode", "unknown", gpu_mode_name(GPU_MODES));
    expect_done();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(an_inventory_is_read),
        TEST(an_inventory_survives_the_way_there_and_back),
        TEST(what_is_wrong_with_a_card),
        TEST(what_may_be_missing_may_be_missing),
        TEST(bad_inventories_are_refused_with_the_field),
        TEST(sizes_are_bounded),
        TEST(modes_have_names),
    };
    return cmocka_run_group_tests_name("gpu", tests, NULL, NULL);
}
