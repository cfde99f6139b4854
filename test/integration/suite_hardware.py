# SPDX-License-Identifier: Apache-2.0
"""What happens on the cards, through the fake NVML library: errors, cards of different sizes, a driver that hangs, what pods really use, and all changes of mode.

Most cases use simulated nodes, whose device plugin is the real one with `--backend=nvml`; they run on both clusters. Those of the real kubelet come last.
"""
import json
import os
import re
import signal
import subprocess

from harness import BUILD, MERGE, case, check, check_equal, free_port, http_get, wait_until
from suite_device_plugin import environment, gpu_pod, set_mode, start_plugin
from suite_device_plugin import wait_running as wait_container
from suite_inspect import inspect
from suite_nodes import MEM, MODE, T4, Nodes, by_card, gpu_node, memory_pod, wait_pod

MODES = ("default", "cgpu", "core_mem", "share", "mps", "topology")
SIZES = (16384, 24576, 81920)  # 16, 24 and 80 GiB
OFFERS = {"default": {"exclusive": 2}, "cgpu": {"mem": 30, "count": 2}, "share": {"mem": 30, "count": 2}, "mps": {"mem": 30, "count": 2},
          "core_mem": {"mem": 30, "percent": 200, "count": 2}, "topology": {"whole": 2}}


class Cards:
    """The fake library's file: written whole, so that it is never read half."""

    def __init__(self, suite, *lines):
        self.path = os.path.join(suite.directory, f"nvml-{free_port()}")
        self.lines, self.events = [], []
        self.say(*lines)

    def say(self, *lines):
        self.lines = list(lines)
        self.write()

    def event(self, text):
        self.events.append(f"event.{len(self.events) + 1}={text}")
        self.write()

    def write(self):
        with open(self.path + ".new", "w", encoding="utf-8") as f:
            f.write("\n".join([*self.lines, *self.events, ""]))
        os.rename(self.path + ".new", self.path)


class Hardware(Nodes):
    """One simulated node whose plugin asks the fake NVML."""

    def __init__(self, suite, name, mode, cards, *args):
        self.name, self.cards, self.port = name, cards, free_port()
        more = ["--backend=nvml", f"--nvml-library={BUILD}/lib/libnvidia-ml.so.1", "--scan-interval=200ms", "--recovery-hold=1s", "--publish-interval=500ms",
                f"--http-port={self.port}", *args]
        super().__init__(suite, [gpu_node(name, mode, T4, 2, pluginArgs=more)])

    def run(self):
        self.program = self.suite.program("cosched-local", "nodes", f"--kubeconfig={self.cluster.kubeconfig}", f"--nodes={self.file}",
                                          f"--state-dir={self.directory}", env={"COSCHED_FAKE_NVML": self.cards.path})
        self.program.wait_output("^nodes are running")

    def metric(self, name, **labels):
        return metric(self.port, name, **labels)

    def wait_event(self, reason, pattern):
        return wait_node_event(self.cluster, self.name, reason, pattern)


def metric(port, name, **labels):
    """The value of the one series whose labels include these; None: there is none."""
    for line in http_get(port, "/metrics")[1].splitlines():
        found = re.fullmatch(rf"cosched_device_plugin_{name}(?:{{(.*)}})? (-?\d+)", line)
        if found and set(labels.items()) <= set(re.findall(r'(\w+)="([^"]*)"', found[1] or "")):
            return int(found[2])
    return None


def wait_node_event(c, node, reason, pattern):
    ask = lambda: [e for e in c.events("default", node, reason) if re.search(pattern, e["message"])]
    return wait_until(ask, f"an Event {reason} on {node}: /{pattern}/")[0]


def health(c, node):
    return [card["health"] for card in json.loads(c.get(f"/api/v1/nodes/{node}")["metadata"]["annotations"]["cosched.io/gpu-inventory"])["cards"]]


@case("a fatal XID on card 1 takes card 1 away and no other, also over a restart of the plugin, pods elsewhere go on, and it comes back when it is well; XIDs of "
      "programs change nothing")
def xids(suite):
    c, ns = suite.cluster, suite.namespace()
    cards = Cards(suite, "count=3")
    nodes = Hardware(suite, "xid-1", "share", cards)
    suite.scheduler()
    nodes.offers("xid-1", mem=45, count=3)
    memory_pod(c, ns, "elsewhere", 10, "xid-1")
    check_equal(by_card([wait_pod(c, ns, "elsewhere")]), {0: 10}, "claim")
    for number in (13, 31, 43, 45, 68, 109):
        cards.event(f"xid 1 {number}")
    wait_until(lambda: nodes.metric("card_xids_total", card="1", xid="109") == 1, "the last of the programs' errors is counted")
    check_equal([nodes.metric("card_healthy", card=str(i)) for i in range(3)], [1, 1, 1], "health after errors of programs")
    check_equal((nodes.get("xid-1")["status"]["allocatable"][MEM], c.events("default", "xid-1", "GpuSick")), ("45", []), "nothing happens")
    # The card waits for its reset as well: it cannot come back before that.
    cards.say("count=3", "card.1.remap=1")
    cards.event("xid 1 48")
    nodes.wait_event("GpuSick", r"card 1 .*XID 48")
    wait_until(lambda: nodes.get("xid-1")["status"]["allocatable"][MEM] == "30", "two cards are allocatable")
    check_equal(nodes.get("xid-1")["status"]["capacity"][MEM], "45", "capacity")
    wait_until(lambda: health(c, "xid-1") == ["ok", "sick", "ok"], "the inventory says which one is sick")
    check_equal([nodes.metric("card_healthy", card=str(i)) for i in range(3)], [1, 0, 1], "health")
    check_equal(nodes.metric("card_xids_total", card="1", xid="48", **{"class": "hardware"}), 1, "count")
    cards.events.clear()  # the next plugin does not hear of it
    cards.say("count=3", "card.1.remap=1")
    killed = nodes.plugin_pid("xid-1")
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: (nodes.plugin_pid("xid-1") or killed) != killed and http_get(nodes.port, "/readyz")[0] == 200, "another plugin serves")
    wait_until(lambda: nodes.get("xid-1")["status"]["allocatable"][MEM] == "30", "two cards are allocatable again")
    check_equal([nodes.metric("card_healthy", card=str(i)) for i in range(3)], [1, 0, 1], "a restart of the plugin is no cure")
    for i in range(3):  # 5 GiB are left on card 0, 15 on card 2
        memory_pod(c, ns, f"p{i}", 5, "xid-1")
    claims = by_card([wait_pod(c, ns, f"p{i}") for i in range(3)])
    check(1 not in claims and sum(claims.values()) == 15, f"GiB by card while card 1 is sick: {claims}")
    memory_pod(c, ns, "later", 15, "xid-1")
    c.wait_refused(ns, "later", r"1 has GPU1 unhealthy \(XID 48\) and too little free beside it \(on xid-1\)")
    done = subprocess.run([f"{BUILD}/bin/kubectl-inspect-cgpu", f"--kubeconfig={c.kubeconfig}", "why", "later", "-n", ns], capture_output=True, text=True, timeout=60,
                          check=True)
    check(re.search(r"^xid-1 +GPU1 +unhealthy \(XID 48\)$", done.stdout, re.M), done.stdout)
    check_equal(c.pod(ns, "elsewhere")["status"]["phase"], "Running", "the pod on another card")
    cards.say("count=3")
    nodes.wait_event("GpuRecovered", "card 1 ")
    check_equal(by_card([wait_pod(c, ns, "later")]), {1: 15}, "claim once it has recovered")
    wait_until(lambda: health(c, "xid-1") == ["ok", "ok", "ok"], "the inventory says so")


@case("cards of 16, 24 and 80 GiB on one node are each filled to their own size and never beyond")
def mixed(suite):
    c, ns = suite.cluster, suite.namespace()
    cards = Cards(suite, "count=3", *(f"card.{i}.mib={mib}" for i, mib in enumerate(SIZES)), "card.1.name=NVIDIA A10", "card.2.name=NVIDIA A100-SXM4-80GB")
    nodes = Hardware(suite, "mixed-1", "share", cards)
    suite.scheduler()
    nodes.offers("mixed-1", mem=120, count=3)
    labels = nodes.get("mixed-1")["metadata"]["labels"]
    check_equal((labels["aliyun.accelerator/nvidia_mem"], labels["aliyun.accelerator/nvidia_count"]), ("16384MiB", "3"), "labels of a mixed node")
    sevens = [f"seven-{i}" for i in range(16)]  # 2 + 3 + 11 of them fit, and 8 GiB are left: on no card 7
    for name in sevens:
        memory_pod(c, ns, name, 7, "mixed-1")
    pods = [wait_pod(c, ns, name) for name in sevens]
    check_equal(by_card(pods), {0: 14, 1: 21, 2: 77}, "GiB by card")
    memory_pod(c, ns, "seven-more", 7, "mixed-1")
    c.wait_refused(ns, "seven-more", r"no card with 7 GiB free \(largest free: 3 GiB")
    c.delete_pod(ns, "seven-more")
    for i, gib in enumerate((3, 2, 3)):
        memory_pod(c, ns, f"rest-{i}", gib, "mixed-1")
    pods += [wait_pod(c, ns, f"rest-{i}") for i in range(3)]
    check_equal(by_card(pods), {0: 16, 1: 24, 2: 80}, "every card is full, to its own size")
    wait_until(lambda: [nodes.metric("card_allocated", card=str(i), resource=MEM) for i in range(3)] == [16, 24, 80], "the metrics say so")
    check_equal([nodes.metric("card_advertised", card=str(i), resource=MEM) for i in range(3)], [16, 24, 80], "advertised")
    uuids = nodes.uuids("mixed-1")
    for pod in pods:
        (card, _), = json.loads(pod["metadata"]["annotations"]["scheduler.framework.gpushare.allocation"])["0"].items()
        env = nodes.environment(pod, "main")
        check_equal((env["NVIDIA_VISIBLE_DEVICES"], env["ALIYUN_COM_GPU_MEM_DEV"]), (uuids[card], str(SIZES[int(card)] // 1024)), "the card that it sees")


@case("a driver that hangs on card 1 costs card 1, not the node; one that hangs on no card costs nothing; a card that vanishes is sick and comes back")
def hangs(suite):
    c = suite.cluster
    cards = Cards(suite, "count=2")
    nodes = Hardware(suite, "hang-1", "share", cards, "--scan-deadline=1s")
    nodes.offers("hang-1", mem=30, count=2)
    cards.say("count=2", "hang=nvmlDeviceGetCount_v2")
    nodes.wait_event("GpuDriverHangs", "all stay as they were")
    check_equal(([nodes.metric("card_healthy", card=str(i)) for i in range(2)], nodes.metric("driver_hung")), ([1, 1], 1), "health and the hang")
    cards.say("count=2", "hang=nvmlDeviceGetMemoryInfo 1")
    nodes.wait_event("GpuSick", r"card 1 .*does not answer")
    wait_until(lambda: nodes.get("hang-1")["status"]["allocatable"][MEM] == "15", "card 0 is still allocatable")
    cards.say("count=2")
    wait_until(lambda: nodes.get("hang-1")["status"]["allocatable"][MEM] == "30", "both are again")
    wait_until(lambda: nodes.metric("driver_hung") == 0, "it answers")
    cards.say("count=2", "card.0.lost=1")
    nodes.wait_event("GpuSick", r"card 0 .*GPU is lost")
    wait_until(lambda: nodes.get("hang-1")["status"]["allocatable"][MEM] == "15", "card 1 alone")
    check_equal(nodes.get("hang-1")["status"]["capacity"][MEM], "30", "capacity")
    cards.say("count=2")
    nodes.offers("hang-1", mem=30, count=2)
    cards.say("count=2", "card.1.mig=1")
    nodes.wait_event("GpuMig", "1 of the node's 2 cards")
    wait_until(lambda: nodes.get("hang-1")["status"]["allocatable"][MEM] == "15", "a card in MIG mode is not shared")
    c.do("PATCH", "/api/v1/nodes/hang-1", {"metadata": {"labels": {MODE: "default"}}}, MERGE)
    nodes.offers("hang-1", exclusive=2)


@case("what pods really use is in the metrics and in inspect cgpu -d, and a pod in mode share that uses more than it asked for gets an Event, once")
def usage(suite):
    c, ns = suite.cluster, suite.namespace()
    cards = Cards(suite, "count=1")
    proc = os.path.join(suite.directory, f"proc-{free_port()}")
    os.mkdir(proc)
    nodes = Hardware(suite, "usage-1", "share", cards, f"--proc={proc}")
    suite.scheduler()
    nodes.offers("usage-1", mem=15, count=1)
    uids = {}
    for name, gib in (("greedy", 3), ("modest", 5)):
        memory_pod(c, ns, name, gib, "usage-1")
        uids[name] = wait_pod(c, ns, name)["metadata"]["uid"]

    def runs(pid, path):
        os.makedirs(os.path.join(proc, str(pid)), exist_ok=True)
        with open(os.path.join(proc, str(pid), "cgroup"), "w", encoding="ascii") as f:
            f.write(f"0::{path}\n")

    container = 64 * "a"
    slashes = uids["greedy"].replace("-", "_")
    runs(101, f"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{slashes}.slice/cri-containerd-{container}.scope")
    runs(102, f"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{slashes}.slice/cri-containerd-{container}.scope")
    runs(103, f"/kubepods/besteffort/pod{uids['modest']}/{container}")
    runs(104, "/system.slice/something.service")
    cards.say("count=1", "process.0=101 1024", "process.0=102 2048", "process.0=103 5000", "process.0=104 300")
    used = lambda name: (nodes.metric("pod_used_mib", namespace=ns, pod=name), nodes.metric("pod_processes", namespace=ns, pod=name))
    wait_until(lambda: (used("greedy"), used("modest"), nodes.metric("outside_used_mib")) == ((3072, 2), (5000, 1), 300), "all three are told apart")
    check_equal(c.events(ns, "greedy", "GpuShareExceeded"), [], "Events of a pod within its share")
    cards.say("count=1", "process.0=101 1024", "process.0=102 2049", "process.0=103 5000")
    event, = wait_until(lambda: c.events(ns, "greedy", "GpuShareExceeded"), "an Event on the pod that takes more")
    check("uses 3073 MiB of GPU memory in 2 processes and asked for 3072 MiB" in event["message"], event["message"])
    said = lambda name: json.loads(c.pod(ns, name)["metadata"]["annotations"].get("cosched.io/gpu-used", "{}"))
    wait_until(lambda: (said("greedy"), said("modest")) == ({"mib": 3073, "processes": 2}, {"mib": 5000, "processes": 1}), "both pods say it themselves")
    listed, _ = inspect(c.kubeconfig, "-d", "usage-1")
    check(re.search(r"^greedy .* 3073/3072 over$", listed, re.M) and re.search(r"^modest .* 5000/5120$", listed, re.M), listed)
    cards.say("count=1", "process.0=103 5000")
    wait_until(lambda: c.events(ns, "greedy", "GpuShareKept"), "an Event that it is over")
    check_equal(([e.get("count", 1) for e in c.events(ns, "greedy", "GpuShareExceeded")], c.events(ns, "modest", "GpuShareExceeded")), ([1], []), "once, and nobody else")


def circuit():
    """A walk through the modes that makes each of the 30 changes once, and ends where it began."""
    left = {m: [n for n in MODES if n != m] for m in MODES}
    path, trail = [], [MODES[0]]
    while trail:
        if left[trail[-1]]:
            trail.append(left[trail[-1]].pop())
        else:
            path.append(trail.pop())
    path.reverse()
    check_equal((len(path), len(set(zip(path, path[1:])))), (31, 30), "changes")
    return path


@case("all 30 changes between the six modes: after each the node shows what its mode has, and 0 of all else; an unknown mode keeps the last one")
def changes(suite):
    c = suite.cluster
    path = circuit()
    nodes = Hardware(suite, "modes-1", path[0], Cards(suite, "count=2"))
    nodes.offers("modes-1", **OFFERS[path[0]])
    for mode in path[1:]:
        c.do("PATCH", "/api/v1/nodes/modes-1", {"metadata": {"labels": {MODE: mode}}}, MERGE)
        nodes.offers("modes-1", **OFFERS[mode])
    c.do("PATCH", "/api/v1/nodes/modes-1", {"metadata": {"labels": {MODE: "exclusive"}}}, MERGE)
    nodes.wait_event("GpuModeUnknown", f"'exclusive'.*{', '.join(MODES)}.*stays in mode {path[-1]}")
    nodes.offers("modes-1", **OFFERS[path[-1]])


@case("a shared mode beside the kubelet's CPU manager policy static is told in an Event and a metric")
def cpu_manager(suite):
    state = os.path.join(suite.directory, f"cpu_manager_state-{free_port()}")
    nodes = Hardware(suite, "static-1", "default", Cards(suite, "count=2"), f"--cpu-manager-state={state}")
    nodes.offers("static-1", exclusive=2)
    with open(state, "w", encoding="ascii") as f:
        json.dump({"policyName": "static", "defaultCpuSet": "0-7", "checksum": 1}, f)
    check_equal((nodes.metric("cpu_manager_static"), suite.cluster.events("default", "static-1", "CpuManagerStatic")), (0, []), "in mode default")
    suite.cluster.do("PATCH", "/api/v1/nodes/static-1", {"metadata": {"labels": {MODE: "share"}}}, MERGE)
    nodes.wait_event("CpuManagerStatic", "policy is static and the node is in GPU mode share")
    check_equal(nodes.metric("cpu_manager_static"), 1, "metric")


# ---- the real kubelet ----

def status(c, node):
    return c.get(f"/api/v1/nodes/{node}")["status"]


@case("on the real kubelet: all 30 changes between the six modes, with node status checked after each", needs={"kubelet", "alone"})
def real_changes(suite):
    c, node = suite.cluster, suite.cluster.env["K8S_NODE"]
    path = circuit()
    start_plugin(suite, "--isolation=none", "--publish-interval=500ms", fake=Cards(suite, "count=2").path, mode=None)
    names = {"mem": MEM, "count": "aliyun.com/gpu-count", "percent": "aliyun.com/gpu-core.percentage", "whole": "aliyun.com/gpu", "exclusive": "nvidia.com/gpu"}
    for mode in path:
        set_mode(c, mode)
        expected = {r: str(OFFERS[mode].get(k, 0)) for k, r in names.items()}

        def ask(want=expected):
            seen = [{r: status(c, node)[kind].get(r, "0") for r in want} for kind in ("capacity", "allocatable")]
            if seen != [want, want]:
                raise KeyError(f"capacity and allocatable are {seen}")
            return True

        wait_until(ask, f"the node shows what mode {mode} has: {expected}", 60)


@case("on the real kubelet: cards of 16, 24 and 80 GiB are filled to their own size; a fatal XID takes one away, its pods go on, and it comes back",
      needs={"kubelet", "alone"})
def real_cards(suite):
    c, ns, node = suite.cluster, suite.namespace(), suite.cluster.env["K8S_NODE"]
    lines = ["count=3", *(f"card.{i}.mib={mib}" for i, mib in enumerate(SIZES))]
    cards = Cards(suite, *lines)
    p = start_plugin(suite, "--recovery-hold=1s", "--publish-interval=500ms", fake=cards.path, mode=None)
    set_mode(c, "share")
    allocatable = lambda: status(c, node)["allocatable"].get(MEM)
    wait_until(lambda: allocatable() == "120", "120 GiB are allocatable", 60)
    wait_until(lambda: len(health(c, node)) == 3, "the inventory has three cards")
    suite.scheduler()
    for gib in (16, 24, 80):
        gpu_pod(c, ns, f"p{gib}", gib)
    for card, gib in enumerate((16, 24, 80)):
        wait_container(c, ns, f"p{gib}")
        env = environment(c, ns, f"p{gib}")
        check_equal((env["ALIYUN_COM_GPU_MEM_IDX"], env["ALIYUN_COM_GPU_MEM_DEV"]), (str(card), str(gib)), f"card of p{gib}")
    gpu_pod(c, ns, "more", 1)
    c.wait_refused(ns, "more", "gpu-mem|GiB")
    cards.event("xid 1 13")
    wait_until(lambda: metric(p.port, "card_xids_total", card="1", xid="13") == 1, "a program's error is counted")
    check_equal((allocatable(), c.events("default", node, "GpuSick")), ("120", []), "and changes nothing")
    cards.say(*lines, "card.1.remap=1")  # until the reset: the kubelet reports every 2 s, and must not miss it
    cards.event("xid 1 48")
    wait_until(lambda: allocatable() == "96", "card 1 has left", 60)
    wait_until(lambda: health(c, node) == ["ok", "sick", "ok"], "the inventory says so")
    cards.say(*lines)
    wait_until(lambda: allocatable() == "120", "card 1 is back", 60)
    wait_until(lambda: health(c, node) == ["ok", "ok", "ok"], "the inventory says so")
    for gib in (16, 24, 80):
        check_equal(c.pod(ns, f"p{gib}")["status"]["phase"], "Running", f"p{gib}, after all this")
    p.stop()
