// SPDX-License-Identifier: Apache-2.0
/*
 * file - a whole file, bounded.
 */
#pragma once

#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

/* Appends what the file holds; more than max bytes are an error (ERROR_TOO_LARGE), and nothing of it stays in out. What is not a regular file is not waited for. Errors begin with the
 * path. A regular file that does not grow meanwhile is read straight into memory that does not move, so that a secret leaves no copy behind; wiping out is the caller's. */
int file_read(const char *path, size_t max, struct strbuf *out, struct error *err);
