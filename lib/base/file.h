// SPDX-License-Identifier: Apache-2.0
/*
 * file - reading a whole file, bounded.
 */
#pragma once

#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

/* Appends the file's content. More than max bytes is ERROR_TOO_LARGE and leaves out unchanged. Does
 * not block on a FIFO or device. Errors begin with the path. A regular file of constant size is
 * read into memory that never moves, so that a secret leaves no copy; the caller wipes out. */
int file_read(const char *path, size_t max, struct strbuf *out, struct error *err);
