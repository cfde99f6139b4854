// SPDX-License-Identifier: Apache-2.0
/* gpu - shared and whole cards of one node. Filter and reserve use the same choice of the GPU
 * accounts, so they cannot disagree. The score is the cost of the placement (gpu_prices.h); fit
 * does not score these pods. */
#include "scheduler/model/gpu_prices.h"
#include "scheduler/model/nominations.h"
#include "scheduler/cache/topology_job.h"
#include "scheduler/plugins/all.h"
#include "scheduler/framework/class_key.h"

/* The node's GPU accounts; if pods are nominated here before this one, a copy in *trial that
 * includes them. */
static const struct gpu_accounts *accounts_for(const struct plugin_ask *ask,
                                               const struct cluster_node *node, struct arena *a,
                                               struct gpu_accounts *trial)
{
    const struct cluster_pod *other;
    const struct gpu_accounts *l = &node->gpu_accounts;
    for (size_t i = 0; (other = nominations_next(ask->pod, node, &i)) != NULL;) {
        struct grant grant = {0};
        struct gpu_accounts_why no;
        if (!other->gpu.any)
            continue;
        if (l != trial)
            gpu_accounts_try_on(l, a, trial);
        l = trial;
        bool known = gpu_accounts_choose(trial, &other->gpu, a, &grant, &no);
        gpu_accounts_account(trial, &grant, known, &other->gpu, 1);
    }
    return l;
}

bool plugin_gpu_is_too_large(const struct plugin_ask *ask, const struct cluster_node *node,
                             struct arena *a, struct reason *why)
{
    const struct cluster_pod *pod = ask->pod;
    struct gpu_accounts_why no;
    if (!pod->gpu.any || gpu_accounts_could(&node->gpu_accounts, &pod->gpu, a, &no))
        return false;
    if (no.no == GPU_ACCOUNTS_NO_CARD)
        *why = (struct reason){.kind = REASON_CARD_SIZE,
                               .what = pod->gpu_shape,
                               .want = no.want,
                               .free = no.largest_gib,
                               .card = no.largest_card};
    else
        *why = (struct reason){.kind = REASON_CARDS_SIZE, .want = no.want, .free = no.free_cards};
    return true;
}

static bool filter(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                   struct reason *why)
{
    const struct cluster_pod *pod = ask->pod;
    struct gpu_accounts_why no;
    struct gpu_accounts trial;
    if (!pod->gpu.any)
        return true;
    const struct gpu_accounts *l = accounts_for(ask, node, a, &trial);
    if (gpu_accounts_choose(l, &pod->gpu, a, NULL, &no))
        return true;
    if (why == NULL || plugin_gpu_is_too_large(ask, node, a, why))
        return false;
    const char *trouble = gpu_accounts_trouble(l, &pod->gpu, 0);
    if (trouble != NULL && no.no != GPU_ACCOUNTS_UNPLACED) {
        *why = (struct reason){.kind = REASON_CARD_SICK, .what = trouble};
        return false;
    }
    switch (no.no) {
    case GPU_ACCOUNTS_FITS:
    case GPU_ACCOUNTS_NO_INVENTORY:
        *why = (struct reason){.kind = REASON_NO_INVENTORY, .what = l->problem};
        break;
    case GPU_ACCOUNTS_WRONG_MODE:
        *why = (struct reason){.kind = REASON_GPU_MODE, .what = gpu_mode_name(l->inventory.mode)};
        break;
    case GPU_ACCOUNTS_SWITCHING:
        *why = (struct reason){.kind = REASON_GPU_SWITCHING,
                               .what = gpu_mode_name(l->inventory.switching_to)};
        break;
    case GPU_ACCOUNTS_UNPLACED:
        *why = (struct reason){.kind = REASON_GPU_UNPLACED};
        break;
    case GPU_ACCOUNTS_NO_CARD:
        *why = (struct reason){.kind = REASON_CARD,
                               .what = pod->gpu_shape,
                               .want = no.want,
                               .free = no.largest_gib,
                               .want_percent = no.want_percent,
                               .free_percent = no.largest_percent,
                               .card = no.largest_card};
        break;
    case GPU_ACCOUNTS_TOO_FEW_CARDS:
        *why = (struct reason){.kind = REASON_CARDS, .want = no.want, .free = no.free_cards};
        break;
    }
    return false;
}

static bool reserve(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                    struct grant *grant)
{
    struct gpu_accounts_why no;
    struct gpu_accounts trial;
    struct gpu_accounts_peers topology_job;
    if (!ask->pod->gpu.any)
        return true;
    topology_job_of(ask->pod, node, &topology_job);
    return gpu_accounts_choose_with(accounts_for(ask, node, a, &trial), &ask->pod->gpu,
                                    &topology_job, a, grant, &no);
}

bool plugin_gpu_choose_on(const struct plugin_ask *ask, const struct cluster_node *node,
                          int32_t numa, struct arena *a, struct grant *grant)
{
    struct gpu_accounts_why no;
    struct gpu_accounts trial, only;
    struct gpu_accounts_peers topology_job;
    topology_job_of(ask->pod, node, &topology_job);
    gpu_accounts_try_on_numa(accounts_for(ask, node, a, &trial), numa, a, &only);
    return gpu_accounts_choose_with(&only, &ask->pod->gpu, &topology_job, a, grant, &no);
}

static int64_t score(const struct plugin_ask *ask, const struct cluster_node *node)
{
    return gpu_prices_score(ask->cluster, ask->pod, node);
}

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
    const struct gpu_request *r = &ask->pod->gpu;
    if (!r->any)
        return;
    strbuf_addc(out, 'G');
    class_key_number(out, r->total[GPU_REQUEST_MEM]);
    class_key_number(out, r->total[GPU_REQUEST_CORE]);
    class_key_number(out, r->total[GPU_REQUEST_CARDS]);
    class_key_number(out, r->spread_over);
    class_key_number(out, r->one_card);
    for (size_t i = 0; i < r->shares_len; i++) {
        class_key_number(out, r->shares[i].gib);
        class_key_number(out, r->shares[i].percent);
    }
}

static const char *illegal(const struct cluster_pod *pod)
{
    return pod->gpu.illegal;
}

const struct plugin plugin_gpu = {.name = "gpu",
                                  .illegal = illegal,
                                  .key = key,
                                  PLUGIN_READS(FACET_CARDS | FACET_HELD | FACET_NOMINATED),
                                  .score_depends = PLUGIN_HELD,
                                  .version = version,
                                  .applies = applies,
                                  .filter = filter,
                                  .score = score,
                                  .weight = 1,
                                  .reserve = reserve};
