# SPDX-License-Identifier: Apache-2.0
"""Claims and volumes: what the scheduler writes so that they are bound, and that a pod waits for it.

On a real cluster the volume controller does its part; the embedded one has none, so there the case plays it. What makes volumes is played on both.
"""
from harness import MERGE, case, check, check_equal, wait_until

CLASSES, VOLUMES = "/apis/storage.k8s.io/v1/storageclasses", "/api/v1/persistentvolumes"
SELECTED = "volume.kubernetes.io/selected-node"


class Storage:
    """The storage of one case, in one namespace."""

    def __init__(self, suite, ns, provisioner):
        self.suite, self.c, self.ns, self.name = suite, suite.cluster, ns, f"{ns}-class"
        self.put(CLASSES, {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": self.name}, "provisioner": provisioner,
                           "volumeBindingMode": "WaitForFirstConsumer"})
        self.claims = f"/api/v1/namespaces/{ns}/persistentvolumeclaims"

    def put(self, collection, body):
        made = self.c.do("POST", collection, body)
        path = f"{collection}/{body['metadata']['name']}"
        self.suite.stack.callback(self.c.do, "DELETE", path, None, "application/json", (200, 202, 404))
        return made

    def claim(self, name):
        return self.put(self.claims, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
                                      "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": self.name,
                                               "resources": {"requests": {"storage": "1Gi"}}}})

    def volume(self, name, node, claim=None):
        """A volume that only this node reaches; for one claim, as what makes volumes does it."""
        expression = {"key": "pool", "operator": "In", "values": [node]}
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": self.name,
                "persistentVolumeReclaimPolicy": "Retain", "nfs": {"server": "192.0.2.1", "path": "/"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}
        if claim:
            spec["claimRef"] = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": self.ns, "name": claim["metadata"]["name"],
                                "uid": claim["metadata"]["uid"]}
        self.put(VOLUMES, {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})
        if self.c.target == "local":
            self.patch(f"{VOLUMES}/{name}/status", {"status": {"phase": "Available"}})
        else:
            wait_until(lambda: self.get_volume(name)["status"].get("phase") in ("Available", "Bound"), f"volume {name} is available")

    def patch(self, path, body):
        return self.c.do("PATCH", path, body, MERGE)

    def get_claim(self, name):
        return self.c.get(f"{self.claims}/{name}")

    def get_volume(self, name):
        return self.c.get(f"{VOLUMES}/{name}")

    def selected(self, claim):
        return self.get_claim(claim)["metadata"].get("annotations", {}).get(SELECTED)

    def bind(self, claim, volume):
        """What the controller does when a volume is reserved for a claim."""
        if self.c.target != "local":
            return
        self.patch(f"{VOLUMES}/{volume}/status", {"status": {"phase": "Bound"}})
        self.patch(f"{self.claims}/{claim}", {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": volume}})
        self.patch(f"{self.claims}/{claim}/status", {"status": {"phase": "Bound"}})

    def pod(self, name, claim, **what):
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
        return self.c.create_pod(self.ns, name, volumes=volumes, **what)


def claim_of(volume):
    ref = volume["spec"].get("claimRef") or {}
    return ref.get("name") if ref.get("uid") else None


@case("a claim that waits for its first consumer gets the volume that its pod's node reaches, and then the pod is bound")
def first_consumer(suite):
    c, ns = suite.cluster, suite.namespace()
    storage = Storage(suite, ns, "kubernetes.io/no-provisioner")
    near, far = suite.node(f"{ns}-near"), suite.node(f"{ns}-far")
    suite.scheduler()
    storage.pod("p", "data")
    c.wait_refused(ns, "p", rf"claim {ns}/data does not exist")
    storage.claim("data")
    c.wait_refused(ns, "p", rf"no free volume that fits claim {ns}/data")
    storage.volume(f"{ns}-v", far)
    wait_until(lambda: claim_of(storage.get_volume(f"{ns}-v")) == "data", "the volume is reserved for the claim")
    if c.target == "local":
        check(c.node_of(ns, "p") is None, "the pod was bound before its claim")
    storage.bind("data", f"{ns}-v")
    check_equal(c.wait_bound(ns, "p"), far, "the node of the pod")
    # The claim is bound now: whoever uses it goes there too.
    storage.pod("q", "data")
    check_equal(c.wait_bound(ns, "q"), far, "the node of the second pod")
    storage.pod("r", "data", node_selector={"pool": near})
    c.wait_refused(ns, "r", rf"cannot reach volume {ns}-v of claim {ns}/data")


@case("a volume is made for a claim on the node that was chosen; when that fails the pod is tried again")
def provisioned(suite):
    c, ns = suite.cluster, suite.namespace()
    storage = Storage(suite, ns, "example.com/disk")
    node = suite.node(f"{ns}-node")
    suite.scheduler()
    made = storage.claim("data")
    storage.pod("p", "data", node_selector={"pool": node})
    wait_until(lambda: storage.selected("data") == node, "the claim gets its node")
    wait_until(lambda: c.pod(ns, "p")["status"].get("nominatedNodeName") == node, "others are told where the pod goes")
    storage.patch(f"{storage.claims}/data", {"metadata": {"annotations": {SELECTED: None}}})  # no volume could be made
    wait_until(lambda: storage.selected("data") == node, "the pod is tried again")
    storage.volume(f"{ns}-v", node, made)
    storage.bind("data", f"{ns}-v")
    check_equal(c.wait_bound(ns, "p"), node, "the node of the pod")


@case("a pod that goes while its claim is being bound leaves the claim free for another node")
def gone_while_waiting(suite):
    c, ns = suite.cluster, suite.namespace()
    storage = Storage(suite, ns, "example.com/disk")
    one, two = suite.node(f"{ns}-one"), suite.node(f"{ns}-two")
    suite.scheduler()
    storage.claim("data")
    storage.pod("p", "data", node_selector={"pool": one})
    wait_until(lambda: storage.selected("data") == one, "the claim gets its node")
    c.delete_pod(ns, "p")
    wait_until(lambda: storage.selected("data") is None, "the claim gives its node back")
    storage.pod("q", "data", node_selector={"pool": two})
    wait_until(lambda: storage.selected("data") == two, "the claim gets another node")
