// SPDX-License-Identifier: Apache-2.0
/*
 * kinds_row - the words that the tables of kinds are written in, and the rows that have no name in
 * kinds.h. Only the kinds_*.c files and table.c include it.
 */
#pragma once

#include "test/local/kinds/kinds.h"
#include "test/local/kinds/kinds_print.h"

/* The names of a kind of the core group, and of any other. */
#define KIND_CORE(kind_name, plural, single)                              \
    .group = "", .version = "v1", .api_version = "v1", .kind = kind_name, \
    .list_kind = kind_name "List", .resource = plural, .singular = single
#define KIND_IN(g, v, kind_name, plural, single)                         \
    .group = g, .version = v, .api_version = g "/" v, .kind = kind_name, \
    .list_kind = kind_name "List", .resource = plural, .singular = single
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

#define COLUMN_PATH(title, kind_of, at)                                             \
    {                                                                               \
        .name = title, .type = kind_of, .format = "", .description = at, .path = at \
    }
#define COLUMN_FN(title, kind_of, text, fn)                                            \
    {                                                                                  \
        .name = title, .type = kind_of, .format = "", .description = text, .print = fn \
    }
#define COLUMN_WIDE_PATH(title, kind_of, at)                                                      \
    {                                                                                             \
        .name = title, .type = kind_of, .format = "", .description = at, .wide = true, .path = at \
    }
#define COLUMN_WIDE_FN(title, kind_of, text, fn)                                         \
    {                                                                                    \
        .name = title, .type = kind_of, .format = "", .description = text, .wide = true, \
        .print = fn                                                                      \
    }
#define COLUMN_NAME                                                                         \
    {                                                                                       \
        .name = "Name", .type = "string", .format = "name", .description = "metadata.name", \
        .path = "metadata.name"                                                             \
    }
#define COLUMN_AGE \
    COLUMN_FN("Age", "string", "time since metadata.creationTimestamp", kinds_print_age)
/* A number in a column of text, a text that may be empty, a boolean. */
#define COLUMN_COUNT(title, at)                                                       \
    {                                                                                 \
        .name = title, .type = "string", .format = "", .description = at, .path = at, \
        .absent = "0"                                                                 \
    }
#define COLUMN_TEXT(title, at)                                                        \
    {                                                                                 \
        .name = title, .type = "string", .format = "", .description = at, .path = at, \
        .absent = "\"\""                                                              \
    }
#define COLUMN_FLAG(title, at) COLUMN_PATH(title, "boolean", at)
#define COLUMN_UNKNOWN_WIDE(title, at)                                                  \
    {                                                                                   \
        .name = title, .type = "string", .format = "", .description = at, .wide = true, \
        .path = at, .absent = "\"<unknown>\""                                           \
    }
#define COLUMN_END   \
    {                \
        .name = NULL \
    }

/* kinds_core.c */
extern const struct kind kind_config_maps, kind_secrets, kind_services, kind_endpoints,
    kind_persistent_volumes, kind_persistent_volume_claims, kind_limit_ranges,
    kind_replication_controllers, kind_pod_templates;
/* kinds_apps.c */
extern const struct kind kind_daemon_sets, kind_stateful_sets, kind_controller_revisions,
    kind_cron_jobs;
/* kinds_cluster.c */
extern const struct kind kind_storage_classes, kind_csi_nodes, kind_csi_drivers,
    kind_csi_storage_capacities, kind_volume_attachments, kind_events_new, kind_validating_webhooks,
    kind_validating_policies, kind_validating_policy_bindings, kind_crds, kind_roles,
    kind_role_bindings, kind_cluster_roles, kind_cluster_role_bindings, kind_endpoint_slices,
    kind_device_classes, kind_resource_claims, kind_resource_claim_templates, kind_resource_slices;
/* kinds_custom.c */
extern const struct kind kind_resource_policies;

/* Defaults and rules. kinds_pod.c */
void kinds_pod_defaults(struct jsontree *t, struct jsonnode *object);
/* What a pod's conditions say of times they do not name: null, as the server prints them. */
void kinds_pod_fill_conditions(struct jsontree *t, struct jsonnode *object);
int kinds_pod_validate(struct jsonnode *object, struct error *err);
int kinds_pod_validate_update(struct jsonnode *old, struct jsonnode *updated, struct error *err);
int kinds_pod_validate_status(struct jsonnode *old, struct jsonnode *updated, struct error *err);
/* kinds_work.c: what makes pods from a template */
void kinds_work_deployment_defaults(struct jsontree *t, struct jsonnode *object);
void kinds_work_replicaset_defaults(struct jsontree *t, struct jsonnode *object);
void kinds_work_statefulset_defaults(struct jsontree *t, struct jsonnode *object);
void kinds_work_daemonset_defaults(struct jsontree *t, struct jsonnode *object);
void kinds_work_controller_defaults(struct jsontree *t, struct jsonnode *object);
void kinds_work_job_defaults(struct jsontree *t, struct jsonnode *object);
void kinds_work_cronjob_defaults(struct jsontree *t, struct jsonnode *object);
int kinds_work_validate(struct jsonnode *object, struct error *err);
int kinds_work_validate_update(struct jsonnode *old, struct jsonnode *updated, struct error *err);
int kinds_work_job_validate(struct jsonnode *object, struct error *err);
int kinds_work_job_validate_update(struct jsonnode *old, struct jsonnode *updated,
                                   struct error *err);
/* kinds_plain.c: the smaller kinds */
int kinds_plain_validate(struct jsonnode *object, struct error *err); /* metadata, nothing else */
int kinds_plain_config_map_validate(struct jsonnode *object, struct error *err);
int kinds_plain_secret_validate(struct jsonnode *object, struct error *err);
/* Config maps and secrets: what says that it is immutable is. */
int kinds_plain_data_validate_update(struct jsonnode *old, struct jsonnode *updated,
                                     struct error *err);
int kinds_plain_role_validate(struct jsonnode *object, struct error *err); /* names may hold ':' */
int kinds_plain_service_validate(struct jsonnode *object, struct error *err);
void kinds_plain_node_defaults(struct jsontree *t, struct jsonnode *object);
int kinds_plain_node_validate(struct jsonnode *object, struct error *err);
void kinds_plain_namespace_defaults(struct jsontree *t, struct jsonnode *object);
int kinds_plain_namespace_validate(struct jsonnode *object, struct error *err);
void kinds_plain_service_defaults(struct jsontree *t, struct jsonnode *object);
void kinds_plain_secret_defaults(struct jsontree *t, struct jsonnode *object);
void kinds_plain_volume_defaults(struct jsontree *t, struct jsonnode *object);
void kinds_plain_claim_defaults(struct jsontree *t, struct jsonnode *object);
void kinds_plain_storage_class_defaults(struct jsontree *t, struct jsonnode *object);
int kinds_plain_event_validate(struct jsonnode *object, struct error *err);
int kinds_plain_quota_validate(struct jsonnode *object, struct error *err);
void kinds_plain_pdb_defaults(struct jsontree *t, struct jsonnode *object);
int kinds_plain_pdb_validate(struct jsonnode *object, struct error *err);
void kinds_plain_priority_class_defaults(struct jsontree *t, struct jsonnode *object);
int kinds_plain_priority_class_validate(struct jsonnode *object, struct error *err);
int kinds_plain_priority_class_validate_update(struct jsonnode *old, struct jsonnode *updated,
                                               struct error *err);
int kinds_plain_lease_validate(struct jsonnode *object, struct error *err);
void kinds_plain_quota_defaults(struct jsontree *t, struct jsonnode *object);
void kinds_plain_event_defaults(struct jsontree *t, struct jsonnode *object);
/* kinds_config.c */
void kinds_config_webhooks_defaults(struct jsontree *t, struct jsonnode *object);
int kinds_config_webhooks_validate(struct jsonnode *object, struct error *err);
void kinds_config_crd_defaults(struct jsontree *t, struct jsonnode *object);
void kinds_config_role_binding_defaults(struct jsontree *t, struct jsonnode *object);
