// SPDX-License-Identifier: Apache-2.0
/*
 * hollow - nodes that are only API objects, for scale: pods that are bound to one go Running by
 * themselves in the next round of the loop. Nothing else happens to them; terminating ones are
 * taken away by the controllers, as the nodes carry CONTROLLERS_HOLLOW.
 */
#pragma once

#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/loop.h"
#include "test/local/store/store.h"

struct hollow_config {
    int64_t count;
    int64_t cpu, memory_bytes, pods; /* of each */
    const char *template_text;       /* a Node in JSON whose $NAME and $INDEX are replaced; NULL: a
                                        plain one with the numbers above */
};

struct hollow;
/* Makes hollow-00000, hollow-00001, ...; those that exist already are left as they are. */
int hollow_start(struct hollow **out, struct loop *l, struct store *s,
                 const struct hollow_config *c, struct error *err);
void hollow_stop(struct hollow *h); /* NULL is fine */
