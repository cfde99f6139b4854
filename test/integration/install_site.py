# SPDX-License-Identifier: Apache-2.0
"""A real cluster of its own on which the images and the chart are installed: for suite_install.

Its node has no kube-proxy, and pods reach the API server by the host's network alone, so the chart is installed with values for that: one replica of
each program, on ports that are free, the webhook by URL. The API server keeps an audit log of what our accounts ask for.
"""
import contextlib
import glob
import json
import os
import shlex
import subprocess
import threading

import rights
from harness import BUILD, MERGE, ROOT, Cluster, Failed, check, check_equal, free_port, wait_until

K8S = os.path.join(ROOT, "test/kubernetes/k8s")
CHART = os.path.join(ROOT, "deploy/chart")
HOME = rights.HOME
PROGRAMS = {"scheduler": "scheduler", "webhook": "webhook", "device-plugin": "devicePlugin"}  # and what the chart's values call them
GIB = "aliyun.com/gpu-mem"


def run(command, seconds=120, expect=0, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, **more)
    if done.returncode != expect:
        raise Failed(f"{' '.join(command)}: {done.stderr.strip()[-1500:] or done.stdout.strip()[-1500:]}")
    return done.stdout


def make_images(build, directory, version):
    """By the script that `make images` is."""
    return run([os.path.join(ROOT, "deploy/images"), build, directory], env={**os.environ, "IMAGE_VERSION": version, "IMAGE_GZIP_LEVEL": "1"})


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


class Site:
    """The cluster, helm, and the programs in it."""

    def __init__(self, suite):
        self.suite = suite
        self.name = f"install-{os.getpid()}"
        self.audit = os.path.join(suite.cluster.audit_directory, f"install-audit-{os.getpid()}.log")
        suite.stack.callback(self.down)
        run([K8S, "up", "--name", self.name, "--kubelet", *rights.audit_arguments(suite.directory, self.audit), "--apiserver-arg=--runtime-config=scheduling.k8s.io/v1alpha2=true",
             "--apiserver-arg=--feature-gates=GenericWorkload=true,GangScheduling=true"])
        env = {}
        for line in run([K8S, "env", "--name", self.name]).splitlines():
            key, _, value = line.removeprefix("export ").partition("=")
            env[key] = "".join(shlex.split(value))
        self.env = env
        self.cluster = Cluster(env)
        self.node = env["K8S_NODE"]
        self.helm_binary = None
        self.tag = "one"  # of the images that are installed
        self.values_path = os.path.join(suite.directory, "values.json")
        self.chosen = self.values()
        with open(self.values_path, "w", encoding="utf-8") as f:
            json.dump(self.chosen, f)

    def down(self):
        run([K8S, "down", "--name", self.name])

    def ctr(self, *args):
        return run(["ctr", "--address", self.env["CONTAINERD_ADDRESS"], "--namespace", "k8s.io", *args])

    def environment(self):
        """For commands as a user types them: kubectl, helm and our plugin in PATH, and the kubeconfig."""
        home = os.path.join(self.suite.directory, "helm")
        path = ":".join([os.path.dirname(self.helm_binary), os.path.dirname(self.cluster.kubectl_binary), os.path.join(BUILD, "bin"), os.environ["PATH"]])
        return {**os.environ, "PATH": path, "KUBECONFIG": self.env["KUBECONFIG"], "KUBECACHEDIR": os.path.join(self.env["K8S_DIR"], "kubectl-cache"),
                "HELM_CACHE_HOME": home, "HELM_CONFIG_HOME": home, "HELM_DATA_HOME": home, "HELM_NAMESPACE": ""}

    def type(self, line):
        """A command line, in the root of the tree."""
        return run(["sh", "-c", line], env=self.environment(), cwd=ROOT)

    def helm(self, *args):
        return run([self.helm_binary, *args], env=self.environment())

    def upgrade(self, *args):
        return self.helm("upgrade", "cosched", CHART, "-n", HOME, "-f", self.values_path, "--set", f"image.tag={self.tag}", *args)

    def bring_images(self, directory):
        for path in sorted(glob.glob(os.path.join(directory, "*.tar"))):
            self.ctr("images", "import", path)

    def make_image(self, name, *entrypoint):
        """An image of busybox that does only this."""
        directory = os.path.join(self.suite.directory, "rootfs")
        os.makedirs(os.path.join(directory, "bin"), exist_ok=True)
        run(["cp", run(["which", "busybox"]).strip(), os.path.join(directory, "bin/busybox")])
        self.cluster.k8s("image-make", name, directory, "/bin/busybox", *entrypoint)

    def values(self):
        place = {"hostNetwork": True, "nodeSelector": {"kubernetes.io/hostname": self.node}, "env": [{"name": "ASAN_OPTIONS", "value": "detect_leaks=0"}],
                 "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": None}}  # sanitizers take more than the programs
        # With ports of the host a second replica has no place beside the first.
        one = {**place, "replicas": 1, "pdb": {"enabled": False}, "strategy": {"type": "Recreate", "rollingUpdate": None}}
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
        """helm's own --wait is content with a DaemonSet that has a pod less, which here is none. tags: of those programs that have another."""
        wanted = {f"cosched-{name}:{tags.get(PROGRAMS[name], self.tag)}" for name in PROGRAMS}

        def ask():
            pods = [p for p in self.cluster.pods(HOME) if not p["metadata"].get("deletionTimestamp")]
            ready = {p["spec"]["containers"][0]["image"] for p in pods if any(x["type"] == "Ready" and x["status"] == "True" for x in p["status"].get("conditions", []))}
            if ready != wanted or len(pods) != len(wanted):
                raise Failed(f"Ready: {sorted(ready)} of {len(pods)} pods")
            return True

        wait_until(ask, f"{sorted(wanted)} are Ready", 120)
        restarts = {p["metadata"]["name"]: p["status"]["containerStatuses"][0]["restartCount"] for p in self.cluster.pods(HOME)}
        check(not any(restarts.values()), f"programs had to be restarted: {restarts}")

    def doctor(self, status):
        done = subprocess.run(["kubectl", "inspect", "cgpu", "doctor"], capture_output=True, text=True, timeout=60, check=False, env=self.environment())
        check_equal((done.returncode, done.stderr), (status, ""), f"doctor, which said:\n{done.stdout}\n")
        return done.stdout

    def set_mode(self, mode):
        self.cluster.do("PATCH", f"/api/v1/nodes/{self.node}", {"metadata": {"labels": {"ack.node.gpu.schedule": mode}}}, MERGE)

    def as_scheduler(self, method, path, body, content_type=MERGE):
        """As the scheduler's account, which may write claims: in the name of the administrator, so that it is not in the programs' log."""
        conn = self.cluster.connect(10)
        try:
            conn.request(method, path, json.dumps(body), {"Authorization": "Bearer " + self.cluster.token, "Content-Type": content_type,
                                                          "Impersonate-User": f"system:serviceaccount:{HOME}:cosched-scheduler"})
            reply = conn.getresponse()
            text = reply.read().decode(errors="replace")
            check(reply.status == 200, f"{method} {path} as the scheduler: {reply.status} {text[:500]}")
        finally:
            conn.close()

    def annotate(self, ns, name, **annotations):
        """Result keys of a pod; None takes one away."""
        self.as_scheduler("PATCH", f"/api/v1/namespaces/{ns}/pods/{name}/status", {"metadata": {"annotations": annotations}})


def make_namespace(c, name):
    c.do("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    wait_until(lambda: c.request("GET", f"/api/v1/namespaces/{name}/serviceaccounts/default")[0] == 200, "default service account")
    return name


def job(name, count, gib, script, gang=True, backoff=0, scheduler=None):
    labels = {"pod-group.scheduling.sigs.k8s.io/name": name, "pod-group.scheduling.sigs.k8s.io/min-available": str(count)} if gang else {}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {
        "parallelism": count, "completions": count, "backoffLimit": backoff, "template": {"metadata": {"labels": labels}, "spec": {
            "restartPolicy": "Never", "hostNetwork": True, "terminationGracePeriodSeconds": 0,
            **({"schedulerName": scheduler} if scheduler else {}),
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
