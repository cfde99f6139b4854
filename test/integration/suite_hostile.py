# SPDX-License-Identifier: Apache-2.0
"""Hostile tenants, where the API server, the scheduler and the webhook are: each case is an attack by an ordinary tenant, and a bystander whom it must not reach.

The numbers are those of docs/security.md's table. A tenant is a ServiceAccount with a Role in its own namespace (hostile_tenant.tenant); cosched-local knows one token
and no roles, and evaluates no admission policies: cases about these are for the real API server. suite_hostile_node has the attacks on the device plugin,
suite_hostile_tokens those with a stolen token, suite_hostile_fuzz those that nobody has thought of.
"""
import http.client
import json
import os
import resource
import socket
import subprocess

from harness import MERGE, STRATEGIC, Failed, case, check, check_equal, wait_until

from hostile_tenant import not_denied, plain, policies, post, tenant
from install_site import CHART, find_helm
from rights import HOME
from suite_cpus import cpu_node, cpuset_of, pinned
from suite_nodes import COUNT, MEM, PERCENT, T4, Nodes, gpu_node, memory_pod, wait_pod
from suite_webhook import limited, start_webhook
from suite_webhook_serve import ask, insecure, review

NUL, WHOLE = "a\0b", "nvidia.com/gpu"


def note(pod, **annotations):
    pod["metadata"]["annotations"].update(annotations)
    return pod


def with_annotation(key, value):
    return lambda pod: pod["metadata"]["annotations"].update({key: value})


def in_container(**what):
    return lambda pod: pod["spec"]["containers"][0].update(what)


def in_spec(**what):
    return lambda pod: pod["spec"].update(what)


def resources(limits, requests=None):
    return in_container(resources={"limits": limits, "requests": requests or {"cpu": "10m", "memory": "1Mi"}})


def claim_template(amount):
    return {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": amount}}}}}}


# Values that some parser of ours may refuse. The API server decides which of them become pods; those that must are marked.
POISON = {
    "! NUL in an annotation": with_annotation("note", NUL),
    "! NUL alone in an annotation": with_annotation("note", "\0"),
    "! NUL in a key of ours": with_annotation("cpuset-scheduler", "tr\0ue"),
    "! limits of 1e30 CPUs": resources({"cpu": "1e30"}),
    "! limits of 1e30 bytes": resources({"memory": "1e30"}),
    "limits of 9223372036854775807Ei": resources({"memory": "9223372036854775807Ei"}),
    "limits of 1e30 of a resource of nobody": resources({"cpu": "1", "ephemeral-storage": "1e30"}),
    "a request of a billionth of a CPU": resources({"cpu": "1"}, {"cpu": "1n"}),
    "a request of 0.0000001 bytes": resources({"memory": "1Gi"}, {"memory": "0.0000001"}),
    "a quantity of 200 digits": resources({"cpu": "1" * 200}),
    "NUL in a variable": in_container(env=[{"name": "X", "value": NUL}]),
    "NUL in a command": in_container(command=["sleep", NUL]),
    "NUL in an image": in_container(image="busybox:te\0st"),
    "NUL in the scheduler's name": in_spec(schedulerName="ack-co-scheduler\0x"),
    "NUL in a claim's name": in_spec(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": NUL}}]),
    "NUL in a volume of a cloud": in_spec(volumes=[{"name": "v", "rbd": {"monitors": [NUL], "image": NUL, "pool": NUL}}]),
    "NUL in a volume's driver": in_spec(volumes=[{"name": "v", "csi": {"driver": "d.io", "volumeAttributes": {"a": NUL}}}]),
    "NUL in an image volume": in_spec(volumes=[{"name": "v", "image": {"reference": NUL}}]),
    "a volume of 1e30 bytes": in_spec(volumes=[claim_template("1e30")]),
    "a memory volume of 1e30 bytes": in_spec(volumes=[{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1e30"}}]),
    "NUL in an owner": lambda pod: pod["metadata"].update(ownerReferences=[{"apiVersion": "v1", "kind": NUL, "name": NUL, "uid": NUL}]),
    "node affinity with a number that is none": in_spec(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "preference": {"matchExpressions": [{"key": "x", "operator": "Gt", "values": ["9" * 60]}]}}]}}),
    "node affinity with NUL": in_spec(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "preference": {"matchExpressions": [{"key": "x", "operator": "In", "values": [NUL]}]}}]}}),
    "annotations of 256 KiB": with_annotation("note", "x" * (255 << 10)),
    "3,000 annotations": lambda pod: pod["metadata"]["annotations"].update({f"k{i}": "x" for i in range(3000)}),
    "deep JSON in a key of ours": with_annotation("pod-group.scheduling.sigs.k8s.io/groups", "[" * 100000),
    "a gang of a number that is none": lambda pod: pod["metadata"]["labels"].update({
        "pod-group.scheduling.sigs.k8s.io/name": "g", "pod-group.scheduling.sigs.k8s.io/min-available": "9" * 60}),
    "a gang of -1": lambda pod: pod["metadata"]["labels"].update({
        "pod-group.scheduling.sigs.k8s.io/name": "g", "pod-group.scheduling.sigs.k8s.io/min-available": "-1"}),
    "a number of cards that is none": lambda pod: pod["metadata"]["labels"].update({COUNT: "9" * 60}),
    "a policy of CPUs that is none": with_annotation("scheduling.alibabacloud.com/numa-topology-spec", '{"numaTopologyPolicy":{"a":[1e999]}}'),
    "a deletion cost that is none": with_annotation("controller.kubernetes.io/pod-deletion-cost", "9" * 60),
    # What the fuzzer found.
    "NUL in a controller": lambda pod: pod["metadata"].update(ownerReferences=[{"apiVersion": "v1", "kind": "Job", "name": NUL, "uid": "u", "controller": True}]),
    "more cards than can be counted": resources({"aliyun.com/gpu": "9223372036854775808"}, {"aliyun.com/gpu": "9223372036854775808"}),
    "1e30 cards": resources({"nvidia.com/gpu": "1e30"}, {"nvidia.com/gpu": "1e30"}),
    "100 init containers": lambda pod: pod["spec"].update(initContainers=[{"name": f"i{i}", "image": "busybox:test"} for i in range(100)]),
}


def bystanders_are_bound(c, ns, nodes):
    """A pod for each node, {node: what was done to it}: which are not placed, and why."""
    for node in nodes:
        c.do("POST", f"/api/v1/namespaces/{ns}/pods", plain(f"by-{node}", requests={"cpu": "100m"}, nodeSelector={"pool": node}))
    left = set(nodes)

    def ask_all():
        left.difference_update({p["metadata"]["name"].removeprefix("by-") for p in c.pods(ns) if p["spec"].get("nodeName")})
        return not left

    try:
        wait_until(ask_all, "each bystander is placed", 20)
    except Failed as e:
        raise Failed("; ".join(f"{nodes[n]}: {(c.condition(ns, f'by-{n}') or {}).get('message')}" for n in sorted(left))) from e


@case("hostile_01_poison_on_a_node: a tenant's pod with a NUL or a mad number, put on a node by nodeName, does not close that node for anybody else")
def poison_on_a_node(suite):
    (evil, evil_ns), (good, good_ns) = tenant(suite), tenant(suite)
    suite.scheduler()
    nodes, accepted = {}, set()
    for i, (what, change) in enumerate(POISON.items()):
        node = f"h01-{i}"
        pod = plain(f"p{i}", requests={"cpu": "10m"}, nodeName=node)
        change(pod)
        status, reply = post(evil, evil_ns, pod, dry=True)
        if status != 201:
            known = what.startswith("!") and evil.target == "real"
            check(not known and status in (400, 422), f"{what}: {status} {json.dumps(reply)[:300]}")
            continue
        suite.node(node)
        evil.do("POST", f"/api/v1/namespaces/{evil_ns}/pods", pod)
        nodes[node] = what
        accepted.add(what)
    print(f"     {len(accepted)} of {len(POISON)} poisons are accepted", flush=True)
    bystanders_are_bound(good, good_ns, nodes)


@case("hostile_01_poison_later: a tenant's pod that is poisoned after it was placed goes on holding what it holds, and closes nothing")
def poison_later(suite):
    (evil, evil_ns), (good, good_ns) = tenant(suite), tenant(suite)
    suite.scheduler()
    node = suite.node("h01-later", cpu="4")
    evil.create_pod(evil_ns, "later", requests={"cpu": "3"}, node_selector={"pool": node})
    evil.wait_bound(evil_ns, "later")
    evil.do("PATCH", f"/api/v1/namespaces/{evil_ns}/pods/later", {"metadata": {"annotations": {"note": NUL}}}, MERGE)
    bystanders_are_bound(good, good_ns, {node: "a NUL by a patch"})
    good.create_pod(good_ns, "large", requests={"cpu": "2"}, node_selector={"pool": node})
    good.wait_refused(good_ns, "large", "nsufficient cpu|cpu")
    check_equal(good.node_of(good_ns, "large"), None, "what the poisoned pod holds is still held")


@case("hostile_01_poison_pending: pods with a NUL or a mad number that wait for the scheduler keep nobody waiting; what nobody reads hurts not even its own pod")
def poison_pending(suite):
    (evil, evil_ns), (good, good_ns) = tenant(suite), tenant(suite)
    suite.scheduler()
    node = suite.node("h01-pending", cpu="16", pods="200")
    for i, change in enumerate(POISON.values()):
        pod = plain(f"p{i}", requests={"cpu": "10m"}, nodeSelector={"pool": node})
        change(pod)
        post(evil, evil_ns, pod)
    bystanders_are_bound(good, good_ns, {node: "all poisons wait"})
    evil.wait_bound(evil_ns, "p0")
    if post(evil, evil_ns, plain("mad", limits={"cpu": "1e30"}, nodeSelector={"pool": node}))[0] == 201:
        evil.wait_refused(evil_ns, "mad", "cpu")


@case("hostile_01_poison_and_kubelet: a pod that wants 1e30 CPUs of a node by nodeName is turned away by its kubelet, and a bystander gets his card there")
def poison_and_kubelet(suite):
    (evil, evil_ns), (good, good_ns) = tenant(suite), tenant(suite)
    suite.scheduler()
    nodes = Nodes(suite, [gpu_node("h01-kubelet", "share", T4, 1)])
    nodes.offers("h01-kubelet", mem=15, count=1)
    for name, pod in (("many", plain("many", limits={"cpu": "1e30"}, nodeName="h01-kubelet")), ("nul", note(plain("nul", nodeName="h01-kubelet"), note=NUL)),
                      ("cards", plain("cards", limits={MEM: "9223372036854775807"}, nodeName="h01-kubelet"))):
        if post(evil, evil_ns, pod)[0] == 201:
            wait_until(lambda n=name: evil.pod(evil_ns, n)["status"].get("phase") in ("Failed", "Running"), f"the kubelet decides about {name}")
    memory_pod(good, good_ns, "bystander", 3, "h01-kubelet")
    wait_pod(good, good_ns, "bystander")


@case("hostile_01_large_objects: pods as large as the API server takes, which it shows six times as large, stop neither the scheduler nor a node's plugin, at work or at their start")
def large_objects(suite):
    (evil, evil_ns), (good, good_ns) = tenant(suite), tenant(suite)
    first = suite.scheduler()
    nodes = Nodes(suite, [gpu_node("h01-large", "share", T4, 1)])
    nodes.offers("h01-large", mem=15, count=1)
    for i in range(4):
        pod = plain(f"large{i}", **({"nodeName": "h01-large"} if i % 2 else {}))
        pod["spec"]["containers"][0]["env"] = [{"name": "X", "value": "<" * 1300000}]  # the API server's JSON has \u003c
        status, reply = post(evil, evil_ns, pod)
        check(status in (201, 413), f"{status} {json.dumps(reply)[:300]}")
    memory_pod(good, good_ns, "among", 3, "h01-large")
    wait_pod(good, good_ns, "among")
    suite.end_program(first)
    suite.scheduler(f"--max-list-bytes={'16MiB' if evil.target == 'real' else '4MiB'}")  # so that four such pods are too many for a page, as forty are by default
    plugin = nodes.plugin_pid("h01-large")
    os.kill(plugin, 15)
    wait_until(lambda: nodes.plugin_pid("h01-large") not in (None, plugin), "another plugin runs")
    memory_pod(good, good_ns, "after", 3, "h01-large")
    wait_pod(good, good_ns, "after")


# ---- 2 and 3: what admission refuses ----

def gpu_pod(limits=None, container=None, init=(), volumes=True, **spec):
    pod = plain("p", limits={MEM: "3"} if limits is None else limits, **spec)
    pod["spec"]["containers"][0].update(container or {})
    if init:
        pod["spec"]["initContainers"] = list(init)
    if volumes:
        pod["spec"]["volumes"] = [{"name": "v", "emptyDir": {}}]
    return pod


def mount(path, **more):
    return {"volumeMounts": [{"name": "v", "mountPath": path, **more}]}


def side(container, always=True):
    return {"name": "side", "image": "busybox:test", **container, **({"restartPolicy": "Always"} if always else {})}


PATHS = ("/etc/ld.so.preload", "/etc//ld.so.preload", "//etc/ld.so.preload", "/etc/./ld.so.preload", "/etc/ld.so.preload/", "/etc/ld.so.preload/.", "etc/ld.so.preload",
         "./etc/ld.so.preload", "/etc/x/../ld.so.preload", "/usr/../etc/ld.so.preload", "/../etc/ld.so.preload", "/usr/local/cosched-gpu", "/usr/local/cosched-gpu/",
         "/usr/local//cosched-gpu", "/usr/local/./cosched-gpu", "usr/local/cosched-gpu", "/usr/local/x/../cosched-gpu", "/usr/local/cosched-gpu/limits",
         "/usr/local/cosched-gpu//limits", "/usr/local/cosched-gpu/region",
         # Above it, in a volume that another container of the pod has too: who removes the file there takes the mount from all others.
         "/etc", "/etc/", "etc", "/usr", "/usr/local", "usr/local", "/usr/local/", "/", "/usr/local/cosched-gpu/libcosched-gpu.so", "/usr/local/cosched-gpu/x/../limits",
         # What no program reads, or another than it seems: it ends at the NUL for the runtime.
         "/etc/ld.so.preload\0x", "/data\0", "\0", "/etc/ld.so.preload\n", "/data/\x1b[2J", "/data\x7f")
VARIABLES = ("NVIDIA_VISIBLE_DEVICES", "ALIYUN_COM_GPU_MEM_IDX", "ALIYUN_COM_GPU_MEM_CONTAINER", "CGPU_DISABLE", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "CUDA_MPS_PIPE_DIRECTORY",
             "COSCHED_GPU_CORE_PERCENTAGE")


def forbidden():
    """{what: pod}: a share of a card, and a way out of it."""
    rows = {f"a mount at {path if path.isprintable() else repr(path)}": gpu_pod(container=mount(path)) for path in PATHS}
    rows["a mount of a sub-path"] = gpu_pod(container=mount("/etc/ld.so.preload", subPath="x", readOnly=True))
    rows["a mount in an init container"] = gpu_pod(init=[side({**mount("/etc/ld.so.preload"), "resources": {"limits": {MEM: "3"}}}, always=False)])
    rows["a mount in a sidecar"] = gpu_pod(init=[side({**mount("/usr/local/cosched-gpu"), "resources": {"limits": {MEM: "3"}}})])
    rows["a mount in a second container"] = gpu_pod()
    rows["a mount in a second container"]["spec"]["containers"].append({**side({**mount("/etc/ld.so.preload"), "resources": {"limits": {MEM: "1"}}}, always=False)})
    rows["a mount with compute and memory"] = gpu_pod(limits={MEM: "3", PERCENT: "20"}, container=mount("/etc/ld.so.preload"))
    rows["a block device over it"] = gpu_pod(container={"volumeDevices": [{"name": "v", "devicePath": "/usr/local/cosched-gpu/limits"}]})
    rows["a block device over it"]["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    rows["the container's last words at /etc/ld.so.preload"] = gpu_pod(container={"terminationMessagePath": "/etc/ld.so.preload"})
    rows["the container's last words over the limits"] = gpu_pod(container={"terminationMessagePath": "/usr/local/cosched-gpu/limits"})
    rows["a block device at a path with a NUL"] = gpu_pod(container={"volumeDevices": [{"name": "v", "devicePath": "/usr/local/cosched-gpu/limits\0"}]})
    rows["a block device at a path with a NUL"]["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    rows["the container's last words at a path with a NUL"] = gpu_pod(container={"terminationMessagePath": "/etc/ld.so.preload\0"})
    for name in VARIABLES:
        rows[f"variable {name}"] = gpu_pod(container={"env": [{"name": name, "value": "0"}]})
    rows["a variable in a sidecar"] = gpu_pod(init=[side({"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}], "resources": {"limits": {MEM: "3"}}})])
    rows["a variable from a field"] = gpu_pod(container={"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]})
    all_cards = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    rows["whole cards, and all the others by a variable"] = gpu_pod(limits={WHOLE: "1"}, container={"env": all_cards})
    rows["whole cards, and more in a container without any"] = gpu_pod(limits={WHOLE: "1"}, init=[side({"env": all_cards})])
    rows["whole cards by another scheduler"] = gpu_pod(limits={WHOLE: "1"}, container={"env": all_cards}, schedulerName="mine")
    rows["variables by a prefix"] = gpu_pod(container={"envFrom": [{"prefix": "ALIYUN_COM_GPU_", "configMapRef": {"name": "c"}}]})
    for what, pod in list(rows.items()):
        other = json.loads(json.dumps(pod))
        if what in ("a mount at /etc/ld.so.preload", "a mount at /usr/local/cosched-gpu", "variable NVIDIA_VISIBLE_DEVICES"):
            rows[f"{what}, opted out"] = note(json.loads(json.dumps(pod)), **{"cosched.io/inject": "false"})
            other["spec"]["schedulerName"] = "mine"
            rows[f"{what}, another scheduler"] = other
    return rows


def harmless():
    return {"near names": gpu_pod(container={"volumeMounts": [{"name": "v", "mountPath": p} for p in (
        "/etc/ld.so.preload.d", "/etc/config", "/usr/local/cosched-gpu-tools", "/usr/local/lib", "/data/etc/ld.so.preload")]}),
            "variables of its own": gpu_pod(container={"env": [{"name": "CUDA_VISIBLE_DEVICES", "value": "0"}, {"name": "PATH", "value": "/bin"}]}),
            "no GPU": plain("p"), "no GPU, and a variable": gpu_pod(limits={WHOLE: "0"}, container={"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}, schedulerName="mine"),
            "whole cards": gpu_pod(limits={WHOLE: "1"}, container={**mount("/etc"), "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}, {"name": "CUDA_MPS_X", "value": "1"}]},
                                   schedulerName="mine")}


def check_admission(evil, evil_ns, good, good_ns, rows, well):
    taken = not_denied(evil, evil_ns, rows)
    for what, pod in well.items():
        status, reply = post(good, good_ns, pod, dry=True)
        check_equal(status, 201, f"a bystander's pod ({what}) is taken: {json.dumps(reply)[:400]}")
    check(not taken, f"{len(taken)} of {len(rows)} are taken: {', '.join(taken)}")


@case("hostile_03_mounts_by_policy: with no webhook there, the API server itself refuses a GPU pod that mounts over the library or sets the plugin's variables", needs=("real",))
def mounts_by_policy(suite):
    policies(suite)
    check_admission(*tenant(suite), *tenant(suite), forbidden(), harmless())


@case("hostile_03_mounts_by_webhook: and so does the webhook, whatever the pod opts out of")
def mounts_by_webhook(suite):
    start_webhook(suite, shipped=suite.cluster.target == "real")
    check_admission(*tenant(suite, {"hook": "yes"}), *tenant(suite, {"hook": "yes"}), forbidden(), harmless())


@case("hostile_03_debug_container: a debug container in a GPU pod takes no cards and mounts nothing over the library, with no webhook there", needs=("real",))
def debug_container(suite):
    policies(suite)
    c, ns = tenant(suite)
    pod = gpu_pod(schedulerName="nobody")
    c.do("POST", f"/api/v1/namespaces/{ns}/pods", pod)
    rows = {"all cards": {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}, "a mount": mount("/etc/ld.so.preload"), "a mount above": mount("/etc")}
    left = set(rows)

    def ask_all():
        for what in list(left):
            status, reply = c.request("PATCH", f"/api/v1/namespaces/{ns}/pods/p/ephemeralcontainers?dryRun=All",
                                      {"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox:test", "targetContainerName": "main", **rows[what]}]}}, STRATEGIC)
            if status in (403, 422) and "cosched" in json.dumps(reply):
                left.discard(what)
        return not left

    try:
        wait_until(ask_all, "all are denied", 4, 0.5)
    except Failed as e:
        raise Failed(f"a debug container may have: {', '.join(sorted(left))}") from e
    status, reply = c.request("PATCH", f"/api/v1/namespaces/{ns}/pods/p/ephemeralcontainers?dryRun=All",
                              {"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox:test", **mount("/data")}]}}, STRATEGIC)
    check_equal(status, 200, f"an honest one: {json.dumps(reply)[:400]}")


@case("hostile_03_env_from: with policies.denyEnvFrom pods that ask for cards take no variables that admission does not see", needs=("real",))
def env_from(suite):
    c = suite.cluster
    path = os.path.join(suite.directory, f"env-from-{suite.number}.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(subprocess.run([find_helm(), "template", "cosched", CHART, "-n", HOME, "--kube-version", "1.36", "--show-only", "templates/gpu-pods.yaml",
                                "--set", "policies.denyEnvFrom=true"], capture_output=True, text=True, timeout=60, check=True).stdout)
    c.kubectl("apply", "-f", path)
    suite.stack.callback(c.kubectl, "delete", "-f", path, "--ignore-not-found")
    source = {"envFrom": [{"configMapRef": {"name": "c"}}]}
    rows = {"a share": gpu_pod(container=source), "a sidecar": gpu_pod(init=[side(source)]), "whole cards": gpu_pod(limits={WHOLE: "1"}, container=source, schedulerName="mine")}
    check_admission(*tenant(suite), *tenant(suite), rows, {**harmless(), "no GPU, from a ConfigMap": gpu_pod(limits={"cpu": "1"}, container=source)})


def compute_alone():
    """Amounts that the contract forbids, in each disguise."""
    side_by_side = gpu_pod(limits={MEM: "1", PERCENT: "5"})
    side_by_side["spec"]["containers"].append({**side({"resources": {"limits": {PERCENT: "30"}}}, always=False)})
    amounts = {"compute alone": gpu_pod(limits={PERCENT: "50"}), "compute alone, in a sidecar": gpu_pod(limits={}, init=[side({"resources": {"limits": {PERCENT: "50"}}})]),
               "compute alone, beside a container with memory": side_by_side, "compute in steps of 1": gpu_pod(limits={MEM: "3", PERCENT: "33"})}
    rows = {}
    for what, pod in amounts.items():
        rows[what] = pod
        rows[f"{what}, opted out"] = note(json.loads(json.dumps(pod)), **{"cosched.io/inject": "false"})
        rows[f"{what}, another scheduler"] = json.loads(json.dumps(pod))
        rows[f"{what}, another scheduler"]["spec"]["schedulerName"] = "mine"
        rows[f"{what}, on a node by name"] = json.loads(json.dumps(pod))
        rows[f"{what}, on a node by name"]["spec"].update(schedulerName="mine", nodeName="some-node")
    return rows


@case("hostile_02_compute_alone_by_webhook: amounts of GPU that the contract forbids are refused, whatever the pod opts out of")
def compute_alone_by_webhook(suite):
    start_webhook(suite, shipped=suite.cluster.target == "real")
    check_admission(*tenant(suite, {"hook": "yes"}), *tenant(suite, {"hook": "yes"}), compute_alone(),
                    {"compute and memory": gpu_pod(limits={MEM: "3", PERCENT: "30"}), "opted out": note(gpu_pod(), **{"cosched.io/inject": "false"})})


# ---- 4: the webhook's connections ----

class Flood:
    """Connections from a tenant's addresses. Loopback has many: his are not the API server's."""

    def __init__(self, suite, port, number, addresses, first=b""):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 16384)), hard))
        self.port, self.first, self.addresses, self.socks, self.refused = port, first, addresses, [], 0
        suite.stack.callback(self.close)
        for i in range(number):
            self.open(addresses[i % len(addresses)])

    def open(self, address):
        try:
            s = socket.create_connection(("127.0.0.1", self.port), timeout=2, source_address=(address, 0))
            self.socks.append(s)
            if self.first:
                s.sendall(self.first)
        except OSError:
            self.refused += 1

    def close(self):
        for s in self.socks:
            s.close()


CLIENT_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 64  # the rest never comes


@case("hostile_04_bare_connections: 1,100 connections that say nothing, or half a handshake, from one address or from many, and every review is still answered")
def bare_connections(suite):
    p, ns = start_webhook(suite)
    good, good_ns = tenant(suite, {"hook": "yes"})
    check_equal(ask(p.https)[0], 200, "a review before")
    lost = []
    for what, addresses, first in (("bare, one address", ["127.0.0.66"], b""), ("half a handshake, one address", ["127.0.0.67"], CLIENT_HELLO),
                                   ("bare, fifty addresses", [f"127.0.1.{i}" for i in range(1, 51)], b"")):
        flood = Flood(suite, p.https, 1100, addresses, first)
        for i in range(5):
            try:
                check_equal(ask(p.https)[0], 200, "a review on a new connection")
                status, reply = post(good, good_ns, limited(MEM, 3), dry=True)
                check_equal((status, reply["spec"]["schedulerName"] if status == 201 else reply.get("message")), (201, "ack-co-scheduler"), "the API server's own review")
            except Exception as e:  # pylint: disable=broad-except
                lost.append(f"{what}: review {i}: {e!r}"[:200])
                break
        flood.close()
    check(not lost, "; ".join(lost))
    check_equal(post(good, good_ns, limited(MEM, 3), dry=True)[0], 201, f"a review after, in {ns}")
    p.stop()


@case("hostile_04_kept_connections: connections that the API server keeps are served among a tenant's, and none is reset")
def kept_connections(suite):
    p, _ns = start_webhook(suite)
    kept = [http.client.HTTPSConnection("127.0.0.1", p.https, context=insecure(), timeout=10) for _ in range(20)]
    body = review(limited(MEM, 3))
    for conn in kept:
        check_equal(ask(p.https, body, conn=conn)[0], 200, "a review")
        suite.stack.callback(conn.close)
    ports = [conn.sock.getsockname()[1] for conn in kept]
    Flood(suite, p.https, 1100, ["127.0.0.66"])
    for conn in kept:
        check_equal(ask(p.https, body, conn=conn)[0], 200, "the next one on the same connection")
    check_equal([conn.sock.getsockname()[1] for conn in kept], ports, "no connection had to be made again")
    p.stop()


# ---- 10: CPUs ----

@case("hostile_10_cpuset_shared: a stranger who says cpuset-shared gets no CPU of a pod that does not; two who both say so share")
def cpuset_shared(suite):
    (evil, evil_ns), (good, good_ns) = tenant(suite), tenant(suite)
    suite.scheduler()
    node = cpu_node(suite, "h10")
    low = {"requests": {"cpu": "1"}, "node_selector": {"pool": node}}
    pin, shared = {"cpuset-scheduler": "true"}, {"cpuset-scheduler": "true", "cosched.io/cpuset-shared": "true"}
    pinned(good, good_ns, "bystander", node, 24)
    good.wait_bound(good_ns, "bystander")
    own = cpuset_of(good, good_ns, "bystander")
    evil.create_pod(evil_ns, "one", limits={"cpu": "8"}, annotations=shared, **low)
    evil.wait_bound(evil_ns, "one")
    evil.create_pod(evil_ns, "two", limits={"cpu": "8"}, annotations=shared, **low)
    evil.wait_bound(evil_ns, "two")
    cpus = {name: {int(cpu) for numa in cpuset_of(c, ns, name)["main"].values() for cpu in numa["elems"]}
            for c, ns, name in ((good, good_ns, "bystander"), (evil, evil_ns, "one"), (evil, evil_ns, "two"))}
    check(not cpus["bystander"] & (cpus["one"] | cpus["two"]), f"a stranger is on the bystander's CPUs: {cpus}")
    evil.create_pod(evil_ns, "nine", limits={"cpu": "9"}, annotations=shared, **low)
    evil.wait_refused(evil_ns, "nine", "CPU")
    # And the other way round: who wants CPUs of his own gets none that others share.
    evil.create_pod(evil_ns, "own", limits={"cpu": "4"}, annotations=pin, **low)
    evil.wait_refused(evil_ns, "own", "CPU")
    check_equal(cpuset_of(good, good_ns, "bystander"), own, "the bystander's CPUs")


@case("hostile_10_forged_mirror: nobody but a kubelet makes a static pod's mirror, which names the cgroup that the pinner writes to with --shared-pool", needs=("real",))
def forged_mirror(suite):
    c, ns = tenant(suite)
    forged = note(plain("m", nodeName="some-node", schedulerName="nobody"), **{"kubernetes.io/config.mirror": "a-static-pods-uid", "kubernetes.io/config.source": "file"})
    check_equal(post(c, ns, forged, dry=True)[0], 201, "without the policy the API server takes it")
    policies(suite)

    def denied():
        status, reply = post(c, ns, forged, dry=True)
        return status == 403 and "is written by a kubelet" in json.dumps(reply)

    wait_until(denied, "it is denied", 4, 0.5)
    check_equal(post(c, ns, note(plain("p", schedulerName="nobody"), **{"kubernetes.io/config.source": "api"}), dry=True)[0], 201, "a pod without it")


# ---- 12: the contract ----

@case("hostile_12_sidecar_cards: GPU memory in a sidecar goes with two cards, as the contract says; in an ordinary init container it does not")
def sidecar_cards(suite):
    c, ns = tenant(suite)
    suite.scheduler()
    nodes = Nodes(suite, [gpu_node("h12-cards", "share", T4, 2)])
    nodes.offers("h12-cards", mem=30, count=2)
    more = {"labels": {COUNT: "2"}, "node_selector": {"kubernetes.io/hostname": "h12-cards"}}
    c.create_pod(ns, "sidecar", limits={MEM: "4"}, initContainers=[side({"imagePullPolicy": "Never", "command": ["sleep", "3600"], "resources": {"limits": {MEM: "2"}}})], **more)
    c.create_pod(ns, "init", limits={MEM: "4"}, initContainers=[side({"imagePullPolicy": "Never", "command": ["true"], "resources": {"limits": {MEM: "2"}}}, always=False)], **more)
    c.wait_refused(ns, "init", "init container")
    pod = wait_pod(c, ns, "sidecar")
    claim = json.loads(pod["metadata"]["annotations"]["scheduler.framework.gpushare.allocation"])
    sums = {}
    for share in claim.values():
        check_equal(len(share), 2, f"each container has two cards: {claim}")
        for card, gib in share.items():
            sums[card] = sums.get(card, 0) + gib
    check_equal(sorted(sums.values()), [3, 3], f"3 GiB of each card: {claim}")


@case("hostile_12_one_list: the policy denies exactly the keys that the webhook removes: result keys, and no others that only look like them", needs=("real",))
def one_list(suite):
    start_webhook(suite)
    hooked, hooked_ns = tenant(suite, {"hook": "yes"})
    keys = ["scheduler.framework.gpushare.allocation", "scheduler.framework.gpushare.assume-time", "scheduler.framework.gpushare.assigned", "scheduler.framework.gpushare.note",
            "gpushare.alibabacloud.com/core-percentage", "gpushare.alibabacloud.com/note", "ALIYUN_COM_GPU_MEM_IDX", "ALIYUN_COM_GPU_MEM_DEV", "ALIYUN_COM_GPU_MEM_POD",
            "ALIYUN_COM_GPU_MEM_ASSIGNED", "ALIYUN_COM_GPU_MEM_ASSUME_TIME", "ALIYUN_COM_GPU_MEM_NOTE", "topology.kubernetes.io/gpu-group", "topology.kubernetes.io/gpu-visible",
            "topology.kubernetes.io/gpu-note", "cpuset", "cpuset-note", "cosched.io/cpuset-applied", "cosched.io/gpu-confirmed", "cosched.io/note", "cosched.io/inject",
            "cosched.io/cpuset-shared", "cosched.io/inject-note", "cosched.io/gpu-inventory", "cosched.io/cpu-topology"]
    removed = {}
    for key in keys:
        status, reply = post(hooked, hooked_ns, note(plain("p"), **{key: "true"}), dry=True)
        check_equal(status, 201, f"{key}: {json.dumps(reply)[:300]}")
        removed[key] = key not in reply["metadata"].get("annotations", {})
    policies(suite)
    c, ns = tenant(suite)
    wait_until(lambda: post(c, ns, note(plain("p"), cpuset="{}"), dry=True)[0] in (403, 422), "the policy is in force")
    denied = {key: post(c, ns, note(plain("p"), **{key: "true"}), dry=True)[0] != 201 for key in keys}
    differ = [f"{key}: the webhook {'removes' if removed[key] else 'leaves'} it, the policy {'denies' if denied[key] else 'allows'} it" for key in keys if removed[key] != denied[key]]
    check(not differ, "; ".join(differ))
    check(all(removed[k] for k in keys if k in ("cpuset", "cosched.io/gpu-confirmed", "ALIYUN_COM_GPU_MEM_IDX")) and not removed["cosched.io/inject"], removed)
