// SPDX-License-Identifier: Apache-2.0
#include "test/unit/lib/kube/decode_kit.h"

static void test_claims(void **state)
{
    (void)state;
    struct pvc *c = NULL;
    struct error err = ERROR_INIT;
    AUTO_JSON *doc = decode_kit_parse(
        "{'metadata':{'name':'c','namespace':'ns','uid':'u','ownerReferences':[{'uid':'x'},{'uid':'p','controller':true}],"
        "'annotations':{'pv.kubernetes.io/bind-completed':'yes','volume.kubernetes.io/selected-node':'n1'}},'spec':{'accessModes':"
        "['ReadWriteOncePod','ReadOnlyMany','OfTomorrow'],'resources':{'requests':{'storage':'1.5Gi'}},'storageClassName':'fast',"
        "'volumeName':'pv1','volumeMode':'Block','selector':{'matchLabels':{'a':'b'}},'volumeAttributesClassName':'gold'},"
        "'status':{'phase':'Bound'}}");
    expect_int("a claim", 0, decode_pvc(json_root(doc), &c, &err));
    expect_str("key", "ns/c", c->object.key);
    expect_str("uid", "u", c->object.uid);
    expect_str("whose it is", "p", c->object.owner_uid);
    expect_int("modes that we know", ACCESS_READ_WRITE_ONCE_POD | ACCESS_READ_ONLY_MANY,
               c->access_modes);
    expect_int("request", 1610612736, c->request_bytes);
    expect_str("class", "fast", c->storage_class);
    expect_str("volume", "pv1", c->volume);
    expect_str("attributes", "gold", c->attributes_class);
    expect_true("block", c->block);
    expect_true("selector", c->has_selector && c->selector.len == 1);
    expect_int("phase", PVC_BOUND, c->phase);
    expect_true("bound by the controller", c->bind_completed);
    expect_str("node", "n1", c->selected_node);
    object_free(&c->object);

    AUTO_JSON *plain = decode_kit_parse("{'metadata':{'name':'c','namespace':'ns'},'spec':{"
                                        "'volumeName':'','volumeAttributesClassName':''}}");
    expect_int("defaults", 0, decode_pvc(json_root(plain), &c, &err));
    expect_str("no class", NULL, c->storage_class);
    expect_str("no volume", NULL, c->volume);
    expect_str("no attributes", NULL, c->attributes_class);
    expect_true("any volume", !c->has_selector);
    expect_int("phase", PVC_PENDING, c->phase);
    expect_str("no node", NULL, c->selected_node);
    expect_true("a filesystem", !c->block && !c->bind_completed);
    object_free(&c->object);

    AUTO_JSON *old = decode_kit_parse(
        "{'metadata':{'name':'c','namespace':'ns','annotations':{'volume.beta.kubernetes.io/storage-class':'old'}},'spec':{'storageClassName':'new'}}");
    expect_int("the old annotation", 0, decode_pvc(json_root(old), &c, &err));
    expect_str("wins", "old", c->storage_class);
    object_free(&c->object);
    AUTO_JSON *none = decode_kit_parse(
        "{'metadata':{'name':'c','namespace':'ns'},'spec':{'storageClassName':''}}");
    expect_int("no class by name", 0, decode_pvc(json_root(none), &c, &err));
    expect_str("is not the same as none named", "", c->storage_class);
    object_free(&c->object);
    expect_done();
}

static void test_volumes(void **state)
{
    (void)state;
    struct pv *v = NULL;
    struct error err = ERROR_INIT;
    AUTO_JSON *doc = decode_kit_parse(
        "{'metadata':{'name':'pv1','labels':{'topology.kubernetes.io/zone':'a'}},'spec':{'capacity':{'storage':'10G'},'accessModes':"
        "['ReadWriteOnce','ReadWriteMany'],'storageClassName':'fast','claimRef':{'namespace':'ns','name':'c','uid':'u'},'nodeAffinity':{'required':{"
        "'nodeSelectorTerms':[{'matchExpressions':[{'key':'zone','operator':'In','values':['a']}]}]}},'csi':{'driver':'d','volumeHandle':'h'}},"
        "'status':{'phase':'Bound'}}");
    expect_int("a volume", 0, decode_pv(json_root(doc), &v, &err));
    expect_str("key", "pv1", v->object.key);
    expect_str("label", "a", labels_get(&v->object.labels, "topology.kubernetes.io/zone"));
    expect_int("capacity", 10000000000, v->capacity_bytes);
    expect_int("modes", ACCESS_READ_WRITE_ONCE | ACCESS_READ_WRITE_MANY, v->access_modes);
    expect_str("claim", "ns", v->claim_ns);
    expect_str("claim", "c", v->claim_name);
    expect_str("claim", "u", v->claim_uid);
    expect_true("where", v->has_node_affinity && v->node_affinity.len == 1);
    expect_str("driver", "d", v->driver);
    expect_str("handle", "h", v->handle);
    expect_true("not in-tree", !v->in_tree);
    expect_int("phase", PV_BOUND, v->phase);
    object_free(&v->object);

    AUTO_JSON *plain =
        decode_kit_parse("{'metadata':{'name':'pv1'},'spec':{'claimRef':{},'csi':null,"
                         "'nodeAffinity':null,'hostPath':{}}}");
    expect_int("a plain one", 0, decode_pv(json_root(plain), &v, &err));
    expect_str("no class", "", v->storage_class);
    expect_str("reserved, by no name", "", v->claim_uid);
    expect_str("no driver", NULL, v->driver);
    expect_true("anywhere", !v->has_node_affinity);
    expect_int("phase", PV_PENDING, v->phase);
    object_free(&v->object);

    AUTO_JSON *tree =
        decode_kit_parse("{'metadata':{'name':'pv1'},'spec':{'awsElasticBlockStore':{"
                         "'volumeID':'aws://z/vol-1'}},'status':{'phase':'Released'}}");
    expect_int("an in-tree one", 0, decode_pv(json_root(tree), &v, &err));
    expect_str("is its driver's today", "ebs.csi.aws.com", v->driver);
    expect_str("by the driver's name for it", "vol-1", v->handle);
    expect_true("in-tree", v->in_tree);
    expect_str("no claim", NULL, v->claim_name);
    expect_int("phase", PV_RELEASED, v->phase);
    object_free(&v->object);
    expect_done();
}

static void test_classes_and_csi(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct storage_class *c = NULL;
    AUTO_JSON *doc = decode_kit_parse(
        "{'metadata':{'name':'fast'},'provisioner':'p','volumeBindingMode':'WaitForFirstConsumer','allowedTopologies':["
        "{'matchLabelExpressions':[{'key':'zone','values':['a','b']},{'key':'rack','values':['1']}]},{'matchLabelExpressions':[]}]}");
    expect_int("a class", 0, decode_storage_class(json_root(doc), &c, &err));
    expect_str("provisioner", "p", c->provisioner);
    expect_true("waits", c->wait_for_consumer);
    expect_true("dynamic", !storage_class_is_static(c));
    expect_true("topologies", c->has_topologies && c->topologies.len == 2);
    struct label there[] = {{"rack", "1"}, {"zone", "b"}},
                 elsewhere[] = {{"rack", "1"}, {"zone", "c"}};
    expect_true("both hold",
                node_selector_matches(&c->topologies, &(struct labels){there, 2}, "n"));
    expect_true("one does not",
                !node_selector_matches(&c->topologies, &(struct labels){elsewhere, 2}, "n"));
    object_free(&c->object);

    struct csi_node *n = NULL;
    AUTO_JSON *node = decode_kit_parse(
        "{'metadata':{'name':'n1'},'spec':{'drivers':[{'name':'d','nodeID':'x','topologyKeys':['zone'],'allocatable':{'count':0}},"
        "{'name':'e','topologyKeys':null},{'name':'f','allocatable':{}}]}}");
    expect_int("what a node says", 0, decode_csi_node(json_root(node), &n, &err));
    expect_int("a limit of none", 0, csi_node_find(n, "d")->limit);
    expect_str("key", "zone", csi_node_find(n, "d")->topology_keys[0]);
    expect_int("no limit", -1, csi_node_find(n, "e")->limit);
    expect_int("no count, no limit", -1, csi_node_find(n, "f")->limit);
    expect_true("not there", csi_node_find(n, "g") == NULL);
    object_free(&n->object);

    struct csi_driver *d = NULL;
    AUTO_JSON *driver = decode_kit_parse("{'metadata':{'name':'d'},'spec':{'storageCapacity':true,"
                                         "'preventPodSchedulingIfMissing':true}}");
    expect_int("a driver", 0, decode_csi_driver(json_root(driver), &d, &err));
    expect_true("what it wants", d->storage_capacity && d->needed_on_node);
    object_free(&d->object);

    struct csi_capacity *room = NULL;
    AUTO_JSON *capacity = decode_kit_parse(
        "{'metadata':{'name':'x','namespace':'ns'},'storageClassName':'fast','capacity':'3Gi','nodeTopology':{'matchLabels':{'z':'1'}}}");
    expect_int("room", 0, decode_csi_capacity(json_root(capacity), &room, &err));
    expect_int("capacity", 3LL << 30, room->capacity_bytes);
    expect_int("no maximum", -1, room->maximum_bytes);
    expect_true("where", !room->nodes.nothing && room->nodes.len == 1);
    object_free(&room->object);

    struct volume_attachment *at = NULL;
    AUTO_JSON *attached =
        decode_kit_parse("{'metadata':{'name':'x'},'spec':{'attacher':'d','nodeName':"
                         "'n1','source':{'persistentVolumeName':'pv1'}}}");
    expect_int("attached", 0, decode_volume_attachment(json_root(attached), &at, &err));
    expect_str("driver", "d", at->attacher);
    expect_str("node", "n1", at->node);
    expect_str("volume", "pv1", at->volume);
    object_free(&at->object);
    expect_done();
}

static void test_budgets_and_the_rest(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct pdb *b = NULL;
    AUTO_JSON *doc = decode_kit_parse(
        "{'metadata':{'name':'b','namespace':'ns'},'spec':{'selector':{'matchLabels':{'app':'web'}}},'status':{'disruptionsAllowed':2,"
        "'disruptedPods':{'z':'2026-01-01T00:00:00Z','a':'2026-01-01T00:00:00Z'}}}");
    expect_int("a budget", 0, decode_pdb(json_root(doc), &b, &err));
    expect_int("allowed", 2, b->disruptions_allowed);
    expect_int("on their way", 2, (int64_t)b->disrupted_len);
    expect_str("sorted", "a", b->disrupted[0]);
    object_free(&b->object);
    AUTO_JSON *none = decode_kit_parse("{'metadata':{'name':'b','namespace':'ns'}}");
    expect_int("one that nobody has looked at", 0, decode_pdb(json_root(none), &b, &err));
    expect_true("selects nothing, allows nothing",
                b->selector.nothing && b->disruptions_allowed == 0);
    object_free(&b->object);
    struct device_class *d = NULL;
    AUTO_JSON *class = decode_kit_parse(
        "{'metadata':{'name':'g'},'spec':{'extendedResourceName':'example.com/gpu'}}");
    expect_int("a device class", 0, decode_device_class(json_root(class), &d, &err));
    expect_str("resource", "example.com/gpu", d->extended_resource);
    object_free(&d->object);
    struct object *o = NULL;
    AUTO_JSON *ns =
        decode_kit_parse("{'metadata':{'name':'x','namespace':'odd','labels':{'a':'b'}}}");
    expect_int("a namespace", 0, decode_namespace(json_root(ns), &o, &err));
    expect_str("has none itself", "x", o->key);
    expect_str("labels", "b", labels_get(&o->labels, "a"));
    object_free(o);
    object_free(NULL);
    expect_done();
}

#define DECODER(function, type)                                                  \
    static struct object *try_##function(json *j, struct error *err)             \
    {                                                                            \
        type *out = NULL;                                                        \
        return function(j, &out, err) < 0 ? NULL : (struct object *)(void *)out; \
    }
DECODER(decode_namespace, struct object)
DECODER(decode_pvc, struct pvc)
DECODER(decode_pv, struct pv)
DECODER(decode_storage_class, struct storage_class)
DECODER(decode_csi_node, struct csi_node)
DECODER(decode_csi_driver, struct csi_driver)
DECODER(decode_csi_capacity, struct csi_capacity)
DECODER(decode_volume_attachment, struct volume_attachment)
DECODER(decode_pdb, struct pdb)
DECODER(decode_device_class, struct device_class)
#undef DECODER

#define M "'metadata':{'name':'a','namespace':'ns'}"
/* As in pods: such a value is absent, the object is not. */
static void test_bad_values(void **state)
{
    (void)state;
    static const struct {
        struct object *(*decode)(json *, struct error *);
        const char *text;
    } rows[] = {
        {try_decode_namespace, "{'metadata':{'name':'a','labels':{'x':3,'l':'x'}}}"},
        {try_decode_pvc, "{'metadata':{'name':'a','namespace':'ns','labels':{'l':'x'},"
                         "'annotations':{'a':'x\\u0000y'},'ownerReferences':3}}"},
        {try_decode_pvc, "{'metadata':{'name':'a','namespace':'ns','labels':{'l':'x'}},'spec':{"
                         "'resources':{'requests':{'storage':'1e30'}}}}"},
        {try_decode_pdb, "{'metadata':{'name':'a','namespace':'ns','labels':{'l':'x'},"
                         "'annotations':{'a':'x\\u0000y'}}}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error err = ERROR_INIT;
        AUTO_JSON *doc = decode_kit_parse(rows[i].text);
        struct object *o = rows[i].decode(json_root(doc), &err);
        if (o == NULL)
            fail_msg("%s: %s", rows[i].text, err.text);
        expect_str(rows[i].text, "x", labels_get(&o->labels, "l"));
        object_free(o);
    }
    expect_done();
}

static void test_bad(void **state)
{
    (void)state;
    static const struct {
        struct object *(*decode)(json *j, struct error *err);
        const char *text, *says;
    } rows[] = {
        {try_decode_namespace, "[]", "namespace: must be an object, not array"},
        {try_decode_namespace, "{}", "namespace : metadata.name: missing"},
        {try_decode_pvc, "{'metadata':{'name':'a'}}",
         "persistentvolumeclaim a: metadata: name or namespace missing"},
        {try_decode_pvc, "{" M ",'spec':3}",
         "persistentvolumeclaim ns/a: spec: must be an object, not number"},
        {try_decode_pvc, "{" M ",'spec':{'resources':{'requests':{'storage':'x'}}}}",
         "persistentvolumeclaim ns/a: spec.resources.requests: storage: not a quantity: 'x'"},
        {try_decode_pvc, "{" M ",'spec':{'resources':{'requests':{'storage':true}}}}",
         "persistentvolumeclaim ns/a: spec.resources.requests: storage: must be a quantity, not boolean"},
        {try_decode_pvc, "{" M ",'spec':{'resources':{'requests':{'storage':'-1'}}}}",
         "persistentvolumeclaim ns/a: spec.resources.requests: storage: must not be negative: '-1'"},
        {try_decode_pvc, "{" M ",'spec':{'selector':3}}",
         "persistentvolumeclaim ns/a: spec.selector: must be an object, not number"},
        {try_decode_pvc, "{" M ",'spec':{'accessModes':3}}",
         "persistentvolumeclaim ns/a: spec.accessModes: must be a list, not number"},
        {try_decode_pvc, "{" M ",'spec':{'storageClassName':3}}",
         "persistentvolumeclaim ns/a: spec.storageClassName: must be a string without NUL, not number"},
        {try_decode_pv, "{" M ",'spec':{'capacity':3}}",
         "persistentvolume ns/a: spec.capacity: must be an object, not number"},
        {try_decode_pv, "{" M ",'spec':{'claimRef':3}}",
         "persistentvolume ns/a: spec.claimRef: must be an object, not number"},
        {try_decode_pv, "{" M ",'spec':{'csi':{'volumeHandle':3}}}",
         "persistentvolume ns/a: spec.csi.volumeHandle: must be a string without NUL, not number"},
        {try_decode_pv, "{" M ",'spec':{'cinder':{'volumeID':3}}}",
         "persistentvolume ns/a: spec: cinder: volumeID: must be a string without NUL, not number"},
        {try_decode_storage_class, "{" M ",'provisioner':3}",
         "storageclass ns/a: provisioner: must be a string without NUL, not number"},
        {try_decode_storage_class,
         "{" M ",'allowedTopologies':[{'matchLabelExpressions':[{'values':3}]}]}",
         "storageclass ns/a: allowedTopologies[0]: matchLabelExpressions[0]: values: must be a list, not number"},
        {try_decode_csi_node, "{" M ",'spec':{'drivers':[{},{'allocatable':{'count':-1}}]}}",
         "csinode ns/a: spec.drivers[1]: allocatable.count: must be between 0 and 2147483647: -1"},
        {try_decode_csi_driver, "{" M ",'spec':{'storageCapacity':3}}",
         "csidriver ns/a: spec.storageCapacity: must be true or false, not number"},
        {try_decode_csi_capacity, "{" M ",'nodeTopology':3}",
         "csistoragecapacity ns/a: nodeTopology: must be an object, not number"},
        {try_decode_volume_attachment, "{" M ",'spec':{'source':3}}",
         "volumeattachment ns/a: spec.source: must be an object, not number"},
        {try_decode_pdb, "{" M ",'spec':{'selector':{'matchLabels':3}}}",
         "poddisruptionbudget ns/a: spec.selector: matchLabels: must be an object, not number"},
        {try_decode_pdb, "{" M ",'status':{'disruptionsAllowed':'1'}}",
         "poddisruptionbudget ns/a: status.disruptionsAllowed: must be an integer"},
        {try_decode_pdb, "{" M ",'status':{'disruptedPods':[]}}",
         "poddisruptionbudget ns/a: status.disruptedPods: must be an object, not array"},
        {try_decode_device_class, "{" M ",'spec':{'extendedResourceName':3}}",
         "deviceclass ns/a: spec.extendedResourceName: must be a string without NUL, not number"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error err = ERROR_INIT;
        AUTO_JSON *doc = decode_kit_parse(rows[i].text);
        struct object *o = rows[i].decode(json_root(doc), &err);
        expect_true(rows[i].text, o == NULL);
        expect_str(rows[i].text, rows[i].says, err.text);
        object_free(o);
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_claims),          cmocka_unit_test(test_volumes),
        cmocka_unit_test(test_classes_and_csi), cmocka_unit_test(test_budgets_and_the_rest),
        cmocka_unit_test(test_bad_values),      cmocka_unit_test(test_bad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
