// SPDX-License-Identifier: Apache-2.0
/*
 * local - what benchmarks on cosched-local share: the server as a child, and plain HTTP to it
 * without a library between.
 */
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "lib/base/cleanup.h"
#include "lib/base/http_parse.h"
#include "test/bench/process.h"

struct local {
    pid_t pid;
    uint16_t port;
    char kubeconfig[512];
};

/* With so many hollow nodes; it listens when this returns. encrypted: with TLS and a token, as
 * programs reach an API server; the other functions here cannot. */
static inline void local_start_as(struct local *l, int64_t hollow, bool encrypted)
{
    int out[2];
    char program[512], nodes[32];
    AUTO_STRBUF line = {0};
    AUTO_STRBUF text = {0};
    process_program(program, sizeof program, "bin/cosched-local");
    str_format(nodes, sizeof nodes, "%lld", (long long)hollow);
    if (pipe2(out, O_CLOEXEC) < 0)
        die("pipe");
    l->pid = process_start((const char *[]){program, encrypted ? "--no-insecure" : "--insecure",
                                            "--hollow", nodes, "--log-level", "warn", NULL},
                           out[1], -1);
    close(out[1]);
    for (char c; read(out[0], &c, 1) == 1 && c != '\n';)
        strbuf_addc(&line, c);
    close(out[0]);
    if (!str_starts(strbuf_str(&line), "export KUBECONFIG="))
        die("cosched-local did not start");
    str_format(l->kubeconfig, sizeof l->kubeconfig, "%s",
               strbuf_str(&line) + strlen("export KUBECONFIG="));
    process_read_file(l->kubeconfig, &text);
    l->port = (uint16_t)process_number_after(strbuf_str(&text), encrypted ? "https://127.0.0.1:"
                                                                          : "http://127.0.0.1:");
    if (l->port == 0)
        die("no port in the kubeconfig");
}

static inline void local_start(struct local *l, int64_t hollow)
{
    local_start_as(l, hollow, false);
}

/* -1: connection refused. */
static inline int local_try_dial(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (fd < 0)
        die("socket");
    if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0) {
        close(fd);
        return -1;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static inline int local_dial(uint16_t port)
{
    int fd = local_try_dial(port);
    if (fd < 0)
        die("connect");
    return fd;
}

static inline void local_send(int fd, const struct strbuf *text)
{
    for (size_t done = 0; done < text->len;) {
        ssize_t n = send(fd, text->ptr + done, text->len - done, MSG_NOSIGNAL);
        if (n < 0)
            die("send");
        done += (size_t)n;
    }
}

/* Whether the reply at the start of the buffer is complete; dies if it is not HTTP. */
static inline bool local_is_complete(struct http_parse *p, struct strbuf *in)
{
    enum http_parse_progress progress = in->len > 0 ? http_parse(p, in, 1 << 30) : HTTP_PARSE_MORE;
    if (progress == HTTP_PARSE_REFUSED)
        die(p->why);
    return progress == HTTP_PARSE_COMPLETE;
}

/* A port without a listener. */
static inline uint16_t local_free_port(void)
{
    AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) < 0 ||
        getsockname(fd, (struct sockaddr *)&a, &n) < 0)
        die("port");
    return ntohs(a.sin_port);
}
