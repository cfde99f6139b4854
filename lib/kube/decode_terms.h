// SPDX-License-Identifier: Apache-2.0
/*
 * decode_terms - a pod's affinity to other pods, and its topologySpreadConstraints. Both need the
 * pod's namespace and labels: metadata is decoded before.
 */
#pragma once

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/model/pod.h"

/* spec.affinity: podAffinity and podAntiAffinity of it. p->terms stays NULL when there are none. */
int decode_terms_affinity(json *affinity, struct pod *p, struct arena *a, struct error *err);
/* spec.topologySpreadConstraints. */
int decode_terms_spread(json *j, struct pod *p, struct arena *a, struct error *err);
