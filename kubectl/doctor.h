// SPDX-License-Identifier: Apache-2.0
/*
 * doctor - what is wrong with an installation, and what to do about it. Pure: rules over facts that somebody fetched.
 *
 * The facts are one JSON object, so that a test plants a fault by changing its text; a key that is missing or null means that there is no such thing, and
 * "unasked" lists what could not be asked, about which nothing is said:
 *
 *   version        of the API server, as GET /version answers
 *   deployments, daemonsets, podgroupCrds   items of lists, those of ours
 *   lease          {"holder", "silentSeconds", "durationSeconds"} of the scheduler's Lease
 *   mutating, validating                    our webhook configurations
 *   policies, policyBindings                names of the admission policies that there are
 *   rights         [{"account", "verb", "resource", "allowed"}]
 *   probe          {"answered": bool, "error": TEXT}: what became of a pod that was created with dryRun=All
 *   kubelets       {NODE: {"cpuManagerPolicy"}}
 *
 * Nodes and pods come as a view. Rules say nothing twice: what a missing program explains is not complained about again for each node.
 */
#pragma once

#include <stddef.h>

#include "kubectl/view.h"
#include "lib/base/arena.h"
#include "lib/base/json.h"
#include "lib/base/str.h"
#include "lib/base/vec.h"

struct doctor_finding {
    const char *what;
    const char *advice;
};

struct doctor {
    json *facts;
    const struct view *view;
    struct arena *arena;
    struct VEC(struct doctor_finding) findings; /* texts in arena; free with vec_deinit */
};

/* What each program must be allowed, of which the fetcher asks the API server: those rights whose lack is hardest to see. */
struct doctor_right {
    const char *program; /* "scheduler" */
    const char *verb, *group, *resource, *sub;
};
extern const struct doctor_right doctor_rights[];
extern const size_t doctor_rights_len;

/* In the order: programs, webhook, policies, nodes, pods. */
void doctor_examine(struct doctor *d);
/* Each finding with its advice, or a line that there is none. */
void doctor_print(const struct doctor *d, struct strbuf *out);
