// SPDX-License-Identifier: Apache-2.0
#include "scheduler/model/api_objects.h"

#include "lib/base/json.h"
#include "lib/kube/decode.h"
#include "scheduler/cache/cluster.h"
#include "test/unit/lib/kube/decode_kit.h"

static struct object *make(enum api_objects_kind kind, const char *text)
{
    struct error err = ERROR_INIT;
    AUTO_JSON *doc = decode_kit_parse(text);
    json *j = json_root(doc);
    void *out = NULL;
    int rc = -1;
#define CASE(k, function, type)         \
    case k: {                           \
        type *typed = NULL;             \
        rc = function(j, &typed, &err); \
        out = typed;                    \
        break;                          \
    }
    switch (kind) {
        CASE(API_OBJECTS_NAMESPACES, decode_namespace, struct object)
        CASE(API_OBJECTS_CLAIMS, decode_pvc, struct pvc)
        CASE(API_OBJECTS_VOLUMES, decode_pv, struct pv)
        CASE(API_OBJECTS_STORAGE_CLASSES, decode_storage_class, struct storage_class)
        CASE(API_OBJECTS_CSI_NODES, decode_csi_node, struct csi_node)
        CASE(API_OBJECTS_CSI_DRIVERS, decode_csi_driver, struct csi_driver)
        CASE(API_OBJECTS_CSI_CAPACITIES, decode_csi_capacity, struct csi_capacity)
        CASE(API_OBJECTS_VOLUME_ATTACHMENTS, decode_volume_attachment, struct volume_attachment)
        CASE(API_OBJECTS_BUDGETS, decode_pdb, struct pdb)
        CASE(API_OBJECTS_DEVICE_CLASSES, decode_device_class, struct device_class)
        CASE(API_OBJECTS_POLICIES, decode_resource_policy, struct policy)
    case API_OBJECTS_KINDS:
        break;
    }
#undef CASE
    if (rc < 0)
        fail_msg("%s: %s", text, err.text);
    return out;
}

#define M "'metadata':{'name':'a','namespace':'ns','uid':'u','resourceVersion':'1'}"
#define M2 \
    "'metadata':{'name':'a','namespace':'ns','uid':'u','resourceVersion':'2','annotations':{'x':'y'}}"

/* A second version that says the same is quiet; one that says something else is heard. */
static void changes_that_matter_are_events(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        enum api_objects_kind kind;
        const char *first, *same, *other;
        uint32_t put, removed;
    } rows[] = {
        {"the labels of a namespace", API_OBJECTS_NAMESPACES,
         "{'metadata':{'name':'a','uid':'u','labels':{'x':'1'}}}",
         "{'metadata':{'name':'a','uid':'u','labels':{'x':'1'},'annotations':{'a':'b'}}}",
         "{'metadata':{'name':'a','uid':'u','labels':{'x':'2'}}}", EVENT_NAMESPACE,
         EVENT_NAMESPACE},
        {"a claim that is bound", API_OBJECTS_CLAIMS, "{" M ",'spec':{'storageClassName':'s'}}",
         "{" M2 ",'spec':{'storageClassName':'s'}}",
         "{" M2 ",'spec':{'storageClassName':'s','volumeName':'v'}}", EVENT_VOLUME, EVENT_VOLUME},
        {"a claim's phase", API_OBJECTS_CLAIMS, "{" M "}", "{" M2 "}",
         "{" M2 ",'status':{'phase':'Bound'}}", EVENT_VOLUME, EVENT_VOLUME},
        {"a claim's node", API_OBJECTS_CLAIMS, "{" M "}", "{" M2 "}",
         "{'metadata':{'name':'a','namespace':'ns','uid':'u','annotations':{'volume.kubernetes.io/selected-node':'n'}}}",
         EVENT_VOLUME, EVENT_VOLUME},
        {"a claim's selector", API_OBJECTS_CLAIMS,
         "{" M ",'spec':{'selector':{'matchLabels':{'a':'b'}}}}",
         "{" M2 ",'spec':{'selector':{'matchLabels':{'a':'b'}}}}",
         "{" M2 ",'spec':{'selector':{'matchLabels':{'a':'c'}}}}", EVENT_VOLUME, EVENT_VOLUME},
        {"where a volume is", API_OBJECTS_VOLUMES,
         "{" M
         ",'spec':{'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'z','operator':'In','values':['1']}]}]}}}}",
         "{" M2
         ",'spec':{'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'z','operator':'In','values':['1']}]}]}}}}",
         "{" M2
         ",'spec':{'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'z','operator':'In','values':['2']}]}]}}}}",
         EVENT_VOLUME, EVENT_VOLUME},
        {"a volume's claim", API_OBJECTS_VOLUMES, "{" M "}", "{" M2 "}",
         "{" M2 ",'spec':{'claimRef':{'namespace':'ns','name':'c'}}}", EVENT_VOLUME, EVENT_VOLUME},
        {"a class that waits now", API_OBJECTS_STORAGE_CLASSES, "{" M ",'provisioner':'p'}",
         "{" M2 ",'provisioner':'p'}",
         "{" M2 ",'provisioner':'p','volumeBindingMode':'WaitForFirstConsumer'}", EVENT_VOLUME,
         EVENT_VOLUME},
        {"a limit", API_OBJECTS_CSI_NODES,
         "{" M ",'spec':{'drivers':[{'name':'d','allocatable':{'count':1}}]}}",
         "{" M2 ",'spec':{'drivers':[{'name':'d','nodeID':'x','allocatable':{'count':1}}]}}",
         "{" M2 ",'spec':{'drivers':[{'name':'d','allocatable':{'count':2}}]}}", EVENT_VOLUME,
         EVENT_VOLUME},
        {"a driver's wish", API_OBJECTS_CSI_DRIVERS, "{" M "}", "{" M2 "}",
         "{" M2 ",'spec':{'storageCapacity':true}}", EVENT_VOLUME, EVENT_VOLUME},
        {"room for volumes", API_OBJECTS_CSI_CAPACITIES, "{" M ",'capacity':'1Gi'}",
         "{" M2 ",'capacity':'1024Mi'}", "{" M2 ",'capacity':'2Gi'}", EVENT_VOLUME, 0},
        {"an attachment helps nobody, but its end may", API_OBJECTS_VOLUME_ATTACHMENTS,
         "{" M ",'spec':{'nodeName':'n'}}", "{" M2 ",'spec':{'nodeName':'n'}}",
         "{" M2 ",'spec':{'nodeName':'m'}}", 0, EVENT_VOLUME},
        {"a budget", API_OBJECTS_BUDGETS,
         "{" M ",'spec':{'selector':{}},'status':{'disruptionsAllowed':1}}",
         "{" M2 ",'spec':{'selector':{}},'status':{'disruptionsAllowed':1,'currentHealthy':3}}",
         "{" M2 ",'spec':{'selector':{}},'status':{'disruptionsAllowed':2}}", EVENT_BUDGET,
         EVENT_BUDGET},
        {"a device class", API_OBJECTS_DEVICE_CLASSES, "{" M "}", "{" M2 "}",
         "{" M2 ",'spec':{'extendedResourceName':'e/r'}}", 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct api_objects o;
        api_objects_init(&o);
        enum api_objects_kind kind = rows[i].kind;
        struct object *first = make(kind, rows[i].first);
        AUTO_STRBUF key = {0};
        strbuf_adds(&key, first->key);
        expect_int(rows[i].row, rows[i].put, api_objects_put(&o, kind, first));
        uint64_t generation = o.generation[kind];
        expect_int(rows[i].row, 0, api_objects_put(&o, kind, make(kind, rows[i].same)));
        expect_int(rows[i].row, (int64_t)generation, (int64_t)o.generation[kind]);
        expect_int(rows[i].row, rows[i].put, api_objects_put(&o, kind, make(kind, rows[i].other)));
        expect_true(rows[i].row, o.generation[kind] > generation);
        generation = o.generation[kind];
        expect_int(rows[i].row, 0, api_objects_remove(&o, kind, strbuf_str(&key), "another"));
        expect_true(rows[i].row, api_objects_find(&o, kind, strbuf_str(&key)) != NULL);
        expect_int(rows[i].row, rows[i].removed,
                   api_objects_remove(&o, kind, strbuf_str(&key), "u"));
        expect_true(rows[i].row, api_objects_find(&o, kind, strbuf_str(&key)) == NULL);
        expect_true(rows[i].row, o.generation[kind] > generation);
        expect_int(rows[i].row, 0, api_objects_remove(&o, kind, strbuf_str(&key), NULL));
        api_objects_deinit(&o);
    }
    expect_done();
}

static void the_same_name_with_another_uid_is_another_object(void **state)
{
    (void)state;
    struct api_objects o;
    api_objects_init(&o);
    api_objects_put(&o, API_OBJECTS_CLAIMS, make(API_OBJECTS_CLAIMS, "{" M "}"));
    expect_int("made again", EVENT_VOLUME,
               api_objects_put(&o, API_OBJECTS_CLAIMS,
                               make(API_OBJECTS_CLAIMS,
                                    "{'metadata':{'name':'a','namespace':'ns','uid':'new'}}")));
    expect_int("a late DELETE of the old one does nothing", 0,
               api_objects_remove(&o, API_OBJECTS_CLAIMS, "ns/a", "u"));
    expect_true("it stays", api_objects_find_pvc(&o, "ns", "a") != NULL);
    expect_int("one that is being deleted is another", EVENT_VOLUME,
               api_objects_put(&o, API_OBJECTS_CLAIMS,
                               make(API_OBJECTS_CLAIMS,
                                    "{'metadata':{'name':'a','namespace':'ns','uid':'new',"
                                    "'deletionTimestamp':'2026-01-01T00:00:00Z'}}")));
    api_objects_deinit(&o);
    expect_done();
}

static void questions(void **state)
{
    (void)state;
    struct api_objects o;
    api_objects_init(&o);
    expect_true("a namespace that is not known", api_objects_namespace_labels(&o, "x") == NULL);
    api_objects_put(
        &o, API_OBJECTS_NAMESPACES,
        make(API_OBJECTS_NAMESPACES, "{'metadata':{'name':'x','labels':{'team':'a'}}}"));
    expect_str("labels of one that is", "a",
               labels_get(api_objects_namespace_labels(&o, "x"), "team"));
    api_objects_put(&o, API_OBJECTS_CLAIMS, make(API_OBJECTS_CLAIMS, "{" M "}"));
    expect_true("a claim", api_objects_find_pvc(&o, "ns", "a") != NULL);
    expect_true("of another namespace", api_objects_find_pvc(&o, "n", "a") == NULL);
    expect_true("no name", api_objects_find_pvc(&o, "ns", NULL) == NULL);
    AUTO_STRBUF large = {0};
    for (int i = 0; i < 100; i++)
        strbuf_adds(&large, "0123456789");
    expect_true("a name that cannot be",
                api_objects_find_pvc(&o, "ns", strbuf_str(&large)) == NULL);
    const struct pod p = {.ns = "ns"};
    const struct pod_volume v = {.kind = POD_VOLUME_CLAIM, .claim = "a"},
                            w = {.kind = POD_VOLUME_CSI};
    expect_true("the claim of a pod's volume", api_objects_find_claim(&o, &p, &v) != NULL);
    expect_true("a volume without a claim", api_objects_find_claim(&o, &p, &w) == NULL);
    api_objects_put(&o, API_OBJECTS_VOLUMES, make(API_OBJECTS_VOLUMES, "{" M "}"));
    api_objects_put(&o, API_OBJECTS_STORAGE_CLASSES, make(API_OBJECTS_STORAGE_CLASSES, "{" M "}"));
    api_objects_put(&o, API_OBJECTS_CSI_NODES, make(API_OBJECTS_CSI_NODES, "{" M "}"));
    api_objects_put(&o, API_OBJECTS_CSI_DRIVERS, make(API_OBJECTS_CSI_DRIVERS, "{" M "}"));
    expect_true("kinds without namespaces go by name",
                api_objects_find_pv(&o, "a") && api_objects_find_storage_class(&o, "a") &&
                    api_objects_find_csi_node(&o, "a") && api_objects_find_csi_driver(&o, "a"));
    expect_true("no such",
                !api_objects_find_pv(&o, "b") && !api_objects_find_storage_class(&o, NULL));
    static const char *const classes[] = {
        "{'metadata':{'name':'z'},'spec':{'extendedResourceName':'e/r'}}",
        "{'metadata':{'name':'b'},'spec':{'extendedResourceName':'e/r'}}",
        "{'metadata':{'name':'a'},'spec':{}}"};
    for (size_t i = 0; i < 3; i++)
        api_objects_put(&o, API_OBJECTS_DEVICE_CLASSES,
                        make(API_OBJECTS_DEVICE_CLASSES, classes[i]));
    expect_str("who offers a resource: the first by name", "b",
               api_objects_find_offer(&o, "e/r")->object.name);
    expect_true("nobody", api_objects_find_offer(&o, "e/s") == NULL);
    expect_str("the name that every class has", "a",
               api_objects_find_offer(&o, "deviceclass.resource.kubernetes.io/a")->object.name);
    expect_true("of a class that is not there",
                api_objects_find_offer(&o, "deviceclass.resource.kubernetes.io/c") == NULL);
    expect_true("the start of it is not enough",
                api_objects_find_offer(&o, "deviceclass.resource.kubernetes.io/") == NULL);
    api_objects_deinit(&o);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_that_matter_are_events),
        cmocka_unit_test(the_same_name_with_another_uid_is_another_object),
        cmocka_unit_test(questions),
    };
    return cmocka_run_group_tests_name("objects", tests, NULL, NULL);
}
