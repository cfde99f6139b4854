# SPDX-License-Identifier: Apache-2.0
"""Bursting to virtual nodes: the document's Deployment on simulated nodes of either cluster, one of them virtual; and gangs on nodes that are only API objects."""
import re

from harness import case, check, check_equal, wait_until
from suite_nodes import Nodes, document, labelled, wait_running

PROVIDER = {"key": "virtual-kubelet.io/provider", "value": "alibabacloud", "effect": "NoSchedule"}
ANNOTATION = "        alibabacloud.com/burst-resource: eci\n"


def nodes_of(pods):
    return sorted(p["spec"].get("nodeName", "-") for p in pods)


def remove(c, ns):
    c.kubectl("delete", "-n", ns, "deployment/nginx", "--cascade=background", "--wait=false")
    wait_until(lambda: not c.pods(ns), "its pods are gone")


def variant(c, ns, line):
    """The document's manifest with another line for its annotation."""
    with open(document("co-scheduler-burst.yaml"), encoding="utf-8") as f:
        text = f.read()
    check(ANNOTATION in text, "the document is not as expected")
    text = text.replace(ANNOTATION, line) if line else text.replace("      annotations:\n" + ANNOTATION, "")
    c.kubectl("apply", "-n", ns, "-f", "-", stdin=text)


@case("the burst document as it is, with real room for two of its four pods: two run there, two burst and say why; room that comes free is used again; eci_only, the namespace's label, and "
      "nothing at all")
def document_burst(suite):
    c, ns = suite.cluster, suite.namespace()
    elastic = suite.namespace(labels={"alibabacloud.com/eci": "true"})
    suite.scheduler()
    Nodes(suite, [{"name": "burst-1", "cpu": "5"}, {"name": "burst-virtual", "virtual": True, "cpu": "100"}])
    c.kubectl("apply", "-n", ns, "-f", document("co-scheduler-burst.yaml"))
    pods = wait_running(c, ns, "app=nginx", 4)
    check_equal(nodes_of(pods), ["burst-1"] * 2 + ["burst-virtual"] * 2, "nodes of four replicas")
    by_node = {node: [p["metadata"]["name"] for p in pods if p["spec"]["nodeName"] == node] for node in ("burst-1", "burst-virtual")}
    for name in by_node["burst-virtual"]:
        event = wait_until(lambda n=name: c.events(ns, n, "Bursting"), "an Event says why it bursts")[0]
        check(re.search(r"^bursting to virtual node burst-virtual: 0/\d+ real nodes fit: .*1 has too little cpu \(asked: 2, largest free: 1 on burst-1\)", event["message"]), event)
        check_equal(event["type"], "Normal", "its type")
    check(not any(c.events(ns, name, "Bursting") for name in by_node["burst-1"]), "a pod on a real node says that it bursts")
    c.delete_pod(ns, by_node["burst-1"][0])
    pods = wait_running(c, ns, "app=nginx", 4)
    if nodes_of(pods).count("burst-1") == 1:
        # Its replacement was there before its room was free, and burst: the next one finds the room.
        c.delete_pod(ns, next(p["metadata"]["name"] for p in pods if p["spec"]["nodeName"] == "burst-virtual"))
        pods = wait_running(c, ns, "app=nginx", 4)
    check_equal(nodes_of(pods), ["burst-1"] * 2 + ["burst-virtual"] * 2, "the pod that came for one on a real node")
    c.delete_pod(ns, next(p["metadata"]["name"] for p in pods if p["spec"]["nodeName"] == "burst-virtual"))
    check_equal(nodes_of(wait_running(c, ns, "app=nginx", 4)), ["burst-1"] * 2 + ["burst-virtual"] * 2, "the pod that came for one on the virtual node")
    remove(c, ns)
    variant(c, ns, "")
    wait_until(lambda: nodes_of(labelled(c, ns, "app=nginx")) == ["-"] * 2 + ["burst-1"] * 2, "without the annotation two are bound")
    for pod in labelled(c, ns, "app=nginx"):
        if "nodeName" not in pod["spec"]:
            c.wait_refused(ns, pod["metadata"]["name"], r"1 has too little cpu \(asked: 2, largest free: 1 on burst-1\).*1 is virtual and the pod does not burst")
    variant(c, elastic, "")
    check_equal(nodes_of(wait_running(c, elastic, "app=nginx", 4)), ["burst-virtual"] * 4, "pods of a namespace that is virtual only")
    remove(c, ns)
    variant(c, ns, ANNOTATION.replace("eci", "eci_only"))
    check_equal(nodes_of(wait_running(c, ns, "app=nginx", 4)), ["burst-virtual"] * 4, "eci_only")


def make_gang(c, ns, pool, name, size):
    """Pods of one CPU that burst, all or none of them; their names."""
    names = [f"{name}-{i}" for i in range(size)]
    for one in names:
        c.create_pod(ns, one, requests={"cpu": "1"}, node_selector={"pool": pool}, annotations={"alibabacloud.com/burst-resource": "eci"},
                     labels={"pod-group.scheduling.sigs.k8s.io/name": name, "pod-group.scheduling.sigs.k8s.io/min-available": str(size)})
    return names


@case("a gang that bursts stays together: real nodes, else virtual ones, else both, and never partly; without a virtual node that is the reason; other providers by option")
def gangs(suite):
    c, ns = suite.cluster, suite.namespace()
    suite.scheduler("--virtual-node-labels=type=virtual-kubelet,node.example.com/serverless=yes",
                    "--virtual-node-taints=virtual-kubelet.io/provider=alibabacloud,example.com/serverless:NoSchedule")
    suite.node("bg-real", cpu="2", labels={"pool": "bg"})

    def gang(name, size):
        return make_gang(c, ns, "bg", name, size)

    def where(names):
        return sorted(c.wait_bound(ns, n) for n in names)

    first = gang("first", 3)
    c.wait_refused(ns, "first-0", r"room for 2 of 3 pods.*; the cluster has no virtual node to burst to")
    suite.node("bg-vk", cpu="4", labels={"pool": "bg", "type": "virtual-kubelet"}, taints=[PROVIDER])
    check_equal(where(first), ["bg-vk"] * 3, "three pods, room for two and for four")
    event = wait_until(lambda: c.events(ns, "first-0", "Bursting"), "an Event says so")[0]
    check_equal(event["message"], "bursting to virtual node bg-vk with its gang", "what it says")
    check_equal(where(gang("second", 2)), ["bg-real"] * 2, "two pods")
    for name in ("second-0", "second-1"):
        c.delete_pod(ns, name)
    c.create_pod(ns, "filler", requests={"cpu": "1"}, node_selector={"pool": "bg"})
    check_equal(c.wait_bound(ns, "filler"), "bg-real", "a pod that does not burst")
    third = gang("third", 3)
    c.wait_refused(ns, "third-2", r"room for 2 of 3 pods")
    check(not any(c.node_of(ns, n) for n in third), "a part of a gang was bound")
    c.delete_pod(ns, "filler")
    check_equal(where(third), ["bg-real"] * 2 + ["bg-vk"], "three pods, room for two and for one")
    suite.node("bg-other", cpu="4", labels={"pool": "bg", "node.example.com/serverless": "yes"}, taints=[{"key": "example.com/serverless", "effect": "NoSchedule"}])
    check_equal(where(gang("fourth", 2)), ["bg-other"] * 2, "on the other provider's node")
    c.create_pod(ns, "plain", requests={"cpu": "1"}, node_selector={"pool": "bg"}, tolerations=[{"operator": "Exists"}])
    c.wait_refused(ns, "plain", r"2 are virtual and the pod does not burst")
    # It may ask for one itself; the taint is its own business then. A node's name says everything.
    asks = {"pool": "bg", "type": "virtual-kubelet"}
    c.create_pod(ns, "untolerating", node_selector=asks)
    c.wait_refused(ns, "untolerating", r"1 has the taint virtual-kubelet.io/provider=alibabacloud:NoSchedule")
    c.create_pod(ns, "asking", node_selector=asks, tolerations=[{"operator": "Exists"}])
    check_equal(c.wait_bound(ns, "asking"), "bg-vk", "a pod whose nodeSelector asks for a virtual node")
    c.create_pod(ns, "labelled", node_selector={"pool": "bg"}, labels={"alibabacloud.com/eci": "true"})
    check(c.wait_bound(ns, "labelled") in ("bg-vk", "bg-other"), "a pod with the label of virtual nodes only is on a real one")


@case("--gang-burst: whole is never on both kinds of nodes, member fills the real ones first; neither is placed in part")
def gang_options(suite):
    c, ns = suite.cluster, suite.namespace()
    suite.node("bo-real", cpu="2", labels={"pool": "bo"})
    suite.node("bo-vk", cpu="2", labels={"pool": "bo", "type": "virtual-kubelet"}, taints=[PROVIDER])
    scheduler = suite.scheduler("--gang-burst=whole")
    whole = make_gang(c, ns, "bo", "whole", 3)
    c.wait_refused(ns, "whole-0", r"room for 2 of 3 pods")
    check(not any(c.node_of(ns, n) for n in whole), "a part of a gang was bound")
    suite.node("bo-vk2", cpu="1", labels={"pool": "bo", "type": "virtual-kubelet"}, taints=[PROVIDER])
    check_equal(sorted(c.wait_bound(ns, n) for n in whole), ["bo-vk"] * 2 + ["bo-vk2"], "with room for three on virtual nodes")
    for name in whole:
        c.delete_pod(ns, name)
    suite.end_program(scheduler)
    suite.scheduler("--gang-burst=member")
    member = make_gang(c, ns, "bo", "member", 6)
    c.wait_refused(ns, "member-0", r"room for 5 of 6 pods")
    check(not any(c.node_of(ns, n) for n in member), "a part of a gang was bound")
    for name in member:
        c.delete_pod(ns, name)
    member = make_gang(c, ns, "bo", "few", 3)
    check_equal([c.wait_bound(ns, n).startswith("bo-vk") for n in member].count(True), 1, "members on virtual nodes, of three with room for two on the real one")
