// SPDX-License-Identifier: Apache-2.0
/* usage - mode share does not limit containers, so overuse is at least reported. "Over" begins with
 * the first sample that shows it: the neighbours may be failing already. It ends after USAGE_CALM
 * samples in a row within the share, so a program that oscillates is reported once. Usage goes into
 * an annotation of the pod, and so to every client that watches pods: it is reported seldom. Most
 * programs take their memory at start and keep it, which is two writes in their life. */
#include "device-plugin/cards/usage.h"

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

enum usage_change usage_scan(struct usage *u, int64_t asked_mib, int64_t mib, int64_t processes)
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

bool usage_is_news(struct usage *u, int64_t asked_mib, int64_t now_ms)
{
    struct usage_told *t = &u->told;
    bool over = asked_mib > 0 && u->mib > asked_mib, rested = now_ms - t->at_ms >= USAGE_TOLD_MS;
    int64_t step = num_max(USAGE_TOLD_MIB, asked_mib / 10);
    int64_t by = u->mib > t->mib ? u->mib - t->mib : t->mib - u->mib;
    bool began = !t->any && u->processes > 0, ended = u->mib == 0 && t->mib > 0;
    bool changed = t->any && (by >= step || over != t->over || (t->mib == 0 && u->mib > 0));
    bool news = began || ended || (over && !t->over) || (rested && changed);
    if (news)
        *t = (struct usage_told){.any = true, .mib = u->mib, .over = over, .at_ms = now_ms};
    return news;
}
