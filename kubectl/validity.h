// SPDX-License-Identifier: Apache-2.0
/* validity - reads a certificate's validity period from the DER, so that no certificate library is
 * linked. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { VALIDITY_TIME_SIZE = 24, VALIDITY_PEM_MAX = 64 * 1024 };

struct validity {
    char not_before[VALIDITY_TIME_SIZE]; /* "2026-03-01T12:00:00Z" */
    char not_after[VALIDITY_TIME_SIZE];
};

/* Reads the first certificate in n characters of PEM. False if none is readable. Verifies
 * nothing. */
bool validity_read(const char *pem, size_t n, struct validity *out);
