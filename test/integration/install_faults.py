# SPDX-License-Identifier: Apache-2.0
"""Faults that are planted into an installation that is well, one after the other: `kubectl inspect cgpu doctor` finds each, and that one alone.

A fault is a context manager that plants it and takes it away, and the findings (how each begins) that it makes. Faults of nodes and pods are planted on a node that is
only an API object, so that the programs, which would mend some of them at once, have no part in it. A fault of the webhook is planted while it is scaled to 0 for the same reason.
"""
import base64
import contextlib
import json
import os
import re
import subprocess

from harness import MERGE, Failed, check, wait_until
from install_site import GIB, HOME, make_namespace

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PLANTED = "planted"
CLAIM, CONFIRMED = "scheduler.framework.gpushare.allocation", "cosched.io/gpu-confirmed"


def bare(o):
    """What can be created again."""
    meta = {k: o["metadata"][k] for k in ("name", "namespace", "labels", "annotations") if k in o["metadata"]}
    return {**{k: v for k, v in o.items() if k != "status"}, "metadata": meta}


@contextlib.contextmanager
def without(c, path):
    """An object is not there."""
    kept = c.get(path)
    c.do("DELETE", path)
    wait_until(lambda: c.request("GET", path)[0] == 404, f"{path} is gone")
    try:
        yield
    finally:
        c.do("POST", os.path.dirname(path), bare(kept))


@contextlib.contextmanager
def without_crds(c, *names):
    with contextlib.ExitStack() as stack:
        for name in names:
            stack.enter_context(without(c, f"{CRDS}/{name}"))
        yield
    for name in names:
        wait_until(lambda: any(x["type"] == "Established" and x["status"] == "True" for x in c.get(f"{CRDS}/{name}")["status"]["conditions"]), f"{name} is served again")  # pylint: disable=cell-var-from-loop


@contextlib.contextmanager
def without_rule(c, role, resource):
    """The rules about a resource are taken from a ClusterRole."""
    path = f"{RBAC}/clusterroles/{role}"
    rules = c.get(path)["rules"]
    c.do("PATCH", path, {"rules": [r for r in rules if resource not in r["resources"]]}, MERGE)
    try:
        yield
    finally:
        c.do("PATCH", path, {"rules": rules}, MERGE)


@contextlib.contextmanager
def scaled_away(site, program):
    c, path = site.cluster, f"/apis/apps/v1/namespaces/{HOME}/deployments/cosched-{program}"
    label = f"/api/v1/namespaces/{HOME}/pods?labelSelector=app.kubernetes.io/name%3Dcosched-{program}"
    c.do("PATCH", path, {"spec": {"replicas": 0}}, MERGE)
    wait_until(lambda: not c.get(label)["items"] and not c.get(path)["status"].get("readyReplicas"), f"{program} is gone", 60)
    try:
        yield
    finally:
        c.do("PATCH", path, {"spec": {"replicas": 1}}, MERGE)
        site.wait_ready()


@contextlib.contextmanager
def hook_says(c, **config):
    """The first mutating webhook's clientConfig is another."""
    path = f"{ADMISSION}/mutatingwebhookconfigurations/cosched-webhook"
    before = c.get(path)["webhooks"][0]["clientConfig"]
    patch = lambda how: c.do("PATCH", path, [{"op": "replace", "path": "/webhooks/0/clientConfig", "value": how}], "application/json-patch+json")
    patch({k: v for k, v in {**before, **config}.items() if v is not None})
    try:
        yield
    finally:
        patch(before)


@contextlib.contextmanager
def secret_has(c, **data):
    path = f"/api/v1/namespaces/{HOME}/secrets/cosched-webhook-cert"
    before = c.get(path)["data"]
    c.do("PATCH", path, {"data": data}, MERGE)
    try:
        yield
    finally:
        c.do("PATCH", path, {"data": {k: before[k] for k in data}}, MERGE)


def old_certificate(directory):
    """One that has ended, in base64."""
    key, pem = os.path.join(directory, "old.key"), os.path.join(directory, "old.pem")
    # -days of this openssl wants at least one day; a certificate of a CA can be dated freely.
    config = os.path.join(directory, "old.cnf")
    with open(config, "w", encoding="ascii") as f:
        f.write(f"[ca]\ndefault_ca=d\n[d]\ndatabase={directory}/old.db\nnew_certs_dir={directory}\nserial={directory}/old.serial\ndefault_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n")
    for name, text in (("old.db", ""), ("old.serial", "01\n")):
        with open(os.path.join(directory, name), "w", encoding="ascii") as f:
            f.write(text)
    for command in (["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", pem + ".csr", "-subj", "/CN=old"],
                    ["openssl", "ca", "-batch", "-config", config, "-selfsign", "-keyfile", key, "-in", pem + ".csr", "-out", pem, "-notext",
                     "-startdate", "20200101000000Z", "-enddate", "20200401000000Z"]):
        subprocess.run(command, check=True, capture_output=True, timeout=30)
    with open(pem, "rb") as f:
        return base64.b64encode(f.read()).decode()


def inventory(mode="share", health="ok", switching=None, version=1):
    cards = [{"i": i, "uuid": f"GPU-planted-{i}", "model": "Tesla T4", "mib": 15360, "numa": 0, "pci": f"0000:{i}b:00.0", "health": health if i == 0 else "ok"} for i in (0, 1)]
    return json.dumps({"v": version, "mode": mode, "switchingTo": switching, "isolation": "none", "cards": cards})


@contextlib.contextmanager
def planted_node(site, pods=(), label="share", offers=None, **cards):
    """A node with two cards of 15 GiB; pods: (name, GiB, claim, confirmed) that are bound to it."""
    c = site.cluster
    ns = "faults"
    annotations = {} if cards.get("version") == 0 else {"cosched.io/gpu-inventory": inventory(**cards)}
    c.create_node(PLANTED, labels={"ack.node.gpu.schedule": label}, annotations=annotations,
                  extra={} if cards.get("version") == 0 else {GIB: "30", "aliyun.com/gpu-count": "2", **(offers or {})})
    try:
        for name, gib, claim, confirmed in pods:
            c.create_pod(ns, name, limits={GIB: str(gib)}, nodeName=PLANTED)
            site.annotate(ns, name, **{CLAIM: claim, CONFIRMED: confirmed})
        yield
    finally:
        c.do("DELETE", f"/api/v1/nodes/{PLANTED}", ok=(200, 404))
        for pod in c.pods(ns):
            c.delete_pod(ns, pod["metadata"]["name"])
        wait_until(lambda: not c.pods(ns), "the planted pods are gone")


@contextlib.contextmanager
def lost_node(site):
    with planted_node(site, pods=[("orphan", 4, '{"0":{"0":4}}', None)]):
        site.cluster.do("DELETE", f"/api/v1/nodes/{PLANTED}")
        yield


def faults(site):
    """(what is planted, how, the findings it makes)"""
    c, old = site.cluster, old_certificate(site.suite.directory)
    node = lambda **what: planted_node(site, **what)
    hooks = f"{ADMISSION}/mutatingwebhookconfigurations/cosched-webhook"
    return [
        ("an admission policy's binding is deleted", without(c, f"{ADMISSION}/validatingadmissionpolicybindings/cosched-plugin-nodes"),
         ["admission policy cosched-plugin-nodes: is not bound"]),
        ("an admission policy is deleted", without(c, f"{ADMISSION}/validatingadmissionpolicies/cosched-result-keys"),
         ["admission policy cosched-result-keys: is not there"]),
        ("the scheduler may not bind", without_rule(c, "cosched-scheduler", "pods/binding"),
         [f"system:serviceaccount:{HOME}:cosched-scheduler may not create pods/binding"]),
        ("the device plugin may not write Events", without_rule(c, "cosched-device-plugin", "events"),
         [f"system:serviceaccount:{HOME}:cosched-device-plugin may not create events, patch events"]),
        ("the webhook's configuration is deleted", without(c, hooks), ["MutatingWebhookConfiguration cosched-webhook: is not there: no pod is checked"]),
        ("the webhook's URL leads nowhere", hook_says(c, url="https://127.0.0.1:1/mutate"), ["cosched-webhook: does not answer the API server"]),
        ("no custom resource of gangs", without_crds(c, "podgroups.scheduling.sigs.k8s.io", "podgroups.scheduling.x-k8s.io"),
         ["PodGroup: neither custom resource is there"]),
        ("no custom resource of policies", without_crds(c, "resourcepolicies.scheduling.alibabacloud.com"), ["ResourcePolicy: the custom resource is not there"]),
        ("a node is labelled and no plugin runs there", node(version=0), [f"node {PLANTED}: label ack.node.gpu.schedule=share, but no device plugin has published"]),
        ("the plugin did not follow the label", node(label="mps"), [f"node {PLANTED}: label ack.node.gpu.schedule=mps, but the node is in mode share"]),
        ("a switch of the mode waits", node(label="mps", switching="mps"), [f"node {PLANTED}: the switch from mode share to mps waits for running pods"]),
        ("an inventory of another version", node(version=9), [f"node {PLANTED}: annotation cosched.io/gpu-inventory:"]),
        ("a card is sick", node(health="sick", offers={GIB: "15"}), [f"node {PLANTED}: GPU0 (GPU-planted-0) is unhealthy"]),
        ("the kubelet offers less than the cards have", node(offers={GIB: "29"}), [f"node {PLANTED}: offers aliyun.com/gpu-mem 29, but its cards have 30"]),
        ("another plugin offers the same cards", node(offers={"nvidia.com/gpu": "2"}), [f"node {PLANTED}: another plugin offers nvidia.com/gpu beside mode share"]),
        ("a wrong number of cards", node(offers={"aliyun.com/gpu-count": "3"}), [f"node {PLANTED}: says aliyun.com/gpu-count 3, but has 2 cards"]),
        ("a claim on a card that is not there", node(pods=[("far", 4, '{"0":{"7":4}}', None)]), [f"pod faults/far on node {PLANTED}: its grant is not valid"]),
        ("a pod without a claim", node(pods=[("none", 4, None, None)]), [f"pod faults/none on node {PLANTED}: asks for 4 GiB and has no grant"]),
        ("a card is promised twice", node(pods=[("a", 8, '{"0":{"0":8}}', None), ("b", 8, '{"0":{"0":8}}', None)]), [f"node {PLANTED}: GPU0 is promised beyond its size: 16 of 15 GiB"]),
        ("the annotation is not what the kubelet gave", node(pods=[("edited", 4, '{"0":{"0":4}}', '{"0":{"1":4}}')]), [f"pod faults/edited on node {PLANTED}: its annotation says"]),
        ("a claim on a node that is gone", lost_node(site), [f"pod faults/orphan: holds cards of node {PLANTED}, which does not exist"]),
        ("the scheduler is scaled to 0", scaled_away(site, "scheduler"), ["cosched-scheduler: is scaled to 0: no pod is placed", "cosched-scheduler: no replica holds the Lease"]),
    ], [
        ("the webhook is scaled to 0", contextlib.nullcontext(), []),
        ("and there is no caBundle", hook_says(c, caBundle=None), ["mutating webhook pods.cosched.io: no caBundle"]),
        ("and caBundle is another CA's", hook_says(c, caBundle=old), ["mutating webhook pods.cosched.io: caBundle is not the CA that signed"]),
        ("and its certificate has ended", secret_has(c, **{"tls.crt": old}), ["cosched-webhook: its certificate ended"]),
        ("and a node has a mode that does not exist", node(label="shared"), [f"node {PLANTED}: label ack.node.gpu.schedule=shared: there is no such mode"]),
    ]


def try_one(site, name, fault, expected):
    """The doctor's findings are these, each with something to do; without the fault there are none."""
    with fault:
        text = ""

        def found():  # an API server that has just been told authorizes and answers by what it knew
            nonlocal text
            text = site.doctor(1)
            lines = [line for line in text.splitlines() if line and not line.startswith(" ") and not re.match(r"\d+ findings?;|not checked:", line)]
            return len(lines) == len(expected) and all(any(line.startswith(e) for line in lines) for e in expected) and text.count("    to do: ") == len(expected)

        try:
            wait_until(found, name, 10, 0.5)
        except Failed:
            check(False, f"{name}: expected {expected}, the doctor says:\n{text}")


def plant_all(site):
    """Every fault, and the number of them."""
    make_namespace(site.cluster, "faults")
    ordinary, beside_scaled = faults(site)
    for name, fault, expected in ordinary:
        try_one(site, name, fault, expected)
    with scaled_away(site, "webhook"):
        for name, fault, expected in beside_scaled:
            try_one(site, name, fault, ["cosched-webhook: is scaled to 0: no pod is checked", *expected])
    wait_until(lambda: site.doctor(0), "all is well again", 30, 0.5)
    return [name for name, _, _ in ordinary + beside_scaled]
