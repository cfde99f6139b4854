# SPDX-License-Identifier: Apache-2.0
"""Random GPU pods come and go on simulated nodes of every mode, while the scheduler and the device plugins are killed, kubelets restart, cards fall ill and the API
server misbehaves. No card may be promised (I1) or handed out beyond its size at any time, and when it is quiet all books are the same (I5):

    the watch stream    every event: the claims of the pods bound to a node, by card
    the kubelet's side  again and again: what pod resources list, and what the containers' environments name
    the scheduler       its dump is the API's pods with their claims, before and after it was started anew; and all cards can be filled to the last GiB

COSCHED_CHURN_PODS is how many pods are made (1000), COSCHED_SEED repeats the dice (not the threads' timing).
"""
import collections
import contextlib
import json
import os
import random
import signal
import subprocess
import threading
import time

from harness import BUILD, LEAK_SEARCH_S, Failed, case, check, check_equal, http_get, wait_until
from suite_faults import TROUBLE, Watcher, is_live, key_of
from suite_nodes import CLAIM, EXCLUSIVE, GROUP, MEM, PERCENT, T4, V100, WHOLE, Embedded, gpu_node
from suite_twins import A100, ASSIGNED, CORE

PODS_AT_ONCE, MAKERS, ROUND = 90, 3, 2000
SETTLE_S = 90  # a plugin that was killed often is started again after 10 s, a pod that was refused often is tried again after 10 s
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


def holds(pod):
    return bool(pod and pod["spec"].get("nodeName") and is_live(pod))


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


class Auditor(Watcher):
    """Each event of the watch: what is on its node fits, bound pods have a claim that adds up, and nothing is bound twice."""

    def __init__(self, *args):
        super().__init__(*args)
        self.node_of, self.on = {}, collections.defaultdict(dict)
        self.most = 0

    def changed(self, before, now):
        pod = now or before
        if pod is None or not pod["spec"].get("nodeName"):
            return
        key, node, uid = key_of(pod), pod["spec"]["nodeName"], pod["metadata"]["uid"]
        if self.node_of.setdefault(uid, node) != node:
            self.problem("bound twice:", key, "to", self.node_of[uid], "and", node)
        if holds(now):
            self.on[node][key] = now
            self.adds_up(key, now)
        else:
            self.on[node].pop(key, None)
        self.most = max(self.most, sum(map(len, self.on.values())))
        wrong = beyond(self.on[node].values())
        if wrong:
            self.problem("at", self.version, key, wrong, {k: (o["metadata"]["resourceVersion"], claim(o)) for k, o in self.on[node].items()})

    def adds_up(self, key, pod):
        more = excess(pod)
        if min(more) < 0:
            self.problem(key, "has a claim of less than it asked for:", more, claim(pod))
        self.counts["corrections"] += max(more) > 0

    def list(self, limit=None):
        """All at once; what went away while nobody looked is forgotten."""
        view, version = super().list(limit or 100000)
        for there in self.on.values() if threading.current_thread() is self else ():
            for key in [k for k in there if not holds(view.get(k))]:
                del there[key]
        return view, version


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


def container(dice, name, limits, **more):
    ends = more.pop("ends", False)
    command = f"sleep {dice.choice(('0.2', '1', '3'))}" if ends else "sleep 3600"
    return {"name": name, "image": "busybox:test", "imagePullPolicy": "Never", "command": ["sh", "-c", command],
            "resources": {"limits": {k: str(v) for k, v in limits.items()}}, **more}


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


class Maker(threading.Thread):
    """Makes pods until its number is reached, and deletes as many as there are too many. What a request came to is not always known here: the store knows."""

    def __init__(self, churn, number, seed):
        super().__init__(daemon=True)
        self.churn, self.number, self.dice = churn, number, random.Random(f"{seed}-{number}")
        self.names, self.left = [], 0
        self.made = 0
        self.connection = None

    def request(self, method, path, body=None):
        """On one connection as long as it lasts."""
        c = self.churn.cluster
        try:
            self.connection = self.connection or c.connect(5)
            self.connection.request(method, path, body and json.dumps(body), {"Authorization": "Bearer " + c.token, "Content-Type": "application/json"})
            reply = self.connection.getresponse()
            reply.read()
            status = reply.status
        except TROUBLE:
            self.connection.close()
            self.connection, status = None, "lost"
            time.sleep(0.02)
        self.churn.counts[method, status] += 1
        return status

    def run(self):
        try:
            while self.left > 0 and not self.churn.ending:
                self.step()
        except Exception as e:  # pylint: disable=broad-except
            self.churn.problems.append(f"maker: {e!r}")
        finally:
            if self.connection:
                self.connection.close()

    def step(self):
        if len(self.names) >= PODS_AT_ONCE // MAKERS:
            name = self.names.pop(self.dice.randrange(len(self.names) // 2))  # of the older ones
            if self.request("DELETE", f"{self.churn.pods_path}/{name}{self.dice.choice(('', '', '?gracePeriodSeconds=0'))}") not in (200, 202, 404):
                self.names.append(name)
            return
        for pod in random_pods(self.dice, f"m{self.number}-{self.made}"):
            self.names.append(pod["metadata"]["name"])
            self.left -= self.request("POST", self.churn.pods_path, pod) == 201
            self.churn.created += 1
        self.made += 1
        time.sleep(self.dice.uniform(0, 0.1))  # so that most live long enough to be placed


class Churn:
    def __init__(self, suite, seed):
        self.dice = random.Random(f"{seed}-faults")
        self.nodes = Embedded(suite, NODES)
        self.suite, self.cluster = self.nodes.suite, self.nodes.cluster
        self.ns = self.suite.namespace()
        self.pods_path = f"/api/v1/namespaces/{self.ns}/pods"
        self.counts, self.faults = collections.Counter(), collections.Counter()
        self.problems, self.created, self.ending = [], 0, False
        self.sick, self.busy_s = set(), 0.0
        self.scheduler = None
        self.auditor, self.kubelets = Auditor(self.cluster, self.pods_path, f"{seed}-a"), Kubelets(self.nodes)
        self.makers = []

    def offered(self):
        for node, mode in MODES.items():
            cards = [gib for (n, _card), gib in SIZES.items() if n == node]
            if mode == "topology":
                self.nodes.offers(node, whole=len(cards))
            elif mode == "default":
                self.nodes.offers(node, exclusive=len(cards))
            else:
                self.nodes.offers(node, mem=sum(cards), count=len(cards), percent=100 * len(cards) if mode == "core_mem" else 0)

    def start(self):
        self.offered()
        self.kubelets.uuids = {node: {uuid: i for i, uuid in self.nodes.uuids(node).items()} for node in MODES}
        self.scheduler = self.suite.scheduler("--request-timeout=3s")
        for thread in (self.auditor, self.kubelets):
            self.suite.stack.callback(setattr, thread, "ending", True)
            thread.start()

    def admin(self, method, body=None):
        return wait_until(lambda: self.cluster.do(method, "/cosched/faults", body), f"{method} {body}", 20)

    def kill_scheduler(self):
        self.scheduler.kill()
        self.scheduler.check_clean()
        self.scheduler.close()
        self.scheduler = self.suite.scheduler("--request-timeout=3s", wait=False)

    def kill_plugin(self):
        pid = self.nodes.plugin_pid(self.dice.choice(list(MODES)))
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def card(self):
        place = self.dice.choice(list(SIZES))
        bad = place not in self.sick and len(self.sick) < 3
        (self.sick.add if bad else self.sick.discard)(place)
        self.admin("POST", {"fault": "card", "node": place[0], "card": int(place[1]), "bad": bad})

    def rule(self):
        d = self.dice
        binding = {"method": "POST", "path": "/binding"}
        fault = d.choice(({"fault": "lose-reply", "match": binding, "every": d.randrange(1, 4)}, {"fault": "reply", "code": 409, "match": binding, "every": 3},
                          {"fault": "reply", "code": d.choice((429, 500, 503)), "match": {"agent": d.choice(("scheduler", "device-plugin"))}, "percent": 30},
                          {"fault": "drop", "match": {"agent": d.choice(("scheduler", "device-plugin"))}, "percent": 20},
                          {"fault": "lose-reply", "percent": 10}, {"fault": "delay", "ms": d.randrange(1, 300), "percent": 20}))
        self.admin("POST", {**fault, "seconds": d.randrange(1, 3)})

    def inflict(self):
        d = self.dice
        what = d.choices(("scheduler", "plugin", "kubelet", "card", "rule", "cut", "forget", "away"), (3, 2, 2, 2, 7, 2, 1, 1))[0]
        self.faults[what] += 1
        if what == "kubelet":
            self.admin("POST", {"fault": "restart-kubelet", "node": d.choice(list(MODES))})
        elif what == "cut":
            self.admin("POST", {"fault": d.choice(("cut-watches", "reset-connections"))})
        elif what == "forget":
            self.admin("POST", {"fault": "compact"})
        elif what == "away":
            self.admin("POST", {"fault": "restart", "ms": d.randrange(1, 400)})
        else:
            {"scheduler": self.kill_scheduler, "plugin": self.kill_plugin, "card": self.card, "rule": self.rule}[what]()

    def churn(self, count, seed):
        self.makers = [Maker(self, i, seed) for i in range(MAKERS)]
        for i, maker in enumerate(self.makers):
            maker.left = count // MAKERS + (i < count % MAKERS)
            maker.start()
        began = time.monotonic()
        while any(m.is_alive() for m in self.makers):
            self.inflict()
            self.look()
            time.sleep(self.dice.uniform(0.05, 0.7))
        self.busy_s += time.monotonic() - began

    def look(self):
        """Why go on when it is wrong already?"""
        wrong = self.problems + self.auditor.problems + self.kubelets.problems
        check(not wrong, "\n     ".join(wrong[:5]))

    # ---- when it is quiet

    def pods(self):
        return self.cluster.get(self.pods_path)["items"]

    def settled(self):
        pods = self.pods()
        check(self.scheduler.alive())
        for p in pods:
            name, phase = p["metadata"]["name"], p["status"].get("phase")
            check("deletionTimestamp" not in p["metadata"], name, "is terminating")
            if not p["spec"].get("nodeName"):
                condition = next((c for c in p["status"].get("conditions", ()) if c["type"] == "PodScheduled"), {})
                check(condition.get("status") == "False", name, "does not say why it waits")
                room = self.room(p, pods)
                check(not room, name, "waits, though it fits:", room, condition.get("message"))
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

    def quiet(self):
        """All faults are over: everything has to come right."""
        self.admin("DELETE")
        for node, card in sorted(self.sick):
            self.admin("POST", {"fault": "card", "node": node, "card": int(card), "bad": False})
        self.sick.clear()
        began = time.monotonic()
        wait_until(lambda: http_get(self.scheduler.port, "/readyz")[0] == 200, "the scheduler is ready", SETTLE_S)
        wait_until(lambda: self.offered() or True, "all nodes offer all that they have", SETTLE_S)
        pods = wait_until(self.settled, "the cluster settles", SETTLE_S, 0.3)
        took = time.monotonic() - began
        self.auditor.compare()
        wrong = beyond(pods)
        check(not wrong, wrong)
        wait_until(lambda: self.same_cards(self.settled()), "what the kubelets handed out is what the annotations say", 30, 0.3)
        pods = self.same_model()
        self.kill_scheduler()
        wait_until(lambda: http_get(self.scheduler.port, "/readyz")[0] == 200, "a new scheduler is ready", 30)
        self.same_model()
        self.same_table()
        self.look()
        phases = collections.Counter(p["status"].get("phase") for p in pods)
        print(f"     {self.created} pods were made: quiet after {took:.1f} s with {dict(phases)}, {len(recount(pods)[0])} of {len(SIZES)} cards in use", flush=True)

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
        return True

    def same_environment(self, pod, name, resources):
        uuids = {i.rsplit("-_-", 1)[0] for ids in resources.values() for i in ids}
        if uuids:
            visible = set(self.nodes.environment(pod, name)["NVIDIA_VISIBLE_DEVICES"].split(","))
            check(uuids <= visible if WHOLE in resources else uuids == visible, f"{key_of(pod)}/{name}: ids of {uuids}, and it sees {visible}")

    def same_model(self):
        """The scheduler's model is the API's pods, with the claims that they have there."""

        def ask():
            status, text = http_get(self.scheduler.port, "/debug/cluster")
            check_equal(status, 200, text[:200])
            pods = {key_of(p): p for p in self.settled()}
            model = {key_of(o): o for o in json.loads(text)["items"] if o["kind"] == "Pod" and o["metadata"]["namespace"] == self.ns}
            check_equal(recount(model.values()), recount(pods.values()), "what is held, in the scheduler's model beside the API's")
            for key, p in pods.items():
                if holds(p):
                    check(key in model, key, "is not in the scheduler's model")
                    check(not model[key].get("cosched", {}).get("assumed"), key, "is still assumed")
                    check_equal(claim(model[key]), claim(p), f"claim of {key} in the model, beside the API's")
            return list(pods.values())

        return wait_until(ask, "the scheduler's model is a recount of the API", 60, 0.5)

    def same_table(self):
        """kubectl inspect cgpu counts the same."""
        done = subprocess.run([f"{BUILD}/bin/kubectl-inspect-cgpu", f"--kubeconfig={self.cluster.kubeconfig}", "-o", "json"], capture_output=True, text=True,
                              timeout=60, check=False)
        check_equal(done.returncode, 0, done.stderr)
        used, _ = recount(self.pods())
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

        def ask():
            late = [(p["metadata"]["name"], p["status"].get("phase"), p["status"].get("conditions", [{}])[0].get("message"), p["status"].get("message"))
                    for p in self.pods() if p["status"].get("phase") != "Running"]
            check(not late, late)
            return len(self.pods()) == len(names)

        wait_until(ask, "every card is full to the last GiB", 60, 0.3)
        used, _ = recount(self.same_model())
        for (node, card), gib in SIZES.items():
            if MODES[node] != "default":
                check_equal(used[node, card], [0, 0, 1] if MODES[node] == "topology" else [gib, 100 if MODES[node] == "core_mem" else 0, 0], f"{node} card {card}")
        self.clear()

    def clear(self):
        wait_until(lambda: self.cluster.do("DELETE", self.pods_path + "?gracePeriodSeconds=0") and not self.pods(), "all pods are gone", 60)


@case("random GPU pods under faults, with scheduler and plugins killed: no card is ever beyond its size, and all books agree when it is quiet",
      needs={"local", "alone"})
def churns(suite):
    total = int(os.environ.get("COSCHED_CHURN_PODS", "1000"))
    seed = int(os.environ.get("COSCHED_SEED") or int(time.time()))
    print(f"     COSCHED_SEED={seed}, {total} pods", flush=True)
    began = time.monotonic()
    try:
        churn = Churn(suite, seed)
        with churn.suite.stack:
            churn.start()
            done = 0
            while done < total:
                count = min(ROUND, total - done)
                churn.churn(count, f"{seed}-{done}")
                churn.quiet()
                done += count
                churn.fill()
            bound = len(churn.auditor.node_of)
            print(f"     faults: {dict(churn.faults)}; requests: { {f'{m} {s}': n for (m, s), n in sorted(churn.counts.items(), key=str)} }", flush=True)
            print(f"     {bound} pods were bound, at most {churn.auditor.most} at once; watch: {dict(churn.auditor.counts)}; kubelets: {dict(churn.kubelets.counts)}; "
                  f"{time.monotonic() - began:.0f} s, {churn.busy_s:.0f} of them under faults", flush=True)
            check(bound > total // 3 and churn.auditor.counts["events"] > total and churn.kubelets.counts["lists"] > 0, "too little was seen to say anything")
            churn.look()
    except Exception as e:
        raise Failed(f"COSCHED_SEED={seed}: {e}") from e
