// SPDX-License-Identifier: Apache-2.0
/*
 * gangs_kit - for the tests of gangs.c: a cluster model that counts what the queue is told, and why
 * a gang waits.
 */
#pragma once

#include "scheduler/cache/gangs.h"
#include "test/unit/scheduler/model_kit.h"

static int told, vanished;

static inline void gang_changed(void *arg, struct gang *g)
{
    (void)arg;
    (void)g;
    told++;
}

static inline void gang_vanishing(void *arg, struct gang *g)
{
    (void)arg;
    (void)g;
    vanished++;
}

static inline int setup_told(void **state)
{
    static const struct cluster_hooks counting = {gang_changed, gang_vanishing, NULL};
    (void)setup(state);
    hooks = &counting;
    told = vanished = 0;
    return 0;
}
#undef T
#define T(name) cmocka_unit_test_setup_teardown(name, setup_told, teardown)

#define BARE(name) PAIRS(NAME_LABEL_GANG_BARE, name)

/* "ok", or why the gang cannot be tried. */
static inline const char *verdict(const char *key)
{
    const struct gang *g = map_get(&c.gangs, key);
    const char *why = "ok";
    if (g == NULL)
        return "no such gang";
    return gangs_has_quorum(&c, g, &arena, &why) ? "ok" : why;
}
