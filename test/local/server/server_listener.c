// SPDX-License-Identifier: Apache-2.0
/*
 * server_listener - the listening socket: polled while server_accept allows it and there are fewer
 * than max_connections; otherwise connections wait in the backlog.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/listener.h"
#include "test/local/server/server_conn.h"

static void on_accept(void *arg, uint32_t events)
{
    struct server *s = arg;
    (void)events;
    for (int i = 0; i < 64 && (size_t)s->stats.open_connections < s->config.max_connections; i++) {
        int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE) { /* looked at again by on_sweep */
                loop_unwatch_fd(s->loop, s->fd);
                s->watching = false;
            }
            return;
        }
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        server_welcome(s, fd);
    }
    server_watch_listener(s);
}

int server_listen(struct server *s, bool listen, struct error *err)
{
    if (listen == (s->fd >= 0))
        return 0;
    if (!listen) {
        if (s->watching)
            loop_unwatch_fd(s->loop, s->fd);
        s->watching = false;
        close(s->fd);
        s->fd = -1;
        return 0;
    }
    s->fd = listener_open(s->address, s->port, &s->port, err);
    if (s->fd < 0)
        return -1;
    server_watch_listener(s);
    return 0;
}

void server_accept(struct server *s, bool accept)
{
    s->accepting = accept;
    server_watch_listener(s);
}

void server_watch_listener(struct server *s)
{
    bool room = (size_t)s->stats.open_connections < s->config.max_connections;
    bool wanted = s->fd >= 0 && s->accepting && room;
    if (wanted == s->watching)
        return;
    if (wanted)
        wanted = loop_watch_fd(s->loop, s->fd, EPOLLIN, on_accept, s, NULL) == 0;
    else
        loop_unwatch_fd(s->loop, s->fd);
    s->watching = wanted;
}
