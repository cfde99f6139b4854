# SPDX-License-Identifier: Apache-2.0
"""Churn: random pods come and go on simulated nodes, while the scheduler and the device plugins are killed, kubelets restart and the API server misbehaves. What the suites of cards and of CPUs
have in common; each brings its pods, an auditor that follows the watch, and what must agree when it is quiet.

    rounds ──► churn   makers create and delete pods, faults are inflicted, the auditors look on
          └──► quiet   faults are over: everything settles, all books are the same, before and after the scheduler was started anew
          └──► fill    everything goes, and all that there is can be given out again

COSCHED_SEED repeats the dice (not the threads' timing).
"""
import collections
import contextlib
import json
import os
import random
import signal
import threading
import time

from harness import Failed, check, check_equal, http_get, wait_until
from suite_faults import TROUBLE, Watcher, is_live, key_of
from suite_nodes import Embedded

MAKERS, ROUND = 3, 2000
SETTLE_S = 90  # a plugin that was killed often is started again after 10 s, a pod that was refused often is tried again after 10 s


def holds(pod):
    return bool(pod and pod["spec"].get("nodeName") and is_live(pod))


def container(dice, name, limits, **more):
    """Runs on, or with ends=True for a short while. requests: where they are not the limits."""
    ends, requests = more.pop("ends", False), more.pop("requests", None)
    command = f"sleep {dice.choice(('0.2', '1', '3'))}" if ends else "sleep 3600"
    resources = {"limits": {k: str(v) for k, v in limits.items()}, **({"requests": requests} if requests else {})}
    return {"name": name, "image": "busybox:test", "imagePullPolicy": "Never", "command": ["sh", "-c", command], "resources": resources, **more}


class Auditor(Watcher):
    """Each event of the watch: nothing is bound twice, and judge() has nothing to say about what is on its node."""

    def __init__(self, *args):
        super().__init__(*args)
        self.node_of, self.on = {}, collections.defaultdict(dict)
        self.most = 0

    def judge(self, key, pod, node):
        """pod: None when it holds nothing any more. self.on[node] is what holds something there."""

    def changed(self, before, now):
        pod = now or before
        if pod is None or not pod["spec"].get("nodeName"):
            return
        key, node, uid = key_of(pod), pod["spec"]["nodeName"], pod["metadata"]["uid"]
        if self.node_of.setdefault(uid, node) != node:
            self.problem("bound twice:", key, "to", self.node_of[uid], "and", node)
        if holds(now):
            self.on[node][key] = now
        else:
            self.on[node].pop(key, None)
        self.most = max(self.most, sum(map(len, self.on.values())))
        self.judge(key, now if holds(now) else None, node)

    def list(self, limit=None):
        """All at once; what went away while nobody looked is forgotten."""
        view, version = super().list(limit or 100000)
        for there in self.on.values() if threading.current_thread() is self else ():
            for key in [k for k in there if not holds(view.get(k))]:
                del there[key]
        return view, version


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
        if len(self.names) >= self.churn.pods_at_once // MAKERS:
            name = self.names.pop(self.dice.randrange(len(self.names) // 2))  # of the older ones
            if self.request("DELETE", f"{self.churn.pods_path}/{name}{self.dice.choice(('', '', '?gracePeriodSeconds=0'))}") not in (200, 202, 404):
                self.names.append(name)
            return
        for pod in self.churn.random_pods(self.dice, f"m{self.number}-{self.made}"):
            self.names.append(pod["metadata"]["name"])
            self.left -= self.request("POST", self.churn.pods_path, pod) == 201
            self.churn.created += 1
        self.made += 1
        time.sleep(self.dice.uniform(0, self.churn.pause_s))  # so that most live long enough to be placed


class Churn:
    """Of a suite: specs of the nodes, pods_at_once, a maker's pause after a pod, faults_of (kind → weight), and the methods below that do nothing here."""
    specs, pods_at_once, pause_s, faults_of, settings = [], 90, 0.1, {}, ("--request-timeout=3s",)

    def __init__(self, suite, seed):
        self.dice = random.Random(f"{seed}-faults")
        self.nodes = Embedded(suite, self.specs)
        self.names = [s["name"] for s in self.specs]
        self.suite, self.cluster = self.nodes.suite, self.nodes.cluster
        self.ns = self.suite.namespace()
        self.pods_path = f"/api/v1/namespaces/{self.ns}/pods"
        self.counts, self.faults = collections.Counter(), collections.Counter()
        self.problems, self.created, self.ending = [], 0, False
        self.busy_s = 0.0
        self.scheduler = None
        self.auditor, self.watchers = None, []  # all that look on, threads with .problems and .ending
        self.makers = []

    # ---- what a suite brings

    def random_pods(self, dice, name):
        raise NotImplementedError

    def prepare(self):
        """Waits until the nodes offer all that they have; makes self.auditor and self.watchers the first time."""
        raise NotImplementedError

    def settled(self):
        """The pods; fails while something is still on its way."""
        raise NotImplementedError

    def agree(self, pods):
        """What must be true when it is quiet, beside the scheduler's model."""

    def same(self, model, pods):
        """What the model holds is what the API's pods hold. By key."""

    def fill(self):
        """Everything goes; then everything can be given out to the last."""
        raise NotImplementedError

    def heal(self):
        """Faults of the suite's own end."""

    # ---- under faults

    def start(self):
        self.prepare()
        self.scheduler = self.suite.scheduler(*self.settings)
        for thread in self.watchers:
            self.suite.stack.callback(setattr, thread, "ending", True)
            thread.start()

    def admin(self, method, body=None):
        return wait_until(lambda: self.cluster.do(method, "/cosched/faults", body), f"{method} {body}", 20)

    def kill_scheduler(self):
        self.scheduler.kill()
        self.scheduler.check_clean()
        self.scheduler.close()
        self.scheduler = self.suite.scheduler(*self.settings, wait=False)

    def kill_plugin(self):
        pid = self.nodes.plugin_pid(self.dice.choice(self.names))
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def kubelet(self):
        self.admin("POST", {"fault": "restart-kubelet", "node": self.dice.choice(self.names)})

    def cut(self):
        self.admin("POST", {"fault": self.dice.choice(("cut-watches", "reset-connections"))})

    def forget(self):
        self.admin("POST", {"fault": "compact"})

    def away(self):
        self.admin("POST", {"fault": "restart", "ms": self.dice.randrange(1, 400)})

    def rule(self):
        d = self.dice
        binding = {"method": "POST", "path": "/binding"}
        fault = d.choice(({"fault": "lose-reply", "match": binding, "every": d.randrange(1, 4)}, {"fault": "reply", "code": 409, "match": binding, "every": 3},
                          {"fault": "reply", "code": d.choice((429, 500, 503)), "match": {"agent": d.choice(("scheduler", "device-plugin"))}, "percent": 30},
                          {"fault": "drop", "match": {"agent": d.choice(("scheduler", "device-plugin"))}, "percent": 20},
                          {"fault": "lose-reply", "percent": 10}, {"fault": "delay", "ms": d.randrange(1, 300), "percent": 20}))
        self.admin("POST", {**fault, "seconds": d.randrange(1, 3)})

    def churn(self, count, seed):
        self.makers = [Maker(self, i, seed) for i in range(MAKERS)]
        for i, maker in enumerate(self.makers):
            maker.left = count // MAKERS + (i < count % MAKERS)
            maker.start()
        began = time.monotonic()
        while any(m.is_alive() for m in self.makers):
            what = self.dice.choices(list(self.faults_of), list(self.faults_of.values()))[0]
            self.faults[what] += 1
            getattr(self, what)()
            self.look()
            time.sleep(self.dice.uniform(0.05, 0.7))
        self.busy_s += time.monotonic() - began

    def look(self):
        """Why go on when it is wrong already?"""
        wrong = self.problems + [p for thread in self.watchers for p in thread.problems]
        check(not wrong, "\n     ".join(wrong[:5]))

    # ---- when it is quiet

    def pods(self):
        return self.cluster.get(self.pods_path)["items"]

    def says_why(self, pod):
        """The sentence of a pod that waits."""
        condition = next((c for c in pod["status"].get("conditions", ()) if c["type"] == "PodScheduled"), {})
        check(condition.get("status") == "False", pod["metadata"]["name"], "does not say why it waits")
        return condition.get("message")

    def quiet(self):
        """All faults are over: everything has to come right."""
        self.admin("DELETE")
        self.heal()
        began = time.monotonic()
        wait_until(lambda: http_get(self.scheduler.port, "/readyz")[0] == 200, "the scheduler is ready", SETTLE_S)
        wait_until(lambda: self.prepare() or True, "all nodes offer all that they have", SETTLE_S)
        wait_until(self.settled, "the cluster settles", SETTLE_S, 0.3)
        took = time.monotonic() - began
        self.auditor.compare()
        wait_until(lambda: self.agree(self.settled()) or True, "the nodes' side is what the annotations say", 30, 0.3)
        pods = self.same_model()
        self.kill_scheduler()
        wait_until(lambda: http_get(self.scheduler.port, "/readyz")[0] == 200, "a new scheduler is ready", 30)
        self.same_model()
        self.look()
        phases = collections.Counter(p["status"].get("phase") for p in pods)
        print(f"     {self.created} pods were made: quiet after {took:.1f} s with {dict(phases)}, {self.in_use(pods)}", flush=True)

    def in_use(self, pods):
        raise NotImplementedError

    def same_model(self):
        """The scheduler's model is the API's pods, with the claims that they have there."""

        def ask():
            status, text = http_get(self.scheduler.port, "/debug/cluster")
            check_equal(status, 200, text[:200])
            pods = {key_of(p): p for p in self.settled()}
            model = {key_of(o): o for o in json.loads(text)["items"] if o["kind"] == "Pod" and o["metadata"]["namespace"] == self.ns}
            for key, p in pods.items():
                if holds(p):
                    check(key in model, key, "is not in the scheduler's model")
                    check(not model[key].get("cosched", {}).get("assumed"), key, "is still assumed")
            self.same(model, pods)
            return list(pods.values())

        return wait_until(ask, "the scheduler's model is a recount of the API", 60, 0.3)

    def all_run(self, count):
        """Waits until there are so many pods, and all of them run."""

        def ask():
            late = [(p["metadata"]["name"], p["status"].get("phase"), p["status"].get("conditions", [{}])[0].get("message"), p["status"].get("message"))
                    for p in self.pods() if p["status"].get("phase") != "Running"]
            check(not late, late)
            return len(self.pods()) == count

        wait_until(ask, "all that there is can be given out", 60, 0.3)

    def clear(self):
        wait_until(lambda: self.cluster.do("DELETE", self.pods_path + "?gracePeriodSeconds=0") and not self.pods(), "all pods are gone", 60)


def rounds(suite, make, variable, usual):
    """As many pods as the variable says. make(suite, seed) is a Churn."""
    total = int(os.environ.get(variable, usual))
    seed = int(os.environ.get("COSCHED_SEED") or int(time.time()))
    print(f"     COSCHED_SEED={seed}, {total} pods", flush=True)
    began = time.monotonic()
    try:
        churn = make(suite, seed)
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
            print(f"     {bound} pods were bound, at most {churn.auditor.most} at once; {'; '.join(str(dict(w.counts)) for w in churn.watchers)}; "
                  f"{time.monotonic() - began:.0f} s, {churn.busy_s:.0f} of them under faults", flush=True)
            check(bound > total // 3 and churn.auditor.counts["events"] > total and all(w.counts["lists"] > 0 for w in churn.watchers),
                  "too little was seen to say anything")
            churn.look()
    except Exception as e:
        raise Failed(f"COSCHED_SEED={seed}: {e}") from e
