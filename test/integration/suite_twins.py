# SPDX-License-Identifier: Apache-2.0
"""Twins: many pods that ask for the same, so that nothing but exact identity tells them apart.

The kubelet sends ids and no names; a plugin that matches by size swaps equal pods, and one that looks at the first container never matches a pod with two. Here pods
of four shapes, all of the same share, come in shuffled bursts to nodes with four cards. For every container the card in its environment, in its pod's annotation, in
the kubelet's pod resources list and in its checkpoint must be one and the same.

COSCHED_TWIN_ROUNDS and COSCHED_TWIN_PODS make it larger, COSCHED_SEED repeats it.
"""
import concurrent.futures
import json
import os
import random
import subprocess

from harness import BUILD, Failed, case, check, check_equal, free_port, http_get, wait_until
from suite_device_plugin import TOLERATE_ALL, environment, set_mode
from suite_nodes import CLAIM, MEM, PERCENT, Nodes, gpu_node

CORE = "gpushare.alibabacloud.com/core-percentage"
ASSIGNED = "scheduler.framework.gpushare.assigned"
# Init containers, containers.
SHAPES = ((0, 1), (0, 1), (0, 2), (1, 1), (2, 2))
A100 = {"model": "A100-SXM4-80GB", "mib": 81920}


def twin(name, node, shape, gib, percent, command):
    limits = {MEM: str(gib), **({PERCENT: str(percent)} if percent else {})}
    container = lambda n, script: {"name": n, "image": "busybox:test", "imagePullPolicy": "Never", "command": ["sh", "-c", script],
                                   "resources": {"limits": dict(limits)}}
    spec = {"initContainers": [container(f"i{k}", "env") for k in range(shape[0])], "containers": [container(f"c{k}", command) for k in range(shape[1])],
            "nodeSelector": {"kubernetes.io/hostname": node}, "terminationGracePeriodSeconds": 0, "schedulerName": "ack-co-scheduler",
            "tolerations": TOLERATE_ALL, "hostNetwork": True}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def together(jobs):
    """All jobs, a few at a time, in this order."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(*job) for job in jobs]:
            done.result()


def listed(socket):
    done = subprocess.run([os.path.join(BUILD, "test/integration/podresources_list"), socket], capture_output=True, text=True, timeout=30, check=False)
    check_equal(done.returncode, 0, done.stderr)
    return json.loads(done.stdout)


def checkpoint(directory):
    """(uid, container, resource) → ids."""
    with open(os.path.join(directory, "kubelet_internal_checkpoint"), encoding="utf-8") as f:
        entries = json.load(f)["Data"]["PodDeviceEntries"] or []
    return {(e["PodUID"], e["ContainerName"], e["ResourceName"]): sorted(i for ids in e["DeviceIDs"].values() for i in ids) for e in entries}


def check_twin(pod, gib, percent, uuids, env_of, held, books):
    """Returns how many containers were compared."""
    meta, spec = pod["metadata"], pod["spec"]
    where = f"pod {meta['name']}"
    claims = {r: json.loads(meta["annotations"][key]) for r, key, n in ((MEM, CLAIM, gib), (PERCENT, CORE, percent)) if n}
    cards = {card for shares in claims[MEM].values() for card in shares}
    if spec.get("initContainers"):
        check_equal(len(cards), 1, f"{where}: cards of a pod with init containers")
    both = [(len(spec["containers"]) + k, c) for k, c in enumerate(spec.get("initContainers", []))] + list(enumerate(spec["containers"]))
    for index, container in both:
        name = container["name"]
        init = index >= len(spec["containers"])
        card = next(iter(cards)) if init else None
        for resource, amount in ((MEM, gib), (PERCENT, percent)):
            if not amount:
                continue
            if not init:
                (claimed, got), = claims[resource][str(index)].items()
                check_equal(got, amount, f"{where}/{name}: {resource} in the annotation")
                card = card or claimed
                check_equal(claimed, card, f"{where}/{name}: card of {resource}, beside the other resource's")
                ids = held[f"{meta['namespace']}/{meta['name']}"][name].get(resource, [])
                check_equal((len(ids), {i.rsplit("-_-", 1)[0] for i in ids}), (amount, {uuids[card]}), f"{where}/{name}: {resource} in pod resources")
            ids = books[(meta["uid"], name, resource)]
            check_equal((len(ids), {i.rsplit("-_-", 1)[0] for i in ids}), (amount, {uuids[card]}), f"{where}/{name}: {resource} in the checkpoint")
        env = env_of(pod, name)
        check_equal((env.get("ALIYUN_COM_GPU_MEM_IDX"), env.get("NVIDIA_VISIBLE_DEVICES"), env.get("ALIYUN_COM_GPU_MEM_CONTAINER")),
                    (card, uuids[card], str(gib)), f"{where}/{name}: environment")
    return len(both)


def play(c, ns, rounds, nodes, env_of, places, draw, complaints, command="env; sleep 3600", seconds=300):
    """nodes: name → (pods of a round, GiB, percent, uuids). places: name → (pod resources socket, plugin directory). complaints: what the plugins warn of, for a failure."""
    seen = 0
    for number in range(rounds):
        made = []
        for node, (count, gib, percent, _uuids) in nodes.items():
            made += [(node, twin(f"r{number}-{node}-{i}", node, draw.choice(SHAPES), gib, percent, command)) for i in range(count)]
        draw.shuffle(made)
        together([(c.do, "POST", f"/api/v1/namespaces/{ns}/pods", pod) for _node, pod in made])

        def running():
            pods = c.pods(ns)
            failed = [(p["metadata"]["name"], p["status"].get("message")) for p in pods if p["status"].get("phase") == "Failed"]
            if failed:
                raise AssertionError(f"round {number}: rejected: {failed}")
            mine = [p for p in pods if p["metadata"]["name"].startswith(f"r{number}-")]
            late = [p["metadata"]["name"] for p in mine if p["status"].get("phase") != "Running"]
            idle = [p["metadata"]["name"] for p in mine if p["status"].get("phase") == "Running" and p["metadata"]["annotations"].get(ASSIGNED) != "true"]
            if late or idle or len(mine) != len(made):
                raise KeyError(f"of {len(made)}, {len(late)} do not run yet: {late[:5]}; {len(idle)} run and are not assigned: {idle[:5]}")
            return mine

        try:
            pods = wait_until(running, f"round {number}: all twins run and are assigned", seconds)
        except Failed as e:
            raise Failed(f"{e}; {complaints()}") from e
        books = {node: (listed(places[node][0]), checkpoint(places[node][1])) for node in nodes}
        for pod in pods:
            node = pod["spec"]["nodeName"]
            _count, gib, percent, uuids = nodes[node]
            seen += check_twin(pod, gib, percent, uuids, env_of, *books[node])
        cards = {(p["spec"]["nodeName"], card) for p in pods for shares in json.loads(p["metadata"]["annotations"][CLAIM]).values() for card in shares}
        check(len(cards) > len(nodes), f"the pods of round {number} are all on one card of each node: nothing was tried")
        draw.shuffle(pods)
        # Not waited for: the next burst arrives while these go.
        together([(c.delete_pod, ns, p["metadata"]["name"]) for p in pods])
    print(f"     {sum(n[0] for n in nodes.values()) * rounds} pods, {seen} containers compared", flush=True)


def warnings(log):
    """The last lines of a log that are not just information."""
    return [line for line in log.splitlines() if "level=info" not in line][-12:]


def seed():
    value = int(os.environ.get("COSCHED_SEED") or random.randrange(1 << 30))
    print(f"     COSCHED_SEED={value}", flush=True)
    return random.Random(value)


@case("twins on simulated nodes: the card in the environment, the annotation, pod resources and the checkpoint is one, for every container", needs={"long"})
def simulated(suite):
    c, ns = suite.cluster, suite.namespace()
    rounds, pods = int(os.environ.get("COSCHED_TWIN_ROUNDS", "3")), int(os.environ.get("COSCHED_TWIN_PODS", "40"))
    spread = {"ack.node.gpu.placement": "spread"}
    nodes = Nodes(suite, [gpu_node("twins-mem", "share", A100, 4, labels=spread, cpu="64", pods=250, reorderMs=40),
                          gpu_node("twins-core", "core_mem", A100, 4, labels=spread, cpu="64", pods=250, reorderMs=25)])
    nodes.offers("twins-mem", mem=320, count=4)
    nodes.offers("twins-core", mem=320, percent=400, count=4)
    suite.scheduler()
    plan = {"twins-mem": (pods * 7 // 10, 2, 0, nodes.uuids("twins-mem")), "twins-core": (pods - pods * 7 // 10, 2, 5, nodes.uuids("twins-core"))}
    kubelet = lambda name, *rest: os.path.join(nodes.directory, name, "kubelet", *rest)
    places = {name: (kubelet(name, "pod-resources", "kubelet.sock"), kubelet(name, "device-plugins")) for name in plan}
    play(c, ns, rounds, plan, nodes.environment, places, seed(), lambda: {name: warnings(nodes.plugin_log(name)) for name in plan})


@case("twins on the real kubelet: the card in the environment, the annotation, pod resources and the checkpoint is one, for every container",
      needs={"kubelet"})
def real(suite):
    c, ns = suite.cluster, suite.namespace()
    node = c.env["K8S_NODE"]
    cards = os.path.join(suite.directory, "twin-cards.conf")
    with open(cards, "w", encoding="ascii") as f:
        f.write("count=4\n")
    port = free_port()
    p = suite.program("cosched-device-plugin", f"--kubeconfig={c.kubeconfig}", f"--node-name={node}", f"--nvml-library={BUILD}/lib/libnvidia-ml.so.1",
                      f"--device-plugin-dir={c.env['KUBELET_DEVICE_PLUGIN_DIR']}", f"--pod-resources-socket={c.env['KUBELET_POD_RESOURCES_SOCKET']}",
                      f"--state-dir={suite.directory}/plugin-state", "--http-address=127.0.0.1", f"--http-port={port}", "--scan-interval=500ms",
                      env={"COSCHED_FAKE_NVML": cards})
    set_mode(c, "share")
    wait_until(lambda: http_get(port, "/readyz")[0] == 200, "the plugin is ready", 60)
    wait_until(lambda: c.get(f"/api/v1/nodes/{node}")["status"]["allocatable"].get(MEM) == "60", "allocatable is 60 GiB", 60)
    inventory = wait_until(lambda: (lambda i: i if len(i["cards"]) == 4 else None)(
        json.loads(c.get(f"/api/v1/nodes/{node}")["metadata"]["annotations"]["cosched.io/gpu-inventory"])), "four cards are published")
    suite.scheduler()
    plan = {node: (20, 1, 0, {str(card["i"]): card["uuid"] for card in inventory["cards"]})}
    places = {node: (c.env["KUBELET_POD_RESOURCES_SOCKET"], c.env["KUBELET_DEVICE_PLUGIN_DIR"])}
    play(c, ns, int(os.environ.get("COSCHED_TWIN_ROUNDS", "3")), plan, lambda pod, container: environment(c, ns, pod["metadata"]["name"], container), places,
         seed(), lambda: warnings(p.output()))
    p.stop()
