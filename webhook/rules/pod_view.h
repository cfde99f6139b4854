// SPDX-License-Identifier: Apache-2.0
/*
 * pod_view - one pod, or one pod template, as the rules see it: its content, its path, and the
 * sentences about it. Pure.
 *
 * A rule is a function of a view. It reads through pod_view_label, pod_view_next_container and the
 * like, and reports through pod_view_refuse and pod_view_warn, which prefix the template's path
 * ("spec.template." in a Deployment), so that one rule serves pods and every kind of workload.
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
    const char *at; /* prefix of every path: "" for a pod, "spec.template." for a Deployment */
    json *spec;
    json *metadata;
    struct labels labels;
    struct labels annotations;
    const char *scheduling_group; /* NULL: none */
    bool daemon;                  /* of a DaemonSet */
    /* What the readers of requests see of it: labels, annotations, and of its containers the
     * amounts of GPUs and CPUs that can be read. */
    struct pod pod;
    struct gpu_request gpu;
    struct request_errors gpu_errors;
    bool asks[GPU_REQUEST_RESOURCES]; /* so does an amount that cannot be read, and is refused */
    const char *trigger;              /* what makes it ours; NULL: nothing */
    bool inject;
    bool ours;   /* scheduled by us */
    bool judged; /* its settings for us count: it is ours, or has no other scheduler */
    bool home;   /* in kube-system or our own namespace */
};

/* Reads the parts of a pod or template; the rest of *l is set. ERROR_INVALID: it is neither. */
int pod_view_init(struct pod_view *l, json *pod, struct error *err);
/* Only labels and annotations, of any object. */
int pod_view_init_metadata(struct pod_view *l, json *object, struct error *err);

const char *pod_view_label(const struct pod_view *l, const char *key);
const char *pod_view_annotation(const struct pod_view *l, const char *key);
const char *pod_view_ns_label(const struct pod_view *l, const char *key);

/* for (struct pod_view_container c = {0}; pod_view_next_container(l, &c);): containers, then init
 * containers */
struct pod_view_container {
    json *value;
    const char *list; /* "containers" */
    size_t index;
    bool init; /* an ordinary init container: ends before the others start */
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
/* In thousandths, rounded up: false when it is no quantity, or too large to count. */
bool pod_view_read_milli(json *v, int64_t *milli);
bool pod_view_read_whole(json *v, int64_t *whole);
bool pod_view_is_too_large(json *v); /* a quantity, but more than we count */
/* Refusals so far, including those that did not fit into the list. */
size_t pod_view_refusals(const struct pod_view *l);

/* A sentence: path first, then what is there, then what to write. Bounded, printable. */
void pod_view_warn(struct pod_view *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void pod_view_refuse(struct pod_view *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Refuses each error of a reader of requests. */
void pod_view_refuse_all(struct pod_view *l, const struct request_errors *errors);
/* The last entry of a full list says how many were left out. */
void pod_view_close(struct pod_view *l);
/* A user's value in quotes, at most 64 bytes of it; a kind ("object") when it is no scalar. */
const char *pod_view_quote(const struct pod_view *l, const char *value);
const char *pod_view_quote_json(const struct pod_view *l, json *v);
