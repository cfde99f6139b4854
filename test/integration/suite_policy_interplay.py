# SPDX-License-Identifier: Apache-2.0
"""ResourcePolicies with what else a pod may ask for: shares of cards, CPUs of its own, a gang. On simulated nodes with the real device plugin, so that what a unit's node promised is what the
containers got."""
import json

from harness import MERGE, SCHEDULER, case, check, check_equal, wait_until
from suite_cpus import check_pinned
from suite_nodes import CLAIM, MEM, T4, Nodes, gpu_node, wait_running
from suite_policy import COST, definition, policy_path, pool, put_policy, status_of, unit_of, wait_in_force

VIRTUAL = "pi-v"


def replicas(c, ns, name, number, resources, annotations=None, labels=None):
    container = {"name": "main", "image": "busybox:test", "imagePullPolicy": "Never", "command": ["sleep", "3600"], "resources": resources}
    template = {"metadata": {"labels": {"app": name, **(labels or {})}, "annotations": annotations or {}},
                "spec": {"schedulerName": SCHEDULER, "terminationGracePeriodSeconds": 0, "containers": [container]}}
    c.do("POST", f"/apis/apps/v1/namespaces/{ns}/deployments",
         {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
          "spec": {"replicas": number, "selector": {"matchLabels": {"app": name}}, "template": template}})


def by_unit(pods, units):
    return [[p for p in pods if unit_of(p) == i] for i in range(units)]


@case("under a ResourcePolicy shares of cards, pinned CPUs and gangs are had unit by unit: each pod gets on the node of its unit what it asked for, and the limits hold")
def interplay(suite):
    c, ns = suite.cluster, suite.namespace()
    definition(suite)
    suite.scheduler()
    topology = "pack:1 [numa] l3:2 core:8 pu:1"
    nodes = Nodes(suite, [gpu_node("pi-a", "cgpu", T4, 1, labels={"pool": "pi-a"}, topology=topology), gpu_node("pi-b", "cgpu", T4, 2, labels={"pool": "pi-b"}, topology=topology),
                          {"name": VIRTUAL, "virtual": True, "cpu": "100", "labels": {"pool": VIRTUAL}}])
    for name, gib in (("pi-a", "15"), ("pi-b", "30")):
        wait_until(lambda n=name, g=gib: c.get(f"/api/v1/nodes/{n}")["status"]["allocatable"].get(MEM) == g, f"{name} lists its memory")

    # Room for three on the first card; its unit has eight GiB.
    put_policy(c, ns, "share", [pool("pi-a", maxResources={MEM: "8"}), pool("pi-b")], {"app": "share"})
    wait_in_force(c, ns, "share")
    replicas(c, ns, "share", 4, {"limits": {MEM: 4, "cpu": "1"}})
    first, second = by_unit(wait_running(c, ns, "app=share", 4), 2)
    check_equal((len(first), len(second)), (2, 2), "pods by unit")
    for unit, pods in enumerate((first, second)):
        for p in pods:
            check_equal(p["spec"]["nodeName"], ("pi-a", "pi-b")[unit], "its node")
            check_equal(sum(json.loads(p["metadata"]["annotations"][CLAIM])["0"].values()), 4, "GiB in its claim")
            check_equal(p["metadata"]["annotations"][COST], str(64 - unit), "its deletion cost")

    # Pinned: at most four CPUs of the first unit, though it has more.
    put_policy(c, ns, "pinned", [pool("pi-a", maxResources={"cpu": "4"}), pool("pi-b")], {"app": "pinned"})
    wait_in_force(c, ns, "pinned")
    replicas(c, ns, "pinned", 3, {"limits": {"cpu": "2", "memory": "64Mi"}}, annotations={"cpuset-scheduler": "true"})
    first, second = by_unit(wait_running(c, ns, "app=pinned", 3), 2)
    check_equal((len(first), len(second)), (2, 1), "pods by unit")
    cpus = [check_pinned(nodes, p) for p in (*first, *second)]
    check_equal([len(x) for x in cpus], [2, 2, 2], "CPUs of each")
    check(not cpus[0] & cpus[1], f"two pods of one node share CPUs: {cpus}")

    # A gang over a real and a virtual unit: whole, or not at all.
    put_policy(c, ns, "gang", [pool("pi-a", max=1), pool(VIRTUAL, "eci", max=2)], {"app": "gang"})
    wait_in_force(c, ns, "gang")
    gang = {"pod-group.scheduling.sigs.k8s.io/name": "g", "pod-group.scheduling.sigs.k8s.io/min-available": "4"}
    replicas(c, ns, "gang", 4, {"limits": {"cpu": "1"}}, labels=gang)
    names = wait_until(lambda: [p["metadata"]["name"] for p in c.pods(ns) if p["metadata"]["labels"]["app"] == "gang"], "its pods")
    c.wait_refused(ns, names[0], r"room for 3 of 4 pods.*units\[\d\] of ResourcePolicy gang, which is at its max")
    check(not any(c.node_of(ns, n) for n in names), "a part of the gang was bound")
    c.do("PATCH", policy_path(ns, "gang"), {"spec": {"units": [pool("pi-a", max=1), pool(VIRTUAL, "eci", max=3)]}}, MERGE)
    first, second = by_unit(wait_running(c, ns, "app=gang", 4), 2)
    check_equal((len(first), len(second)), (1, 3), "members by unit")
    check_equal({p["spec"]["nodeName"] for p in second}, {VIRTUAL}, "members of the virtual unit")
    wait_until(lambda: [u["pods"] for u in status_of(c, ns, "share")["units"]] == [2, 2] and [u["pods"] for u in status_of(c, ns, "gang")["units"]] == [1, 3], "the statuses say so")
