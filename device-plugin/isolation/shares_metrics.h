// SPDX-License-Identifier: Apache-2.0
/* shares_metrics - Prometheus metrics of containers limited by our library, read from their regions
 * at scrape time. */
#pragma once

/* base must live as long as the metrics are served. */
void shares_metrics_init(const char *base);
