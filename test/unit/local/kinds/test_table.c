// SPDX-License-Identifier: Apache-2.0
/*
 * The cells of `kubectl get`. The states of pods, and every column of every kind, were compared
 * with a real API server of Kubernetes 1.36.
 */
#include "test/local/kinds/table.h"

#include "lib/base/clock.h"
#include "test/local/kinds/kinds_print.h"
#include "test/unit/local/plain_json.h"

static const char now[] = "2026-01-02T00:00:00Z";

static void ages_have_the_precision_that_still_matters(void **state)
{
    (void)state;
    static const struct {
        int64_t seconds;
        const char *text;
    } rows[] = {
        {-2, "<invalid>"},  {-1, "0s"},           {0, "0s"},          {1, "1s"},
        {119, "119s"},      {120, "2m"},          {125, "2m5s"},      {599, "9m59s"},
        {600, "10m"},       {601, "10m"},         {10799, "179m"},    {10800, "3h"},
        {10860, "3h1m"},    {28799, "7h59m"},     {28800, "8h"},      {172799, "47h"},
        {172800, "2d"},     {176400, "2d1h"},     {691199, "7d23h"},  {691200, "8d"},
        {63071999, "729d"}, {63072000, "2y"},     {63158400, "2y1d"}, {252287999, "7y364d"},
        {252288000, "8y"},  {9000000000, "285y"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO_STRBUF b = {0};
        kinds_print_duration(rows[i].seconds * 1000000000, &b);
        expect_str(rows[i].text, rows[i].text, strbuf_str(&b));
    }
    static const struct {
        const char *stamp, *text;
    } stamps[] = {
        {"2026-01-01T23:59:55Z", "5s"},
        {NULL, "<unknown>"},
        {"", "<unknown>"},
        {"yesterday", "<unknown>"},
    };
    for (size_t i = 0; i < sizeof stamps / sizeof *stamps; i++) {
        AUTO_STRBUF b = {0};
        kinds_print_since(stamps[i].stamp, clock_parse_rfc3339(now), &b);
        expect_str(stamps[i].text, stamps[i].text, strbuf_str(&b));
    }
    expect_done();
}

/* The cells of one object, as JSON text. */
static void cells_of(const struct kind *k, const char *text, bool first, struct strbuf *out)
{
    AUTO_STRBUF object = {0}, table = {0};
    plain_json(text, &object);
    struct object o = {
        .kind = k, .version = 7, .text = strbuf_str(&object), .text_len = object.len};
    table_print_event_object(k, &o, false, first, clock_parse_rfc3339(now), &table);
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    if (json_parse(&doc, strbuf_str(&table), table.len, &err) < 0)
        fail_msg("not JSON: %s: %s", err.text, strbuf_str(&table));
    json *row = json_at(json_get(json_root(doc), "rows"), 0);
    struct json_writer w;
    json_writer_init(&w, out);
    json_put_value(&w, json_get(row, "cells"));
    size_t columns = 0;
    for (const struct kind_column *c = k->columns; c && c->name; c++)
        columns++;
    expect_int(k->resource, (int64_t)(k->columns ? columns : 2),
               (int64_t)json_len(json_get(row, "cells")));
    expect_int(k->resource, first ? (int64_t)(k->columns ? columns : 2) : 0,
               (int64_t)json_len(json_get(json_root(doc), "columnDefinitions")));
}

#define META "'metadata':{'name':'p','creationTimestamp':'2026-01-01T23:59:00Z'}"
#define RUN "'state':{'running':{}},'ready':true"
#define ENDED(what) "'state':{'terminated':{" what "}}"
#define WAITS(reason) "'state':{'waiting':{'reason':'" reason "'}}"
#define ONE "'spec':{'containers':[{'name':'a'}]}"
#define INIT "'spec':{'containers':[{'name':'a'}],'initContainers':[{'name':'i'},{'name':'j'}]}"
#define SIDECAR \
    "'spec':{'containers':[{'name':'a'}],'initContainers':[{'name':'i','restartPolicy':'Always'}]}"
#define TWO "'spec':{'containers':[{'name':'a'},{'name':'b'}]}"

static void a_pods_state_is_one_word(void **state)
{
    (void)state;
    static const struct {
        const char *row, *pod, *cells;
    } rows[] = {
        {"new", META "," ONE ",'status':{'phase':'Pending'}", "'0/1','Pending','0'"},
        {"creating",
         META "," ONE ",'status':{'phase':'Pending','containerStatuses':[{" WAITS(
             "ContainerCreating") "}]}",
         "'0/1','ContainerCreating','0'"},
        {"running", META "," ONE ",'status':{'phase':'Running','containerStatuses':[{" RUN "}]}",
         "'1/1','Running','0'"},
        {"running again",
         META "," ONE ",'status':{'phase':'Running','containerStatuses':[{" RUN
              ",'restartCount':3}]}",
         "'1/1','Running','3'"},
        {"crashing",
         META "," ONE ",'status':{'phase':'Running','containerStatuses':[{" WAITS(
             "CrashLoopBackOff") ",'restartCount':5}]}",
         "'0/1','CrashLoopBackOff','5'"},
        {"done",
         META "," ONE ",'status':{'phase':'Succeeded','containerStatuses':[{" ENDED(
             "'exitCode':0,'reason':'Completed'") "}]}",
         "'0/1','Completed','0'"},
        {"evicted", META "," ONE ",'status':{'phase':'Failed','reason':'Evicted'}",
         "'0/1','Evicted','0'"},
        {"gated",
         META "," ONE ",'status':{'phase':'Pending','conditions':[{'type':'PodScheduled','status':"
              "'False','reason':'SchedulingGated'}]}",
         "'0/1','SchedulingGated','0'"},
        {"in the first init container",
         META "," INIT ",'status':{'phase':'Pending','initContainerStatuses':[{'name':'i',"
              "'state':{'running':{}}},{'name':'j'}]}",
         "'0/1','Init:0/2','0'"},
        {"in the second",
         META
         "," INIT
         ",'status':{'phase':'Pending','initContainerStatuses':[{'name':'i'," ENDED("'exitCode':0") "},{'name':'j'," WAITS(
             "PodInitializing") "}],'containerStatuses':[{" WAITS("PodInitializing") "}]}",
         "'0/1','Init:1/2','0'"},
        {"an init container crashes",
         META "," INIT ",'status':{'phase':'Pending','initContainerStatuses':[{'name':'i'," WAITS(
             "CrashLoopBackOff") ",'restartCount':2}]}",
         "'0/1','Init:CrashLoopBackOff','2'"},
        {"an init container failed",
         META "," INIT ",'status':{'phase':'Pending','initContainerStatuses':[{'name':'i'," ENDED(
             "'exitCode':2,'reason':'Error'") "}]}",
         "'0/1','Init:Error','0'"},
        {"a sidecar counts",
         META "," SIDECAR ",'status':{'phase':'Running','initContainerStatuses':[{'name':'i'," RUN
              ",'started':true,'restartCount':1}],'containerStatuses':[{" RUN "}]}",
         "'2/2','Running','1'"},
        {"one is done, the other runs",
         META "," TWO
              ",'status':{'phase':'Running','conditions':[{'type':'Ready','status':'True'}],"
              "'containerStatuses':[{" ENDED("'exitCode':0,'reason':'Completed'") "},{" RUN "}]}",
         "'1/2','Running','0'"},
        {"one is done, the other runs, the pod is not ready",
         META "," TWO ",'status':{'phase':'Running','containerStatuses':[{" ENDED(
             "'exitCode':0,'reason':'Completed'") "},{" RUN "}]}",
         "'1/2','NotReady','0'"},
        {"ending",
         "'metadata':{'name':'p','creationTimestamp':'2026-01-01T23:59:00Z','deletionTimestamp':"
         "'2026-01-01T23:59:00Z'}," ONE ",'status':{'phase':'Running','containerStatuses':[{" RUN
         "}]}",
         "'1/1','Terminating','0'"},
        {"ended, and not yet gone",
         "'metadata':{'name':'p','creationTimestamp':'2026-01-01T23:59:00Z','deletionTimestamp':"
         "'2026-01-01T23:59:00Z'}," ONE
         ",'status':{'phase':'Succeeded','containerStatuses':[{" ENDED(
             "'exitCode':0,'reason':'Completed'") "}]}",
         "'0/1','Completed','0'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO_STRBUF pod = {0}, got = {0}, cells = {0}, expected = {0};
        strbuf_addf(&pod, "{%s}", rows[i].pod);
        cells_of(&kind_pods, strbuf_str(&pod), i % 2 == 0, &got);
        strbuf_addf(&cells, "['p',%s,'60s','<none>','<none>','<none>','<none>']", rows[i].cells);
        plain_json(strbuf_str(&cells), &expected);
        expect_str(rows[i].row, strbuf_str(&expected), strbuf_str(&got));
    }
    expect_done();
}

static void each_kind_has_its_columns(void **state)
{
    (void)state;
    static const struct {
        const char *version, *kind, *object, *cells;
    } rows[] = {
        {"v1", "Pod",
         META ",'spec':{'nodeName':'n'},'status':{'phase':'Running','podIP':'1.2.3.4',"
              "'nominatedNodeName':'m'}",
         "'p','0/0','Running','0','60s','1.2.3.4','n','m','<none>'"},
        {"v1", "Node", META,
         "'p','Unknown','<none>','60s','','<none>','<none>','<unknown>','<unknown>','<unknown>'"},
        {"v1", "Node",
         "'metadata':{'name':'n','labels':{'node-role.kubernetes.io/b':'','node-role.kubernetes.io/a'"
         ":'','kubernetes.io/role':'c'}},'spec':{'unschedulable':true},'status':{'conditions':["
         "{'type':'Ready','status':'True'}],'addresses':[{'type':'InternalIP','address':'1.2.3.4'}],"
         "'nodeInfo':{'kubeletVersion':'v1','osImage':'D','kernelVersion':'6',"
         "'containerRuntimeVersion':'c'}}",
         "'n','Ready,SchedulingDisabled','a,b,c','<unknown>','v1','1.2.3.4','<none>','D','6','c'"},
        {"v1", "Node", META ",'status':{'conditions':[{'type':'Ready','status':'Unknown'}]}",
         "'p','NotReady','<none>','60s','','<none>','<none>','<unknown>','<unknown>','<unknown>'"},
        {"v1", "Namespace", META ",'status':{'phase':'Active'}", "'p','Active','60s'"},
        {"v1", "ConfigMap", META ",'data':{'a':'b'}", "'p','60s'"},
        {"v1", "Service", META ",'spec':{'type':'ClusterIP','clusterIP':'None'}",
         "'p','ClusterIP','None','60s'"},
        {"v1", "PersistentVolume",
         META ",'spec':{'capacity':{'storage':'1Gi'},'claimRef':{'name':'c'}},'status':{'phase':"
              "'Bound'}",
         "'p','1Gi','Bound','c','','60s'"},
        {"v1", "PersistentVolumeClaim",
         META ",'spec':{'storageClassName':'s'},'status':{'phase':'Pending'}",
         "'p','Pending','','','s','60s'"},
        {"v1", "ResourceQuota",
         META ",'status':{'hard':{'pods':'2','limits.cpu':'4','cpu':'8'},'used':{'pods':'1'}}",
         "'p','cpu: 0/8, limits.cpu: 0/4, pods: 1/2','60s'"},
        {"v1", "Event",
         META ",'type':'Normal','reason':'R','message':'m','involvedObject':{'kind':'Pod','name':"
              "'x','fieldPath':'f'},'count':3,'firstTimestamp':'2026-01-01T23:58:00Z',"
              "'lastTimestamp':'2026-01-01T23:59:50Z','source':{'component':'c','host':'h'}",
         "'10s','Normal','R','pod/x','m'"},
        {"events.k8s.io/v1", "Event", META, "'p','60s'"},
        {"apps/v1", "Deployment",
         META ",'spec':{'replicas':2},'status':{'readyReplicas':1,"
              "'updatedReplicas':2}",
         "'p','1/2',2,0,'60s'"},
        {"apps/v1", "ReplicaSet", META ",'spec':{'replicas':2},'status':{'replicas':2}",
         "'p',2,2,0,'60s'"},
        {"batch/v1", "Job", META ",'spec':{'completions':3},'status':{'succeeded':1}",
         "'p','1/3','60s'"},
        {"batch/v1", "Job", META, "'p','0/1','60s'"},
        {"policy/v1", "PodDisruptionBudget",
         META ",'spec':{'minAvailable':1},'status':{'disruptionsAllowed':2}",
         "'p',1,'<none>',2,'60s'"},
        {"policy/v1", "PodDisruptionBudget", META ",'spec':{'maxUnavailable':'20%'}",
         "'p','<none>','20%',0,'60s'"},
        {"scheduling.k8s.io/v1", "PriorityClass",
         META ",'value':7,'globalDefault':true,'preemptionPolicy':'Never'",
         "'p',7,true,'60s','Never'"},
        {"coordination.k8s.io/v1", "Lease", META ",'spec':{'holderIdentity':'h'}", "'p','h','60s'"},
        {"coordination.k8s.io/v1", "Lease", META, "'p','','60s'"},
        {"kubeflow.org/v1", "TFJob", META, "'p','60s'"},
        {"scheduling.sigs.k8s.io/v1alpha1", "PodGroup",
         META ",'spec':{'minMember':3},'status':{'phase':'Running','running':2}",
         "'p','Running',3,2,'60s'"},
        {"scheduling.x-k8s.io/v1alpha1", "PodGroup", META ",'spec':{'minMember':3}",
         "'p','',3,0,'60s'"},
        {"scheduling.alibabacloud.com/v1alpha1", "ResourcePolicy", META, "'p','','',0,'60s'"},
        {"scheduling.alibabacloud.com/v1alpha1", "ResourcePolicy",
         META ",'status':{'phase':'InForce','summary':'ecs 3/3, eci 5','waiting':2}",
         "'p','InForce','ecs 3/3, eci 5',2,'60s'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct kind *k = kinds_by_name(rows[i].version, rows[i].kind);
        AUTO_STRBUF object = {0}, got = {0}, cells = {0}, expected = {0};
        assert_non_null(k);
        strbuf_addf(&object, "{%s}", rows[i].object);
        cells_of(k, strbuf_str(&object), true, &got);
        strbuf_addf(&cells, "[%s]", rows[i].cells);
        plain_json(strbuf_str(&cells), &expected);
        expect_str(rows[i].kind, strbuf_str(&expected), strbuf_str(&got));
    }
    expect_done();
}

static void a_list_is_a_table_of_rows_with_metadata_or_whole_objects(void **state)
{
    (void)state;
    AUTO_STRBUF text = {0}, got = {0}, expected = {0};
    plain_json("{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'n','labels':{'a':'b'}},"
               "'status':{'phase':'Active'}}",
               &text);
    struct object o = {
        .kind = &kind_namespaces, .version = 5, .text = strbuf_str(&text), .text_len = text.len};
    struct object *const list[] = {&o, &o};
    table_print_list(&kind_namespaces, list, 2, "{\"resourceVersion\":\"9\"}", false, 0, &got);
    AUTO_JSON *doc = NULL;
    assert_int_equal(0, json_parse(&doc, strbuf_str(&got), got.len, NULL));
    json *root = json_root(doc);
    expect_str("kind", "Table", json_get_str(root, "kind"));
    expect_str("version", "meta.k8s.io/v1", json_get_str(root, "apiVersion"));
    expect_str("list's version", "9", json_get_str(json_get(root, "metadata"), "resourceVersion"));
    expect_int("rows", 2, (int64_t)json_len(json_get(root, "rows")));
    json *object = json_get(json_at(json_get(root, "rows"), 1), "object");
    expect_str("a part of the object", "PartialObjectMetadata", json_get_str(object, "kind"));
    expect_str("its labels", "b",
               json_get_str(json_get(json_get(object, "metadata"), "labels"), "a"));
    expect_true("no status", !json_get(object, "status"));
    json *column = json_at(json_get(root, "columnDefinitions"), 0);
    expect_str("first column", "Name", json_get_str(column, "name"));
    expect_str("its format", "name", json_get_str(column, "format"));

    strbuf_reset(&got);
    table_print_list(&kind_namespaces, list, 1, NULL, true, 0, &got);
    expect_true("the whole object", strstr(strbuf_str(&got), strbuf_str(&text)) != NULL);

    strbuf_reset(&got);
    table_print_list(&kind_namespaces, list, 0, "{}", true, 0, &got);
    expect_true("an empty list has columns", strstr(strbuf_str(&got), "columnDefinitions") != NULL);
    expect_true("and no rows", strstr(strbuf_str(&got), "\"rows\":[]") != NULL);

    strbuf_reset(&got);
    table_print_event_object(&kind_namespaces, &o, false, false, 0, &got);
    plain_json(
        "{'kind':'Table','apiVersion':'meta.k8s.io/v1','metadata':{'resourceVersion':'5'},"
        "'columnDefinitions':null,'rows':[{'cells':['n','Active','<unknown>'],'object':"
        "{'kind':'PartialObjectMetadata','apiVersion':'meta.k8s.io/v1','metadata':{'name':'n',"
        "'labels':{'a':'b'}}}}]}",
        &expected);
    expect_str("a later event of a watch", strbuf_str(&expected), strbuf_str(&got));
    expect_done();
}

/* Whatever is stored can be shown. */
static void nonsense_has_cells_too(void **state)
{
    (void)state;
    static const char *const nonsense[] = {
        "{}",
        "{'metadata':1,'spec':1,'status':1}",
        "{'metadata':{'labels':[1],'annotations':1,'ownerReferences':[1]},'spec':{'containers':1,"
        "'initContainers':[1],'selector':[1],'template':1,'ports':[1],'accessModes':[{}],"
        "'readinessGates':[1],'claimRef':1,'paramRef':1,'drivers':1},'status':{'conditions':[1],"
        "'containerStatuses':[1,{}],'initContainerStatuses':[1,{}],'addresses':[1],'hard':[1],"
        "'used':1,'active':1,'startTime':1},'subsets':[1],'subjects':[1],'roleRef':1,'endpoints':[1],"
        "'involvedObject':1,'source':1,'series':{},'webhooks':1}",
    };
    for (size_t i = 0; kinds_all[i]; i++)
        for (size_t n = 0; n < sizeof nonsense / sizeof *nonsense; n++) {
            AUTO_STRBUF got = {0};
            cells_of(kinds_all[i], nonsense[n], true, &got);
        }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ages_have_the_precision_that_still_matters),
        cmocka_unit_test(a_pods_state_is_one_word),
        cmocka_unit_test(each_kind_has_its_columns),
        cmocka_unit_test(a_list_is_a_table_of_rows_with_metadata_or_whole_objects),
        cmocka_unit_test(nonsense_has_cells_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
