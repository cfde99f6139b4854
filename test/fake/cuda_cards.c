// SPDX-License-Identifier: Apache-2.0
/*
 * cuda_cards FILE MIB [CONTEXT]: makes simulated cards for the fake CUDA driver (test/fake/cuda),
 * of that size each; a context takes so many MiB. cuda_cards FILE busy: says for each group how
 * much of card 0's time its kernels took, in nanoseconds, after the time now: `now`, `group busy`.
 * cuda_cards FILE: says for each group that used one what the driver counts on card 0: `group used
 * peak`, in bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/fake/cuda/card.h"

int main(int argc, char **argv)
{
    struct card c;
    if (argc == 3 && strcmp(argv[2], "busy") == 0 && card_open(&c, argv[1], -1)) {
        printf("%llu\n", (unsigned long long)card_now_ns());
        for (int g = 0; g < CARD_GROUPS; g++)
            printf("%d %llu\n", g, (unsigned long long)card_busy_ns(&c, g, 0));
        return 0;
    }
    if (argc == 3 || argc == 4) {
        uint64_t context = argc == 4 ? strtoull(argv[3], NULL, 10) << 20 : 0;
        return card_create(argv[1], strtoull(argv[2], NULL, 10) << 20, context) ? 0 : 1;
    }
    if (argc != 2 || !card_open(&c, argv[1], -1))
        return 1;
    for (int g = 0; g < CARD_GROUPS; g++)
        if (c.world->groups[g].peak[0] > 0)
            printf("%d %llu %llu\n", g, (unsigned long long)card_used(&c, g, 0),
                   (unsigned long long)c.world->groups[g].peak[0]);
    return 0;
}
