// SPDX-License-Identifier: Apache-2.0
/* dump_pod - a pod as JSON, with the field names of Kubernetes. Pure. */
#pragma once

#include <stdbool.h>

#include "lib/base/json.h"
#include "lib/model/pod.h"

/* assumed: its Binding is in flight. */
void dump_pod_print(const struct pod *p, bool assumed, struct json_writer *w);
