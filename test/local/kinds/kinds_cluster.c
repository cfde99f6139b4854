// SPDX-License-Identifier: Apache-2.0
/*
 * kinds_cluster - rows of Kubernetes' other groups: most are only stored, for programs that read them.
 */
#include "test/local/kinds/kinds_row.h"

static const struct kind_column plain_columns[] = {COLUMN_NAME, COLUMN_AGE, COLUMN_END};
static const struct kind_column dated_columns[] = {COLUMN_NAME, COLUMN_CREATED, COLUMN_END};

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
    COLUMN_FN("Min Available", "string", "spec.minAvailable", kinds_print_pdb_min),
    COLUMN_FN("Max Unavailable", "string", "spec.maxUnavailable", kinds_print_pdb_max),
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

static const struct kind_column storage_class_columns[] = {
    {.name = "Name",
     .type = "string",
     .format = "name",
     .description = "metadata.name, and whether it is the default",
     .print = kinds_print_storage_class_title},
    COLUMN_PATH("Provisioner", "string", "provisioner"),
    COLUMN_PATH("ReclaimPolicy", "string", "reclaimPolicy"),
    COLUMN_PATH("VolumeBindingMode", "string", "volumeBindingMode"),
    COLUMN_FN("AllowVolumeExpansion", "string", "allowVolumeExpansion", kinds_print_expansion),
    COLUMN_AGE,
    COLUMN_END};
const struct kind kind_storage_classes = {
    KIND_IN("storage.k8s.io", "v1", "StorageClass", "storageclasses", "storageclass"),
    .short_names = WORDS("sc"),
    .columns = storage_class_columns,
    .fill_defaults = kinds_plain_storage_class_defaults,
    .validate = kinds_plain_validate,
};

static const struct kind_column csi_node_columns[] = {
    COLUMN_NAME, COLUMN_FN("Drivers", "integer", "how many drivers", kinds_print_driver_count),
    COLUMN_AGE, COLUMN_END};
const struct kind kind_csi_nodes = {
    KIND_IN("storage.k8s.io", "v1", "CSINode", "csinodes", "csinode"),
    .update_needs_version = true,
    .columns = csi_node_columns,
    .validate = kinds_plain_validate,
};

static const struct kind_column csi_driver_columns[] = {
    COLUMN_NAME,
    COLUMN_FLAG("AttachRequired", "spec.attachRequired"),
    COLUMN_FLAG("PodInfoOnMount", "spec.podInfoOnMount"),
    COLUMN_FLAG("StorageCapacity", "spec.storageCapacity"),
    {.name = "TokenRequests",
     .type = "string",
     .format = "",
     .description = "spec.tokenRequests",
     .path = "spec.tokenRequests",
     .absent = "\"<unset>\""},
    COLUMN_FLAG("RequiresRepublish", "spec.requiresRepublish"),
    COLUMN_FN("Modes", "string", "spec.volumeLifecycleModes", kinds_print_driver_modes),
    COLUMN_AGE,
    COLUMN_END};
const struct kind kind_csi_drivers = {
    KIND_IN("storage.k8s.io", "v1", "CSIDriver", "csidrivers", "csidriver"),
    .update_needs_version = true,
    .columns = csi_driver_columns,
    .validate = kinds_plain_validate,
};
const struct kind kind_csi_storage_capacities = {
    KIND_IN("storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities",
            "csistoragecapacity"),
    .update_needs_version = true,
    .namespaced = true,
    .columns = dated_columns,
    .validate = kinds_plain_validate,
};

static const struct kind_column attachment_columns[] = {
    COLUMN_NAME,
    COLUMN_TEXT("Attacher", "spec.attacher"),
    COLUMN_TEXT("PV", "spec.source.persistentVolumeName"),
    COLUMN_TEXT("Node", "spec.nodeName"),
    COLUMN_FLAG("Attached", "status.attached"),
    COLUMN_AGE,
    COLUMN_END};
const struct kind kind_volume_attachments = {
    KIND_IN("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", "volumeattachment"),
    .update_needs_version = true,
    .has_status = true,
    .columns = attachment_columns,
    .validate = kinds_plain_validate,
};

static const struct kind_column webhook_columns[] = {
    COLUMN_NAME, COLUMN_FN("Webhooks", "integer", "how many webhooks", kinds_print_webhook_count),
    COLUMN_AGE, COLUMN_END};
const struct kind kind_mutating_webhooks = {
    KIND_IN("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations", "mutatingwebhookconfiguration"),
    .update_needs_version = true,
    .categories = WORDS("api-extensions"),
    .has_generation = true,
    .columns = webhook_columns,
    .fill_defaults = kinds_config_webhooks_defaults,
    .validate = kinds_config_webhooks_validate,
};
const struct kind kind_validating_webhooks = {
    KIND_IN("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations", "validatingwebhookconfiguration"),
    .update_needs_version = true,
    .categories = WORDS("api-extensions"),
    .has_generation = true,
    .columns = webhook_columns,
    .fill_defaults = kinds_config_webhooks_defaults,
    .validate = kinds_config_webhooks_validate,
};
static const struct kind_column policy_columns[] = {
    COLUMN_NAME,
    COLUMN_FN("Validations", "integer", "how many rules", kinds_print_validation_count),
    COLUMN_FN("ParamKind", "string", "spec.paramKind", kinds_print_param_kind), COLUMN_AGE,
    COLUMN_END};
const struct kind kind_validating_policies = {
    KIND_IN("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy",
            "validatingadmissionpolicies", "validatingadmissionpolicy"),
    .update_needs_version = true,
    .categories = WORDS("api-extensions"),
    .has_status = true,
    .has_generation = true,
    .columns = policy_columns,
    .validate = kinds_plain_validate,
};
static const struct kind_column policy_binding_columns[] = {
    COLUMN_NAME, COLUMN_TEXT("PolicyName", "spec.policyName"),
    COLUMN_FN("ParamRef", "string", "spec.paramRef", kinds_print_param_ref), COLUMN_AGE,
    COLUMN_END};
const struct kind kind_validating_policy_bindings = {
    KIND_IN("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding",
            "validatingadmissionpolicybindings", "validatingadmissionpolicybinding"),
    .update_needs_version = true,
    .categories = WORDS("api-extensions"),
    .has_generation = true,
    .columns = policy_binding_columns,
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
    .columns = dated_columns,
    .fill_defaults = kinds_config_crd_defaults,
    .validate = kinds_plain_validate,
};

const struct kind kind_roles = {
    KIND_IN("rbac.authorization.k8s.io", "v1", "Role", "roles", "role"),
    .put_creates = true,
    .namespaced = true,
    .columns = dated_columns,
    .validate = kinds_plain_role_validate,
};
const struct kind kind_cluster_roles = {
    KIND_IN("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", "clusterrole"),
    .put_creates = true,
    .columns = dated_columns,
    .validate = kinds_plain_role_validate,
};
static const struct kind_column role_binding_columns[] = {
    COLUMN_NAME,
    COLUMN_FN("Role", "string", "roleRef", kinds_print_role_ref),
    COLUMN_AGE,
    COLUMN_WIDE_FN("Users", "string", "subjects that are users", kinds_print_role_users),
    COLUMN_WIDE_FN("Groups", "string", "subjects that are groups", kinds_print_role_groups),
    COLUMN_WIDE_FN("ServiceAccounts", "string", "subjects that are service accounts",
                   kinds_print_role_accounts),
    COLUMN_END};
const struct kind kind_role_bindings = {
    KIND_IN("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", "rolebinding"),
    .put_creates = true,
    .namespaced = true,
    .columns = role_binding_columns,
    .fill_defaults = kinds_config_role_binding_defaults,
    .validate = kinds_plain_role_validate,
};
const struct kind kind_cluster_role_bindings = {
    KIND_IN("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings",
            "clusterrolebinding"),
    .put_creates = true,
    .columns = role_binding_columns,
    .fill_defaults = kinds_config_role_binding_defaults,
    .validate = kinds_plain_role_validate,
};

static const struct kind_column slice_columns[] = {
    COLUMN_NAME,
    COLUMN_PATH("AddressType", "string", "addressType"),
    COLUMN_FN("Ports", "string", "ports", kinds_print_slice_ports),
    COLUMN_FN("Endpoints", "string", "addresses", kinds_print_slice_endpoints),
    COLUMN_AGE,
    COLUMN_END};
const struct kind kind_endpoint_slices = {
    KIND_IN("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", "endpointslice"),
    .namespaced = true,
    .has_generation = true,
    .columns = slice_columns,
    .validate = kinds_plain_validate,
};

const struct kind kind_device_classes = {
    KIND_IN("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", "deviceclass"),
    .has_generation = true,
    .columns = plain_columns,
    .validate = kinds_plain_validate,
};
static const struct kind_column resource_claim_columns[] = {
    COLUMN_NAME,
    COLUMN_FN("State", "string", "allocated, reserved, pending", kinds_print_claim_state),
    COLUMN_AGE, COLUMN_END};
const struct kind kind_resource_claims = {
    KIND_IN("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims", "resourceclaim"),
    .namespaced = true,
    .has_status = true,
    .columns = resource_claim_columns,
    .validate = kinds_plain_validate,
};
const struct kind kind_resource_claim_templates = {
    KIND_IN("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates",
            "resourceclaimtemplate"),
    .namespaced = true,
    .columns = plain_columns,
    .validate = kinds_plain_validate,
};
static const struct kind_column resource_slice_columns[] = {COLUMN_NAME,
                                                            COLUMN_TEXT("Node", "spec.nodeName"),
                                                            COLUMN_TEXT("Driver", "spec.driver"),
                                                            COLUMN_TEXT("Pool", "spec.pool.name"),
                                                            COLUMN_AGE,
                                                            COLUMN_END};
const struct kind kind_resource_slices = {
    KIND_IN("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", "resourceslice"),
    .has_generation = true,
    .columns = resource_slice_columns,
    .fields = WORDS("spec.nodeName", "spec.driver"),
    .validate = kinds_plain_validate,
};
