# SPDX-License-Identifier: Apache-2.0
"""CPUs of their own: what the scheduler writes into the annotation cpuset, on nodes that are only API objects and publish a topology; and the documents' walk-through on a simulated node
whose pinner is the real one, with all three programs. suite_pinning has the real kubelet."""
import glob
import json
import os
import signal

from harness import MERGE, SCHEDULER, STRATEGIC, case, check, check_equal, wait_until
from suite_nodes import Nodes, apply, document, gone, hook, labelled, wait_pod, wait_running
from suite_webhook import start_webhook

APPLIED = "cosched.io/cpuset-applied"

# Two NUMA nodes, two L3 groups of 8 CPUs in each, no second threads: as the CPU document's machine counts.
TOPOLOGY = {"v": 1, "sockets": ["0-31"], "numa": ["0-15", "16-31"], "l3": ["0-7", "8-15", "16-23", "24-31"], "cores": "smt1:32", "offline": "", "reserved": ""}


def cpu_node(suite, name, topology=TOPOLOGY, **what):
    return suite.node(name, cpu="32", memory="64Gi", annotations={"cosched.io/cpu-topology": json.dumps(topology)}, **what)


def cpuset_of(c, ns, name):
    return json.loads(c.pod(ns, name)["metadata"]["annotations"]["cpuset"])


def pinned(c, ns, name, node, cpus, annotations=None, **spec):
    c.create_pod(ns, name, requests={"cpu": str(cpus)}, limits={"cpu": str(cpus)}, node_selector={"pool": node},
                 annotations={"cpuset-scheduler": "true", **(annotations or {})}, **spec)


def on(numa, first, last):
    """The annotation of a pod of one container."""
    return {"main": {str(numa): {"elems": {str(cpu): {} for cpu in range(first, last + 1)}}}}


def check_pinned(nodes, pod):
    """Each container's group has just the CPUs of the annotation, and the node agent says so. All CPUs of the pod."""
    claim = json.loads(pod["metadata"]["annotations"]["cpuset"])
    all_cpus = set()
    for status in pod["status"]["containerStatuses"]:
        cpus = {int(cpu) for numa in claim[status["name"]].values() for cpu in numa["elems"]}
        identity = status["containerID"].rpartition("/")[2]

        def ask(identity=identity, cpus=cpus):
            path, = glob.glob(f"{nodes.directory}/{pod['spec']['nodeName']}/cgroup/cpuset/kubepods/**/pod{pod['metadata']['uid']}/{identity}/cpuset.cpus", recursive=True)
            with open(path, encoding="ascii") as f:
                seen = parse_cpus(f.read())
            if seen != cpus:
                raise KeyError(f"{path}: {seen} instead of {cpus}")
            return True

        wait_until(ask, f"{pod['metadata']['name']}: its group has the CPUs of its annotation")
        check(not cpus & all_cpus, f"two containers share CPUs: {claim}")
        all_cpus |= cpus
    path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
    wait_until(lambda: nodes.cluster.get(path)["metadata"]["annotations"].get("cosched.io/cpuset-applied"), "the node agent answers")
    return all_cpus


def parse_cpus(text):
    """The kernel's list, 0-3,8."""
    ends = [part.partition("-") for part in text.strip().split(",") if part]
    return {cpu for first, _, last in ends for cpu in range(int(first), int(last or first) + 1)}


def check_form(c, pod, cpus):
    """The annotation, as the document shows it, and in the node's cgroup what the document finds there."""
    expected = '{"nginx":{"0":{"elems":{' + ",".join(f'"{cpu}":{{}}' for cpu in range(cpus)) + "}}}}"
    check_equal(pod["metadata"]["annotations"].get("cpuset"), expected, "annotation cpuset")
    shown = c.kubectl("get", "pod", pod["metadata"]["name"], "-n", "default", "-o", "yaml")
    check(f"    cpuset: '{expected}'\n" in shown, f"the document's line is not in:\n{shown}")
    wait_until(lambda: c.pod("default", pod["metadata"]["name"])["metadata"]["annotations"].get(APPLIED) == expected, "the node agent answers in the same form")


@case("the CPU documents' Deployments as they are: injected, placed, four CPUs or a whole L3 group in exactly the documents' form, pinned; an update replaces the pod")
def walk_through(suite):
    c, ns = suite.cluster, suite.namespace()
    hook(suite, "default")
    suite.scheduler()
    nodes = Nodes(suite, [{"name": "cpu-1", "topology": "pack:2 [numa] l3:4 core:8 pu:1", "memory": "256Gi"}])
    check_equal(c.get("/api/v1/nodes/cpu-1")["status"]["allocatable"]["cpu"], "64", "CPUs of the topology")
    apply(suite, "default", "cpuset-general.yaml")
    general, = wait_running(c, "default", "app=nginx", 1)
    check_equal(general["spec"]["schedulerName"], SCHEDULER, "injected")
    check_form(c, general, 4)
    check_equal(check_pinned(nodes, general), set(range(4)), "the container's CPUs")
    apply(suite, ns, "co-scheduler-cpuset.yaml")
    pinned_cpus = [check_pinned(nodes, p) for p in (general, *wait_running(c, ns, "app=nginx-numa", 2))]
    check_equal(sorted(map(len, pinned_cpus)), [4, 4, 4], "CPUs of each pod")
    check_equal(len(set.union(*pinned_cpus)), 12, f"no CPU is two pods': {pinned_cpus}")
    c.kubectl("apply", "-f", document("cpuset-automatic.yaml"))
    wait_until(lambda: labelled(c, "default", "app=nginx")[0]["metadata"]["uid"] != general["metadata"]["uid"], "a new pod")
    automatic, = wait_running(c, "default", "app=nginx", 1)
    check_equal(automatic["metadata"]["annotations"].get("cpu-policy"), "static-burst", "annotation of the new pod")
    check_equal(len(check_pinned(nodes, automatic)), 8, "static-burst: a whole L3 group")
    # The document's own picture: the node is empty.
    gone(c, ns, "co-scheduler-cpuset.yaml")
    gone(c, "default", "cpuset-automatic.yaml")
    wait_until(lambda: not [p for space in (ns, "default") for p in c.pods(space) if p["spec"].get("nodeName") == "cpu-1"], "the node is empty")
    c.kubectl("apply", "-f", document("cpuset-automatic.yaml"))
    automatic, = wait_running(c, "default", "app=nginx", 1)
    check_form(c, automatic, 8)
    check_equal(check_pinned(nodes, automatic), set(range(8)), "the container's CPUs")


@case("pinned pods have CPUs of their own, also after a restart of the scheduler, and say what is missing; a topology that comes late is enough")
def own_cpus(suite):
    c, ns = suite.cluster, suite.namespace()
    scheduler = suite.scheduler()
    node = suite.node("own-1", cpu="32", memory="64Gi")
    pinned(c, ns, "first", node, 16)
    c.wait_refused(ns, "first", r"1 has no CPU topology \(none published\)")
    c.do("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"annotations": {"cosched.io/cpu-topology": json.dumps(TOPOLOGY)}}}, MERGE)
    c.wait_bound(ns, "first")
    check_equal(cpuset_of(c, ns, "first"), on(0, 0, 15), "a NUMA node for one")
    suite.end_program(scheduler)
    suite.scheduler()
    pinned(c, ns, "second", node, 12)
    c.wait_bound(ns, "second")
    check_equal(cpuset_of(c, ns, "second"), on(1, 16, 27), "the other for the next")
    c.create_pod(ns, "unpinned", requests={"cpu": "100m"}, node_selector={"pool": node})
    c.wait_bound(ns, "unpinned")
    # 3.9 CPUs are left for requests: a pod that asks for little and may use 8 is refused for its pins alone.
    c.create_pod(ns, "third", requests={"cpu": "1"}, limits={"cpu": "8"}, node_selector={"pool": node}, annotations={"cpuset-scheduler": "true"})
    c.wait_refused(ns, "third", r"1 has fewer than 8 CPUs to pin \(most free: 4 on own-1\)")
    c.delete_pod(ns, "first")
    c.wait_bound(ns, "third")
    check_equal(cpuset_of(c, ns, "third"), on(0, 0, 7), "room that came free")


@case("a more important pod gets the CPUs of a less important one")
def preemption(suite):
    c, ns = suite.cluster, suite.namespace()
    suite.scheduler()
    node = cpu_node(suite, "taken-1")
    c.do("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": f"{ns}-high"}, "value": 1000})
    try:
        c.create_pod(ns, "low", requests={"cpu": "1"}, limits={"cpu": "30"}, node_selector={"pool": node}, annotations={"cpuset-scheduler": "true"})
        c.wait_bound(ns, "low")
        c.create_pod(ns, "high", requests={"cpu": "1"}, limits={"cpu": "4"}, node_selector={"pool": node}, annotations={"cpuset-scheduler": "true"},
                     priorityClassName=f"{ns}-high")
        c.wait_bound(ns, "high")
        check_equal(cpuset_of(c, ns, "high"), on(0, 0, 3), "its CPUs")
    finally:
        c.do("DELETE", f"/apis/scheduling.k8s.io/v1/priorityclasses/{ns}-high")


@case("CPUs on loan are called back in two phases: the annotation gets smaller, the node agent confirms, and only then is the other pod bound")
def loans(suite):
    c, ns = suite.cluster, suite.namespace()
    suite.scheduler()
    node = cpu_node(suite, "loans-1", {**TOPOLOGY, "sockets": ["0-7"], "numa": ["0-7"], "l3": ["0-7"], "cores": "smt1:8"})
    pinned(c, ns, "borrower", node, 4, {"cpu-policy": "static-burst"})
    c.wait_bound(ns, "borrower")
    check_equal(cpuset_of(c, ns, "borrower"), on(0, 0, 7), "the whole group")

    def confirm():
        """As the node agent does it."""
        text = c.pod(ns, "borrower")["metadata"]["annotations"]["cpuset"]
        c.do("PATCH", f"/api/v1/namespaces/{ns}/pods/borrower", {"metadata": {"annotations": {"cosched.io/cpuset-applied": text}}}, MERGE)

    pinned(c, ns, "needs", node, 2)
    c.wait_refused(ns, "needs", r"1 has CPUs to pin only when those on loan are given back \(asked: 2, most free: 0 on loans-1\)$")
    confirm()
    wait_until(lambda: cpuset_of(c, ns, "borrower") != on(0, 0, 7), "the annotation gets smaller")
    left = cpuset_of(c, ns, "borrower")["main"]["0"]["elems"]
    check_equal(len(left), 6, "CPUs that are left")
    check_equal(c.node_of(ns, "needs"), None, "not bound before the node agent has confirmed it")
    confirm()
    c.wait_bound(ns, "needs")
    given = cpuset_of(c, ns, "needs")["main"]["0"]["elems"]
    check_equal(sorted(set(left) | set(given), key=int), [str(i) for i in range(8)], "all CPUs, each once")
    check_equal(len(given), 2, "its CPUs")


def group_of(nodes, pod):
    """The directory that stands for the cgroup of the pod's one container."""
    found, = glob.glob(f"{nodes.directory}/{pod['spec']['nodeName']}/cgroup/cpuset/kubepods/**/pod{pod['metadata']['uid']}/{'[0-9a-f]' * 64}", recursive=True)
    return found


@case("the pinner takes a borrower's container off the CPUs that are called back before the pod that needs them is bound: at no instant are two containers on one CPU")
def loans_pinned(suite):
    c, ns = suite.cluster, suite.namespace()
    suite.scheduler()
    nodes = Nodes(suite, [{"name": "lend-1", "topology": "pack:1 [numa] l3:1 core:8 pu:1", "labels": {"pool": "lend-1"}}])
    version = c.get(f"/api/v1/namespaces/{ns}/pods")["metadata"]["resourceVersion"]
    pinned(c, ns, "borrower", "lend-1", 4, {"cpu-policy": "static-burst"})
    check_equal(check_pinned(nodes, wait_pod(c, ns, "borrower")), set(range(8)), "the whole group")
    pinned(c, ns, "needs", "lend-1", 4)
    needs = wait_pod(c, ns, "needs")
    pods = [c.pod(ns, "borrower"), needs]
    mine, theirs = (check_pinned(nodes, pod) for pod in pods)
    check_equal((len(mine), len(theirs), mine & theirs), (4, 4, set()), "CPUs of the two")
    # The API server's order of things.
    steps = []
    for pod in c.watch(f"/api/v1/namespaces/{ns}/pods", version):
        annotations = pod["metadata"]["annotations"]
        name, text = pod["metadata"]["name"], pods[0]["metadata"]["annotations"]["cpuset"]
        steps += ["shrunk"] if name == "borrower" and annotations.get("cpuset") == text and "shrunk" not in steps else []
        steps += ["confirmed"] if name == "borrower" and annotations.get(APPLIED) == text and "confirmed" not in steps else []
        steps += ["bound"] if name == "needs" and pod["spec"].get("nodeName") and "bound" not in steps else []
    check_equal(steps, ["shrunk", "confirmed", "bound"], "what was seen one after the other")
    # And the file system's: the borrower's group was written for the last time before the other one was made.
    groups = [group_of(nodes, pod) for pod in pods]
    shrunk, made = os.stat(f"{groups[0]}/cpuset.cpus").st_mtime_ns, os.stat(f"{groups[1]}/tasks").st_mtime_ns
    check(shrunk < made, f"the borrower left its CPUs at {shrunk}, the other container was there at {made}")


@case("a call-back that is interrupted: the node agent hangs and is killed, the scheduler is killed in the middle; nobody is bound before the borrower has left its CPUs, and then the whole gang is")
def loans_interrupted(suite):
    c, ns = suite.cluster, suite.namespace()
    scheduler = suite.scheduler()
    nodes = Nodes(suite, [{"name": "lend-2", "topology": "pack:1 [numa] l3:1 core:8 pu:1", "labels": {"pool": "lend-2"}}])
    pinned(c, ns, "borrower", "lend-2", 4, {"cpu-policy": "static-burst"})
    borrower = wait_pod(c, ns, "borrower")
    check_equal(check_pinned(nodes, borrower), set(range(8)), "the whole group")
    plugin = nodes.plugin_pid("lend-2")
    os.kill(plugin, signal.SIGSTOP)
    gang = {"pod-group.scheduling.sigs.k8s.io/name": "two", "pod-group.scheduling.sigs.k8s.io/min-available": "2"}
    for name in ("needs-0", "needs-1"):
        pinned(c, ns, name, "lend-2", 2, labels=gang)
    wait_until(lambda: len(cpuset_of(c, ns, "borrower")["main"]["0"]["elems"]) == 4, "for both members at once the annotation gets smaller")
    suite.end_program(scheduler)
    suite.scheduler()
    c.create_pod(ns, "late", requests={"cpu": "0"}, limits={"cpu": "4"}, node_selector={"pool": "lend-2"}, annotations={"cpuset-scheduler": "true"})
    c.wait_refused(ns, "late", "fewer than 4 CPUs to pin|those on loan")  # the new scheduler is at work
    check_equal([c.node_of(ns, name) for name in ("needs-0", "needs-1", "late")], [None] * 3, "nobody is bound while the borrower is on its CPUs")
    with open(f"{group_of(nodes, borrower)}/cpuset.cpus", encoding="ascii") as f:
        check_equal(parse_cpus(f.read()), set(range(8)), "the borrower's group")
    os.kill(plugin, signal.SIGKILL)  # the node starts another one
    members = [wait_pod(c, ns, name) for name in ("needs-0", "needs-1")]
    sets = [check_pinned(nodes, pod) for pod in (c.pod(ns, "borrower"), *members)]
    check_equal((sorted(map(len, sets)), len(set.union(*sets))), ([2, 2, 4], 8), f"each CPU once: {sets}")
    check_equal(c.node_of(ns, "late"), None, "who came later does not come first")


@case("a node agent that never answers: after the third call the loans of another node are called back, and the pod goes there")
def loans_unanswered(suite):
    c, ns = suite.cluster, suite.namespace()
    suite.scheduler()
    small = {**TOPOLOGY, "sockets": ["0-7"], "numa": ["0-7"], "l3": ["0-7"], "cores": "smt1:8"}
    names = [cpu_node(suite, f"silent-{i}", small, labels={"duo": ns}) for i in range(2)]

    def confirm(name):
        text = c.pod(ns, name)["metadata"]["annotations"]["cpuset"]
        c.do("PATCH", f"/api/v1/namespaces/{ns}/pods/{name}", {"metadata": {"annotations": {APPLIED: text}}}, MERGE)

    for node in names:
        pinned(c, ns, f"on-{node}", node, 4, {"cpu-policy": "static-burst"})
        c.wait_bound(ns, f"on-{node}")
        confirm(f"on-{node}")
    c.create_pod(ns, "needs", requests={"cpu": "1"}, limits={"cpu": "4"}, node_selector={"duo": ns}, annotations={"cpuset-scheduler": "true"})
    asked = lambda: [n for n in names if cpuset_of(c, ns, f"on-{n}") != on(0, 0, 7)]
    silent = wait_until(asked, "one of them is asked")
    check_equal(len(silent), 1, "nodes that are asked")
    other, = wait_until(lambda: [n for n in asked() if n not in silent], "the other one is asked after a while", 60)
    check_equal(c.node_of(ns, "needs"), None, "nobody has answered")
    confirm(f"on-{other}")
    check_equal(c.wait_bound(ns, "needs"), other, "where somebody has")


@case("pods/resize: limits.cpu of a pod with CPUs of its own is refused by the webhook as it is shipped, with a sentence; other pods are resized")
def resize(suite):
    c = suite.cluster
    _webhook, ns = start_webhook(suite, shipped=True)
    suite.scheduler()
    node = cpu_node(suite, "resize-1")
    pinned(c, ns, "pinned", node, 2)
    c.create_pod(ns, "free", requests={"cpu": "1"}, limits={"cpu": "2"}, node_selector={"pool": node})
    for name in ("pinned", "free"):
        c.wait_bound(ns, name)

    def ask(name, **limits):
        return c.request("PATCH", f"/api/v1/namespaces/{ns}/pods/{name}/resize", {"spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]}}, STRATEGIC)

    status, reply = ask("pinned", cpu="3")
    check(status >= 400 and "cannot replace '2' in a pod with pinned CPUs" in reply["message"], f"{status} {reply.get('message')}")
    check_equal(c.pod(ns, "pinned")["spec"]["containers"][0]["resources"]["limits"]["cpu"], "2", "its limit")
    check_equal(ask("free", cpu="3")[0], 200, "the resize of another pod")
    # Taking the request away opens no door: the pod has its CPUs.
    c.do("PATCH", f"/api/v1/namespaces/{ns}/pods/pinned", {"metadata": {"annotations": {"cpuset-scheduler": None}}}, MERGE)
    status, reply = ask("pinned", cpu="3")
    check(status >= 400 and "pinned CPUs" in reply["message"], f"without the request: {status} {reply.get('message')}")
