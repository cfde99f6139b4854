// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as the annotation `cpuset` of a pod with two containers and an init container: what is decoded and encoded is decoded as the same.
 */
#include "lib/model/cpuclaim.h"
#include "test/fuzz/fuzz_kit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = text_of(data, size);
    struct error err = ERROR_INIT;
    struct cpuclaim value, again;
    struct arena arena;
    struct container both[] = {{.name = "a"}, {.name = "b"}}, first = {.name = "i"};
    struct pod p = {.containers = both,
                    .containers_len = 2,
                    .init_containers = &first,
                    .init_containers_len = 1};

    arena_init(&arena, 0);
    if (cpuclaim_decode(text, &p, &arena, &value, &err) == 0) {
        AUTO_STRBUF out = {0};
        cpuclaim_encode(&value, &p, &out);
        must(cpuclaim_decode(strbuf_str(&out), &p, &arena, &again, NULL) == 0);
        must(cpuclaim_equal(&value, &again) && cpuclaim_is_within(&value, &again));
    } else {
        must(err.code == ERROR_INVALID && value.len == 0);
    }
    arena_deinit(&arena);
    free(text);
    return 0;
}
