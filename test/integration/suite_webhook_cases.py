# SPDX-License-Identifier: Apache-2.0
"""The table of the webhook's rules (test/unit/webhook/cases.json) over HTTPS, and through the API server by kubectl, whose printed text is compared."""
import http.client
import json
import os
import re
import ssl
import subprocess

from harness import ROOT, SCHEDULER, case, check, check_equal, wait_until
from suite_nodes import pod_group_crds
from suite_webhook import start_webhook

CASES = os.path.join(ROOT, "test/unit/webhook/cases.json")


def open_crd(suite, group, version, kind, plural):
    """A kind of which nothing is known but that it exists, on a cluster that lacks it."""
    c = suite.cluster
    if c.target == "local" or c.request("GET", f"/apis/{group}/{version}/{plural}")[0] == 200:
        return
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    suite.stack.callback(c.do, "DELETE", f"{path}/{plural}.{group}", None, "application/json", (200, 404))
    c.do("POST", path, {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
                 "versions": [{"name": version, "served": True, "storage": True,
                               "schema": {"openAPIV3Schema": {**anything, "properties": {"spec": anything}}}}]}})
    wait_until(lambda: c.request("GET", f"/apis/{group}/{version}/{plural}")[0] == 200, f"{plural} are served")


def collection(ns, obj):
    group = obj["apiVersion"]
    plural = {"PodGroup": "podgroups", "ResourcePolicy": "resourcepolicies"}[obj["kind"]]
    return f"/apis/{group}/namespaces/{ns}/{plural}"


class Table:
    """The table in a cluster: its namespaces, its objects, the webhook that knows them, the configurations that we ship."""

    def __init__(self, suite):
        with open(CASES, encoding="utf-8") as f:
            table = json.load(f)
        self.cluster = c = suite.cluster
        pod_group_crds(suite)
        open_crd(suite, "kubeflow.org", "v1", "TFJob", "tfjobs")
        open_crd(suite, "scheduling.alibabacloud.com", "v1alpha1", "ResourcePolicy", "resourcepolicies")
        self.namespaces = {role: suite.namespace({"hook": "yes", **labels}) for role, labels in table["namespaces"].items()}
        for ns in self.namespaces.values():
            for obj in table["objects"]:
                c.do("POST", collection(ns, obj), obj)
                suite.stack.callback(c.do, "DELETE", f"{collection(ns, obj)}/{obj['metadata']['name']}", None, "application/json", (200, 404))
        self.program, _ns = start_webhook(suite, shipped=True)
        self.cases = [self.fill(i, row) for i, row in enumerate(table["cases"])]
        self.https = http.client.HTTPSConnection("127.0.0.1", self.program.https, context=ssl._create_unverified_context(), timeout=10)
        # Its watches run beside each other: the first answers may come before the last list.
        known = [row for row in self.cases if row["row"] in ("a Job smaller than its PodGroup", "a CronJob smaller than its PodGroup",
                                                             "burst and a policy that selects the pod", "a plain whole card where the namespace is enabled")]
        wait_until(lambda: all(not self.differs(row) for row in known), "the webhook knows the table's world")

    def fill(self, i, row):
        ns = self.namespaces[row.get("in", "plain")]
        row = json.loads(json.dumps(row).replace("{ns}", ns))
        row["ns"] = ns
        row["object"]["metadata"]["name"] = f"c{i}"
        row["refusal"] = "; ".join(row.get("refused", []))
        return row

    def review(self, row):
        """The response to the row's object, asked over HTTPS."""
        group, _, version = row["object"]["apiVersion"].rpartition("/")
        body = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {
            "uid": "u", "kind": {"group": group, "version": version, "kind": row["object"]["kind"]}, "namespace": row["ns"],
            "operation": row.get("operation", "CREATE"), "subResource": row.get("subresource", ""), "object": row["object"], "oldObject": row.get("old")}}
        self.https.request("POST", "/mutate?timeout=5s", json.dumps(body), {"Content-Type": "application/json"})
        reply = self.https.getresponse()
        text = reply.read().decode()
        check_equal(reply.status, 200, f"{row['row']}: {text}")
        return json.loads(text)["response"]

    def differs(self, row):
        """What is wrong with the answer, or None."""
        got = self.review(row)
        said = got.get("status", {}).get("message", "")
        if said != row["refusal"] or got["allowed"] != (not row["refusal"]):
            return f"{row['row']}: expected refusal {row['refusal']!r}, got {said!r}"
        if got.get("warnings", []) != row.get("warned", []):
            return f"{row['row']}: expected warnings {row.get('warned', [])}, got {got.get('warnings', [])}"
        return None


@case("every rule of the table has its sentence over HTTPS")
def over_https(suite):
    table = Table(suite)
    wrong = [d for d in map(table.differs, table.cases) if d]
    check(len(table.cases) >= 150, "only", len(table.cases), "cases")
    check(not wrong, f"{len(wrong)} of {len(table.cases)} cases:\n" + "\n".join(wrong))


def kubectl_create(kubectl, c, ns, rows):
    """(names created, warnings, errors) as one kubectl prints them."""
    documents = "\n".join(json.dumps(row["object"]) for row in rows)
    # What one kubectl found out about a cluster is nothing for another.
    cache = os.path.join(c.env["K8S_DIR"], "kubectl-cache-" + re.sub(r"\W", "-", kubectl))
    command = [kubectl, "--kubeconfig", c.kubeconfig, "--cache-dir", cache, "-n", ns, "create", "--dry-run=server", "--validate=false", "-o", "json", "-f", "-"]
    done = subprocess.run(command, input=documents, capture_output=True, text=True, timeout=300, check=False)
    warnings = re.findall(r"^Warning: (.*)$", done.stderr, re.M)
    errors = re.findall(r"^(?!Warning: )(.*\S.*)$", done.stderr, re.M)
    made = []
    decoder, text = json.JSONDecoder(), done.stdout.strip()
    while text:
        obj, end = decoder.raw_decode(text)
        made += obj["items"] if obj["kind"] == "List" else [obj]
        text = text[end:].lstrip()
    return made, warnings, errors


def differences(table, kubectl):
    """(how many rows were asked, what is wrong) with this kubectl."""
    wrong = []
    asked = 0
    for role, ns in table.namespaces.items():
        rows = [row for row in table.cases if row["ns"] == ns and "operation" not in row and not row.get("untyped")]
        asked += len(rows)
        # kubectl says a warning once in its life: each part has none twice.
        parts = [[]]
        for row in rows:
            if any(set(row.get("warned", [])) & set(other.get("warned", [])) for other in parts[-1]):
                parts.append([])
            parts[-1].append(row)
        for part in parts:
            made, warnings, errors = kubectl_create(kubectl, table.cluster, ns, part)
            expected = [w for row in part for w in row.get("warned", [])]
            ours = [w for w in warnings if w in expected or re.match(r"(spec|metadata)\S*: ", w)]
            if ours != expected:
                wrong.append(f"{role}: expected warnings {expected}, got {warnings}")
            refused = [row for row in part if row["refusal"]]
            denied = [e.split("denied the request: ", 1)[-1] for e in errors]
            for row, got in zip(refused, denied):
                if row["refusal"] != got:
                    wrong.append(f"{row['row']}: expected {row['refusal']!r}, got {got!r}")
            if len(refused) != len(denied):
                wrong.append(f"{role}: {len(refused)} refusals expected, {len(denied)} errors printed: {errors[len(refused) - 1:]}")
            names = [obj["metadata"]["name"] for obj in made]
            if names != [row["object"]["metadata"]["name"] for row in part if not row["refusal"]]:
                wrong.append(f"{role}: other objects were made than expected: {names}")
            schedulers = {obj["metadata"]["name"]: obj["spec"].get("schedulerName") for obj in made if obj["kind"] == "Pod"}
            for row in part:
                expected_scheduler = {"ours": SCHEDULER, "default": "default-scheduler"}.get(row.get("scheduler"), row.get("scheduler"))
                if expected_scheduler and schedulers.get(row["object"]["metadata"]["name"]) != expected_scheduler:
                    wrong.append(f"{row['row']}: scheduler is {schedulers.get(row['object']['metadata']['name'])}")
    return asked, wrong


@case("kubectl prints the sentence of every rule of the table, and its warnings")
def by_kubectl(suite):
    table = Table(suite)
    for kubectl in suite.cluster.kubectls():
        asked, wrong = differences(table, kubectl)
        check(asked >= 150, "only", asked, "cases")
        check(not wrong, f"{len(wrong)} differences in {asked} cases with {kubectl}:\n" + "\n".join(wrong))
