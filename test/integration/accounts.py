# SPDX-License-Identifier: Apache-2.0
"""On the real cluster our programs are not administrators: each runs by the service account and with exactly the roles of deploy/manifests.

A case that starts a program with the cluster's kubeconfig gets it with the account's instead (Program asks for it). Where a case gives a program a Lease, a Secret or webhook
configurations of other names, the roles that name these objects are made for those names as well, as the chart makes them for the options that the names come from.
"""
import copy
import json
import os
import subprocess

from harness import ROOT, Failed, wait_until
from rights import HOME

MANIFESTS = os.path.join(ROOT, "deploy/manifests")
RBAC = "/apis/rbac.authorization.k8s.io/v1"
PATHS = {
    "ServiceAccount": f"/api/v1/namespaces/{HOME}/serviceaccounts", "ClusterRole": f"{RBAC}/clusterroles", "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "Role": f"{RBAC}/namespaces/{{}}/roles", "RoleBinding": f"{RBAC}/namespaces/{{}}/rolebindings", "FlowSchema": "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
}


def option(args, name):
    """The value of --NAME=, the last one."""
    return next((a.partition("=")[2] for a in reversed(args) if a.startswith(f"--{name}=")), None)


def read_manifests(cluster):
    """All objects of deploy/manifests that accounts need, as kubectl reads them."""
    command = [cluster.kubectl_binary, "create", "--dry-run=client", "--validate=false", "-o", "json", "--kubeconfig", cluster.kubeconfig]
    for name in ("scheduler", "webhook", "device-plugin", "flow-schemas"):
        command += ["-f", os.path.join(MANIFESTS, f"{name}.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise Failed(f"deploy/manifests: {done.stderr}")
    decoder, text, objects = json.JSONDecoder(), done.stdout.strip(), []
    while text:  # one document after the other, or a List
        o, end = decoder.raw_decode(text)
        objects += o.get("items", [o])
        text = text[end:].strip()
    return [o for o in objects if o["kind"] in PATHS]


class Accounts:
    """Of one cluster: kubeconfigs for our programs."""

    def __init__(self, cluster, directory):
        self.cluster, self.directory, self.known = cluster, directory, set()
        self.objects = read_manifests(cluster)
        cluster.do("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}, ok=(201, 409))
        for o in self.objects:
            self.make(o)
        self.paths = {name: self.write(name) for name in ("scheduler", "webhook", "device-plugin")}
        self.wait("scheduler", "list", "", "pods")
        self.wait("device-plugin", "patch", "", "nodes")
        self.wait("webhook", "list", "", "namespaces")

    def make(self, o):
        self.cluster.do("POST", PATHS[o["kind"]].format(o["metadata"].get("namespace", HOME)), o, ok=(201, 409))

    def write(self, program):
        """A kubeconfig with the account's token."""
        c = self.cluster
        reply = c.do("POST", f"/api/v1/namespaces/{HOME}/serviceaccounts/cosched-{program}/token",
                     {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 86400}})
        path = os.path.join(self.directory, f"{program}.kubeconfig")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as f:
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": HOME}}],
                       "clusters": [{"name": "c", "cluster": {"server": c.env["K8S_URL"], "certificate-authority": c.env["K8S_CA"]}}],
                       "users": [{"name": "u", "user": {"token": reply["status"]["token"]}}]}, f)
        return path

    def wait(self, program, verb, group, resource, namespace=None, name=None):
        """The API server authorizes by what its own watches have brought it."""
        ask = {"verb": verb, "group": group, "resource": resource, **({"namespace": namespace} if namespace else {}), **({"name": name} if name else {})}
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                "spec": {"user": f"system:serviceaccount:{HOME}:cosched-{program}", "resourceAttributes": ask}}
        wait_until(lambda: self.cluster.do("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body)["status"]["allowed"], f"{program} may {verb} {resource}")

    def allow(self, program, kind, group, resource, name, namespace=None):
        """The rules of the program's role that are about this resource, for another name and namespace."""
        if not name or (kind, resource, name, namespace) in self.known:
            return
        self.known.add((kind, resource, name, namespace))
        role = copy.deepcopy(next(o for o in self.objects if o["kind"] == kind and o["metadata"]["name"] == f"cosched-{program}"))
        role["rules"] = [r for r in role["rules"] if resource in r["resources"]]
        for rule in role["rules"]:
            if "resourceNames" in rule:
                rule["resourceNames"] = [name]
        place = {"namespace": namespace} if namespace else {}
        role["metadata"] = {"name": f"cosched-{program}-{resource[:12]}-{name}"[:200], **place}
        self.make(role)
        self.make({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind + "Binding", "metadata": role["metadata"],
                   "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role["metadata"]["name"]},
                   "subjects": [{"kind": "ServiceAccount", "name": f"cosched-{program}", "namespace": HOME}]})
        self.wait(program, "get", group, resource, namespace, name)

    def allow_options(self, program, args):
        """Rights that the chart grants only with an option."""
        if program != "device-plugin" or option(args, "enforce") != "evict" or "eviction" in self.known:
            return
        self.known.add("eviction")
        meta = {"name": "cosched-device-plugin-evict"}
        self.make({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": meta, "rules": [{"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]}]})
        self.make({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": meta,
                   "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": meta["name"]},
                   "subjects": [{"kind": "ServiceAccount", "name": "cosched-device-plugin", "namespace": HOME}]})

    def arguments(self, program, args):
        """The same with the account's kubeconfig, and the rights that other names need."""
        mine = [f"--kubeconfig={self.paths[program]}" if a == f"--kubeconfig={self.cluster.kubeconfig}" else a for a in args]
        if mine == list(args):
            return mine
        self.allow_options(program, args)
        if program == "scheduler" and "--no-leader-elect" not in args:
            self.allow(program, "Role", "coordination.k8s.io", "leases", option(args, "lease-name") or "cosched-scheduler", option(args, "lease-namespace") or HOME)
        if program == "webhook":
            self.allow(program, "Role", "", "secrets", option(args, "secret-name") or "cosched-webhook-cert", option(args, "namespace") or HOME)
            self.allow(program, "ClusterRole", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", option(args, "webhook-config"))
            self.allow(program, "ClusterRole", "admissionregistration.k8s.io", "validatingwebhookconfigurations", option(args, "validating-config"))
        return mine
