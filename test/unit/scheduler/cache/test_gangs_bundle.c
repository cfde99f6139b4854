// SPDX-License-Identifier: Apache-2.0
/*
 * Gangs that name each other in a list and go as one: when the list holds, who is told when one of
 * them changes, and what is said of those that are not ready.
 */
#include "test/unit/scheduler/gangs_kit.h"
#include "scheduler/cache/gangs.h"

#define LIST(text) PAIRS(NAME_ANN_GANG_GROUPS, text)
#define IN(gang_, name_, list) \
    PUT(.name = name_, .labels = MEMBER(gang_, "1"), .annotations = LIST(list))
#define BOTH "[\"d/a\",\"d/b\"]"
#define BOTH_TURNED "[ \"d/b\", \"d/a\" ]"

static const char *bundle(const char *key)
{
    struct gang **list;
    struct strbuf b = {0};
    size_t n = gangs_bundle(&c, map_get(&c.gangs, key), &arena, &list);
    for (size_t i = 0; i < n; i++)
        strbuf_addf(&b, "%s%s", i > 0 ? ", " : "", list[i]->key);
    const char *text = arena_strdup(&arena, strbuf_str(&b));
    strbuf_deinit(&b);
    return text;
}

static void gangs_that_name_the_same_list_go_as_one(void **state)
{
    (void)state;
    (void)PUT(.name = "x", .labels = MEMBER("x", "1"));
    expect_str("a gang without a list goes alone", "gang d/x", bundle("gang d/x"));
    (void)IN("b", "b0", BOTH);
    expect_str("the other one is not there",
               "gang d/b goes only together with gang d/a, which does not exist yet",
               verdict("gang d/b"));
    told = 0;
    (void)PUT(.name = "a0", .labels = MEMBER("a", "2"), .annotations = LIST(BOTH_TURNED));
    expect_int("it comes: both are told", 2, told);
    expect_str("but lacks a pod", "gang d/a: 1 of 2 pods exists", verdict("gang d/a"));
    expect_str("so the first waits",
               "gang d/b goes only together with gang d/a, which is not ready itself",
               verdict("gang d/b"));
    told = 0;
    (void)PUT(.name = "a1", .labels = MEMBER("a", "2"), .annotations = LIST(BOTH));
    expect_int("both are told again", 2, told);
    expect_str("the list holds in any order", "ok", verdict("gang d/a"));
    expect_str("for both", "ok", verdict("gang d/b"));
    expect_str("sorted", "gang d/a, gang d/b", bundle("gang d/b"));
    expect_str("from either side", "gang d/a, gang d/b", bundle("gang d/a"));
    told = 0;
    (void)PUT(.name = "a2", .labels = MEMBER("a", "2"), .annotations = LIST(BOTH));
    expect_int("one more pod is no news to the other", 1, told);
    told = 0;
    (void)cluster_remove_pod(&c, "d/b0", NULL, hooks);
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
    (void)PUT(.name = "b0", .labels = MEMBER("b", "1"));
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
    (void)PUT(.name = "b1", .labels = MEMBER("b", "1"));
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
    (void)cluster_remove_pod(&c, "d/b1", NULL, hooks);
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
    (void)gangs_put_group(&c, fixture_make_group_with("a", 1, POD_GROUP_X, LIST("[\"d/b\"]")),
                          hooks);
    expect_str("not its own name",
               "PodGroup d/a: annotation " NAME_ANN_GANG_GROUPS
               ": does not name d/a, whose list it is",
               verdict("gang d/a"));
    (void)gangs_put_group(&c, fixture_make_group_with("a", 1, POD_GROUP_X, LIST("{")), hooks);
    expect_str("not a list",
               "PodGroup d/a: annotation " NAME_ANN_GANG_GROUPS
               ": must be a JSON list of gangs such as [\"ns/a\",\"ns/b\"]: '{'",
               verdict("gang d/a"));
    told = 0;
    (void)gangs_put_group(&c, fixture_make_group_with("a", 1, POD_GROUP_X, LIST(BOTH)), hooks);
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
    (void)PUT(.name = "a0", .labels = MEMBER("a", "1"), .annotations = LIST(BOTH), .node = "n1");
    (void)PUT(.name = "b0", .labels = MEMBER("b", "1"), .annotations = LIST(BOTH), .node = "n1");
    (void)cluster_remove_pod(&c, "d/b0", NULL, hooks);
    (void)IN("a", "a1", BOTH);
    expect_str("though the other one has gone", "ok", verdict("gang d/a"));
    expect_str("it goes alone", "gang d/a", bundle("gang d/a"));
    expect_done();
}

/* The last pod of b that waits is the one that hindered a, for example because it is not legal. */
static void the_others_are_told_when_nobody_waits_any_more(void **state)
{
    (void)state;
    (void)IN("a", "a0", BOTH);
    (void)PUT(.name = "b0", .labels = MEMBER("b", "1"), .annotations = LIST(BOTH), .node = "n1");
    (void)IN("b", "b1", BOTH);
    told = 0;
    (void)cluster_remove_pod(&c, "d/b1", NULL, hooks);
    expect_int("a is", 1, told);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(gangs_that_name_the_same_list_go_as_one),
        T(a_list_holds_only_when_every_gang_names_it),
        T(the_pod_group_may_name_the_list),
        T(a_satisfied_gang_waits_for_no_other),
        T(the_others_are_told_when_nobody_waits_any_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
