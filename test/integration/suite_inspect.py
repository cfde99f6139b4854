# SPDX-License-Identifier: Apache-2.0
"""kubectl inspect cgpu: the GPU documents' walk-throughs with the tables that they print, and what the program does with clusters that are not as they should be.

The walk-throughs run on simulated nodes (see suite_nodes). Other nodes of the cluster may be in a shared mode as well, so each table is asked for with the node's name;
without it the node must have the same row. The bad clusters are made here: a server on loopback that answers both lists with whatever a case wants, and counts the questions.
"""
import contextlib
import http.server
import json
import os
import pty
import re
import select
import signal
import subprocess
import threading
import time

from harness import BUILD, ROOT, Failed, case, check, check_equal, wait_until
from suite_nodes import (EXCLUSIVE, GROUP, MEM, PERCENT, SANITIZERS, T4, V100, VISIBLE, WHOLE, Nodes, apply, gpu_node, memory_pod, wait_pod, wait_running)

PLUGIN = "kubectl-inspect-cgpu"
MODEL = "aliyun.accelerator/nvidia_name"
INVENTORY = "cosched.io/gpu-inventory"


def environment(kubeconfig, **more):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("KUBE", "COSCHED_")) and k not in ("NO_COLOR", "TERM")}
    return {**kept, "PATH": f"{BUILD}/bin:{os.environ['PATH']}", "KUBECONFIG": kubeconfig, **more}


def inspect(kubeconfig, *args, binary=None, status=0):
    """(standard output, standard error). binary: kubectl, which finds the program in PATH."""
    command = [binary, "inspect", "cgpu"] if binary else [f"{BUILD}/bin/{PLUGIN}"]
    done = subprocess.run([*command, *args], capture_output=True, env=environment(kubeconfig), timeout=60, check=False)
    out, err = done.stdout.decode(), done.stderr.decode()
    check(not any(mark in err for mark in SANITIZERS), err)
    check(done.returncode == status, f"{args}: ended with {done.returncode}:\n{out}{err}")
    return out, err


def cells(line):
    return re.split(r"  +", line.strip())


def table(c, node):
    """What the documents show: the header, the node's row without name and address, and the last line."""
    out, _ = inspect(c.kubeconfig, node, binary=c.kubectl_binary)
    lines = out.splitlines()
    check_equal(len(lines), 5, f"lines of\n{out}")
    header, row = cells(lines[0]), cells(lines[1])
    check_equal((header[:2], header[-1], row[0]), (["NAME", "IPADDRESS"], "GPU Memory(GiB)", node), out)
    check(re.fullmatch("-{20,}", lines[2]), out)
    check_equal(lines[3], "Allocated/Total GPU Memory In Cluster:", out)
    cards = [h for h in header[2:-1] if h.startswith("GPU")]
    check_equal(cards, [f"GPU{i}(Allocated/Total)" for i in range(len(cards))], out)
    whole, _ = inspect(c.kubeconfig)
    other = next((cells(line) for line in whole.splitlines() if cells(line)[0] == node), None)
    check(other, f"{node} is not in\n{whole}")
    check_equal([x for x in other if x != "0/0"], [x for x in row if x != "0/0"], "the row with and without NODE")
    return [*row[2:], lines[4]]


@case("the shared-GPU document: kubectl inspect cgpu prints 0/15, and 3/15 (20%) when its Job runs")
def share_document(suite):
    c, ns = suite.cluster, suite.namespace()
    nodes = Nodes(suite, [gpu_node("inspect-share", "share", T4, 1)])
    suite.scheduler()
    nodes.offers("inspect-share", mem=15, count=1)
    check_equal(table(c, "inspect-share"), ["0/15", "0/15", "0/15 (0%)"], "before")
    apply(suite, ns, "gpu-share.yaml")
    pod, = wait_running(c, ns, "app=gpu-share-sample", 1)
    check_equal(table(c, "inspect-share"), ["3/15", "3/15", "3/15 (20%)"], "with the Job's pod")
    out, _ = inspect(c.kubeconfig, "-d", "inspect-share")
    check([pod["metadata"]["name"], ns, "3"] in [cells(line) for line in out.splitlines()], f"-d lists the pod:\n{out}")
    out, _ = inspect(c.kubeconfig, "why", f"{ns}/{pod['metadata']['name']}")
    check_equal(out, f"{ns}/{pod['metadata']['name']} is on node inspect-share: 3 GiB of GPU0\n", "why")


@case("binpack prints 15/15 9/15 0/15 0/15 24/60 (40%), spread three cards with 4/15 and 12/60 (20%)")
def placement_document(suite):
    c, ns = suite.cluster, suite.namespace()
    nodes = Nodes(suite, [gpu_node("inspect-pack", "cgpu", T4, 4, labels={"ack.node.gpu.placement": "binpack"}),
                          gpu_node("inspect-spread", "cgpu", T4, 4, labels={"ack.node.gpu.placement": "spread"})])
    suite.scheduler()
    for name in ("inspect-pack", "inspect-spread"):
        nodes.offers(name, mem=60, count=4)
    for i, gib in enumerate((9, 6, 9)):
        memory_pod(c, ns, f"pack-{i}", gib, "inspect-pack")
        wait_pod(c, ns, f"pack-{i}")
    check_equal(table(c, "inspect-pack"), ["15/15", "9/15", "0/15", "0/15", "24/60", "24/60 (40%)"], "binpack")
    for i in range(3):
        memory_pod(c, ns, f"spread-{i}", 4, "inspect-spread")
        wait_pod(c, ns, f"spread-{i}")
    got = table(c, "inspect-spread")
    check_equal((sorted(got[:4]), got[4:]), (["0/15", "4/15", "4/15", "4/15"], ["12/60", "12/60 (20%)"]), "spread")
    memory_pod(c, ns, "large", 16, "inspect-pack")
    c.wait_refused(ns, "large", "16 GiB")
    out, _ = inspect(c.kubeconfig, "why", "large", "-n", ns)
    check(re.search(r"^needs 16 GiB on one card$", out, re.M), out)
    check(re.search(rf"^inspect-pack +GPU1 +too small: 6 of 15 GiB free; held by {ns}/pack-2 9 GiB$", out, re.M), out)
    check(re.search(r"^inspect-pack +GPU3 +too small: 15 of 15 GiB free$", out, re.M), out)


@case("core_mem: both resources are there, 100 for each card, and -d shows memory and compute of each pod")
def core_document(suite):
    c, ns = suite.cluster, suite.namespace()
    nodes = Nodes(suite, [gpu_node("inspect-core", "core_mem", T4, 2)])
    suite.scheduler()
    nodes.offers("inspect-core", mem=30, percent=200, count=2)
    c.create_pod(ns, "both", limits={MEM: "6", PERCENT: "30"}, node_selector={"kubernetes.io/hostname": "inspect-core"})
    wait_pod(c, ns, "both")
    check_equal(table(c, "inspect-core"), ["6/15", "0/15", "6/30", "6/30 (20%)"], "table")
    out, _ = inspect(c.kubeconfig, "-d", "inspect-core")
    check(["both", ns, "6 (30%)", "0"] in [cells(line) for line in out.splitlines()], out)
    node, = json.loads(inspect(c.kubeconfig, "-o", "json", "inspect-core")[0])["nodes"]
    check_equal([(x["allocatedGiB"], x["allocatedPercent"], x["totalGiB"]) for x in node["cards"]], [(6, 30, 15), (0, 0, 15)], "json")


# Two pairs with bridges that are not the neighbours by number.
CROSSED = [["X", "SYS", "NV4", "SYS"], ["SYS", "X", "SYS", "NV4"], ["NV4", "SYS", "X", "SYS"], ["SYS", "NV4", "SYS", "X"]]


@case("topology: aliyun.com/gpu is chosen by links, a job's pods are one gang on one node and see each other's cards, nothing else runs there")
def topology_document(suite):
    c, ns = suite.cluster, suite.namespace()
    nodes = Nodes(suite, [gpu_node("inspect-topo", "topology", V100, 2), gpu_node("inspect-links", "topology", V100, 4, links=CROSSED)])
    suite.scheduler()
    nodes.offers("inspect-topo", whole=2)
    nodes.offers("inspect-links", whole=4)
    if c.kubectl_binary:
        lines = [x.strip() for x in c.kubectl("get", "nodes", "inspect-topo", "-o", "yaml").splitlines() if "aliyun.com/gpu" in x and "{" not in x]
        check_equal(set(lines), {'aliyun.com/gpu: "2"'}, "the document's check")
    on = lambda node: {"kubernetes.io/hostname": node}
    c.create_pod(ns, "pair", limits={WHOLE: "2"}, node_selector=on("inspect-links"))
    pod = wait_pod(c, ns, "pair")
    check_equal(pod["metadata"]["annotations"][GROUP], "0,2", "two cards with a bridge")
    # The second of the job's pods is what the first one waits for.
    job = lambda i: c.create_pod(ns, f"job-{i}", limits={WHOLE: "1"}, labels={"gpu-topology": "j", "gpu-topology-replica": "2"}, node_selector=on("inspect-links"))
    job(0)
    c.wait_refused(ns, "job-0", "1 of 2", reason="WaitingForGang")
    job(1)
    for i, card in enumerate("13"):
        pod = wait_pod(c, ns, f"job-{i}")
        annotations = pod["metadata"]["annotations"]
        check_equal((annotations[GROUP], annotations[VISIBLE]), (card, "1,3"), f"job-{i}: cards given, cards seen")
        uuids = nodes.uuids("inspect-links")
        check_equal(nodes.environment(pod, "main").get("NVIDIA_VISIBLE_DEVICES"), f"{uuids['1']},{uuids['3']}", f"job-{i}: what the container sees")
    out, _ = inspect(c.kubeconfig, "topology", "inspect-links", binary=c.kubectl_binary)
    rows = [cells(line) for line in out.splitlines()]
    check_equal(rows[0], ["inspect-links: mode topology, 4 cards"], out)
    check_equal([(r[0], r[1:5], r[-1]) for r in rows[2:]],
                [(f"GPU{i}", CROSSED[i], f"{ns}/{who}") for i, who in enumerate(("pair", "job-0", "pair", "job-1"))], out)
    # Shared and exclusive pods stay away.
    memory_pod(c, ns, "shared", 3, "inspect-topo")
    c.wait_refused(ns, "shared", re.escape(MEM))
    out, _ = inspect(c.kubeconfig, "why", f"{ns}/shared")
    check(re.search(r"^inspect-topo +- +mode topology$", out, re.M), out)
    c.create_pod(ns, "exclusive", limits={EXCLUSIVE: "1"}, node_selector=on("inspect-topo"))
    c.wait_refused(ns, "exclusive", re.escape(EXCLUSIVE))
    _, err = inspect(c.kubeconfig, "inspect-none", status=1)
    check("node inspect-none does not exist" in err, err)


@case("card model: a Job with a nodeSelector goes to the model, one with NotIn to another")
def model_document(suite):
    c, ns = suite.cluster, suite.namespace()
    nodes = Nodes(suite, [gpu_node("inspect-v100", None, V100, 1), gpu_node("inspect-t4", None, T4, 1)])
    suite.scheduler()
    for name in ("inspect-v100", "inspect-t4"):
        nodes.offers(name, exclusive=1)
    wait_until(lambda: nodes.get("inspect-v100")["metadata"]["labels"].get(MODEL) == "Tesla-V100-SXM2-32GB", "the plugin's label")
    term = {"matchExpressions": [{"key": MODEL, "operator": "NotIn", "values": ["Tesla-V100-SXM2-32GB"]}]}
    avoid = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    for name, spec in (("include", {"nodeSelector": {MODEL: "Tesla-V100-SXM2-32GB"}}), ("exclude", {"affinity": avoid})):
        container = {"name": "main", "image": "busybox:test", "imagePullPolicy": "Never", "command": ["sleep", "3600"], "resources": {"limits": {EXCLUSIVE: 1}}}
        template = {"metadata": {"labels": {"app": name}}, "spec": {"schedulerName": "ack-co-scheduler", "restartPolicy": "Never", "containers": [container],
                                                                  "terminationGracePeriodSeconds": 0, **spec}}
        c.do("POST", f"/apis/batch/v1/namespaces/{ns}/jobs", {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
                                                             "spec": {"parallelism": 1, "template": template}})
        suite.stack.callback(c.do, "DELETE", f"/apis/batch/v1/namespaces/{ns}/jobs/{name}?propagationPolicy=Background", None, "application/json", (200, 202, 404))
    for name, node in (("include", "inspect-v100"), ("exclude", "inspect-t4")):
        pod, = wait_running(c, ns, f"app={name}", 1)
        check_equal(pod["spec"]["nodeName"], node, name)


# ---- clusters that are made here


class Lists(http.server.ThreadingHTTPServer):
    """Answers GET of nodes and of pods with what it has, and remembers what was asked."""

    def __init__(self, directory, nodes, pods):
        super().__init__(("127.0.0.1", 0), Answer)
        self.lists = {"/api/v1/nodes": nodes, "/api/v1/pods": pods}
        self.asked = []
        self.kubeconfig = os.path.join(directory, f"inspect-{self.server_port}.json")
        place = {"clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.server_port}"}}], "users": [{"name": "u", "user": {}}],
                 "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "team"}}], "current-context": "here",
                 "apiVersion": "v1", "kind": "Config"}
        with open(self.kubeconfig, "w", encoding="utf-8") as f:
            json.dump(place, f)


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):  # pylint: disable=invalid-name
        path = self.path.split("?")[0]
        self.server.asked.append(path)
        found = path in self.server.lists
        body = json.dumps({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "1"}, "items": self.server.lists[path]} if found else {}).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass


@contextlib.contextmanager
def lists(suite, nodes, pods=()):
    server = Lists(suite.directory, nodes, list(pods))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def a_node(name, inventory, amounts=None, ip="192.0.2.1"):
    text = inventory if inventory is None or isinstance(inventory, str) else json.dumps(inventory)
    amounts = {"cpu": "4", "pods": "110", **(amounts or {})}
    return {"metadata": {"name": name, "uid": name, "annotations": {} if text is None else {INVENTORY: text}}, "spec": {},
            "status": {"capacity": amounts, "allocatable": amounts, "addresses": [{"type": "InternalIP", "address": ip}]}}


def cards(*gib, mode="cgpu", model="Tesla T4", sick=(), **more):
    return {"v": 1, "mode": mode, "switchingTo": None, "cards": [
        {"i": i, "uuid": f"GPU-{i}", "model": model, "mib": 1024 * g, "numa": 0, "pci": "", "health": "sick" if i in sick else "ok"}
        for i, g in enumerate(gib)], **more}


def a_pod(name, gib, node="", claim=None, phase="Running", ns="team", message=None):
    limits = {MEM: str(gib)}
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}] if message else []
    annotations = {"scheduler.framework.gpushare.allocation": json.dumps(claim)} if claim else {}
    return {"metadata": {"name": name, "namespace": ns, "uid": name, "annotations": annotations},
            "spec": {"nodeName": node, "schedulerName": "ack-co-scheduler", "containers": [{"name": "main", "resources": {"limits": limits, "requests": limits}}]},
            "status": {"phase": phase, "conditions": conditions}}


@case("the table: columns grow to the node with most cards, pods without a card are pending, percent is truncated, one list for each kind")
def whole_table(suite):
    nodes = [a_node("b", cards(15, 15, 15), ip="192.0.2.2"), a_node("a", cards(15)), a_node("t", cards(32, mode="topology")), a_node("plain", None)]
    pods = [a_pod("one", 5, "a", {"0": {"0": 5}}), a_pod("done", 5, "b", {"0": {"1": 5}}, phase="Succeeded"), a_pod("odd", 4, "b", {"0": {"1": 3}}),
            a_pod("lost", 2, "b", {"0": {"7": 2}}), a_pod("waits", 3, phase="Pending"), a_pod("gone", 3, "nowhere", {"0": {"0": 3}}),
            a_pod("two", 4, "b", {"0": {"2": 4}})]
    with lists(suite, nodes, pods) as server:
        out, err = inspect(server.kubeconfig)
        check_equal(server.asked, ["/api/v1/nodes", "/api/v1/pods"], "what was asked")
        check_equal(err, "", "standard error")
        lines = out.splitlines()
        check_equal(cells(lines[0]), ["NAME", "IPADDRESS", *(f"GPU{i}(Allocated/Total)" for i in range(3)), "PENDING(Allocated)", "GPU Memory(GiB)"], out)
        check_equal([cells(x) for x in lines[1:3]], [["a", "192.0.2.1", "5/15", "0/0", "0/0", "0", "5/15"],
                                                    ["b", "192.0.2.2", "0/15", "0/15", "4/15", "6", "10/45"]], out)
        check_equal(lines[4:], ["Allocated/Total GPU Memory In Cluster:", "15/60 (25%)"], out)
        check("\033" not in out, "no colours in a pipe")
        out, _ = inspect(server.kubeconfig, "a", "--context", "here", f"--kubeconfig={server.kubeconfig}")
        check_equal(out.splitlines()[-1], "5/15 (33%)", "of one node, truncated")
        node_b = json.loads(inspect(server.kubeconfig, "-ojson")[0])["nodes"][1]
        check_equal((node_b["name"], node_b["pendingGiB"], [p["name"] for p in node_b["pods"]]), ("b", 6, ["lost", "odd", "two"]), "json")
        out, _ = inspect(server.kubeconfig, "why", "waits")
        check(re.search(r"^team/waits waits$", out, re.M) and re.search(r"^a +GPU0 +fits: 10 of 15 GiB free; held by team/one 5 GiB$", out, re.M), out)


HOSTILE = "T\033]0;owned\007\033[31m4\u009b2J\u202e\x7f"


@case("an inventory that is missing, malformed or hostile costs only its own node, and nothing of it reaches the terminal as a command")
def bad_inventories(suite):
    deep = "[" * 5000
    gpu = {MEM: "30", "aliyun.com/gpu-count": "2"}
    nodes = [a_node("good", cards(15)), a_node("none", None, gpu), a_node("empty", ""), a_node("broken", '{"v":1,', gpu), a_node("deep", deep),
             a_node("newer", {"v": 2}), a_node("huge", {**cards(15), "cards": cards(*[15] * 65)["cards"]}), a_node("escapes", cards(15, 15, mode="share", model=HOSTILE)),
             a_node("mode" + HOSTILE, {**cards(15), "mode": HOSTILE}), {"metadata": {"name": 7}}]
    pods = [a_pod("bad" + HOSTILE, 3, "good", {"0": {"0": 3}}), a_pod("waits", 3, phase="Pending", message="no room " + HOSTILE), {"metadata": []}]
    pods[0]["metadata"]["annotations"]["scheduler.framework.gpushare.allocation"] = '{"0":{"0":' + HOSTILE
    with lists(suite, nodes, pods) as server:
        for args in ((), ("-d",), ("-o", "json"), ("good",), ("why", "waits"), ("topology", "escapes")):
            out, err = inspect(server.kubeconfig, *args)
            for text in (out, err):
                bad = [x for x in text if (ord(x) < 32 and x != "\n") or 0x7f <= ord(x) < 0xa0 or 0x202a <= ord(x) <= 0x202e]
                check(not bad, f"{args}: {bad} in {text!r}")
            for name in ("broken", "deep", "newer", "huge"):
                check(f"node {name}: annotation {INVENTORY}: " in err, f"{args}: {name}: {err}")
            check(f"node none: no annotation {INVENTORY}; its cards are shown as of equal size" in err, err)
            check("2 objects could not be read" in err, err)
        out, _ = inspect(server.kubeconfig)
        rows = {cells(x)[0]: cells(x)[2:] for x in out.splitlines()}
        check_equal((rows["good"], rows["none"], rows["escapes"]), (["0/15", "0/0", "3", "3/15"], ["0/15", "0/15", "0", "0/30"], ["0/15", "0/15", "0", "0/30"]), out)
        check("newer" not in rows and "huge" not in rows, out)
        out, _ = inspect(server.kubeconfig, "topology", "escapes")
        check("T?]0;owned??[31m4?2J??" in out, repr(out))
        for args, status, text in ((("topology", "newer"), 1, "only version 1 is known"), (("why", "nobody"), 1, "pod team/nobody does not exist"),
                                   (("why",), 2, "needs the name of a pod"), (("when", "x"), 2, "is no command"), (("--frobnicate",), 2, "frobnicate"),
                                   (("-o", "yaml"), 2, "output"), (("--context=other",), 1, "other")):
            _, err = inspect(server.kubeconfig, *args, status=status)
            check(text in err, f"{args}: {err}")
    _, err = inspect(server.kubeconfig, "--request-timeout=2s", status=1)
    check("list nodes" in err, f"nobody listens any more: {err}")
    help_text, _ = inspect(server.kubeconfig, "-h")
    check(all(x in help_text for x in ("NAME", "SYNOPSIS", "why POD", "topology NODE", "--kubeconfig", "--watch", "EXAMPLES")), help_text)


def on_terminal(kubeconfig, *args, until, **env):
    """What it writes to a terminal, until the pattern is there; then it is interrupted."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(f"{BUILD}/bin/{PLUGIN}", [PLUGIN, *args], environment(kubeconfig, TERM="xterm", **env))
    text, end = b"", time.monotonic() + 30
    with contextlib.suppress(OSError):  # the terminal of a process that has ended
        while not re.search(until, text) and time.monotonic() < end:
            if select.select([fd], [], [], 0.5)[0]:
                text += os.read(fd, 65536)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGINT)
    _, status = os.waitpid(pid, 0)
    os.close(fd)
    if not re.search(until, text):
        raise Failed(f"{args}: {until} did not come: {text!r}")
    return text.decode(), os.waitstatus_to_exitcode(status)


@case("colours on a terminal only, and not with NO_COLOR; --watch prints again when something changed, and ends when it is interrupted")
def terminals(suite):
    with lists(suite, [a_node("n", cards(15, 15, sick={1}))], [a_pod("p", 15, "n", {"0": {"0": 15}})]) as server:
        text, _ = on_terminal(server.kubeconfig, until=rb"50%\)\r\n")
        check("\033[31m15/15\033[0m" in text and "\033[33m0/15\033[0m" in text, repr(text))
        text, _ = on_terminal(server.kubeconfig, until=rb"50%\)\r\n", NO_COLOR="1")
        check("\033" not in text, repr(text))
        watching = suite.program(PLUGIN, f"--kubeconfig={server.kubeconfig}", "--watch", "--interval=200ms")
        watching.wait_output(r"^15/30 \(50%\)$")
        asked = len(server.asked)
        wait_until(lambda: len(server.asked) >= asked + 6, "it asks again")
        check_equal(watching.output().count("NAME"), 1, "nothing changed, nothing printed")
        server.lists["/api/v1/pods"] = []
        watching.wait_output(r"^0/30 \(0%\)$")
        watching.process.send_signal(signal.SIGINT)
        check_equal(watching.process.wait(20), 0, "exit code")


@case("the program uses nothing that only Linux has")
def portable(suite):
    done = subprocess.run(["nm", "-D", "--undefined-only", f"{BUILD}/bin/{PLUGIN}"], capture_output=True, text=True, timeout=60, check=True)
    names = {line.split()[-1].split("@")[0] for line in done.stdout.splitlines()}
    foreign = [n for n in names if re.match(r"(epoll_|eventfd|signalfd|timerfd_|inotify_|prctl|mallinfo|malloc_trim|accept4|gettid|sched_)", n)]
    check(names and not foreign, f"{foreign}")
    # Every file in it is plain C11 and POSIX: no name that only another standard has.
    done = subprocess.run(["readelf", "--debug-dump=info", "--dwarf-depth=1", f"{BUILD}/bin/{PLUGIN}"], capture_output=True, text=True, timeout=60, check=True)
    sources = sorted({s for s in re.findall(r"DW_AT_name .*?([\w./-]+\.c)$", done.stdout, re.M) if os.path.exists(os.path.join(ROOT, s))})
    check(f"kubectl/{PLUGIN}.c" in sources and "lib/kube/http.c" in sources and len(sources) > 20, f"sources: {sources}")
    strict = ["gcc", "-std=c11", "-Wpedantic", "-Wall", "-Werror", "-U_GNU_SOURCE", "-D_POSIX_C_SOURCE=200809L", "-I.", "-fsyntax-only"]
    done = subprocess.run([*strict, *sources], capture_output=True, text=True, timeout=120, check=False, cwd=ROOT)
    check_equal(done.returncode, 0, done.stderr)
    del suite
