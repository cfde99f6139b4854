// SPDX-License-Identifier: Apache-2.0
/*
 * protobody - a Kubernetes object in its protobuf form, as JSON text. Pure.
 *
 * Newer kubectls send objects that they build themselves (`kubectl create ns`, `kubectl drain`) as
 * application/vnd.kubernetes.protobuf. Such a body is translated once, on receipt; the rest of
 * cosched-local handles JSON only.
 */
#pragma once

#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

enum { PROTOBODY_MAX_JSON = 32 * 1024 * 1024 };

/* Appends the object. What it holds is what encoding/json of Go would print of the same object, but
 * that a list, a map or a time that is not there is left out and not null. Fields with unknown
 * numbers are skipped, as an API server does. An envelope without a kind is refused (an API server
 * takes the kind of the path; no client leaves it out). ERROR_UNSUPPORTED: of a kind we have no
 * table for; ERROR_INVALID: not the protobuf form; ERROR_TOO_LARGE: more than PROTOBODY_MAX_JSON of
 * JSON. out may have grown in these cases. */
int protobody_to_json(const char *bytes, size_t n, struct strbuf *out, struct error *err);
