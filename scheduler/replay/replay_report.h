// SPDX-License-Identifier: Apache-2.0
/* replay_report - the result of a run, as text or JSON. The same run gives the same bytes. */
#pragma once

#include <stdbool.h>

#include "lib/base/map.h"
#include "lib/base/str.h"
#include "scheduler/replay/replay_explain.h"
#include "scheduler/replay/replay_run.h"

struct replay_report {
    const struct replay_run *run;
    const struct replay_explain *explain; /* or NULL */
    const struct map *only;               /* keys of the pods to list and count; NULL: all */
    bool summary;                         /* no lists */
};

struct replay_report_count {
    size_t placed, waiting;
    size_t other_placed, other_waiting; /* pods that `only` excludes */
    size_t away;                        /* evicted for the listed pods */
    size_t not_ours;                    /* wait for another scheduler */
};
struct replay_report_count replay_report_count(const struct replay_report *r);
void replay_report_text(const struct replay_report *r, struct strbuf *out);
void replay_report_json(const struct replay_report *r, struct strbuf *out);
