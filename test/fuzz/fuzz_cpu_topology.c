// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as a node's CPU layout: what is decoded, encoded and decoded again is encoded as the
 * same text.
 */
#include "lib/model/topology.h"
#include "test/fuzz/fuzz_kit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = text_of(data, size);
    struct error err = ERROR_INIT;
    struct cpu_topology value, again;
    struct arena arena;

    arena_init(&arena, 0);
    if (cpu_topology_decode(text, size, &arena, &value, &err) == 0) {
        AUTO_STRBUF first;
        AUTO_STRBUF second;
        strbuf_init(&first);
        strbuf_init(&second);
        bool listed = value.numbering == TOPOLOGY_LISTED;
        must(value.cores <= CPUSET_MAX && value.threads <= TOPOLOGY_THREADS_MAX);
        must(listed || value.threads * value.cores <= CPUSET_MAX);
        must(value.l3_len <= TOPOLOGY_GROUPS_MAX);
        const struct cpuset *cores = cpu_topology_cores(&value, &arena);
        for (uint32_t c = 0; c < value.cores; c++)
            must(!cpuset_is_empty(&cores[c]) && cpuset_count(&cores[c]) <= value.threads);
        cpu_topology_encode(&value, &first);
        if (first.len <= TOPOLOGY_BYTES_MAX) {
            must(cpu_topology_decode(first.ptr, first.len, &arena, &again, NULL) == 0);
            cpu_topology_encode(&again, &second);
            must(strcmp(strbuf_str(&first), strbuf_str(&second)) == 0);
        }
    } else {
        must(err.code != ERROR_NONE);
    }
    arena_deinit(&arena);
    free(text);
    return 0;
}
