// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/cards/mode.h"

#include "test/unit/lib/base/expect.h"

static const char *change_name(enum mode_change c)
{
    static const char *const names[] = {"same", "entered", "switching", "returned",
                                        "unknown label"};
    return names[c];
}

/* A story is a row: each step is a label ("-": none) or what is held, at a time. */
static void stories(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        struct {
            const char *label; /* NULL: the kubelet says what is held */
            size_t held;
            int64_t ms;
            enum mode_change change;
            enum gpu_mode mode;
            bool switching;
        } steps[5];
    } rows[] = {
        {"no label ever set is mode default", {{"-", 0, 0, MODE_ENTERED, GPU_MODE_DEFAULT, false}}},
        {"the first label is entered at once",
         {{"cgpu", 0, 0, MODE_ENTERED, GPU_MODE_CGPU, false}}},
        {"a first label of another's is default, and said",
         {{"vgpu", 0, 0, MODE_UNKNOWN_LABEL, GPU_MODE_DEFAULT, false}}},
        {"the same label again is nothing",
         {{"cgpu", 0, 0, MODE_ENTERED, GPU_MODE_CGPU, false},
          {"cgpu", 0, 1, MODE_SAME, GPU_MODE_CGPU, false}}},
        {"a removed label keeps the mode",
         {{"share", 0, 0, MODE_ENTERED, GPU_MODE_SHARE, false},
          {"-", 0, 1, MODE_SAME, GPU_MODE_SHARE, false}}},
        {"an unknown label keeps the mode",
         {{"share", 0, 0, MODE_ENTERED, GPU_MODE_SHARE, false},
          {"Share", 0, 1, MODE_UNKNOWN_LABEL, GPU_MODE_SHARE, false}}},
        {"an empty node switches only after the settling time",
         {{"cgpu", 0, 0, MODE_ENTERED, GPU_MODE_CGPU, false},
          {"topology", 0, 1000, MODE_SWITCHING, GPU_MODE_CGPU, true},
          {NULL, 0, 1000 + MODE_SETTLE_MS - 1, MODE_SAME, GPU_MODE_CGPU, true},
          {NULL, 0, 1000 + MODE_SETTLE_MS, MODE_ENTERED, GPU_MODE_TOPOLOGY, false}}},
        {"held ids keep the old mode until the last is gone",
         {{"cgpu", 0, 0, MODE_ENTERED, GPU_MODE_CGPU, false},
          {"default", 0, 0, MODE_SWITCHING, GPU_MODE_CGPU, true},
          {NULL, 2, 60000, MODE_SAME, GPU_MODE_CGPU, true},
          {NULL, 1, 120000, MODE_SAME, GPU_MODE_CGPU, true},
          {NULL, 0, 180000, MODE_ENTERED, GPU_MODE_DEFAULT, false}}},
        {"a label that goes back ends the switch",
         {{"cgpu", 0, 0, MODE_ENTERED, GPU_MODE_CGPU, false},
          {"mps", 0, 0, MODE_SWITCHING, GPU_MODE_CGPU, true},
          {"cgpu", 0, 1, MODE_RETURNED, GPU_MODE_CGPU, false},
          {NULL, 0, 60000, MODE_SAME, GPU_MODE_CGPU, false}}},
        {"a second thought starts the clock again",
         {{"cgpu", 0, 0, MODE_ENTERED, GPU_MODE_CGPU, false},
          {"mps", 0, 0, MODE_SWITCHING, GPU_MODE_CGPU, true},
          {"share", 0, 400, MODE_SWITCHING, GPU_MODE_CGPU, true},
          {NULL, 0, 400 + MODE_SETTLE_MS - 1, MODE_SAME, GPU_MODE_CGPU, true},
          {NULL, 0, 400 + MODE_SETTLE_MS, MODE_ENTERED, GPU_MODE_SHARE, false}}},
        {"a label removed during the switch does not end it",
         {{"cgpu", 0, 0, MODE_ENTERED, GPU_MODE_CGPU, false},
          {"mps", 0, 0, MODE_SWITCHING, GPU_MODE_CGPU, true},
          {"-", 0, 1, MODE_SAME, GPU_MODE_CGPU, true},
          {NULL, 0, 60000, MODE_ENTERED, GPU_MODE_MPS, false}}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mode m = {0};
        for (size_t k = 0; k < 5 && (k == 0 || rows[i].steps[k].label || rows[i].steps[k].ms);
             k++) {
            const char *label = rows[i].steps[k].label;
            enum mode_change c =
                label == NULL
                    ? mode_held(&m, rows[i].steps[k].held, rows[i].steps[k].ms)
                    : mode_label(&m, strcmp(label, "-") == 0 ? NULL : label, rows[i].steps[k].ms);
            expect_str(rows[i].row, change_name(rows[i].steps[k].change), change_name(c));
            expect_str(rows[i].row, gpu_mode_name(rows[i].steps[k].mode), gpu_mode_name(m.current));
            expect_int(rows[i].row, rows[i].steps[k].switching, m.switching);
        }
    }
    expect_done();
}

static void what_each_mode_offers(void **state)
{
    (void)state;
    static const struct {
        enum gpu_mode mode;
        const char *resources;
        bool isolation;
    } rows[] = {
        {GPU_MODE_DEFAULT, "nvidia.com/gpu ", false},
        {GPU_MODE_CGPU, "aliyun.com/gpu-mem ", true},
        {GPU_MODE_SHARE, "aliyun.com/gpu-mem ", false},
        {GPU_MODE_MPS, "aliyun.com/gpu-mem ", true},
        {GPU_MODE_CORE_MEM, "aliyun.com/gpu-mem aliyun.com/gpu-core.percentage ", true},
        {GPU_MODE_TOPOLOGY, "aliyun.com/gpu ", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        AUTO_STRBUF got;
        strbuf_init(&got);
        for (int r = 0; r < MODE_RESOURCES; r++)
            if (mode_resources(rows[i].mode) & 1u << r)
                strbuf_addf(&got, "%s ", mode_resource_name((enum mode_resource)r));
        expect_str(gpu_mode_name(rows[i].mode), rows[i].resources, strbuf_str(&got));
        expect_int(gpu_mode_name(rows[i].mode), rows[i].isolation,
                   mode_needs_isolation(rows[i].mode));
    }
    enum mode_resource r;
    expect_true("a resource by name", mode_resource_parse("aliyun.com/gpu", &r) && r == MODE_GPU);
    expect_int("one that is patched, not registered", false,
               mode_resource_parse("aliyun.com/gpu-count", &r));
    expect_int("NULL", false, mode_resource_parse(NULL, &r));
    expect_int("shares", false, mode_resource_is_whole(MODE_GPU_CORE));
    expect_int("whole cards", true, mode_resource_is_whole(MODE_NVIDIA_GPU));
    expect_str("the name of its socket", "gpu-core", mode_resource_slug(MODE_GPU_CORE));
    expect_done();
}

static void the_state_file(void **state)
{
    (void)state;
    struct mode m = {.known = true,
                     .current = GPU_MODE_CORE_MEM,
                     .served = 1u << MODE_GPU_MEM | 1u << MODE_NVIDIA_GPU};
    struct mode back = {0};
    struct error err = ERROR_INIT;
    AUTO_STRBUF text;
    strbuf_init(&text);
    mode_encode(&m, &text);
    expect_str(
        "written",
        "{\"v\":1,\"mode\":\"core_mem\",\"served\":[\"aliyun.com/gpu-mem\",\"nvidia.com/gpu\"]}",
        strbuf_str(&text));
    expect_int("read back", 0, mode_decode(&back, text.ptr, text.len, &err));
    expect_true("the same", back.known && back.current == m.current && back.served == m.served &&
                                !back.switching);
    m.switching = true;
    m.to = GPU_MODE_TOPOLOGY;
    strbuf_reset(&text);
    mode_encode(&m, &text);
    expect_str(
        "during a switch",
        "{\"v\":1,\"mode\":\"core_mem\",\"to\":\"topology\",\"served\":[\"aliyun.com/gpu-mem\","
        "\"nvidia.com/gpu\"]}",
        strbuf_str(&text));
    expect_int("read back", 0, mode_decode(&back, text.ptr, text.len, &err));
    expect_true("it goes on", back.switching && back.current == m.current && back.to == m.to);
    static const struct {
        const char *row, *text, *error;
    } rows[] = {
        {"a switch to nowhere", "{\"v\":1,\"mode\":\"cgpu\",\"to\":\"x\",\"served\":[]}",
         "to: must be another one of default, cgpu, core_mem, share, mps, topology: 'x'"},
        {"a switch to itself", "{\"v\":1,\"mode\":\"cgpu\",\"to\":\"cgpu\",\"served\":[]}",
         "to: must be another one of default, cgpu, core_mem, share, mps, topology: 'cgpu'"},
        {"a switch that is no text", "{\"v\":1,\"mode\":\"cgpu\",\"to\":null,\"served\":[]}",
         "to: must be another one of default, cgpu, core_mem, share, mps, topology: ''"},
        {"not JSON", "{\"v\":1,", NULL},
        {"empty file (a crash while writing)", "", NULL},
        {"another version", "{\"v\":2,\"mode\":\"cgpu\",\"served\":[]}", "v: must be 1"},
        {"no version", "{\"mode\":\"cgpu\",\"served\":[]}", "v: must be 1"},
        {"another mode", "{\"v\":1,\"mode\":\"x\",\"served\":[]}",
         "mode: must be one of default, cgpu, core_mem, share, mps, topology: 'x'"},
        {"no list", "{\"v\":1,\"mode\":\"cgpu\"}", "served: must be an array"},
        {"not a resource of ours", "{\"v\":1,\"mode\":\"cgpu\",\"served\":[\"cpu\"]}",
         "served: not a resource of ours: 'cpu'"},
        {"not a string", "{\"v\":1,\"mode\":\"cgpu\",\"served\":[1]}",
         "served: not a resource of ours: ''"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        error_clear(&err);
        back = (struct mode){.current = GPU_MODE_MPS};
        expect_int(rows[i].row, -1, mode_decode(&back, rows[i].text, strlen(rows[i].text), &err));
        if (rows[i].error != NULL)
            expect_str(rows[i].row, rows[i].error, err.text);
        expect_true(rows[i].row, back.current == GPU_MODE_MPS && !back.known);
    }
    AUTO_STRBUF big;
    strbuf_init(&big);
    strbuf_add(&big, text.ptr, text.len);
    while (big.len <= MODE_STATE_BYTES_MAX)
        strbuf_addc(&big, ' ');
    expect_int("over the bound", -1, mode_decode(&back, big.ptr, big.len, &err));
    expect_int("up to the bound", 0, mode_decode(&back, big.ptr, MODE_STATE_BYTES_MAX, &err));
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stories),
        cmocka_unit_test(what_each_mode_offers),
        cmocka_unit_test(the_state_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
