# SPDX-License-Identifier: Apache-2.0
"""The CPUs of a node: what is published of them, and that containers are where their pod's annotation says.

One case has all three programs on the real node; in the others pods are bound by hand, with the annotation in the Binding as the scheduler writes it. On the real node the cgroups are
the kernel's (v1, cgroupfs); the other layouts are in the unit tests, on directory trees.
"""
import datetime
import json
import os
import signal
import subprocess
import sys

from harness import MERGE, STRATEGIC, Failed, case, check, check_equal, free_port, http_get, wait_until
from suite_device_plugin import TOLERATE_ALL, wait_running
from suite_hardware import metric
from suite_twins import seed
from suite_webhook import start_webhook

TOPOLOGY = "cosched.io/cpu-topology"
APPLIED = "cosched.io/cpuset-applied"


def round_by_round(cores):
    """hwloc's list of CPU numbers as bare metal has them, both threads of each of so many cores. Listed: hwloc 2.9 reads uninitialized memory in indexes=core:pu."""
    return "indexes=" + ",".join(f"{c},{c + cores}" for c in range(cores))


def claim(**containers):
    """claim(main=(0, [1])): container main has CPU 1 of NUMA node 0."""
    return json.dumps({name: {str(numa): {"elems": {str(cpu): {} for cpu in cpus}}} for name, (numa, cpus) in containers.items()}, separators=(",", ":"))


def start_plugin(suite, *args, ready=True):
    """On the real node, without cards: what is left is the CPUs. As the manifests run it: root without any capability."""
    c, port = suite.cluster, free_port()
    p = suite.program("cosched-device-plugin", f"--kubeconfig={c.kubeconfig}", f"--node-name={c.env['K8S_NODE']}", "--backend=none",
                      f"--device-plugin-dir={c.env['KUBELET_DEVICE_PLUGIN_DIR']}", f"--pod-resources-socket={c.env['KUBELET_POD_RESOURCES_SOCKET']}",
                      f"--state-dir={suite.directory}/cpu-state", f"--kubelet-cgroup-root={cgroup_root(c)}", "--http-address=127.0.0.1", f"--http-port={port}", *args,
                      under=("setpriv", "--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all", "--no-new-privs"))
    p.port = port
    if ready:
        wait_until(lambda: http_get(port, "/readyz")[0] == 200, "the plugin is ready")
    return p


def cgroup_root(c):
    """The kubelet's own cgroupRoot: what is before /kubepods."""
    return c.env["KUBELET_CGROUP_ROOT"].removesuffix("/kubepods") or "/"


def make_pod(c, ns, name, containers=("main",), command="sleep 3600", asks="true", limits=True, annotations=None, **spec):
    """A pod with limits.cpu 1 in each container."""
    amounts = {"limits": {"cpu": "1", "memory": "64Mi"}, "requests": {"cpu": "10m"}} if limits else {}
    boxes = [{"name": n, "image": "busybox:test", "imagePullPolicy": "Never", "command": ["sh", "-c", command], "resources": amounts} for n in containers]
    c.do("POST", f"/api/v1/namespaces/{ns}/pods",
         {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": {**({"cpuset-scheduler": asks} if asks else {}), **(annotations or {})}},
          "spec": {"containers": boxes, "hostNetwork": True, "terminationGracePeriodSeconds": 0, "tolerations": TOLERATE_ALL, "schedulerName": "by-hand", **spec}})


def bound_pod(c, ns, name, cpuset, **what):
    """The same, bound to the real node with this claim."""
    make_pod(c, ns, name, **what)
    c.do("POST", f"/api/v1/namespaces/{ns}/pods/{name}/binding",
         {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "annotations": {"cpuset": cpuset}},
          "target": {"apiVersion": "v1", "kind": "Node", "name": c.env["K8S_NODE"]}})


def groups(c, pod):
    """The cgroups of the pod's containers and sandbox, by id."""
    for qos in ("", "burstable/", "besteffort/"):
        top = f"/sys/fs/cgroup/cpuset{c.env['KUBELET_CGROUP_ROOT']}/{qos}pod{pod['metadata']['uid']}"
        if os.path.isdir(top):
            return {d: os.path.join(top, d) for d in os.listdir(top) if os.path.isdir(os.path.join(top, d))}
    return {}


def container_id(c, ns, name, container="main"):
    """Of the container that runs now."""
    status = c.pod(ns, name)["status"]
    for status in status.get("containerStatuses", []) + status.get("initContainerStatuses", []):
        if status["name"] == container and "running" in status["state"]:
            return status["containerID"].split("://")[1]
    raise Failed(f"{container} of {name} does not run")


def read(*parts):
    with open(os.path.join(*parts), encoding="ascii") as f:
        return f.read()


def seen(group):
    """cpuset.cpus, and what each process in it may use."""
    allowed = set()
    for pid in read(group, "cgroup.procs").split():
        try:
            status = read("/proc", pid, "status")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended since the list was read: the container's shell starts many short ones
        for line in status.splitlines():
            if line.startswith("Cpus_allowed_list:"):
                allowed.add(line.split()[1])
    return read(group, "cpuset.cpus").strip(), allowed


def wait_pinned(c, ns, name, cpus, what, container="main", seconds=10.0):
    """All processes of the container that runs now have these CPUs."""

    def ask():
        group = groups(c, c.pod(ns, name))[container_id(c, ns, name, container)]
        return group if seen(group) == (cpus, {cpus}) else None

    return wait_until(ask, f"{what}: {container} of {name} is on CPU {cpus}", seconds, 0.02)


# A container that tells on which CPUs it may run, from its first instruction on.
TELL = "for i in $(seq 100); do echo $(grep Cpus_allowed_list: /proc/self/status); sleep 0.02; done; sleep 3600"


def told(c, ns, name, cpus, container="main"):
    """How long after its first word the container was on these CPUs and no others, in seconds."""

    def ask():
        lines = [line.split() for line in c.kubectl("logs", "-n", ns, name, "-c", container, "--timestamps").splitlines()]
        times = [datetime.datetime.fromisoformat(line[0][:26]) for line in lines if line[2] == cpus]
        return [(times[0] - datetime.datetime.fromisoformat(lines[0][0][:26])).total_seconds()]

    return wait_until(ask, f"{container} of {name} tells that it is on CPU {cpus}")[0]


@case("the layout of a simulated machine is published on its node, with the CPUs that are reserved, by a plugin that has no cards")
def published(suite):
    c = suite.cluster
    suite.node("cpus-1")
    port = free_port()
    # The node's own cgroups (v2), and no others of this machine: where there are none, nobody could be pinned, and the layout would say so.
    cgroups = os.path.join(suite.directory, "cpus-1-cgroup")
    os.mkdir(cgroups)
    with open(os.path.join(cgroups, "cgroup.controllers"), "w", encoding="ascii") as f:
        f.write("cpuset cpu memory\n")
    p = suite.program("cosched-device-plugin", f"--kubeconfig={c.kubeconfig}", "--node-name=cpus-1", "--backend=none", f"--kubelet-dir={suite.directory}",
                      f"--state-dir={suite.directory}/cpus-1", f"--cpu-topology=synthetic:pack:2 [numa] l3:2 core:2 pu:2({round_by_round(8)})", "--reserved-cpus=0,8",
                      f"--cgroup-root={cgroups}", "--http-address=127.0.0.1", f"--http-port={port}")
    text = wait_until(lambda: c.get("/api/v1/nodes/cpus-1")["metadata"]["annotations"].get(TOPOLOGY), "the layout is published")
    check_equal(json.loads(text), {"v": 1, "sockets": ["0-3,8-11", "4-7,12-15"], "numa": ["0-3,8-11", "4-7,12-15"],
                                   "l3": ["0-1,8-9", "2-3,10-11", "4-5,12-13", "6-7,14-15"], "cores": "smt2:8", "offline": "", "reserved": "0,8"}, TOPOLOGY)
    wait_until(lambda: http_get(port, "/readyz")[0] == 200, "it is ready without cards")
    c.do("PATCH", "/api/v1/nodes/cpus-1", {"metadata": {"annotations": {TOPOLOGY: "{}"}}}, MERGE)
    wait_until(lambda: c.get("/api/v1/nodes/cpus-1")["metadata"]["annotations"][TOPOLOGY] == text, "what somebody else writes there is put right")
    p.stop()


class Life:
    """A pod of limits.cpu 1 on the real node, and what happens to it."""

    def __init__(self, suite):
        self.suite, self.cluster = suite, suite.cluster
        _webhook, self.ns = start_webhook(suite)
        suite.scheduler()
        self.plugin = start_plugin(suite)
        node = wait_until(lambda: (lambda x: x if TOPOLOGY in x["metadata"]["annotations"] else None)(self.cluster.get(f"/api/v1/nodes/{self.cluster.env['K8S_NODE']}")),
                          "the layout is published")
        layout = json.loads(node["metadata"]["annotations"][TOPOLOGY])
        check_equal(sum(len(expand(s)) for s in layout["numa"]), int(node["status"]["capacity"]["cpu"]), "CPUs of the machine")
        self.all = layout["numa"][0]
        self.name = self.cpu = self.group = None
        bound_pod(self.cluster, self.ns, "bystander", "", asks=None)

    def begin(self, name):
        c, self.name = self.cluster, name
        make_pod(c, self.ns, name, command=TELL, schedulerName=None, nodeSelector={"kubernetes.io/hostname": c.env["K8S_NODE"]})
        wait_running(c, self.ns, name)
        wanted = self.pod()["metadata"]["annotations"]["cpuset"]
        (self.cpu,), = [part["elems"] for part in json.loads(wanted)["main"].values()]
        check(int(self.cpu) in expand(self.all), f"the scheduler gave it a CPU of the machine: {wanted}")
        self.group = self.wait("after its start", 1.0)
        self.check_told("its start")
        wait_until(lambda: self.pod()["metadata"]["annotations"].get(APPLIED) == wanted, "the answer")

    def pod(self):
        return self.cluster.pod(self.ns, self.name)

    def wait(self, what, seconds=10.0):
        return wait_pinned(self.cluster, self.ns, self.name, self.cpu, what, seconds=seconds)

    def check_told(self, what):
        took = told(self.cluster, self.ns, self.name, self.cpu)
        check(took <= 1.0, f"after {what} it ran elsewhere for {took} s")

    def move(self):
        with open(os.path.join(self.group, "cpuset.cpus"), "w", encoding="ascii") as f:
            f.write(self.all)

    def restarted(self):
        os.kill(int(read(self.group, "cgroup.procs").split()[0]), signal.SIGKILL)
        wait_until(lambda: self.pod()["status"]["containerStatuses"][0]["restartCount"] == 1, "the container is restarted", 60)
        wait_running(self.cluster, self.ns, self.name)
        before, self.group = self.group, self.wait("after its restart")
        self.check_told("its restart")
        check(before != self.group, "the restarted container is another one")

    def moved(self):
        self.move()
        self.wait("somebody wrote its cpuset.cpus", 2.0)

    def resized(self):
        c = self.cluster
        c.do("PATCH", f"/api/v1/namespaces/{self.ns}/pods/{self.name}/resize", {"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "2"}}}]}}, STRATEGIC)
        wait_until(lambda: [e for e in c.events(self.ns, self.name, "CpusetResized") if "limits.cpu of container main was changed" in e["message"]],
                   "an Event about the resize")
        wait_until(lambda: self.pod()["status"]["containerStatuses"][0]["resources"]["limits"]["cpu"] == "2", "the kubelet has done it")
        check_equal(seen(self.group), (self.cpu, {self.cpu}), "after a resize that no webhook refused")

    def kubelet_restarted(self):
        c = self.cluster
        c.k8s("stop", "kubelet")
        c.k8s("start", "kubelet")
        c.do("PATCH", f"/api/v1/namespaces/{self.ns}/pods/{self.name}", {"metadata": {"labels": {"seen": "again"}}}, MERGE)
        bound_pod(c, self.ns, f"after-{self.name}", "", asks=None)
        wait_running(c, self.ns, f"after-{self.name}")  # the new kubelet has been over all pods
        check_equal(seen(self.group), (self.cpu, {self.cpu}), "after the kubelet's restart")

    def plugin_killed(self):
        self.plugin.kill()
        self.move()
        inner = os.path.join(self.group, "inner")  # as a container runtime in the container makes it: the kernel takes no CPU away that this has
        os.mkdir(inner)
        for name in ("cpuset.mems", "cpuset.cpus"):
            with open(os.path.join(inner, name), "w", encoding="ascii") as f:
                f.write(read(self.group, name))
        self.plugin = start_plugin(self.suite)
        self.wait("after the plugin was killed and came back")
        check_equal(read(inner, "cpuset.cpus").strip(), self.cpu, "what the container has made below its own group")
        os.rmdir(inner)
        self.move()
        self.wait("the new plugin hears it too", 2.0)
        wait_until(lambda: metric(self.plugin.port, "pinned_cpus", pod=self.name, container="main") == 1, "metric")

    def pooled(self):
        """--shared-pool, and off again."""
        c = self.cluster
        wait_running(c, self.ns, "bystander")
        others = expand(self.all) - {int(self.cpu)}

        def is_on(cpus):
            group = groups(c, c.pod(self.ns, "bystander"))[container_id(c, self.ns, "bystander")]
            had, allowed = seen(group)
            return expand(had) == cpus and all(expand(text) == cpus for text in allowed)

        self.plugin.stop()
        self.plugin = start_plugin(self.suite, "--shared-pool")
        wait_until(lambda: is_on(others), "a container that is not pinned keeps off")
        self.plugin.kill()
        self.plugin = start_plugin(self.suite)
        wait_until(lambda: is_on(expand(self.all)), "without --shared-pool it has all CPUs again")
        self.wait("nothing of this concerns the pinned one")

    def end(self):
        c, top = self.cluster, os.path.dirname(self.group)
        c.do("PATCH", f"/api/v1/namespaces/{self.ns}/pods/{self.name}", {"metadata": {"annotations": {"cpuset": None}}}, MERGE)
        wait_until(lambda: seen(self.group)[0] == self.all, "without the annotation it has all CPUs")
        wait_until(lambda: self.pod()["metadata"]["annotations"].get(APPLIED) == "", "and the answer says so")
        for name in (self.name, f"after-{self.name}"):
            c.delete_pod(self.ns, name)
        wait_until(lambda: not os.path.exists(top), "the pod's cgroup goes with it", 60)


def busy(suite, number):
    """So many processes that want a whole CPU, until the case ends."""
    for _ in range(number):
        process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        suite.stack.callback(process.wait)
        suite.stack.callback(process.kill)


@case("injected, placed and pinned: a real container is on the CPU that the scheduler gave it within 1 s of its start, after its restart and the kubelet's, after the plugin was killed "
      "and came back, and within 2 s after somebody moved it; --shared-pool keeps others off it, and gives back what it took", needs={"kubelet", "alone"})
def pinned(suite):
    rounds = int(os.environ.get("COSCHED_PIN_ROUNDS", "1"))
    draw = seed() if rounds > 1 else None
    busy(suite, int(os.environ.get("COSCHED_PIN_LOAD", "0")))
    life = Life(suite)
    for number in range(rounds):
        steps = [life.restarted, life.moved, life.resized, life.kubelet_restarted, life.plugin_killed, life.pooled]
        if draw:
            draw.shuffle(steps)
            print(f"     round {number + 1} of {rounds}: {', '.join(step.__name__ for step in steps)}", flush=True)
        life.begin(f"one-{number}")
        for step in steps:
            step()
        life.end()
    life.plugin.stop()


@case("containers, init containers and sidecars of a pod are each on their own CPU within 1 s of their start, in any QoS class; a claim edited by hand moves nobody, with an Event, nor "
      "while the plugin is away; nobody else is touched", needs={"kubelet"})
def containers(suite):
    c, ns = suite.cluster, suite.namespace()
    p = start_plugin(suite)
    layout = json.loads(wait_until(lambda: c.get(f"/api/v1/nodes/{c.env['K8S_NODE']}")["metadata"]["annotations"].get(TOPOLOGY), "the layout is published"))
    cpus = sorted(expand(layout["numa"][0]))[:2]
    check_equal(len(cpus), 2, "this machine has two CPUs or more")
    one, two = map(str, cpus)
    bound_pod(c, ns, "free", "", asks=None)
    first, side = ({"name": name, "image": "busybox:test", "imagePullPolicy": "Never", "command": ["sh", "-c", command]}
                   for name, command in (("first", TELL.partition(" sleep 3600")[0]), ("side", TELL)))
    wanted = claim(a=(0, [cpus[0]]), first=(0, [cpus[1]]), side=(0, [cpus[1]]))
    bound_pod(c, ns, "two", wanted, containers=("a",), limits=False, command=TELL, initContainers=[first, {**side, "restartPolicy": "Always"}])
    for name in ("two", "free"):
        wait_running(c, ns, name)
    wait_pinned(c, ns, "two", one, "best effort", "a")
    wait_pinned(c, ns, "two", two, "a sidecar", "side")
    for container, cpu in (("a", one), ("side", two), ("first", two)):
        took = told(c, ns, "two", cpu, container)
        check(took <= 1.0, f"{container} ran elsewhere for {took} s")
    check_equal(seen(groups(c, c.pod(ns, "free"))[container_id(c, ns, "free")])[0], layout["numa"][0], "the CPUs of a pod that does not ask")

    forged = claim(a=(0, [cpus[1]]), side=(0, [cpus[1]]))
    c.do("PATCH", f"/api/v1/namespaces/{ns}/pods/two", {"metadata": {"annotations": {"cpuset": forged}}}, MERGE)
    wait_until(lambda: [e for e in c.events(ns, "two", "CpusetRefused") if "exceeds the CPUs" in e["message"]], "an Event about the edit")
    wait_pinned(c, ns, "two", one, "after the edit", "a")
    bound_pod(c, ns, "thief", claim(main=(0, [cpus[0]])))
    wait_until(lambda: [e for e in c.events(ns, "thief", "CpusetRefused") if f"CPUs {one} are bound to another pod" in e["message"]], "an Event about the conflict")
    bound_pod(c, ns, "dreamer", claim(main=(0, [1000])))
    wait_until(lambda: [e for e in c.events(ns, "dreamer", "CpusetRefused") if "the node has no CPU 1000" in e["message"]], "an Event about the CPU")
    for name in ("thief", "dreamer"):
        wait_running(c, ns, name)
        check_equal(seen(groups(c, c.pod(ns, name))[container_id(c, ns, name)])[0], layout["numa"][0], f"the CPUs of {name}")
        check(not c.pod(ns, name)["metadata"]["annotations"].get(APPLIED), f"an answer for {name}")
    check_equal(metric(p.port, "pins_total", result="refused"), 3, "refusals")
    check(metric(p.port, "pinned_cpu_microseconds_total", pod="two", container="a") > 0, "the CPU time that a pinned container has used")
    check_equal(metric(p.port, "pinned_throttled_periods_total", pod="two", container="a"), 0, "without a limit it is never held back")

    p.kill()
    c.do("PATCH", f"/api/v1/namespaces/{ns}/pods/two", {"metadata": {"annotations": {"cpuset": forged, APPLIED: forged}}}, MERGE)
    p = start_plugin(suite)
    wait_until(lambda: c.pod(ns, "two")["metadata"]["annotations"].get(APPLIED) == wanted, "the forged answer is put right")
    wait_pinned(c, ns, "two", one, "edited while the plugin was away", "a")
    p.stop()


@case("a loan of a real container is called back: its processes are off the CPU before the pod that needs it is bound, and each is on its own then", needs={"kubelet", "alone"})
def lent(suite):
    c, ns = suite.cluster, suite.namespace()
    suite.scheduler()
    p = start_plugin(suite, "--cpu-topology=synthetic:pack:1 [numa] l3:1 core:2 pu:1")
    wait_until(lambda: c.get(f"/api/v1/nodes/{c.env['K8S_NODE']}")["metadata"]["annotations"].get(TOPOLOGY), "the layout is published")
    here = {"schedulerName": "ack-co-scheduler", "nodeSelector": {"kubernetes.io/hostname": c.env["K8S_NODE"]}}
    version = c.get(f"/api/v1/namespaces/{ns}/pods")["metadata"]["resourceVersion"]
    make_pod(c, ns, "borrower", annotations={"cpu-policy": "static-burst"}, **here)
    wait_running(c, ns, "borrower")
    wait_pinned(c, ns, "borrower", "0-1", "a whole L3 group")
    make_pod(c, ns, "needs", command=TELL, **here)
    wait_running(c, ns, "needs")
    claims = [c.pod(ns, name)["metadata"]["annotations"]["cpuset"] for name in ("borrower", "needs")]
    check_equal(sorted(claims), [claim(main=(0, [cpu])) for cpu in (0, 1)], "a CPU for each")
    for name, text in zip(("borrower", "needs"), claims):
        (cpu,), = [part["elems"] for part in json.loads(text)["main"].values()]
        wait_pinned(c, ns, name, cpu, "after the call-back")
    check(told(c, ns, "needs", cpu) <= 1.0, "the one that needed it is on its CPU within 1 s")
    steps = []
    for pod in c.watch(f"/api/v1/namespaces/{ns}/pods", version):
        name, notes = pod["metadata"]["name"], pod["metadata"].get("annotations", {})
        for step, is_so in (("shrunk", name == "borrower" and notes.get("cpuset") == claims[0]), ("confirmed", name == "borrower" and notes.get(APPLIED) == claims[0]),
                            ("bound", name == "needs" and pod["spec"].get("nodeName"))):
            steps += [step] if is_so and step not in steps else []
    check_equal(steps, ["shrunk", "confirmed", "bound"], "what was seen one after the other")
    p.stop()


def configure_kubelet(c, text):
    """The kubelet runs with this configuration, and knows nothing of an earlier CPU manager."""
    c.k8s("stop", "kubelet")
    with open(os.path.join(c.env["K8S_DIR"], "node/kubelet.yaml"), "w", encoding="utf-8") as f:
        f.write(text)
    os.unlink(os.path.join(c.env["KUBELET_ROOT_DIR"], "cpu_manager_state"))
    c.k8s("start", "kubelet")


@case("beside a real kubelet with cpuManagerPolicy static nothing is pinned, with an Event, until the policy is none again; its reserved CPUs are published meanwhile",
      needs={"kubelet", "alone"})
def static_policy(suite):
    c, ns = suite.cluster, suite.namespace()
    before = read(c.env["K8S_DIR"], "node/kubelet.yaml")
    suite.stack.callback(lambda: read(c.env["K8S_DIR"], "node/kubelet.yaml") == before or configure_kubelet(c, before))
    configure_kubelet(c, before + "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n")
    p = start_plugin(suite, f"--kubelet-dir={c.env['KUBELET_ROOT_DIR']}", f"--kubelet-config={c.env['K8S_DIR']}/node/kubelet.yaml")
    layout = wait_until(lambda: (lambda x: x if x["reserved"] == "0" else None)(json.loads(c.get(f"/api/v1/nodes/{c.env['K8S_NODE']}")["metadata"]["annotations"][TOPOLOGY])),
                        "the kubelet's reserved CPUs are published")
    cpu = max(expand(layout["numa"][0]))
    check_equal(layout.get("closed"), "the kubelet's cpuManagerPolicy is static", "what the scheduler is told")
    bound_pod(c, ns, "one", claim(main=(0, [cpu])))
    wait_until(lambda: [e for e in c.events(ns, "one", "CpusetRefused") if "cpuManagerPolicy is static" in e["message"]], "an Event about the policy")
    wait_running(c, ns, "one")
    check_equal(seen(groups(c, c.pod(ns, "one"))[container_id(c, ns, "one")])[0], layout["numa"][0], "the CPUs of a container that is the kubelet's to place")
    check(not c.pod(ns, "one")["metadata"]["annotations"].get(APPLIED), "nothing is answered")
    configure_kubelet(c, before)
    wait_pinned(c, ns, "one", str(cpu), "the policy is none again")
    wait_until(lambda: (lambda x: x["reserved"] == "" and "closed" not in x)(json.loads(c.get(f"/api/v1/nodes/{c.env['K8S_NODE']}")["metadata"]["annotations"][TOPOLOGY])),
               "no CPU is reserved any more, and the node is open")
    p.stop()


def expand(text):
    """The numbers of a CPU list."""
    ends = [part.split("-") for part in text.split(",") if part]
    return {cpu for e in ends for cpu in range(int(e[0]), int(e[-1]) + 1)}
