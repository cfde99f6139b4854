# SPDX-License-Identifier: Apache-2.0
"""usage: cuda_program.py SHARE

A program that uses NVIDIA's CUDA runtime (cuda-python's, which stands on the driver's interface alone) and knows nothing of the library that is preloaded
into it. SHARE: the bytes that it has. Prints what came of each step as JSON.
"""
import json
import sys

from cuda import cuda, cudart

SHARE = int(sys.argv[1])
MIB = 1 << 20
DONE = {}


def code(answer):
    return int(answer[0])


def must(answer):
    """The value of a call that has to succeed."""
    if code(answer) != 0:
        raise RuntimeError(f"{answer[0]}")
    return answer[1] if len(answer) == 2 else answer[1:]


def free_bytes():
    return must(cudart.cudaMemGetInfo())[0]


BYTE = cudart.cudaChannelFormatDesc()
BYTE.x, BYTE.f = 8, cudart.cudaChannelFormatKind.cudaChannelFormatKindUnsigned


def extent(width, height, depth):
    e = cudart.cudaExtent()
    e.width, e.height, e.depth = width, height, depth
    return e


def table(stream, pool):
    """Each call that allocates: one unit below the share, exactly at it, one over it. Units are what the driver rounds to."""
    trim = lambda: [must(cudart.cudaMemPoolTrimTo(p, 0) + (None,)) for p in (pool, must(cudart.cudaDeviceGetDefaultMemPool(0)))]
    rows = [
        ("cudaMalloc", 1, lambda n: cudart.cudaMalloc(n), lambda p: cudart.cudaFree(p)),
        ("cudaMallocManaged", 1, lambda n: cudart.cudaMallocManaged(n, cudart.cudaMemAttachGlobal), lambda p: cudart.cudaFree(p)),
        ("cudaMallocPitch", 512, lambda n: cudart.cudaMallocPitch(500, n // 512), lambda p: cudart.cudaFree(p[0])),
        ("cudaMalloc3D", 512, lambda n: cudart.cudaMalloc3D(extent(500, n // 512, 1)), lambda p: cudart.cudaFree(p.ptr)),
        ("cudaMallocArray", 1, lambda n: cudart.cudaMallocArray(BYTE, n, 0, 0), lambda p: cudart.cudaFreeArray(p)),
        ("cudaMalloc3DArray", 1, lambda n: cudart.cudaMalloc3DArray(BYTE, extent(n, 1, 1), 0), lambda p: cudart.cudaFreeArray(p)),
        ("cudaMallocMipmappedArray", 1, lambda n: cudart.cudaMallocMipmappedArray(BYTE, extent(n, 0, 0), 1, 0), lambda p: cudart.cudaFreeMipmappedArray(p)),
        ("cudaMallocAsync", 2 * MIB, lambda n: cudart.cudaMallocAsync(n, stream), lambda p: cudart.cudaFreeAsync(p, stream)),
        ("cudaMallocFromPoolAsync", 2 * MIB, lambda n: cudart.cudaMallocFromPoolAsync(n, pool, stream), lambda p: cudart.cudaFreeAsync(p, stream)),
    ]
    for name, unit, allocate, release in rows:
        codes, left = [], []
        for size in (SHARE - unit, SHARE, SHARE + 1 if unit == 1 else SHARE + unit):
            answer = allocate(size)
            codes.append(code(answer))
            left.append(free_bytes())
            if codes[-1] == 0:
                must(release(must(answer)) + (None,))
            trim()
        DONE[name] = {"codes": codes, "free": left, "free after": free_bytes()}


def kernel(stream):
    """The runtime's own kernels are compiled into programs; this one is the driver's, put on the runtime's stream."""
    module = must(cuda.cuModuleLoadData(b"kernels"))
    function = must(cuda.cuModuleGetFunction(module, b"busy_1000000"))
    return code(cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, 0, 0))


def streams(stream):
    start, end = must(cudart.cudaEventCreate()), must(cudart.cudaEventCreate())
    memory = must(cudart.cudaMallocAsync(4 * MIB, stream))
    codes = [code(cudart.cudaEventRecord(start, stream)), code(cudart.cudaMemsetAsync(memory, 0, 4 * MIB, stream)), kernel(stream),
             code(cudart.cudaEventRecord(end, stream)), code(cudart.cudaStreamSynchronize(stream)), code(cudart.cudaEventSynchronize(end)),
             code(cudart.cudaEventElapsedTime(start, end)), code(cudart.cudaFreeAsync(memory, stream))]
    must(cudart.cudaMemPoolTrimTo(must(cudart.cudaDeviceGetDefaultMemPool(0)), 0) + (None,))
    DONE["streams"] = codes


def captured(stream, size):
    """A graph, captured: memory that it allocates and frees by itself, a memset, a kernel. Its codes up to the first that is not 0."""
    must(cudart.cudaStreamBeginCapture(stream, cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal) + (None,))
    memory = must(cudart.cudaMallocAsync(size, stream))
    must(cudart.cudaMemsetAsync(memory, 0, size, stream) + (None,))
    kernel(stream)
    must(cudart.cudaFreeAsync(memory, stream) + (None,))
    graph = must(cudart.cudaStreamEndCapture(stream))
    codes = [must(cudart.cudaGraphGetNodes(graph))[1]]
    answer = cudart.cudaGraphInstantiate(graph, 0)
    codes.append(code(answer))
    if codes[-1] == 0:
        made = must(answer)
        codes += [code(cudart.cudaGraphUpload(made, stream)), code(cudart.cudaGraphLaunch(made, stream)), code(cudart.cudaGraphLaunch(made, stream))]
        codes.append(free_bytes())
        codes.append(code(cudart.cudaStreamSynchronize(stream)))
        codes.append(code(cudart.cudaGraphExecDestroy(made)))
    must(cudart.cudaGraphDestroy(graph) + (None,))
    must(cudart.cudaDeviceGraphMemTrim(0) + (None,))
    return codes + [free_bytes()]


def main():
    DONE["versions"] = [must(cudart.cudaRuntimeGetVersion()), must(cudart.cudaDriverGetVersion())]
    DONE["memory"] = list(must(cudart.cudaMemGetInfo()))
    DONE["total"] = must(cudart.cudaGetDeviceProperties(0)).totalGlobalMem
    stream = must(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
    props = cudart.cudaMemPoolProps()
    props.allocType = cudart.cudaMemAllocationType.cudaMemAllocationTypePinned
    props.location.type, props.location.id = cudart.cudaMemLocationType.cudaMemLocationTypeDevice, 0
    pool = must(cudart.cudaMemPoolCreate(props))
    table(stream, pool)
    DONE["host memory"] = [code(cudart.cudaMallocHost(MIB)), free_bytes()]
    streams(stream)
    DONE["graphs"] = [captured(stream, size) for size in (4 * MIB, SHARE, SHARE + 2 * MIB)]
    must(cudart.cudaMalloc(SHARE // 2))
    must(cudart.cudaMallocAsync(SHARE // 4, stream))
    DONE["before a reset"] = free_bytes()
    must(cudart.cudaDeviceReset() + (None,))
    DONE["after it"] = free_bytes()
    DONE["all of it again"] = code(cudart.cudaMalloc(SHARE))
    print(json.dumps(DONE))


main()
