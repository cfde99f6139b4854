// SPDX-License-Identifier: Apache-2.0
/*
 * libcurl must not
 *   - follow redirects (the token would be sent elsewhere);
 *   - trust the system's certificates beside the cluster's own CA: CURLOPT_CAPATH has a compiled-in
 *     default and is cleared when we have a CA.
 *
 * A write that was given up must not arrive later. But the kernel keeps sending undelivered bytes
 * for a minute or two after close(2), and a Binding would arrive when another scheduler leads. So
 * the connection of an unanswered write is closed by a reset, which discards unsent bytes, and the
 * socket limits how long a byte may stay unacknowledged (TCP_USER_TIMEOUT), which works even if
 * this process is stopped.
 */
#include "lib/kube/transport.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/str.h"

enum { KEEPALIVE_IDLE_S = 20, KEEPALIVE_INTERVAL_S = 5 };

/* https://10.0.0.1:6443 with the name "kubernetes" becomes https://kubernetes:6443, connected to
 * 10.0.0.1:6443. */
static void rename_server(struct transport *t, const char *server, const char *host,
                          const char *name)
{
    size_t whole = strcspn(host, "/"); /* host:port */
    size_t host_len = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/");
    const char *port = host_len < whole ? host + host_len + 1 : "443";
    int port_len = (int)strcspn(port, "/");
    AUTO_STRBUF b = {0};
    strbuf_addf(&b, "%.*s%s:%.*s%s", (int)(host - server), server, name, port_len, port,
                host + whole);
    t->base = strbuf_take(&b);
    strbuf_addf(&b, "::%.*s:%.*s", (int)host_len, host, port_len, port);
    t->connect_to = curl_slist_append(NULL, strbuf_str(&b));
    t->renamed = true;
}

void transport_init(struct transport *t, struct kube_config *config)
{
    *t = (struct transport){.config = config};
    const char *server = kube_config_server(config), *name = kube_config_tls_server_name(config);
    const char *host = strstr(server, "://");
    host = host ? host + 3 : server;
    AUTO_STRBUF b = {0};
    strbuf_add(&b, host, strcspn(host, "/"));
    t->host = strbuf_take(&b);
    if (name)
        rename_server(t, server, host, name);
    else
        t->base = mem_strdup(server);
}

void transport_deinit(struct transport *t)
{
    curl_slist_free_all(t->connect_to);
    free(t->base);
    free(t->host);
}

static int on_socket(void *arg, curl_socket_t fd, curlsocktype purpose)
{
    struct transport *t = arg;
    (void)purpose;
    if (t->sockets_len == TRANSPORT_SOCKETS)
        t->sockets_len--; /* unexpected; a socket without its limit is better than none */
    t->sockets[t->sockets_len++] = fd;
    return CURL_SOCKOPT_OK;
}

static int on_close(void *arg, curl_socket_t fd)
{
    struct transport *t = arg;
    for (size_t i = 0; i < t->sockets_len; i++) {
        if (t->sockets[i] != fd)
            continue;
        t->sockets[i] = t->sockets[--t->sockets_len];
        break;
    }
    if (t->unanswered) {
        struct linger reset = {.l_onoff = 1, .l_linger = 0};
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    }
    return close(fd);
}

void transport_limit_delivery(struct transport *t, int64_t ms)
{
#ifdef TCP_USER_TIMEOUT
    unsigned limit = (unsigned)num_min(ms, INT32_MAX);
    for (size_t i = 0; i < t->sockets_len; i++)
        setsockopt(t->sockets[i], IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit);
#else
    (void)t, (void)ms; /* only programs that bind set a limit, and they run on Linux */
#endif
}

static CURLcode set_blob(CURL *easy, CURLoption option, const char *pem)
{
    union {
        const char *in;
        void *out;
    } data = {.in = pem}; /* curl_blob lacks a const; with NOCOPY it only reads */
    struct curl_blob blob = {.data = data.out, .len = strlen(pem), .flags = CURL_BLOB_NOCOPY};
    return curl_easy_setopt(easy, option, &blob);
}

CURLcode transport_set_up(struct transport *t, CURL *e, const char *user_agent)
{
    CURLcode rc = CURLE_OK;
    TRANSPORT_SET(rc, e, CURLOPT_NOSIGNAL, 1L);
    TRANSPORT_SET(rc, e, CURLOPT_ERRORBUFFER, t->curl_text);
    TRANSPORT_SET(rc, e, CURLOPT_USERAGENT, user_agent);
    TRANSPORT_SET(rc, e, CURLOPT_PROTOCOLS_STR, "http,https");
    TRANSPORT_SET(rc, e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    TRANSPORT_SET(rc, e, CURLOPT_FOLLOWLOCATION, 0L);
    TRANSPORT_SET(rc, e, CURLOPT_SSL_VERIFYPEER, 1L);
    TRANSPORT_SET(rc, e, CURLOPT_SSL_VERIFYHOST, 2L);
    TRANSPORT_SET(rc, e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    TRANSPORT_SET(rc, e, CURLOPT_TCP_KEEPALIVE, 1L);
    TRANSPORT_SET(rc, e, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_IDLE_S);
    TRANSPORT_SET(rc, e, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_INTERVAL_S);
    /* Cancelling does not wait for a hanging resolver. */
    TRANSPORT_SET(rc, e, CURLOPT_QUICK_EXIT, 1L);
    TRANSPORT_SET(rc, e, CURLOPT_SOCKOPTFUNCTION, on_socket);
    TRANSPORT_SET(rc, e, CURLOPT_SOCKOPTDATA, t);
    TRANSPORT_SET(rc, e, CURLOPT_CLOSESOCKETFUNCTION, on_close);
    TRANSPORT_SET(rc, e, CURLOPT_CLOSESOCKETDATA, t);
    const char *ca = kube_config_ca_pem(t->config);
    if (ca) {
        rc = rc == CURLE_OK ? set_blob(e, CURLOPT_CAINFO_BLOB, ca) : rc;
        TRANSPORT_SET(rc, e, CURLOPT_CAPATH, NULL);
    }
    const char *cert = kube_config_cert_pem(t->config), *key = kube_config_key_pem(t->config);
    if (cert && key) {
        rc = rc == CURLE_OK ? set_blob(e, CURLOPT_SSLCERT_BLOB, cert) : rc;
        rc = rc == CURLE_OK ? set_blob(e, CURLOPT_SSLKEY_BLOB, key) : rc;
    }
    if (t->connect_to)
        TRANSPORT_SET(rc, e, CURLOPT_CONNECT_TO, t->connect_to);
    if (kube_config_is_loopback(t->config))
        TRANSPORT_SET(rc, e, CURLOPT_NOPROXY, "*");
    return rc;
}
