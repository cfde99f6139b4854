# SPDX-License-Identifier: Apache-2.0
"""Every right that the chart grants is used: for suite_install."""
import json
import os

from harness import wait_until
from install_proxy import Proxy
from install_site import GIB, HOME


def lose_replies(site, ns, proxy):
    """A Binding whose reply is lost, one that is not let through for a while, and a pod of which the device plugin hears late."""
    c, fast = site.cluster, 60
    proxy.rules[rf"^POST /api/v1/namespaces/{ns}/pods/lost/binding\b"] = "lose"
    c.create_pod(ns, "lost", hostNetwork=True)
    c.wait_bound(ns, "lost")
    wait_until(lambda: proxy.saw(rf"^GET /api/v1/namespaces/{ns}/pods/lost\b"), "the scheduler asks what became of the pod", fast)
    late = rf"^POST /api/v1/namespaces/{ns}/pods/late/binding\b"
    proxy.rules[late] = "stall"
    c.create_pod(ns, "late", hostNetwork=True)
    wait_until(lambda: proxy.saw(rf"^GET /api/v1/nodes/{site.node}\b"), "the scheduler asks whether the node is still there", fast)
    del proxy.rules[late]
    c.wait_bound(ns, "late", fast)
    held = r"^GET /api/v1/pods\?.*spec\.nodeName"
    proxy.rules[held] = "hold"
    c.create_pod(ns, "unseen", limits={GIB: "1"}, hostNetwork=True)
    wait_until(lambda: proxy.saw(rf"^GET /api/v1/namespaces/{ns}/pods/unseen\b"), "the device plugin asks for a pod that it does not know", fast)
    wait_until(lambda: c.pod(ns, "unseen")["status"].get("phase") == "Running", "and the pod runs", fast)
    del proxy.rules[held]
    for name in ("lost", "late", "unseen"):
        c.delete_pod(ns, name)


def use_every_right(site, ns):
    """What the rights are for and ordinary pods do not need: a deleted Lease and Secret, groups, preemption, a claim that waits for its consumer, replies that get lost."""
    c = site.cluster
    proxy = Proxy(site.suite, c)
    site.upgrade("--set", f"apiServer.port={proxy.port},scheduler.options.request-timeout=3s")
    site.wait_ready()
    lose_replies(site, ns, proxy)
    c.do("DELETE", f"/apis/coordination.k8s.io/v1/namespaces/{HOME}/leases/cosched-scheduler")
    c.do("DELETE", f"/api/v1/namespaces/{HOME}/secrets/cosched-webhook-cert")
    for group in ("scheduling.sigs.k8s.io", "scheduling.x-k8s.io"):
        name = group.replace(".", "-")
        c.do("POST", f"/apis/{group}/v1alpha1/namespaces/{ns}/podgroups",
             {"apiVersion": f"{group}/v1alpha1", "kind": "PodGroup", "metadata": {"name": name}, "spec": {"minMember": 1, "scheduleTimeoutSeconds": 1}})
        label = {"pod-group.scheduling.sigs.k8s.io": name} if group == "scheduling.sigs.k8s.io" else {"scheduling.x-k8s.io/pod-group": name}
        # The second finds no room, for which it gets the same Event again and again.
        c.create_pod(ns, name, labels=label, hostNetwork=True, requests={"cpu": "1000"} if group == "scheduling.x-k8s.io" else {})

    c.do("POST", f"/apis/scheduling.alibabacloud.com/v1alpha1/namespaces/{ns}/resourcepolicies", {
        "apiVersion": "scheduling.alibabacloud.com/v1alpha1", "kind": "ResourcePolicy", "metadata": {"name": "first-here"},
        "spec": {"selector": {"app": "policy"}, "strategy": "prefer", "units": [{"resource": "ecs", "max": 5}]}})
    c.create_pod(ns, "policy", labels={"app": "policy"}, hostNetwork=True)

    # A volume that is there, and a claim that waits for the pod that uses it.
    c.do("POST", "/apis/storage.k8s.io/v1/storageclasses", {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "by-hand"},
                                                            "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"})
    path = os.path.join(site.env["K8S_DIR"], "volume")
    os.makedirs(path, exist_ok=True)
    here = {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [site.node]}]}]}}
    c.do("POST", "/api/v1/persistentvolumes", {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "by-hand"}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "by-hand", "local": {"path": path}, "nodeAffinity": here}})
    for name, kind in (("room", "by-hand"), ("made", "by-driver")):
        c.do("POST", f"/api/v1/namespaces/{ns}/persistentvolumeclaims", {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": kind, "resources": {"requests": {"storage": "1Gi"}}}})
    # A driver that nobody runs: the claim is told its node, and goes no further.
    c.do("POST", "/apis/storage.k8s.io/v1/storageclasses", {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "by-driver"},
                                                            "provisioner": "nobody.example.com", "volumeBindingMode": "WaitForFirstConsumer"})
    proxy.rules[r"^PATCH /api/v1/(namespaces/user/persistentvolumeclaims/made|persistentvolumes/by-hand)\b"] = "lose"
    for name in ("room", "made"):
        c.create_pod(ns, f"uses-{name}", hostNetwork=True, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name}}])
    wait_until(lambda: c.pod(ns, "uses-room")["spec"].get("nodeName"), "the pod with the volume is bound")
    wait_until(lambda: "volume.kubernetes.io/selected-node" in c.get(f"/api/v1/namespaces/{ns}/persistentvolumeclaims/made")["metadata"].get("annotations", {}),
               "the claim of the driver is told its node")

    # The cards are full of a pod that matters less.
    c.do("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 1000})
    c.create_pod(ns, "fills", limits={GIB: "15"}, hostNetwork=True)
    c.wait_bound(ns, "fills")
    c.create_pod(ns, "urgent", limits={GIB: "15"}, hostNetwork=True, priorityClassName="urgent")
    c.wait_bound(ns, "urgent")
    wait_until(lambda: c.get(f"/apis/scheduling.alibabacloud.com/v1alpha1/namespaces/{ns}/resourcepolicies/first-here").get("status"), "the policy has a status", 30)
    said = lambda where, name: max([0, *(e.get("count", 1) for e in c.get(f"/api/v1/namespaces/{where}/events")["items"]
                                         if e["involvedObject"].get("name") == name and e.get("source", {}).get("component", "").startswith(("cosched", "ack-co-")))])
    wait_until(lambda: said(ns, "scheduling-x-k8s-io") > 1, "an Event of the scheduler is counted", 30)
    # A node whose cards are in use says each time that its mode is not switched.
    for times in (1, 2):
        site.set_mode("topology")
        wait_until(lambda: said("default", site.node) >= times, f"the node says {times} times that it waits", 30)  # pylint: disable=cell-var-from-loop
        site.set_mode("share")
        wait_until(lambda: json.loads(c.get(f"/api/v1/nodes/{site.node}")["metadata"]["annotations"]["cosched.io/gpu-inventory"]).get("switchingTo") is None,
                   "the node stays in its mode")
    wait_until(lambda: c.request("GET", f"/api/v1/namespaces/{HOME}/secrets/cosched-webhook-cert")[0] == 200, "the Secret is made again", 30)
    wait_until(lambda: c.get(f"/apis/coordination.k8s.io/v1/namespaces/{HOME}/leases/cosched-scheduler")["spec"].get("holderIdentity"), "the Lease is made again", 30)
