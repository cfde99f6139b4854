# SPDX-License-Identifier: Apache-2.0
"""The images and the chart on a real cluster of their own: installed, used, upgraded under load, uninstalled, with exactly the chart's rights.

One cluster with the API server's audit log for all of it. Its node has no kube-proxy and no way for pods to the API server but the host's network, so
the chart is installed with values for that: one replica of each, on ports that are free, the webhook by URL.
"""
import contextlib
import glob
import json
import os
import random
import shlex
import subprocess
import threading
import time

from harness import BUILD, MERGE, ROOT, Cluster, Failed, case, check, check_equal, free_port, wait_until

K8S = os.path.join(ROOT, "test/kubernetes/k8s")
HOME = "cosched-system"
ACCOUNTS = {f"system:serviceaccount:{HOME}:cosched-{name}": name for name in ("scheduler", "webhook", "device-plugin")}
VALUES = {"scheduler": "scheduler", "webhook": "webhook", "device-plugin": "devicePlugin"}  # what the chart calls them
GIB = "aliyun.com/gpu-mem"

# What a case cannot bring about, or the log does not show: questions after the reply to a write was lost, which suite_faults and the unit tests
# of the files that ask show; and "create", which the API server wants for a PUT that makes a Lease, and logs as the update that it was.
NOT_SEEN = {
    "scheduler": {("get", "pods"), ("get", "persistentvolumeclaims"), ("get", "persistentvolumes"), ("get", "nodes"), ("create", "coordination.k8s.io/leases")},
    "webhook": set(),
    "device-plugin": {("get", "pods")},
}


def run(command, seconds=120, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, **more)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: {done.stderr.strip()[-1500:] or done.stdout.strip()[-1500:]}")
    return done.stdout


class Site:
    """A cluster with an audit log of our accounts, and helm."""

    def __init__(self, suite):
        self.suite = suite
        self.name = f"install-{os.getpid()}"
        self.audit = os.path.join(suite.directory, "audit.log")
        policy = os.path.join(suite.directory, "audit-policy.json")
        with open(policy, "w", encoding="utf-8") as f:
            json.dump({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
                       "rules": [{"level": "Metadata", "users": list(ACCOUNTS)}, {"level": "None"}]}, f)
        suite.stack.callback(self.down)
        run([K8S, "up", "--name", self.name, "--kubelet", f"--apiserver-arg=--audit-policy-file={policy}", f"--apiserver-arg=--audit-log-path={self.audit}",
             "--apiserver-arg=--audit-log-mode=blocking", "--apiserver-arg=--runtime-config=scheduling.k8s.io/v1alpha2=true",
             "--apiserver-arg=--feature-gates=GenericWorkload=true,GangScheduling=true"])
        env = {}
        for line in run([K8S, "env", "--name", self.name]).splitlines():
            key, _, value = line.removeprefix("export ").partition("=")
            env[key] = "".join(shlex.split(value))
        self.env = env
        self.cluster = Cluster(env)
        self.node = env["K8S_NODE"]
        self.helm_binary = None

    def down(self):
        run([K8S, "down", "--name", self.name])

    def ctr(self, *args):
        return run(["ctr", "--address", self.env["CONTAINERD_ADDRESS"], "--namespace", "k8s.io", *args])

    def helm(self, *args):
        home = os.path.join(self.suite.directory, "helm")
        env = {**os.environ, "KUBECONFIG": self.env["KUBECONFIG"], "HELM_CACHE_HOME": home, "HELM_CONFIG_HOME": home, "HELM_DATA_HOME": home}
        return run([self.helm_binary, *args], env=env)

    def bring_images(self, directory):
        for path in sorted(glob.glob(os.path.join(directory, "*.tar"))):
            self.ctr("images", "import", path)

    def values(self):
        place = {"hostNetwork": True, "nodeSelector": {"kubernetes.io/hostname": self.node}, "env": [{"name": "ASAN_OPTIONS", "value": "detect_leaks=0"}],
                 "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}
        one = {**place, "replicas": 1, "pdb": {"enabled": False}, "strategy": {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}}
        port, probes = free_port(), self.env["K8S_NODE_IP"]  # an address of lo, where the kubelet looks
        return {
            "image": {"tag": "one", "pullPolicy": "Never"},
            "apiServer": {"host": "127.0.0.1", "port": self.cluster.url.port},
            "scheduler": {**one, "httpPort": free_port(), "options": {"http-address": probes}},
            "webhook": {**one, "port": port, "httpPort": free_port(), "url": f"https://127.0.0.1:{port}",
                        "options": {"address": "127.0.0.1", "http-address": probes, "san": "127.0.0.1", "cert-check-interval": "500ms"}},
            "devicePlugin": {**place, "httpPort": free_port(), "simulation": {"enabled": True},
                             "options": {"http-address": probes, "publish-interval": "500ms", "isolation": "none",
                                         "kubelet-cgroup-root": os.path.dirname(self.env["KUBELET_CGROUP_ROOT"])},
                             "paths": {"state": os.path.join(self.env["K8S_DIR"], "plugin-state")}},
        }


    def wait_ready(self, **tags):
        """helm's own --wait is content with a replica less, which here is none. tags: of those programs that do not have "one"."""
        wanted = {f"cosched-{name}:{tags.get(VALUES[name], 'one')}" for name in ACCOUNTS.values()}

        def ask():
            pods = [p for p in self.cluster.pods(HOME) if not p["metadata"].get("deletionTimestamp")]
            ready = {p["spec"]["containers"][0]["image"] for p in pods if any(x["type"] == "Ready" and x["status"] == "True" for x in p["status"].get("conditions", []))}
            if ready != wanted or len(pods) != len(wanted):
                raise Failed(f"Ready: {sorted(ready)} of {len(pods)} pods")
            return True

        wait_until(ask, f"{sorted(wanted)} are Ready", 60)
        restarts = {p["metadata"]["name"]: p["status"]["containerStatuses"][0]["restartCount"] for p in self.cluster.pods(HOME)}
        check(not any(restarts.values()), f"programs had to be restarted: {restarts}")


def make_images(directory):
    """By the same script as `make images`, of this build."""
    return run([os.path.join(ROOT, "deploy/images"), BUILD, directory], env={**os.environ, "IMAGE_VERSION": "one", "IMAGE_GZIP_LEVEL": "1"})


def find_helm():
    return os.path.join(run([os.path.join(ROOT, "test/kubernetes/build.sh"), "helm"], seconds=1200).split()[-1], "helm")


@contextlib.contextmanager
def beside(work):
    """Runs work() in a thread; its exception is raised at the end."""
    failed = []

    def body():
        try:
            work()
        except Exception as e:  # pylint: disable=broad-except
            failed.append(e)

    thread = threading.Thread(target=body)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    if failed:
        raise failed[0]


def job(name, count, gib, script, gang=True, backoff=0):
    labels = {"pod-group.scheduling.sigs.k8s.io/name": name, "pod-group.scheduling.sigs.k8s.io/min-available": str(count)} if gang else {}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {
        "parallelism": count, "completions": count, "backoffLimit": backoff, "template": {"metadata": {"labels": labels}, "spec": {
            "restartPolicy": "Never", "hostNetwork": True, "terminationGracePeriodSeconds": 0,
            **({} if gang else {"schedulerName": "ack-co-scheduler"}),
            "containers": [{"name": "c", "image": "busybox:test", "imagePullPolicy": "Never", "command": ["sh", "-c", script],
                            "resources": {"limits": {GIB: str(gib)}}}]}}}}


def wait_jobs(c, ns, names, seconds=60):
    def ask():
        jobs = {j["metadata"]["name"]: j.get("status", {}) for j in c.get(f"/apis/batch/v1/namespaces/{ns}/jobs")["items"]}
        failed = [n for n in names if any(x["type"] == "Failed" and x["status"] == "True" for x in jobs[n].get("conditions", []))]
        check(not failed, f"jobs failed: {failed}")
        left = [n for n in names if not any(x["type"] == "Complete" and x["status"] == "True" for x in jobs[n].get("conditions", []))]
        if left:
            raise Failed(f"{len(left)} of {len(names)} jobs are not complete: {left[:3]}")
        return True

    wait_until(ask, f"{len(names)} jobs are complete", seconds, 0.2)


def make_namespace(c, name):
    c.do("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    wait_until(lambda: c.request("GET", f"/api/v1/namespaces/{name}/serviceaccounts/default")[0] == 200, "default service account")
    return name


def upgrade_under_load(site, ns, values_path):
    """Jobs come all the time while one program after the other is replaced, in any order; all of them are done in the end, and a pod that ran goes on."""
    c = site.cluster
    c.create_pod(ns, "stays", limits={GIB: "2"}, hostNetwork=True)
    wait_until(lambda: c.pod(ns, "stays")["status"].get("phase") == "Running", "the pod that stays runs")
    before = c.pod(ns, "stays")
    names, stop = [], threading.Event()

    def load():
        while not stop.is_set():
            name = f"load-{len(names)}"
            # A pod that the kubelet was given while the plugin was away fails for good; its Job makes another.
            c.do("POST", f"/apis/batch/v1/namespaces/{ns}/jobs", job(name, 1, 1, "true", gang=False, backoff=20))
            names.append(name)
            stop.wait(1)

    with beside(load):
        try:
            tags, order = {}, random.sample(sorted(VALUES), len(VALUES))
            for program in order:
                site.ctr("images", "tag", f"docker.io/library/cosched-{program}:one", f"docker.io/library/cosched-{program}:two")
                tags[VALUES[program]] = "two"
                site.helm("upgrade", "cosched", os.path.join(ROOT, "deploy/chart"), "-n", HOME, "-f", values_path,
                          "--set", ",".join(f"{key}.tag={tag}" for key, tag in tags.items()))
                site.wait_ready(**tags)
        finally:
            stop.set()
    wait_jobs(c, ns, names)
    after = c.pod(ns, "stays")
    for field in ("scheduler.framework.gpushare.allocation", "ALIYUN_COM_GPU_MEM_IDX"):
        check_equal(after["metadata"]["annotations"].get(field), before["metadata"]["annotations"].get(field), f"{field} of the pod that stays")
    check_equal(after["status"]["containerStatuses"][0]["restartCount"], 0, "restarts of the pod that stays")
    return f"{len(names)} jobs while {', '.join(order)} were upgraded"


def use_every_right(site, ns):
    """What the rights are for and ordinary pods do not need: a deleted Lease and Secret, groups, preemption, a claim that waits for its consumer."""
    c = site.cluster
    c.do("DELETE", f"/apis/coordination.k8s.io/v1/namespaces/{HOME}/leases/cosched-scheduler")
    c.do("DELETE", f"/api/v1/namespaces/{HOME}/secrets/cosched-webhook-cert")
    for group in ("scheduling.sigs.k8s.io", "scheduling.x-k8s.io"):
        name = group.replace(".", "-")
        c.do("POST", f"/apis/{group}/v1alpha1/namespaces/{ns}/podgroups",
             {"apiVersion": f"{group}/v1alpha1", "kind": "PodGroup", "metadata": {"name": name}, "spec": {"minMember": 1, "scheduleTimeoutSeconds": 1}})
        label = {"pod-group.scheduling.sigs.k8s.io": name} if group == "scheduling.sigs.k8s.io" else {"scheduling.x-k8s.io/pod-group": name}
        # The second finds no room, for which it gets the same Event again and again.
        c.create_pod(ns, name, labels=label, hostNetwork=True, requests={"cpu": "1000"} if group == "scheduling.x-k8s.io" else {})

    c.do("POST", f"/apis/scheduling.alibabacloud.com/v1alpha1/namespaces/{ns}/resourcepolicies", {
        "apiVersion": "scheduling.alibabacloud.com/v1alpha1", "kind": "ResourcePolicy", "metadata": {"name": "first-here"},
        "spec": {"selector": {"app": "policy"}, "strategy": "prefer", "units": [{"resource": "ecs", "max": 5}]}})
    c.create_pod(ns, "policy", labels={"app": "policy"}, hostNetwork=True)

    # A volume that is there, and a claim that waits for the pod that uses it.
    c.do("POST", "/apis/storage.k8s.io/v1/storageclasses", {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "by-hand"},
                                                            "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"})
    path = os.path.join(site.env["K8S_DIR"], "volume")
    os.makedirs(path, exist_ok=True)
    here = {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [site.node]}]}]}}
    c.do("POST", "/api/v1/persistentvolumes", {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "by-hand"}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "by-hand", "local": {"path": path}, "nodeAffinity": here}})
    for name, kind in (("room", "by-hand"), ("made", "by-driver")):
        c.do("POST", f"/api/v1/namespaces/{ns}/persistentvolumeclaims", {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": kind, "resources": {"requests": {"storage": "1Gi"}}}})
    # A driver that nobody runs: the claim is told its node, and goes no further.
    c.do("POST", "/apis/storage.k8s.io/v1/storageclasses", {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "by-driver"},
                                                            "provisioner": "nobody.example.com", "volumeBindingMode": "WaitForFirstConsumer"})
    for name in ("room", "made"):
        c.create_pod(ns, f"uses-{name}", hostNetwork=True, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name}}])
    wait_until(lambda: c.pod(ns, "uses-room")["spec"].get("nodeName"), "the pod with the volume is bound")
    wait_until(lambda: "volume.kubernetes.io/selected-node" in c.get(f"/api/v1/namespaces/{ns}/persistentvolumeclaims/made")["metadata"].get("annotations", {}),
               "the claim of the driver is told its node")

    # The cards are full of a pod that matters less.
    c.do("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 1000})
    c.create_pod(ns, "fills", limits={GIB: "15"}, hostNetwork=True)
    c.wait_bound(ns, "fills")
    c.create_pod(ns, "urgent", limits={GIB: "15"}, hostNetwork=True, priorityClassName="urgent")
    c.wait_bound(ns, "urgent")
    wait_until(lambda: c.get(f"/apis/scheduling.alibabacloud.com/v1alpha1/namespaces/{ns}/resourcepolicies/first-here").get("status"), "the policy has a status", 30)
    said = lambda where, name: max([0, *(e.get("count", 1) for e in c.get(f"/api/v1/namespaces/{where}/events")["items"]
                                         if e["involvedObject"].get("name") == name and e.get("source", {}).get("component", "").startswith(("cosched", "ack-co-")))])
    wait_until(lambda: said(ns, "scheduling-x-k8s-io") > 1, "an Event of the scheduler is counted", 30)
    # A node whose cards are in use says each time that its mode is not switched.
    for times in (1, 2):
        set_mode(c, site.node, "topology")
        wait_until(lambda: said("default", site.node) >= times, f"the node says {times} times that it waits", 30)  # pylint: disable=cell-var-from-loop
        set_mode(c, site.node, "share")
        wait_until(lambda: json.loads(c.get(f"/api/v1/nodes/{site.node}")["metadata"]["annotations"]["cosched.io/gpu-inventory"]).get("switchingTo") is None,
                   "the node stays in its mode")
    wait_until(lambda: c.request("GET", f"/api/v1/namespaces/{HOME}/secrets/cosched-webhook-cert")[0] == 200, "the Secret is made again", 30)
    wait_until(lambda: c.get(f"/apis/coordination.k8s.io/v1/namespaces/{HOME}/leases/cosched-scheduler")["spec"].get("holderIdentity"), "the Lease is made again", 30)


def set_mode(c, node, mode):
    c.do("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"labels": {"ack.node.gpu.schedule": mode}}}, MERGE)


def doctor(c, status):
    done = subprocess.run([os.path.join(BUILD, "bin/kubectl-inspect-cgpu"), f"--kubeconfig={c.kubeconfig}", "doctor"], capture_output=True, text=True, timeout=60, check=False)
    check_equal((done.returncode, done.stderr), (status, ""), f"doctor, which said:\n{done.stdout}\n")
    return done.stdout


def granted(c):
    """(verb, resource) of each program, as the API server has them now."""
    rights = {name: set() for name in ACCOUNTS.values()}
    for path in ("/apis/rbac.authorization.k8s.io/v1/clusterroles", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{HOME}/roles"):
        for role in c.get(path)["items"]:
            name = role["metadata"]["name"].removeprefix("cosched-")
            if name not in rights or not role["metadata"]["name"].startswith("cosched-"):
                continue
            for rule in role["rules"]:
                groups = [g + "/" if g else "" for g in rule["apiGroups"]]
                rights[name] |= {(verb, group + resource) for verb in rule["verbs"] for group in groups for resource in rule["resources"]}
    return rights


def audited(path):
    """What each program asked for, and what it was refused."""
    used, refused = {name: set() for name in ACCOUNTS.values()}, []
    with open(path, encoding="utf-8") as f:
        for line in f:
            entry = json.loads(line)
            ref, code = entry.get("objectRef"), entry.get("responseStatus", {}).get("code", 0)
            name = ACCOUNTS.get(entry["user"]["username"])
            if not name or not ref:
                continue
            group = ref["apiGroup"] + "/" if ref.get("apiGroup") else ""
            resource = group + ref["resource"] + ("/" + ref["subresource"] if ref.get("subresource") else "")
            used[name].add((entry["verb"], resource))
            if code in (401, 403):
                refused.append(f"{name}: {entry['verb']} {entry['requestURI']}: {entry['responseStatus'].get('message')}")
    return used, refused


def check_rights(site):
    rights = granted(site.cluster)
    used, refused = audited(site.audit)
    check(not refused, f"{len(refused)} requests were refused, the first: {refused[:3]}")
    for name, mine in rights.items():
        check(mine, f"no role of {name} was found")
        idle = mine - used[name] - NOT_SEEN[name]
        check(not idle, f"{name} was granted what it never used: {sorted(idle)}")
    return sum(map(len, rights.values()))


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
        ("another node", 403, "/api/v1/nodes/elsewhere", {"metadata": {"annotations": {"cosched.io/test": "x"}}}),
        ("the claim of a pod of its node", 200, pod + mine, {"metadata": {"annotations": {"cosched.io/test": "x"}}}),
        ("a label of that pod", 403, pod + mine, {"metadata": {"labels": {"x": "y"}}}),
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
    """Everything of ours that is in the cluster, by kind/name; CRDs, Events and what Kubernetes puts into each namespace aside."""
    found = set()
    kinds = c.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    skip = {"events", "events.events.k8s.io", "customresourcedefinitions.apiextensions.k8s.io", "componentstatuses"}
    text = c.kubectl("get", ",".join(k for k in kinds if k not in skip), "-A", "-o", "name", "--ignore-not-found")
    for line in text.splitlines():
        if "cosched" in line and "kube-root-ca" not in line:
            found.add(line)
    return found


@case("images and chart: installed, a gang shares cards, upgraded under load, uninstalled; with exactly the rights of the chart", needs=("real",))
def install(suite):
    images = os.path.join(suite.directory, "images")
    helm = []

    def prepare():
        make_images(images)
        helm.append(find_helm())

    with beside(prepare):
        site = Site(suite)
    site.helm_binary = helm[0]
    c = site.cluster
    site.bring_images(images)
    values_path = os.path.join(suite.directory, "values.json")
    with open(values_path, "w", encoding="utf-8") as f:
        json.dump(site.values(), f)

    # Every manifest that we ship is one that the API server takes.
    make_namespace(c, HOME)
    ns = make_namespace(c, "user")
    c.kubectl("apply", "--dry-run=server", "-k", os.path.join(ROOT, "deploy/manifests"))
    c.kubectl("apply", "--dry-run=server", "-f", os.path.join(ROOT, "deploy/manifests/webhook-strict.yaml"))

    # From nothing to the first pod: helm install, label, apply.
    began = time.monotonic()
    site.helm("install", "cosched", os.path.join(ROOT, "deploy/chart"), "-n", HOME, "-f", values_path)
    site.wait_ready()
    ready = time.monotonic() - began
    set_mode(c, site.node, "share")
    c.do("POST", f"/apis/batch/v1/namespaces/{ns}/jobs", job("gang", 3, 4, 'test -n "$NVIDIA_VISIBLE_DEVICES" && test "$ALIYUN_COM_GPU_MEM_CONTAINER" = 4'))
    wait_jobs(c, ns, ["gang"])
    done = time.monotonic() - began
    for pod in c.pods(ns):
        check_equal(pod["spec"]["schedulerName"], "ack-co-scheduler", "schedulerName, by the webhook")
        check(pod["metadata"]["annotations"].get("scheduler.framework.gpushare.allocation"), "the claim of " + pod["metadata"]["name"])

    # The examples are what API server, webhook and policies take.
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "example-urgent"}, "value": 100000}
    c.do("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", urgent)  # a dry run makes none for the pod that names it
    c.kubectl("apply", "--dry-run=server", "-f", os.path.join(ROOT, "deploy/examples/features"))

    # The doctor agrees, and finds what is taken away.
    text = doctor(c, 0)
    check(text.startswith("0 findings; looked at 1 nodes, 2 cards"), f"the doctor of a healthy cluster says:\n{text}")
    binding = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/cosched-plugin-nodes"
    kept = c.get(binding)
    c.do("DELETE", binding)
    text = doctor(c, 1)
    check("admission policy cosched-plugin-nodes: is not bound" in text and "\n1 finding;" in text, f"without a policy's binding the doctor says:\n{text}")
    c.do("POST", os.path.dirname(binding), {**kept, "metadata": {k: kept["metadata"].get(k, {}) for k in ("name", "labels", "annotations")}})

    loads = upgrade_under_load(site, ns, values_path)
    use_every_right(site, ns)
    rights = check_rights(site)
    check_flows(site)
    plugins_token_is_kept_to_its_node(site, ns)  # after the rights: what it is refused is in the log

    c.do("DELETE", f"/api/v1/namespaces/{ns}/pods?gracePeriodSeconds=0")
    site.helm("uninstall", "cosched", "-n", HOME, "--wait", "--timeout", "60s")
    c.kubectl("delete", "namespace", HOME, "--wait=true", "--timeout=60s")
    left = remains(c)
    check(not left, f"left behind: {sorted(left)}")
    for path in glob.glob(os.path.join(ROOT, "deploy/chart/crds/*.yaml")):
        c.kubectl("get", "-f", path)  # they stay
    print(f"     installed and Ready after {ready:.1f} s, the first gang done after {done:.1f} s; {loads}; {rights} rights, all of them used")


@case("the doctor of a cluster in which nothing is installed says so, and changes nothing")
def nothing_installed(suite):
    c = suite.cluster
    before = {p["metadata"]["uid"] for p in c.pods("default")}
    text = doctor(c, 1)
    for finding in ("cosched-scheduler: is not installed: no pod is placed", "cosched-device-plugin: is not installed", "admission policy cosched-result-keys: is not there"):
        check(finding in text, f"'{finding}' is not in\n{text}")
    check_equal({p["metadata"]["uid"] for p in c.pods("default")}, before, "pods in default")
