// SPDX-License-Identifier: Apache-2.0
/*
 * decode - JSON → model objects. Each object gets its own arena; nothing is borrowed from the
 * document.
 *
 * A missing field takes Kubernetes' default. In pods, nodes and all metadata a value that cannot be
 * read is absent (decode_pod.c says why); elsewhere, and where the structure is broken, it is
 * ERROR_INVALID with its path: "pod default/a: spec: must be an object, not array". Amounts
 * saturate (lib/model/resources.h). One bad object does not spoil a list (the reflector counts and
 * logs it).
 */
#pragma once

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/model/device.h"
#include "lib/model/gang.h"
#include "lib/model/node.h"
#include "lib/model/object.h"
#include "lib/model/pdb.h"
#include "lib/model/pod.h"
#include "lib/model/policy.h"
#include "lib/model/volume.h"

/* A pod with more is not placed: the cost of a decision would be the tenant's to choose. */
enum {
    DECODE_CONTAINERS_MAX = 1024,
    DECODE_PORTS_MAX = 1024, /* host ports of the containers */
    /* Volumes with a disk or a claim: each is compared with those of the pods of each node. No
     * cloud attaches more than 128 to a node. */
    DECODE_VOLUMES_MAX = 256,
    /* Of one list of pod affinity or spread. Each is a rule over all nodes, and its topology key a
     * table of them. */
    DECODE_TERMS_MAX = 128,
    DECODE_LIST_MAX = 4096 /* tolerations, taints, volumes... of one object */
};

/* Fails only if the pod has no name or its structure is broken. See pod.unplaceable. */
int decode_pod(json *j, struct pod **out, struct error *err);
/* Sets container.id of running containers, in p's arena, from the object's status. */
void decode_container_ids(json *j, struct pod *p);
/* What is known of a pod that decode_pod refused, so that its last good version stays in force: see
 * pod.unreadable. -1: not even which pod it is. */
int decode_pod_remains(json *j, const struct error *why, struct pod **out, struct error *err);
int decode_node(json *j, struct node **out, struct error *err);
int decode_pod_group(json *j, struct pod_group **out, struct error *err);
/* Small objects; each begins with a struct object: object_free(&x->object). */
int decode_namespace(json *j, struct object **out, struct error *err);
int decode_pvc(json *j, struct pvc **out, struct error *err);
int decode_pv(json *j, struct pv **out, struct error *err);
int decode_storage_class(json *j, struct storage_class **out, struct error *err);
int decode_csi_node(json *j, struct csi_node **out, struct error *err);
int decode_csi_driver(json *j, struct csi_driver **out, struct error *err);
int decode_csi_capacity(json *j, struct csi_capacity **out, struct error *err);
int decode_volume_attachment(json *j, struct volume_attachment **out, struct error *err);
int decode_pdb(json *j, struct pdb **out, struct error *err);
int decode_device_class(json *j, struct device_class **out, struct error *err);
/* An invalid spec makes the policy inactive: see policy.invalid. */
int decode_resource_policy(json *j, struct policy **out, struct error *err);

/* metadata.namespace/name, uid and resourceVersion of any object; "" when absent. Borrowed from
 * j. */
struct object_meta {
    const char *ns, *name, *uid, *resource_version;
};
void decode_meta(json *j, struct object_meta *out);
