# SPDX-License-Identifier: Apache-2.0
"""What suite_hostile and the pod fuzzer share: an ordinary tenant's account, and the chart's admission policies on a real API server."""
import contextlib
import copy
import json
import os

from harness import ROOT, Failed, check, wait_until

RBAC = "/apis/rbac.authorization.k8s.io/v1"
RULES = [{"apiGroups": [""], "resources": ["pods", "pods/ephemeralcontainers", "pods/resize", "configmaps", "events"],
          "verbs": ["create", "get", "list", "watch", "patch", "update", "delete"]},
         {"apiGroups": ["", "scheduling.alibabacloud.com"], "resources": ["persistentvolumeclaims", "resourcepolicies"], "verbs": ["create", "get", "delete"]}]


def token_of(c, ns, account, node=None):
    """A token of that account; with a node bound to it, as the kubelet asks for one."""
    spec = {"expirationSeconds": 7200}
    if node:
        spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": c.get(f"/api/v1/nodes/{node}")["metadata"]["uid"]}
    return c.do("POST", f"/api/v1/namespaces/{ns}/serviceaccounts/{account}/token",
                {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})["status"]["token"]


def using(c, token):
    """The same cluster, asked with another token."""
    other = copy.copy(c)
    other.token = token
    return other


def tenant(suite, labels=None):
    """(cluster, namespace) of somebody who may make and change pods, ConfigMaps and Events, and make claims and ResourcePolicies, in that namespace and nothing else. cosched-local has one token and
    knows no roles: there he is the only user."""
    c, ns = suite.cluster, suite.namespace(labels)
    if c.target == "local":
        return c, ns
    meta = {"name": "tenant", "namespace": ns}
    c.do("POST", f"/api/v1/namespaces/{ns}/serviceaccounts", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
    c.do("POST", f"{RBAC}/namespaces/{ns}/roles", {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": meta, "rules": RULES})
    c.do("POST", f"{RBAC}/namespaces/{ns}/rolebindings", {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": meta,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tenant"},
        "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": ns}]})
    mine = using(c, token_of(c, ns, "tenant"))
    wait_until(lambda: mine.request("GET", f"/api/v1/namespaces/{ns}/pods")[0] == 200, "the tenant's role is in force")
    check(mine.request("GET", "/api/v1/nodes")[0] == 403, "a tenant is no administrator")
    return mine, ns


def policies(suite):
    """All admission policies of deploy/manifests are in force until the case ends."""
    c = suite.cluster
    text = c.kubectl("kustomize", os.path.join(ROOT, "deploy/manifests"))
    documents = [d for d in text.split("\n---\n") if "\nkind: ValidatingAdmissionPolic" in "\n" + d]
    path = os.path.join(suite.directory, f"policies-{suite.number}.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n---\n".join(documents))
    c.kubectl("apply", "-f", path)
    suite.stack.callback(c.kubectl, "delete", "-f", path, "--ignore-not-found")
    probe, pods = plain("probe"), f"/api/v1/namespaces/{suite.namespace()}/pods?dryRun=All"
    probe["metadata"]["annotations"] = {"cpuset": "{}"}
    wait_until(lambda: c.request("POST", pods, probe)[0] in (403, 422), "the policies are in force")


def plain(name, limits=None, requests=None, **spec):
    """A small pod for our scheduler."""
    resources = {k: v for k, v in (("limits", limits), ("requests", requests)) if v}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {}, "annotations": {}},
            "spec": {"schedulerName": "ack-co-scheduler", "terminationGracePeriodSeconds": 0, "tolerations": [{"operator": "Exists"}],
                     "containers": [{"name": "main", "image": "busybox:test", "imagePullPolicy": "Never", "command": ["sleep", "86400"], "resources": resources}], **spec}}


def post(c, ns, pod, dry=False):
    return c.request("POST", f"/api/v1/namespaces/{ns}/pods{'?dryRun=All' if dry else ''}", pod)


def not_denied(c, ns, rows):
    """Of {what: pod} the names of those that the API server takes. What has just been made known to it (a policy, a webhook) it may not know yet: asked again."""
    left = dict(rows)

    def ask():
        for what, pod in list(left.items()):
            status, reply = post(c, ns, pod, dry=True)
            if status == 201:
                continue
            text = json.dumps(reply)
            if status not in (400, 403, 422) or not any(word in text for word in ("cosched", "ld.so.preload", "aliyun.com", "device plugin")):
                raise AssertionError(f"{what}: it is refused, but not by us: {status} {text[:500]}")
            del left[what]
        return not left

    with contextlib.suppress(Failed):
        wait_until(ask, "all are denied", 4, step=0.5)
    return sorted(left)
