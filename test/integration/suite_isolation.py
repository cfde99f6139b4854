# SPDX-License-Identifier: Apache-2.0
"""Modes cgpu and core_mem without a proprietary kernel module: our own library, or the kernel, keeps containers to their share.

Most nodes are simulated and run the real device plugin; what Allocate mounts is used by programs as a container would use it, on a CUDA driver that counts
(test/fake/cuda), so the share that the scheduler gave is the one that the driver sees. The last cases are those of the real kubelet and real containers.
"""
import json
import os
import shutil
import subprocess
import tempfile
import time

from harness import BUILD, ROOT, case, check, check_equal, free_port, wait_until
from suite_device_plugin import gpu_pod, start_plugin, wait_running
from suite_hardware import Cards, metric
from suite_nodes import MEM, PERCENT, T4, Nodes, check_environment, folder_of, gpu_node, memory_pod, wait_pod

GIB = 1 << 30
INSIDE = "/usr/local/cosched-gpu"


class Process:
    """A program of a container that uses CUDA: test/fake/cuda/worker.c, with what Allocate mounted for it."""

    def __init__(self, suite, folder, cards, group, uuid, preloaded=True):
        lib = os.path.join(BUILD, "lib")
        env = {**os.environ, "LD_LIBRARY_PATH": f"{lib}/alone:{lib}", "COSCHED_FAKE_CUDA": cards, "COSCHED_FAKE_CUDA_GROUP": str(group),
               "COSCHED_FAKE_CUDA_UUID": uuid, **({"LD_PRELOAD": os.path.join(folder, "libcosched-gpu.so")} if preloaded else {})}
        self.begin(suite, [os.path.join(BUILD, "test/fake/cuda_worker")], env)

    def begin(self, suite, command, env=None, stderr=None):
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True)
        suite.stack.callback(self.stop)
        for line in ("init", "primary 0"):
            check_equal(self.ask(line), "0", line)

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def ask(self, command):
        self.tell(command)
        return self.process.stdout.readline().strip()

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.stdout.close()


@case("two pods on one card in mode cgpu, without a kernel module: each sees its own share and gets no more, the other is not disturbed, a restart begins from 0")
def two_on_one_card(suite):
    c, ns = suite.cluster, suite.namespace()
    place = tempfile.mkdtemp(prefix="ci", dir="/tmp")
    suite.stack.callback(shutil.rmtree, place)
    cards = os.path.join(place, "cards")
    subprocess.run([os.path.join(BUILD, "test/fake/cuda_cards"), cards, "15360"], check=True)
    spec = gpu_node("library-1", "cgpu", T4, 1, pluginArgs=["--isolation=library", f"--isolation-library={BUILD}/lib/libcosched-gpu.so",
                                                            f"--isolation-dir={place}/shares"])
    nodes = Nodes(suite, [{**spec, "isolation": "auto"}])
    suite.scheduler()
    nodes.offers("library-1", mem=15, count=1)
    inventory = json.loads(nodes.get("library-1")["metadata"]["annotations"]["cosched.io/gpu-inventory"])
    check_equal(inventory["isolation"], "library", "what is in force is published")
    uuid, folders = inventory["cards"][0]["uuid"], {}
    for name, gib in (("three", 3), ("twelve", 12)):
        memory_pod(c, ns, name, gib, "library-1")
        pod = wait_pod(c, ns, name)
        check_environment(nodes, pod)
        folder = folder_of(f"{place}/shares", pod["metadata"]["uid"])
        check_equal([line for line in nodes.devices(pod, "main") if line.startswith("mount")],
                    [f"mount {folder} {INSIDE} ro", f"mount {folder}/region {INSIDE}/region rw", f"mount {place}/shares/ld.so.preload /etc/ld.so.preload ro"],
                    "what is mounted")
        with open(f"{folder}/limits", encoding="ascii") as f:
            check_equal(f.read(), f"cosched-gpu-limits 1\ncard {uuid} mib={gib * 1024} percent=100 context=0\n", "its limits")
        folders[name] = folder
    with open(f"{place}/shares/ld.so.preload", encoding="ascii") as f:
        check_equal(f.read(), f"{INSIDE}/libcosched-gpu.so\n", "the loader is told the library")

    small, large = (Process(suite, folders[name], cards, group, uuid) for group, name in enumerate(("three", "twelve")))
    check_equal(small.ask("info"), f"0 {3 * GIB} {3 * GIB}", "the small one sees its share")
    check_equal(large.ask("info"), f"0 {12 * GIB} {12 * GIB}", "the large one sees its own")
    check_equal([small.ask(f"alloc plain {GIB}").split()[0] for _ in range(4)], ["0", "0", "0", "2"], "three GiB, and the fourth is refused")
    check_equal(large.ask(f"alloc plain {12 * GIB}"), "0 0", "the large one has all of its own")
    check_equal(small.ask("alloc plain 1"), "2 -1", "not one byte more")
    counted = lambda: subprocess.run([os.path.join(BUILD, "test/fake/cuda_cards"), cards], check=True, capture_output=True, text=True).stdout.split("\n")[:2]
    check_equal(counted(), [f"0 {3 * GIB} {3 * GIB}", f"1 {12 * GIB} {12 * GIB}"], "what the driver counted")
    small.stop()
    again = Process(suite, folders["three"], cards, 0, uuid)
    check_equal(again.ask(f"alloc create {3 * GIB}"), "0 0", "after a restart all of the share is there")
    check_equal(counted(), [f"0 {3 * GIB} {3 * GIB}", f"1 {12 * GIB} {12 * GIB}"], "and the other kept its own")


# ---- time ----

def busy(cards):
    """The card's clock, and how much of its time each group had until then, both in nanoseconds."""
    now, *groups = subprocess.run([os.path.join(BUILD, "test/fake/cuda_cards"), cards, "busy"], check=True, capture_output=True, text=True).stdout.splitlines()
    return int(now), [int(line.split()[1]) for line in groups]


def window(cards, seconds=5):
    """Percent of the card's time that each group had in a window from now on."""
    begin, before = busy(cards)
    time.sleep(seconds)
    end, after = busy(cards)
    return [100 * (y - x) / (end - begin) for x, y in zip(before, after)]


class Library(Nodes):
    """A simulated node with one card, which the fake NVML and the fake CUDA driver both show; processes are put into pods by files like those of /proc."""

    def __init__(self, suite, name, mode, *args, context=0):
        self.place = tempfile.mkdtemp(prefix="ci", dir="/tmp")
        suite.stack.callback(shutil.rmtree, self.place)
        self.name, self.simulated, self.port = name, os.path.join(self.place, "cards"), free_port()
        subprocess.run([os.path.join(BUILD, "test/fake/cuda_cards"), self.simulated, "15360", str(context)], check=True)
        self.cards = Cards(suite, *self.lines())
        os.mkdir(f"{self.place}/proc")
        more = ["--backend=nvml", f"--nvml-library={BUILD}/lib/libnvidia-ml.so.1", f"--proc={self.place}/proc", "--scan-interval=200ms", "--publish-interval=500ms",
                f"--http-port={self.port}", "--isolation=library", f"--isolation-library={BUILD}/lib/libcosched-gpu.so", f"--isolation-dir={self.place}/shares", *args]
        super().__init__(suite, [{**gpu_node(name, mode, T4, 1, pluginArgs=more), "isolation": "auto"}])

    def lines(self):
        return ["count=1", "card.0.mib=15360", f"cuda={self.simulated}"]

    def run(self):
        self.program = self.suite.program("cosched-local", "nodes", f"--kubeconfig={self.cluster.kubeconfig}", f"--nodes={self.file}",
                                          f"--state-dir={self.directory}",
                                          env={"COSCHED_FAKE_NVML": self.cards.path, "COSCHED_FAKE_CUDA": self.simulated, "COSCHED_FAKE_CUDA_GROUP": "7"})
        self.program.wait_output("^nodes are running")

    def process(self, pod, group, preloaded=True):
        uid = pod["metadata"]["uid"]
        folder = folder_of(f"{self.place}/shares", uid)
        p = Process(self.suite, folder, self.simulated, group, self.uuids(self.name)["0"], preloaded)
        proc = f"{self.place}/proc/{p.process.pid}"
        os.mkdir(proc)
        with open(f"{proc}/mountinfo", "w", encoding="ascii") as f:
            f.write(f"24 1 0:21 / / rw - overlay overlay rw\n25 24 254:0 {folder} {INSIDE} ro,relatime - ext4 /dev/vda rw\n")
        with open(f"{proc}/cgroup", "w", encoding="ascii") as f:
            f.write(f"0::/kubepods/besteffort/pod{uid}/{group:064x}\n")
        return p


def event(c, ns, pod, reason):
    return wait_until(lambda: c.events(ns, pod, reason), f"Event {reason} on {pod}", 60)[0]["message"]


@case("mode core_mem by our own library: three containers at 20, 30 and 50 % of one card, measured by NVML: none passes its limit, together or alone, over a "
      "restart of the plugin; where the driver does not measure, launches are counted and an Event says so")
def shares_of_time(suite):
    c, ns = suite.cluster, suite.namespace()
    nodes = Library(suite, "time-1", "core_mem")
    suite.scheduler()
    nodes.offers("time-1", mem=15, percent=100, count=1)
    check_equal(json.loads(nodes.get("time-1")["metadata"]["annotations"]["cosched.io/gpu-inventory"])["isolation"], "library", "what is in force is published")
    percents, processes = (20, 30, 50), []
    for group, percent in enumerate(percents):
        c.create_pod(ns, f"p{percent}", limits={MEM: "2", PERCENT: str(percent)}, node_selector={"kubernetes.io/hostname": "time-1"})
        pod = wait_pod(c, ns, f"p{percent}")
        with open(folder_of(f"{nodes.place}/shares", pod["metadata"]["uid"]) + "/limits", encoding="ascii") as f:
            check_equal(f.read(), f"cosched-gpu-limits 1\ncard {nodes.uuids('time-1')['0']} mib=2048 percent={percent} context=0\n", "its limits")
        processes.append(nodes.process(pod, group))
    # Kernels of 10 us, graphs of twenty kernels, kernels of 50 ms: until they are stopped.
    for process, work in zip(processes, ("launch 10000 1000000000", "graph 100000 20 1000000000", "launch 50000000 1000000000")):
        process.tell(work)
    unmeasured = lambda percent: metric(nodes.port, "container_time_unmeasured", pod=f"p{percent}")
    wait_until(lambda: [unmeasured(p) for p in percents] == [0, 0, 0] and all(metric(nodes.port, "container_device_milliseconds_total", pod=f"p{p}") for p in percents),
               "the time of all is measured")
    windows = [window(nodes.simulated) for _ in range(3)]
    print("     shares in windows of 5 s: " + "; ".join(", ".join(f"{x:.1f}" for x in w[:3]) for w in windows))
    for w in windows:
        check(all(x <= p + 5 for x, p in zip(w, percents)), f"no share is more than 5 points beyond {percents}: {w[:3]}")
    # A machine that is busy with other things may keep the programs from launching; not for three windows on end.
    for i, p in enumerate(percents):
        check(max(w[i] for w in windows) >= p - 5, f"{p} %: its share is not less than that in every window: {[w[i] for w in windows]}")

    plugin = nodes.plugin_pid("time-1")
    os.kill(plugin, 15)
    wait_until(lambda: nodes.plugin_pid("time-1") not in (None, plugin), "another plugin runs")
    wait_until(lambda: [unmeasured(p) for p in percents] == [0, 0, 0], "it measures the containers that were there before it")
    after = window(nodes.simulated)
    check(all(x <= p + 5 for x, p in zip(after, percents)), f"no share is more than 5 points beyond {percents}: {after[:3]}")
    processes[1].stop()
    processes[2].stop()
    window(nodes.simulated, 1)
    alone = window(nodes.simulated)
    check(alone[0] <= 25 and alone[1] == 0 and alone[2] == 0, f"alone it does not pass its limit: {alone[:3]}")
    check(metric(nodes.port, "container_throttled_milliseconds_total", pod="p20") > 1000, "it had to wait")

    nodes.cards.say(*nodes.lines(), "fail.nvmlDeviceGetProcessUtilization=3")
    message = event(c, ns, "p20", "GpuTimeUnmeasured")
    check("launches are counted instead" in message, message)
    check_equal(unmeasured(20), 1, "the metric says so, too")
    unlimited = window(nodes.simulated)
    check(unlimited[0] <= 25, f"what launches need is known by now: {unlimited[0]}")


# ---- the audit ----

@case("a process that got past the library gets its pod an Event and a metric; with --enforce=evict the pod is evicted, and no other")
def bypassed(suite):
    c, ns = suite.cluster, suite.namespace()
    nodes = Library(suite, "audit-1", "cgpu", "--enforce=evict")
    suite.scheduler()
    nodes.offers("audit-1", mem=15, count=1)
    for name in ("honest", "loose"):
        memory_pod(c, ns, name, 4, "audit-1")
    honest, loose = (wait_pod(c, ns, name) for name in ("honest", "loose"))
    held = nodes.process(honest, 0)
    check_equal(held.ask(f"alloc plain {4 * GIB}"), "0 0", "all of its share")
    wait_until(lambda: metric(nodes.port, "pod_used_mib", pod="honest") == 4096, "the driver's figure is known")
    free = nodes.process(loose, 1, preloaded=False)
    check_equal(free.ask(f"alloc plain {6 * GIB}"), "0 0", "nothing holds it")
    message = event(c, ns, "loose", "GpuIsolationBypassed")
    check("1 of its 1 processes on the GPU are not held to its share of 4096 MiB" in message, message)
    check("the driver counts 6144 MiB of card 0 for a pod that may have 4096" in message, message)
    wait_until(lambda: [p["metadata"]["name"] for p in c.pods(ns)] == ["honest"], "the pod is evicted")
    check_equal(c.events(ns, "honest", "GpuIsolationBypassed"), [], "the honest one is left alone")
    check_equal(c.pod(ns, "honest")["status"]["phase"], "Running", "and goes on")


@case("what a context takes of a card is found out from the driver, by a process that makes one and goes, and is charged to containers as on a card of their own")
def contexts_are_charged(suite):
    c, ns = suite.cluster, suite.namespace()
    nodes = Library(suite, "context-1", "cgpu", f"--cuda-library={BUILD}/lib/libcuda.so.1", context=312)
    suite.scheduler()
    nodes.offers("context-1", mem=15, count=1)
    wait_until(lambda: 'msg="the memory of a CUDA context" card=0 mib=312' in nodes.plugin_log("context-1"), "it is known")
    memory_pod(c, ns, "charged", 2, "context-1")
    pod = wait_pod(c, ns, "charged")
    with open(folder_of(f"{nodes.place}/shares", pod["metadata"]["uid"]) + "/limits", encoding="ascii") as f:
        check_equal(f.read(), f"cosched-gpu-limits 1\ncard {nodes.uuids('context-1')['0']} mib=2048 percent=100 context=312\n", "its limits")
    p, left = nodes.process(pod, 0), 2 * GIB - (312 << 20)
    check_equal(p.ask("info"), f"0 {left} {2 * GIB}", "its context is charged")
    check_equal((p.ask(f"alloc plain {left + 1}"), p.ask(f"alloc plain {left}")), ("2 -1", "0 0"), "the rest is its own, and no byte more")
    check_equal(subprocess.run([os.path.join(BUILD, "test/fake/cuda_cards"), nodes.simulated], check=True, capture_output=True, text=True).stdout.split("\n")[:2],
                [f"0 {2 * GIB} {2 * GIB}", f"7 0 {312 << 20}"], "the driver counts exactly the share, and our own process is gone")
    wait_until(lambda: metric(nodes.port, "pod_used_mib", pod="charged") == 2048, "which is what NVML tells")
    check_equal(metric(nodes.port, "pod_over_mib", pod="charged"), 0, "nothing is beyond the share")


# ---- the kernel ----

@case("mode cgpu by the kernel's own limits: a pod's group has its limit before a container starts, one that cannot be held does not start, and limits come back")
def kernel_limits(suite):
    c, ns = suite.cluster, suite.namespace()
    place = tempfile.mkdtemp(prefix="ci", dir="/tmp")
    suite.stack.callback(shutil.rmtree, place)

    def put(group, name, text):
        os.makedirs(os.path.join(place, group), exist_ok=True)
        with open(os.path.join(place, group, name), "w", encoding="ascii") as f:
            f.write(text)

    def got(group, name="dmem.max"):
        with open(os.path.join(place, group, name), encoding="ascii") as f:
            return f.read()

    for group in ("", "kubepods", "kubepods/besteffort"):
        put(group, "cgroup.controllers", "cpuset cpu memory dmem\n")
        put(group, "cgroup.subtree_control", "\n")
    more = ["--isolation=auto", f"--cgroup-root={place}", f"--isolation-library={BUILD}/lib/libcosched-gpu.so", f"--isolation-dir={place}/shares"]
    nodes = Nodes(suite, [{**gpu_node("kernel-1", "cgpu", T4, 1, pluginArgs=more), "isolation": "auto"}])
    suite.scheduler()
    nodes.offers("kernel-1", mem=15, count=1)
    inventory = lambda: json.loads(nodes.get("kernel-1")["metadata"]["annotations"]["cosched.io/gpu-inventory"])
    check_equal(inventory()["isolation"], "library", "the kernel does not list the card: our own library")
    pci = inventory()["cards"][0]["pci"]
    put("", "dmem.capacity", f"drm/{pci}/vram0 16106127360\n")
    wait_until(lambda: inventory()["isolation"] == "kernel", "now it does, and is preferred", 30)
    memory_pod(c, ns, "held", 3, "kernel-1", schedulingGates=[{"name": "test.io/gate"}])
    uid = c.pod(ns, "held")["metadata"]["uid"]
    group = f"kubepods/besteffort/pod{uid}"
    put(group, "dmem.max", f"drm/{pci}/vram0 max\n")
    c.do("PATCH", f"/api/v1/namespaces/{ns}/pods/held", {"spec": {"schedulingGates": []}}, "application/merge-patch+json")
    pod = wait_pod(c, ns, "held")
    limit = lambda gib: f"drm/{pci}/vram0 {gib * GIB}\n"
    check_equal(got(group), limit(3), "the pod's group has its limit")
    check_equal([line for line in nodes.devices(pod, "main") if line.startswith("mount")], [], "nothing is mounted: nothing in the container is needed")
    container = pod["status"]["containerStatuses"][0]["containerID"].split("//")[1]
    put(f"{group}/{container}", "dmem.max", "")
    wait_until(lambda: got(f"{group}/{container}") == limit(3), "so has its container's")
    put(group, "dmem.max", f"drm/{pci}/vram0 max\n")
    wait_until(lambda: got(group) == limit(3), "somebody else's change is put right")
    # A pod whose group is not there cannot be held.
    memory_pod(c, ns, "loose", 2, "kernel-1")
    why = wait_until(lambda: [e["message"] for e in c.events(ns, "loose", "GpuRefused") if "cgroup is not found" in e["message"]], "an Event says why it does not start")
    check("limit of GPU memory" in why[0], why[0])
    check_equal(c.pod(ns, "loose")["status"].get("phase"), "Pending", "it does not start")
    late = f"kubepods/besteffort/pod{c.pod(ns, 'loose')['metadata']['uid']}"
    put(late, "dmem.max", "")
    wait_pod(c, ns, "loose", seconds=60)
    check_equal(got(late), limit(2), "with its limit it does")


# ---- the real kubelet ----

class Inside(Process):
    """The same program inside a real container, by kubectl exec: the loader finds the library by the /etc/ld.so.preload that Allocate mounted."""

    def __init__(self, suite, ns, pod):
        c = suite.cluster
        self.begin(suite, [c.kubectl_binary, "--kubeconfig", c.kubeconfig, "--cache-dir", os.path.join(c.env["K8S_DIR"], "kubectl-cache"), "exec", "-i", "-n", ns, pod,
                           "--", "/build/test/fake/cuda_worker"], stderr=subprocess.DEVNULL)


class Real:
    """The plugin on the real node, with our own library; containers have the host's C library and our fake driver by hostPath."""

    def __init__(self, suite, mode, apart=False):
        """apart: regions are in a file system of their own, mounted where the container runtime runs; so the plugin runs there too."""
        self.suite, self.cluster = suite, suite.cluster
        self.place = tempfile.mkdtemp(prefix="ci", dir="/tmp")
        suite.stack.callback(shutil.rmtree, self.place)
        os.chmod(self.place, 0o755)
        self.simulated = f"{self.place}/cards"
        subprocess.run([os.path.join(BUILD, "test/fake/cuda_cards"), self.simulated, "16160"], check=True)
        self.cards = Cards(suite, "count=2", f"cuda={self.simulated}")
        suite.scheduler()
        node = ("env", f"K8S_DIR={self.cluster.env['K8S_DIR']}", os.path.join(ROOT, "test/kubernetes/k8s"), "node-exec") if apart else ()
        if apart:
            subprocess.run([*node, os.path.join(BUILD, "bin/cosched-device-plugin"), "--mount-only", f"--isolation-dir={self.place}/shares"], check=True, timeout=60)
        self.plugin = start_plugin(suite, "--isolation=library", f"--isolation-library={BUILD}/lib/libcosched-gpu.so", f"--isolation-dir={self.place}/shares",
                                   "--publish-interval=500ms", fake=self.cards.path, mode=mode, under=node)

    def pod(self, ns, name, group, gib, percent=None):
        """On card 0, whoever comes first: the scheduler fills one card before the next. hostPID, so that the fake NVML names processes as the real one does."""
        host = {"build": BUILD, "cards": self.place, "libc": "/usr/lib/x86_64-linux-gnu", "loader": "/lib64/ld-linux-x86-64.so.2"}
        inside = {"build": "/build", "cards": "/cards", "libc": "/lib/x86_64-linux-gnu", "loader": "/lib64/ld-linux-x86-64.so.2"}
        limits = {MEM: str(gib), **({PERCENT: str(percent)} if percent else {})}
        env = {"LD_LIBRARY_PATH": "/build/lib/alone:/build/lib", "COSCHED_FAKE_CUDA": "/cards/cards", "COSCHED_FAKE_CUDA_GROUP": str(group)}
        container = {"name": "main", "image": "busybox:test", "imagePullPolicy": "Never", "resources": {"limits": limits},
                     "command": ["sh", "-c", "while [ ! -e /end ]; do sleep 0.2; done"], "env": [{"name": k, "value": v} for k, v in env.items()],
                     "volumeMounts": [{"name": n, "mountPath": p, "readOnly": n != "cards"} for n, p in inside.items()]}
        gpu_pod(self.cluster, ns, name, gib, containers=[container], hostPID=True, restartPolicy="Always",
                volumes=[{"name": n, "hostPath": {"path": os.path.realpath(p)}} for n, p in host.items()])
        wait_running(self.cluster, ns, name)
        return Inside(self.suite, ns, name)

    def restart(self, ns, name):
        """The container ends, and the kubelet starts it again."""
        count = lambda: self.cluster.pod(ns, name)["status"]["containerStatuses"][0]
        before = count()["restartCount"]
        self.cluster.kubectl("exec", "-n", ns, name, "--", "touch", "/end")
        wait_until(lambda: count()["restartCount"] > before and "running" in count()["state"], f"{name} runs again", 60)
        return Inside(self.suite, ns, name)

    def counted(self):
        return subprocess.run([os.path.join(BUILD, "test/fake/cuda_cards"), self.simulated], check=True, capture_output=True, text=True).stdout.split("\n")[:2]


def shares_of_memory(real, ns, small, large):
    """3 GiB and 11 GiB of one card, in two containers."""
    check_equal(small.ask("info"), f"0 {3 * GIB} {3 * GIB}", "the small one sees its share")
    check_equal(small.ask("total 0"), f"0 {3 * GIB}", "and a card of that size")
    check_equal(large.ask("info"), f"0 {11 * GIB} {11 * GIB}", "the large one sees its own")
    check_equal([small.ask(f"alloc plain {GIB + GIB // 2}").split()[0] for _ in range(3)], ["0", "0", "2"], "the third allocation is over the share")
    check_equal(large.ask(f"alloc create {11 * GIB}"), "0 0", "the large one is not disturbed")
    check_equal(small.ask("alloc plain 1"), "2 -1", "not one byte more")
    check_equal(real.counted(), [f"0 {3 * GIB} {3 * GIB}", f"1 {11 * GIB} {11 * GIB}"], "what the driver counted")
    wait_until(lambda: (metric(real.plugin.port, "container_used_mib", pod="small"), metric(real.plugin.port, "container_denied_total", pod="small")) == (3072, 2),
               "the metrics say the same")
    again = real.restart(ns, "small")
    check_equal(again.ask("info"), f"0 {3 * GIB} {3 * GIB}", "after a restart of the container it begins from 0")
    check_equal(again.ask(f"alloc array {3 * GIB}"), "0 0", "and may have all of it")
    check_equal(real.counted(), [f"0 {3 * GIB} {3 * GIB}", f"1 {11 * GIB} {11 * GIB}"], "and the other kept its own")
    return again


@case("on the real kubelet, mode cgpu: two pods on one card see their own share and get no more, whatever the other does; a restarted container begins from 0; "
      "a container cannot make its region larger, nor run what it writes there",
      needs={"kubelet", "alone"})
def real_memory(suite):
    ns = suite.namespace()
    real = Real(suite, "cgpu", apart=True)
    small, large = real.pod(ns, "small", 0, 3), real.pod(ns, "large", 1, 11)
    shares_of_memory(real, ns, small, large)
    inside = lambda command: real.cluster.kubectl("exec", "-n", ns, "small", "--", "sh", "-c", command)
    region = f"{INSIDE}/region"
    line = next(x for x in inside("cat /proc/self/mountinfo").splitlines() if f" {region} " in x)
    check(all(flag in line for flag in ("nosuid", "nodev", "noexec", " tmpfs ")), f"how the region is mounted: {line}")
    check("No space left" in inside(f"dd if=/dev/zero of={region} bs=65536 seek=1 count=1 conv=notrunc 2>&1 || true"), "it cannot grow")
    check("denied" in inside(f"chmod 4755 {region}; {region} 2>&1 || true"), "nor be run")
    check("made a program" in event(real.cluster, ns, "small", "GpuIsolationBypassed"), "and it is told")
    check_equal(real.cluster.events(ns, "large", "GpuIsolationBypassed"), [], "of the other nothing")
    real.plugin.stop()


@case("on the real kubelet, mode core_mem: the same, and each container keeps to its part of the card's time", needs={"kubelet", "alone"})
def real_time(suite):
    ns = suite.namespace()
    real = Real(suite, "core_mem")
    small, large = real.pod(ns, "small", 0, 3, 20), real.pod(ns, "large", 1, 11, 60)
    small = shares_of_memory(real, ns, small, large)
    small.tell("launch 200000 1000000000")
    large.tell("launch 2000000 1000000000")
    wait_until(lambda: all(metric(real.plugin.port, "container_device_milliseconds_total", pod=p) for p in ("small", "large")), "the time of both is measured")
    windows = [window(real.simulated) for _ in range(3)]
    print("     shares in windows of 5 s: " + "; ".join(", ".join(f"{x:.1f}" for x in w[:2]) for w in windows))
    for w in windows:
        check(w[0] <= 25 and w[1] <= 65, f"none passes its limit: {w[:2]}")
    check(max(w[0] for w in windows) >= 15 and max(w[1] for w in windows) >= 55, f"each gets what it was promised: {windows}")
    check_equal([metric(real.plugin.port, "container_time_unmeasured", pod=p) for p in ("small", "large")], [0, 0], "measured")
    real.plugin.stop()
