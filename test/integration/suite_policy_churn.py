# SPDX-License-Identifier: Apache-2.0
"""ResourcePolicies under churn: the scheduler that leads is killed again and again (in the soak there are two, which share a lease), and the API server misbehaves, while pods of two policies come
and go. Whoever follows the watch never sees a unit with more pods, or more of their CPUs, than it may have."""
import collections
import os

import churn
from churn import holds
from harness import case, check, check_equal, wait_until
from suite_policy import COST, pool, put_policy, status_of, unit_of

A, B, V = "pc-a", "pc-b", "pc-virtual"
NODES = [{"name": n, "cpu": "64", "plugin": False, "labels": {"pool": n}} for n in (A, B)] + [{"name": V, "cpu": "1000", "pods": 1000, "virtual": True, "labels": {"pool": V}}]
# name -> units, more of the spec. "strict": terminating pods count; "loose": they do not, and each revision is counted for itself.
POLICIES = {
    "strict": ([pool(A, max=5), pool(B, max=7), pool(V, "eci")], {"ignoreTerminatingPod": False}),
    "loose": ([pool(A, max=4), pool(B, maxResources={"cpu": "6"}), pool(V, "eci", max=6)], {"ignoreTerminatingPod": True, "matchLabelKeys": ["revision"]}),
}
NODE_OF = (A, B, V)
LEASE = ("--lease-duration=6s", "--lease-renew-deadline=1900ms", "--lease-retry=200ms")
VARIABLE = "COSCHED_POLICY_CHURN_PODS"
LARGE = VARIABLE in os.environ  # two schedulers; otherwise one, which is killed and started again: waiting out a lease takes its time


def policy_of(pod):
    return pod["metadata"]["labels"].get("app")


def cpus(pod):
    return int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def counted(pods):
    """(policy, revision, unit) -> [pods, their CPUs], as each policy counts."""
    counts = collections.defaultdict(lambda: [0, 0])
    for p in pods:
        name = policy_of(p)
        if name not in POLICIES or not holds(p) or unit_of(p) is None or (name == "loose" and "deletionTimestamp" in p["metadata"]):
            continue
        entry = counts[name, p["metadata"]["labels"]["revision"] if name == "loose" else "", unit_of(p)]
        entry[0] += 1
        entry[1] += cpus(p)
    return counts


def beyond(counts):
    """Units that have more than they may."""
    for (name, revision, unit), (number, cpu) in counts.items():
        limits = POLICIES[name][0][unit]
        if number > limits.get("max", number) or cpu > int(limits.get("maxResources", {}).get("cpu", cpu)):
            yield f"units[{unit}] of {name}{revision}: {number} pods with {cpu} CPUs"


class Auditor(churn.Auditor):
    def judge(self, key, pod, node):
        if pod and policy_of(pod) in POLICIES:
            if unit_of(pod) is None:
                self.problem(key, "is bound without a unit")
            elif NODE_OF[unit_of(pod)] != node:
                self.problem(key, "of unit", unit_of(pod), "is on", node)
        for what in beyond(counted(p for there in self.on.values() for p in there.values())):
            self.problem("after", key, "changed:", what)


class Churn(churn.Churn):
    # A lease has to be waited out: pods live longer than that.
    specs, pods_at_once, pause_s, settings = NODES, 120 if LARGE else 60, 0.3 if LARGE else 0.08, ("--request-timeout=2s",)
    faults_of = {"kill_scheduler": 1 if LARGE else 3, "rule": 7, "cut": 4, "forget": 2, "away": 1}

    def __init__(self, suite, seed):
        super().__init__(suite, seed)
        self.auditor = Auditor(self.cluster, self.pods_path, f"{seed}-a")
        self.watchers = [self.auditor]
        self.pair = []
        for name, (units, more) in POLICIES.items():
            put_policy(self.cluster, self.ns, name, units, {"app": name}, **more)

    def random_pods(self, dice, name):
        app = dice.choice(("strict", "strict", "loose"))
        one = churn.container(dice, "main", {}, ends=dice.random() < 0.2, requests={"cpu": str(dice.choice((1, 1, 2)))})
        return [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": app, "revision": dice.choice("12")}},
                 "spec": {"schedulerName": "ack-co-scheduler", "restartPolicy": "Never", "terminationGracePeriodSeconds": dice.choice((0, 1)), "containers": [one]}}]

    # ---- two schedulers

    def revive(self):
        """There are always two, unless it is to be quick. One that lost its lease has ended, as it must."""
        self.pair = [p for p in self.pair if p.process.poll() is None]
        while len(self.pair) < (2 if LARGE else 1):
            self.pair.append(self.suite.scheduler(*self.settings, *(LEASE if LARGE else ()), lease="churn" if LARGE else None, wait=False))
            self.pair[-1].may_end = LARGE

    def leader(self):
        def ask():
            self.revive()
            return next((p for p in self.pair if "msg=scheduling " in p.output()), None)

        self.scheduler = wait_until(ask, "one of the two leads", 60, 0.1)
        return self.scheduler

    def start(self):
        self.revive()
        self.leader()
        for thread in self.watchers:
            self.suite.stack.callback(setattr, thread, "ending", True)
            thread.start()

    def kill_scheduler(self):
        """The one that leads, or would be the next to."""
        self.revive()
        leading = next((p for p in self.pair if "msg=scheduling " in p.output()), self.pair[0])
        leading.kill()
        leading.check_clean()
        self.revive()
        self.scheduler = self.pair[0]

    def same_model(self):
        self.leader()
        return super().same_model()

    def prepare(self):
        self.leader()

    # ---- when it is quiet

    def settled(self):
        pods = self.pods()
        counts = counted(pods)
        for p in pods:
            name = p["metadata"]["name"]
            check("deletionTimestamp" not in p["metadata"], name, "is terminating")
            if p["spec"].get("nodeName"):
                check(p["status"].get("phase") != "Pending", name, "is bound and still pending")
                continue
            check_equal(policy_of(p), "loose", f"{name} waits ({self.says_why(p)}), but its last unit has no end")
            check_equal(counts["loose", p["metadata"]["labels"]["revision"], 2][0], 6, f"{name} waits ({self.says_why(p)}): pods in its last unit")
        return pods

    def agree(self, pods):
        for p in filter(holds, pods):
            check_equal(p["metadata"]["annotations"][COST], str(64 - unit_of(p)), f"deletion cost of {p['metadata']['name']}")
        for name, (units, _more) in POLICIES.items():
            here = collections.Counter(unit_of(p) for p in pods if holds(p) and policy_of(p) == name)
            check_equal([u["pods"] for u in status_of(self.cluster, self.ns, name)["units"]], [here[i] for i in range(len(units))], f"status of {name}")

    def same(self, model, pods):
        check_equal(sorted(k for k, o in model.items() if holds(o)), sorted(k for k, p in pods.items() if holds(p)), "pods that hold something in the model")

    def in_use(self, pods):
        return f"pods by policy and unit: { {f'{n}{r}[{u}]': v[0] for (n, r, u), v in sorted(counted(pods).items())} }"

    def fill(self):
        """Everything goes; then every unit can be filled to the last pod: nobody remembers one that is gone."""
        self.clear()
        for i in range(13):
            self.cluster.create_pod(self.ns, f"fill-{i}", requests={"cpu": "1"}, labels={"app": "strict"})
        self.all_run(13)
        check_equal(collections.Counter(map(unit_of, self.pods())), {0: 5, 1: 7, 2: 1}, "pods of the strict policy by unit")
        self.clear()


@case("pods of two policies come and go while the scheduler that leads is killed and the API server misbehaves: no unit ever has more than its max",
      needs={"local", "alone"})
def churns(suite):
    churn.rounds(suite, Churn, VARIABLE, 40)
