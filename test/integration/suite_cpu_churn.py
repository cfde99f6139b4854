# SPDX-License-Identifier: Apache-2.0
"""Random pods with CPUs of their own come and go on simulated nodes, under the faults of churn.py. No CPU is ever bound to two pods of which neither shares, and when it is quiet all books are
the same:

    the watch stream   every event: what the pods on the node have (the annotation cpuset and, while a loan is called back, what is confirmed), container by container
    the cgroups        again and again: no two of them that are pinned have a CPU in common; when it is quiet each has what its pod's annotation says, and that is what was confirmed
    the scheduler      its dump is the API's pods with their CPUs, before and after it was started anew; a pod waits only where it does not fit; and every CPU can be given out again

Some pods are edited by hand once their CPUs are confirmed: other CPUs, none that can be read, the request taken away. What was confirmed stays theirs, and nobody else's.

COSCHED_CPU_CHURN_PODS is how many pods are made (150), COSCHED_SEED repeats the dice (not the threads' timing).
"""
import collections
import contextlib
import glob
import json
import os
import threading
import time

import churn
from churn import container, holds
from harness import MERGE, Failed, case, check, check_equal
from suite_faults import TROUBLE, is_live, key_of
from suite_nodes import MEM, T4, gpu_node
from suite_pinning import APPLIED, TOPOLOGY, expand, round_by_round

GANG = "pod-group.scheduling.sigs.k8s.io/"
SPEC = "scheduling.alibabacloud.com/numa-topology-spec"
NODES = [{"name": "cc-threads", "topology": f"pack:2 [numa] l3:2 core:4 pu:2({round_by_round(16)})"},
         {"name": "cc-cores", "topology": "pack:2 [numa] l3:2 core:4 pu:1", "pluginArgs": ["--reserved-cpus=0"]},
         {**gpu_node("cc-cards", "share", T4, 2), "cpu": "16", "topology": f"pack:2 [numa] l3:1 core:4 pu:2({round_by_round(8)})"}]
FORGED, BROKEN = json.dumps({"c0": {"0": {"elems": {"1": {}, "2": {}}}}}), "{"
EDITED = set()  # uids of pods whose annotations are not ours alone any more


def notes(pod):
    return pod["metadata"].get("annotations", {})


def claim(pod, key="cpuset"):
    """container → CPUs, as the annotation says; "" is absent, and so is what somebody has made unreadable."""
    text = notes(pod).get(key) or "{}"
    return {name: {int(cpu) for part in numa.values() for cpu in part["elems"]} for name, numa in ({} if text == BROKEN else json.loads(text)).items()}


def is_edited(pod):
    return pod["metadata"]["uid"] in EDITED


def is_pinned(pod):
    return notes(pod).get("cpuset-scheduler") in ("true", "required") or is_edited(pod)


def is_shared(pod):
    return notes(pod).get("cosched.io/cpuset-shared") == "true"


def held(pod):
    """All that somebody may still run on: a loan that is called back is held until its end is confirmed. What the annotation says of an edited one means nothing."""
    if is_edited(pod):
        return set().union(*claim(pod, APPLIED).values())
    return set().union(*claim(pod).values(), *claim(pod, APPLIED).values()) if is_pinned(pod) else set()


def limit(c):
    return int(c.get("resources", {}).get("limits", {}).get("cpu", 0))


def at_once(pod):
    """CPUs of those that run side by side, or of the way there."""
    running = peak = 0
    for c in pod["spec"].get("initContainers", ()):
        running += limit(c) if c.get("restartPolicy") == "Always" else 0
        peak = max(peak, running + (0 if c.get("restartPolicy") == "Always" else limit(c)))
    return max(peak, running + sum(map(limit, pod["spec"]["containers"])))


def requested_milli(pod):
    """Of the CPU, for the node's own room; init containers here never ask for more than the others."""
    amounts = [c["resources"].get("requests", {}).get("cpu", c["resources"].get("limits", {}).get("cpu", "0")) for c in pod["spec"]["containers"]
               + [c for c in pod["spec"].get("initContainers", ()) if c.get("restartPolicy") == "Always"]]
    return sum(int(a[:-1]) if a.endswith("m") else 1000 * int(a) for a in amounts)


class Layout:
    """Of a node, as its plugin has published it."""

    def __init__(self, text):
        said = json.loads(text)
        self.all = set().union(*map(expand, said["numa"]))
        self.usable = self.all - expand(said["reserved"]) - expand(said["offline"])
        self.numa = [expand(n) & self.usable for n in said["numa"]]

    def nodes_of(self, cpus):
        return sum(1 for n in self.numa if n & cpus)

    def fewest(self, n):
        """NUMA nodes that n CPUs need when nobody else is there."""
        for count, size in enumerate(sorted(map(len, self.numa), reverse=True), 1):
            n -= size
            if n <= 0:
                return count
        return None


class Auditor(churn.Auditor):
    def __init__(self, layouts, *args):
        super().__init__(*args)
        self.layouts = layouts

    def judge(self, key, pod, node):
        if pod and is_pinned(pod) and not is_edited(pod):
            wrong = self.adds_up(pod, self.layouts[node])
            if wrong:
                self.problem("at", self.version, key, "on", node, wrong, {k: v for k, v in notes(pod).items() if "cpu" in k or "numa" in k})
        owner = {}
        for other, p in self.on[node].items():
            for cpu in held(p):
                if owner.setdefault(cpu, other) != other and not (is_shared(p) and is_shared(self.on[node][owner[cpu]])):
                    self.problem("at", self.version, f"{node}: CPU {cpu} is bound to {owner[cpu]} and {other}", {k: notes(o) for k, o in self.on[node].items() if k in (owner[cpu], other)})
                    return

    def adds_up(self, pod, layout):
        """None, or what is wrong with the pod's own CPUs."""
        said, used = claim(pod), set()
        burst = notes(pod).get("cpu-policy") == "static-burst"
        self.counts["bound to CPUs"] += 1
        self.counts["loans called back"] += bool(claim(pod, APPLIED)) and said != claim(pod, APPLIED)
        for c in pod["spec"]["containers"] + pod["spec"].get("initContainers", []):
            cpus, n = said.get(c["name"], set()), limit(c)
            if len(cpus) < n or (len(cpus) > n and not burst):
                return f"{c['name']} asks for {n} CPUs and has {sorted(cpus)}"
            if c in pod["spec"]["containers"] or c.get("restartPolicy") == "Always":
                if cpus & used:
                    return f"{c['name']} and another have {sorted(cpus & used)}"
                used |= cpus
        everything = set().union(*said.values())
        if not everything <= layout.usable:
            return f"no such CPUs: {sorted(everything - layout.usable)}"
        policy = json.loads(notes(pod).get(SPEC, "{}")).get("numaTopologyPolicy") if notes(pod)["cpuset-scheduler"] == "required" else None
        allowed = {"SingleNUMANode": 1, "Restricted": layout.fewest(at_once(pod))}.get(policy, len(layout.numa))
        return f"{policy}: on {layout.nodes_of(everything)} NUMA nodes" if layout.nodes_of(everything) > allowed and not burst else None


class Cgroups(threading.Thread):
    """What is in the nodes' cgroups, one node after the other, all the time."""

    def __init__(self, churning):
        super().__init__(daemon=True)
        self.churning, self.ending, self.problems = churning, False, []
        self.counts = collections.Counter()

    def read(self, path):
        """None: it is gone."""
        with contextlib.suppress(OSError):
            with open(path, encoding="ascii") as f:
                return expand(f.read().strip())
        return None

    def look(self, node):
        """path → CPUs, of the containers' cgroups."""
        found = {path: self.read(path) for path in glob.glob(os.path.join(self.churning.nodes.directory, node, "cgroup/cpuset/kubepods/**/pod*/*/cpuset.cpus"), recursive=True)}
        return {path: cpus for path, cpus in found.items() if cpus}

    def run(self):
        try:
            while not self.ending:
                for node in self.churning.names:
                    self.judge(node, self.look(node))
                    time.sleep(0.03)
        except Exception as e:  # pylint: disable=broad-except
            self.problems.append(f"the cgroups: {e!r}")

    def judge(self, node, found):
        layout = self.churning.layouts[node]
        pinned = [(p, cpus) for p, cpus in found.items() if cpus != layout.all]
        self.counts["lists"] += 1
        self.counts["pinned"] += len(pinned)
        for i, (one, cpus) in enumerate(pinned):
            for other, others in pinned[i + 1:]:
                if cpus & others and uid_of(one) != uid_of(other):
                    self.confirm(node, one, other)

    def confirm(self, node, one, other):
        """Files are read one after the other: it is true only if the first still says so after the second was read, and both pods are still there and do not share."""
        second = self.read(other)
        first = self.read(one)
        if not first or not second or not first & second or first == self.churning.layouts[node].all:
            return
        pods = {p["metadata"]["uid"]: p for p in self.churning.auditor.now() if holds(p)}
        pair = [pods.get(uid_of(path)) for path in (one, other)]
        if all(pair) and not all(map(is_shared, pair)):
            self.problems.append(f"{node}: CPUs {sorted(first & second)} are in the cgroups of {[(key_of(p), notes(p)) for p in pair]}")


def uid_of(path):
    return os.path.basename(os.path.dirname(os.path.dirname(path))).removeprefix("pod")


def random_pods(dice, name):
    """One pod, or the pods of a gang."""
    kind = dice.choices(("plain", "burst", "required", "shared", "several", "init", "sidecar", "card", "gang", "free"), (7, 4, 4, 2, 3, 1, 1, 3, 2, 1))[0]
    cpus = lambda most=6: {"cpu": dice.randrange(1, most + 1)}
    asks, labels, inits, cs, count = {"cpuset-scheduler": "true"}, {"kind": kind}, [], [cpus(14 if dice.random() < 0.1 else 6)], 1
    if kind == "burst":
        asks["cpu-policy"] = "static-burst"
        cs = [cpus(5) for _ in range(dice.choice((1, 1, 2)))]
    elif kind == "required":
        spec = {"numaTopologyPolicy": dice.choice(("SingleNUMANode", "Restricted", "BestEffort"))}
        if dice.random() < 0.5:
            spec["singleNUMANodeExclusive"] = dice.choice(("Required", "Preferred"))
        asks = {"cpuset-scheduler": "required", SPEC: json.dumps(spec)}
    elif kind == "shared":
        asks["cosched.io/cpuset-shared"] = "true"
    elif kind == "several":
        cs = [cpus(4) for _ in range(dice.choice((2, 3)))]
    elif kind in ("init", "sidecar"):
        inits, cs = [cpus(2)], [cpus(4)]
    elif kind == "card":
        cs = [{**cpus(5), MEM: dice.randrange(1, 9)}]
    elif kind == "gang":
        count = dice.choice((2, 3))
        labels.update({GANG + "name": name, GANG + "min-available": str(count)})
    elif kind == "free":
        asks, cs = {}, [{"cpu": 1}]
    little = {"requests": {"cpu": "100m"}} if kind == "shared" or dice.random() < 0.5 else {}
    ends = dice.random() < 0.15
    spec = {"containers": [container(dice, f"c{i}", limits, ends=ends, **little) for i, limits in enumerate(cs)],
            "initContainers": [container(dice, f"i{i}", limits, **little, **({"restartPolicy": "Always"} if kind == "sidecar" else {"ends": True}))
                               for i, limits in enumerate(inits)],
            "schedulerName": "ack-co-scheduler", "restartPolicy": "Never", "terminationGracePeriodSeconds": dice.choice((0, 0, 1)),
            "tolerations": [{"operator": "Exists"}]}
    forged = {"cpuset": FORGED, APPLIED: FORGED} if dice.random() < 0.05 else {}
    return [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{name}-{i}", "labels": labels, "annotations": {**asks, **forged}}, "spec": spec} for i in range(count)]


class Following(Auditor):
    """With a copy of what it has seen last, for others."""

    def now(self):
        with self.lock:
            return list(self.view.values())


class Churn(churn.Churn):
    specs, pods_at_once, pause_s = NODES, 30, 0.2
    faults_of = {"kill_scheduler": 3, "kill_plugin": 3, "kubelet": 2, "rule": 7, "cut": 2, "forget": 1, "away": 1, "edit": 6}

    def __init__(self, suite, seed):
        super().__init__(suite, seed)
        self.layouts = {}
        self.auditor, self.cgroups = Following(self.layouts, self.cluster, self.pods_path, f"{seed}-a"), Cgroups(self)
        self.watchers = [self.auditor, self.cgroups]

    def random_pods(self, dice, name):
        return random_pods(dice, name)

    def prepare(self):
        self.nodes.offers("cc-cards", mem=30, count=2)
        for name in self.names:
            self.layouts[name] = Layout(churn.wait_until(lambda n=name: self.nodes.get(n)["metadata"]["annotations"].get(TOPOLOGY), f"the layout of {name}"))

    def edit(self):
        """Somebody edits a pod that is on its CPUs."""
        pods = sorted((p for p in self.auditor.now() if holds(p) and is_pinned(p) and claim(p) and claim(p) == claim(p, APPLIED)), key=key_of)
        if not pods:
            return
        pod = self.dice.choice(pods)
        change = self.dice.choice(({"cpuset": FORGED}, {"cpuset": BROKEN}, {"cpuset-scheduler": None}, {"cpuset-scheduler": "false", "cpuset": FORGED}))
        EDITED.add(pod["metadata"]["uid"])  # first: the auditor may see it before we hear of it
        with contextlib.suppress(Failed, *TROUBLE):
            self.cluster.do("PATCH", f"{self.pods_path}/{pod['metadata']['name']}", {"metadata": {"uid": pod["metadata"]["uid"], "annotations": change}}, MERGE)
            self.auditor.counts["edited"] += 1

    # ---- when it is quiet

    def settled(self):
        pods = self.pods()
        check(self.scheduler.alive())
        for p in pods:
            name, phase = p["metadata"]["name"], p["status"].get("phase")
            check("deletionTimestamp" not in p["metadata"], name, "is terminating")
            if not p["spec"].get("nodeName"):
                why, room = self.says_why(p), self.room(p, pods)
                check(not room, name, "waits, though it fits:", room, why)
                continue
            check(phase != "Pending", name, "is bound to", p["spec"]["nodeName"], "and is still pending")
            if is_live(p) and is_edited(p):
                check(claim(p, APPLIED), name, "was edited and has no CPUs any more")
            elif is_live(p) and is_pinned(p):
                check_equal(claim(p, APPLIED), claim(p), f"{name}: what the node agent says, beside the annotation")
        return pods

    def room(self, pod, pods):
        """A node on which a waiting pod would fit that insists on nothing; of others it is not asked here. What is on loan is called back for it."""
        if pod["metadata"]["labels"]["kind"] not in ("plain", "burst", "several"):
            return None
        for node, layout in self.layouts.items():
            here = [p for p in pods if holds(p) and p["spec"]["nodeName"] == node]
            lends = [p for p in here if notes(p).get("cpu-policy") == "static-burst" and not is_edited(p)]
            taken = set().union(*(held(p) | set().union(*claim(p).values()) for p in here if p not in lends))
            if len(layout.usable - taken) - sum(map(at_once, lends)) >= at_once(pod) and \
                    1000 * len(layout.all) - sum(map(requested_milli, here)) >= requested_milli(pod):
                return node
        return None

    def agree(self, pods):
        """Each container that runs is where its pod's annotation says, and nobody else has a cgroup."""
        for node in self.names:
            found = self.cgroups.look(node)
            here = [p for p in pods if holds(p) and p["spec"]["nodeName"] == node]
            for p in here:
                statuses = p["status"].get("containerStatuses", []) + p["status"].get("initContainerStatuses", [])
                for status in (s for s in statuses if "running" in s["state"]):
                    ident = status["containerID"].split("://")[1]
                    got = next((cpus for path, cpus in found.items() if f"/pod{p['metadata']['uid']}/{ident}/" in path), None)
                    want = claim(p, APPLIED if is_edited(p) else "cpuset")[status["name"]] if is_pinned(p) else self.layouts[node].all
                    check_equal(got, want, f"{node}: the cgroup of {key_of(p)}/{status['name']}")
            left = {uid_of(path) for path in found} - {p["metadata"]["uid"] for p in here}
            check(not left, f"{node}: cgroups of pods that are gone: {left}")

    def in_use(self, pods):
        used = sum(len(set().union(*(held(p) for p in pods if holds(p) and p["spec"]["nodeName"] == n))) for n in self.names)
        return f"{used} of {sum(len(x.usable) for x in self.layouts.values())} CPUs in use"

    def same(self, model, pods):
        for key, p in pods.items():
            if holds(p) and is_edited(p):
                has = set().union(*claim(model[key]).values(), *claim(model[key], APPLIED).values())
                check(held(p) <= has, f"{key} was edited and is on {held(p)}, of which the model has {has}")
            elif holds(p) and is_pinned(p):
                check_equal(claim(model[key]), claim(p), f"CPUs of {key} in the model, beside the API's")
        check_equal(sorted(k for k, o in model.items() if holds(o)), sorted(k for k, p in pods.items() if holds(p)), "pods that hold something in the model")

    def fill(self):
        """Everything goes; then each NUMA node goes as a whole to one pod, though nobody has been told which: nobody remembers a pod that is gone."""
        self.clear()
        count = 0
        for node, layout in self.layouts.items():
            for cpus in layout.numa:
                self.cluster.create_pod(self.ns, f"fill-{count}", requests={"cpu": "1"}, limits={"cpu": str(len(cpus))}, node_selector={"kubernetes.io/hostname": node},
                                        annotations={"cpuset-scheduler": "required", SPEC: json.dumps({"numaTopologyPolicy": "SingleNUMANode"})}, labels={"kind": "fill"})
                count += 1
        self.all_run(count)
        churn.wait_until(lambda: self.agree(self.settled()) or True, "the cgroups are full too", 30, 0.1)
        pods = self.same_model()
        for node, layout in self.layouts.items():
            check_equal(set().union(*(held(p) for p in pods if p["spec"]["nodeName"] == node)), layout.usable, f"{node}: all CPUs")
        self.clear()


@case("random pods with CPUs of their own under faults, with scheduler and plugins killed: no CPU is ever bound twice, and annotations, cgroups and model agree when it is quiet",
      needs={"local", "long"})
def churns(suite):
    churn.rounds(suite, Churn, "COSCHED_CPU_CHURN_PODS", 150)
