// SPDX-License-Identifier: Apache-2.0
/*
 * look - one pod, or one pod template, under the eyes of the rules: what it says, where it stands, and the sentences about it. Pure.
 *
 * A rule is a function of a look. It reads through look_label, look_next_container and the like, and speaks through look_refuse and look_warn, which put
 * the place of the template in front of the path ("spec.template." in a Deployment), so that one rule serves pods and every kind of workload.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/model/selector.h"
#include "webhook/ruling.h"

enum look_gpu { LOOK_MEM, LOOK_CORE, LOOK_GPU, LOOK_NVIDIA, LOOK_GPUS };
extern const char *const look_gpu_names[LOOK_GPUS]; /* resource names */

struct look {
    const struct rules_config *config;
    const struct rules_context *context;
    struct arena *arena;
    struct rules_verdict *verdict;
    const char *at; /* in front of every path: "" for a pod, "spec.template." for a Deployment */
    json *spec;
    json *metadata;
    struct labels labels;
    struct labels annotations;
    const char *scheduling_group; /* NULL: none */
    bool daemon;                  /* of a DaemonSet */
    bool asks[LOOK_GPUS];
    const char *trigger; /* what makes it ours; NULL: nothing */
    bool inject;
    bool ours;   /* scheduled by us */
    bool judged; /* what it says to us counts: it is ours, or nobody else's */
    bool home;   /* in kube-system or our own namespace */
};

/* Reads the parts of a pod or template; the rest of *l is set. ERROR_INVALID: this is none. */
int look_init(struct look *l, json *pod, struct error *err);
/* Only labels and annotations, of any object. */
int look_init_metadata(struct look *l, json *object, struct error *err);

const char *look_label(const struct look *l, const char *key);
const char *look_annotation(const struct look *l, const char *key);
const char *look_ns_label(const struct look *l, const char *key);

/* for (struct look_container c = {0}; look_next_container(l, &c);): containers, then init containers */
struct look_container {
    json *value;
    const char *list; /* "containers" */
    size_t index;
    bool init; /* an ordinary init container: ends before the others begin */
    size_t lists_begun_;
    struct json_iter it_;
};
bool look_next_container(const struct look *l, struct look_container *c);
extern const char *const look_container_lists[]; /* "containers", "initContainers", NULL */
extern const char *const look_amount_lists[];    /* "limits", "requests", NULL */
/* container.resources.<list>.<resource>, or NULL */
json *look_amount(json *container, const char *list, const char *resource);
/* "spec.containers[0].resources.limits[nvidia.com/gpu]" */
const char *look_amount_path(const struct look *l, const struct look_container *c, const char *list,
                             const char *resource);
/* In thousandths, rounded up: false when it is no quantity, or too large for us to count. */
bool look_read_milli(json *v, int64_t *milli);
bool look_read_whole(json *v, int64_t *whole);
bool look_is_too_large(json *v);          /* a quantity, but more than we count */
bool look_asks_gpu(const struct look *l); /* any of the four resources */
/* Refusals so far, those that found no place included. */
size_t look_refusals(const struct look *l);

/* A sentence: path first, then what is there, then what to write. Bounded, printable. */
void look_warn(struct look *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void look_refuse(struct look *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The last place of a full list tells how many found none. */
void look_close(struct look *l);
/* A value of the user's in quotes, at most 64 bytes of it; a kind ("object") when it is no scalar. */
const char *look_quote(const struct look *l, const char *value);
const char *look_quote_json(const struct look *l, json *v);
