// SPDX-License-Identifier: Apache-2.0
#include "lib/model/request.h"

#include <stdarg.h>
#include <string.h>

#include "lib/base/str.h"

void request_errors_add(struct request_errors *e, struct arena *a, const char *fmt, ...)
{
    if (e->len == REQUEST_ERRORS_MAX) {
        e->left_out++;
        return;
    }
    va_list ap;
    va_start(ap, fmt);
    e->items[e->len++] = arena_vprintf(a, fmt, ap);
    va_end(ap);
}

const char *request_errors_first(const struct request_errors *e)
{
    return e->len > 0 ? e->items[0] : NULL;
}

const char *request_container_path(const struct pod *p, size_t container, struct arena *a)
{
    bool init = container >= p->containers_len;
    return arena_printf(a, "spec.%s[%zu]", init ? "initContainers" : "containers",
                        init ? container - p->containers_len : container);
}

const char *request_quote(const char *value, struct arena *a)
{
    char *copy = arena_strndup(a, value, strnlen(value, 128));
    return arena_printf(a, "'%s'", str_tidy(copy, 64));
}
