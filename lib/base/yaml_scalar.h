// SPDX-License-Identifier: Apache-2.0
/* yaml_scalar - type and value of a YAML scalar, by YAML 1.1 as Kubernetes' tools read it.
 * Independent of libyaml. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

/* The tag as written. */
enum yaml_scalar_tag {
    SCALAR_TAG_NONE,
    SCALAR_TAG_PLAIN_BANG, /* "!": a string */
    SCALAR_TAG_STRING,
    SCALAR_TAG_INTEGER,
    SCALAR_TAG_FLOAT,
    SCALAR_TAG_BOOLEAN,
    SCALAR_TAG_NULL,
};

enum yaml_scalar_kind {
    SCALAR_STRING,
    SCALAR_NULL,
    SCALAR_TRUE,
    SCALAR_FALSE,
    SCALAR_NUMBER,
};

/* Resolves n bytes of text. plain: unquoted. A number's JSON text replaces the content of number.
 * ERROR_INVALID: the tag disagrees ("not an integer: 'x'"). ERROR_UNSUPPORTED: .inf and .nan, which
 * JSON lacks. ERROR_RANGE: hexadecimal, octal and binary numbers over 64 bits. */
int yaml_scalar_resolve(const char *text, size_t n, enum yaml_scalar_tag tag, bool plain,
                        enum yaml_scalar_kind *kind, struct strbuf *number, struct error *err);
