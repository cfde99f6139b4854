# SPDX-License-Identifier: Apache-2.0
"""The tools of the integration suite: a cluster to talk to, our programs as processes, cases as sentences.

A case is a function under @case("a sentence"). It gets a Suite, makes what it needs in a namespace of its own (suite.namespace()),
and fails by an exception. Nothing sleeps and hopes: wait_until asks until the truth is there or the time is up, and says what it saw last.
"""
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("BUILD_DIR", os.path.join(ROOT, "build/asan")))
SCHEDULER = "ack-co-scheduler"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
LEAK_SEARCH_S = 20

CASES = []
ACCOUNTS = {}  # by the path of a cluster's kubeconfig: accounts.Accounts


class Failed(Exception):
    pass


def case(sentence, needs=()):
    """Registers a test. needs:
    "kubelet"  a case on the real node
    "real"     it stops and starts parts of the real control plane
    "local"    it starts a cosched-local of its own
    "long"     it takes long and disturbs nobody; it runs first, or it would be at work when all others have ended
    "alone"    it disturbs others, and runs last
    "outage"   it takes the API server away, and runs after those"""

    def register(fn):
        CASES.append((fn.__module__, sentence, set(needs), fn))
        return fn

    return register


def turn(registered):
    """When a case runs, as a sort key. After an outage the informers of controllers and kubelet back
    off for up to a minute, so only other outages follow."""
    needs = registered[2]
    return 2 * ("outage" in needs) + ("alone" in needs) - ("long" in needs)


def check(condition, *what):
    if not condition:
        raise Failed(" ".join(str(w) for w in what))


def check_equal(got, expected, what=""):
    if got != expected:
        raise Failed(f"{what}: expected {expected!r}, got {got!r}")


def wait_until(ask, what, seconds=30.0, step=0.05):
    """Calls ask() until it returns something true, which is returned. An exception in ask counts as 'not yet'."""
    until = time.monotonic() + seconds
    last = None
    while True:
        try:
            last = ask()
            if last:
                return last
        except (Failed, OSError, http.client.HTTPException, KeyError, IndexError, TypeError) as e:
            last = e
        if time.monotonic() > until:
            raise Failed(f"not within {seconds:g} s: {what} (last: {last!r})")
        time.sleep(step)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Cluster:
    """A Kubernetes API server, by its variables: those of `k8s env` (target real), or the same names for cosched-local (target local)."""

    def __init__(self, env, target="real"):
        self.env = env
        self.target = target
        # The cluster's own, the machine's own, or one that the suite was given: a machine need not have one.
        self.kubectl_binary = (shutil.which("kubectl", path=env["K8S_BIN"]) if "K8S_BIN" in env else None) or shutil.which("kubectl") \
            or os.environ.get("K8S_KUBECTLS", "").partition(":")[0] or None
        self.url = urllib.parse.urlparse(env["K8S_URL"])
        self.token, self.context = "", None
        if self.url.scheme == "https":
            self.context = ssl.create_default_context(cafile=env["K8S_CA"])
            with open(env["K8S_TOKEN_FILE"], encoding="ascii") as f:
                self.token = f.read().strip()
        self.kubeconfig = env["KUBECONFIG"]
        self.accounts = None  # of our programs, where they are not administrators
        self.audit_directory = None  # where audit logs of this run are
        self.warnings = []

    def kubeconfig_of(self, program, args=()):
        """The kubeconfig of "scheduler", "webhook" or "device-plugin", with the rights that it needs with these arguments."""
        if not self.accounts:
            return self.kubeconfig
        self.accounts.allow_options(program, args)
        return self.accounts.paths[program]

    def watch(self, path, version, seconds=1):
        """The objects that a watch from that version shows, within the time."""
        sign = "&" if "?" in path else "?"
        text = self.request("GET", f"{path}{sign}watch=1&resourceVersion={version}&timeoutSeconds={seconds}", decode=False)[1]
        return [json.loads(line)["object"] for line in text.splitlines()]

    def connect(self, timeout):
        if self.context:
            return http.client.HTTPSConnection(self.url.hostname, self.url.port, context=self.context, timeout=timeout)
        return http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=timeout)

    def request(self, method, path, body=None, content_type="application/json", timeout=10, decode=True):
        conn = self.connect(timeout)
        try:
            headers = {"Authorization": "Bearer " + self.token, "Content-Type": content_type}
            # Bytes go as they are: what is no JSON is sent by some tests.
            conn.request(method, path, body if body is None or isinstance(body, bytes) else json.dumps(body), headers)
            reply = conn.getresponse()
            self.warnings = [v for k, v in reply.getheaders() if k.lower() == "warning"]
            text = reply.read()
            if not decode or "json" not in (reply.getheader("Content-Type") or ""):
                return reply.status, text.decode(errors="replace")
            return reply.status, json.loads(text)
        finally:
            conn.close()

    def do(self, method, path, body=None, content_type="application/json", ok=(200, 201, 202)):
        status, reply = self.request(method, path, body, content_type)
        if status not in ok:
            raise Failed(f"{method} {path}: {status} {reply.get('message') if isinstance(reply, dict) else reply}")
        return reply

    def get(self, path):
        return self.do("GET", path)

    def kubectls(self):
        """The paths of all kubectls to try: those of K8S_KUBECTLS, or the one that there is."""
        check(self.kubectl_binary, "no kubectl on this machine")
        return (os.environ.get("K8S_KUBECTLS") or self.kubectl_binary).split(":")

    def kubectl(self, *args, check_exit=True, stdin=None):
        check(self.kubectl_binary, "no kubectl on this machine")
        command = [self.kubectl_binary, "--kubeconfig", self.kubeconfig, "--cache-dir", os.path.join(self.env["K8S_DIR"], "kubectl-cache"), *args]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)
        if check_exit and done.returncode != 0:
            raise Failed(f"kubectl {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout

    def k8s(self, *args):
        """A verb of test/kubernetes/k8s on this cluster."""
        command = [os.path.join(ROOT, "test/kubernetes/k8s"), args[0], "--dir", self.env["K8S_DIR"], *args[1:]]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode != 0:
            raise Failed(f"k8s {' '.join(args)}: {done.stderr.strip()}")

    # Objects.

    def create_node(self, name, cpu="4", memory="8Gi", pods="110", labels=None, annotations=None, taints=None, extra=None, unschedulable=False):
        amounts = {"cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": "100Gi", **(extra or {})}
        node = {"apiVersion": "v1", "kind": "Node",
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}, "annotations": annotations or {}},
                "spec": {"taints": taints or [], **({"unschedulable": True} if unschedulable else {})}}
        made = self.do("POST", "/api/v1/nodes", node)
        self.patch_node_status(name, amounts)
        return made

    def patch_node_status(self, name, amounts):
        ready = {"type": "Ready", "status": "True", "reason": "Test", "message": "made by a test"}
        self.do("PATCH", f"/api/v1/nodes/{name}/status", {"status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}}, STRATEGIC)

    def pod(self, ns, name):
        return self.get(f"/api/v1/namespaces/{ns}/pods/{name}")

    def pods(self, ns):
        return self.get(f"/api/v1/namespaces/{ns}/pods")["items"]

    def create_pod(self, ns, name, requests=None, limits=None, node_selector=None, labels=None, annotations=None, scheduler=SCHEDULER, **spec):
        container = {"name": "main", "image": "busybox:test", "imagePullPolicy": "Never", "command": ["sleep", "86400"],
                     "resources": {"requests": requests or {}, "limits": limits or {}}}
        body = {"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "labels": labels or {}, "annotations": annotations or {}},
                "spec": {"containers": [container], "nodeSelector": node_selector or {}, "terminationGracePeriodSeconds": 0,
                         "tolerations": [{"operator": "Exists", "key": "node.kubernetes.io/not-ready"}], **spec}}
        if scheduler:
            body["spec"]["schedulerName"] = scheduler
        return self.do("POST", f"/api/v1/namespaces/{ns}/pods", body)

    def delete_pod(self, ns, name):
        self.do("DELETE", f"/api/v1/namespaces/{ns}/pods/{name}?gracePeriodSeconds=0", ok=(200, 202, 404))

    def node_of(self, ns, name):
        return self.pod(ns, name)["spec"].get("nodeName")

    def wait_bound(self, ns, name, seconds=20):
        try:
            return wait_until(lambda: self.node_of(ns, name), f"pod {ns}/{name} is bound", seconds)
        except Failed as e:
            raise Failed(f"{e}; its condition is {self.condition(ns, name)}") from e

    def condition(self, ns, name):
        """The PodScheduled condition, or None."""
        conditions = self.pod(ns, name).get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == "PodScheduled"), None)

    def wait_refused(self, ns, name, pattern, reason="Unschedulable", seconds=20):
        """The condition says no, with that reason, a matching sentence, and when it was true."""

        def ask():
            c = self.condition(ns, name)
            if not c or c["status"] != "False" or c.get("reason") != reason:
                return None
            sentence, seen = re.subn(r" \(as of \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\)$", "", c.get("message", ""))
            return c if seen and re.search(pattern, sentence) else None

        try:
            return wait_until(ask, f"pod {ns}/{name} says why it waits: /{pattern}/", seconds)
        except Failed as e:
            raise Failed(f"{e}; its condition is {self.condition(ns, name)}") from e

    def events(self, ns, name, reason):
        items = self.get(f"/api/v1/namespaces/{ns}/events")["items"]
        return [e for e in items if e["involvedObject"].get("name") == name and e["reason"] == reason]


class Program:
    """One of our programs (or a tool of the suite) as a process. Its output goes to a file; sanitizers' reports are failures."""

    def __init__(self, directory, name, args, env=None, under=()):
        """under: a command that runs it."""
        self.name = name
        self.may_end = False  # a case that makes it end by itself says so
        self.binary = os.path.join(BUILD, "bin", name)
        if not os.path.exists(self.binary):
            self.binary = os.path.join(BUILD, "test/integration", name)
        self.log_path = os.path.join(directory, f"{name}-{len(os.listdir(directory))}.log")
        self.log = open(self.log_path, "wb")  # pylint: disable=consider-using-with
        accounts = next((ACCOUNTS[a.partition("=")[2]] for a in args if a.startswith("--kubeconfig=") and a.partition("=")[2] in ACCOUNTS), None)
        if accounts and name.removeprefix("cosched-") in accounts.paths:
            args = accounts.arguments(name.removeprefix("cosched-"), args)
        full_env = {k: v for k, v in os.environ.items() if not k.startswith("KUBE") and not k.startswith("COSCHED_")}
        full_env.update(env or {})
        full_env.setdefault("ASAN_OPTIONS", "abort_on_error=0:detect_leaks=1")
        full_env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
        self.process = subprocess.Popen([*under, self.binary, *args], stdin=subprocess.PIPE, stdout=self.log, stderr=self.log, env=full_env)

    def output(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def wait_output(self, pattern, seconds=20):
        return wait_until(lambda: self.alive() and re.search(pattern, self.output(), re.M), f"{self.name} prints /{pattern}/", seconds)

    def alive(self):
        if self.process.poll() is not None:
            raise Failed(f"{self.name} ended with {self.process.returncode}:\n{self.output()[-3000:]}")
        return True

    def kill(self):
        self.process.kill()
        self.process.wait()

    def check_clean(self):
        text = self.output()
        for mark in ("AddressSanitizer", "LeakSanitizer", "runtime error:", "ThreadSanitizer"):
            check(mark not in text, f"{self.name}: {mark} report:\n{text[-6000:]}")

    def stop(self, seconds=2.0):
        """SIGTERM; must end by itself with 0 within the time, which is returned. The search for leaks that a sanitizer makes at the end is not the program's: it
        has said by then that it is stopped."""
        self.alive()
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(timeout=seconds)
            took = time.monotonic() - began
        except subprocess.TimeoutExpired as e:
            took = seconds
            if not re.search(r'\bmsg"?[=:] ?"?stopped\b', self.output()):
                self.kill()
                raise Failed(f"{self.name} did not end within {seconds:g} s of SIGTERM:\n{self.output()[-3000:]}") from e
            code = self.process.wait(timeout=LEAK_SEARCH_S)
        self.check_clean()
        check(code == 0, f"{self.name} ended with {code} after SIGTERM:\n{self.output()[-3000:]}")
        return took

    def close(self):
        if self.process.poll() is None:
            self.kill()
        if self.process.stdin:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        self.log.close()


def http_get(port, path):
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        conn.request("GET", path)
        reply = conn.getresponse()
        return reply.status, reply.read().decode()
    finally:
        conn.close()


class Suite:
    """What a case gets."""

    def __init__(self, cluster, directory):
        self.cluster = cluster
        self.directory = directory
        self.stack = contextlib.ExitStack()
        self.number = 0
        self.deaths = []

    def namespace(self, labels=None):
        self.number += 1
        name = f"t{os.getpid()}-{self.number}-{int(time.monotonic() * 1000) % 100000}"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels or {}}}
        self.cluster.do("POST", "/api/v1/namespaces", body)
        # client-go's informers wait up to 60 s (30 s and jitter) before they list again after an outage.
        wait_until(lambda: self.cluster.request("GET", f"/api/v1/namespaces/{name}/serviceaccounts/default")[0] == 200, "default service account", seconds=90)
        self.stack.callback(self.remove_namespace, name)
        return name

    def remove_namespace(self, name):
        self.cluster.do("DELETE", f"/api/v1/namespaces/{name}/pods?gracePeriodSeconds=0")
        self.cluster.do("DELETE", f"/api/v1/namespaces/{name}", ok=(200, 202, 404))

    def node(self, name, **what):
        """An API-only node that is gone when the case ends; it carries the label pool=<name>."""
        labels = {"pool": name, **what.pop("labels", {})}
        self.cluster.create_node(name, labels=labels, **what)
        self.stack.callback(self.cluster.do, "DELETE", f"/api/v1/nodes/{name}", None, "application/json", (200, 404))
        return name

    def program(self, name, *args, env=None, under=()):
        p = Program(self.directory, name, args, env, under)
        self.stack.callback(self.end_program, p)
        return p

    def end_program(self, p):
        """A program that ended by itself, or with a sanitizer's report, is told with the failure (and is one)."""
        if p.process.poll() not in (None, 0, -signal.SIGKILL) and not p.may_end:
            self.deaths.append(f"{p.name} had ended with {p.process.returncode}: {p.log_path}\n{p.output()[:4000]}")
        p.close()
        p.check_clean()

    def scheduler(self, *args, lease=None, wait=True):
        """cosched-scheduler; without election unless a lease name is given."""
        port = free_port()
        election = [f"--lease-name={lease}", "--lease-namespace=kube-system"] if lease else ["--no-leader-elect"]
        p = self.program("cosched-scheduler", f"--kubeconfig={self.cluster.kubeconfig}", "--http-address=127.0.0.1", f"--http-port={port}",
                         *election, *args)
        p.port = port
        if wait and not lease:
            p.wait_output('msg="?scheduling"?')
        return p


def run(cases, cluster, directory):
    """Runs the cases; prints a line for each and returns (passed, failed)."""
    passed = failed = 0
    for module, sentence, _needs, fn in cases:
        suite = Suite(cluster, directory)
        began = time.monotonic()
        try:
            with suite.stack:
                fn(suite)
            check(not suite.deaths, "a program ended by itself")
            passed += 1
            print(f"ok   {time.monotonic() - began:6.1f} s  {module}: {sentence}", flush=True)
        except Exception as e:  # pylint: disable=broad-except
            failed += 1
            print(f"FAIL {time.monotonic() - began:6.1f} s  {module}: {sentence}\n     {e}", flush=True)
            if not isinstance(e, Failed):
                traceback.print_exc(file=sys.stdout)
            for text in suite.deaths:
                print(f"     {text}", flush=True)
    return passed, failed


def temporary_directory(prefix="cosched-e2e-"):
    """Below $TMPDIR, or below /tmp where that is too long: sockets are bound in it, whose names have at most 107 bytes."""
    below = tempfile.gettempdir()
    return tempfile.mkdtemp(prefix=prefix, dir=below if len(below) <= 32 else "/tmp")
