// SPDX-License-Identifier: Apache-2.0
/* The node file: what it says, and what it may not say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "test/local/nodes/nodes_file.h"

static void load(struct nodes_file *f, const char *text)
{
    struct error err = ERROR_INIT;
    if (nodes_file_parse(f, text, strlen(text), ".", &err) < 0)
        fail_msg("%s: %s", text, err.text);
}

static void test_defaults(void **state)
{
    (void)state;
    struct nodes_file f;
    load(&f, "{\"nodes\":[{\"name\":\"a\"}]}");
    assert_int_equal(f.len, 1);
    const struct nodes_spec *s = &f.items[0];
    assert_string_equal(s->name, "a");
    assert_string_equal(s->address, "192.0.2.1");
    assert_int_equal(s->role, NODES_FILE_KUBELET);
    assert_int_equal(s->amounts.cpu_milli, 32000);
    assert_int_equal(s->amounts.memory_bytes, 128LL << 30);
    assert_int_equal(s->amounts.pods, 110);
    assert_int_equal(s->cpus, 32);
    assert_int_equal(s->numa, 1);
    assert_false(s->plugin);
    assert_string_equal(labels_get(&s->labels, "kubernetes.io/hostname"), "a");
    assert_string_equal(labels_get(&s->labels, "kubernetes.io/os"), "linux");
    assert_null(labels_get(&s->labels, "type"));
    nodes_file_deinit(&f);
}

static void test_everything_that_can_be_said(void **state)
{
    (void)state;
    struct nodes_file f;
    load(&f, "{\"nodes\":[{\"name\":\"g\",\"labels\":{\"ack.node.gpu.schedule\":\"cgpu\","
             "\"kubernetes.io/os\":\"windows\"},\"annotations\":{\"x\":\"y\"},"
             "\"taints\":[{\"key\":\"k\",\"value\":\"v\",\"effect\":\"NoExecute\"}],"
             "\"memory\":\"1Gi\",\"pods\":7,\"extra\":{\"example.com/n\":4},"
             "\"topology\":\"pack:2 [numa] l3:4 core:8 pu:1\",\"address\":\"192.0.2.77\","
             "\"gpus\":[{\"model\":\"A\",\"mib\":1024,\"count\":2},{\"model\":\"B\",\"mib\":2048,"
             "\"numa\":1}],\"isolation\":\"none\",\"pluginArgs\":[\"--log-level=debug\"]}]}");
    const struct nodes_spec *s = &f.items[0];
    assert_string_equal(labels_get(&s->labels, "kubernetes.io/os"), "windows");
    assert_string_equal(labels_get(&s->annotations, "x"), "y");
    assert_int_equal(s->taints_len, 1);
    assert_string_equal(s->taints[0].key, "k");
    assert_int_equal(s->taints[0].effect, TAINT_NO_EXECUTE);
    assert_int_equal(s->cpus, 64);
    assert_int_equal(s->numa, 2);
    assert_int_equal(s->amounts.cpu_milli, 64000);
    assert_int_equal(resources_get(&s->amounts, "example.com/n", NULL), 4);
    assert_string_equal(s->address, "192.0.2.77");
    assert_true(s->plugin);
    assert_string_equal(s->isolation, "none");
    assert_string_equal(s->plugin_args[0], "--log-level=debug");
    assert_null(s->plugin_args[1]);
    assert_int_equal(s->cards.cards_len, 3);
    assert_string_equal(s->cards.cards[2].model, "B");
    assert_int_equal(s->cards.cards[0].numa, 0); /* two cards over two NUMA nodes */
    assert_int_equal(s->cards.cards[1].numa, 1);
    assert_int_equal(s->cards.cards[2].numa, 1);
    assert_string_equal(s->cards.links[0], "X");
    assert_string_equal(s->cards.links[1], "SYS");
    assert_string_equal(s->cards.links[1 * 3 + 2], "PIX");
    nodes_file_deinit(&f);
}

static void test_cards_are_what_the_plugin_reads(void **state)
{
    (void)state;
    struct nodes_file f;
    struct gpu_inventory back;
    struct arena a;
    struct error err = ERROR_INIT;
    AUTO_STRBUF text;
    strbuf_init(&text);
    arena_init(&a, 0);
    load(&f, "{\"nodes\":[{\"name\":\"g\",\"count\":2,\"gpus\":{\"mib\":15360,\"count\":4},"
             "\"links\":\"NV2\"}]}");
    nodes_file_print_cards(&f.items[1].cards, &text);
    assert_int_equal(gpu_inventory_decode(strbuf_str(&text), text.len, &a, &back, &err), 0);
    assert_int_equal(back.cards_len, 4);
    assert_string_equal(back.links[1], "NV2");
    /* Cards of two nodes, and two cards of one, never have the same uuid. */
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 4; k++) {
            assert_string_not_equal(f.items[0].cards.cards[i].uuid, f.items[1].cards.cards[k].uuid);
            if (i != k)
                assert_string_not_equal(back.cards[i].uuid, back.cards[k].uuid);
        }
    arena_deinit(&a);
    nodes_file_deinit(&f);
}

static void test_a_virtual_node(void **state)
{
    (void)state;
    struct nodes_file f;
    load(&f, "{\"nodes\":[{\"name\":\"v\",\"virtual\":true,\"gpus\":{\"mib\":1024}}]}");
    const struct nodes_spec *s = &f.items[0];
    assert_int_equal(s->role, NODES_FILE_VIRTUAL);
    assert_string_equal(labels_get(&s->labels, "type"), "virtual-kubelet");
    assert_string_equal(s->taints[0].key, "virtual-kubelet.io/provider");
    assert_string_equal(s->taints[0].value, "alibabacloud");
    assert_int_equal(s->taints[0].effect, TAINT_NO_SCHEDULE);
    assert_false(s->plugin);
    nodes_file_deinit(&f);
}

static void test_many_nodes_have_names_and_addresses_of_their_own(void **state)
{
    (void)state;
    struct nodes_file f;
    load(&f, "{\"nodes\":[{\"name\":\"h\",\"count\":1000,\"hollow\":true},{\"name\":\"one\"}]}");
    assert_int_equal(f.len, 1001);
    const struct {
        size_t at;
        const char *name, *address;
    } rows[] = {{0, "h-1", "192.0.2.1"},        {253, "h-254", "192.0.2.254"},
                {254, "h-255", "198.51.100.1"}, {761, "h-762", "203.0.113.254"},
                {762, "h-763", "100.64.0.1"},   {1000, "one", "100.64.0.239"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_string_equal(f.items[rows[i].at].name, rows[i].name);
        assert_string_equal(f.items[rows[i].at].address, rows[i].address);
    }
    nodes_file_deinit(&f);
}

static void test_mistakes_are_named(void **state)
{
    (void)state;
    const struct {
        const char *text, *error;
    } rows[] = {
        {"[]", "must be an object, not array"},
        {"{}", "nodes: must be an array, not nothing"},
        {"{\"node\":[]}", "node: no such key"},
        {"{\"nodes\":[{}]}", "nodes[0]: name: not a legal node name: ''"},
        {"{\"nodes\":[{\"name\":\"A\"}]}", "nodes[0]: name: not a legal node name: 'A'"},
        {"{\"nodes\":[{\"name\":\"a-\"}]}", "nodes[0]: name: not a legal node name: 'a-'"},
        {"{\"nodes\":[{\"name\":\"a/../b\"}]}", "nodes[0]: name: not a legal node name: 'a/../b'"},
        {"{\"nodes\":[{\"name\":\"a\",\"gpu\":1}]}", "nodes[0]: gpu: no such key"},
        {"{\"nodes\":[{\"name\":\"a\"},{\"name\":\"a\"}]}", "node a is there twice"},
        {"{\"nodes\":[{\"name\":\"a\",\"count\":20001}]}",
         "nodes[0]: count: there may be 0 to 20000 nodes"},
        {"{\"nodes\":[{\"name\":\"a\",\"count\":2,\"address\":\"192.0.2.1\"}]}",
         "nodes[0]: address: 2 nodes cannot have the same"},
        {"{\"nodes\":[{\"name\":\"a\",\"address\":\"1.2.3\"}]}",
         "nodes[0]: address: not an IP address: '1.2.3'"},
        {"{\"nodes\":[{\"name\":\"a\",\"cpu\":\"x\"}]}",
         "nodes[0]: resource cpu: not a quantity: 'x'"},
        {"{\"nodes\":[{\"name\":\"a\",\"cpu\":[]}]}",
         "nodes[0]: cpu: must be an amount, not array"},
        {"{\"nodes\":[{\"name\":\"a\",\"topology\":\"pack:x\"}]}",
         "nodes[0]: topology: hwloc does not understand 'pack:x'"},
        {"{\"nodes\":[{\"name\":\"a\",\"topology\":\"nowhere.xml\"}]}",
         "nodes[0]: topology: hwloc cannot read the file ./nowhere.xml"},
        {"{\"nodes\":[{\"name\":\"a\",\"topology\":\"core:1025 pu:1\"}]}",
         "nodes[0]: topology: 1025 CPUs; there must be 1 to 1024"},
        {"{\"nodes\":[{\"name\":\"a\",\"gpus\":{\"mib\":0}}]}",
         "nodes[0]: gpus: mib: must be a positive integer"},
        {"{\"nodes\":[{\"name\":\"a\",\"gpus\":[{\"mib\":1024,\"count\":65}]}]}",
         "nodes[0]: gpus[0]: count: a node has 0 to 64 cards"},
        {"{\"nodes\":[{\"name\":\"a\",\"gpus\":{\"mib\":1024,\"count\":2},\"links\":[[\"X\"]]}]}",
         "nodes[0]: links: must be a string or an array of 2 rows"},
        {"{\"nodes\":[{\"name\":\"a\",\"gpus\":{\"mib\":1024,\"count\":2},"
         "\"links\":[[\"X\",\"\"],[\"PIX\",\"X\"]]}]}",
         "nodes[0]: links[0][1]: must be a string of 1 to 16 bytes"},
        {"{\"nodes\":[{\"name\":\"a\",\"taints\":[{\"key\":\"k\",\"effect\":\"Never\"}]}]}",
         "nodes[0]: taints[0].effect: no such effect: 'Never'"},
        {"{\"nodes\":[{\"name\":\"a\",\"labels\":{\"k\":\"not legal\"}}]}",
         "nodes[0]: labels: not a legal label: 'k=not legal'"},
        {"{\"nodes\":[{\"name\":\"a\",\"virtual\":true,\"hollow\":true}]}",
         "nodes[0]: virtual and hollow exclude each other"},
        {"{\"nodes\":[{\"name\":\"a\",\"pluginArgs\":[1]}]}",
         "nodes[0]: pluginArgs[0]: must be a string"},
        {"{\"nodes\":[{\"name\":\"a\",\"reorderMs\":-1}]}",
         "nodes[0]: reorderMs: must be an integer, 0 to 10000"},
        {"{\"nodes\":[{\"name\":\"a\",\"reorderMs\":10001}]}",
         "nodes[0]: reorderMs: must be an integer, 0 to 10000"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct nodes_file f;
        struct error err = ERROR_INIT;
        if (nodes_file_parse(&f, rows[i].text, strlen(rows[i].text), ".", &err) == 0)
            fail_msg("accepted: %s", rows[i].text);
        if (strcmp(err.text, rows[i].error) != 0)
            fail_msg("%s\n  expected: %s\n  got:      %s", rows[i].text, rows[i].error, err.text);
    }
}

static void test_the_demo(void **state)
{
    (void)state;
    struct nodes_file f;
    struct error err = ERROR_INIT;
    if (nodes_file_load(&f, "test/local/fixtures/demo.json", &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(f.len, 8);
    assert_int_equal(f.items[0].cards.cards_len, 4);
    assert_int_equal(f.items[6].cpus, 64);
    assert_int_equal(f.items[7].role, NODES_FILE_VIRTUAL);
    nodes_file_deinit(&f);
    assert_int_equal(nodes_file_load(&f, "test/local/fixtures/none.json", &err), -1);
    assert_int_equal(err.code, ERROR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_everything_that_can_be_said),
        cmocka_unit_test(test_cards_are_what_the_plugin_reads),
        cmocka_unit_test(test_a_virtual_node),
        cmocka_unit_test(test_many_nodes_have_names_and_addresses_of_their_own),
        cmocka_unit_test(test_mistakes_are_named),
        cmocka_unit_test(test_the_demo),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
