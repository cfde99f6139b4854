# SPDX-License-Identifier: Apache-2.0
"""Stolen tokens of our own programs, on a real API server: what the admission policies leave of what RBAC allows. See suite_hostile for the others."""
import base64
import json
import random

from harness import MERGE, Failed, case, check, check_equal, wait_until

from hostile_tenant import plain, policies, tenant, token_of, using
from rights import HOME
from suite_webhook import start_webhook


@case("hostile_11_plugin_events: a stolen plugin token writes Events as its own node alone, about its own Node and about pods", needs=("real",))
def plugin_events(suite):
    c = suite.cluster
    policies(suite)
    (_evil, evil_ns), (_good, good_ns) = tenant(suite), tenant(suite)
    here, there = suite.node("h11-here"), suite.node("h11-there")
    made = {}
    for what, ns, node in (("own", evil_ns, here), ("foreign", good_ns, there)):
        made[what] = c.do("POST", f"/api/v1/namespaces/{ns}/pods", plain(what, nodeName=node))
    thief = using(c, token_of(c, HOME, "cosched-device-plugin", node=here))
    thief_elsewhere = using(c, token_of(c, HOME, "cosched-device-plugin"))

    def event(ns, kind, name, uid="", core=True, host=here, who=thief):
        ref = {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid, **({"namespace": ns} if kind != "Node" else {})}
        body = {"apiVersion": "v1" if core else "events.k8s.io/v1", "kind": "Event", "metadata": {"name": f"e-{random.randrange(1 << 60):x}", "namespace": ns},
                "type": "Warning", "reason": "GpuRefused", "action": "x"}
        now = "2026-01-01T00:00:00.000000Z"
        if core:
            body.update(involvedObject=ref, message="x", source={"component": "cosched-device-plugin", "host": host}, reportingComponent="cosched-device-plugin",
                        reportingInstance=host, firstTimestamp=now[:19] + "Z", lastTimestamp=now[:19] + "Z", eventTime=None, count=1)
        else:
            body.update(regarding=ref, note="x", reportingController="cosched-device-plugin", reportingInstance=host, eventTime=now)
        return who.request("POST", f"{'/api/v1' if core else '/apis/events.k8s.io/v1'}/namespaces/{ns}/events?dryRun=All", body)

    uid = lambda what: made[what]["metadata"]["uid"]
    # On which node a pod is the API server cannot look up for a policy: an Event about a pod has the thief's own node as its source, or is refused.
    rows = {"another Node": lambda: event("default", "Node", there, there), "a Secret": lambda: event(good_ns, "Secret", "s"),
            "a Deployment": lambda: event(HOME, "Deployment", "cosched-scheduler"), "a pod, as another node": lambda: event(good_ns, "Pod", "foreign", uid("foreign"), host=there),
            "its own Node, as another": lambda: event("default", "Node", here, here, host=there),
            "another node's pod, by events.k8s.io": lambda: event(good_ns, "Pod", "foreign", uid("foreign"), core=False, host=there),
            "a pod, by a token of no node": lambda: event(evil_ns, "Pod", "own", uid("own"), who=thief_elsewhere)}
    taken = set(rows)

    def ask_all():
        taken.difference_update([what for what in taken if rows[what]()[0] in (403, 422)])
        return not taken

    try:
        wait_until(ask_all, "all are denied", 4, 0.5)
    except Failed as e:
        raise Failed(f"a stolen token may write Events about: {', '.join(sorted(taken))}") from e
    for what, reply in (("its own Node", event("default", "Node", here, here)), ("its own pod", event(evil_ns, "Pod", "own", uid("own")))):
        check_equal(reply[0], 201, f"an Event about {what}: {json.dumps(reply[1])[:500]}")


@case("hostile_11_plugin_node_status: a stolen plugin token changes our resources in its node's status, and no other field of it", needs=("real",))
def plugin_node_status(suite):
    c = suite.cluster
    policies(suite)
    node = suite.node("h11-status")
    thief = using(c, token_of(c, HOME, "cosched-device-plugin", node=node))
    patch = lambda who, status: who.request("PATCH", f"/api/v1/nodes/{node}/status?dryRun=All", {"status": status}, MERGE)
    before = c.get(f"/api/v1/nodes/{node}")["status"]
    rows = {"runtime handlers": {"runtimeHandlers": [{"name": "mine"}]}, "features": {"features": {"supplementalGroupsPolicy": True}}, "config": {"config": {"error": "x"}},
            "a phase": {"phase": "Terminated"}, "addresses": {"addresses": [{"type": "InternalIP", "address": "192.0.2.66"}]}, "images": {"images": [{"names": ["mine"], "sizeBytes": 1}]},
            "conditions": {"conditions": [{"type": "Ready", "status": "False"}]}, "its kubelet's port": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 6666}}},
            "volumes": {"volumesInUse": ["x"]}, "declared features": {"declaredFeatures": ["x"]}, "all CPUs": {"capacity": {"cpu": "666"}}, "none of its memory": {"allocatable": {"memory": None}}}
    known = {}
    for what, status in rows.items():
        code, reply = patch(c, status)
        if code == 200 and reply["status"] != before:  # a server drops fields that it does not know
            known[what] = status
    check(len(known) > 8, f"the API server knows {sorted(known)}")
    left = set(known)

    def ask_all():
        left.difference_update([what for what in left if patch(thief, known[what])[0] == 403])
        return not left

    try:
        wait_until(ask_all, "all are denied", 4, 0.5)
    except Failed as e:
        raise Failed(f"a stolen token may change: {', '.join(sorted(left))}") from e
    status, reply = patch(thief, {"capacity": {"aliyun.com/gpu-count": "2"}, "allocatable": {"aliyun.com/gpu-count": "2", "nvidia.com/gpu": "1"}})
    check_equal(status, 200, f"what is ours: {json.dumps(reply)[:400]}")


@case("hostile_11_webhook_secret: the webhook's account makes its own certificate's Secret, and no Secret that is another account's token", needs=("real",))
def webhook_secret(suite):
    c = suite.cluster
    policies(suite)
    thief = using(c, token_of(c, HOME, "cosched-webhook"))
    path = f"/api/v1/namespaces/{HOME}/secrets"
    c.request("DELETE", f"{path}/cosched-webhook-cert")

    def secret(name, kind, account=None):
        notes = {"kubernetes.io/service-account.name": account} if account else {}
        data = {"tls.crt": "eA==", "tls.key": "eA=="} if kind == "kubernetes.io/tls" else {}
        return thief.request("POST", path + "?dryRun=All", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "annotations": notes}, "type": kind, "data": data})

    token = "kubernetes.io/service-account-token"
    rows = {"the plugin's token under its own name": ("cosched-webhook-cert", token, "cosched-device-plugin"),
            "the scheduler's token under its own name": ("cosched-webhook-cert", token, "cosched-scheduler"),
            "its own token under its own name": ("cosched-webhook-cert", token, "cosched-webhook"), "a token under another name": ("x", token, "cosched-scheduler"),
            "another name": ("x", "Opaque"), "a bootstrap token": ("bootstrap-token-abcdef", "bootstrap.kubernetes.io/token")}
    left = set(rows)

    def ask_all():
        left.difference_update([what for what in left if secret(*rows[what])[0] in (403, 422)])
        return not left

    try:
        wait_until(ask_all, "all are denied", 4, 0.5)
    except Failed as e:
        raise Failed(f"the webhook's account may make: {', '.join(sorted(left))}") from e


@case("hostile_11_webhook_config: a stolen webhook token changes caBundle of its two configurations and nothing else: it takes no other objects in, sends them nowhere else, opens no door",
      needs=("real",))
def webhook_config(suite):
    c = suite.cluster
    p, own = start_webhook(suite)
    policies(suite)
    thief = using(c, token_of(c, HOME, "cosched-webhook"))
    kinds = {"MutatingWebhookConfiguration": "mutatingwebhookconfigurations", "ValidatingWebhookConfiguration": "validatingwebhookconfigurations"}
    paths = {kind: f"/apis/admissionregistration.k8s.io/v1/{plural}/cosched-webhook" for kind, plural in kinds.items()}
    selects = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["nobody"]}]}
    hooks = [{"name": f"{name}.cosched.io", "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 5, "failurePolicy": "Ignore", "namespaceSelector": selects,
              "clientConfig": {"service": {"name": "cosched-webhook", "namespace": HOME, "path": "/mutate"}},
              "matchConditions": [{"name": "never", "expression": "false"}],
              "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"], "scope": "Namespaced"}]} for name in ("one", "two")]
    for kind, path in paths.items():
        c.do("POST", path.rpartition("/")[0], {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "cosched-webhook"}, "webhooks": hooks})
        suite.stack.callback(c.do, "DELETE", path, None, "application/json", (200, 404))
    everything = [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"], "scope": "*"}]
    with open(c.env["K8S_CA"], "rb") as f:
        ca = base64.b64encode(f.read()).decode()
    first, member = "/webhooks/0", lambda name, value: [{"op": "add", "path": f"/webhooks/0/{name}", "value": value}]
    rows = {"all Secrets and Bindings": member("rules", everything), "another URL": member("clientConfig", {"url": "https://192.0.2.66/mutate", "caBundle": ca}),
            "another Service": member("clientConfig/service/name", "mine"), "another namespace's Service": member("clientConfig/service/namespace", "default"),
            "another path": member("clientConfig/service/path", "/x"), "all namespaces": member("namespaceSelector", {}), "all objects": member("objectSelector", {"matchLabels": {"a": "b"}}),
            "no conditions": member("matchConditions", []), "another condition": member("matchConditions/0/expression", "true"), "a failure policy": member("failurePolicy", "Fail"),
            "exact matches": member("matchPolicy", "Exact"), "a time": member("timeoutSeconds", 30), "side effects": member("sideEffects", "NoneOnDryRun"),
            "another name": member("name", "three.cosched.io"), "one webhook fewer": [{"op": "remove", "path": first}],
            "one webhook more": [{"op": "add", "path": first, "value": {**hooks[0], "name": "more.cosched.io", "rules": everything, "matchConditions": []}}],
            "another order": [{"op": "move", "from": "/webhooks/1", "path": first}], "no webhook": [{"op": "remove", "path": "/webhooks"}],
            "a label": [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}], "an annotation": [{"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}}],
            "a finalizer": [{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/mine"]}],
            "an owner": [{"op": "add", "path": "/metadata/ownerReferences", "value": [{"apiVersion": "v1", "kind": "Node", "name": "x", "uid": "x"}]}],
            "a CA, and all objects": member("clientConfig/caBundle", ca) + member("rules", everything)}
    change = lambda kind, patch, kind_of_patch="application/json-patch+json": thief.request("PATCH", f"{paths[kind]}?dryRun=All", patch, kind_of_patch)
    tries = {f"{kind}: {what}": (kind, patch) for kind in kinds for what, patch in rows.items()}
    tries["MutatingWebhookConfiguration: called again"] = ("MutatingWebhookConfiguration", member("reinvocationPolicy", "IfNeeded"))
    taken, odd = set(tries), {}

    def ask_all():
        for what in sorted(taken):
            status, reply = change(*tries[what])
            if status == 403 and "the webhook changes clientConfig.caBundle only" in json.dumps(reply):
                taken.discard(what)
            elif status != 200:
                odd[what] = f"{status} {json.dumps(reply)[:300]}"
        return not taken

    try:
        wait_until(ask_all, "all are denied", 4, 0.5)
    except Failed as e:
        raise Failed(f"the webhook's account may change: {', '.join(sorted(taken))}; {odd}") from e
    for kind in kinds:
        status, reply = change(kind, member("clientConfig/caBundle", ca) + [{"op": "add", "path": "/webhooks/1/clientConfig/caBundle", "value": ca}])
        check_equal(status, 200, f"its CA in {kind}: {json.dumps(reply)[:500]}")
        check_equal({w["clientConfig"].get("caBundle") for w in reply["webhooks"]}, {ca}, f"{kind} has it in each webhook")
        check_equal(c.request("PATCH", f"{paths[kind]}?dryRun=All", member("failurePolicy", "Fail"), "application/json-patch+json")[0], 200, f"an administrator changes {kind}")
    path = f"{paths['MutatingWebhookConfiguration'].rpartition('/')[0]}/hook-{own}"
    c.do("PATCH", path, [{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}], "application/json-patch+json")
    wait_until(lambda: c.get(path)["webhooks"][0]["clientConfig"].get("caBundle"), "our own webhook puts its CA back")
    p.stop()
