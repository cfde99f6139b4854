# SPDX-License-Identifier: Apache-2.0
"""The webhook, called by a real API server over TLS with a CA that it made itself."""
import base64
import copy
import glob
import json
import os
import socket
import ssl

from harness import ROOT, SCHEDULER, case, check, check_equal, free_port, http_get, wait_until

HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


PODS = [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]


def shipped_webhooks(c, port, failure_policy=None, kind="MutatingWebhookConfiguration", manifest="webhook.yaml"):
    """Those of deploy/manifests that change or judge before the API server does (or the validating ones), reached by URL, in namespaces labelled hook=yes."""
    text = c.kubectl("annotate", "--local", "-f", os.path.join(ROOT, "deploy/manifests", manifest), "-o", "json", "cosched-test=1")
    decoder, hooks = json.JSONDecoder(), []
    while text.strip():
        obj, end = decoder.raw_decode(text.lstrip())
        text = text.lstrip()[end:]
        for item in obj.get("items", [obj]):
            hooks += item["webhooks"] if item["kind"] == kind else []
    check(len(hooks) >= (9 if kind.startswith("Mutating") else 1), f"only {len(hooks)} webhooks in the manifest")
    for hook in hooks:
        hook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{hook['clientConfig']['service']['path']}"}
        hook["failurePolicy"] = failure_policy or hook["failurePolicy"]
        if "namespaceSelector" in hook:
            hook["namespaceSelector"].setdefault("matchLabels", {})["hook"] = "yes"
    return hooks


def start_webhook(suite, *args, name=None, failure_policy="Fail", rules=None, shipped=False):
    """The webhook and its configuration, limited to namespaces that this case labels; returns (program, namespace)."""
    c = suite.cluster
    ns = suite.namespace({"hook": "yes"})
    name = name or f"hook-{ns}"
    port, probes = free_port(), free_port()
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": name},
        "webhooks": [{"name": "pods.cosched.io", "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 5,
                      "failurePolicy": failure_policy, "reinvocationPolicy": "IfNeeded",
                      "clientConfig": {"url": f"https://127.0.0.1:{port}/mutate"},
                      "namespaceSelector": {"matchLabels": {"hook": "yes"}},
                      "rules": rules or PODS}]}
    if shipped:
        configuration["webhooks"] = shipped_webhooks(c, port, failure_policy)
    c.do("POST", HOOKS, configuration)
    suite.stack.callback(c.do, "DELETE", f"{HOOKS}/{name}", None, "application/json", (200, 404))
    p = suite.program("cosched-webhook", f"--kubeconfig={c.kubeconfig}", "--address=127.0.0.1", f"--port={port}", "--san=127.0.0.1",
                      "--http-address=127.0.0.1", f"--http-port={probes}", "--namespace=kube-public", f"--secret-name=cert-{ns}",
                      f"--webhook-config={name}", "--cert-check-interval=200ms", *args)
    suite.stack.callback(c.do, "DELETE", f"/api/v1/namespaces/kube-public/secrets/cert-{ns}", None, "application/json", (200, 404))
    p.port, p.https = probes, port
    wait_until(lambda: http_get(probes, "/readyz")[0] == 200, "the webhook is ready, caBundle included")
    # The API server learns of the caBundle by its own watch, a moment later.
    wait_until(lambda: send(c, ns, plain())[0] == 201, "the API server trusts our CA")
    return p, ns


def plain(**spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {}, "annotations": {}},
            "spec": {"containers": [{"name": "c", "image": "busybox:test"}], **spec}}


def with_limits(**limits):
    pod = plain()
    pod["spec"]["containers"][0]["resources"] = {"limits": {k: str(v) for k, v in limits.items()}}
    return pod


def limited(resource, amount, **more):
    return with_limits(**{resource: amount}, **more)


def labelled(**labels):
    pod = plain()
    pod["metadata"]["labels"] = labels
    return pod


def annotated(annotations):
    pod = plain()
    pod["metadata"]["annotations"] = annotations
    return pod


def send(c, ns, pod):
    return c.request("POST", f"/api/v1/namespaces/{ns}/pods?dryRun=All", pod)


def scheduler_given(c, ns, pod):
    status, reply = send(c, ns, pod)
    check(status == 201, f"refused: {reply.get('message')}")
    return reply["spec"]["schedulerName"]


GANG = "pod-group.scheduling.sigs.k8s.io"
TRIGGERS = [
    ("GPU memory", limited("aliyun.com/gpu-mem", 3)),
    ("GPU memory and compute", limited("aliyun.com/gpu-mem", 3, **{"aliyun.com/gpu-core.percentage": 30})),
    ("topology-aware whole GPUs", limited("aliyun.com/gpu", 2)),
    ("gang by labels", labelled(**{f"{GANG}/name": "g", f"{GANG}/min-available": "2"})),
    ("gang by the bare label", labelled(**{GANG: "g"})),
    ("gang by the x-k8s label", labelled(**{"scheduling.x-k8s.io/pod-group": "g"})),
    ("gang by koordinator's annotations", annotated({"gang.scheduling.koordinator.sh/name": "g", "gang.scheduling.koordinator.sh/min-available": "2"})),
    ("CPU pinning", {**limited("cpu", 2), "metadata": {"name": "p", "annotations": {"cpuset-scheduler": "true"}}}),
    ("burst", annotated({"alibabacloud.com/burst-resource": "eci"})),
    ("burst only", annotated({"alibabacloud.com/burst-resource": "eci_only"})),
]
NOT_OURS = [
    ("a plain pod", plain(), "default-scheduler"),
    ("a pod with its own scheduler", {**limited("aliyun.com/gpu-mem", 3), "spec": {**limited("aliyun.com/gpu-mem", 3)["spec"], "schedulerName": "mine"}}, "mine"),
    ("a plain nvidia.com/gpu pod", limited("nvidia.com/gpu", 1), "default-scheduler"),
    ("cpuset-scheduler false", annotated({"cpuset-scheduler": "false"}), "default-scheduler"),
    ("a pod that opts out", {**limited("aliyun.com/gpu-mem", 3), "metadata": {"name": "p", "annotations": {"cosched.io/inject": "false"}}}, "default-scheduler"),
]


@case("every trigger of the contract gets our schedulerName, and pods that are not ours stay as they are")
def triggers(suite):
    c = suite.cluster
    p, ns = start_webhook(suite)
    for what, pod in TRIGGERS:
        check_equal(scheduler_given(c, ns, pod), SCHEDULER, what)
        check(not c.warnings or "does not exist" in c.warnings[0], f"{what}: {c.warnings}")
    for what, pod, expected in NOT_OURS:
        check_equal(scheduler_given(c, ns, pod), expected, what)
    # Nothing else about a pod of ours or of others changes.
    outside = suite.namespace()
    for what, pod in (("a plain pod", plain()), ("a GPU pod", limited("aliyun.com/gpu-mem", 3))):
        hooked, bare = send(c, ns, pod)[1], send(c, outside, pod)[1]
        for reply in (hooked, bare):
            for key in ("namespace", "uid", "creationTimestamp", "managedFields"):
                reply["metadata"].pop(key, None)
            reply["spec"].pop("schedulerName")
            reply["spec"].pop("volumes", None)  # the token volume has a random name
            for container in reply["spec"]["containers"]:
                container.pop("volumeMounts", None)
        check_equal(hooked, bare, what)
    p.stop()


@case("the documents' manifests get our schedulerName, unchanged as they are")
def documents(suite):
    c = suite.cluster
    _p, ns = start_webhook(suite)
    seen = 0
    for path in sorted(glob.glob(os.path.join(ROOT, "deploy/examples/documents/*.yaml"))):
        text = c.kubectl("annotate", "--local", "-f", path, "-o", "json", "cosched-test=1")
        manifest = json.loads(text)
        spec = manifest.get("spec", {})
        templates = [spec["template"]] if "template" in spec else [r["template"] for r in spec.get("tfReplicaSpecs", {}).values()]
        for template in templates:
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**copy.deepcopy(template["metadata"]), "name": "p"}, "spec": template["spec"]}
            pod["metadata"].pop("creationTimestamp", None)
            check_equal(scheduler_given(c, ns, pod), SCHEDULER, os.path.basename(path))
            seen += 1
    check(seen >= 8, f"only {seen} pod templates found")


@case("result keys on CREATE are removed with a warning that names them")
def result_keys(suite):
    c = suite.cluster
    _p, ns = start_webhook(suite)
    keys = {"scheduler.framework.gpushare.allocation": '{"0":{"1":3}}', "ALIYUN_COM_GPU_MEM_IDX": "1", "cpuset": "{}", "cosched.io/anything": "x",
            "topology.kubernetes.io/gpu-group": "0,1"}
    for pod in (annotated({**keys, "mine": "stays"}), {**limited("aliyun.com/gpu-mem", 3), "metadata": {"name": "p", "annotations": {**keys, "mine": "stays"}}}):
        status, reply = send(c, ns, pod)
        check_equal(status, 201, "created")
        check_equal(reply["metadata"]["annotations"], {"mine": "stays"}, "annotations left")
        for key in keys:
            check(any(key in w for w in c.warnings), f"no warning names {key}: {c.warnings}")


@case("a request that cannot work is refused with a sentence that says what to change")
def refusals(suite):
    c = suite.cluster
    _p, ns = start_webhook(suite)
    rows = [
        (labelled(**{f"{GANG}/name": "g", f"{GANG}/min-available": "none"}), "min-available"),
        (limited("aliyun.com/gpu-mem", 3, **{"aliyun.com/gpu-core.percentage": 33}), "multiple of 5"),
        ({**limited("aliyun.com/gpu-mem", 3), "metadata": {"name": "p", "labels": {"aliyun.com/gpu-count": "2"}}}, "gpu-count"),
        ({**with_limits(cpu="1500m"), "metadata": {"name": "p", "annotations": {"cpuset-scheduler": "true"}}}, "cpu"),
    ]
    for pod, names in rows:
        status, reply = send(c, ns, pod)
        check(status in (400, 403, 422), f"{names}: not refused ({status})")
        check(names in reply["message"], f"{names}: {reply['message']}")


@case("two replicas share one CA: what the API server trusts fits both")
def replicas(suite):
    c = suite.cluster
    p, ns = start_webhook(suite)
    port = free_port()
    second = suite.program("cosched-webhook", f"--kubeconfig={c.kubeconfig}", "--address=127.0.0.1", f"--port={port}", "--san=127.0.0.1",
                           "--http-address=127.0.0.1", "--http-port=0", "--namespace=kube-public", f"--secret-name=cert-{ns}")
    bundle = c.get(f"{HOOKS}/hook-{ns}")["webhooks"][0]["clientConfig"]["caBundle"]
    context = ssl.create_default_context(cadata=base64.b64decode(bundle).decode())

    def handshake():
        with socket.create_connection(("127.0.0.1", port), timeout=5) as raw, context.wrap_socket(raw, server_hostname="127.0.0.1"):
            return True

    wait_until(handshake, "the second replica serves a certificate of the same CA")
    second.stop()
    p.stop()


@case("certificates rotate under traffic without a failed call")
def rotation(suite):
    c = suite.cluster
    p, ns = start_webhook(suite, "--cert-lifetime=6s", "--ca-settle=1s")
    renewals = lambda: http_get(p.port, "/metrics")[1]
    serial = lambda: [line for line in renewals().splitlines() if line.startswith("cosched_webhook_certificate_expiry_timestamp_seconds")]
    first = serial()
    calls = 0
    while serial() == first or calls < 50:
        check_equal(scheduler_given(c, ns, limited("aliyun.com/gpu-mem", 3)), SCHEDULER, "while rotating")
        calls += 1
        check(calls < 5000, "the certificate was not renewed")
    p.stop()


@case("with the webhook down and failurePolicy Ignore pods are still created")
def down(suite):
    c = suite.cluster
    p, ns = start_webhook(suite, failure_policy="Ignore")
    check_equal(scheduler_given(c, ns, limited("aliyun.com/gpu-mem", 3)), SCHEDULER, "while it runs")
    p.stop()
    check_equal(scheduler_given(c, ns, limited("aliyun.com/gpu-mem", 3)), "default-scheduler", "while it is down")
