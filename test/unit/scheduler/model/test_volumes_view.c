// SPDX-License-Identifier: Apache-2.0
/*
 * Where the storage lets a pod go, rule by rule, and what is said where it does not: the plugins
 * volumes and volumes_attach with the view behind them.
 */
#include "scheduler/model/volumes_view.h"

#include "scheduler/framework/pipeline.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/fixture.h"
#include "test/unit/scheduler/storage_kit.h"
#include "scheduler/framework/equivalence.h"

#define POD_CLAIM(claim) \
    "\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"" claim "\"}}]"
#define POD_TWO                                                                      \
    "\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"c\"}}," \
    "{\"name\":\"w\",\"persistentVolumeClaim\":{\"claimName\":\"e\"}}]"
#define POD_OWN \
    "\"volumes\":[{\"name\":\"v\",\"ephemeral\":{\"volumeClaimTemplate\":{\"spec\":{}}}}]"
#define POD_DISK(kind, more) "\"volumes\":[{\"name\":\"v\",\"" kind "\":{" more "}}]"
#define EBS(id) POD_DISK("awsElasticBlockStore", "\"volumeID\":\"" id "\"")
#define GCE(ro) POD_DISK("gcePersistentDisk", "\"pdName\":\"x\",\"readOnly\":" ro)
#define FOR_POD "'ownerReferences':[{'uid':'u-p','controller':true}]"

#define ZONE "topology.kubernetes.io/zone"
#define BETA_ZONE "failure-domain.beta.kubernetes.io/zone"
#define DRIVER "disk.example.com"

struct row {
    const char *row;
    const char *objects[8];
    const char *volumes;           /* of the pod */
    const char *says;              /* behind "0/1 nodes fit: "; NULL: it fits */
    const char *const *labels;     /* of the node */
    const char *there, *elsewhere; /* volumes of a pod on the node, and of one on another node */
};

static void check(const struct row *r)
{
    struct cluster c;
    struct pipeline pipeline;
    struct arena a;
    struct pipeline_choice choice, scanned;
    arena_init(&a, 0);
    cluster_init(&c, "cosched-scheduler");
    pipeline_init(&pipeline, &c);
    cluster_put_node(&c, NODE(.name = "n", .labels = r->labels));
    for (size_t i = 0; i < 8 && r->objects[i] != NULL; i++)
        storage_kit_put(&c, r->objects[i]);
    if (r->there != NULL)
        cluster_put_pod(&c, POD(.name = "there", .node = "n", .spec = r->there), NULL);
    if (r->elsewhere != NULL)
        cluster_put_pod(&c, POD(.name = "away", .node = "m", .spec = r->elsewhere), NULL);
    cluster_put_pod(&c, POD(.name = "p", .spec = r->volumes), &(struct cluster_hooks){0});
    struct cluster_pod *cp = cluster_find_pod(&c, "d/p");
    pipeline_choose(&pipeline, cp, &a, &choice);
    pipeline_scan(&pipeline, cp, &a, &scanned);
    expect_true(r->row, choice.node == scanned.node);
    const char *says = choice.node != NULL ? NULL : reasons_sentence(&choice.why, &a);
    if (says != NULL && str_starts(says, "0/1 nodes fit: "))
        says += strlen("0/1 nodes fit: ");
    expect_str(r->row, r->says, says);
    if (choice.node == NULL)
        expect_true(r->row, (choice.wakes & EVENT_VOLUME) != 0);
    pipeline_deinit(&pipeline);
    cluster_deinit(&c);
    arena_deinit(&a);
}

static void claims_that_no_node_can_help(void **state)
{
    (void)state;
    const struct row rows[] = {
        {"a claim that is not there", {0}, POD_CLAIM("c"), .says = "claim d/c does not exist"},
        {"a claim that is made for the pod comes later",
         {0},
         POD_OWN,
         .says = "claim d/p-v has not been made yet for its volume v"},
        {"a claim of that name which is another's",
         {CLAIM_AS("p-v", "Bound", "", "")},
         POD_OWN,
         .says = "claim d/p-v was not made for this pod"},
        {"a claim that was made for the pod",
         {"{'kind':'PersistentVolumeClaim'," KIT_META("p-v") "," FOR_POD
                                                             "},'spec':{'storageClassName':'s'}}",
          LATE_CLASS},
         POD_OWN,
         .says = NULL},
        {"a lost claim",
         {CLAIM_AS("c", "Lost", "'pv.kubernetes.io/bind-completed':'yes'", ",'volumeName':'v'")},
         POD_CLAIM("c"),
         .says = "claim d/c has lost its volume v"},
        {"a claim that is being deleted",
         {"{'kind':'PersistentVolumeClaim'," KIT_META(
             "c") ",'deletionTimestamp':'2024-01-01T00:00:00Z'}}"},
         POD_CLAIM("c"),
         .says = "claim d/c is being deleted"},
        {"a claim without a class",
         {CLAIM("c", "")},
         POD_CLAIM("c"),
         .says = "claim d/c is not bound yet (it has no storage class)"},
        {"a class that is not there",
         {CLAIM("c", OF_CLASS("s"))},
         POD_CLAIM("c"),
         .says = "claim d/c is not bound, and its storage class s does not exist"},
        {"a class that binds at once",
         {CLAIM("c", OF_CLASS("s")), CLASS("s", "x", "Immediate", "")},
         POD_CLAIM("c"),
         .says = "claim d/c is not bound yet (its class binds immediately)"},
        {"a claim that names its volume and is not bound to it",
         {CLAIM("c", OF_CLASS("s") ",'volumeName':'v'"), STATIC_CLASS, VOLUME("v", "1Gi", "")},
         POD_CLAIM("c"),
         .says = "claim d/c is not bound yet to volume v, which it asks for"},
        {"a bound claim whose volume is gone",
         {BOUND_CLAIM("c", "v")},
         POD_CLAIM("c"),
         .says = "claim d/c is bound to volume v, which does not exist"},
        {"the first of two problems is told",
         {BOUND_CLAIM("c", "v"), VOLUME("v", "1Gi", "")},
         POD_TWO,
         .says = "claim d/e does not exist"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(&rows[i]);
    expect_done();
}

static void bound_volumes_are_reached_or_not(void **state)
{
    (void)state;
    const struct row rows[] = {
        {"a volume that is reached from everywhere",
         {BOUND_CLAIM("c", "v"), VOLUME("v", "1Gi", "")},
         POD_CLAIM("c"),
         .says = NULL},
        {"a volume of this zone",
         {BOUND_CLAIM("c", "v"), VOLUME("v", "1Gi", ON(ZONE, "a"))},
         POD_CLAIM("c"),
         .says = NULL,
         .labels = PAIRS(ZONE, "a")},
        {"a volume of another zone",
         {BOUND_CLAIM("c", "v"), VOLUME("v", "1Gi", ON(ZONE, "b"))},
         POD_CLAIM("c"),
         .says = "1 cannot reach volume v of claim d/c",
         .labels = PAIRS(ZONE, "a")},
        {"a label that says the zone",
         {BOUND_CLAIM("c", "v"), VOLUME_LABELLED("v", ZONE, "a", "")},
         POD_CLAIM("c"),
         .says = NULL,
         .labels = PAIRS(ZONE, "a")},
        {"a label that says another zone",
         {BOUND_CLAIM("c", "v"), VOLUME_LABELLED("v", ZONE, "b", "")},
         POD_CLAIM("c"),
         .says = "1 is in another zone or region than volume v",
         .labels = PAIRS(ZONE, "a")},
        {"a label that says several zones",
         {BOUND_CLAIM("c", "v"), VOLUME_LABELLED("v", ZONE, "b__a", "")},
         POD_CLAIM("c"),
         .says = NULL,
         .labels = PAIRS(ZONE, "a")},
        {"a label that is no list says nothing",
         {BOUND_CLAIM("c", "v"), VOLUME_LABELLED("v", ZONE, "b__", "")},
         POD_CLAIM("c"),
         .says = NULL,
         .labels = PAIRS(ZONE, "a")},
        {"a node without zone and region is in a cluster of one",
         {BOUND_CLAIM("c", "v"), VOLUME_LABELLED("v", ZONE, "b", "")},
         POD_CLAIM("c"),
         .says = NULL},
        {"a node that has a region but no zone is not",
         {BOUND_CLAIM("c", "v"), VOLUME_LABELLED("v", ZONE, "b", "")},
         POD_CLAIM("c"),
         .says = "1 is in another zone or region than volume v",
         .labels = PAIRS("topology.kubernetes.io/region", "r")},
        {"the old name of the label on the volume, the new one on the node",
         {BOUND_CLAIM("c", "v"), VOLUME_LABELLED("v", BETA_ZONE, "a", "")},
         POD_CLAIM("c"),
         .says = NULL,
         .labels = PAIRS(ZONE, "a")},
        {"not the other way round",
         {BOUND_CLAIM("c", "v"), VOLUME_LABELLED("v", ZONE, "a", "")},
         POD_CLAIM("c"),
         .says = "1 is in another zone or region than volume v",
         .labels = PAIRS(BETA_ZONE, "a")},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(&rows[i]);
    expect_done();
}

#define WAITS CLAIM("c", OF_CLASS("s"))
#define NONE "1 has no free volume that fits claim d/c"

static void claims_that_wait_find_a_volume(void **state)
{
    (void)state;
    const struct row rows[] = {
        {"a volume that fits",
         {WAITS, STATIC_CLASS, VOLUME("v", "1Gi", OF_CLASS("s"))},
         POD_CLAIM("c"),
         .says = NULL},
        {"no volume at all", {WAITS, STATIC_CLASS}, POD_CLAIM("c"), .says = NONE},
        {"a volume of another class",
         {WAITS, STATIC_CLASS, VOLUME("v", "1Gi", OF_CLASS("t"))},
         POD_CLAIM("c"),
         .says = NONE},
        {"a volume that is one byte too small",
         {WAITS, STATIC_CLASS, VOLUME("v", "1073741823", OF_CLASS("s"))},
         POD_CLAIM("c"),
         .says = NONE},
        {"a volume that the node does not reach",
         {WAITS, STATIC_CLASS, VOLUME("v", "1Gi", OF_CLASS("s") ON(ZONE, "b"))},
         POD_CLAIM("c"),
         .says = NONE,
         .labels = PAIRS(ZONE, "a")},
        {"a block device for a file system",
         {WAITS, STATIC_CLASS, VOLUME("v", "1Gi", OF_CLASS("s") ",'volumeMode':'Block'")},
         POD_CLAIM("c"),
         .says = NONE},
        {"another class of attributes",
         {WAITS, STATIC_CLASS,
          VOLUME("v", "1Gi", OF_CLASS("s") ",'volumeAttributesClassName':'x'")},
         POD_CLAIM("c"),
         .says = NONE},
        {"a volume that is not available",
         {WAITS, STATIC_CLASS,
          "{'kind':'PersistentVolume'," KIT_META(
              "v") "},'spec':{'accessModes':['ReadWriteOnce'],'capacity':{'storage':'1Gi'},"
                   "'storageClassName':'s'},'status':{'phase':'Released'}}"},
         POD_CLAIM("c"),
         .says = NONE},
        {"a volume that can only be read",
         {WAITS, STATIC_CLASS,
          "{'kind':'PersistentVolume'," KIT_META(
              "v") "},'spec':{'accessModes':['ReadOnlyMany'],'capacity':{'storage':'1Gi'},"
                   "'storageClassName':'s'},'status':{'phase':'Available'}}"},
         POD_CLAIM("c"),
         .says = NONE},
        {"a volume that is being deleted",
         {WAITS, STATIC_CLASS,
          "{'kind':'PersistentVolume'," KIT_META(
              "v") ",'deletionTimestamp':'2024-01-01T00:00:00Z'},'spec':{'accessModes':['ReadWriteOnce'],"
                   "'capacity':{'storage':'1Gi'},'storageClassName':'s'},'status':{'phase':'Available'}}"},
         POD_CLAIM("c"),
         .says = NONE},
        {"a selector that does not select the volume",
         {CLAIM("c", OF_CLASS("s") ",'selector':{'matchLabels':{'k':'x'}}"), STATIC_CLASS,
          VOLUME_LABELLED("v", "k", "y", OF_CLASS("s"))},
         POD_CLAIM("c"),
         .says = NONE},
        {"a selector that does",
         {CLAIM("c", OF_CLASS("s") ",'selector':{'matchLabels':{'k':'x'}}"), STATIC_CLASS,
          VOLUME_LABELLED("v", "k", "x", OF_CLASS("s"))},
         POD_CLAIM("c"),
         .says = NULL},
        {"a volume that is reserved for another claim",
         {WAITS, STATIC_CLASS,
          VOLUME("v", "1Gi", OF_CLASS("s") ",'claimRef':{'namespace':'d','name':'x'}")},
         POD_CLAIM("c"),
         .says = NONE},
        {"a volume that is reserved for an older claim of that name",
         {WAITS, STATIC_CLASS,
          VOLUME("v", "1Gi", OF_CLASS("s") ",'claimRef':{'namespace':'d','name':'c','uid':'old'}")},
         POD_CLAIM("c"),
         .says = NONE},
        {"a volume that is reserved for the claim",
         {WAITS, STATIC_CLASS,
          VOLUME("v", "1Gi", OF_CLASS("s") ",'claimRef':{'namespace':'d','name':'c'}")},
         POD_CLAIM("c"),
         .says = NULL},
        {"then it is that one or none",
         {WAITS, STATIC_CLASS, VOLUME("u", "1Gi", OF_CLASS("s")),
          VOLUME("v", "1Gi",
                 OF_CLASS("s") ",'claimRef':{'namespace':'d','name':'c'}" ON(ZONE, "b"))},
         POD_CLAIM("c"),
         .says = NONE,
         .labels = PAIRS(ZONE, "a")},
        {"two claims and two volumes",
         {WAITS, CLAIM("e", OF_CLASS("s")), STATIC_CLASS, VOLUME("v", "1Gi", OF_CLASS("s")),
          VOLUME("w", "1Gi", OF_CLASS("s"))},
         POD_TWO,
         .says = NULL},
        {"two claims do not get the same volume",
         {WAITS, CLAIM("e", OF_CLASS("s")), STATIC_CLASS, VOLUME("v", "1Gi", OF_CLASS("s"))},
         POD_TWO,
         .says = "1 has no free volume that fits claim d/e"},
        {"the smaller claim leaves the larger volume to the other",
         {"{'kind':'PersistentVolumeClaim'," KIT_META(
              "c") "},'spec':{'accessModes':['ReadWriteOnce'],'storageClassName':'s',"
                   "'resources':{'requests':{'storage':'5Gi'}}}}",
          CLAIM("e", OF_CLASS("s")), STATIC_CLASS, VOLUME("a", "5Gi", OF_CLASS("s")),
          VOLUME("b", "1Gi", OF_CLASS("s"))},
         POD_TWO,
         .says = NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(&rows[i]);
    expect_done();
}

#define SAYS_ROOM CSI_DRIVER(DRIVER, "'storageCapacity':true")
#define TOPOLOGIES(zone) \
    ",'allowedTopologies':[{'matchLabelExpressions':[{'key':'" ZONE "','values':['" zone "']}]}]"

static void claims_that_wait_get_a_new_volume(void **state)
{
    (void)state;
    const struct row rows[] = {
        {"a class that makes volumes", {WAITS, LATE_CLASS}, POD_CLAIM("c"), .says = NULL},
        {"a class that makes them in this zone",
         {WAITS, CLASS("s", DRIVER, "WaitForFirstConsumer", TOPOLOGIES("a"))},
         POD_CLAIM("c"),
         .says = NULL,
         .labels = PAIRS(ZONE, "a")},
        {"a class that makes them elsewhere",
         {WAITS, CLASS("s", DRIVER, "WaitForFirstConsumer", TOPOLOGIES("b"))},
         POD_CLAIM("c"),
         .says = "1 is outside the topologies of storage class s (claim d/c)",
         .labels = PAIRS(ZONE, "a")},
        {"a driver that says there is room",
         {WAITS, LATE_CLASS, SAYS_ROOM, CAPACITY("r", "1Gi", ",'nodeTopology':{}")},
         POD_CLAIM("c"),
         .says = NULL},
        {"a driver that says there is one byte less",
         {WAITS, LATE_CLASS, SAYS_ROOM, CAPACITY("r", "1073741823", ",'nodeTopology':{}")},
         POD_CLAIM("c"),
         .says = "1 has too little capacity in storage class s for claim d/c"},
        {"room that the node does not reach",
         {WAITS, LATE_CLASS, SAYS_ROOM,
          CAPACITY("r", "9Gi", ",'nodeTopology':{'matchLabels':{'" ZONE "':'b'}}")},
         POD_CLAIM("c"),
         .says = "1 has too little capacity in storage class s for claim d/c",
         .labels = PAIRS(ZONE, "a")},
        {"room that no node reaches",
         {WAITS, LATE_CLASS, SAYS_ROOM, CAPACITY("r", "9Gi", "")},
         POD_CLAIM("c"),
         .says = "1 has too little capacity in storage class s for claim d/c"},
        {"enough in all, but not in one volume",
         {WAITS, LATE_CLASS, SAYS_ROOM,
          CAPACITY("r", "9Gi", ",'nodeTopology':{},'maximumVolumeSize':'1Mi'")},
         POD_CLAIM("c"),
         .says = "1 has too little capacity in storage class s for claim d/c"},
        {"a driver that does not speak of room",
         {WAITS, LATE_CLASS, CSI_DRIVER(DRIVER, "'storageCapacity':false")},
         POD_CLAIM("c"),
         .says = NULL},
        {"the node was chosen before",
         {CLAIM_AS("c", "Pending", "'volume.kubernetes.io/selected-node':'n'", OF_CLASS("s")),
          LATE_CLASS},
         POD_CLAIM("c"),
         .says = NULL},
        {"another node was chosen before",
         {CLAIM_AS("c", "Pending", "'volume.kubernetes.io/selected-node':'m'", OF_CLASS("s")),
          LATE_CLASS},
         POD_CLAIM("c"),
         .says = "1 is not m, which was chosen for claim d/c"},
        {"an old volume and a new one",
         {WAITS, CLAIM("e", OF_CLASS("s")), LATE_CLASS, VOLUME("v", "1Gi", OF_CLASS("s"))},
         POD_TWO,
         .says = NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(&rows[i]);
    expect_done();
}

#define V(name) VOLUME(name, "1Gi", OF_DRIVER(DRIVER, name))
#define FULL \
    "1 has too few places for volumes of driver disk.example.com (asked: 1, most free: 0 on n)"
#define ONCE(name, volume)                                                       \
    "{'kind':'PersistentVolumeClaim'," KIT_META(                                 \
        name) ",'annotations':{'pv.kubernetes.io/bind-completed':'yes'}},"       \
              "'spec':{'accessModes':['ReadWriteOncePod'],'volumeName':'" volume \
              "'},'status':{'phase':'Bound'}}"

static void volumes_that_pods_compete_for(void **state)
{
    (void)state;
    const struct row rows[] = {
        {"a place for one more",
         {BOUND_CLAIM("c", "v"), V("v"), BOUND_CLAIM("e", "w"), V("w"), CSI_NODE("n", DRIVER, "2")},
         POD_CLAIM("c"),
         .says = NULL,
         .there = POD_CLAIM("e")},
        {"no place for one more",
         {BOUND_CLAIM("c", "v"), V("v"), BOUND_CLAIM("e", "w"), V("w"), CSI_NODE("n", DRIVER, "1")},
         POD_CLAIM("c"),
         .says = FULL,
         .there = POD_CLAIM("e")},
        {"the same volume needs no place",
         {BOUND_CLAIM("c", "v"), V("v"), CSI_NODE("n", DRIVER, "1")},
         POD_CLAIM("c"),
         .says = NULL,
         .there = POD_CLAIM("c")},
        {"two places for two claims",
         {BOUND_CLAIM("c", "v"), V("v"), BOUND_CLAIM("e", "w"), V("w"), CSI_NODE("n", DRIVER, "1")},
         POD_TWO,
         .says =
             "1 has too few places for volumes of driver disk.example.com (asked: 2, most free: 1 on n)"},
        {"volumes of other drivers do not count",
         {BOUND_CLAIM("c", "v"), V("v"), BOUND_CLAIM("e", "w"),
          VOLUME("w", "1Gi", OF_DRIVER("other", "w")), CSI_NODE("n", DRIVER, "1")},
         POD_CLAIM("c"),
         .says = NULL,
         .there = POD_CLAIM("e")},
        {"no limit without a CSINode",
         {BOUND_CLAIM("c", "v"), V("v"), BOUND_CLAIM("e", "w"), V("w")},
         POD_CLAIM("c"),
         .says = NULL,
         .there = POD_CLAIM("e")},
        {"a volume that is still attached",
         {BOUND_CLAIM("c", "v"), V("v"), V("w"), CSI_NODE("n", DRIVER, "1"),
          ATTACHMENT("a", DRIVER, "n", "w")},
         POD_CLAIM("c"),
         .says = FULL},
        {"a volume that is attached to another node",
         {BOUND_CLAIM("c", "v"), V("v"), V("w"), CSI_NODE("n", DRIVER, "1"),
          ATTACHMENT("a", DRIVER, "nn", "w")},
         POD_CLAIM("c"),
         .says = NULL},
        {"attached, and of a pod there: counted once",
         {BOUND_CLAIM("c", "v"), V("v"), BOUND_CLAIM("e", "w"), V("w"), CSI_NODE("n", DRIVER, "2"),
          ATTACHMENT("a", DRIVER, "n", "w")},
         POD_CLAIM("c"),
         .says = NULL,
         .there = POD_CLAIM("e")},
        {"a volume that is still to be made has a place",
         {WAITS, LATE_CLASS, BOUND_CLAIM("e", "w"), V("w"), CSI_NODE("n", DRIVER, "1")},
         POD_CLAIM("c"),
         .says = FULL,
         .there = POD_CLAIM("e")},
        {"a driver that is needed and there",
         {BOUND_CLAIM("c", "v"), V("v"), CSI_NODE("n", DRIVER, "5"),
          CSI_DRIVER(DRIVER, "'preventPodSchedulingIfMissing':true")},
         POD_CLAIM("c"),
         .says = NULL},
        {"a driver that is needed and not there",
         {BOUND_CLAIM("c", "v"), V("v"), CSI_NODE("n", "other", "5"),
          CSI_DRIVER(DRIVER, "'preventPodSchedulingIfMissing':true")},
         POD_CLAIM("c"),
         .says = "1 has no storage driver disk.example.com"},
        {"a driver that is needed, and a node without any",
         {BOUND_CLAIM("c", "v"), V("v"),
          CSI_DRIVER(DRIVER, "'preventPodSchedulingIfMissing':true")},
         POD_CLAIM("c"),
         .says = "1 has no storage driver disk.example.com"},
        {"a claim for one pod, free",
         {ONCE("c", "v"), V("v")},
         POD_CLAIM("c"),
         .says = NULL,
         .elsewhere = POD_CLAIM("e")},
        {"a claim for one pod, in use on another node",
         {ONCE("c", "v"), V("v")},
         POD_CLAIM("c"),
         .says =
             "claim d/c is in use by another pod, and its access mode ReadWriteOncePod allows one",
         .elsewhere = POD_CLAIM("c")},
        {"a claim for one node is not",
         {BOUND_CLAIM("c", "v"), V("v")},
         POD_CLAIM("c"),
         .says = NULL,
         .elsewhere = POD_CLAIM("c")},
        {"an EBS disk twice",
         {0},
         EBS("x"),
         .says = "1 has the disk x mounted by another pod",
         .there = EBS("x")},
        {"two EBS disks", {0}, EBS("x"), .says = NULL, .there = EBS("y")},
        {"an EBS disk on two nodes", {0}, EBS("x"), .says = NULL, .elsewhere = EBS("x")},
        {"a GCE disk that both only read", {0}, GCE("true"), .says = NULL, .there = GCE("true")},
        {"a GCE disk that one writes",
         {0},
         GCE("true"),
         .says = "1 has the disk x mounted by another pod",
         .there = GCE("false")},
        {"an in-tree disk counts for the driver that serves it today",
         {CSI_NODE("n", "ebs.csi.aws.com", "1")},
         EBS("x"),
         .says =
             "1 has too few places for volumes of driver ebs.csi.aws.com (asked: 1, most free: 0 on n)",
         .there = EBS("y")},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(&rows[i]);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims_that_no_node_can_help),
        cmocka_unit_test(bound_volumes_are_reached_or_not),
        cmocka_unit_test(claims_that_wait_find_a_volume),
        cmocka_unit_test(claims_that_wait_get_a_new_volume),
        cmocka_unit_test(volumes_that_pods_compete_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
