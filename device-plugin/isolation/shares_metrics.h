// SPDX-License-Identifier: Apache-2.0
/* shares_metrics - Prometheus metrics of containers limited by our library, as the worker saw them
 * last: a scrape reads no region. */
#pragma once

#include "device-plugin/isolation/shares_worker.h"

/* The worker must live as long as the metrics are served. */
void shares_metrics_init(struct shares_worker *w);
