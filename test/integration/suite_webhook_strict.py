# SPDX-License-Identifier: Apache-2.0
"""The configurations that we ship: what they let through to the webhook, and what happens while no replica answers, with and without
deploy/manifests/webhook-strict.yaml. Their conditions are CEL, which cosched-local does not speak: there every pod is asked about."""
from harness import MERGE, SCHEDULER, case, check, check_equal, free_port, http_get, wait_until
from suite_webhook import HOOKS, TRIGGERS, annotated, labelled, limited, plain, send, shipped_webhooks, start_webhook

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


def calls(p):
    """Reviews that the webhook has answered."""
    lines = http_get(p.port, "/metrics")[1].splitlines()
    return sum(int(line.split()[-1]) for line in lines if line.startswith("cosched_webhook_requests_total{"))


@case("pods that are none of ours cost no call, and no pod of ours is passed over, not even behind ten thousand labels", needs=("real",))
def conditions(suite):
    c = suite.cluster
    p, ns = start_webhook(suite, shipped=True)
    others = [("a plain pod", plain()), ("a whole card", limited("nvidia.com/gpu", 1)), ("labels and annotations of others", {
        **plain(), "metadata": {"name": "p", "labels": {"app.kubernetes.io/name": "x", "gpu": "true"}, "annotations": {"prometheus.io/scrape": "true"}}}),
              ("another scheduler", plain(schedulerName="mine"))]
    before = calls(p)
    for what, pod in others:
        check_equal(send(c, ns, pod)[0], 201, what)
        check_equal(calls(p), before, f"calls for {what}")
    ours = TRIGGERS + [("a result key", annotated({"cosched.io/x": "y"})), ("a request in the wrong place", labelled(**{"cpuset-scheduler": "true"})),
                       ("our scheduler", plain(schedulerName=SCHEDULER)), ("shares in an init container", plain(initContainers=[
                           {"name": "i", "image": "busybox:test", "resources": {"limits": {"aliyun.com/gpu-mem": "1"}}}]))]
    for what, pod in ours:
        before = calls(p)
        send(c, ns, pod)
        check(calls(p) > before, f"no call for {what}")
    # An expression that costs too much is an error, and with Ignore an error lets the pod pass: what asks for cards is looked at before the labels.
    crowd = limited("aliyun.com/gpu-mem", 3)
    crowd["spec"]["containers"][0]["env"] = ALL_CARDS
    crowd["metadata"]["labels"] = {f"k{i}": "" for i in range(10000)}
    refused(send(c, ns, crowd), "env[NVIDIA_VISIBLE_DEVICES]: 'all' would win", "a pod behind ten thousand labels")
    # The metadata of a CronJob's Jobs is looked at as well.
    job = {"template": {"spec": {"containers": plain()["spec"]["containers"], "restartPolicy": "Never"}}}
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"},
            "spec": {"schedule": "0 0 * * *", "jobTemplate": {"metadata": {"annotations": {"cpuset-scheduler": "true"}}, "spec": job}}}
    check_equal(c.request("POST", f"/apis/batch/v1/namespaces/{ns}/cronjobs?dryRun=All", cron)[0], 201, "a CronJob")
    check(any("spec.jobTemplate.metadata.annotations[cpuset-scheduler]" in w for w in c.warnings), f"warnings: {c.warnings}")
    p.stop()
