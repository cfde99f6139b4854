# SPDX-License-Identifier: Apache-2.0
"""Gangs: whole or not at all, told from the watch stream.

The API server binds pods one by one, so every gang is partly bound for a moment: its burst. Stream below sees each pod's way as the server tells it, and measures for every
gang the time from the first Binding to the one that completes its minimum. Nodes are only API objects: a pod "runs" or ends when a case says so.

COSCHED_GANG_ROUNDS (10), COSCHED_GANG_SETS (1) and COSCHED_GANG_KILLS (10) are the counts of the three long cases; `make soak` has larger ones. COSCHED_SEED repeats the dice.
The documents' gang manifests run in suite_nodes.
"""
import collections
import json
import os
import random
import threading
import time

from harness import MERGE, Failed, case, check, check_equal, wait_until
from suite_nodes import CLAIM, COUNT, MEM, pod_group_crds
from suite_volumes import Storage

NAME, MIN = "pod-group.scheduling.sigs.k8s.io/name", "pod-group.scheduling.sigs.k8s.io/min-available"
BARE = "pod-group.scheduling.sigs.k8s.io"
GROUPS = "/apis/scheduling.sigs.k8s.io/v1alpha1"


def count_of(variable, fallback):
    return int(os.environ.get(variable, fallback))


def percentile(values, p):
    return sorted(values)[min(len(values) - 1, len(values) * p // 100)]


def show(text):
    print(f"     {text}", flush=True)


class Cards:
    """What the claims of bound pods say, added up card by card at every step. A pod that asks for shared GPU memory brings its claim with its node, keeps it, and has what it asked for."""

    def __init__(self, size):
        self.size = size  # GiB of each card, by node
        self.used = {node: [0] * len(sizes) for node, sizes in size.items()}
        self.claims = {}  # of the bound pods, by uid: the node, and GiB by card
        self.most = 0     # GiB that were promised of all cards together

    @staticmethod
    def read(pod):
        text, cards = pod["metadata"].get("annotations", {}).get(CLAIM), collections.Counter()
        for share in json.loads(text).values() if text else ():
            cards.update({int(card): gib for card, gib in share.items()})
        return cards

    def take(self, pod, gone):
        """Returns what is wrong."""
        name, uid, node, claim = pod["metadata"]["name"], pod["metadata"]["uid"], pod["spec"].get("nodeName"), self.read(pod)
        asked = sum(int(c["resources"].get("limits", {}).get(MEM, "0")) for c in pod["spec"]["containers"])
        if not node:
            return [f"{name} has a claim and no node"] if claim else []
        if gone:
            for card, gib in self.claims.pop(uid, (node, {}))[1].items():
                self.used[node][card] -= gib
            return []
        if uid in self.claims:
            return [] if self.claims[uid] == (node, claim) else [f"{name} was given {self.claims[uid]}, and says {claim} on {node} now"]
        self.claims[uid] = node, claim
        if sum(claim.values()) != asked:
            return [f"{name} asked for {asked} GiB, its claim is {dict(claim)} on {node}"]
        if len(claim) != (int(pod["metadata"].get("labels", {}).get(COUNT, "1")) if asked else 0):
            return [f"{name} is on cards {sorted(claim)}"]
        wrong = []
        for card, gib in claim.items():
            self.used[node][card] += gib
            if self.used[node][card] > self.size[node][card]:
                wrong.append(f"card {card} of {node}: {self.used[node][card]} GiB are promised of {self.size[node][card]}, the last of them to {name}")
        self.most = max(self.most, sum(map(sum, self.used.values())))
        return wrong


class Stream(threading.Thread):
    """All pods of a namespace, step by step. `bound` is what is bound now, by gang; `bursts` the time of each gang's first whole binding."""

    def __init__(self, suite, ns, capacity=None, cards=None):
        super().__init__(daemon=True)
        self.cluster, self.path = suite.cluster, f"/api/v1/namespaces/{ns}/pods"
        self.version = suite.cluster.get(self.path)["metadata"]["resourceVersion"]
        self.capacity = capacity or {}  # CPUs by node; pods ask for one each
        self.cards = Cards(cards or {})
        self.change = threading.Condition()
        self.pods, self.bound, self.problems = {}, collections.defaultdict(set), []
        self.first, self.whole, self.bursts = {}, {}, {}  # when the first pod of a gang was bound, when its minimum was, and the time between
        self.nodes = collections.Counter()
        self.ending = False
        suite.stack.callback(self.stop)
        self.start()

    def stop(self):
        self.ending = True

    def take(self, event, at):
        o = event["object"]
        self.version = o["metadata"]["resourceVersion"]
        if event["type"] == "BOOKMARK":
            return
        name, uid, labels = o["metadata"]["name"], o["metadata"]["uid"], o["metadata"].get("labels", {})
        gang, node = labels.get(NAME) or labels.get(BARE), o["spec"].get("nodeName")
        before = self.pods.pop(uid, None)
        self.problems += self.cards.take(o, event["type"] == "DELETED")
        if event["type"] != "DELETED":
            self.pods[uid] = node
            if before and node != before:
                self.problems.append(f"{name} moved from {before} to {node}")
        elif before:
            self.bound[gang].discard(uid)
            self.nodes[before] -= 1
        if event["type"] == "DELETED" or not node or before == node:
            return
        self.bound[gang].add(uid)
        self.nodes[node] += 1
        if node in self.capacity and self.nodes[node] > self.capacity[node]:
            self.problems.append(f"{node} has {self.nodes[node]} pods on {self.capacity[node]} CPUs")
        least = int(labels.get(MIN, "0"))
        self.first.setdefault(gang, at)
        if len(self.bound[gang]) == least and gang not in self.bursts:
            self.whole[gang], self.bursts[gang] = at, at - self.first[gang]

    def run(self):
        while not self.ending:
            conn = self.cluster.connect(20)
            try:
                conn.request("GET", f"{self.path}?watch=1&allowWatchBookmarks=true&timeoutSeconds=10&resourceVersion={self.version}", None,
                             {"Authorization": "Bearer " + self.cluster.token})
                reply = conn.getresponse()
                while line := reply.readline():
                    at = time.monotonic()
                    with self.change:
                        self.take(json.loads(line), at)
                        self.change.notify_all()
            except (OSError, ValueError) as e:
                self.problems.append(f"the watch broke: {e}")
                return
            finally:
                conn.close()

    def wait(self, ask, what, seconds=60):
        """Until ask() holds at some step of the stream; returns what it returned."""
        until = time.monotonic() + seconds
        with self.change:
            while not (got := ask()):
                left = until - time.monotonic()
                if left <= 0 or self.problems:
                    held = {g: len(u) for g, u in self.bound.items() if u}
                    raise Failed(f"not within {seconds} s: {what}; bound: {held}; {self.problems}")
                self.change.wait(left)
        return got

    def size(self, gang):
        return len(self.bound[gang])

    def report(self, what):
        if not self.bursts:
            return
        ms = [b * 1000 for b in self.bursts.values()]
        show(f"{what}: {len(ms)} gangs; from the first Binding to the one that completes the minimum: p50 {percentile(ms, 50):.1f} ms, "
             f"p99 {percentile(ms, 99):.1f} ms, largest {max(ms):.1f} ms")


class Yard:
    """Nodes, with shared cards or without, and gangs of pods with one CPU each."""

    def __init__(self, suite, nodes, cpu, cards=()):
        """cards: the GiB of each of a node's cards."""
        self.suite, self.cluster, self.ns = suite, suite.cluster, suite.namespace()
        what = {"extra": {MEM: str(sum(cards)), COUNT: str(len(cards))}, "annotations": {"cosched.io/gpu-inventory": json.dumps(self.inventory(cards))}} if cards else {}
        self.names = [suite.node(f"{self.ns}-{i}", cpu=str(cpu), labels={"pool": self.ns}, **what) for i in range(nodes)]
        self.stream = Stream(suite, self.ns, {name: cpu for name in self.names}, {name: list(cards) for name in self.names})

    @staticmethod
    def inventory(cards):
        card = lambda i, gib: {"i": i, "uuid": f"GPU-{i}", "model": "Tesla T4", "mib": gib * 1024, "numa": 0, "pci": f"0000:0{i}:00.0", "health": "ok"}
        links = [["X" if i == k else "PIX" for k in range(len(cards))] for i in range(len(cards))]
        return {"v": 1, "mode": "share", "switchingTo": None, "isolation": "none", "cards": [card(*c) for c in enumerate(cards)], "links": links}

    def member(self, gang, i, size, gib=0, cards=1, **more):
        """gib: of each of its cards."""
        labels = {NAME: gang, MIN: str(size), **({COUNT: str(cards)} if cards > 1 else {})}
        limits = {"cpu": "1", **({MEM: str(gib * cards)} if gib else {})}
        return self.cluster.create_pod(self.ns, f"{gang}-{i}", requests=limits, limits=limits, labels=labels, node_selector={"pool": self.ns}, **more)

    def gang(self, gang, size, gib=0, cards=1):
        for i in range(size):
            self.member(gang, i, size, gib, cards)

    def room(self, gib=0, cards=1):
        """How many such members there is room for now, as the stream tells it."""
        stream, total = self.stream, 0
        for node in self.names:
            places = stream.capacity[node] - stream.nodes[node]
            if gib:
                free = [(size - used) // gib for size, used in zip(stream.cards.size[node], stream.cards.used[node])]
                places = min(places, sum(free) if cards == 1 else min(free))  # the others use all cards of a node
            total += places
        return total

    def end(self, gang):
        self.cluster.do("DELETE", f"/api/v1/namespaces/{self.ns}/pods?gracePeriodSeconds=0&labelSelector={NAME}%3D{gang}")


@case("two gangs that fit alone but not together, made interleaved: one runs, nothing of the other is bound before it has ended, then it follows")
def deadlock(suite):
    yard, size = Yard(suite, 2, 5), 8
    suite.scheduler()
    stream, rounds = yard.stream, count_of("COSCHED_GANG_ROUNDS", 10)
    times = {"the first after its last pod was made": [], "the second after the first was told to end": [],
             "the same, where the first had run for more than a second": []}
    first, soon, late = times.values()
    for r in range(rounds):
        names, made = [f"a{r}", f"b{r}"], {}
        for i in range(size):
            for name in names if (i + r) % 2 else reversed(names):
                made[name] = time.monotonic()
                yard.member(name, i, size)
        winner = stream.wait(lambda n=names: next((x for x in n if stream.size(x) == size), None), "one of two gangs is bound")
        other = next(x for x in names if x != winner)
        first.append(stream.whole[winner] - made[winner])
        slow = r % 5 == 4  # a gang that was refused is not tried again for a second
        time.sleep(1.2 if slow else random.uniform(0, 0.05))
        with stream.change:
            check(other not in stream.first, f"{other} was bound while {winner} ran")
        ended = time.monotonic()
        yard.end(winner)
        stream.wait(lambda o=other: stream.size(o) == size, f"{other} follows")
        check(stream.first[other] > ended, f"{other} began before {winner} was told to end")
        (late if slow else soon).append(stream.whole[other] - ended)
        yard.end(other)
        stream.wait(lambda: not any(stream.bound.values()), "both are gone")
    check(not stream.problems, stream.problems)
    stream.report(f"{rounds} rounds of two gangs of {size}")
    for what, seconds in times.items():
        if seconds:
            show(f"{what}: p50 {percentile(seconds, 50) * 1000:.0f} ms, largest {max(seconds) * 1000:.0f} ms")


@case("50 gangs of random sizes on room for a third of them: all run, and none is ever partly bound for longer than its burst")
def many(suite):
    seed = os.environ.get("COSCHED_SEED", str(time.time_ns()))
    show(f"COSCHED_SEED={seed}")
    dice = random.Random(seed)
    suite.scheduler()
    for _ in range(count_of("COSCHED_GANG_SETS", 1)):
        sizes = {f"g{i}": dice.randrange(2, 11) for i in range(50)}
        yard = Yard(suite, 6, sum(sizes.values()) // 18)
        stream = yard.stream
        makers = [threading.Thread(target=lambda part=part: [yard.gang(g, sizes[g]) for g in part]) for part in (list(sizes)[k::4] for k in range(4))]
        for maker in makers:
            maker.start()
        ended = set()
        while len(ended) < len(sizes):
            done = stream.wait(lambda: [g for g in sizes if g not in ended and stream.size(g) == sizes[g]], f"{len(sizes) - len(ended)} gangs are left", 120)
            for gang in done:
                time.sleep(dice.uniform(0, 0.02))
                yard.end(gang)
                ended.add(gang)
        for maker in makers:
            maker.join()
        stream.wait(lambda: not any(stream.bound.values()), "all are gone")
        check_equal(sorted(stream.bursts), sorted(sizes), "gangs that were whole once")
        check(not stream.problems, stream.problems)
        stream.report("50 random gangs on a third of the room")


class Crashes:
    """One scheduler after the other, on one yard."""

    def __init__(self, suite):
        self.suite, self.cluster = suite, suite.cluster
        seed = os.environ.get("COSCHED_SEED", str(time.time_ns()))
        show(f"COSCHED_SEED={seed}")
        self.dice = random.Random(seed)
        self.yard = Yard(suite, 4, 12, cards=(15, 15))
        self.stream = self.yard.stream
        self.cut = 0

    def lose_replies(self, on):
        if self.cluster.target != "local":
            return
        rule = {"fault": "lose-reply", "match": {"method": "POST", "path": "/binding"}, "percent": 20, "seconds": 60}
        self.cluster.do("POST" if on else "DELETE", "/cosched/faults", rule if on else None, ok=(200, 201, 204))

    def gangs(self, r):
        """Three that want CPUs, three that want a part of a card, and one whose pods want a part of both cards of a node: more than there is room for, of either. Size, GiB, cards."""
        size = lambda: self.dice.randrange(4, 11)
        plain = {f"r{r}-cpu{i}": (size(),) for i in range(3)}
        shared = {f"r{r}-gpu{i}": (size(), self.dice.randrange(3, 8)) for i in range(3)}
        return {**plain, **shared, f"r{r}-both": (self.dice.randrange(3, 7), self.dice.randrange(3, 6), 2)}

    def settled(self, gangs):
        """Each is whole or not bound at all, and of the latter none would find room."""
        bound = {g: self.stream.size(g) for g in gangs}
        return all(bound[g] == what[0] or bound[g] == 0 and self.yard.room(*what[1:]) < what[0] for g, what in gangs.items())

    def round(self, r):
        """The scheduler is killed at a random point of the gangs' binding, and the next one finds what it left."""
        gangs = self.gangs(r)
        scheduler = self.suite.scheduler()
        self.lose_replies(True)
        makers = [threading.Thread(target=self.yard.gang, args=(name, *what)) for name, what in gangs.items()]
        for maker in makers:
            maker.start()
        total = self.dice.randrange(1, 36)
        self.stream.wait(lambda: sum(map(self.stream.size, gangs)) >= total or self.settled(gangs), "binding has begun")
        time.sleep(self.dice.uniform(0, 0.01))
        scheduler.kill()
        for maker in makers:
            maker.join()
        self.lose_replies(False)
        with self.stream.change:
            before = {g: self.stream.size(g) for g in gangs}
            left = {g for g, what in gangs.items() if 0 < before[g] < what[0]}
        self.cut += len(left)
        scheduler = self.suite.scheduler()
        self.stream.wait(lambda: self.settled(gangs), f"every gang of {gangs} is whole or not bound at all (left in pieces: {sorted(left)} of {before})")
        check(not self.stream.problems, self.stream.problems)
        scheduler.kill()
        for g in gangs:
            self.yard.end(g)
        self.stream.wait(lambda: not any(self.stream.bound.values()), "the yard is empty")
        check(not any(map(any, self.stream.cards.used.values())), f"cards of an empty yard: {self.stream.cards.used}")


@case("the scheduler is killed at random points while gangs are bound, replies are lost: every gang ends whole or not bound, nothing is promised twice", needs={"alone"})
def crashes(suite):
    world = Crashes(suite)
    rounds = count_of("COSCHED_GANG_KILLS", 10)
    for r in range(rounds):
        world.round(r)
    check(world.stream.cards.most > 0, "no card was ever promised to anybody")
    show(f"killed {rounds} times; {world.cut} gangs were left in pieces and made whole by the next scheduler; "
         f"at most {world.stream.cards.most} of {4 * 2 * 15} GiB on cards were promised at a time, and of no card more than it has")


def put_group(c, ns, name, least, timeout=None):
    spec = {"minMember": least, **({"scheduleTimeoutSeconds": timeout} if timeout else {})}
    body = {"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": name, "namespace": ns}, "spec": spec}
    return c.do("POST", f"{GROUPS}/namespaces/{ns}/podgroups", body)


def group_status(c, ns, name):
    return c.get(f"{GROUPS}/namespaces/{ns}/podgroups/{name}").get("status", {})


def wait_status(c, ns, name, **what):
    """Counts that are not named are 0."""
    expected = {"scheduled": 0, "running": 0, "succeeded": 0, "failed": 0, **what}

    def ask():
        status = group_status(c, ns, name)
        return status if {k: status.get(k) for k in expected} == expected else None

    try:
        return wait_until(ask, f"the PodGroup says {expected}", 20)
    except Failed as e:
        raise Failed(f"{e}; it says {group_status(c, ns, name)}") from e


def set_phase(c, ns, name, phase):
    c.do("PATCH", f"/api/v1/namespaces/{ns}/pods/{name}/status", {"status": {"phase": phase}}, MERGE)


@case("a PodGroup's status follows its pods from Pending to Finished, with one write for each change")
def statuses(suite):
    c = suite.cluster
    pod_group_crds(suite)
    ns = suite.namespace()
    node = suite.node(f"{ns}-n", cpu="2")
    suite.scheduler()
    made = put_group(c, ns, "g", 3)
    member = lambda i: c.create_pod(ns, f"m{i}", requests={"cpu": "1"}, labels={BARE: "g"}, node_selector={"pool": node})
    check_equal(wait_status(c, ns, "g", phase="Pending").get("scheduleStartTime"), None, "no attempt has begun")
    member(0), member(1)
    c.wait_refused(ns, "m0", "2 of 3 pods exist", reason="WaitingForGang")
    member(2)
    check(wait_status(c, ns, "g", phase="PreScheduling").get("scheduleStartTime"), "the attempt has a start")
    c.wait_refused(ns, "m0", "room for 2 of 3 pods")
    c.patch_node_status(node, {"cpu": "3", "memory": "8Gi", "pods": "110"})
    wait_status(c, ns, "g", phase="Scheduled", scheduled=3)
    for i in range(3):
        set_phase(c, ns, f"m{i}", "Running")
    wait_status(c, ns, "g", phase="Running", scheduled=3, running=3)
    check("g " in c.kubectl("get", "podgroups.scheduling.sigs.k8s.io", "-n", ns, "--no-headers"), "kubectl lists it")
    for i in range(3):
        set_phase(c, ns, f"m{i}", "Succeeded")
    wait_status(c, ns, "g", phase="Finished", scheduled=3, succeeded=3)
    # Pending, PreScheduling, Scheduled, Running, Finished; pods are changed one by one, so there may be steps in between: at most one for each pod.
    writes = len(c.watch(f"{GROUPS}/namespaces/{ns}/podgroups", made["metadata"]["resourceVersion"]))
    check(5 <= writes <= 5 + 3 * 3, f"{writes} writes of the status")


@case("an attempt that takes longer than scheduleTimeoutSeconds ends with Events on the PodGroup and its pods, and begins anew")
def timeouts(suite):
    c = suite.cluster
    pod_group_crds(suite)
    ns = suite.namespace()
    node = suite.node(f"{ns}-n", cpu="1")
    suite.scheduler()
    put_group(c, ns, "g", 2, timeout=2)
    for i in range(2):
        c.create_pod(ns, f"m{i}", requests={"cpu": "1"}, labels={BARE: "g"}, node_selector={"pool": node})
    start = wait_status(c, ns, "g", phase="PreScheduling")["scheduleStartTime"]
    for name in ("g", "m0", "m1"):
        event = wait_until(lambda n=name: c.events(ns, n, "ScheduleTimeout"), f"an Event on {name}", 20)[0]
        check("was not placed within 2 s, trying again" in event["message"] and "room for 1 of 2 pods" in event["message"], event["message"])
    wait_until(lambda: group_status(c, ns, "g").get("scheduleStartTime") > start, "the next attempt has another start")
    c.patch_node_status(node, {"cpu": "2", "memory": "8Gi", "pods": "110"})
    wait_status(c, ns, "g", phase="Scheduled", scheduled=2)


@case("the members of a gang are bound when the claims of all of them are, and not one before")
def claims_first(suite):
    c, ns = suite.cluster, suite.namespace()
    storage = Storage(suite, ns, "example.com/disk")
    node = suite.node(f"{ns}-n")
    suite.scheduler()
    labels = {NAME: "g", MIN: "3"}
    made = {name: storage.claim(name) for name in ("one", "two")}
    for name in made:
        storage.pod(f"with-{name}", name, labels=labels, node_selector={"pool": node})
    c.create_pod(ns, "without", labels=labels, node_selector={"pool": node})
    wait_until(lambda: all(storage.selected(name) == node for name in made), "both claims get their node")
    storage.volume(f"{ns}-one", node, made["one"])
    storage.bind("one", f"{ns}-one")
    wait_until(lambda: storage.get_claim("one")["status"].get("phase") == "Bound", "the first claim is bound")
    time.sleep(0.5)  # for what must not happen
    check_equal([p["spec"].get("nodeName") for p in c.pods(ns)], [None] * 3, "nobody is bound while a claim is not")
    storage.volume(f"{ns}-two", node, made["two"])
    storage.bind("two", f"{ns}-two")
    for name in ("with-one", "with-two", "without"):
        check_equal(c.wait_bound(ns, name), node, f"the node of {name}")


@case("with --gang-dry-run a gang is bound after all its Bindings were accepted on trial")
def dry_run(suite):
    yard = Yard(suite, 2, 4)
    p = suite.scheduler("--gang-dry-run")
    yard.gang("g", 6)
    yard.stream.wait(lambda: yard.stream.size("g") == 6, "the gang is bound")
    check(not yard.stream.problems, yard.stream.problems)
    p.stop()


@case("with --gang-dry-run nobody is bound when one member would be refused", needs={"local"})
def dry_run_refused(suite):
    c, yard = suite.cluster, Yard(suite, 2, 4)
    suite.scheduler("--gang-dry-run")
    c.do("POST", "/cosched/faults", {"fault": "reply", "code": 403, "message": "not this one", "match": {"agent": "dryrun"}, "count": 1})
    yard.gang("g", 6)
    event = wait_until(lambda: [e for i in range(6) for e in c.events(yard.ns, f"g-{i}", "FailedBinding")], "one member says why")[0]
    check("not this one" in event["message"], event["message"])
    yard.stream.wait(lambda: yard.stream.size("g") == 6, "the next attempt succeeds")
    check(not yard.stream.problems, yard.stream.problems)


@case("a gang that has lost a member keeps its room for the replacement, and a stranger waits; a gang that was deleted keeps nothing")
def slot(suite):
    c, yard = suite.cluster, Yard(suite, 1, 2)
    suite.scheduler()
    yard.gang("g", 2)
    yard.stream.wait(lambda: yard.stream.size("g") == 2, "the gang is bound")
    c.create_pod(yard.ns, "stranger", requests={"cpu": "1"}, node_selector={"pool": yard.ns})
    c.wait_refused(yard.ns, "stranger", "too little cpu")
    c.delete_pod(yard.ns, "g-1")
    c.wait_refused(yard.ns, "stranger", "too little cpu|nominated|promised|kept")
    time.sleep(1.5)  # longer than the stranger's backoff: it has been tried
    check_equal(c.node_of(yard.ns, "stranger"), None, "the stranger's node")
    yard.member("g", 2, 2)
    c.wait_bound(yard.ns, "g-2")
    check_equal(c.node_of(yard.ns, "stranger"), None, "the stranger's node")
    yard.end("g")
    c.wait_bound(yard.ns, "stranger")


@case("a member that its kubelet sends back counts as failed, and its replacement goes to another node")
def sent_back(suite):
    c = suite.cluster
    pod_group_crds(suite)
    ns = suite.namespace()
    for i in range(2):
        suite.node(f"{ns}-{i}", cpu="2", labels={"pool": ns})
    suite.scheduler()
    put_group(c, ns, "g", 2)
    member = lambda i: c.create_pod(ns, f"m{i}", requests={"cpu": "1"}, labels={BARE: "g"}, node_selector={"pool": ns})
    member(0), member(1)
    wait_status(c, ns, "g", phase="Scheduled", scheduled=2)
    lacking = c.node_of(ns, "m1")
    c.do("PATCH", f"/api/v1/namespaces/{ns}/pods/m1/status", {"status": {"phase": "Failed", "reason": "OutOfcpu", "message": "Node didn't have enough resource: cpu"}}, MERGE)
    wait_status(c, ns, "g", phase="Failed", scheduled=1, failed=1)
    member(2)
    wait_status(c, ns, "g", phase="Scheduled", scheduled=2, failed=1)
    check(c.node_of(ns, "m2") != lacking, f"the replacement is on {lacking}, which has just sent a member back")


@case("a gang that cannot be healed is kept with an Event, or sent away with --stale-gang=evict")
def stale(suite):
    c = suite.cluster
    pod_group_crds(suite)
    for option in ("keep", "evict"):
        ns = suite.namespace()
        node = suite.node(f"{ns}-n", cpu="2")
        scheduler = suite.scheduler(f"--stale-gang={option}")
        put_group(c, ns, "g", 2, timeout=2)
        for i in range(2):
            c.create_pod(ns, f"m{i}", requests={"cpu": "1"}, labels={BARE: "g"}, node_selector={"pool": node})
        wait_status(c, ns, "g", phase="Scheduled", scheduled=2)
        c.delete_pod(ns, "m1")
        event = wait_until(lambda: c.events(ns, "g", "StaleGang"), "an Event on the PodGroup", 20)[0]  # pylint: disable=cell-var-from-loop
        check("has 1 of 2 pods on nodes" in event["message"], event["message"])
        if option == "keep":
            check("m0" in [p["metadata"]["name"] for p in c.pods(ns)], "the other member was sent away")
        else:
            wait_until(lambda: not c.pods(ns), "the other member is sent away")  # pylint: disable=cell-var-from-loop
        scheduler.stop()
