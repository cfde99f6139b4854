// SPDX-License-Identifier: Apache-2.0
/*
 * kinds_cluster - rows of Kubernetes' other groups: most are only stored, for programs that read
 * them.
 */
#include "test/local/kinds/kinds_row.h"

static const struct kind_column priority_columns[] = {
    COLUMN_NAME,
    COLUMN_PATH("Value", "integer", "value"),
    COLUMN_FLAG("Global-Default", "globalDefault"),
    COLUMN_AGE,
    COLUMN_PATH("PreemptionPolicy", "string", "preemptionPolicy"),
    COLUMN_END};
const struct kind kind_priority_classes = {
    KIND_IN("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", "priorityclass"),
    .short_names = WORDS("pc"),
    .has_generation = true,
    .columns = priority_columns,
    .fill_defaults = kinds_plain_priority_class_defaults,
    .validate = kinds_plain_priority_class_validate,
    .validate_update = kinds_plain_priority_class_validate_update,
};

static const struct kind_column lease_columns[] = {
    COLUMN_NAME, COLUMN_TEXT("Holder", "spec.holderIdentity"), COLUMN_AGE, COLUMN_END};
const struct kind kind_leases = {
    KIND_IN("coordination.k8s.io", "v1", "Lease", "leases", "lease"),
    .update_needs_version = true,
    .put_creates = true,
    .namespaced = true,
    .columns = lease_columns,
    .validate = kinds_plain_lease_validate,
};

static const struct kind_column pdb_columns[] = {
    COLUMN_NAME,
    COLUMN_PATH("Min Available", "string", "spec.minAvailable"),
    COLUMN_PATH("Max Unavailable", "string", "spec.maxUnavailable"),
    COLUMN_PATH("Allowed Disruptions", "integer", "status.disruptionsAllowed"),
    COLUMN_AGE,
    COLUMN_END};
const struct kind kind_pdbs = {
    KIND_IN("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", "poddisruptionbudget"),
    .update_needs_version = true,
    .short_names = WORDS("pdb"),
    .namespaced = true,
    .has_status = true,
    .has_generation = true,
    .columns = pdb_columns,
    .fill_defaults = kinds_plain_pdb_defaults,
    .validate = kinds_plain_pdb_validate,
};

const struct kind kind_storage_classes = {
    KIND_IN("storage.k8s.io", "v1", "StorageClass", "storageclasses", "storageclass"),
    .short_names = WORDS("sc"),
    .fill_defaults = kinds_plain_storage_class_defaults,
    .validate = kinds_plain_validate,
};

const struct kind kind_csi_nodes = {
    KIND_IN("storage.k8s.io", "v1", "CSINode", "csinodes", "csinode"),
    .update_needs_version = true,
    .validate = kinds_plain_validate,
};

const struct kind kind_csi_drivers = {
    KIND_IN("storage.k8s.io", "v1", "CSIDriver", "csidrivers", "csidriver"),
    .update_needs_version = true,
    .validate = kinds_plain_validate,
};
const struct kind kind_csi_storage_capacities = {
    KIND_IN("storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities",
            "csistoragecapacity"),
    .update_needs_version = true,
    .namespaced = true,
    .validate = kinds_plain_validate,
};

const struct kind kind_volume_attachments = {
    KIND_IN("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", "volumeattachment"),
    .update_needs_version = true,
    .has_status = true,
    .validate = kinds_plain_validate,
};

const struct kind kind_mutating_webhooks = {
    KIND_IN("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations", "mutatingwebhookconfiguration"),
    .update_needs_version = true,
    .categories = WORDS("api-extensions"),
    .has_generation = true,
    .fill_defaults = kinds_config_webhooks_defaults,
    .validate = kinds_config_webhooks_validate,
};
const struct kind kind_validating_webhooks = {
    KIND_IN("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations", "validatingwebhookconfiguration"),
    .update_needs_version = true,
    .categories = WORDS("api-extensions"),
    .has_generation = true,
    .fill_defaults = kinds_config_webhooks_defaults,
    .validate = kinds_config_webhooks_validate,
};
const struct kind kind_validating_policies = {
    KIND_IN("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy",
            "validatingadmissionpolicies", "validatingadmissionpolicy"),
    .update_needs_version = true,
    .categories = WORDS("api-extensions"),
    .has_status = true,
    .has_generation = true,
    .validate = kinds_plain_validate,
};
const struct kind kind_validating_policy_bindings = {
    KIND_IN("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding",
            "validatingadmissionpolicybindings", "validatingadmissionpolicybinding"),
    .update_needs_version = true,
    .categories = WORDS("api-extensions"),
    .has_generation = true,
    .validate = kinds_plain_validate,
};

/* Accepted and kept; a kind that has no row here is not served by storing its definition. */
const struct kind kind_crds = {
    KIND_IN("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions",
            "customresourcedefinition"),
    .update_needs_version = true,
    .short_names = WORDS("crd", "crds"),
    .categories = WORDS("api-extensions"),
    .has_status = true,
    .has_generation = true,
    .fill_defaults = kinds_config_crd_defaults,
    .validate = kinds_plain_validate,
};

const struct kind kind_roles = {
    KIND_IN("rbac.authorization.k8s.io", "v1", "Role", "roles", "role"),
    .put_creates = true,
    .namespaced = true,
    .validate = kinds_plain_role_validate,
};
const struct kind kind_cluster_roles = {
    KIND_IN("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", "clusterrole"),
    .put_creates = true,
    .validate = kinds_plain_role_validate,
};
const struct kind kind_role_bindings = {
    KIND_IN("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", "rolebinding"),
    .put_creates = true,
    .namespaced = true,
    .fill_defaults = kinds_config_role_binding_defaults,
    .validate = kinds_plain_role_validate,
};
const struct kind kind_cluster_role_bindings = {
    KIND_IN("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings",
            "clusterrolebinding"),
    .put_creates = true,
    .fill_defaults = kinds_config_role_binding_defaults,
    .validate = kinds_plain_role_validate,
};

const struct kind kind_endpoint_slices = {
    KIND_IN("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", "endpointslice"),
    .namespaced = true,
    .has_generation = true,
    .validate = kinds_plain_validate,
};

const struct kind kind_device_classes = {
    KIND_IN("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", "deviceclass"),
    .has_generation = true,
    .validate = kinds_plain_validate,
};
const struct kind kind_resource_claims = {
    KIND_IN("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims", "resourceclaim"),
    .namespaced = true,
    .has_status = true,
    .validate = kinds_plain_validate,
};
const struct kind kind_resource_claim_templates = {
    KIND_IN("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates",
            "resourceclaimtemplate"),
    .namespaced = true,
    .validate = kinds_plain_validate,
};
const struct kind kind_resource_slices = {
    KIND_IN("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", "resourceslice"),
    .has_generation = true,
    .fields = WORDS("spec.nodeName", "spec.driver"),
    .validate = kinds_plain_validate,
};
