// SPDX-License-Identifier: Apache-2.0
#include "scheduler/framework/class_key.h"

#include <string.h>

#include "scheduler/framework/plugin.h"

void class_key_number(struct strbuf *out, int64_t value)
{
    char digits[16];
    size_t n = 0;
    for (uint64_t left = (uint64_t)value; left > 0; left >>= 6)
        digits[n++] = (char)('0' + (char)(left & 63));
    digits[n++] = ' ';
    strbuf_add(out, digits, n);
}

void class_key_text(struct strbuf *out, const char *text)
{
    if (text == NULL) {
        strbuf_addc(out, '-');
        return;
    }
    size_t n = strlen(text);
    class_key_number(out, (int64_t)n);
    strbuf_add(out, text, n);
}

void class_key_print(const struct plugin_ask *ask, struct strbuf *out)
{
    for (const struct plugin *const *p = plugin_table; *p != NULL; p++)
        if ((*p)->key != NULL)
            (*p)->key(ask, out);
}
