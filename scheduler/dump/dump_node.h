// SPDX-License-Identifier: Apache-2.0
/* dump_node - nodes and PodGroups as JSON, with the field names of Kubernetes. Pure. */
#pragma once

#include "lib/base/json.h"
#include "lib/model/gang.h"
#include "lib/model/node.h"

void dump_node_print(const struct node *n, struct json_writer *w);
void dump_node_print_group(const struct pod_group *g, struct json_writer *w);
