// SPDX-License-Identifier: Apache-2.0
/*
 * fixture - pods, nodes and PodGroups for the scheduler's tests, made the way real ones are: as
 * JSON, through decode. What a row does not name has a sane default.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/model/gang.h"
#include "lib/model/gpu.h"
#include "lib/model/node.h"
#include "lib/model/pod.h"

/* Key, value, key, value, NULL. */
#define PAIRS(...) ((const char *const[]){__VA_ARGS__, NULL})

struct fixture_container {
    int64_t cpu_milli;
    int64_t memory_bytes;
    int64_t gib;       /* aliyun.com/gpu-mem */
    int64_t percent;   /* aliyun.com/gpu-core.percentage */
    int64_t cards;     /* aliyun.com/gpu */
    const char *other; /* another resource, of which it wants other_amount */
    int64_t other_amount;
    bool sidecar;
};

struct fixture_pod {
    const char *name;      /* in namespace d */
    const char *uid;       /* "u-<name>" */
    const char *node;      /* not bound */
    const char *scheduler; /* ours */
    const char *phase;     /* Pending */
    const char *const *labels;
    const char *const *annotations;
    const char *nominated;         /* status.nominatedNodeName */
    const char *ns;                /* d */
    const char *ports;             /* of the first container, as JSON: "{...},{...}" */
    const char *image;             /* of each container */
    const char *spec;              /* more members of spec, as JSON: "\"tolerations\":[]" */
    struct fixture_container c[3]; /* containers; the first always exists */
    struct fixture_container init;
    size_t containers; /* 1 */
    bool has_init;
    bool gated;
    bool terminating;
    bool unreadable; /* a version of which only the metadata can be read */
    int32_t priority;
    int32_t created_s; /* within one minute */
};

struct fixture_node {
    const char *name;
    int64_t cpu_milli;    /* 8000 */
    int64_t memory_bytes; /* 16 GiB */
    int64_t pods;         /* 110; -1: none */
    const char *inventory;
    const char *placement;
    const char *topology; /* of its CPUs: the annotation */
    const char *const *labels;
    const char *taints; /* as JSON: "[...]" */
    const char *other;  /* another resource that it has */
    int64_t other_amount;
    const char *image; /* that it has */
    int64_t image_bytes;
    int64_t gib, percent, cards; /* allocatable; -1: the resource is there with 0 */
    bool unschedulable;
};

struct pod *fixture_make_pod(const struct fixture_pod *f);
struct node *fixture_make_node(const struct fixture_node *f);
struct pod_group *fixture_make_group(const char *name, int32_t min, enum pod_group_api api);
struct pod_group *fixture_make_group_with(const char *name, int32_t min, enum pod_group_api api,
                                          const char *const *annotations);
/* cosched.io/cpu-topology of a machine: so many NUMA nodes, L3 groups in each, cores in each group,
 * threads, numbered as on bare metal. reserved may be NULL. */
const char *fixture_topology(struct arena *a, unsigned numa, unsigned l3, unsigned cores,
                             unsigned threads, const char *reserved);
#define POD(...) fixture_make_pod(&(struct fixture_pod){__VA_ARGS__})
#define NODE(...) fixture_make_node(&(struct fixture_node){__VA_ARGS__})

/* An inventory annotation: "cgpu", "15,15*,15" (GiB of each card; a star: sick). Cards are numbered
 * from 0. */
const char *fixture_inventory(struct arena *a, const char *mode, const char *cards);
