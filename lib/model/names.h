// SPDX-License-Identifier: Apache-2.0
/* names - every public label, annotation, resource and variable, once. Users' manifests and other
 * programs rely on them: document every change in the README. */
#pragma once

#define NAME_SCHEDULER "ack-co-scheduler"

/* Resources. */
#define NAME_RES_GPU_MEM "aliyun.com/gpu-mem"
#define NAME_RES_GPU_CORE "aliyun.com/gpu-core.percentage"
#define NAME_RES_GPU_COUNT "aliyun.com/gpu-count" /* also a pod label */
#define NAME_RES_GPU "aliyun.com/gpu"
#define NAME_RES_NVIDIA_GPU "nvidia.com/gpu"
/* All of them, to initialize an array, in the order of enum gpu_request_resource. */
#define NAME_RES_ALL_GPU NAME_RES_GPU_MEM, NAME_RES_GPU_CORE, NAME_RES_GPU, NAME_RES_NVIDIA_GPU
#define NAME_RES_DEVICE_CLASS "deviceclass.resource.kubernetes.io/" /* then a DeviceClass' name */

/* Node labels. */
#define NAME_LABEL_GPU_MODE "ack.node.gpu.schedule"
#define NAME_LABEL_GPU_PLACEMENT "ack.node.gpu.placement"
#define NAME_LABEL_ACCEL_NAME "aliyun.accelerator/nvidia_name"
#define NAME_LABEL_ACCEL_MEM "aliyun.accelerator/nvidia_mem"
#define NAME_LABEL_ACCEL_COUNT "aliyun.accelerator/nvidia_count"
#define NAME_LABEL_NODE_TYPE "type"
#define NAME_LABEL_ZONE "topology.kubernetes.io/zone"
#define NAME_LABEL_HOSTNAME "kubernetes.io/hostname"
#define NAME_NODE_TYPE_VIRTUAL "virtual-kubelet"
#define NAME_TAINT_VIRTUAL "virtual-kubelet.io/provider"
#define NAME_TAINT_VIRTUAL_VALUE "alibabacloud"

/* Node annotations. */
#define NAME_ANN_GPU_INVENTORY "cosched.io/gpu-inventory"
#define NAME_ANN_CPU_TOPOLOGY "cosched.io/cpu-topology"

/* Pod results: written by the scheduler and the device plugin only. */
#define NAME_ANN_ALLOCATION "scheduler.framework.gpushare.allocation"
#define NAME_ANN_CORE "gpushare.alibabacloud.com/core-percentage"
#define NAME_ANN_ASSUME_TIME "scheduler.framework.gpushare.assume-time"
#define NAME_ANN_ASSIGNED "scheduler.framework.gpushare.assigned"
/* The grant that the device plugin made or corrected. If it differs from the grant, another client
 * edited that. */
#define NAME_ANN_GPU_CONFIRMED "cosched.io/gpu-confirmed"
/* What the pod's processes use of its cards, measured by the device plugin; see gpuuse. */
#define NAME_ANN_GPU_USED "cosched.io/gpu-used"
#define NAME_ANN_OLD_IDX "ALIYUN_COM_GPU_MEM_IDX"
#define NAME_ANN_OLD_DEV "ALIYUN_COM_GPU_MEM_DEV"
#define NAME_ANN_OLD_POD "ALIYUN_COM_GPU_MEM_POD"
#define NAME_ANN_OLD_ASSIGNED "ALIYUN_COM_GPU_MEM_ASSIGNED"
#define NAME_ANN_OLD_ASSUME_TIME "ALIYUN_COM_GPU_MEM_ASSUME_TIME"
#define NAME_ANN_GPU_GROUP "topology.kubernetes.io/gpu-group"
#define NAME_ANN_GPU_VISIBLE "topology.kubernetes.io/gpu-visible"
#define NAME_ANN_CPUSET "cpuset"
#define NAME_PREFIX_OWN "cosched.io/"         /* results as well, except the requests below */
#define NAME_PREFIX_LOCAL "local.cosched.io/" /* for cosched-local */
#define NAME_ANN_CPUSET_APPLIED "cosched.io/cpuset-applied"

/* Container environment (Allocate). */
#define NAME_ENV_VISIBLE "NVIDIA_VISIBLE_DEVICES"
#define NAME_ENV_IDX "ALIYUN_COM_GPU_MEM_IDX"
#define NAME_ENV_POD "ALIYUN_COM_GPU_MEM_POD"
#define NAME_ENV_CONTAINER "ALIYUN_COM_GPU_MEM_CONTAINER"
#define NAME_ENV_DEV "ALIYUN_COM_GPU_MEM_DEV"
#define NAME_ENV_CORE "COSCHED_GPU_CORE_PERCENTAGE"
#define NAME_ENV_CGPU_DISABLE "CGPU_DISABLE"
#define NAME_ENV_CGPU_VISIBLE "ALIYUN_COM_GPU_VISIBLE_DEVICES"
#define NAME_ENV_MPS_PIPE "CUDA_MPS_PIPE_DIRECTORY"
#define NAME_ENV_MPS_MEM "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
#define NAME_ENV_MPS_THREADS "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"

/* Container paths at which the isolation library is mounted (device-plugin/isolation/shares.h). */
#define NAME_PATH_LIBRARY "/usr/local/cosched-gpu"
#define NAME_PATH_PRELOAD "/etc/ld.so.preload"

/* GPU topology jobs (pod labels). */
#define NAME_LABEL_TOPOLOGY_JOB "gpu-topology"
#define NAME_LABEL_TOPOLOGY_REPLICA "gpu-topology-replica"

/* Gangs. */
#define NAME_LABEL_GANG_NAME "pod-group.scheduling.sigs.k8s.io/name"
#define NAME_LABEL_GANG_MIN "pod-group.scheduling.sigs.k8s.io/min-available"
#define NAME_LABEL_GANG_BARE "pod-group.scheduling.sigs.k8s.io"
#define NAME_LABEL_GANG_X "scheduling.x-k8s.io/pod-group"
#define NAME_ANN_GANG_KOORD_NAME "gang.scheduling.koordinator.sh/name"
#define NAME_ANN_GANG_KOORD_MIN "gang.scheduling.koordinator.sh/min-available"
#define NAME_ANN_GANG_GROUPS "pod-group.scheduling.sigs.k8s.io/groups"
#define NAME_ANN_GANG_KOORD_GROUPS "gang.scheduling.koordinator.sh/groups"
#define NAME_ANN_GANG_MATCH "pod-group.scheduling.sigs.k8s.io/match-policy"
#define NAME_ANN_GANG_KOORD_MATCH "gang.scheduling.koordinator.sh/match-policy"
#define NAME_GROUP_PODGROUP "scheduling.sigs.k8s.io"
#define NAME_GROUP_PODGROUP_X "scheduling.x-k8s.io"
#define NAME_GROUP_PODGROUP_NATIVE "scheduling.k8s.io"
#define NAME_VERSION_PODGROUP "v1alpha1"
#define NAME_VERSION_PODGROUP_X "v1alpha1"
#define NAME_VERSION_PODGROUP_NATIVE "v1alpha2"
#define NAME_API_PODGROUP NAME_GROUP_PODGROUP "/" NAME_VERSION_PODGROUP
#define NAME_API_PODGROUP_X NAME_GROUP_PODGROUP_X "/" NAME_VERSION_PODGROUP_X
#define NAME_API_PODGROUP_NATIVE NAME_GROUP_PODGROUP_NATIVE "/" NAME_VERSION_PODGROUP_NATIVE
#define NAME_ANN_GANG_SATISFIED "cosched.io/gang-satisfied" /* a result: gangs.h */
#define NAME_LABEL_COMPUTE_CLASS "alibabacloud.com/compute-class"
#define NAME_LABEL_GPU_MODEL_SERIES "alibabacloud.com/gpu-model-series"

/* CPU topology (pod annotations). */
#define NAME_ANN_CPUSET_SCHEDULER "cpuset-scheduler"
#define NAME_ANN_CPU_POLICY "cpu-policy"
#define NAME_ANN_NUMA_SPEC "scheduling.alibabacloud.com/numa-topology-spec"
#define NAME_ANN_CPUSET_SHARED "cosched.io/cpuset-shared" /* a request */

/* Virtual nodes. */
#define NAME_ANN_BURST "alibabacloud.com/burst-resource"
#define NAME_LABEL_ECI "alibabacloud.com/eci"
#define NAME_GROUP_POLICY "scheduling.alibabacloud.com"
#define NAME_VERSION_POLICY "v1alpha1"
#define NAME_API_POLICY NAME_GROUP_POLICY "/" NAME_VERSION_POLICY
#define NAME_KIND_POLICY "ResourcePolicy"
/* A result: in which unit of which policy the pod was placed; see scheduler/cache/policies.h. */
#define NAME_ANN_UNIT "cosched.io/resource-unit"
#define NAME_ANN_DELETION_COST "controller.kubernetes.io/pod-deletion-cost"
/* A result: the deletion cost that we wrote. A different value is the user's, and stays. */
#define NAME_ANN_DELETION_COST_OURS "cosched.io/deletion-cost"
/* In a unit's podLabels: pods wait for the unit although it has no limit. Never given to pods. */
#define NAME_LABEL_WAIT_SCALING "k8s.aliyun.com/resource-policy-wait-for-ecs-scaling"

/* Injection: namespace label enabled|disabled, pod annotation "false". */
#define NAME_INJECT "cosched.io/inject"
