# SPDX-License-Identifier: Apache-2.0
"""ResourcePolicies: pods use pools of nodes in order and leave them in reverse. Nodes are only API objects; the pods' controllers are the cluster's own."""
import collections
import concurrent.futures
import json
import os
import random
import re
import time

from harness import MERGE, ROOT, SCHEDULER, Failed, case, check, check_equal, wait_until

GROUP = "/apis/scheduling.alibabacloud.com/v1alpha1"
COST, NOTED, UNIT = "controller.kubernetes.io/pod-deletion-cost", "cosched.io/deletion-cost", "cosched.io/resource-unit"
VIRTUAL = {"key": "virtual-kubelet.io/provider", "value": "alibabacloud", "effect": "NoSchedule"}


def definition(suite):
    """ResourcePolicy is built into cosched-local; a real cluster gets our definition, before the scheduler starts to look for it."""
    c = suite.cluster
    if c.target == "local":
        return
    path = os.path.join(ROOT, "deploy/crds/resourcepolicies.yaml")

    def remove():
        c.kubectl("delete", "-f", path, "--ignore-not-found")
        wait_until(lambda: c.request("GET", GROUP + "/resourcepolicies")[0] == 404, "the definition is gone")

    c.kubectl("apply", "-f", path)
    suite.stack.callback(remove)
    wait_until(lambda: c.request("GET", GROUP + "/resourcepolicies")[0] == 200, "resourcepolicies are served")


def policy_path(ns, name=""):
    return f"{GROUP}/namespaces/{ns}/resourcepolicies" + (f"/{name}" if name else "")


def put_policy(c, ns, name, units, selector, **spec):
    body = {"apiVersion": "scheduling.alibabacloud.com/v1alpha1", "kind": "ResourcePolicy", "metadata": {"name": name},
            "spec": {"selector": selector, "strategy": "prefer", "units": units, **spec}}
    return c.do("POST", policy_path(ns), body)


def pool(name, resource="ecs", **more):
    return {"resource": resource, "nodeSelector": {"pool": name}, **more}


def status_of(c, ns, name):
    return c.get(policy_path(ns, name)).get("status", {})


def wait_in_force(c, ns, name):
    """The scheduler knows it: policies and pods are two watches, so pods that come right behind a policy may be placed before it is seen."""
    wait_until(lambda: status_of(c, ns, name).get("phase") == "InForce", f"ResourcePolicy {name} is in force")


def unit_of(pod):
    """"policy/unit/uid" in the pod; None: it has none."""
    text = pod["metadata"].get("annotations", {}).get(UNIT)
    return int(text.split("/")[1]) if text else None


def live(c, ns):
    return [p for p in c.pods(ns) if "deletionTimestamp" not in p["metadata"]]


def deployment(name, replicas, labels):
    container = {"name": "main", "image": "busybox:test", "imagePullPolicy": "Never", "command": ["sleep", "3600"], "resources": {"requests": {"cpu": "1"}}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels},
                                  "spec": {"schedulerName": SCHEDULER, "terminationGracePeriodSeconds": 0, "containers": [container]}}}}


def scale_in(c, ns, name, steps):
    """Ten pods in units of 3, 2 and any number, then two: those of the last unit leave first. Returns how many left out of turn."""
    c.do("POST", f"/apis/apps/v1/namespaces/{ns}/deployments", deployment(name, 10, {"app": name}))
    wait_until(lambda: len([p for p in live(c, ns) if p["spec"].get("nodeName")]) == 10, "all ten are bound")
    check_equal(collections.Counter(map(unit_of, live(c, ns))), {0: 3, 1: 2, 2: 5}, "pods by unit")
    wrong = 0
    for replicas in steps:
        before = sorted(map(unit_of, live(c, ns)))
        c.do("PATCH", f"/apis/apps/v1/namespaces/{ns}/deployments/{name}", {"spec": {"replicas": replicas}}, MERGE)
        wait_until(lambda n=replicas: len(live(c, ns)) == n and len(c.pods(ns)) == n, f"{replicas} are left")
        left = collections.Counter(before[:replicas])
        wrong += sum((collections.Counter(map(unit_of, live(c, ns))) - left).values())
    c.do("DELETE", f"/apis/apps/v1/namespaces/{ns}/deployments/{name}?propagationPolicy=Background")
    wait_until(lambda: not c.pods(ns), "all are gone")
    return wrong


@case("units in order: ten pods of a Deployment fill 3, 2 and the rest, of which the last is virtual; scaled in, they leave in reverse; a user's own deletion cost stays; costs and "
      "status follow the policy")
def order(suite):
    c, ns = suite.cluster, suite.namespace()
    definition(suite)
    for name, what in (("rp-a", {}), ("rp-b", {}), ("rp-v", {"labels": {"type": "virtual-kubelet"}, "taints": [VIRTUAL]})):
        suite.node(name, cpu="16", **what)
    suite.scheduler()
    put_policy(c, ns, "web", [pool("rp-a", max=3), pool("rp-b", max=2, podLabels={"tier": "second"}, podAnnotations={"note": "b"}), pool("rp-v", "eci")], {})
    wait_in_force(c, ns, "web")
    # At once, and step by step: of those that it deletes together, the order cannot be seen from the outside.
    rounds = int(os.environ.get("COSCHED_SCALE_ROUNDS", "2"))
    out_of_turn = sum(scale_in(c, ns, f"web{i}", ((2,), (6, 4, 2))[i % 2]) for i in range(rounds))
    print(f"     {rounds} rounds of 8 pods that leave: {out_of_turn} out of turn", flush=True)
    check_equal(out_of_turn, 0, "pods that left out of turn")
    # One by one, with a cost of the user's among them.
    mine = {COST: "7"}
    for i in range(6):
        c.create_pod(ns, f"p{i}", requests={"cpu": "1"}, annotations=mine if i == 4 else {}, labels={"app": "p"})
        c.wait_bound(ns, f"p{i}")
    pods = {p["metadata"]["name"]: p for p in c.pods(ns)}
    check_equal([unit_of(pods[f"p{i}"]) for i in range(6)], [0, 0, 0, 1, 1, 2], "units")
    check_equal([pods[f"p{i}"]["spec"]["nodeName"] for i in range(6)], ["rp-a"] * 3 + ["rp-b"] * 2 + ["rp-v"], "nodes")
    check_equal([int(pods[f"p{i}"]["metadata"]["annotations"][COST]) for i in range(6)], [64, 64, 64, 63, 7, 62], "costs")
    if int(c.get("/version")["minor"].rstrip("+")) >= 35:  # with the Binding; before that by a patch after it
        check_equal(pods["p3"]["metadata"]["labels"], {"app": "p", "tier": "second"}, "labels that the unit gives, in the Binding")
    wait_until(lambda: c.pod(ns, "p3")["metadata"]["labels"] == {"app": "p", "tier": "second"}, "p3 has the labels that its unit gives")
    check_equal(pods["p3"]["metadata"]["annotations"]["note"], "b", "annotations that the unit gives")
    wait_until(lambda: c.events(ns, "p4", "DeletionCostConflict"), "an Event says that the user's cost may contradict the policy")
    c.create_pod(ns, "large", requests={"cpu": "17"})
    c.wait_refused(ns, "large", r"is in units\[0\] of ResourcePolicy web, which is at its max of 3 pods")

    def told():
        status = status_of(c, ns, "web")
        check([u["pods"] for u in status["units"]] == [3, 2, 1] and status["waiting"] == 1 and status["phase"] == "InForce", status)
        check("max of 3 pods" in status["units"][0]["skipped"] and "max of 2 pods" in status["units"][1]["skipped"], status)
        return True

    wait_until(told, "the status has pods by unit, and why units are passed by")
    shown = c.kubectl("get", "rp", "-n", ns).splitlines()
    check(re.fullmatch(r"NAME +PHASE +PODS +WAITING +AGE *", shown[0]) and re.fullmatch(r"web +InForce +ecs 3/3, ecs 2/2, eci 1 +1 +\S+ *", shown[1]), shown)
    # Turned round: what runs stays where it is, and leaves in another order.
    c.do("PATCH", policy_path(ns, "web"), {"spec": {"units": [pool("rp-v", "eci"), pool("rp-b"), pool("rp-a")]}}, MERGE)
    wait_until(lambda: [int(c.pod(ns, f"p{i}")["metadata"]["annotations"][COST]) for i in range(6)] == [62, 62, 62, 63, 7, 64], "the costs follow")
    check_equal(c.pod(ns, "p0")["spec"]["nodeName"], "rp-a", "a pod that runs")
    c.create_pod(ns, "next", requests={"cpu": "1"})
    check_equal(c.wait_bound(ns, "next"), "rp-v", "a new pod goes by the new order")
    c.do("DELETE", policy_path(ns, "web"))
    wait_until(lambda: not any(NOTED in p["metadata"].get("annotations", {}) for p in c.pods(ns)), "without a policy the costs are taken back")
    check_equal(c.pod(ns, "p4")["metadata"]["annotations"][COST], "7", "the user's cost")


class Row:
    """One scenario of the table that the pure core passes as well (its head says what it may hold): in a namespace of its own, on nodes of its own among those of all others, which the label row
    keeps apart. Numbers of nodes in sentences are those of the whole cluster here, so they are not compared."""

    def __init__(self, suite, number, row):
        self.cluster, self.ns, self.row, self.mark = suite.cluster, suite.namespace(), row, f"row{number}"
        self.pods, self.policies, self.leaving = set(), set(), set()
        for name in {*row["nodes"], *(n for step in row["steps"] for n in step.get("nodes", {}))}:
            suite.stack.callback(self.cluster.do, "DELETE", f"/api/v1/nodes/{self.mark}-{name}", None, "application/json", (200, 404))

    def own(self, labels):
        """Labels of nodes are this row's."""
        return {k: f"{self.mark}-{v}" if k == "pool" else v for k, v in labels.items()}

    def put_node(self, name, what):
        virtual = what.get("virtual", False)
        labels = {"row": self.mark, **self.own(what.get("labels", {})), **({"type": "virtual-kubelet"} if virtual else {})}
        self.cluster.create_node(f"{self.mark}-{name}", cpu=what.get("cpu", "8"), labels=labels, taints=[VIRTUAL] if virtual else [])

    def put_policy(self, policy):
        spec = {**policy["spec"], "units": [{**u, **({"nodeSelector": self.own(u["nodeSelector"])} if "nodeSelector" in u else {})} for u in policy["spec"]["units"]]}
        timeout = re.fullmatch(r"(\d+)s", spec.get("whenTryNextUnits", {}).get("timeout", ""))
        if timeout:  # a condition takes its time, on a busy machine more of it: what holds until then must be seen
            spec["whenTryNextUnits"] = {**spec["whenTryNextUnits"], "timeout": f"{3 * int(timeout[1])}s"}
        if policy["name"] in self.policies:
            self.cluster.do("PATCH", policy_path(self.ns, policy["name"]), {"spec": spec}, MERGE)
        else:
            put_policy(self.cluster, self.ns, policy["name"], spec.pop("units"), spec.pop("selector", {}), **spec)
        self.policies.add(policy["name"])

    def create(self, name, step, node=None):
        priority = step.get("priority")
        self.cluster.create_pod(self.ns, name, requests=step.get("requests", {"cpu": "1"}), labels=step.get("labels", {"app": "web"}),
                                annotations=step.get("annotations"), node_selector={"row": self.mark, **self.own(step.get("nodeSelector", {}))},
                                **({"priorityClassName": f"policy-{priority}"} if priority else {}), **({"nodeName": f"{self.mark}-{node}"} if node else {}))
        self.pods.add(name)

    def change(self, step):
        for name, what in step.get("nodes", {}).items():
            self.put_node(name, what)
        for policy in step.get("policies", ()):
            self.put_policy(policy)
        if "dropPolicy" in step:
            self.cluster.do("DELETE", policy_path(self.ns, step["dropPolicy"]))
            self.policies.discard(step["dropPolicy"])
        for name, node in step.get("bound", {}).items():
            self.create(name, step, node)
        if "policies" in step or "bound" in step:  # seen before the pods come: what is not known cannot hold
            self.seen()
        for name in step.get("pods", ()):
            self.create(name, step)
        for name in step.get("terminate", ()):  # nobody is on the node to end it: it is leaving until it is removed
            self.cluster.do("DELETE", f"/api/v1/namespaces/{self.ns}/pods/{name}?gracePeriodSeconds=600", ok=(200, 202))
            self.pods.discard(name)
            self.leaving.add(name)
        for name in step.get("remove", ()):
            self.cluster.delete_pod(self.ns, name)
            self.pods.discard(name)
            self.leaving.discard(name)
        if "terminate" in step:
            wait_until(lambda: sum(u.get("terminating", 0) for u in self.units()) == len(self.leaving), f"{self.row['name']}: the scheduler knows who leaves")

    def seen(self):
        """The scheduler knows the policies as they are, and the pods that are bound: it says so in the status."""
        for name in self.policies:
            want = len(self.cluster.get(policy_path(self.ns, name))["spec"]["units"])
            wait_until(lambda n=name, w=want: len(status_of(self.cluster, self.ns, n)["units"]) == w, f"{self.row['name']}: the scheduler knows {name}")

    def units(self):
        return [u for name in self.policies for u in status_of(self.cluster, self.ns, name)["units"]]

    def compare(self, step):
        """Fails while it is not as the step says. Who waits has been tried, and says why."""
        pods = {p["metadata"]["name"]: p for p in live(self.cluster, self.ns)}
        waiting = {n: p for n, p in pods.items() if not p["spec"].get("nodeName")}
        whys = {n: next((x.get("message", "") for x in p.get("status", {}).get("conditions", []) if x["type"] == "PodScheduled" and x["status"] == "False"), None) for n, p in waiting.items()}
        check(None not in whys.values(), "not tried yet:", whys)
        units = self.units()
        in_units = sum(u["pods"] for u in units)
        for what, expected in step.get("expect", {}).items():
            unit = re.fullmatch(r"units\[(\d+)\]", what)
            if unit:
                got = units[int(unit[1])]["pods"] if units else 0
            elif what == "waiting":
                got = len(waiting)
            elif what == "elsewhere":
                got = len(pods) - len(waiting) - in_units
            else:
                got = "gone" if what not in pods else pods[what]["spec"].get("nodeName", "waiting").removeprefix(self.mark + "-")
            check_equal(got, expected, f"{what} ({ {n: p['spec'].get('nodeName') for n, p in pods.items()} }, {whys}, {units})")
        for name, part in step.get("why", {}).items():
            check(re.search(re.sub(r"^0/\d+ nodes|^\d+ (is|are) ", "", part).replace("[", r"\["), whys.get(name) or ""), name, "says", whys.get(name), "and not", part)
        for name in step.get("sentAway", ()):
            check(name not in pods, name, "was not sent away")
        for name in self.pods - set(step.get("sentAway", ())):
            check(name in pods, name, "is not there any more")
        for policy, lines in step.get("status", {}).items():
            status = status_of(self.cluster, self.ns, policy)
            check_equal([f"{u['pods']} {u.get('skipped', '')}".strip().replace(self.mark + "-", "") for u in status["units"]], lines, "status")
        return True

    def run(self):
        for name, what in self.row["nodes"].items():
            self.put_node(name, what)
        for policy in self.row.get("policies", ()):
            self.put_policy(policy)
        self.seen()
        for number, step in enumerate(self.row["steps"]):
            self.change(step)
            wait_until(lambda s=step: self.compare(s), f"{self.row['name']}: step {number}", 30 + 3 * step.get("wait", 0), 0.3)
            self.pods -= set(step.get("sentAway", ()))
        for name in self.leaving:
            self.cluster.delete_pod(self.ns, name)


@case("a third of the table of ResourcePolicy scenarios (on cosched-local some of these), side by side: each comes out as on the pure core, and the status says the same")
def table(suite):
    c = suite.cluster
    definition(suite)
    with open(os.path.join(ROOT, "test/unit/scheduler/policy_cases.json"), encoding="utf-8") as f:
        cases = json.load(f)["cases"]
    rows = [row for row in cases if row.get("live")]
    check(3 * len(rows) >= len(cases) >= 60, f"{len(rows)} of {len(cases)} scenarios")
    if c.target == "local" and not os.environ.get("COSCHED_POLICY_ROWS"):  # make test has its time: some of them each time, all in make e2e and the soak
        seed = int(os.environ.get("COSCHED_SEED") or int(time.time()))
        rows = random.Random(seed).sample(rows, 10)
        print(f"     COSCHED_SEED={seed}: {len(rows)} of them", flush=True)
    rows.sort(key=lambda row: "wait" not in str(row["steps"]))  # what takes longest begins first
    for value in sorted({s["priority"] for row in rows for s in row["steps"] if "priority" in s}):
        c.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": f"policy-{value}"}, "value": value})
    began = time.monotonic()
    made = [Row(suite, number, row) for number, row in enumerate(rows)]
    suite.scheduler("--event-qps=500")
    ready = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(16) as pool_of_threads:
        wrong = [str(e) for e in pool_of_threads.map(attempt, made) if e]
    print(f"     {len(rows)} of {len(cases)} scenarios: {ready - began:.1f} s to make them, {time.monotonic() - ready:.1f} s to run them", flush=True)
    check(not wrong, "\n     ".join(wrong))


def attempt(row):
    try:
        row.run()
        return None
    except Failed as e:
        return e
