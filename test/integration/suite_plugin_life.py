# SPDX-License-Identifier: Apache-2.0
"""The device plugin when what it leans on goes away: the API server, the kubelet, itself.

On simulated nodes, which run the real plugin against a twin of the kubelet; the plugin reaches the API server through a gate that a case can shut. The last ones are on
the real kubelet. COSCHED_CUT_SECONDS is how long the gate stays shut at least, COSCHED_PLUGIN_KILLS how often kubelet and plugin go down each; when it is set, the
times that were promised are checked as well, and not only printed: elsewhere the machine may be too busy for them.
"""
import base64
import collections
import datetime
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from harness import BUILD, Failed, case, check, check_equal, wait_until
from suite_device_plugin import TOLERATE_ALL, advertised, environment, gpu_pod, set_mode, start_plugin
from suite_device_plugin import wait_running as wait_container
from suite_hardware import Cards, metric
from suite_nodes import CLAIM, EXCLUSIVE, GROUP, MEM, PERCENT, T4, WHOLE, Embedded, Nodes, by_card, check_environment, gpu_node, memory_pod, wait_pod

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
    with open(c.kubeconfig_of("device-plugin"), encoding="utf-8") as f:
        text = re.sub(r"(server\"?: *\"?https?://[^:\s]+):\d+", rf"\g<1>:{gate.port}", f.read())
    check(f":{gate.port}" in text, text)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return gate, path


def remembered(nodes, name):
    """Names of the pods in the plugin's state file."""
    with open(os.path.join(nodes.directory, name, "state", "pods.json"), encoding="utf-8") as f:
        return {p["metadata"]["name"] for p in json.load(f)["pods"]}


def cards_of(pod):
    return set(json.loads(pod["metadata"].get("annotations", {}).get(CLAIM) or '{"0":{}}')["0"])


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
    version = c.get(f"/api/v1/namespaces/{ns}/pods")["metadata"]["resourceVersion"]
    before = {p["metadata"]["name"]: cards_of(p) for p in c.pods(ns)}
    gate.set(True)

    def agree():
        for p in c.pods(ns):
            if p["status"]["phase"] != "Running":
                continue
            cards = list(json.loads(p["metadata"]["annotations"][CLAIM])["0"])
            if ([nodes.environment(p, "main")["ALIYUN_COM_GPU_MEM_IDX"]], p["metadata"]["annotations"][ASSIGNED]) != (cards, "true"):
                raise KeyError(p["metadata"]["name"], cards, p["metadata"]["annotations"][ASSIGNED])
        return True

    wait_until(agree, "every annotation names the card of the environment, and says that it is in use", 60)
    moved = 0
    for p in c.watch(f"/api/v1/namespaces/{ns}/pods", version):
        name, now = p["metadata"]["name"], cards_of(p)
        was = before.get(name, set())
        check(was <= now or now <= was, f"{name} goes from cards {was} to {now} in one step: another pod may still be announced where it leaves")
        moved += was != now
        before[name] = now
    print(f"     {moved} steps of corrections", flush=True)
    check_equal(nodes.environment(c.pod(ns, "unseen"), "main"), env, "the environment of the unseen pod, before and after")
    used = by_card([p for p in c.pods(ns) if p["status"]["phase"] == "Running"])
    check(all(gib <= 15 for gib in used.values()), f"GiB by card: {used}")


@case("the kubelet restarts and the plugin is killed while pods start: what the node offers comes back, allocated pods are not disturbed, nothing leaks",
      needs={"local", "long"})
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


def engine_place(suite):
    """(directory of the kernel module, not made yet; directory of the MPS daemon; options that say so)"""
    place = tempfile.mkdtemp(prefix="ce", dir="/tmp")
    suite.stack.callback(shutil.rmtree, place)
    module, pipe, script = (os.path.join(place, name) for name in ("cgpu_km", "mps", "mps-control"))
    with open(script, "w", encoding="ascii") as f:
        # Like the daemon it stays in the foreground and reads what clients write.
        f.write('#!/bin/sh\ncd "$CUDA_MPS_PIPE_DIRECTORY" || exit 1\n[ -p control ] || /usr/bin/mkfifo control\nexec /bin/sleep 1000 <> control\n')
    os.chmod(script, 0o700)
    return module, pipe, [f"--cgpu-dir={module}", f"--mps-pipe-dir={pipe}", f"--mps-log-dir={place}/log", f"--mps-shm-dir={place}/shm", f"--mps-control={script}"]


@case("modes that promise isolation offer nothing until their engine is there, say which choices there are, and containers get what it needs")
def engines(suite):
    c, ns = suite.cluster, suite.namespace()
    module, pipe, args = engine_place(suite)
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
    check_equal(nodes.devices(c.pod(ns, "two"), "main"), [f"mount {pipe} {pipe} rw", f"mount {os.path.dirname(pipe)}/shm /dev/shm rw"], "its mounts")
    os.rmdir(module)
    nodes.offers("engine-1")
    check_equal(c.pod(ns, "one")["status"]["phase"], "Running", "the pod that has its card already")


@case("the runtime learns of the cards as --device-list says: by CDI names with a spec that has them, by device files, by the environment alone")
def device_list(suite):
    c, ns = suite.cluster, suite.namespace()
    place = tempfile.mkdtemp(prefix="cl", dir="/tmp")
    suite.stack.callback(shutil.rmtree, place)
    os.mkdir(f"{place}/auto")
    how = {"cdi": "cdi", "auto": "auto", "missing": "auto", "files": "device-specs", "env": "envvar", "nvidia": "cdi"}
    nodes = Nodes(suite, [gpu_node(f"list-{name}", "share", T4, 2, pluginArgs=[f"--device-list={value}", f"--cdi-dir={place}/{name}",
                                                                                f"--cdi-spec={'nvidia' if name == 'nvidia' else 'own'}"])
                          for name, value in how.items()])
    suite.scheduler()
    for name in how:
        nodes.offers(f"list-{name}", mem=30, count=2)
        memory_pod(c, ns, name, 3, f"list-{name}")
    common = [f"device {path} {path} rw" for path in ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")]
    for name in how:
        pod = wait_pod(c, ns, name)
        env = check_environment(nodes, pod)
        index, uuid = env["ALIYUN_COM_GPU_MEM_IDX"], env["NVIDIA_VISIBLE_DEVICES"]
        expected = {"cdi": [f"cdi cosched.io/gpu={uuid}"], "auto": [f"cdi cosched.io/gpu={uuid}"],
                    "nvidia": [f"cdi nvidia.com/gpu={uuid}"],
                    "files": [f"device /dev/nvidia{index} /dev/nvidia{index} rw", *common]}
        check_equal(nodes.devices(pod, "main"), expected.get(name, []), f"what the container of {name} gets beside its environment")
        if name not in ("cdi", "auto"):
            check(not os.path.exists(f"{place}/{name}"), f"{name}: a CDI spec that nobody asked for")
            continue
        with open(f"{place}/{name}/cosched.io-gpu.json", encoding="utf-8") as f:
            spec = json.load(f)
        check_equal((spec["kind"], {d["name"] for d in spec["devices"]}), ("cosched.io/gpu", set(nodes.uuids(f"list-{name}").values())), "the spec's cards")
        check_equal([d["containerEdits"]["deviceNodes"] for d in spec["devices"] if d["name"] == uuid], [[{"path": f"/dev/nvidia{index}"}]], "the card's files")


# ---- the real kubelet ----

BACK_S, REPLACED_S = 5.0, 10.0  # promised: the node is right again, a refused pod's replacement runs
AWAY, STALE = "the plugin was not connected", "the kubelet still counted pods that were gone"
# Why the kubelet refuses a pod, by its own rules. What is not here is our fault. Pods that are gone count only for a kubelet that has just begun: until it has seen all
# of its pods it believes its checkpoint, so that ids are missing, in all or on the card that the scheduler chose.
RULES = ((AWAY, r"no healthy devices present|cannot allocate unhealthy devices|code = Unavailable|code = Canceled|error reading from server"
          r"|connection (refused|closed|reset)|unregistered resource|Node didn't have enough resource: aliyun.com/gpu-mem"),
         (STALE, r"requested number of devices unavailable|the kubelet has \d+ ids of aliyun.com/gpu-mem too few there"))


class Burst:
    """A ReplicaSet, and what becomes of its pods: when each was first seen refused, and how often all of them run."""

    def __init__(self, c, ns, name, replicas, gib):
        self.c, self.ns, self.name, self.replicas, self.refused, self.ran = c, ns, name, replicas, {}, None
        container = {"name": "main", "image": "busybox:test", "imagePullPolicy": "Never", "command": ["sh", "-c", "env; sleep 3600"],
                     "resources": {"limits": {MEM: str(gib)}}}
        spec = {"containers": [container], "hostNetwork": True, "terminationGracePeriodSeconds": 0, "tolerations": TOLERATE_ALL,
                "nodeSelector": {"kubernetes.io/hostname": c.env["K8S_NODE"]}, "schedulerName": "ack-co-scheduler"}
        c.do("POST", f"/apis/apps/v1/namespaces/{ns}/replicasets",
             {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name},
              "spec": {"replicas": replicas, "selector": {"matchLabels": {"burst": name}},
                       "template": {"metadata": {"labels": {"burst": name}}, "spec": spec}}})

    def pods(self):
        return self.c.get(f"/api/v1/namespaces/{self.ns}/pods?labelSelector=burst%3D{self.name}")["items"]

    def look(self):
        """The pods, when all run."""
        pods, now = self.pods(), time.monotonic()
        for p in pods:
            if p["status"].get("phase") == "Failed" and p["metadata"]["uid"] not in self.refused:
                self.refused[p["metadata"]["uid"]] = (now, p)
                self.ran = None
        running = [p for p in pods if p["status"].get("phase") == "Running" and "deletionTimestamp" not in p["metadata"]]
        if len(running) != self.replicas:
            return None
        self.ran = self.ran or now
        return running

    def remove(self):
        self.c.do("DELETE", f"/apis/apps/v1/namespaces/{self.ns}/replicasets/{self.name}",
                  {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"})
        wait_until(lambda: not self.pods(), f"the pods of {self.name} are gone", 60)


def explain(pod, restarted):
    """The rule by which the kubelet refused it."""
    said = f"{pod['status'].get('reason')}: {pod['status'].get('message')}"
    for rule, pattern in RULES:
        if re.search(pattern, said) and (restarted or rule != STALE):
            return rule
    raise Failed(f"pod {pod['metadata']['name']} was refused, and by no rule of the kubelet's: {said}")


def real_memory(c):
    return c.get(f"/api/v1/nodes/{c.env['K8S_NODE']}")["status"]["allocatable"].get(MEM)


def heartbeat(c):
    """When the kubelet reported last."""
    ready, = (x for x in c.get(f"/api/v1/nodes/{c.env['K8S_NODE']}")["status"]["conditions"] if x["type"] == "Ready")
    return ready["lastHeartbeatTime"]


def registrations(log):
    """Milliseconds from each new socket of the kubelet's to the registration."""
    at = lambda line: datetime.datetime.fromisoformat(re.match(r"ts=(\S+)Z", line)[1]).timestamp() * 1000
    started, found = None, []
    for line in log.splitlines():
        if "the kubelet has started" in line:
            started = at(line)
        elif started and re.search("registered with the kubelet.*aliyun.com/gpu-mem", line):
            found.append(at(line) - started)
            started = None
    return found


class RealLife:
    """The plugin on the real kubelet, which is killed and comes back at once, as by a supervisor."""

    def __init__(self, suite, *args):
        self.suite, self.c, self.args = suite, suite.cluster, args
        self.cards = Cards(suite, "count=4")
        self.before, self.took_ms = 0, []
        self.plugin = self.start()
        set_mode(self.c, "share")
        wait_until(lambda: real_memory(self.c) == "60", "60 GiB are allocatable", 60)

    def start(self):
        return start_plugin(self.suite, "--publish-interval=500ms", *self.args, fake=self.cards.path, mode=None)

    def registered(self):
        return len(re.findall("registered with the kubelet.*aliyun.com/gpu-mem", self.plugin.output()))

    def kill_plugin(self):
        """Returns when it was started again."""
        self.plugin.kill()
        self.took_ms += registrations(self.plugin.output())
        began = time.monotonic()
        self.plugin = self.start()
        self.before = 0
        return began

    def restart_kubelet(self):
        """Returns when it was started again."""
        self.before = self.registered()
        self.c.k8s("stop", "kubelet")
        began = time.monotonic()
        self.c.k8s("start", "kubelet")
        return began

    def wait_back(self):
        """The node shows 60 GiB, in a report that the kubelet made after the plugin had registered."""
        wait_until(lambda: self.plugin.alive() and self.registered() > self.before, "the plugin registers", 60)
        last = heartbeat(self.c)
        wait_until(lambda: real_memory(self.c) == "60" and heartbeat(self.c) != last, "60 GiB are allocatable again", 60)


def containers(c, ns, names):
    return {n: [(s["containerID"], s["restartCount"]) for s in c.pod(ns, n)["status"]["containerStatuses"]] for n in names}


@case("on the real kubelet: it restarts and the plugin is killed while pods start: the node is right again, allocated pods are not disturbed, every refusal is by the "
      "kubelet's rule and replaced, nothing leaks", needs={"kubelet", "alone"})
def real_kills(suite):
    c, ns = suite.cluster, suite.namespace()
    strict, rounds = "COSCHED_PLUGIN_KILLS" in os.environ, int(os.environ.get("COSCHED_PLUGIN_KILLS", "2"))
    value = int(os.environ.get("COSCHED_SEED") or random.randrange(1 << 30))
    print(f"     COSCHED_SEED={value}", flush=True)
    draw, life = random.Random(value), RealLife(suite)
    suite.scheduler()
    stay = [f"stays-{i}" for i in range(3)]
    for name in stay:
        gpu_pod(c, ns, name, 8)
    for name in stay:
        wait_container(c, ns, name)
    before = containers(c, ns, stay)
    rules, back, replaced = collections.Counter(), {"kubelet": [], "plugin": []}, []
    for number in range(2 * rounds):
        burst = Burst(c, ns, f"burst-{number}", 6, 2)
        time.sleep(draw.uniform(0, 1.5))  # so that it happens at any moment of their starts
        watcher = threading.Thread(target=wait_until, args=(burst.look, "all run", 120))
        watcher.start()
        began = life.restart_kubelet() if number % 2 else life.kill_plugin()
        life.wait_back()
        back["kubelet" if number % 2 else "plugin"].append(time.monotonic() - began)
        watcher.join()
        pods = wait_until(burst.look, f"round {number}: all {burst.replicas} pods run", 1)
        if burst.refused:
            replaced.append(burst.ran - max(at for at, _ in burst.refused.values()))
        rules.update(explain(p, number % 2) for _, p in burst.refused.values())
        for p in pods:
            (card, _gib), = json.loads(p["metadata"]["annotations"][CLAIM])["0"].items()
            check_equal(environment(c, ns, p["metadata"]["name"])["ALIYUN_COM_GPU_MEM_IDX"], card, f"card of {p['metadata']['name']}")
        check_equal(containers(c, ns, stay), before, f"round {number}: the containers that were there before")
        burst.remove()
    print(f"     {rounds} kills of the plugin: right again after {max(back['plugin']):.1f} s at most; {rounds} restarts of the kubelet: after "
          f"{max(back['kubelet']):.1f} s at most, from its start", flush=True)
    took_ms = life.took_ms + registrations(life.plugin.output())
    print(f"     registered {max(took_ms):.0f} ms after the kubelet's socket at most, {sorted(took_ms)[len(took_ms) // 2]:.0f} ms in the middle", flush=True)
    print(f"     {sum(rules.values())} pods refused{': ' if rules else ''}{', '.join(f'{n} because {rule}' for rule, n in sorted(rules.items()))}; "
          f"the last replacement ran {max(replaced, default=0):.1f} s after its refusal at most", flush=True)
    # Every card has what it had: 8 GiB are out on three of them.
    wait_until(lambda: sum(metric(life.plugin.port, "card_allocated", card=str(i), resource=MEM) for i in range(4)) == 24, "the plugin counts those that stay", 30)
    free = {i: 15 - gib for i, gib in by_card([c.pod(ns, n) for n in stay]).items()}
    sizes = [free.get(i, 15) for i in range(4) if free.get(i, 15)]
    for i, gib in enumerate(sizes):
        gpu_pod(c, ns, f"fill-{i}", gib)
    for i in range(len(sizes)):
        wait_container(c, ns, f"fill-{i}")
    if strict:
        check(max(back["plugin"] + back["kubelet"]) <= BACK_S, f"the node was right again after: {back}")
        check(max(replaced, default=0) <= REPLACED_S, f"replacements ran after: {replaced}")
    life.plugin.stop()


def given(c, pod):
    """The answers of Allocate that the kubelet keeps for the pod, as bytes."""
    with open(os.path.join(c.env["KUBELET_DEVICE_PLUGIN_DIR"], "kubelet_internal_checkpoint"), encoding="utf-8") as f:
        entries = json.load(f)["Data"]["PodDeviceEntries"] or []
    return [base64.b64decode(e["AllocResp"]) for e in entries if e["PodUID"] == pod["metadata"]["uid"]]


@case("on the real kubelet: in each of the six modes a pod runs, and prints the environment and the mounts that the contract names", needs={"kubelet", "alone"})
def real_modes(suite):
    c, ns = suite.cluster, suite.namespace()
    module, pipe, args = engine_place(suite)
    os.mkdir(module)
    specs = os.path.join(os.path.dirname(module), "cdi")
    p = start_plugin(suite, *args, "--publish-interval=500ms", "--device-list=cdi", f"--cdi-dir={specs}", fake=Cards(suite, "count=2").path, mode=None)
    suite.scheduler()
    shared = {"ALIYUN_COM_GPU_MEM_POD": "3", "ALIYUN_COM_GPU_MEM_CONTAINER": "3", "ALIYUN_COM_GPU_MEM_DEV": "15"}
    cases = {"default": ({EXCLUSIVE: "1"}, "2", {}),
             "share": ({MEM: "3"}, "30", {**shared, "CGPU_DISABLE": "true"}),
             "cgpu": ({MEM: "3"}, "30", shared),
             "mps": ({MEM: "3"}, "30", {**shared, "CUDA_MPS_PIPE_DIRECTORY": pipe, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=3G",
                                        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "20"}),
             "core_mem": ({MEM: "3", PERCENT: "30"}, "30", {**shared, "COSCHED_GPU_CORE_PERCENTAGE": "30"}),
             "topology": ({WHOLE: "1"}, "2", {})}
    ours = re.compile("ALIYUN_|NVIDIA_|CUDA_|COSCHED_|CGPU_")
    for mode, (limits, amount, expected) in cases.items():
        set_mode(c, mode)
        resource = next(iter(limits))
        engine = {"share": "none", "cgpu": "cgpu", "core_mem": "cgpu", "mps": "mps"}.get(mode)
        inventory = wait_until(lambda m=mode, e=engine: (lambda i: i if (i["mode"], i.get("isolation") if e else None) == (m, e) else None)(json.loads(
            c.get(f"/api/v1/nodes/{c.env['K8S_NODE']}")["metadata"]["annotations"]["cosched.io/gpu-inventory"])), f"the inventory says {mode}, {engine}", 60)
        # Node status may still show the same amount of the mode before.
        wait_until(lambda r=resource, n=amount: str(advertised(p, r)) == n, f"{mode}: {amount} of {resource} are offered to the kubelet", 60)
        wait_until(lambda r=resource, n=amount: c.get(f"/api/v1/nodes/{c.env['K8S_NODE']}")["status"]["allocatable"].get(r) == n, f"{mode}: {amount} of {resource}", 60)
        uuids = {str(card["i"]): card["uuid"] for card in inventory["cards"]}
        name = mode.replace("_", "-")
        container = {"name": "main", "image": "busybox:test", "imagePullPolicy": "Never", "command": ["sh", "-c", "env; cat /proc/mounts; sleep 3600"],
                     "resources": {"limits": limits}}
        gpu_pod(c, ns, name, 0, containers=[container])
        wait_container(c, ns, name)
        pod = c.pod(ns, name)
        printed = wait_until(lambda n=name: (lambda t: t if " /proc " in t else None)(c.kubectl("logs", "-n", ns, n)), f"{name} has printed")
        env = dict(line.split("=", 1) for line in printed.splitlines() if "=" in line and ours.match(line))
        card = next((card for card, uuid in uuids.items() if uuid == env.get("NVIDIA_VISIBLE_DEVICES")), None)
        if MEM in limits:
            (claimed, _gib), = json.loads(pod["metadata"]["annotations"][CLAIM])["0"].items()
            expected = {**expected, "ALIYUN_COM_GPU_MEM_IDX": claimed, **({"ALIYUN_COM_GPU_VISIBLE_DEVICES": claimed} if mode in ("cgpu", "core_mem") else {})}
            check_equal(card, claimed, f"{mode}: the card in the environment, and in the annotation")
        if mode == "topology":
            check_equal(card, pod["metadata"]["annotations"][GROUP], "topology: the card in the environment, and in the annotation")
        check_equal(env, {**expected, "NVIDIA_VISIBLE_DEVICES": uuids[card]}, f"{mode}: environment")
        mounted = {line.split()[1] for line in printed.splitlines() if len(line.split()) == 6}
        check_equal(pipe in mounted, mode == "mps", f"{mode}: {pipe} is mounted")
        # containerd 1.6 knows no CDI, so what the kubelet keeps of the answer is looked at.
        check(all(f"cosched.io/gpu={uuids[card]}".encode() in answer for answer in given(c, pod)) and given(c, pod), f"{mode}: the CDI device in the kubelet's books")
        print(f"     {mode}: {' '.join(f'{k}={v}' for k, v in sorted(env.items()))}", flush=True)
        c.delete_pod(ns, name)
        wait_until(lambda n=name: c.request("GET", f"/api/v1/namespaces/{ns}/pods/{n}")[0] == 404, f"{name} is gone", 60)
    with open(os.path.join(specs, "cosched.io-gpu.json"), encoding="utf-8") as f:
        check_equal({d["name"] for d in json.load(f)["devices"]}, set(uuids.values()), "cards in the CDI spec")
    set_mode(c, "default")
    p.stop()


@case("on the real kubelet: root without any capability and without a way to get one is enough", needs={"kubelet", "alone"})
def real_unprivileged(suite):
    c, ns = suite.cluster, suite.namespace()
    suite.scheduler()
    specs = os.path.join(suite.directory, "unprivileged-cdi")
    p = start_plugin(suite, "--device-list=cdi", f"--cdi-dir={specs}",
                     under=("setpriv", "--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all", "--no-new-privs"))
    with open(f"/proc/{p.process.pid}/status", encoding="ascii") as f:
        rights = dict(line.split(":\t") for line in f.read().splitlines() if line.startswith(("Cap", "NoNewPrivs")))
    check_equal(rights, {**{f"Cap{k}": "0" * 16 for k in ("Inh", "Prm", "Eff", "Bnd", "Amb")}, "NoNewPrivs": "1"}, "what the process may do")
    wait_until(lambda: real_memory(c) == "30", "30 GiB are allocatable", 60)
    gpu_pod(c, ns, "one", 3)
    wait_container(c, ns, "one")
    wait_until(lambda: c.pod(ns, "one")["metadata"]["annotations"].get(ASSIGNED) == "true", "it is assigned")
    check(os.path.exists(os.path.join(specs, "cosched.io-gpu.json")), "no CDI spec")
    p.stop()
