// SPDX-License-Identifier: Apache-2.0
/*
 * doctor - diagnoses an installation and advises how to repair it. Pure: rules over facts that
 * facts.c fetches.
 *
 * The facts are one JSON object, so tests inject faults by changing its text. A missing or null key
 * means that the object does not exist. "unasked" lists what could not be queried; nothing is
 * reported about it:
 *   version        reply to GET /version
 *   deployments, daemonsets                 our items of the lists
 *   crds           names of our custom resources that exist
 *   lease          {"holder", "silentSeconds", "durationSeconds"} of the scheduler's Lease, in any
 *                  namespace if no program is a workload of the cluster
 *   mutating, validating                    our webhook configurations
 *   certificate    {"ca", "leftSeconds", "lifeSeconds"} from the webhook's Secret: the CA (as in
 *                  caBundle), the certificate's remaining and total lifetime
 *   policies, policyBindings                names of the admission policies that exist
 *   rights         [{"account", "verb", "resource", "allowed"}]
 *   probe          {"answered": bool, "error": TEXT} of a pod created with dryRun=All
 *   kubelets       {NODE: {"cpuManagerPolicy"}}
 *
 * Nodes and pods come as a view. What a missing program explains is not reported for each node.
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
    struct VEC(struct doctor_finding) findings; /* texts live in arena; free with vec_deinit */
};

/* Where a right is needed: cluster-wide, in the programs' namespace, or on one object of ours. */
enum doctor_scope {
    DOCTOR_ANYWHERE,
    DOCTOR_AT_HOME,
    DOCTOR_LEASE,
    DOCTOR_SECRET,
    DOCTOR_MUTATING,
    DOCTOR_VALIDATING
};

/* A right that a program needs; facts.c asks the API server about each. */
struct doctor_right {
    const char *program; /* "scheduler" */
    const char *verbs;   /* "list watch" */
    const char *group, *resource, *sub;
    enum doctor_scope scope;
};
extern const struct doctor_right doctor_rights[];
extern const size_t doctor_rights_len;

/* The program's Deployment or DaemonSet in a list, by its label, or NULL. */
json *doctor_workload(json *items, const char *name);
/* The value of an option ("--lease-name=") on the program's command line, or NULL. */
const char *doctor_option(json *workload, const char *option);

/* Findings come in the order programs, webhook, policies, nodes, pods. */
void doctor_examine(struct doctor *d);
/* Prints each finding with its advice, or that there is none. */
void doctor_print(const struct doctor *d, struct strbuf *out);
