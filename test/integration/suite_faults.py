# SPDX-License-Identifier: Apache-2.0
"""Random faults on cosched-local while pods, Jobs and Deployments come and go: after each while of trouble every watcher's view is the store's.

The case has a server, a scheduler and watchers of its own. Watchers are of two kinds: reflector_check (lib/kube's reflector), and Watcher below, written
without our library, which also checks each event: versions rise, ADDED is new, MODIFIED and DELETED are known. So a change that is lost, doubled or out of
order shows at once, and not only when the views are compared.

COSCHED_FAULT_SECONDS is the time of trouble (30), COSCHED_SEED repeats the dice (not the threads' timing).
"""
import collections
import contextlib
import http.client
import json
import os
import random
import re
import threading
import time

from harness import MERGE, SCHEDULER, Cluster, Failed, case, check, check_equal, free_port, wait_until
from suite_reflector import answer, stats

NODES, NODE_CPU, NODE_PODS = 20, 4, 12
PODS_MAX, DEPLOYMENTS_MAX, JOBS_MAX = 110, 4, 4
RSS_MAX_MIB = 500
EVENT_TTL_S = 10  # as many Events come as go: what grows then is a leak
MEANS_OF, GROWTH_MAX_KIB = 5, 1536  # long runs: in their last third, of which the Events that the controllers remember to have sent may be 1 MiB
SETTLE_S = 75  # a reflector that failed often waits up to 30 s, a pod that was refused often 10 s
SLOW_S = 5  # worth a line that says what it waited for
# The quarantine of freed memory would hide how the rest grows.
ASAN = {"ASAN_OPTIONS": "abort_on_error=0:detect_leaks=1:quarantine_size_mb=8"}
KINDS = {"Pod": "/api/v1/pods", "Node": "/api/v1/nodes", "Job": "/apis/batch/v1/jobs", "Deployment": "/apis/apps/v1/deployments",
         "ReplicaSet": "/apis/apps/v1/replicasets"}
REVISION = "deployment.kubernetes.io/revision"
TROUBLE = (OSError, http.client.HTTPException)


class Gone(Exception):
    """410: the past is forgotten."""


class Refused(Exception):
    """Another status than 200, or a stream that ended in the middle of a line."""


def key_of(o):
    return f"{o['metadata'].get('namespace', '')}/{o['metadata']['name']}"


def bare(o):
    """As in a list, where items do not say what they are."""
    return {k: v for k, v in o.items() if k not in ("apiVersion", "kind")}


def cpu_milli(o):
    total = 0
    for container in o["spec"]["containers"]:
        text = container.get("resources", {}).get("requests", {}).get("cpu", "0")
        total += int(text[:-1]) if text.endswith("m") else int(text) * 1000
    return total


def is_live(o):
    return o["status"].get("phase") not in ("Succeeded", "Failed")


def is_ready(o):
    return any(c["type"] == "Ready" and c["status"] == "True" for c in o["status"].get("conditions", ()))


def bound(value, replicas, up):
    """maxSurge (rounded up) or maxUnavailable (rounded down), a number or a percentage."""
    if isinstance(value, int):
        return value
    return (replicas * int(value.rstrip("%")) + (99 if up else 0)) // 100


def check_rollout(key, deployment, sets, waits):
    """A Deployment that has nothing left to do. Returns whether it stands still in the middle of a rollout.

    While pods of it wait for room, that may be so. Its controller keeps replicas - maxUnavailable pods available and has at most
    replicas + maxSurge; new pods that wait count against what may be taken from the old ones, whether these run or not. So 5 replicas at 25% come to rest at
    4 + 3 = 7 pods, which is no fault: the real controller does the same (suite_rollout.py has its numbers). What is wrong in any case: more than that, fewer
    than replicas, room that the new set does not use, an old pod that could go. Without pods that wait only replicas pods of the new template are right,
    which follows from the rest; it is asked for all the same.
    """
    rolling, replicas, status = deployment["spec"]["strategy"]["rollingUpdate"], deployment["spec"]["replicas"], deployment["status"]
    surge, unavailable = bound(rolling["maxSurge"], replicas, True), bound(rolling["maxUnavailable"], replicas, False)
    if surge == 0 and unavailable == 0:
        unavailable = min(1, replicas)
    check_equal(status.get("observedGeneration"), deployment["metadata"]["generation"], f"observedGeneration of {key}")
    revision = deployment["metadata"]["annotations"][REVISION]
    newest = [o for o in sets if o["metadata"]["annotations"][REVISION] == revision]
    check(len(newest) == 1, key, "has", len(newest), "sets of revision", revision)
    new, available = newest[0]["spec"]["replicas"], newest[0]["status"].get("availableReplicas", 0)
    total = sum(o["spec"]["replicas"] for o in sets)
    numbers = f"{key} of {replicas} + {surge} - {unavailable}: {total - new} old pods, {new} new ones, {available} of these available"
    check(replicas <= total <= replicas + surge and new <= replicas, numbers)
    check(new == replicas or total == replicas + surge, "the new set has room to grow:", numbers)
    check(total == new or total - new + available <= replicas - unavailable, "old pods can go:", numbers)
    check(waits or total == new == replicas, "nothing waits:", numbers)
    check_equal((status.get("replicas", 0), status.get("updatedReplicas", 0)), (total, new), f"status.replicas and updatedReplicas of {key}")
    check_equal(status.get("availableReplicas", 0), sum(o["status"].get("availableReplicas", 0) for o in sets), f"status.availableReplicas of {key}")
    return total != new


def difference(view, truth):
    """None, or a sentence."""
    for key in sorted(view.keys() | truth.keys()):
        got, want = view.get(key), truth.get(key)
        if got is None or want is None:
            return f"{key}: only in the {'store' if got is None else 'view'}"
        if got != want:
            versions = [(o["metadata"]["uid"], o["metadata"]["resourceVersion"]) for o in (got, want)]
            return f"{key}: the view has {versions[0]}, the store {versions[1]}" + (f": {got} is not {want}" if versions[0] == versions[1] else "")
    return None


class Watcher(threading.Thread):
    """List, watch, resume by resourceVersion, list again after 410; keeps a map."""

    def __init__(self, cluster, path, seed, query=""):
        super().__init__(daemon=True)
        self.cluster, self.path, self.query = cluster, path, query
        self.dice = random.Random(seed)
        self.view, self.version = {}, None
        self.lock = threading.Lock()
        self.problems = []
        self.counts = collections.Counter()
        self.ending = False

    def ask(self, query, timeout=15):
        c = self.cluster
        conn = c.connect(timeout)
        try:
            conn.request("GET", f"{self.path}?{query}{self.query}", None, {"Authorization": "Bearer " + c.token})
            reply = conn.getresponse()
            if reply.status != 200:
                reply.read()
                raise Gone() if reply.status == 410 else Refused(reply.status)
            return conn, reply
        except BaseException:
            conn.close()
            raise

    def list(self, limit=None):
        view, token = {}, ""
        limit = limit or self.dice.choice((3, 20, 500))
        while True:
            conn, reply = self.ask(f"limit={limit}&continue={token}")
            with contextlib.closing(conn):
                page = json.loads(reply.read())
            view.update({key_of(o): bare(o) for o in page["items"]})
            token = page["metadata"].get("continue")
            if not token:
                return view, int(page["metadata"]["resourceVersion"])

    def problem(self, *what):
        self.problems.append(f"{self.path}{self.query}: " + " ".join(str(w) for w in what))

    def changed(self, before, now):
        """For those who look at every step."""

    def take(self, event):
        o, kind = event["object"], event["type"]
        if kind == "ERROR":
            self.counts["errors"] += 1
            raise Gone() if o.get("code") == 410 else Refused(o)
        version = int(o["metadata"]["resourceVersion"])
        if kind == "BOOKMARK":
            if version < self.version:
                self.problem("bookmark", version, "after", self.version)
            self.version = version
            return
        key, before = key_of(o), self.view.get(key_of(o))
        self.counts["events"] += 1
        if version <= self.version:
            self.problem(kind, key, "version", version, "after", self.version)
        if (kind == "ADDED") != (before is None):
            self.problem(kind, key, "version", version, "but the view has", before and before["metadata"])
        if kind == "DELETED" and before and before["metadata"]["uid"] != o["metadata"]["uid"]:
            self.problem(kind, key, "with another uid")
        now = None if kind == "DELETED" else bare(o)
        with self.lock:
            if now is None:
                self.view.pop(key, None)
            else:
                self.view[key] = now
            self.version = version
        self.changed(before, now)

    def watch(self):
        conn, reply = self.ask(f"watch=1&allowWatchBookmarks=true&resourceVersion={self.version}&timeoutSeconds={self.dice.randrange(1, 9)}")
        with contextlib.closing(conn):
            self.counts["watches"] += 1
            while line := reply.readline():
                if not line.endswith(b"\n"):
                    raise Refused("cut in a line")
                self.take(json.loads(line))

    def run(self):
        while not self.ending:
            try:
                if self.version is None:
                    view, version = self.list()
                    with self.lock:
                        self.view, self.version = view, version
                    self.counts["lists"] += 1
                    for o in view.values():
                        self.changed(None, o)
                self.watch()
            except Gone:
                self.counts["gone"] += 1
                self.version = None
            except (Refused, *TROUBLE):
                self.counts["failures"] += 1
                time.sleep(self.dice.uniform(0.01, 0.2))
            except ValueError as e:
                self.problem("not JSON:", e)
                return

    def compare(self, seconds=20):
        """The view is what a list of this moment says."""

        def ask():
            check(self.is_alive(), "the watcher has ended:", self.problems)
            truth = self.list(limit=100000)[0]  # in one piece: of many small ones the first is old when the last comes
            with self.lock:
                text = difference(self.view, truth)
            if text:
                raise Failed(text)
            return True

        wait_until(ask, f"{self.path}{self.query} as seen by a watcher", seconds, 0.1)


class Auditor(Watcher):
    """All pods, each step: nothing is bound twice, no node is promised beyond its size."""

    def __init__(self, *args):
        super().__init__(*args)
        self.node_of = {}

    def changed(self, before, now):
        node = now and now["spec"].get("nodeName")
        if not node:
            return
        uid = now["metadata"]["uid"]
        if self.node_of.setdefault(uid, node) != node:
            self.problem("bound twice:", key_of(now), "to", self.node_of[uid], "and", node)
        here = [o for o in self.view.values() if o["spec"].get("nodeName") == node and is_live(o)]
        if len(here) > NODE_PODS or sum(map(cpu_milli, here)) > NODE_CPU * 1000:
            self.problem("beyond its size:", node, "at", self.version, [(key_of(o), cpu_milli(o)) for o in here])


class Churner(threading.Thread):
    """Makes, changes and deletes. What a request came to is not always known here: the store knows."""

    def __init__(self, cluster, seed):
        super().__init__(daemon=True)
        self.cluster, self.dice = cluster, random.Random(seed)
        self.names = {"pods": [], "deployments": [], "jobs": []}
        self.made = 0
        self.counts = collections.Counter()
        self.go, self.idle = threading.Event(), threading.Event()
        self.ending = False

    def template(self, app):
        cpu = self.dice.choice(("50m", "100m", "250m", "500m", "1", "1500m"))
        container = {"name": "main", "image": "busybox:test", "resources": {"requests": {"cpu": cpu}}}
        spec = {"containers": [container], "schedulerName": SCHEDULER, "terminationGracePeriodSeconds": self.dice.choice((0, 0, 1))}
        return {"metadata": {"labels": {"app": app, "tier": self.dice.choice("ab")}, "annotations": {"n": str(self.made)}}, "spec": spec}

    def path(self, what, name=""):
        group = {"pods": "/api/v1", "deployments": "/apis/apps/v1", "jobs": "/apis/batch/v1"}[what]
        return f"{group}/namespaces/default/{what}" + (f"/{name}" if name else "")

    def create(self, what):
        name = f"{what[0]}{self.made}"
        self.made += 1
        body = {"metadata": {"name": name}}
        if what == "pods":
            body = self.template("plain")
            body["metadata"]["name"] = name
        elif what == "deployments":
            template = self.template(name)
            body["spec"] = {"replicas": self.dice.randrange(9), "selector": {"matchLabels": {"app": name}}, "template": template}
        else:
            template = self.template(name)
            template["spec"]["restartPolicy"] = "Never"
            n = self.dice.randrange(1, 5)
            body["spec"] = {"parallelism": n, "completions": n, "template": template}
        self.names[what].append(name)
        return "POST", self.path(what), body

    def delete(self, what):
        name = self.names[what].pop(self.dice.randrange(len(self.names[what])))
        query = self.dice.choice(("", "?gracePeriodSeconds=0")) if what == "pods" else "?propagationPolicy=" + self.dice.choice(("Background", "Foreground"))
        return "DELETE", self.path(what, name) + query, None

    def change(self, what):
        path = self.path(what, self.dice.choice(self.names[what]))
        self.made += 1
        if what == "pods" or self.dice.random() < 0.3:
            return "PATCH", path, {"metadata": {"labels": {"tier": self.dice.choice("abc")}, "annotations": {"n": str(self.made)}}}
        if what == "jobs":
            return "PATCH", path, {"spec": {"parallelism": self.dice.randrange(1, 5)}}
        if self.dice.random() < 0.5:
            return "PATCH", path, {"spec": {"replicas": self.dice.randrange(9)}}
        return "PATCH", path, {"spec": {"template": {"metadata": {"annotations": {"n": str(self.made)}}}}}

    def choose(self):
        what = self.dice.choices(("pods", "deployments", "jobs"), (8, 1, 1))[0]
        most = {"pods": PODS_MAX, "deployments": DEPLOYMENTS_MAX, "jobs": JOBS_MAX}[what]
        have = len(self.names[what])
        if have == 0 or (have < most and self.dice.random() < 0.5):
            return self.create(what)
        return self.delete(what) if have >= most or self.dice.random() < 0.4 else self.change(what)

    def run(self):
        while not self.ending:
            if not self.go.is_set():
                self.idle.set()
                self.go.wait(0.1)
                continue
            self.idle.clear()
            try:
                method, path, body = self.choose()
                status = self.cluster.request(method, path, body, MERGE if method == "PATCH" else "application/json", timeout=5, decode=False)[0]
                self.counts[status] += 1
            except TROUBLE:
                self.counts["lost"] += 1
            time.sleep(self.dice.uniform(0, 0.03))

    def pause(self):
        self.go.clear()
        self.idle.clear()
        check(self.idle.wait(20), "the churner is stuck")


class World:
    """A server, a scheduler, watchers, a churner; and the faults."""

    def __init__(self, suite, seed):
        self.suite, self.dice = suite, random.Random(seed)
        self.state = os.path.join(suite.directory, f"faults-{seed}")
        os.mkdir(self.state, 0o700)
        self.port = free_port()
        self.plain = self.dice.random() < 0.3  # the bytes of plain HTTP go out another way than those of TLS
        self.restarts = 0
        self.last = ""  # why the cluster had not settled yet
        self.done = collections.Counter()
        self.server = self.start()
        env = {"KUBECONFIG": os.path.join(self.state, "kubeconfig"), "K8S_DIR": self.state, "K8S_URL": f"http{'' if self.plain else 's'}://127.0.0.1:{self.port}",
               "K8S_CA": os.path.join(self.state, "ca.crt"), "K8S_TOKEN_FILE": os.path.join(self.state, "token")}
        self.cluster = c = Cluster(env, "local")
        limits = [f"--kubeconfig={c.kubeconfig}", "--request-timeout=3s", "--watch-idle=10s"]
        self.scheduler = suite.program("cosched-scheduler", *limits, "--http-address=127.0.0.1", f"--http-port={free_port()}", "--no-leader-elect", env=ASAN)
        self.reflectors = [suite.program("reflector_check", *limits, f"--list-page-size={n}", env=ASAN) for n in (3, 50, 5000)]
        self.auditor = Auditor(c, "/api/v1/pods", f"{seed}a")
        self.watchers = [self.auditor, Watcher(c, "/api/v1/pods", f"{seed}b", "&labelSelector=tier%3Da"),
                         Watcher(c, "/api/v1/pods", f"{seed}c", "&fieldSelector=spec.nodeName%3Dhollow-00001"),
                         Watcher(c, "/api/v1/events", f"{seed}e"), *(Watcher(c, path, f"{seed}{path}") for kind, path in KINDS.items() if kind != "Pod")]
        self.churner = Churner(c, f"{seed}d")
        for thread in (*self.watchers, self.churner):
            suite.stack.callback(setattr, thread, "ending", True)
            thread.start()
        self.scheduler.wait_output('msg="?scheduling"?')

    def start(self):
        history = self.dice.choice((40, 2000))
        server = self.suite.program("cosched-local", f"--state-dir={self.state}", "--keep-state", f"--port={self.port}", f"--history={history}", f"--event-ttl={EVENT_TTL_S}s",
                                    f"--hollow={NODES}", f"--hollow-cpu={NODE_CPU}", f"--hollow-pods={NODE_PODS}",
                                    *(["--insecure"] if self.plain else []), env=ASAN)
        server.wait_output("^export KUBECONFIG=")
        return server

    def admin(self, method, body=None):
        """The admin endpoint is spared by rules, but not by restarts."""

        status, reply = wait_until(lambda: self.cluster.request(method, "/cosched/faults", body), f"{method} {body}", 20)
        check(status in (200, 201), f"{method} {body}: {status} {reply}")
        return reply

    def rule(self):
        d = self.dice
        fault = d.choice(({"fault": "delay", "ms": d.randrange(1, 400)}, {"fault": "drop"}, {"fault": "lose-reply"},
                          {"fault": "reply", "code": 429, "retryAfterSeconds": 1}, {"fault": "reply", "code": d.choice((500, 503, 504))},
                          {"fault": "reply", "code": 409, "match": {"method": "POST", "path": "/binding"}, "every": d.randrange(2, 6)},
                          {"fault": "lose-reply", "match": {"method": "POST", "path": "/binding"}, "every": d.randrange(1, 4)}))
        if "match" not in fault:
            fault["match"] = d.choice(({}, {"agent": "scheduler"}, {"agent": "reflector_check"}, {"watch": True}, {"method": "POST"}, {"path": "/pods"}))
            fault["percent"] = d.randrange(1, 40)
        return {**fault, "seconds": d.randrange(1, 4)}

    def inflict(self, may_restart):
        d = self.dice
        if d.random() < 0.5:
            self.admin("POST", self.rule())
        elif may_restart and d.random() < 0.08:
            self.restart()
        elif d.random() < 0.2:
            self.forget()
        else:
            self.admin("POST", d.choice(({"fault": "cut-watches", "midLine": True}, {"fault": "cut-watches"}, {"fault": "reset-connections"},
                                         {"fault": "hold-connections", "ms": d.randrange(1, 500)}, {"fault": "restart", "ms": d.randrange(1, 600)},
                                         {"fault": "compact"}, {"fault": "recreate-pods", "count": d.randrange(1, 9)},
                                         {"fault": "recreate-pods", "selector": "app=plain,tier=a", "count": d.randrange(1, 30)})))

    def forget(self):
        """Changes that no watcher can see any more: each has to list again."""
        self.admin("POST", {"fault": "drop", "match": {"watch": True}, "seconds": 1})
        self.admin("POST", {"fault": "cut-watches", "midLine": self.dice.random() < 0.5})
        self.admin("POST", {"fault": "recreate-pods", "count": self.dice.randrange(1, 9)})
        self.admin("POST", {"fault": "compact"})

    def remember_done(self):
        self.done.update(self.admin("GET")["done"])

    def restart(self):
        """The process, and not only its socket."""
        self.remember_done()
        self.server.stop()
        self.server = self.start()
        self.restarts += 1

    def truth(self, kind):
        return {key_of(o): bare(o) for o in self.cluster.get(KINDS[kind])["items"]}

    def settled(self):
        """Nothing is under way any more: all that fits is bound and runs, nothing is terminating, controllers have what they want."""
        all_of = {kind: self.truth(kind) for kind in KINDS}
        pods, free = all_of["Pod"], {f"hollow-{i:05d}": [NODE_CPU * 1000, NODE_PODS] for i in range(NODES)}
        check_equal(set(all_of["Node"]), {"/" + name for name in free}, "nodes")
        uids = {o["metadata"]["uid"] for kind in all_of.values() for o in kind.values()}
        for kind, objects in all_of.items():
            for key, o in objects.items():
                check("deletionTimestamp" not in o["metadata"], kind, key, "is terminating")
                for r in o["metadata"].get("ownerReferences", ()):
                    check(r["uid"] in uids, kind, key, "is left without its owner", r)
        owned, ready = collections.Counter(), collections.Counter()
        for key, o in pods.items():
            owned.update(r["uid"] for r in o["metadata"].get("ownerReferences", ()) if is_live(o))
            ready.update(r["uid"] for r in o["metadata"].get("ownerReferences", ()) if is_live(o) and is_ready(o))
            if o["spec"].get("nodeName"):
                check(o["status"]["phase"] != "Pending", key, "is bound and does not run")
                if is_live(o):
                    free[o["spec"]["nodeName"]][0] -= cpu_milli(o)
                    free[o["spec"]["nodeName"]][1] -= 1
        for name, (cpu, count) in free.items():
            check(cpu >= 0 and count >= 0, name, "is beyond its size:", cpu, count)
        waiting = {key: o for key, o in pods.items() if not o["spec"].get("nodeName")}
        for key, o in waiting.items():
            room = [name for name, (cpu, count) in free.items() if cpu >= cpu_milli(o) and count > 0]
            check(not room, key, "waits, though it fits", room, o["status"])
        sets = collections.defaultdict(list)
        for key, o in all_of["ReplicaSet"].items():
            uid, n = o["metadata"]["uid"], o["spec"]["replicas"]
            check_equal((owned[uid], o["status"].get("replicas")), (n, n), f"pods and status.replicas of the replica set {key}")
            check_equal(o["status"].get("availableReplicas", 0), ready[uid], f"status.availableReplicas of the replica set {key}")
            sets[o["metadata"]["ownerReferences"][0]["uid"]].append(o)
        stalled = 0
        for key, o in all_of["Deployment"].items():
            mine = sets[o["metadata"]["uid"]]
            stalled += check_rollout(key, o, mine, any(ready[r["metadata"]["uid"]] < r["spec"]["replicas"] for r in mine))
        for key, o in all_of["Job"].items():
            check_equal(o["status"].get("active", 0), owned[o["metadata"]["uid"]], f"status.active of {key}")
        return pods, len(waiting), stalled

    def ask_settled(self):
        try:
            return self.settled()
        except Failed as e:
            self.last = str(e)
            raise

    def compare_dump(self):
        """The lists are the store."""

        def ask():
            status, text = self.cluster.request("GET", "/cosched/dump", decode=False)
            check_equal(status, 200)
            lines = [json.loads(line) for line in text.splitlines()]
            for kind in KINDS:
                stored = {key_of(o): bare(o) for o in lines[1:] if o["kind"] == kind}
                text = difference(self.truth(kind), stored)
                check(not text, kind, text)
            highest = max(int(o["metadata"]["resourceVersion"]) for o in lines[1:])
            check(highest <= lines[0]["version"], "an object is newer than the store:", highest, lines[0])
            return True

        wait_until(ask, "lists are what the store has", 20)

    def save_dump(self):
        """For who looks for the reason of a failure."""
        with contextlib.suppress(*TROUBLE), open(os.path.join(self.state, "dump"), "w", encoding="utf-8") as f:
            f.write(self.cluster.request("GET", "/cosched/dump", decode=False)[1])

    def rss_mib(self):
        with open(f"/proc/{self.server.process.pid}/status", encoding="ascii") as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1]) // 1024

    def memory_kib(self):
        """What the server has in use when it has forgotten the past. RSS says less: the most there ever was, its holes, and a sanitizer's own."""
        self.admin("POST", {"fault": "compact"})
        status, text = self.cluster.request("GET", "/metrics", decode=False)
        check_equal(status, 200, "GET /metrics")
        return int(re.search(r"^cosched_local_memory_bytes (\d+)", text, re.M)[1]) // 1024

    def check(self):
        """Faults off; then everything has to come right."""
        self.churner.pause()
        self.admin("DELETE")
        wait_until(lambda: self.cluster.request("GET", "/readyz")[0] == 200, "the server is back", 20)
        began = time.monotonic()
        pods, waiting, stalled = wait_until(self.ask_settled, "the cluster settles", SETTLE_S, 0.2)
        settled = time.monotonic() - began
        for w in self.watchers:
            w.compare()
        for r in self.reflectors:
            line = answer(r, f"compare {SETTLE_S * 1000}", "(equal|different)", SETTLE_S + 20)
            check(line.startswith("equal"), "reflector_check:", line)
        self.compare_dump()
        self.churner.names = {"pods": [o["metadata"]["name"] for o in pods.values() if "ownerReferences" not in o["metadata"]],
                              "deployments": [key.split("/")[1] for key in self.truth("Deployment")], "jobs": [key.split("/")[1] for key in self.truth("Job")]}
        for w in self.watchers:
            check(not w.problems, "\n     ".join(w.problems[:10]))
        for p in (self.server, self.scheduler, *self.reflectors):
            p.alive()
            p.check_clean()
        rss = self.rss_mib()
        check(rss <= RSS_MAX_MIB, f"cosched-local takes {rss} MiB")
        memory = self.memory_kib()
        if settled > SLOW_S:
            print(f"     slow to settle: {self.last}", flush=True)
        events = len(self.cluster.get("/api/v1/events")["items"])
        print(f"     pods {len(pods)}, {waiting} waiting, {stalled} rollouts at a stand; settled in {settled:.1f} s, views equal in {time.monotonic() - began - settled:.1f} s; "
              f"pod events {self.auditor.counts['events']}; Events {events}; rss {rss} MiB, in use {memory} KiB", flush=True)
        return memory

    def stop(self):
        self.churner.ending = True
        self.remember_done()
        total = sum((w.counts for w in self.watchers), collections.Counter())
        print(f"     faults: {dict(self.done)}, {self.restarts} new processes", flush=True)
        print(f"     requests of the churner: {dict(self.churner.counts)}", flush=True)
        print(f"     python watchers: {dict(total)}; reflector_check: {stats(self.reflectors[0])}", flush=True)
        for r in self.reflectors:
            r.process.stdin.close()
            check(r.process.wait(timeout=10) == 0, f"reflector_check ended with {r.process.returncode}: {r.output()[-3000:]}")
            r.check_clean()
        took = [self.scheduler.stop(), self.server.stop()]
        print(f"     stopped: scheduler in {took[0]:.2f} s, cosched-local in {took[1]:.2f} s", flush=True)
        check(total["gone"] > 0 and total["failures"] > 0, "no fault was noticed at all:", total)


@case("random faults while pods, Jobs and Deployments come and go: every watcher's view is the store's, nothing is bound twice, all that fits is bound",
      needs={"local", "long"})
def survives(suite):
    seconds = float(os.environ.get("COSCHED_FAULT_SECONDS", "30"))
    seed = int(os.environ.get("COSCHED_SEED", str(int(time.time()))))
    print(f"     seed {seed}, {seconds:g} s of faults", flush=True)
    world = None
    try:
        world = World(suite, seed)
        print(f"     {world.cluster.url.scheme}", flush=True)
        world.check()
        spent, sizes = 0.0, []
        while spent < seconds:
            world.churner.go.set()
            began, length = time.monotonic(), min(seconds - spent, world.dice.uniform(7, 13))
            while time.monotonic() - began < length:
                # The second half has one process, so that it can be seen to grow or not.
                world.inflict(may_restart=spent < seconds / 2)
                time.sleep(world.dice.uniform(0, 0.5))
            spent += time.monotonic() - began
            sizes.append(world.check())
        world.stop()
        third = len(sizes) // 3
        if third >= 2 * MEANS_OF:
            # Means, as Events come and go. The last third has the last process, which remembers by then what it remembers of the Events that it sent.
            grown = (sum(sizes[-MEANS_OF:]) - sum(sizes[-third:][:MEANS_OF])) / MEANS_OF
            print(f"     in use, KiB: {sizes}; {grown:+.0f} in the last third", flush=True)
            check(grown <= GROWTH_MAX_KIB, "cosched-local grows by", grown, "KiB:", sizes)
    except Exception as e:
        if world:
            world.save_dump()
        raise Failed(f"COSCHED_SEED={seed}: {e}") from e


@case("a state directory that cosched-local made for itself goes at its end, unless the state is kept", needs={"local"})
def leaves_nothing(suite):
    place = os.path.join(suite.directory, "own-state")
    os.mkdir(place)
    for options, left in (((), 0), (("--insecure",), 0), (("--keep-state",), 1)):
        p = suite.program("cosched-local", "--hollow=1", *options, env={"TMPDIR": place})
        p.wait_output("^export KUBECONFIG=")
        check_equal(len(os.listdir(place)), 1, f"directories while it runs with {options}")
        p.stop()
        check_equal(len(os.listdir(place)), left, f"directories after its end with {options}")
