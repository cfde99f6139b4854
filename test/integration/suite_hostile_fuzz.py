# SPDX-License-Identifier: Apache-2.0
"""The pod fuzzer: mutated pods that the API server takes (asked with dryRun, by a tenant), given to all three programs. None of them changes the fate of another.

    pod_mutator ──► API server ──► pod_verdict       what the scheduler decides about bystanders beside it, waiting and on each node
                    (dryRun)   ├─► cosched-webhook   it answers, and a bystander's review in between is answered as ever
                               └─► a lab             a cosched-local with a node, its real plugin and a real scheduler: a bystander keeps his card, his grant and his
                                                     limits, and another one is placed and started among them

COSCHED_FUZZ_PODS: so many accepted ones (the soak has 200,000), or as many as COSCHED_FUZZ_SECONDS allow. COSCHED_SEED repeats a run; COSCHED_FUZZ_FROM begins at a number that
was printed. COSCHED_FUZZ_REFUSALS prints what is refused, and why. COSCHED_BULK: objects of each sort that are made in bulk (40).
"""
import concurrent.futures
import contextlib
import copy
import glob
import http.client
import json
import os
import re
import subprocess
import threading
import time

from harness import BUILD, Cluster, Failed, Suite, case, check, check_equal, free_port, http_get, wait_until
from hostile_tenant import plain, tenant
from pod_mutator import Mutator, manifest_seeds, plain_seeds
from suite_hostile_node import mounts
from suite_isolation import GIB, INSIDE, Library
from suite_nodes import CLAIM, MEM, memory_pod, wait_pod
from suite_policy import definition, policy_path
from suite_webhook import limited, start_webhook
from suite_webhook_serve import insecure, review

BATCH = 100
WORKERS = 8
LAB_MAX = 1000
API_BODY_MAX = 3 << 20
CPU_MAX_US = 2_000_000  # for one pod, in a build with sanitizers: what costs more than that is a lever
FINDINGS_MAX = 20


def cpu_us(pid):
    """CPU time of all threads of a process so far."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        with contextlib.suppress(OSError), open(path, encoding="ascii") as f:
            total += int(f.read().split()[0])
    return total // 1000


def count(refusals, answer):
    """By the field, without its numbers and keys."""
    sort = re.sub(r'\[[^]]*\]|"[^"]*"|fuzz-\d+', "", answer.get("message", ""))[:110]
    refusals[sort] = refusals.get(sort, 0) + 1


class Findings:
    """What went wrong, one of each sort, with the pod that did it."""

    def __init__(self, suite, seed):
        self.directory, self.seed, self.found, self.lock = suite.directory, seed, {}, threading.Lock()

    def add(self, sort, number, pod, what):
        with self.lock:
            if sort in self.found or len(self.found) >= FINDINGS_MAX:
                return
            self.found[sort] = f"{sort}: seed {self.seed}, pod {number}: {what}"[:1500]
            with open(os.path.join(self.directory, f"finding-{len(self.found)}.json"), "w", encoding="utf-8") as f:
                json.dump(pod, f, indent=1)
            print(f"     finding {len(self.found)}: {self.found[sort]}", flush=True)


class Worst:
    """The most CPU time that a pod has cost a program."""

    def __init__(self):
        self.us, self.number, self.total, self.count = 0, None, 0, 0

    def add(self, number, us, count=1):
        self.total, self.count = self.total + us, self.count + count
        if us // count > self.us:
            self.us, self.number = us // count, number

    def text(self):
        return f"mean {self.total // max(self.count, 1)} us, worst {self.us} us (pod {self.number})"


def shrink(value, fails):
    """A smallest part of a JSON value for which fails(value) still holds: keys and items are left out, many at a time and then one by one."""
    def walk(node):
        many = len(node)
        while many:
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            for at in range(0, len(keys), many):
                kept = copy.copy(node)
                for key in reversed(keys[at:at + many]):
                    if isinstance(node, list) or key in node:
                        del node[key]
                if fails(value):
                    if isinstance(node, list):
                        break  # its items have moved: once more
                    continue
                node.clear()
                node.update(kept) if isinstance(node, dict) else node.extend(kept)
            else:
                many //= 2
        for child in list(node.values() if isinstance(node, dict) else node):
            if isinstance(child, (dict, list)):
                walk(child)

    walk(value)
    return value


class Sieve:
    """What the API server takes, as it shows it. As many connections as workers, each kept."""

    def __init__(self, cluster, ns, mutator):
        self.cluster, self.path, self.mutator = cluster, f"/api/v1/namespaces/{ns}/pods?dryRun=All", mutator
        self.local, self.lock = threading.local(), threading.Lock()
        self.asked, self.refusals = 0, {}
        self.pool = concurrent.futures.ThreadPoolExecutor(WORKERS)

    def send(self, pod):
        """(status, answer), on this thread's connection."""
        body = json.dumps(pod)
        for again in (True, False):
            conn = getattr(self.local, "conn", None) or self.cluster.connect(30)
            self.local.conn = conn
            try:
                conn.request("POST", self.path, body, {"Authorization": "Bearer " + self.cluster.token, "Content-Type": "application/json"})
                reply = conn.getresponse()
                return reply.status, json.loads(reply.read())
            except (OSError, http.client.HTTPException):
                conn.close()
                self.local.conn = None
                if again:
                    continue
                # It answers a body beyond its limit and closes while that is still being sent.
                if len(body) > API_BODY_MAX:
                    return 413, {"message": "the body is larger than the API server takes"}
                raise
        return None

    def ask(self, number):
        """(number, the object as the server shows it), or None: it is not taken."""
        status, answer = self.send(self.mutator.pod(number))
        with self.lock:
            self.asked += 1
            if status == 201:
                return number, answer
            count(self.refusals, answer)
            check(status in (400, 403, 413, 422), f"pod {number}: the API server answers {status} {answer}")
            return None

    def accepts(self, pod):
        """A part of one that it has accepted."""
        body = json.loads(json.dumps(pod))
        for key in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "namespace"):
            body.get("metadata", {}).pop(key, None)
        return self.send({**body, "apiVersion": "v1", "kind": "Pod"})[0] == 201

    def batch(self, first):
        return [self.pool.submit(self.ask, number) for number in range(first, first + BATCH)]


class Verdicts:
    """pod_verdict, the scheduler's decisions: each pod waiting, and on one of its three nodes."""

    def __init__(self, findings, accepts):
        self.findings, self.accepts, self.worst, self.unreadable, self.process, self.lines = findings, accepts, Worst(), 0, None, 0
        self.start()
        self.digest = self.ask(plain("none"))[1]

    def start(self):
        self.close()
        env = {**os.environ, "ASAN_OPTIONS": "abort_on_error=0:detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1"}
        self.process = subprocess.Popen([os.path.join(BUILD, "test/integration/pod_verdict")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)

    def close(self):
        """Its exit code and what it said."""
        if not self.process:
            return 0, ""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        said = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        return self.process.wait(60), said

    def ask(self, pod):
        self.process.stdin.write(json.dumps({"pod": pod}) + "\n")
        self.process.stdin.flush()
        words = self.process.stdout.readline().split()
        return words if len(words) == 3 else None

    def differs(self, pod):
        answer = self.ask(pod)
        return answer is not None and answer[1] != self.digest and self.accepts(pod)

    def take(self, number, pod):
        placed = json.loads(json.dumps(pod))
        placed["spec"].pop("schedulingGates", None)
        placed["spec"]["nodeName"] = f"n{number % 3}"
        for what, each in (("waits", pod), ("on a node", placed)):
            try:
                answer = self.ask(each)
            except OSError:
                answer = None
            self.lines += 1
            if answer is None:
                code, said = self.close()
                self.process = None
                self.start()
                self.findings.add(f"pod_verdict ends ({said.strip().splitlines()[-1][:60] if said.strip() else code})", number, each, said[-800:])
                continue
            self.unreadable += answer[0] == "unreadable"
            self.worst.add(number, int(answer[2]))
            if answer[1] != self.digest:
                small = shrink(json.loads(json.dumps(each)), self.differs)
                sort = ",".join(sorted(set(re.findall(r'"([\w./-]+)": ', json.dumps(small.get("spec", {})) + json.dumps(small["metadata"].get("annotations", {}))))))[:120]
                self.findings.add(f"a bystander's verdict changes, {what}: {sort}", number, small, json.dumps(small)[:600])


class Hook:
    """The webhook's reviews, before and after others have changed the pod. A bystander's is asked for again and again."""
    PATHS = ("/mutate", "/validate")

    def __init__(self, suite, findings):
        self.findings, self.worst, self.denied = findings, Worst(), 0
        self.program, _ = start_webhook(suite)
        self.conn = http.client.HTTPSConnection("127.0.0.1", self.program.https, context=insecure(), timeout=30)
        suite.stack.callback(self.conn.close)
        self.same = {path: self.ask(limited(MEM, 3), path) for path in self.PATHS}

    def ask(self, pod, path):
        self.conn.request("POST", f"{path}?timeout=5s", review(pod), {"Content-Type": "application/json"})
        reply = self.conn.getresponse()
        return reply.status, reply.read().decode()

    def take(self, number, pod):
        for path in self.PATHS:
            self.take_by(path, number, pod)

    def take_by(self, path, number, pod):
        before = cpu_us(self.program.process.pid)
        try:
            status, text = self.ask(pod, path)
            self.worst.add(number, cpu_us(self.program.process.pid) - before)
            answer = json.loads(text).get("response", {})
            if status != 200 or "allowed" not in answer:
                self.findings.add(f"{path} is answered {status}", number, pod, text[:500])
            if path == "/validate" and "patch" in answer:
                self.findings.add("/validate patches", number, pod, text[:500])
            self.denied += answer.get("allowed") is False
            if number % 10 == 0 and self.ask(limited(MEM, 3), path) != self.same[path]:
                self.findings.add(f"{path}: a bystander's review changes", number, pod, "")
        except (OSError, http.client.HTTPException, ValueError) as e:
            self.conn.close()
            self.program.alive()
            self.findings.add(f"{path} is not answered: {type(e).__name__}", number, pod, repr(e))


class Lab(Library):
    """A cosched-local of its own with one node, whatever cluster the suite runs on; its plugin and a scheduler are the real ones."""

    def __init__(self, suite, findings):
        self.findings, self.outer, self.taken, self.asked, self.refusals, self.lock = findings, suite, 0, 0, {}, threading.Lock()
        self.worst = {"scheduler": Worst(), "plugin": Worst()}
        super().__init__(suite, "fz-1", "cgpu")
        port = free_port()
        self.scheduler = suite.program("cosched-scheduler", f"--kubeconfig={self.cluster.kubeconfig}", "--no-leader-elect", "--http-address=127.0.0.1", f"--http-port={port}")
        self.offers("fz-1", mem=15, count=1)
        for ns in ("fuzz", "bystanders"):
            self.cluster.do("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ns}}, ok=(201, 409))
            wait_until(lambda n=ns: self.cluster.request("GET", f"/api/v1/namespaces/{n}/serviceaccounts/default")[0] == 200, "default service account")
        memory_pod(self.cluster, "bystanders", "holder", 4, "fz-1")
        self.holder = wait_pod(self.cluster, "bystanders", "holder")
        self.folder = mounts(self, self.holder)[INSIDE][0]
        self.before, self.plugin, self.local = self.state(), self.plugin_pid("fz-1"), threading.local()
        self.posts = concurrent.futures.ThreadPoolExecutor(2)
        suite.stack.callback(self.posts.shutdown)
        self.used = nodes_process(self)

    def with_account(self, spec):
        return {**spec, "pods": 100000, "cpu": "64"}

    def run(self):
        env = {"COSCHED_FAKE_NVML": self.cards.path, "COSCHED_FAKE_CUDA": self.simulated, "COSCHED_FAKE_CUDA_GROUP": "7"}
        self.program = self.outer.program("cosched-local", "--state-dir", self.directory, "--port", "0", "--nodes", self.file, env=env)
        self.program.wait_output("^export KUBECONFIG=")
        kubeconfig = re.search(r"^export KUBECONFIG=(.*)$", self.program.output(), re.M)[1]
        with open(kubeconfig, encoding="utf-8") as f:
            url = re.search(r"server: *\"?([^\s\"]+)", f.read())[1]
        self.cluster = Cluster({"KUBECONFIG": kubeconfig, "K8S_DIR": self.directory, "K8S_URL": url, "K8S_CA": os.path.join(self.directory, "ca.crt"),
                                "K8S_TOKEN_FILE": os.path.join(self.directory, "token")}, "local")
        self.suite = Suite(self.cluster, self.outer.directory)
        self.suite.stack = self.outer.stack

    def state(self):
        """All that the bystander has been given."""
        pod = self.cluster.pod("bystanders", "holder")
        with open(f"{self.folder}/limits", "rb") as f:
            limits = f.read()
        return pod["status"]["phase"], pod["spec"]["nodeName"], pod["metadata"]["annotations"].get(CLAIM), pod["status"]["containerStatuses"][0]["restartCount"], limits

    def post(self, number, pod):
        body = json.loads(json.dumps(pod))
        for key in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "finalizers", "generateName", "namespace"):
            body["metadata"].pop(key, None)
        body.pop("status", None)
        for key in ("schedulingGates", "priority", "serviceAccountName", "serviceAccount", "priorityClassName"):
            body["spec"].pop(key, None)
        body["metadata"]["name"] = f"fuzz-{number}"
        body["spec"].update(nodeName="fz-1", terminationGracePeriodSeconds=0, automountServiceAccountToken=False)
        if not hasattr(self.local, "conn"):
            self.local.conn = self.cluster.connect(30)
        self.local.conn.request("POST", "/api/v1/namespaces/fuzz/pods", json.dumps(body), {"Authorization": "Bearer " + self.cluster.token, "Content-Type": "application/json"})
        reply = self.local.conn.getresponse()
        answer = json.loads(reply.read())
        with self.lock:
            self.asked += 1
            self.taken += reply.status == 201
            if reply.status != 201:
                count(self.refusals, answer)

    def check_bystanders(self, pods, when):
        """Another bystander is placed and started, and the first one has what it had."""
        number = pods[0][0]
        c, name = self.cluster, f"by-{number}-{when}"
        try:
            if when == "among":
                c.do("POST", "/api/v1/namespaces/bystanders/pods", plain(name, nodeSelector={"kubernetes.io/hostname": "fz-1"}))
            else:
                memory_pod(c, "bystanders", name, 2, "fz-1")
            wait_pod(c, "bystanders", name, seconds=20)
        except Failed as e:
            sort = re.sub(r"fuzz/fuzz-\d+|\d+", "N", str(c.condition("bystanders", name)))[:300]
            self.findings.add(f"lab, {when}: a bystander does not start: {sort}", number, [pod for _, pod in pods], f"pods {number} to {pods[-1][0]}: {e}")
        c.delete_pod("bystanders", name)
        if self.state() != self.before:
            self.findings.add(f"lab, {when}: the bystander's grant or limits change", number, [pod for _, pod in pods], f"pods {number} to {pods[-1][0]}: {self.state()}")
        if self.plugin_pid("fz-1") != self.plugin:
            self.findings.add("lab: the plugin ended", number, [pod for _, pod in pods], self.plugin_log("fz-1")[-800:])
            self.plugin = wait_until(lambda: self.plugin_pid("fz-1"), "a plugin runs")

    def take(self, pods):
        """A batch: [(number, pod)]."""
        if not pods:
            return
        programs = {"scheduler": self.scheduler.process.pid, "plugin": self.plugin}
        before = {name: cpu_us(pid) for name, pid in programs.items()}
        list(self.posts.map(lambda x: self.post(*x), pods))
        self.check_bystanders(pods, "among")
        for name, pid in programs.items():
            self.worst[name].add(f"{pods[0][0]} to {pods[-1][0]}", max(cpu_us(pid) - before[name], 0), len(pods))
        self.cluster.do("DELETE", "/api/v1/namespaces/fuzz/pods?gracePeriodSeconds=0")
        wait_until(lambda: not self.cluster.pods("fuzz"), "the fuzzer's pods are gone", 60)
        self.check_bystanders(pods, "after")
        check_equal(http_get(self.port, "/healthz")[0], 200, "the plugin's /healthz")


def nodes_process(lab):
    """A process of the holder, with all of its share."""
    p = lab.process(lab.holder, 0)
    check_equal(p.ask(f"alloc plain {4 * GIB}"), "0 0", "all of its share")
    return p





@case("hostile_fuzz: mutated pods that the API server takes change nothing for others: not what the scheduler decides, not the webhook's answers, not cards, grants and limits", needs={"long"})
def fuzz(suite):
    c = suite.cluster
    number = int(os.environ.get("COSCHED_FUZZ_PODS", "300" if c.target == "real" else "150"))
    seed = os.environ.get("COSCHED_SEED") or str(int(time.time()) // 60)
    first = int(os.environ.get("COSCHED_FUZZ_FROM", "0"))
    until = time.monotonic() + float(os.environ.get("COSCHED_FUZZ_SECONDS", "inf"))
    print(f"     seed {seed}", flush=True)
    tenants, ns = tenant(suite)
    seeds = plain_seeds() + (manifest_seeds(c) if c.kubectl_binary else [])
    findings = Findings(suite, seed)
    sieve = Sieve(tenants, ns, Mutator(seed, seeds))
    suite.stack.callback(sieve.pool.shutdown)
    verdicts, hook, lab = Verdicts(findings, sieve.accepts), Hook(suite, findings), Lab(suite, findings)
    suite.stack.callback(verdicts.close)
    sinks = concurrent.futures.ThreadPoolExecutor(3)
    suite.stack.callback(sinks.shutdown)
    accepted, began, told, running = 0, time.monotonic(), time.monotonic(), sieve.batch(first)
    waiting, in_lab = [], None  # what the lab takes next, and what it is at: it is slower with few than with many
    while accepted < number and len(findings.found) < FINDINGS_MAX and time.monotonic() < until:
        pods = [r for r in (f.result() for f in running) if r][:number - accepted]
        first += BATCH
        running = sieve.batch(first)
        accepted += len(pods)
        waiting += pods
        if in_lab is None or in_lab.done() or len(waiting) >= LAB_MAX:
            if in_lab:
                in_lab.result()
            in_lab, waiting = sinks.submit(lab.take, waiting), []
        for w in [sinks.submit(lambda p=pods: [verdicts.take(*x) for x in p]), sinks.submit(lambda p=pods: [hook.take(*x) for x in p])]:
            w.result()
        if time.monotonic() - told > 60:
            told = time.monotonic()
            print(f"     {accepted} accepted of {sieve.asked}, {accepted / (told - began):.0f}/s, {len(findings.found)} findings", flush=True)
    in_lab.result()
    lab.take(waiting)
    for f in running:
        f.result()
    took = time.monotonic() - began
    print(f"     {accepted} accepted of {sieve.asked} in {took:.0f} s; verdicts: {verdicts.lines}, {verdicts.unreadable} unreadable, {verdicts.worst.text()}", flush=True)
    print(f"     webhook: {hook.denied} denied, {hook.worst.text()}; lab took {lab.taken} of {lab.asked}; scheduler {lab.worst['scheduler'].text()}; plugin {lab.worst['plugin'].text()}", flush=True)
    if os.environ.get("COSCHED_FUZZ_REFUSALS"):
        for where, refusals in (("server", sieve.refusals), ("lab", lab.refusals)):
            for sort, times in sorted(refusals.items(), key=lambda x: -x[1])[:20]:
                print(f"     {where} {times:6} {sort}", flush=True)
    code, said = verdicts.close()
    verdicts.process = None
    check(code == 0 and "Sanitizer" not in said, f"pod_verdict ended with {code}: {said[-3000:]}")
    # Of the lab's programs it is the mean of a batch.
    for name, worst in (("scheduler's decision", verdicts.worst), ("webhook", hook.worst), ("scheduler", lab.worst["scheduler"]), ("plugin", lab.worst["plugin"])):
        if worst.us > CPU_MAX_US:
            findings.add(f"{name}: too much CPU time", worst.number, {}, worst.text())
    hook.program.stop()
    check(not findings.found, f"{len(findings.found)} findings:\n       " + "\n       ".join(findings.found.values()))


GANG = "pod-group.scheduling.sigs.k8s.io"


def bulk_of(i):
    """The i-th object of each sort, as hostile as the API server takes it: [(path below the namespace's, body)]."""
    long = [f"{i}-{n}".ljust(63, "x") for n in range(64)]
    gang = plain(f"gang-{i}", requests={"cpu": "1"})
    gang["metadata"]["labels"].update({f"{GANG}/name": f"g{i % 7}", f"{GANG}/min-available": "100000"})
    gang["metadata"]["annotations"].update({f"{GANG}/groups": json.dumps([f"evil/{n}" for n in range(2000)])})
    claims = plain(f"claims-{i}", requests={"cpu": "10m"})
    claims["spec"]["volumes"] = [{"name": f"v{n}", "persistentVolumeClaim": {"claimName": f"c{(i + n) % 50}"}} for n in range(20)]
    chosen = plain(f"chosen-{i}", requests={"cpu": "1"})
    chosen["metadata"]["labels"].update({f"k{n}": "v" for n in range(64)})
    policy = {"apiVersion": "scheduling.alibabacloud.com/v1alpha1", "kind": "ResourcePolicy", "metadata": {"name": f"p{i}"}, "spec": {
        "selector": {f"k{n}": "v" for n in range(i % 64)}, "strategy": "prefer",
        "units": [{"resource": "ecs", "nodeSelector": {value: value for value in long}, "max": 1, "podLabels": {f"l{n}": "x" for n in range(64)}} for _ in range(10)]}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": f"c{i}"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": f"none-{i}", "resources": {"requests": {"storage": "1"}}}}
    return [("pods", gang), ("pods", claims), ("pods", chosen), ("resourcepolicies", policy), ("persistentvolumeclaims", claim)]


@case("hostile_fuzz_bulk: gangs, ResourcePolicies and claims in bulk keep no bystander waiting, and each costs the scheduler and the webhook little")
def bulk(suite):
    number = int(os.environ.get("COSCHED_BULK", "40"))
    definition(suite)
    (evil, evil_ns), (good, good_ns) = tenant(suite), tenant(suite)
    hook, _ns = start_webhook(suite)
    scheduler = suite.scheduler()
    node = suite.node("h-bulk", cpu="8", pods="500")
    programs = {"scheduler": scheduler, "webhook": hook}
    before = {name: cpu_us(p.process.pid) for name, p in programs.items()}
    made, refused = 0, {}
    for i in range(number):
        for sort, body in bulk_of(i):
            path = policy_path(evil_ns) if sort == "resourcepolicies" else f"/api/v1/namespaces/{evil_ns}/{sort}"
            status, answer = evil.request("POST", path, body)
            made += status == 201
            if status != 201:
                check(status in (400, 403, 422), f"{sort}: {status} {answer}")
                count(refused, answer)
        if i % 10 == 0:
            good.create_pod(good_ns, f"by-{i}", requests={"cpu": "10m"}, node_selector={"pool": node})
            good.wait_bound(good_ns, f"by-{i}")
    check(made >= number * 4, f"{made} are taken; {refused}")
    check_equal(review_of_bystander(hook), 200, "a review among them")
    for name, p in programs.items():
        each = (cpu_us(p.process.pid) - before[name]) // made
        print(f"     {name}: {each} us for each of {made}", flush=True)
        check(each <= CPU_MAX_US, f"{name}: {each} us for each of {made} objects")
    hook.stop()


def review_of_bystander(hook):
    conn = http.client.HTTPSConnection("127.0.0.1", hook.https, context=insecure(), timeout=30)
    conn.request("POST", "/mutate?timeout=5s", review(limited(MEM, 3)), {"Content-Type": "application/json"})
    with contextlib.closing(conn):
        return conn.getresponse().status
