# SPDX-License-Identifier: Apache-2.0
"""A large gang among small jobs: room is kept for it after a while (docs/fairness.md)."""
from harness import case, check, check_equal, http_get, wait_until
from suite_gangs import MIN, NAME


class Nodes:
    """Two nodes of 2 CPUs for small pods of 1 CPU, and a gang of two pods of 2 CPUs: it needs both nodes whole."""

    def __init__(self, suite):
        self.cluster, self.ns = suite.cluster, suite.namespace()
        self.pool = f"{self.ns}-pool"
        for i in (1, 2):
            suite.node(f"{self.ns}-n{i}", cpu="2", labels={"pool": self.pool})

    def small(self, name, **spec):
        self.cluster.create_pod(self.ns, name, requests={"cpu": "1"}, node_selector={"pool": self.pool}, **spec)

    def big(self):
        for i in (0, 1):
            self.cluster.create_pod(self.ns, f"big-{i}", requests={"cpu": "2"}, labels={NAME: "big", MIN: "2"}, node_selector={"pool": self.pool})


@case("small jobs go past a large gang that waits, until room is kept for it: then it starts when those that were there before have ended")
def kept_room(suite):
    n = Nodes(suite)
    c = n.cluster
    p = suite.scheduler("--gang-reserve-after=10")
    n.small("first")
    c.wait_bound(n.ns, "first")
    n.big()
    c.wait_refused(n.ns, "big-0", "nodes fit")
    n.small("past")
    c.wait_bound(n.ns, "past")
    c.wait_refused(n.ns, "big-0", r"room is kept for it on 2 nodes until it starts, about 20\d\d-", seconds=60)
    n.small("late")
    c.wait_refused(n.ns, "late", rf"keep room for gang {n.ns}/big until it starts, about 20\d\d-")
    n.small("brief", activeDeadlineSeconds=5)
    c.wait_bound(n.ns, "brief")
    for name in ("first", "past", "brief"):
        c.delete_pod(n.ns, name)
    for i in (0, 1):
        c.wait_bound(n.ns, f"big-{i}")
    check_equal(c.node_of(n.ns, "late"), None, "the late one waits")
    text = http_get(p.port, "/metrics")[1]
    check('cosched_scheduler_reservations_total{result="used"} 1' in text and "\ncosched_scheduler_reservations 0" in text, "the metrics")
    for i in (0, 1):
        c.delete_pod(n.ns, f"big-{i}")
    c.wait_bound(n.ns, "late")


@case("with --gang-reserve-after=0 no room is kept: small jobs go past a large gang for ever")
def nothing_kept(suite):
    n = Nodes(suite)
    c = n.cluster
    p = suite.scheduler("--gang-reserve-after=0")
    n.small("s0")
    c.wait_bound(n.ns, "s0")
    n.big()
    c.wait_refused(n.ns, "big-0", "nodes fit")
    for i in range(1, 20):
        n.small(f"s{i}")
        c.wait_bound(n.ns, f"s{i}")
        c.delete_pod(n.ns, f"s{i - 1}")
        wait_until(lambda gone=f"s{i - 1}": gone not in {pod["metadata"]["name"] for pod in c.pods(n.ns)}, f"s{i - 1} is gone")
    check_equal([c.node_of(n.ns, f"big-{i}") for i in (0, 1)], [None, None], "the gang waits")
    check('reservations_total{result="made"}' not in http_get(p.port, "/metrics")[1], "nothing was kept")
