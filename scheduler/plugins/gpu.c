// SPDX-License-Identifier: Apache-2.0
/*
 * gpu - shared and whole cards of one node. The ledger chooses; filter and reserve ask it the same question, so they cannot disagree. The score is what the place costs
 * (gpu_prices.h): about nodes that are filled first or last fit has no say for these pods.
 */
#include "scheduler/cache/gpu_prices.h"
#include "scheduler/cache/nominations.h"
#include "scheduler/cache/peers.h"
#include "scheduler/plugins/all.h"
#include "scheduler/framework/class_key.h"

/* What is left for the pod when those that wait here before it have got their cards: the node's ledger itself, or one in *room. */
static const struct ledger *ledger_for(const struct plugin_ask *ask,
                                       const struct cluster_node *node, struct arena *a,
                                       struct ledger *room)
{
    const struct cluster_pod *other;
    const struct ledger *l = &node->ledger;
    for (size_t i = 0; (other = nominations_next(ask->cluster, ask->pod, node, &i)) != NULL;) {
        struct claim claim = {0};
        struct ledger_why no;
        if (!other->gpu.any)
            continue;
        if (l != room)
            ledger_try_on(l, a, room);
        l = room;
        bool known = ledger_choose(room, &other->gpu, a, &claim, &no);
        ledger_account(room, &claim, known, &other->gpu, 1);
    }
    return l;
}

static bool filter(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                   struct reason *why)
{
    const struct cluster_pod *pod = ask->pod;
    struct ledger_why no;
    struct ledger room;
    if (!pod->gpu.any)
        return true;
    const struct ledger *l = ledger_for(ask, node, a, &room);
    if (ledger_choose(l, &pod->gpu, a, NULL, &no))
        return true;
    if (why == NULL)
        return false;
    const char *trouble = ledger_trouble(l, &pod->gpu, 0);
    if (trouble != NULL && no.no != LEDGER_UNPLACED) {
        *why = (struct reason){.kind = REASON_CARD_SICK, .what = trouble};
        return false;
    }
    switch (no.no) {
    case LEDGER_FITS:
    case LEDGER_NO_INVENTORY:
        *why = (struct reason){.kind = REASON_NO_INVENTORY, .what = l->problem};
        break;
    case LEDGER_WRONG_MODE:
        *why = (struct reason){.kind = REASON_GPU_MODE, .what = gpu_mode_name(l->inventory.mode)};
        break;
    case LEDGER_SWITCHING:
        *why = (struct reason){.kind = REASON_GPU_SWITCHING,
                               .what = gpu_mode_name(l->inventory.switching_to)};
        break;
    case LEDGER_UNPLACED:
        *why = (struct reason){.kind = REASON_GPU_UNPLACED};
        break;
    case LEDGER_NO_CARD:
        *why = (struct reason){.kind = REASON_CARD,
                               .what = pod->gpu.shape,
                               .want = no.want,
                               .free = no.largest_gib,
                               .want_percent = no.want_percent,
                               .free_percent = no.largest_percent,
                               .card = no.largest_card};
        break;
    case LEDGER_TOO_FEW_CARDS:
        *why = (struct reason){.kind = REASON_CARDS, .want = no.want, .free = no.free_cards};
        break;
    }
    return false;
}

static bool reserve(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                    struct claim *claim)
{
    struct ledger_why no;
    struct ledger room;
    struct ledger_peers peers;
    if (!ask->pod->gpu.any)
        return true;
    peers_of(ask->pod, node, &peers);
    return ledger_choose_with(ledger_for(ask, node, a, &room), &ask->pod->gpu, &peers, a, claim,
                              &no);
}

bool plugin_gpu_choose_on(const struct plugin_ask *ask, const struct cluster_node *node,
                          int32_t numa, struct arena *a, struct claim *claim)
{
    struct ledger_why no;
    struct ledger room, only;
    struct ledger_peers peers;
    peers_of(ask->pod, node, &peers);
    ledger_try_on_numa(ledger_for(ask, node, a, &room), numa, a, &only);
    return ledger_choose_with(&only, &ask->pod->gpu, &peers, a, claim, &no);
}

static int64_t score(const struct plugin_ask *ask, const struct cluster_node *node)
{
    return gpu_prices_score(ask->cluster, ask->pod, node);
}

/* Of the prices. */
static uint64_t version(const struct cluster *c)
{
    return c->gpu_prices->prices.version;
}

static bool applies(const struct cluster_pod *pod)
{
    return pod->gpu.any;
}

static void key(const struct plugin_ask *ask, struct strbuf *out)
{
    const struct ledger_request *r = &ask->pod->gpu;
    if (!r->any)
        return;
    strbuf_addc(out, 'G');
    class_key_number(out, r->hold_gib);
    class_key_number(out, r->hold_percent);
    class_key_number(out, r->whole_cards);
    class_key_number(out, r->spread_over);
    class_key_number(out, r->one_card);
    for (size_t i = 0; r->shared && i < r->pod->containers_len; i++) {
        class_key_number(out, ledger_request_gib(&r->pod->containers[i]));
        class_key_number(out, ledger_request_percent(&r->pod->containers[i]));
    }
}

const struct plugin plugin_gpu = {.name = "gpu",
                                  .key = key,
                                  .wakes = EVENT_NODE_GPU | EVENT_POD_GONE,
                                  .depends = PLUGIN_HELD,
                                  .score_depends = PLUGIN_HELD,
                                  .version = version,
                                  .applies = applies,
                                  .filter = filter,
                                  .score = score,
                                  .weight = 1,
                                  .reserve = reserve};
