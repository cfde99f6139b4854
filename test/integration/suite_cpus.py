# SPDX-License-Identifier: Apache-2.0
"""CPUs of their own: what the scheduler writes into the annotation cpuset, on nodes that are only API objects and publish a topology."""
import json

from harness import MERGE, SCHEDULER, case, check_equal, wait_until

# Two NUMA nodes, two L3 groups of 8 CPUs in each, no second threads: as the CPU document's machine counts.
TOPOLOGY = {"v": 1, "sockets": ["0-31"], "numa": ["0-15", "16-31"], "l3": ["0-7", "8-15", "16-23", "24-31"], "cores": "smt1:32", "offline": "", "reserved": ""}


def cpu_node(suite, name, topology=TOPOLOGY, **what):
    return suite.node(name, cpu="32", memory="64Gi", annotations={"cosched.io/cpu-topology": json.dumps(topology)}, **what)


def cpuset_of(c, ns, name):
    return json.loads(c.pod(ns, name)["metadata"]["annotations"]["cpuset"])


def pinned(c, ns, name, node, cpus, annotations=None, **spec):
    c.create_pod(ns, name, requests={"cpu": str(cpus)}, limits={"cpu": str(cpus)}, node_selector={"pool": node},
                 annotations={"cpuset-scheduler": "true", **(annotations or {})}, **spec)


def on(numa, first, last):
    """The annotation of a pod of one container."""
    return {"main": {str(numa): {"elems": {str(cpu): {} for cpu in range(first, last + 1)}}}}


def nginx(node, annotations):
    """The CPU document's Deployment: no key and no value is another one; the node selector, which it recommends instead of nodeName, and the scheduler's name are added."""
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "nginx-deployment", "labels": {"app": "nginx"}},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "nginx"}},
                     "template": {"metadata": {"annotations": annotations, "labels": {"app": "nginx"}},
                                  "spec": {"schedulerName": SCHEDULER, "nodeSelector": {"pool": node},
                                           "containers": [{"name": "nginx", "image": "nginx_optimized:20240221-1.20.1-2.3.0",
                                                           "ports": [{"containerPort": 80}], "command": ["sleep", "infinity"],
                                                           "resources": {"requests": {"cpu": 4, "memory": "8Gi"}, "limits": {"cpu": 4, "memory": "8Gi"}}}]}}}}


@case("the CPU document's walk-through: four CPUs of one NUMA node, and a whole L3 group with static-burst, in exactly that form")
def walk_through(suite):
    c = suite.cluster
    suite.scheduler()
    for number, (annotations, expected) in enumerate((
            ({"cpuset-scheduler": "true"}, '{"nginx":{"0":{"elems":{"0":{},"1":{},"2":{},"3":{}}}}}'),
            ({"cpuset-scheduler": "true", "cpu-policy": "static-burst"},
             '{"nginx":{"0":{"elems":{"0":{},"1":{},"2":{},"3":{},"4":{},"5":{},"6":{},"7":{}}}}}'))):
        ns, node = suite.namespace(), cpu_node(suite, f"walk-{number}")
        c.do("POST", f"/apis/apps/v1/namespaces/{ns}/deployments", nginx(node, annotations))
        pod = wait_until(lambda n=ns: next((p for p in c.pods(n) if p["spec"].get("nodeName")), None), "the pod is bound")
        check_equal(pod["metadata"]["annotations"].get("cpuset"), expected, f"the annotation with {annotations}")


@case("pinned pods have CPUs of their own, also after a restart of the scheduler, and say what is missing; a topology that comes late is enough")
def own_cpus(suite):
    c, ns = suite.cluster, suite.namespace()
    scheduler = suite.scheduler()
    node = suite.node("own-1", cpu="32", memory="64Gi")
    pinned(c, ns, "first", node, 16)
    c.wait_refused(ns, "first", r"1 has no CPU topology \(none published\)")
    c.do("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"annotations": {"cosched.io/cpu-topology": json.dumps(TOPOLOGY)}}}, MERGE)
    c.wait_bound(ns, "first")
    check_equal(cpuset_of(c, ns, "first"), on(0, 0, 15), "a NUMA node for one")
    suite.end_program(scheduler)
    suite.scheduler()
    pinned(c, ns, "second", node, 12)
    c.wait_bound(ns, "second")
    check_equal(cpuset_of(c, ns, "second"), on(1, 16, 27), "the other for the next")
    c.create_pod(ns, "unpinned", requests={"cpu": "100m"}, node_selector={"pool": node})
    c.wait_bound(ns, "unpinned")
    # 3.9 CPUs are left for requests: a pod that asks for little and may use 8 is refused for its pins alone.
    c.create_pod(ns, "third", requests={"cpu": "1"}, limits={"cpu": "8"}, node_selector={"pool": node}, annotations={"cpuset-scheduler": "true"})
    c.wait_refused(ns, "third", r"1 has fewer than 8 CPUs to pin \(most free: 4 on own-1\)")
    c.delete_pod(ns, "first")
    c.wait_bound(ns, "third")
    check_equal(cpuset_of(c, ns, "third"), on(0, 0, 7), "room that came free")


@case("a more important pod gets the CPUs of a less important one")
def preemption(suite):
    c, ns = suite.cluster, suite.namespace()
    suite.scheduler()
    node = cpu_node(suite, "taken-1")
    c.do("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": f"{ns}-high"}, "value": 1000})
    try:
        c.create_pod(ns, "low", requests={"cpu": "1"}, limits={"cpu": "30"}, node_selector={"pool": node}, annotations={"cpuset-scheduler": "true"})
        c.wait_bound(ns, "low")
        c.create_pod(ns, "high", requests={"cpu": "1"}, limits={"cpu": "4"}, node_selector={"pool": node}, annotations={"cpuset-scheduler": "true"},
                     priorityClassName=f"{ns}-high")
        c.wait_bound(ns, "high")
        check_equal(cpuset_of(c, ns, "high"), on(0, 0, 3), "its CPUs")
    finally:
        c.do("DELETE", f"/apis/scheduling.k8s.io/v1/priorityclasses/{ns}-high")


@case("CPUs on loan are called back in two phases: the annotation gets smaller, the node agent confirms, and only then is the other pod bound")
def loans(suite):
    c, ns = suite.cluster, suite.namespace()
    suite.scheduler()
    node = cpu_node(suite, "loans-1", {**TOPOLOGY, "sockets": ["0-7"], "numa": ["0-7"], "l3": ["0-7"], "cores": "smt1:8"})
    pinned(c, ns, "borrower", node, 4, {"cpu-policy": "static-burst"})
    c.wait_bound(ns, "borrower")
    check_equal(cpuset_of(c, ns, "borrower"), on(0, 0, 7), "the whole group")

    def confirm():
        """As the node agent does it."""
        text = c.pod(ns, "borrower")["metadata"]["annotations"]["cpuset"]
        c.do("PATCH", f"/api/v1/namespaces/{ns}/pods/borrower", {"metadata": {"annotations": {"cosched.io/cpuset-applied": text}}}, MERGE)

    pinned(c, ns, "needs", node, 2)
    c.wait_refused(ns, "needs", r"1 has CPUs to pin only when those on loan are given back \(asked: 2, most free: 0 on loans-1\)$")
    confirm()
    wait_until(lambda: cpuset_of(c, ns, "borrower") != on(0, 0, 7), "the annotation gets smaller")
    left = cpuset_of(c, ns, "borrower")["main"]["0"]["elems"]
    check_equal(len(left), 6, "CPUs that are left")
    check_equal(c.node_of(ns, "needs"), None, "not bound before the node agent has confirmed it")
    confirm()
    c.wait_bound(ns, "needs")
    given = cpuset_of(c, ns, "needs")["main"]["0"]["elems"]
    check_equal(sorted(set(left) | set(given), key=int), [str(i) for i in range(8)], "all CPUs, each once")
    check_equal(len(given), 2, "its CPUs")
