// SPDX-License-Identifier: Apache-2.0
/*
 * dump_pod - a pod as JSON, with the field names of Kubernetes. Pure.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/json.h"
#include "lib/model/pod.h"

/* What the model knows of a pod beyond the object that the API server sent. */
struct dump_pod_more {
    const struct labels *annotations; /* instead of the pod's own */
    const char *node;                 /* spec.nodeName, or NULL */
    const char *nominated;            /* status.nominatedNodeName, or NULL */
    bool assumed;
};

void dump_pod_print(const struct pod *p, const struct dump_pod_more *more, struct json_writer *w);
