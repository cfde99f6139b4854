// SPDX-License-Identifier: Apache-2.0
/*
 * rules - what the webhook thinks of a pod that is being created. Pure: a pod in, a verdict out.
 *
 * Three questions, in this order:
 *   1. Is it ours? It asks for something of the contract (the table of triggers in rules.c) and nobody opted out. Then, if it names no scheduler or the
 *      default one, it gets our name. A pod that asks for nothing of ours is never touched.
 *   2. Which annotations does it carry that only we may write (claim_is_result_key)? They are removed from every pod, with a warning for each.
 *   3. If it will be scheduled by us: does it say something that cannot be? (the table of checks in rules.c). Each refusal is one sentence: where, what,
 *      and what to write instead.
 *
 * The verdict on the changed pod is empty: applied twice, nothing changes (I6).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/model/selector.h"

/* kubectl prints warnings one by one, and the API server cuts them at 256 bytes each and 4 KiB together. */
enum { RULES_SENTENCES_MAX = 12, RULES_WARNING_BYTES = 256, RULES_REFUSAL_BYTES = 512 };

struct rules_config {
    const char *scheduler; /* the name that is put in */
    const char
        *own_ns; /* never injected there: our own pods must not wait for ourselves; NULL: none */
    bool inject_nvidia; /* plain nvidia.com/gpu pods as well, in every namespace */
};

/* What is known about the pod's surroundings. */
struct rules_context {
    const char *ns;
    const struct labels *ns_labels; /* NULL: not known (yet), counts as none */
};

struct rules_sentences {
    const char *items[RULES_SENTENCES_MAX]; /* printable, no line breaks */
    size_t len;
    size_t left_out; /* more were found; the last item says how many */
};

struct rules_verdict {
    const char *
        trigger; /* what makes the pod ours, a static word for metrics ("gpu-mem", "gang"); NULL: nothing, or opted out */
    bool inject; /* spec.schedulerName must become config->scheduler */
    bool ours;   /* scheduled by us, after the patch */
    const char **remove; /* annotations to remove; borrowed from the pod's document */
    size_t remove_len;
    struct rules_sentences warnings;
    struct rules_sentences refusals;
};

/* Everything in *out lives in a or in pod's document. ERROR_INVALID: this is not a pod (a part of it has the wrong kind). */
int rules_pod(const struct rules_config *config, const struct rules_context *context, json *pod,
              struct arena *a, struct rules_verdict *out, struct error *err);
