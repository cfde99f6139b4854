// SPDX-License-Identifier: Apache-2.0
#include "scheduler/accounts/ledger_request.h"

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/names.h"

enum { SHAPE_PARTS_MAX = 8 };

/* An extended resource has limits equal to requests, so limits are the claim. */
static int64_t asked(const struct container *c, const char *name)
{
    return num_min(resources_get(&c->limits, name, NULL), LEDGER_MAX);
}

int64_t ledger_request_gib(const struct container *c)
{
    return asked(c, NAME_RES_GPU_MEM);
}

int64_t ledger_request_percent(const struct container *c)
{
    return asked(c, NAME_RES_GPU_CORE);
}

/* The larger of the containers' sum and the effective request, which knows init containers. */
static int64_t held(const struct pod *p, const char *name, int64_t sum)
{
    return num_min(num_max(sum, resources_get(&p->request, name, NULL)), LEDGER_MAX);
}

static void check_container(const struct container *c, struct arena *a, const char **illegal)
{
    int64_t gib = ledger_request_gib(c), percent = ledger_request_percent(c);
    if (gib == LEDGER_MAX || percent == LEDGER_MAX)
        *illegal = arena_printf(a, "container %s asks for more of %s than any card has", c->name,
                                gib == LEDGER_MAX ? NAME_RES_GPU_MEM : NAME_RES_GPU_CORE);
    else if (percent > 0 && gib == 0)
        *illegal = arena_printf(a, "container %s asks for %s without %s", c->name,
                                NAME_RES_GPU_CORE, NAME_RES_GPU_MEM);
    else if (percent % 5 != 0)
        *illegal = arena_printf(a, "container %s: %s must be a multiple of 5: %lld", c->name,
                                NAME_RES_GPU_CORE, (long long)percent);
}

static void check_spread(const struct pod *p, int64_t over, struct arena *a, const char **illegal)
{
    for (size_t i = 0; over > 1 && i < p->containers_len; i++) {
        const struct container *c = &p->containers[i];
        if (ledger_request_gib(c) % over != 0)
            *illegal = arena_printf(
                a, "container %s: %s must be a multiple of the label %s: %lld and %lld", c->name,
                NAME_RES_GPU_MEM, NAME_RES_GPU_COUNT, (long long)ledger_request_gib(c),
                (long long)over);
        if (ledger_request_percent(c) > 0)
            *illegal = arena_printf(a, "container %s: %s cannot be spread over several cards",
                                    c->name, NAME_RES_GPU_CORE);
    }
}

static void print_part(struct strbuf *b, int64_t gib, int64_t percent)
{
    strbuf_addf(b, "%lld GiB", (long long)gib);
    if (percent > 0)
        strbuf_addf(b, " and %lld %% of its compute", (long long)percent);
}

/* "no card with 12 GiB", "no 2 cards with 4 GiB each", "no cards with 8 GiB + 4 GiB". */
static const char *shape_of(const struct ledger_request *r, struct arena *a)
{
    AUTO_STRBUF b = {0};
    size_t parts = 0;
    if (r->one_card) {
        print_part(&b, r->hold_gib, r->hold_percent);
        parts = 1;
    }
    for (size_t i = 0; !r->one_card && i < r->pod->containers_len; i++) {
        const struct container *c = &r->pod->containers[i];
        if (ledger_request_gib(c) == 0)
            continue;
        if (parts++ > 0)
            strbuf_adds(&b, " + ");
        if (parts > SHAPE_PARTS_MAX) {
            strbuf_adds(&b, "...");
            break;
        }
        print_part(&b, ledger_request_gib(c) / r->spread_over, ledger_request_percent(c));
    }
    if (r->spread_over > 1)
        return arena_printf(a, "no %lld cards with %s each", (long long)r->spread_over,
                            strbuf_str(&b));
    return arena_printf(a, "no card%s with %s", parts > 1 ? "s" : "", strbuf_str(&b));
}

/* The label; 1 where it is absent or cannot be followed. */
static int64_t spread_of(const struct ledger_request *r, struct arena *a, const char **illegal)
{
    const char *count = labels_get(&r->pod->labels, NAME_RES_GPU_COUNT);
    struct error err = ERROR_INIT;
    int64_t over = 1;
    if (count == NULL)
        return 1;
    if (num_parse_range(count, 1, GPU_CARDS_MAX, &over, &err) < 0)
        *illegal = arena_printf(a, "label %s: %s", NAME_RES_GPU_COUNT, err.text);
    else if (over > 1 && r->one_card)
        *illegal = arena_printf(a,
                                "a pod with GPU memory in an init container cannot be spread over "
                                "several cards (label %s)",
                                NAME_RES_GPU_COUNT);
    else
        check_spread(r->pod, over, a, illegal);
    return *illegal == NULL ? over : 1;
}

void ledger_request_of(const struct pod *p, struct arena *a, struct ledger_request *out)
{
    *out = (struct ledger_request){.pod = p, .spread_over = 1};
    int64_t percent = 0, cards = 0;
    for (size_t i = 0; i < p->containers_len; i++) {
        const struct container *c = &p->containers[i];
        out->total_gib = num_add_sat(out->total_gib, ledger_request_gib(c));
        percent = num_add_sat(percent, ledger_request_percent(c));
        cards = num_add_sat(cards, asked(c, NAME_RES_GPU));
        check_container(c, a, &out->illegal);
    }
    for (size_t i = 0; i < p->init_containers_len; i++) {
        const struct container *c = &p->init_containers[i];
        out->one_card |= ledger_request_gib(c) > 0 || ledger_request_percent(c) > 0;
        check_container(c, a, &out->illegal);
    }
    out->hold_gib = held(p, NAME_RES_GPU_MEM, out->total_gib);
    out->hold_percent = held(p, NAME_RES_GPU_CORE, percent);
    out->hold_cards = out->whole_cards = held(p, NAME_RES_GPU, cards);
    out->shared = out->hold_gib > 0 || out->hold_percent > 0;
    out->any = out->shared || out->hold_cards > 0;
    if (!out->shared)
        return;
    if (out->hold_cards > 0)
        out->illegal = "a pod cannot ask for " NAME_RES_GPU_MEM " and " NAME_RES_GPU " together";
    out->spread_over = spread_of(out, a, &out->illegal);
    out->shape = shape_of(out, a);
}

/* Takes the container's shares off; false when one is not within what is left. */
static bool take_shares(const struct claim *claim, uint32_t container, struct claim_share *left)
{
    for (size_t i = 0; i < claim->shares_len; i++) {
        const struct claim_share *s = &claim->shares[i];
        if (s->container != container)
            continue;
        if (s->gib < 0 || s->gib > left->gib || s->percent < 0 || s->percent > left->percent)
            return false;
        left->gib -= s->gib;
        left->percent -= s->percent;
    }
    return left->gib == 0 && left->percent == 0;
}

bool ledger_request_is_met(const struct ledger_request *r, const struct claim *claim,
                           struct arena *scratch)
{
    struct claim needed; /* on whatever card: it says how much each container must have */
    claim_one_card(r->pod, 0, scratch, &needed);
    int64_t gib = 0, percent = 0;
    for (size_t i = 0; i < needed.shares_len; i++) {
        struct claim_share left = needed.shares[i];
        gib = num_add_sat(gib, left.gib);
        percent = num_add_sat(percent, left.percent);
        if (!take_shares(claim, left.container, &left))
            return false;
    }
    for (size_t i = 0; i < claim->shares_len; i++) { /* no share for a container that needs none */
        size_t k = 0;
        while (k < needed.shares_len && needed.shares[k].container != claim->shares[i].container)
            k++;
        if (k == needed.shares_len)
            return false;
    }
    for (size_t i = 0; i < claim->group_len; i++)
        for (size_t k = 0; k < i; k++)
            if (claim->group[i] == claim->group[k])
                return false;
    return gib == r->hold_gib && percent == r->hold_percent &&
           claim->group_len == (uint64_t)r->hold_cards;
}
