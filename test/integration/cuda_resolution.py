# SPDX-License-Identifier: Apache-2.0
"""usage: cuda_resolution.py LIBCUDART

Lets NVIDIA's libcudart begin, which asks the driver for all its functions by cuGetProcAddress, and prints as JSON whose function it was given for each of
them: "library" (libcosched-gpu.so), "driver" (libcuda.so.1), or "" for none. Run with the fake driver, which remembers what it was asked (driver_asked.c).
"""
import ctypes
import json
import os
import sys


class Info(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p), ("at", ctypes.c_void_p)]


def object_of(address):
    """The file name of the object that an address lies in; "" for none."""
    info = Info()
    found = ctypes.CDLL(None).dladdr(ctypes.c_void_p(address), ctypes.byref(info))
    return os.path.basename(info.file.decode()) if found else ""


def main():
    runtime = ctypes.CDLL(sys.argv[1])
    count, version, flags, out = ctypes.c_int(), ctypes.c_int(), ctypes.c_uint64(), ctypes.c_void_p()
    began = runtime.cudaGetDeviceCount(ctypes.byref(count))
    asked = ctypes.CDLL("libcuda.so.1").cosched_fake_asked
    asked.restype = ctypes.c_char_p
    answers, i = [], 0
    while (name := asked(i, ctypes.byref(version), ctypes.byref(flags), ctypes.byref(out))) is not None:
        i += 1
        # Only what was written into the runtime's own tables is still there.
        if not object_of(out.value).startswith("libcudart"):
            continue
        given = ctypes.c_void_p.from_address(out.value).value
        owner = object_of(given) if given else ""
        owner = {"libcosched-gpu.so": "library", "libcuda.so.1": "driver", "": ""}.get(owner, owner)
        answers.append([name.decode(), version.value, flags.value, owner])
    print(json.dumps({"began": began, "questions": i, "answers": answers}))


main()
