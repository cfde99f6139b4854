// SPDX-License-Identifier: Apache-2.0
/*
 * gang - which gang a pod belongs to (contract, section 3), and the PodGroup object.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/model/pod.h"

enum { GANG_MIN_MAX = 100000, GANG_NAME_MAX = 253 };
enum gang_form { GANG_NONE, GANG_LABELS, GANG_BARE, GANG_X, GANG_KOORD, GANG_NATIVE };

struct gang_ref {
    enum gang_form form;
    const char *name;      /* borrowed from the pod */
    int32_t min_available; /* GANG_LABELS and GANG_KOORD; 0 for the forms that name a PodGroup */
};

/* Looks the five forms up in the contract's order. 0 and GANG_NONE for a pod without a gang.
 * ERROR_INVALID when a form is begun and not complete or not legal: "label
 * pod-group.scheduling.sigs.k8s.io/min-available: must be between 1 and 100000: '0'". */
int gang_of_pod(const struct pod *p, struct gang_ref *out, struct error *err);
/* Whether any key of the five forms is there, legal or not: the webhook's question. */
bool gang_is_mentioned(const struct labels *labels, const struct labels *annotations,
                       const char *scheduling_group);

/* A PodGroup of either API group; same rules as pod. */
struct pod_group {
    struct arena arena; /* owns everything below, and the struct itself */
    const char *ns;
    const char *name;
    const char *key;
    const char *uid;
    const char *resource_version;
    bool x_group; /* scheduling.x-k8s.io */
    int32_t min_member;
    int64_t schedule_timeout_s; /* 60 when absent */
    struct resources min_resources;
    const char *phase; /* status.phase or "" */
    /* The rest of its status, as it was written last; -1: not there, or no number. */
    int32_t scheduled, running, succeeded, failed;
    int64_t schedule_start_ns; /* since the epoch; 0: none */
};
void pod_group_free(struct pod_group *g);
