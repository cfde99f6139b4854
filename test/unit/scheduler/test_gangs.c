// SPDX-License-Identifier: Apache-2.0
#include "scheduler/gangs.h"

#include "lib/model/names.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/fixture.h"

static struct cluster c;
static struct arena scratch;
static int told, vanished;

static void gang_changed(void *arg, struct gang *g)
{
    (void)arg;
    (void)g;
    told++;
}

static void gang_vanishing(void *arg, struct gang *g)
{
    (void)arg;
    (void)g;
    vanished++;
}

static const struct cluster_hooks hooks = {gang_changed, gang_vanishing, NULL};

static int setup(void **state)
{
    (void)state;
    cluster_init(&c, NAME_SCHEDULER);
    arena_init(&scratch, 0);
    told = vanished = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cluster_deinit(&c);
    arena_deinit(&scratch);
    return 0;
}

#define PUT(...) cluster_put_pod(&c, fixture_make_pod(&(struct fixture_pod){__VA_ARGS__}), &hooks)
#define BARE(name) PAIRS(NAME_LABEL_GANG_BARE, name)
#define SIZED(name, min) PAIRS(NAME_LABEL_GANG_NAME, name, NAME_LABEL_GANG_MIN, min)

/* "ok", or why the gang cannot be tried. */
static const char *verdict(const char *key)
{
    const struct gang *g = map_get(&c.gangs, key);
    const char *why = "ok";
    if (g == NULL)
        return "no such gang";
    return gangs_has_quorum(&c, g, &scratch, &why) ? "ok" : why;
}

static void a_lone_pod_is_a_gang_of_one(void **state)
{
    (void)state;
    (void)PUT(.name = "p", .priority = 7);
    const struct gang *g = map_get(&c.gangs, "pod d/p");
    assert_non_null(g);
    expect_true("it is alone", gangs_is_lone(g));
    expect_int("and enough", 1, g->min_available);
    expect_int("its priority", 7, g->priority);
    expect_str("it may go", "ok", verdict("pod d/p"));
    expect_int("the queue was told", 1, told);
    (void)PUT(.name = "other", .scheduler = "default-scheduler");
    expect_int("a pod of another scheduler is in no gang", 1, (int64_t)map_count(&c.gangs));
    (void)cluster_remove_pod(&c, "d/p", NULL, &hooks);
    expect_int("the queue is told of its end", 1, vanished);
    expect_int("none is left", 0, (int64_t)map_count(&c.gangs));
    expect_done();
}

static void a_form_that_is_not_legal_waits_with_its_reason(void **state)
{
    (void)state;
    (void)PUT(.name = "p", .labels = SIZED("g", "0"));
    expect_str("the label is named",
               "label pod-group.scheduling.sigs.k8s.io/min-available: must be between 1 and "
               "100000: '0'",
               verdict("pod d/p"));
    (void)PUT(.name = "p", .labels = SIZED("g", "1"));
    expect_str("put right it joins", "ok", verdict("gang d/g"));
    expect_str("and is alone no more", "no such gang", verdict("pod d/p"));
    expect_done();
}

static void pods_must_exist(void **state)
{
    (void)state;
    (void)PUT(.name = "a", .labels = SIZED("g", "3"));
    expect_str("one", "gang d/g: 1 of 3 pods exists", verdict("gang d/g"));
    (void)PUT(.name = "b", .labels = SIZED("g", "3"));
    expect_str("two", "gang d/g: 2 of 3 pods exist", verdict("gang d/g"));
    (void)PUT(.name = "c", .labels = SIZED("g", "3"), .gated = true);
    expect_str("a gated one does not count", "gang d/g: 2 of 3 pods exist", verdict("gang d/g"));
    told = 0;
    (void)PUT(.name = "c", .labels = SIZED("g", "3"));
    expect_str("three", "ok", verdict("gang d/g"));
    expect_int("the queue is told when the gate opens", 1, told);
    (void)PUT(.name = "b", .labels = SIZED("g", "3"), .terminating = true);
    expect_str("a terminating one does not count", "gang d/g: 2 of 3 pods exist",
               verdict("gang d/g"));
    (void)PUT(.name = "d", .labels = SIZED("g", "3"), .node = "n1", .phase = "Running");
    expect_str("a running one does", "ok", verdict("gang d/g"));
    (void)PUT(.name = "d", .labels = SIZED("g", "3"), .node = "n1", .phase = "Failed");
    expect_str("a failed one does not", "gang d/g: 2 of 3 pods exist", verdict("gang d/g"));
    expect_done();
}

static void a_member_that_succeeded_counts_and_holds_nothing(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n1"));
    (void)PUT(.name = "a", .labels = SIZED("g", "2"), .node = "n1", .c = {{.cpu_milli = 500}});
    expect_true("its room comes free", PUT(.name = "a", .labels = SIZED("g", "2"), .node = "n1",
                                           .phase = "Succeeded", .c = {{.cpu_milli = 500}}) &
                                           EVENT_POD_GONE);
    expect_int("all of it", 0, cluster_find_node(&c, "n1")->used.cpu_milli);
    (void)PUT(.name = "b", .labels = SIZED("g", "2"));
    expect_str("with another one it is enough", "ok", verdict("gang d/g"));
    expect_int("it counts as placed", 1, gangs_count_placed(map_get(&c.gangs, "gang d/g")));
    (void)PUT(.name = "x", .labels = SIZED("g", "2"), .node = "n1", .phase = "Succeeded");
    expect_int("also when it is first seen like this", 2,
               gangs_count_placed(map_get(&c.gangs, "gang d/g")));
    (void)cluster_remove_pod(&c, "d/a", NULL, &hooks);
    (void)cluster_remove_pod(&c, "d/x", NULL, &hooks);
    expect_str("deleted it counts no more", "gang d/g: 1 of 2 pods exists", verdict("gang d/g"));
    expect_done();
}

static void the_pod_group_says_the_size(void **state)
{
    (void)state;
    (void)PUT(.name = "a", .labels = BARE("g"));
    expect_str("not there", "PodGroup d/g does not exist", verdict("gang d/g"));
    told = 0;
    expect_int("it comes", EVENT_GANG,
               cluster_put_pod_group(&c, fixture_make_group("g", 2, true), &hooks));
    expect_int("the queue is told", 1, told);
    struct pod_group *same = fixture_make_group("g", 2, true);
    same->phase = "Pending";
    expect_int("a status, as we write it", 0, cluster_put_pod_group(&c, same, &hooks));
    expect_int("is nothing to try again for", 1, told);
    expect_str("its size holds", "gang d/g: 1 of 2 pods exists", verdict("gang d/g"));
    (void)cluster_put_pod_group(&c, fixture_make_group("g", 1, false), &hooks);
    expect_str("the sigs group wins", "ok", verdict("gang d/g"));
    (void)cluster_put_pod_group(&c, fixture_make_group("g", 4, true), &hooks);
    expect_str("whatever comes to the other", "ok", verdict("gang d/g"));
    expect_int("a group of another name", 0,
               cluster_put_pod_group(&c, fixture_make_group("h", 4, true), &hooks));
    (void)cluster_remove_pod_group(&c, "d/g", false, &hooks);
    expect_str("when it goes the other holds again", "gang d/g: 1 of 4 pods exists",
               verdict("gang d/g"));
    expect_int("gone twice", 0, cluster_remove_pod_group(&c, "d/g", false, &hooks));
    (void)cluster_remove_pod_group(&c, "d/g", true, &hooks);
    expect_str("both gone", "PodGroup d/g does not exist", verdict("gang d/g"));
    (void)cluster_put_pod_group(&c, fixture_make_group("g", 0, false), &hooks);
    expect_str("a size of 0 is 1", "ok", verdict("gang d/g"));
    expect_done();
}

static void members_must_agree(void **state)
{
    (void)state;
    (void)PUT(.name = "a", .labels = SIZED("g", "3"));
    (void)PUT(.name = "b", .labels = SIZED("g", "2"));
    expect_str("they do not",
               "members of gang d/g disagree on its size: 3 (" NAME_LABEL_GANG_MIN
               " of pod a) and 2 (" NAME_LABEL_GANG_MIN " of pod b)",
               verdict("gang d/g"));
    (void)PUT(.name = "a", .labels = SIZED("g", "3"), .terminating = true);
    expect_str("one that is leaving has no say", "gang d/g: 1 of 2 pods exists",
               verdict("gang d/g"));
    (void)cluster_put_pod_group(&c, fixture_make_group("g", 9, POD_GROUP_SIGS), &hooks);
    expect_str("a PodGroup of that name does not matter to them", "gang d/g: 1 of 2 pods exists",
               verdict("gang d/g"));
    expect_done();
}

static void members_of_several_forms_are_one_gang(void **state)
{
    (void)state;
    (void)PUT(.name = "a", .labels = SIZED("g", "4"));
    (void)PUT(.name = "b",
              .annotations = PAIRS(NAME_ANN_GANG_KOORD_NAME, "g", NAME_ANN_GANG_KOORD_MIN, "4"));
    (void)PUT(.name = "c", .labels = BARE("g"));
    expect_str("a form that names a PodGroup needs none when others say the number",
               "gang d/g: 3 of 4 pods exist", verdict("gang d/g"));
    (void)PUT(.name = "d", .labels = PAIRS(NAME_LABEL_GANG_X, "g"));
    expect_str("all together", "ok", verdict("gang d/g"));
    (void)cluster_put_pod_group(&c, fixture_make_group("g", 4, POD_GROUP_X), &hooks);
    expect_str("with a PodGroup that agrees", "ok", verdict("gang d/g"));
    (void)cluster_put_pod_group(&c, fixture_make_group("g", 3, POD_GROUP_SIGS), &hooks);
    expect_str("one that does not agree is named",
               "members of gang d/g disagree on its size: 4 (" NAME_LABEL_GANG_MIN
               " of pod a) and 3 (PodGroup d/g)",
               verdict("gang d/g"));
    (void)cluster_remove_pod_group(&c, "d/g", POD_GROUP_SIGS, &hooks);
    (void)PUT(.name = "e",
              .annotations = PAIRS(NAME_ANN_GANG_KOORD_NAME, "g", NAME_ANN_GANG_KOORD_MIN, "5"));
    expect_str("the largest and the smallest, each with the first that says so",
               "members of gang d/g disagree on its size: 5 (" NAME_ANN_GANG_KOORD_MIN
               " of pod e) and 4 (PodGroup d/g)",
               verdict("gang d/g"));
    expect_done();
}

static void a_pod_with_two_forms_has_both_numbers(void **state)
{
    (void)state;
    (void)PUT(.name = "a", .labels = PAIRS(NAME_LABEL_GANG_NAME, "g", NAME_LABEL_GANG_MIN, "2",
                                           NAME_LABEL_GANG_BARE, "g"));
    (void)PUT(.name = "b", .labels = SIZED("g", "2"));
    expect_str("its PodGroup need not exist", "ok", verdict("gang d/g"));
    (void)cluster_put_pod_group(&c, fixture_make_group("g", 1, POD_GROUP_SIGS), &hooks);
    expect_str("but must agree where it does",
               "members of gang d/g disagree on its size: 2 (" NAME_LABEL_GANG_MIN
               " of pod a) and 1 (PodGroup d/g)",
               verdict("gang d/g"));
    (void)PUT(.name = "a", .labels = PAIRS(NAME_LABEL_GANG_NAME, "g", NAME_LABEL_GANG_MIN, "2",
                                           NAME_LABEL_GANG_X, "h"));
    expect_str("two names on one pod",
               NAME_LABEL_GANG_NAME " names gang 'g', " NAME_LABEL_GANG_X " names 'h'",
               verdict("pod d/a"));
    expect_done();
}

static void kubernetes_own_form(void **state)
{
    (void)state;
#define NATIVE "\"schedulingGroup\":{\"podGroupName\":\"g\"}"
    (void)PUT(.name = "a", .spec = NATIVE);
    (void)PUT(.name = "b", .spec = NATIVE);
    expect_str("its PodGroup is not there", "PodGroup d/g does not exist", verdict("gang d/g"));
    (void)cluster_put_pod_group(&c, fixture_make_group("g", 1, POD_GROUP_SIGS), &hooks);
    expect_str("one of another API group is not it", "PodGroup d/g does not exist",
               verdict("gang d/g"));
    (void)cluster_put_pod_group(&c, fixture_make_group("g", 3, POD_GROUP_NATIVE), &hooks);
    expect_str("its own is", "gang d/g: 2 of 3 pods exist", verdict("gang d/g"));
    (void)PUT(.name = "c", .spec = NATIVE);
    expect_str("enough", "ok", verdict("gang d/g"));
    (void)PUT(.name = "d", .labels = BARE("g"));
    expect_str("mixed with another form that says another number",
               "members of gang d/g disagree on its size: 3 (PodGroup d/g) and 1 (PodGroup d/g)",
               verdict("gang d/g"));
    (void)cluster_remove_pod_group(&c, "d/g", POD_GROUP_SIGS, &hooks);
    expect_str("or none", "ok", verdict("gang d/g"));
    (void)cluster_remove_pod_group(&c, "d/g", POD_GROUP_NATIVE, &hooks);
    expect_str("gone", "PodGroup d/g does not exist", verdict("gang d/g"));
    expect_done();
}

static void members_have_one_priority_and_one_compute_class(void **state)
{
    (void)state;
#define CLASS(class) \
    PAIRS(NAME_LABEL_GANG_NAME, "g", NAME_LABEL_GANG_MIN, "2", NAME_LABEL_COMPUTE_CLASS, class)
    (void)PUT(.name = "b", .labels = SIZED("g", "2"), .priority = 5);
    (void)PUT(.name = "a", .labels = SIZED("g", "2"), .priority = 10);
    (void)PUT(.name = "c", .labels = SIZED("g", "2"), .priority = 5);
    expect_str("priorities",
               "members of gang d/g have different priorities: 10 (pod a) and 5 (pod b)",
               verdict("gang d/g"));
    (void)PUT(.name = "a", .labels = SIZED("g", "2"), .priority = 10, .terminating = true);
    expect_str("one that is leaving does not matter", "ok", verdict("gang d/g"));
    (void)PUT(.name = "b", .labels = CLASS("gpu"), .priority = 5);
    expect_str("a class on some of them", "ok", verdict("gang d/g"));
    (void)PUT(.name = "c", .labels = CLASS("gpu-hpn"), .priority = 5);
    expect_str("classes",
               "members of gang d/g have different " NAME_LABEL_COMPUTE_CLASS
               ": gpu-hpn (pod c) and gpu (pod b)",
               verdict("gang d/g"));
    (void)PUT(.name = "c", .labels = CLASS("gpu"), .priority = 5);
    expect_str("one class", "ok", verdict("gang d/g"));
    (void)PUT(.name = "c", .labels = CLASS(""), .priority = 5);
    expect_str("an empty one is none", "ok", verdict("gang d/g"));
    expect_done();
}

/* ---- match-policy ---------------------------------------------------------------------------- */

static int32_t missing(const char *key)
{
    const struct gang *g = map_get(&c.gangs, key);
    return g != NULL ? gangs_count_missing(g) : -1;
}

#define MATCH(policy) PAIRS(NAME_ANN_GANG_MATCH, policy)
#define MEMBER(name_, policy, ...) \
    PUT(.name = name_, .labels = SIZED("g", "2"), .annotations = MATCH(policy), __VA_ARGS__)

static void once_satisfied_needs_no_quorum_again(void **state)
{
    (void)state;
    (void)PUT(.name = "a", .labels = SIZED("g", "2"), .node = "n1");
    (void)PUT(.name = "b", .labels = SIZED("g", "2"));
    expect_int("one is bound, as after a crash: the other is still missing", 1,
               missing("gang d/g"));
    expect_true("and nothing is recorded", gangs_take_unrecorded(&c) == NULL);
    (void)PUT(.name = "b", .labels = SIZED("g", "2"), .node = "n1");
    struct cluster_pod *cp = gangs_take_unrecorded(&c);
    assert_non_null(cp);
    expect_str("both are bound: one is to say so", "a", cp->pod->name);
    expect_str("with the name", "g", cp->said.name);
    expect_true("one is enough", gangs_take_unrecorded(&c) == NULL);
    (void)cluster_remove_pod(&c, "d/b", NULL, &hooks);
    (void)PUT(.name = "b2", .labels = SIZED("g", "2"));
    (void)PUT(.name = "c", .labels = SIZED("g", "2"));
    expect_int("what comes later goes alone", 0, missing("gang d/g"));
    expect_str("its Binding says so", "g", gangs_record_of(cluster_find_pod(&c, "d/b2")));
    (void)PUT(.name = "a", .labels = SIZED("g", "2"), .node = "n1", .phase = "Succeeded");
    (void)cluster_remove_pod(&c, "d/c", NULL, &hooks);
    expect_str("also when one has succeeded", "ok", verdict("gang d/g"));
    (void)PUT(.name = "a", .labels = SIZED("g", "2"), .node = "n1", .terminating = true);
    expect_str("a gang made again while the old one goes finds its own quorum",
               "gang d/g: 1 of 2 pods exists", verdict("gang d/g"));
    expect_int("together", 2, missing("gang d/g"));
    expect_str("nothing to be said in the Binding", NULL,
               gangs_record_of(cluster_find_pod(&c, "d/b2")));
    expect_done();
}

static void satisfied_is_known_after_a_restart(void **state)
{
    (void)state;
    const char *const *says = PAIRS(NAME_ANN_GANG_SATISFIED, "g");
    (void)PUT(.name = "b", .labels = SIZED("g", "3"));
    (void)PUT(.name = "a", .labels = SIZED("g", "3"), .annotations = says);
    expect_str("a pod without a node says nothing: result keys are never input",
               "gang d/g: 2 of 3 pods exist", verdict("gang d/g"));
    (void)PUT(.name = "a", .labels = SIZED("g", "3"), .node = "n1",
              .annotations = PAIRS(NAME_ANN_GANG_SATISFIED, "h"));
    expect_int("nor one that was in another gang", 2, missing("gang d/g"));
    (void)PUT(.name = "a", .labels = SIZED("g", "3"), .node = "n1", .annotations = says);
    expect_str("a bound one says it", "ok", verdict("gang d/g"));
    expect_int("one by one", 0, missing("gang d/g"));
    expect_true("nothing more is to be written", gangs_take_unrecorded(&c) == NULL);
    (void)PUT(.name = "b", .labels = SIZED("h", "1"));
    (void)PUT(.name = "a", .labels = SIZED("h", "3"), .node = "n1", .annotations = says);
    expect_true("in another gang it does not",
                !((struct gang *)map_get(&c.gangs, "gang d/h"))->satisfied);
    expect_done();
}

static void waiting_and_running_always_needs_its_quorum(void **state)
{
    (void)state;
    (void)MEMBER("a", "waiting-and-running", .node = "n1");
    (void)MEMBER("b", "waiting-and-running", .node = "n1");
    expect_int("it has it", 0, missing("gang d/g"));
    expect_true("nothing is recorded", gangs_take_unrecorded(&c) == NULL);
    (void)cluster_remove_pod(&c, "d/a", NULL, &hooks);
    (void)cluster_remove_pod(&c, "d/b", NULL, &hooks);
    (void)MEMBER("c", "waiting-and-running", .node = "n1");
    (void)MEMBER("d", "waiting-and-running", .node = NULL);
    expect_int("those that wait and those that are placed count", 1, missing("gang d/g"));
    expect_str("together they are enough", "ok", verdict("gang d/g"));
    (void)cluster_remove_pod(&c, "d/c", NULL, &hooks);
    expect_str("alone it is not", "gang d/g: 1 of 2 pods exists", verdict("gang d/g"));
    expect_done();
}

static void only_waiting_counts_each_burst_for_itself(void **state)
{
    (void)state;
    (void)MEMBER("a", "only-waiting", .node = "n1");
    (void)MEMBER("b", "only-waiting", .node = NULL);
    expect_int("a burst that was cut is finished", 1, missing("gang d/g"));
    expect_str("it may go", "ok", verdict("gang d/g"));
    (void)MEMBER("b", "only-waiting", .node = "n1");
    int written = 0;
    while (gangs_take_unrecorded(&c) != NULL)
        written++;
    expect_int("each member is to say so", 2, written);
    (void)MEMBER("c", "only-waiting", .node = NULL);
    expect_str("those that run do not count",
               "gang d/g: 1 of 2 pods exists beside those that had their quorum (match-policy "
               "only-waiting)",
               verdict("gang d/g"));
    (void)MEMBER("d", "only-waiting", .node = NULL);
    expect_str("another quorum", "ok", verdict("gang d/g"));
    expect_int("together", 2, missing("gang d/g"));
    expect_str("nothing in the Binding: the burst is not complete", NULL,
               gangs_record_of(cluster_find_pod(&c, "d/d")));
    expect_done();
}

static void members_agree_on_match_policy(void **state)
{
    (void)state;
    (void)MEMBER("a", "only-waiting", .node = NULL);
    (void)PUT(.name = "b", .labels = SIZED("g", "2"));
    expect_str("one that says nothing agrees", "ok", verdict("gang d/g"));
    (void)MEMBER("c", "once-satisfied", .node = NULL);
    expect_str("they do not",
               "members of gang d/g disagree on match-policy: only-waiting (pod a) and "
               "once-satisfied (pod c)",
               verdict("gang d/g"));
    (void)cluster_remove_pod(&c, "d/c", NULL, &hooks);
    (void)cluster_put_pod_group(
        &c, fixture_make_group_with("g", 2, POD_GROUP_SIGS, MATCH("waiting-and-running")), &hooks);
    expect_str("nor does the PodGroup",
               "members of gang d/g disagree on match-policy: only-waiting (pod a) and "
               "waiting-and-running (PodGroup d/g)",
               verdict("gang d/g"));
    (void)cluster_put_pod_group(
        &c, fixture_make_group_with("g", 2, POD_GROUP_SIGS, MATCH("sometimes")), &hooks);
    expect_str("which cannot be read",
               "PodGroup d/g: annotation " NAME_ANN_GANG_MATCH
               ": must be once-satisfied, waiting-and-running or only-waiting: 'sometimes'",
               verdict("gang d/g"));
    expect_done();
}

/* ---- gangs as one ---------------------------------------------------------------------------- */

#define LIST(text) PAIRS(NAME_ANN_GANG_GROUPS, text)
#define IN(gang_, name_, list) \
    PUT(.name = name_, .labels = SIZED(gang_, "1"), .annotations = LIST(list))
#define BOTH "[\"d/a\",\"d/b\"]"
#define BOTH_TURNED "[ \"d/b\", \"d/a\" ]"

static const char *bundle(const char *key)
{
    struct gang **list;
    struct strbuf b = {0};
    size_t n = gangs_bundle(&c, map_get(&c.gangs, key), &scratch, &list);
    for (size_t i = 0; i < n; i++)
        strbuf_addf(&b, "%s%s", i > 0 ? ", " : "", list[i]->key);
    const char *text = arena_strdup(&scratch, strbuf_str(&b));
    strbuf_deinit(&b);
    return text;
}

static void gangs_that_name_the_same_list_go_as_one(void **state)
{
    (void)state;
    (void)PUT(.name = "x", .labels = SIZED("x", "1"));
    expect_str("a gang without a list goes alone", "gang d/x", bundle("gang d/x"));
    (void)IN("b", "b0", BOTH);
    expect_str("the other one is not there",
               "gang d/b goes only together with gang d/a, which does not exist yet",
               verdict("gang d/b"));
    told = 0;
    (void)PUT(.name = "a0", .labels = SIZED("a", "2"), .annotations = LIST(BOTH_TURNED));
    expect_int("it comes: both are told", 2, told);
    expect_str("but lacks a pod", "gang d/a: 1 of 2 pods exists", verdict("gang d/a"));
    expect_str("so the first waits",
               "gang d/b goes only together with gang d/a, which is not ready itself",
               verdict("gang d/b"));
    told = 0;
    (void)PUT(.name = "a1", .labels = SIZED("a", "2"), .annotations = LIST(BOTH));
    expect_int("both are told again", 2, told);
    expect_str("the list holds in any order", "ok", verdict("gang d/a"));
    expect_str("for both", "ok", verdict("gang d/b"));
    expect_str("sorted", "gang d/a, gang d/b", bundle("gang d/b"));
    expect_str("from either side", "gang d/a, gang d/b", bundle("gang d/a"));
    told = 0;
    (void)PUT(.name = "a2", .labels = SIZED("a", "2"), .annotations = LIST(BOTH));
    expect_int("one more pod is no news to the other", 1, told);
    told = 0;
    (void)cluster_remove_pod(&c, "d/b0", NULL, &hooks);
    expect_int("its end is", 1, told);
    expect_str("it is waited for again",
               "gang d/a goes only together with gang d/b, which does not exist yet",
               verdict("gang d/a"));
    expect_done();
}

static void a_list_holds_only_when_every_gang_names_it(void **state)
{
    (void)state;
    (void)IN("a", "a0", BOTH);
    (void)PUT(.name = "b0", .labels = SIZED("b", "1"));
    expect_str("the other names none",
               "gang d/a goes only together with gang d/b, which names no list of gangs",
               verdict("gang d/a"));
    expect_str("and is not tied to it", "ok", verdict("gang d/b"));
    expect_str("it goes alone", "gang d/b", bundle("gang d/b"));
    told = 0;
    (void)IN("b", "b0", "[\"d/b\"]");
    expect_int("its list changes: both are told", 2, told);
    expect_str("it names another list",
               "gang d/a names the gangs [\"d/a\",\"d/b\"], gang d/b names [\"d/b\"]",
               verdict("gang d/a"));
    expect_str("its own holds", "ok", verdict("gang d/b"));
    (void)IN("b", "b0", "[\"d/a\",\"d/b\",\"e/c\"]");
    expect_str("a longer one",
               "gang d/a names the gangs [\"d/a\",\"d/b\"], gang d/b names "
               "[\"d/a\",\"d/b\",\"e/c\"]",
               verdict("gang d/a"));
    expect_str("seen from there",
               "gang d/b names the gangs [\"d/a\",\"d/b\",\"e/c\"], gang d/a names "
               "[\"d/a\",\"d/b\"]",
               verdict("gang d/b"));
    (void)IN("b", "b0", BOTH);
    expect_str("the same", "ok", verdict("gang d/a"));
    (void)PUT(.name = "b1", .labels = SIZED("b", "1"));
    expect_str("all members must say it",
               "members of gang d/b name different lists of gangs: [\"d/a\",\"d/b\"] (pod b0) and "
               "none (pod b1)",
               verdict("gang d/b"));
    expect_str("or it does not hold for the other",
               "gang d/a names the gangs [\"d/a\",\"d/b\"], gang d/b names [\"d/a\",\"d/b\"], on "
               "which its members do not agree",
               verdict("gang d/a"));
    (void)IN("b", "b1", "[\"d/b\"]");
    expect_str("and the same",
               "members of gang d/b name different lists of gangs: [\"d/a\",\"d/b\"] (pod b0) and "
               "[\"d/b\"] (pod b1)",
               verdict("gang d/b"));
    (void)cluster_remove_pod(&c, "d/b1", NULL, &hooks);
    expect_str("well again", "ok", verdict("gang d/a"));
    (void)IN("a", "a0", "[\"d/b\"]");
    expect_str("a list without the gang itself",
               "annotation " NAME_ANN_GANG_GROUPS ": does not name d/a, whose list it is",
               verdict("pod d/a0"));
    expect_done();
}

static void the_pod_group_may_name_the_list(void **state)
{
    (void)state;
    (void)PUT(.name = "a0", .labels = BARE("a"));
    (void)IN("b", "b0", BOTH);
    (void)cluster_put_pod_group(&c, fixture_make_group_with("a", 1, POD_GROUP_X, LIST("[\"d/b\"]")),
                                &hooks);
    expect_str("not its own name",
               "PodGroup d/a: annotation " NAME_ANN_GANG_GROUPS
               ": does not name d/a, whose list it is",
               verdict("gang d/a"));
    (void)cluster_put_pod_group(&c, fixture_make_group_with("a", 1, POD_GROUP_X, LIST("{")),
                                &hooks);
    expect_str("not a list",
               "PodGroup d/a: annotation " NAME_ANN_GANG_GROUPS
               ": must be a JSON list of gangs such as [\"ns/a\",\"ns/b\"]: '{'",
               verdict("gang d/a"));
    told = 0;
    (void)cluster_put_pod_group(&c, fixture_make_group_with("a", 1, POD_GROUP_X, LIST(BOTH)),
                                &hooks);
    expect_int("both are told", 2, told);
    expect_str("it speaks for its members", "ok", verdict("gang d/a"));
    expect_str("and holds", "gang d/a, gang d/b", bundle("gang d/b"));
    (void)PUT(.name = "a1", .labels = BARE("a"), .annotations = LIST("[\"d/a\"]"));
    expect_str("a member that says another one",
               "members of gang d/a name different lists of gangs: [\"d/a\",\"d/b\"] (its "
               "PodGroup) and [\"d/a\"] (pod a1)",
               verdict("gang d/a"));
    expect_done();
}

static void a_satisfied_gang_waits_for_no_other(void **state)
{
    (void)state;
    (void)IN("b", "b0", BOTH);
    (void)IN("a", "a0", BOTH);
    (void)PUT(.name = "a0", .labels = SIZED("a", "1"), .annotations = LIST(BOTH), .node = "n1");
    (void)PUT(.name = "b0", .labels = SIZED("b", "1"), .annotations = LIST(BOTH), .node = "n1");
    (void)cluster_remove_pod(&c, "d/b0", NULL, &hooks);
    (void)IN("a", "a1", BOTH);
    expect_str("though the other one has gone", "ok", verdict("gang d/a"));
    expect_str("it goes alone", "gang d/a", bundle("gang d/a"));
    expect_done();
}

static void what_makes_a_waiting_pod_try_again(void **state)
{
    (void)state;
    const struct {
        const char *row;
        struct fixture_pod pod;
        int told;
    } rows[] = {
        {"nothing", {.name = "p"}, 0},
        {"a label", {.name = "p", .labels = PAIRS("a", "b")}, 1},
        {"an annotation", {.name = "p", .annotations = PAIRS(NAME_ANN_BURST, "eci")}, 1},
        {"a toleration", {.name = "p", .spec = "\"tolerations\":[{\"operator\":\"Exists\"}]"}, 1},
        {"a resize", {.name = "p", .c = {{.cpu_milli = 5}}}, 1},
        {"a priority", {.name = "p", .priority = 5}, 1},
        {"a gate that closes", {.name = "p", .gated = true}, 0},
        {"its end", {.name = "p", .terminating = true}, 0},
        {"a node", {.name = "p", .node = "n1"}, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)PUT(.name = "p");
        told = 0;
        (void)cluster_put_pod(&c, fixture_make_pod(&rows[i].pod), &hooks);
        expect_int(rows[i].row, rows[i].told, told);
        (void)cluster_remove_pod(&c, "d/p", NULL, &hooks);
    }
    expect_done();
}

static void a_pod_moves_between_gangs_and_schedulers(void **state)
{
    (void)state;
    (void)PUT(.name = "a", .labels = SIZED("g", "1"));
    (void)PUT(.name = "b", .labels = SIZED("g", "1"));
    (void)PUT(.name = "a", .labels = SIZED("h", "1"));
    expect_str("the new one", "ok", verdict("gang d/h"));
    expect_int("the old one has the rest", 1,
               (int64_t)((struct gang *)map_get(&c.gangs, "gang d/g"))->members.len);
    (void)PUT(.name = "a", .scheduler = "default-scheduler");
    expect_str("not ours any more: its gang goes", "no such gang", verdict("gang d/h"));
    expect_true("the pod stays", cluster_find_pod(&c, "d/a")->gang == NULL);
    (void)PUT(.name = "a");
    expect_str("ours again", "ok", verdict("pod d/a"));
    expect_done();
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_lone_pod_is_a_gang_of_one),
        T(a_form_that_is_not_legal_waits_with_its_reason),
        T(pods_must_exist),
        T(a_member_that_succeeded_counts_and_holds_nothing),
        T(the_pod_group_says_the_size),
        T(members_must_agree),
        T(members_of_several_forms_are_one_gang),
        T(a_pod_with_two_forms_has_both_numbers),
        T(kubernetes_own_form),
        T(members_have_one_priority_and_one_compute_class),
        T(once_satisfied_needs_no_quorum_again),
        T(satisfied_is_known_after_a_restart),
        T(waiting_and_running_always_needs_its_quorum),
        T(only_waiting_counts_each_burst_for_itself),
        T(members_agree_on_match_policy),
        T(gangs_that_name_the_same_list_go_as_one),
        T(a_list_holds_only_when_every_gang_names_it),
        T(the_pod_group_may_name_the_list),
        T(a_satisfied_gang_waits_for_no_other),
        T(what_makes_a_waiting_pod_try_again),
        T(a_pod_moves_between_gangs_and_schedulers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
