// SPDX-License-Identifier: Apache-2.0
/* gang - which gang a pod belongs to, and the PodGroup object. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/model/pod.h"

enum {
    GANG_MIN_MAX = 100000,
    GANG_NAME_MAX = 253,
    GANG_LIST_MAX = 64, /* gangs scheduled as one */
    GANG_LIST_BYTES = 32 * 1024
};
enum gang_form {
    GANG_NONE,
    GANG_LABELS,
    GANG_BARE,
    GANG_X,
    GANG_KOORD,
    GANG_NATIVE,
    GANG_TOPOLOGY
};

/* Which members count towards min-available (annotation match-policy). */
enum gang_match {
    GANG_MATCH_UNSAID,        /* like once-satisfied, but agrees with any other */
    GANG_ONCE_SATISFIED,      /* a gang that once had its quorum no longer needs one */
    GANG_WAITING_AND_RUNNING, /* waiting and placed members */
    GANG_ONLY_WAITING         /* members that wait or are being bound */
};

/* A pod's gang settings. All borrowed from the pod. */
struct gang_ref {
    enum gang_form form; /* the first form found */
    unsigned forms;      /* 1 << form for each form found; they agree */
    const char *name;
    /* for GANG_LABELS, GANG_KOORD or GANG_TOPOLOGY; 0: in the PodGroup, or (GANG_TOPOLOGY)
     * unknown */
    int32_t min_available;
    enum gang_match match;
    const char *list;     /* the gangs scheduled with it, valid (gang_read_list); NULL: none */
    uint64_t list_digest; /* gang_list_digest of these; 0: none */
};

/* Looks up the five forms in the contract's order; a pod of a gpu-topology job that uses none is in
 * the gang of that name. 0 and GANG_NONE for a pod without a gang. ERROR_INVALID when a form is
 * incomplete or invalid: "label pod-group.scheduling.sigs.k8s.io/min-available: must be between 1
 * and 100000: '0'"; when two forms disagree on name or number; when match-policy or the list of
 * gangs is invalid. */
int gang_of_pod(const struct pod *p, struct gang_ref *out, struct error *err);
/* ["ns/a","ns/b"]: 1 to GANG_LIST_MAX different gangs, sorted into *out, in a. own: the gang that
 * must be in the list, or NULL. The error does not name the text's source. */
int gang_read_list(const char *text, const char *own, struct arena *a, const char ***out,
                   size_t *len, struct error *err);
/* Of the names that gang_read_list gives: lists of the same gangs have the same, never 0. */
uint64_t gang_list_digest(const char *const *names, size_t len);
int gang_read_match(const char *text, enum gang_match *out, struct error *err);
const char *gang_match_name(enum gang_match m);
/* The name of a form's number or PodGroup in messages. */
const char *gang_form_source(enum gang_form form);
/* Whether any key of the five forms is present, valid or not. For the webhook. */
bool gang_is_mentioned(const struct labels *labels, const struct labels *annotations,
                       const char *scheduling_group);

enum pod_group_api {
    POD_GROUP_SIGS,   /* scheduling.sigs.k8s.io */
    POD_GROUP_X,      /* scheduling.x-k8s.io */
    POD_GROUP_NATIVE, /* scheduling.k8s.io, Kubernetes' own */
    POD_GROUP_APIS
};

/* A PodGroup of any of the API groups; same rules as pod. */
struct pod_group {
    struct arena arena; /* owns everything below, and the struct itself */
    const char *ns;
    const char *name;
    const char *key;
    const char *uid;
    const char *resource_version;
    enum pod_group_api api;
    int32_t min_member;         /* minCount in scheduling.k8s.io; 1 if it asks for no gang */
    int64_t schedule_timeout_s; /* 60 when absent */
    struct resources min_resources;
    const char *phase; /* status.phase or "" */
    const char *list;  /* annotations groups and match-policy, unparsed; NULL: none */
    const char *match;
    /* The rest of its status as last written; -1: absent or not a number. */
    int32_t scheduled, running, succeeded, failed;
    int64_t schedule_start_ns; /* since the epoch; 0: none */
};
void pod_group_free(struct pod_group *g);
