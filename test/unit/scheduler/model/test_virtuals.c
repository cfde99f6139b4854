// SPDX-License-Identifier: Apache-2.0
#include "scheduler/model/virtuals.h"

#include "lib/base/str.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/fixture.h"

static struct virtuals v;

static int setup(void **state)
{
    (void)state;
    virtuals_init(&v);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    virtuals_deinit(&v);
    return 0;
}

static bool is_virtual(const char *key, const char *value)
{
    struct node *n = NODE(.name = "n", .labels = PAIRS(key, value));
    bool found = virtuals_have(&v, n);
    node_free(n);
    return found;
}

static bool covers(const char *key, const char *value, enum taint_effect effect)
{
    return virtuals_cover(&v, &(struct taint){.key = key, .value = value, .effect = effect});
}

static void alibaba_cloud_unless_told_otherwise(void **state)
{
    (void)state;
    expect_true("its label", is_virtual("type", "virtual-kubelet"));
    expect_true("another value is not", !is_virtual("type", "virtual"));
    expect_true("another key is not", !is_virtual("kind", "virtual-kubelet"));
    expect_true("its taint",
                covers("virtual-kubelet.io/provider", "alibabacloud", TAINT_NO_SCHEDULE));
    expect_true("not as NoExecute",
                !covers("virtual-kubelet.io/provider", "alibabacloud", TAINT_NO_EXECUTE));
    expect_true("not another provider's",
                !covers("virtual-kubelet.io/provider", "azure", TAINT_NO_SCHEDULE));
    expect_true("not without a value",
                !covers("virtual-kubelet.io/provider", NULL, TAINT_NO_SCHEDULE));
    expect_true("that is the default", virtuals_are_default(&v));
    expect_done();
}

static void other_providers(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    expect_int("both lists are taken", 0,
               virtuals_set(&v, "type=virtual-kubelet,node.example.com/serverless=yes",
                            "virtual-kubelet.io/provider=azure,example.com/elastic:NoSchedule",
                            &err));
    expect_true("the first label", is_virtual("type", "virtual-kubelet"));
    expect_true("the second label", is_virtual("node.example.com/serverless", "yes"));
    expect_true("the first taint",
                covers("virtual-kubelet.io/provider", "azure", TAINT_NO_SCHEDULE));
    expect_true("a taint without a value", covers("example.com/elastic", NULL, TAINT_NO_SCHEDULE));
    expect_true("the old one is not tolerated any more",
                !covers("virtual-kubelet.io/provider", "alibabacloud", TAINT_NO_SCHEDULE));
    expect_true("it is not the default", !virtuals_are_default(&v));
    expect_int("an empty list changes nothing", 0, virtuals_set(&v, "", NULL, &err));
    expect_true("and the label is still known",
                virtuals_know(&v, "node.example.com/serverless", "yes"));
    expect_done();
}

static void lists_that_cannot_be_read(void **state)
{
    (void)state;
    const struct {
        const char *row, *labels, *taints, *says;
    } rows[] = {
        {"no key", "=x", NULL, "virtual-node-labels: not key=value of a label or taint: '=x'"},
        {"a value that no label has", "a=b c", NULL,
         "virtual-node-labels: not key=value of a label or taint: 'a=b c'"},
        {"nothing between two commas", "a=b,,c=d", NULL,
         "virtual-node-labels: not key=value of a label or taint: ''"},
        {"another effect", NULL, "a=b:NoExecute",
         "virtual-node-taints: not key=value of a label or taint: 'a=b:NoExecute'"},
        {"too many", NULL, "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q",
         "virtual-node-taints: more than 16 pairs"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct error err = ERROR_INIT;
        expect_int(rows[i].row, -1, virtuals_set(&v, rows[i].labels, rows[i].taints, &err));
        expect_str(rows[i].row, rows[i].says, err.text);
        expect_true("all is as it was", virtuals_are_default(&v));
    }
    struct error err = ERROR_INIT;
    expect_int("16 are not too many", 0,
               virtuals_set(&v, NULL, "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p", &err));
    expect_done();
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {T(alibaba_cloud_unless_told_otherwise), T(other_providers),
                                       T(lists_that_cannot_be_read)};
    return cmocka_run_group_tests_name("scheduler/virtuals", tests, NULL, NULL);
}
