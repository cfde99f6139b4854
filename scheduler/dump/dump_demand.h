// SPDX-License-Identifier: Apache-2.0
/*
 * dump_demand - the recent demand of GPU pods (demand.h) as JSON, and back. Pure. Prices are
 * derived when the dump is read.
 *
 *     "gpuDemand":{"seen":812,"cpuMilli":…,"milliCards":…,
 *         "sizes":[{"gib":3,"weight":4096},…],"sets":[{"models":["Tesla-T4"],"weight":…}]}
 */
#pragma once

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "scheduler/model/gpu_prices.h"

/* Prints nothing if no pod has requested cards. */
void dump_demand_print(const struct gpu_prices *g, struct json_writer *w);
/* Adds the named models to g. -1: the error names the field; *out is then unusable. */
int dump_demand_read(json *j, struct gpu_prices *g, struct demand *out, struct error *err);
