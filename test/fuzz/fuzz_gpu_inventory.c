// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as a node's GPU inventory: what is decoded, encoded and decoded again is encoded as the
 * same text.
 */
#include "lib/model/gpu.h"
#include "test/fuzz/fuzz_kit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = text_of(data, size);
    struct error err = ERROR_INIT;
    struct gpu_inventory value, again;
    struct arena arena;

    arena_init(&arena, 0);
    if (gpu_inventory_decode(text, size, &arena, &value, &err) == 0) {
        AUTO_STRBUF first;
        AUTO_STRBUF second;
        strbuf_init(&first);
        strbuf_init(&second);
        must(value.cards_len <= GPU_CARDS_MAX && gpu_inventory_gib(&value) >= 0);
        gpu_inventory_encode(&value, &first);
        if (first.len <= GPU_INVENTORY_BYTES_MAX) {
            must(gpu_inventory_decode(first.ptr, first.len, &arena, &again, NULL) == 0);
            gpu_inventory_encode(&again, &second);
            must(strcmp(strbuf_str(&first), strbuf_str(&second)) == 0);
        }
    } else {
        must(err.code != ERROR_NONE);
    }
    arena_deinit(&arena);
    free(text);
    return 0;
}
