// SPDX-License-Identifier: Apache-2.0
/*
 * cpu_grant - which CPUs each container of a pod was granted, and the pod annotation `cpuset`:
 *
 *     {"<container>":{"<NUMA node>":{"elems":{"<cpu>":{},...}}}}
 *
 * The scheduler writes it in the Binding; the node agent and a restarted scheduler read it back.
 * The node agent's confirmation (cosched.io/cpuset-applied) has the same form.
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
    CPU_GRANT_NUMA_MAX = 1024, /* bound of NUMA node numbers */
    CPU_GRANT_PARTS_MAX = 64,  /* NUMA nodes of one container */
};

/* One container's CPUs of one NUMA node. */
struct cpu_grant_part {
    uint32_t container; /* index in spec.containers; init container i is containers_len + i */
    int32_t numa;
    struct cpuset cpus; /* never empty */
};

struct cpu_grant {
    struct cpu_grant_part *parts; /* sorted by container, then NUMA node */
    size_t len;
};

/* Decodes an annotation; NULL and "" are an empty grant. ERROR_INVALID, and an empty grant: a
 * container that the pod lacks or that appears twice, a CPU twice in one container, a number out of
 * range, an empty list, anything else in the text. */
int cpu_grant_decode(const char *text, const struct pod *p, struct arena *a, struct cpu_grant *out,
                     struct error *err);
/* Containers in order of their index, numbers ascending. */
void cpu_grant_encode(const struct cpu_grant *c, const struct pod *p, struct strbuf *out);
/* All CPUs of one container, on any NUMA node. */
void cpu_grant_of(const struct cpu_grant *c, uint32_t container, struct cpuset *out);
/* Whether every container with CPUs in `part` has CPUs in `whole`, and has all of `part` there. */
bool cpu_grant_is_within(const struct cpu_grant *part, const struct cpu_grant *whole);
bool cpu_grant_equal(const struct cpu_grant *a, const struct cpu_grant *b);
/* Adds `more` to c; a CPU that a container has in both stays on c's NUMA node. */
void cpu_grant_union(struct cpu_grant *c, const struct cpu_grant *more, struct arena *a);
void cpu_grant_copy(struct cpu_grant *to, const struct cpu_grant *from, struct arena *a);
