# SPDX-License-Identifier: Apache-2.0
"""The images and the chart on a real cluster of their own: installed by the commands that a new user types, used, upgraded and downgraded under load, uninstalled, installed without Helm; with
exactly the chart's rights.

One cluster (install_site) with the API server's audit log for all of it. OLDER_BUILD names the build directory of an older version (test/tools/older makes one): then upgrades begin with its
programs and downgrades end with them. Without it there is only one version, which is upgraded to itself under another tag.
"""
import glob
import json
import os
import random
import re
import threading
import time

import rights
from harness import BUILD, MERGE, ROOT, Failed, case, check, check_equal, wait_until
from install_faults import plant_all
from install_use import use_every_right
from install_site import CHART, GIB, HOME, PROGRAMS, Site, beside, find_helm, job, make_images, make_namespace, run, wait_jobs

OLDER = os.environ.get("OLDER_BUILD")


def first_gang(site, ns):
    """What a new user types: the commands that helm install prints, as they stand there. Returns the output."""
    c = site.cluster
    install = f"helm install cosched deploy/chart -n {HOME} --create-namespace"
    site.make_image("registry.example.com/cuda-app:1", "sleep", "3600")
    began, lines = time.monotonic(), []

    def type_in(line, really=None):
        start = time.monotonic()
        said = site.type(really or line)
        lines.append(f"{time.monotonic() - start:5.1f} s  {line}")
        return said

    notes = type_in(install, f"{install} -f {site.values_path}")  # with the values for a loopback cluster
    printed = [line.strip() for line in notes.splitlines() if re.match(r" +kubectl ", line)]
    wait, label, create, see, *_ = printed
    type_in(wait)
    type_in(label.replace("NODE", site.node))
    type_in(create.replace("IMAGE", "registry.example.com/cuda-app:1"))
    type_in(see)
    took = time.monotonic() - began
    check(len(lines) <= 5, f"it takes {len(lines)} commands")
    pod = c.pod("default", "share")
    check_equal((pod["spec"]["schedulerName"], pod["status"]["phase"]), ("ack-co-scheduler", "Running"), "the first pod")
    check(pod["metadata"]["annotations"].get("scheduler.framework.gpushare.allocation"), f"the first pod has no claim: {pod['metadata']['annotations']}")
    c.delete_pod("default", "share")

    site.wait_ready()
    c.do("POST", f"/apis/batch/v1/namespaces/{ns}/jobs", job("gang", 3, 4, 'test -n "$NVIDIA_VISIBLE_DEVICES" && test "$ALIYUN_COM_GPU_MEM_CONTAINER" = 4'))
    wait_jobs(c, ns, ["gang"], 120)
    for pod in c.pods(ns):
        check_equal(pod["spec"]["schedulerName"], "ack-co-scheduler", "schedulerName, by the webhook")
        check(pod["metadata"]["annotations"].get("scheduler.framework.gpushare.allocation"), "the claim of " + pod["metadata"]["name"])
    return "\n".join([f"from helm install to the first pod that shares a card: {took:.1f} s, {len(lines)} commands", *lines])


class Load:
    """Jobs of single pods and gangs that come all the time, as many at once as a busy machine can carry; all of them are done in the end."""

    AT_ONCE = 3

    def __init__(self, site, ns):
        self.cluster, self.ns, self.names, self.stop = site.cluster, ns, [], threading.Event()

    def __call__(self):
        while not self.stop.is_set():
            jobs = self.cluster.get(f"/apis/batch/v1/namespaces/{self.ns}/jobs?labelSelector=load")["items"]
            if sum(not j.get("status", {}).get("completionTime") for j in jobs) >= self.AT_ONCE:
                self.stop.wait(0.2)
                continue
            name, gang = f"load-{len(self.names)}", len(self.names) % 4 == 3
            # A pod that the kubelet was given while the plugin was away fails for good; its Job makes another.
            body = job(name, 2 if gang else 1, 1, "true", gang=gang, backoff=30, scheduler="ack-co-scheduler")
            body["metadata"]["labels"] = {"load": "yes"}
            self.cluster.do("POST", f"/apis/batch/v1/namespaces/{self.ns}/jobs", body)
            self.names.append(name)

    def check_done(self):
        wait_jobs(self.cluster, self.ns, self.names, 180)
        pods = [p for p in self.cluster.pods(self.ns) if p["metadata"]["name"].startswith("load-")]
        bare = [p["metadata"]["name"] for p in pods if p["status"]["phase"] == "Succeeded" and not p["metadata"].get("annotations", {}).get("scheduler.framework.gpushare.allocation")]
        check(not bare, f"pods ran without a claim: {bare}")
        failed = [p["status"].get("reason") for p in pods if p["status"]["phase"] == "Failed"]
        check(set(failed) <= {"UnexpectedAdmissionError"}, f"pods failed by {failed}")  # the kubelet's rule for every plugin that is away
        return f"{len(self.names)} jobs, {len(pods)} pods of which {len(failed)} came while the plugin was away and were made again"


def older_form(site, ns):
    """A running pod whose claim is in the older annotations alone, as gpushare writes them."""
    c = site.cluster
    c.create_pod(ns, "older", limits={GIB: "9"}, hostNetwork=True)
    wait_until(lambda: c.pod(ns, "older")["status"].get("phase") == "Running", "the pod of the older form runs")
    annotations = wait_until(lambda: (a := c.pod(ns, "older")["metadata"]["annotations"]).get("ALIYUN_COM_GPU_MEM_ASSIGNED") == "true" and a, "it is assigned")
    newer = [k for k in annotations if k.startswith(("scheduler.framework.gpushare.", "cosched.io/", "gpushare.alibabacloud.com/", "topology.kubernetes.io/"))]
    site.annotate(ns, "older", **{k: None for k in newer})
    left = c.pod(ns, "older")["metadata"]["annotations"]
    check(left.get("ALIYUN_COM_GPU_MEM_IDX") and not left.get("scheduler.framework.gpushare.allocation"), f"the older form: {left}")
    return int(left["ALIYUN_COM_GPU_MEM_IDX"])


def check_adopted(site, ns, card):
    """Its 9 of 15 GiB are taken: with as much on the other card there is no room for 7 any more, and were it forgotten there would be."""
    c = site.cluster
    c.create_pod(ns, "beside", limits={GIB: "9"}, hostNetwork=True)
    c.wait_bound(ns, "beside", 60)
    where = int(c.pod(ns, "beside")["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_IDX"])
    check_equal(where, 1 - card, f"card of 9 GiB more; {card} has 9 of 15 in the older form")
    c.create_pod(ns, "no-room", limits={GIB: "7"}, hostNetwork=True)
    c.wait_refused(ns, "no-room", "no card with 7 GiB", seconds=60)
    for name in ("beside", "no-room"):
        c.delete_pod(ns, name)


def change_one_by_one(site, tag, tags):
    """Each program alone, in any order; the doctor says that versions differ as long as they do. Returns the order."""
    order = random.sample(sorted(PROGRAMS), len(PROGRAMS))
    for i, program in enumerate(order):
        tags[PROGRAMS[program]] = tag
        site.upgrade("--set", ",".join(f"{key}.tag={t}" for key, t in tags.items()))
        site.wait_ready(**tags)
        if i == 0:
            wait_until(lambda: "versions differ: scheduler " in site.doctor(1), "the doctor says that versions differ", 20)
    return ", ".join(order)


def change_under_load(site, ns):
    """Up and down by one version, one program after the other; a pod that ran goes on, and so does one whose claim is in the older form."""
    c, load, tags = site.cluster, Load(site, ns), {}
    c.create_pod(ns, "stays", limits={GIB: "2"}, hostNetwork=True)
    wait_until(lambda: c.pod(ns, "stays")["status"].get("phase") == "Running", "the pod that stays runs")
    before = c.pod(ns, "stays")
    with beside(load):
        try:
            up = change_one_by_one(site, "two", tags)
            card = older_form(site, ns)
            down = change_one_by_one(site, "one", tags)
            check_adopted(site, ns, card)
            site.tag = "two"
            site.upgrade()  # all at once
            site.wait_ready()
        finally:
            load.stop.set()
    said = load.check_done()
    for name in ("stays", "older"):
        after = c.pod(ns, name)
        check_equal(after["status"]["containerStatuses"][0]["restartCount"], 0, f"restarts of {name}")
    after = c.pod(ns, "stays")
    for field in ("scheduler.framework.gpushare.allocation", "ALIYUN_COM_GPU_MEM_IDX"):
        check_equal(after["metadata"]["annotations"].get(field), before["metadata"]["annotations"].get(field), f"{field} of the pod that stays")
    wait_until(lambda: site.doctor(0), "the doctor finds nothing", 30, 0.5)
    c.delete_pod(ns, "older")
    older = f"of {os.path.basename(OLDER)} and this one" if OLDER else "of this version under two tags"
    return f"programs {older}, up: {up}; down: {down}; up at once; meanwhile {said}"


def plugins_token_is_kept_to_its_node(site, ns):
    """With the token of a node's plugin: its own keys on its own Node and pods, and nothing else, whatever RBAC allows."""
    c = site.cluster
    uid = c.get(f"/api/v1/nodes/{site.node}")["metadata"]["uid"]
    spec = {"expirationSeconds": 3600, "boundObjectRef": {"apiVersion": "v1", "kind": "Node", "name": site.node, "uid": uid}}
    reply = c.do("POST", f"/api/v1/namespaces/{HOME}/serviceaccounts/cosched-device-plugin/token",
                 {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
    c.create_node("elsewhere")
    c.create_pod(ns, "not-mine", scheduler="nobody")
    c.create_pod(ns, "mine", scheduler=None, nodeName=site.node, hostNetwork=True)
    mine, node, pod = "mine", f"/api/v1/nodes/{site.node}", f"/api/v1/namespaces/{ns}/pods/"
    trials = [
        ("an annotation of ours", 200, node, {"metadata": {"annotations": {"cosched.io/test": "x"}}}),
        ("a card's label", 200, node, {"metadata": {"labels": {"aliyun.accelerator/nvidia_count": "3"}}}),
        ("the number of cards", 200, node + "/status", {"status": {"capacity": {"aliyun.com/gpu-count": "2"}}}),
        ("an annotation of somebody else's", 403, node, {"metadata": {"annotations": {"example.com/x": "x"}}}),
        ("a label that decides where pods go", 403, node, {"metadata": {"labels": {"ack.node.gpu.schedule": "default"}}}),
        ("a taint", 403, node, {"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}}),
        ("CPUs that the node does not have", 403, node + "/status", {"status": {"allocatable": {"cpu": "1000"}}}),
        ("a condition", 403, node + "/status", {"status": {"conditions": []}}),
        ("a finalizer of its node", 403, node, {"metadata": {"finalizers": ["example.com/stays"]}}),
        ("an owner of its node", 403, node, {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "x", "uid": "x"}]}}),
        ("where its kubelet is found", 403, node + "/status", {"status": {"addresses": [{"type": "Hostname", "address": "elsewhere"}]}}),
        ("what its kubelet is", 403, node + "/status", {"status": {"nodeInfo": {"kubeletVersion": "v0"}}}),
        ("another node", 403, "/api/v1/nodes/elsewhere", {"metadata": {"annotations": {"cosched.io/test": "x"}}}),
        ("the claim of a pod of its node", 200, pod + mine, {"metadata": {"annotations": {"cosched.io/test": "x"}}}),
        ("a label of that pod", 403, pod + mine, {"metadata": {"labels": {"x": "y"}}}),
        ("an owner of that pod", 403, pod + mine, {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "x", "uid": "x"}]}}),
        ("its image", 403, pod + mine, {"spec": {"containers": [{"name": "main", "image": "other"}]}}),
        ("a pod that is not on its node", 403, pod + "not-mine", {"metadata": {"annotations": {"cosched.io/test": "x"}}}),
    ]
    admin, c.token = c.token, reply["status"]["token"]
    try:
        for what, expected, path, body in trials:
            kind = "application/strategic-merge-patch+json" if "containers" in str(body) else MERGE
            status, said = c.request("PATCH", path, body, kind)
            check(status == expected or (expected == 403 and status == 422 and "device plugin" in str(said)),
                  f"a device plugin changes {what}: expected {expected}, got {status}: {said.get('message')}")
    finally:
        c.token = admin
    c.do("DELETE", "/api/v1/nodes/elsewhere")


def check_flows(site):
    """The API server puts the scheduler's requests where the FlowSchemas say."""
    c = site.cluster
    reply = c.do("POST", f"/api/v1/namespaces/{HOME}/serviceaccounts/cosched-scheduler/token",
                 {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}})
    for schema, path in (("cosched-leader-election", f"/apis/coordination.k8s.io/v1/namespaces/{HOME}/leases/cosched-scheduler"),
                         ("cosched-scheduler", "/api/v1/nodes?limit=1"), ("cosched-scheduler", "/api/v1/pods?limit=1")):
        conn = c.connect(10)
        conn.request("GET", path, headers={"Authorization": "Bearer " + reply["status"]["token"]})
        got = conn.getresponse()
        uid = c.get(f"/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/{schema}")["metadata"]["uid"]
        check_equal((got.status, got.getheader("X-Kubernetes-PF-FlowSchema-UID")), (200, uid), f"status and FlowSchema ({schema}) of GET {path}")
        conn.close()


def remains(c):
    """Everything of ours that is in the cluster, by kind/name, and all that is in our namespace; CRDs, Events and what Kubernetes puts into each namespace aside."""
    kinds = c.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    skip = {"events", "events.events.k8s.io", "customresourcedefinitions.apiextensions.k8s.io", "componentstatuses"}
    text = c.kubectl("get", ",".join(k for k in kinds if k not in skip), "-A", "--ignore-not-found", "-o", "jsonpath={range .items[*]}{.metadata.namespace}/{.kind}/{.metadata.name}{\"\\n\"}{end}")
    always = {f"{HOME}/ConfigMap/kube-root-ca.crt", f"{HOME}/ServiceAccount/default", f"/Namespace/{HOME}"}
    return {line for line in text.splitlines() if ("cosched" in line.rpartition("/")[2] or line.startswith(f"{HOME}/")) and line not in always}


def uninstall(site, how):
    """Nothing is left but the CRDs, and an empty namespace."""
    c = site.cluster
    how()
    try:
        wait_until(lambda: not remains(c), "everything is gone", 60, 0.5)
    except Failed as e:
        raise Failed(f"left behind: {sorted(remains(c))}") from e
    for path in glob.glob(os.path.join(CHART, "crds/*.yaml")):
        c.kubectl("get", "-f", path)  # they stay


def open_crd(group, version, plural, kind):
    """Of somebody else's kind that our manifests name and this cluster does not have; without its schema."""
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{group}"}, "spec": {
        "group": group, "scope": "Namespaced", "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": kind + "List"},
        "versions": [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}


def dry_run(c, *args, stdin=None):
    """How many objects the API server takes."""
    text = wait_until(lambda: c.kubectl("apply", "--dry-run=server", "-o", "name", *args, stdin=stdin), "kinds are served", 20, 0.5)
    return len(text.split())


def every_manifest_is_taken(site):
    """--dry-run=server of what is installed, before it is: the manifests, and the chart with every option on."""
    c = site.cluster
    for crd in (("monitoring.coreos.com", "v1", "servicemonitors", "ServiceMonitor"), ("monitoring.coreos.com", "v1", "prometheusrules", "PrometheusRule"),
                ("kubeflow.org", "v1", "tfjobs", "TFJob")):
        c.do("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", open_crd(*crd))
    make_namespace(c, HOME)  # a dry run makes none
    full = site.helm("template", "cosched", CHART, "-n", HOME, "--include-crds", "--kube-version", "1.36", "-f", os.path.join(CHART, "ci/all-values.yaml"))
    return (dry_run(c, "-k", os.path.join(ROOT, "deploy/manifests")) + dry_run(c, "-f", os.path.join(ROOT, "deploy/manifests/webhook-strict.yaml")) +
            dry_run(c, "-f", "-", stdin=full))


def every_example_is_taken(site):
    """The same of the examples, which webhook and policies look at as well."""
    c = site.cluster
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "example-urgent"}, "value": 100000}
    c.do("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", urgent)  # a dry run makes none for the pod that names it
    make_namespace(c, "test-gang")
    return sum(dry_run(c, "-f", os.path.join(ROOT, "deploy/examples", name)) for name in ("features", "documents"))


def without_helm(site, ns):
    """kubectl apply -k of an overlay that says what the values say: all pods are Ready, a pod shares a card, and kubectl delete -k takes everything away again."""
    c = site.cluster
    directory = os.path.join(site.suite.directory, "overlay")
    os.makedirs(directory, exist_ok=True)
    patches = []
    for program, key in PROGRAMS.items():
        v = site.chosen[key]
        kind = "DaemonSet" if program == "device-plugin" else "Deployment"
        options = {**v["options"], "http-port": v["httpPort"], **({"port": v["port"]} if "port" in v else {})}
        env = [*v["env"], {"name": "KUBERNETES_SERVICE_HOST", "value": "127.0.0.1"}, {"name": "KUBERNETES_SERVICE_PORT", "value": str(c.url.port)}]
        if program == "device-plugin":
            options["backend"] = "sim"
            options["sim-file"] = os.path.join(v["paths"]["state"], "cards.json")
        at, names = "/spec/template/spec/", ["https", "http"] if program == "webhook" else ["http"]
        patch = [{"op": "add", "path": at + "hostNetwork", "value": True}, {"op": "add", "path": at + "nodeSelector", "value": v["nodeSelector"]},
                 {"op": "replace", "path": at + "containers/0/imagePullPolicy", "value": "Never"}, {"op": "replace", "path": at + "containers/0/resources", "value": {"requests": v["resources"]["requests"]}}]
        patch += [{"op": "add", "path": at + "containers/0/args/-", "value": f"--{name}={value}"} for name, value in options.items()]
        patch += [{"op": "replace", "path": f"{at}containers/0/ports/{i}/containerPort", "value": v["port" if name == "https" else "httpPort"]} for i, name in enumerate(names)]
        patch += [{"op": "add", "path": at + "containers/0/env", "value": env}] if kind == "Deployment" else \
            [{"op": "add", "path": at + "containers/0/env/-", "value": e} for e in env]
        if kind == "Deployment":
            patch += [{"op": "replace", "path": "/spec/replicas", "value": 1}, {"op": "replace", "path": "/spec/strategy", "value": {"type": "Recreate"}}]
        patches.append({"target": {"kind": kind, "name": f"cosched-{program}"}, "patch": json.dumps(patch)})
    state = site.chosen["devicePlugin"]["paths"]["state"]
    patches.append({"target": {"kind": "DaemonSet"}, "patch": json.dumps([
        {"op": "replace", "path": "/spec/template/spec/volumes/2/hostPath/path", "value": state},
        {"op": "replace", "path": "/spec/template/spec/containers/0/volumeMounts/2/mountPath", "value": state},
        {"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": f"--state-dir={state}"},
        {"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": f"--isolation-dir={state}/isolation"}])})
    hooks = c.get("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/cosched-webhook")["webhooks"]
    url = site.chosen["webhook"]["url"]
    for kind, count in (("MutatingWebhookConfiguration", len(hooks)), ("ValidatingWebhookConfiguration", 1)):
        path = lambda i, kind=kind: "/mutate" if kind.startswith("Mutating") and hooks[i]["clientConfig"]["url"].endswith("/mutate") else "/validate"
        patches.append({"target": {"kind": kind}, "patch": json.dumps([
            {"op": "replace", "path": f"/webhooks/{i}/clientConfig", "value": {"url": url + path(i)}} for i in range(count)])})
    with open(os.path.join(directory, "kustomization.yaml"), "w", encoding="utf-8") as f:
        json.dump({"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": [os.path.relpath(os.path.join(ROOT, "deploy/manifests"), os.path.realpath(directory))],
                   "images": [{"name": f"cosched-{p}", "newTag": site.tag} for p in PROGRAMS], "patches": patches}, f)
    os.makedirs(state, exist_ok=True)
    values = run([site.helm_binary, "show", "values", CHART])
    with open(os.path.join(state, "cards.json"), "w", encoding="utf-8") as f:
        f.write(re.search(r"inventory: >-\n((?: {6}.*\n)+)", values)[1])

    uninstall(site, lambda: site.helm("uninstall", "cosched", "-n", HOME, "--wait", "--timeout", "60s"))
    c.kubectl("apply", "-k", directory)
    site.wait_ready()
    c.create_pod(ns, "by-kubectl", limits={GIB: "3"}, scheduler=None, hostNetwork=True)
    wait_until(lambda: c.pod(ns, "by-kubectl")["status"].get("phase") == "Running", "a pod shares a card", 60)
    wait_until(lambda: site.doctor(0), "the doctor finds nothing", 30, 0.5)
    c.delete_pod(ns, "by-kubectl")
    c.kubectl("delete", "-k", directory, "--wait=true", "--timeout=60s")
    wait_until(lambda: not remains(c), "everything is gone", 60, 0.5)


def regions_are_mounted(site):
    """What the init container mounted is the node's, where the container runtime finds it."""
    mounts = run([os.path.join(ROOT, "test/kubernetes/k8s"), "node-exec", "cat", "/proc/mounts"], env={**os.environ, "K8S_DIR": site.env["K8S_DIR"]})
    place = os.path.join(site.values()["devicePlugin"]["paths"]["state"], "isolation/regions")
    check(re.search(rf"^cosched {re.escape(place)} tmpfs rw,nosuid,nodev,noexec,", mounts, re.M), f"no file system of regions: {mounts}")


@case("images and chart: installed by five commands, a gang shares cards, the doctor finds each planted fault, upgraded and downgraded under load, uninstalled; with exactly the rights of the chart",
      needs=("real", "long"))
def install(suite):
    images = {tag: os.path.join(suite.directory, f"images-{tag}") for tag in ("one", "two")}
    helm = []

    def prepare():
        make_images(OLDER or BUILD, images["one"], "one")
        if OLDER:
            make_images(BUILD, images["two"], "two")
        helm.append(find_helm())

    with beside(prepare):
        site = Site(suite)
    site.helm_binary = helm[0]
    c = site.cluster
    for directory in images.values():
        site.bring_images(directory)
    if not OLDER:
        for program in PROGRAMS:
            site.ctr("images", "tag", f"docker.io/library/cosched-{program}:one", f"docker.io/library/cosched-{program}:two")
    ns = make_namespace(c, "user")

    taken = every_manifest_is_taken(site)
    user = first_gang(site, ns)
    regions_are_mounted(site)
    text = site.doctor(0)
    # No proxy leads to a kubelet on loopback.
    check_equal(text.split(" and ")[0], f"not checked: kubelet of {site.node}\n0 findings; checked 1 nodes, 2 cards", "the doctor of a healthy cluster says")
    taken += every_example_is_taken(site)
    found = plant_all(site)
    check(len(found) >= 15, f"only {len(found)} faults were planted")
    changes = change_under_load(site, ns)
    use_every_right(site, ns)
    granted, (used, refused, requests) = rights.of_cluster(c), rights.of_log(site.audit)
    number = rights.judge(granted, used, refused)
    rights.judge_can_fail(granted, used)
    check_flows(site)
    plugins_token_is_kept_to_its_node(site, ns)  # after the rights: what it is refused is in the log

    c.do("DELETE", f"/api/v1/namespaces/{ns}/pods?gracePeriodSeconds=0")
    without_helm(site, ns)
    print("     " + user.replace("\n", "\n     "))
    print(f"     {taken} objects of manifests, chart and examples are taken by the API server (--dry-run=server)")
    print(f"     the doctor found each of {len(found)} planted faults, and nothing before and after:")
    for i, name in enumerate(found):
        print(f"       {i + 1:2}. {name}")
    print(f"     {changes}")
    print(f"     {number} rights, all of them used in {requests} requests of which none was refused")


@case("the doctor of a cluster in which nothing is installed says so, and changes nothing")
def nothing_installed(suite):
    c = suite.cluster
    before = {p["metadata"]["uid"] for p in c.pods("default")}
    text = run([os.path.join(BUILD, "bin/kubectl-inspect-cgpu"), f"--kubeconfig={c.kubeconfig}", "doctor"], expect=1)
    for finding in ("cosched-scheduler: is not installed: no pod is placed", "cosched-device-plugin: is not installed", "admission policy cosched-result-keys: is not there"):
        check(finding in text, f"'{finding}' is not in\n{text}")
    check_equal({p["metadata"]["uid"] for p in c.pods("default")}, before, "pods in default")
