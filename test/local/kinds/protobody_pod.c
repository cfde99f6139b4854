// SPDX-License-Identifier: Apache-2.0
/*
 * protobody_pod - pods: containers, affinity, security, and their status.
 */
#include "test/local/kinds/protobody_internal.h"

#include <stddef.h>

static const struct protobody_field container_port[] = {
    STR(1, name), INT(2, hostPort), INT0(3, containerPort), STR(4, protocol), STR(5, hostIP), END};
static const struct protobody_field config_map_env_source[] = {
    INLINE(1, protobody_local_object_reference), BOOL0(2, optional), END};
static const struct protobody_field secret_env_source[] = {
    INLINE(1, protobody_local_object_reference), BOOL0(2, optional), END};
static const struct protobody_field env_from_source[] = {
    STR(1, prefix), MSG(2, configMapRef, config_map_env_source),
    MSG(3, secretRef, secret_env_source), END};
static const struct protobody_field config_map_key_selector[] = {
    INLINE(1, protobody_local_object_reference), STR0(2, key), BOOL0(3, optional), END};
static const struct protobody_field secret_key_selector[] = {
    INLINE(1, protobody_local_object_reference), STR0(2, key), BOOL0(3, optional), END};
static const struct protobody_field file_key_selector[] = {STR0(1, volumeName), STR0(2, path),
                                                           STR0(3, key), BOOL0(4, optional), END};
static const struct protobody_field env_var_source[] = {
    MSG(1, fieldRef, protobody_object_field_selector),
    MSG(2, resourceFieldRef, protobody_resource_field_selector),
    MSG(3, configMapKeyRef, config_map_key_selector),
    MSG(4, secretKeyRef, secret_key_selector),
    MSG(5, fileKeyRef, file_key_selector),
    END};
static const struct protobody_field env_var[] = {STR0(1, name), STR(2, value),
                                                 MSG(3, valueFrom, env_var_source), END};
static const struct protobody_field resource_claim[] = {STR0(1, name), STR(2, request), END};
static const struct protobody_field resource_requirements[] = {
    MAP_AMOUNT(1, limits), MAP_AMOUNT(2, requests), LIST(3, claims, resource_claim), END};
static const struct protobody_field container_resize_policy[] = {STR0(1, resourceName),
                                                                 STR0(2, restartPolicy), END};
static const struct protobody_field container_restart_rule_on_exit_codes[] = {STR(1, operator),
                                                                              INTS(2, values), END};
static const struct protobody_field container_restart_rule[] = {
    STR(1, action), MSG(2, exitCodes, container_restart_rule_on_exit_codes), END};
static const struct protobody_field volume_mount[] = {
    STR0(1, name),   BOOL(2, readOnly),         STR0(7, recursiveReadOnly), STR0(3, mountPath),
    STR(4, subPath), STR0(5, mountPropagation), STR(6, subPathExpr),        END};
static const struct protobody_field volume_device[] = {STR0(1, name), STR0(2, devicePath), END};
static const struct protobody_field exec_action[] = {STRS(1, command), END};
static const struct protobody_field http_header[] = {STR0(1, name), STR0(2, value), END};
static const struct protobody_field http_get_action[] = {
    STR(1, path), PORT(2, port), STR(3, host), STR(4, scheme), LIST(5, httpHeaders, http_header),
    END};
static const struct protobody_field tcp_socket_action[] = {PORT(1, port), STR(2, host), END};
static const struct protobody_field grpc_action[] = {INT0(1, port), STR0(2, service), END};
static const struct protobody_field probe_handler[] = {
    MSG(1, exec, exec_action), MSG(2, httpGet, http_get_action),
    MSG(3, tcpSocket, tcp_socket_action), MSG(4, grpc, grpc_action), END};
static const struct protobody_field probe[] = {INLINE(1, probe_handler),
                                               INT(2, initialDelaySeconds),
                                               INT(3, timeoutSeconds),
                                               INT(4, periodSeconds),
                                               INT(5, successThreshold),
                                               INT(6, failureThreshold),
                                               LONG0(7, terminationGracePeriodSeconds),
                                               END};
static const struct protobody_field sleep_action[] = {LONG0(1, seconds), END};
static const struct protobody_field lifecycle_handler[] = {
    MSG(1, exec, exec_action), MSG(2, httpGet, http_get_action),
    MSG(3, tcpSocket, tcp_socket_action), MSG(4, sleep, sleep_action), END};
static const struct protobody_field lifecycle[] = {MSG(1, postStart, lifecycle_handler),
                                                   MSG(2, preStop, lifecycle_handler),
                                                   STR0(3, stopSignal), END};
static const struct protobody_field capabilities[] = {STRS(1, add), STRS(2, drop), END};
static const struct protobody_field se_linux_options[] = {STR(1, user), STR(2, role), STR(3, type),
                                                          STR(4, level), END};
static const struct protobody_field windows_security_context_options[] = {
    STR0(1, gmsaCredentialSpecName), STR0(2, gmsaCredentialSpec), STR0(3, runAsUserName),
    BOOL0(4, hostProcess), END};
static const struct protobody_field seccomp_profile[] = {STR0(1, type), STR0(2, localhostProfile),
                                                         END};
static const struct protobody_field app_armor_profile[] = {STR0(1, type), STR0(2, localhostProfile),
                                                           END};
static const struct protobody_field security_context[] = {
    MSG(1, capabilities, capabilities),
    BOOL0(2, privileged),
    MSG(3, seLinuxOptions, se_linux_options),
    MSG(10, windowsOptions, windows_security_context_options),
    LONG0(4, runAsUser),
    LONG0(8, runAsGroup),
    BOOL0(5, runAsNonRoot),
    BOOL0(6, readOnlyRootFilesystem),
    BOOL0(7, allowPrivilegeEscalation),
    STR0(9, procMount),
    MSG(11, seccompProfile, seccomp_profile),
    MSG(12, appArmorProfile, app_armor_profile),
    END};
static const struct protobody_field container[] = {
    STR0(1, name),
    STR(2, image),
    STRS(3, command),
    STRS(4, args),
    STR(5, workingDir),
    LIST(6, ports, container_port),
    LIST(19, envFrom, env_from_source),
    LIST(7, env, env_var),
    MSG(8, resources, resource_requirements),
    LIST(23, resizePolicy, container_resize_policy),
    STR0(24, restartPolicy),
    LIST(25, restartPolicyRules, container_restart_rule),
    LIST(9, volumeMounts, volume_mount),
    LIST(21, volumeDevices, volume_device),
    MSG(10, livenessProbe, probe),
    MSG(11, readinessProbe, probe),
    MSG(22, startupProbe, probe),
    MSG(12, lifecycle, lifecycle),
    STR(13, terminationMessagePath),
    STR(20, terminationMessagePolicy),
    STR(14, imagePullPolicy),
    MSG(15, securityContext, security_context),
    BOOL(16, stdin),
    BOOL(17, stdinOnce),
    BOOL(18, tty),
    END};
static const struct protobody_field ephemeral_container[] = {INLINE(1, container),
                                                             STR(2, targetContainerName), END};
static const struct protobody_field sysctl[] = {STR0(1, name), STR0(2, value), END};
static const struct protobody_field pod_security_context[] = {
    MSG(1, seLinuxOptions, se_linux_options),
    MSG(8, windowsOptions, windows_security_context_options),
    LONG0(2, runAsUser),
    LONG0(6, runAsGroup),
    BOOL0(3, runAsNonRoot),
    LONGS(4, supplementalGroups),
    STR0(12, supplementalGroupsPolicy),
    LONG0(5, fsGroup),
    LIST(7, sysctls, sysctl),
    STR0(9, fsGroupChangePolicy),
    MSG(10, seccompProfile, seccomp_profile),
    MSG(11, appArmorProfile, app_armor_profile),
    STR0(13, seLinuxChangePolicy),
    END};
static const struct protobody_field node_selector_requirement[] = {STR0(1, key), STR0(2, operator),
                                                                   STRS(3, values), END};
static const struct protobody_field node_selector_term[] = {
    LIST(1, matchExpressions, node_selector_requirement),
    LIST(2, matchFields, node_selector_requirement), END};
static const struct protobody_field node_selector[] = {
    LIST(1, nodeSelectorTerms, node_selector_term), END};
static const struct protobody_field preferred_scheduling_term[] = {
    INT0(1, weight), MSG(2, preference, node_selector_term), END};
static const struct protobody_field node_affinity[] = {
    MSG(1, requiredDuringSchedulingIgnoredDuringExecution, node_selector),
    LIST(2, preferredDuringSchedulingIgnoredDuringExecution, preferred_scheduling_term), END};
static const struct protobody_field pod_affinity_term[] = {
    MSG(1, labelSelector, protobody_label_selector),
    STRS(2, namespaces),
    STR0(3, topologyKey),
    MSG(4, namespaceSelector, protobody_label_selector),
    STRS(5, matchLabelKeys),
    STRS(6, mismatchLabelKeys),
    END};
static const struct protobody_field weighted_pod_affinity_term[] = {
    INT0(1, weight), MSG(2, podAffinityTerm, pod_affinity_term), END};
static const struct protobody_field pod_affinity[] = {
    LIST(1, requiredDuringSchedulingIgnoredDuringExecution, pod_affinity_term),
    LIST(2, preferredDuringSchedulingIgnoredDuringExecution, weighted_pod_affinity_term), END};
static const struct protobody_field pod_anti_affinity[] = {
    LIST(1, requiredDuringSchedulingIgnoredDuringExecution, pod_affinity_term),
    LIST(2, preferredDuringSchedulingIgnoredDuringExecution, weighted_pod_affinity_term), END};
static const struct protobody_field affinity[] = {MSG(1, nodeAffinity, node_affinity),
                                                  MSG(2, podAffinity, pod_affinity),
                                                  MSG(3, podAntiAffinity, pod_anti_affinity), END};
static const struct protobody_field toleration[] = {
    STR(1, key), STR(2, operator), STR(3, value), STR(4, effect), LONG0(5, tolerationSeconds), END};
static const struct protobody_field host_alias[] = {STR0(1, ip), STRS(2, hostnames), END};
static const struct protobody_field pod_dns_config_option[] = {STR(1, name), STR0(2, value), END};
static const struct protobody_field pod_dns_config[] = {
    STRS(1, nameservers), STRS(2, searches), LIST(3, options, pod_dns_config_option), END};
static const struct protobody_field pod_readiness_gate[] = {STR0(1, conditionType), END};
static const struct protobody_field topology_spread_constraint[] = {
    INT0(1, maxSkew),
    STR0(2, topologyKey),
    STR0(3, whenUnsatisfiable),
    MSG(4, labelSelector, protobody_label_selector),
    INT0(5, minDomains),
    STR0(6, nodeAffinityPolicy),
    STR0(7, nodeTaintsPolicy),
    STRS(8, matchLabelKeys),
    END};
static const struct protobody_field pod_os[] = {STR0(1, name), END};
static const struct protobody_field pod_scheduling_gate[] = {STR0(1, name), END};
static const struct protobody_field pod_resource_claim[] = {
    STR0(1, name), STR0(3, resourceClaimName), STR0(4, resourceClaimTemplateName), END};
static const struct protobody_field pod_scheduling_group[] = {STR0(1, podGroupName), END};
const struct protobody_field protobody_pod_spec[] = {
    LIST(1, volumes, protobody_volume),
    LIST(20, initContainers, container),
    LIST(2, containers, container),
    LIST(34, ephemeralContainers, ephemeral_container),
    STR(3, restartPolicy),
    LONG0(4, terminationGracePeriodSeconds),
    LONG0(5, activeDeadlineSeconds),
    STR(6, dnsPolicy),
    MAP_STR(7, nodeSelector),
    STR(8, serviceAccountName),
    STR(9, serviceAccount),
    BOOL0(21, automountServiceAccountToken),
    STR(10, nodeName),
    BOOL(11, hostNetwork),
    BOOL(12, hostPID),
    BOOL(13, hostIPC),
    BOOL0(27, shareProcessNamespace),
    MSG(14, securityContext, pod_security_context),
    LIST(15, imagePullSecrets, protobody_local_object_reference),
    STR(16, hostname),
    STR(17, subdomain),
    MSG(18, affinity, affinity),
    STR(19, schedulerName),
    LIST(22, tolerations, toleration),
    LIST(23, hostAliases, host_alias),
    STR(24, priorityClassName),
    INT0(25, priority),
    MSG(26, dnsConfig, pod_dns_config),
    LIST(28, readinessGates, pod_readiness_gate),
    STR0(29, runtimeClassName),
    BOOL0(30, enableServiceLinks),
    STR0(31, preemptionPolicy),
    MAP_AMOUNT(32, overhead),
    LIST(33, topologySpreadConstraints, topology_spread_constraint),
    BOOL0(35, setHostnameAsFQDN),
    MSG(36, os, pod_os),
    BOOL0(37, hostUsers),
    LIST(38, schedulingGates, pod_scheduling_gate),
    LIST(39, resourceClaims, pod_resource_claim),
    MSG(40, resources, resource_requirements),
    STR0(41, hostnameOverride),
    MSG(43, schedulingGroup, pod_scheduling_group),
    END};
static const struct protobody_field pod_condition[] = {STR0(1, type),
                                                       LONG(7, observedGeneration),
                                                       STR0(2, status),
                                                       TIME(3, lastProbeTime),
                                                       TIME(4, lastTransitionTime),
                                                       STR(5, reason),
                                                       STR(6, message),
                                                       END};
static const struct protobody_field host_ip[] = {STR0(1, ip), END};
static const struct protobody_field pod_ip[] = {STR0(1, ip), END};
static const struct protobody_field container_state_waiting[] = {STR(1, reason), STR(2, message),
                                                                 END};
static const struct protobody_field container_state_running[] = {TIME(1, startedAt), END};
static const struct protobody_field container_state_terminated[] = {
    INT0(1, exitCode),  INT(2, signal),      STR(3, reason),      STR(4, message),
    TIME(5, startedAt), TIME(6, finishedAt), STR(7, containerID), END};
static const struct protobody_field container_state[] = {
    MSG(1, waiting, container_state_waiting), MSG(2, running, container_state_running),
    MSG(3, terminated, container_state_terminated), END};
static const struct protobody_field image_volume_status[] = {STR(1, imageRef), END};
static const struct protobody_field volume_status[] = {MSG(1, image, image_volume_status), END};
static const struct protobody_field volume_mount_status[] = {STR0(1, name),
                                                             STR0(2, mountPath),
                                                             BOOL(3, readOnly),
                                                             STR0(4, recursiveReadOnly),
                                                             MSG(5, volumeStatus, volume_status),
                                                             END};
static const struct protobody_field linux_container_user[] = {LONG0(1, uid), LONG0(2, gid),
                                                              LONGS(3, supplementalGroups), END};
static const struct protobody_field container_user[] = {MSG(1, linux, linux_container_user), END};
static const struct protobody_field resource_health[] = {STR0(1, resourceID), STR(2, health),
                                                         STR0(6, message), END};
static const struct protobody_field resource_status[] = {STR0(1, name),
                                                         LIST(2, resources, resource_health), END};
static const struct protobody_field container_status[] = {
    STR0(1, name),
    MSG(2, state, container_state),
    MSG(3, lastState, container_state),
    BOOL0(4, ready),
    INT0(5, restartCount),
    STR0(6, image),
    STR0(7, imageID),
    STR(8, containerID),
    BOOL0(9, started),
    MAP_AMOUNT(10, allocatedResources),
    MSG(11, resources, resource_requirements),
    LIST(12, volumeMounts, volume_mount_status),
    MSG(13, user, container_user),
    LIST(14, allocatedResourcesStatus, resource_status),
    STR0(15, stopSignal),
    END};
static const struct protobody_field pod_resource_claim_status[] = {STR0(1, name),
                                                                   STR0(2, resourceClaimName), END};
static const struct protobody_field container_extended_resource_request[] = {
    STR0(1, containerName), STR0(2, resourceName), STR0(3, requestName), END};
static const struct protobody_field pod_extended_resource_claim_status[] = {
    LIST(1, requestMappings, container_extended_resource_request), STR0(2, resourceClaimName), END};
static const struct protobody_field node_allocatable_resource_claim_status[] = {
    STR0(1, resourceClaimName), STRS(2, containers), MAP_AMOUNT(3, resources), END};
static const struct protobody_field pod_status[] = {
    LONG(17, observedGeneration),
    STR(1, phase),
    LIST(2, conditions, pod_condition),
    STR(3, message),
    STR(4, reason),
    STR(11, nominatedNodeName),
    STR(5, hostIP),
    LIST(16, hostIPs, host_ip),
    STR(6, podIP),
    LIST(12, podIPs, pod_ip),
    TIME(7, startTime),
    LIST(10, initContainerStatuses, container_status),
    LIST(8, containerStatuses, container_status),
    STR(9, qosClass),
    LIST(13, ephemeralContainerStatuses, container_status),
    STR(14, resize),
    LIST(15, resourceClaimStatuses, pod_resource_claim_status),
    MSG(18, extendedResourceClaimStatus, pod_extended_resource_claim_status),
    MAP_AMOUNT(19, allocatedResources),
    MSG(20, resources, resource_requirements),
    LIST(21, nodeAllocatableResourceClaimStatuses, node_allocatable_resource_claim_status),
    END};
const struct protobody_field protobody_pod[] = {MSG(1, metadata, protobody_object_meta),
                                                MSG(2, spec, protobody_pod_spec),
                                                MSG(3, status, pod_status), END};
