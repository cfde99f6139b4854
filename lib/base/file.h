// SPDX-License-Identifier: Apache-2.0
/* file - reads a whole file, bounded. */
#pragma once

#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

/* Appends the content; on error out keeps its length. ERROR_TOO_LARGE: more than max bytes. Does
 * not block on a FIFO or device. Errors begin with the path. A regular file of constant size is
 * read without reallocation, so no copy of a secret stays; the caller wipes out. */
int file_read(const char *path, size_t max, struct strbuf *out, struct error *err);
