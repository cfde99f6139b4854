// SPDX-License-Identifier: Apache-2.0
/*
 * What the rows of kinds refuse. Every sentence was compared with a real API server of Kubernetes
 * 1.36: a client that reads them must not see a difference.
 */
#include "test/local/kinds/kinds.h"

#include "test/unit/local/plain_json.h"

#define POD_OF(spec) \
    "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p','uid':'u1'},'spec':" spec "}"
#define CONTAINER "{'name':'a','image':'x:1'}"
#define POD_WITH(more) POD_OF("{'containers':[" CONTAINER "]," more "}")
#define CONTAINER_WITH(more) POD_OF("{'containers':[{'name':'a','image':'x:1'," more "}]}")
#define LIMITS(l) CONTAINER_WITH("'resources':{" l "}")
#define META(meta) \
    "{'apiVersion':'v1','kind':'Pod','metadata':" meta ",'spec':{'containers':[" CONTAINER "]}}"
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
#define SELECTOR "'selector':{'matchLabels':{'a':'b'}},"
#define OBJECT(version, kind_name, name, rest) \
    "{'apiVersion':'" version "','kind':'" kind_name "','metadata':{'name':'" name "'}" rest "}"
#define EVENT(ns, about)                                                              \
    "{'apiVersion':'v1','kind':'Event','metadata':{'name':'e','namespace':'" ns "'}," \
    "'involvedObject':{" about "}}"
#define WEBHOOK(hook)                                                              \
    OBJECT("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "w", \
           ",'webhooks':[" hook "]")

#define LABEL_RULE                                                                               \
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or ~-~, and " \
    "must start and end with an alphanumeric character (e.g. ~my-name~,  or ~123-abc~, regex "   \
    "used for validation is ~[a-z0-9]([-a-z0-9]*[a-z0-9])?~)"
#define SUBDOMAIN_RULE                                                                            \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, ~-~ or "  \
    "~.~, and must start and end with an alphanumeric character (e.g. ~example.com~, regex used " \
    "for validation is ~[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*~)"
#define NAME_RULE                                                                                 \
    "name part must consist of alphanumeric characters, ~-~, ~_~ or ~.~, and must start and end " \
    "with an alphanumeric character (e.g. ~MyName~,  or ~my.name~,  or ~123-abc~, regex used "    \
    "for validation is ~([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]~)"
#define VALUE_RULE                                                                              \
    "a valid label must be an empty string or consist of alphanumeric characters, ~-~, ~_~ or " \
    "~.~, and must start and end with an alphanumeric character (e.g. ~MyValue~,  or "          \
    "~my_value~,  or ~12345~, regex used for validation is "                                    \
    "~(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?~)"
#define NO_QUANTITY                                                                      \
    "Pod in version 'v1' cannot be handled as a Pod: quantities must match the regular " \
    "expression ~^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$~"
#define AFFINITY "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
#define NODE_TERMS(terms)                                                                    \
    POD_WITH("'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':" \
             "{'nodeSelectorTerms':[" terms "]}}}")

static const struct kind *kind_of(struct jsontree *t)
{
    struct jsonnode *root = jsontree_root(t);
    const struct kind *k =
        kinds_by_name(jsonnode_get_str(root, "apiVersion"), jsonnode_get_str(root, "kind"));
    if (!k)
        fail_msg("no kind for %s", jsonnode_get_str(root, "kind"));
    return k;
}

struct row {
    const char *row, *object;
    const char *sentence; /* NULL: accepted */
    int status;           /* 0: 422 is the caller's to say */
};

static void check_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        AUTO_JSONTREE *t = plain_tree(rows[i].object);
        const struct kind *k = kind_of(t);
        struct error err = ERROR_INIT;
        AUTO_STRBUF expected = {0};
        if (k->fill_defaults)
            k->fill_defaults(t, jsontree_root(t));
        int rc = k->validate(jsontree_root(t), &err);
        plain_json(rows[i].sentence ? rows[i].sentence : "", &expected);
        expect_int(rows[i].row, rows[i].sentence ? -1 : 0, rc);
        expect_str(rows[i].row, strbuf_str(&expected), err.text);
        expect_int(rows[i].row, rows[i].status, err.http_status);
        /* A caller that does not care is fine. */
        expect_int(rows[i].row, rc, k->validate(jsontree_root(t), NULL));
    }
    expect_done();
}

static void names_and_labels(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"a good pod", POD_OF("{'containers':[" CONTAINER "]}"), NULL, 0},
        {"no name", META("{}"), "metadata.name: Required value: name or generateName is required",
         0},
        {"a name in capitals", META("{'name':'A_b'}"),
         "metadata.name: Invalid value: 'A_b': " SUBDOMAIN_RULE, 0},
        {"a name with an empty part", META("{'name':'a..b'}"),
         "metadata.name: Invalid value: 'a..b': " SUBDOMAIN_RULE, 0},
        {"a name with dots", META("{'name':'a.b-c.d'}"), NULL, 0},
        {"a label's key with a blank", META("{'name':'p','labels':{'a b':'c'}}"),
         "metadata.labels: Invalid value: 'a b': " NAME_RULE, 0},
        {"a label's value with a blank", META("{'name':'p','labels':{'a':'c d'}}"),
         "metadata.labels: Invalid value: 'c d': " VALUE_RULE, 0},
        {"an empty label value", META("{'name':'p','labels':{'a':''}}"), NULL, 0},
        {"a label that is a number", META("{'name':'p','labels':{'a':1}}"),
         "Pod in version 'v1' cannot be handled as a Pod: json: cannot unmarshal number into Go "
         "struct field ObjectMeta.metadata.labels of type string",
         400},
        {"labels that are a list", META("{'name':'p','labels':[]}"),
         "Pod in version 'v1' cannot be handled as a Pod: json: cannot unmarshal array into Go "
         "struct field ObjectMeta.metadata.labels of type map[string]string",
         400},
        {"an annotation's key with a blank", META("{'name':'p','annotations':{'a b':'c'}}"),
         "metadata.annotations: Invalid value: 'a b': " NAME_RULE, 0},
        {"an annotation's value may be anything", META("{'name':'p','annotations':{'a':'{} x'}}"),
         NULL, 0},
        {"an annotation's prefix may be in capitals",
         META("{'name':'p','annotations':{'A.b/c':''}}"), NULL, 0},
        {"a namespace with a dot", OBJECT("v1", "Namespace", "q.r", ""),
         "metadata.name: Invalid value: 'q.r': must not contain dots", 0},
        {"a namespace with an underscore", OBJECT("v1", "Namespace", "q_r", ""),
         "metadata.name: Invalid value: 'q_r': " LABEL_RULE, 0},
        {"a role with a colon", OBJECT("rbac.authorization.k8s.io/v1", "ClusterRole", "a:b", ""),
         NULL, 0},
        {"a role with a slash", OBJECT("rbac.authorization.k8s.io/v1", "ClusterRole", "a/b", ""),
         "metadata.name: Invalid value: 'a/b': may not contain ~/~", 0},
        {"a config map's name", OBJECT("v1", "ConfigMap", "A", ""),
         "metadata.name: Invalid value: 'A': " SUBDOMAIN_RULE, 0},
    };
    check_rows(rows, sizeof rows / sizeof *rows);
}

static void containers(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"no containers", POD_OF("{}"), "spec.containers: Required value", 0},
        {"an empty list of them", POD_OF("{'containers':[]}"), "spec.containers: Required value",
         0},
        {"no list", POD_OF("{'containers':'x'}"),
         "Pod in version 'v1' cannot be handled as a Pod: json: cannot unmarshal string into Go "
         "struct field PodSpec.spec.containers of type []v1.Container",
         400},
        {"two of one name", POD_OF("{'containers':[" CONTAINER "," CONTAINER "]}"),
         "spec.containers[1].name: Duplicate value: 'a'", 0},
        {"an init container of the same name", POD_WITH("'initContainers':[" CONTAINER "]"),
         "spec.initContainers[0].name: Duplicate value: 'a'", 0},
        {"a name in capitals", POD_OF("{'containers':[{'name':'A_','image':'x'}]}"),
         "spec.containers[0].name: Invalid value: 'A_': " LABEL_RULE, 0},
        {"no name", POD_OF("{'containers':[{'image':'x'}]}"),
         "spec.containers[0].name: Required value", 0},
        {"no image", POD_OF("{'containers':[{'name':'x'}]}"),
         "spec.containers[0].image: Required value", 0},
        {"a pull policy", CONTAINER_WITH("'imagePullPolicy':'X'"),
         "spec.containers[0].imagePullPolicy: Unsupported value: 'X': supported values: 'Always', "
         "'IfNotPresent', 'Never'",
         0},
        {"port 0", CONTAINER_WITH("'ports':[{'containerPort':0}]"),
         "spec.containers[0].ports[0].containerPort: Required value", 0},
        {"port 65535", CONTAINER_WITH("'ports':[{'containerPort':65535}]"), NULL, 0},
        {"port 65536 of no protocol",
         CONTAINER_WITH("'ports':[{'containerPort':65536,'protocol':'X'}]"),
         "[spec.containers[0].ports[0].containerPort: Invalid value: 65536: must be between 1 and "
         "65535, inclusive, spec.containers[0].ports[0].protocol: Unsupported value: 'X': supported "
         "values: 'SCTP', 'TCP', 'UDP']",
         0},
        {"a mount without its volume",
         CONTAINER_WITH("'volumeMounts':[{'name':'q','mountPath':'/x'}]"),
         "spec.containers[0].volumeMounts[0].name: Not found: 'q'", 0},
        {"two volumes of one name", POD_WITH("'volumes':[{'name':'v'},{'name':'v'}]"),
         "spec.volumes[1].name: Duplicate value: 'v'", 0},
        {"a variable without a name", CONTAINER_WITH("'env':[{'name':''}]"),
         "spec.containers[0].env[0].name: Required value", 0},
        {"a variable from two sources",
         CONTAINER_WITH("'env':[{'name':'A','value':'x','valueFrom':{'fieldRef':{'fieldPath':"
                        "'metadata.name'}}}]"),
         "spec.containers[0].env[0].valueFrom: Invalid value: '': may not be specified when `value` "
         "is not empty",
         0},
    };
    check_rows(rows, sizeof rows / sizeof *rows);
}

static void amounts(void **state)
{
    (void)state;
#define AT_LIMITS "spec.containers[0].resources.limits"
#define AT_REQUESTS "spec.containers[0].resources.requests"
    static const struct row rows[] = {
        {"not an amount", LIMITS("'limits':{'cpu':'4x'}"), NO_QUANTITY, 400},
        {"an object", LIMITS("'limits':{'cpu':{}}"), NO_QUANTITY, 400},
        {"a number", LIMITS("'limits':{'cpu':1}"), NULL, 0},
        {"zero", LIMITS("'limits':{'cpu':'0'}"), NULL, 0},
        {"below zero", LIMITS("'limits':{'cpu':'-1'}"),
         "[" AT_LIMITS
         "[cpu]: Invalid value: '-1': must be greater than or equal to 0, " AT_REQUESTS
         "[cpu]: Invalid value: '-1': must be greater than or equal to 0]",
         0},
        {"half a GPU", LIMITS("'limits':{'a.b/c':'1.5'}"),
         "[" AT_LIMITS "[a.b/c]: Invalid value: '1500m': must be an integer, " AT_REQUESTS
         "[a.b/c]: Invalid value: '1500m': must be an integer]",
         0},
        {"a thousand thousandths of a GPU", LIMITS("'limits':{'a.b/c':'1000m'}"), NULL, 0},
        {"a GPU requested without a limit", LIMITS("'requests':{'a.b/c':'1'}"),
         AT_LIMITS ": Required value: Limit must be set for non overcommitable resources", 0},
        {"a GPU's request below its limit",
         LIMITS("'requests':{'a.b/c':'1'},'limits':{'a.b/c':'2'}"),
         AT_REQUESTS ": Invalid value: '1': must be equal to a.b/c limit of 2", 0},
        {"a CPU's request below its limit", LIMITS("'requests':{'cpu':'1'},'limits':{'cpu':'2'}"),
         NULL, 0},
        {"a CPU's request above its limit", LIMITS("'requests':{'cpu':'2'},'limits':{'cpu':'1'}"),
         AT_REQUESTS ": Invalid value: '2': must be less than or equal to cpu limit of 1", 0},
        {"an unknown resource", LIMITS("'requests':{'foo':'1'}"),
         "[" AT_REQUESTS "[foo]: Invalid value: 'foo': must be a standard resource type or fully "
         "qualified, " AT_REQUESTS "[foo]: Invalid value: 'foo': must be a standard resource for "
         "containers]",
         0},
        {"huge pages alone", LIMITS("'limits':{'hugepages-2Mi':'4Mi'}"),
         "spec.containers[0].resources: Forbidden: HugePages require cpu or memory", 0},
        {"a node's half GPU",
         OBJECT("v1", "Node", "n",
                ",'status':{'capacity':{'x.y/z':'1.5'},"
                "'allocatable':{}}"),
         "status.capacity.x.y/z: Invalid value: '1500m': must be an integer", 0},
        {"a quota below zero", OBJECT("v1", "ResourceQuota", "q", ",'spec':{'hard':{'pods':'-2'}}"),
         "spec.hard[pods]: Invalid value: '-2': must be greater than or equal to 0", 0},
        {"a quota of half a service",
         OBJECT("v1", "ResourceQuota", "q", ",'spec':{'hard':{'services':'1.5'}}"),
         "spec.hard[services]: Invalid value: '1500m': must be an integer", 0},
        {"a quota of half a CPU",
         OBJECT("v1", "ResourceQuota", "q", ",'spec':{'hard':{'requests.cpu':'1.5'}}"), NULL, 0},
        {"a quota of GPUs",
         OBJECT("v1", "ResourceQuota", "q", ",'spec':{'hard':{'requests.a.b/c':'2'}}"), NULL, 0},
        {"a quota of what nobody knows",
         OBJECT("v1", "ResourceQuota", "q", ",'spec':{'hard':{'foo':'1'}}"),
         "[spec.hard[foo]: Invalid value: 'foo': must be a standard resource type or fully "
         "qualified, spec.hard[foo]: Invalid value: 'foo': must be a standard resource for quota]",
         0},
    };
    check_rows(rows, sizeof rows / sizeof *rows);
}

static void where_a_pod_may_run(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"a restart policy", POD_WITH("'restartPolicy':'Sometimes'"),
         "spec.restartPolicy: Unsupported value: 'Sometimes': supported values: 'Always', "
         "'OnFailure', 'Never'",
         0},
        {"a DNS policy", POD_WITH("'dnsPolicy':'X'"),
         "spec.dnsPolicy: Unsupported value: 'X': supported values: 'ClusterFirstWithHostNet', "
         "'ClusterFirst', 'Default', 'None'",
         0},
        {"a deadline of 0", POD_WITH("'activeDeadlineSeconds':0"),
         "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
         0},
        {"a deadline of 1", POD_WITH("'activeDeadlineSeconds':1"), NULL, 0},
        {"a toleration's operator", POD_WITH("'tolerations':[{'operator':'X','key':'a'}]"),
         "spec.tolerations[0].operator: Unsupported value: 'X': supported values: 'Equal', "
         "'Exists'",
         0},
        {"seconds for another effect",
         POD_WITH(
             "'tolerations':[{'operator':'Exists','effect':'NoSchedule','tolerationSeconds':1}]"),
         "spec.tolerations[0].effect: Invalid value: 'NoSchedule': effect must be ~NoExecute~ when "
         "`tolerationSeconds` is set",
         0},
        {"a node selector's key", POD_WITH("'nodeSelector':{'a b':'c'}"),
         "spec.nodeSelector: Invalid value: 'a b': " NAME_RULE, 0},
        {"a node's name", POD_WITH("'nodeName':'A_'"),
         "spec.nodeName: Invalid value: 'A_': " SUBDOMAIN_RULE, 0},
        {"a gated pod with a node", POD_WITH("'nodeName':'n','schedulingGates':[{'name':'a'}]"),
         "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared", 0},
        {"a gate twice", POD_WITH("'schedulingGates':[{'name':'a'},{'name':'a'}]"),
         "spec.schedulingGates[1]: Duplicate value: 'a'", 0},
        {"affinity to no term", NODE_TERMS(""),
         AFFINITY ".nodeSelectorTerms: Required value: must have at least one node selector term",
         0},
        {"affinity to a value",
         NODE_TERMS("{'matchExpressions':[{'key':'a','operator':'In','values':"
                    "['b']}]}"),
         NULL, 0},
        {"an operator of affinity",
         NODE_TERMS("{'matchExpressions':[{'key':'a','operator':'in'}]}"),
         AFFINITY ".nodeSelectorTerms[0].matchExpressions[0].operator: Invalid value: 'in': not a "
                  "valid selector operator",
         0},
        {"spread", POD_WITH("'topologySpreadConstraints':[{'maxSkew':0,'whenUnsatisfiable':'X'}]"),
         "[spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero, "
         "spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty, "
         "spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: 'X': supported "
         "values: 'DoNotSchedule', 'ScheduleAnyway']",
         0},
    };
    check_rows(rows, sizeof rows / sizeof *rows);
}

static void everything_else(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"a job that restarts always",
         "{'apiVersion':'batch/v1','kind':'Job','metadata':{'name':'j','uid':'u'},'spec':{'template':" TEMPLATE
         "}}",
         "spec.template.spec.restartPolicy: Required value: valid values: 'OnFailure', 'Never'", 0},
        {"a job", JOB(""), NULL, 0},
        {"a job of less than nothing", JOB("'parallelism':-1,'completions':-1,'backoffLimit':-1,"),
         "[spec.parallelism: Invalid value: -1: must be greater than or equal to 0, "
         "spec.completions: Invalid value: -1: must be greater than or equal to 0, "
         "spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0]",
         0},
        {"a deployment", DEPLOYMENT(SELECTOR), NULL, 0},
        {"a deployment that selects nothing", DEPLOYMENT("'selector':{},"),
         "spec.selector: Invalid value: {}: empty selector is invalid for deployment", 0},
        {"less than no replicas", DEPLOYMENT(SELECTOR "'replicas':-1,"),
         "spec.replicas: Invalid value: -1: must be greater than or equal to 0", 0},
        {"a strategy", DEPLOYMENT(SELECTOR "'strategy':{'type':'Foo'},"),
         "spec.strategy: Unsupported value: {'Type':'Foo','RollingUpdate':null}: supported values: "
         "'Recreate', 'RollingUpdate'",
         0},
        {"a taint's effect",
         OBJECT("v1", "Node", "n", ",'spec':{'taints':[{'key':'a','effect':'X'}]}"),
         "metadata.taints[0].effect: Unsupported value: 'X': supported values: 'NoSchedule', "
         "'PreferNoSchedule', 'NoExecute'",
         0},
        {"a taint twice",
         OBJECT("v1", "Node", "n",
                ",'spec':{'taints':[{'key':'c','effect':'NoSchedule'},{'key':'c','effect':"
                "'NoSchedule'}]}"),
         "metadata.taints[1]: Duplicate value: {'Key':'c','Value':'','Effect':'NoSchedule',"
         "'TimeAdded':null}: taints must be unique by key and effect pair",
         0},
        {"the same key with two effects",
         OBJECT("v1", "Node", "n",
                ",'spec':{'taints':[{'key':'c','effect':'NoSchedule'},{'key':'c','effect':"
                "'NoExecute'}]}"),
         NULL, 0},
        {"a budget of both",
         OBJECT(
             "policy/v1", "PodDisruptionBudget", "b",
             ",'spec':{'minAvailable':1,'maxUnavailable':1,'selector':{'matchLabels':{'a':'b'}}}"),
         "spec: Invalid value: {'MinAvailable':1,'Selector':{'matchLabels':{'a':'b'}},"
         "'MaxUnavailable':1,'UnhealthyPodEvictionPolicy':null}: minAvailable and maxUnavailable "
         "cannot be both set",
         0},
        {"a budget below zero",
         OBJECT("policy/v1", "PodDisruptionBudget", "b", ",'spec':{'minAvailable':-1}"),
         "spec.minAvailable: Invalid value: -1: must be greater than or equal to 0", 0},
        {"a budget of 100%",
         OBJECT("policy/v1", "PodDisruptionBudget", "b", ",'spec':{'minAvailable':'100%'}"), NULL,
         0},
        {"a budget of 101%",
         OBJECT("policy/v1", "PodDisruptionBudget", "b", ",'spec':{'minAvailable':'101%'}"),
         "spec.minAvailable: Invalid value: '101%': must not be greater than 100%", 0},
        {"a budget of words",
         OBJECT("policy/v1", "PodDisruptionBudget", "b", ",'spec':{'minAvailable':'x'}"),
         "spec.minAvailable: Invalid value: 'x': a valid percent string must be a numeric string "
         "followed by an ending ~%~ (e.g. ~1%~,  or ~93%~, regex used for validation is ~[0-9]+%~)",
         0},
        {"the highest priority of a user",
         OBJECT("scheduling.k8s.io/v1", "PriorityClass", "c", ",'value':1000000000"), NULL, 0},
        {"one more", OBJECT("scheduling.k8s.io/v1", "PriorityClass", "c", ",'value':1000000001"),
         "value: Forbidden: maximum allowed value of a user defined priority is 1000000000", 0},
        {"the system's",
         OBJECT("scheduling.k8s.io/v1", "PriorityClass", "system-node-critical",
                ",'value':2000001000"),
         NULL, 0},
        {"a name of the system",
         OBJECT("scheduling.k8s.io/v1", "PriorityClass", "system-q", ",'value':1"),
         "metadata.name: Forbidden: priority class names with ~system-~ prefix are reserved for "
         "system use only. error: system-q is not a known system priority class",
         0},
        {"a lease of no time",
         OBJECT("coordination.k8s.io/v1", "Lease", "l",
                ",'spec':{'leaseDurationSeconds':0,'leaseTransitions':-1}"),
         "[spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0, "
         "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0]",
         0},
        {"a lease of a second",
         OBJECT("coordination.k8s.io/v1", "Lease", "l", ",'spec':{'leaseDurationSeconds':1}"), NULL,
         0},
        {"a lease's time in words",
         OBJECT("coordination.k8s.io/v1", "Lease", "l", ",'spec':{'renewTime':'2026-01-01'}"),
         "Lease in version 'v1' cannot be handled as a Lease: parsing time '2026-01-01' as "
         "'2006-01-02T15:04:05.000000Z07:00'",
         400},
        {"an event beside its pod", EVENT("x", "'namespace':'x'"), NULL, 0},
        {"an event elsewhere", EVENT("x", "'namespace':'y'"),
         "involvedObject.namespace: Invalid value: 'y': does not match event.namespace", 0},
        {"a node's event in default", EVENT("default", "'kind':'Node'"), NULL, 0},
        {"a node's event elsewhere", EVENT("kube-system", "'kind':'Node'"),
         "involvedObject.namespace: Invalid value: '': does not match event.namespace", 0},
        {"a webhook",
         WEBHOOK("{'name':'a.b.c','sideEffects':'None','admissionReviewVersions':['v1'],"
                 "'clientConfig':{'url':'https://x'}}"),
         NULL, 0},
        {"a webhook in the clear, with half a name",
         WEBHOOK("{'name':'a.b','sideEffects':'None','admissionReviewVersions':['v1'],"
                 "'clientConfig':{'url':'http://x'}}"),
         "[webhooks[0].name: Invalid value: 'a.b': should be a domain with at least three segments "
         "separated by dots, webhooks[0].clientConfig.url: Invalid value: 'http': ~https~ is the "
         "only allowed URL scheme; desired format: https://host[/path]]",
         0},
        {"a webhook for a minute",
         WEBHOOK("{'name':'a.b.c','sideEffects':'None','admissionReviewVersions':['v1'],"
                 "'timeoutSeconds':31,'clientConfig':{'url':'https://x'}}"),
         "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 "
         "seconds",
         0},
        {"a service's port", OBJECT("v1", "Service", "s", ",'spec':{'ports':[{'port':0}]}"),
         "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive", 0},
        {"a custom resource has only a name to be wrong",
         OBJECT("scheduling.x-k8s.io/v1alpha1", "PodGroup", "g", ",'spec':{'minMember':3}"), NULL,
         0},
    };
    check_rows(rows, sizeof rows / sizeof *rows);
}

/* Whatever comes, the rules and defaults of every kind survive it. */
static void nonsense_is_normal_input(void **state)
{
    (void)state;
    static const char *const nonsense[] = {
        "null",
        "1",
        "[]",
        "'x'",
        "{}",
        "{'spec':1,'status':[],'metadata':'x'}",
        "{'metadata':{'name':1,'labels':[1],'annotations':{'a':{}}}}",
        "{'metadata':{'name':'n','uid':'u'},'spec':{'containers':[1,null,{},[]],'volumes':[1,{}],"
        "'tolerations':[1],'template':[],'selector':1,'taints':[1],'ports':[1],'hard':[1],"
        "'schedulingGates':{},'topologySpreadConstraints':[1],'affinity':1,'jobTemplate':1,"
        "'names':1,'strategy':1,'initContainers':{'a':1}},'status':{'capacity':[1],'nodeInfo':1},"
        "'webhooks':[1,{}],'roleRef':1,'subjects':[1],'stringData':[1],'involvedObject':1}",
        "{'metadata':{'name':'n','uid':'u'},'spec':{'template':{'metadata':1,'spec':{'containers':"
        "[{'resources':{'limits':1,'requests':[1]},'env':[1],'ports':[1],'volumeMounts':1,"
        "'lifecycle':1,'livenessProbe':1}]}},'containers':[{'resources':{'limits':[1]}}],"
        "'tolerations':'x'}}",
    };
    for (size_t i = 0; kinds_all[i]; i++)
        for (size_t n = 0; n < sizeof nonsense / sizeof *nonsense; n++) {
            const struct kind *k = kinds_all[i];
            AUTO_JSONTREE *t = plain_tree(nonsense[n]);
            AUTO_JSONTREE *old = plain_tree("{}");
            if (k->fill_defaults && jsonnode_is_object(jsontree_root(t)))
                k->fill_defaults(t, jsontree_root(t));
            if (k->validate && n < 4)
                expect_int(k->resource, -1, k->validate(jsontree_root(t), NULL));
            else if (k->validate)
                (void)k->validate(jsontree_root(t), NULL);
            if (k->validate_update) {
                (void)k->validate_update(jsontree_root(old), jsontree_root(t), NULL);
                (void)k->validate_update(jsontree_root(t), jsontree_root(old), NULL);
            }
        }
    expect_done();
}

/* Names were once compared each with each, and each found by walking there: 4,000 containers took
 * minutes. */
static void long_lists_are_checked_in_time(void **state)
{
    (void)state;
    enum { MANY = 5000 };
    static const struct {
        const char *row, *before, *element, *after, *sentence;
    } rows[] = {
        {"containers",
         "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p'},'spec':{'containers':[",
         "{'name':'c%d','image':'i'}", ",{'name':'c7','image':'i'}]}}",
         "spec.containers[5000].name: Duplicate value: 'c7'"},
        {"volumes",
         "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p'},'spec':{'containers':[" CONTAINER
         "],'volumes':[",
         "{'name':'v%d'}", ",{'name':'v7'}]}}", "spec.volumes[5000].name: Duplicate value: 'v7'"},
        {"limits",
         "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p'},'spec':{'containers':"
         "[{'name':'a','image':'i','resources':{'limits':{",
         "'a.io/r%d':'1.0'", ",'a.io/x':'0.5'}}}]}}",
         "[spec.containers[0].resources.limits[a.io/x]: Invalid value: '500m': must be an integer, "
         "spec.containers[0].resources.requests[a.io/x]: Invalid value: '500m': must be an "
         "integer]"},
        {"taints", "{'apiVersion':'v1','kind':'Node','metadata':{'name':'n'},'spec':{'taints':[",
         "{'key':'t%d','effect':'NoSchedule'}", ",{'key':'t7','effect':'NoSchedule'}]}}",
         "metadata.taints[5000]: Duplicate value: {'Key':'t7','Value':'','Effect':'NoSchedule',"
         "'TimeAdded':null}: taints must be unique by key and effect pair"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO_STRBUF object = {0};
        strbuf_adds(&object, rows[i].before);
        for (int k = 0; k < MANY; k++) {
            const char *hole = strstr(rows[i].element, "%d");
            strbuf_addf(&object, "%s%.*s%d%s", k > 0 ? "," : "", (int)(hole - rows[i].element),
                        rows[i].element, k, hole + 2);
        }
        strbuf_adds(&object, rows[i].after);
        const struct row row = {rows[i].row, strbuf_str(&object), rows[i].sentence, 0};
        check_rows(&row, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_lists_are_checked_in_time),
        cmocka_unit_test(names_and_labels),
        cmocka_unit_test(containers),
        cmocka_unit_test(amounts),
        cmocka_unit_test(where_a_pod_may_run),
        cmocka_unit_test(everything_else),
        cmocka_unit_test(nonsense_is_normal_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
