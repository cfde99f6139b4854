// SPDX-License-Identifier: Apache-2.0
/* ruling - input and output of the rules: configuration, cluster context and verdict. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/base/map.h"
#include "lib/model/selector.h"

/* The API server truncates each warning to 256 bytes and all of them to 4 KiB. */
enum { RULES_SENTENCES_MAX = 12, RULES_WARNING_BYTES = 256, RULES_REFUSAL_BYTES = 512 };
enum { RULES_PATH_MAX = 8, RULES_CRDS_MAX = 32 };

/* A custom resource with pod templates, "kubeflow.org/TFJob=spec.tfReplicaSpecs.*.template";
 * `replicas` is beside each template. */
struct rules_crd {
    const char *group, *kind;
    const char *path[RULES_PATH_MAX]; /* "*": each member or element */
    size_t path_len;
};

struct rules_config {
    const char *scheduler; /* name to inject */
    /* never injected, since our own pods must not depend on us; NULL: none */
    const char *own_ns;
    bool inject_nvidia;   /* also inject plain nvidia.com/gpu pods, in every namespace */
    bool guard_variables; /* refuse NVIDIA_VISIBLE_DEVICES in every pod */
    bool spare_nvidia;    /* but not in pods that ask for nvidia.com/gpu and are not ours */
    const struct rules_crd *crds;
    size_t crds_len;
};

/* How much of a collection is known: nothing yet (rules that need it warn), all, or some (rules
 * conclude nothing from absence). */
enum rules_known { RULES_NOT_YET, RULES_ALL, RULES_SOME };

struct rules_group { /* PodGroup */
    int32_t min_member;
};
struct rules_policy { /* ResourcePolicy */
    const char *ns, *name;
    struct labels selector; /* empty: all pods of the namespace */
};

/* Cluster context of the object; borrowed for the call. */
struct rules_context {
    const char *ns;
    const struct labels *ns_labels; /* NULL: unknown, treated as none */
    enum rules_known groups_known;
    const struct map *groups; /* "namespace/name" -> struct rules_group; NULL: empty */
    enum rules_known policies_known;
    const struct rules_policy *const *policies; /* of the namespace ns */
    size_t policies_len;
};

struct rules_subject {
    const char *group, *kind, *subresource, *operation;
    json *object;
    json *old; /* NULL on CREATE */
};

struct rules_sentences {
    const char *items[RULES_SENTENCES_MAX]; /* printable, no line breaks */
    size_t len;
    size_t left_out; /* found but not listed; the last item says how many */
};

/* Sets a missing amount: /spec/<list>/<index>/resources/<missing>/<resource> becomes value. */
struct rules_fill {
    const char *list;
    size_t index;
    const char *missing; /* "limits" or "requests" */
    bool make;           /* the enclosing object is missing too */
    const char *resource;
    json *value;
};

struct rules_verdict {
    /* static string for metrics ("gpu-mem", "gang"); NULL: not ours or opted out */
    const char *trigger;
    bool inject;         /* set spec.schedulerName to config->scheduler */
    bool ours;           /* scheduled by us after the patch */
    const char **remove; /* annotations to remove; borrowed from the pod's document */
    size_t remove_len;
    struct rules_fill *fill;
    size_t fill_len;
    struct rules_sentences warnings;
    struct rules_sentences refusals;
};
