// SPDX-License-Identifier: Apache-2.0
/*
 * The rows of kinds: that they are complete, and what they fill in and refuse. Every sentence was
 * compared with a real API server of Kubernetes 1.36.
 */
#include "test/local/kinds/kinds.h"

#include "test/local/kinds/kinds_amount.h"
#include "test/unit/local/plain_json.h"

#define POD "'apiVersion':'v1','kind':'Pod'"
#define POD_OF(spec) "{" POD ",'metadata':{'name':'p','uid':'u1'},'spec':" spec "}"
#define CONTAINER "{'name':'a','image':'x:1'}"
#define LIMITS(l) POD_OF("{'containers':[{'name':'a','image':'x:1','resources':{" l "}}]}")
#define TEMPLATE "{'metadata':{'labels':{'a':'b'}},'spec':{'containers':[" CONTAINER "]}}"
#define JOB_TEMPLATE                                                                            \
    "{'metadata':{'labels':{'a':'b'}},'spec':{'restartPolicy':'Never','containers':[" CONTAINER \
    "]}}"
#define JOB(rest)                                                                            \
    "{'apiVersion':'batch/v1','kind':'Job','metadata':{'name':'j','uid':'u1'},'spec':{" rest \
    "'template':" JOB_TEMPLATE "}}"
#define DEPLOYMENT(rest)                                                                \
    "{'apiVersion':'apps/v1','kind':'Deployment','metadata':{'name':'d'},'spec':{" rest \
    "'template':" TEMPLATE "}}"
#define OBJECT(version, kind_name, name, rest) \
    "{'apiVersion':'" version "','kind':'" kind_name "','metadata':{'name':'" name "'}" rest "}"

#define LABEL_RULE                                                                               \
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or `-`, and " \
    "must start and end with an alphanumeric character (e.g. `my-name`,  or `123-abc`, regex "   \
    "used for validation is `[a-z0-9]([-a-z0-9]*[a-z0-9])?`)"
#define NAME_RULE                                                                                 \
    "name part must consist of alphanumeric characters, `-`, `_` or `.`, and must start and end " \
    "with an alphanumeric character (e.g. `MyName`,  or `my.name`,  or `123-abc`, regex used "    \
    "for validation is `([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]`)"

static const struct kind *kind_of(struct jsontree *t)
{
    struct jsonnode *root = jsontree_root(t);
    const struct kind *k =
        kinds_by_name(jsonnode_get_str(root, "apiVersion"), jsonnode_get_str(root, "kind"));
    if (!k)
        fail_msg("no kind for %s", jsonnode_get_str(root, "kind"));
    return k;
}

static void every_row_is_complete_and_found_by_both_its_names(void **state)
{
    (void)state;
    for (size_t i = 0; kinds_all[i]; i++) {
        const struct kind *k = kinds_all[i];
        AUTO_STRBUF version = {0}, list = {0};
        strbuf_addf(&version, "%s%s%s", k->group, *k->group ? "/" : "", k->version);
        strbuf_addf(&list, "%sList", k->kind);
        expect_str(k->resource, strbuf_str(&version), k->api_version);
        expect_str(k->resource, strbuf_str(&list), k->list_kind);
        expect_true(k->resource, k == kinds_find(k->group, k->version, k->resource));
        expect_true(k->resource, k == kinds_by_name(k->api_version, k->kind));
        expect_true(k->resource, k->singular && *k->singular);
        expect_true(k->resource, k->validate || k == &kind_bindings);
        expect_true(k->resource, kinds_has_verb(k, "create"));
        for (const struct kind_column *c = k->columns; c && c->name; c++) {
            expect_true(c->name, c->type && c->format && c->description);
            expect_true(c->name, !c->print != !c->path);
        }
    }
    expect_true("unknown resource", !kinds_find("", "v1", "foos"));
    expect_true("unknown group", !kinds_find("foo", "v1", "pods"));
    expect_true("unknown version", !kinds_find("", "v2", "pods"));
    expect_true("unknown kind", !kinds_by_name("v1", "Foo"));
    expect_true("no kind at all", !kinds_by_name(NULL, NULL));
    expect_true("bindings are only created", !kinds_has_verb(&kind_bindings, "get"));
    expect_true("namespaces go one by one", !kinds_has_verb(&kind_namespaces, "deletecollection"));
    expect_true("pods have all verbs", kinds_has_verb(&kind_pods, "deletecollection"));
    expect_done();
}

/* The member at a path of names with dots; "[0]" is an element. */
static struct jsonnode *node_at(struct jsonnode *n, const char *path)
{
    char key[80];
    while (n && *path) {
        size_t len = strcspn(path, " ");
        str_format(key, sizeof key, "%.*s", (int)len, path);
        n = key[0] == '[' ? jsonnode_at(n, (size_t)(key[1] - '0')) : jsonnode_get(n, key);
        path += path[len] ? len + 1 : len;
    }
    return n;
}

static void absent_fields_get_the_values_that_kubernetes_gives_them(void **state)
{
    (void)state;
    static const struct {
        const char *row, *object, *path, *value;
    } rows[] = {
        {"a pod restarts always", POD_OF("{'containers':[" CONTAINER "]}"), "spec restartPolicy",
         "'Always'"},
        {"what is given stays", POD_OF("{'restartPolicy':'Never'}"), "spec restartPolicy",
         "'Never'"},
        {"null is absent", POD_OF("{'restartPolicy':null}"), "spec restartPolicy", "'Always'"},
        {"a pod has a DNS policy", POD_OF("{}"), "spec dnsPolicy", "'ClusterFirst'"},
        {"a pod has half a minute to end", POD_OF("{}"), "spec terminationGracePeriodSeconds",
         "30"},
        {"no grace at all is a grace", POD_OF("{'terminationGracePeriodSeconds':0}"),
         "spec terminationGracePeriodSeconds", "0"},
        {"a negative grace is a second", POD_OF("{'terminationGracePeriodSeconds':-1}"),
         "spec terminationGracePeriodSeconds", "1"},
        {"a pod has a scheduler", POD_OF("{}"), "spec schedulerName", "'default-scheduler'"},
        {"a pod has an account", POD_OF("{}"), "spec serviceAccountName", "'default'"},
        {"the old name of the account counts", POD_OF("{'serviceAccount':'x'}"),
         "spec serviceAccountName", "'x'"},
        {"a pod has service links", POD_OF("{}"), "spec enableServiceLinks", "true"},
        {"a pod preempts", POD_OF("{}"), "spec preemptionPolicy", "'PreemptLowerPriority'"},
        {"with a class that is the class's to say", POD_OF("{'priorityClassName':'c'}"),
         "spec preemptionPolicy", NULL},
        {"a pod begins pending", POD_OF("{}"), "status phase", "'Pending'"},
        {"a pod tolerates a node that is not ready for a while", POD_OF("{}"),
         "spec tolerations [0]",
         "{'key':'node.kubernetes.io/not-ready','operator':'Exists','effect':'NoExecute',"
         "'tolerationSeconds':300}"},
        {"and one that cannot be reached", POD_OF("{}"), "spec tolerations [1] key",
         "'node.kubernetes.io/unreachable'"},
        {"its own toleration is enough",
         POD_OF("{'tolerations':[{'key':'node.kubernetes.io/not-ready','operator':'Exists'}]}"),
         "spec tolerations [1] key", "'node.kubernetes.io/unreachable'"},
        {"tolerating everything is enough for both",
         POD_OF("{'tolerations':[{'operator':'Exists'}]}"), "spec tolerations [1]", NULL},
        {"another effect is not enough",
         POD_OF("{'tolerations':[{'operator':'Exists','effect':'NoSchedule'}]}"),
         "spec tolerations [2] tolerationSeconds", "300"},
        {"an image with a tag is kept", POD_OF("{'containers':[" CONTAINER "]}"),
         "spec containers [0] imagePullPolicy", "'IfNotPresent'"},
        {"one without is pulled", POD_OF("{'containers':[{'name':'a','image':'h:5000/x'}]}"),
         "spec containers [0] imagePullPolicy", "'Always'"},
        {"latest is pulled", POD_OF("{'containers':[{'name':'a','image':'x:latest'}]}"),
         "spec containers [0] imagePullPolicy", "'Always'"},
        {"a digest is kept", POD_OF("{'containers':[{'name':'a','image':'x@sha256:1'}]}"),
         "spec containers [0] imagePullPolicy", "'IfNotPresent'"},
        {"init containers too", POD_OF("{'initContainers':[" CONTAINER "]}"),
         "spec initContainers [0] terminationMessagePolicy", "'File'"},
        {"a limit is a request", LIMITS("'limits':{'cpu':'1','a.b/c':2}"),
         "spec containers [0] resources requests", "{'cpu':'1','a.b/c':'2'}"},
        {"a request beside a limit stays",
         LIMITS("'limits':{'cpu':'1','memory':'1Gi'},'requests':{'cpu':'0.5'}"),
         "spec containers [0] resources requests", "{'cpu':'500m','memory':'1Gi'}"},
        {"in a template a limit is no request",
         OBJECT(
             "apps/v1", "ReplicaSet", "r",
             ",'spec':{'template':{'spec':{'containers':[{'resources':{'limits':{'cpu':'0.5'}}}]}"
             "}}"),
         "spec template spec containers [0] resources", "{'limits':{'cpu':'500m'}}"},
        {"nothing asked: best effort", LIMITS(""), "status qosClass", "'BestEffort'"},
        {"a GPU alone is nothing asked", LIMITS("'limits':{'a.b/c':1}"), "status qosClass",
         "'BestEffort'"},
        {"something asked: burstable", LIMITS("'requests':{'cpu':'1'}"), "status qosClass",
         "'Burstable'"},
        {"a limit of one only: burstable", LIMITS("'limits':{'cpu':'1'}"), "status qosClass",
         "'Burstable'"},
        {"both limits: guaranteed", LIMITS("'limits':{'cpu':'1','memory':'1Gi'}"),
         "status qosClass", "'Guaranteed'"},
        {"a smaller request: burstable",
         LIMITS("'limits':{'cpu':'1','memory':'1Gi'},'requests':{'cpu':'999m'}"), "status qosClass",
         "'Burstable'"},
        {"the same in other words: guaranteed",
         LIMITS("'limits':{'cpu':'1','memory':'1Gi'},'requests':{'cpu':'1000m','memory':'1024Mi'}"),
         "status qosClass", "'Guaranteed'"},
        {"a port is TCP",
         POD_OF("{'containers':[{'name':'a','image':'x','ports':[{'containerPort':80}]}]}"),
         "spec containers [0] ports [0]", "{'containerPort':80,'protocol':'TCP'}"},
        {"on the host's network a port is the host's",
         POD_OF("{'hostNetwork':true,'containers':[{'name':'a','image':'x','ports':"
                "[{'containerPort':80}]}]}"),
         "spec containers [0] ports [0] hostPort", "80"},
        {"a probe", POD_OF("{'containers':[{'name':'a','livenessProbe':{'httpGet':{'port':1}}}]}"),
         "spec containers [0] livenessProbe",
         "{'httpGet':{'port':1,'path':'/','scheme':'HTTP'},'timeoutSeconds':1,'periodSeconds':10,"
         "'successThreshold':1,'failureThreshold':3}"},
        {"a volume of nothing is an empty directory", POD_OF("{'volumes':[{'name':'v'}]}"),
         "spec volumes [0] emptyDir", "{}"},
        {"files of a config map", POD_OF("{'volumes':[{'name':'v','configMap':{'name':'c'}}]}"),
         "spec volumes [0] configMap defaultMode", "420"},
        {"a host path of any type", POD_OF("{'volumes':[{'name':'v','hostPath':{'path':'/'}}]}"),
         "spec volumes [0] hostPath type", "''"},
        {"a projected token lives an hour",
         POD_OF("{'volumes':[{'name':'v','projected':{'sources':[{'serviceAccountToken':{}}]}}]}"),
         "spec volumes [0] projected sources [0] serviceAccountToken expirationSeconds", "3600"},
        {"a job makes one pod", JOB(""), "spec completions", "1"},
        {"a job makes one at a time", JOB("'completions':3,"), "spec parallelism", "1"},
        {"a job with parallelism alone is a queue", JOB("'parallelism':3,"), "spec completions",
         NULL},
        {"a job tries six times", JOB(""), "spec backoffLimit", "6"},
        {"a job selects its pods by its uid", JOB(""), "spec selector",
         "{'matchLabels':{'batch.kubernetes.io/controller-uid':'u1'}}"},
        {"and labels them", JOB(""), "spec template metadata labels",
         "{'a':'b','batch.kubernetes.io/controller-uid':'u1','batch.kubernetes.io/job-name':'j',"
         "'controller-uid':'u1','job-name':'j'}"},
        {"and takes the labels itself", JOB(""), "metadata labels job-name", "'j'"},
        {"a manual selector is left alone", JOB("'manualSelector':true,"), "spec selector", NULL},
        {"a deployment makes one pod", DEPLOYMENT(""), "spec replicas", "1"},
        {"none is a number", DEPLOYMENT("'replicas':0,"), "spec replicas", "0"},
        {"a deployment rolls", DEPLOYMENT(""), "spec strategy",
         "{'type':'RollingUpdate','rollingUpdate':{'maxUnavailable':'25%','maxSurge':'25%'}}"},
        {"or not", DEPLOYMENT("'strategy':{'type':'Recreate'},"), "spec strategy",
         "{'type':'Recreate'}"},
        {"a template is a PodSpec", DEPLOYMENT(""), "spec template spec dnsPolicy",
         "'ClusterFirst'"},
        {"a template has no tolerations of its own", DEPLOYMENT(""),
         "spec template spec tolerations", NULL},
        {"a node gives all it has",
         OBJECT("v1", "Node", "n", ",'status':{'capacity':{'cpu':'4','pods':110}}"),
         "status allocatable", "{'cpu':'4','pods':'110'}"},
        {"unless it keeps something back",
         OBJECT("v1", "Node", "n",
                ",'status':{'capacity':{'cpu':'4'},'allocatable':{'cpu':'3000m'}}"),
         "status allocatable", "{'cpu':'3'}"},
        {"a namespace is active", OBJECT("v1", "Namespace", "q", ""), "status phase", "'Active'"},
        {"a namespace can be selected by its name", OBJECT("v1", "Namespace", "q", ""),
         "metadata labels", "{'kubernetes.io/metadata.name':'q'}"},
        {"a namespace has something to finish", OBJECT("v1", "Namespace", "q", ""),
         "spec finalizers", "['kubernetes']"},
        {"a service forwards to the same port",
         OBJECT("v1", "Service", "s", ",'spec':{'ports':[{'port':80}]}"), "spec ports [0]",
         "{'port':80,'protocol':'TCP','targetPort':80}"},
        {"a secret's texts become data", OBJECT("v1", "Secret", "s", ",'stringData':{'a':'bcde'}"),
         "data", "{'a':'YmNkZQ=='}"},
        {"and are gone", OBJECT("v1", "Secret", "s", ",'stringData':{'a':'b'}"), "stringData",
         NULL},
        {"a class preempts", OBJECT("scheduling.k8s.io/v1", "PriorityClass", "c", ",'value':5"),
         "preemptionPolicy", "'PreemptLowerPriority'"},
        {"a budget allows nothing yet",
         OBJECT("policy/v1", "PodDisruptionBudget", "b", ",'spec':{}"), "status disruptionsAllowed",
         "0"},
        {"a webhook must answer",
         OBJECT("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "w",
                ",'webhooks':[{'name':'a.b.c'}]"),
         "webhooks [0] failurePolicy", "'Fail'"},
        {"within ten seconds",
         OBJECT("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "w",
                ",'webhooks':[{'name':'a.b.c'}]"),
         "webhooks [0] timeoutSeconds", "10"},
        {"a cron job's template",
         OBJECT("batch/v1", "CronJob", "c",
                ",'spec':{'jobTemplate':{'spec':{'template':" JOB_TEMPLATE "}}}"),
         "spec jobTemplate spec template spec schedulerName", "'default-scheduler'"},
        {"a claim waits", OBJECT("v1", "PersistentVolumeClaim", "c", ""), "status phase",
         "'Pending'"},
        {"a volume is kept", OBJECT("v1", "PersistentVolume", "v", ""),
         "spec persistentVolumeReclaimPolicy", "'Retain'"},
        {"a definition is established",
         OBJECT("apiextensions.k8s.io/v1", "CustomResourceDefinition", "foos.a.b",
                ",'spec':{'names':{'kind':'Foo','plural':'foos'}}"),
         "status conditions [1] type", "'Established'"},
        {"a role belongs to its group",
         OBJECT("rbac.authorization.k8s.io/v1", "RoleBinding", "r",
                ",'roleRef':{'kind':'Role','name':'x'}"),
         "roleRef apiGroup", "'rbac.authorization.k8s.io'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO_JSONTREE *t = plain_tree(rows[i].object);
        const struct kind *k = kind_of(t);
        AUTO_STRBUF once = {0}, twice = {0}, got = {0}, expected = {0};
        k->fill_defaults(t, jsontree_root(t));
        jsontree_print(t, &once);
        k->fill_defaults(t, jsontree_root(t));
        jsontree_print(t, &twice);
        struct jsonnode *n = node_at(jsontree_root(t), rows[i].path);
        if (n)
            jsonnode_print(n, &got);
        plain_json(rows[i].value ? rows[i].value : "", &expected);
        expect_str(rows[i].row, strbuf_str(&expected), strbuf_str(&got));
        expect_str(rows[i].row, strbuf_str(&once), strbuf_str(&twice));
    }
    expect_done();
}

static void amounts_are_written_as_kubernetes_writes_them(void **state)
{
    (void)state;
    static const struct {
        const char *given, *canonical;
    } rows[] = {
        {"'1'", "1"},           {"'1000m'", "1"},     {"'0.5'", "500m"},   {"'1.5'", "1500m"},
        {"'1000'", "1k"},       {"'1000k'", "1M"},    {"'1024Mi'", "1Gi"}, {"'1023Ki'", "1023Ki"},
        {"'2000Ki'", "2000Ki"}, {"'0.5Gi'", "512Mi"}, {"'0.5Ki'", "512"},  {"'100.5Ki'", "102912"},
        {"'1e3'", "1e3"},       {"'2E3'", "2e3"},     {"'5E'", "5E"},      {"'0'", "0"},
        {"'0Gi'", "0"},         {"'+5'", "5"},        {"'-4'", "-4"},      {"'0.00001'", "1m"},
        {"'16Pi'", "16Pi"},     {"2", "2"},           {"110", "110"},      {"'4x'", NULL},
        {"''", NULL},           {"{}", NULL},         {"true", NULL},      {"null", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO_JSONTREE *t = plain_tree(rows[i].given);
        AUTO_STRBUF out = {0};
        bool ok = kinds_amount_canonical(jsontree_root(t), &out);
        expect_int(rows[i].given, rows[i].canonical != NULL, ok);
        expect_str(rows[i].given, rows[i].canonical ? rows[i].canonical : "", strbuf_str(&out));
    }
    expect_done();
}

static void amounts_are_compared_exactly(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        int order;
    } rows[] = {
        {"'1'", "'1000m'", 0},    {"'1'", "'1001m'", -1}, {"'1001m'", "'1'", 1},
        {"'1Gi'", "'1024Mi'", 0}, {"'7Ei'", "'1'", 1},    {"'1'", "'7Ei'", -1},
        {"'7Ei'", "'6Ei'", 1},    {"'x'", "'0'", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO_JSONTREE *a = plain_tree(rows[i].a), *b = plain_tree(rows[i].b);
        expect_int(rows[i].a, rows[i].order,
                   kinds_amount_compare(jsontree_root(a), jsontree_root(b)));
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_complete_and_found_by_both_its_names),
        cmocka_unit_test(absent_fields_get_the_values_that_kubernetes_gives_them),
        cmocka_unit_test(amounts_are_written_as_kubernetes_writes_them),
        cmocka_unit_test(amounts_are_compared_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
