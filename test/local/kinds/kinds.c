// SPDX-License-Identifier: Apache-2.0
/*
 * kinds - the list of all rows, and how a row is found. The rows themselves lie in kinds_core.c
 * (the core group), kinds_apps.c (apps, batch), kinds_cluster.c (the other groups of Kubernetes)
 * and kinds_custom.c (CRDs); what the rows point to in kinds_pod.c, kinds_work.c, kinds_plain.c
 * (defaults and rules) and kinds_print*.c (cells of tables).
 *
 * The order is the order of discovery, which kubectl takes as preference: `kubectl get events`
 * means the core group's. Searches are linear, with the most frequent kinds first in their group:
 * forty comparisons cost less than parsing the request.
 */
#include "test/local/kinds/kinds.h"

#include "test/local/kinds/kinds_row.h"

const char *const kinds_verbs[] = {
    "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch", NULL};

const struct kind *const kinds_all[] = {
    &kind_pods,
    &kind_nodes,
    &kind_events,
    &kind_bindings,
    &kind_config_maps,
    &kind_endpoints,
    &kind_limit_ranges,
    &kind_namespaces,
    &kind_persistent_volume_claims,
    &kind_persistent_volumes,
    &kind_pod_templates,
    &kind_replication_controllers,
    &kind_resource_quotas,
    &kind_secrets,
    &kind_service_accounts,
    &kind_services,
    &kind_controller_revisions,
    &kind_daemon_sets,
    &kind_deployments,
    &kind_replicasets,
    &kind_stateful_sets,
    &kind_events_new,
    &kind_cron_jobs,
    &kind_jobs,
    &kind_pdbs,
    &kind_cluster_role_bindings,
    &kind_cluster_roles,
    &kind_role_bindings,
    &kind_roles,
    &kind_csi_drivers,
    &kind_csi_nodes,
    &kind_csi_storage_capacities,
    &kind_storage_classes,
    &kind_volume_attachments,
    &kind_mutating_webhooks,
    &kind_validating_policies,
    &kind_validating_policy_bindings,
    &kind_validating_webhooks,
    &kind_crds,
    &kind_priority_classes,
    &kind_leases,
    &kind_endpoint_slices,
    &kind_device_classes,
    &kind_resource_claims,
    &kind_resource_claim_templates,
    &kind_resource_slices,
    &kind_tfjobs,
    &kind_pod_groups,
    &kind_pod_groups_x,
    &kind_resource_policies,
    NULL,
};

const struct kind *kinds_find(const char *group, const char *version, const char *resource)
{
    for (size_t i = 0; kinds_all[i]; i++) {
        const struct kind *k = kinds_all[i];
        if (str_eq(k->resource, resource) && str_eq(k->group, group) && str_eq(k->version, version))
            return k;
    }
    return NULL;
}

const struct kind *kinds_by_name(const char *api_version, const char *kind)
{
    for (size_t i = 0; kinds_all[i]; i++) {
        const struct kind *k = kinds_all[i];
        if (str_eq(k->kind, kind) && str_eq(k->api_version, api_version))
            return k;
    }
    return NULL;
}

bool kinds_has_verb(const struct kind *k, const char *verb)
{
    for (const char *const *v = k->verbs ? k->verbs : kinds_verbs; *v; v++)
        if (str_eq(*v, verb))
            return true;
    return false;
}
