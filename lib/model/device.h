// SPDX-License-Identifier: Apache-2.0
/* device - a DeviceClass (dynamic resource allocation). Only its extended resource matters, to
 * report clearly that this scheduler does not serve it. */
#pragma once

#include "lib/model/object.h"

struct device_class {
    struct object object;
    const char *extended_resource; /* spec.extendedResourceName, or NULL */
};
