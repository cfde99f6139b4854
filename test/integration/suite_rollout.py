# SPDX-License-Identifier: Apache-2.0
"""Deployments whose pods do not all get a place: how many pods of each template there are when the controller has done all it may.

No scheduler takes these pods, and a case says itself which of them run, so a rollout stands still wherever a case wants it to. The numbers are those of the
real controller (this suite runs on both clusters); suite_faults relies on them when it says what a Deployment may look like while its pods wait.

  a rollout has at most replicas + maxSurge pods (rounded up) and keeps replicas - maxUnavailable (rounded down) available; pods of the new template that
  wait count against what may be taken from the old ones, so 5 replicas at 25% stand still at 4 old + 3 new = 7
"""
from harness import MERGE, case, check, check_equal, wait_until

REVISION = "deployment.kubernetes.io/revision"
RUNNING = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}
WAITING = {"status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:01Z"}]}}


class Rollout:
    """A Deployment of its own, by the name web."""

    def __init__(self, suite, replicas, rolling=None, **spec):
        self.cluster, self.ns = suite.cluster, suite.namespace()
        self.path = f"/apis/apps/v1/namespaces/{self.ns}/deployments/web"
        strategy = {"strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}} if rolling else {}
        pod = {"containers": [{"name": "main", "image": "busybox:test"}], "schedulerName": "nobody", "terminationGracePeriodSeconds": 0}
        template = {"metadata": {"labels": {"app": "web"}, "annotations": {"v": "1"}}, "spec": pod}
        body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
                "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template, **strategy, **spec}}
        self.cluster.do("POST", self.path.rpartition("/")[0], body)
        self.expect(**{"1": replicas})

    def patch(self, **spec):
        self.cluster.do("PATCH", self.path, {"spec": spec}, MERGE)

    def template(self, v, **spec):
        self.patch(template={"metadata": {"annotations": {"v": str(v)}}}, **spec)

    def sets(self):
        """By the v of their template."""
        items = self.cluster.get(f"/apis/apps/v1/namespaces/{self.ns}/replicasets")["items"]
        return {o["spec"]["template"]["metadata"]["annotations"]["v"]: o for o in items}

    def pods(self, v):
        return [o for o in self.cluster.pods(self.ns) if o["metadata"]["annotations"]["v"] == str(v) and "deletionTimestamp" not in o["metadata"]]

    def mark(self, v, count, status):
        """That many pods of a template that do not have this status yet get it."""
        others = [o for o in self.pods(v) if o["status"]["phase"] != status["status"]["phase"]][:count]
        check_equal(len(others), count, f"pods of {v} to be made {status['status']['phase']}")
        for o in others:
            self.cluster.do("PATCH", f"/api/v1/namespaces/{self.ns}/pods/{o['metadata']['name']}/status", status, MERGE)

    def run(self, v, count):
        self.mark(v, count, RUNNING)

    def fail(self, v, count):
        self.mark(v, count, WAITING)

    def progressing(self):
        """Status, reason and message of this condition."""
        conditions = self.cluster.get(self.path)["status"].get("conditions", [])
        return next(((c["status"], c["reason"], c["message"]) for c in conditions if c["type"] == "Progressing"), None)

    def expect_progressing(self, *what):
        wait_until(lambda: check_equal(self.progressing(), what, "Progressing") or True, f"it says {what[1]}", 20)

    def expect_goes_on(self):
        """A controller that wrote the new set and its first pod down in one go has seen no progress in between, and says only that the set was made."""
        reasons = {"ReplicaSetUpdated", "NewReplicaSetCreated"}
        wait_until(lambda: check(self.progressing()[0] == "True" and self.progressing()[1] in reasons, f"Progressing is {self.progressing()}") or True,
                   "the condition says that the rollout goes on", 20)

    def at_rest(self, sizes):
        """The sets, when every controller has seen everything and they have these sizes."""
        d, sets = self.cluster.get(self.path), self.sets()
        check_equal(d["status"].get("observedGeneration"), d["metadata"]["generation"], "observedGeneration")
        check_equal({v: o["spec"]["replicas"] for v, o in sets.items()}, sizes, "sizes of the sets")
        ready = {v: sum(o["status"]["phase"] == "Running" for o in self.pods(v)) for v in sets}
        for v, o in sets.items():
            status = o["status"]
            check_equal(status.get("observedGeneration"), o["metadata"]["generation"], f"observedGeneration of set {v}")
            check_equal((status.get("replicas"), len(self.pods(v))), (sizes[v], sizes[v]), f"status and pods of set {v}")
            check_equal(status.get("availableReplicas", 0), ready[v], f"availableReplicas of set {v}")
        newest = d["spec"]["template"]["metadata"]["annotations"]["v"]
        total = sum(sizes.values())
        want = {"replicas": total, "updatedReplicas": sizes.get(newest, 0), "availableReplicas": sum(ready.values()),
                "unavailableReplicas": total - sum(ready.values())}
        check_equal({k: d["status"].get(k, 0) for k in want}, want, "status of the Deployment")
        return sets

    def expect(self, **sizes):
        """It comes to these sizes and stays there: it is told of one more generation, and when it has seen that the sizes are the same."""
        wait_until(lambda: self.at_rest(sizes), f"the sets have {sizes} pods", 20)
        deadline = self.cluster.get(self.path)["spec"]["progressDeadlineSeconds"]
        self.patch(progressDeadlineSeconds=deadline + 1)
        return wait_until(lambda: self.at_rest(sizes), f"the sets still have {sizes} pods", 20)


def stalled(suite, **spec):
    """5 replicas of which a new template gets no place: 4 old, 3 new."""
    r = Rollout(suite, 5, **spec)
    r.run(1, 5)
    r.template(2)
    r.expect(**{"1": 4, "2": 3})
    return r


@case("a rollout: 5 replicas at 25% stand still at 4 old and 3 new pods, go on with each that runs, and end with 5 new ones")
def goes_on(suite):
    r = stalled(suite)
    r.run(2, 1)
    r.expect(**{"1": 3, "2": 4})
    r.run(2, 3)
    r.expect(**{"1": 0, "2": 5})
    r.run(2, 1)
    r.expect(**{"1": 0, "2": 5})


@case("a rollout: old pods that do not run are not taken while as many new ones wait")
def old_ones_wait(suite):
    r = stalled(suite)
    r.fail(1, 1)
    r.expect(**{"1": 4, "2": 3})
    r = Rollout(suite, 5)
    r.template(2)
    r.expect(**{"1": 4, "2": 3})


@case("a rollout: a third template takes the place of a second one that waits; back to the first, the pods that waited go")
def another_template(suite):
    r = stalled(suite, revisionHistoryLimit=0)
    r.template(3)
    # The set without pods is kept as long as the rollout is not complete, whatever the history's limit.
    r.expect(**{"1": 4, "2": 0, "3": 3})
    r.template(1)
    sets = r.expect(**{"1": 5, "2": 0, "3": 0})
    check_equal(sets["1"]["metadata"]["annotations"][REVISION], "4", "revision")
    r.run(1, 1)
    r.expect(**{"1": 5})


@case("a rollout that stands still and is scaled: sets grow and shrink in proportion, replicas + maxSurge in all")
def scaled(suite):
    r = stalled(suite)
    r.patch(replicas=8)
    r.expect(**{"1": 6, "2": 4})
    r.patch(replicas=2)
    r.expect(**{"1": 2, "2": 1})
    r.patch(replicas=0)
    r.expect(**{"1": 0, "2": 0})
    r.patch(replicas=3)
    r.expect(**{"1": 0, "2": 3})


@case("a rollout that is scaled by the same change: first the old pods have the new number, then the new template comes")
def scaled_with_template(suite):
    r = Rollout(suite, 5)
    r.run(1, 5)
    r.template(2, replicas=8)
    r.expect(**{"1": 6, "2": 4})
    r = stalled(suite)
    r.template(3, replicas=2)
    r.expect(**{"1": 2, "2": 0, "3": 1})


@case("a rollout with maxSurge and maxUnavailable as numbers, as 0, and beyond what there is")
def bounds(suite):
    for replicas, surge, unavailable, old, new in ((3, 0, 1, 2, 1), (3, 1, 0, 3, 1), (4, 10, 0, 4, 4), (4, 0, 10, 0, 4), (1, "25%", "25%", 1, 1),
                                                   (3, "1%", "99%", 1, 3), (10, "30%", "25%", 8, 5), (3, "0%", "1%", 2, 1)):
        r = Rollout(suite, replicas, {"maxSurge": surge, "maxUnavailable": unavailable})
        r.run(1, replicas)
        r.template(2)
        r.expect(**{"1": old, "2": new})


@case("a paused Deployment follows its number and not its template; a rollout that is paused is scaled in proportion")
def paused(suite):
    r = Rollout(suite, 2)
    r.run(1, 2)
    r.template(2, paused=True)
    r.expect(**{"1": 2})
    r.patch(replicas=4)
    r.expect(**{"1": 4})
    r.run(1, 2)
    r.patch(paused=False)
    r.expect(**{"1": 3, "2": 2})
    r.patch(paused=True)
    r.patch(replicas=8)
    r.expect(**{"1": 6, "2": 4})
    r.run(2, 4)
    r.expect(**{"1": 6, "2": 4})


@case("a Deployment says how its rollout stands: complete, scaled (still complete), paused, resumed, complete again; without a deadline it says nothing")
def says(suite):
    r = Rollout(suite, 2)
    name = r.sets()["1"]["metadata"]["name"]
    done = ("True", "NewReplicaSetAvailable", f'ReplicaSet "{name}" has successfully progressed.')
    r.run(1, 2)
    r.expect(**{"1": 2})
    r.expect_progressing(*done)
    r.patch(replicas=3)
    r.expect(**{"1": 3})
    check_equal(r.progressing(), done, "Progressing of a Deployment that is scaled")
    r.patch(paused=True)
    r.expect_progressing("Unknown", "DeploymentPaused", "Deployment is paused")
    r.patch(paused=False)
    r.expect_progressing("Unknown", "DeploymentResumed", "Deployment is resumed")
    r.run(1, 1)
    r.expect_progressing(*done)
    r.template(2)
    r.expect(**{"1": 3, "2": 1})
    r.expect_goes_on()
    r.patch(progressDeadlineSeconds=2**31 - 1)
    wait_until(lambda: r.progressing() is None, "the condition is gone", 20)


@case("the newest set follows its Deployment's annotations and minReadySeconds; older ones stay as they were")
def follows(suite):
    r = Rollout(suite, 1)
    r.cluster.do("PATCH", r.path, {"metadata": {"annotations": {"kubernetes.io/change-cause": "because"}}, "spec": {"minReadySeconds": 7}}, MERGE)

    def shows(v):
        o = r.sets()[v]
        return o["metadata"]["annotations"].get("kubernetes.io/change-cause"), o["spec"].get("minReadySeconds", 0)

    wait_until(lambda: shows("1") == ("because", 7), "the set follows")
    r.template(2, minReadySeconds=0)
    wait_until(lambda: shows("2") == ("because", 0), "the new set follows")
    check_equal(shows("1"), ("because", 7), "the old set")
