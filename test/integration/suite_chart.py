# SPDX-License-Identifier: Apache-2.0
"""The chart by itself, rendered and not installed: wrong values are refused in words, every option of every program arrives on its command line, and every container is locked down."""
import json
import os
import re
import subprocess

from harness import BUILD, case, check, check_equal
from install_site import CHART, HOME, PROGRAMS, find_helm

# Values, and words of the sentence by which they are refused.
WRONG = [
    ({"scheduler": {"options": {"scorring": "most-allocated"}}}, "scorring"),
    ({"scheduler": {"options": {"scoring": "best"}}}, "'least-allocated', 'most-allocated'"),
    ({"scheduler": {"options": {"bind-workers": 0}}}, "minimum: got 0, want 1"),
    ({"scheduler": {"options": {"bind-workers": 257}}}, "maximum: got 257, want 256"),
    ({"scheduler": {"options": {"lease-duration": "15"}}}, "'15' does not match pattern"),
    ({"scheduler": {"options": {"lease-duration": 15}}}, "maximum: got 15, want 0"),
    ({"scheduler": {"options": {"gang-dry-run": "yes"}}}, "got string, want boolean"),
    ({"scheduler": {"options": {"max-list-bytes": "1GB"}}}, "'1GB' does not match pattern"),
    ({"scheduler": {"replicas": -1}}, "minimum: got -1, want 0"),
    ({"scheduler": {"options": {"http-port": 9}}}, "scheduler.options.http-port: set scheduler.httpPort instead"),
    ({"scheduler": {"options": {"scheduler-name": "x"}}}, "scheduler.options.scheduler-name: set schedulerName instead"),
    ({"schedulerName": ""}, "minLength: got 0, want 1"),
    ({"webhook": {"failurePolicy": "Maybe"}}, "'Ignore', 'Fail'"),
    ({"webhook": {"url": "http://here"}}, "does not match pattern"),
    ({"webhook": {"timeoutSeconds": 31}}, "maximum: got 31, want 30"),
    ({"webhook": {"workloads": [{"group": "x"}]}}, "missing properties 'version', 'resources'"),
    ({"webhook": {"options": {"namespace": "x"}}}, "webhook.options.namespace: set the namespace of the release (helm -n) instead"),
    ({"devicePlugin": {"options": {"isolation": "some"}}}, "value must be one of"),
    ({"devicePlugin": {"options": {"state-dir": "/x"}}}, "devicePlugin.options.state-dir: set devicePlugin.paths.state instead"),
    ({"image": {"pullPolicy": "Sometimes"}}, "'Always', 'IfNotPresent', 'Never'"),
    ({"sheduler": {}}, "sheduler"),
]


def template(suite, values, *args):
    """(status, output, complaint)"""
    path = os.path.join(suite.directory, "chart-values.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(values, f)
    done = subprocess.run([find_helm(), "template", "cosched", CHART, "-n", HOME, "--kube-version", "1.36", "-f", path, *args], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


@case("the chart refuses wrong values before anything is installed, in words that name what is wrong", needs=("real",))
def wrong_values(suite):
    for values, words in WRONG:
        status, _, said = template(suite, values)
        check(status != 0 and words in said, f"{values}: ended with {status}, expected '{words}' in: {said}")
    status, _, said = template(suite, {}, "--kube-version", "1.29")
    check(status != 0 and "incompatible" in said, f"Kubernetes 1.29: {said}")


def sample(kind):
    """A value of that kind that is not its default's form."""
    if kind.get("type") == "boolean":
        return False
    if "enum" in kind:
        return kind["enum"][-1]
    if "pattern" not in kind:
        return "some,text=here"
    return kind["minimum"] + 1 if "(ms" not in kind["pattern"] and "iB" not in kind["pattern"] else "7s" if "(ms" in kind["pattern"] else "5MiB"


@case("every option of every program is reachable from the chart's values, as --help tells them", needs=("real",))
def every_option(suite):
    with open(os.path.join(CHART, "values.schema.json"), encoding="utf-8") as f:
        schema = json.load(f)["properties"]
    number = 0
    for program, key in PROGRAMS.items():
        told = subprocess.run([os.path.join(BUILD, f"bin/cosched-{program}"), "--help"], capture_output=True, text=True, check=True, timeout=30).stdout
        names = set(re.findall(r"^ {7}--([a-z0-9-]+)", told, re.M)) - {"help", "version", "check"}
        kinds = schema[key]["properties"]["options"]["properties"]
        check_equal(set(kinds), names, f"options of cosched-{program} in values.schema.json")
        options = {name: sample(kind) for name, kind in kinds.items()}
        # Those that must fit other objects have a value of their own, which the refusal names.
        while True:
            status, text, said = template(suite, {key: {"options": options}})
            refused = re.search(rf"{key}\.options\.([a-z0-9-]+): set ", said)
            if status == 0 or not refused:
                break
            del options[refused[1]]
        check_equal(status, 0, f"all options of {key}: {said}")
        args = re.findall(r'^ {8}- "?(--[^"\n]+?)"?$', text, re.M)
        for name, value in options.items():
            expected = f"--no-{name}" if value is False else f"--{name}={value}"
            check(expected in args, f"{key}.options.{name}={value} does not arrive as {expected}: {args}")
        own = names - set(options)
        check(len(own) <= 11, f"{key}: {sorted(own)} are refused")
        for name in own:
            check(any(a.startswith(f"--{name}=") for a in args) or name in ("namespace", "client-ca-file", "guard-nvidia", "kubelet-config", "cdi-dir", "mps-pipe-dir", "mps-log-dir", "mps-shm-dir", "mount-only"),
                  f"{key}: nothing sets --{name}")
        number += len(names)
    print(f"     {number} options")


@case("every container of the chart is locked down: no root but the device plugin's, nothing writable, no capability, seccomp, requests and probes", needs=("real",))
def locked_down(suite):
    status, text, said = template(suite, {})
    check_equal(status, 0, said)
    found = 0
    for document in text.split("\n---\n"):
        kind = re.search(r"^kind: (Deployment|DaemonSet)$", document, re.M)
        if not kind:
            continue
        found += 1
        name = re.search(r"^  name: (\S+)$", document, re.M)[1]
        wanted = ["readOnlyRootFilesystem: true", "allowPrivilegeEscalation: false", 'drop: ["ALL"]', "type: RuntimeDefault", "requests:", "livenessProbe:", "readinessProbe:",
                  "priorityClassName: system-"]
        wanted += ["privileged: false", "updateStrategy:", "priorityClassName: system-node-critical"] if kind[1] == "DaemonSet" else ["runAsNonRoot: true", "runAsUser: 65532", "replicas: 2"]
        for line in wanted:
            check(line in document, f"{name}: no '{line}'")
        check(kind[1] == "DaemonSet" or "hostPath" not in document and "hostNetwork" not in document and "hostPID" not in document, f"{name}: reaches for the node")
        check(kind[1] == "DaemonSet" or re.search(rf"kind: PodDisruptionBudget\nmetadata:\n  name: {name}\n", text), f"{name}: no PodDisruptionBudget")
    check_equal(found, 3, "workloads")
    verbs = 0
    for rule in re.findall(r"^  verbs:.*\n(?:  - .*\n)+", text, re.M):
        head, *lines = rule.splitlines()
        verbs += len(lines)
        for line in lines:
            check("#" in head or "#" in line, f"a verb without its reason: '{line.strip()}' in\n{rule}")
    check(verbs > 50, f"{verbs} verbs")
    for kind, names in (("ValidatingAdmissionPolicyBinding", 10), ("FlowSchema", 2), ("NetworkPolicy", 2), ("Lease", 1)):
        check_equal(len(re.findall(rf"^kind: {kind}$", text, re.M)), names, kind)


@case("networkPolicy.metricsFrom and apiServers say who reaches the ports of the programs; without them every pod does", needs=("real",))
def network_policy(suite):
    narrow = {"networkPolicy": {"metricsFrom": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}], "apiServers": ["192.0.2.10/32"]}}
    for values, froms in (({}, 0), (narrow, 2)):
        status, text, said = template(suite, values, "--show-only", "templates/network-policy.yaml")
        check_equal(status, 0, said)
        check_equal(len(re.findall(r"^    from:$", text, re.M)), froms, f"{values}: sources in\n{text}")
        check_equal("kubernetes.io/metadata.name: monitoring" in text, froms > 0, "the namespace")
