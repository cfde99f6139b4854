// SPDX-License-Identifier: Apache-2.0
/* health_store - STATE-DIR/health.json: keeps sick cards over a restart. On the loop. */
#pragma once

#include "device-plugin/cards/health.h"

#define HEALTH_STORE "health.json"
enum { HEALTH_STORE_BYTES_MAX = 256 * 1024 };

/* Before the first scan: recalls what the file holds. Logs and keeps an unusable file. */
void health_store_load(const char *dir, struct health *h);
/* After a card has become sick or well. Logs a failure. */
void health_store_save(const char *dir, const struct health *h);
