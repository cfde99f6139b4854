// SPDX-License-Identifier: Apache-2.0
/*
 * validity - a certificate's period of validity. Pure.
 *
 * doctor needs nothing else of a certificate, so this walks the DER to it and no certificate
 * library is linked.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { VALIDITY_TIME_SIZE = 24, VALIDITY_PEM_MAX = 64 * 1024 };

struct validity {
    char not_before[VALIDITY_TIME_SIZE]; /* "2026-03-01T12:00:00Z" */
    char not_after[VALIDITY_TIME_SIZE];
};

/* Of the first certificate in the n characters of PEM. false: none is readable. Verifies
 * nothing. */
bool validity_read(const char *pem, size_t n, struct validity *out);
