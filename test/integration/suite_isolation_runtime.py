# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own CUDA runtimes, as published, through our library into a CUDA driver that counts: what programs of a container really call.

Their packages are fetched by name (test/tools/cuda-runtime) and stay outside the checkout. libcudart goes as far as any driver but NVIDIA's lets it: it asks for
all its functions, and then wants proof that the driver is NVIDIA's. That check is theirs and stays as it is (docs/isolation.md), so what is shown with
libcudart is whose functions it got; what these do is shown with the runtime of cuda-python, which has no such check.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

from harness import BUILD, ROOT, case, check, check_equal
from suite_nodes import T4, Nodes, folder_of, gpu_node, memory_pod, wait_pod

GIB = 1 << 30
FETCHES = {"real"}  # make test stays with Debian's packages
HERE = os.path.dirname(os.path.abspath(__file__))
# The runtimes, the driver that they want at least, and what they must not get from the driver itself.
RUNTIMES = [("nvidia_cuda_runtime_cu11/nvidia/cuda_runtime/lib/libcudart.so.11.0", 11080), ("nvidia_cuda_runtime_cu12/nvidia/cuda_runtime/lib/libcudart.so.12", 12090),
            ("nvidia_cuda_runtime/nvidia/cu13/lib/libcudart.so.13", 13000)]
OURS = {"cuMemAlloc", "cuMemAllocPitch", "cuMemAllocManaged", "cuMemFree", "cuMemAllocAsync", "cuMemAllocFromPoolAsync", "cuMemFreeAsync", "cuMemPoolCreate",
        "cuMemPoolTrimTo", "cuMemPoolDestroy", "cuArrayCreate", "cuArray3DCreate", "cuArrayDestroy", "cuMipmappedArrayCreate", "cuMipmappedArrayDestroy", "cuMemGetInfo",
        "cuDeviceTotalMem", "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxReset", "cuCtxCreate", "cuCtxDetach", "cuLaunchKernel",
        "cuLaunchKernelEx", "cuLaunchCooperativeKernel", "cuLaunchCooperativeKernelMultiDevice", "cuGraphInstantiateWithFlags", "cuGraphInstantiateWithParams", "cuGraphExecDestroy", "cuGraphLaunch", "cuGraphUpload"}


class Container:
    """A pod of so many GiB on a node whose plugin has our library, and its folder; programs run in it as its processes."""

    def __init__(self, suite, node, gib):
        self.place = tempfile.mkdtemp(prefix="ci", dir="/tmp")
        suite.stack.callback(shutil.rmtree, self.place)
        self.cards = os.path.join(self.place, "cards")
        subprocess.run([os.path.join(BUILD, "test/fake/cuda_cards"), self.cards, "15360"], check=True)
        spec = gpu_node(node, "cgpu", T4, 1, pluginArgs=["--isolation=library", f"--isolation-library={BUILD}/lib/libcosched-gpu.so",
                                                         f"--isolation-dir={self.place}/shares"])
        nodes = Nodes(suite, [{**spec, "isolation": "auto"}])
        suite.scheduler()
        nodes.offers(node, mem=15, count=1)
        self.uuid = json.loads(nodes.get(node)["metadata"]["annotations"]["cosched.io/gpu-inventory"])["cards"][0]["uuid"]
        ns = suite.namespace()
        memory_pod(suite.cluster, ns, "runtime", gib, node)
        self.folder = folder_of(f"{self.place}/shares", wait_pod(suite.cluster, ns, "runtime")["metadata"]["uid"])
        self.packages = subprocess.run([os.path.join(ROOT, "test/tools/cuda-runtime")], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

    def python(self, script, *args, version=12090):
        lib = os.path.join(BUILD, "lib")
        env = {**os.environ, "LD_PRELOAD": os.path.join(self.folder, "libcosched-gpu.so"), "LD_LIBRARY_PATH": f"{lib}/alone:{lib}", "PYTHONDONTWRITEBYTECODE": "1",
               "PYTHONPATH": os.path.join(self.packages, "cuda_python"), "COSCHED_FAKE_CUDA": self.cards, "COSCHED_FAKE_CUDA_UUID": self.uuid,
               "COSCHED_FAKE_CUDA_VERSION": str(version)}
        run = subprocess.run([sys.executable, os.path.join(HERE, script), *args], env=env, capture_output=True, text=True, timeout=120, check=False)
        check_equal(run.returncode, 0, f"{script} {' '.join(args)}: {run.stderr}{run.stdout}")
        return json.loads(run.stdout)

    def counted(self):
        """What the driver counts for the container: now, and at most."""
        line = subprocess.run([os.path.join(BUILD, "test/fake/cuda_cards"), self.cards], check=True, capture_output=True, text=True).stdout.split("\n")[0]
        return [int(n) for n in line.split()[1:]]


@case("the real libcudart, of CUDA 11, 12 and 13, is given our functions for all that allocates, launches or tells of memory, and the driver's own for the rest", needs=FETCHES)
def resolution(suite):
    container = Container(suite, "runtime-1", 3)
    for path, version in RUNTIMES:
        got = container.python("cuda_resolution.py", os.path.join(container.packages, path), version=version)
        answers = got["answers"]
        check(len(answers) > 300, f"{path}: it asked for {len(answers)} functions")
        names = {name for name, _, _, _ in answers}
        missed = sorted({f"{name} {v} {flags}" for name, v, flags, owner in answers if name in OURS and owner != "library"})
        check_equal(missed, [], f"{path}: of {len(answers)} functions, those that went past the library")
        check(len(OURS & names) >= 27, f"{path}: it never asked for {sorted(OURS - names)}")
        others = {owner for name, _, _, owner in answers if owner not in ("library", "driver", "")}
        check_equal(others, set(), f"{path}: nobody else's")
        check(sum(owner == "driver" for _, _, _, owner in answers) > 30, f"{path}: the rest is the driver's")
        check(any(flags == 2 and owner == "library" for _, _, flags, owner in answers), f"{path}: those of a default stream for each thread too")


@case("a program on NVIDIA's CUDA runtime: cudaMalloc and every other call that allocates below, at and over the share, streams, events, pools, graphs, a device reset", needs=FETCHES)
def program(suite):
    container, share = Container(suite, "runtime-2", 3), 3 * GIB
    done = container.python("cuda_program.py", str(share))
    check_equal(done["memory"], [share, share], "cudaMemGetInfo")
    check_equal(done["total"], share, "cudaGetDeviceProperties")
    for name, unit in [("cudaMalloc", 1), ("cudaMallocManaged", 1), ("cudaMallocPitch", 512), ("cudaMalloc3D", 512), ("cudaMallocArray", 1), ("cudaMalloc3DArray", 1),
                       ("cudaMallocMipmappedArray", 1), ("cudaMallocAsync", 2 << 20), ("cudaMallocFromPoolAsync", 2 << 20)]:
        check_equal(done[name], {"codes": [0, 0, 2], "free": [unit, 0, share], "free after": share}, name)
    check_equal(done["host memory"], [0, share], "memory of the host is not charged")
    check_equal(done["streams"], [0] * 8, "streams and events")
    small, exact, over = done["graphs"]
    check_equal(small, [4, 0, 0, 0, 0, share - (4 << 20), 0, 0, share], "a graph that allocates 4 MiB")
    check_equal(exact, [4, 0, 0, 0, 0, 0, 0, 0, share], "a graph that allocates all of the share")
    check_equal(over, [4, 0, 2, 2, 2, share, 0, 0, share], "a graph that allocates more")
    check_equal([done["before a reset"], done["after it"], done["all of it again"]], [share // 4, share, 0], "cudaDeviceReset")
    check_equal(container.counted(), [0, share], "what the driver counted, now and at most")
