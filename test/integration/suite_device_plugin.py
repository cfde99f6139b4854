# SPDX-License-Identifier: Apache-2.0
"""The device plugin with a real kubelet and real containers; the cards are those of the fake NVML library."""
import json
import os
import re
import shutil
import socket

from harness import BUILD, MERGE, case, check, check_equal, free_port, http_get, temporary_directory, wait_until

MODE = "ack.node.gpu.schedule"
TOLERATE_ALL = [{"operator": "Exists"}]


def set_mode(c, mode):
    c.do("PATCH", f"/api/v1/nodes/{c.env['K8S_NODE']}", {"metadata": {"labels": {MODE: mode}}}, MERGE)


def allocatable(c, resource):
    return c.get(f"/api/v1/nodes/{c.env['K8S_NODE']}")["status"]["allocatable"].get(resource)


def advertised(p, resource):
    """Healthy ids that the plugin offers to the kubelet at this moment."""
    found = re.search(rf'^cosched_device_plugin_advertised_ids{{resource="{re.escape(resource)}"}} (\d+)$', http_get(p.port, "/metrics")[1], re.M)
    return int(found[1]) if found else 0


def start_plugin(suite, *args, fake=None, mode="share", under=()):
    """The plugin on the real node, ready and in that mode: a case before this one may have left the node in another, with pods."""
    c = suite.cluster
    port = free_port()
    state = os.path.join(suite.directory, "plugin-state")
    env = {"COSCHED_FAKE_NVML": fake} if fake else {}
    p = suite.program("cosched-device-plugin", f"--kubeconfig={c.kubeconfig}", f"--node-name={c.env['K8S_NODE']}",
                      f"--nvml-library={BUILD}/lib/libnvidia-ml.so.1", f"--device-plugin-dir={c.env['KUBELET_DEVICE_PLUGIN_DIR']}",
                      f"--pod-resources-socket={c.env['KUBELET_POD_RESOURCES_SOCKET']}", f"--state-dir={state}", "--http-address=127.0.0.1",
                      f"--http-port={port}", "--scan-interval=500ms", *args, env=env, under=under)
    p.port = port
    if mode:
        set_mode(c, mode)
        wait_until(lambda: http_get(port, "/readyz")[0] == 200, "the plugin is ready")
        percent = 200 if mode == "core_mem" else 0
        wait_until(lambda: (advertised(p, "aliyun.com/gpu-mem"), advertised(p, "aliyun.com/gpu-core.percentage")) == (30, percent),
                   f"the plugin offers what mode {mode} has")
    return p


def gpu_pod(c, ns, name, gib, node=None, **more):
    container = {"name": "main", "image": "busybox:test", "imagePullPolicy": "Never", "command": ["sh", "-c", "env; sleep 3600"],
                 "resources": {"limits": {"aliyun.com/gpu-mem": str(gib)}}}
    spec = {"containers": [container], "hostNetwork": True, "terminationGracePeriodSeconds": 0, "tolerations": TOLERATE_ALL,
            "nodeSelector": {"kubernetes.io/hostname": c.env["K8S_NODE"]}, "schedulerName": "ack-co-scheduler", **more}
    if node:
        spec["nodeName"] = node
        del spec["nodeSelector"]
    return c.do("POST", f"/api/v1/namespaces/{ns}/pods", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})


def wait_running(c, ns, name, seconds=60):
    def ask():
        status = c.pod(ns, name)["status"]
        if status.get("phase") == "Failed":
            raise AssertionError(f"{name} failed: {status.get('reason')}: {status.get('message')}")
        return status.get("phase") == "Running"

    wait_until(ask, f"pod {name} runs", seconds)


def environment(c, ns, name, container="main"):
    """What the container printed. A kubelet that has just restarted knows nothing of its pods' logs for a moment."""
    text = wait_until(lambda: c.kubectl("logs", "-n", ns, name, "-c", container), f"the log of {name} can be read")
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


@case("it registers with the real kubelet: node allocatable shows 30 GiB of GPU memory, and the inventory is published", needs={"kubelet"})
def registers(suite):
    c = suite.cluster
    p = start_plugin(suite)
    wait_until(lambda: allocatable(c, "aliyun.com/gpu-mem") == "30", "allocatable aliyun.com/gpu-mem is 30")
    wait_until(lambda: allocatable(c, "aliyun.com/gpu-count") == "2", "allocatable aliyun.com/gpu-count is 2")
    node = wait_until(lambda: (lambda n: n if "cosched.io/gpu-inventory" in n["metadata"]["annotations"] else None)(
        c.get(f"/api/v1/nodes/{c.env['K8S_NODE']}")), "the inventory annotation is there")
    inventory = json.loads(node["metadata"]["annotations"]["cosched.io/gpu-inventory"])
    check_equal([card["mib"] for card in inventory["cards"]], [16160, 16160], "cards")
    check_equal(inventory["mode"], "share", "mode")
    labels = node["metadata"]["labels"]
    check_equal((labels.get("aliyun.accelerator/nvidia_count"), labels.get("aliyun.accelerator/nvidia_mem")), ("2", "16160MiB"), "labels")
    check_equal(http_get(p.port, "/healthz")[0], 200, "/healthz")
    p.stop()


@case("each container gets the card that its pod's claim names, with the environment of the contract", needs={"kubelet"})
def allocates(suite):
    c, ns = suite.cluster, suite.namespace()
    suite.scheduler()
    p = start_plugin(suite)
    wait_until(lambda: allocatable(c, "aliyun.com/gpu-mem") == "30", "allocatable")
    names = [f"p{i}" for i in range(6)]  # equal pods, more than one card holds
    for name in names:
        gpu_pod(c, ns, name, 4)
    cards = json.loads(c.get(f"/api/v1/nodes/{c.env['K8S_NODE']}")["metadata"]["annotations"]["cosched.io/gpu-inventory"])["cards"]
    uuid_of = {str(card["i"]): card["uuid"] for card in cards}
    used = {}
    for name in names:
        wait_running(c, ns, name)
        annotations = c.pod(ns, name)["metadata"]["annotations"]
        (card, gib), = json.loads(annotations["scheduler.framework.gpushare.allocation"])["0"].items()
        used[card] = used.get(card, 0) + gib
        env = environment(c, ns, name)
        expected = {"NVIDIA_VISIBLE_DEVICES": uuid_of[card], "ALIYUN_COM_GPU_MEM_IDX": card, "ALIYUN_COM_GPU_MEM_POD": "4",
                    "ALIYUN_COM_GPU_MEM_CONTAINER": "4", "ALIYUN_COM_GPU_MEM_DEV": "15", "CGPU_DISABLE": "true"}
        check_equal({k: env.get(k) for k in expected}, expected, f"environment of {name}")
        wait_until(lambda n=name: c.pod(ns, n)["metadata"]["annotations"].get("scheduler.framework.gpushare.assigned") == "true", "assigned")
    check(max(used.values()) <= 15 and sum(used.values()) == 24, f"GiB by card: {used}")
    p.stop()


@case("a burst of equal pods: none is lost to the kubelet's limit on pod resources calls, each is marked as assigned", needs={"kubelet"})
def burst(suite):
    c, ns = suite.cluster, suite.namespace()
    p = start_plugin(suite)
    wait_until(lambda: allocatable(c, "aliyun.com/gpu-mem") == "30", "allocatable")
    names = [f"b{i}" for i in range(28)]
    for name in names:
        gpu_pod(c, ns, name, 1)
    suite.scheduler()  # binds them all within a moment
    for name in names:
        wait_running(c, ns, name, 120)
        wait_until(lambda n=name: c.pod(ns, n)["metadata"]["annotations"].get("scheduler.framework.gpushare.assigned") == "true", f"{name} assigned")
    check("unverified" not in p.output(), "a container started unverified")
    p.stop()


@case("pods whose init containers alone ask for GPU memory do not stand in each other's way, and each container sees its own amounts",
      needs={"kubelet"})
def init_containers(suite):
    c, ns = suite.cluster, suite.namespace()
    suite.scheduler()
    p = start_plugin(suite, "--isolation=none", mode="core_mem")
    wait_until(lambda: allocatable(c, "aliyun.com/gpu-core.percentage") == "200", "allocatable")

    def container(name, gib, percent, command):
        limits = {"aliyun.com/gpu-mem": str(gib), "aliyun.com/gpu-core.percentage": str(percent)} if gib else {}
        return {"name": name, "image": "busybox:test", "imagePullPolicy": "Never", "command": ["sh", "-c", command], "resources": {"limits": limits}}

    for i in range(3):
        gpu_pod(c, ns, f"init{i}", 0, initContainers=[container("first", 2, 10, "env; sleep 2")], containers=[container("main", 0, 0, "sleep 3600")])
    gpu_pod(c, ns, "both", 0, initContainers=[container("first", 3, 10, "env"), container("second", 3, 20, "env")],
            containers=[container("main", 3, 15, "env; sleep 3600")])
    for name in ("init0", "init1", "init2", "both"):
        wait_running(c, ns, name)
    for name, inside, gib, percent in (("init0", "first", "2", "10"), ("both", "first", "3", "10"), ("both", "second", "3", "20"), ("both", "main", "3", "15")):
        env = environment(c, ns, name, inside)
        got = {k: env.get(k) for k in ("ALIYUN_COM_GPU_MEM_CONTAINER", "COSCHED_GPU_CORE_PERCENTAGE", "ALIYUN_COM_GPU_MEM_IDX")}
        card, = {card for share in json.loads(c.pod(ns, name)["metadata"]["annotations"]["scheduler.framework.gpushare.allocation"]).values() for card in share}
        check_equal(got, {"ALIYUN_COM_GPU_MEM_CONTAINER": gib, "COSCHED_GPU_CORE_PERCENTAGE": percent, "ALIYUN_COM_GPU_MEM_IDX": card}, f"{name}/{inside}")
    p.stop()


@case("a pod that did not come through the scheduler gets a card by the node's policy and is recorded; one that fits nowhere is refused with a sentence",
      needs={"kubelet"})
def foreign(suite):
    c, ns = suite.cluster, suite.namespace()
    start_plugin(suite)
    wait_until(lambda: allocatable(c, "aliyun.com/gpu-mem") == "30", "allocatable")
    gpu_pod(c, ns, "stray", 3, node=c.env["K8S_NODE"])
    wait_running(c, ns, "stray")
    annotations = wait_until(lambda: (lambda a: a if a.get("scheduler.framework.gpushare.assigned") == "true" and
                                      "scheduler.framework.gpushare.allocation" in a else None)(c.pod(ns, "stray")["metadata"].get("annotations", {})),
                             "the claim is recorded, and in use")
    (card, gib), = json.loads(annotations["scheduler.framework.gpushare.allocation"])["0"].items()
    check_equal((environment(c, ns, "stray")["ALIYUN_COM_GPU_MEM_IDX"], gib), (card, 3), "card in the environment, GiB in the annotation")
    gpu_pod(c, ns, "large", 16, node=c.env["K8S_NODE"])
    status = wait_until(lambda: (lambda s: s if s.get("phase") == "Failed" else None)(c.pod(ns, "large")["status"]), "the kubelet rejects it")
    check(re.search(r"no card has 16 GiB free beside what others were promised", status.get("message", "")), status)


@case("the kubelet restarts, the plugin restarts: allocatable comes back and pods keep their cards", needs={"kubelet", "alone"})
def restarts(suite):
    c, ns = suite.cluster, suite.namespace()
    suite.scheduler()
    p = start_plugin(suite)
    wait_until(lambda: allocatable(c, "aliyun.com/gpu-mem") == "30", "allocatable")
    gpu_pod(c, ns, "before", 10)
    wait_running(c, ns, "before")
    registered = lambda: len(re.findall("registered with the kubelet.*aliyun.com/gpu-mem", p.output()))
    earlier = registered()
    c.k8s("stop", "kubelet")
    c.k8s("start", "kubelet")
    # The Node still says 30 from before: until the plugin has registered again the new kubelet has no devices, and refuses pods.
    wait_until(lambda: registered() > earlier, "the plugin registers with the new kubelet", 60)
    wait_until(lambda: allocatable(c, "aliyun.com/gpu-mem") == "30", "allocatable after the kubelet's restart", 60)
    gpu_pod(c, ns, "between", 10)
    wait_running(c, ns, "between")
    p.stop()
    wait_until(lambda: allocatable(c, "aliyun.com/gpu-mem") == "0", "a vanished plugin shows 0")
    p = start_plugin(suite)
    wait_until(lambda: allocatable(c, "aliyun.com/gpu-mem") == "30", "allocatable after the plugin's restart", 60)
    gpu_pod(c, ns, "after", 5)
    wait_running(c, ns, "after")
    cards = {name: environment(c, ns, name)["ALIYUN_COM_GPU_MEM_IDX"] for name in ("before", "between", "after")}
    check(cards["before"] != cards["between"], f"two pods of 10 GiB on one card of 15 GiB: {cards}")
    p.stop()


@case("the mode label decides what is offered; the modes that were left show 0; removing the label changes nothing", needs={"kubelet", "alone"})
def modes(suite):
    c = suite.cluster
    p = start_plugin(suite, "--isolation=none")
    for mode, offered in (("share", {"aliyun.com/gpu-mem": "30"}), ("core_mem", {"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-core.percentage": "200"}),
                          ("topology", {"aliyun.com/gpu": "2"}), ("default", {"nvidia.com/gpu": "2"})):
        set_mode(c, mode)
        for resource in ("aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage", "aliyun.com/gpu", "nvidia.com/gpu"):
            wait_until(lambda r=resource, o=offered: (allocatable(c, r) or "0") == o.get(r, "0"), f"{mode}: {resource} is {offered.get(resource, '0')}")
        wait_until(lambda o=offered: (allocatable(c, "aliyun.com/gpu-count") or "0") == ("2" if "aliyun.com/gpu-mem" in o else "0"), f"{mode}: gpu-count")
    set_mode(c, "nonsense")
    wait_until(lambda: [e for e in c.get("/api/v1/namespaces/default/events")["items"] if "nonsense" in e["message"] and "topology" in e["message"]],
               "an Event names the legal modes")
    set_mode(c, "share")
    wait_until(lambda: allocatable(c, "aliyun.com/gpu-mem") == "30", "share again")
    set_mode(c, None)
    p.stop()
    p = start_plugin(suite, "--isolation=none", mode=None)
    wait_until(lambda: allocatable(c, "aliyun.com/gpu-mem") == "30", "without the label the last mode stays, over a restart as well", 60)
    set_mode(c, "default")
    wait_until(lambda: allocatable(c, "aliyun.com/gpu-mem") == "0" and allocatable(c, "nvidia.com/gpu") == "2", "default again")
    p.stop()


@case("a path of the kubelet's that cannot be is an error at the start that names the option")
def bad_paths(suite):
    for option, value in (("--device-plugin-dir", "plugins"), ("--pod-resources-socket", "kubelet.sock"), ("--kubelet-dir", "kubelet"),
                          ("--kubelet-dir", "/" + 100 * "x")):
        p = suite.program("cosched-device-plugin", f"--kubeconfig={suite.cluster.kubeconfig}", "--node-name=n1", f"{option}={value}")
        p.may_end = True
        check_equal(p.process.wait(10), 2, f"{option}={value}: exit code")
        check(f"{option}: must be absolute" in p.output(), p.output())


@case("a kubelet that hangs, in Register and in pod resources, does not keep the plugin from ending within 2 s")
def hanging_kubelet(suite):
    c = suite.cluster
    node = suite.node("plugin-hang", labels={MODE: "core_mem"})
    directory = temporary_directory("cosched-kubelet-")
    suite.stack.callback(shutil.rmtree, directory)
    sockets = []
    for folder in ("device-plugins", "pod-resources"):
        os.mkdir(os.path.join(directory, folder))
        s = socket.socket(socket.AF_UNIX)
        s.bind(os.path.join(directory, folder, "kubelet.sock"))
        s.listen(64)  # and nobody ever accepts
        sockets.append(s)
    p = suite.program("cosched-device-plugin", f"--kubeconfig={c.kubeconfig}", f"--node-name={node}",
                      f"--nvml-library={BUILD}/lib/libnvidia-ml.so.1", f"--kubelet-dir={directory}", f"--state-dir={directory}/state",
                      "--isolation=none", "--cpu-topology=off", "--http-address=127.0.0.1", f"--http-port={free_port()}")
    p.wait_output("not registered yet")
    p.stop(2)  # or it fails
    for s in sockets:
        s.close()


@case("no NVML library on the machine is one clear error", needs={"kubelet"})
def no_library(suite):
    p = start_plugin(suite, "--nvml-library=libno-such-nvml.so.1", mode=None)
    wait_until(lambda: "libno-such-nvml.so.1" in p.output(), "the log names the library")
    p.check_clean()
