// SPDX-License-Identifier: Apache-2.0
/*
 * cpuclaim - which CPUs each container of a pod was given, and its form in the pod's annotation `cpuset`:
 *
 *     {"<container>":{"<NUMA node>":{"elems":{"<cpu>":{},...}}}}
 *
 * The scheduler writes it in the Binding; the node agent and a scheduler that starts later read it back. The node agent's answer (cosched.io/cpuset-applied) has the same form.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/model/cpuset.h"
#include "lib/model/pod.h"

enum {
    CPUCLAIM_BYTES_MAX = 128 * 1024,
    CPUCLAIM_NUMA_MAX = 1024, /* numbers of NUMA nodes are below */
    CPUCLAIM_PARTS_MAX = 64,  /* NUMA nodes of one container */
};

/* What one container has of one NUMA node. */
struct cpuclaim_part {
    uint32_t container; /* index in spec.containers; init container i is containers_len + i */
    int32_t numa;
    struct cpuset cpus; /* never empty */
};

struct cpuclaim {
    struct cpuclaim_part *parts; /* sorted by container, then NUMA node */
    size_t len;
};

/* Of the text of an annotation; NULL and "" are an empty claim. ERROR_INVALID, and an empty claim: a container that the pod does not have or that is there twice, a CPU that is twice in one
 * container, a number out of range, an empty list, anything else in the text. */
int cpuclaim_decode(const char *text, const struct pod *p, struct arena *a, struct cpuclaim *out,
                    struct error *err);
/* Containers in the order of the index, numbers ascending. */
void cpuclaim_encode(const struct cpuclaim *c, const struct pod *p, struct strbuf *out);
/* All CPUs of one container, whatever the NUMA node. */
void cpuclaim_of(const struct cpuclaim *c, uint32_t container, struct cpuset *out);
/* Whether each container that has CPUs in both has no others in `part` than in `whole`, and none in `part` has some that has none in `whole`. */
bool cpuclaim_is_within(const struct cpuclaim *part, const struct cpuclaim *whole);
bool cpuclaim_equal(const struct cpuclaim *a, const struct cpuclaim *b);
/* c is what is in either of the two; where both have a CPU for a container, it stays on the NUMA node that c says. */
void cpuclaim_union(struct cpuclaim *c, const struct cpuclaim *more, struct arena *a);
void cpuclaim_copy(struct cpuclaim *to, const struct cpuclaim *from, struct arena *a);
