# SPDX-License-Identifier: Apache-2.0
"""Our scheduler and the real kube-scheduler on the same API server and the same state: test/differential says how."""
import os
import subprocess
import sys

from harness import BUILD, ROOT, Failed, case

CLUSTERS = int(os.environ.get("COSCHED_CLUSTERS", "30"))


def play(suite, clusters, *args):
    """On a control plane of its own, with nobody else's nodes and pods. COSCHED_SEED repeats a run, COSCHED_CLUSTERS makes it longer."""
    command = [sys.executable, os.path.join(ROOT, "test/differential/run"), f"--clusters={clusters}", *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300 + 20 * clusters, check=False, cwd=suite.directory,
                          env={**os.environ, "BUILD_DIR": BUILD})  # BUILD_DIR may be relative, and this runs elsewhere
    lines = done.stdout.splitlines()
    print("     " + "\n     ".join(line for line in lines if line.startswith("seed ") or " asked about" in line or "settled by asking" in line), flush=True)
    if done.returncode != 0:
        raise Failed("\n".join(line for line in lines if not line.startswith("ok ")) + done.stderr)


@case("30 random small clusters: we bind a pod if and only if kube-scheduler does, to a node that it accepts", needs={"real", "alone"})
def differential(suite):
    play(suite, CLUSTERS, "--known", "--features=-volumes")


@case("random small clusters with volumes: the same", needs={"real", "alone"})
def volumes(suite):
    """Fewer: the two wait for the controllers that bind claims, which makes such a cluster ten times as slow."""
    play(suite, CLUSTERS // 6, "--known")


@case("random small clusters: we evict if and only if kube-scheduler does, and nobody more important", needs={"real", "alone"})
def preemption(suite):
    play(suite, CLUSTERS // 6, "--preemption", "--known")
