# SPDX-License-Identifier: Apache-2.0
"""CPUs of their own: what the scheduler writes into the annotation cpuset, on nodes that are only API objects and publish a topology."""
import json

from harness import MERGE, SCHEDULER, case, check, check_equal, wait_until

# Two NUMA nodes, two L3 groups of 8 CPUs in each, no second threads: as the CPU document's machine counts.
TOPOLOGY = {"v": 1, "sockets": ["0-31"], "numa": ["0-15", "16-31"], "l3": ["0-7", "8-15", "16-23", "24-31"], "cores": "smt1:32", "offline": "", "reserved": ""}


def cpu_node(suite, name, topology=TOPOLOGY, **what):
    return suite.node(name, cpu="32", memory="64Gi", annotations={"cosched.io/cpu-topology": json.dumps(topology)}, **what)


def cpuset_of(c, ns, name):
    return c.get("pods", name, ns)["metadata"].get("annotations", {}).get("cpuset")


def pinned(c, ns, name, node, cpus, **annotations):
    c.create_pod(ns, name, requests={"cpu": str(cpus)}, limits={"cpu": str(cpus)}, node_selector={"pool": node},
                 annotations={"cpuset-scheduler": "true", **{k.replace("__", "/").replace("_", "-"): v for k, v in annotations.items()}})


def elems(numa, cpus):
    return {str(numa): {"elems": {str(cpu): {} for cpu in cpus}}}


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
        deployment = nginx(node, annotations)
        template = deployment["spec"]["template"]
        c.do("POST", f"/apis/apps/v1/namespaces/{ns}/deployments", deployment)
        # A cluster without controllers makes no pods of it: then the pod is made of its template.
        if not c.has_controllers():
            c.do("POST", f"/api/v1/namespaces/{ns}/pods", {"metadata": {"name": "nginx", **template["metadata"]}, "spec": template["spec"]})
        pod = wait_until(lambda n=ns: next((p for p in c.list("pods", n) if p["spec"].get("nodeName")), None), "the pod is bound")
        check_equal(pod["metadata"]["annotations"].get("cpuset"), expected, f"the annotation with {annotations}")
