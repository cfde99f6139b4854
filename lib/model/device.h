// SPDX-License-Identifier: Apache-2.0
/*
 * device - a DeviceClass (dynamic resource allocation). All that we want to know is which extended resource it offers, to say clearly that this scheduler
 * does not serve it.
 */
#pragma once

#include "lib/model/object.h"

struct device_class {
    struct object object;
    const char *extended_resource; /* spec.extendedResourceName, or NULL */
};
