# SPDX-License-Identifier: Apache-2.0
"""Lets both schedulers decide on each new pod of a world, one after the other in the identical state.

First our twin of the pod is created, we bind it or find no node, and it is removed. Then kube-scheduler's twin is created, limited by the witness to the
node that we chose. The two agree if both bind (to that node), or both refuse. A bound pod stays, and the next pod sees it. A difference is tried again,
twice: the state is the same, so a real difference persists, and one that came from an event under way does not (those are counted and printed).

This covers one node only. So cosched-replay --explain is run on the API server's current objects: the nodes that fit must be those that passed
kube-scheduler's filters. It runs the plugins on each node, while the running scheduler used cached results of equal pods: so the two are compared too.
"""
import collections
import copy
import json
import os
import re
import subprocess
import tempfile

import harness
from arena import Arena, Trouble
from storage import is_late, uses_late

# How often a pod is asked about again on which the two differ. A difference between the schedulers is there every time; one that is not was a race of the test: the two follow the API
# server on watches of their own, and what is restored between their turns (claims, volumes) may reach the one later than the other. Each that another question settles is printed and
# counted (of 1,513 pods, on a busy machine, none was), and more of them than settled_max are a failure: a scheduler that is right only when asked again is wrong.
REPEATS = 2


def settled_max(asked):
    return 1 + asked // 1000


# What a decision is made from; the last ones are asked for in worlds with volumes only.
COLLECTIONS = ["/api/v1/namespaces", "/api/v1/nodes", "/api/v1/pods", "/api/v1/persistentvolumes", "/api/v1/persistentvolumeclaims",
               "/apis/storage.k8s.io/v1/storageclasses", "/apis/storage.k8s.io/v1/csinodes"]


def scheduled(pod):
    """The PodScheduled condition."""
    return next((c for c in pod.get("status", {}).get("conditions", []) if c["type"] == "PodScheduled"), {})


class Decision:
    """A scheduler's decision on a pod; callable with the newest version of the pod, for Arena.wait."""

    def __init__(self, arena, ours):
        self.arena, self.polls = arena, ours
        self.since = arena.logged() if ours else 0

    def __call__(self, pod):
        node = pod["spec"].get("nodeName")
        if node:
            return "bound", node
        if self.polls:
            key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            return ("refused", "") if self.arena.is_refused(key, self.since) else None
        c = scheduled(pod)
        if c.get("status") == "False" and c.get("reason") not in ("SchedulingGated", None):
            if c["reason"] != "Unschedulable":
                raise Trouble(f"kube-scheduler: {c}")
            return "refused", c.get("message", "")
        return None


class Referee:
    preempted = 0  # pods for which both evicted others

    def __init__(self, arena):
        self.arena = arena
        self.client = arena.client
        self.asked = self.bound = self.again = self.settled = 0
        self.reasons = collections.Counter()  # why pods were refused, in kube-scheduler's words: shows what the worlds reach
        self.stored = False
        self.same = {}  # collections that do not change while a world is played
        self.late = []  # claims and volumes of the world that a decision changes

    # One world.

    def path(self, pod, more=""):
        return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods{more}"

    def create(self, pod):
        return self.client.do("POST", self.path(pod), pod)

    def remove(self, pod):
        self.client.do("DELETE", self.path(pod, f"/{pod['metadata']['name']}?gracePeriodSeconds=0"), ok=(200, 202, 404))

    def place(self, item):
        """Creates an existing pod of the world."""
        state, pod = item
        self.create(pod)
        name = pod["metadata"]["name"]
        if state == "terminates":
            self.client.do("DELETE", self.path(pod, f"/{name}?gracePeriodSeconds=3600"))
        elif state == "finished":
            self.client.do("PATCH", self.path(pod, f"/{name}/status"), {"status": {"phase": "Succeeded"}}, "application/merge-patch+json")
        elif state == "resized":
            held = [{"name": c["name"], "image": "busybox:test", "imageID": "", "ready": True, "restartCount": 0, "state": {"running": {}},
                     "allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": "1"}}} for c in pod["spec"]["containers"]]
            self.client.do("PATCH", self.path(pod, f"/{name}/status"), {"status": {"phase": "Running", "containerStatuses": held}},
                           "application/merge-patch+json")

    def set_up(self, world):
        """Nodes first, and both schedulers have seen them: each binds a pod to the last. Pods need no such step: a scheduler that sees a new pod
        has seen the pods before it, since they come by one watch."""
        self.arena.clear()
        self.arena.witness.limits.clear()
        self.arena.witness.left.clear()
        self.stored = bool(world["objects"])
        self.same.clear()
        self.late = [o for o in world["objects"] if is_late(o)]
        self.arena.all(self.arena.store, world["objects"])
        self.arena.wait_claims(world["objects"])
        self.arena.all(lambda n: self.client.do("POST", "/api/v1/nodes", n), world["nodes"][:-1])
        last = world["nodes"][-1]
        self.client.do("POST", "/api/v1/nodes", last)
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [last["metadata"]["name"]]}]}
        spec = {"containers": [{"name": "c", "image": "busybox:test"}], "automountServiceAccountToken": False, "tolerations": [{"operator": "Exists"}],
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}}
        # One after the other: the last node may have room for one pod only.
        for scheduler in (Arena.OURS, Arena.KUBE):
            pod = {"metadata": {"name": f"first-{scheduler}", "namespace": "d0"}, "spec": {**copy.deepcopy(spec), "schedulerName": scheduler}}
            made = self.create(pod)
            bound = lambda p: p["spec"].get("nodeName")
            bound.polls = False
            self.arena.wait(made["metadata"]["uid"], bound, f"{scheduler} has seen the nodes")
            self.remove(pod)
        self.arena.all(self.place, world["placed"])

    # One pod.

    def decision(self, scheduler):
        return Decision(self.arena, scheduler == Arena.OURS)

    def stays_placed(self, item):
        """A pod of the world has been placed and stays."""

    def ask(self, pod, scheduler, suffix, limit=None):
        """The twin of a pod for one scheduler: (decision, detail, the twin)."""
        twin = copy.deepcopy(pod)
        twin["metadata"]["name"] += suffix
        twin["spec"]["schedulerName"] = scheduler
        if limit:
            self.arena.witness.limits[twin["metadata"]["name"]] = limit
        decision = self.decision(scheduler)
        made = self.create(twin)
        if twin["spec"].get("schedulingGates"):
            self.client.do("PATCH", self.path(twin, f"/{twin['metadata']['name']}"), {"spec": {"schedulingGates": None}}, "application/merge-patch+json")
        got, detail = self.arena.wait(made["metadata"]["uid"], decision, f"{scheduler} decides about {twin['metadata']['name']}")
        return got, detail, twin, made

    def explained(self, made):
        """The nodes that fit a pod, by cosched-replay, and why the others do not; a thunk, since it runs meanwhile."""
        pod = copy.deepcopy(made)
        pod["spec"].pop("schedulingGates", None)
        items = [pod]
        for collection in COLLECTIONS if self.stored else COLLECTIONS[:3]:
            reply = self.same.get(collection) or self.client.do("GET", collection)
            if collection != "/api/v1/pods" and not self.late:
                self.same[collection] = reply
            kind = {"kind": reply["kind"].removesuffix("List"), "apiVersion": reply["apiVersion"]}
            items += [{**kind, **item} for item in reply["items"]]
        return self.arena.pool.submit(self.explain, {"apiVersion": "v1", "kind": "List", "items": items}, pod["metadata"])

    def explain(self, everything, meta):
        with tempfile.NamedTemporaryFile("w", suffix=".json", dir=self.arena.directory) as f:
            json.dump(everything, f)
            f.flush()
            command = [os.path.join(harness.BUILD, "bin/cosched-replay"), f.name, "--explain", f"{meta['namespace']}/{meta['name']}", "--output=json"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            if "explain" not in done.stdout:
                raise Trouble(f"cosched-replay ended with {done.returncode}: {done.stderr}")
            nodes = json.loads(done.stdout)["explain"]["nodes"]
            return {n["node"]: n.get("why") for n in nodes}

    def compare_all(self, left, verdicts):
        """None if the nodes that fit are the same ones."""
        fits = sorted(n for n, why in verdicts.items() if not why)
        if fits == left:
            return None
        said = "; ".join(f"{n} {verdicts.get(n) or 'fits'}" for n in sorted(set(fits) ^ set(left)))
        return f"--explain: {', '.join(fits) or 'no node'} would do for us, {', '.join(left) or 'none'} for kube-scheduler ({said})"

    def compare(self, pod, number):
        """None if they agree, else the difference; and the twin that stays."""
        late = self.late if uses_late(pod, self.late) else []
        ours, node, twin, made = self.ask(pod, Arena.OURS, f"-ours{number}")
        self.remove(twin)
        self.arena.restore(late)
        verdicts = self.explained(made)
        kube, detail, twin, _ = self.ask(pod, Arena.KUBE, f"-kube{number}", node if ours == "bound" else None)
        if kube == "refused":
            for part in re.sub(r"\{.*?\}", "", detail.partition(": ")[2].partition(". ")[0]).split(", "):
                count, _, why = part.partition(" ")
                if count.isdigit():
                    self.reasons[why.strip(". ")] += int(count)
        left = self.arena.witness.left.get(twin["metadata"]["name"], [])
        agreed = ours == kube and detail == node if ours == "bound" else ours == kube
        other = self.compare_all(left, verdicts.result()) if agreed else None
        if agreed and ours == "bound" and not other and not late:
            return None, twin, node
        self.remove(twin)
        self.arena.restore(late)
        if agreed:
            return other, None, None
        if ours == "bound" and kube == "bound":
            return f"we chose {node}, kube-scheduler refuses it; it takes {', '.join(left)}", None, None
        if ours == "bound":
            return f"we chose {node}, kube-scheduler finds none: {detail}", None, None
        return f"we find no node, kube-scheduler takes {', '.join(left)}", None, None

    def judge(self, pod):
        self.asked += 1
        said = []
        for number in range(1 + REPEATS):
            difference, twin, node = self.compare(pod, number)
            if not difference:
                break
            said.append(difference)
        self.again += len(said) - bool(difference)
        if difference:
            return difference, None
        if said:
            self.settled += 1
            print(f"  settled by asking again: {pod['metadata']['namespace']}/{pod['metadata']['name']}"
                  f"{' (has claims that are restored between the turns)' if self.late and uses_late(pod, self.late) else ''}: at first {'; then '.join(said)}", flush=True)
        self.bound += twin is not None
        if twin:
            twin = copy.deepcopy(twin)
            twin["spec"]["nodeName"] = node
            twin["spec"].pop("schedulingGates", None)
        return None, twin

    def play(self, world):
        """The differences: (sentence, world that has only the pod in question as a new one)."""
        self.set_up(world)
        placed, out = list(world["placed"]), []
        for pod in world["new"]:
            if pod["spec"].get("nodeName"):
                self.place(["runs", pod])
                placed.append(["runs", pod])
                self.stays_placed(placed[-1])
                continue
            difference, stays = self.judge(pod)
            if difference:
                out.append((difference, {"seed": world.get("seed"), "objects": world["objects"], "nodes": world["nodes"],
                                         "placed": list(placed), "new": [pod]}))
            if stays:
                placed.append(["runs", stays])
                self.stays_placed(placed[-1])
        return out

    # Cutting down.

    def differs(self, world):
        try:
            return bool(self.play(world))
        except Trouble:
            return False  # the API server wants what was left out

    def shrink(self, world, budget=400):
        """The smallest world found that still differs: whole objects are left out first, then fields."""
        tries, progress = 0, True
        patience, self.arena.patience = self.arena.patience, 3
        while progress and tries < budget:
            progress = False
            for candidate in smaller(world):
                tries += 1
                if tries > budget:
                    break
                if self.differs(candidate):
                    world, progress = candidate, True
                    break
        self.arena.patience = patience
        return world


def without(world, path):
    """A copy of a world without what is at the path."""
    out = copy.deepcopy(world)
    at = out
    for step in path[:-1]:
        at = at[step]
    del at[path[-1]]
    return out


def fields(value, path):
    """The paths of all that may be left out below a value, the outer ones first."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    below = []
    for key, child in items:
        yield [*path, key]
        below.append((key, child))
    for key, child in below:
        yield from fields(child, [*path, key])


KEEP = {"claimRef", "persistentVolumeReclaimPolicy", "accessModes", "resources", "storageClassName", "csi", "nfs", "volumeHandle", "bind-completed",
        "name", "namespace", "image", "nodeName", "apiVersion", "kind", "capacity", "automountServiceAccountToken", "conditions", "schedulerName",
        "terminationGracePeriodSeconds", "metadata", "spec", "status", "containers", "allocatable", "restartPolicy"}


def smaller(world):
    """Worlds with a little less in them."""
    for i in reversed(range(len(world["placed"]))):
        yield without(world, ["placed", i])
    for i in reversed(range(len(world["nodes"]) if len(world["nodes"]) > 1 else 0)):
        out = without(world, ["nodes", i])
        gone = world["nodes"][i]["metadata"]["name"]
        out["placed"] = [item for item in out["placed"] if item[1]["spec"]["nodeName"] != gone]
        yield out
    for i in reversed(range(len(world["objects"]))):
        yield without(world, ["objects", i])
    for part in ("new", "placed", "nodes", "objects"):
        for path in fields(world[part], [part]):
            if len(path) > (3 if part in ("placed", "objects") else 2) and path[-1] not in KEEP:
                yield without(world, path)


def show(world):
    """One line for each object."""
    lines = []
    for _, body, status in world["objects"]:
        lines.append(f"{body['kind']} " + json.dumps({**body["metadata"], **body["spec"], "status": (status or {}).get("phase")}))
    for node in world["nodes"]:
        lines.append("node   " + json.dumps({"name": node["metadata"]["name"], "labels": node["metadata"].get("labels", {}), **node.get("spec", {}),
                                             "allocatable": node["status"].get("allocatable", {})}))
    for state, pod in [*world["placed"], *(["new", p] for p in world["new"])]:
        spec = {k: v for k, v in pod["spec"].items() if k not in ("automountServiceAccountToken", "terminationGracePeriodSeconds", "restartPolicy",
                                                                  "schedulerName")}
        lines.append(f"{state:6} " + json.dumps({"name": f"{pod['metadata']['namespace']}/{pod['metadata']['name']}",
                                                 "labels": pod["metadata"].get("labels", {}), **spec}))
    return "\n".join(lines)
