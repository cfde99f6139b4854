# SPDX-License-Identifier: Apache-2.0
"""Events live for a while after they were written last: kube-apiserver's --event-ttl, and cosched-local's.

A case has a server of its own whose Events live 2 s. What is checked of time is true however slow the machine is: an Event goes no sooner than its time after
the request that wrote it last was sent; and one that was found gone had not been written for so long.
"""
import contextlib
import http.client
import json
import os
import shlex
import subprocess
import threading
import time

from harness import MERGE, ROOT, Cluster, case, check, check_equal, free_port, wait_until

TTL_S = 2
EVENTS = "/api/v1/namespaces/default/events"


class Watch(threading.Thread):
    """What a watch of these Events shows, with the time at which it came."""

    def __init__(self, cluster, version, names):
        super().__init__(daemon=True)
        self.conn, self.names, self.seen = cluster.connect(120), names, []
        self.conn.request("GET", f"{EVENTS}?watch=1&resourceVersion={version}&timeoutSeconds=100", None, {"Authorization": "Bearer " + cluster.token})
        self.reply = self.conn.getresponse()
        check_equal(self.reply.status, 200, "watch")

    def run(self):
        with contextlib.suppress(OSError, http.client.HTTPException):  # the server's end is its end
            while line := self.reply.readline():
                step = json.loads(line)
                if step["object"]["metadata"].get("name") in self.names:
                    self.seen.append((time.monotonic(), step["type"], step["object"]))

    def deleted(self, name):
        return next(((at, o) for at, kind, o in self.seen if kind == "DELETED" and o["metadata"]["name"] == name), None)


def event(name, **more):
    return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": "default", **more}, "reason": "Test", "message": name, "count": 1,
            "type": "Normal", "source": {"component": "test"},
            "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "p", "uid": "u"}}


def lives_its_time(cluster):
    started, made = {}, {}
    version = cluster.get(EVENTS)["metadata"]["resourceVersion"]
    watch = Watch(cluster, version, ("short", "long", "held"))
    watch.start()
    # One that a finalizer holds goes as well: etcd knows no finalizers.
    for name, more in (("short", {}), ("long", {}), ("held", {"finalizers": ["example.com/hold"]})):
        started[name] = time.monotonic()
        made[name] = cluster.do("POST", EVENTS, event(name, **more))

    def write():
        """Writes the long one; says whether the others are gone."""
        at = time.monotonic()
        status, reply = cluster.request("PATCH", f"{EVENTS}/long", {"count": made["long"]["count"] + 1}, MERGE)
        if status == 404:
            # The write before this one came after its request was sent, so more than its time must have passed since.
            check(time.monotonic() - started["long"] >= TTL_S, "the Event that is written is gone after", time.monotonic() - started["long"], "s")
            reply = cluster.do("POST", EVENTS, event("long"))
        else:
            check_equal(status, 200, "PATCH")
        started["long"], made["long"] = at, reply
        return watch.deleted("short") and watch.deleted("held")

    wait_until(write, "the Events that nobody writes are gone, and a watcher sees it", 30, 0.1)
    wait_until(lambda: watch.deleted("long"), "the Event that nobody writes any more is gone as well", 30)
    check_equal([o["metadata"]["name"] for o in cluster.get(EVENTS)["items"] if o["metadata"]["name"] in started], [], "Events in a list")
    for name, o in made.items():
        check_equal(cluster.request("GET", f"{EVENTS}/{name}")[0], 404, f"GET {name}")
        uid = o["metadata"]["uid"]
        steps = [(at, kind, e) for at, kind, e in watch.seen if e["metadata"]["uid"] == uid]
        check_equal([kind for _, kind, _ in steps], ["ADDED"] + ["MODIFIED"] * (len(steps) - 2) + ["DELETED"], f"steps of {name}")
        at, _, last = steps[-1]
        check(at - started[name] >= TTL_S, name, "went after", at - started[name], "s")
        check(int(last["metadata"]["resourceVersion"]) > int(o["metadata"]["resourceVersion"]), "the deletion has no version of its own:", last, o)
        last["metadata"]["resourceVersion"] = o["metadata"]["resourceVersion"]
        check_equal(last, o, "what DELETED shows is the last state")


@case("an Event is deleted when its time since the last write is over, watchers see DELETED, a write renews the time", needs={"local"})
def embedded(suite):
    state, port = os.path.join(suite.directory, "events"), free_port()
    os.mkdir(state, 0o700)
    server = suite.program("cosched-local", f"--state-dir={state}", f"--port={port}", f"--event-ttl={TTL_S}s")
    server.wait_output("^export KUBECONFIG=")
    lives_its_time(Cluster({"KUBECONFIG": os.path.join(state, "kubeconfig"), "K8S_DIR": state, "K8S_URL": f"https://127.0.0.1:{port}",
                            "K8S_CA": os.path.join(state, "ca.crt"), "K8S_TOKEN_FILE": os.path.join(state, "token")}, "local"))
    server.stop()


@case("the same on a real API server", needs={"real"})
def real(suite):
    k8s, name = os.path.join(ROOT, "test/kubernetes/k8s"), f"events-{os.getpid()}"
    suite.stack.callback(subprocess.run, [k8s, "down", "--name", name], check=True, capture_output=True)
    subprocess.run([k8s, "up", "--name", name, "--no-scheduler", "--no-controller-manager", f"--apiserver-arg=--event-ttl={TTL_S}s"], check=True,
                   capture_output=True)
    text = subprocess.run([k8s, "env", "--name", name], capture_output=True, text=True, check=True).stdout
    pairs = (line.removeprefix("export ").partition("=") for line in text.splitlines())
    lives_its_time(Cluster({key: "".join(shlex.split(value)) for key, _, value in pairs}))
