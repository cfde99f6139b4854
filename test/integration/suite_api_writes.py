# SPDX-License-Identifier: Apache-2.0
"""The API itself, as in suite_api: create, update and patch."""
import copy
import re

from api_requests import APPLY, JSON_PATCH, MODIFIED, NO_UID, NOT_ALLOWED, REJECTED, UID, Place, pod_body, refused, starts
from harness import MERGE, STRATEGIC, case, check, check_equal, wait_until


# ---- create -----------------------------------------------------------------------------------------------------------------------------------------


@case("create: uid, creationTimestamp, version and a generated name are the server's; twice is AlreadyExists; dryRun makes nothing")
def create(suite):
    p, c = Place(suite), suite.cluster
    status, made = c.request("POST", p.maps, {"metadata": {"generateName": "gen-", "uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z"}})
    meta = made["metadata"]
    check_equal((status, made["apiVersion"], made["kind"], meta["namespace"], meta["generateName"]), (201, "v1", "ConfigMap", p.ns, "gen-"), "the object")
    check(re.fullmatch(r"gen-[bcdfghjklmnpqrstvwxz2456789]{5}", meta["name"]), meta["name"])
    check(re.fullmatch(UID, meta["uid"]) and re.fullmatch(r"\d+", meta["resourceVersion"]), meta)
    check(re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", meta["creationTimestamp"]) and not meta["creationTimestamp"].startswith("2001"), meta)
    other = c.do("POST", p.maps, {"metadata": {"generateName": "gen-"}})["metadata"]
    check(other["name"] != meta["name"] and other["uid"] != meta["uid"], "a second one is another one")
    p.make_map("m")
    reply = refused(c, 409, 'configmaps "m" already exists', "POST", p.maps, {"metadata": {"name": "m"}}, reason="AlreadyExists")
    check_equal(reply["details"], {"name": "m", "kind": "configmaps"}, "details")
    refused(c, 409, f'namespaces "{p.ns}" already exists', "POST", "/api/v1/namespaces", {"metadata": {"name": p.ns}}, reason="AlreadyExists")
    status, dry = c.request("POST", p.maps + "?dryRun=All", {"metadata": {"name": "dry"}})
    check_equal((status, "resourceVersion" in dry["metadata"], "uid" in dry["metadata"]), (201, False, True), "dryRun")
    refused(c, 404, 'configmaps "dry" not found', "GET", p.maps + "/dry")
    refused(c, 422, 'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["x"]: supported values: "All"', "POST", p.maps + "?dryRun=x",
            {"metadata": {"name": "dry"}}, causes=[("dryRun", "FieldValueNotSupported")])


@case("create: a pod gets its defaults, its place and nothing of a status it brings")
def create_pod(suite):
    p, c = Place(suite), suite.cluster
    made = c.do("POST", p.pods, {**pod_body("p"), "status": {"phase": "Running", "nominatedNodeName": "n"}})
    check_equal(made["status"], {"phase": "Pending", "qosClass": "BestEffort"}, "status")
    spec = made["spec"]
    check_equal({k: spec.get(k) for k in ("dnsPolicy", "restartPolicy", "terminationGracePeriodSeconds", "serviceAccountName", "priority", "preemptionPolicy",
                                          "enableServiceLinks", "schedulerName", "securityContext")},
                {"dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "serviceAccountName": "default", "priority": 0,
                 "preemptionPolicy": "PreemptLowerPriority", "enableServiceLinks": True, "schedulerName": "nobody", "securityContext": {}}, "spec")
    check_equal(made["metadata"]["generation"], 1, "generation")
    check_equal([(t["key"], t["effect"], t["tolerationSeconds"]) for t in spec["tolerations"]],
                [("node.kubernetes.io/not-ready", "NoExecute", 300), ("node.kubernetes.io/unreachable", "NoExecute", 300)], "tolerations")
    container = spec["containers"][0]
    check_equal((container["imagePullPolicy"], container["terminationMessagePath"], container["terminationMessagePolicy"], container["resources"]),
                ("IfNotPresent", "/dev/termination-log", "File", {}), "container")


@case("create: a wrong namespace, kind, version, type, name, size, or no JSON at all, each with its own code and sentence")
def create_wrong(suite):
    p, c = Place(suite), suite.cluster
    refused(c, 404, 'namespaces "no-such" not found', "POST", "/api/v1/namespaces/no-such/configmaps", {"metadata": {"name": "x"}})
    refused(c, 404, 'namespaces "no-such" not found', "POST", "/api/v1/namespaces/no-such/pods", pod_body("x"))
    check_equal(c.get("/api/v1/namespaces/no-such/pods")["items"], [], "a list of nowhere")
    refused(c, 400, "the namespace of the provided object does not match the namespace sent on the request", "POST", p.maps,
            {"metadata": {"name": "x", "namespace": "other"}})
    as_pod = " cannot be handled as a Pod: "
    for body, message in (
            ({"apiVersion": "v1", "kind": "ConfigMap"}, f'ConfigMap in version "v1"{as_pod}converting (v1.ConfigMap) to (core.Pod): unknown conversion'),
            ({"apiVersion": "apps/v1", "kind": "Deployment"}, f'Deployment in version "v1"{as_pod}converting (v1.Deployment) to (core.Pod): unknown conversion'),
            ({"apiVersion": "v2", "kind": "Pod"}, f'Pod in version "v2"{as_pod}no kind "Pod" is registered for version "v2" in scheme "pkg/runtime/scheme.go:111"'),
            ({"metadata": {"name": "x"}, "spec": {"containers": "x"}},
             f'Pod in version "v1"{as_pod}json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type []v1.Container'),
            ({"metadata": {"name": "x", "labels": {"a": 1}}},
             f'Pod in version "v1"{as_pod}json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string'),
            ({"metadata": "x"}, f'Pod in version "v1"{as_pod}json: cannot unmarshal string into Go struct field Pod.metadata of type v1.ObjectMeta')):
        refused(c, 400, message, "POST", p.pods, body)
    unreadable = "the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: "
    for body in (b'{"a":', b"not json", b"[]", b'"x"', b""):
        refused(c, 400, starts(unreadable), "POST", p.pods, body)
    refused(c, 415, starts("the body of the request was in an unknown format - accepted media types include: application/json, application/yaml"), "POST",
            p.maps, b"{}", "text/plain")
    refused(c, 413, "Request entity too large: limit is 3145728", "POST", p.maps, {"metadata": {"name": "x"}, "data": {"a": "x" * (3 << 20)}})
    refused(c, 422, 'ConfigMap "x" is invalid: []: Too long: may not be more than 1048576 bytes', "POST", p.maps,
            {"metadata": {"name": "x"}, "data": {"a": "x" * (1 << 20), "b": "x"}})
    check_equal(c.request("POST", p.maps + "?dryRun=All", {"metadata": {"name": "x"}, "data": {"a": "x" * (1 << 20)}})[0], 201, "exactly 1 MiB")
    refused(c, 422, 'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required', "POST", p.maps, {"metadata": {}},
            causes=[("metadata.name", "FieldValueRequired")])
    refused(c, 422, 'Pod "" is invalid: [metadata.name: Required value: name or generateName is required, spec.containers: Required value]', "POST", p.pods, {},
            causes=[("metadata.name", "FieldValueRequired"), ("spec.containers", "FieldValueRequired")])
    refused(c, 422, starts('Pod "X_y" is invalid: metadata.name: Invalid value: "X_y": a lowercase RFC 1123 subdomain must consist of'), "POST", p.pods,
            pod_body("X_y"), causes=[("metadata.name", "FieldValueInvalid")])
    refused(c, 422, starts('ConfigMap "x" is invalid: metadata.labels: Invalid value: "c d": a valid label must be'), "POST", p.maps,
            {"metadata": {"name": "x", "labels": {"a": "c d"}}})
    refused(c, 422, 'Pod "x" is invalid: spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared', "POST", p.pods,
            pod_body("x", nodeName="n", schedulingGates=[{"name": "x.io/g"}]), causes=[("spec.nodeName", "FieldValueForbidden")])
    reply = c.request("POST", p.maps, {"metadata": {"name": "x", "resourceVersion": "1"}})[1]
    check_equal((reply["code"], reply["message"]), (500, "resourceVersion should not be set on objects to be created"), "a version in a new object")


@case("create: what a kind's types do not hold: another type is 400 with Go's sentence, an unknown or a second field a warning or 400, null and empty are absent")
def create_types(suite):
    p, c = Place(suite), suite.cluster

    def wrong(path, kind, body, message, version="v1"):
        refused(c, 400, f'{kind} in version "{version}" cannot be handled as a {kind}: {message}', "POST", path, body)

    cannot, field = "json: cannot unmarshal ", " into Go struct field "
    for spec, message in (({"volumes": "x"}, f"{cannot}string{field}PodSpec.spec.volumes of type []v1.Volume"),
                          ({"affinity": []}, f"{cannot}array{field}PodSpec.spec.affinity of type v1.Affinity"),
                          ({"nodeName": 5}, f"{cannot}number{field}PodSpec.spec.nodeName of type string"),
                          ({"containers": [1]}, f"{cannot}number{field}PodSpec.spec.containers of type v1.Container"),
                          ({"containers": [{"name": "c", "args": [1]}]}, f"{cannot}number{field}Container.spec.containers.args of type string"),
                          ({"containers": [{"name": "c", "ports": [{"containerPort": "80"}]}]},
                           f"{cannot}string{field}ContainerPort.spec.containers.ports.containerPort of type int32"),
                          ({"overhead": {"cpu": "x"}}, "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")):
        wrong(p.pods, "Pod", pod_body("x", **spec), message)
    wrong(p.of("deployments", "apps/v1"), "Deployment", {"metadata": {"name": "x"}, "spec": {"replicas": 2147483648}},
          f"{cannot}number 2147483648{field}DeploymentSpec.spec.replicas of type int32")
    wrong(p.of("leases", "coordination.k8s.io/v1"), "Lease", {"metadata": {"name": "x"}, "spec": {"renewTime": "2026-01-01T00:00:00Z"}},
          'parsing time "2026-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"')
    wrong(p.maps, "ConfigMap", {"metadata": {"name": "x"}, "binaryData": {"a": "!!"}}, "illegal base64 data at input byte 0")
    wrong(p.maps, "ConfigMap", {"metadata": {"name": "x", "creationTimestamp": "x"}},
          'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"')
    typo = {"metadata": {"name": "x"}, "data": {"a": "1"}, "bogus": 1}
    refused(c, 400, 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "bogus"', "POST",
            p.maps + "?fieldValidation=Strict", typo)
    refused(c, 400, 'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.containers[0].imagee"', "POST",
            p.pods + "?fieldValidation=Strict", pod_body("x", containers=[{"name": "c", "image": "i", "imagee": "j"}]))
    refused(c, 422, 'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "x": supported values: "", "Ignore", "Strict", "Warn"', "POST",
            p.maps + "?fieldValidation=x", typo)
    for args, warnings in (("", ['299 - "unknown field \\"bogus\\""']), ("&fieldValidation=Ignore", [])):
        got = c.do("POST", p.maps + "?dryRun=All" + args, typo)
        check_equal((got.get("bogus"), c.warnings), (None, warnings), f"an unknown field{args}")
    got = c.do("POST", p.maps + "?dryRun=All", b'{"metadata":{"name":"x"},"data":{"a":"1","a":"2"},"data":{"b":"3"}}')
    check_equal((got["data"], sorted(c.warnings)), ({"a": "2", "b": "3"}, ['299 - "duplicate field \\"data.a\\""', '299 - "duplicate field \\"data\\""']), "twice")
    got = c.do("POST", p.maps, {"metadata": {"name": "x", "labels": {"l": None}, "annotations": {}}, "data": {"a": None}, "binaryData": None})
    check_equal((got["data"], got.get("binaryData"), got["metadata"]["labels"], got["metadata"].get("annotations")), ({"a": ""}, None, {"l": ""}, None), "null and empty")
    # The same holds for a patch, and for the status.
    refused(c, 422, re.compile(r' "" is invalid: patch: Invalid value: .*strict decoding error: unknown field "bogus"', re.S), "PATCH",
            p.maps + "/x?fieldValidation=Strict", {"bogus": 1}, MERGE)
    p.make_pod("s")
    refused(c, 422, re.compile(r' "" is invalid: patch: Invalid value: .* into Go struct field PodStatus.status.conditions of type \[\]v1.PodCondition', re.S),
            "PATCH", p.pods + "/s/status", {"status": {"conditions": {}}}, MERGE)
    refused(c, 422, 'Pod "s" is invalid: status.qosClass: Invalid value: "Guaranteed": field is immutable', "PATCH", p.pods + "/s/status",
            {"status": {"qosClass": "Guaranteed"}}, MERGE)
    check_equal(c.do("PATCH", p.pods + "/s/status", {"status": None}, MERGE)["status"], {"qosClass": "BestEffort"}, "a status of nothing")
    node = suite.node(f"{p.ns}-n")
    refused(c, 422, re.compile(r' "" is invalid: patch: .*quantities must match the regular expression.*', re.S), "PATCH", f"/api/v1/nodes/{node}/status",
            {"status": {"capacity": {"cpu": "x"}}}, STRATEGIC)
    got = c.do("PATCH", f"/api/v1/nodes/{node}/status", {"status": {"capacity": {"cpu": "0.5", "memory": "1024Ki"}}}, MERGE)["status"]["capacity"]
    check_equal((got["cpu"], got["memory"]), ("500m", "1Mi"), "amounts in their usual form")


@case("create: finalizers have a domain, owners a name and a uid, generateName and keys their letters; an object is as large as etcd takes it")
def create_rules(suite):
    p, c = Place(suite), suite.cluster
    plain = "name is neither a standard finalizer name nor is it fully qualified"
    empty = "must not be empty"
    for meta, message in (({"finalizers": ["nodomain"]}, f'metadata.finalizers[0]: Invalid value: "nodomain": {plain}'),
                          ({"finalizers": ["orphan", "foregroundDeletion"]}, 'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan '
                           "and foregroundDeletion cannot be both set"),
                          ({"ownerReferences": [{}]}, '[metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty, '
                           f'metadata.ownerReferences.kind: Invalid value: "": {empty}, metadata.ownerReferences.name: Invalid value: "": {empty}, '
                           f'metadata.ownerReferences.uid: Invalid value: "": {empty}]')):
        refused(c, 422, f'ConfigMap "x" is invalid: {message}', "POST", p.maps, {"metadata": {"name": "x", **meta}})
    reply = refused(c, 422, starts("ConfigMap "), "POST", p.maps, {"metadata": {"generateName": "A_"}})
    check_equal(reply["details"]["causes"][0]["field"], "metadata.generateName", "a prefix for names")
    key = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
    refused(c, 422, starts(f'ConfigMap "x" is invalid: data[a b]: Invalid value: "a b": {key}'), "POST", p.maps, {"metadata": {"name": "x"}, "data": {"a b": ""}})
    refused(c, 422, 'ConfigMap "x" is invalid: data[a]: Invalid value: "a": duplicate of key present in binaryData', "POST", p.maps,
            {"metadata": {"name": "x"}, "data": {"a": ""}, "binaryData": {"a": "AAAA"}})
    c.do("POST", p.maps, {"metadata": {"name": "i"}, "immutable": True, "data": {"a": "1"}})
    for change, what in (({"data": {"a": "2"}}, "data"), ({"immutable": None}, "immutable")):
        refused(c, 422, f'ConfigMap "i" is invalid: {what}: Forbidden: field is immutable when `immutable` is set', "PATCH", p.maps + "/i", change, MERGE)
    refused(c, 422, 'Secret "x" is invalid: data: Too long: may not be more than 1048576 bytes', "POST", p.of("secrets"),
            {"metadata": {"name": "x"}, "stringData": {"a": "x" * (1 << 20) + "x"}})
    roles = p.of("roles", "rbac.authorization.k8s.io/v1")

    def rule(n):
        return {"verbs": ["get"], "apiGroups": [""], "resources": ["x" * n]}

    reply = c.request("POST", roles, {"metadata": {"name": "x"}, "rules": [rule(1600000)]})[1]
    check_equal((reply["code"], reply["message"]), (500, "etcdserver: request is too large"), "too large")
    c.do("POST", roles, {"metadata": {"name": "x"}, "rules": [rule(1400000)]})
    reply = c.request("PATCH", roles + "/x", [{"op": "add", "path": "/rules/-", "value": rule(400000)}], JSON_PATCH)[1]
    check_equal((reply["code"], reply["message"]), (500, "etcdserver: request is too large"), "too large by a patch")


# ---- update -----------------------------------------------------------------------------------------------------------------------------------------


@case("update: an old version is 409, the same again keeps the version, no version wins; name, namespace and uid are those of the object")
def update(suite):
    p, c = Place(suite), suite.cluster
    old = p.make_map("m")
    check_equal(c.do("PUT", p.maps + "/m", old)["metadata"]["resourceVersion"], old["metadata"]["resourceVersion"], "the version of an unchanged update")
    new = c.do("PUT", p.maps + "/m", {**old, "data": {"a": "2"}})
    check(int(new["metadata"]["resourceVersion"]) > int(old["metadata"]["resourceVersion"]), "a change is a new version")
    check_equal((new["data"], new["metadata"]["uid"], new["metadata"]["creationTimestamp"]),
                ({"a": "2"}, old["metadata"]["uid"], old["metadata"]["creationTimestamp"]), "the new object")
    reply = refused(c, 409, f'Operation cannot be fulfilled on configmaps "m": {MODIFIED}', "PUT", p.maps + "/m", {**old, "data": {"a": "3"}})
    check_equal(reply["details"], {"name": "m", "kind": "configmaps"}, "details")
    for version in ("", "0"):
        value = {**new, "metadata": {**new["metadata"], "resourceVersion": version}, "data": {"a": "v" + version}}
        check_equal(c.do("PUT", p.maps + "/m", value)["data"], {"a": "v" + version}, f"version {version!r}")
    dry = c.do("PUT", p.maps + "/m?dryRun=All", {"metadata": {"name": "m"}, "data": {"a": "dry"}})
    check_equal((dry["data"], c.get(p.maps + "/m")["data"]), ({"a": "dry"}, {"a": "v0"}), "dryRun")
    place = {"metadata": {"name": "m"}}
    refused(c, 400, "the name of the object (m) does not match the name on the URL (x)", "PUT", p.maps + "/x", place)
    refused(c, 400, "the namespace of the provided object does not match the namespace sent on the request", "PUT", p.maps + "/m",
            {"metadata": {"name": "m", "namespace": "other"}})
    refused(c, 404, 'configmaps "x" not found', "PUT", p.maps + "/x", {"metadata": {"name": "x"}})
    refused(c, 409, re.compile(rf'Operation cannot be fulfilled on configmaps "m": StorageError: invalid object, Code: 4, Key: /registry/configmaps/{p.ns}/m, '
                               rf'ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {NO_UID}, UID in object meta: {UID}'),
            "PUT", p.maps + "/m", {"metadata": {"name": "m", "uid": NO_UID}})
    check_equal(c.request("PUT", p.maps + "/m", {"metadata": {"name": "m", "resourceVersion": "x"}})[0], 500, "a version that is none")


@case("update: a pod's status changes by /status alone and nothing else does there; the spec has its few fields, and generation counts them")
def status_and_generation(suite):
    p, c = Place(suite), suite.cluster
    old = p.make_pod("p")
    pod = copy.deepcopy(old)
    pod["status"]["phase"] = "Running"
    pod["metadata"]["labels"] = {"x": "y"}
    pod = c.do("PUT", p.pods + "/p", pod)
    check_equal((pod["status"]["phase"], pod["metadata"]["labels"], pod["metadata"]["generation"]), ("Pending", {"x": "y"}, 1), "PUT of the object")
    refused(c, 409, f'Operation cannot be fulfilled on pods "p": {MODIFIED}', "PUT", p.pods + "/p/status", old)
    pod["status"]["phase"] = "Running"
    pod["spec"]["nodeName"] = "n"
    pod = c.do("PUT", p.pods + "/p/status", pod)
    check_equal((pod["status"]["phase"], pod["spec"].get("nodeName"), pod["metadata"]["generation"]), ("Running", None, 1), "PUT of the status")
    refused(c, 404, 'pods "no" not found', "PATCH", p.pods + "/no/status", {"status": {}}, MERGE)
    may_not = starts('Pod "p" is invalid: spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,')
    for change in ({"nodeName": "n"}, {"containers": [{**pod["spec"]["containers"][0], "command": ["x"]}]}):
        refused(c, 422, may_not, "PATCH", p.pods + "/p", {"spec": change}, MERGE, causes=[("spec", "FieldValueForbidden")])
    pod = c.do("PATCH", p.pods + "/p", {"spec": {"containers": [{"name": "main", "image": "other"}]}}, STRATEGIC)
    check_equal((pod["spec"]["containers"][0]["image"], pod["metadata"]["generation"]), ("other", 2), "the image may change")
    # A Deployment's generation is of its spec; its /status leaves the metadata alone too.
    path = p.of("deployments", "apps/v1")
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    made = c.do("POST", path, {"metadata": {"name": "d"}, "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}})
    check_equal(made["metadata"]["generation"], 1, "generation")
    wait_until(lambda: c.get(path + "/d")["status"].get("observedGeneration") == 1, "the Deployment is observed", 10)
    generation = [c.do("PATCH", path + "/d", change, MERGE)["metadata"]["generation"] for change in ({"metadata": {"labels": {"x": "y"}}}, {"spec": {"paused": True}})]
    check_equal(generation, [1, 2], "generation after a label, after a field")
    got = c.do("PATCH", path + "/d/status", {"metadata": {"labels": {"z": "z"}}, "spec": {"replicas": 9}, "status": {"replicas": 3}}, MERGE)
    check_equal((got["metadata"]["generation"], got["metadata"]["labels"], got["spec"]["replicas"], got["status"]["replicas"]), (2, {"x": "y"}, 0, 3), "/status")
    node = suite.node(f"{p.ns}-n")
    check_equal(c.do("PATCH", f"/api/v1/nodes/{node}", {"status": {"capacity": {"cpu": "99"}}}, MERGE)["status"]["capacity"]["cpu"], "4", "a node's status")
    got = c.do("PATCH", f"/api/v1/nodes/{node}/status", {"spec": {"unschedulable": True}, "status": {"capacity": {"cpu": "99"}}}, MERGE)
    check_equal((got["status"]["capacity"]["cpu"], got["spec"].get("unschedulable")), ("99", None), "a node's /status")


@case("update: PUT makes leases, services and roles and nothing else; some want a version; a body without a name is 400; a job keeps its selector")
def puts(suite):
    p, c = Place(suite), suite.cluster
    named = {"metadata": {"name": "x"}}
    pod_spec = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    job = {**named, "spec": {"suspend": True, "template": {"spec": pod_spec}}}
    for resource, group, more in (("leases", "coordination.k8s.io/v1", {}), ("services", "", {"spec": {"ports": [{"port": 80}]}}),
                                  ("roles", "rbac.authorization.k8s.io/v1", {}), ("limitranges", "", {"spec": {"limits": []}})):
        path = p.of(resource, group) + "/x"
        check_equal(c.request("PUT", path, {**named, **more})[0], 201, f"PUT makes {resource}")
    for resource, group, more in (("configmaps", "", {}), ("pods", "", {"spec": pod_spec}), ("jobs", "batch/v1", {"spec": job["spec"]})):
        name = resource + ("." + group.split("/")[0] if group else "")
        refused(c, 404, f'{name} "x" not found', "PUT", p.of(resource, group) + "/x", {**named, **more})
    refused(c, 422, 'leases.coordination.k8s.io "x" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update', "PUT",
            p.of("leases", "coordination.k8s.io/v1") + "/x", named)
    p.make_map("m")
    undeterminable = "the name of the object (m based on URL) was undeterminable: name must be provided"
    refused(c, 400, undeterminable, "PUT", p.maps + "/m", {})
    refused(c, 400, undeterminable, "PATCH", p.maps + "/m", {"metadata": None}, MERGE)
    c.do("POST", p.of("jobs", "batch/v1"), job)
    reply = refused(c, 422, starts('Job.batch "x" is invalid: [spec.selector: Required value, '), "PUT", p.of("jobs", "batch/v1") + "/x", job)
    check_equal(reply["details"]["causes"][0]["field"], "spec.selector", "the selector is made once")
    p.make_pod("p")
    for field, value, shown in (("deletionTimestamp", "2026-01-01T00:00:00Z", '"2026-01-01T00:00:00Z"'), ("deletionGracePeriodSeconds", 5, "5")):
        refused(c, 422, f'Pod "p" is invalid: metadata.{field}: Invalid value: {shown}: field is immutable', "PATCH", p.pods + "/p",
                {"metadata": {field: value}}, MERGE)
    path = "/api/v1/namespaces/" + p.ns
    check_equal(c.do("PATCH", path, {"spec": {"finalizers": ["x.io/f"]}}, MERGE)["spec"], {"finalizers": ["kubernetes"]}, "a namespace's spec")
    refused(c, 405, NOT_ALLOWED, "GET", path + "/finalize")
    refused(c, 422, f'Namespace "{p.ns}" is invalid: spec.finalizers[0]: Invalid value: "nope": name is neither a standard finalizer name nor is it fully qualified', "PUT",
            path + "/finalize", {"metadata": {"name": p.ns}, "spec": {"finalizers": ["nope"]}})


@case("scale: replicas by PUT and PATCH, dryRun shows and changes nothing; another object, version, kind or number is refused")
def scales(suite):
    p, c = Place(suite), suite.cluster
    deployments = p.of("deployments", "apps/v1")
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    made = c.do("POST", deployments, {"metadata": {"name": "d"}, "spec": {"paused": True, "replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}})
    path = deployments + "/d/scale"

    def body(n, **meta):
        return {"metadata": {"name": "d", **meta}, "spec": {"replicas": n}}

    got = c.do("PUT", path + "?dryRun=All", body(7))
    check_equal((got["kind"], got["apiVersion"], got["spec"], c.get(path)["spec"]), ("Scale", "autoscaling/v1", {"replicas": 7}, {}), "a dry run")
    check_equal(c.do("PATCH", path + "?dryRun=All", {"spec": {"replicas": 3}}, MERGE)["spec"], {"replicas": 3}, "a dry run of a patch")
    refused(c, 400, "the name of the object (d based on URL) was undeterminable: name must be provided", "PUT", path, {"spec": {"replicas": 1}})
    refused(c, 400, "the namespace of the provided object does not match the namespace sent on the request", "PUT", path, body(1, namespace="other"))
    refused(c, 409, f'Operation cannot be fulfilled on deployments.apps "d": StorageError: invalid object, Code: 4, Key: /registry/deployments/{p.ns}/d, '
            f"ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {NO_UID}, UID in object meta: {made['metadata']['uid']}", "PUT", path,
            body(1, uid=NO_UID))
    refused(c, 409, f'Operation cannot be fulfilled on deployments.apps "d": {MODIFIED}', "PUT", path, body(1, resourceVersion="1"))
    refused(c, 400, 'Deployment in version "v1" cannot be handled as a Scale: converting (v1.Deployment) to (autoscaling.Scale): unknown conversion', "PUT", path,
            {"apiVersion": "apps/v1", "kind": "Deployment", **body(1)})
    refused(c, 400, 'Scale in version "v1" cannot be handled as a Scale: json: cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of type int32', "PUT",
            path, body("x"))
    refused(c, 422, starts(' "" is invalid: patch: Invalid value: '), "PATCH", path, {"spec": {"replicas": 99999999999}}, MERGE)
    check_equal(c.do("PUT", path, body(2))["spec"], {"replicas": 2}, "PUT")
    check_equal(c.do("PATCH", path, [{"op": "replace", "path": "/spec/replicas", "value": 0}], JSON_PATCH)["spec"], {}, "PATCH")


# ---- patch ------------------------------------------------------------------------------------------------------------------------------------------


@case("patch: JSON patches in order or not at all, a failed test is 422; merge patches with null; an unknown type is 415, no JSON is 400")
def patches(suite):
    p, c = Place(suite), suite.cluster
    p.make_map("m")
    path = p.maps + "/m"

    def json_patch(*steps):
        return [dict(zip(("op", "path", "value"), s)) for s in steps]

    check_equal(c.do("PATCH", path, json_patch(("add", "/data/b", "2"), ("test", "/data/b", "2"), ("replace", "/data/a", "9")), JSON_PATCH)["data"],
                {"a": "9", "b": "2"}, "JSON patch")
    for steps in ((("add", "/data/c", "3"), ("test", "/data/b", "no")), (("test", "/data/zz", "1"),), (("remove", "/data/zz"),), (("bogus", "/data/a", "1"),)):
        check_equal(refused(c, 422, REJECTED, "PATCH", path, json_patch(*steps), JSON_PATCH)["details"], {}, "details")
    check_equal(c.get(path)["data"], {"a": "9", "b": "2"}, "a patch that fails does nothing")
    refused(c, 400, "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp", "PATCH", path, {"op": "add"}, JSON_PATCH)
    for content_type in (JSON_PATCH, MERGE):
        refused(c, 400, starts("error decoding patch: "), "PATCH", path, b"[{", content_type)
    # Where it is not as in the RFC.
    for steps, expected in (((("replace", "/data/n", "1"), ("copy", "/data/c", None)), None), ((("add", "/data/c"),), {"a": "9", "b": "2", "c": ""}),
                            ((("add", "/metadata/finalizers", ["x.io/a", "x.io/b"]), ("remove", "/metadata/finalizers/-1"),
                              ("test", "/metadata/finalizers", ["x.io/a"]), ("remove", "/metadata/finalizers")), {"a": "9", "b": "2"}),
                            ((("add", "data/c", "3"),), {"a": "9", "b": "2"})):
        if expected:
            check_equal(c.do("PATCH", path + "?dryRun=All", json_patch(*steps), JSON_PATCH)["data"], expected, steps)
        else:
            refused(c, 422, REJECTED, "PATCH", path, json_patch(*steps), JSON_PATCH)
    copied = c.do("PATCH", path + "?dryRun=All", [{"op": "copy", "from": "/data/zz", "path": "/data/c"}], JSON_PATCH)["data"]
    check_equal(copied, {"a": "9", "b": "2", "c": ""}, "a copy of what is not there")
    whole = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"w": "1"}}
    refused(c, 422, REJECTED, "PATCH", path, [{"op": "add", "path": "", "value": whole}], JSON_PATCH)
    check_equal(c.do("PATCH", path + "?dryRun=All", [{"op": "replace", "path": "", "value": whole}], JSON_PATCH)["data"], {"w": "1"}, "the whole object")
    refused(c, 400, "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp", "PATCH", path, [1], JSON_PATCH)
    refused(c, 413, "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001", "PATCH", path,
            json_patch(*[("add", "/data/c", "3")] * 10001), JSON_PATCH)
    before = c.get(path)["metadata"]["resourceVersion"]
    check_equal(c.do("PATCH", path, {}, MERGE)["metadata"]["resourceVersion"], before, "the version after a patch that changes nothing")
    check_equal(c.do("PATCH", path, {"data": {"a": None, "c": "3"}}, MERGE)["data"], {"b": "2", "c": "3"}, "merge patch")
    check_equal(c.do("PATCH", path + "?dryRun=All", {"data": {"b": "dry"}}, MERGE)["data"]["b"], "dry", "dryRun")
    check_equal(c.get(path)["data"]["b"], "2", "after dryRun")
    refused(c, 409, f'Operation cannot be fulfilled on configmaps "m": {MODIFIED}', "PATCH", path,
            {"metadata": {"resourceVersion": before}, "data": {"x": "y"}}, MERGE)
    refused(c, 422, f'ConfigMap "m" is invalid: metadata.uid: Invalid value: "{NO_UID}": field is immutable', "PATCH", path, {"metadata": {"uid": NO_UID}}, MERGE)
    refused(c, 400, "the name of the object (x) does not match the name on the URL (m)", "PATCH", path, {"metadata": {"name": "x"}}, MERGE)
    refused(c, 422, starts(' "" is invalid: patch: Invalid value: '), "PATCH", path, {"kind": "Secret"}, MERGE)
    refused(c, 422, starts(' "" is invalid: patch: Invalid value: '), "PATCH", path, {"data": "x"}, MERGE)
    refused(c, 422, starts(' "" is invalid: patch: Invalid value: '), "PATCH", path, {"data": {"x": 1}}, MERGE)
    refused(c, 404, 'configmaps "no" not found', "PATCH", p.maps + "/no", {}, MERGE)
    for content_type in ("application/json", "text/plain"):
        refused(c, 415, "415: Unsupported Media Type", "PATCH", path, {}, content_type)
    refused(c, 422, 'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch', "PATCH", path + "?force=true", {}, MERGE)


@case("patch: strategic: containers by name, conditions by type with their order, tolerations as a whole, finalizers as a set, and the directives")
def strategic(suite):
    p, c = Place(suite), suite.cluster
    body = pod_body("s", {"finalizers": ["x.io/a"], "labels": {"a": "1"}})
    body["spec"]["containers"].append({"name": "side", "image": "i2"})
    c.do("POST", p.pods, body)
    path = p.pods + "/s"

    def patch(change, sub=""):
        return c.do("PATCH", path + sub, change, STRATEGIC)

    got = patch({"spec": {"containers": [{"name": "side", "image": "i3"}]}})
    check_equal([(x["name"], x["image"]) for x in got["spec"]["containers"]], [("main", "busybox:test"), ("side", "i3")], "containers")
    got = patch({"spec": {"tolerations": got["spec"]["tolerations"] + [{"key": "k", "operator": "Exists"}]}})
    check_equal([t["key"] for t in got["spec"]["tolerations"]], ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "k"], "tolerations")
    for change, expected in (({"conditions": [{"type": "A", "status": "True"}]}, ["A=True"]),
                             ({"conditions": [{"type": "B", "status": "True"}, {"type": "A", "status": "False"}]}, ["B=True", "A=False"]),
                             ({"conditions": [{"type": "C", "status": "True"}]}, ["C=True", "B=True", "A=False"]),
                             ({"conditions": [{"type": "A", "$patch": "delete"}]}, ["C=True", "B=True"]),
                             ({"$setElementOrder/conditions": [{"type": "B"}, {"type": "C"}, {"type": "D"}], "conditions": [{"type": "D", "status": "True"}]},
                              ["B=True", "C=True", "D=True"])):
        got = patch({"status": change}, "/status")["status"]["conditions"]
        check_equal([f"{x['type']}={x['status']}" for x in got], expected, change)
        check_equal([(x["lastProbeTime"], x["lastTransitionTime"]) for x in got], [(None, None)] * len(got), "times of conditions that say none")
    check_equal(patch({"metadata": {"finalizers": ["x.io/b"]}})["metadata"]["finalizers"], ["x.io/b", "x.io/a"], "finalizers")
    check_equal(patch({"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.io/b", "x.io/a"]}})["metadata"].get("finalizers"), None, "finalizers taken off")
    check_equal(patch({"metadata": {"labels": {"$patch": "replace", "z": "1"}}})["metadata"]["labels"], {"z": "1"}, "$patch replace")
    check_equal(patch({"metadata": {"annotations": {"$patch": "replace", "z": "1"}}})["metadata"].get("annotations"), None, "$patch where nothing was")
    for change, message in (({"metadata": {"labels": {"$patch": "merge", "y": "1"}}}, "unknown patch type: merge in map: map[$patch:merge y:1]"),
                            ({"metadata": {"$setElementOrder/finalizers": "x", "finalizers": ["x.io/a"]}}, "expected a []interface {}, but received a string")):
        reply = c.request("PATCH", path, change, STRATEGIC)[1]
        check_equal((reply["code"], reply["message"]), (500, message), change)
    check_equal(c.request("PATCH", path, {"metadata": {"$setElementOrder/finalizers": ["x.io/b"], "finalizers": ["x.io/a"]}}, STRATEGIC)[0], 500,
                "an order that does not name what the patch has")
    refused(c, 422, 'Pod "s" is invalid: spec.containers: Forbidden: pod updates may not add or remove containers', "PATCH", path,
            {"spec": {"containers": [{"name": "new", "image": "i"}]}}, STRATEGIC)
    reply = c.request("PATCH", path, {"spec": {"containers": [{"image": "i"}]}}, STRATEGIC)[1]
    check_equal((reply["code"], reply["message"]), (500, "map: map[image:i] does not contain declared merge key: name"), "an element without its key")


@case("patch: apply creates, owns its fields and takes back what it no longer names; another's field is a conflict unless forced")
def apply(suite):
    p, c = Place(suite), suite.cluster

    def body(**data):
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ap"}, "data": data}

    def managers(got):
        return {m["manager"]: (m["operation"], m["fieldsV1"]) for m in got["metadata"]["managedFields"]}

    path = p.maps + "/ap?fieldManager="
    refused(c, 422, 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch', "PATCH", p.maps + "/ap", body(a="1"), APPLY,
            causes=[("fieldManager", "FieldValueRequired")])
    status, got = c.request("PATCH", path + "m1", body(a="1", b="1"), APPLY)
    check_equal((status, got["data"], managers(got)), (201, {"a": "1", "b": "1"}, {"m1": ("Apply", {"f:data": {"f:a": {}, "f:b": {}}})}), "created")
    status, got = c.request("PATCH", path + "m1", body(a="2"), APPLY)
    check_equal((status, got["data"], managers(got)), (200, {"a": "2"}, {"m1": ("Apply", {"f:data": {"f:a": {}}})}), "b is no longer wanted")
    got = c.do("PATCH", path + "m2", body(c="2"), APPLY)
    check_equal((got["data"], managers(got)["m2"]), ({"a": "2", "c": "2"}, ("Apply", {"f:data": {"f:c": {}}})), "another's own field")
    reply = refused(c, 409, 'Apply failed with 1 conflict: conflict with "m1": .data.a', "PATCH", path + "m2", body(a="9"), APPLY)
    check_equal(reply["details"]["causes"], [{"reason": "FieldManagerConflict", "message": 'conflict with "m1"', "field": ".data.a"}], "causes")
    got = c.do("PATCH", path + "m2&force=true", body(a="9"), APPLY)
    check_equal((got["data"], managers(got)), ({"a": "9"}, {"m2": ("Apply", {"f:data": {"f:a": {}}})}), "forced: m1 has nothing left")
    got = c.do("PATCH", path + "m3", body(a="9"), APPLY)
    check_equal(sorted(managers(got)), ["m2", "m3"], "the same value is shared")
    check_equal(c.do("PATCH", path + "m2", body(), APPLY)["data"], {"a": "9"}, "one of two owners goes, the field stays")
    refused(c, 400, "invalid object type: /, Kind=", "PATCH", path + "m2", {"metadata": {"name": "ap"}}, APPLY)
    refused(c, 400, "the name of the object (zz) does not match the name on the URL (ap)", "PATCH", path + "m2", {**body(), "metadata": {"name": "zz"}}, APPLY)
    refused(c, 400, "metadata.managedFields must be nil", "PATCH", path + "m2", {**body(), "metadata": {"name": "ap", "managedFields": []}}, APPLY)
    refused(c, 400, starts("error decoding YAML: "), "PATCH", path + "m2", b"{", APPLY)
    for meta, code, message in (({"resourceVersion": "1"}, 409, f'Operation cannot be fulfilled on configmaps "ap": {MODIFIED}'),
                                ({"namespace": "other"}, 400, "the namespace of the provided object does not match the namespace sent on the request"),
                                ({"uid": NO_UID}, 422, f'ConfigMap "ap" is invalid: metadata.uid: Invalid value: "{NO_UID}": field is immutable')):
        refused(c, code, message, "PATCH", path + "m2", {**body(), "metadata": {"name": "ap", **meta}}, APPLY)
    unknown = c.request("PATCH", path + "m2", {**body(), "bogus": 1}, APPLY)[1]
    check_equal((unknown["code"], unknown["message"]),
                (500, "failed to create typed patch object (/ap; /v1, Kind=ConfigMap): .bogus: field not declared in schema"), "an unknown field")
    refused(c, 422, 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes', "PATCH", path + "x" * 129, body(), APPLY)
    refused(c, 400, "invalid object type: /, Kind=", "PATCH", path + "m2", b"", APPLY)
    refused(c, 409, f'Operation cannot be fulfilled on configmaps "new": uid mismatch: the provided object specified uid {NO_UID}, and no existing object was found',
            "PATCH", p.maps + "/new?fieldManager=m1", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new", "uid": NO_UID}}, APPLY)
