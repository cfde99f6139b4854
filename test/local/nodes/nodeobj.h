// SPDX-License-Identifier: Apache-2.0
/*
 * nodeobj - a simulated node as API objects: Node, its status, its Lease. Pure but for the clock
 * that the caller reads.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/json.h"
#include "lib/base/str.h"
#include "lib/base/vec.h"
#include "test/local/nodes/nodes_file.h"

/* Amounts of a resource that a plugin registered. */
struct nodeobj_amount {
    char *resource;
    int64_t capacity, allocatable;
};
struct nodeobj_amounts VEC(struct nodeobj_amount);
void nodeobj_amounts_deinit(struct nodeobj_amounts *a);
/* fn of devices_amounts. */
void nodeobj_amounts_add(void *amounts, const char *resource, int64_t capacity,
                         int64_t allocatable);

/* The whole object, for the create. */
void nodeobj_print(const struct nodes_spec *s, const struct nodeobj_amounts *a, int64_t since_ns,
                   int64_t now_ns, struct strbuf *out);
/* A strategic merge patch for nodes/status. old: the current Node, to zero extended resources that
 * no plugin offers; or NULL. */
void nodeobj_print_status(const struct nodes_spec *s, const struct nodeobj_amounts *a, json *old,
                          int64_t since_ns, int64_t now_ns, struct strbuf *out);
/* create: the whole Lease; otherwise a merge patch that renews it. */
void nodeobj_print_lease(const struct nodes_spec *s, bool create, int64_t now_ns,
                         struct strbuf *out);
/* A pod's address on the node; n counts the node's pods. */
void nodeobj_pod_ip(const struct nodes_spec *s, uint32_t n, char out[16]);
