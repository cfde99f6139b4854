// SPDX-License-Identifier: Apache-2.0
/*
 * What an API server's types hold of JSON. Every sentence and every result was compared with
 * Kubernetes 1.36.
 */
#include "test/local/kinds/typed.h"

#include "test/local/kinds/kinds.h"
#include "test/unit/local/plain_json.h"

#define POD(spec) "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p'},'spec':{" spec "}}"
#define C(more) POD("'containers':[{'name':'c'" more "}]")
#define MAP(rest) "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'m'}" rest "}"
#define NODE(rest) "{'apiVersion':'v1','kind':'Node','metadata':{'name':'n'}" rest "}"
#define LEASE(spec)                                                                               \
    "{'apiVersion':'coordination.k8s.io/v1','kind':'Lease','metadata':{'name':'l'},'spec':{" spec \
    "}}"
#define DEPLOYMENT(spec) \
    "{'apiVersion':'apps/v1','kind':'Deployment','metadata':{'name':'d'},'spec':{" spec "}}"
#define CANNOT "json: cannot unmarshal "

struct row {
    const char *row, *object;
    const char *stored; /* NULL: refused with the sentence */
    const char *sentence;
    const char *notes; /* separated by "; "; NULL: none */
};

static void check(const struct row *r)
{
    AUTO_JSONTREE *t = plain_tree(r->object);
    struct jsonnode *root = jsontree_root(t);
    struct typed_notes notes = {0};
    struct error err = ERROR_INIT;
    AUTO_STRBUF expected = {0}, got = {0}, sentence = {0}, all = {0}, noted = {0};
    int rc = typed_decode(t, jsonnode_get_str(root, "apiVersion"), jsonnode_get_str(root, "kind"),
                          &notes, &err);
    expect_int(r->row, r->stored ? 0 : -1, rc);
    plain_json(r->stored ? r->stored : "", &expected);
    plain_json(r->sentence ? r->sentence : "", &sentence);
    plain_json(r->notes ? r->notes : "", &all);
    if (r->stored)
        jsontree_print(t, &got);
    for (size_t i = 0; i < notes.len; i++)
        strbuf_addf(&noted, "%s%s", i > 0 ? "; " : "", notes.items[i]);
    expect_str(r->row, strbuf_str(&expected), strbuf_str(&got));
    expect_str(r->row, strbuf_str(&sentence), err.text);
    expect_str(r->row, strbuf_str(&all), strbuf_str(&noted));
    typed_notes_deinit(&notes);
}

static void values_of_the_wrong_type(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"a text for a list of objects", POD("'volumes':'x'"), NULL,
         CANNOT "string into Go struct field PodSpec.spec.volumes of type []v1.Volume", NULL},
        {"a list for an object", POD("'affinity':[]"), NULL,
         CANNOT "array into Go struct field PodSpec.spec.affinity of type v1.Affinity", NULL},
        {"a number for an object in a list", POD("'containers':[1]"), NULL,
         CANNOT "number into Go struct field PodSpec.spec.containers of type v1.Container", NULL},
        {"a number for a text", POD("'nodeName':5"), NULL,
         CANNOT "number into Go struct field PodSpec.spec.nodeName of type string", NULL},
        {"a text for a number", C(",'ports':[{'containerPort':'80'}]"), NULL,
         CANNOT "string into Go struct field ContainerPort.spec.containers.ports.containerPort of "
                "type int32",
         NULL},
        {"a text for a truth", C(",'stdin':'x'"), NULL,
         CANNOT "string into Go struct field Container.spec.containers.stdin of type bool", NULL},
        {"a number in a list of texts", C(",'args':[1]"), NULL,
         CANNOT "number into Go struct field Container.spec.containers.args of type string", NULL},
        {"a text for a list of texts", C(",'command':'x'"), NULL,
         CANNOT "string into Go struct field Container.spec.containers.command of type []string",
         NULL},
        {"a number in a map of texts", MAP(",'data':{'a':1}"), NULL,
         CANNOT "number into Go struct field ConfigMap.data of type string", NULL},
        {"a text for a map", MAP(",'data':'x'"), NULL,
         CANNOT "string into Go struct field ConfigMap.data of type map[string]string", NULL},
        {"a text for metadata", "{'apiVersion':'v1','kind':'Pod','metadata':'x'}", NULL,
         CANNOT "string into Go struct field Pod.metadata of type v1.ObjectMeta", NULL},
        {"a number among finalizers",
         "{'apiVersion':'v1','kind':'Pod','metadata':{'finalizers':[1]}}", NULL,
         CANNOT "number into Go struct field ObjectMeta.metadata.finalizers of type string", NULL},
        {"a text for the owners",
         "{'apiVersion':'v1','kind':'Pod','metadata':{'ownerReferences':'x'}}", NULL,
         CANNOT "string into Go struct field ObjectMeta.metadata.ownerReferences of type "
                "[]v1.OwnerReference",
         NULL},
        {"more than 32 bits", DEPLOYMENT("'replicas':2147483648"), NULL,
         CANNOT "number 2147483648 into Go struct field DeploymentSpec.spec.replicas of type int32",
         NULL},
        {"as much as 32 bits", DEPLOYMENT("'replicas':2147483647"),
         DEPLOYMENT("'replicas':2147483647"), NULL, NULL},
        {"a fraction", DEPLOYMENT("'replicas':1.5"), NULL,
         CANNOT "number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32", NULL},
        {"a name that is all capitals", C(",'livenessProbe':{'httpGet':5}"), NULL,
         CANNOT "number into Go struct field Probe.spec.containers.livenessProbe.httpGet of type "
                "v1.HTTPGetAction",
         NULL},
        {"no base64", MAP(",'binaryData':{'a':'!!'}"), NULL, "illegal base64 data at input byte 0",
         NULL},
        {"no amount", NODE(",'status':{'capacity':{'cpu':'x'}}"), NULL,
         "quantities must match the regular expression "
         "~^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$~",
         NULL},
        {"no time", "{'apiVersion':'v1','kind':'Pod','metadata':{'creationTimestamp':'x'}}", NULL,
         "parsing time 'x' as '2006-01-02T15:04:05Z07:00': cannot parse 'x' as '2006'", NULL},
        {"a time without microseconds", LEASE("'renewTime':'2026-01-01T00:00:00Z'"), NULL,
         "parsing time '2026-01-01T00:00:00Z' as '2006-01-02T15:04:05.000000Z07:00': cannot parse "
         "'Z' as '.000000'",
         NULL},
        {"a time with more than microseconds",
         LEASE("'renewTime':'2026-01-01T00:00:00.123456789Z'"), NULL,
         "parsing time '2026-01-01T00:00:00.123456789Z' as '2006-01-02T15:04:05.000000Z07:00': "
         "cannot parse '789Z' as 'Z07:00'",
         NULL},
        {"the first of two counts", POD("'nodeName':5,'volumes':'x'"), NULL,
         CANNOT "number into Go struct field PodSpec.spec.nodeName of type string", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(&rows[i]);
    expect_done();
}

static void what_is_stored(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"unknown members go", POD("'bogus':1,'containers':[{'name':'c','imagee':'i'}]"),
         POD("'containers':[{'name':'c'}]"), NULL,
         "unknown field 'spec.bogus'; unknown field 'spec.containers[0].imagee'"},
        {"in another case they are unknown", MAP(",'Data':{'a':'1'}"), MAP(""), NULL,
         "unknown field 'Data'"},
        {"null is absent", POD("'nodeName':null,'containers':[{'name':'c','env':null}]"),
         POD("'containers':[{'name':'c'}]"), NULL, NULL},
        {"in a map null is the empty text", MAP(",'data':{'a':null,'b':'1'}"),
         MAP(",'data':{'a':'','b':'1'}"), NULL, NULL},
        {"empty lists and maps are absent",
         POD("'nodeSelector':{},'tolerations':[],'containers':[{'name':'c','args':[]}]"),
         POD("'containers':[{'name':'c'}]"), NULL, NULL},
        {"empty objects are not", POD("'securityContext':{}"), POD("'securityContext':{}"), NULL,
         NULL},
        {"zeroes that Go does not print are absent",
         POD("'hostNetwork':false,'nodeName':'','containers':[{'name':'c','ports':"
             "[{'containerPort':80,'hostPort':0}]}]"),
         POD("'containers':[{'name':'c','ports':[{'containerPort':80}]}]"), NULL, NULL},
        {"zeroes that it prints are not", DEPLOYMENT("'replicas':0"), DEPLOYMENT("'replicas':0"),
         NULL, NULL},
        {"a time in UTC, to the second",
         "{'apiVersion':'v1','kind':'Pod','metadata':{'creationTimestamp':"
         "'2026-01-01T02:00:00.5+01:00'}}",
         "{'apiVersion':'v1','kind':'Pod','metadata':{'creationTimestamp':'2026-01-01T01:00:00Z'}}",
         NULL, NULL},
        {"a time before our clock",
         "{'apiVersion':'v1','kind':'Pod','metadata':{"
         "'creationTimestamp':'0001-01-01T00:00:00Z'}}",
         "{'apiVersion':'v1','kind':'Pod','metadata':{'creationTimestamp':'0001-01-01T00:00:00Z'}}",
         NULL, NULL},
        {"amounts in their usual form",
         NODE(",'status':{'capacity':{'cpu':0.5,'memory':'1024Ki'}}"),
         NODE(",'status':{'capacity':{'cpu':'500m','memory':'1Mi'}}"), NULL, NULL},
        {"a member that comes twice: the last", POD("'nodeName':'a','nodeName':'b'"),
         POD("'nodeName':'b'"), NULL, "duplicate field 'spec.nodeName'"},
        {"a map that comes twice is one", MAP(",'data':{'a':'1'},'data':{'b':'2'}"),
         MAP(",'data':{'a':'1','b':'2'}"), NULL, "duplicate field 'data'"},
        {"a key that comes twice in a map", MAP(",'data':{'a':'1','b':'1','a':'2'}"),
         MAP(",'data':{'a':'2','b':'1'}"), NULL, "duplicate field 'data.a'"},
        {"a port is a number or a text",
         C(",'livenessProbe':{'httpGet':{'port':80}},'readinessProbe':{'httpGet':{'port':'web'}}"),
         C(",'livenessProbe':{'httpGet':{'port':80}},'readinessProbe':{'httpGet':{'port':'web'}}"),
         NULL, NULL},
        {"members of an inlined struct", POD("'volumes':[{'name':'v','emptyDir':{},'hostPat':{}}]"),
         POD("'volumes':[{'name':'v','emptyDir':{}}]"), NULL,
         "unknown field 'spec.volumes[0].hostPat'"},
        {"a kind of nobody's is as it was",
         "{'apiVersion':'kubeflow.org/v1','kind':'TFJob','spec':{'x':null}}",
         "{'apiVersion':'kubeflow.org/v1','kind':'TFJob','spec':{'x':null}}", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(&rows[i]);
    expect_done();
}

static void notes_have_a_bound(void **state)
{
    (void)state;
    AUTO_STRBUF text = {0};
    struct typed_notes notes = {0};
    struct error err = ERROR_INIT;
    AUTO_JSONTREE *t = NULL;
    strbuf_adds(&text, "{\"metadata\":{\"name\":\"m\"}");
    for (int i = 0; i < 5000; i++)
        strbuf_addf(&text, ",\"x%d\":1", i);
    strbuf_adds(&text, "}");
    assert_int_equal(0, jsontree_parse(&t, strbuf_str(&text), text.len, &err));
    assert_int_equal(0, typed_decode(t, "v1", "ConfigMap", &notes, &err));
    assert_int_equal(TYPED_NOTES_MAX, notes.len);
    assert_int_equal(1, jsonnode_len(jsontree_root(t)));
    typed_notes_deinit(&notes);
}

/* A misspelt member of one of our kinds is reported, except for these kinds. */
static void most_kinds_have_types(void **state)
{
    (void)state;
    AUTO_STRBUF without = {0};
    for (size_t i = 0; kinds_all[i]; i++)
        if (!kinds_all[i]->custom && !typed_knows(kinds_all[i]->api_version, kinds_all[i]->kind))
            strbuf_addf(&without, "%s ", kinds_all[i]->resource);
    assert_string_equal(strbuf_str(&without),
                        "endpoints persistentvolumes podtemplates replicationcontrollers "
                        "controllerrevisions csidrivers csinodes csistoragecapacities "
                        "storageclasses volumeattachments mutatingwebhookconfigurations "
                        "validatingadmissionpolicies validatingadmissionpolicybindings "
                        "validatingwebhookconfigurations customresourcedefinitions endpointslices "
                        "deviceclasses resourceclaims resourceclaimtemplates resourceslices ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_the_wrong_type),
        cmocka_unit_test(what_is_stored),
        cmocka_unit_test(notes_have_a_bound),
        cmocka_unit_test(most_kinds_have_types),
    };
    return cmocka_run_group_tests_name("typed", tests, NULL, NULL);
}
