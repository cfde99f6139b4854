// SPDX-License-Identifier: Apache-2.0
#include "test/unit/lib/kube/decode_kit.h"

#define POD(spec) "{'metadata':{'name':'a','namespace':'ns'},'spec':{" spec "}}"
#define VOLUME(rest) POD("'volumes':[{'name':'v'," rest "}]")

static void test_volumes(void **state)
{
    (void)state;
    static const struct {
        const char *row, *rest;
        int kind; /* -1: not kept */
        const char *claim, *driver, *id;
        bool read_only;
    } rows[] = {
        {"a claim", "'persistentVolumeClaim':{'claimName':'data'}", POD_VOLUME_CLAIM, "data", NULL,
         NULL, false},
        {"a claim, read-only", "'persistentVolumeClaim':{'claimName':'data','readOnly':true}",
         POD_VOLUME_CLAIM, "data", NULL, NULL, true},
        {"a generic ephemeral volume has a claim of the pod's name",
         "'ephemeral':{'volumeClaimTemplate':{}}", POD_VOLUME_EPHEMERAL, "a-v", NULL, NULL, false},
        {"inline CSI", "'csi':{'driver':'d.example'}", POD_VOLUME_CSI, NULL, "d.example", NULL,
         false},
        {"an EBS volume", "'awsElasticBlockStore':{'volumeID':'vol-1'}", POD_VOLUME_AWS_EBS, NULL,
         "ebs.csi.aws.com", "vol-1", false},
        {"the same in the long form",
         "'awsElasticBlockStore':{'volumeID':'aws://eu-west-1a/vol-1'}", POD_VOLUME_AWS_EBS, NULL,
         "ebs.csi.aws.com", "vol-1", false},
        {"a GCE disk", "'gcePersistentDisk':{'pdName':'pd','readOnly':true}", POD_VOLUME_GCE_PD,
         NULL, "pd.csi.storage.gke.io", "pd", true},
        {"an Azure disk", "'azureDisk':{'diskURI':'/a/b'}", POD_VOLUME_AZURE_DISK, NULL,
         "disk.csi.azure.com", "/a/b", false},
        {"Cinder", "'cinder':{'volumeID':'c'}", POD_VOLUME_CINDER, NULL, "cinder.csi.openstack.org",
         "c", false},
        {"Portworx", "'portworxVolume':{'volumeID':'p'}", POD_VOLUME_PORTWORX, NULL,
         "pxd.portworx.com", "p", false},
        {"iSCSI", "'iscsi':{'iqn':'iqn.1'}", POD_VOLUME_ISCSI, NULL, NULL, "iqn.1", false},
        {"Ceph", "'rbd':{'monitors':['m1','m2'],'image':'i'}", POD_VOLUME_RBD, NULL, NULL, "rbd/i",
         false},
        {"a directory of the pod's own", "'emptyDir':{}", -1, NULL, NULL, NULL, false},
        {"a token", "'projected':{'sources':[]}", -1, NULL, NULL, NULL, false},
        {"null is as absent", "'persistentVolumeClaim':null", -1, NULL, NULL, NULL, false},
        {"an image gives points only", "'image':{'reference':'i:1'}", -1, NULL, NULL, NULL, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO_STRBUF text = {0};
        strbuf_addf(&text, VOLUME("%s"), rows[i].rest);
        struct pod *p = decode_kit_pod(strbuf_str(&text));
        expect_int(rows[i].row, rows[i].kind >= 0 ? 1 : 0, (int64_t)p->volumes_len);
        if (p->volumes_len == 1) {
            const struct pod_volume *v = &p->volumes[0];
            expect_int(rows[i].row, rows[i].kind, v->kind);
            expect_str(rows[i].row, "v", v->name);
            expect_str(rows[i].row, rows[i].claim, v->claim);
            expect_str(rows[i].row, rows[i].driver, v->driver);
            expect_str(rows[i].row, rows[i].id, v->id);
            expect_int(rows[i].row, rows[i].read_only, v->read_only);
        }
        pod_free(p);
    }
    struct pod *p = decode_kit_pod(POD(
        "'volumes':[{'name':'x','emptyDir':{}},{'name':'y','image':{'reference':'i:1'}},{'name':'z',"
        "'rbd':{'monitors':['m1','m2'],'pool':'p','image':'i'}}],'volumes':[{'name':'a','image':{}},{'name':'b','image':"
        "{'reference':'i:2'}},{'name':'c','image':{'reference':'i:3'}},{'name':'d','persistentVolumeClaim':{'claimName':'q'}}]"));
    expect_int("of a member that is there twice the last holds", 1, (int64_t)p->volumes_len);
    expect_int("images", 2, (int64_t)p->image_volumes_len);
    expect_str("image", "i:3", p->image_volumes[1]);
    pod_free(p);
    expect_done();
}

static void test_bad_volumes(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says; /* NULL: accepted */
    } rows[] = {
        {POD("'volumes':null"), NULL},
        {POD("'volumes':3"), "spec.volumes: must be a list, not number"},
        {VOLUME("'persistentVolumeClaim':3"),
         "spec.volumes[0]: persistentVolumeClaim: must be an object, not number"},
        {VOLUME("'persistentVolumeClaim':{'claimName':3}"),
         "spec.volumes[0]: persistentVolumeClaim.claimName: must be a string without NUL, not number"},
        {VOLUME("'persistentVolumeClaim':{'readOnly':'yes'}"),
         "spec.volumes[0]: readOnly: must be true or false, not string"},
        {VOLUME("'csi':{'driver':3}"),
         "spec.volumes[0]: csi.driver: must be a string without NUL, not number"},
        {VOLUME("'cinder':{'volumeID':3}"),
         "spec.volumes[0]: cinder: volumeID: must be a string without NUL, not number"},
        {VOLUME("'rbd':{'monitors':3}"),
         "spec.volumes[0]: rbd.monitors: must be a list, not number"},
        {VOLUME("'rbd':{'pool':3}"),
         "spec.volumes[0]: rbd.pool: must be a string without NUL, not number"},
        {VOLUME("'iscsi':{'iqn':3}"),
         "spec.volumes[0]: iscsi.iqn: must be a string without NUL, not number"},
        {VOLUME("'image':{'reference':3}"), NULL},
        {POD("'volumes':[{'name':'v','emptyDir':{}},{'name':3,'ephemeral':{}}]"),
         "spec.volumes[1]: name: must be a string without NUL, not number"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        decode_kit_pod_row(rows[i].text, rows[i].says);
    expect_done();
}

/* What else of a pod came with them. */
static void test_the_rest_of_a_pod(void **state)
{
    (void)state;
    static const struct {
        const char *row, *spec;
        unsigned features;
        bool host_network;
    } rows[] = {
        {"nothing", "", 0, false},
        {"host network", "'hostNetwork':true", 0, true},
        {"host network, host users", "'hostNetwork':true,'hostUsers':true", 0, true},
        {"host network, own users", "'hostUsers':false,'hostNetwork':true",
         POD_FEATURE_HOST_NET_USERNS, true},
        {"own users", "'hostUsers':false", 0, false},
        {"a container restarts all",
         "'containers':[{'name':'c','restartPolicyRules':[{'action':'Restart'},{'action':'RestartAllContainers'}]}]",
         POD_FEATURE_RESTART_ALL, false},
        {"an init container restarts all",
         "'initContainers':[{'name':'c','restartPolicyRules':[{'action':'RestartAllContainers'}]}]",
         POD_FEATURE_RESTART_ALL, false},
        {"a container restarts itself",
         "'containers':[{'name':'c','restartPolicyRules':[{'action':'Restart'}]}]", 0, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO_STRBUF text = {0};
        strbuf_addf(&text, POD("%s"), rows[i].spec);
        struct pod *p = decode_kit_pod(strbuf_str(&text));
        expect_int(rows[i].row, rows[i].features, p->features);
        expect_int(rows[i].row, rows[i].host_network, p->host_network);
        pod_free(p);
    }
    struct pod *p = decode_kit_pod(
        "{'metadata':{'name':'a','namespace':'ns'},'spec':{'containers':[{'name':'c','resources':{'requests':{"
        "'example.com/gpu':'2','example.com/nic':'1','cpu':'1'}}}]},'status':{'startTime':'1970-01-01T00:00:03Z',"
        "'extendedResourceClaimStatus':{'resourceClaimName':'r','requestMappings':[{'containerName':'c','resourceName':'example.com/gpu'"
        "},{'containerName':'d','resourceName':'example.com/gpu'}]}}}");
    expect_int("began", 3000000000, p->started_ns);
    expect_int("claimed, once", 1, (int64_t)p->claimed_len);
    expect_int("what a claim provides is not asked of a device plugin", 0,
               resources_get(&p->request, "example.com/gpu", NULL));
    expect_int("the others are", 1, resources_get(&p->request, "example.com/nic", NULL));
    expect_int("cpu", 1000, p->request.cpu_milli);
    pod_free(p);
    decode_kit_pod_row(POD("'hostNetwork':3"),
                       "spec.hostNetwork: must be true or false, not number");
    expect_done();
}

static void test_the_rest_of_a_node(void **state)
{
    (void)state;
    struct node *n = NULL;
    struct error err = ERROR_INIT;
    AUTO_JSON *doc = decode_kit_parse(
        "{'metadata':{'name':'n'},'status':{'declaredFeatures':['Odd','UserNamespacesHostNetworkSupport',3],'images':["
        "{'names':['r/a@sha256:1','r/a:1'],'sizeBytes':100},{'names':['b:latest','r/a:1'],'sizeBytes':7},{'names':null},{}]}}");
    expect_int("a node with images", 0, decode_node(json_root(doc), &n, &err));
    expect_int("declared features", POD_FEATURE_HOST_NET_USERNS, n->features);
    expect_int("names, each once", 3, (int64_t)n->images_len);
    expect_int("by tag", 100, node_image_bytes(n, node_image_hash("r/a:1")));
    expect_int("by digest", 100, node_image_bytes(n, node_image_hash("r/a@sha256:1")));
    expect_int("without a tag", 7, node_image_bytes(n, node_image_hash("b")));
    expect_int("not there", 0, node_image_bytes(n, node_image_hash("c")));
    node_free(n);
    AUTO_JSON *odd = decode_kit_parse("{'metadata':{'name':'n'},'status':{'images':[{},{'names':["
                                      "'a'],'sizeBytes':-1}],'declaredFeatures':{}}}");
    assert_int_equal(0, decode_node(json_root(odd), &n, &err));
    expect_int("a size that is none gives no points", 0, node_image_bytes(n, node_image_hash("a")));
    node_free(n);
    /* More names than we keep: the rest gives no points, and nothing breaks. */
    AUTO_STRBUF many = {0};
    strbuf_adds(&many, "{'metadata':{'name':'n'},'status':{'images':[");
    for (int i = 0; i < 3000; i++)
        strbuf_addf(&many, "%s{'names':['a%d:1','b%d:1'],'sizeBytes':1}", i ? "," : "", i, i);
    strbuf_adds(&many, "]}}");
    AUTO_JSON *large = decode_kit_parse(strbuf_str(&many));
    expect_int("many images", 0, decode_node(json_root(large), &n, &err));
    expect_int("bounded", DECODE_LIST_MAX, (int64_t)n->images_len);
    node_free(n);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_volumes),
        cmocka_unit_test(test_bad_volumes),
        cmocka_unit_test(test_the_rest_of_a_pod),
        cmocka_unit_test(test_the_rest_of_a_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
