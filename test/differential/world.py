# SPDX-License-Identifier: Apache-2.0
"""Random small worlds: nodes, existing pods, and pods that both schedulers place.

A world is plain data (what is posted to the API server), made from a seed and a list of features, so that it can be printed, saved and reduced.
Everything in it is valid for the API server. It has few labels, values and nodes, so that terms and selectors match something. A pod has one to three
themes (features that are likely in it), since a pod with all features fits nowhere. A world has a mood, since a node that is rejected for its taints
tests no other filter: in some worlds all pods have enough capacity, and only inter-pod terms, spread and ports decide; some are nearly full; some have
many taints; some mix everything.
"""
import random

from storage import Storage

FEATURES = ["resources", "containers", "selector", "nodeaffinity", "taints", "cordon", "ports", "interpod", "spread", "priority", "gates",
            "nodename", "terminating", "finished", "resize", "declared", "volumes"]

ZONE, REGION, HOST = "topology.kubernetes.io/zone", "topology.kubernetes.io/region", "kubernetes.io/hostname"
# Made once and kept: label sets that namespaceSelectors can tell apart.
NAMESPACES = {"d0": {"team": "a"}, "d1": {"team": "b"}, "d2": {"team": "a", "env": "prod"}, "d3": {}}
PRIORITIES = {"low": -10, "mid": 100, "high": 1000}  # these never preempt, "p-low" and so on do
OVERHEAD = {"cpu": "250m", "memory": "96Mi"}
GPU, HUGE = "example.com/gpu", "hugepages-2Mi"
RESTART_ALL = "RestartAllContainersOnContainerExits"
# Features of worlds with preemption: which pods are evicted, where, and whether that helps.
PREEMPTION = ["preemption", "resources", "containers", "selector", "nodeaffinity", "taints", "ports", "interpod", "spread"]


class Dice:
    """random.Random with the few questions that are asked here."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.one = self.random.choice
        self.number = self.random.randint

    def chance(self, percent):
        return self.random.random() * 100 < percent

    def some(self, items, low, high):
        return self.random.sample(items, min(len(items), self.number(low, high)))

    def weighted(self, pairs):
        return self.random.choices([p[0] for p in pairs], [p[1] for p in pairs])[0]


MOODS = {  # themes of pods, and in percent: nodes that carry taints, are cordoned, are small
    "terms": (["interpod", "interpod", "interpod", "spread", "spread", "spread", "ports", "nodeaffinity"], 8, 2, 5),
    "tight": (["resources", "resources", "containers", "ports", "spread", "volumes"], 10, 5, 90),
    "tainted": (["taints", "taints", "selector", "nodeaffinity", "spread", "spread"], 70, 20, 10),
    "mixed": (["resources", "containers", "selector", "nodeaffinity", "taints", "ports", "interpod", "interpod", "spread", "spread", "volumes"], 35, 10, 50),
}


class Maker:
    """Makes the objects of one world."""

    def __init__(self, dice, features):
        self.d = dice
        self.features = set(features)
        weights = [("terms", 20), ("tight", 65), ("mixed", 15)] if "preemption" in features else [("terms", 45), ("tight", 18), ("tainted", 15), ("mixed", 22)]
        self.mood = dice.weighted(weights)
        self.themes, self.taints, self.cordons, self.small = MOODS[self.mood]
        self.nodes = []
        self.storage = None
        self.placing = True  # the pods that are there already

    def has(self, feature, percent):
        """The dice are thrown in any case, so that leaving a feature out changes as little as possible of the rest."""
        return self.d.chance(percent) and feature in self.features

    # Nodes.

    def node(self, name):
        d = self.d
        labels = {HOST: name}
        if d.chance(6):
            labels = d.one([{}, {HOST: "shared"}])
        for key, values, percent in ((ZONE, ["z1", "z2", "z3"], 92), (REGION, ["r1", "r2"], 70), ("disk", ["ssd", "hdd"], 65)):
            if d.chance(percent):
                labels[key] = d.one(values)
        if d.chance(50):
            labels["size"] = d.one(["1", "3", "5", "7", "9", "007", "12345678901234567890", "big"])
        amounts = {"cpu": "16", "memory": "32Gi", "pods": d.one(["8", "110"])}
        if d.chance(self.small):
            amounts = {"cpu": d.one(["1", "2", "3", "1500m"]), "memory": d.one(["1Gi", "2Gi", "3000000Ki", "1500M"]),
                       "pods": d.one(["2", "3", "5", "8", "110"])}
        if d.chance(80):
            amounts["ephemeral-storage"] = d.one(["10Gi", "4Gi"])
        if d.chance(40):
            amounts[GPU] = d.one(["0", "1", "2"])
        if d.chance(30):
            amounts[HUGE] = d.one(["0", "64Mi", "128Mi"])
        spec = {}
        if self.has("taints", self.taints):
            taints = [self.taint() for _ in range(d.number(1, 2))]
            spec["taints"] = list({(t["key"], t["effect"]): t for t in taints}.values())
        if self.has("cordon", self.cordons):
            spec["unschedulable"] = True
            if d.chance(50):
                spec.setdefault("taints", []).append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
        status = {"capacity": amounts, "allocatable": amounts}
        if self.has("declared", 50):
            status["declaredFeatures"] = d.one([[], [RESTART_ALL], ["AnotherFeature", RESTART_ALL]])
        ready = {"type": "Ready", "status": d.weighted([("True", 90), ("False", 10)]), "reason": "Made", "message": "no kubelet"}
        return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": spec,
                "status": {**status, "conditions": [ready]}}

    def taint(self):
        d = self.d
        taint = {"key": d.one(["dedicated", "maint"]), "effect": d.one(["NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule"])}
        if d.chance(70):
            taint["value"] = d.one(["a", "b"])
        return taint

    # Pods.

    def labels(self):
        d = self.d
        out = {}
        for key, values, percent in (("app", ["a", "a", "b", "c"], 92), ("tier", ["x", "y"], 50), ("ver", ["1", "2"], 45)):
            if d.chance(percent):
                out[key] = d.one(values)
        return out

    def pod(self, name):
        d = self.d
        themes = set(d.some(self.themes, 1, 3))
        spec = {"containers": [self.container(f"c{i}", themes) for i in range(d.weighted([(1, 80), (2, 20)]))],
                "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False, "restartPolicy": "Always"}
        if self.has("containers", 70 if "containers" in themes else 3):
            self.add_containers(spec, themes)
        if self.has("selector", 70 if "selector" in themes else 3):
            key, value = d.one([(ZONE, "z1"), (ZONE, "z2"), ("disk", "ssd"), ("disk", "hdd"), (REGION, "r1"), ("size", "7")])
            spec["nodeSelector"] = {key: value}
        if self.has("taints", 80 if "taints" in themes else 35):
            spec["tolerations"] = [self.toleration() for _ in range(d.number(1, 3))]
        if self.has("ports", 90 if "ports" in themes else 3):
            self.add_ports(spec)
        if "preemption" in self.features:
            spec["priorityClassName"] = d.weighted([("p-low", 40), ("p-mid", 40), ("p-high", 15), ("low", 5)])
        elif self.has("priority", 25):
            spec["priorityClassName"] = d.one(sorted(PRIORITIES))
        if self.has("declared", 4):  # a node must have declared that it can do this
            spec["containers"][0].update(restartPolicy="Never", restartPolicyRules=[
                {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}])
        if self.has("gates", 5):
            spec["schedulingGates"] = [{"name": "example.com/hold"}]
        labels = self.labels()
        affinity = self.affinity(themes, labels)
        if affinity:
            spec["affinity"] = affinity
        if self.has("spread", 90 if "spread" in themes else 3):
            spec["topologySpreadConstraints"] = self.spread()
        ns = d.weighted([("d0", 65), ("d1", 15), ("d2", 12), ("d3", 8)])
        if self.storage and d.chance(90 if "volumes" in themes else 5):
            self.storage.add_volumes(ns, spec)
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": ns, "labels": labels}, "spec": spec}

    def amounts(self, themes, most=2):
        d = self.d
        out = {}
        likely = 80 if "resources" in themes or "preemption" in self.features else 25
        if self.has("resources", likely):
            for key, values, percent in (("cpu", ["100m", "300m", "500m", "1", "1500m", "0"], 60),
                                         ("memory", ["100Mi", "300M", "500Mi", "1Gi", "1500000Ki"], 50),
                                         ("ephemeral-storage", ["1Gi", "3Gi", "6G"], 15), (GPU, ["1", "2"], 12), (HUGE, ["32Mi", "64Mi"], 8)):
                if d.chance(percent):
                    out[key] = d.one(values[:most + 4])
        return out

    def container(self, name, themes):
        requests = self.amounts(themes)
        limits = {k: requests[k] for k in (GPU, HUGE) if k in requests}  # these have to be equal
        if HUGE in requests and not {"cpu", "memory"} & set(requests):
            requests["memory"] = "64Mi"  # the API server wants one of them beside huge pages
        return {"name": name, "image": "busybox:test", "resources": {"requests": requests, "limits": limits}}

    def add_containers(self, spec, themes):
        d = self.d
        inits = []
        for i in range(d.number(0, 3)):
            c = self.container(f"i{i}", themes | {"resources"})
            if d.chance(45):
                c["restartPolicy"] = "Always"
            inits.append(c)
        if inits:
            spec["initContainers"] = inits
        if d.chance(30):
            spec["runtimeClassName"] = "heavy"
        if d.chance(15):
            # At the level of the pod; not below what its containers ask for.
            spec["resources"] = {"requests": {"cpu": "2", "memory": "2Gi"} if d.chance(30) else {"cpu": "900m", "memory": "700Mi"}}
            spec.pop("initContainers", None)
            for c in spec["containers"]:
                c["resources"] = {"requests": {"cpu": "100m"} if d.chance(60) else {}}

    def toleration(self):
        d = self.d
        if d.chance(12):
            return {"operator": "Exists"}
        t = {"key": d.one(["dedicated", "maint", "node.kubernetes.io/unschedulable"])}
        if d.chance(50):
            t["operator"] = "Exists"
        else:
            t["operator"] = d.one(["Equal", "Equal", ""])
            if d.chance(80):
                t["value"] = d.one(["a", "b"])
        if not t["operator"]:
            del t["operator"]
        if d.chance(60):
            t["effect"] = d.one(["NoSchedule", "NoExecute", "PreferNoSchedule"])
            if t["effect"] == "NoExecute" and d.chance(40):
                t["tolerationSeconds"] = 30
        return t

    def add_ports(self, spec):
        d = self.d
        holders = list(spec["containers"]) + [c for c in spec.get("initContainers", []) if d.chance(50)]
        taken = set()
        for holder in d.some(holders, 1, 2):
            ports = {}
            for _ in range(d.number(1, 2)):
                number, protocol = d.one([80, 81]), d.weighted([("TCP", 70), ("UDP", 20), ("SCTP", 10)])
                port = {"containerPort": number, "protocol": protocol}
                if d.chance(90):
                    port["hostPort"] = number
                    address = d.weighted([(None, 50), ("0.0.0.0", 15), ("127.0.0.1", 20), ("10.0.0.1", 15)])
                    if address:
                        port["hostIP"] = address
                if (number, protocol, port.get("hostIP")) not in taken:
                    ports[(number, protocol)] = port
                taken.add((number, protocol, port.get("hostIP")))
            holder["ports"] = list(ports.values())
        if d.chance(8):
            spec["hostNetwork"] = True
            for holder in list(spec["containers"]) + spec.get("initContainers", []):
                for port in holder.get("ports", []):
                    port["hostPort"] = port["containerPort"]

    def budgets(self):
        """PodDisruptionBudgets, with what their controller would say. None selects all: known/preemption/budget-with-an-empty-selector.json."""
        d = self.d
        out = []
        for i, ns in enumerate(d.some(["d0", "d1"], 0, 2)):
            body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": f"budget{i}", "namespace": ns},
                    "spec": {"minAvailable": 1, "selector": d.one([{"matchLabels": {"app": "a"}}, {"matchLabels": {"tier": "x"}}])}}
            status = {"disruptionsAllowed": d.number(0, 1), "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1, "observedGeneration": 1}
            out.append([f"/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets", body, status])
        return out

    # Affinity and spread.

    def expression(self):
        """Of a node selector."""
        d = self.d
        key, values = d.one([(ZONE, ["z1", "z2", "z3"]), ("disk", ["ssd", "hdd", "tape"]), (REGION, ["r1", "r2"]), ("size", ["1", "5", "7", "big"])])
        operator = d.one(["In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
        if operator in ("Gt", "Lt"):
            return {"key": d.one(["size", "size", "disk"]), "operator": operator, "values": [str(d.one([0, 1, 4, 6, 7]))]}
        out = {"key": key, "operator": operator}
        if operator in ("In", "NotIn"):
            out["values"] = d.some(values, 1, 2)
        return out

    def node_term(self):
        d = self.d
        term = {}
        if d.chance(85):
            term["matchExpressions"] = [self.expression() for _ in range(d.number(1, 2))]
        if d.chance(20) and self.nodes:
            term["matchFields"] = [{"key": "metadata.name", "operator": d.one(["In", "In", "NotIn"]), "values": [d.one(self.nodes)]}]
        return term  # may be empty: that is allowed, and selects nothing

    def affinity(self, themes, labels):
        d = self.d
        out = {}
        if self.has("nodeaffinity", 80 if "nodeaffinity" in themes else 4):
            node = {}
            if d.chance(80):
                node["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [self.node_term() for _ in range(d.number(1, 3))]}
            if d.chance(40):
                term = {"matchExpressions": [self.expression()]}
                node["preferredDuringSchedulingIgnoredDuringExecution"] = [{"weight": d.number(1, 100), "preference": term}]
            out["nodeAffinity"] = node
        for kind, percent in (("podAffinity", 45), ("podAntiAffinity", 55)):
            if self.has("interpod", percent if "interpod" in themes else 2):
                part = {}
                if d.chance(85):
                    part["requiredDuringSchedulingIgnoredDuringExecution"] = [self.pod_term(labels) for _ in range(d.weighted([(1, 75), (2, 25)]))]
                if d.chance(30):
                    part["preferredDuringSchedulingIgnoredDuringExecution"] = [{"weight": d.number(1, 100), "podAffinityTerm": self.pod_term(labels)}]
                out[kind] = part
        return out

    def label_selector(self):
        d = self.d
        if d.chance(4):
            return None
        if d.chance(4):
            return {}
        if d.chance(60):
            return {"matchLabels": d.one([{"app": "a"}, {"app": "a"}, {"app": "b"}, {"tier": "x"}, {"tier": "y"}, {"app": "a", "tier": "x"}])}
        key, values = d.one([("app", ["a", "b", "c"]), ("tier", ["x", "y"])])
        operator = d.one(["In", "In", "NotIn", "Exists", "DoesNotExist"])
        expression = {"key": key, "operator": operator}
        if operator in ("In", "NotIn"):
            expression["values"] = d.some(values, 1, 2)
        return {"matchExpressions": [expression]}

    def pod_term(self, labels):
        d = self.d
        term = {"topologyKey": d.one([ZONE, ZONE, HOST, HOST, REGION, "disk"])}
        selector = self.label_selector()
        if selector is not None:
            if d.chance(35) and "app" in labels:
                selector = {"matchLabels": {"app": labels["app"]}}  # pods that want their own kind are the usual ones
            term["labelSelector"] = selector
        if d.chance(22):
            term["namespaces"] = d.some(sorted(NAMESPACES), 1, 2)
        if d.chance(22):
            selectors = [{}, {"matchLabels": {"team": "a"}}, {"matchExpressions": [{"key": "env", "operator": "Exists"}]}]
            if self.placing:  # in a new pod: known/placing/namespace-selector-without-labels.json
                selectors.append({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]})
            term["namespaceSelector"] = d.one(selectors)
        if selector is not None and d.chance(15):
            term[d.one(["matchLabelKeys", "mismatchLabelKeys"])] = ["ver"]
        return term

    def spread(self):
        d = self.d
        out = {}
        for _ in range(d.weighted([(1, 70), (2, 30)])):
            c = {"maxSkew": d.weighted([(1, 65), (2, 25), (3, 10)]), "topologyKey": d.one([ZONE, ZONE, HOST, REGION, "disk"]),
                 "whenUnsatisfiable": d.weighted([("DoNotSchedule", 85), ("ScheduleAnyway", 15)])}
            selector = self.label_selector()
            if selector is not None:
                c["labelSelector"] = selector
                if d.chance(20):
                    c["matchLabelKeys"] = ["ver"]
            if c["whenUnsatisfiable"] == "DoNotSchedule" and d.chance(25):
                c["minDomains"] = d.number(1, 4)
            for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
                if d.chance(35):
                    c[policy] = d.one(["Honor", "Ignore"])
            out[(c["topologyKey"], c["whenUnsatisfiable"])] = c
        return list(out.values())


def drop_ports(pod):
    """kube-scheduler keeps a node's host ports as a set: when one of two pods with the same port goes, it forgets the port of the other as well. So pods that are put
    on a node whatever is there, and go before the world ends, have none."""
    for container in pod["spec"]["containers"] + pod["spec"].get("initContainers", []):
        container.pop("ports", None)


def make(seed, features=None, new=12):
    """A world: objects (what is neither node nor pod), nodes, placed (pods with a node, and how they are:
    "runs", "terminates", "finished", "resized"), new."""
    d = Dice(seed)
    features = FEATURES if features is None else features
    m = Maker(d, features)
    m.nodes = [f"n{i}-{seed % 10000}" for i in range(d.number(2, 7))]
    nodes = [m.node(name) for name in m.nodes]
    if "volumes" in features:
        m.storage = Storage(d, m.nodes, ["d0", "d0", "d1", "d2"])
    objects = m.storage.objects if m.storage else []
    if "preemption" in features:
        objects = objects + m.budgets()
    placed = []
    for i in range(d.number(len(nodes) if "preemption" in features else 0, 2 * len(nodes))):
        pod = m.pod(f"old{i}")
        pod["spec"]["nodeName"] = d.one(m.nodes)
        pod["spec"].pop("schedulingGates", None)
        state = "runs"
        if m.has("terminating", 10):
            state = "terminates"
        elif m.has("finished", 8):
            state = "finished"
            drop_ports(pod)
        elif m.has("resize", 15):
            state = "resized"
        placed.append([state, pod])
    m.placing = False
    fresh = []
    for i in range(new):
        pod = m.pod(f"new{i}")
        if m.has("nodename", 4):
            pod["spec"]["nodeName"] = d.one(m.nodes)
            pod["spec"].pop("schedulingGates", None)
            drop_ports(pod)
        fresh.append(pod)
    return {"seed": seed, "objects": objects, "nodes": nodes, "placed": placed, "new": fresh}
