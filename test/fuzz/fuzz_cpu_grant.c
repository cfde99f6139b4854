// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as the annotation `cpuset` of a pod with two containers and an init container: what is
 * decoded and encoded is decoded as the same.
 */
#include "lib/model/cpu_grant.h"
#include "test/fuzz/fuzz_kit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = text_of(data, size);
    struct error err = ERROR_INIT;
    struct cpu_grant value, again;
    struct arena arena;
    struct container both[] = {{.name = "a"}, {.name = "b"}}, first = {.name = "i"};
    struct pod p = {.containers = both,
                    .containers_len = 2,
                    .init_containers = &first,
                    .init_containers_len = 1};

    arena_init(&arena, 0);
    if (cpu_grant_decode(text, &p, &arena, &value, &err) == 0) {
        AUTO_STRBUF out = {0};
        cpu_grant_encode(&value, &p, &out);
        must(cpu_grant_decode(strbuf_str(&out), &p, &arena, &again, NULL) == 0);
        must(cpu_grant_equal(&value, &again) && cpu_grant_is_within(&value, &again));
    } else {
        must(err.code == ERROR_INVALID && value.len == 0);
    }
    arena_deinit(&arena);
    free(text);
    return 0;
}
