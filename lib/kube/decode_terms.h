// SPDX-License-Identifier: Apache-2.0
/* decode_terms - a pod's affinity to other pods, and its topologySpreadConstraints. Both need the
 * pod's namespace and labels, so metadata must be decoded first. After an error the pod has what
 * can be read. */
#pragma once

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/model/pod.h"

/* podAffinity and podAntiAffinity of spec.affinity. p->terms stays NULL when there are none. */
int decode_terms_affinity(json *affinity, struct pod *p, struct arena *a, struct error *err);
/* spec.topologySpreadConstraints. */
int decode_terms_spread(json *j, struct pod *p, struct arena *a, struct error *err);
