// SPDX-License-Identifier: Apache-2.0
/*
 * compute - the pod labels that must not differ from a node's of the same name. Pure.
 */
#pragma once

/* NULL-terminated. */
extern const char *const compute_labels[];
