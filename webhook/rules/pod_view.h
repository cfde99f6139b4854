// SPDX-License-Identifier: Apache-2.0
/*
 * pod_view - a pod or pod template as the rules see it: its content, its path and the findings on
 * it. Pure.
 *
 * A rule is a function of a view. It reports with pod_view_refuse and pod_view_warn, which prefix
 * the template's path ("spec.template." in a Deployment), so one rule serves pods and all
 * workloads.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/model/gpu_request.h"
#include "lib/model/pod.h"
#include "lib/model/selector.h"
#include "webhook/rules/ruling.h"

struct pod_view {
    const struct rules_config *config;
    const struct rules_context *context;
    struct arena *arena;
    struct rules_verdict *verdict;
    const char *at; /* path prefix: "" for a pod, "spec.template." for a Deployment */
    json *spec;
    json *metadata;
    struct labels labels;
    struct labels annotations;
    const char *scheduling_group; /* NULL: none */
    bool daemon;                  /* belongs to a DaemonSet */
    /* For the request readers: labels, annotations, readable GPU and CPU amounts of containers. */
    struct pod pod;
    struct gpu_request gpu;
    struct request_errors gpu_errors;
    bool asks[GPU_REQUEST_RESOURCES]; /* also set by unreadable amounts */
    const char *trigger;              /* what makes the pod ours; NULL: nothing */
    bool inject;
    bool ours;   /* our scheduler schedules it */
    bool judged; /* our rules apply: it is ours or has no other scheduler */
    bool home;   /* in kube-system or our own namespace */
};

/* Reads a pod or template; the caller has set the other members. ERROR_INVALID: it is neither. */
int pod_view_init(struct pod_view *l, json *pod, struct error *err);
/* Reads only labels and annotations, of any object. */
int pod_view_init_metadata(struct pod_view *l, json *object, struct error *err);

const char *pod_view_label(const struct pod_view *l, const char *key);
const char *pod_view_annotation(const struct pod_view *l, const char *key);
const char *pod_view_ns_label(const struct pod_view *l, const char *key);

/* Iterates containers, then init containers: for (struct pod_view_container c = {0};
 * pod_view_next_container(l, &c);) */
struct pod_view_container {
    json *value;
    const char *list; /* "containers" or "initContainers" */
    size_t index;
    bool init; /* ordinary init container: ends before the others start */
    size_t lists_begun_;
    struct json_iter it_;
};
bool pod_view_next_container(const struct pod_view *l, struct pod_view_container *c);
extern const char *const pod_view_container_lists[]; /* "containers", "initContainers", NULL */
extern const char *const pod_view_amount_lists[];    /* "limits", "requests", NULL */
/* container.resources.<list>.<resource>, or NULL */
json *pod_view_amount(json *container, const char *list, const char *resource);
/* "spec.containers[0].resources.limits[nvidia.com/gpu]" */
const char *pod_view_amount_path(const struct pod_view *l, const struct pod_view_container *c,
                                 const char *list, const char *resource);
/* In thousandths, rounded up. False if it is no quantity or overflows. */
bool pod_view_read_milli(json *v, int64_t *milli);
bool pod_view_is_too_large(json *v); /* a quantity that overflows */
/* Including those that did not fit into the list. */
size_t pod_view_refusals(const struct pod_view *l);

/* A finding: the path, what is there, what to write instead. Truncated and made printable. */
void pod_view_warn(struct pod_view *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void pod_view_refuse(struct pod_view *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Refuses each error of a request reader. */
void pod_view_refuse_all(struct pod_view *l, const struct request_errors *errors);
/* Makes the last entry of a full list say how many were left out. */
void pod_view_close(struct pod_view *l);
/* Quotes a user's value, at most 64 bytes. A non-scalar becomes its type ("object"). */
const char *pod_view_quote(const struct pod_view *l, const char *value);
const char *pod_view_quote_json(const struct pod_view *l, json *v);
