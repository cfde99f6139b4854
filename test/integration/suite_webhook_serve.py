# SPDX-License-Identifier: Apache-2.0
"""The webhook's server under peers that are slow, mad or many, and its life under load: restarts and rotations while pods are created.

COSCHED_SLOW: slow connections (80; the soak has 1,000). COSCHED_FLOOD: connections that flood the server (140; the soak has 7,000). COSCHED_CREATIONS: pods created during restarts and rotations (100 local, 500 real; the soak has 20,000).
"""
import contextlib
import http.client
import json
import os
import selectors
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

from harness import BUILD, ROOT, Program, case, check, check_equal, free_port, http_get, wait_until
from suite_webhook import HOOKS, limited, start_webhook

SLOW = int(os.environ.get("COSCHED_SLOW", "80"))
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def review(pod, version="v1"):
    return json.dumps({"kind": "AdmissionReview", "apiVersion": f"admission.k8s.io/{version}", "request": {
        "uid": "u", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "namespace": "default", "operation": "CREATE", "object": pod}})


def insecure():
    """Without the system's authorities, whose files take longer to read than a handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def ask(port, body=None, path="/mutate?timeout=5s", kind="application/json", conn=None):
    """One review on a connection of its own, or on conn: (status, body)."""
    conn, mine = conn or http.client.HTTPSConnection("127.0.0.1", port, context=insecure(), timeout=10), conn is None
    try:
        conn.request("POST", path, body or review(limited("aliyun.com/gpu-mem", 3)), {"Content-Type": kind})
        reply = conn.getresponse()
        return reply.status, reply.read().decode()
    finally:
        if mine:
            conn.close()


def memory_kb(p):
    with open(f"/proc/{p.process.pid}/status", encoding="ascii") as f:
        return int(next(line for line in f if line.startswith("VmRSS")).split()[1])


class Drip:
    """Connections that send a byte a second: half of them in the middle of a TLS handshake, half in the middle of a request."""

    def __init__(self, port, number):
        self.socks, self.end = [], threading.Event()
        for i in range(number):
            raw = socket.create_connection(("127.0.0.1", port), timeout=10)
            self.socks.append(raw if i % 2 else insecure().wrap_socket(raw))
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        hello, request = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 4096, b"POST /mutate HTTP/1.1\r\nX: " + b"x" * 4096
        at = 0
        while not self.end.wait(1.0):
            for i, s in enumerate(self.socks):
                with contextlib.suppress(OSError):
                    s.send((hello if i % 2 else request)[at:at + 1])
            at += 1

    def close(self):
        self.end.set()
        self.thread.join()
        for s in self.socks:
            with contextlib.suppress(OSError):
                s.close()


@case("many connections that send a byte a second do not keep a normal request waiting")
def slow_peers(suite):
    p, _ns = start_webhook(suite)
    drip = Drip(p.https, SLOW)
    suite.stack.callback(drip.close)
    times = []
    for _ in range(2):
        kept = http.client.HTTPSConnection("127.0.0.1", p.https, context=insecure(), timeout=10)
        for i in range(60):
            began = time.monotonic()
            check_equal(ask(p.https, conn=kept)[0], 200, "a request on a connection that is kept")
            times.append(time.monotonic() - began)
            if i % 20 == 0:
                check_equal(ask(p.https)[0], 200, "a request on a new connection")
        kept.close()
    times.sort()
    print(f"     {SLOW} slow connections: p50 {times[len(times) // 2] * 1000:.1f} ms, p99 {times[len(times) * 99 // 100] * 1000:.1f} ms", flush=True)
    if SLOW >= 1000:
        check(times[len(times) * 9 // 10] <= 0.050, f"one in ten took longer than {times[len(times) * 9 // 10] * 1000:.0f} ms")
    p.stop()


def flood(suite, port, number):
    """Five in seven are idle, one is slow, one stops in the handshake, and 14 more withhold the end of a large body; returns when all were open once."""
    p = subprocess.Popen([sys.executable, os.path.join(ROOT, "test/integration/flood.py"), str(port), str(number * 5 // 7), str(number // 7), str(number // 7), "14"],
                         stdout=subprocess.PIPE, text=True)
    suite.stack.callback(lambda: (p.kill(), p.wait(), p.stdout.close()))
    check_equal(p.stdout.readline().strip(), "up", "the flood")
    return p


def review_times(port, number):
    """As an API server asks: on connections that it keeps, and one in ten on a new one; one in twenty is large. Returns the sorted times, and how many had no answer."""
    kept, times, lost = [http.client.HTTPSConnection("127.0.0.1", port, context=insecure(), timeout=5) for _ in range(4)], [], 0
    small = review(limited("aliyun.com/gpu-mem", 3))
    large = small[:-1] + " " * (100 << 10) + "}"
    for i in range(number):
        if lost == 3:  # each took a while
            break
        began = time.monotonic()
        try:
            lost += ask(port, large if i % 20 == 5 else small, conn=None if i % 10 == 0 else kept[i % 4])[0] != 200
        except (OSError, http.client.HTTPException):
            lost += 1
            kept[i % 4].close()
        times.append(time.monotonic() - began)
    for conn in kept:
        conn.close()
    return sorted(times), lost


@case("a flood of idle, slow and half-open connections and of withheld bodies loses no review")
def flooded(suite):
    number = int(os.environ.get("COSCHED_FLOOD", "140"))
    soak = number >= 7000
    p, _ns = start_webhook(suite, *([] if soak else ["--max-connections=64"]))
    # In turns, since the machine may be busy with other things now and then.
    rounds, reviews = (5, 1000) if soak else (1, 200)
    p99, lost = {"quiet": [], "flood": []}, {"quiet": 0, "flood": 0}
    for _ in range(rounds):
        for what in ("quiet", "flood"):
            flooding = flood(suite, p.https, number) if what == "flood" else None
            times, missing = review_times(p.https, reviews)
            p99[what].append(times[len(times) * 99 // 100] * 1000)
            lost[what] += missing
            if flooding:
                flooding.kill()
                flooding.wait()
    quiet, during = (sorted(p99[what])[rounds // 2] for what in ("quiet", "flood"))
    print(f"RESULT name=webhook_flood_lost value={lost['flood']} unit=reviews baseline={lost['quiet']} connections={number} reviews={rounds * reviews}", flush=True)
    print(f"RESULT name=webhook_flood_p99 value={during:.2f} unit=ms baseline={quiet:.2f} ratio={during / quiet:.2f} rounds={rounds} memory={memory_kb(p) // 1024}MiB", flush=True)
    check_equal(lost, {"quiet": 0, "flood": 0}, f"reviews without an answer, and during a flood of {number} connections")
    if soak:
        check(during <= 2 * quiet, f"p99 {during:.1f} ms during the flood, {quiet:.1f} ms in between")
    p.stop()


# Bodies of the webhook's largest size, and what is left of 32 MiB in smaller ones: 14 connections used to be enough to have every review over 16 KiB answered 503.
WITHHELD = [3 << 20] * 10 + [1 << 20, 600 << 10, 300 << 10, 120 << 10]


def withhold(suite, port, sizes, address, prove=False):
    """Requests from that address whose last byte does not come; returns their sockets."""
    socks = []
    for size in sizes:
        s = insecure().wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=10, source_address=(address, 0)))
        suite.stack.callback(s.close)
        socks.append(s)
        if prove:
            body = review(limited("aliyun.com/gpu-mem", 3)).encode()
            s.sendall(b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            check(s.recv(65536).startswith(b"HTTP/1.1 200"), "a review of its own")
        with contextlib.suppress(OSError):  # the server ends it when others need the room
            s.sendall(b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % size + b" " * (size - 1))
    return socks


@case("withheld bodies: peers that send large reviews without their last byte, from one address or from many, leave room for every other review")
def withheld(suite):
    p, _ns = start_webhook(suite)
    good = review(limited("aliyun.com/gpu-mem", 3))
    bodies = [good[:-1] + " " * (size - len(good)) + "}" for size in (20 << 10, 1 << 20, 3 << 20)]
    kept = http.client.HTTPSConnection("127.0.0.1", p.https, context=insecure(), timeout=10)
    suite.stack.callback(kept.close)
    check_equal(ask(p.https, conn=kept)[0], 200, "a review before")
    lost = []
    for what, addresses, prove in (("one address", ["127.0.0.66"], False), ("one address with reviews of its own", ["127.0.0.67"], True),
                                   ("fourteen addresses", [f"127.0.1.{i}" for i in range(1, 15)], False)):
        socks = [s for address in addresses for s in withhold(suite, p.https, WITHHELD[:1] * 3 if len(addresses) > 1 else WITHHELD, address, prove)]
        for body in bodies:
            for conn in (kept, None):
                status, reply = ask(p.https, body, conn=conn)
                if status != 200:
                    lost.append(f"{what}, {len(body) >> 10} KiB{', kept' if conn else ''}: {status} {reply[:100]}")
        for s in socks:
            s.close()
    print(f"     memory after {memory_kb(p) >> 10} MiB", flush=True)
    check(not lost, "; ".join(lost))
    if "asan" not in os.path.basename(BUILD):
        check(memory_kb(p) < 150 << 10, f"it takes {memory_kb(p) >> 10} MiB")
    p.stop()


def make_client_certificate(directory, name):
    """A CA and a certificate of it for a client; returns the files."""
    path = lambda end: os.path.join(directory, f"{name}.{end}")
    subject = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    for command in (["req", "-x509", *subject, "-subj", f"/CN={name} CA", "-days", "1", "-keyout", path("ca.key"), "-out", path("ca.crt")],
                    ["req", "-x509", *subject, "-subj", f"/CN={name}", "-days", "1", "-CA", path("ca.crt"), "-CAkey", path("ca.key"), "-keyout", path("key"), "-out", path("crt"),
                     "-addext", "basicConstraints=critical,CA:FALSE", "-addext", "extendedKeyUsage=clientAuth"]):
        subprocess.run(["openssl", *command], check=True, capture_output=True)
    return path("ca.crt"), path("crt"), path("key")


@case("with --client-ca-file only a client with a certificate of that CA is answered")
def client_ca(suite):
    ca, *good = make_client_certificate(suite.directory, f"good-{suite.number}")
    _other, *foreign = make_client_certificate(suite.directory, f"foreign-{suite.number}")
    p, _ns = start_webhook(suite, f"--client-ca-file={ca}", failure_policy="Ignore")

    def answer(files):
        context = insecure()
        if files:
            context.load_cert_chain(*files)
        conn = http.client.HTTPSConnection("127.0.0.1", p.https, context=context, timeout=10)
        try:
            return ask(p.https, conn=conn)[0]
        except OSError as e:
            return type(e).__name__
        finally:
            conn.close()

    check_equal(answer(good), 200, "a client of the CA")
    for what, files in (("no certificate", None), ("another CA's", foreign)):
        check(answer(files) != 200, f"{what} is answered")
    check_equal(answer(good), 200, "a client of the CA, again")
    p.stop()


def raw_exchange(port, data, tls):
    with contextlib.suppress(OSError):
        with socket.create_connection(("127.0.0.1", port), timeout=0.5) as raw:
            s = insecure().wrap_socket(raw) if tls else raw
            s.sendall(data)
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_WR)
            return s.recv(65536)
    return b""


@case("oversized, truncated and foreign bytes get the right answer, and leave nothing behind")
def garbage(suite):
    p, _ns = start_webhook(suite)
    good = review(limited("aliyun.com/gpu-mem", 3))
    rows = [
        ("a review of 3 MiB and a byte", {"body": good[:-1] + " " * (3 * 1024 * 1024 + 1 - len(good)) + "}"}, 413, '"message":"the body is larger than 3145728 bytes"'),
        ("a review of 3 MiB", {"body": good[:-1] + " " * (3 * 1024 * 1024 - len(good)) + "}"}, 200, '"allowed":true'),
        ("half a review", {"body": good[:len(good) // 2]}, 400, "body: not JSON"),
        ("no JSON", {"body": "hello"}, 400, "body: not JSON"),
        ("another content type", {"kind": "application/yaml"}, 415, "application/json"),
        ("another version", {"body": review(limited("aliyun.com/gpu-mem", 3), "v1beta1")}, 400, "only admission.k8s.io/v1 is spoken here"),
        ("another path", {"path": "/"}, 404, "only /mutate and /validate"),
        ("a review", {}, 200, '"allowed":true'),
    ]

    def everything():
        for what, how, status, words in rows:
            got, text = ask(p.https, **how)
            check(got == status and words in text, f"{what}: {got} {text[:300]}")
        for data, tls in ((PREFACE, True), (PREFACE, False), (b"\x16\x03\x01\xff\xff" + os.urandom(2000), False), (os.urandom(5000), False), (os.urandom(5000), True),
                          (b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", True),
                          (b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", True), (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20000, True)):
            answer = raw_exchange(p.https, data, tls)
            check(b"200 OK" not in answer, f"{data[:40]!r}: {answer[:200]!r}")
        check_equal(ask(p.https)[0], 200, "a review after all that")

    everything()
    before = memory_kb(p)
    everything()
    # A sanitizer keeps what was freed for a while: its quarantine is not the program's growth.
    if "asan" not in os.path.basename(BUILD):
        check(memory_kb(p) <= before + 2048, f"grew from {before} kB to {memory_kb(p)} kB")
    p.stop()


class Ring:
    """The Service of a real installation, in the test's hands: a port that leads to whichever replica is ready, as endpoints do."""

    def __init__(self, backends):
        self.backends = backends
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.ready = set()
        self.end = False
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        turn = 0
        while not self.end:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            turn += 1
            ready = sorted(self.ready)
            for port in ready[turn % len(ready):] + ready[:turn % len(ready)] if ready else []:
                with contextlib.suppress(OSError):
                    server = socket.create_connection(("127.0.0.1", port), timeout=2)
                    server.settimeout(None)
                    threading.Thread(target=self.copy, args=(client, server), daemon=True).start()
                    break
            else:
                client.close()

    @staticmethod
    def copy(a, b):
        sel = selectors.DefaultSelector()
        sel.register(a, selectors.EVENT_READ, b)
        sel.register(b, selectors.EVENT_READ, a)
        with contextlib.suppress(OSError), a, b:
            while True:
                for key, _ in sel.select():
                    data = key.fileobj.recv(65536)
                    if not data:
                        return
                    key.data.sendall(data)

    def close(self):
        self.end = True
        self.listener.close()


@case("pods are created without a failure while both replicas restart in turn, certificates rotate and their Secret is deleted", needs={"long"})
def life(suite):
    c = suite.cluster
    number = int(os.environ.get("COSCHED_CREATIONS", "500" if c.target == "real" else "100"))
    life_s = 6 if number < 5000 else 36  # of a certificate; an hour's run may be on a machine that is held up for seconds
    ns = suite.namespace({"hook": "yes"})
    name = f"hook-{ns}"
    ring = Ring([])
    suite.stack.callback(ring.close)
    c.do("POST", HOOKS, {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": name},
        "webhooks": [{"name": "pods.cosched.io", "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 5, "failurePolicy": "Fail",
                      "reinvocationPolicy": "IfNeeded", "clientConfig": {"url": f"https://127.0.0.1:{ring.port}/mutate"},
                      "namespaceSelector": {"matchLabels": {"hook": "yes"}},
                      "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]}]})
    suite.stack.callback(c.do, "DELETE", f"{HOOKS}/{name}", None, "application/json", (200, 404))
    suite.stack.callback(c.do, "DELETE", f"/api/v1/namespaces/kube-public/secrets/cert-{ns}", None, "application/json", (200, 404))

    def replica():
        port, probes = free_port(), free_port()
        p = Program(suite.directory, "cosched-webhook", [
            f"--kubeconfig={c.kubeconfig}", "--address=127.0.0.1", f"--port={port}", "--san=127.0.0.1", "--http-address=127.0.0.1", f"--http-port={probes}",
            "--namespace=kube-public", f"--secret-name=cert-{ns}", f"--webhook-config={name}", "--cert-check-interval=200ms", f"--cert-lifetime={life_s}s", f"--ca-settle={life_s // 6}s"])
        suite.stack.callback(suite.end_program, p)
        p.port, p.probes = port, probes
        wait_until(lambda: http_get(probes, "/readyz")[0] == 200, "the replica is ready")
        ring.ready.add(port)
        return p

    replicas = [replica(), replica()]
    wait_until(lambda: c.request("POST", f"/api/v1/namespaces/{ns}/pods?dryRun=All", limited("aliyun.com/gpu-mem", 3))[0] == 201, "the API server trusts our CA")
    expiry = lambda p: next(line for line in http_get(p.probes, "/metrics")[1].splitlines() if line.startswith("cosched_webhook_certificate_expiry"))
    seen, made, restarts, deleted = {expiry(replicas[1])}, 0, 0, 0
    # Two restarts of each replica and three rotations at least, spread over the creations.
    while made < number or len(seen) < 4 or restarts < 4 or deleted < 1:
        body = limited("aliyun.com/gpu-mem", 3)
        body["metadata"] = {"generateName": "p-"}
        status, reply = c.request("POST", f"/api/v1/namespaces/{ns}/pods", body)
        check_equal(status, 201, f"creation {made}: {reply.get('message')}")
        check_equal(reply["spec"]["schedulerName"], "ack-co-scheduler", f"creation {made}")
        c.request("DELETE", f"/api/v1/namespaces/{ns}/pods/{reply['metadata']['name']}?gracePeriodSeconds=0")
        made += 1
        if made % max(1, number // 5) == 0:
            # As a rolling update does it: the new one is ready first; the old one leaves the Service, is given time, and is told to end.
            old = replicas.pop(0)
            replicas.append(replica())
            ring.ready.discard(old.port)
            old.process.send_signal(signal.SIGTERM)
            old.may_end = True
            restarts += 1
        if made % 10 == 0:
            now = expiry(replicas[1])
            # As people do who want new certificates, after a third of the rotations: where the certificates that both serve last long enough for the next CA to
            # settle, as they do in an installation. (Either may be the one that puts back what it serves.)
            ends = min(int(expiry(p).split()[-1]) for p in replicas)
            if deleted <= len(seen) // 3 and ends - time.time() > life_s * 2 / 3:
                deleted += c.request("DELETE", f"/api/v1/namespaces/kube-public/secrets/cert-{ns}")[0] == 200
            seen.add(now)
        check(made < 50 * number, f"after {made} creations: {len(seen) - 1} rotations, {restarts} restarts")
    print(f"     {made} creations, {restarts} restarts, {len(seen) - 1} rotations or more, the Secret deleted {deleted} times: none failed", flush=True)
    for p in replicas:
        p.stop()
