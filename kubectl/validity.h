// SPDX-License-Identifier: Apache-2.0
/*
 * validity - from when until when a certificate is valid. Pure.
 *
 * The one thing that doctor wants to know of a certificate, read from its DER by walking to it: no library for certificates is linked with this program.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { VALIDITY_TIME_SIZE = 24, VALIDITY_PEM_MAX = 64 * 1024 };

struct validity {
    char not_before[VALIDITY_TIME_SIZE]; /* "2026-03-01T12:00:00Z" */
    char not_after[VALIDITY_TIME_SIZE];
};

/* Of the first certificate in the n characters of PEM. false: there is none that can be read. Nothing is verified. */
bool validity_read(const char *pem, size_t n, struct validity *out);
