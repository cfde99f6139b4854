// SPDX-License-Identifier: Apache-2.0
/*
 * client - a client on loopback that shares its thread with the server: its socket does not block,
 * and after each of its steps the loop has a round. What is expected is waited for by rounds, never
 * by time.
 */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "test/unit/lib/base/expect.h"

#include "lib/base/loop.h"
#include "lib/base/str.h"

enum { ROUNDS = 4000 };
#define HOST "Host: x\r\n"

struct client {
    struct loop *loop;
    int fd;
    struct strbuf in;
    bool eof, reset;
};

static inline struct client dial(struct loop *l, uint16_t port)
{
    struct client c = {.loop = l, .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;
    if (c.fd < 0 || connect(c.fd, (struct sockaddr *)&to, sizeof to) < 0)
        fail_msg("connect: %s", strerror(errno));
    setsockopt(c.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(c.fd, F_SETFL, O_NONBLOCK);
    return c;
}

static inline void hang_up(struct client *c)
{
    close(c->fd);
    strbuf_deinit(&c->in);
}

static inline void receive(struct client *c)
{
    char buf[65536];
    ssize_t n;
    while ((n = recv(c->fd, buf, sizeof buf, 0)) > 0)
        strbuf_add(&c->in, buf, (size_t)n);
    c->eof |= n == 0;
    c->reset |= n < 0 && errno != EAGAIN;
}

static inline void turn(struct client *c)
{
    loop_once(c->loop, 2);
    receive(c);
}

/* As many bytes as the sockets take, with rounds in between. */
static inline void say_n(struct client *c, const char *text, size_t n)
{
    for (int i = 0; n > 0 && i < ROUNDS && !c->reset; i++) {
        ssize_t sent = send(c->fd, text, n, MSG_NOSIGNAL);
        if (sent > 0) {
            text += sent;
            n -= (size_t)sent;
        } else if (errno != EAGAIN) {
            return;
        }
        loop_once(c->loop, 0);
        receive(c);
    }
}

static inline void say(struct client *c, const char *text)
{
    say_n(c, text, strlen(text));
}

static inline bool await(struct client *c, const char *text)
{
    for (int i = 0; i < ROUNDS; i++) {
        if (strstr(strbuf_str(&c->in), text))
            return true;
        if (c->eof || c->reset)
            break;
        turn(c);
    }
    return strstr(strbuf_str(&c->in), text) != NULL;
}

static inline bool await_end(struct client *c)
{
    for (int i = 0; i < ROUNDS && !c->eof && !c->reset; i++)
        turn(c);
    return c->eof || c->reset;
}

/* before, then part so many times, then after; free() it. */
static inline char *repeat(const char *before, const char *part, int times, const char *after)
{
    struct strbuf b = {0};
    strbuf_adds(&b, before);
    for (int i = 0; i < times; i++)
        strbuf_adds(&b, part);
    strbuf_adds(&b, after);
    return strbuf_take(&b);
}
