// SPDX-License-Identifier: Apache-2.0
/*
 * dump_demand - what GPU pods asked for lately (demand.h) as JSON, and back. Pure.
 *
 *     "gpuDemand":{"seen":812,"cpuMilli":…,"milliCards":…,"sizes":[{"gib":3,"weight":4096},…],"sets":[{"models":["Tesla-T4"],"weight":…}]}
 *
 * Prices are not in it: whoever reads the dump takes them from the demand, so the same dump has the same prices.
 */
#pragma once

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "scheduler/cache/gpu_prices.h"

/* Nothing where no pod has asked for cards. */
void dump_demand_print(const struct gpu_prices *g, struct json_writer *w);
/* g learns the models that are named. -1: what is wrong with which field; *out is then of no use. */
int dump_demand_read(json *j, struct gpu_prices *g, struct demand *out, struct error *err);
