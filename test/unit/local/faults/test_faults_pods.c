// SPDX-License-Identifier: Apache-2.0
/* Pods that are deleted and made again under the same name. */
#include "test/local/faults/faults_pods.h"

#include <string.h>

#include "test/unit/local/api_world.h"

static void the_same_name_is_another_pod(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *name, *body;
        bool same;   /* it is the pod of before */
        bool leaves; /* it is terminating */
    } rows[] = {
        {"bound", POD("\"name\":\"bound\",\"labels\":{\"a\":\"b\"}", ",\"nodeName\":\"n1\""), false,
         false},
        {"held", POD("\"name\":\"held\",\"labels\":{\"a\":\"b\"},\"finalizers\":[\"x.io/y\"]", ""),
         true, true},
        {"other", POD("\"name\":\"other\",\"labels\":{\"a\":\"c\"}", ""), true, false},
        {"unbound", POD("\"name\":\"unbound\",\"labels\":{\"a\":\"b\"}", ""), false, false},
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    char before[ROWS][64];
    for (size_t i = 0; i < ROWS; i++) {
        done(w, 201, "POST", PODS, J, rows[i].body);
        str_format(before[i], sizeof before[i], "%s",
                   store_get(w->store, &kind_pods, "default", rows[i].name)->uid);
    }
    struct faults_pods p = {.api = w->api, .store = w->store};
    struct error err = ERROR_INIT;
    int64_t count = 0;
    if (faults_pods_recreate(&p, "default", "a=b", 10, &count, &err) < 0)
        fail_msg("%s", err.text);
    expect_int("pods that were met", 3, count);
    for (size_t i = 0; i < ROWS; i++) {
        const struct object *o = store_get(w->store, &kind_pods, "default", rows[i].name);
        assert_non_null(o);
        expect_int(rows[i].name, rows[i].same, strcmp(before[i], o->uid) == 0);
        expect_int(rows[i].name, rows[i].leaves, strstr(o->text, "\"deletionTimestamp\"") != NULL);
        expect_str(rows[i].name, "", str_or_empty(labels_get(&o->fields, "spec.nodeName")));
    }
    expect_int("a selector that is none", -1,
               faults_pods_recreate(&p, NULL, "a in", 1, &count, &err));
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_same_name_is_another_pod, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
