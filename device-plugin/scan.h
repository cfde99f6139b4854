// SPDX-License-Identifier: Apache-2.0
/*
 * scan - asks the backend for its cards, on a thread of its own: a driver may hang, the loop may not.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device-plugin/backend.h"
#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/loop.h"

struct scan_letter {
    struct arena arena;
    struct gpu_inventory inventory;
    bool failed; /* err says why; inventory is empty */
    bool fatal;  /* the backend could not be opened: no more letters will come */
    struct error err;
};
void scan_letter_free(void *letter);

struct scan;

/* Opens the backend and scans at once, then every interval_ms; each result is a letter in the mailbox. */
int scan_start(struct scan **out, const struct backend_type *type,
               const struct backend_config *config, int64_t interval_ms, struct mailbox *mailbox,
               struct error *err);
/* false: the backend does not return; the thread is left behind and the mailbox must not be freed. */
bool scan_stop(struct scan *s, int64_t wait_ms);
