# SPDX-License-Identifier: Apache-2.0
"""More important pods: who goes for them, who stays, and who is told what. Nodes are only API objects, so a pod that is told to go stays until the case lets it."""
import datetime

from harness import MERGE, case, check, check_equal, wait_until

CLASSES = {"cosched-high": 1000, "cosched-never": 1000, "cosched-mid": 500, "cosched-low": 100}
KEEPER = "cosched.io/keep"  # a finalizer: its pod leaves when the case says so


def classes(c):
    for name, value in CLASSES.items():
        policy = "Never" if name == "cosched-never" else "PreemptLowerPriority"
        c.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy})


def create(c, ns, name, node, importance, cpu, finalizer=False, **more):
    c.create_pod(ns, name, requests={"cpu": cpu}, node_selector={"pool": node}, priorityClassName=importance, **more)
    if finalizer:
        c.do("PATCH", f"/api/v1/namespaces/{ns}/pods/{name}", {"metadata": {"finalizers": [KEEPER]}}, MERGE)


def let_go(c, ns, name):
    """As its kubelet would, in the end."""
    c.do("PATCH", f"/api/v1/namespaces/{ns}/pods/{name}", {"metadata": {"finalizers": None}}, MERGE, ok=(200, 404))
    c.request("DELETE", f"/api/v1/namespaces/{ns}/pods/{name}", {"gracePeriodSeconds": 0})


def is_leaving(c, ns, name):
    return "deletionTimestamp" in c.pod(ns, name)["metadata"]


@case("a more important pod sends the least important away, waits until it is gone, and takes its room; nobody else does")
def room_is_made(suite):
    c, ns = suite.cluster, suite.namespace()
    classes(c)
    node = suite.node("pre-1", cpu="4")
    suite.scheduler()
    create(c, ns, "low", node, "cosched-low", "2", finalizer=True)
    create(c, ns, "mid", node, "cosched-mid", "2")
    for name in ("low", "mid"):
        c.wait_bound(ns, name)
    create(c, ns, "high", node, "cosched-high", "2")
    wait_until(lambda: is_leaving(c, ns, "low"), "the least important is told to go")
    reasons = {x["type"]: x for x in c.pod(ns, "low")["status"].get("conditions", [])}
    check_equal(reasons.get("DisruptionTarget", {}).get("reason"), "PreemptionByScheduler", "the victim's condition")
    check(f"{ns}/high" in reasons["DisruptionTarget"]["message"], reasons)
    wait_until(lambda: c.pod(ns, "high")["status"].get("nominatedNodeName") == node, "the room is promised")
    c.wait_refused(ns, "high", r"too little cpu .*(must go for it|are leaving pre-1 for it)")
    create(c, ns, "rival", node, "cosched-mid", "2")  # less important: may not take the room, nor send anybody away
    c.wait_refused(ns, "rival", "too little cpu")
    check(not is_leaving(c, ns, "mid"), "a pod that need not go was sent away")
    check(c.node_of(ns, "high") is None, "bound before the room was free")
    let_go(c, ns, "low")
    check_equal(c.wait_bound(ns, "high"), node, "the important pod")
    check(c.node_of(ns, "rival") is None, "the rival took the room")
    wait_until(lambda: c.events(ns, "low", "Preempted"), "an event tells why it went")


@case("who must not or need not send others away: preemptionPolicy Never, equals, and pods that no leaving helps")
def nobody_goes(suite):
    c, ns = suite.cluster, suite.namespace()
    classes(c)
    node = suite.node("pre-2", cpu="2")
    suite.scheduler()
    create(c, ns, "low", node, "cosched-low", "2")
    c.wait_bound(ns, "low")
    create(c, ns, "never", node, "cosched-never", "2")
    create(c, ns, "equal", node, "cosched-low", "2")
    create(c, ns, "huge", node, "cosched-high", "3")
    for name in ("never", "equal", "huge"):
        c.wait_refused(ns, name, "too little cpu")
    check(not is_leaving(c, ns, "low"), "a pod was sent away in vain")
    for name in ("never", "equal", "huge"):
        check("nominatedNodeName" not in c.pod(ns, name)["status"], name, "was promised room")


@case("a gang sends others away for all its members or for none, takes a victim's whole gang, and goes when the last one has gone")
def room_for_gangs(suite):
    c, ns = suite.cluster, suite.namespace()
    classes(c)
    for i in (1, 2, 3):
        suite.node(f"pre-5{i}", cpu="2", labels={"pre5": "yes"})
    suite.scheduler()

    def member(gang, size, name, importance, finalizer=False):
        labels = {"pod-group.scheduling.sigs.k8s.io/name": gang, "pod-group.scheduling.sigs.k8s.io/min-available": str(size)}
        c.create_pod(ns, name, requests={"cpu": "2"}, node_selector={"pre5": "yes"}, priorityClassName=importance, labels=labels)
        if finalizer:
            c.do("PATCH", f"/api/v1/namespaces/{ns}/pods/{name}", {"metadata": {"finalizers": [KEEPER]}}, MERGE)

    for i in (1, 2):
        member("low", 2, f"low-{i}", "cosched-low", finalizer=True)
    create(c, ns, "high", "pre-53", "cosched-high", "2")
    for name in ("low-1", "low-2", "high"):
        c.wait_bound(ns, name)
    for i in (1, 2, 3):
        member("three", 3, f"three-{i}", "cosched-mid")
    c.wait_refused(ns, "three-1", "room for 0 of 3 pods")
    check(not any(is_leaving(c, ns, f"low-{i}") for i in (1, 2)), "pods were sent away for a gang that has no room anyway")
    for i in (1, 2, 3):
        c.request("DELETE", f"/api/v1/namespaces/{ns}/pods/three-{i}", {"gracePeriodSeconds": 0})
    for i in (1, 2):
        member("two", 2, f"two-{i}", "cosched-mid")
    wait_until(lambda: all(is_leaving(c, ns, f"low-{i}") for i in (1, 2)), "both members of the less important gang are told to go")
    wait_until(lambda: sorted(c.pod(ns, f"two-{i}")["status"].get("nominatedNodeName", "") for i in (1, 2)) == ["pre-51", "pre-52"],
               "every member is promised its room")
    let_go(c, ns, "low-1")
    c.wait_refused(ns, "two-1", "room for 1 of 2 pods.*are leaving pre-5[12] for it")
    check(c.node_of(ns, "two-1") is None and c.node_of(ns, "two-2") is None, "a member was bound before the room of all was free")
    let_go(c, ns, "low-2")
    check_equal(sorted(c.wait_bound(ns, f"two-{i}") for i in (1, 2)), ["pre-51", "pre-52"], "the gang")
    check(not is_leaving(c, ns, "high"), "a more important pod was sent away")


@case("a disruption budget is kept as long as another node will do")
def budgets(suite):
    c, ns = suite.cluster, suite.namespace()
    classes(c)
    for i in (1, 2):
        suite.node(f"pre-3{i}", cpu="2", labels={"pre3": "yes"})
    suite.scheduler()
    create(c, ns, "guarded", "pre-31", "cosched-low", "2", labels={"app": "guarded"})
    create(c, ns, "free", "pre-32", "cosched-mid", "2")
    for name in ("guarded", "free"):
        c.wait_bound(ns, name)
    c.do("POST", f"/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
         {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}}})
    path = f"/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets/b"
    wait_until(lambda: c.get(path).get("status", {}).get("observedGeneration"), "the budget is counted")
    c.create_pod(ns, "high", requests={"cpu": "2"}, node_selector={"pre3": "yes"}, priorityClassName="cosched-high")
    check_equal(c.wait_bound(ns, "high"), "pre-32", "where the more important, but unguarded pod was")
    check(not is_leaving(c, ns, "guarded"), "the budget was broken")


@case("a kubelet that sends a pod back is left alone for that resource, and only for that")
def rejected(suite):
    c, ns = suite.cluster, suite.namespace()
    node = suite.node("pre-4", cpu="4")
    suite.scheduler()
    c.create_pod(ns, "first", requests={"cpu": "1"}, node_selector={"pool": node})
    c.wait_bound(ns, "first")
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    c.do("PATCH", f"/api/v1/namespaces/{ns}/pods/first/status",
         {"status": {"phase": "Failed", "reason": "OutOfcpu", "message": "Node didn't have enough resource: cpu", "startTime": now}}, MERGE)
    c.create_pod(ns, "second", requests={"cpu": "1"}, node_selector={"pool": node})
    c.wait_refused(ns, "second", "just sent a pod back for want of cpu")
    c.create_pod(ns, "third", requests={"memory": "1Gi"}, node_selector={"pool": node})
    check_equal(c.wait_bound(ns, "third"), node, "a pod that wants no CPU")
    c.wait_bound(ns, "second", seconds=45)
