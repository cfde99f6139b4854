// SPDX-License-Identifier: Apache-2.0
/*
 * yaml - YAML to JSON. The only file that knows libyaml.
 *
 * Scalars follow Kubernetes' own tools (YAML 1.1 as read by sigs.k8s.io/yaml): plain
 * true/false/yes/no/on/off/y/n, null, ~, decimal, 0x, 0o, 0b and leading-zero octal integers and
 * decimal fractions are typed; quoted scalars are strings; dates are strings. Anchors, aliases and
 * merge keys (the mapping's own keys win) work, within the bound. Rejected with a message: tags
 * other than the core ones, keys that are not scalars, a key twice, an alias inside what it names,
 * more than 64 levels, .inf and .nan.
 */
#pragma once

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/base/str.h"

/* Appends each document of the stream to out as one JSON line ('\n' after each; empty documents
 * give none). max_bytes bounds the output (aliases can multiply) and the work. Errors name line and
 * column, and leave out unchanged. */
int yaml_to_json(const char *text, size_t n, size_t max_bytes, struct strbuf *out,
                 struct error *err);
/* The first non-empty document, parsed; the rest is ignored. ERROR_INVALID if there is none. */
int yaml_parse(struct json_doc **out, const char *text, size_t n, size_t max_bytes,
               struct error *err);
