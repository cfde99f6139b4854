// SPDX-License-Identifier: Apache-2.0
/*
 * yaml_scalar - the type and value of a YAML scalar, by the rules of YAML 1.1 as Kubernetes' tools
 * read it. Independent of libyaml.
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

/* The kind of n bytes of text. plain: unquoted. For a number, its JSON text replaces the content of
 * number. ERROR_INVALID if the tag disagrees ("not an integer: 'x'"), ERROR_UNSUPPORTED for .inf
 * and .nan, which JSON lacks, ERROR_RANGE for hexadecimal, octal and binary numbers over 64
 * bits. */
int yaml_scalar_resolve(const char *text, size_t n, enum yaml_scalar_tag tag, bool plain,
                        enum yaml_scalar_kind *kind, struct strbuf *number, struct error *err);
