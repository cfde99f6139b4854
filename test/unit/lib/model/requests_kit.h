// SPDX-License-Identifier: Apache-2.0
/*
 * requests_kit - the table of what pods ask for (requests.json), for the tests of every program
 * that reads it.
 *
 * gpu: "0=3/30 1=5" is 3 GiB and 30 percent for container 0 and 5 GiB for container 1 (init
 * containers are counted behind the containers), then " over 2" or " on one card"; "2 cards" by
 * topology; "2 exclusive". cpu: "4 0 1 = 5" is CPUs by container and at once, then what the
 * annotations say. "": nothing is asked for.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/json.h"
#include "lib/model/grant.h"
#include "lib/model/cpu_request.h"
#include "lib/model/gpu_request.h"
#include "lib/model/pod.h"

struct requests_row {
    const char *name;
    const char *pod; /* its JSON: d/p, of our scheduler, waiting */
    const char *gpu, *cpu;
    struct request_errors gpu_errors, cpu_errors;
    json *containers, *init; /* as in the table */
};

/* Every row, each with an arena that lives as long as the call. Fails the test when the table
 * cannot be read, or is empty. */
void requests_kit_each(void (*check)(const struct requests_row *row, struct arena *a));
/* Of the row, by decode. The caller frees it. */
struct pod *requests_kit_pod(const struct requests_row *row);
bool requests_kit_is_legal(const struct requests_row *row);

const char *requests_kit_gpu(const struct gpu_request *r, struct arena *a);
/* r may be NULL. */
const char *requests_kit_cpu(const struct cpu_request *r, struct arena *a);
/* What was given, in the words of the table; whether it had to be on one card is not seen. */
const char *requests_kit_grant(const struct grant *c, struct arena *a);
/* The row's, without " on one card". */
const char *requests_kit_given(const struct requests_row *row, struct arena *a);
bool requests_kit_on_one_card(const struct requests_row *row);
