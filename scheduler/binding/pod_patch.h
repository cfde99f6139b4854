// SPDX-License-Identifier: Apache-2.0
/* pod_patch - patches for the status of pods and PodGroups. Pure. The uid is a precondition: a
 * recreated pod of the same name is not touched (409). */
#pragma once

#include "lib/base/json.h"
#include "lib/base/str.h"
#include "lib/model/selector.h"
#include "scheduler/cache/progress.h"

struct pod_patch_condition {
    const char *type, *status, *reason, *message;
    const char *since; /* lastTransitionTime; NULL: unchanged */
};

/* Begins {"metadata":{"uid":...; also for claims and volumes. version: as below. */
void pod_patch_begin(struct json_writer *w, struct strbuf *out, const char *uid,
                     const char *version);
/* version: of the pod that was read, also a precondition, so that a pod bound meanwhile is not
 * touched; NULL: any version. */
void pod_patch_condition(struct strbuf *out, const char *uid, const char *version,
                         const struct pod_patch_condition *c);
/* Any version: no other writer sets this field of our pods. node "": removes it. */
void pod_patch_nominated(struct strbuf *out, const char *uid, const char *node);
/* Annotations go with the status, which we may write anyway. */
void pod_patch_annotation(struct strbuf *out, const char *uid, const char *key, const char *value);
/* Several, and labels; a NULL value removes the key. Either list may be NULL. */
void pod_patch_metadata(struct strbuf *out, const char *uid, const struct labels *annotations,
                        const struct labels *labels);
/* The status of a PodGroup. */
void pod_patch_group(struct strbuf *out, const struct pod_group *g, const struct progress *now);
