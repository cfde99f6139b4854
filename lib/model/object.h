// SPDX-License-Identifier: Apache-2.0
/*
 * object - the common part of small API objects: names, in their own arena.
 *
 * It is the first member of the structs of volume.h, pdb.h and device.h, so that one store keeps
 * them all. A Namespace is only this, because the scheduler needs just its labels. Pods and nodes,
 * which are many, have their own form.
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

/* Frees the arena, and so the object. NULL is allowed. */
void object_free(struct object *o);
