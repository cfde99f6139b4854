// SPDX-License-Identifier: Apache-2.0
/*
 * sickfile - STATE-DIR/health.json: the cards that are sick, over a restart of this process. On the loop.
 */
#pragma once

#include "device-plugin/cards/health.h"

#define SICKFILE "health.json"
enum { SICKFILE_BYTES_MAX = 256 * 1024 };

/* Recalls what the file holds, before the first scan. A file that cannot be used is said and left. */
void sickfile_load(const char *dir, struct health *h);
/* After a card has become sick or well. What cannot be written is said. */
void sickfile_save(const char *dir, const struct health *h);
