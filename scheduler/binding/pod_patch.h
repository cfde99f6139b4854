// SPDX-License-Identifier: Apache-2.0
/*
 * pod_patch - what is written into the status of pods: strategic merge patches. Pure.
 *
 * The uid is a precondition: a pod of the same name that was made meanwhile is not touched (409).
 */
#pragma once

#include "lib/base/str.h"
#include "lib/model/selector.h"

struct pod_patch_condition {
    const char *type, *status, *reason, *message;
    const char *since; /* lastTransitionTime; NULL: as it is */
};

/* version: of the pod that was looked at, a precondition as well (nor is one touched that was bound
 * meanwhile); NULL: whatever the version. */
void pod_patch_condition(struct strbuf *out, const char *uid, const char *version,
                         const struct pod_patch_condition *c);
/* Whatever the pod's version: nobody else writes this field of our pods. node "": none any more. */
void pod_patch_nominated(struct strbuf *out, const char *uid, const char *node);
/* An annotation goes with the status, which we may write anyway. */
void pod_patch_annotation(struct strbuf *out, const char *uid, const char *key, const char *value);
/* Several, and labels; a value NULL takes the key away. Either list may be NULL. */
void pod_patch_metadata(struct strbuf *out, const char *uid, const struct labels *annotations,
                        const struct labels *labels);
