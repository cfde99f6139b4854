// SPDX-License-Identifier: Apache-2.0
/*
 * yaml_scalar - what a YAML scalar means: the word rules of YAML 1.1 as Kubernetes' tools read it. Knows no libyaml.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

/* The tag as written in the text. */
enum yaml_scalar_tag {
    SCALAR_TAG_NONE,
    SCALAR_TAG_PLAIN_BANG, /* "!": take it as it is, a string */
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

/* What n bytes of text are. plain: written without quotes. For a number its JSON text replaces what is in number. ERROR_INVALID
 * if the tag says otherwise ("not an integer: 'x'"), ERROR_UNSUPPORTED for .inf and .nan, which JSON has not,
 * ERROR_RANGE for hexadecimal, octal and binary numbers over 64 bits. */
int yaml_scalar_resolve(const char *text, size_t n, enum yaml_scalar_tag tag, bool plain,
                        enum yaml_scalar_kind *kind, struct strbuf *number, struct error *err);
