// SPDX-License-Identifier: Apache-2.0
/*
 * doctor - what is wrong with an installation, and what to do about it. Pure: rules over facts,
 * which facts.c fetches.
 *
 * The facts are one JSON object, so that a test plants a fault by changing its text; a missing or
 * null key means that the thing does not exist, and "unasked" lists what could not be queried,
 * about which nothing is reported:
 *
 *   version        of the API server, as GET /version answers
 *   deployments, daemonsets                 items of lists, those of ours
 *   crds           names of our custom resources that are there
 *   lease          {"holder", "silentSeconds", "durationSeconds"} of the scheduler's Lease;
 *                  of any namespace when no program is a workload of the cluster
 *   mutating, validating                    our webhook configurations
 *   certificate    {"ca", "leftSeconds", "lifeSeconds"}: of the webhook's Secret the CA (as a
 *                  caBundle has it), and how long its certificate is valid, now and in all
 *   policies, policyBindings                names of the admission policies that there are
 *   rights         [{"account", "verb", "resource", "allowed"}]
 *   probe          {"answered": bool, "error": TEXT}: what became of a pod that was created with
 *                  dryRun=All
 *   kubelets       {NODE: {"cpuManagerPolicy"}}
 *
 * Nodes and pods come as a view. Nothing is reported twice: what a missing program explains is not
 * reported again for each node.
 */
#pragma once

#include <stddef.h>

#include "kubectl/view.h"
#include "lib/base/arena.h"
#include "lib/base/json.h"
#include "lib/base/str.h"
#include "lib/base/vec.h"

#define DOCTOR_CRD_SIGS "podgroups.scheduling.sigs.k8s.io"
#define DOCTOR_CRD_X "podgroups.scheduling.x-k8s.io"
#define DOCTOR_CRD_POLICIES "resourcepolicies.scheduling.alibabacloud.com"

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

/* Where a right is granted: everywhere, in the namespace of the programs, or on one object of
 * ours. */
enum doctor_scope {
    DOCTOR_ANYWHERE,
    DOCTOR_AT_HOME,
    DOCTOR_LEASE,
    DOCTOR_SECRET,
    DOCTOR_MUTATING,
    DOCTOR_VALIDATING
};

/* What each program must be allowed to do: facts.c asks the API server about each. */
struct doctor_right {
    const char *program; /* "scheduler" */
    const char *verbs;   /* "list watch" */
    const char *group, *resource, *sub;
    enum doctor_scope scope;
};
extern const struct doctor_right doctor_rights[];
extern const size_t doctor_rights_len;

/* The program's Deployment or DaemonSet in a list, by its label; or NULL. */
json *doctor_workload(json *items, const char *name);
/* The value of an option on its program's command line, "--lease-name="; or NULL. */
const char *doctor_option(json *workload, const char *option);

/* In the order: programs, webhook, policies, nodes, pods. */
void doctor_examine(struct doctor *d);
/* Each finding with its advice, or a line saying that there is none. */
void doctor_print(const struct doctor *d, struct strbuf *out);
