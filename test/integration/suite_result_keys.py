# SPDX-License-Identifier: Apache-2.0
"""Admission policies on a real API server, with no webhook there: forged result keys reach no pod, whoever writes them, and no GPU pod gets out of its share."""
import json
import os

from harness import MERGE, ROOT, case, check, check_equal, wait_until

POLICY = os.path.join(ROOT, "deploy/manifests/result-keys.yaml")
GPU_POLICY = os.path.join(ROOT, "deploy/manifests/gpu-pods.yaml")
MEM, CORE = "aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage"
HOME = "cosched-system"
KEYS = ["scheduler.framework.gpushare.allocation", "scheduler.framework.gpushare.assume-time", "scheduler.framework.gpushare.assigned",
        "gpushare.alibabacloud.com/core-percentage", "ALIYUN_COM_GPU_MEM_IDX", "ALIYUN_COM_GPU_MEM_DEV", "ALIYUN_COM_GPU_MEM_POD",
        "ALIYUN_COM_GPU_MEM_ASSIGNED", "ALIYUN_COM_GPU_MEM_ASSUME_TIME", "topology.kubernetes.io/gpu-group", "topology.kubernetes.io/gpu-visible",
        "cpuset", "cosched.io/cpuset-applied", "cosched.io/gpu-confirmed"]


class Account:
    """A service account that RBAC allows everything, so that only the policy says no."""

    def __init__(self, suite, ns, name, node=None):
        self.cluster = c = suite.cluster
        c.request("POST", f"/api/v1/namespaces/{ns}/serviceaccounts", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})
        binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": f"test-{ns}-{name}"},
                   "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
                   "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": ns}]}
        path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
        c.do("POST", path, binding, ok=(201, 409))
        suite.stack.callback(c.do, "DELETE", f"{path}/test-{ns}-{name}", None, "application/json", (200, 404))
        spec = {"expirationSeconds": 3600}
        if node:
            uid = c.get(f"/api/v1/nodes/{node}")["metadata"]["uid"]
            spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
        reply = c.do("POST", f"/api/v1/namespaces/{ns}/serviceaccounts/{name}/token",
                     {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
        self.token = reply["status"]["token"]
        wait_until(lambda: self.request("GET", "/api/v1/namespaces")[0] == 200, f"the account {name} may do everything")

    def request(self, method, path, body=None, content_type="application/json"):
        mine, self.cluster.token = self.cluster.token, self.token
        try:
            return self.cluster.request(method, path, body, content_type)
        finally:
            self.cluster.token = mine


def pod(annotations=None, node=None):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-", "annotations": annotations or {}},
            "spec": {"containers": [{"name": "c", "image": "busybox:test"}], "schedulerName": "nobody", **({"nodeName": node} if node else {})}}


def denied(reply, key, what):
    status, body = reply
    check(status in (403, 422) and f"metadata.annotations[{key}]: is written by cosched" in body.get("message", ""), f"{what}: {status} {body.get('message')}")


def allowed(reply, what):
    check(reply[0] in (200, 201), f"{what}: {reply[0]} {json.dumps(reply[1])[:500]}")
    return reply[1]


@case("forged result keys reach no pod: not on create, not on update, not by a status or a Binding, not by another node's plugin", needs=("real",))
def forged(suite):
    c = suite.cluster
    c.request("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}})  # stays: our programs' accounts are there
    ns = suite.namespace()
    here, there = suite.node(f"keys-a-{ns}"), suite.node(f"keys-b-{ns}")
    user = Account(suite, ns, "user")
    scheduler = Account(suite, HOME, "cosched-scheduler")
    plugin, other = Account(suite, HOME, "cosched-device-plugin", here), Account(suite, HOME, "cosched-device-plugin", there)
    c.kubectl("apply", "-f", POLICY)
    suite.stack.callback(c.kubectl, "delete", "-f", POLICY, "--ignore-not-found")
    pods = f"/api/v1/namespaces/{ns}/pods"
    # The policy is in force when the API server's own watch has brought it.
    wait_until(lambda: user.request("POST", pods + "?dryRun=All", pod({"cpuset": "{}"}))[0] == 403, "the policy is in force")
    wait_until(lambda: user.request("POST", f"{pods}/none/binding?dryRun=All", {
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "none", "annotations": {"cpuset": "{}"}}, "target": {"kind": "Node", "name": here}})[0] == 403,
        "the policy for Bindings is in force")
    for key in KEYS:
        denied(user.request("POST", pods, pod({key: "x"})), key, f"create with {key}")
    made = allowed(user.request("POST", pods, pod({"mine": "x", "cosched.io/inject": "false", "cosched.io/cpuset-shared": "true"})), "a pod without them")
    path = f"{pods}/{made['metadata']['name']}"
    patch = lambda who, annotations, sub="": who.request("PATCH", path + sub, {"metadata": {"annotations": annotations}}, MERGE)
    for key in KEYS:
        denied(patch(user, {key: "x"}), key, f"update with {key}")
        denied(patch(user, {key: "x"}, "/status"), key, f"status with {key}")
    denied(patch(plugin, {"cpuset": "x"}), "cpuset", "the plugin, before the pod has a node")
    allowed(patch(user, {"mine": "y", "scheduler.framework.gpushare.note": "a name that only looks like one"}), "another annotation")
    binding = lambda annotations: {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": made["metadata"]["name"], "annotations": annotations},
                                   "target": {"apiVersion": "v1", "kind": "Node", "name": here}}
    denied(user.request("POST", path + "/binding", binding({"cpuset": "{}"})), "cpuset", "a user's Binding")
    denied(plugin.request("POST", path + "/binding", binding({"cpuset": "{}"})), "cpuset", "a plugin's Binding")
    allowed(scheduler.request("POST", path + "/binding", binding({"cpuset": "{}", "scheduler.framework.gpushare.assigned": "false"})), "the scheduler's Binding")
    check_equal(c.get(path)["metadata"]["annotations"]["cpuset"], "{}", "the key is in")
    assigned = "scheduler.framework.gpushare.assigned"
    denied(patch(user, {assigned: "true"}), assigned, "a user changes it")
    denied(patch(user, {assigned: None}), assigned, "a user removes it")
    denied(patch(other, {assigned: "true"}), assigned, "another node's plugin changes it")
    allowed(patch(user, {"mine": "z"}), "another annotation of a placed pod")
    allowed(patch(plugin, {assigned: "true"}), "the node's own plugin changes it")
    allowed(patch(scheduler, {"cpuset": None}), "the scheduler removes it")
    allowed(user.request("DELETE", path + "?gracePeriodSeconds=0"), "a user deletes the pod")


def gpu_pod(limits, init=None, **container):
    body = pod()
    body["spec"]["containers"][0].update(resources={"limits": limits}, **container)
    body["spec"]["volumes"] = [{"name": "v", "emptyDir": {}}]
    if init:
        body["spec"]["initContainers"] = [{"name": "i", "image": "busybox:test", **init}]
    return body


def mounts(*paths):
    return {"volumeMounts": [{"name": "v", "mountPath": path} for path in paths]}


@case("with no webhook there a GPU pod gets no compute without memory, hides no library and sets no variable of the plugin's; nor does a container added to it", needs=("real",))
def gpu_pods(suite):
    c, ns = suite.cluster, suite.namespace()
    c.request("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}})
    user = Account(suite, ns, "user")
    c.kubectl("apply", "-f", GPU_POLICY)
    suite.stack.callback(c.kubectl, "delete", "-f", GPU_POLICY, "--ignore-not-found")
    pods, one = f"/api/v1/namespaces/{ns}/pods", {MEM: "3"}
    wait_until(lambda: user.request("POST", pods + "?dryRun=All", gpu_pod({CORE: "50"}))[0] == 422, "the policy is in force")
    alone, step, path = "percent of a card without memory of it", "write a multiple of 5", "hides, or may hide"
    rows = [("compute alone", gpu_pod({CORE: "50"}), alone), ("beside no memory", gpu_pod({CORE: "50", MEM: "0"}), alone),
            ("in an init container", gpu_pod(one, init={"resources": {"limits": {CORE: "5"}}}), alone), ("33 percent", gpu_pod({**one, CORE: "33"}), step),
            ("1,000 percent", gpu_pod({**one, CORE: "1k"}), step), ("a debugger's variable", gpu_pod(one, env=[{"name": "COSCHED_X", "value": "1"}]), "env: "),
            ("a prefix", gpu_pod(one, envFrom=[{"prefix": "CGPU_", "configMapRef": {"name": "c"}}]), "envFrom.prefix: "),
            ("an init container's mount", gpu_pod(one, init=mounts("/etc/ld.so.preload")), path), ("last words", gpu_pod(one, terminationMessagePath="/usr/local/cosched-gpu/limits"), path)]
    rows += [(f"a mount at {p}", gpu_pod(one, **mounts("/data", p)), path) for p in (
        "/etc", "/usr/local/", "/usr", "/", "etc/ld.so.preload", "/etc//ld.so.preload", "/usr/local/x/../cosched-gpu", "/etc/ld.so.preload/.", "/usr/local/cosched-gpu/region")]
    for what, body, words in rows:
        status, reply = user.request("POST", pods, body)
        check(status == 422 and words in reply.get("message", ""), f"{what}: {status} {reply.get('message')}")
    for what, body in (("a share", gpu_pod({**one, CORE: "30"})), ("no compute", gpu_pod({**one, CORE: "0"})), ("no GPU", gpu_pod({"cpu": "1"}, **mounts("/etc"))),
                       ("near names", gpu_pod(one, **mounts("/etc/ld.so.preload.d", "/usr/local/cosched-gpu-tools", "/usr/local/lib/", "a..b", "/x/.y")))):
        allowed(user.request("POST", pods + "?dryRun=All", body), what)
    made = allowed(user.request("POST", pods, gpu_pod(one)), "a GPU pod")
    debug = f"{pods}/{made['metadata']['name']}/ephemeralcontainers"

    def add(name, **container):
        before = c.get(f"{pods}/{made['metadata']['name']}")
        before["spec"].setdefault("ephemeralContainers", []).append({"name": name, "image": "busybox:test", "terminationMessagePolicy": "File", **container})
        return user.request("PUT", debug, before)

    allowed(add("plain", **mounts("/data"), env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]), "a container for debugging")
    for what, container, words in (("a mount", mounts("/usr/local/cosched-gpu/region"), path), ("a mount above", mounts("/etc"), path),
                                   ("cards", {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}, "env: ")):
        status, reply = add("bad", **container)
        check(status == 422 and words in reply.get("message", ""), f"debugging with {what}: {status} {reply.get('message')}")
    allowed(add("later"), "one more beside it")
    allowed(user.request("DELETE", f"{pods}/{made['metadata']['name']}?gracePeriodSeconds=0"), "deleted")
