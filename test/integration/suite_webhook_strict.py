# SPDX-License-Identifier: Apache-2.0
"""The configurations that we ship: what they let through to the webhook, and what happens while no replica answers, with and without
deploy/manifests/webhook-strict.yaml. Their conditions are CEL, which cosched-local does not speak: there every pod is asked about."""
from harness import MERGE, SCHEDULER, case, check, check_equal, free_port, http_get, wait_until
from suite_webhook import HOOKS, limited, plain, send, shipped_webhooks

STRICT = HOOKS.replace("mutating", "validating")
ALL_CARDS = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]


def configure(suite, path, kind, name, webhooks):
    c = suite.cluster
    c.do("POST", path, {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "webhooks": webhooks})
    suite.stack.callback(c.do, "DELETE", f"{path}/{name}", None, "application/json", (200, 404))


def refused(reply, words, what):
    status, body = reply
    check(status >= 400 and words in body.get("message", ""), f"{what}: {status} {body.get('message')}")


@case("with the strict configuration and no webhook a pod of ours is refused in plain words and any other is created; without it both are")
def strict(suite):
    c = suite.cluster
    ns = suite.namespace({"hook": "yes"})
    name, port, probes = f"hook-{ns}", free_port(), free_port()
    configure(suite, HOOKS, "MutatingWebhookConfiguration", name, shipped_webhooks(c, port))
    configure(suite, STRICT, "ValidatingWebhookConfiguration", name, shipped_webhooks(c, port, kind="ValidatingWebhookConfiguration", manifest="webhook-strict.yaml"))
    suite.stack.callback(c.do, "DELETE", f"/api/v1/namespaces/kube-public/secrets/cert-{ns}", None, "application/json", (200, 404))
    p = suite.program("cosched-webhook", f"--kubeconfig={c.kubeconfig}", "--address=127.0.0.1", f"--port={port}", "--san=127.0.0.1", "--http-address=127.0.0.1",
                      f"--http-port={probes}", "--namespace=kube-public", f"--secret-name=cert-{ns}", f"--webhook-config={name}", f"--validating-config={name}",
                      "--guard-variables")
    wait_until(lambda: http_get(probes, "/readyz")[0] == 200, "the webhook is ready, both caBundles included")
    gpu = limited("aliyun.com/gpu-mem", 3)
    # The API server's own watches bring the configurations and their caBundles a moment later: strict lets nothing of ours through until then.
    wait_until(lambda: send(c, ns, gpu)[0] == 201 and send(c, ns, gpu)[1]["spec"]["schedulerName"] == SCHEDULER, "the API server trusts our CA in both")
    wait_until(lambda: send(c, ns, limited("aliyun.com/gpu-mem", "5500m"))[0] == 422, "an illegal pod is refused")

    # What the conditions of the shipped configurations must let through to us.
    taker = plain()
    taker["spec"]["containers"][0]["env"] = ALL_CARDS
    refused(send(c, ns, taker), "env[NVIDIA_VISIBLE_DEVICES]: 'all' takes cards that nobody gave to the pod", "a plain pod that names cards, guarded")
    pods = f"/api/v1/namespaces/{ns}/pods"
    c.do("POST", pods, {**gpu, "metadata": {"name": "shared"}})
    real = c.target == "real"
    debug = lambda env: c.request("PATCH", f"{pods}/shared/ephemeralcontainers?dryRun=All", {"spec": {"ephemeralContainers": [
        {"name": "d", "image": "busybox:test", "env": env}]}}, "application/strategic-merge-patch+json")
    if real:
        refused(debug(ALL_CARDS), "spec.ephemeralContainers[0].env[NVIDIA_VISIBLE_DEVICES]: 'all' reaches for cards that were not given to the pod", "kubectl debug")
        check_equal(debug([])[0], 200, "kubectl debug without it")
    node = suite.node(f"mode-{ns}")
    label = lambda mode: c.request("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"labels": {"ack.node.gpu.schedule": mode}}}, MERGE)
    refused(label("shared"), "metadata.labels[ack.node.gpu.schedule]: 'shared' is not a mode", "an unknown mode")
    check_equal(label("cgpu")[0], 200, "a mode")
    check_equal((label(None)[0], [w for w in c.warnings if "without it the node stays in mode cgpu" in w] != []), (200, True), "the label is taken away, with a warning")

    p.stop()
    refused(send(c, ns, gpu), 'failed calling webhook "pods.cosched.io"', "strict, and no replica answers")
    check_equal(send(c, ns, plain())[0], 201 if real else 500, "a pod that is none of ours, under strict")
    check_equal(c.request("PATCH", f"{pods}/shared", {"metadata": {"labels": {"a": "b"}}}, MERGE)[0], 200, "a change of a pod of ours, under strict")
    c.do("DELETE", f"{STRICT}/{name}")
    wait_until(lambda: send(c, ns, gpu)[0] == 201, "without strict a pod of ours is created")
    check_equal(send(c, ns, gpu)[1]["spec"]["schedulerName"], "default-scheduler", "as it was written")
