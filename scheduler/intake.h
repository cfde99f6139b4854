// SPDX-License-Identifier: Apache-2.0
/* intake - applies the reflectors' messages to the cluster and the queue; only it knows both. Of
 * several waiting versions of one object only the newest is applied (intake_latest.h), and changes
 * of policies are made in slices between other work (policies_work). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/loop.h"
#include "lib/kube/reflector.h"
#include "scheduler/model/failures.h"
#include "scheduler/binding/pod_trace.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/intake_latest.h"
#include "scheduler/queue/queue.h"

enum intake_kind {
    INTAKE_NODES,
    INTAKE_PODS,
    INTAKE_REJECTED_PODS, /* our Failed pods, some rejected by their kubelet */
    INTAKE_POD_GROUPS,
    INTAKE_POD_GROUPS_X,
    INTAKE_POD_GROUPS_NATIVE, /* Kubernetes' own, where enabled */
    INTAKE_NAMESPACES,
    INTAKE_CLAIMS,
    INTAKE_VOLUMES,
    INTAKE_STORAGE_CLASSES,
    INTAKE_CSI_NODES,
    INTAKE_BUDGETS,
    INTAKE_CSI_DRIVERS,
    INTAKE_CSI_CAPACITIES,
    INTAKE_VOLUME_ATTACHMENTS,
    INTAKE_DEVICE_CLASSES,
    INTAKE_POLICIES,
    INTAKE_KINDS
};

struct intake;
struct intake_source { /* arg of each reflector */
    struct intake *intake;
    enum intake_kind kind;
};

struct intake {
    struct cluster *cluster;
    struct queue *queue;
    struct pod_trace *trace;
    struct failures *failures;
    struct loop *loop;
    struct mailbox *mailbox;
    struct reflector *reflectors[INTAKE_KINDS];
    struct intake_source sources[INTAKE_KINDS];
    bool listed[INTAKE_KINDS];
    struct intake_latest latest;
    struct cluster_hooks hooks;
    struct loop_timer policies;                     /* the next slice of their changes */
    struct loop_timer rejections;                   /* when the next node may be used again */
    void (*changed)(void *arg);                     /* something may be schedulable */
    void (*node_gone)(void *arg, const char *node); /* set after intake_init; may be NULL */
    void *arg;
};

int intake_init(struct intake *in, struct loop *loop, struct cluster *c, struct queue *q,
                struct pod_trace *trace, struct failures *failures, void (*changed)(void *arg),
                void *arg, struct error *err);
int intake_start(struct intake *in, struct kube_config *kube, const struct kube_options *o,
                 struct error *err);
/* Every collection was listed once; only now is the model complete enough to decide. */
bool intake_is_synced(const struct intake *in);
void intake_deinit(struct intake *in);
/* Makes all changes of policies that wait, so that the model is complete. */
void intake_settle(struct intake *in);
/* Hands a message over, from any thread; false: closed. The message's arg is its source. Exposed
 * for tests, like the next. */
bool intake_post(struct intake *in, struct reflector_message *message);
/* Applies and frees one message. */
void intake_message(struct intake *in, struct reflector_message *message);
