// SPDX-License-Identifier: Apache-2.0
/*
 * protobody_types - which kinds there are, and those of the groups other than core.
 */
#include "test/local/kinds/protobody_internal.h"

#include <stddef.h>

static const struct protobody_field pod_failure_policy_on_exit_codes_requirement[] = {
    STR0(1, containerName), STR0(2, operator), INTS(3, values), END};
static const struct protobody_field pod_failure_policy_on_pod_conditions_pattern[] = {
    STR0(1, type), STR0(2, status), END};
static const struct protobody_field pod_failure_policy_rule[] = {
    STR0(1, action), MSG(2, onExitCodes, pod_failure_policy_on_exit_codes_requirement),
    LIST(3, onPodConditions, pod_failure_policy_on_pod_conditions_pattern), END};
static const struct protobody_field pod_failure_policy[] = {LIST(1, rules, pod_failure_policy_rule),
                                                            END};
static const struct protobody_field success_policy_rule[] = {STR0(1, succeededIndexes),
                                                             INT0(2, succeededCount), END};
static const struct protobody_field success_policy[] = {LIST(1, rules, success_policy_rule), END};
static const struct protobody_field pod_template_spec[] = {MSG(1, metadata, protobody_object_meta),
                                                           MSG(2, spec, protobody_pod_spec), END};
static const struct protobody_field job_spec[] = {INT0(1, parallelism),
                                                  INT0(2, completions),
                                                  LONG0(3, activeDeadlineSeconds),
                                                  MSG(11, podFailurePolicy, pod_failure_policy),
                                                  MSG(16, successPolicy, success_policy),
                                                  INT0(7, backoffLimit),
                                                  INT0(12, backoffLimitPerIndex),
                                                  INT0(13, maxFailedIndexes),
                                                  MSG(4, selector, protobody_label_selector),
                                                  BOOL0(5, manualSelector),
                                                  MSG(6, template, pod_template_spec),
                                                  INT0(8, ttlSecondsAfterFinished),
                                                  STR0(9, completionMode),
                                                  BOOL0(10, suspend),
                                                  STR0(14, podReplacementPolicy),
                                                  STR0(15, managedBy),
                                                  END};
static const struct protobody_field job_condition[] = {STR0(1, type),
                                                       STR0(2, status),
                                                       TIME(3, lastProbeTime),
                                                       TIME(4, lastTransitionTime),
                                                       STR(5, reason),
                                                       STR(6, message),
                                                       END};
static const struct protobody_field uncounted_terminated_pods[] = {STRS(1, succeeded),
                                                                   STRS(2, failed), END};
static const struct protobody_field job_status[] = {
    LIST(1, conditions, job_condition),
    TIME(2, startTime),
    TIME(3, completionTime),
    INT(4, active),
    INT(5, succeeded),
    INT(6, failed),
    INT0(11, terminating),
    STR(7, completedIndexes),
    STR0(10, failedIndexes),
    MSG(8, uncountedTerminatedPods, uncounted_terminated_pods),
    INT0(9, ready),
    END};
static const struct protobody_field job[] = {MSG(1, metadata, protobody_object_meta),
                                             MSG(2, spec, job_spec), MSG(3, status, job_status),
                                             END};
static const struct protobody_field job_template_spec[] = {MSG(1, metadata, protobody_object_meta),
                                                           MSG(2, spec, job_spec), END};
static const struct protobody_field cron_job_spec[] = {STR0(1, schedule),
                                                       STR0(8, timeZone),
                                                       LONG0(2, startingDeadlineSeconds),
                                                       STR(3, concurrencyPolicy),
                                                       BOOL0(4, suspend),
                                                       MSG(5, jobTemplate, job_template_spec),
                                                       INT0(6, successfulJobsHistoryLimit),
                                                       INT0(7, failedJobsHistoryLimit),
                                                       END};
static const struct protobody_field cron_job_status[] = {
    LIST(1, active, protobody_object_reference), TIME(4, lastScheduleTime),
    TIME(5, lastSuccessfulTime), END};
static const struct protobody_field cron_job[] = {MSG(1, metadata, protobody_object_meta),
                                                  MSG(2, spec, cron_job_spec),
                                                  MSG(3, status, cron_job_status), END};
static const struct protobody_field rolling_update_deployment[] = {PORT(1, maxUnavailable),
                                                                   PORT(2, maxSurge), END};
static const struct protobody_field deployment_strategy[] = {
    STR(1, type), MSG(2, rollingUpdate, rolling_update_deployment), END};
static const struct protobody_field deployment_spec[] = {INT0(1, replicas),
                                                         MSG(2, selector, protobody_label_selector),
                                                         MSG(3, template, pod_template_spec),
                                                         MSG(4, strategy, deployment_strategy),
                                                         INT(5, minReadySeconds),
                                                         INT0(6, revisionHistoryLimit),
                                                         BOOL(7, paused),
                                                         INT0(9, progressDeadlineSeconds),
                                                         END};
static const struct protobody_field deployment_condition[] = {STR0(1, type),
                                                              STR0(2, status),
                                                              TIME(6, lastUpdateTime),
                                                              TIME(7, lastTransitionTime),
                                                              STR(4, reason),
                                                              STR(5, message),
                                                              END};
static const struct protobody_field deployment_status[] = {
    LONG(1, observedGeneration),  INT(2, replicas),
    INT(3, updatedReplicas),      INT(7, readyReplicas),
    INT(4, availableReplicas),    INT(5, unavailableReplicas),
    INT0(9, terminatingReplicas), LIST(6, conditions, deployment_condition),
    INT0(8, collisionCount),      END};
static const struct protobody_field deployment[] = {MSG(1, metadata, protobody_object_meta),
                                                    MSG(2, spec, deployment_spec),
                                                    MSG(3, status, deployment_status), END};
static const struct protobody_field replica_set_spec[] = {
    INT0(1, replicas), INT(4, minReadySeconds), MSG(2, selector, protobody_label_selector),
    MSG(3, template, pod_template_spec), END};
static const struct protobody_field replica_set_condition[] = {
    STR0(1, type),  STR0(2, status), TIME(3, lastTransitionTime),
    STR(4, reason), STR(5, message), END};
static const struct protobody_field replica_set_status[] = {
    INT0(1, replicas),
    INT(2, fullyLabeledReplicas),
    INT(4, readyReplicas),
    INT(5, availableReplicas),
    INT0(7, terminatingReplicas),
    LONG(3, observedGeneration),
    LIST(6, conditions, replica_set_condition),
    END};
static const struct protobody_field replica_set[] = {MSG(1, metadata, protobody_object_meta),
                                                     MSG(2, spec, replica_set_spec),
                                                     MSG(3, status, replica_set_status), END};
static const struct protobody_field rolling_update_daemon_set[] = {PORT(1, maxUnavailable),
                                                                   PORT(2, maxSurge), END};
static const struct protobody_field daemon_set_update_strategy[] = {
    STR(1, type), MSG(2, rollingUpdate, rolling_update_daemon_set), END};
static const struct protobody_field daemon_set_spec[] = {
    MSG(1, selector, protobody_label_selector),
    MSG(2, template, pod_template_spec),
    MSG(3, updateStrategy, daemon_set_update_strategy),
    INT(4, minReadySeconds),
    INT0(6, revisionHistoryLimit),
    END};
static const struct protobody_field daemon_set_condition[] = {
    STR0(1, type),  STR0(2, status), TIME(3, lastTransitionTime),
    STR(4, reason), STR(5, message), END};
static const struct protobody_field daemon_set_status[] = {
    INT0(1, currentNumberScheduled),
    INT0(2, numberMisscheduled),
    INT0(3, desiredNumberScheduled),
    INT0(4, numberReady),
    LONG(5, observedGeneration),
    INT(6, updatedNumberScheduled),
    INT(7, numberAvailable),
    INT(8, numberUnavailable),
    INT0(9, collisionCount),
    LIST(10, conditions, daemon_set_condition),
    END};
static const struct protobody_field daemon_set[] = {MSG(1, metadata, protobody_object_meta),
                                                    MSG(2, spec, daemon_set_spec),
                                                    MSG(3, status, daemon_set_status), END};
static const struct protobody_field rolling_update_stateful_set_strategy[] = {
    INT0(1, partition), PORT(2, maxUnavailable), END};
static const struct protobody_field stateful_set_update_strategy[] = {
    STR(1, type), MSG(2, rollingUpdate, rolling_update_stateful_set_strategy), END};
static const struct protobody_field stateful_set_persistent_volume_claim_retention_policy[] = {
    STR(1, whenDeleted), STR(2, whenScaled), END};
static const struct protobody_field stateful_set_ordinals[] = {INT0(1, start), END};
static const struct protobody_field stateful_set_spec[] = {
    INT0(1, replicas),
    MSG(2, selector, protobody_label_selector),
    MSG(3, template, pod_template_spec),
    LIST(4, volumeClaimTemplates, protobody_persistent_volume_claim),
    STR0(5, serviceName),
    STR(6, podManagementPolicy),
    MSG(7, updateStrategy, stateful_set_update_strategy),
    INT0(8, revisionHistoryLimit),
    INT(9, minReadySeconds),
    MSG(10, persistentVolumeClaimRetentionPolicy,
        stateful_set_persistent_volume_claim_retention_policy),
    MSG(11, ordinals, stateful_set_ordinals),
    END};
static const struct protobody_field stateful_set_condition[] = {
    STR0(1, type),  STR0(2, status), TIME(3, lastTransitionTime),
    STR(4, reason), STR(5, message), END};
static const struct protobody_field stateful_set_status[] = {
    LONG(1, observedGeneration),
    INT0(2, replicas),
    INT(3, readyReplicas),
    INT(4, currentReplicas),
    INT(5, updatedReplicas),
    STR(6, currentRevision),
    STR(7, updateRevision),
    INT0(9, collisionCount),
    LIST(10, conditions, stateful_set_condition),
    INT0(11, availableReplicas),
    END};
static const struct protobody_field stateful_set[] = {MSG(1, metadata, protobody_object_meta),
                                                      MSG(2, spec, stateful_set_spec),
                                                      MSG(3, status, stateful_set_status), END};
static const struct protobody_field priority_class[] = {MSG(1, metadata, protobody_object_meta),
                                                        INT0(2, value),
                                                        BOOL(3, globalDefault),
                                                        STR(4, description),
                                                        STR0(5, preemptionPolicy),
                                                        END};
static const struct protobody_field pod_disruption_budget_spec[] = {
    PORT(1, minAvailable), MSG(2, selector, protobody_label_selector), PORT(3, maxUnavailable),
    STR0(4, unhealthyPodEvictionPolicy), END};
static const struct protobody_field pod_disruption_budget_status[] = {
    LONG(1, observedGeneration),
    MAP_TIME(2, disruptedPods),
    INT0(3, disruptionsAllowed),
    INT0(4, currentHealthy),
    INT0(5, desiredHealthy),
    INT0(6, expectedPods),
    LIST(7, conditions, protobody_condition),
    END};
static const struct protobody_field pod_disruption_budget[] = {
    MSG(1, metadata, protobody_object_meta), MSG(2, spec, pod_disruption_budget_spec),
    MSG(3, status, pod_disruption_budget_status), END};
static const struct protobody_field eviction[] = {
    MSG(1, metadata, protobody_object_meta), MSG(2, deleteOptions, protobody_delete_options), END};
static const struct protobody_field lease_spec[] = {
    STR0(1, holderIdentity),   INT0(2, leaseDurationSeconds),
    MICRO(3, acquireTime),     MICRO(4, renewTime),
    INT0(5, leaseTransitions), STR0(6, strategy),
    STR0(7, preferredHolder),  END};
static const struct protobody_field lease[] = {MSG(1, metadata, protobody_object_meta),
                                               MSG(2, spec, lease_spec), END};
static const struct protobody_field policy_rule[] = {
    STRS(1, verbs),         STRS(2, apiGroups),       STRS(3, resources),
    STRS(4, resourceNames), STRS(5, nonResourceURLs), END};
static const struct protobody_field role[] = {MSG(1, metadata, protobody_object_meta),
                                              LIST(2, rules, policy_rule), END};
static const struct protobody_field aggregation_rule[] = {
    LIST(1, clusterRoleSelectors, protobody_label_selector), END};
static const struct protobody_field cluster_role[] = {
    MSG(1, metadata, protobody_object_meta), LIST(2, rules, policy_rule),
    MSG(3, aggregationRule, aggregation_rule), END};
static const struct protobody_field subject[] = {STR0(1, kind), STR(2, apiGroup), STR0(3, name),
                                                 STR(4, namespace), END};
static const struct protobody_field role_ref[] = {STR0(1, apiGroup), STR0(2, kind), STR0(3, name),
                                                  END};
static const struct protobody_field role_binding[] = {MSG(1, metadata, protobody_object_meta),
                                                      LIST(2, subjects, subject),
                                                      MSG(3, roleRef, role_ref), END};
static const struct protobody_field cluster_role_binding[] = {
    MSG(1, metadata, protobody_object_meta), LIST(2, subjects, subject), MSG(3, roleRef, role_ref),
    END};
static const struct protobody_field scale_spec[] = {INT(1, replicas), END};
static const struct protobody_field scale_status[] = {INT0(1, replicas), STR(2, selector), END};
static const struct protobody_field scale[] = {MSG(1, metadata, protobody_object_meta),
                                               MSG(2, spec, scale_spec),
                                               MSG(3, status, scale_status), END};
static const struct protobody_field events_event_series[] = {INT0(1, count),
                                                             MICRO(2, lastObservedTime), END};
static const struct protobody_field events_event[] = {
    MSG(1, metadata, protobody_object_meta),
    MICRO(2, eventTime),
    MSG(3, series, events_event_series),
    STR(4, reportingController),
    STR(5, reportingInstance),
    STR(6, action),
    STR(7, reason),
    MSG(8, regarding, protobody_object_reference),
    MSG(9, related, protobody_object_reference),
    STR(10, note),
    STR(11, type),
    MSG(12, deprecatedSource, protobody_event_source),
    TIME(13, deprecatedFirstTimestamp),
    TIME(14, deprecatedLastTimestamp),
    INT(15, deprecatedCount),
    END};

const struct protobody_kind protobody_kinds[] = {
    {"v1", "Namespace", protobody_namespace},
    {"v1", "ConfigMap", protobody_config_map},
    {"v1", "Secret", protobody_secret},
    {"v1", "ServiceAccount", protobody_service_account},
    {"v1", "ResourceQuota", protobody_resource_quota},
    {"v1", "LimitRange", protobody_limit_range},
    {"v1", "Service", protobody_service},
    {"v1", "Pod", protobody_pod},
    {"v1", "Node", protobody_node},
    {"v1", "Event", protobody_core_event},
    {"v1", "PersistentVolumeClaim", protobody_persistent_volume_claim},
    {"v1", "Binding", protobody_binding},
    {"batch/v1", "Job", job},
    {"batch/v1", "CronJob", cron_job},
    {"apps/v1", "Deployment", deployment},
    {"apps/v1", "ReplicaSet", replica_set},
    {"apps/v1", "DaemonSet", daemon_set},
    {"apps/v1", "StatefulSet", stateful_set},
    {"scheduling.k8s.io/v1", "PriorityClass", priority_class},
    {"policy/v1", "PodDisruptionBudget", pod_disruption_budget},
    {"policy/v1", "Eviction", eviction},
    {"coordination.k8s.io/v1", "Lease", lease},
    {"rbac.authorization.k8s.io/v1", "Role", role},
    {"rbac.authorization.k8s.io/v1", "ClusterRole", cluster_role},
    {"rbac.authorization.k8s.io/v1", "RoleBinding", role_binding},
    {"rbac.authorization.k8s.io/v1", "ClusterRoleBinding", cluster_role_binding},
    {"autoscaling/v1", "Scale", scale},
    {"events.k8s.io/v1", "Event", events_event},
    {NULL, "DeleteOptions", protobody_delete_options},
    {NULL, NULL, NULL},
};
