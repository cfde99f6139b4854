// SPDX-License-Identifier: Apache-2.0
/*
 * Which ResourcePolicies are in force, and what is wrong with the others: the sentences name the
 * field.
 */
#include "lib/base/json.h"
#include "lib/base/str.h"
#include "lib/kube/decode.h"
#include "test/unit/lib/base/expect.h"

#define UNIT "{'resource':'ecs'}"

/* ' for ". */
static struct policy *decode(const char *row, const char *spec)
{
    AUTO_STRBUF text = {0};
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    struct policy *p = NULL;
    strbuf_addf(&text,
                "{'metadata':{'namespace':'d','name':'web','uid':'u',"
                "'creationTimestamp':'2026-01-01T00:00:01Z'},'spec':%s}",
                spec);
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] == '\'')
            text.ptr[i] = '"';
    if (json_parse(&doc, strbuf_str(&text), text.len, &err) < 0 ||
        decode_resource_policy(json_root(doc), &p, &err) < 0)
        fail_msg("%s: %s", row, err.text);
    return p;
}

static void what_is_wrong_is_named_and_not_in_force(void **state)
{
    (void)state;
    static const struct {
        const char *row, *spec, *invalid;
    } rows[] = {
        {"one unit is enough", "{'units':[" UNIT "]}", NULL},
        {"nulls are nothing",
         "{'units':[" UNIT
         "],'selector':null,'matchLabelKeys':null,'whenTryNextUnits':null,'preemptPolicy':null}",
         NULL},
        {"no spec", "null", "spec: must be an object, not null"},
        {"a list as spec", "[]", "spec: must be an object, not array"},
        {"no units", "{}", "spec.units: must have 1 to 64 units"},
        {"an empty list of units", "{'units':[]}", "spec.units: must have 1 to 64 units"},
        {"units that are no list", "{'units':{}}", "spec.units: must be a list, not object"},
        {"a unit that is no object", "{'units':[" UNIT ",7]}",
         "spec.units[1]: must be an object, not number"},
        {"a unit without its kind", "{'units':[{}]}", "spec.units[0].resource: missing"},
        {"a kind that there is not", "{'units':[{'resource':'vm'}]}",
         "spec.units[0].resource: must be ecs, eci, elastic or acs"},
        {"a kind that is no word", "{'units':[{'resource':1}]}",
         "spec.units[0].resource: must be ecs, eci, elastic or acs"},
        {"a max below 0", "{'units':[{'resource':'ecs','max':-1}]}",
         "spec.units[0].max: must be between 0 and 2147483647: -1"},
        {"a max beyond 32 bits", "{'units':[{'resource':'ecs','max':2147483648}]}",
         "spec.units[0].max: must be between 0 and 2147483647: 2147483648"},
        {"the largest max", "{'units':[{'resource':'ecs','max':2147483647}]}", NULL},
        {"an amount that is none", "{'units':[{'resource':'ecs','maxResources':{'cpu':'x'}}]}",
         "spec.units[0].maxResources: resource cpu: not a quantity: 'x'"},
        {"a nodeSelector with a value that no label has",
         "{'units':[{'resource':'ecs','nodeSelector':{'a':'b c'}}]}",
         "spec.units[0].nodeSelector: 'b c' is not a label's value"},
        {"a selector with a key that no label has", "{'units':[" UNIT "],'selector':{'/a':'b'}}",
         "spec.selector: '/a' is not a label's key"},
        {"another strategy", "{'units':[" UNIT "],'strategy':'spread'}",
         "spec.strategy: must be prefer"},
        {"another preemptPolicy", "{'units':[" UNIT "],'preemptPolicy':'Never'}",
         "spec.preemptPolicy: must be AfterAllUnits or BeforeNextUnit"},
        {"a yes that is no bool", "{'units':[" UNIT "],'ignorePreviousPod':'yes'}",
         "spec.ignorePreviousPod: must be true or false, not string"},
        {"another policy", "{'units':[" UNIT "],'whenTryNextUnits':{'policy':'Never'}}",
         "spec.whenTryNextUnits.policy: must be LackResourceOrExceedMax, ExceedMax, TimeoutOrExceedMax or LackResourceAndNoTerminating"},
        {"no time", "{'units':[" UNIT "],'whenTryNextUnits':{'timeout':'15'}}",
         "spec.whenTryNextUnits.timeout: not a time such as 15m or 90s"},
        {"a time of zero", "{'units':[" UNIT "],'whenTryNextUnits':{'timeout':'0s'}}",
         "spec.whenTryNextUnits.timeout: not a time such as 15m or 90s"},
        {"a key that is none", "{'units':[" UNIT "],'matchLabelKeys':['a b']}",
         "spec.matchLabelKeys: 'a b' is not a label's key"},
        {"a key that is no word", "{'units':[" UNIT "],'matchLabelKeys':[1]}",
         "spec.matchLabelKeys[0]: must be a string without NUL, not number"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct policy *p = decode(rows[i].row, rows[i].spec);
        expect_str(rows[i].row, rows[i].invalid, p->invalid);
        expect_true("one that is wrong has no units",
                    (p->units_len > 0) == (rows[i].invalid == NULL));
        object_free(&p->object);
    }
    expect_done();
}

/* 64 units are allowed, 65 are not. */
static void lists_are_bounded(void **state)
{
    (void)state;
    for (int n = POLICY_UNITS_MAX; n <= POLICY_UNITS_MAX + 1; n++) {
        AUTO_STRBUF spec = {0};
        strbuf_adds(&spec, "{'units':[");
        for (int i = 0; i < n; i++)
            strbuf_addf(&spec, "%s" UNIT, i > 0 ? "," : "");
        strbuf_adds(&spec, "]}");
        struct policy *p = decode("units", strbuf_str(&spec));
        expect_true("64 and no more", (p->invalid == NULL) == (n == POLICY_UNITS_MAX));
        object_free(&p->object);
    }
    for (int n = POLICY_LABELS_MAX; n <= POLICY_LABELS_MAX + 1; n++) {
        AUTO_STRBUF spec = {0};
        strbuf_adds(&spec, "{'units':[{'resource':'ecs','podAnnotations':{");
        for (int i = 0; i < n; i++)
            strbuf_addf(&spec, "%s'a%d':'x'", i > 0 ? "," : "", i);
        strbuf_adds(&spec, "}}]}");
        struct policy *p = decode("annotations", strbuf_str(&spec));
        expect_true("64 annotations and no more", (p->invalid == NULL) == (n == POLICY_LABELS_MAX));
        object_free(&p->object);
    }
    expect_done();
}

static void everything_is_read(void **state)
{
    (void)state;
    struct policy *p = decode(
        "all fields",
        "{'selector':{'app':'web'},'strategy':'prefer','units':["
        "{'resource':'elastic','nodeSelector':{'pool':'a'},'max':3,'maxResources':{'cpu':'1500m',"
        "'aliyun.com/gpu-mem':8},'podLabels':{'tier':'one','a.k8s.io/x':'y'},"
        "'podAnnotations':{'who':'me','cosched.io/resource-unit':'z'}},"
        "{'resource':'eci','podLabels':{"
        "'k8s.aliyun.com/resource-policy-wait-for-ecs-scaling':'true'}}],"
        "'preemptPolicy':'BeforeNextUnit','ignorePreviousPod':true,'ignoreTerminatingPod':false,"
        "'matchLabelKeys':['b','a','b'],'whenTryNextUnits':{'policy':'TimeoutOrExceedMax',"
        "'timeout':'1h30m'}}");
    expect_str("in force", NULL, p->invalid);
    expect_str("what was left out",
               "spec.units[0].podLabels[a.k8s.io/x]: cannot be given by a policy, and is left out",
               p->warning);
    expect_str("selector", "web", labels_get(&p->selector, "app"));
    expect_int("age", 1767225601000000000, p->created_ns);
    expect_int("units", 2, (int64_t)p->units_len);
    expect_int("max", 3, p->units[0].max);
    expect_int("cpu", 1500, p->units[0].max_resources.cpu_milli);
    expect_int("gpu-mem", 8, resources_get(&p->units[0].max_resources, "aliyun.com/gpu-mem", NULL));
    expect_int("labels that are given", 1, (int64_t)p->units[0].pod_labels.len);
    expect_int("annotations that are given", 1, (int64_t)p->units[0].pod_annotations.len);
    expect_true("elastic units are awaited", p->units[0].awaited);
    expect_true("so are those that say so", p->units[1].awaited);
    expect_int("and that is no label", 0, (int64_t)p->units[1].pod_labels.len);
    expect_int("no max", -1, p->units[1].max);
    expect_true("no maxResources", !p->units[1].has_max_resources);
    expect_true("preempts before the next unit", p->preempt_before_next);
    expect_true("ignores previous pods", p->ignore_previous);
    expect_true("counts terminating ones", !p->ignore_terminating);
    expect_int("keys, each once", 2, (int64_t)p->match_keys_len);
    expect_str("in order", "a", p->match_keys[0]);
    expect_int("when", POLICY_TIMEOUT_OR_MAX, p->when);
    expect_int("timeout", 5400000, p->timeout_ms);
    object_free(&p->object);
    expect_done();
}

static void labels_that_it_selects_by_are_not_given(void **state)
{
    (void)state;
    struct policy *p = decode("a label of the selector",
                              "{'selector':{'app':'web'},'units':[{'resource':'ecs','podLabels':{"
                              "'app':'stolen','tier':'one'},'podAnnotations':{'app':'fine'}}]}");
    expect_str("in force", NULL, p->invalid);
    expect_str("what was left out",
               "spec.units[0].podLabels[app]: cannot be given by a policy, and is left out",
               p->warning);
    expect_int("labels that are given", 1, (int64_t)p->units[0].pod_labels.len);
    expect_str("the other one", "tier", p->units[0].pod_labels.items[0].key);
    expect_int("annotations that are given", 1, (int64_t)p->units[0].pod_annotations.len);
    object_free(&p->object);
    expect_done();
}

static void defaults_are_those_of_the_contract(void **state)
{
    (void)state;
    struct policy *p = decode("defaults", "{'units':[" UNIT "]}");
    expect_true("AfterAllUnits", !p->preempt_before_next);
    expect_true("previous pods count", !p->ignore_previous);
    expect_true("terminating ones do not", p->ignore_terminating);
    expect_int("when", POLICY_LACK_OR_MAX, p->when);
    expect_int("15 minutes", 900000, p->timeout_ms);
    expect_true("ecs is not awaited", !p->units[0].awaited);
    object_free(&p->object);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_is_named_and_not_in_force),
        cmocka_unit_test(lists_are_bounded),
        cmocka_unit_test(everything_is_read),
        cmocka_unit_test(labels_that_it_selects_by_are_not_given),
        cmocka_unit_test(defaults_are_those_of_the_contract),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
