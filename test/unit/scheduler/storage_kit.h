// SPDX-License-Identifier: Apache-2.0
/*
 * storage_kit - claims, volumes and what belongs to them for the scheduler's tests: JSON with ' for
 * ", through decode, as from the API server.
 */
#pragma once

#include "scheduler/cache/cluster.h"
#include "scheduler/intake.h"

/* What kind it is says its "kind". */
struct object *storage_kit_make(const char *text, enum api_objects_kind *kind);
void storage_kit_put(struct cluster *c, const char *text);
/* The same as a message of a watch. */
void storage_kit_send(struct intake *in, const char *text);

/* All are in namespace d and have the uid "u-<name>". `more` is members of spec, "" or
 * ",'a':'b'". */
#define KIT_META(name) "'metadata':{'name':'" name "','namespace':'d','uid':'u-" name "'"
#define CLAIM(name, more)                                  \
    "{'kind':'PersistentVolumeClaim'," KIT_META(           \
        name) "},'spec':{'accessModes':['ReadWriteOnce']," \
              "'resources':{'requests':{'storage':'1Gi'}}" more "}}"
/* With annotations, and a phase. */
#define CLAIM_AS(name, phase, annotations, more)                                                           \
    "{'kind':'PersistentVolumeClaim'," KIT_META(                                                           \
        name) ",'annotations':{" annotations                                                               \
              "}},'spec':{'accessModes':['ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}}" more \
              "},'status':{'phase':'" phase "'}}"
#define BOUND_CLAIM(name, volume) \
    CLAIM_AS(name, "Bound", "'pv.kubernetes.io/bind-completed':'yes'", ",'volumeName':'" volume "'")
#define VOLUME(name, size, more)                                                              \
    "{'kind':'PersistentVolume'," KIT_META(name) "},'spec':{'accessModes':['ReadWriteOnce']," \
                                                 "'capacity':{'storage':'" size "'}" more     \
                                                 "},'status':{'phase':'Available'}}"
#define VOLUME_LABELLED(name, key, value, more)                                   \
    "{'kind':'PersistentVolume'," KIT_META(                                       \
        name) ",'labels':{'" key "':'" value "'}},'spec':{"                       \
              "'accessModes':['ReadWriteOnce'],'capacity':{'storage':'1Gi'}" more \
              "},'status':{'phase':'Available'}}"
#define OF_CLASS(class) ",'storageClassName':'" class "'"
#define ON(key, value)                                                                         \
    ",'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'" key "'," \
    "'operator':'In','values':['" value "']}]}]}}"
#define OF_DRIVER(driver, handle) ",'csi':{'driver':'" driver "','volumeHandle':'" handle "'}"
#define CLASS(name, provisioner, mode, more)                                 \
    "{'kind':'StorageClass'," KIT_META(name) "},'provisioner':'" provisioner \
                                             "','volumeBindingMode':'" mode "'" more "}"
#define STATIC_CLASS CLASS("s", "kubernetes.io/no-provisioner", "WaitForFirstConsumer", "")
#define LATE_CLASS CLASS("s", "disk.example.com", "WaitForFirstConsumer", "")
#define CSI_NODE(name, driver, count)                 \
    "{'kind':'CSINode'," KIT_META(                    \
        name) "},'spec':{'drivers':[{'name':'" driver \
              "','nodeID':'x','topologyKeys':[],'allocatable':{'count':" count "}}]}}"
#define CSI_DRIVER(name, more) "{'kind':'CSIDriver'," KIT_META(name) "},'spec':{" more "}}"
#define CAPACITY(name, bytes, nodes)                                                             \
    "{'kind':'CSIStorageCapacity'," KIT_META(name) "},'storageClassName':'s','capacity':'" bytes \
                                                   "'" nodes "}"
#define ATTACHMENT(name, driver, node, volume)                                                 \
    "{'kind':'VolumeAttachment'," KIT_META(name) "},'spec':{'attacher':'" driver               \
                                                 "','nodeName':'" node                         \
                                                 "','source':{'persistentVolumeName':'" volume \
                                                 "'}}}"
