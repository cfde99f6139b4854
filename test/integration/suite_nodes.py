# SPDX-License-Identifier: Apache-2.0
"""The documents' walk-throughs on simulated nodes: twins of the kubelet that run the real cosched-device-plugin, as clients of either cluster.

Each case starts the nodes that it needs (`cosched-local nodes`), under names of its own, and cordons all others: the manifests are applied as they are, so they
choose their nodes by what they ask for. What a container got is in the file that its node wrote: NODE/pods/UID/CONTAINER/env.
"""
import contextlib
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile

from harness import BUILD, MERGE, ROOT, Cluster, Suite, case, check, check_equal, wait_until
from suite_webhook import start_webhook

DOCUMENTS = os.path.join(ROOT, "deploy/examples/documents")
MODE = "ack.node.gpu.schedule"
MEM, COUNT, PERCENT, WHOLE, EXCLUSIVE = ("aliyun.com/gpu-mem", "aliyun.com/gpu-count", "aliyun.com/gpu-core.percentage", "aliyun.com/gpu", "nvidia.com/gpu")
CLAIM = "scheduler.framework.gpushare.allocation"
GROUP, VISIBLE = "topology.kubernetes.io/gpu-group", "topology.kubernetes.io/gpu-visible"
SANITIZERS = ("AddressSanitizer", "LeakSanitizer", "runtime error:", "ThreadSanitizer")
T4 = {"model": "Tesla T4", "mib": 15360}
V100 = {"model": "Tesla V100-SXM2-32GB", "mib": 32510}


def gpu_node(name, mode, card, count, **more):
    labels = {**({MODE: mode} if mode else {}), **more.pop("labels", {})}
    return {"name": name, "labels": labels, "cpu": "32", "gpus": {**card, "count": count}, "isolation": "none", **more}


class Nodes:
    """`cosched-local nodes` with a directory of its own; the Node objects and the directory go when the case ends."""

    def __init__(self, suite, specs):
        self.suite, self.cluster = suite, suite.cluster
        self.specs = {s["name"]: s for s in specs}
        # In /tmp: the sockets below it have names of at most 107 bytes.
        self.directory = tempfile.mkdtemp(prefix="cn", dir="/tmp")
        suite.stack.callback(shutil.rmtree, self.directory)
        self.file = os.path.join(self.directory, "nodes.json")
        with open(self.file, "w", encoding="utf-8") as f:
            json.dump({"nodes": [self.with_account(spec) for spec in specs]}, f)
        cordon_others(suite, self.specs)
        for name in self.specs:
            suite.stack.callback(self.cluster.do, "DELETE", f"/api/v1/nodes/{name}", None, "application/json", (200, 404))
        suite.stack.callback(self.check_plugins)
        suite.stack.callback(self.keep_logs)
        self.program = None
        self.start()
        suite.stack.callback(self.stop)

    def with_account(self, spec):
        """The node, whose device plugin has an account of its own where the cluster's programs are not administrators."""
        if not self.cluster.accounts or spec.get("virtual"):
            return spec
        args = spec.get("pluginArgs", [])
        return {**spec, "pluginArgs": [f"--kubeconfig={self.cluster.kubeconfig_of('device-plugin', args)}", *args]}

    def start(self):
        self.run()
        self.wait_ready()

    def run(self):
        self.program = self.suite.program("cosched-local", "nodes", f"--kubeconfig={self.cluster.kubeconfig}", f"--nodes={self.file}",
                                          f"--state-dir={self.directory}")
        self.program.wait_output("^nodes are running")

    def wait_ready(self):
        for name in self.specs:
            wait_until(lambda n=name: any(x["type"] == "Ready" and x["status"] == "True" for x in self.get(n)["status"]["conditions"])
                       and not [t for t in self.get(n)["spec"].get("taints", []) if t["key"].startswith("node.kubernetes.io/")], f"node {name} is Ready")

    def stop(self):
        if self.program.process.poll() is None:
            self.program.stop(seconds=10)

    def keep_logs(self):
        """Beside the programs' own, for whoever looks at a failure."""
        for name in self.specs:
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(os.path.join(self.directory, name, "device-plugin.log"),
                                os.path.join(self.suite.directory, f"device-plugin-{name}-{os.path.basename(self.directory)}.log"))

    def check_plugins(self):
        for name in self.specs:
            with contextlib.suppress(FileNotFoundError):
                text = self.plugin_log(name)
                check(not any(mark in text for mark in SANITIZERS), f"the device plugin of {name}:\n{text[-6000:]}")

    def plugin_log(self, name):
        with open(os.path.join(self.directory, name, "device-plugin.log"), encoding="utf-8", errors="replace") as f:
            return f.read()

    def plugin_pid(self, name):
        """The process of the node's device plugin, by its arguments: not every kernel lists the children of a process."""
        mine = {f"--node-name={name}", f"--state-dir={self.directory}/{name}/state"}
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as f:
                if mine <= set(f.read().split("\0")):
                    return int(path.split("/")[2])
        return None

    def get(self, name):
        return self.cluster.get(f"/api/v1/nodes/{name}")

    def offers(self, name, **what):
        """Waits until node status shows exactly these of our resources, in capacity and allocatable; one that is 0 may be absent."""
        expected = {r: str(what.get(k, 0)) for k, r in (("mem", MEM), ("count", COUNT), ("percent", PERCENT), ("whole", WHOLE), ("exclusive", EXCLUSIVE))}

        def ask():
            status = self.get(name)["status"]
            seen = [{r: status[kind].get(r, "0") for r in expected} for kind in ("capacity", "allocatable")]
            if seen != [expected, expected]:
                raise KeyError(f"{name}: expected {expected}, capacity and allocatable are {seen}")
            return True

        wait_until(ask, f"what {name} offers", 30)

    def version(self):
        return self.cluster.get("/api/v1/nodes")["metadata"]["resourceVersion"]

    def wait_back(self, name, version, gib):
        """Since that version the node showed 0 GiB and then, last of all, this amount: what was there before cannot be taken for it."""

        def ask():
            objects = self.cluster.watch(f"/api/v1/nodes?fieldSelector=metadata.name%3D{name}", version)
            seen = [o["status"]["allocatable"].get(MEM) for o in objects]
            if "0" not in seen or seen[-1] != gib:
                raise KeyError(seen)
            return True

        wait_until(ask, f"{name} offers 0 and then {gib} GiB", 30)

    def uuids(self, name):
        """Each card's uuid, from the inventory that the device plugin published."""
        cards = json.loads(self.get(name)["metadata"]["annotations"]["cosched.io/gpu-inventory"])["cards"]
        return {str(card["i"]): card["uuid"] for card in cards}

    def environment(self, pod, container):
        path = os.path.join(self.directory, pod["spec"]["nodeName"], "pods", pod["metadata"]["uid"], container, "env")
        with open(path, encoding="utf-8") as f:
            return dict(line.rstrip("\n").split("=", 1) for line in f)

    def devices(self, pod, container):
        """Mounts, device files and CDI names that it was given, each a line."""
        path = os.path.join(self.directory, pod["spec"]["nodeName"], "pods", pod["metadata"]["uid"], container, "devices")
        with open(path, encoding="utf-8") as f:
            return f.read().splitlines()


class Embedded(Nodes):
    """A cosched-local of its own with nodes inside, whose faults are made by its endpoint. suite is a second one, of that cluster."""

    def run(self):
        self.program = self.suite.program("cosched-local", "--state-dir", self.directory, "--port", "0", "--nodes", self.file)
        self.program.wait_output("^export KUBECONFIG=")
        kubeconfig = re.search(r"^export KUBECONFIG=(.*)$", self.program.output(), re.M)[1]
        with open(kubeconfig, encoding="utf-8") as f:
            url = re.search(r"server: *\"?([^\s\"]+)", f.read())[1]
        within = lambda name: os.path.join(self.directory, name)
        self.cluster = Cluster({"KUBECONFIG": kubeconfig, "K8S_DIR": self.directory, "K8S_URL": url, "K8S_CA": within("ca.crt"),
                                "K8S_TOKEN_FILE": within("token")}, "local")
        deaths = self.suite.deaths
        self.suite = Suite(self.cluster, self.suite.directory)
        self.suite.deaths = deaths

    def fault(self, **what):
        self.cluster.do("POST", "/cosched/faults", what)


def cordon_others(suite, mine):
    """No other node takes pods while the case runs."""
    c = suite.cluster
    for node in c.get("/api/v1/nodes")["items"]:
        name = node["metadata"]["name"]
        if name not in mine and not node["spec"].get("unschedulable") and name not in getattr(suite, "own_nodes", ()):
            c.do("PATCH", f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}}, MERGE)
            suite.stack.callback(c.do, "PATCH", f"/api/v1/nodes/{name}", {"spec": {"unschedulable": None}}, MERGE, (200, 404))
    suite.own_nodes = {*getattr(suite, "own_nodes", ()), *mine}


def document(name):
    return os.path.join(DOCUMENTS, name)


def hook(suite, ns):
    """The webhook also sees this namespace, which is there already, until the case ends."""
    c = suite.cluster
    start_webhook(suite)
    c.do("PATCH", f"/api/v1/namespaces/{ns}", {"metadata": {"labels": {"hook": "yes"}}}, MERGE)
    suite.stack.callback(c.do, "PATCH", f"/api/v1/namespaces/{ns}", {"metadata": {"labels": {"hook": None}}}, MERGE, (200, 404))


def apply(suite, ns, name):
    """kubectl apply, and delete when the case ends."""
    c = suite.cluster
    c.kubectl("apply", "-n", ns, "-f", document(name))
    suite.stack.callback(gone, c, ns, name)


def gone(c, ns, name):
    c.kubectl("delete", "-n", ns, "-f", document(name), "--ignore-not-found", "--wait=false")


def labelled(c, ns, selector):
    """Pods that are there to stay."""
    items = c.get(f"/api/v1/namespaces/{ns}/pods?labelSelector={selector}")["items"]
    return [p for p in items if "deletionTimestamp" not in p["metadata"]]


def describe(pods):
    return [(p["metadata"]["name"], p["spec"].get("nodeName"), p["status"].get("phase"),
             [x.get("message") for x in p["status"].get("conditions", []) if x["type"] == "PodScheduled"]) for p in pods]


def wait_running(c, ns, selector, number, seconds=30):
    def ask():
        pods = labelled(c, ns, selector)
        if len(pods) != number or any(p["status"].get("phase") != "Running" for p in pods):
            raise KeyError(describe(pods))
        return pods

    return wait_until(ask, f"{number} pods with {selector} run", seconds)


def wait_pod(c, ns, name, phase="Running", seconds=30):
    def ask():
        pod = c.pod(ns, name)
        if pod["status"].get("phase") != phase:
            raise KeyError(describe([pod]))
        return pod

    return wait_until(ask, f"{name} is {phase}", seconds)


def memory_pod(c, ns, name, gib, node, **more):
    return c.create_pod(ns, name, limits={MEM: str(gib)}, node_selector={"kubernetes.io/hostname": node} if node else None, **more)


def by_card(pods):
    """GiB by card, from the claims."""
    sums = {}
    for pod in pods:
        for cards in json.loads(pod["metadata"]["annotations"][CLAIM]).values():
            for card, gib in cards.items():
                sums[int(card)] = sums.get(int(card), 0) + gib
    return sums


def folder_of(shares, uid):
    """The isolation folder of the pod's only container. Folders are named by ids; their owner is in them."""
    owners = {}
    for path in glob.glob(f"{shares}/*/owner"):
        with open(path, encoding="ascii") as f:
            owners[f.read().split(" ")[-1]] = os.path.dirname(path)
    return owners[uid]


def check_environment(nodes, pod, container="main"):
    """The container got the card that the claim names, with contract section 2's variables."""
    (card, gib), = json.loads(pod["metadata"]["annotations"][CLAIM])["0"].items()
    node = pod["spec"]["nodeName"]
    expected = {"NVIDIA_VISIBLE_DEVICES": nodes.uuids(node)[card], "ALIYUN_COM_GPU_MEM_IDX": card, "ALIYUN_COM_GPU_MEM_POD": str(gib),
                "ALIYUN_COM_GPU_MEM_CONTAINER": str(gib), "ALIYUN_COM_GPU_MEM_DEV": "15"}
    env = nodes.environment(pod, container)
    check_equal({k: env.get(k) for k in expected}, expected, f"environment of {pod['metadata']['name']}")
    return env


def pod_group_crds(suite):
    """PodGroup is built into cosched-local; a real cluster gets our definitions, before the scheduler starts to look for them."""
    c = suite.cluster
    if c.target == "local":
        return
    path = os.path.join(ROOT, "deploy/crds/podgroups.yaml")
    groups = ("scheduling.sigs.k8s.io", "scheduling.x-k8s.io")
    away = lambda: all(c.request("GET", f"/apis/{g}/v1alpha1/podgroups")[0] == 404 for g in groups)

    def remove():
        c.kubectl("delete", "-f", path, "--ignore-not-found")
        wait_until(away, "the PodGroups' definitions are gone")

    c.kubectl("apply", "-f", path)
    suite.stack.callback(remove)
    for g in groups:
        wait_until(lambda g=g: c.request("GET", f"/apis/{g}/v1alpha1/podgroups")[0] == 200, f"podgroups.{g} are served")


@case("the device plugin of a simulated node looks for nothing of this machine's: every place that it has by default is another, in the node's directory")
def own_places(suite):
    text = subprocess.run([os.path.join(BUILD, "bin/cosched-device-plugin"), "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
    options = re.findall(r"^ {7}--(\S+?)=.*\n((?: {14}.*\n)+)", text, re.M)
    # Processes are this machine's, also those of simulated pods; without cards of NVIDIA's nobody asks sysfs.
    places = {name for name, help_ in options if re.search(r"Default:\s+/\S", help_)} - {"proc", "sysfs"}
    check({"cgroup-root", "cdi-dir", "isolation-dir", "state-dir", "kubelet-dir"} <= places, sorted(places))
    nodes = Nodes(suite, [gpu_node("places-1", "share", T4, 1)])
    with open(f"/proc/{wait_until(lambda: nodes.plugin_pid('places-1'), 'the plugin runs')}/cmdline", encoding="utf-8") as f:
        given = dict(arg[2:].split("=", 1) for arg in f.read().split("\0")[1:] if "=" in arg)
    home = os.path.join(nodes.directory, "places-1") + "/"
    check_equal({name for name in places if not given.get(name, "").startswith(home)}, set(), "options that are left to this machine")


@case("a pod that a cut-off node was told of, and that is gone when the node is back, is not admitted there: its card is free", needs={"local"})
def ghosts(suite):
    nodes = Embedded(suite, [gpu_node("ghost-1", "share", T4, 1), gpu_node("ghost-2", "share", T4, 1)])
    with nodes.suite.stack:
        c, ns = nodes.cluster, nodes.suite.namespace()
        nodes.offers("ghost-1", mem=15, count=1)

        def told(name):
            """What was told before this pod, the nodes know now: one reflector tells all of them."""
            c.create_pod(ns, name, nodeName="ghost-2", scheduler=None)
            wait_pod(c, ns, name)

        nodes.fault(fault="partition-node", node="ghost-1", bad=True)
        c.create_pod(ns, "ghost", limits={MEM: "15"}, nodeName="ghost-1", scheduler=None)
        told("after-its-coming")
        # It goes while nobody watches, and the past is forgotten: only the next list shows that it is gone.
        nodes.fault(fault="drop", match={"watch": True})
        nodes.fault(fault="cut-watches")
        c.delete_pod(ns, "ghost")
        nodes.fault(fault="compact")
        c.do("DELETE", "/cosched/faults")
        told("after-its-going")
        nodes.fault(fault="partition-node", node="ghost-1", bad=False)
        c.create_pod(ns, "next", limits={MEM: "15"}, nodeName="ghost-1", scheduler=None)
        wait_until(lambda: c.pod(ns, "next")["status"].get("phase") in ("Running", "Failed"), "the next pod is decided")
        check_equal(c.pod(ns, "next")["status"]["phase"], "Running", c.pod(ns, "next")["status"].get("message"))


@case("nodes in every mode show the contract's resources, as the document's commands print them, and a new label changes the mode")
def modes(suite):
    c = suite.cluster
    with open(os.path.join(ROOT, "test/local/fixtures/demo.json"), encoding="utf-8") as f:
        specs = json.load(f)["nodes"]
    nodes = Nodes(suite, specs + [gpu_node("modes-mps", "mps", T4, 2), gpu_node("modes-none", None, V100, 1)])
    at = "cn-shanghai.192.0.2."
    for name, what in ((at + "101", {"exclusive": 4}), (at + "102", {"mem": 15, "count": 1}), (at + "109", {"mem": 60, "count": 4}),
                       (at + "110", {"mem": 60, "count": 4}), (at + "111", {"mem": 30, "percent": 200, "count": 2}), (at + "112", {"whole": 2}),
                       (at + "120", {}), ("virtual-kubelet-cn-shanghai-a", {}), ("modes-mps", {"mem": 30, "count": 2}), ("modes-none", {"exclusive": 1})):
        nodes.offers(name, **what)
    # The document's "verify" steps.
    lines = lambda name, pattern: {x.strip() for x in c.kubectl("get", "nodes", name, "-o", "yaml").splitlines() if re.search(pattern, x) and '{' not in x}
    check_equal(lines(at + "109", r"aliyun\.com/gpu-mem"), {'aliyun.com/gpu-mem: "60"'}, "cgpu")
    check_equal(lines(at + "111", r"aliyun\.com/gpu-core\.percentage|aliyun\.com/gpu-mem"),
                {'aliyun.com/gpu-core.percentage: "200"', 'aliyun.com/gpu-mem: "30"'}, "core_mem")
    check_equal(lines(at + "112", r"aliyun\.com/gpu"), {'aliyun.com/gpu: "2"'}, "topology")
    table = c.kubectl("get", "nodes", "-L", "aliyun.accelerator/nvidia_name,aliyun.accelerator/nvidia_mem,aliyun.accelerator/nvidia_count")
    row = next(line.split() for line in table.splitlines() if line.startswith(at + "101"))
    check_equal((row[1], *row[-3:]), ("Ready", "Tesla-V100-SXM2-32GB", "32510MiB", "4"), "status and card model labels")
    # One mode at a time, and back.
    c.kubectl("label", "node", at + "101", f"{MODE}=topology", "--overwrite")
    nodes.offers(at + "101", whole=4)
    c.kubectl("label", "node", at + "101", f"{MODE}=default", "--overwrite")
    nodes.offers(at + "101", exclusive=4)


@case("binpack fills card 0 before card 1, and spread goes to the emptiest card: the document's figures")
def placement(suite):
    c, ns = suite.cluster, suite.namespace()
    nodes = Nodes(suite, [gpu_node("pack-1", "cgpu", T4, 4, labels={"ack.node.gpu.placement": "binpack"}),
                          gpu_node("spread-1", "cgpu", T4, 4, labels={"ack.node.gpu.placement": "spread"})])
    suite.scheduler()
    nodes.offers("pack-1", mem=60, count=4)
    nodes.offers("spread-1", mem=60, count=4)

    def place(name, gib, node):
        memory_pod(c, ns, name, gib, node)
        pod = wait_pod(c, ns, name)
        check_environment(nodes, pod)
        return pod

    packed = [place(f"pack-{i}", gib, "pack-1") for i, gib in enumerate((9, 6, 9))]
    check_equal(by_card(packed), {0: 15, 1: 9}, "binpack: 15/15 9/15 0/15 0/15, GiB by card")
    spread = [place(f"spread-{i}", 4, "spread-1") for i in range(3)]
    check_equal(sorted(by_card(spread).values()), [4, 4, 4], "spread: three cards with 4/15 and one with 0/15, GiB by card")
    spread.append(place("spread-3", 2, "spread-1"))
    check_equal(sorted(by_card(spread).values()), [2, 4, 4, 4], "spread: the fourth goes to the empty card")
    least = next(card for card, gib in by_card(spread).items() if gib == 2)
    fifth = place("spread-4", 1, "spread-1")
    check_equal(by_card([fifth]), {least: 1}, "spread: the fifth goes to the emptiest card")


@case("the shared-GPU document's Job runs on a share node, and its container's environment names its card and its 3 GiB")
def gpu_share(suite):
    c, ns = suite.cluster, suite.namespace()
    nodes = Nodes(suite, [gpu_node("share-1", "share", T4, 1)])
    suite.scheduler()
    nodes.offers("share-1", mem=15, count=1)
    apply(suite, ns, "gpu-share.yaml")
    pod, = wait_running(c, ns, "app=gpu-share-sample", 1)
    check_equal((pod["spec"]["nodeName"], by_card([pod])), ("share-1", {0: 3}), "node and claim")
    check_equal(pod["metadata"]["annotations"]["scheduler.framework.gpushare.assigned"], "true", "assigned before the container starts")
    env = check_environment(nodes, pod, "gpu-share-sample")
    check_equal(env.get("CGPU_DISABLE"), "true", "CGPU_DISABLE in mode share")
    # 12 GiB are left; what the pod held is free again when it is gone.
    memory_pod(c, ns, "rest", 13, "share-1")
    c.wait_refused(ns, "rest", r"asked: 13, largest free: 12 on share-1|no card with 13 GiB .*largest free: 12 GiB")
    gone(c, ns, "gpu-share.yaml")
    check_equal(by_card([wait_pod(c, ns, "rest")]), {0: 13}, "claim of the pod that waited")


@case("the gang document: a PodGroup and its Job of 3 run together on the node with 4 cards, each pod with a card of its own")
def gang(suite):
    c = suite.cluster
    pod_group_crds(suite)
    hook(suite, "default")
    suite.scheduler()
    nodes = Nodes(suite, [gpu_node("gang-1", "default", V100, 4)])
    nodes.offers("gang-1", exclusive=4)
    apply(suite, "default", "gang-podgroup.yaml")
    apply(suite, "default", "gang-job.yaml")
    pods = wait_running(c, "default", "pod-group.scheduling.sigs.k8s.io=demo-job-podgroup", 3)
    check_equal({p["spec"]["nodeName"] for p in pods}, {"gang-1"}, "their node")
    cards = [nodes.environment(p, "demo-job")["NVIDIA_VISIBLE_DEVICES"] for p in pods]
    check(len(set(cards)) == 3 and set(cards) <= set(nodes.uuids("gang-1").values()), f"cards: {cards}")
    table = c.kubectl("get", "podgroups.scheduling.sigs.k8s.io", "-n", "default")
    check(re.search(r"^NAME +PHASE +MINMEMBER +RUNNING +AGE\ndemo-job-podgroup .* 3 ", table), table)


@case("the gang document's quota walk-through: two of three pods wait and say so; without the quota all four run")
def quota(suite):
    c = suite.cluster
    wait_until(lambda: c.request("GET", "/api/v1/namespaces/test-gang")[0] == 404, "an earlier test-gang is gone", 60)
    pod_group_crds(suite)
    c.kubectl("create", "ns", "test-gang")
    suite.stack.callback(suite.remove_namespace, "test-gang")
    hook(suite, "test-gang")
    suite.scheduler()
    nodes = Nodes(suite, [gpu_node("quota-1", "default", V100, 4)])
    nodes.offers("quota-1", exclusive=4)
    selector = "pod-group.scheduling.sigs.k8s.io=demo-job-podgroup"
    for name in ("gang-example-quota.yaml", "gang-example-podgroup.yaml"):
        apply(suite, "test-gang", name)
    hard = lambda: c.get("/api/v1/namespaces/test-gang/resourcequotas/object-counts").get("status", {}).get("hard")
    check_equal(wait_until(hard, "the quota is in force"), {"pods": "2"}, "the quota")
    apply(suite, "test-gang", "gang-example-job.yaml")
    pods = wait_until(lambda: (lambda p: p if len(p) == 2 else None)(labelled(c, "test-gang", selector)), "two pods exist")
    for pod in pods:
        c.wait_refused("test-gang", pod["metadata"]["name"], "2 of 3 pods exist", reason="WaitingForGang")
    check_equal([(x, p) for _, x, p, _ in describe(labelled(c, "test-gang", selector))], [(None, "Pending")] * 2, "two pods, neither with a node")
    gone(c, "test-gang", "gang-example-quota.yaml")
    pods = wait_running(c, "test-gang", selector, 4, 60)
    check_equal(len({nodes.environment(p, "demo-job")["NVIDIA_VISIBLE_DEVICES"] for p in pods}), 4, "cards in use")


@case("a quota of requests.aliyun.com/gpu-mem admits three of a gang's four pods: they wait and hold nothing; a larger one lets all run, and is used up", needs=("real",))
def quota_of_memory(suite):
    """The example in deploy/examples/features; object counts alone are what cosched-local enforces."""
    c, ns = suite.cluster, suite.namespace()
    suite.scheduler()
    nodes = Nodes(suite, [gpu_node("memory-1", "share", T4, 4)])
    nodes.offers("memory-1", mem=60, count=4)
    c.kubectl("-n", ns, "apply", "-f", os.path.join(ROOT, "deploy/examples/features/quota.yaml"))
    path = f"/api/v1/namespaces/{ns}/resourcequotas/gpu"
    used = lambda: c.get(path).get("status", {}).get("used", {}).get("requests.aliyun.com/gpu-mem")
    wait_until(lambda: used() == "0", "the quota is in force")
    selector = "pod-group.scheduling.sigs.k8s.io/name=train"
    labels = {"pod-group.scheduling.sigs.k8s.io/name": "train", "pod-group.scheduling.sigs.k8s.io/min-available": "4"}
    container = {"name": "main", "image": "busybox:test", "resources": {"limits": {MEM: "8"}}}
    c.request("POST", f"/apis/batch/v1/namespaces/{ns}/jobs", {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}, "spec": {"parallelism": 4, "completions": 4, "template": {
            "metadata": {"labels": labels}, "spec": {"schedulerName": "ack-co-scheduler", "restartPolicy": "Never", "containers": [container]}}}})
    pods = wait_until(lambda: (lambda p: p if len(p) == 3 else None)(labelled(c, ns, selector)), "three pods exist")
    for pod in pods:
        c.wait_refused(ns, pod["metadata"]["name"], "3 of 4 pods exist", reason="WaitingForGang")
    wait_until(lambda: used() == "24", "the quota is used up")
    check_equal([(x, p) for _, x, p, _ in describe(labelled(c, ns, selector))], [(None, "Pending")] * 3, "three pods, none with a node")
    c.request("PATCH", path, {"spec": {"hard": {"requests.aliyun.com/gpu-mem": "32"}}}, MERGE)
    wait_running(c, ns, selector, 4, 90)
    wait_until(lambda: used() == "32", "the larger quota is used up")


@case("the TFJob document: with room for one pod none starts (min-available is 2), with room for all five all run")
def tfjob(suite):
    c, ns = suite.cluster, suite.namespace()
    suite.scheduler()
    Nodes(suite, [{"name": "tf-small", "cpu": "16"}])
    manifest = json.loads(c.kubectl("annotate", "--local", "-f", document("co-scheduler-tfjob.yaml"), "-o", "json", "cosched-test=1"))
    if c.target == "local":
        apply(suite, ns, "co-scheduler-tfjob.yaml")
    else:  # there is no TFJob operator: its pods, as it makes them
        for role, replica in manifest["spec"]["tfReplicaSpecs"].items():
            for i in range(replica["replicas"]):
                metadata = {**replica["template"]["metadata"], "name": f"tf-smoke-gpu-{role.lower()}-{i}"}
                c.do("POST", f"/api/v1/namespaces/{ns}/pods", {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": replica["template"]["spec"]})
    selector = "pod-group.scheduling.sigs.k8s.io/name=tf-smoke-gpu"
    pods = wait_until(lambda: (lambda p: p if len(p) == 5 else None)(labelled(c, ns, selector)), "five pods exist")
    for pod in pods:
        c.wait_refused(ns, pod["metadata"]["name"], r"room for 1 of 2 pods.*too little cpu \(asked: 10, largest free: \d+m? on tf-small\)")
    check(not any(p["spec"].get("nodeName") for p in labelled(c, ns, selector)), "a gang below its minimum holds a node")
    Nodes(suite, [{"name": "tf-large", "cpu": "40"}])
    pods = wait_running(c, ns, selector, 5)
    check_equal(sorted(p["metadata"]["name"] for p in pods), ["tf-smoke-gpu-ps-0"] + [f"tf-smoke-gpu-worker-{i}" for i in range(4)], "the pods")
    where = [p["spec"]["nodeName"] for p in pods]
    check_equal((where.count("tf-small"), where.count("tf-large")), (1, 4), "pods of 10 CPUs on 16 and 40 CPUs")


@case("a pod with aliyun.com/gpu: 2 gets both cards of the topology node, which takes no other GPU pod")
def topology(suite):
    c, ns = suite.cluster, suite.namespace()
    nodes = Nodes(suite, [gpu_node("topo-1", "topology", V100, 2, links=[["X", "NV2"], ["NV2", "X"]])])
    suite.scheduler()
    nodes.offers("topo-1", whole=2)
    c.create_pod(ns, "both", limits={WHOLE: "2"})
    pod = wait_pod(c, ns, "both")
    annotations = pod["metadata"]["annotations"]
    check_equal((annotations[GROUP], annotations[VISIBLE]), ("0,1", "0,1"), "cards given and seen")
    uuids = nodes.uuids("topo-1")
    check_equal(nodes.environment(pod, "main")["NVIDIA_VISIBLE_DEVICES"].split(","), [uuids["0"], uuids["1"]], "cards in the container")
    c.create_pod(ns, "third", limits={WHOLE: "1"})
    memory_pod(c, ns, "shared", 1, "topo-1")
    c.wait_refused(ns, "third", r"too little aliyun.com/gpu \(asked: 1, largest free: 0 on topo-1\)")
    c.wait_refused(ns, "shared", r"is in mode topology|does not offer aliyun.com/gpu-mem")
    c.delete_pod(ns, "both")
    wait_pod(c, ns, "third")


@case("the plugin is killed, then the whole node restarts: what it offers comes back, and pods keep their cards")
def restarts(suite):
    c, ns = suite.cluster, suite.namespace()
    nodes = Nodes(suite, [gpu_node("again-1", "cgpu", T4, 2)])
    suite.scheduler()
    nodes.offers("again-1", mem=30, count=2)
    memory_pod(c, ns, "first", 10, "again-1")
    first = check_environment(nodes, wait_pod(c, ns, "first"))
    version = nodes.version()
    os.kill(nodes.plugin_pid("again-1"), signal.SIGKILL)
    nodes.wait_back("again-1", version, "30")
    memory_pod(c, ns, "second", 10, "again-1")
    second = check_environment(nodes, wait_pod(c, ns, "second"))
    version = nodes.version()
    nodes.stop()
    nodes.start()
    nodes.wait_back("again-1", version, "30")
    nodes.offers("again-1", mem=30, count=2)
    memory_pod(c, ns, "third", 5, "again-1")
    check_environment(nodes, wait_pod(c, ns, "third"))
    for name, env in (("first", first), ("second", second)):
        pod = c.pod(ns, name)
        check_equal(pod["status"]["phase"], "Running", name)
        check_equal(pod["status"]["containerStatuses"][0]["restartCount"], 0, f"restarts of {name}")
        check_equal(check_environment(nodes, pod), env, f"environment of {name}, before and after")
    check_equal(sorted(by_card(c.pods(ns)).values()), [10, 15], "GiB by card")


@case("the kubelet restarts, a card falls ill and recovers: what the node offers follows, and pods keep their cards", needs={"local"})
def faults(suite):
    nodes = Embedded(suite, [gpu_node("ill-1", "cgpu", T4, 2), {"name": "ill-2", "cpu": "1", "memory": "1Gi", "virtual": True, "gpus": {**T4, "count": 1}}])
    with nodes.suite.stack:
        c, ns = nodes.cluster, nodes.suite.namespace()
        for what, wanted in (({"fault": "restart-kubelet", "node": "no-1"}, "there is no simulated node no-1"),
                             ({"fault": "card", "node": "ill-1", "card": 2}, "node ill-1 has no card 2"),
                             ({"fault": "card", "node": "ill-2", "card": 0}, "node ill-2 has no kubelet that would see a card fall ill")):
            status, reply = c.request("POST", "/cosched/faults", what)
            check_equal((status, reply.get("message")), (400, wanted), f"{what}")
        nodes.suite.scheduler()
        nodes.offers("ill-1", mem=30, count=2)
        memory_pod(c, ns, "first", 10, "ill-1")
        first = check_environment(nodes, wait_pod(c, ns, "first"))
        plugin, version = nodes.plugin_pid("ill-1"), nodes.version()
        nodes.fault(fault="restart-kubelet", node="ill-1")
        nodes.wait_back("ill-1", version, "30")
        memory_pod(c, ns, "second", 10, "ill-1")
        second = check_environment(nodes, wait_pod(c, ns, "second"))
        check(first["ALIYUN_COM_GPU_MEM_IDX"] != second["ALIYUN_COM_GPU_MEM_IDX"], f"two pods of 10 GiB on one card of 15 GiB: {first} {second}")
        check_equal(nodes.plugin_pid("ill-1"), plugin, "process of the device plugin: it lives through a restart of the kubelet")
        # An empty card falls ill: its ids are not allocatable, and the pod that would fit there waits until it has recovered.
        card = int(second["ALIYUN_COM_GPU_MEM_IDX"])
        c.delete_pod(ns, "second")
        wait_until(lambda: c.request("GET", f"/api/v1/namespaces/{ns}/pods/second")[0] == 404, "the second pod is gone")
        nodes.fault(fault="card", node="ill-1", card=card, bad=True)
        wait_until(lambda: nodes.get("ill-1")["status"]["allocatable"][MEM] == "15", "15 GiB are allocatable")
        check_equal(nodes.get("ill-1")["status"]["capacity"][MEM], "30", "capacity")
        memory_pod(c, ns, "third", 5, "ill-1")
        check_equal(by_card([wait_pod(c, ns, "third")]), {1 - card: 5}, "claim while a card is ill")
        memory_pod(c, ns, "fourth", 5, "ill-1")
        c.wait_refused(ns, "fourth", rf"too little aliyun.com/gpu-mem \(asked: 5, largest free: 0 on ill-1\)|no card with 5 GiB free|GPU{card} unhealthy \(it says so itself\)")
        nodes.fault(fault="card", node="ill-1", card=card, bad=False)
        check_equal(by_card([wait_pod(c, ns, "fourth")]), {card: 5}, "claim when it has recovered")
        pod = c.pod(ns, "first")
        check_equal((pod["status"]["phase"], check_environment(nodes, pod)), ("Running", first), "the first pod, after all this")


@case("a pod that cannot fit says why, naming what it asked for and the most that is free, or is there at all")
def refusals(suite):
    c, ns = suite.cluster, suite.namespace()
    nodes = Nodes(suite, [gpu_node("no-share", "share", T4, 1), gpu_node("no-core", "core_mem", T4, 2), gpu_node("no-topo", "topology", V100, 2),
                          {"name": "no-cpu", "cpu": "8", "memory": "16Gi"}])
    suite.scheduler()
    nodes.offers("no-share", mem=15, count=1)
    nodes.offers("no-core", mem=30, percent=200, count=2)
    nodes.offers("no-topo", whole=2)
    memory_pod(c, ns, "nine", 9, "no-core")
    memory_pod(c, ns, "ten", 10, "no-core")
    memory_pod(c, ns, "six", 6, "no-share")
    for name in ("nine", "ten", "six"):
        wait_pod(c, ns, name)
    rows = [  # limits, the sentence
        ({MEM: "10"}, r"no card with 10 GiB free \(largest free: 6 GiB on no-core/GPU\d\)"),
        ({MEM: "16"}, r"no card with 16 GiB even when empty \(largest: 15 GiB on no-core/GPU0\)"),
        ({WHOLE: "3"}, r"fewer than 3 cards even when empty \(most: 2 on no-topo\)"),
        ({"cpu": "33"}, r"too little cpu even when empty \(asked: 33, largest: \d+ on no-(share|core|topo)\)"),
        ({EXCLUSIVE: "1"}, r"do not offer nvidia.com/gpu"),
    ]
    for i, (limits, _sentence) in enumerate(rows):
        c.create_pod(ns, f"large-{i}", limits=limits)
    for i, (_limits, sentence) in enumerate(rows):
        c.wait_refused(ns, f"large-{i}", r"^0/\d+ nodes fit: .*" + sentence)


@case("a pod that did not come through the scheduler gets a card by the node's policy, is recorded, and the scheduler counts it there")
def stray(suite):
    c, ns = suite.cluster, suite.namespace()
    nodes = Nodes(suite, [gpu_node("stray-1", "share", T4, 2)])
    nodes.offers("stray-1", mem=30, count=2)
    suite.scheduler()
    memory_pod(c, ns, "first", 4, "stray-1")
    card, = by_card([wait_pod(c, ns, "first")])
    c.create_pod(ns, "stray", limits={MEM: "3"}, scheduler=None, nodeName="stray-1")
    wait_pod(c, ns, "stray")
    pod = wait_until(lambda: (lambda p: p if p["metadata"].get("annotations", {}).get("scheduler.framework.gpushare.assigned") == "true" and
                              CLAIM in p["metadata"]["annotations"] else None)(c.pod(ns, "stray")), "the claim is recorded, and in use")
    check_environment(nodes, pod)
    check_equal(by_card([pod]), {card: 3}, "binpack: beside the first")
    c.create_pod(ns, "large", limits={MEM: "16"}, scheduler=None, nodeName="stray-1")
    status = wait_pod(c, ns, "large", "Failed")["status"]
    check(re.search(r"large: no card has 16 GiB free beside what others were promised \(largest free: 15 GiB on card \d\)", status["message"]), status)
    # Where the stray pod is is known: the other card is whole, this one has 8 GiB left and not one more.
    memory_pod(c, ns, "whole", 15, "stray-1")
    check_equal(by_card([wait_pod(c, ns, "whole")]), {1 - card: 15}, "the other card")
    memory_pod(c, ns, "more", 9, "stray-1")
    c.wait_refused(ns, "more", r"too little aliyun.com/gpu-mem \(asked: 9, largest free: 8 on stray-1\)|no card with 9 GiB free")
    memory_pod(c, ns, "rest", 8, "stray-1")
    check_environment(nodes, wait_pod(c, ns, "rest"))
