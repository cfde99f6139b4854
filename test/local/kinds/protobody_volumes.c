// SPDX-License-Identifier: Apache-2.0
/*
 * protobody_volumes - volumes of pods, with the claims and selectors they hold. All of them: a
 * source without a table would vanish silently.
 */
#include "test/local/kinds/protobody_internal.h"

#include <stddef.h>

static const struct protobody_field host_path_volume_source[] = {STR0(1, path), STR0(2, type), END};
static const struct protobody_field empty_dir_volume_source[] = {STR(1, medium),
                                                                 AMOUNT(2, sizeLimit), END};
static const struct protobody_field gce_persistent_disk_volume_source[] = {
    STR0(1, pdName), STR(2, fsType), INT(3, partition), BOOL(4, readOnly), END};
static const struct protobody_field aws_elastic_block_store_volume_source[] = {
    STR0(1, volumeID), STR(2, fsType), INT(3, partition), BOOL(4, readOnly), END};
static const struct protobody_field git_repo_volume_source[] = {
    STR0(1, repository), STR(2, revision), STR(3, directory), END};
static const struct protobody_field key_to_path[] = {STR0(1, key), STR0(2, path), INT0(3, mode),
                                                     END};
static const struct protobody_field secret_volume_source[] = {
    STR(1, secretName), LIST(2, items, key_to_path), INT0(3, defaultMode), BOOL0(4, optional), END};
static const struct protobody_field nfs_volume_source[] = {STR0(1, server), STR0(2, path),
                                                           BOOL(3, readOnly), END};
const struct protobody_field protobody_local_object_reference[] = {STR(1, name), END};
static const struct protobody_field iscsi_volume_source[] = {
    STR0(1, targetPortal),
    STR0(2, iqn),
    INT0(3, lun),
    STR(4, iscsiInterface),
    STR(5, fsType),
    BOOL(6, readOnly),
    STRS(7, portals),
    BOOL(8, chapAuthDiscovery),
    BOOL(11, chapAuthSession),
    MSG(10, secretRef, protobody_local_object_reference),
    STR0(12, initiatorName),
    END};
static const struct protobody_field glusterfs_volume_source[] = {STR0(1, endpoints), STR0(2, path),
                                                                 BOOL(3, readOnly), END};
static const struct protobody_field persistent_volume_claim_volume_source[] = {
    STR0(1, claimName), BOOL(2, readOnly), END};
static const struct protobody_field rbd_volume_source[] = {
    STRS(1, monitors),
    STR0(2, image),
    STR(3, fsType),
    STR(4, pool),
    STR(5, user),
    STR(6, keyring),
    MSG(7, secretRef, protobody_local_object_reference),
    BOOL(8, readOnly),
    END};
static const struct protobody_field flex_volume_source[] = {
    STR0(1, driver),   STR(2, fsType),      MSG(3, secretRef, protobody_local_object_reference),
    BOOL(4, readOnly), MAP_STR(5, options), END};
static const struct protobody_field cinder_volume_source[] = {
    STR0(1, volumeID), STR(2, fsType), BOOL(3, readOnly),
    MSG(4, secretRef, protobody_local_object_reference), END};
static const struct protobody_field ceph_fs_volume_source[] = {
    STRS(1, monitors),
    STR(2, path),
    STR(3, user),
    STR(4, secretFile),
    MSG(5, secretRef, protobody_local_object_reference),
    BOOL(6, readOnly),
    END};
static const struct protobody_field flocker_volume_source[] = {STR(1, datasetName),
                                                               STR(2, datasetUUID), END};
const struct protobody_field protobody_object_field_selector[] = {STR(1, apiVersion),
                                                                  STR0(2, fieldPath), END};
const struct protobody_field protobody_resource_field_selector[] = {
    STR(1, containerName), STR0(2, resource), AMOUNT(3, divisor), END};
static const struct protobody_field downward_api_volume_file[] = {
    STR0(1, path), MSG(2, fieldRef, protobody_object_field_selector),
    MSG(3, resourceFieldRef, protobody_resource_field_selector), INT0(4, mode), END};
static const struct protobody_field downward_api_volume_source[] = {
    LIST(1, items, downward_api_volume_file), INT0(2, defaultMode), END};
static const struct protobody_field fc_volume_source[] = {
    STRS(1, targetWWNs), INT0(2, lun), STR(3, fsType), BOOL(4, readOnly), STRS(5, wwids), END};
static const struct protobody_field azure_file_volume_source[] = {
    STR0(1, secretName), STR0(2, shareName), BOOL(3, readOnly), END};
static const struct protobody_field config_map_volume_source[] = {
    INLINE(1, protobody_local_object_reference), LIST(2, items, key_to_path), INT0(3, defaultMode),
    BOOL0(4, optional), END};
static const struct protobody_field vsphere_virtual_disk_volume_source[] = {
    STR0(1, volumePath), STR(2, fsType), STR(3, storagePolicyName), STR(4, storagePolicyID), END};
static const struct protobody_field quobyte_volume_source[] = {STR0(1, registry),
                                                               STR0(2, volume),
                                                               BOOL(3, readOnly),
                                                               STR(4, user),
                                                               STR(5, group),
                                                               STR(6, tenant),
                                                               END};
static const struct protobody_field azure_disk_volume_source[] = {STR0(1, diskName),
                                                                  STR0(2, diskURI),
                                                                  STR0(3, cachingMode),
                                                                  STR0(4, fsType),
                                                                  BOOL0(5, readOnly),
                                                                  STR0(6, kind),
                                                                  END};
static const struct protobody_field photon_persistent_disk_volume_source[] = {STR0(1, pdID),
                                                                              STR(2, fsType), END};
static const struct protobody_field secret_projection[] = {
    INLINE(1, protobody_local_object_reference), LIST(2, items, key_to_path), BOOL0(4, optional),
    END};
static const struct protobody_field downward_api_projection[] = {
    LIST(1, items, downward_api_volume_file), END};
static const struct protobody_field config_map_projection[] = {
    INLINE(1, protobody_local_object_reference), LIST(2, items, key_to_path), BOOL0(4, optional),
    END};
static const struct protobody_field service_account_token_projection[] = {
    STR(1, audience), LONG0(2, expirationSeconds), STR0(3, path), END};
static const struct protobody_field cluster_trust_bundle_projection[] = {
    STR0(1, name),      STR0(2, signerName), MSG(3, labelSelector, protobody_label_selector),
    BOOL0(5, optional), STR0(4, path),       END};
static const struct protobody_field pod_certificate_projection[] = {STR(1, signerName),
                                                                    STR(2, keyType),
                                                                    INT0(3, maxExpirationSeconds),
                                                                    STR(4, credentialBundlePath),
                                                                    STR(5, keyPath),
                                                                    STR(6, certificateChainPath),
                                                                    MAP_STR(7, userAnnotations),
                                                                    END};
static const struct protobody_field volume_projection[] = {
    MSG(1, secret, secret_projection),
    MSG(2, downwardAPI, downward_api_projection),
    MSG(3, configMap, config_map_projection),
    MSG(4, serviceAccountToken, service_account_token_projection),
    MSG(5, clusterTrustBundle, cluster_trust_bundle_projection),
    MSG(6, podCertificate, pod_certificate_projection),
    END};
static const struct protobody_field projected_volume_source[] = {
    LIST(1, sources, volume_projection), INT0(2, defaultMode), END};
static const struct protobody_field portworx_volume_source[] = {STR0(1, volumeID), STR(2, fsType),
                                                                BOOL(3, readOnly), END};
static const struct protobody_field scale_io_volume_source[] = {
    STR0(1, gateway),
    STR0(2, system),
    MSG(3, secretRef, protobody_local_object_reference),
    BOOL(4, sslEnabled),
    STR(5, protectionDomain),
    STR(6, storagePool),
    STR(7, storageMode),
    STR(8, volumeName),
    STR(9, fsType),
    BOOL(10, readOnly),
    END};
static const struct protobody_field storage_os_volume_source[] = {
    STR(1, volumeName),
    STR(2, volumeNamespace),
    STR(3, fsType),
    BOOL(4, readOnly),
    MSG(5, secretRef, protobody_local_object_reference),
    END};
static const struct protobody_field csi_volume_source[] = {
    STR0(1, driver),
    BOOL0(2, readOnly),
    STR0(3, fsType),
    MAP_STR(4, volumeAttributes),
    MSG(5, nodePublishSecretRef, protobody_local_object_reference),
    END};
static const struct protobody_field volume_resource_requirements[] = {MAP_AMOUNT(1, limits),
                                                                      MAP_AMOUNT(2, requests), END};
static const struct protobody_field typed_local_object_reference[] = {
    STR0(1, apiGroup), STR0(2, kind), STR0(3, name), END};
static const struct protobody_field typed_object_reference[] = {
    STR0(1, apiGroup), STR0(2, kind), STR0(3, name), STR0(4, namespace), END};
const struct protobody_field protobody_persistent_volume_claim_spec[] = {
    STRS(1, accessModes),
    MSG(4, selector, protobody_label_selector),
    MSG(2, resources, volume_resource_requirements),
    STR(3, volumeName),
    STR0(5, storageClassName),
    STR0(6, volumeMode),
    MSG(7, dataSource, typed_local_object_reference),
    MSG(8, dataSourceRef, typed_object_reference),
    STR0(9, volumeAttributesClassName),
    END};
static const struct protobody_field persistent_volume_claim_template[] = {
    MSG(1, metadata, protobody_object_meta), MSG(2, spec, protobody_persistent_volume_claim_spec),
    END};
static const struct protobody_field ephemeral_volume_source[] = {
    MSG(1, volumeClaimTemplate, persistent_volume_claim_template), END};
static const struct protobody_field image_volume_source[] = {STR(1, reference), STR(2, pullPolicy),
                                                             END};
static const struct protobody_field volume_source[] = {
    MSG(1, hostPath, host_path_volume_source),
    MSG(2, emptyDir, empty_dir_volume_source),
    MSG(3, gcePersistentDisk, gce_persistent_disk_volume_source),
    MSG(4, awsElasticBlockStore, aws_elastic_block_store_volume_source),
    MSG(5, gitRepo, git_repo_volume_source),
    MSG(6, secret, secret_volume_source),
    MSG(7, nfs, nfs_volume_source),
    MSG(8, iscsi, iscsi_volume_source),
    MSG(9, glusterfs, glusterfs_volume_source),
    MSG(10, persistentVolumeClaim, persistent_volume_claim_volume_source),
    MSG(11, rbd, rbd_volume_source),
    MSG(12, flexVolume, flex_volume_source),
    MSG(13, cinder, cinder_volume_source),
    MSG(14, cephfs, ceph_fs_volume_source),
    MSG(15, flocker, flocker_volume_source),
    MSG(16, downwardAPI, downward_api_volume_source),
    MSG(17, fc, fc_volume_source),
    MSG(18, azureFile, azure_file_volume_source),
    MSG(19, configMap, config_map_volume_source),
    MSG(20, vsphereVolume, vsphere_virtual_disk_volume_source),
    MSG(21, quobyte, quobyte_volume_source),
    MSG(22, azureDisk, azure_disk_volume_source),
    MSG(23, photonPersistentDisk, photon_persistent_disk_volume_source),
    MSG(26, projected, projected_volume_source),
    MSG(24, portworxVolume, portworx_volume_source),
    MSG(25, scaleIO, scale_io_volume_source),
    MSG(27, storageos, storage_os_volume_source),
    MSG(28, csi, csi_volume_source),
    MSG(29, ephemeral, ephemeral_volume_source),
    MSG(30, image, image_volume_source),
    END};
const struct protobody_field protobody_volume[] = {STR0(1, name), INLINE(2, volume_source), END};
