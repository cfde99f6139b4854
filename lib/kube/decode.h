// SPDX-License-Identifier: Apache-2.0
/*
 * decode - JSON → model objects. Each object gets an arena of its own; nothing is borrowed from the document.
 *
 * A field that is missing takes Kubernetes' default; a field of the wrong kind, or a value that cannot be, is ERROR_INVALID with its path:
 * "pod default/a: spec.containers[0].resources.requests: resource cpu: not a quantity: 'x'". One bad object never spoils a list (the reflector counts and logs it).
 */
#pragma once

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/model/gang.h"
#include "lib/model/node.h"
#include "lib/model/pod.h"

enum {
    DECODE_CONTAINERS_MAX = 1024,
    DECODE_LIST_MAX = 4096 /* tolerations, taints, terms, ports... of one object */
};

int decode_pod(json *j, struct pod **out, struct error *err);
/* What can be known of a pod that decode_pod refused, so that what it holds is not given away: see pod.unreadable. -1: not even which pod it is. */
int decode_pod_remains(json *j, const struct error *why, struct pod **out, struct error *err);
int decode_node(json *j, struct node **out, struct error *err);
int decode_pod_group(json *j, struct pod_group **out, struct error *err);

/* metadata.namespace/name, uid and resourceVersion of any object; "" when absent. Borrowed from j. */
struct object_meta {
    const char *ns, *name, *uid, *resource_version;
};
void decode_meta(json *j, struct object_meta *out);
