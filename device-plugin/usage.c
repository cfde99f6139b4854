// SPDX-License-Identifier: Apache-2.0
/*
 * usage - in mode share nothing keeps a container within its share, so it must at least be seen who takes more. "Over"
 * begins with the first look that shows it: the neighbours may be failing already. It ends after USAGE_CALM looks in a row
 * without it: a program that allocates and frees around its share is told once, not with every swing.
 */
#include "device-plugin/usage.h"

#include "lib/base/num.h"
#include "lib/base/str.h"

static bool is_first(const struct usage_process *list, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (list[i].pid == list[at].pid)
            return false;
    return true;
}

void usage_sum(const struct usage_process *list, size_t len, const char *uid, int64_t *mib,
               int64_t *processes)
{
    *mib = *processes = 0;
    for (size_t i = 0; i < len; i++) {
        if (uid != NULL && !str_eq(list[i].uid, uid))
            continue;
        *mib = num_add_sat(*mib, num_max(list[i].mib, 0));
        *processes += is_first(list, i);
    }
}

enum usage_change usage_look(struct usage *u, int64_t asked_mib, int64_t mib, int64_t processes)
{
    u->mib = mib;
    u->processes = processes;
    if (asked_mib > 0 && mib > asked_mib) {
        u->calm = 0;
        if (u->over)
            return USAGE_SAME;
        u->over = true;
        return USAGE_OVER;
    }
    if (!u->over || ++u->calm < USAGE_CALM)
        return USAGE_SAME;
    u->over = false;
    u->calm = 0;
    return USAGE_WITHIN;
}
