// SPDX-License-Identifier: Apache-2.0
/* Opens the socket itself, since the HTTP library's error would not say that a port is in use. */
#include "lib/base/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "lib/base/cleanup.h"
#include "lib/base/str.h"

int listener_open(const char *address, uint16_t port, uint16_t *taken, struct error *err)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } at = {0};
    socklen_t len;
    if (inet_pton(AF_INET, str_or_empty(address), &at.v4.sin_addr) == 1) {
        at.v4.sin_family = AF_INET;
        at.v4.sin_port = htons(port);
        len = sizeof at.v4;
    } else if (inet_pton(AF_INET6, str_or_empty(address), &at.v6.sin6_addr) == 1) {
        at.v6.sin6_family = AF_INET6;
        at.v6.sin6_port = htons(port);
        len = sizeof at.v6;
    } else {
        return error_set(err, ERROR_INVALID, "listen on '%s': not an IPv4 or IPv6 address",
                         str_or_empty(address));
    }
    AUTO_CLOSE int fd = socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1, off = 0;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        (at.any.sa_family == AF_INET6 &&
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) < 0) ||
        bind(fd, &at.any, len) < 0 || listen(fd, SOMAXCONN) < 0 ||
        getsockname(fd, &at.any, &len) < 0)
        return error_errno(err, errno, "listen on %s port %u", address, (unsigned)port);
    *taken = ntohs(at.any.sa_family == AF_INET ? at.v4.sin_port : at.v6.sin6_port);
    return take_fd(&fd);
}
