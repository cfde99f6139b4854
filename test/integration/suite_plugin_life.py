# SPDX-License-Identifier: Apache-2.0
"""The device plugin when what it leans on goes away: the API server, the kubelet, itself.

On simulated nodes, which run the real plugin against a twin of the kubelet; the plugin reaches the API server through a gate that a case can shut.
COSCHED_CUT_SECONDS is how long it stays shut at least, COSCHED_PLUGIN_KILLS how often kubelet and plugin go down.
"""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from harness import BUILD, Failed, case, check, check_equal, wait_until
from suite_nodes import CLAIM, MEM, T4, Embedded, Nodes, by_card, check_environment, gpu_node, memory_pod, wait_pod

ASSIGNED = "scheduler.framework.gpushare.assigned"


class Gate:
    """A way to the API server on a port of its own. Shut, it drops the connections that it has and takes no others."""

    def __init__(self, suite, host, port):
        self.target, self.open, self.pairs, self.lock = (host, port), True, [], threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()
        suite.stack.callback(self.close)

    def accept(self):
        while True:
            try:
                inner, _ = self.listener.accept()
                with self.lock:
                    if not self.open:
                        inner.close()
                        continue
                    outer = socket.create_connection(self.target)
                    self.pairs.append((inner, outer))
            except OSError:
                return
            for a, b in ((inner, outer), (outer, inner)):
                threading.Thread(target=self.carry, args=(a, b), daemon=True).start()

    @staticmethod
    def carry(a, b):
        try:
            while data := a.recv(65536):
                b.sendall(data)
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def set(self, is_open):
        with self.lock:
            self.open = is_open
            pairs, self.pairs = self.pairs, []
        for pair in pairs if not is_open else ():
            for s in pair:
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                s.close()

    def close(self):
        self.listener.close()
        self.set(False)


def gated_kubeconfig(suite, c):
    """(gate, path of a kubeconfig that goes through it)"""
    gate = Gate(suite, c.url.hostname, c.url.port)
    path = os.path.join(suite.directory, f"gated-{gate.port}.kubeconfig")
    with open(c.kubeconfig, encoding="utf-8") as f:
        text = re.sub(r"(server: *\"?https?://[^:\s]+):\d+", rf"\g<1>:{gate.port}", f.read())
    check(f":{gate.port}" in text, text)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return gate, path


def remembered(nodes, name):
    """Names of the pods in the plugin's state file."""
    with open(os.path.join(nodes.directory, name, "state", "pods.json"), encoding="utf-8") as f:
        return {p["metadata"]["name"] for p in json.load(f)["pods"]}


@case("the plugin alone is cut off from the API server: pods it saw start on the scheduler's card, others only where there is room, claims are corrected after")
def cut_off(suite):
    c, ns = suite.cluster, suite.namespace()
    gate, kubeconfig = gated_kubeconfig(suite, c)
    # The kubelet waits for 3 s before it admits what is new: time to be seen by the plugin, and to shut the gate.
    nodes = Nodes(suite, [gpu_node("away-1", "share", T4, 2, labels={"ack.node.gpu.placement": "spread"}, reorderMs=3000,
                                   pluginArgs=[f"--kubeconfig={kubeconfig}"])])
    suite.scheduler()
    nodes.offers("away-1", mem=30, count=2)
    memory_pod(c, ns, "old", 5, "away-1")
    old, = by_card([wait_pod(c, ns, "old")])
    memory_pod(c, ns, "seen", 6, "away-1")
    wait_until(lambda: {"old", "seen"} <= remembered(nodes, "away-1"), "the plugin has seen both, and remembers them", 10)
    gate.set(False)
    shut = time.monotonic()
    seen = wait_pod(c, ns, "seen")
    check_environment(nodes, seen)
    check_equal(list(by_card([seen])), [1 - old], "the card that the scheduler chose")
    # The plugin does not learn that the old pod is gone, and keeps its share of that card; the scheduler gives it away.
    c.delete_pod(ns, "old")
    wait_until(lambda: c.request("GET", f"/api/v1/namespaces/{ns}/pods/old")[0] == 404, "the old pod is gone")
    memory_pod(c, ns, "unseen", 10, "away-1")
    wait_until(lambda: by_card([c.pod(ns, "unseen")]) == {old: 10}, "the scheduler chooses the card that has become free")
    os.kill(nodes.plugin_pid("away-1"), signal.SIGKILL)  # and it forgets all but its state file
    nodes.offers("away-1", mem=30, count=2)
    unseen = wait_pod(c, ns, "unseen", seconds=40)
    env = nodes.environment(unseen, "main")
    memory_pod(c, ns, "large", 5, "away-1")
    memory_pod(c, ns, "larger", 4, "away-1")
    ends = {}
    for name in ("large", "larger"):
        ends[name] = wait_until(lambda n=name: (lambda s: s if s["phase"] in ("Running", "Failed") else None)(c.pod(ns, n)["status"]), f"{name} is decided", 40)
    for name, status in ends.items():
        if status["phase"] == "Failed":
            check(re.search(r"a pod that is not known here: no card has \d GiB free beside what others were promised", status["message"]), name, status)
    time.sleep(max(0.0, float(os.environ.get("COSCHED_CUT_SECONDS", "5")) - (time.monotonic() - shut)))  # a minimum, not a hope
    gate.set(True)

    def agree():
        for p in c.pods(ns):
            if p["status"]["phase"] != "Running":
                continue
            (card, _gib), = json.loads(p["metadata"]["annotations"][CLAIM])["0"].items()
            if (nodes.environment(p, "main")["ALIYUN_COM_GPU_MEM_IDX"], p["metadata"]["annotations"][ASSIGNED]) != (card, "true"):
                raise KeyError(p["metadata"]["name"], card, p["metadata"]["annotations"][ASSIGNED])
        return True

    wait_until(agree, "every annotation names the card of the environment, and says that it is in use", 60)
    check_equal(nodes.environment(c.pod(ns, "unseen"), "main"), env, "the environment of the unseen pod, before and after")
    used = by_card([p for p in c.pods(ns) if p["status"]["phase"] == "Running"])
    check(all(gib <= 15 for gib in used.values()), f"GiB by card: {used}")


@case("the kubelet restarts and the plugin is killed while pods start: what the node offers comes back, allocated pods are not disturbed, nothing leaks",
      needs={"local"})
def kills(suite):
    rounds = int(os.environ.get("COSCHED_PLUGIN_KILLS", "3"))
    nodes = Embedded(suite, [gpu_node("life-1", "share", T4, 2)])
    with nodes.suite.stack:
        c, ns = nodes.cluster, nodes.suite.namespace()
        nodes.suite.scheduler()
        nodes.offers("life-1", mem=30, count=2)
        memory_pod(c, ns, "stays", 10, "life-1")
        stays = check_environment(nodes, wait_pod(c, ns, "stays"))
        rejected, slowest = 0, 0.0
        for number in range(2 * rounds):
            names = [f"r{number}-{i}" for i in range(4)]
            for name in names[:2]:
                memory_pod(c, ns, name, 2, "life-1")
            killed = nodes.plugin_pid("life-1")
            if number % 2:
                nodes.fault(fault="restart-kubelet", node="life-1")
            else:
                os.kill(killed, signal.SIGKILL)
            began = time.monotonic()
            for name in names[2:]:
                memory_pod(c, ns, name, 2, "life-1")
            # The kubelet need not have told of the moment without devices: one that is over before its next report is never seen.
            wait_until(lambda: number % 2 or (nodes.plugin_pid("life-1") or killed) != killed, "another plugin runs", 30)
            wait_until(lambda: nodes.get("life-1")["status"]["allocatable"].get(MEM) == "30", "the node offers 30 GiB", 30)
            slowest = max(slowest, time.monotonic() - began)
            for name in names:
                # A pod that was admitted while nobody served is refused by the kubelet's own rule; its controller's replacement runs.
                status = wait_until(lambda n=name: (lambda s: s if s["phase"] in ("Running", "Failed") else None)(c.pod(ns, n)["status"]), f"{name} is decided")
                if status["phase"] == "Failed":
                    check(re.search(r"no healthy devices present|Unavailable|Cancelled|Canceled|registered", status["message"]), name, status)
                    rejected += 1
                    c.delete_pod(ns, name)
                    memory_pod(c, ns, name + "-again", 2, "life-1")
                    check_environment(nodes, wait_pod(c, ns, name + "-again", seconds=20))
                else:
                    check_environment(nodes, c.pod(ns, name))
            for p in c.pods(ns):
                if p["metadata"]["name"] != "stays":
                    c.delete_pod(ns, p["metadata"]["name"])
            wait_until(lambda: len(c.pods(ns)) == 1, "the round's pods are gone")
        print(f"     {rounds} kills, {rounds} restarts of the kubelet: {rejected} pods refused by the kubelet meanwhile; back within {slowest:.1f} s of a kill "
              "(which the node's supervisor answers after 0.2 to 10 s)", flush=True)
        pod = c.pod(ns, "stays")
        check_equal((pod["status"]["phase"], pod["status"]["containerStatuses"][0]["restartCount"]), ("Running", 0), "the pod that was there before")
        check_equal(check_environment(nodes, pod), stays, "its environment")
        memory_pod(c, ns, "all", 15, "life-1")
        memory_pod(c, ns, "rest", 5, "life-1")
        for name in ("all", "rest"):
            wait_pod(c, ns, name)


@case("a second plugin on the same node refuses to start, with one clear line")
def second(suite):
    c = suite.cluster
    nodes = Nodes(suite, [gpu_node("two-1", "share", T4, 1)])
    nodes.offers("two-1", mem=15, count=1)
    kubelet = os.path.join(nodes.directory, "two-1", "kubelet")
    done = subprocess.run([os.path.join(BUILD, "bin/cosched-device-plugin"), f"--kubeconfig={c.kubeconfig}", "--node-name=two-1", "--backend=sim",
                           f"--sim-file={nodes.directory}/two-1/cards.json", f"--kubelet-dir={kubelet}", f"--state-dir={suite.directory}/second",
                           "--http-address=127.0.0.1", "--http-port=0"], capture_output=True, text=True, timeout=30, check=False)
    check_equal(done.returncode, 1, done.stderr)
    check("another cosched-device-plugin serves this node" in done.stderr + done.stdout, done.stderr)
    try:
        wait_until(lambda: nodes.get("two-1")["status"]["allocatable"][MEM] != "15", "the first is disturbed", 2)
    except Failed:
        return
    raise Failed("the second plugin disturbed the first")


@case("modes that promise isolation offer nothing until their engine is there, say which choices there are, and containers get what it needs")
def engines(suite):
    c, ns = suite.cluster, suite.namespace()
    place = tempfile.mkdtemp(prefix="ce", dir="/tmp")
    suite.stack.callback(shutil.rmtree, place)
    module, pipe, script = (os.path.join(place, name) for name in ("cgpu_km", "mps", "mps-control"))
    with open(script, "w", encoding="ascii") as f:
        # Like the daemon it stays in the foreground and reads what clients write.
        f.write('#!/bin/sh\ncd "$CUDA_MPS_PIPE_DIRECTORY" || exit 1\n[ -p control ] || /usr/bin/mkfifo control\nexec /bin/sleep 1000 <> control\n')
    os.chmod(script, 0o700)
    args = [f"--cgpu-dir={module}", f"--mps-pipe-dir={pipe}", f"--mps-log-dir={place}/log", f"--mps-control={script}"]
    nodes = Nodes(suite, [{**gpu_node("engine-1", "cgpu", T4, 2), "isolation": "auto", "pluginArgs": args},
                          {**gpu_node("engine-2", "mps", T4, 1), "isolation": "auto", "pluginArgs": args}])
    suite.scheduler()
    event = lambda node: [e["message"] for e in c.get("/api/v1/namespaces/default/events")["items"]
                          if e["involvedObject"].get("name") == node and e["reason"] == "IsolationMissing"]
    wait_until(lambda: any("load the cGPU kernel module" in m and "mode share" in m and "--isolation=none" in m for m in event("engine-1")),
               "an Event names the choices")
    nodes.offers("engine-1")
    os.mkdir(module)
    nodes.offers("engine-1", mem=30, count=2)
    nodes.offers("engine-2", mem=15, count=1)  # its daemon is started by the plugin
    isolation = lambda node: json.loads(nodes.get(node)["metadata"]["annotations"]["cosched.io/gpu-inventory"])["isolation"]
    wait_until(lambda: (isolation("engine-1"), isolation("engine-2")) == ("cgpu", "mps"), "what is in force is published", 40)
    memory_pod(c, ns, "one", 3, "engine-1")
    env = check_environment(nodes, wait_pod(c, ns, "one"))
    check_equal(env.get("ALIYUN_COM_GPU_VISIBLE_DEVICES"), env["ALIYUN_COM_GPU_MEM_IDX"], "the module's variable")
    memory_pod(c, ns, "two", 3, "engine-2")
    env = check_environment(nodes, wait_pod(c, ns, "two"))
    check_equal({k: v for k, v in env.items() if k.startswith("CUDA_")},
                {"CUDA_MPS_PIPE_DIRECTORY": pipe, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=3G", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "20"}, "MPS")
    os.rmdir(module)
    nodes.offers("engine-1")
    check_equal(c.pod(ns, "one")["status"]["phase"], "Running", "the pod that has its card already")
