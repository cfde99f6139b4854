# SPDX-License-Identifier: Apache-2.0
"""Random GPU pods come and go on simulated nodes of every mode, under the faults of churn.py, and cards fall ill. No card may be promised (I1) or handed out beyond its size at any time, and when it is quiet all books are the same (I5):

    the watch stream    every event: the claims of the pods bound to a node, by card
    the kubelet's side  again and again: what pod resources list, and what the containers' environments name
    the scheduler       its dump is the API's pods with their claims, before and after it was started anew; and all cards can be filled to the last GiB

COSCHED_CHURN_PODS is how many pods are made (500), COSCHED_SEED repeats the dice (not the threads' timing).
"""
import collections
import json
import os
import subprocess
import threading
import time

import churn
from churn import container, holds
from harness import BUILD, LEAK_SEARCH_S, case, check, check_equal
from suite_faults import is_live, key_of
from suite_nodes import CLAIM, EXCLUSIVE, GROUP, MEM, PERCENT, T4, V100, WHOLE, gpu_node
from suite_twins import A100, ASSIGNED, CORE

SMALL = {"model": "Tesla T4", "mib": 15360, "count": 2}
PLACEMENT = "ack.node.gpu.placement"
NVLINK = [["X", "NV2", "SYS", "SYS"], ["NV2", "X", "SYS", "SYS"], ["SYS", "SYS", "X", "NV2"], ["SYS", "SYS", "NV2", "X"]]
NODES = [gpu_node("churn-pack", "share", T4, 4, labels={PLACEMENT: "binpack"}), gpu_node("churn-spread", "cgpu", T4, 4, labels={PLACEMENT: "spread"}),
         {**gpu_node("churn-mixed", "share", T4, 2), "gpus": [SMALL, {**A100, "count": 1}]}, gpu_node("churn-core", "core_mem", A100, 4, reorderMs=20),
         gpu_node("churn-links", "topology", V100, 4, links=NVLINK), gpu_node("churn-whole", "default", V100, 4)]
FORGED = {CLAIM: '{"0":{"0":1}}', GROUP: "0", "ALIYUN_COM_GPU_MEM_IDX": "0", ASSIGNED: "true"}


def sizes():
    """(node, card) → GiB."""
    found = {}
    for node in NODES:
        groups = node["gpus"] if isinstance(node["gpus"], list) else [node["gpus"]]
        gib = [g["mib"] // 1024 for g in groups for _ in range(g["count"])]
        found.update({(node["name"], str(i)): n for i, n in enumerate(gib)})
    return found


SIZES = sizes()
MODES = {node["name"]: node["labels"]["ack.node.gpu.schedule"] for node in NODES}


def claim(pod):
    """card → [GiB, percent, whole], as the annotations say; a result key that is "" is absent."""
    said = collections.defaultdict(lambda: [0, 0, 0])
    notes = pod["metadata"].get("annotations", {})
    for at, key in enumerate((CLAIM, CORE)):
        for shares in json.loads(notes.get(key) or "{}").values():
            for card, amount in shares.items():
                said[card][at] += amount
    for card in (notes.get(GROUP) or "").split(","):
        if card:
            said[card][2] += 1
    return dict(said)


def asked(pod, resource):
    """By Kubernetes' formula: what all run at once with, or the most that the way there needs."""
    get = lambda c: int(c.get("resources", {}).get("limits", {}).get(resource, 0))
    running = peak = 0
    for c in pod["spec"].get("initContainers", ()):
        if c.get("restartPolicy") == "Always":
            running += get(c)
            peak = max(peak, running)
        else:
            peak = max(peak, running + get(c))
    return max(peak, running + sum(map(get, pod["spec"]["containers"])))


def excess(pod):
    """By resource: what the claim says more than was asked for. A plugin that had to give a pod another card first says both, and takes the old one back when that is safe."""
    said = claim(pod).values()
    return [sum(amounts[at] for amounts in said) - asked(pod, resource) for at, resource in enumerate((MEM, PERCENT, WHOLE))]


def recount(pods):
    """What the pods hold: (node, card) → [GiB, percent, whole], and node → exclusive cards."""
    cards, exclusive = collections.defaultdict(lambda: [0, 0, 0]), collections.Counter()
    for pod in filter(holds, pods):
        node = pod["spec"]["nodeName"]
        exclusive[node] += asked(pod, EXCLUSIVE)
        for card, amounts in claim(pod).items():
            for at, amount in enumerate(amounts):
                cards[node, card][at] += amount
    return dict(cards), exclusive


def beyond(pods):
    """None, or what is promised twice. Of a pod that is announced on two cards only its kubelet's side says the truth."""
    cards, exclusive = recount(p for p in pods if max(excess(p)) <= 0)
    for (node, card), (gib, percent, whole) in cards.items():
        if gib > SIZES.get((node, card), 0) or percent > 100 or whole > 1 or (whole and gib):
            return f"{node} card {card} of {SIZES.get((node, card), 0)} GiB: {gib} GiB, {percent} percent, {whole} whole holders"
    for node, count in exclusive.items():
        if count > sum(1 for n, _card in SIZES if n == node):
            return f"{node}: {count} exclusive cards"
    return None


class Auditor(churn.Auditor):
    """Each event of the watch: what is on its node fits, and bound pods have a claim that adds up."""

    def judge(self, key, pod, node):
        if pod:
            more = excess(pod)
            if min(more) < 0:
                self.problem(key, "has a claim of less than it asked for:", more, claim(pod))
            self.counts["corrections"] += max(more) > 0
        wrong = beyond(self.on[node].values())
        if wrong:
            self.problem("at", self.version, key, wrong, {k: (o["metadata"]["resourceVersion"], claim(o)) for k, o in self.on[node].items()})


class Kubelets(threading.Thread):
    """What the nodes' side says, one node after the other, all the time: ids and environments of each card."""

    def __init__(self, nodes):
        super().__init__(daemon=True)
        self.nodes, self.ending, self.problems = nodes, False, []
        self.uuids = {}
        self.counts = collections.Counter()
        self.lock = threading.Lock()
        self.lister = subprocess.Popen([os.path.join(BUILD, "test/integration/podresources_list"), "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        nodes.suite.stack.callback(self.close)

    def close(self):
        """The lister ends when nobody asks any more, and has no leaks."""
        self.ending = True
        self.join(30)
        self.lister.stdin.close()
        self.lister.stdout.close()
        check_equal(self.lister.wait(LEAK_SEARCH_S), 0, "podresources_list ends with")

    def look(self, node):
        """pod → container → resource → ids; None: the kubelet is restarting."""
        with self.lock:
            print(os.path.join(self.nodes.directory, node, "kubelet", "pod-resources", "kubelet.sock"), file=self.lister.stdin, flush=True)
            line = self.lister.stdout.readline()
        check(line, "podresources_list has ended")
        if line.startswith("error: "):
            self.counts["away"] += 1
            return None
        return json.loads(line)

    def run(self):
        try:
            while not self.ending:
                for node in MODES:
                    seen = None if self.ending else self.look(node)
                    if seen is not None:
                        self.counts["lists"] += 1
                        self.judge(node, seen)
                    time.sleep(0.03)
        except Exception as e:  # pylint: disable=broad-except
            self.problems.append(f"the kubelets' side: {e!r}")

    def judge(self, node, seen):
        """No id is held twice, all ids of a container are of cards that exist, no card has more than it is large."""
        owner, sums = {}, collections.Counter()
        for pod, containers in seen.items():
            for container, resources in containers.items():
                for resource, ids in resources.items():
                    for i in ids:
                        if owner.setdefault((resource, i), pod) != pod:
                            self.problems.append(f"{node}: {resource} {i} is held by {owner[resource, i]} and by {pod}/{container}")
                        sums[resource, i.rsplit("-_-", 1)[0]] += 1
                    self.counts["containers"] += 1
        for (resource, uuid), n in sums.items():
            card = self.uuids[node].get(uuid)
            most = {MEM: SIZES.get((node, card), 0), PERCENT: 100}.get(resource, 1)
            if n > most:
                self.problems.append(f"{node}: card {card} has {n} of {most} {resource} in use")


def random_pods(dice, name):
    """One pod, or the pods of a topology job."""
    kind = dice.choices(("mem", "core", "count", "whole", "exclusive", "several", "init", "sidecar", "job"), (8, 5, 3, 3, 3, 4, 3, 2, 1))[0]
    mem = lambda most=8: {MEM: dice.randrange(1, most + 1)}
    both = lambda: {**mem(6), PERCENT: 5 * dice.randrange(1, 9)}
    labels, inits, cs, count = {"kind": kind}, [], [], 1
    if kind in ("mem", "core"):
        cs = [mem(15 if dice.random() < 0.1 else 8) if kind == "mem" else both()]
    elif kind == "count":
        cards = dice.choice((2, 2, 3, 4))
        labels["aliyun.com/gpu-count"] = str(cards)
        cs = [{MEM: cards * dice.randrange(1, 6)}]
    elif kind in ("whole", "exclusive"):
        cs = [{WHOLE if kind == "whole" else EXCLUSIVE: dice.choice((1, 1, 2, 3))}]
    elif kind == "several":
        one = both if dice.random() < 0.4 else mem
        cs = [one(), {}, one()][:dice.choice((2, 3))] + [one()]
    elif kind == "init":
        one = both if dice.random() < 0.4 else mem
        inits, cs = [one() for _ in range(dice.choice((1, 2)))], [dice.choice((one(), {}))]
    elif kind == "sidecar":
        inits, cs = [mem(4)], [mem(4)]
    else:
        count = 2
        labels.update({"gpu-topology": name, "gpu-topology-replica": "2"})
        cs = [{WHOLE: 1}]
    ends = dice.random() < 0.15
    spec = {"containers": [container(dice, f"c{i}", limits, ends=ends) for i, limits in enumerate(cs)],
            "initContainers": [container(dice, f"i{i}", limits, **({"restartPolicy": "Always"} if kind == "sidecar" else {"ends": True}))
                               for i, limits in enumerate(inits)],
            "schedulerName": "ack-co-scheduler", "restartPolicy": "Never", "terminationGracePeriodSeconds": dice.choice((0, 0, 1)),
            "tolerations": [{"operator": "Exists"}]}
    notes = FORGED if dice.random() < 0.03 else {}
    return [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{name}-{i}", "labels": labels, "annotations": notes}, "spec": spec} for i in range(count)]


class Churn(churn.Churn):
    specs, faults_of = NODES, {"kill_scheduler": 3, "kill_plugin": 2, "kubelet": 2, "card": 2, "rule": 7, "cut": 2, "forget": 1, "away": 1}

    def __init__(self, suite, seed):
        super().__init__(suite, seed)
        self.sick = set()
        self.auditor, self.kubelets = Auditor(self.cluster, self.pods_path, f"{seed}-a"), Kubelets(self.nodes)
        self.watchers = [self.auditor, self.kubelets]

    def random_pods(self, dice, name):
        return random_pods(dice, name)

    def prepare(self):
        for node, mode in MODES.items():
            cards = [gib for (n, _card), gib in SIZES.items() if n == node]
            if mode == "topology":
                self.nodes.offers(node, whole=len(cards))
            elif mode == "default":
                self.nodes.offers(node, exclusive=len(cards))
            else:
                self.nodes.offers(node, mem=sum(cards), count=len(cards), percent=100 * len(cards) if mode == "core_mem" else 0)
        self.kubelets.uuids = {node: {uuid: i for i, uuid in self.nodes.uuids(node).items()} for node in MODES}

    def card(self):
        place = self.dice.choice(list(SIZES))
        bad = place not in self.sick and len(self.sick) < 3
        (self.sick.add if bad else self.sick.discard)(place)
        self.admin("POST", {"fault": "card", "node": place[0], "card": int(place[1]), "bad": bad})

    def heal(self):
        for node, card in sorted(self.sick):
            self.admin("POST", {"fault": "card", "node": node, "card": int(card), "bad": False})
        self.sick.clear()

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
            check_equal(excess(p) if is_live(p) else [0, 0, 0], [0, 0, 0], f"{name}: claimed beside what was asked for")
            if phase == "Running" and asked(p, MEM):
                check_equal(p["metadata"]["annotations"].get(ASSIGNED), "true", f"{name} assigned")
        return pods

    def room(self, pod, pods):
        """A card on which a waiting pod with one share would fit; of others it is not asked here."""
        gib, percent = asked(pod, MEM), asked(pod, PERCENT)
        if pod["metadata"]["labels"]["kind"] not in ("mem", "core", "init"):
            return None
        used, _ = recount(pods)
        for place, size in SIZES.items():
            if MODES[place[0]] in ("topology", "default") or (percent and MODES[place[0]] != "core_mem"):
                continue
            free = used.get(place, [0, 0, 0])
            if size - free[0] >= gib and 100 - free[1] >= percent:
                return place
        return None

    def agree(self, pods):
        wrong = beyond(pods)
        check(not wrong, wrong)
        self.same_cards(pods)

    def quiet(self):
        super().quiet()
        self.same_table()

    def in_use(self, pods):
        return f"{len(recount(pods)[0])} of {len(SIZES)} cards in use"

    def same_cards(self, pods):
        """I5: the ids that containers hold are of the cards in the claim, as many as it says."""
        for node in MODES:
            seen = self.kubelets.look(node)
            check(seen is not None, node, "does not answer")
            for p in pods:
                if p["spec"].get("nodeName") != node or p["status"].get("phase") != "Running":
                    continue
                got = collections.defaultdict(lambda: [0, 0, 0])
                for name, resources in seen.get(key_of(p), {}).items():
                    for resource, ids in resources.items():
                        for i in ids:
                            if resource != EXCLUSIVE:
                                got[self.kubelets.uuids[node][i.rsplit("-_-", 1)[0]]][(MEM, PERCENT, WHOLE).index(resource)] += 1
                    self.same_environment(p, name, resources)
                said = claim(p)
                if not p["spec"].get("initContainers"):
                    check_equal(dict(got), said, f"{node} {key_of(p)}: ids by card, beside the claim")
                check(set(got) <= set(said), f"{node} {key_of(p)}: ids of cards {set(got)}, claim {said}")

    def same_environment(self, pod, name, resources):
        uuids = {i.rsplit("-_-", 1)[0] for ids in resources.values() for i in ids}
        if uuids:
            visible = set(self.nodes.environment(pod, name)["NVIDIA_VISIBLE_DEVICES"].split(","))
            check(uuids <= visible if WHOLE in resources else uuids == visible, f"{key_of(pod)}/{name}: ids of {uuids}, and it sees {visible}")

    def same(self, model, pods):
        check_equal(recount(model.values()), recount(pods.values()), "what is held, in the scheduler's model beside the API's")
        for key, p in pods.items():
            if holds(p):
                check_equal(claim(model[key]), claim(p), f"claim of {key} in the model, beside the API's")

    def same_table(self):
        """kubectl inspect cgpu counts the same. A pod may end by itself while it runs: then it is asked again."""
        for _ in range(10):
            used, _exclusive = recount(self.pods())
            done = subprocess.run([f"{BUILD}/bin/kubectl-inspect-cgpu", f"--kubeconfig={self.cluster.kubeconfig}", "-o", "json"], capture_output=True,
                                  text=True, timeout=60, check=False)
            check_equal(done.returncode, 0, done.stderr)
            if recount(self.pods())[0] == used:
                break
        for node in json.loads(done.stdout)["nodes"]:
            got = [(x["allocatedGiB"], x["allocatedPercent"], x["totalGiB"]) for x in node["cards"]]
            want = [(*used.get((node["name"], str(i)), [0, 0, 0])[:2], SIZES[node["name"], str(i)]) for i in range(len(got))]
            check_equal(got, want, f"kubectl inspect cgpu: {node['name']}")

    def fill(self):
        """Everything goes; then every card can be filled to the last: nobody remembers a pod that is gone. At the end everything goes again, for the next round."""
        self.clear()
        names = []
        for node, mode in MODES.items():
            cards = [gib for (n, _card), gib in SIZES.items() if n == node]
            shares = [{WHOLE: len(cards)}] if mode == "topology" else [{EXCLUSIVE: len(cards)}] if mode == "default" else [
                {MEM: gib, **({PERCENT: 100} if mode == "core_mem" else {})} for gib in sorted(cards, reverse=True)]
            for i, limits in enumerate(shares):
                names.append(f"fill-{node}-{i}")
                self.cluster.create_pod(self.ns, names[-1], limits={k: str(v) for k, v in limits.items()}, node_selector={"kubernetes.io/hostname": node})

        self.all_run(len(names))
        used, _ = recount(self.same_model())
        for (node, card), gib in SIZES.items():
            if MODES[node] != "default":
                check_equal(used[node, card], [0, 0, 1] if MODES[node] == "topology" else [gib, 100 if MODES[node] == "core_mem" else 0, 0], f"{node} card {card}")
        self.clear()


@case("random GPU pods under faults, with scheduler and plugins killed: no card is ever beyond its size, and all books agree when it is quiet",
      needs={"local", "long"})
def churns(suite):
    churn.rounds(suite, Churn, "COSCHED_CHURN_PODS", 500)
