# SPDX-License-Identifier: Apache-2.0
"""The API itself, as in suite_api: delete, what only pods have, and what admission refuses."""
import contextlib
import re

from api_requests import NO_UID, UID, Place, binding, names, pod_body, refused, starts, watch
from harness import MERGE, STRATEGIC, case, check, check_equal, wait_until


# ---- delete -----------------------------------------------------------------------------------------------------------------------------------------


@case("delete: a bound pod is given its grace and no longer than asked before; an unbound one goes at once; finalizers hold; preconditions are 409")
def delete(suite):
    p, c = Place(suite), suite.cluster
    p.make_map("m")
    path = p.maps + "/m"
    refused(c, 404, 'configmaps "no" not found', "DELETE", p.maps + "/no")
    for what, value, wanted in (("uid", NO_UID, rf"the UID in the precondition \({NO_UID}\) does not match the UID in record \({UID}\)\. "
                                 "The object might have been deleted and then recreated"),
                                ("resourceVersion", "1", r"the ResourceVersion in the precondition \(1\) does not match the ResourceVersion in record \(\d+\)\. "
                                 "The object might have been modified")):
        refused(c, 409, re.compile(f'Operation cannot be fulfilled on ConfigMap "m": {wanted}'), "DELETE", path, {"preconditions": {what: value}})
    refused(c, 400, 'strconv.ParseInt: parsing "x": invalid syntax', "DELETE", path + "?gracePeriodSeconds=x")
    refused(c, 422, 'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "x": supported values: "Foreground", "Background", "Orphan", "nil"',
            "DELETE", path, {"propagationPolicy": "x"})
    refused(c, 422, 'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Background": orphanDependents and deletionPropagation cannot be '
            "both set", "DELETE", path, {"propagationPolicy": "Background", "orphanDependents": True})
    c.do("DELETE", path + "?dryRun=All")
    uid = c.get(path)["metadata"]["uid"]
    check_equal(c.do("DELETE", path, {"preconditions": {"uid": uid}}), {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                                                                        "details": {"name": "m", "kind": "configmaps", "uid": uid}}, "what a deletion answers")
    # Finalizers.
    p.make_map("f", finalizers=["x.io/f"])
    first = c.do("DELETE", p.maps + "/f")["metadata"]
    check_equal((first["finalizers"], first["deletionGracePeriodSeconds"], "deletionTimestamp" in first), (["x.io/f"], 0, True), "held")
    check_equal(c.do("DELETE", p.maps + "/f")["metadata"]["deletionTimestamp"], first["deletionTimestamp"], "deleted again")
    refused(c, 422, 'ConfigMap "f" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers '
            '[]string{"x.io/g"}', "PATCH", p.maps + "/f", {"metadata": {"finalizers": ["x.io/f", "x.io/g"]}}, MERGE)
    c.do("PATCH", p.maps + "/f", {"metadata": {"finalizers": None}}, MERGE)
    refused(c, 404, 'configmaps "f" not found', "GET", p.maps + "/f")
    # Pods.
    p.make_pod("u")
    gone = c.do("DELETE", p.pods + "/u")
    check_equal((gone["kind"], gone["metadata"]["deletionGracePeriodSeconds"]), ("Pod", 0), "an unbound pod")
    refused(c, 404, 'pods "u" not found', "GET", p.pods + "/u")
    node = suite.node(f"{p.ns}-n")
    p.make_pod("b")
    c.do(*binding(p, "b", node))
    told = [c.do("DELETE", p.pods + "/b" + asked)["metadata"] for asked in ("", "", "?gracePeriodSeconds=60", "?gracePeriodSeconds=5")]
    check_equal([(m["deletionGracePeriodSeconds"], m["generation"]) for m in told], [(30, 2), (30, 2), (30, 2), (5, 2)], "grace periods, generations")
    check_equal(len({m["deletionTimestamp"] for m in told}), 2, "its time moves only when it is sooner")
    check_equal(c.get(p.pods + "/b")["status"]["phase"], "Pending", "it is still there")
    # It has ended, but its kubelet does not know yet that it is to be gone.
    c.do("PATCH", p.pods + "/b/status", {"status": {"phase": "Succeeded"}}, MERGE)
    told = [c.do("DELETE", p.pods + "/b", asked)["metadata"]["deletionGracePeriodSeconds"] for asked in (None, {"gracePeriodSeconds": 60}, {"gracePeriodSeconds": -5})]
    check_equal(told, [5, 5, 1], "grace periods of a pod that has ended")
    refused(c, 400, "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64", "DELETE", p.pods + "/b",
            {"gracePeriodSeconds": "x"})
    c.do("DELETE", p.pods + "/b", {"gracePeriodSeconds": 0})
    refused(c, 404, 'pods "b" not found', "GET", p.pods + "/b")


@case("delete: pods of a job stay unless it is said otherwise, with a warning; a second deletion may say it otherwise")
def delete_jobs(suite):
    p, c = Place(suite), suite.cluster
    jobs = p.of("jobs", "batch/v1")
    spec = {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
    warning = ('299 - "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to '
               'suppress this warning"')
    for options, kind, warnings in ((None, "Job", [warning]), ({"propagationPolicy": "Background"}, "Status", []), ({"orphanDependents": False}, "Status", []),
                                    ({"propagationPolicy": "Orphan"}, "Job", [])):
        name = c.do("POST", jobs, {"metadata": {"generateName": "j-"}, "spec": spec})["metadata"]["name"]
        got = c.do("DELETE", f"{jobs}/{name}", options)
        check_equal((got["kind"], got["metadata"].get("finalizers"), c.warnings), (kind, ["orphan"] if kind == "Job" else None, warnings), options)
    p.make_map("f", finalizers=["x.io/f"])
    for how, finalizers in (("Foreground", ["x.io/f", "foregroundDeletion"]), ("Orphan", ["x.io/f", "orphan"]), ("Background", ["x.io/f"])):
        check_equal(c.do("DELETE", f"{p.maps}/f?propagationPolicy={how}")["metadata"]["finalizers"], finalizers, how)
    c.do("PATCH", p.maps + "/f", {"metadata": {"finalizers": None}}, MERGE)


@case("delete: a collection by selector is exactly what matches, and is listed in the answer")
def delete_collection(suite):
    p, c = Place(suite), suite.cluster
    for i in range(3):
        p.make_map(f"c{i}", labels={"odd": str(i % 2)})
    got = c.do("DELETE", p.maps + "?labelSelector=odd%3D0")
    check_equal((got["kind"], names(got)), ("ConfigMapList", ["c0", "c2"]), "the answer")
    check_equal(names(c.get(p.maps + "?labelSelector=odd")), ["c1"], "what is left")
    refused(c, 400, re.compile(".+"), "DELETE", p.maps + "?labelSelector==")
    c.do("DELETE", p.maps + "?fieldSelector=metadata.name%3Dc1")
    check_equal(names(c.get(p.maps + "?labelSelector=odd")), [], "by field")
    check_equal(c.do("DELETE", p.maps + "?labelSelector=odd")["items"], [], "nothing matches")


@case("delete: dependents go after their owner in the background, before it in the foreground, and stay without it when orphaned")
def owners(suite):
    p, c = Place(suite), suite.cluster
    for how in ("Background", "Foreground", "Orphan"):
        owner = p.make_map("owner-" + how.lower())["metadata"]
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["name"], "uid": owner["uid"], "blockOwnerDeletion": True}
        p.make_map("dependent-" + how.lower(), ownerReferences=[reference])
    for how, finalizers in (("Background", None), ("Foreground", ["foregroundDeletion"]), ("Orphan", ["orphan"])):
        got = c.do("DELETE", f"{p.maps}/owner-{how.lower()}?propagationPolicy={how}")
        check_equal((got["kind"], got["metadata"].get("finalizers")), ("ConfigMap" if finalizers else "Status", finalizers), how)
    for name in ("owner-background", "dependent-background", "owner-foreground", "dependent-foreground", "owner-orphan"):
        wait_until(lambda name=name: c.request("GET", f"{p.maps}/{name}")[0] == 404, f"{name} is gone", 15)
    check_equal(c.get(p.maps + "/dependent-orphan")["metadata"].get("ownerReferences"), None, "the orphan's owners")
    # One whose owner never was is collected too; one of two owners is not enough.
    owner = p.make_map("alive")["metadata"]
    lost = {"apiVersion": "v1", "kind": "ConfigMap", "name": "never", "uid": NO_UID}
    alive = {"apiVersion": "v1", "kind": "ConfigMap", "name": "alive", "uid": owner["uid"]}
    p.make_map("both", ownerReferences=[lost, alive])
    p.make_map("lost", ownerReferences=[lost])
    wait_until(lambda: c.request("GET", p.maps + "/lost")[0] == 404, "one whose owner never was is gone", 15)
    check_equal(c.request("GET", p.maps + "/both")[0], 200, "one with another owner")


# ---- pods -------------------------------------------------------------------------------------------------------------------------------------------


@case("binding: node, annotations, labels and PodScheduled=True appear in one version; a node need not exist; dryRun changes nothing")
def bind(suite):
    p, c = Place(suite), suite.cluster
    before = p.make_pod("b", {"annotations": {"x": "0", "y": "0"}})["metadata"]["resourceVersion"]
    c.do(*binding(p, "b", "no-such-node", dryRun="All"))
    check_equal(c.get(p.pods + "/b")["metadata"]["resourceVersion"], before, "the version after a dry run")
    status, reply = c.request(*binding(p, "b", "no-such-node", {"annotations": {"x": "1", "z": "2"}, "labels": {"l": "1"}, "resourceVersion": before}))
    check_equal((status, reply), (201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}), "the answer")
    events = watch(c, p.pods, resourceVersion=before)
    check_equal([kind for kind, _ in events], ["MODIFIED"], "changes")
    pod = events[0][1]
    check_equal((pod["spec"]["nodeName"], pod["metadata"]["annotations"], pod["metadata"]["labels"], pod["metadata"]["generation"]),
                ("no-such-node", {"x": "1", "y": "0", "z": "2"}, {"l": "1"}, 1), "the pod")
    condition = dict(pod["status"]["conditions"][0])
    check(re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", condition.pop("lastTransitionTime")), pod["status"])
    check_equal((len(pod["status"]["conditions"]), condition), (1, {"type": "PodScheduled", "status": "True", "lastProbeTime": None}), "conditions")
    p.make_pod("old")
    c.do("PATCH", p.pods + "/old/status", {"status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no",
                                                                      "observedGeneration": 1}]}}, STRATEGIC)
    c.do("POST", p.of("bindings"), {"metadata": {"name": "old"}, "target": {"kind": "Node", "name": "n"}})
    check_equal(c.node_of(p.ns, "old"), "n", "by POST bindings")
    condition = dict(c.get(p.pods + "/old")["status"]["conditions"][0])
    check_equal((condition.pop("lastTransitionTime") is None, condition), (False, {"type": "PodScheduled", "status": "True", "lastProbeTime": None}),
                "the condition of what had been tried in vain")


@case("binding: wrong uid or version, bound and deleting pods are 409 and nothing changes; what is no binding is 400, a pod that is not there 404")
def bind_refused(suite):
    p, c = Place(suite), suite.cluster
    p.make_pod("b")
    before = c.get(p.pods + "/b")
    storage = (f'Operation cannot be fulfilled on pods "b": StorageError: invalid object, Code: 4, Key: /registry/pods/{p.ns}/b, ResourceVersion: 0, '
               "AdditionalErrorMsg: Precondition failed: ")
    refused(c, 409, f"{storage}UID in precondition: {NO_UID}, UID in object meta: {before['metadata']['uid']}", *binding(p, "b", "n", {"uid": NO_UID}))
    refused(c, 409, f"{storage}ResourceVersion in precondition: 1, ResourceVersion in object meta: {before['metadata']['resourceVersion']}",
            *binding(p, "b", "n", {"resourceVersion": "1"}))
    path = p.pods + "/b/binding"
    target = {"kind": "Node", "name": "n"}
    refused(c, 400, "name in URL does not match name in Binding object", "POST", path, {"metadata": {"name": "x"}, "target": target})
    refused(c, 400, "name in URL does not match name in Binding object", "POST", path, {"target": target})
    refused(c, 400, "the namespace of the provided object does not match the namespace sent on the request", "POST", path,
            {"metadata": {"name": "b", "namespace": "other"}, "target": target})
    refused(c, 400, 'Pod in version "v1" cannot be handled as a Binding: converting (v1.Pod) to (core.Binding): unknown conversion', "POST", path, pod_body("b"))
    refused(c, 400, starts("the object provided is unrecognized (must be of type Binding): couldn't get version/kind; json parse error: "), "POST", path, b"{")
    for wrong, message in (({"kind": "Node", "name": ""}, "target.name: Required value"),
                           ({"kind": "Pod", "name": "n"}, 'target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"')):
        reply = c.request("POST", path, {"metadata": {"name": "b"}, "target": wrong})[1]
        check_equal((reply["code"], reply["message"]), (500, message), wrong)
    refused(c, 404, 'pods "no" not found', *binding(p, "no", "n"))
    check_equal(c.get(p.pods + "/b"), before, "the pod after all that")
    c.do(*binding(p, "b", "n1"))
    for node in ("n1", "n2"):
        reply = refused(c, 409, 'Operation cannot be fulfilled on pods/binding "b": pod b is already assigned to node "n1"', *binding(p, "b", node))
        check_equal(reply["details"], {"name": "b", "kind": "pods/binding"}, "details")
    p.make_pod("d", {"finalizers": ["x.io/f"]})
    c.do("DELETE", p.pods + "/d")
    refused(c, 409, 'Operation cannot be fulfilled on pods/binding "d": pod d is being deleted, cannot be assigned to a host', *binding(p, "d", "n"))
    c.do("PATCH", p.pods + "/d", {"metadata": {"finalizers": None}}, MERGE)


@case("scheduling gates: a gated pod says SchedulingGated and cannot be bound; gates only go, and then it can")
def gates(suite):
    p, c = Place(suite), suite.cluster
    p.make_pod("g", schedulingGates=[{"name": "x.io/a"}, {"name": "x.io/b"}])
    condition = c.condition(p.ns, "g") or {}
    check_equal({k: condition.get(k) for k in ("status", "reason", "message")},
                {"status": "False", "reason": "SchedulingGated", "message": "Scheduling is blocked due to non-empty scheduling gates"}, "PodScheduled")
    refused(c, 409, 'Operation cannot be fulfilled on pods/binding "g": pod g has non-empty .spec.schedulingGates', *binding(p, "g", "n"))
    got = c.do("PATCH", p.pods + "/g", {"spec": {"schedulingGates": [{"name": "x.io/b"}]}}, MERGE)
    check_equal((got["spec"]["schedulingGates"], got["metadata"]["generation"]), ([{"name": "x.io/b"}], 2), "one gate went")
    refused(c, 422, "Pod \"g\" is invalid: spec.schedulingGates[1].name: Forbidden: only deletion is allowed, but found new scheduling gate 'x.io/c'", "PATCH",
            p.pods + "/g", {"spec": {"schedulingGates": [{"name": "x.io/b"}, {"name": "x.io/c"}]}}, MERGE)
    c.do("PATCH", p.pods + "/g", {"spec": {"schedulingGates": []}}, MERGE)
    c.do(*binding(p, "g", "n"))
    check_equal(c.condition(p.ns, "g")["status"], "True", "PodScheduled after the binding")


@case("eviction: a budget with nothing to give is 429 and says so; one that can is charged, and the pod ends as one that was evicted")
def evict(suite):
    p, c = Place(suite), suite.cluster
    node = suite.node(f"{p.ns}-n")
    p.make_pod("e", {"labels": {"app": "x"}})
    c.do(*binding(p, "e", node))
    path = p.pods + "/e/eviction"

    def body(name="e", **options):
        return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **({"deleteOptions": options} if options else {})}

    refused(c, 422, 'DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["x"]: supported values: "All"', "POST", path, body(dryRun=["x"]))
    budgets = p.of("poddisruptionbudgets", "policy/v1")
    c.do("POST", budgets, {"metadata": {"name": "pdb"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}})
    c.do("PATCH", p.pods + "/e/status", {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}, STRATEGIC)
    wait_until(lambda: c.get(budgets + "/pdb")["status"]["currentHealthy"] == 1, "the budget knows the pod", 15)
    reply = refused(c, 429, "Cannot evict pod as it would violate the pod's disruption budget.", "POST", path, body())
    check_equal(reply["details"], {"causes": [{"reason": "DisruptionBudget", "message": "The disruption budget pdb needs 1 healthy pods and has 1 currently"}]},
                "details")
    refused(c, 404, 'pods "no" not found', "POST", p.pods + "/no/eviction", body("no"))
    refused(c, 400, "name in URL does not match name in Eviction object", "POST", path, body("x"))
    refused(c, 400, 'Pod in version "v1" cannot be handled as a Eviction: converting (v1.Pod) to (policy.Eviction): unknown conversion', "POST", path, pod_body("e"))
    refused(c, 400, "name in URL does not match name in Eviction object", "POST", path, {})
    refused(c, 400, "the namespace of the provided object does not match the namespace sent on the request", "POST", path,
            {**body(), "metadata": {"name": "e", "namespace": "other"}})
    refused(c, 400, 'Eviction in version "v1" cannot be handled as a Eviction: no kind "Eviction" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"',
            "POST", path, {**body(), "apiVersion": "v1"})
    refused(c, 400, 'Eviction in version "v1" cannot be handled as a Eviction: json: cannot unmarshal string into Go struct field '
            "DeleteOptions.deleteOptions.gracePeriodSeconds of type int64", "POST", path, body(gracePeriodSeconds="x"))
    c.do("PATCH", budgets + "/pdb", {"spec": {"minAvailable": 0}}, MERGE)
    wait_until(lambda: c.get(budgets + "/pdb")["status"]["disruptionsAllowed"] == 1, "the budget allows one", 15)
    check_equal(c.request("POST", path, body(dryRun=["All"]))[0], 201, "dryRun")
    refused(c, 409, re.compile(rf'Operation cannot be fulfilled on Pod "e": the UID in the precondition \({NO_UID}\) does not match the UID in record \({UID}\)\. '
                               "The object might have been deleted and then recreated"), "POST", path, body(preconditions={"uid": NO_UID}, dryRun=["All"]))
    check("deletionTimestamp" not in c.pod(p.ns, "e")["metadata"], "a dry run evicts nobody")
    check_equal(c.request("POST", path, body()), (201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}), "the answer")
    pod = c.pod(p.ns, "e")
    check_equal(pod["metadata"]["deletionGracePeriodSeconds"], 30, "grace")
    told = [x for x in pod["status"]["conditions"] if x["type"] == "DisruptionTarget"]
    check_equal([(x["status"], x["reason"], x["message"]) for x in told], [("True", "EvictionByEvictionAPI", "Eviction API: evicting")], "DisruptionTarget")
    wait_until(lambda: c.get(budgets + "/pdb")["status"]["disruptionsAllowed"] == 0, "the budget is charged", 15)


# ---- admission --------------------------------------------------------------------------------------------------------------------------------------


@case("quota: pods beyond the number are 403 with the sums; a pod that goes gives its place back")
def quota(suite):
    p, c = Place(suite), suite.cluster
    path = p.of("resourcequotas")
    c.do("POST", path, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}})

    def used(n):
        wait_until(lambda: c.get(path + "/q")["status"] == {"hard": {"pods": "1"}, "used": {"pods": n}}, f"the quota has {n} used", 15)

    used("0")
    p.make_pod("q1")
    used("1")
    sums = "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"
    reply = refused(c, 403, f'pods "q2" is forbidden: {sums}', "POST", p.pods, pod_body("q2"))
    check_equal(reply["details"], {"name": "q2", "kind": "pods"}, "details")
    refused(c, 403, f'pods "q2" is forbidden: {sums}', "POST", p.pods + "?dryRun=All", pod_body("q2"))
    refused(c, 403, re.compile(r'pods "g-\w{5}" is forbidden: ' + re.escape(sums)), "POST", p.pods, {**pod_body("x"), "metadata": {"generateName": "g-"}})
    c.delete_pod(p.ns, "q1")
    used("0")
    p.make_pod("q2")


@case("priority: a class gives a pod its value and policy; an unknown class, or a value of one's own, is 403; a class keeps its value")
def priority(suite):
    p, c = Place(suite), suite.cluster
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    name = f"{p.ns}-class"
    c.do("POST", path, {"metadata": {"name": name}, "value": 1000, "preemptionPolicy": "Never"})
    suite.stack.callback(c.do, "DELETE", f"{path}/{name}")
    wait_until(lambda: c.request("POST", p.pods + "?dryRun=All", pod_body("x", priorityClassName=name))[0] == 201, "the class is known", 10)
    for of, expected in ((name, (1000, name, "Never")), ("system-node-critical", (2000001000, "system-node-critical", "PreemptLowerPriority"))):
        spec = p.make_pod(f"p{expected[0]}", priorityClassName=of)["spec"]
        check_equal((spec["priority"], spec["priorityClassName"], spec["preemptionPolicy"]), expected, of)
    forbidden = 'pods "x" is forbidden: '
    refused(c, 403, forbidden + "no PriorityClass with name no-such was found", "POST", p.pods, pod_body("x", priorityClassName="no-such"))
    for spec, message in (({"priorityClassName": name, "priority": 5}, "the integer value of priority (5) must not be provided in pod spec; priority admission "
                           "controller computed 1000 from the given PriorityClass name"),
                          ({"priorityClassName": name, "preemptionPolicy": "PreemptLowerPriority"}, "the string value of PreemptionPolicy (PreemptLowerPriority) must "
                           "not be provided in pod spec; priority admission controller computed Never from the given PriorityClass name"),
                          ({"priority": 5}, "the integer value of priority (5) must not be provided in pod spec; priority admission controller computed 0 from "
                           "the given PriorityClass name")):
        refused(c, 403, forbidden + message, "POST", p.pods, pod_body("x", **spec))
    refused(c, 422, f'PriorityClass.scheduling.k8s.io "{name}" is invalid: value: Forbidden: may not be changed in an update.', "PATCH", f"{path}/{name}",
            {"value": 7}, MERGE, causes=[("value", "FieldValueForbidden")])
    refused(c, 422, 'PriorityClass.scheduling.k8s.io "x" is invalid: value: Forbidden: maximum allowed value of a user defined priority is 1000000000', "POST", path,
            {"metadata": {"name": "x"}, "value": 1000000001})


@case("namespaces: one that is going is Terminating while something holds it: nothing new (403), what is there may change; empty it goes; some never go")
def namespaces(suite):
    p, c = Place(suite), suite.cluster
    empty = suite.namespace()
    path = "/api/v1/namespaces/" + p.ns
    p.make_map("hold", finalizers=["x.io/h"])
    with contextlib.ExitStack() as stack:
        stack.callback(c.request, "PATCH", p.maps + "/hold", {"metadata": {"finalizers": None}}, MERGE)
        got = c.do("DELETE", path)
        check_equal((got["kind"], got["status"]["phase"], got["spec"]["finalizers"]), ("Namespace", "Terminating", ["kubernetes"]), "what a deletion answers")
        c.do("DELETE", "/api/v1/namespaces/" + empty)
        for resource, body in (("configmaps", {"metadata": {"name": "new"}}), ("pods", pod_body("new"))):
            def terminating(resource=resource, body=body):
                return refused(c, 403, f'{resource} "new" is forbidden: unable to create new content in namespace {p.ns} because it is being terminated', "POST",
                               p.of(resource), body, causes=[("metadata.namespace", "NamespaceTerminating")])

            wait_until(terminating, "nothing new", 5)
        check_equal(c.do("PATCH", p.maps + "/hold", {"data": {"a": "2"}}, MERGE)["data"], {"a": "2"}, "a change")
        wait_until(lambda: c.request("GET", "/api/v1/namespaces/" + empty)[0] == 404, "the empty one is gone", 20)
        check_equal(c.get(path)["status"]["phase"], "Terminating", "the other")
    refused(c, 404, f'namespaces "{empty}" not found', "POST", f"/api/v1/namespaces/{empty}/configmaps", {"metadata": {"name": "x"}})
    for name in ("default", "kube-system"):
        refused(c, 403, f'namespaces "{name}" is forbidden: this namespace may not be deleted', "DELETE", "/api/v1/namespaces/" + name)
