# SPDX-License-Identifier: Apache-2.0
"""Which pods are one gang, what they must agree on, and which gangs go as one; and PodGroups as kubectl shows them."""
import json
import os
import shlex
import subprocess

from harness import ROOT, Cluster, case, check, check_equal, wait_until
from suite_gangs import BARE, GROUPS, MIN, NAME, put_group
from suite_kubectl import each
from suite_nodes import pod_group_crds

KOORD = "gang.scheduling.koordinator.sh"
SATISFIED = "cosched.io/gang-satisfied"


class Members:
    """Pods of one CPU each, on one node of their own."""

    def __init__(self, suite, cpu):
        self.cluster, self.ns = suite.cluster, suite.namespace()
        self.node = suite.node(f"{self.ns}-n", cpu=str(cpu))

    def __call__(self, name, labels=None, annotations=None, ns=None, **spec):
        return self.cluster.create_pod(ns or self.ns, name, requests={"cpu": "1"}, labels=labels, annotations=annotations,
                                       node_selector={"pool": self.node}, **spec)

    def sized(self, name, gang, least, annotations=None, ns=None, **spec):
        return self(name, {NAME: gang, MIN: str(least)}, annotations, ns, **spec)

    def refused(self, name, pattern, ns=None):
        self.cluster.wait_refused(ns or self.ns, name, pattern, reason="WaitingForGang")

    def bound(self, *names):
        for name in names:
            self.cluster.wait_bound(self.ns, name)

    def waits(self, *names):
        check_equal([self.cluster.node_of(self.ns, n) for n in names], [None] * len(names), f"{names} wait")


@case("members of one gang may use different forms when they say the same, and wait with both values when they do not")
def mixed_forms(suite):
    c = suite.cluster
    pod_group_crds(suite)
    m = Members(suite, 8)
    suite.scheduler()
    m.sized("a", "g", 3)
    m("b", annotations={f"{KOORD}/name": "g", f"{KOORD}/min-available": "3"})
    m.refused("a", "2 of 3 pods exist")
    put_group(c, m.ns, "g", 2)
    # The PodGroup comes by another watch than c: it is known when it has a status.
    wait_until(lambda: c.get(f"{GROUPS}/namespaces/{m.ns}/podgroups/g")["status"]["phase"], "the PodGroup is known")
    m("c", {BARE: "g"})
    m.refused("c", r"disagree on its size: 3 \(.*min-available of pod a\) and 2 \(PodGroup .*/g\)")
    c.do("PATCH", f"{GROUPS}/namespaces/{m.ns}/podgroups/g", {"spec": {"minMember": 3}}, "application/merge-patch+json")
    m.bound("a", "b", "c")


@case("members of different priority or compute class wait, and are told of whom")
def unequal_members(suite):
    c = suite.cluster
    for name, value in (("cosched-gang-low", 10), ("cosched-gang-high", 20)):
        c.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value})
        suite.stack.callback(lambda n=name: c.request("DELETE", f"/apis/scheduling.k8s.io/v1/priorityclasses/{n}"))
    m = Members(suite, 8)
    suite.scheduler()
    m.sized("a", "g", 2, priorityClassName="cosched-gang-low")
    m.sized("b", "g", 2, priorityClassName="cosched-gang-high")
    m.refused("a", r"different priorities: 20 \(pod b\) and 10 \(pod a\)")
    m("c", {NAME: "h", MIN: "2", "alibabacloud.com/compute-class": "gpu"})
    m("d", {NAME: "h", MIN: "2", "alibabacloud.com/compute-class": "gpu-hpn"})
    m.refused("c", r"different alibabacloud.com/compute-class: gpu-hpn \(pod d\) and gpu \(pod c\)")
    m.waits("a", "b", "c", "d")
    c.delete_pod(m.ns, "d")
    m("d", {NAME: "h", MIN: "2", "alibabacloud.com/compute-class": "gpu"})
    m.bound("c", "d")


@case("a gang that had its quorum needs none for those that come later, also for the next scheduler; one that was bound in part still does")
def once_satisfied(suite):
    c = suite.cluster
    m = Members(suite, 8)
    first = suite.scheduler()
    for name in "abc":
        m.sized(name, "g", 3)
    m.bound(*"abc")
    wait_until(lambda: c.pod(m.ns, "a")["metadata"].get("annotations", {}).get(SATISFIED) == "g", "the first member says that the quorum was there")
    first.stop()
    c.delete_pod(m.ns, "b")
    c.delete_pod(m.ns, "c")
    # As a scheduler leaves it that is killed after the first of three Bindings.
    m.sized("cut-0", "cut", 3)
    c.do("POST", f"/api/v1/namespaces/{m.ns}/pods/cut-0/binding", {"metadata": {"name": "cut-0"}, "target": {"kind": "Node", "name": m.node}})
    suite.scheduler()
    m.sized("d", "g", 3)
    m.bound("d")
    check_equal(c.pod(m.ns, "d")["metadata"]["annotations"][SATISFIED], "g", "its Binding says so for the one after that")
    m.sized("cut-1", "cut", 3)
    m.refused("cut-1", "2 of 3 pods exist")
    m.sized("cut-2", "cut", 3)
    m.bound("cut-1", "cut-2")


@case("with match-policy only-waiting the next members need a quorum of their own")
def only_waiting(suite):
    m = Members(suite, 8)
    suite.scheduler()
    policy = {f"{BARE}/match-policy": "only-waiting"}
    m.sized("a", "g", 2, policy)
    m.sized("b", "g", 2, policy)
    m.bound("a", "b")
    m.sized("c", "g", 2, policy)
    m.refused("c", "1 of 2 pods exists beside those that had their quorum")
    m.sized("d", "g", 2, policy)
    m.bound("c", "d")


@case("two gangs that name the same list go as one or not at all; no list ties a gang that does not name it")
def bundles(suite):
    c = suite.cluster
    m = Members(suite, 3)
    other = suite.namespace()
    suite.scheduler()
    both = {f"{BARE}/groups": json.dumps([f"{m.ns}/a", f"{m.ns}/b"])}
    turned = {f"{KOORD}/groups": json.dumps([f"{m.ns}/b", f"{m.ns}/a"])}
    for i in range(2):
        m.sized(f"a{i}", "a", 2, both)
    m.refused("a0", f"goes only together with gang {m.ns}/b, which does not exist yet")
    m.sized("b0", "b", 2, turned)
    m.refused("a1", f"goes only together with gang {m.ns}/b, which is not ready itself")
    m.sized("b1", "b", 2, turned)
    c.wait_refused(m.ns, "a0", "room for")
    m.waits("a0", "a1", "b0", "b1")
    # Somebody else would like to be with them; nobody asked for him.
    m.sized("x", "x", 1, {f"{BARE}/groups": json.dumps([f"{m.ns}/a", f"{other}/x"])}, other)
    m.refused("x", f"gang {other}/x names the gangs .*, gang {m.ns}/a names ", other)
    c.patch_node_status(m.node, {"cpu": "4", "memory": "8Gi", "pods": "110"})
    m.bound("a0", "a1", "b0", "b1")
    check_equal(c.node_of(other, "x"), None, "the stranger waits")


@case("kubectl get podgroup shows phase, minimum, running and age; the short name is that of scheduling.sigs.k8s.io")
@each
def columns(suite, k):
    c = suite.cluster
    pod_group_crds(suite)
    for version, name, least in (("scheduling.sigs.k8s.io/v1alpha1", "of-sigs", 3), ("scheduling.x-k8s.io/v1alpha1", "of-x", 4)):
        k.apply({"apiVersion": version, "kind": "PodGroup", "metadata": {"name": name}, "spec": {"minMember": least}})
    c.do("PATCH", f"{GROUPS}/namespaces/{k.ns}/podgroups/of-sigs/status", {"status": {"phase": "Scheduling", "running": 2}}, "application/merge-patch+json")
    for word in ("podgroup", "podgroups", "pg", "pgs"):
        titles, rows = k.table(word)
        check_equal(titles, ["NAME", "PHASE", "MINMEMBER", "RUNNING", "AGE"], f"columns of {word}")
        check_equal([{t: r[t] for t in titles[:-1]} for r in rows], [{"NAME": "of-sigs", "PHASE": "Scheduling", "MINMEMBER": "3", "RUNNING": "2"}], word)
    titles, rows = k.table("podgroups.scheduling.x-k8s.io")
    check_equal([r["NAME"] for r in rows], ["of-x"], "by its full name the other group")


@case("the API server refuses PodGroups that mean nothing", needs={"real"})
def validation(suite):
    c = suite.cluster
    pod_group_crds(suite)
    ns = suite.namespace()
    rows = (({}, "spec.minMember: Required value"), ({"minMember": 0}, "spec.minMember: Invalid value"), ({"minMember": 100001}, "spec.minMember: Invalid value"),
            ({"minMember": "3"}, "spec.minMember: Invalid value"), ({"minMember": 3, "scheduleTimeoutSeconds": 0}, "spec.scheduleTimeoutSeconds: Invalid value"),
            ({"minMember": 3, "minResources": {"cpu": "much"}}, "spec.minResources"))
    for group in ("scheduling.sigs.k8s.io", "scheduling.x-k8s.io"):
        for spec, words in rows:
            body = {"apiVersion": f"{group}/v1alpha1", "kind": "PodGroup", "metadata": {"name": "g"}, "spec": spec}
            status, reply = c.request("POST", f"/apis/{group}/v1alpha1/namespaces/{ns}/podgroups", body)
            check_equal(status, 422, f"{spec}")
            check(words in reply["message"], f"{spec}: {reply['message']}")
        crd = c.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgroups.{group}")
        conditions = {x["type"]: x["status"] for x in crd["status"]["conditions"]}
        check_equal((conditions.get("Established"), conditions.get("NonStructuralSchema")), ("True", None), f"conditions of podgroups.{group}")
        # The group of the documents is a protected one, the other is not.
        check_equal(conditions.get("KubernetesAPIApprovalPolicyConformant"), "True" if group.endswith(".k8s.io") else None, f"approval of podgroups.{group}")


@case("where Kubernetes' own gang API is switched on, its PodGroup and spec.schedulingGroup make a gang", needs={"real"})
def native(suite):
    k8s, name = os.path.join(ROOT, "test/kubernetes/k8s"), f"gangs-{os.getpid()}"
    gates = ("--runtime-config=scheduling.k8s.io/v1alpha2=true", "--feature-gates=GenericWorkload=true,GangScheduling=true")
    suite.stack.callback(subprocess.run, [k8s, "down", "--name", name], check=True, capture_output=True)
    subprocess.run([k8s, "up", "--name", name, "--no-scheduler", *(f"--apiserver-arg={g}" for g in gates)], check=True, capture_output=True)
    text = subprocess.run([k8s, "env", "--name", name], capture_output=True, text=True, check=True).stdout
    pairs = (line.removeprefix("export ").partition("=") for line in text.splitlines())
    c = suite.cluster = Cluster({key: "".join(shlex.split(value)) for key, _, value in pairs})
    pod_group_crds(suite)
    m = Members(suite, 4)
    suite.scheduler()
    path = f"/apis/scheduling.k8s.io/v1alpha2/namespaces/{m.ns}/podgroups"
    group = lambda name, policy: c.do("POST", path, {"metadata": {"name": name}, "spec": {"schedulingPolicy": policy}})
    m("a", schedulingGroup={"podGroupName": "g"})
    m.refused("a", "PodGroup .*/g does not exist")
    group("g", {"gang": {"minCount": 3}})
    m("b", schedulingGroup={"podGroupName": "g"})
    m.refused("a", "2 of 3 pods exist")
    put_group(c, m.ns, "g", 3)
    m("c", {BARE: "g"})  # mixed with another form, which says the same
    m.bound("a", "b", "c")
    group("one-by-one", {"basic": {}})
    m("d", schedulingGroup={"podGroupName": "one-by-one"})
    m.bound("d")
    # What the documentation says of the short names.
    check("POLICY" in c.kubectl("get", "podgroup", "-n", m.ns), "podgroup is Kubernetes' own here")
    check("MINMEMBER" in c.kubectl("get", "pg", "-n", m.ns), "pg is ours")
