// SPDX-License-Identifier: Apache-2.0
#include "webhook/patch.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>

void patch_init(struct patch *p)
{
    *p = (struct patch){.len = 0};
    json_writer_init(&p->writer, &p->text);
    json_array_begin(&p->writer);
}

void patch_deinit(struct patch *p)
{
    strbuf_deinit(&p->text);
}

/* RFC 6901: "~" is written "~0" and "/" is written "~1". */
static void add_pointer(struct strbuf *out, va_list parts)
{
    for (const char *part; (part = va_arg(parts, const char *)) != NULL;) {
        strbuf_addc(out, '/');
        for (const char *s = part; *s != '\0'; s++) {
            if (*s == '~')
                strbuf_adds(out, "~0");
            else if (*s == '/')
                strbuf_adds(out, "~1");
            else
                strbuf_addc(out, *s);
        }
    }
}

static void begin_op(struct patch *p, const char *op, va_list parts)
{
    assert(!p->closed);
    AUTO_STRBUF pointer = {0};
    add_pointer(&pointer, parts);
    json_object_begin(&p->writer);
    json_kv_str(&p->writer, "op", op);
    json_kv_str(&p->writer, "path", strbuf_str(&pointer));
    p->len++;
}

void patch_remove(struct patch *p, ...)
{
    va_list parts;
    va_start(parts, p);
    begin_op(p, "remove", parts);
    va_end(parts);
    json_object_end(&p->writer);
}

void patch_add_str(struct patch *p, const char *value, ...)
{
    va_list parts;
    va_start(parts, value);
    begin_op(p, "add", parts);
    va_end(parts);
    json_kv_str(&p->writer, "value", value);
    json_object_end(&p->writer);
}

bool patch_is_empty(const struct patch *p)
{
    return p->len == 0;
}

const char *patch_text(struct patch *p)
{
    if (!p->closed) {
        json_array_end(&p->writer);
        p->closed = true;
    }
    return strbuf_str(&p->text);
}

void patch_base64(struct strbuf *out, const void *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *in = bytes;
    strbuf_reserve(out, n / 3 * 4 + 4);
    for (size_t i = 0; i < n; i += 3) {
        size_t have = n - i < 3 ? n - i : 3;
        uint32_t word = (uint32_t)in[i] << 16;
        if (have > 1)
            word |= (uint32_t)in[i + 1] << 8;
        if (have > 2)
            word |= in[i + 2];
        char four[4] = {digits[word >> 18 & 63], digits[word >> 12 & 63],
                        have > 1 ? digits[word >> 6 & 63] : '=',
                        have > 2 ? digits[word & 63] : '='};
        strbuf_add(out, four, sizeof four);
    }
}
