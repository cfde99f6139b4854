// SPDX-License-Identifier: Apache-2.0
/*
 * kinds - what cosched-local stores: one row per kind. Everything that differs between kinds is in
 * its row; the rest of the server knows no kind by name.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/base/str.h"
#include "test/local/patch/jsonnode.h"

struct kind;

/* One column of `kubectl get`. wide: only with -o wide (priority 1). */
struct kind_column {
    const char *name;   /* "Ready" */
    const char *type;   /* "string", "integer" */
    const char *format; /* "", "name" */
    const char *description;
    bool wide;
    /* Appends one JSON value. now_ns for ages. NULL: `path` is printed (dots, "<none>" when
     * absent). */
    void (*print)(json *object, int64_t now_ns, struct json_writer *w);
    const char *path;
    /* JSON that is printed when the path is absent or empty; NULL: by type, "<none>", 0, false. */
    const char *absent;
};

/* A subresource beyond /status and /scale, for discovery: {"binding", "", "v1", "Binding", verbs}.
 * group NULL: the kind's own group and version, which discovery then leaves out. */
struct kind_sub {
    const char *name;
    const char *group, *version;
    const char *kind;
    const char *const *verbs; /* NULL-terminated */
};

struct kind {
    const char *group;       /* "" core */
    const char *version;     /* "v1" */
    const char *api_version; /* "apps/v1" */
    const char *kind, *list_kind;
    const char *resource, *singular;
    const char *const *short_names; /* NULL-terminated, or NULL */
    const char *const *categories;  /* "all" */
    bool namespaced;
    /* /status is a subresource; plain updates leave status alone and the other way round */
    bool has_status;
    bool has_scale;
    bool has_generation;               /* metadata.generation counts changes of spec */
    bool custom;                       /* a CRD: strategic merge patch is 415 */
    bool has_grace;                    /* pods: a deletion may wait for the kubelet */
    const struct kind_column *columns; /* ended by name NULL; "Name" first, "Age" last are usual */
    /* Fields for fieldSelector beyond metadata.name and metadata.namespace, NULL-terminated:
     * "spec.nodeName". Others are a 400. */
    const char *const *fields;
    /* Kubernetes' defaults, on create (and on update, where the field is absent). May be NULL.
     * Called when metadata.name and metadata.uid are known: a Job's selector and a namespace's
     * label are made from them. Calling it again changes nothing. */
    void (*fill_defaults)(struct jsontree *t, struct jsonnode *object);
    /* ERROR_INVALID with the real server's sentence: `spec.containers: Required value`; several are
     * `[one, two]`, as the real server joins them. May be NULL. */
    int (*validate)(struct jsonnode *object, struct error *err);
    int (*validate_update)(struct jsonnode *old, struct jsonnode *updated, struct error *err);
    /* Of an update of /status; NULL: none. */
    int (*validate_status)(struct jsonnode *old, struct jsonnode *updated, struct error *err);
    bool status_is_validated;    /* `validate` has rules for the status, too */
    bool create_keeps_status;    /* nodes: the kubelet registers with its status; elsewhere a
                                      created object's status is dropped when has_status */
    bool orphans;                /* a deletion that does not say how leaves dependents behind */
    bool put_creates;            /* PUT of what is not there makes it */
    bool update_needs_version;   /* a PUT that names no version is refused, not unconditional */
    const char *const *verbs;    /* NULL: all eight of kinds_verbs */
    const struct kind_sub *subs; /* ended by name NULL, or NULL */
};
extern const char *const
    kinds_verbs[]; /* create delete deletecollection get list patch update watch; NULL-terminated */
bool kinds_has_verb(const struct kind *k, const char *verb);

extern const struct kind *const kinds_all[]; /* NULL-terminated */
const struct kind *kinds_find(const char *group, const char *version, const char *resource);
const struct kind *kinds_by_name(const char *api_version, const char *kind);
extern const struct kind kind_pods, kind_nodes, kind_namespaces, kind_events, kind_bindings,
    kind_replicasets, kind_deployments, kind_jobs, kind_priority_classes, kind_resource_quotas,
    kind_pdbs, kind_leases, kind_mutating_webhooks, kind_validating_webhooks, kind_tfjobs,
    kind_pod_groups, kind_pod_groups_x, kind_service_accounts;
