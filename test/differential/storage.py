# SPDX-License-Identifier: Apache-2.0
"""Volumes of a world: bound claims (to volumes that only some nodes reach), unbound claims, and the volume limits of nodes.

Most claims are bound, to the volume that they name and that is reserved for them; the world begins when the volume controller has bound them. Late claims
(of a class with WaitForFirstConsumer) may find a volume: the scheduler chooses one with the node, and the controller completes the binding. Such a
decision changes claims and volumes, so these are created again after each turn, and the pod is removed.
"""

DRIVER = "disk.example.com"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
CLASSES = {"imm": "Immediate", "wait": "WaitForFirstConsumer"}
COLLECTIONS = ["/api/v1/persistentvolumes", "/apis/storage.k8s.io/v1/csinodes"]


def is_to_be_bound(item):
    """A claim that the controller binds before the world begins."""
    body = item[1]
    return (body["kind"] == "PersistentVolumeClaim" and "volumeName" in body["spec"]
            and BIND_COMPLETED not in body["metadata"].get("annotations", {}))


def is_late(item):
    """A claim or a volume that a scheduler's decision changes."""
    return item[1].get("spec", {}).get("storageClassName") == "wait"


def uses_late(pod, objects):
    names = {(o[1]["metadata"]["namespace"], o[1]["metadata"]["name"]) for o in objects if is_late(o) and o[1]["kind"] == "PersistentVolumeClaim"}
    return any((pod["metadata"]["namespace"], v.get("persistentVolumeClaim", {}).get("claimName")) in names for v in pod["spec"].get("volumes", []))


class Storage:
    def __init__(self, dice, nodes, namespaces):
        self.d, self.nodes = dice, nodes
        self.objects = []  # [collection, body, status or None]
        self.claims = {ns: [] for ns in namespaces}
        for name in nodes:
            if self.d.chance(70):
                self.objects.append(["/apis/storage.k8s.io/v1/csinodes", self.csi_node(name), None])
        for i in range(self.d.number(2, 6)):
            self.add_claim(i, self.d.one(namespaces))
        for i in range(self.d.number(0, 3)):
            self.objects.append(["/api/v1/persistentvolumes", self.volume(f"late{i}", None, ["ReadWriteOnce"]), {"phase": "Available"}])

    def csi_node(self, name):
        driver = {"name": DRIVER, "nodeID": name, "topologyKeys": []}
        if self.d.chance(85):
            driver["allocatable"] = {"count": self.d.number(1, 2)}
        drivers = [driver] if self.d.chance(90) else []
        return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name}, "spec": {"drivers": drivers}}

    def add_claim(self, i, ns):
        d = self.d
        name, volume = f"claim{i}", f"volume{i}"
        modes = [d.weighted([("ReadWriteOnce", 60), ("ReadWriteMany", 15), ("ReadWriteOncePod", 25)])]
        kind = d.weighted([("bound", 65), ("unbound", 7), ("waits", 20), ("lost", 8)])
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": ns, "annotations": {}},
                 "spec": {"accessModes": modes, "resources": {"requests": {"storage": d.one(["1Gi", "1Gi", "3Gi"])}},
                          "storageClassName": "wait" if kind == "waits" else "imm"}}
        status = None
        if kind in ("bound", "lost"):
            claim["spec"]["volumeName"] = volume
        if kind == "lost":
            claim["metadata"]["annotations"][BIND_COMPLETED] = "yes"
            status = {"phase": "Lost", "accessModes": modes, "capacity": {"storage": "1Gi"}}
        if kind == "bound":
            self.objects.append(["/api/v1/persistentvolumes", self.volume(volume, claim, modes), None])
        self.objects.append([f"/api/v1/namespaces/{ns}/persistentvolumeclaims", claim, status])
        self.claims[ns].append(name)

    def volume(self, name, claim, modes):
        d = self.d
        labels = {}
        if d.chance(20):
            labels[ZONE] = d.one(["z1", "z2", "z1__z2"])
        spec = {"capacity": {"storage": d.one(["1Gi", "5Gi"])}, "accessModes": modes, "storageClassName": "imm" if claim else "wait",
                "persistentVolumeReclaimPolicy": "Retain"}
        if claim:
            spec["claimRef"] = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": claim["metadata"]["namespace"],
                                "name": claim["metadata"]["name"]}
        if d.chance(70):
            spec["csi"] = {"driver": DRIVER, "volumeHandle": name if d.chance(90) else "shared"}
        else:
            spec["nfs"] = {"server": "192.0.2.1", "path": "/" + name}
        if d.chance(45):
            expression = d.one([{"key": ZONE, "operator": "In", "values": d.some(["z1", "z2", "z3"], 1, 2)},
                                {"key": HOST, "operator": "In", "values": d.some(self.nodes, 1, 2)},
                                {"key": "disk", "operator": "NotIn", "values": ["hdd"]}])
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
        return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name, "labels": labels}, "spec": spec}

    def add_volumes(self, ns, spec):
        """To a pod."""
        d = self.d
        out = []
        for claim in d.some(self.claims.get(ns, []), 1, 2):
            out.append({"name": f"v{len(out)}", "persistentVolumeClaim": {"claimName": claim}})
        if d.chance(4):
            out.append({"name": "absent", "persistentVolumeClaim": {"claimName": "absent"}})
        if d.chance(4):
            template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "imm"}}
            out.append({"name": "own", "ephemeral": {"volumeClaimTemplate": template}})
        if d.chance(30):
            out.append({"name": "scratch", "emptyDir": {}})
        if out:
            spec["volumes"] = out
