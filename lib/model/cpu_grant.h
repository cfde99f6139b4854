// SPDX-License-Identifier: Apache-2.0
/*
 * cpu_grant - which CPUs each container of a pod was given, and its form in the pod's annotation
 * `cpuset`:
 *
 *     {"<container>":{"<NUMA node>":{"elems":{"<cpu>":{},...}}}}
 *
 * The scheduler writes it in the Binding; the node agent and a scheduler that starts later read it
 * back. The node agent's answer (cosched.io/cpuset-applied) has the same form.
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
    CPU_GRANT_BYTES_MAX = 128 * 1024,
    CPU_GRANT_NUMA_MAX = 1024, /* numbers of NUMA nodes are below */
    CPU_GRANT_PARTS_MAX = 64,  /* NUMA nodes of one container */
};

/* What one container has of one NUMA node. */
struct cpu_grant_part {
    uint32_t container; /* index in spec.containers; init container i is containers_len + i */
    int32_t numa;
    struct cpuset cpus; /* never empty */
};

struct cpu_grant {
    struct cpu_grant_part *parts; /* sorted by container, then NUMA node */
    size_t len;
};

/* Of the text of an annotation; NULL and "" are an empty grant. ERROR_INVALID, and an empty grant:
 * a container that the pod does not have or that is there twice, a CPU that is twice in one
 * container, a number out of range, an empty list, anything else in the text. */
int cpu_grant_decode(const char *text, const struct pod *p, struct arena *a, struct cpu_grant *out,
                     struct error *err);
/* Containers in the order of the index, numbers ascending. */
void cpu_grant_encode(const struct cpu_grant *c, const struct pod *p, struct strbuf *out);
/* All CPUs of one container, whatever the NUMA node. */
void cpu_grant_of(const struct cpu_grant *c, uint32_t container, struct cpuset *out);
/* Whether each container that has CPUs in both has no others in `part` than in `whole`, and none in
 * `part` has some that has none in `whole`. */
bool cpu_grant_is_within(const struct cpu_grant *part, const struct cpu_grant *whole);
bool cpu_grant_equal(const struct cpu_grant *a, const struct cpu_grant *b);
/* c is what is in either of the two; where both have a CPU for a container, it stays on the NUMA
 * node that c says. */
void cpu_grant_union(struct cpu_grant *c, const struct cpu_grant *more, struct arena *a);
void cpu_grant_copy(struct cpu_grant *to, const struct cpu_grant *from, struct arena *a);
