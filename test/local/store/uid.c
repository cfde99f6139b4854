// SPDX-License-Identifier: Apache-2.0
#include "test/local/store/uid.h"

#include <stddef.h>

void uid_print(const unsigned char random[UID_BYTES], char out[UID_SIZE])
{
    static const char hex[] = "0123456789abcdef";
    size_t n = 0;
    for (size_t i = 0; i < UID_BYTES; i++) {
        unsigned char b = random[i];
        if (i == 6) /* the version */
            b = (unsigned char)((b & 0x0f) | 0x40);
        if (i == 8) /* the variant */
            b = (unsigned char)((b & 0x3f) | 0x80);
        if (i == 4 || i == 6 || i == 8 || i == 10)
            out[n++] = '-';
        out[n++] = hex[b >> 4];
        out[n++] = hex[b & 15];
    }
    out[n] = '\0';
}
