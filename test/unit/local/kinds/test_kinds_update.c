// SPDX-License-Identifier: Apache-2.0
/*
 * What of an object may change once it is there. The sentences are a real API server's, without the
 * comparison that it appends to the first of them.
 */
#include "test/local/kinds/kinds.h"

#include "test/unit/local/plain_json.h"

#define CONTAINER "{'name':'a','image':'x:1'}"
#define FROZEN                                                                                \
    "spec: Forbidden: pod updates may not change fields other than "                          \
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`," \
    "`spec.tolerations` (only additions to existing tolerations),"                            \
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously "     \
    "negative)"

static void a_pod_is_frozen_but_for_a_few_fields(void **state)
{
    (void)state;
#define OLD "{'containers':[" CONTAINER "],'nodeSelector':{'a':'b'},'tolerations':[{'key':'k'}]"
    static const struct {
        const char *row, *old, *updated, *sentence;
    } rows[] = {
        {"nothing changed", OLD "}", OLD "}", NULL},
        {"another image", OLD "}",
         "{'containers':[{'name':'a','image':'y:2'}],'nodeSelector':{'a':'b'},'tolerations':"
         "[{'key':'k'}]}",
         NULL},
        {"another command", OLD "}",
         "{'containers':[{'name':'a','image':'x:1','command':['c']}],'nodeSelector':{'a':'b'},"
         "'tolerations':[{'key':'k'}]}",
         FROZEN},
        {"one more container", OLD "}",
         "{'containers':[" CONTAINER ",{'name':'b','image':'x'}],'nodeSelector':{'a':'b'},"
         "'tolerations':[{'key':'k'}]}",
         "spec.containers: Forbidden: pod updates may not add or remove containers"},
        {"a node", OLD "}", OLD ",'nodeName':'n'}", FROZEN},
        {"a node taken away", OLD ",'nodeName':'n'}", OLD "}", FROZEN},
        {"one more toleration", OLD "}",
         "{'containers':[" CONTAINER "],'nodeSelector':{'a':'b'},'tolerations':[{'key':'k'},"
         "{'key':'l'}]}",
         NULL},
        {"a toleration taken away", OLD "}",
         "{'containers':[" CONTAINER "],'nodeSelector':{'a':'b'},'tolerations':[]}",
         "spec.tolerations: Forbidden: existing toleration can not be modified except its "
         "tolerationSeconds"},
        {"a deadline", OLD "}", OLD ",'activeDeadlineSeconds':5}", NULL},
        {"a longer deadline", OLD ",'activeDeadlineSeconds':5}", OLD ",'activeDeadlineSeconds':6}",
         "spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous "
         "value"},
        {"a shorter deadline", OLD ",'activeDeadlineSeconds':5}", OLD ",'activeDeadlineSeconds':4}",
         NULL},
        {"no deadline any more", OLD ",'activeDeadlineSeconds':5}", OLD "}",
         "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer "
         "to nil value"},
        {"a gate taken away", OLD ",'schedulingGates':[{'name':'g'}]}", OLD "}", NULL},
        {"a gate added", OLD "}", OLD ",'schedulingGates':[{'name':'g'}]}",
         "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new "
         "scheduling gate ~g~"},
        {"a narrower selector", OLD "}",
         "{'containers':[" CONTAINER "],'nodeSelector':{'a':'b','c':'d'},'tolerations':[{'key':"
         "'k'}]}",
         FROZEN},
        {"a narrower selector while gated", OLD ",'schedulingGates':[{'name':'g'}]}",
         "{'containers':[" CONTAINER "],'nodeSelector':{'a':'b','c':'d'},'tolerations':[{'key':"
         "'k'}],'schedulingGates':[{'name':'g'}]}",
         NULL},
        {"another selector while gated", OLD ",'schedulingGates':[{'name':'g'}]}",
         "{'containers':[" CONTAINER "],'nodeSelector':{'a':'z'},'tolerations':[{'key':'k'}],"
         "'schedulingGates':[{'name':'g'}]}",
         "spec.nodeSelector: Invalid value: {'a':'z'}: only additions to spec.nodeSelector are "
         "allowed (no mutations or deletions)"},
        {"a grace of 1 after one below 0", OLD ",'terminationGracePeriodSeconds':-1}",
         OLD ",'terminationGracePeriodSeconds':1}", NULL},
        {"a grace of 1 after 30", OLD ",'terminationGracePeriodSeconds':30}",
         OLD ",'terminationGracePeriodSeconds':1}", FROZEN},
        {"no spec any more", OLD "}", "null", FROZEN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO_STRBUF a = {0}, b = {0};
        strbuf_addf(&a, "{'spec':%s}", rows[i].old);
        strbuf_addf(&b, "{'spec':%s}", rows[i].updated);
        AUTO_JSONTREE *old = plain_tree(strbuf_str(&a));
        AUTO_JSONTREE *updated = plain_tree(strbuf_str(&b));
        struct error err = ERROR_INIT;
        int rc = kind_pods.validate_update(jsontree_root(old), jsontree_root(updated), &err);
        expect_int(rows[i].row, rows[i].sentence ? -1 : 0, rc);
        AUTO_STRBUF expected = {0};
        plain_json(rows[i].sentence ? rows[i].sentence : "", &expected);
        expect_str(rows[i].row, strbuf_str(&expected), err.text);
    }
    expect_done();
}

static void what_identifies_pods_is_frozen_in_their_makers(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        const struct kind *kind;
        const char *old, *updated, *sentence;
    } rows[] = {
        {"a deployment's replicas", &kind_deployments, "{'spec':{'replicas':1}}",
         "{'spec':{'replicas':2}}", NULL},
        {"a deployment's selector", &kind_deployments, "{'spec':{'selector':{}}}",
         "{'spec':{'selector':{'matchLabels':{'c':'d'}}}}",
         "spec.selector: Invalid value: {'matchLabels':{'c':'d'}}: field is immutable"},
        {"a job's parallelism", &kind_jobs, "{'spec':{'parallelism':1}}",
         "{'spec':{'parallelism':2}}", NULL},
        {"a job's completions", &kind_jobs, "{'spec':{'completions':1}}",
         "{'spec':{'completions':2}}", "spec.completions: Invalid value: 2: field is immutable"},
        {"a job's template", &kind_jobs, "{'spec':{'template':{}}}",
         "{'spec':{'template':{'spec':{}}}}",
         "spec.template: Invalid value: {'spec':{}}: field is immutable"},
        {"a suspended job's template", &kind_jobs, "{'spec':{'suspend':true,'template':{}}}",
         "{'spec':{'suspend':true,'template':{'spec':{}}}}", NULL},
        {"a suspended job's template that has run", &kind_jobs,
         "{'spec':{'suspend':true,'template':{}},'status':{'startTime':'x'}}",
         "{'spec':{'suspend':true,'template':{'spec':{}}}}",
         "spec.template: Invalid value: {'spec':{}}: field is immutable"},
        {"a priority's value", &kind_priority_classes, "{'value':5}", "{'value':6}",
         "value: Forbidden: may not be changed in an update."},
        {"a priority's description", &kind_priority_classes, "{'value':5}",
         "{'value':5,'description':'x'}", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO_JSONTREE *old = plain_tree(rows[i].old);
        AUTO_JSONTREE *updated = plain_tree(rows[i].updated);
        struct error err = ERROR_INIT;
        AUTO_STRBUF expected = {0};
        int rc = rows[i].kind->validate_update(jsontree_root(old), jsontree_root(updated), &err);
        plain_json(rows[i].sentence ? rows[i].sentence : "", &expected);
        expect_int(rows[i].row, rows[i].sentence ? -1 : 0, rc);
        expect_str(rows[i].row, strbuf_str(&expected), err.text);
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_is_frozen_but_for_a_few_fields),
        cmocka_unit_test(what_identifies_pods_is_frozen_in_their_makers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
