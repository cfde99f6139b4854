// SPDX-License-Identifier: Apache-2.0
/*
 * protobody_core - objects of the core group that are not pods, and the metadata that every object
 * has.
 */
#include "test/local/kinds/protobody_internal.h"

#include <stddef.h>

static const struct protobody_field owner_reference[] = {STR0(5, apiVersion),
                                                         STR0(1, kind),
                                                         STR0(3, name),
                                                         STR0(4, uid),
                                                         BOOL0(6, controller),
                                                         BOOL0(7, blockOwnerDeletion),
                                                         END};
static const struct protobody_field managed_fields_entry[] = {
    STR(1, manager),    STR(2, operation), STR(3, apiVersion),  TIME(4, time),
    STR(6, fieldsType), JSON(7, fieldsV1), STR(8, subresource), END};
const struct protobody_field protobody_object_meta[] = {
    STR(1, name),
    STR(2, generateName),
    STR(3, namespace),
    STR(4, selfLink),
    STR(5, uid),
    STR(6, resourceVersion),
    LONG(7, generation),
    TIME(8, creationTimestamp),
    TIME(9, deletionTimestamp),
    LONG0(10, deletionGracePeriodSeconds),
    MAP_STR(11, labels),
    MAP_STR(12, annotations),
    LIST(13, ownerReferences, owner_reference),
    STRS(14, finalizers),
    LIST(17, managedFields, managed_fields_entry),
    END};
static const struct protobody_field label_selector_requirement[] = {STR0(1, key), STR0(2, operator),
                                                                    STRS(3, values), END};
const struct protobody_field protobody_label_selector[] = {
    MAP_STR(1, matchLabels), LIST(2, matchExpressions, label_selector_requirement), END};
static const struct protobody_field namespace_spec[] = {STRS(1, finalizers), END};
static const struct protobody_field namespace_condition[] = {
    STR0(1, type),  STR0(2, status), TIME(4, lastTransitionTime),
    STR(5, reason), STR(6, message), END};
static const struct protobody_field namespace_status[] = {
    STR(1, phase), LIST(2, conditions, namespace_condition), END};
const struct protobody_field protobody_namespace[] = {MSG(1, metadata, protobody_object_meta),
                                                      MSG(2, spec, namespace_spec),
                                                      MSG(3, status, namespace_status), END};
const struct protobody_field protobody_config_map[] = {MSG(1, metadata, protobody_object_meta),
                                                       BOOL0(4, immutable), MAP_STR(2, data),
                                                       MAP_BYTES(3, binaryData), END};
const struct protobody_field protobody_secret[] = {MSG(1, metadata, protobody_object_meta),
                                                   BOOL0(5, immutable),
                                                   MAP_BYTES(2, data),
                                                   MAP_STR(4, stringData),
                                                   STR(3, type),
                                                   END};
const struct protobody_field protobody_object_reference[] = {
    STR(1, kind),       STR(2, namespace),       STR(3, name),      STR(4, uid),
    STR(5, apiVersion), STR(6, resourceVersion), STR(7, fieldPath), END};
const struct protobody_field protobody_service_account[] = {
    MSG(1, metadata, protobody_object_meta), LIST(2, secrets, protobody_object_reference),
    LIST(3, imagePullSecrets, protobody_local_object_reference),
    BOOL0(4, automountServiceAccountToken), END};
static const struct protobody_field scoped_resource_selector_requirement[] = {
    STR0(1, scopeName), STR0(2, operator), STRS(3, values), END};
static const struct protobody_field scope_selector[] = {
    LIST(1, matchExpressions, scoped_resource_selector_requirement), END};
static const struct protobody_field resource_quota_spec[] = {
    MAP_AMOUNT(1, hard), STRS(2, scopes), MSG(3, scopeSelector, scope_selector), END};
static const struct protobody_field resource_quota_status[] = {MAP_AMOUNT(1, hard),
                                                               MAP_AMOUNT(2, used), END};
const struct protobody_field protobody_resource_quota[] = {
    MSG(1, metadata, protobody_object_meta), MSG(2, spec, resource_quota_spec),
    MSG(3, status, resource_quota_status), END};
static const struct protobody_field limit_range_item[] = {STR0(1, type),
                                                          MAP_AMOUNT(2, max),
                                                          MAP_AMOUNT(3, min),
                                                          MAP_AMOUNT(4, default),
                                                          MAP_AMOUNT(5, defaultRequest),
                                                          MAP_AMOUNT(6, maxLimitRequestRatio),
                                                          END};
static const struct protobody_field limit_range_spec[] = {LIST(1, limits, limit_range_item), END};
const struct protobody_field protobody_limit_range[] = {MSG(1, metadata, protobody_object_meta),
                                                        MSG(2, spec, limit_range_spec), END};
static const struct protobody_field service_port[] = {STR(1, name),
                                                      STR(2, protocol),
                                                      STR0(6, appProtocol),
                                                      INT0(3, port),
                                                      PORT(4, targetPort),
                                                      INT(5, nodePort),
                                                      END};
static const struct protobody_field client_ip_config[] = {INT0(1, timeoutSeconds), END};
static const struct protobody_field session_affinity_config[] = {MSG(1, clientIP, client_ip_config),
                                                                 END};
static const struct protobody_field service_spec[] = {
    LIST(1, ports, service_port),
    MAP_STR(2, selector),
    STR(3, clusterIP),
    STRS(18, clusterIPs),
    STR(4, type),
    STRS(5, externalIPs),
    STR(7, sessionAffinity),
    STR(8, loadBalancerIP),
    STRS(9, loadBalancerSourceRanges),
    STR(10, externalName),
    STR(11, externalTrafficPolicy),
    INT(12, healthCheckNodePort),
    BOOL(13, publishNotReadyAddresses),
    MSG(14, sessionAffinityConfig, session_affinity_config),
    STRS(19, ipFamilies),
    STR0(17, ipFamilyPolicy),
    BOOL0(20, allocateLoadBalancerNodePorts),
    STR0(21, loadBalancerClass),
    STR0(22, internalTrafficPolicy),
    STR0(23, trafficDistribution),
    END};
static const struct protobody_field port_status[] = {INT0(1, port), STR0(2, protocol),
                                                     STR0(3, error), END};
static const struct protobody_field load_balancer_ingress[] = {
    STR(1, ip), STR(2, hostname), STR0(3, ipMode), LIST(4, ports, port_status), END};
static const struct protobody_field load_balancer_status[] = {
    LIST(1, ingress, load_balancer_ingress), END};
const struct protobody_field protobody_condition[] = {STR0(1, type),
                                                      STR0(2, status),
                                                      LONG(3, observedGeneration),
                                                      TIME(4, lastTransitionTime),
                                                      STR0(5, reason),
                                                      STR0(6, message),
                                                      END};
static const struct protobody_field service_status[] = {
    MSG(1, loadBalancer, load_balancer_status), LIST(2, conditions, protobody_condition), END};
const struct protobody_field protobody_service[] = {MSG(1, metadata, protobody_object_meta),
                                                    MSG(2, spec, service_spec),
                                                    MSG(3, status, service_status), END};
const struct protobody_field protobody_event_source[] = {STR(1, component), STR(2, host), END};
static const struct protobody_field core_event_series[] = {INT(1, count),
                                                           MICRO(2, lastObservedTime), END};
const struct protobody_field protobody_core_event[] = {
    MSG(1, metadata, protobody_object_meta),
    MSG(2, involvedObject, protobody_object_reference),
    STR(3, reason),
    STR(4, message),
    MSG(5, source, protobody_event_source),
    TIME(6, firstTimestamp),
    TIME(7, lastTimestamp),
    INT(8, count),
    STR(9, type),
    MICRO(10, eventTime),
    MSG(11, series, core_event_series),
    STR(12, action),
    MSG(13, related, protobody_object_reference),
    STR0(14, reportingComponent),
    STR0(15, reportingInstance),
    END};
static const struct protobody_field persistent_volume_claim_condition[] = {
    STR0(1, type),
    STR0(2, status),
    TIME(3, lastProbeTime),
    TIME(4, lastTransitionTime),
    STR(5, reason),
    STR(6, message),
    END};
static const struct protobody_field modify_volume_status[] = {
    STR(1, targetVolumeAttributesClassName), STR0(2, status), END};
static const struct protobody_field persistent_volume_claim_status[] = {
    STR(1, phase),
    STRS(2, accessModes),
    MAP_AMOUNT(3, capacity),
    LIST(4, conditions, persistent_volume_claim_condition),
    MAP_AMOUNT(5, allocatedResources),
    MAP_STR(7, allocatedResourceStatuses),
    STR0(8, currentVolumeAttributesClassName),
    MSG(9, modifyVolumeStatus, modify_volume_status),
    END};
const struct protobody_field protobody_persistent_volume_claim[] = {
    MSG(1, metadata, protobody_object_meta), MSG(2, spec, protobody_persistent_volume_claim_spec),
    MSG(3, status, persistent_volume_claim_status), END};
const struct protobody_field protobody_binding[] = {
    MSG(1, metadata, protobody_object_meta), MSG(2, target, protobody_object_reference), END};
static const struct protobody_field preconditions[] = {STR0(1, uid), STR0(2, resourceVersion), END};
const struct protobody_field protobody_delete_options[] = {
    LONG0(1, gracePeriodSeconds),
    MSG(2, preconditions, preconditions),
    BOOL0(3, orphanDependents),
    STR0(4, propagationPolicy),
    STRS(5, dryRun),
    BOOL0(6, ignoreStoreReadErrorWithClusterBreakingPotential),
    END};
static const struct protobody_field taint[] = {STR0(1, key), STR(2, value), STR0(3, effect),
                                               TIME(4, timeAdded), END};
static const struct protobody_field config_map_node_config_source[] = {STR0(1, namespace),
                                                                       STR0(2, name),
                                                                       STR(3, uid),
                                                                       STR(4, resourceVersion),
                                                                       STR0(5, kubeletConfigKey),
                                                                       END};
static const struct protobody_field node_config_source[] = {
    MSG(2, configMap, config_map_node_config_source), END};
static const struct protobody_field node_spec[] = {
    STR(1, podCIDR),        STRS(7, podCIDRs),
    STR(3, providerID),     BOOL(4, unschedulable),
    LIST(5, taints, taint), MSG(6, configSource, node_config_source),
    STR(2, externalID),     END};
static const struct protobody_field node_condition[] = {STR0(1, type),
                                                        STR0(2, status),
                                                        TIME(3, lastHeartbeatTime),
                                                        TIME(4, lastTransitionTime),
                                                        STR(5, reason),
                                                        STR(6, message),
                                                        END};
static const struct protobody_field node_address[] = {STR0(1, type), STR0(2, address), END};
static const struct protobody_field daemon_endpoint[] = {INT0(1, Port), END};
static const struct protobody_field node_daemon_endpoints[] = {
    MSG(1, kubeletEndpoint, daemon_endpoint), END};
static const struct protobody_field node_swap_status[] = {LONG0(1, capacity), END};
static const struct protobody_field node_system_info[] = {STR0(1, machineID),
                                                          STR0(2, systemUUID),
                                                          STR0(3, bootID),
                                                          STR0(4, kernelVersion),
                                                          STR0(5, osImage),
                                                          STR0(6, containerRuntimeVersion),
                                                          STR0(7, kubeletVersion),
                                                          STR0(8, kubeProxyVersion),
                                                          STR0(9, operatingSystem),
                                                          STR0(10, architecture),
                                                          MSG(11, swap, node_swap_status),
                                                          END};
static const struct protobody_field container_image[] = {STRS(1, names), LONG(2, sizeBytes), END};
static const struct protobody_field attached_volume[] = {STR0(1, name), STR0(2, devicePath), END};
static const struct protobody_field node_config_status[] = {
    MSG(1, assigned, node_config_source), MSG(2, active, node_config_source),
    MSG(3, lastKnownGood, node_config_source), STR(4, error), END};
static const struct protobody_field node_runtime_handler_features[] = {
    BOOL0(1, recursiveReadOnlyMounts), BOOL0(2, userNamespaces), END};
static const struct protobody_field node_runtime_handler[] = {
    STR0(1, name), MSG(2, features, node_runtime_handler_features), END};
static const struct protobody_field node_features[] = {BOOL0(1, supplementalGroupsPolicy), END};
static const struct protobody_field node_status[] = {
    MAP_AMOUNT(1, capacity),
    MAP_AMOUNT(2, allocatable),
    STR(3, phase),
    LIST(4, conditions, node_condition),
    LIST(5, addresses, node_address),
    MSG(6, daemonEndpoints, node_daemon_endpoints),
    MSG(7, nodeInfo, node_system_info),
    LIST(8, images, container_image),
    STRS(9, volumesInUse),
    LIST(10, volumesAttached, attached_volume),
    MSG(11, config, node_config_status),
    LIST(12, runtimeHandlers, node_runtime_handler),
    MSG(13, features, node_features),
    STRS(14, declaredFeatures),
    END};
const struct protobody_field protobody_node[] = {MSG(1, metadata, protobody_object_meta),
                                                 MSG(2, spec, node_spec),
                                                 MSG(3, status, node_status), END};
