// SPDX-License-Identifier: Apache-2.0
/*
 * kinds_print - the cells of `kubectl get`, one function per column that is more than a field.
 * Pure: the time is a parameter.
 */
#pragma once

#include <stdint.h>

#include "lib/base/json.h"
#include "lib/base/str.h"

/* How Kubernetes writes a duration for people: 5s 119s 2m 3m5s 10m 3h 7h59m 8h 47h 2d 7d23h 8d 2y
 * 3y20d; "<invalid>" before the past second. */
void kinds_print_duration(int64_t ns, struct strbuf *out);
/* Time from `stamp` (RFC 3339) to now; "<unknown>" for NULL and nonsense. */
void kinds_print_since(const char *stamp, int64_t now_ns, struct strbuf *out);
/* The value at a path of names with dots; NULL when it is not there. A name that holds dots cannot
 * be reached. */
json *kinds_print_at(json *object, const char *path);

typedef void kinds_print_fn(json *object, int64_t now_ns, struct json_writer *w);

kinds_print_fn kinds_print_age;
/* Pods: kinds_print_pod.c */
kinds_print_fn kinds_print_pod_ready, kinds_print_pod_status, kinds_print_pod_restarts;
/* The others: kinds_print.c */
kinds_print_fn kinds_print_node_status, kinds_print_node_roles, kinds_print_node_internal_ip,
    kinds_print_node_external_ip;
kinds_print_fn kinds_print_event_last, kinds_print_event_object;
kinds_print_fn kinds_print_ready_of_replicas, kinds_print_job_completions, kinds_print_quota;
