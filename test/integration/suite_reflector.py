# SPDX-License-Identifier: Apache-2.0
"""The reflector against a real API server that dies, hangs, forgets and is cut off: its copy equals the truth after every fault."""
import os
import random
import re
import socket
import threading
import time

from harness import Failed, case, check, wait_until

FAULTS = ("kill", "hang", "restart", "compact", "cut")


class Proxy:
    """Passes bytes to the API server and can cut every connection in the middle of what it is sending."""

    def __init__(self, host, port):
        self.target = (host, port)
        self.pairs = set()
        self.cut_after = None  # bytes from the server to let through before the next cut
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(self.target, timeout=10)
            except OSError:
                if self.listener.fileno() < 0:
                    return
                continue
            server.settimeout(None)
            self.pairs.add((client, server))
            for source, sink, from_server in ((client, server, False), (server, client, True)):
                threading.Thread(target=self.pump, args=(source, sink, from_server), daemon=True).start()

    def pump(self, source, sink, from_server):
        try:
            while data := source.recv(65536):
                if from_server and self.cut_after is not None:
                    self.cut_after -= len(data)
                    if self.cut_after <= 0:
                        sink.sendall(data[:max(1, len(data) // 2)])
                        self.cut_after = None
                        self.cut()
                        return
                sink.sendall(data)
        except OSError:
            pass
        self.close(source, sink)

    @staticmethod
    def close(*sockets):
        for s in sockets:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()

    def cut(self):
        for pair in list(self.pairs):
            self.pairs.discard(pair)
            self.close(*pair)

    def stop(self):
        self.close(self.listener)
        self.cut()


def answer(program, command, pattern, seconds=30):
    """The line that reflector_check answers with."""
    seen = len(program.output())
    program.process.stdin.write(command.encode() + b"\n")
    program.process.stdin.flush()
    return wait_until(lambda: program.alive() and re.search(rf"^{pattern}.*$", program.output()[seen:], re.M), f"an answer to '{command}'", seconds)[0]


def compare(program, fault):
    line = answer(program, "compare 60000", "(equal|different)", 90)
    if not line.startswith("equal"):
        raise Failed(f"after '{fault}': {line}")


def stats(program):
    return {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", answer(program, "stats", "stats"))}


def inflict(c, proxy, dice, fault):
    if fault == "kill":
        c.k8s("kill", "apiserver")
        c.k8s("start", "apiserver")
    elif fault == "restart":
        c.k8s("stop", "apiserver")
        c.k8s("start", "apiserver")
    elif fault == "hang":
        c.k8s("pause", "apiserver")
        time.sleep(4)  # longer than --watch-idle: the hang is the fault
        c.k8s("resume", "apiserver")
    elif fault == "compact":
        c.k8s("compact")
    else:
        proxy.cut_after = dice.randrange(1, 8000)


@case("faults in a row (killed, hanging, restarted API server, etcd compaction, connections cut in a line): each ends with exactly the API server's state",
      needs={"real", "outage"})
def survives(suite):
    count = int(os.environ.get("COSCHED_FAULTS", "5"))
    seed = int(os.environ.get("COSCHED_SEED", str(int(time.time()))))
    print(f"     seed {seed}, {count} faults", flush=True)
    dice = random.Random(seed)
    c, ns = suite.cluster, suite.namespace()
    proxy = Proxy(c.url.hostname, c.url.port)
    suite.stack.callback(proxy.stop)
    with open(c.kubeconfig, encoding="utf-8") as f:
        text = f.read()
    path = os.path.join(suite.directory, "proxy.kubeconfig")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as f:
        f.write(text.replace(f":{c.url.port}", f":{proxy.port}"))
    p = suite.program("reflector_check", f"--kubeconfig={path}", "--watch-idle=3s", "--request-timeout=5s")
    names = []

    def churn(n):
        for _ in range(n):
            if names and dice.random() < 0.4:
                c.delete_pod(ns, names.pop(dice.randrange(len(names))))
            elif names and dice.random() < 0.4:
                c.do("PATCH", f"/api/v1/namespaces/{ns}/pods/{dice.choice(names)}", {"metadata": {"labels": {"n": str(dice.random())}}},
                     "application/merge-patch+json")
            else:
                names.append(f"p{dice.randrange(10**9)}")
                c.create_pod(ns, names[-1], scheduler="nobody")

    churn(10)
    compare(p, "start")
    faults = [FAULTS[i % len(FAULTS)] for i in range(count)]
    dice.shuffle(faults)
    before = stats(p)
    for fault in faults:
        churn(3)
        inflict(c, proxy, dice, fault)
        wait_until(lambda: c.request("GET", "/readyz")[0] == 200, "the API server is back", 60)
        churn(5)
        compare(p, fault)
    after = stats(p)
    print(f"     {after}", flush=True)
    check(after["gone"] > before["gone"] or "compact" not in faults, "a compaction was not noticed as 410")
    check(after["failures"] > before["failures"], "no fault was noticed at all")
    p.process.stdin.close()
    check(p.process.wait(timeout=10) == 0, f"ended with {p.process.returncode}: {p.output()[-3000:]}")
    p.check_clean()
