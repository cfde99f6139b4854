// SPDX-License-Identifier: Apache-2.0
/*
 * yaml - YAML to JSON. Only yaml.c uses libyaml.
 *
 * Scalars follow Kubernetes' tools (YAML 1.1 as in sigs.k8s.io/yaml): plain
 * true/false/yes/no/on/off/y/n, null, ~, decimal, 0x, 0o, 0b and leading-zero octal integers and
 * decimal fractions are typed; quoted scalars and dates are strings. Anchors, aliases and merge
 * keys (the mapping's own keys win) work within the bound. Rejected: other than core tags,
 * non-scalar keys, duplicate keys, an alias inside what it names, more than 64 levels, .inf and
 * .nan.
 */
#pragma once

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/base/str.h"

/* Appends each non-empty document as one JSON line. max_bytes bounds the output, which aliases can
 * multiply, and the work. Errors name line and column and leave out unchanged. */
int yaml_to_json(const char *text, size_t n, size_t max_bytes, struct strbuf *out,
                 struct error *err);
/* Parses the first non-empty document and ignores the rest. ERROR_INVALID if there is none. */
int yaml_parse(struct json_doc **out, const char *text, size_t n, size_t max_bytes,
               struct error *err);
