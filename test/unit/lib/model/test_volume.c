// SPDX-License-Identifier: Apache-2.0
#include "lib/model/volume.h"

#include "lib/model/node.h"
#include "lib/model/pdb.h"
#include "test/local/api/selector_parse.h"
#include "test/unit/lib/model/build.h"

static void some_volumes_are_for_one_pod_on_a_node(void **state)
{
    (void)state;
    const char *m12[] = {"m1", "m2"}, *m23[] = {"m2", "m3"}, *m3[] = {"m3"};
#define V(...)          \
    (struct pod_volume) \
    {                   \
        __VA_ARGS__     \
    }
    const struct {
        const char *row;
        struct pod_volume a, b;
        bool conflict;
    } rows[] = {
        {"two writers of a GCE disk", V(.kind = POD_VOLUME_GCE_PD, .id = "x"),
         V(.kind = POD_VOLUME_GCE_PD, .id = "x"), true},
        {"a writer and a reader", V(.kind = POD_VOLUME_GCE_PD, .id = "x", .read_only = true),
         V(.kind = POD_VOLUME_GCE_PD, .id = "x"), true},
        {"two readers", V(.kind = POD_VOLUME_GCE_PD, .id = "x", .read_only = true),
         V(.kind = POD_VOLUME_GCE_PD, .id = "x", .read_only = true), false},
        {"two disks", V(.kind = POD_VOLUME_GCE_PD, .id = "x"),
         V(.kind = POD_VOLUME_GCE_PD, .id = "y"), false},
        {"two kinds", V(.kind = POD_VOLUME_GCE_PD, .id = "x"),
         V(.kind = POD_VOLUME_AWS_EBS, .id = "x"), false},
        {"two readers of an EBS volume",
         V(.kind = POD_VOLUME_AWS_EBS, .id = "x", .read_only = true),
         V(.kind = POD_VOLUME_AWS_EBS, .id = "x", .read_only = true), true},
        {"an iSCSI target", V(.kind = POD_VOLUME_ISCSI, .id = "x"),
         V(.kind = POD_VOLUME_ISCSI, .id = "x"), true},
        {"two readers of an iSCSI target",
         V(.kind = POD_VOLUME_ISCSI, .id = "x", .read_only = true),
         V(.kind = POD_VOLUME_ISCSI, .id = "x", .read_only = true), false},
        {"a Ceph image, one monitor in common",
         V(.kind = POD_VOLUME_RBD, .id = "p/i", .monitors = m12, .monitors_len = 2),
         V(.kind = POD_VOLUME_RBD, .id = "p/i", .monitors = m23, .monitors_len = 2), true},
        {"another Ceph", V(.kind = POD_VOLUME_RBD, .id = "p/i", .monitors = m12, .monitors_len = 2),
         V(.kind = POD_VOLUME_RBD, .id = "p/i", .monitors = m3, .monitors_len = 1), false},
        {"Azure disks are their driver's business", V(.kind = POD_VOLUME_AZURE_DISK, .id = "x"),
         V(.kind = POD_VOLUME_AZURE_DISK, .id = "x"), false},
        {"claims are their access modes' business", V(.kind = POD_VOLUME_CLAIM, .claim = "x"),
         V(.kind = POD_VOLUME_CLAIM, .claim = "x"), false},
        {"a disk without a name", V(.kind = POD_VOLUME_GCE_PD), V(.kind = POD_VOLUME_GCE_PD),
         false},
    };
#undef V
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        expect_int(rows[i].row, rows[i].conflict, pod_volume_conflicts(&rows[i].a, &rows[i].b));
        expect_int(rows[i].row, rows[i].conflict, pod_volume_conflicts(&rows[i].b, &rows[i].a));
    }
    expect_done();
}

static void names_of_drivers(void **state)
{
    (void)state;
    expect_str("in-tree", "pd.csi.storage.gke.io", volume_driver_of("kubernetes.io/gce-pd"));
    expect_str("CSI", "x.example", volume_driver_of("x.example"));
    expect_str("by field", "disk.csi.azure.com", volume_migration_of("azureDisk", 9)->driver);
    expect_true("not the start of a field", volume_migration_of("azureDisk", 8) == NULL);
    expect_true("another field", volume_migration_of("hostPath", 8) == NULL);
    struct storage_class c = {.provisioner = "kubernetes.io/no-provisioner"};
    expect_true("static", storage_class_is_static(&c));
    expect_done();
}

static void a_budget_covers_pods(void **state)
{
    (void)state;
    static const struct {
        const char *row, *selector, *ns, *pod, *labels;
        bool covers;
    } rows[] = {
        {"selected", "app=web", "ns", "p", "app=web", true},
        {"not selected", "app=web", "ns", "p", "app=db", false},
        {"another namespace", "app=web", "other", "p", "app=web", false},
        {"already on its way", "app=web", "ns", "gone", "app=web", false},
        {"an empty selector is every pod", "", "ns", "p", "", true},
        {"none is no pod", NULL, "ns", "p", "app=web", false},
    };
    struct arena a;
    arena_init(&a, 0);
    const char *gone[] = {"gone"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pdb b = {.object = {.ns = "ns"}, .disrupted = gone, .disrupted_len = 1};
        b.selector.nothing = true;
        if (rows[i].selector && selector_parse(rows[i].selector, &a, &b.selector, NULL) < 0)
            fail_msg("%s", rows[i].row);
        struct labels labels = build_labels(&a, rows[i].labels);
        expect_int(rows[i].row, rows[i].covers, pdb_covers(&b, rows[i].ns, rows[i].pod, &labels));
    }
    arena_deinit(&a);
    expect_done();
}

static void features_and_images(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        uint8_t needs, has;
        const char *missing;
    } rows[] = {
        {"needs nothing", 0, 0, NULL},
        {"has it", POD_FEATURE_RESTART_ALL, POD_FEATURE_RESTART_ALL, NULL},
        {"has another", POD_FEATURE_RESTART_ALL, POD_FEATURE_HOST_NET_USERNS,
         "RestartAllContainersOnContainerExits"},
        {"has one of two", POD_FEATURE_RESTART_ALL | POD_FEATURE_HOST_NET_USERNS,
         POD_FEATURE_RESTART_ALL, "UserNamespacesHostNetworkSupport"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct pod p = {.features = rows[i].needs};
        const struct node n = {.features = rows[i].has};
        expect_str(rows[i].row, rows[i].missing, node_missing_feature(&n, &p));
    }
    for (unsigned i = 0; i < POD_FEATURES; i++)
        expect_int("a name and back", 1 << i, pod_feature_of(pod_feature_name(1U << i)));
    expect_true("no such bit",
                pod_feature_name(1U << POD_FEATURES) == NULL && !pod_feature_name(0));
    expect_int("no such name", 0, pod_feature_of("Odd"));
    expect_int("no name", 0, pod_feature_of(NULL));
    static const struct {
        const char *row, *a, *b;
        bool same;
    } names[] = {
        {"latest is meant", "nginx", "nginx:latest", true},
        {"a port is no tag", "r:5000/nginx", "r:5000/nginx:latest", true},
        {"another tag", "nginx:1", "nginx:2", false},
        {"a digest", "r/a@sha256:1", "r/a@sha256:1:latest", false},
        {"sixteen digits only", "#0123456789abcde", "#0123456789abcdef", false},
        {"no more than sixteen", "#0123456789abcdef0", "#0123456789abcdef", false},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        expect_int(names[i].row, names[i].same,
                   node_image_hash(names[i].a) == node_image_hash(names[i].b));
    expect_true("a hash by name", node_image_hash("#0123456789abcdef") == 0x0123456789abcdefULL);
    struct arena a;
    arena_init(&a, 0);
    struct pod p = {.annotations = build_labels(&a, "kubernetes.io/config.mirror=x")};
    expect_true("a mirror", pod_is_mirror(&p));
    p.annotations = build_labels(&a, "kubernetes.io/config.hash=x");
    expect_true("no mirror", !pod_is_mirror(&p));
    arena_deinit(&a);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(some_volumes_are_for_one_pod_on_a_node),
        cmocka_unit_test(names_of_drivers),
        cmocka_unit_test(a_budget_covers_pods),
        cmocka_unit_test(features_and_images),
    };
    return cmocka_run_group_tests_name("volume", tests, NULL, NULL);
}
