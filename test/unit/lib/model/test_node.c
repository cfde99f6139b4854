// SPDX-License-Identifier: Apache-2.0
#include "lib/model/node.h"

#include "test/unit/lib/model/build.h"

static void taints_keep_pods_away(void **state)
{
    (void)state;
    static struct taint taints[] = {{"soft", "", TAINT_PREFER_NO_SCHEDULE},
                                    {"a", "1", TAINT_NO_SCHEDULE},
                                    {"b", "2", TAINT_NO_EXECUTE}};
    static struct toleration both[] = {{"a", TOLERATION_EQUAL, "1", TAINT_NO_SCHEDULE},
                                       {"b", TOLERATION_EXISTS, "", TAINT_ALL}};
    static struct toleration cordon[] = {
        {"node.kubernetes.io/unschedulable", TOLERATION_EXISTS, "", TAINT_NO_SCHEDULE}};
    static struct toleration all[] = {{"", TOLERATION_EXISTS, "", TAINT_ALL}};
    static const struct {
        const char *row;
        size_t taints;
        bool unschedulable;
        struct toleration *tolerations;
        size_t tolerations_len;
        const char *untolerated;
    } rows[] = {
        {"no taints", 0, false, NULL, 0, NULL},
        {"a soft taint does not count", 1, false, NULL, 0, NULL},
        {"the first hard taint is named", 3, false, NULL, 0, "a"},
        {"both tolerated", 3, false, both, 2, NULL},
        {"the second is not tolerated", 3, false, both, 1, "b"},
        {"everything tolerated", 3, true, all, 1, NULL},
        {"cordoned", 0, true, NULL, 0, "node.kubernetes.io/unschedulable"},
        {"cordoned and tolerated", 0, true, cordon, 1, NULL},
        {"tolerating the cordon does not tolerate the rest", 3, true, cordon, 1, "a"},
        {"tolerating the rest does not tolerate the cordon", 3, true, both, 2,
         "node.kubernetes.io/unschedulable"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct node n = {
            .taints = taints, .taints_len = rows[i].taints, .unschedulable = rows[i].unschedulable};
        struct pod p = {.tolerations = rows[i].tolerations,
                        .tolerations_len = rows[i].tolerations_len};
        size_t at = 0;
        const struct taint *t = node_untolerated(&n, &p, &at);
        expect_str(rows[i].row, rows[i].untolerated, t ? t->key : NULL);
    }
    expect_done();
}

static void a_node_goes_with_its_arena(void **state)
{
    (void)state;
    struct arena own;

    arena_init(&own, 0);
    struct node *n = arena_new(&own, struct node, 1);
    n->name = arena_strdup(&own, "a");
    n->arena = own;
    node_free(n); /* the leak checker is the judge */
    node_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taints_keep_pods_away),
        cmocka_unit_test(a_node_goes_with_its_arena),
    };
    return cmocka_run_group_tests_name("node", tests, NULL, NULL);
}
