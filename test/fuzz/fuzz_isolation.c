// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as a limits file and as a region, both of which a hostile container can write for
 * itself. What is read of limits is printed and read as the same; a region that opens is one whose
 * every row can be used. And as the kernel's files that tell which container a process is in, and
 * which memory is a card's.
 */
#include "device-plugin/isolation/budget.h"
#include "device-plugin/isolation/limits.h"
#include "device-plugin/isolation/isolation_kernel.h"
#include "device-plugin/cpu/podmounts.h"
#include "test/fuzz/fuzz_kit.h"

#include <stdlib.h>
#include <string.h>

static void limits(const char *text, size_t n)
{
    static char printed[LIMITS_BYTES_MAX];
    struct limits l, again;
    if (!limits_parse(text, n, &l)) {
        must(l.len == 0);
        return;
    }
    size_t len = limits_print(&l, printed, sizeof printed);
    must(len > 0 && limits_parse(printed, len, &again) && again.len == l.len);
    for (uint32_t i = 0; i < l.len; i++) {
        must(again.cards[i].bytes == l.cards[i].bytes);
        must(again.cards[i].percent == l.cards[i].percent && l.cards[i].percent > 0);
        must(limits_find(&l, again.cards[i].uuid) >= 0);
    }
}

/* Every row is touched; the sanitizer sees a step outside. */
static void use(const struct region *r)
{
    for (uint32_t card = 0; card < r->cards; card++) {
        struct region_card *c = region_card(r, card);
        for (uint32_t slot = 0; slot < r->slots; slot += r->slots / 3 + 1) {
            (void)region_held(r, slot, card);
            (void)region_take(r, slot, card, 4096, 1 << 20);
            region_give(r, slot, card, 100);
        }
        must(budget_charge(c, 30, 2, 5000000000) <= BUDGET_WAIT_MAX_MS * UINT64_C(1000000));
        region_note_denied(r, card);
    }
    region_clear(r, r->slots - 1);
}

/* Files of the kernel that name a container or a card. */
static void texts(const char *data, size_t n)
{
    char name[PODMOUNTS_NAME_SIZE], region[ISOLATION_REGION_SIZE];
    int64_t bytes;
    if (podmounts_at(data, n, "/g", name))
        must(name[0] != '\0' && strchr(name, '/') == NULL);
    char *text = strndup(data, n);
    if (isolation_kernel_region(text, "0000:3b:00.0", region, &bytes))
        must(bytes > 0 && strcasestr(region, "0000:3b:00.0") != NULL);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct region r;
    limits((const char *)data, n);
    texts((const char *)data, n);
    /* As it is, and with the first bytes of a real one in front, which chance would not find. */
    for (int real = 0; real < 2; real++) {
        size_t head = real ? sizeof(struct region_header) : 0;
        unsigned char *bytes = aligned_alloc(64, (head + n + 64) / 64 * 64);
        memset(bytes, 0, (head + n + 64) / 64 * 64);
        if (real)
            region_format(bytes, 2, 1);
        if (n > 0)
            memcpy(bytes + head, data, n);
        if (region_open(&r, bytes, head + n))
            use(&r);
        free(bytes);
    }
    return 0;
}
