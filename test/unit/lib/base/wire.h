// SPDX-License-Identifier: Apache-2.0
/*
 * wire - a client that sends exactly the bytes it is told, for tests of servers. Loopback only; a
 * server that says nothing for WIRE_PATIENCE_S fails the test instead of hanging it.
 */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "lib/base/str.h"

enum { WIRE_PATIENCE_S = 30 };

/* A connected socket, or -1. address: "127.0.0.1" or "::1". */
static inline int wire_connect(const char *address, uint16_t port)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } at = {0};
    socklen_t len = sizeof at.v4;
    if (inet_pton(AF_INET, address, &at.v4.sin_addr) == 1) {
        at.v4.sin_family = AF_INET;
        at.v4.sin_port = htons(port);
    } else {
        inet_pton(AF_INET6, address, &at.v6.sin6_addr);
        at.v6.sin6_family = AF_INET6;
        at.v6.sin6_port = htons(port);
        len = sizeof at.v6;
    }
    int fd = socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval patience = {.tv_sec = WIRE_PATIENCE_S};
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) < 0 ||
        connect(fd, &at.any, len) < 0) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    return fd;
}

static inline bool wire_send(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t done = send(fd, bytes, n, MSG_NOSIGNAL);
        if (done <= 0)
            return false;
        bytes += done;
        n -= (size_t)done;
    }
    return true;
}

/* Reads until text holds `until`, or to the end of the stream (until NULL). false: the end came
 * before, or patience ran out. */
static inline bool wire_read(int fd, const char *until, struct strbuf *text)
{
    for (;;) {
        if (until != NULL && strstr(strbuf_str(text), until) != NULL)
            return true;
        char buf[4096];
        ssize_t n = recv(fd, buf, sizeof buf, 0);
        if (n == 0)
            return until == NULL;
        if (n < 0)
            return false;
        strbuf_add(text, buf, (size_t)n);
    }
}

/* One request, bytes as given (it should ask for "Connection: close"); everything the server
 * answers. */
static inline bool wire_ask(uint16_t port, const char *request, struct strbuf *reply)
{
    int fd = wire_connect("127.0.0.1", port);
    bool done = fd >= 0 && wire_send(fd, request, strlen(request)) && wire_read(fd, NULL, reply);
    if (fd >= 0)
        close(fd);
    return done;
}

/* What stands after the header, or "(no reply)". */
static inline const char *wire_body(const struct strbuf *reply)
{
    const char *s = strstr(strbuf_str(reply), "\r\n\r\n");
    return s == NULL ? "(no reply)" : s + 4;
}

/* The three digits of the status, 0 without a reply. */
static inline int wire_status(const struct strbuf *reply)
{
    const char *s = strbuf_str(reply);
    if (strncmp(s, "HTTP/1.1 ", 9) != 0 || reply->len < 12)
        return 0;
    return (s[9] - '0') * 100 + (s[10] - '0') * 10 + (s[11] - '0');
}
