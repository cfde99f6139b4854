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

/* Escapes path parts as RFC 6901 demands. */
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

void patch_add_value(struct patch *p, json *value, ...)
{
    va_list parts;
    va_start(parts, value);
    begin_op(p, "add", parts);
    va_end(parts);
    json_key(&p->writer, "value");
    if (value) {
        json_put_value(&p->writer, value);
    } else {
        json_object_begin(&p->writer);
        json_object_end(&p->writer);
    }
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
