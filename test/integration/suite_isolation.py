# SPDX-License-Identifier: Apache-2.0
"""Mode cgpu without a kernel module: our own library keeps containers to their share.

The node is simulated and runs the real device plugin; what Allocate mounts is used by programs as a container would use it, on a CUDA driver that counts
(test/fake/cuda), so the share that the scheduler gave is the one that the driver sees.
"""
import json
import os
import shutil
import subprocess
import tempfile

from harness import BUILD, case, check_equal
from suite_nodes import T4, Nodes, check_environment, gpu_node, memory_pod, wait_pod

GIB = 1 << 30
INSIDE = "/usr/local/cosched-gpu"


class Process:
    """A program of a container that uses CUDA: test/fake/cuda/worker.c, with what Allocate mounted for it."""

    def __init__(self, suite, folder, cards, group, uuid):
        lib = os.path.join(BUILD, "lib")
        env = {**os.environ, "LD_PRELOAD": os.path.join(folder, "libcosched-gpu.so"), "LD_LIBRARY_PATH": f"{lib}/alone:{lib}",
               "COSCHED_FAKE_CUDA": cards, "COSCHED_FAKE_CUDA_GROUP": str(group), "COSCHED_FAKE_CUDA_UUID": uuid}
        self.process = subprocess.Popen([os.path.join(BUILD, "test/fake/cuda_worker")], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        suite.stack.callback(self.stop)
        for command in ("init", "primary 0"):
            check_equal(self.ask(command), "0", command)

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
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
        folder = f"{place}/shares/{pod['metadata']['uid']}.0"
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
