# SPDX-License-Identifier: Apache-2.0
"""Plain kubectl: what a user types, and what comes back. The same on a real cluster and on the local one.

K8S_KUBECTLS lists the kubectls to try, by path, separated by colons; without it the cluster's own is tried. Each case runs once with each of them, in a namespace
of its own. Nothing here needs a scheduler or a kubelet: pods are bound and brought to their states by the API, so that both clusters show the same.
"""
import contextlib
import copy
import json
import os
import re
import subprocess
import time

from harness import MERGE, Failed, case, check, check_equal, wait_until


class Kubectl:
    """One kubectl, in one namespace."""

    def __init__(self, suite, path, ns):
        self.suite, self.path, self.ns = suite, path, ns
        self.cluster = copy.copy(suite.cluster)
        self.cluster.kubectl_binary = path
        # What one kubectl found out about one cluster is nothing for another, and ports are used again.
        self.flags = ["--cache-dir", os.path.join(suite.directory, "kubectl-cache-" + re.sub(r"\W", "-", path)), "-n", ns]

    def __call__(self, *args, stdin=None):
        return self.cluster.kubectl(*self.flags, *args, stdin=stdin)

    def refused(self, *args, stdin=None):
        """What it says on standard error; it must fail."""
        try:
            out = self(*args, stdin=stdin)
        except Failed as e:
            return str(e)
        raise Failed(f"kubectl {' '.join(args)} succeeded: {out}")

    def apply(self, *objects, flags=()):
        return self("apply", *flags, "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})).splitlines()

    def table(self, *args):
        """The rows of `get`, as dictionaries by column."""
        lines = self("get", *args).splitlines()
        starts = [m.start() for m in re.finditer(r"(?<!\S)\S+(?: \S+)*", lines[0])]
        cut = [slice(a, b) for a, b in zip(starts, starts[1:] + [None])]
        titles = [lines[0][c].strip() for c in cut]
        return titles, [dict(zip(titles, [line[c].strip() for c in cut])) for line in lines[1:]]

    @contextlib.contextmanager
    def watching(self, *args):
        """A kubectl that goes on; gives a function that returns the lines so far."""
        path = os.path.join(self.suite.directory, f"watch-{time.monotonic_ns()}.log")
        with open(path, "wb") as log:
            command = [self.path, "--kubeconfig", self.cluster.kubeconfig, *self.flags, *args]
            with subprocess.Popen(command, stdout=log, stderr=log) as process:
                try:
                    def lines():
                        with open(path, encoding="utf-8") as f:
                            return f.read().splitlines()

                    yield lines
                finally:
                    process.kill()


def each(fn):
    """Runs fn(suite, kubectl) for each kubectl, in a fresh namespace; a failure says with which."""

    def run(suite):
        for path in suite.cluster.kubectls():
            try:
                fn(suite, Kubectl(suite, path, suite.namespace()))
            except Failed as e:
                raise Failed(f"with {path}: {e}") from e

    run.__module__ = fn.__module__
    return run


def is_local(suite):
    return suite.cluster.target == "local"


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def pod(name, labels=None, **spec):
    container = {"name": "main", "image": "busybox:test", "resources": {"limits": {"cpu": "500m", "memory": "64Mi"}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **({"labels": labels} if labels else {})},
            "spec": {"schedulerName": "nobody", "terminationGracePeriodSeconds": 0, "containers": [container], **spec}}


def deployment(name, replicas=1):
    template = {"metadata": {"labels": {"app": name}}, "spec": pod("x")["spec"]}
    del template["spec"]["terminationGracePeriodSeconds"]
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}}


def run_pod(k, node, name, ready=True):
    """Binds a pod and says what a kubelet would: it runs."""
    base = f"/api/v1/namespaces/{k.ns}/pods/{name}"
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
    k.cluster.do("POST", base + "/binding", binding)
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}} if ready else {"waiting": {"reason": "ImagePullBackOff", "message": "m"}}
    status = {"phase": "Running" if ready else "Pending", "podIP": "10.0.0.7", "podIPs": [{"ip": "10.0.0.7"}], "hostIP": "10.0.0.1",
              "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
              "containerStatuses": [{"name": "main", "image": "busybox:test", "imageID": "", "ready": ready, "restartCount": 0, "state": state}]}
    k.cluster.do("PATCH", base + "/status", {"status": status}, MERGE)


def node_name(suite, k):
    return suite.node(f"kubectl-{k.ns}")


@case("kubectl apply creates, changes and leaves alone")
@each
def apply_three_ways(_suite, k):
    objects = [config_map("c", a="1"), deployment("d", 0), pod("p")]
    check_equal(k.apply(*objects), ["configmap/c created", "deployment.apps/d created", "pod/p created"], "first")
    check_equal(k.apply(*objects), ["configmap/c unchanged", "deployment.apps/d unchanged", "pod/p unchanged"], "again")
    objects[0]["data"] = {"b": "2"}
    objects[1]["spec"]["template"]["spec"]["containers"][0]["image"] = "busybox:other"
    objects[2]["metadata"]["labels"] = {"l": "v"}
    check_equal(k.apply(*objects), ["configmap/c configured", "deployment.apps/d configured", "pod/p configured"], "changed")
    check_equal(json.loads(k("get", "cm", "c", "-o", "json"))["data"], {"b": "2"}, "what was not named any more is gone")
    check_equal(k("get", "deploy", "d", "-o", "jsonpath={.spec.template.spec.containers[*].image}"), "busybox:other", "the image")


@case("kubectl apply --server-side owns what it names")
@each
def apply_server_side(_suite, k):
    check_equal(k.apply(config_map("c", a="1", b="2"), flags=["--server-side"]), ["configmap/c serverside-applied"], "first")
    k.apply(config_map("c", a="3"), flags=["--server-side"])
    check_equal(json.loads(k("get", "cm", "c", "-o", "json"))["data"], {"a": "3"}, "data")


@case("kubectl get prints the usual columns of pods")
@each
def get_pods(suite, k):
    node = node_name(suite, k)
    k.apply(pod("one", {"app": "a"}), pod("two", {"app": "b", "tier": "x"}))
    check_equal(k("get", "pods", "-l", "app=none", "--ignore-not-found"), "", "nothing to print")
    run_pod(k, node, "one")
    titles, rows = k.table("pods")
    check_equal(titles, ["NAME", "READY", "STATUS", "RESTARTS", "AGE"], "titles")
    check_equal([(r["NAME"], r["READY"], r["STATUS"], r["RESTARTS"]) for r in rows], [("one", "1/1", "Running", "0"), ("two", "0/1", "Pending", "0")], "rows")
    check(all(re.fullmatch(r"\d+m?s|\d+m\d+s", r["AGE"]) for r in rows), "ages", rows)
    titles, rows = k.table("pods", "-o", "wide")
    check_equal(titles[5:], ["IP", "NODE", "NOMINATED NODE", "READINESS GATES"], "wide titles")
    check_equal([rows[0][t] for t in titles[5:]], ["10.0.0.7", node, "<none>", "<none>"], "wide")
    check_equal([rows[1][t] for t in titles[5:]], ["<none>"] * 4, "wide, not bound")
    titles, rows = k.table("pods", "-L", "app,tier")
    check_equal([(r["APP"], r["TIER"]) for r in rows], [("a", ""), ("b", "x")], "-L")
    check_equal(k("get", "pods", "-l", "app=b", "-o", "name").split(), ["pod/two"], "-l")
    check_equal(k("get", "pods", "-l", "app in (a,b),tier", "-o", "name").split(), ["pod/two"], "-l with two requirements")
    check_equal(k("get", "pods", "--field-selector", f"spec.nodeName={node}", "-o", "name").split(), ["pod/one"], "--field-selector")
    check_equal(k("get", "pods", "--no-headers", "-o", "custom-columns=N:.metadata.name,S:.status.phase").split(), ["one", "Running", "two", "Pending"], "columns")
    check("app=a" in k("get", "pod", "one", "--show-labels"), "--show-labels")
    check_equal(k("get", "pods", "--sort-by=.metadata.labels.tier", "-o", "name").split()[-1], "pod/two", "--sort-by")
    run_pod(k, node, "two", ready=False)
    check_equal(k.table("pod", "two")[1][0]["STATUS"], "ImagePullBackOff", "why a container waits")


@case("kubectl get -o yaml and -o json are whole objects with their defaults")
@each
def get_objects(_suite, k):
    k.apply(pod("p"))
    text = k("get", "pod", "p", "-o", "yaml")
    for line in ("apiVersion: v1", "kind: Pod", "  restartPolicy: Always", "  dnsPolicy: ClusterFirst", "    imagePullPolicy: IfNotPresent",
                 "  enableServiceLinks: true", "  preemptionPolicy: PreemptLowerPriority", "  qosClass: Guaranteed", "  phase: Pending"):
        check(line in text.splitlines(), f"no line {line!r} in\n{text}")
    p = json.loads(k("get", "pod", "p", "-o", "json"))
    check_equal(p["spec"]["containers"][0]["resources"]["requests"], {"cpu": "500m", "memory": "64Mi"}, "requests from limits")
    check_equal([t["key"] for t in p["spec"]["tolerations"]], ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"], "tolerations")
    check_equal(json.loads(k("get", "pods", "-o", "json"))["kind"], "List", "a list")


@case("kubectl get -w shows each change in a line")
@each
def get_watch(suite, k):
    node = node_name(suite, k)
    k.apply(pod("before"))
    with k.watching("get", "pods", "-w", "-o", "wide") as lines:
        wait_until(lambda: len(lines()) == 2, "the list", 20)
        check(lines()[0].startswith("NAME "), "a title", lines())
        k.apply(pod("after"))
        wait_until(lambda: re.match(r"after +0/1 +Pending .* <none>", lines()[-1]), "the new pod", 20)
        run_pod(k, node, "after")
        wait_until(lambda: re.match(rf"after +1/1 +Running .* 10.0.0.7 +{node} ", lines()[-1]), "it runs", 20)
        k("delete", "pod", "before", "--grace-period=0", "--force")
        wait_until(lambda: lines()[-1].startswith("before "), "the deletion", 20)
        check_equal(sum(1 for line in lines() if line.startswith("NAME")), 1, "one title")


@case("kubectl describe pod and node")
@each
def describe(suite, k):
    node = node_name(suite, k)
    k.apply(pod("p", {"app": "a"}))
    run_pod(k, node, "p")
    uid = k("get", "pod", "p", "-o", "jsonpath={.metadata.uid}")
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "p.1"}, "type": "Normal", "reason": "Tested", "message": "by a test", "count": 2,
             "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": k.ns, "uid": uid}, "source": {"component": "suite"},
             "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z"}
    k.cluster.do("POST", f"/api/v1/namespaces/{k.ns}/events", event)
    text = k("describe", "pod", "p")
    for pattern in (r"Name: +p\n", rf"Namespace: +{k.ns}\n", rf"Node: +{node}/", r"Labels: +app=a\n", r"Status: +Running\n", r"IP: +10.0.0.7\n",
                    r"Image: +busybox:test\n", r"State: +Running\n", r"QoS Class: +Guaranteed\n", r"Tested .* by a test"):
        check(re.search(pattern, text), f"no /{pattern}/ in\n{text}")
    text = k("describe", "node", node)
    for pattern in (rf"Name: +{node}\n", r"Roles: +<none>\n", r"Ready +True", r"Capacity:\n", r"Allocatable:\n", r"memory: +8Gi\n", rf"{k.ns} +p +500m",
                    r"Allocated resources:"):
        check(re.search(pattern, text), f"no /{pattern}/ in\n{text}")


@case("kubectl get nodes, cordon and taint")
@each
def nodes(suite, k):
    node = node_name(suite, k)
    titles, rows = k.table("node", node)
    check_equal(titles, ["NAME", "STATUS", "ROLES", "AGE", "VERSION"], "titles")
    check_equal((rows[0]["STATUS"], rows[0]["ROLES"]), ("Ready", "<none>"), "row")
    k("cordon", node)
    k("label", "node", node, "node-role.kubernetes.io/worker=")
    titles, rows = k.table("node", node, "-o", "wide")
    check_equal((rows[0]["STATUS"], rows[0]["ROLES"]), ("Ready,SchedulingDisabled", "worker"), "cordoned")
    check_equal(titles[5:], ["INTERNAL-IP", "EXTERNAL-IP", "OS-IMAGE", "KERNEL-VERSION", "CONTAINER-RUNTIME"], "wide titles")
    check_equal([rows[0][t] for t in titles[5:]], ["<none>", "<none>", "<unknown>", "<unknown>", "<unknown>"], "wide")
    k("uncordon", node)
    k("taint", "node", node, "a=b:NoSchedule")
    check_equal(json.loads(k("get", "node", node, "-o", "json"))["spec"]["taints"], [{"key": "a", "value": "b", "effect": "NoSchedule"}], "taint")
    k("taint", "node", node, "a-")


@case("kubectl label, annotate and patch in three ways")
@each
def change(_suite, k):
    k.apply(pod("p"), deployment("d", 0))
    k("label", "pod", "p", "a=b", "c=d")
    k("label", "pod", "p", "a-")
    check("--overwrite" in k.refused("label", "pod", "p", "c=e"), "no silent change")
    k("annotate", "pod", "p", "x=y z")
    meta = json.loads(k("get", "pod", "p", "-o", "json"))["metadata"]
    check_equal(meta["labels"], {"c": "d"}, "labels")
    check_equal(meta["annotations"]["x"], "y z", "annotations")
    k("patch", "deploy", "d", "-p", '{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"i:1"}]}}}}')
    spec = json.loads(k("get", "deploy", "d", "-o", "json"))["spec"]["template"]["spec"]
    check_equal((spec["containers"][0]["image"], spec["containers"][0]["resources"]["limits"]["cpu"]), ("i:1", "500m"), "strategic")
    k("patch", "deploy", "d", "--type=merge", "-p", '{"spec":{"paused":true}}')
    k("patch", "deploy", "d", "--type=json", "-p", '[{"op":"replace","path":"/spec/replicas","value":0},{"op":"add","path":"/metadata/labels","value":{"j":"k"}}]')
    d = json.loads(k("get", "deploy", "d", "-o", "json"))
    check_equal((d["spec"]["paused"], d["metadata"]["labels"]), (True, {"j": "k"}), "merge and json")


@case("kubectl scale and wait")
@each
def scale(suite, k):
    node = node_name(suite, k)
    k.apply(deployment("d", 1))
    check_equal(k("scale", "deploy", "d", "--replicas=3").strip(), "deployment.apps/d scaled", "scale")
    names = wait_until(lambda: (lambda n: n if len(n) == 3 else None)(k("get", "pods", "-l", "app=d", "-o", "name").split()), "three pods", 30)
    titles, rows = k.table("deploy")
    check_equal(titles, ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"], "titles")
    check_equal(rows[0]["READY"], "0/3", "none is ready")
    for name in names:
        run_pod(k, node, name.removeprefix("pod/"))
    k("wait", "--for=condition=Available", "deploy/d", "--timeout=30s")
    wait_until(lambda: k.table("deploy", "d")[1][0]["READY"] == "3/3", "all are ready", 30)
    check_equal(k.table("rs")[0], ["NAME", "DESIRED", "CURRENT", "READY", "AGE"], "titles of replica sets")
    k("scale", "deploy", "d", "--replicas=0")
    for name in names:
        k("delete", name, "--grace-period=0", "--force", "--ignore-not-found")
    wait_until(lambda: not k("get", "pods", "-l", "app=d", "-o", "name", "--ignore-not-found").split(), "no pods", 30)
    k.apply(pod("p"))
    check("timed out" in k.refused("wait", "--for=condition=Ready", "pod/p", "--timeout=1s"), "it is not ready")
    run_pod(k, node, "p")
    k("wait", "--for=condition=Ready", "pod/p", "--timeout=30s")


@case("kubectl delete: by name, by label, by file, and what is not there")
@each
def delete(_suite, k):
    k.apply(config_map("a"), config_map("b"), pod("p", {"x": "y"}), pod("q", {"x": "y"}), pod("r"))
    check('configmap "a" deleted' in k("delete", "cm", "a"), "by name")
    check("deleted" in k("delete", "pods", "-l", "x=y", "--grace-period=0", "--force"), "by label")
    wait_until(lambda: k("get", "pods", "-o", "name").split() == ["pod/r"], "two pods are gone", 20)
    check("deleted" in k("delete", "-f", "-", stdin=json.dumps(config_map("b"))), "by file")
    check("(NotFound)" in k.refused("delete", "cm", "b"), "it is gone")
    check_equal(k("delete", "cm", "b", "--ignore-not-found"), "", "unless asked to be quiet")
    check('pods "nope" not found' in k.refused("get", "pod", "nope"), "a pod that is not there")
    check("deleted" in k("delete", "pod", "r", "--wait", "--timeout=30s", "--now"), "and waits")


@case("kubectl delete of an owner takes what it owns")
@each
def delete_owner(_suite, k):
    k.apply(deployment("d", 2))
    wait_until(lambda: len(k("get", "pods", "-l", "app=d", "-o", "name").split()) == 2, "two pods", 30)
    k("delete", "deploy", "d")
    wait_until(lambda: not k("get", "rs,pods", "-o", "name", "--ignore-not-found").split(), "nothing is left", 60)


@case("kubectl create: namespace, job, quota, priority class; get all")
@each
def create(suite, k):
    for words in (["job", "j", "--image=busybox:test"], ["quota", "q", "--hard=pods=50"], ["configmap", "c", "--from-literal=a=b"],
                  ["secret", "generic", "s", "--from-literal=a=b"], ["serviceaccount", "robot"]):
        check("created" in k("create", *words), words)
    name = f"class-{k.ns}"
    suite.stack.callback(k.cluster.do, "DELETE", f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}", None, "application/json", (200, 404))
    check("created" in k("create", "priorityclass", name, "--value=7"), "priority class")
    check_equal(k.table("priorityclass", name)[1][0]["VALUE"], "7", "its value")
    check("already exists" in k.refused("create", "-f", "-", stdin=json.dumps(config_map("c"))), "twice")
    wait_until(lambda: len(k("get", "pods", "-l", "job-name=j", "-o", "name").split()) == 1, "the job's pod", 30)
    check_equal(k.table("job")[1][0]["COMPLETIONS"], "0/1", "completions")
    text = k("get", "all")
    check("job.batch/j" in text and re.search(r"pod/j-\w+", text), "get all", text)
    check_equal(k("get", "secret", "s", "-o", "jsonpath={.data.a}"), "Yg==", "a secret's data")
    wait_until(lambda: re.search(r"pods: 1/50", k("get", "quota", "q")), "the quota counts", 30)
    check("created" in k("create", "namespace", k.ns + "-x"), "namespace")
    check_equal(k.table("ns", k.ns + "-x")[1][0]["STATUS"], "Active", "its status")
    check("deleted" in k("delete", "namespace", k.ns + "-x", "--timeout=50s"), "and its end")


@case("kubectl is told in the same words why an object is refused")
@each
def refusals(_suite, k):
    def why(*objects):
        return k.refused("create", "--validate=false", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))

    bad = pod("p")
    bad["spec"]["containers"] = []
    check('The Pod "p" is invalid: spec.containers: Required value' in why(bad), why(bad))
    bad = pod("p")
    bad["spec"]["containers"][0]["resources"] = {"limits": {"aliyun.com/gpu-mem": "1.5"}}
    check("must be an integer" in why(bad), why(bad))
    bad["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "4x"}}
    check("quantities must match the regular expression" in why(bad), why(bad))
    bad = deployment("d")
    bad["spec"]["selector"] = {"matchLabels": {"a": "b"}}
    check("`selector` does not match template `labels`" in why(bad), why(bad))
    k.apply(pod("p"))
    text = k.refused("patch", "pod", "p", "-p", '{"spec":{"nodeSelector":{"a":"b"}}}')
    check("spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`" in text, text)


@case("kubectl logs and explain answer, or say clearly that they cannot")
@each
def what_is_not_simulated(suite, k):
    if not is_local(suite):
        check("Pod" in k("explain", "pods"), "explain")
        return
    k.apply(pod("p"))
    text = k.refused("logs", "p", "--request-timeout=10s")
    check("not simulated" in text, text)
    text = k.refused("explain", "pods")
    check(len(text.splitlines()) <= 3, "one clear line", text)


@case("kubectl api-resources, api-versions, version and cluster-info")
@each
def discovery(_suite, k):
    lines = k("api-resources", "--no-headers").splitlines()
    by_name = {line.split()[0]: line.split() for line in lines}
    for name, words in {"pods": ["po", "true", "Pod"], "nodes": ["no", "false", "Node"], "deployments": ["deploy", "true", "Deployment"],
                        "jobs": ["true", "Job"], "leases": ["true", "Lease"], "poddisruptionbudgets": ["pdb", "true", "PodDisruptionBudget"],
                        "priorityclasses": ["pc", "false", "PriorityClass"], "bindings": ["true", "Binding"]}.items():
        check(name in by_name, f"no {name} in", sorted(by_name))
        check(set(words) <= set(by_name[name]), name, by_name[name])
    check("deployments.apps" in k("api-resources", "-o", "name").split(), "-o name")
    check({"v1", "apps/v1", "batch/v1", "coordination.k8s.io/v1"} <= set(k("api-versions").split()), "api-versions")
    check("serverVersion" in json.loads(k("version", "-o", "json")), "version")
    check_equal(k("get", "--raw", "/readyz"), "ok", "readyz")


@case("kubectl --dry-run=server changes nothing")
@each
def dry_run(suite, k):
    check_equal(k.apply(config_map("c", a="1"), flags=["--dry-run=server"]), ["configmap/c created (server dry run)"], "create")
    check("(NotFound)" in k.refused("get", "cm", "c"), "nothing was made")
    k.apply(config_map("c", a="1"))
    k.apply(config_map("c", a="2"), flags=["--dry-run=server"])
    check_equal(k("get", "cm", "c", "-o", "jsonpath={.data.a}"), "1", "nothing was changed")
    # One kind of each sort: of another group, one whose name kubectl knows nothing about (the local cluster has it; a real one has no TFJob), one without a namespace.
    check_equal(k.apply(deployment("d"), flags=["--dry-run=server"]), ["deployment.apps/d created (server dry run)"], "of a group")
    if is_local(suite):
        job = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "t"}, "spec": {}}
        check_equal(k.apply(job, flags=["--dry-run=server"]), ["tfjob.kubeflow.org/t created (server dry run)"], "a custom kind")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": k.ns + "-trial"}}
    check_equal(k.apply(namespace, flags=["--dry-run=server"]), [f"namespace/{k.ns}-trial created (server dry run)"], "one without a namespace")
    k("delete", "cm", "c", "--dry-run=server")
    check_equal(k("get", "cm", "-o", "name", "--field-selector=metadata.name=c"), "configmap/c\n", "nothing was removed")
