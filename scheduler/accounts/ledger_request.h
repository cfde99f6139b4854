// SPDX-License-Identifier: Apache-2.0
/*
 * ledger_request - what a pod asks of the cards of a node, read once from the pod. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/model/claim.h"
#include "lib/model/pod.h"

#define LEDGER_MAX (INT64_C(1) << 32) /* GiB, percent or cards of one pod or one card */

/* What a pod asks of the cards of one node. */
struct ledger_request {
    const struct pod *pod;
    int64_t total_gib;
    int64_t spread_over; /* label aliyun.com/gpu-count; 1 when absent */
    int64_t whole_cards; /* aliyun.com/gpu; the same as hold_cards */
    bool one_card;       /* an init container asks too: the whole pod goes on one card */
    bool shared;         /* asks for gpu-mem or gpu-core.percentage */
    bool any;            /* asks for anything of ours, in init containers too */
    const char *illegal; /* a sentence: why no node can ever serve it; NULL when legal */
    const char *shape;   /* for messages: "no card with 12 GiB"; NULL when not shared */
    /* What it takes of a node by Kubernetes' formula, init containers included, at most LEDGER_MAX each: what is held when nobody knows where. */
    int64_t hold_gib;
    int64_t hold_percent;
    int64_t hold_cards;
};

void ledger_request_of(const struct pod *p, struct arena *a, struct ledger_request *out);
/* Of one container, at most LEDGER_MAX. */
int64_t ledger_request_gib(const struct container *c);
int64_t ledger_request_percent(const struct container *c);
/* Whether the claim adds up to the request, container by container: the half of the contract's rule that needs no inventory. */
bool ledger_request_is_met(const struct ledger_request *r, const struct claim *claim,
                           struct arena *scratch);
