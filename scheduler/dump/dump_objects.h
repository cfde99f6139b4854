// SPDX-License-Identifier: Apache-2.0
/* dump_objects - namespaces, storage, budgets and device classes as Kubernetes JSON. Pure. */
#pragma once

#include "lib/base/json.h"
#include "scheduler/model/api_objects.h"

void dump_objects_print(enum api_objects_kind kind, const struct object *o, struct json_writer *w);
