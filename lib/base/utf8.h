// SPDX-License-Identifier: Apache-2.0
/*
 * utf8 - is the next character whole? For everything that prints text of unknown origin (logs,
 * metrics).
 */
#pragma once

#include <stddef.h>

/* Bytes of the well-formed UTF-8 character at s, of which n bytes may be read; 0 if there is none
 * (overlong forms, surrogates and code points past U+10FFFF are not well-formed). */
static inline size_t utf8_len(const char *s, size_t n)
{
    const unsigned char *u = (const unsigned char *)s;
    if (n == 0)
        return 0;
    if (u[0] < 0x80)
        return 1;
    size_t len = u[0] >= 0xc2 && u[0] <= 0xdf   ? 2
                 : (u[0] & 0xf0) == 0xe0        ? 3
                 : u[0] >= 0xf0 && u[0] <= 0xf4 ? 4
                                                : 0;
    if (len == 0 || len > n)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((u[i] & 0xc0) != 0x80)
            return 0;
    if ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f) ||
        (u[0] == 0xf0 && u[1] < 0x90) || (u[0] == 0xf4 && u[1] > 0x8f))
        return 0;
    return len;
}
