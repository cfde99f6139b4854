// SPDX-License-Identifier: Apache-2.0
/*
 * policy_texts - nodes, policies and pods of policy_cases.json as the API server would show them:
 * JSON texts, in a.
 */
#pragma once

#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/json.h"

/* Seconds of a case are counted from here: 2026-01-01. */
#define POLICY_TEXTS_BEGIN_S INT64_C(1767225600)

char *policy_texts_node(const char *name, json *j, struct arena *a);
/* Made now, unless it says when. */
char *policy_texts_policy(json *j, int64_t now_s, struct arena *a);
/* j: the step, which says what its pods are like. node: where it is already, or NULL. */
char *policy_texts_pod(const char *name, json *j, const char *node, int64_t now_s, struct arena *a);
