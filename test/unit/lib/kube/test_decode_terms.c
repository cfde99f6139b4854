// SPDX-License-Identifier: Apache-2.0
#include "test/unit/lib/kube/decode_kit.h"

#define LABELS "'app':'web','hash':'h1','team':'t'"
#define POD(spec) \
    "{'metadata':{'name':'a','namespace':'ns','labels':{" LABELS "}},'spec':{" spec "}}"
#define REQUIRED(side, term) \
    POD("'affinity':{'" side "':{'requiredDuringSchedulingIgnoredDuringExecution':[" term "]}}")
#define PREFERRED(side, term) \
    POD("'affinity':{'" side "':{'preferredDuringSchedulingIgnoredDuringExecution':[" term "]}}")
#define SPREAD(rest)                                                                                              \
    POD("'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'zone','whenUnsatisfiable':'DoNotSchedule'" rest \
        "}]")

static void test_terms(void **state)
{
    (void)state;
    /* What a term says in the end, in the form of podterm_print. */
    static const struct {
        const char *row, *term, *says;
    } rows[] = {
        {"no namespaces: the pod's own", "{'topologyKey':'zone','labelSelector':{}}",
         "\"zone\" in [\"ns\"] or {<nothing>} of {}"},
        {"a list of namespaces is a set",
         "{'topologyKey':'zone','namespaces':['b','a','b'],'labelSelector':{}}",
         "\"zone\" in [\"a\",\"b\"] or {<nothing>} of {}"},
        {"a namespaceSelector takes the place of the pod's own namespace",
         "{'topologyKey':'zone','namespaceSelector':{},'labelSelector':{}}",
         "\"zone\" in [] or {} of {}"},
        {"null is as absent",
         "{'topologyKey':'zone','namespaceSelector':null,'namespaces':null,'labelSelector':null}",
         "\"zone\" in [\"ns\"] or {<nothing>} of {<nothing>}"},
        {"both",
         "{'topologyKey':'zone','namespaces':['a'],'namespaceSelector':{'matchLabels':{'x':'y'}},"
         "'labelSelector':{'matchLabels':{'app':'web'}}}",
         "\"zone\" in [\"a\"] or {x in (y)} of {app in (web)}"},
        {"matchLabelKeys that nobody has merged",
         "{'topologyKey':'z','labelSelector':{'matchLabels':{'app':'web'}},'matchLabelKeys':['hash']}",
         "\"z\" in [\"ns\"] or {<nothing>} of {app in (web),hash in (h1)}"},
        {"mismatchLabelKeys that nobody has merged",
         "{'topologyKey':'z','labelSelector':{},'mismatchLabelKeys':['team']}",
         "\"z\" in [\"ns\"] or {<nothing>} of {team notin (t)}"},
        {"a key that the pod does not have says nothing",
         "{'topologyKey':'z','labelSelector':{},'matchLabelKeys':['other']}",
         "\"z\" in [\"ns\"] or {<nothing>} of {}"},
        {"without a labelSelector there is nothing to merge into",
         "{'topologyKey':'z','matchLabelKeys':['hash']}",
         "\"z\" in [\"ns\"] or {<nothing>} of {<nothing>}"},
        {"merged by the API server: not twice",
         "{'topologyKey':'z','labelSelector':{'matchExpressions':[{'key':'hash','operator':'In',"
         "'values':['h1']}]},'matchLabelKeys':['hash']}",
         "\"z\" in [\"ns\"] or {<nothing>} of {hash in (h1)}"},
        {"merged, and the pod's label was changed since: the merged value holds",
         "{'topologyKey':'z','labelSelector':{'matchExpressions':[{'key':'hash','operator':'In',"
         "'values':['h0']}]},'matchLabelKeys':['hash']}",
         "\"z\" in [\"ns\"] or {<nothing>} of {hash in (h0)}"},
        {"merged, and the pod got another of the keys since: as it was merged",
         "{'topologyKey':'z','labelSelector':{'matchExpressions':[{'key':'hash','operator':'In',"
         "'values':['h1']}]},'matchLabelKeys':['hash','team']}",
         "\"z\" in [\"ns\"] or {<nothing>} of {hash in (h1)}"},
        {"a mismatch key that is merged",
         "{'topologyKey':'z','labelSelector':{'matchExpressions':[{'key':'team','operator':'NotIn',"
         "'values':['t0']}]},'mismatchLabelKeys':['team']}",
         "\"z\" in [\"ns\"] or {<nothing>} of {team notin (t0)}"},
        {"a user's own words about a mismatch key are not the server's",
         "{'topologyKey':'z','labelSelector':{'matchExpressions':[{'key':'team','operator':'Exists'}"
         "]},'mismatchLabelKeys':['team']}",
         "\"z\" in [\"ns\"] or {<nothing>} of {team,team notin (t)}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO_STRBUF text = {0}, said = {0};
        strbuf_addf(&text, REQUIRED("podAntiAffinity", "%s"), rows[i].term);
        struct pod *p = decode_kit_pod(strbuf_str(&text));
        if (p->terms && p->terms->anti_affinity_len == 1)
            podterm_print(&p->terms->anti_affinity[0], &said);
        expect_str(rows[i].row, rows[i].says, strbuf_str(&said));
        pod_free(p);
    }
    expect_done();
}

static void test_sides(void **state)
{
    (void)state;
    struct pod *p = decode_kit_pod(POD(
        "'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':'a'},{'topologyKey':'b'}],"
        "'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':100,'podAffinityTerm':{'topologyKey':'c'}}]},"
        "'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':'d'}],"
        "'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':1,'podAffinityTerm':{'topologyKey':'e'}},"
        "{'weight':2,'podAffinityTerm':{'topologyKey':'f'}}]}}"));
    expect_true("there are terms", p->terms != NULL);
    expect_int("required", 2, (int64_t)p->terms->affinity_len);
    expect_str("in their order", "b", p->terms->affinity[1].topology_key);
    expect_int("a required term has no weight", 0, p->terms->affinity[0].weight);
    expect_int("preferred", 1, (int64_t)p->terms->preferred_len);
    expect_int("weight", 100, p->terms->preferred[0].weight);
    expect_str("key", "c", p->terms->preferred[0].topology_key);
    expect_int("required against", 1, (int64_t)p->terms->anti_affinity_len);
    expect_int("preferred against", 2, (int64_t)p->terms->preferred_anti_len);
    expect_int("weight", 2, p->terms->preferred_anti[1].weight);
    pod_free(p);
    static const char *const none[] = {
        POD("'affinity':{'nodeAffinity':{}}"),
        POD("'affinity':null"),
        POD("'affinity':{'podAffinity':{},'podAntiAffinity':null}"),
        REQUIRED("podAffinity", ""),
        POD("'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':'a'}]}},'affinity':{}"),
    };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        p = decode_kit_pod(none[i]);
        expect_true(none[i], p->terms == NULL);
        pod_free(p);
    }
    expect_done();
}

static void test_spread(void **state)
{
    (void)state;
    static const struct {
        const char *row, *rest, *says;
    } rows[] = {
        {"defaults", ",'labelSelector':{}",
         "\"zone\" skew 1 domains 1 hard affinity honored taints ignored of {}"},
        {"no selector", "",
         "\"zone\" skew 1 domains 1 hard affinity honored taints ignored of {<nothing>}"},
        {"everything said",
         ",'minDomains':3,'nodeAffinityPolicy':'Ignore','nodeTaintsPolicy':'Honor','labelSelector':"
         "{'matchLabels':{'app':'web'}}",
         "\"zone\" skew 1 domains 3 hard affinity ignored taints honored of {app in (web)}"},
        {"matchLabelKeys", ",'labelSelector':{},'matchLabelKeys':['hash','other']",
         "\"zone\" skew 1 domains 1 hard affinity honored taints ignored of {hash in (h1)}"},
        {"matchLabelKeys without a selector", ",'matchLabelKeys':['hash']",
         "\"zone\" skew 1 domains 1 hard affinity honored taints ignored of {<nothing>}"},
        {"merged already: once",
         ",'labelSelector':{'matchExpressions':[{'key':'hash','operator':'In','values':['h1']}]},"
         "'matchLabelKeys':['hash']",
         "\"zone\" skew 1 domains 1 hard affinity honored taints ignored of {hash in (h1)}"},
        {"merged, and the label changed since: kube-scheduler asks for both",
         ",'labelSelector':{'matchExpressions':[{'key':'hash','operator':'In','values':['h0']}]},"
         "'matchLabelKeys':['hash']",
         "\"zone\" skew 1 domains 1 hard affinity honored taints ignored of {hash in (h0),hash in (h1)}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO_STRBUF text = {0}, said = {0};
        strbuf_addf(&text, SPREAD("%s"), rows[i].rest);
        struct pod *p = decode_kit_pod(strbuf_str(&text));
        expect_int(rows[i].row, 1, (int64_t)p->spread_len);
        spread_print(&p->spread[0], &said);
        expect_str(rows[i].row, rows[i].says, strbuf_str(&said));
        pod_free(p);
    }
    struct pod *p = decode_kit_pod(POD(
        "'topologySpreadConstraints':[{'maxSkew':2,'topologyKey':'a','whenUnsatisfiable':'ScheduleAnyway'},"
        "{'maxSkew':3,'topologyKey':'b','whenUnsatisfiable':'OfTomorrow'}]"));
    expect_int("two of them", 2, (int64_t)p->spread_len);
    expect_true("soft", !p->spread[0].hard);
    expect_true("a word that we do not know is read as the narrower one", p->spread[1].hard);
    expect_int("skew", 3, p->spread[1].max_skew);
    pod_free(p);
    expect_done();
}

#define R "requiredDuringSchedulingIgnoredDuringExecution"
static void test_bad(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says; /* NULL: accepted */
    } rows[] = {
        {POD("'affinity':{'podAffinity':3}"),
         "spec.affinity: podAffinity: must be an object, not number"},
        {POD("'affinity':{'podAntiAffinity':{'" R "':{}}}"),
         "spec.affinity.podAntiAffinity: " R ": must be a list, not object"},
        {REQUIRED("podAffinity", "3"),
         "spec.affinity.podAffinity: " R "[0]: must be an object, not number"},
        {REQUIRED("podAffinity", "{}"),
         "spec.affinity.podAffinity: " R "[0]: topologyKey: missing"},
        {REQUIRED("podAffinity", "{'topologyKey':'a'},{'topologyKey':3}"),
         "spec.affinity.podAffinity: " R
         "[1]: topologyKey: must be a string without NUL, not number"},
        {REQUIRED("podAffinity", "{'topologyKey':'a','namespaces':[3]}"),
         "spec.affinity.podAffinity: " R
         "[0]: namespaces[0]: must be a string without NUL, not number"},
        {REQUIRED("podAffinity", "{'topologyKey':'a','matchLabelKeys':{}}"),
         "spec.affinity.podAffinity: " R "[0]: matchLabelKeys: must be a list, not object"},
        {REQUIRED("podAffinity", "{'topologyKey':'a','mismatchLabelKeys':[null]}"),
         "spec.affinity.podAffinity: " R
         "[0]: mismatchLabelKeys[0]: must be a string without NUL, not null"},
        {REQUIRED(
             "podAffinity",
             "{'topologyKey':'a','labelSelector':{'matchExpressions':[{'key':'k','operator':'in'}]}}"),
         "spec.affinity.podAffinity: " R
         "[0]: labelSelector: matchExpressions[0].operator: unknown operator 'in'"},
        {REQUIRED("podAffinity", "{'topologyKey':'a','namespaceSelector':[]}"),
         "spec.affinity.podAffinity: " R "[0]: namespaceSelector: must be an object, not array"},
        {PREFERRED("podAffinity", "{'weight':101,'podAffinityTerm':{'topologyKey':'a'}}"), NULL},
        {PREFERRED("podAffinity", "{'weight':100,'podAffinityTerm':{'topologyKey':'a'}}"), NULL},
        {PREFERRED("podAffinity", "{'weight':1}"),
         "spec.affinity.podAffinity: preferredDuringSchedulingIgnoredDuringExecution[0]: "
         "must be an object, not nothing"},
        {POD("'topologySpreadConstraints':{}"),
         "spec.topologySpreadConstraints: must be a list, not object"},
        {POD("'topologySpreadConstraints':null"), NULL},
        {POD("'topologySpreadConstraints':[3]"),
         "spec.topologySpreadConstraints[0]: must be an object, not number"},
        {POD("'topologySpreadConstraints':[{'topologyKey':'a'}]"),
         "spec.topologySpreadConstraints[0]: maxSkew: missing"},
        {POD("'topologySpreadConstraints':[{'maxSkew':0,'topologyKey':'a'}]"),
         "spec.topologySpreadConstraints[0]: maxSkew: must be between 1 and 2147483647: 0"},
        {POD("'topologySpreadConstraints':[{'maxSkew':1}]"),
         "spec.topologySpreadConstraints[0]: topologyKey: missing"},
        {SPREAD(",'minDomains':0"),
         "spec.topologySpreadConstraints[0]: minDomains: must be between 1 and 2147483647: 0"},
        {SPREAD(",'minDomains':1"), NULL},
        {SPREAD(",'labelSelector':3"),
         "spec.topologySpreadConstraints[0]: labelSelector: must be an object, not number"},
        {SPREAD(",'matchLabelKeys':3"),
         "spec.topologySpreadConstraints[0]: matchLabelKeys: must be a list, not number"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        decode_kit_pod_row(rows[i].text, rows[i].says);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_terms),
        cmocka_unit_test(test_sides),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_bad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
