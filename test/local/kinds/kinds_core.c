// SPDX-License-Identifier: Apache-2.0
/*
 * kinds_core - rows of the core group, v1. Names, short names, verbs and selectable fields are
 * those of Kubernetes 1.36. So are the columns that kinds_print.c covers; other kinds have fewer.
 */
#include "test/local/kinds/kinds_row.h"

static const char *const verbs_create[] = {"create", NULL};
static const char *const verbs_get[] = {"get", NULL};
static const char *const verbs_change[] = {"get", "patch", "update", NULL};
static const char *const verbs_update[] = {"update", NULL};
/* Namespaces are not deleted by the dozen. */
static const char *const verbs_namespaces[] = {"create", "delete", "get",   "list",
                                               "patch",  "update", "watch", NULL};

static const struct kind_column pod_columns[] = {
    COLUMN_NAME,
    COLUMN_FN("Ready", "string", "containers that are ready, of all", kinds_print_pod_ready),
    COLUMN_FN("Status", "string", "the pod's state in one word", kinds_print_pod_status),
    COLUMN_FN("Restarts", "string", "how often containers were started again",
              kinds_print_pod_restarts),
    COLUMN_AGE,
    COLUMN_WIDE_PATH("IP", "string", "status.podIP"),
    COLUMN_WIDE_PATH("Node", "string", "spec.nodeName"),
    COLUMN_WIDE_PATH("Nominated Node", "string", "status.nominatedNodeName"),
    COLUMN_WIDE_PATH("Readiness Gates", "string", "spec.readinessGates"),
    COLUMN_END};
static const struct kind_sub pod_subs[] = {{"binding", NULL, NULL, "Binding", verbs_create},
                                           {"ephemeralcontainers", NULL, NULL, "Pod", verbs_change},
                                           {"eviction", "policy", "v1", "Eviction", verbs_create},
                                           {"log", NULL, NULL, "Pod", verbs_get},
                                           {"resize", NULL, NULL, "Pod", verbs_change},
                                           {NULL, NULL, NULL, NULL, NULL}};
const struct kind kind_pods = {
    KIND_CORE("Pod", "pods", "pod"),
    .short_names = WORDS("po"),
    .categories = WORDS("all"),
    .namespaced = true,
    .has_status = true,
    .has_generation = true,
    .has_grace = true,
    .columns = pod_columns,
    .fields = WORDS("spec.nodeName", "spec.restartPolicy", "spec.schedulerName",
                    "spec.serviceAccountName", "spec.hostNetwork", "status.phase", "status.podIP",
                    "status.nominatedNodeName"),
    .fill_defaults = kinds_pod_defaults,
    .validate = kinds_pod_validate,
    .validate_update = kinds_pod_validate_update,
    .validate_status = kinds_pod_validate_status,
    .subs = pod_subs,
};

static const struct kind_column node_columns[] = {
    COLUMN_NAME,
    COLUMN_FN("Status", "string", "Ready or not, and whether it takes pods",
              kinds_print_node_status),
    COLUMN_FN("Roles", "string", "from the labels node-role.kubernetes.io/",
              kinds_print_node_roles),
    COLUMN_AGE,
    COLUMN_TEXT("Version", "status.nodeInfo.kubeletVersion"),
    COLUMN_WIDE_FN("Internal-IP", "string", "status.addresses", kinds_print_node_internal_ip),
    COLUMN_WIDE_FN("External-IP", "string", "status.addresses", kinds_print_node_external_ip),
    COLUMN_UNKNOWN_WIDE("OS-Image", "status.nodeInfo.osImage"),
    COLUMN_UNKNOWN_WIDE("Kernel-Version", "status.nodeInfo.kernelVersion"),
    COLUMN_UNKNOWN_WIDE("Container-Runtime", "status.nodeInfo.containerRuntimeVersion"),
    COLUMN_END};
const struct kind kind_nodes = {
    KIND_CORE("Node", "nodes", "node"),
    .short_names = WORDS("no"),
    .has_status = true,
    .create_keeps_status = true,
    .columns = node_columns,
    .fields = WORDS("spec.unschedulable"),
    .fill_defaults = kinds_plain_node_defaults,
    .validate = kinds_plain_node_validate,
    .status_is_validated = true,
};

static const struct kind_column namespace_columns[] = {
    COLUMN_NAME, COLUMN_TEXT("Status", "status.phase"), COLUMN_AGE, COLUMN_END};
static const struct kind_sub namespace_subs[] = {
    {"finalize", NULL, NULL, "Namespace", verbs_update}, {NULL, NULL, NULL, NULL, NULL}};
const struct kind kind_namespaces = {
    KIND_CORE("Namespace", "namespaces", "namespace"),
    .short_names = WORDS("ns"),
    .has_status = true,
    .columns = namespace_columns,
    .fields = WORDS("status.phase"),
    .fill_defaults = kinds_plain_namespace_defaults,
    .validate = kinds_plain_namespace_validate,
    .status_is_validated = true,
    .verbs = verbs_namespaces,
    .subs = namespace_subs,
};

static const struct kind_column event_columns[] = {
    COLUMN_FN("Last Seen", "string", "time since it happened last", kinds_print_event_last),
    COLUMN_TEXT("Type", "type"),
    COLUMN_TEXT("Reason", "reason"),
    COLUMN_FN("Object", "string", "what it is about", kinds_print_event_object),
    COLUMN_TEXT("Message", "message"),
    COLUMN_END};
const struct kind kind_events = {
    KIND_CORE("Event", "events", "event"),
    .put_creates = true,
    .short_names = WORDS("ev"),
    .namespaced = true,
    .columns = event_columns,
    .fields =
        WORDS("involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
              "involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion",
              "involvedObject.fieldPath", "reason", "reportingComponent", "source", "type"),
    .fill_defaults = kinds_plain_event_defaults,
    .validate = kinds_plain_event_validate,
};
/* As kube-scheduler writes them. */
const struct kind kind_events_new = {
    KIND_IN("events.k8s.io", "v1", "Event", "events", "event"),
    .put_creates = true,
    .short_names = WORDS("ev"),
    .namespaced = true,
    .fields = WORDS("regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid",
                    "regarding.apiVersion", "regarding.resourceVersion", "regarding.fieldPath",
                    "reason", "reportingController", "type"),
    .validate = kinds_plain_validate,
};

const struct kind kind_bindings = {
    KIND_CORE("Binding", "bindings", "binding"),
    .namespaced = true,
    .verbs = verbs_create,
};

const struct kind kind_config_maps = {
    KIND_CORE("ConfigMap", "configmaps", "configmap"),
    .short_names = WORDS("cm"),
    .namespaced = true,
    .validate = kinds_plain_config_map_validate,
    .validate_update = kinds_plain_data_validate_update,
};

const struct kind kind_secrets = {
    KIND_CORE("Secret", "secrets", "secret"),
    .namespaced = true,
    .fields = WORDS("type"),
    .fill_defaults = kinds_plain_secret_defaults,
    .validate = kinds_plain_secret_validate,
    .validate_update = kinds_plain_data_validate_update,
};

static const struct kind_column service_columns[] = {
    COLUMN_NAME, COLUMN_PATH("Type", "string", "spec.type"),
    COLUMN_PATH("Cluster-IP", "string", "spec.clusterIP"), COLUMN_AGE, COLUMN_END};
const struct kind kind_services = {
    KIND_CORE("Service", "services", "service"),
    .put_creates = true,
    .short_names = WORDS("svc"),
    .categories = WORDS("all"),
    .namespaced = true,
    .has_status = true,
    .columns = service_columns,
    .fields = WORDS("spec.clusterIP", "spec.type"),
    .fill_defaults = kinds_plain_service_defaults,
    .validate = kinds_plain_service_validate,
};

const struct kind kind_endpoints = {
    KIND_CORE("Endpoints", "endpoints", "endpoints"),
    .put_creates = true,
    .short_names = WORDS("ep"),
    .namespaced = true,
    .validate = kinds_plain_validate,
};

static const struct kind_sub account_subs[] = {
    {"token", "authentication.k8s.io", "v1", "TokenRequest", verbs_create},
    {NULL, NULL, NULL, NULL, NULL}};
const struct kind kind_service_accounts = {
    KIND_CORE("ServiceAccount", "serviceaccounts", "serviceaccount"),
    .short_names = WORDS("sa"),
    .namespaced = true,
    .validate = kinds_plain_validate,
    .subs = account_subs,
};

static const struct kind_column volume_columns[] = {
    COLUMN_NAME,
    COLUMN_TEXT("Capacity", "spec.capacity.storage"),
    COLUMN_TEXT("Status", "status.phase"),
    COLUMN_TEXT("Claim", "spec.claimRef.name"),
    COLUMN_TEXT("StorageClass", "spec.storageClassName"),
    COLUMN_AGE,
    COLUMN_END};
const struct kind kind_persistent_volumes = {
    KIND_CORE("PersistentVolume", "persistentvolumes", "persistentvolume"),
    .short_names = WORDS("pv"),
    .has_status = true,
    .columns = volume_columns,
    .fill_defaults = kinds_plain_volume_defaults,
    .validate = kinds_plain_validate,
};

static const struct kind_column claim_columns[] = {
    COLUMN_NAME,
    COLUMN_TEXT("Status", "status.phase"),
    COLUMN_TEXT("Volume", "spec.volumeName"),
    COLUMN_TEXT("Capacity", "status.capacity.storage"),
    COLUMN_TEXT("StorageClass", "spec.storageClassName"),
    COLUMN_AGE,
    COLUMN_END};
const struct kind kind_persistent_volume_claims = {
    KIND_CORE("PersistentVolumeClaim", "persistentvolumeclaims", "persistentvolumeclaim"),
    .short_names = WORDS("pvc"),
    .namespaced = true,
    .has_status = true,
    .columns = claim_columns,
    .fill_defaults = kinds_plain_claim_defaults,
    .validate = kinds_plain_validate,
};

static const struct kind_column quota_columns[] = {
    COLUMN_NAME, COLUMN_FN("Request", "string", "used and hard", kinds_print_quota), COLUMN_AGE,
    COLUMN_END};
const struct kind kind_resource_quotas = {
    KIND_CORE("ResourceQuota", "resourcequotas", "resourcequota"),
    .short_names = WORDS("quota"),
    .namespaced = true,
    .has_status = true,
    .columns = quota_columns,
    .fill_defaults = kinds_plain_quota_defaults,
    .validate = kinds_plain_quota_validate,
};

const struct kind kind_limit_ranges = {
    KIND_CORE("LimitRange", "limitranges", "limitrange"),
    .put_creates = true,
    .short_names = WORDS("limits"),
    .namespaced = true,
    .validate = kinds_plain_validate,
};

const struct kind kind_replication_controllers = {
    KIND_CORE("ReplicationController", "replicationcontrollers", "replicationcontroller"),
    .orphans = true,
    .short_names = WORDS("rc"),
    .categories = WORDS("all"),
    .namespaced = true,
    .has_status = true,
    .has_scale = true,
    .has_generation = true,
    .fields = WORDS("status.replicas"),
    .fill_defaults = kinds_work_controller_defaults,
    .validate = kinds_plain_validate,
};

const struct kind kind_pod_templates = {
    KIND_CORE("PodTemplate", "podtemplates", "podtemplate"),
    .namespaced = true,
    .validate = kinds_plain_validate,
};
