// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/grant/given.h"

#include "test/unit/lib/base/expect.h"

#include "lib/base/str.h"
#include "test/unit/device-plugin/cards.h"

static const char *said(const struct given *g, enum mode_resource r, const char *ids)
{
    const struct given_answer *x = given_answer(g, r, ids);
    return x != NULL ? x->said : "(nothing)";
}

static void answers_by_their_ids(void **state)
{
    (void)state;
    struct given g = {0};
    struct pod *p = cards_pod("a", "c0=gpu-mem:1", "");
    struct match_subject s = {.pod = p};
    given_init(&g);
    expect_str("none", "(nothing)", said(&g, MODE_GPU_MEM, "1"));
    given_answered(&g, MODE_GPU_MEM, "1", &s, "one");
    given_answered(&g, MODE_GPU_CORE, "1", &s, "of the other resource");
    expect_str("its own", "one", said(&g, MODE_GPU_MEM, "1"));
    expect_str("for whom", "default/a", given_answer(&g, MODE_GPU_MEM, "1")->key);
    given_answered(&g, MODE_GPU_MEM, "1", &s, "two");
    expect_str("the last one counts", "two", said(&g, MODE_GPU_MEM, "1"));
    given_forget(&g, p->uid);
    expect_str("the pod may go", "two", said(&g, MODE_GPU_MEM, "1"));
    given_answered(&g, MODE_GPU_MEM, "1", NULL, NULL);
    expect_str("for a pod that is not known", "(nothing)", said(&g, MODE_GPU_MEM, "1"));
    given_started(&g, MODE_GPU_CORE, "1");
    expect_str("until it starts", "(nothing)", said(&g, MODE_GPU_CORE, "1"));
    for (int i = 0; i < GIVEN_ANSWERS_MAX + 1; i++) {
        char ids[16];
        (void)str_format(ids, sizeof ids, "%d", i);
        given_answered(&g, MODE_GPU_MEM, ids, &s, "one of many");
    }
    expect_int("not without bound", GIVEN_ANSWERS_MAX, (int64_t)g.answers.len);
    expect_str("the oldest went", "(nothing)", said(&g, MODE_GPU_MEM, "0"));
    expect_str("no other", "one of many", said(&g, MODE_GPU_MEM, "1"));
    given_deinit(&g);
    pod_free(p);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(answers_by_their_ids)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
