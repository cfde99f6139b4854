# SPDX-License-Identifier: Apache-2.0
"""The reflector against a real API server that dies, hangs and forgets: its copy equals the truth after every fault."""
import random
import os
import time

from harness import Failed, case, check, wait_until

FAULTS = ("kill apiserver", "pause apiserver", "compact", "restart apiserver")


def compare(program, seconds=60):
    """Asks reflector_check to compare its copy with a fresh list, object by object."""

    def ask():
        seen = program.output().count("\n")
        program.process.stdin.write(b"compare\n")
        program.process.stdin.flush()
        line = wait_until(lambda: program.alive() and program.output().splitlines()[seen:], "an answer", 30)[-1]
        return "equal" in line

    wait_until(ask, "the reflector's copy equals the API server's state", seconds, step=0.3)


@case("faults in a row (killed, hanging, restarted API server, etcd compaction): each ends with exactly the API server's state", needs={"alone"})
def survives(suite):
    count = int(os.environ.get("COSCHED_FAULTS", "6"))
    seed = int(os.environ.get("COSCHED_SEED", str(int(time.time()))))
    print(f"     seed {seed}, {count} faults", flush=True)
    dice = random.Random(seed)
    c, ns = suite.cluster, suite.namespace()
    p = suite.program("reflector_check", f"--kubeconfig={c.kubeconfig}", "--watch-idle=3s", "--request-timeout=5s")
    names = []

    def churn(n):
        for _ in range(n):
            if names and dice.random() < 0.4:
                c.delete_pod(ns, names.pop(dice.randrange(len(names))))
            elif names and dice.random() < 0.4:
                c.do("PATCH", f"/api/v1/namespaces/{ns}/pods/{dice.choice(names)}", {"metadata": {"labels": {"n": str(dice.random())}}},
                     "application/merge-patch+json")
            else:
                name = f"p{dice.randrange(10**9)}"
                c.create_pod(ns, name, scheduler="nobody")
                names.append(name)

    churn(10)
    compare(p)
    faults = [FAULTS[i % len(FAULTS)] for i in range(count)]
    dice.shuffle(faults)
    for fault in faults:
        churn(3)
        if fault == "kill apiserver":
            c.k8s("kill", "apiserver")
            c.k8s("start", "apiserver")
        elif fault == "restart apiserver":
            c.k8s("stop", "apiserver")
            c.k8s("start", "apiserver")
        elif fault == "pause apiserver":
            c.k8s("pause", "apiserver")
            time.sleep(4)  # longer than --watch-idle
            c.k8s("resume", "apiserver")
        else:
            c.k8s("compact")
        wait_until(lambda: c.request("GET", "/readyz")[0] == 200, "the API server is back", 60)
        churn(3)
        try:
            compare(p)
        except Failed as e:
            raise Failed(f"after '{fault}': {e}") from e
    check(p.alive(), "it runs")
    p.process.stdin.close()
    check(p.process.wait(timeout=10) == 0, f"ended with {p.process.returncode}: {p.output()[-3000:]}")
    p.check_clean()
