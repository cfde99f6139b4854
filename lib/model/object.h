// SPDX-License-Identifier: Apache-2.0
/*
 * object - what every small object of the API has in common: its names, in its own arena.
 *
 * It is the first member of the structs of volume.h, pdb.h and device.h, so that a store keeps all of them by one rule. A Namespace is nothing else:
 * its labels are all that a scheduler wants of it. Pods and nodes, of which there are many, have their own form.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/arena.h"
#include "lib/model/selector.h"

struct object {
    struct arena arena; /* owns everything below, and the struct that begins with this */
    const char *ns;     /* "" when the kind has no namespaces */
    const char *name;
    const char *key; /* "ns/name", or the name */
    const char *uid;
    const char *resource_version;
    struct labels labels;
    struct labels annotations;
    bool terminating;      /* deletionTimestamp set */
    const char *owner_uid; /* of the controlling owner, or NULL */
};

/* Frees the arena, and so the object. NULL is fine. */
void object_free(struct object *o);
