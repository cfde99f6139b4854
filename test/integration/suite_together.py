# SPDX-License-Identifier: Apache-2.0
"""A pod travels through all three programs, a real API server, a real kubelet and a real container."""
import json
import os
import shutil
import stat
import subprocess
import tempfile

from harness import ROOT, case, check_equal, wait_until
from suite_device_plugin import allocatable, start_plugin
from suite_webhook import start_webhook

IMAGE = "registry.cn-hangzhou.aliyuncs.com/ai-samples/gpushare-sample:tensorflow-1.5"


def make_image(c):
    """The document's image name with a `python` that prints its environment: nothing can be pulled here."""
    root = tempfile.mkdtemp(prefix="cosched-image-")
    try:
        for directory in ("bin", "tmp", "root", "etc"):
            os.mkdir(os.path.join(root, directory))
        shutil.copy("/bin/busybox", os.path.join(root, "bin/busybox"))
        for applet in ("sh", "env", "sleep"):
            os.symlink("busybox", os.path.join(root, "bin", applet))
        python = os.path.join(root, "bin/python")
        with open(python, "w", encoding="ascii") as f:
            f.write('#!/bin/sh\nenv\necho "arguments=$*"\n')
        os.chmod(python, stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
        command = [os.path.join(ROOT, "test/kubernetes/k8s"), "image-make", "--dir", c.env["K8S_DIR"], IMAGE, root]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    finally:
        shutil.rmtree(root)


@case("the shared-GPU document's Job runs unchanged: injected, placed, allocated, and its container sees its card", needs={"kubelet"})
def gpu_share_job(suite):
    c = suite.cluster
    make_image(c)
    _webhook, ns = start_webhook(suite)
    suite.scheduler()
    start_plugin(suite)
    wait_until(lambda: allocatable(c, "aliyun.com/gpu-mem") == "30", "allocatable aliyun.com/gpu-mem is 30")
    c.kubectl("apply", "-n", ns, "-f", os.path.join(ROOT, "deploy/examples/documents/gpu-share.yaml"))
    wait_until(lambda: c.get(f"/apis/batch/v1/namespaces/{ns}/jobs/gpu-share-sample").get("status", {}).get("succeeded") == 1, "the Job succeeds", 60)
    metadata = c.pods(ns)[0]["metadata"]
    env = dict(line.split("=", 1) for line in c.kubectl("logs", "-n", ns, metadata["name"]).splitlines() if "=" in line)
    # The card that the scheduler chose, by its index, is the card that the container sees, by its uuid.
    (card, gib), = json.loads(metadata["annotations"]["scheduler.framework.gpushare.allocation"])["0"].items()
    check_equal(gib, 3, "GiB in the claim")
    check_equal(metadata["annotations"]["scheduler.framework.gpushare.assigned"], "true", "assigned")
    inventory = json.loads(c.get(f"/api/v1/nodes/{c.env['K8S_NODE']}")["metadata"]["annotations"]["cosched.io/gpu-inventory"])
    uuid = next(x["uuid"] for x in inventory["cards"] if str(x["i"]) == card)
    expected = {"NVIDIA_VISIBLE_DEVICES": uuid, "ALIYUN_COM_GPU_MEM_IDX": card,
                "ALIYUN_COM_GPU_MEM_CONTAINER": "3", "ALIYUN_COM_GPU_MEM_POD": "3", "ALIYUN_COM_GPU_MEM_DEV": "15",
                "arguments": "tensorflow-sample-code/tfjob/docker/mnist/main.py --max_steps=100000 --data_dir=tensorflow-sample-code/data"}
    check_equal({k: env.get(k) for k in expected}, expected, "what the container printed")
