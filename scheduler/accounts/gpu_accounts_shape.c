// SPDX-License-Identifier: Apache-2.0
#include "scheduler/accounts/gpu_accounts_shape.h"

#include "lib/base/str.h"

enum { SHAPE_PARTS_MAX = 8 };

static void print_part(struct strbuf *b, int64_t gib, int64_t percent)
{
    strbuf_addf(b, "%lld GiB", (long long)gib);
    if (percent > 0)
        strbuf_addf(b, " and %lld %% of its compute", (long long)percent);
}

const char *gpu_accounts_shape(const struct gpu_request *r, struct arena *a)
{
    AUTO_STRBUF b = {0};
    if (!r->shared)
        return NULL;
    if (r->one_card)
        print_part(&b, r->total[GPU_REQUEST_MEM], r->total[GPU_REQUEST_CORE]);
    for (size_t i = 0; !r->one_card && i < r->shares_len; i++) {
        strbuf_adds(&b, i > 0 ? " + " : "");
        if (i == SHAPE_PARTS_MAX) {
            strbuf_adds(&b, "...");
            break;
        }
        print_part(&b, r->shares[i].gib / r->spread_over, r->shares[i].percent);
    }
    if (r->spread_over > 1)
        return arena_printf(a, "no %lld cards with %s each", (long long)r->spread_over,
                            strbuf_str(&b));
    return arena_printf(a, "no card%s with %s", r->one_card || r->shares_len == 1 ? "" : "s",
                        strbuf_str(&b));
}
