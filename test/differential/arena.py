# SPDX-License-Identifier: Apache-2.0
"""Runs both schedulers: a control plane of its own, kube-scheduler and ours on it, a watch on the pods, and the witness.

The witness is an HTTP extender of kube-scheduler, which calls it with the nodes that passed all its own filters. So the witness sees kube-scheduler's
verdict on every node, and it can limit a pod to one node. It does that for the twin of a pod that we have placed: kube-scheduler then binds the twin to
our node, or not. Limiting the twin by its spec (a node selector, a required term on metadata.name) would change the question: topology spread counts only
nodes that match the pod's own selector and affinity, and preemption considers only those. The extender changes nothing before or after the filters:
with fewer than 100 nodes kube-scheduler filters all of them, and opportunistic batching is off, so that no pod gets the node of the previous pod
unfiltered.
"""
import concurrent.futures
import contextlib
import http.client
import http.server
import json
import os
import re
import shlex
import socket
import ssl
import subprocess
import sys
import threading
import time

import storage
import world

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test/integration"))
import harness  # noqa: E402

K8S = os.path.join(ROOT, "test/kubernetes/k8s")
PATIENCE = 30.0


class Trouble(Exception):
    """The test itself does not work: not a difference."""


class Client:
    """Keep-alive connections to the API server, one for each thread that calls."""

    def __init__(self, env):
        self.host, _, self.port = env["K8S_URL"].removeprefix("https://").partition(":")
        self.context = ssl.create_default_context(cafile=env["K8S_CA"])
        with open(env["K8S_TOKEN_FILE"], encoding="ascii") as f:
            self.headers = {"Authorization": "Bearer " + f.read().strip(), "Content-Type": "application/json"}
        self.mine = threading.local()

    def connect(self, timeout):
        conn = http.client.HTTPSConnection(self.host, int(self.port), context=self.context, timeout=timeout)
        conn.connect()
        conn.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return conn

    def request(self, method, path, body=None, content_type="application/json"):
        if not getattr(self.mine, "conn", None):
            self.mine.conn = self.connect(PATIENCE)
        try:
            self.mine.conn.request(method, path, None if body is None else json.dumps(body), {**self.headers, "Content-Type": content_type})
            reply = self.mine.conn.getresponse()
            text = reply.read()
        except (OSError, http.client.HTTPException):
            self.mine.conn.close()
            self.mine.conn = None
            raise
        return reply.status, json.loads(text) if text[:1] == b"{" else text.decode(errors="replace")

    def do(self, method, path, body=None, content_type="application/json", ok=(200, 201, 202)):
        status, reply = self.request(method, path, body, content_type)
        if status not in ok:
            raise Trouble(f"{method} {path}: {status} {reply.get('message') if isinstance(reply, dict) else reply}\n{json.dumps(body)}")
        return reply


class Pods:
    """The newest version of every pod, by a watch in a thread."""

    def __init__(self, client):
        self.client = client
        self.changed = threading.Condition()
        self.seen = {}
        self.error = None
        version = client.do("GET", "/api/v1/pods?limit=1")["metadata"]["resourceVersion"]
        self.conn = client.connect(None)
        self.conn.request("GET", f"/api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion={version}", headers=client.headers)
        self.reply = self.conn.getresponse()
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def follow(self):
        try:
            while line := self.reply.readline():
                event = json.loads(line)
                pod = event["object"]
                with self.changed:
                    if event["type"] in ("ADDED", "MODIFIED"):
                        self.seen[pod["metadata"]["uid"]] = pod
                    elif event["type"] == "DELETED":
                        self.seen.pop(pod["metadata"]["uid"], None)
                    elif event["type"] == "ERROR":
                        raise Trouble(f"the watch on pods: {pod}")
                    self.changed.notify_all()
        except Exception as e:  # pylint: disable=broad-except
            self.error = e
        with self.changed:
            self.error = self.error or Trouble("the watch on pods ended")
            self.changed.notify_all()

    def close(self):
        with contextlib.suppress(OSError):
            self.conn.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join(5)


class Witness(http.server.ThreadingHTTPServer):
    """The extender. limits: pod's name -> the node it may go to; left: pod's name -> nodes that kube-scheduler's filters left."""

    daemon_threads = True

    def __init__(self):
        self.limits, self.left = {}, {}
        super().__init__(("127.0.0.1", 0), WitnessCall)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def judge(self, pod, nodes):
        name = pod["metadata"]["name"]
        self.left[name] = sorted(nodes)
        limit = self.limits.get(name)
        # Where our node was not left, the pod goes wherever kube-scheduler wants: that is the difference.
        return [limit] if limit in nodes else nodes


class WitnessCall(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):  # pylint: disable=invalid-name
        ask = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        keep = self.server.judge(ask["Pod"], ask["NodeNames"])
        body = json.dumps({"NodeNames": keep, "FailedNodes": {n: "not the other scheduler's node" for n in ask["NodeNames"] if n not in keep}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):  # pylint: disable=arguments-differ
        pass


class Arena:
    """Everything that runs. A context manager: nothing is left behind."""

    OURS, KUBE = harness.SCHEDULER, "default-scheduler"

    def __init__(self, directory, name=None, keep=False, volumes=False):
        self.directory, self.keep, self.volumes = directory, keep, volumes
        self.name = name or f"differential-{os.getpid()}"
        self.started = name is None
        self.patience = PATIENCE
        self.stored = True  # a cluster that was used before
        self.stack = contextlib.ExitStack()
        self.pool = concurrent.futures.ThreadPoolExecutor(4)

    def k8s(self, *args):
        done = subprocess.run([K8S, args[0], "--name", self.name, *args[1:]], capture_output=True, text=True, timeout=1200, check=False)
        if done.returncode != 0:
            raise Trouble(f"k8s {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stack.close()
            raise
        return self

    def __exit__(self, *_):
        self.stack.close()

    def start(self):
        if self.started:
            # No controller-manager: nobody evicts, taints or collects anything, so the state is what the test made it. And nobody
            # would take the finalizers from claims and volumes.
            self.k8s("up", "--no-scheduler", "--no-controller-manager", "--apiserver-arg=--disable-admission-plugins=StorageObjectInUseProtection")
            if not self.keep:
                self.stack.callback(self.k8s, "down")
        env = dict(line.removeprefix("export ").split("=", 1) for line in self.k8s("env").splitlines())
        self.env = {k: "".join(shlex.split(v)) for k, v in env.items()}
        self.client = Client(self.env)
        self.stack.callback(self.pool.shutdown)
        self.make_fixtures()
        self.clear()
        self.witness = Witness()
        self.stack.callback(self.witness.shutdown)
        self.k8s("scheduler", "start", "--scheduler-qps", "10000", "--scheduler-extender", f"http://127.0.0.1:{self.witness.server_address[1]}",
                 "--scheduler-arg=--feature-gates=OpportunisticBatching=false")
        if self.volumes:
            subprocess.run([K8S, "build", "kube-controller-manager"], stdout=subprocess.DEVNULL, check=True)
            self.start_volume_controller()
        self.port = harness.free_port()
        self.ours = harness.Program(self.directory, "cosched-scheduler", [
            f"--kubeconfig={self.env['KUBECONFIG']}", "--http-address=127.0.0.1", f"--http-port={self.port}", "--no-leader-elect", "--log-level=debug"])
        self.stack.callback(self.end_ours)
        self.ours.wait_output('msg="?scheduling"?')
        self.pods = Pods(self.client)
        self.stack.callback(self.pods.close)

    def end_ours(self):
        try:
            self.ours.stop(5)
        finally:
            self.ours.close()

    def make_fixtures(self):
        """What worlds rely on and never change."""
        def put(path, body):
            self.client.do("POST", path, body, ok=(201, 409, 403))  # 403: a second default PriorityClass, in a cluster that was used before

        for name, labels in world.NAMESPACES.items():
            put("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
            put(f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
        put("/apis/node.k8s.io/v1/runtimeclasses", {"metadata": {"name": "heavy"}, "handler": "heavy", "overhead": {"podFixed": world.OVERHEAD}})
        for name, mode in storage.CLASSES.items():
            put("/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": name}, "provisioner": "kubernetes.io/no-provisioner",
                                                           "volumeBindingMode": mode})
        # Nobody preempts, unless a pod has one of the classes for that.
        for name, value in [("none", 0), *world.PRIORITIES.items(), *((f"p-{n}", v) for n, v in world.PRIORITIES.items())]:
            put("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value, "globalDefault": name == "none",
                                                               "preemptionPolicy": "PreemptLowerPriority" if name.startswith("p-") else "Never"})

    def clear(self):
        """No pods, no nodes."""
        for ns in world.NAMESPACES:
            self.client.do("DELETE", f"/api/v1/namespaces/{ns}/pods?gracePeriodSeconds=0")
            if self.stored:
                self.client.do("DELETE", f"/api/v1/namespaces/{ns}/persistentvolumeclaims")
                self.client.do("DELETE", f"/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets")
        for collection in (storage.COLLECTIONS if self.stored else []):
            self.client.do("DELETE", collection)
        self.stored = False
        self.client.do("DELETE", "/api/v1/nodes")

    def store(self, item):
        """An object that is neither pod nor node."""
        collection, body, status = item
        self.stored = True
        self.client.do("POST", collection, body)
        if status:
            self.client.do("PATCH", f"{collection}/{body['metadata']['name']}/status", {"status": status}, "application/merge-patch+json")

    def wait_claims(self, items):
        """Until the volume controller has bound those that it has to."""
        for collection, body, _ in filter(storage.is_to_be_bound, items):
            path = f"{collection}/{body['metadata']['name']}"
            harness.wait_until(lambda path=path: self.client.do("GET", path).get("status", {}).get("phase") == "Bound", f"{path} is bound")

    def restore(self, items):
        """Makes them anew, as they were."""
        for collection, body, _ in items:
            self.client.do("DELETE", f"{collection}/{body['metadata']['name']}", ok=(200, 202, 404))
        for item in items:
            self.store(item)

    def start_volume_controller(self):
        config = os.path.join(self.env["K8S_DIR"], "kubeconfig.controller-manager")
        log = open(os.path.join(self.directory, "controller-manager.log"), "wb")  # pylint: disable=consider-using-with
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            [os.path.join(self.env["K8S_BIN"], "kube-controller-manager"), f"--kubeconfig={config}", f"--authentication-kubeconfig={config}",
             f"--authorization-kubeconfig={config}", "--leader-elect=false", "--bind-address=127.0.0.1", f"--secure-port={harness.free_port()}",
             "--controllers=persistentvolume-binder-controller", "--use-service-account-credentials=false"], stdout=log, stderr=log)

        def end():
            process.kill()
            process.wait()
            log.close()

        self.stack.callback(end)

    def all(self, fn, items):
        return list(self.pool.map(fn, items))

    # Our scheduler writes the condition of a pod that waits only after a second, but its log says at once which pod found no node. (A counter of attempts would not say which: a
    # pod that has just been deleted may be tried once more.)

    def logged(self):
        """Where the log of our scheduler ends now."""
        return os.path.getsize(self.ours.log_path)

    def is_refused(self, key, since):
        """Whether our scheduler has found no node for the pod since then."""
        self.ours.alive()
        with open(self.ours.log_path, "rb") as f:
            f.seek(since)
            return re.search(rb'msg="gang waits" gang="pod ' + re.escape(key.encode()) + rb'"', f.read()) is not None

    def wait(self, uid, done, what):
        """done(pod) until it is true of the newest version of the pod; its value."""
        until = time.monotonic() + self.patience
        with self.pods.changed:
            while True:
                if self.pods.error:
                    raise self.pods.error
                pod = self.pods.seen.get(uid)
                value = done(pod) if pod else None
                if value:
                    return value
                left = until - time.monotonic()
                if left < 0:
                    raise Trouble(f"not within {self.patience:g} s: {what}: {json.dumps(pod)}")
                self.pods.changed.wait(min(left, 0.004 if done.polls else left))
