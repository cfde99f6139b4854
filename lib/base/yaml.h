// SPDX-License-Identifier: Apache-2.0
/*
 * yaml - YAML to JSON. The only file that knows libyaml.
 *
 * Scalars follow what Kubernetes' own tools do (YAML 1.1 as read by sigs.k8s.io/yaml): plain true/false/yes/no/on/off, null,
 * ~, decimal, 0x and 0o integers and decimal fractions are typed; quoted scalars are strings. Anchors and merge keys work, within the bound.
 */
#pragma once

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/base/str.h"

/* Appends each document of the stream to out as one JSON line ('\n' after each; empty documents give no line).
 * max_bytes bounds what is written (aliases can multiply). Errors name line and column. */
int yaml_to_json(const char *text, size_t n, size_t max_bytes, struct strbuf *out, struct error *err);
/* The first document, parsed. ERROR_INVALID if there is none. */
int yaml_parse(struct json_doc **out, const char *text, size_t n, size_t max_bytes, struct error *err);
