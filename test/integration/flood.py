# SPDX-License-Identifier: Apache-2.0
"""A flood of connections to a TLS server on loopback, in a process of its own.

usage: flood.py PORT IDLE SLOW HALF LARGE

  IDLE   say nothing at all
  SLOW   complete the handshake and send a request line, then a byte of the header a second
  HALF   send a ClientHello and nothing more
  LARGE  send a request with a body of 3 MiB, but for its last byte

A connection that the server ends is opened anew, each second at most one in 35 of them all. It runs at the lowest priority: a flood comes from other machines, and must
not win over the server by taking its CPU. Prints `up` when each was open once, then once a second how many were ended so far.
"""
import contextlib
import os
import random
import resource
import select
import socket
import ssl
import sys
import time

def context():
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    c.check_hostname, c.verify_mode = False, ssl.CERT_NONE
    return c


def hello():
    """The first bytes of a handshake, as a client sends them."""
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context().wrap_bio(into, out).do_handshake()
    return out.read()


LARGE = 3 << 20


class Flood:
    def __init__(self, port):
        self.port, self.hello, self.context = port, hello(), context()
        self.epoll, self.open, self.waiting, self.ended = select.epoll(), {}, [], 0

    def connect(self, kind):
        """Whether it is open; the server may have ended it already."""
        s = None
        try:
            s = socket.create_connection(("127.0.0.1", self.port), timeout=1)
            if kind == "half":
                s.sendall(self.hello)
            elif kind == "slow":
                s = self.context.wrap_socket(s)
                s.sendall(b"POST /mutate HTTP/1.1\r\nX: ")
            elif kind == "large":
                s = self.context.wrap_socket(s)
                s.sendall(b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (LARGE, b" " * (LARGE - 1)))
        except OSError:
            if s:
                s.close()
            return False
        s.setblocking(False)
        self.open[s.fileno()] = (kind, s)
        # A half one is sent the server's part of the handshake, which it does not read.
        self.epoll.register(s.fileno(), select.EPOLLRDHUP if kind == "half" else select.EPOLLIN | select.EPOLLRDHUP)
        return True

    def fill(self, number):
        """Opens up to `number` of those that wait."""
        for _ in range(min(number, len(self.waiting))):
            kind = self.waiting.pop()
            if not self.connect(kind):
                self.ended += 1
                self.waiting.insert(0, kind)

    def drop(self, fd):
        kind, s = self.open.pop(fd)
        self.epoll.unregister(fd)
        s.close()
        self.ended += 1
        self.waiting.insert(0, kind)

    def look(self):
        for fd, event in self.epoll.poll(0):
            kind, s = self.open[fd]
            if event & (select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR):
                self.drop(fd)
            elif kind in ("slow", "large"):  # the tickets of TLS 1.3
                try:
                    if s.recv(4096) == b"":
                        self.drop(fd)
                except ssl.SSLWantReadError:
                    pass
                except OSError:
                    self.drop(fd)

    def drip(self):
        for kind, s in list(self.open.values()):
            if kind == "slow":
                with contextlib.suppress(OSError):
                    s.send(b"x")


def main():
    port, idle, slow, half, large = (int(a) for a in sys.argv[1:])
    os.nice(19)
    reopened = max(10, (idle + slow + half + large) // 35)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    flood = Flood(port)
    flood.waiting = ["idle"] * idle + ["slow"] * slow + ["half"] * half + ["large"] * large
    random.Random(1).shuffle(flood.waiting)
    flood.fill(len(flood.waiting))
    print("up", flush=True)
    while True:
        flood.look()
        flood.drip()
        for _ in range(reopened):  # evenly
            flood.fill(1)
            time.sleep(1 / reopened)
        print(flood.ended, flush=True)


if __name__ == "__main__":
    main()
