# SPDX-License-Identifier: Apache-2.0
"""Pods as nobody writes them: mutations of whole pods, by what their fields mean. Pod number i of a seed is always the same one: Mutator(seed, seeds).pod(i).

A mutation takes (dice, pod) and changes the pod. Most values are such that an API server may take them: what it takes is what matters, and it is asked. (Who asks for
something that Kubernetes itself grants against others, such as anti-affinity over all namespaces, is not a finding: those are left out.)
"""
import copy
import json
import os
import random
import re

from harness import ROOT

with open(os.path.join(ROOT, "lib/model/names.h"), encoding="utf-8") as names:
    NAMES = dict(re.findall(r'^#define (NAME_\w+) "([^"]*)"', names.read(), re.M))
ANNOTATIONS = sorted(v for k, v in NAMES.items() if k.startswith("NAME_ANN_")) + [NAMES["NAME_INJECT"]]
LABELS = sorted(v for k, v in NAMES.items() if k.startswith("NAME_LABEL_")) + [NAMES["NAME_RES_GPU_COUNT"]]
GPU = [NAMES[k] for k in ("NAME_RES_GPU_MEM", "NAME_RES_GPU_CORE", "NAME_RES_GPU", "NAME_RES_NVIDIA_GPU", "NAME_RES_GPU_COUNT")]

STRINGS = ["", "\0", "a\0b", "\ud800", "\udc00x", "é", "\u202e", "\ufeff", "x" * 63, "x" * 300, "x" * 20000, "../..", "%s%n%d", "\n", "\t", "\x7f", "\x1b[31m", "{}", "[]", "[", "null", "true",
           "True", "TRUE", "false", "-1", "0", "1", "2", "00", "+1", "1e3", "1e30", "NaN", "0x10", "９", " ", " 1", "1 ", '"', "\\", "'", "9" * 60, "-" + "9" * 60, "9223372036854775807",
           "9223372036854775808", "-9223372036854775808", "4294967296", "required", "static-burst", "eci", "eci_only", "SingleNUMANode", "once-satisfied", "ack-co-scheduler"]
LABEL_VALUES = ["", "x", "X-1", "x" * 63, "true", "True", "0", "1", "2", "3", "00", "1e3", "9" * 60, "9223372036854775807", "9223372036854775808", "g", "g.1_2-3", "gpu", "gpu-hpn"]
JSON = ['{"0":{"0":1}}', '{"0":{"0":9223372036854775807}}', '{"99999999999999999999":{"0":1}}', '{"0":{"-1":3}}', '{"0":{"64":1}}', '{"0":{"0":1,"0":2}}', '{"0":{"0":1},"0":{"1":1}}', "[" * 1000,
        "[" * 50000, '{"a":' * 1000, '{"v":1}', '{"v":9e999}', '{"main":{"0":{"elems":{"0":{}}}}}', '{"main":{"0":{"elems":{"4294967296":{}}}}}', '{"main":{"0":{"elems":{"-1":{}}}}}', '{"main":null}',
        "null", '"x"', "1e400", '{"\\u0000":1}', '{"\\ud800":1}', '["ns/a","ns/b"]', '["a"]', '["/"]', '[""]', '[1]', '[[]]', '["' + "x/" * 5000 + '"]',
        '{"numaTopologyPolicy":"SingleNUMANode"}', '{"numaTopologyPolicy":{"a":[1e999]}}', '{"numaTopologyPolicy":"Restricted","singleNUMANodeExclusive":"Required"}', '{"' + "k" * 5000 + '":1}',
        json.dumps({str(i): {str(j): 1 for j in range(16)} for i in range(64)}), json.dumps({"main": {"0": {"elems": {str(i): {} for i in range(2048)}}}})]
# Not "1e9999999999": kube-apiserver 1.36 itself works on it for ever.
QUANTITIES = ["0", "-0", "1", "2", "3", "100m", "1.5", "1e30", "1E3", "1e-9", "0.0000001", "1n", "1u", "9223372036854775807", "9223372036854775808", "9223372036854775807Ei", "1Ki", "1.0000000000001Gi", "0x10",
              "+1", ".5", "5.", "1" * 40, "1Ei", "16Ei", "8Ei", "0.1n", "-1", "1E", "1e18", "1e19", "999999999999P", "0e30", "0.5", "1000000", 1, 3, 0.5]
WHOLE = ["0", "1", "2", "3", "4", "5", "10", "1k", "1e3", "1E3", "1Ki", "9223372036854775807", "9223372036854775808", "1e18", "1e30", "3.0", "3000m", "100", "+3", "3e0", 1, 3]
INTEGERS = [0, 1, -1, 2, 5, 100, 600, 2**31 - 1, -2**31, 2**31, 2**63 - 1, -2**63]
KEYS = ["x", "example.com/x", "kubernetes.io/hostname", "topology.kubernetes.io/zone", "pool", "a.b.c/d", "x" * 63, "x" * 200 + ".io/" + "y" * 63]
PATHS = ["/data", "/etc/ld.so.preload", "/usr/local/cosched-gpu", "/a/../b", "//x", "/a:b", "relative", "/" + "x" * 4000, "/x\0y", "/"]


def containers(pod):
    return pod["spec"].get("containers", []) + pod["spec"].get("initContainers", [])


def any_container(dice, pod):
    return dice.choice(containers(pod))


def selector(dice, empty=True):
    """Selects pods of the fuzzer alone, or nothing."""
    kind = dice.randrange(4)
    if kind == 0:
        return {"matchLabels": {"fuzz": dice.choice(LABEL_VALUES)}}
    if kind == 1:
        return {"matchExpressions": [{"key": dice.choice(["fuzz", *LABELS]), "operator": "In", "values": dice.sample(LABEL_VALUES, dice.randrange(1, 6))}]}
    if kind == 2:
        return {"matchExpressions": [{"key": "fuzz", "operator": "Exists"}] * dice.randrange(1, 40)}
    return None if empty else {"matchLabels": {"fuzz": "x"}}


def requirement(dice):
    operator = dice.choice(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
    values = {"In": dice.sample(STRINGS, dice.randrange(1, 5)), "NotIn": dice.sample(LABEL_VALUES, dice.randrange(1, 8)), "Gt": [dice.choice(STRINGS)], "Lt": [dice.choice(STRINGS)]}
    return {"key": dice.choice(KEYS + LABELS), "operator": operator, **({"values": values[operator]} if operator in values else {})}


def pod_term(dice):
    s = selector(dice)
    return {"topologyKey": dice.choice(KEYS[:5]), **({"labelSelector": s} if s else {}), **({"matchLabelKeys": [dice.choice(["fuzz", "x"])]} if s and dice.random() < 0.2 else {}),
            **({"namespaces": [dice.choice(["nobody", "x"])]} if dice.random() < 0.3 else {})}


def quantity(dice, name):
    return dice.choice(["0", "1Gi", "4Gi", "1024Mi", "8Ei"] if name.startswith("hugepages") else WHOLE if "/" in name else QUANTITIES)


def amounts(dice):
    names = ["cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "hugepages-1Gi", "example.com/x", "x.io/" + "y" * 63, *GPU, *GPU]
    return {name: quantity(dice, name) for name in dice.sample(names, dice.randrange(0, 5))}


def set_resources(dice, pod):
    """Limits, and requests as API servers want them: equal for what cannot be overcommitted."""
    limits = amounts(dice)
    requests = {k: (v if "/" in k or k.startswith("hugepages") else dice.choice([v, "0", "1n", "10m", "1"])) for k, v in limits.items() if dice.random() < 0.6}
    if dice.random() < 0.2:
        requests.setdefault("cpu", dice.choice(QUANTITIES))
    any_container(dice, pod)["resources"] = {"limits": limits, "requests": requests}


def set_gpu(dice, pod):
    """What makes it a pod of ours, nearly right."""
    limits = any_container(dice, pod).setdefault("resources", {}).setdefault("limits", {})
    limits[dice.choice(GPU[:4])] = dice.choice(WHOLE)
    if dice.random() < 0.5:
        limits[GPU[0]], limits[GPU[1]] = dice.choice(WHOLE), dice.choice(WHOLE)
    any_container(dice, pod).get("resources", {}).pop("requests", None)


def set_annotation(dice, pod):
    keys = dice.choice([ANNOTATIONS, ANNOTATIONS, ["note", "a/b", "x" * 63, "local.cosched.io/x", "cosched.io/x", "kubernetes.io/config.mirror", "kubernetes.io/config.source"]])
    pod["metadata"].setdefault("annotations", {})[dice.choice(keys)] = dice.choice(dice.choice([STRINGS, JSON]))


def set_many_annotations(dice, pod):
    pod["metadata"].setdefault("annotations", {}).update({f"k{i}": dice.choice(STRINGS[:8]) for i in range(dice.choice([3, 10, 10, 100, 1000]))})


def set_label(dice, pod):
    pod["metadata"].setdefault("labels", {})[dice.choice(LABELS + ["app", "fuzz"])] = dice.choice(LABEL_VALUES)


def set_metadata(dice, pod):
    what = dice.randrange(4)
    if what == 0:
        pod["metadata"]["ownerReferences"] = [{"apiVersion": dice.choice(["v1", "apps/v1", "batch/v1"]), "kind": dice.choice(["ReplicaSet", "Job", "x\0y"]), "name": dice.choice(["o", "a\0b", "x" * 5000]),
                                               "uid": dice.choice(["u", "a\0b", "x" * 300]), **({"controller": True} if i == 0 else {})} for i in range(dice.choice([1, 1, 2, 50]))]
    elif what == 1:
        pod["metadata"]["finalizers"] = [f"example.com/f{i}" for i in range(dice.choice([1, 100]))]
    elif what == 2:
        pod["metadata"]["generateName"] = "x" * dice.choice([1, 200]) + "-"
    else:
        pod["metadata"]["labels"] = {f"k{i}": "v" for i in range(dice.choice([1, 500]))}


def set_node_affinity(dice, pod):
    terms = [{dice.choice(["matchExpressions", "matchExpressions", "matchFields"]): [requirement(dice) for _ in range(dice.choice([0, 1, 1, 2, 30]))]} for _ in range(dice.choice([1, 1, 2, 20]))]
    for term in terms:
        if "matchFields" in term:
            term["matchFields"] = [{"key": "metadata.name", "operator": dice.choice(["In", "NotIn"]), "values": [dice.choice(["x", "fz-1"])]}]
    affinity = pod["spec"].setdefault("affinity", {})
    if dice.random() < 0.5:
        affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    else:
        affinity["nodeAffinity"] = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": dice.choice([1, 50, 100]), "preference": t} for t in terms]}


def set_pod_affinity(dice, pod):
    kind = dice.choice(["podAffinity", "podAntiAffinity"])
    terms = [pod_term(dice) for _ in range(dice.choice([1, 1, 3, 30]))]
    affinity = pod["spec"].setdefault("affinity", {})
    if dice.random() < 0.5:
        affinity[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    else:
        affinity[kind] = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": dice.choice([1, 100]), "podAffinityTerm": t} for t in terms]}


def set_spread(dice, pod):
    keys = dice.sample(KEYS[:6], dice.choice([1, 1, 2, 4]))
    pod["spec"]["topologySpreadConstraints"] = [
        {"maxSkew": dice.choice([1, 2, 2**31 - 1]), "topologyKey": key, "whenUnsatisfiable": dice.choice(["DoNotSchedule", "ScheduleAnyway"]), "labelSelector": selector(dice, empty=False),
         **({"nodeAffinityPolicy": dice.choice(["Honor", "Ignore"])} if dice.random() < 0.3 else {}), **({"matchLabelKeys": ["x"]} if dice.random() < 0.2 else {})} for key in keys]
    for c in pod["spec"]["topologySpreadConstraints"]:
        if c["whenUnsatisfiable"] == "DoNotSchedule" and dice.random() < 0.3:
            c["minDomains"] = dice.choice([1, 5, 2**31 - 1])


def set_tolerations(dice, pod):
    pod["spec"]["tolerations"] = [dice.choice([
        {"operator": "Exists"}, {"key": dice.choice(KEYS), "operator": "Exists", "effect": dice.choice(["NoSchedule", "NoExecute", "PreferNoSchedule", ""])},
        {"key": dice.choice(KEYS), "value": dice.choice(LABEL_VALUES), "effect": "NoExecute", "tolerationSeconds": dice.choice(INTEGERS)},
        {"key": "x", "operator": "Equal", "value": dice.choice(LABEL_VALUES)}]) for _ in range(dice.choice([1, 2, 200]))]


def set_node_selector(dice, pod):
    pod["spec"]["nodeSelector"] = {dice.choice(KEYS + LABELS): dice.choice(LABEL_VALUES) for _ in range(dice.choice([1, 3, 50]))}


def volume(dice, name):
    text = lambda: dice.choice(STRINGS)
    return {"name": name, **dice.choice([
        lambda: {"emptyDir": {"medium": dice.choice(["", "Memory", "HugePages"]), "sizeLimit": dice.choice(QUANTITIES)}}, lambda: {"hostPath": {"path": dice.choice(PATHS), "type": dice.choice(["", "Directory"])}},
        lambda: {"persistentVolumeClaim": {"claimName": text()}}, lambda: {"configMap": {"name": text(), "optional": True}}, lambda: {"secret": {"secretName": text()}},
        lambda: {"csi": {"driver": dice.choice(["d.io", text()]), "volumeAttributes": {"k": text()}}}, lambda: {"nfs": {"server": text(), "path": dice.choice(PATHS)}},
        lambda: {"rbd": {"monitors": [text()], "image": text(), "pool": text()}}, lambda: {"iscsi": {"targetPortal": text(), "iqn": "iqn.2001-04.com.example:x", "lun": dice.choice([0, 1, 255])}},
        lambda: {"gcePersistentDisk": {"pdName": text()}}, lambda: {"awsElasticBlockStore": {"volumeID": text()}}, lambda: {"azureDisk": {"diskName": text(), "diskURI": "https://x"}},
        lambda: {"image": {"reference": text()}}, lambda: {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        lambda: {"projected": {"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}]}},
        lambda: {"ephemeral": {"volumeClaimTemplate": {"metadata": {"annotations": {"a": text()}}, "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": dice.choice(["", "s"]), "resources": {"requests": {"storage": dice.choice(QUANTITIES)}}}}}}])()}


def set_volumes(dice, pod):
    mine = [volume(dice, f"v{i}") for i in range(dice.choice([1, 1, 2, 20]))]
    pod["spec"]["volumes"] = pod["spec"].get("volumes", []) + mine
    for v in mine:
        if dice.random() < 0.5:
            any_container(dice, pod).setdefault("volumeMounts", []).append({"name": v["name"], "mountPath": dice.choice(PATHS) + f"{len(v)}{v['name']}", "readOnly": dice.random() < 0.5,
                                                                           **({"subPath": dice.choice(["x", "a/b"])} if dice.random() < 0.3 else {})})


def set_env(dice, pod):
    c = any_container(dice, pod)
    names_of = sorted(v for k, v in NAMES.items() if k.startswith("NAME_ENV_")) + ["X", "LD_PRELOAD", "a.b", "CUDA_VISIBLE_DEVICES"]
    c["env"] = [{"name": dice.choice(names_of), **dice.choice([{"value": dice.choice(STRINGS)}, {"valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                                                               {"valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": dice.choice(["1", "1m"])}}}])}
                for _ in range(dice.choice([1, 2, 300]))]
    if dice.random() < 0.3:
        c["envFrom"] = [{"prefix": dice.choice(["", "N", "CGPU_", "ALIYUN_COM_GPU_", "x\0"]), "configMapRef": {"name": "c", "optional": True}}]


def set_strings(dice, pod):
    """Fields that hardly anybody validates."""
    c = any_container(dice, pod)
    field = dice.choice(["image", "command", "args", "workingDir", "terminationMessagePath", "schedulerName", "imagePullPolicy", "securityContext", "nodeName"])
    if field in ("command", "args"):
        c[field] = dice.sample(STRINGS, dice.randrange(1, 6))
    elif field == "schedulerName":
        pod["spec"][field] = dice.choice([NAMES["NAME_SCHEDULER"], NAMES["NAME_SCHEDULER"] + "\0", "mine", "\0", "x" * 300])
    elif field == "securityContext":
        c[field] = {"seLinuxOptions": {"user": dice.choice(STRINGS), "level": dice.choice(STRINGS)}}
    elif field == "imagePullPolicy":
        c[field] = "Never"
    elif field == "nodeName":
        pod["spec"]["hostNetwork"] = True
    else:
        c[field] = dice.choice(STRINGS)


def set_ports(dice, pod):
    any_container(dice, pod)["ports"] = [{"containerPort": dice.choice([1, 80, 65535]), "protocol": dice.choice(["TCP", "UDP", "SCTP"]), **({"hostPort": dice.randrange(1, 65536)} if dice.random() < 0.3 else {}),
                                          **({"hostIP": dice.choice(["127.0.0.1", "::1", "0.0.0.0", "1.2.3.4"])} if dice.random() < 0.3 else {}), "name": f"p{i}"} for i in range(dice.choice([1, 2, 60]))]


def add_containers(dice, pod):
    for i in range(dice.choice([1, 1, 2, 40])):
        made = copy.deepcopy(pod["spec"]["containers"][0])
        made["name"] = f"m{len(containers(pod))}-{i}"
        made.pop("ports", None)
        kind = dice.randrange(3)
        if kind == 0:
            pod["spec"]["containers"].append(made)
            continue
        for probe in ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle"):
            made.pop(probe, None)
        if kind == 1:
            made["restartPolicy"] = "Always"
        pod["spec"].setdefault("initContainers", []).append(made)


def set_pod_level(dice, pod):
    name = dice.choice(["cpu", "memory", "hugepages-2Mi"])
    pod["spec"]["resources"] = {dice.choice(["requests", "limits"]): {name: quantity(dice, name)}}


def set_rest(dice, pod):
    spec = pod["spec"]
    change = dice.choice([
        lambda: spec.update(schedulingGates=[{"name": f"example.com/g{i}"} for i in range(dice.choice([1, 30]))]), lambda: spec.update(priorityClassName="system-node-critical"),
        lambda: spec.update(preemptionPolicy=dice.choice(["Never", "PreemptLowerPriority"])), lambda: spec.update(terminationGracePeriodSeconds=dice.choice([0, 1, 2**31, 2**63 - 1])),
        lambda: spec.update(activeDeadlineSeconds=dice.choice([1, 2**31 - 1])), lambda: spec.update(resourceClaims=[{"name": "c", dice.choice(["resourceClaimName", "resourceClaimTemplateName"]): "x"}]),
        lambda: spec.update(restartPolicy=dice.choice(["Always", "OnFailure", "Never"])), lambda: spec.update(hostname="h", subdomain="s"), lambda: spec.update(overhead={"cpu": dice.choice(QUANTITIES)}),
        lambda: spec.update(os={"name": dice.choice(["linux", "windows"])}), lambda: spec.update(hostPID=True, shareProcessNamespace=False), lambda: spec.update(runtimeClassName="x"),
        lambda: spec.update(securityContext={"sysctls": [{"name": "kernel.shm_rmid_forced", "value": dice.choice(STRINGS)}], "fsGroup": dice.choice([0, 1, 2**31 - 1])}),
        lambda: spec.update(dnsPolicy="None", dnsConfig={"nameservers": ["1.2.3.4"], "options": [{"name": dice.choice(STRINGS[:12]), "value": dice.choice(STRINGS)}]}),
        lambda: spec.update(hostAliases=[{"ip": "1.2.3.4", "hostnames": ["a"]}]), lambda: spec.update(imagePullSecrets=[{"name": dice.choice(STRINGS)}]), lambda: spec.update(readinessGates=[{"conditionType": "x/y"}]),
        lambda: spec.update(setHostnameAsFQDN=True, enableServiceLinks=False), lambda: spec.update(schedulingGroup={"podGroupName": "g"}), lambda: spec.update(terminationGracePeriodSeconds=None)])
    change()


def set_wide(dice, pod):
    """As many of something as fit: what costs more than its length is found by its CPU time."""
    spec, c = pod["spec"], pod["spec"]["containers"][0]
    many = dice.choice([300, 3000])
    term = {"topologyKey": "pool", "labelSelector": {"matchLabels": {"fuzz": "x"}}}
    change = dice.choice([
        lambda: spec.update(tolerations=[{"key": f"k{i}", "operator": "Exists"} for i in range(many)]),
        lambda: spec.update(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": f"k{i}", "operator": "In", "values": ["a", "b"]}]} for i in range(many)]}}}),
        lambda: spec.update(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "k", "operator": "NotIn", "values": [f"v{i}" for i in range(many)]}]}]}}}),
        lambda: spec.update(affinity={"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {**term, "topologyKey": f"k{i}"}} for i in range(many)]}}),
        lambda: spec.update(affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{**term, "topologyKey": f"k{i}"} for i in range(many)]}}),
        lambda: spec.update(affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {**term, "labelSelector": {"matchExpressions": [{"key": f"k{i}", "operator": "In", "values": ["x"]} for i in range(many)]}}]}}),
        lambda: spec.update(topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": f"k{i}", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"fuzz": "x"}}} for i in range(many)]),
        lambda: spec.update(containers=[{**c, "name": f"c{i}", "ports": []} for i in range(many // 3)]), lambda: c.update(env=[{"name": f"E{i}", "value": "x"} for i in range(many)]),
        lambda: c.update(ports=[{"containerPort": 1 + i % 65535, "hostPort": 1 + i % 65535} for i in range(many)]),
        lambda: spec.update(volumes=[{"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"c{i}"}} for i in range(many)]),
        lambda: spec.update(volumes=[{"name": f"v{i}", "gcePersistentDisk": {"pdName": f"c{i}"}} for i in range(many)]), lambda: spec.update(schedulingGates=[{"name": f"g{i}"} for i in range(many)]),
        lambda: c.update(resources={"limits": {f"example.com/r{i}": "1" for i in range(many)}}), lambda: pod["metadata"].setdefault("labels", {}).update({f"k{i}": "x" for i in range(many)}),
        lambda: spec.update(nodeSelector={f"k{i}": "x" for i in range(many)}), lambda: spec.update(resourceClaims=[{"name": f"c{i}", "resourceClaimName": "x"} for i in range(min(many, 200))])])
    change()


MUTATIONS = [set_resources] * 4 + [set_gpu] * 3 + [set_annotation] * 6 + [set_many_annotations, set_label, set_label, set_label, set_metadata, set_node_affinity, set_pod_affinity, set_spread, set_tolerations,
                                                                         set_node_selector, set_volumes, set_volumes, set_env, set_env, set_strings, set_strings, set_ports, add_containers, set_pod_level,
                                                                         set_rest, set_rest, set_wide]


def plain_seeds():
    """Pods of the contract, for where no manifests can be read."""
    def made(limits, annotations=None, labels=None):
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": labels or {}, "annotations": annotations or {}}, "spec": {
            "schedulerName": NAMES["NAME_SCHEDULER"], "containers": [{"name": "main", "image": "busybox:test", "resources": {"limits": limits}}]}}
    return [made({}), made({GPU[0]: "3"}), made({GPU[0]: "3", GPU[1]: "30"}), made({GPU[2]: "1"}), made({GPU[0]: "4"}, labels={GPU[4]: "2"}), made({"cpu": "2", "memory": "1Gi"}, {"cpuset-scheduler": "true"}),
            made({}, labels={"pod-group.scheduling.sigs.k8s.io/name": "g", "pod-group.scheduling.sigs.k8s.io/min-available": "2"}), made({}, {"alibabacloud.com/burst-resource": "eci"})]


def manifest_seeds(cluster):
    """The pods of deploy/examples, those of their templates too."""
    found = []
    for folder in ("documents", "features"):
        for name in sorted(os.listdir(os.path.join(ROOT, "deploy/examples", folder))):
            text = cluster.kubectl("create", "--dry-run=client", "--validate=false", "-o", "json", "-f", os.path.join(ROOT, "deploy/examples", folder, name), check_exit=False).strip()
            while text:
                o, end = json.JSONDecoder().raw_decode(text)
                text = text[end:].strip()
                for item in o.get("items", [o]):
                    template = item.get("spec", {}).get("template") or (item if item["kind"] == "Pod" else None)
                    if template and "spec" in template:
                        meta = template.get("metadata") or {}
                        found.append({"apiVersion": "v1", "kind": "Pod", "metadata": {k: meta.get(k) or {} for k in ("labels", "annotations")}, "spec": template["spec"]})
    return found


class Mutator:
    def __init__(self, seed, seeds):
        self.seed, self.seeds = seed, seeds

    def pod(self, number):
        """The pod of that number."""
        dice = random.Random(f"{self.seed}-{number}")
        pod = copy.deepcopy(dice.choice(self.seeds))
        for _ in range(dice.choice([1, 1, 2, 2, 3, 5])):
            dice.choice(MUTATIONS)(dice, pod)
        pod["metadata"]["name"] = f"fuzz-{number}"
        return pod
