// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/request.h"

#include <string.h>

void request_print(const struct request *r, const struct conn *d, struct kube_config *kube,
                   struct strbuf *out)
{
    /* Reserves everything at once: growing would leave a copy of the token behind. */
    strbuf_reserve(out, r->path->len + r->body->len + KUBE_TOKEN_MAX + 1024 + strlen(conn_host(d)) +
                            strlen(conn_root(d)) + strlen(r->user_agent));
    strbuf_adds(out, "POST ");
    strbuf_adds(out, conn_root(d));
    strbuf_adds(out, strbuf_str(r->path));
    strbuf_addf(out, "?timeout=%lldms HTTP/1.1\r\nContent-Length: %zu\r\nHost: ",
                (long long)r->timeout_ms, r->body->len);
    strbuf_adds(out, conn_host(d));
    strbuf_adds(out, "\r\nUser-Agent: ");
    strbuf_adds(out, r->user_agent);
    strbuf_adds(out, "\r\nAccept: application/json\r\nContent-Type: application/json\r\n");
    size_t before = out->len;
    strbuf_adds(out, "Authorization: Bearer ");
    if (kube_config_token(kube, out->ptr + out->len, KUBE_TOKEN_MAX)) {
        out->len += strlen(out->ptr + out->len);
        strbuf_adds(out, "\r\n");
    } else {
        out->len = before;
    }
    strbuf_adds(out, "\r\n");
    strbuf_add(out, strbuf_str(r->body), r->body->len);
}
