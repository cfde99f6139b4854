# SPDX-License-Identifier: Apache-2.0
"""The API itself, verb by verb: what every other test takes for granted.

Each case is a list of requests with what a real API server (1.36) answers. It runs against the real one to prove that this is the truth, and against cosched-local
to prove that it says the same: status code, reason, and the sentence wherever it does not contain what differs from server to server (a diff, a JSON parser's words).
"""
import contextlib
import copy
import json
import re
import threading
import time
import urllib.parse

from harness import MERGE, STRATEGIC, case, check, check_equal, wait_until

JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
NO_UID = "11111111-1111-1111-1111-111111111111"
UID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
REASONS = {400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 405: "MethodNotAllowed", 409: "Conflict",
           410: "Expired", 413: "RequestEntityTooLarge", 415: "UnsupportedMediaType", 422: "Invalid", 429: "TooManyRequests", 504: "Timeout"}
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
NOT_ALLOWED = "the server does not allow this method on the requested resource"
NOT_FOUND = "the server could not find the requested resource"
REJECTED = "the server rejected our request due to an error in our request"


class Place:
    """A namespace, and the paths in it."""

    def __init__(self, suite):
        self.cluster = suite.cluster
        self.ns = suite.namespace()
        self.maps = self.of("configmaps")
        self.pods = self.of("pods")

    def of(self, resource, group=""):
        return f"/apis/{group}/namespaces/{self.ns}/{resource}" if group else f"/api/v1/namespaces/{self.ns}/{resource}"

    def make_map(self, name, **meta):
        return self.cluster.do("POST", self.maps, {"metadata": {"name": name, **meta}, "data": {"a": "1"}})

    def make_pod(self, name, meta=None, **spec):
        return self.cluster.do("POST", self.pods, pod_body(name, meta, **spec))

    def version(self):
        return self.cluster.get(self.maps)["metadata"]["resourceVersion"]


def pod_body(name, meta=None, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **(meta or {})},
            "spec": {"containers": [{"name": "main", "image": "busybox:test"}], "schedulerName": "nobody", **spec}}


def refused(c, code, message, method, path, body=None, content_type="application/json", reason=None, causes=None):
    """The Status of a request that fails. message: the sentence, or a compiled pattern for all of it; causes: those of its details."""
    what = f"{method} {path}"
    status, reply = c.request(method, path, body, content_type)
    check_equal(status, code, f"{what}: {reply}")
    check(isinstance(reply, dict), what, "is answered with no JSON:", reply)
    check_equal({k: reply.get(k) for k in ("kind", "apiVersion", "metadata", "status", "code")},
                {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code}, what)
    check_equal(reply.get("reason"), reason or REASONS.get(code), f"{what}: the reason ({reply})")
    if isinstance(message, str):
        check_equal(reply.get("message"), message, f"{what}: the sentence")
    else:
        check(message.fullmatch(reply.get("message", "")), f"{what}: the sentence should match /{message.pattern}/, got {reply.get('message')!r}")
    if causes is not None:
        check_equal([(x.get("field"), x.get("reason")) for x in reply.get("details", {}).get("causes", [])], causes, f"{what}: causes")
    return reply


def starts(text):
    return re.compile(re.escape(text) + ".*", re.S)


def names(reply):
    return [o["metadata"]["name"] for o in reply["items"]]


def query(**args):
    return "?" + urllib.parse.urlencode(args)


def watch(c, path, **args):
    """The events of a watch as (type, object), until it ends by itself."""
    status, text = c.request("GET", path + query(watch=1, **{"timeoutSeconds": 1, **args}), decode=False)
    check_equal(status, 200, f"watch {path}: {text}")
    return [(e["type"], e["object"]) for e in (json.loads(line) for line in text.splitlines())]


def binding(place, pod, node, meta=None, **options):
    return "POST", f"{place.pods}/{pod}/binding{query(**options) if options else ''}", {
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod, **(meta or {})}, "target": {"apiVersion": "v1", "kind": "Node", "name": node}}


# ---- get and list -----------------------------------------------------------------------------------------------------------------------------------


@case("get: what is not there is 404 with its resource, group and name; a version that is no number is an error; HEAD is not for reading")
def get_one(suite):
    p, c = Place(suite), suite.cluster
    reply = refused(c, 404, 'deployments.apps "no" not found', "GET", p.of("deployments", "apps/v1") + "/no")
    check_equal(reply["details"], {"name": "no", "group": "apps", "kind": "deployments"}, "details")
    check_equal(refused(c, 404, 'pods "no" not found', "GET", p.pods + "/no")["details"], {"name": "no", "kind": "pods"}, "details")
    refused(c, 404, 'nodes "no-such" not found', "GET", "/api/v1/nodes/no-such")
    p.make_map("m")
    got = c.get(p.maps + "/m")
    check_equal((got["apiVersion"], got["kind"], got["data"]), ("v1", "ConfigMap", {"a": "1"}), "the object")
    refused(c, 500, 'resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax', "GET", p.maps + "/m?resourceVersion=x")
    check_equal(c.request("HEAD", p.maps + "/m", decode=False)[0], 405, "HEAD")


@case("list: pages of one version by limit and continue, none twice and none missing, though the objects change meanwhile")
def pages(suite):
    p, c = Place(suite), suite.cluster
    for i in range(5):
        p.make_map(f"m{i}", labels={"t": "p"})
    mine = p.maps + "?labelSelector=t"
    one = c.get(mine + "&limit=2")
    check_equal((one["kind"], names(one)), ("ConfigMapList", ["m0", "m1"]), "page 1")
    check("kind" not in one["items"][0] and "apiVersion" not in one["items"][0], "items of a list say no kind:", one["items"][0])
    check("remainingItemCount" not in one["metadata"], "with a selector nobody counts what remains")
    c.do("DELETE", p.maps + "/m2")
    c.do("PATCH", p.maps + "/m3", {"data": {"a": "new"}}, MERGE)
    p.make_map("m35", labels={"t": "p"})
    two = c.get(mine + "&limit=2&continue=" + one["metadata"]["continue"])
    check_equal((names(two), two["items"][1]["data"]["a"]), (["m2", "m3"], "1"), "page 2 is of the version of page 1")
    rest = c.get(mine + "&continue=" + two["metadata"]["continue"])
    check_equal((names(rest), rest["metadata"].get("continue")), (["m4"], None), "the rest, without a limit")
    check_equal({x["metadata"]["resourceVersion"] for x in (one, two, rest)}, {one["metadata"]["resourceVersion"]}, "versions of the pages")
    whole = c.get(p.maps + "?limit=1")
    check_equal(whole["metadata"]["remainingItemCount"], len(c.get(p.maps)["items"]) - 1, "remainingItemCount")
    refused(c, 400, "specifying resource version is not allowed when using continue", "GET",
            mine + f"&limit=2&resourceVersion={one['metadata']['resourceVersion']}&continue=" + one["metadata"]["continue"])
    refused(c, 400, starts("invalid continue token: continue key is not valid: "), "GET", mine + "&limit=2&continue=xyz")
    refused(c, 400, starts("invalid continue token: continue key is not valid: server does not recognize this encoded version "), "GET",
            mine + "&limit=2&continue=eyJhIjoxfQ")
    refused(c, 400, 'strconv.ParseInt: parsing "x": invalid syntax', "GET", mine + "&limit=x")


@case("list: resourceVersion 0 is the whole list whatever the limit; Exact is of that version; wrong ones are 400 and 422")
def versions(suite):
    p, c = Place(suite), suite.cluster
    p.make_map("m", labels={"t": "p"})
    mine = p.maps + "?labelSelector=t"
    before = c.get(mine)["metadata"]["resourceVersion"]
    p.make_map("n", labels={"t": "p"})
    now = c.get(mine)["metadata"]["resourceVersion"]
    check(int(now) > int(before), f"the list's version grows: {before}, {now}")
    wait_until(lambda: names(c.get(mine + "&resourceVersion=0&limit=1")) == ["m", "n"], "all of it at version 0", 5)
    check_equal(names(c.get(mine + f"&resourceVersion={before}&resourceVersionMatch=Exact")), ["m"], "exactly then")
    check_equal(names(c.get(mine + f"&resourceVersion={before}&resourceVersionMatch=NotOlderThan")), ["m", "n"], "not older")
    refused(c, 400, 'invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax', "GET",
            mine + "&resourceVersion=x")
    invalid = 'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: '
    for args, message, why in (("resourceVersion=0&resourceVersionMatch=Exact", 'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
                                "FieldValueForbidden"),
                               ("resourceVersionMatch=Exact", "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
                                "FieldValueForbidden"),
                               ("resourceVersion=1&resourceVersionMatch=x", 'Unsupported value: "x": supported values: "Exact", "NotOlderThan", ""',
                                "FieldValueNotSupported")):
        refused(c, 422, invalid + message, "GET", f"{mine}&{args}", causes=[("resourceVersionMatch", why)])


@case("list: label selectors of every form, and what cannot be read is 400")
def label_selectors(suite):
    p, c = Place(suite), suite.cluster
    for i in range(4):
        p.make_map(f"m{i}", labels={"n": str(i), "odd": str(i % 2)})
    for selector, expected in (("n=1", "m1"), ("n==2", "m2"), ("n!=1,odd", "m0 m2 m3"), ("odd in (0)", "m0 m2"), ("odd in (0,1),n notin (0, 1)", "m2 m3"),
                               ("odd", "m0 m1 m2 m3"), ("!n,odd", ""), ("n>1", "m2 m3"), ("n<1", "m0"), ("n=9", "")):
        check_equal(" ".join(names(c.get(p.maps + query(labelSelector=selector)))), expected, selector)
    for selector in ("=", "n=1,", "n=a b", "a b", "n in 1", "n in (1", "-n=1"):
        refused(c, 400, re.compile(".+"), "GET", p.maps + query(labelSelector=selector))


@case("list: field selectors of pods, events and nodes; a field that no one selects by is 400 with its name")
def field_selectors(suite):
    p, c = Place(suite), suite.cluster
    for i in range(2):
        p.make_pod(f"p{i}")
    c.do("PATCH", p.pods + "/p1/status", {"status": {"phase": "Running"}}, MERGE)
    c.do(*binding(p, "p1", "some-node"))
    for selector, expected in (("metadata.name=p1", "p1"), ("metadata.name!=p1", "p0"), ("spec.nodeName=", "p0"), ("spec.nodeName!=", "p1"),
                               ("spec.nodeName=some-node", "p1"), ("status.phase=Pending", "p0"), ("status.phase!=Pending", "p1"),
                               ("spec.schedulerName=nobody,spec.nodeName=", "p0"), ("spec.schedulerName=other", ""), ("spec.restartPolicy=Always", "p0 p1"),
                               ("spec.serviceAccountName=default", "p0 p1"), ("spec.hostNetwork=false", "p0 p1"), ("spec.hostNetwork=true", ""),
                               ("status.nominatedNodeName=", "p0 p1"), ("status.podIP=", "p0 p1"), (f"metadata.namespace={p.ns}", "p0 p1")):
        check_equal(" ".join(names(c.get(p.pods + query(fieldSelector=selector)))), expected, selector)
    events = p.of("events")
    c.do("POST", events, {"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "p1", "namespace": p.ns, "uid": "u"}, "reason": "R",
                          "type": "Normal", "source": {"component": "c"}})
    for selector, expected in (("involvedObject.name=p1", 1), ("involvedObject.name=p2", 0), ("involvedObject.kind=Pod", 1), ("involvedObject.uid=u", 1),
                               (f"involvedObject.namespace={p.ns}", 1), ("involvedObject.fieldPath=", 1), ("reason=R,type=Normal", 1), ("type=Warning", 0),
                               ("source=c", 1), ("reportingComponent=", 1)):
        check_equal(len(c.get(events + query(fieldSelector=selector))["items"]), expected, selector)
    node = suite.node(f"{p.ns}-n")
    for selector, expected in (("spec.unschedulable=false", [node]), ("spec.unschedulable=true", []), (f"metadata.name={node}", [node])):
        check_equal(names(c.get("/api/v1/nodes" + query(labelSelector=f"pool={node}", fieldSelector=selector))), expected, selector)
    c.do("PATCH", f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}}, MERGE)
    check_equal(names(c.get("/api/v1/nodes" + query(fieldSelector="spec.unschedulable=true", labelSelector=f"pool={node}"))), [node], "cordoned")
    refused(c, 400, "field label not supported: bogus", "GET", p.pods + "?fieldSelector=bogus%3D1")
    refused(c, 400, re.compile('.*"spec.x".*|field label not supported: spec.x'), "GET", "/api/v1/nodes?fieldSelector=spec.x%3D1")
    refused(c, 400, re.compile(".*data.x.*"), "GET", p.maps + "?fieldSelector=data.x%3D1")


# ---- watch ------------------------------------------------------------------------------------------------------------------------------------------


def seen(events):
    return [(kind, o["metadata"]["name"], o["metadata"].get("labels", {}).get("a"), "deletionTimestamp" in o["metadata"]) for kind, o in events]


@case("watch: every change after a version in order; what begins and ceases to match a selector is ADDED and DELETED; it ends after timeoutSeconds")
def watching(suite):
    p, c = Place(suite), suite.cluster
    version = c.get(p.pods)["metadata"]["resourceVersion"]
    made = p.make_pod("w", {"labels": {"a": "1"}})
    for value in ("2", "1"):
        last = c.do("PATCH", p.pods + "/w", {"metadata": {"labels": {"a": value}}}, MERGE)
    c.do("DELETE", p.pods + "/w")
    results = {}

    def start(key, **args):
        thread = threading.Thread(target=lambda: results.update({key: watch(c2, p.pods, **args)}))
        c2 = copy.copy(c)
        thread.start()
        return thread

    began = time.monotonic()
    threads = [start("all", resourceVersion=version), start("selected", resourceVersion=version, labelSelector="a=1"),
               start("field", resourceVersion=version, fieldSelector="metadata.name=x"), start("later", resourceVersion=last["metadata"]["resourceVersion"])]
    for thread in threads:
        thread.join()
    took = time.monotonic() - began
    check(0.9 < took < 8, f"timeoutSeconds=1 took {took:.1f} s")
    check_equal(seen(results["all"]), [("ADDED", "w", "1", False), ("MODIFIED", "w", "2", False), ("MODIFIED", "w", "1", False), ("MODIFIED", "w", "1", True),
                                       ("DELETED", "w", "1", True)], "all")
    check_equal(seen(results["selected"]), [("ADDED", "w", "1", False), ("DELETED", "w", "1", False), ("ADDED", "w", "1", False), ("MODIFIED", "w", "1", True),
                                            ("DELETED", "w", "1", True)], "selected")
    check_equal(results["field"], [], "the others")
    check_equal(seen(results["later"]), [("MODIFIED", "w", "1", True), ("DELETED", "w", "1", True)], "from a later version")
    stream = [int(o["metadata"]["resourceVersion"]) for _, o in results["all"]]
    check(stream == sorted(set(stream)) and stream[0] == int(made["metadata"]["resourceVersion"]), "versions grow, also that of the DELETED:", stream)
    ceased = results["selected"][1][1]["metadata"]["resourceVersion"]
    check_equal(int(ceased), stream[1], "what ceases to match has the version of that change")
    check_equal(results["all"][0][1]["kind"], "Pod", "objects of a watch say their kind")


@case("watch: from nothing or 0 it begins with all there is; bookmarks come only when asked for; the future is 504")
def watch_starts(suite):
    p, c = Place(suite), suite.cluster
    version = p.version()
    results = {}

    def start(key, **args):
        thread = threading.Thread(target=lambda: results.update({key: watch(c2, p.maps, **args)}))
        c2 = copy.copy(c)
        thread.start()
        return thread

    # A real server sends a bookmark two seconds before the end, if anything of the resource ever happened.
    threads = [start("marks", resourceVersion=version, timeoutSeconds=4, allowWatchBookmarks="true"), start("none", resourceVersion=version, timeoutSeconds=4)]
    p.make_map("m")
    threads += [start("zero", resourceVersion=0, fieldSelector="metadata.name=m"), start("nothing", fieldSelector="metadata.name=m")]
    refused(c, 500, 'resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax', "GET", p.maps + "?watch=1&resourceVersion=x")
    refused(c, 400, 'strconv.ParseInt: parsing "x": invalid syntax', "GET", p.maps + "?watch=1&timeoutSeconds=x")
    reply = refused(c, 504, re.compile(r"Timeout: Too large resource version: 99999999999, current: \d+"), "GET", p.maps + "?resourceVersion=99999999999")
    check_equal(reply["details"]["retryAfterSeconds"], 1, "retryAfterSeconds")
    for thread in threads:
        thread.join()
    check_equal([kind for kind, _ in results["none"]], ["ADDED"], "without bookmarks")
    check_equal([kind for kind, _ in results["marks"]][:2], ["ADDED", "BOOKMARK"], "with bookmarks")
    kind, mark = results["marks"][-1]
    check_equal((kind, sorted(mark), mark["kind"], sorted(mark["metadata"])), ("BOOKMARK", ["apiVersion", "kind", "metadata"], "ConfigMap", ["resourceVersion"]),
                "a bookmark")
    check(int(mark["metadata"]["resourceVersion"]) >= int(results["none"][0][1]["metadata"]["resourceVersion"]), "the bookmark's version:", mark)
    for key in ("zero", "nothing"):
        check_equal([(kind, o["metadata"]["name"]) for kind, o in results[key]], [("ADDED", "m")], key)


@case("what was forgotten: a watch from there is an ERROR event with 410, a list of then and the next page of a list are 410, and the latter can be gone on with",
      needs={"alone"})
def forgotten(suite):
    p, c = Place(suite), suite.cluster
    for i in range(3):
        p.make_map(f"m{i}", labels={"t": "p"})
    mine = p.maps + "?labelSelector=t"
    page = c.get(mine + "&limit=1")["metadata"]
    c.do("DELETE", p.maps + "/m1")
    # A real server's watch cache goes on serving what etcd has forgotten: the harness restarts the server as well.
    if c.target == "local":
        c.do("POST", "/cosched/faults", {"fault": "compact"})
    else:
        c.k8s("compact")
    old = watch(c, p.maps, resourceVersion=page["resourceVersion"])
    check_equal([kind for kind, _ in old], ["ERROR"], "a watch from a version that is forgotten")
    status = old[0][1]
    check_equal((status["kind"], status["code"], status["reason"], status["status"]), ("Status", 410, "Expired", "Failure"), "the ERROR's Status")
    check(re.fullmatch(rf"too old resource version: {page['resourceVersion']} \(\d+\)", status["message"]), status["message"])
    refused(c, 410, "The resourceVersion for the provided list is too old.", "GET",
            mine + f"&resourceVersion={page['resourceVersion']}&resourceVersionMatch=Exact")
    code, reply = c.request("GET", mine + "&limit=1&continue=" + page["continue"])
    check_equal((code, reply["reason"]), (410, "Expired"), "the next page")
    check(reply["message"].startswith("The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue "
                                      "parameter, or use the continue token in this response to retrieve the remainder of the results."), reply["message"])
    rest = c.get(mine + "&limit=5&continue=" + reply["metadata"]["continue"])
    check_equal(names(rest), ["m2"], "what is left now, by the new token")


@case("lists and watches: numbers, truths and what cannot go together are read as Go reads them; a watch of one object by its path; where a watch begins")
def list_options(suite):
    p, c = Place(suite), suite.cluster
    p.make_map("m", labels={"t": "p"})
    p.make_map("n", labels={"t": "p"})
    mine = p.maps + "?labelSelector=t"
    for args in ("limit=-1", "limit=0", "watch=false", "watch=False", "watch=0", "allowWatchBookmarks=x"):
        check_equal(names(c.get(f"{mine}&{args}")), ["m", "n"], args)
    for args, what in (("limit=", 'parsing "": invalid syntax'), ("timeoutSeconds=x", 'parsing "x": invalid syntax'),
                       ("limit=99999999999999999999", 'parsing "99999999999999999999": value out of range'), ("watch=1&limit=x", 'parsing "x": invalid syntax')):
        refused(c, 400, "strconv.ParseInt: " + what, "GET", f"{mine}&{args}")
    invalid, forbidden = 'ListOptions.meta.k8s.io "" is invalid: ', "resourceVersionMatch: Forbidden: "
    for args, what in (("sendInitialEvents=true", "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"),
                       ("resourceVersionMatch=Exact&continue=x", f"[{forbidden}resourceVersionMatch is forbidden unless resourceVersion is provided, {forbidden}"
                        "resourceVersionMatch is forbidden when continue is provided]"),
                       ("watch=1&sendInitialEvents=true", forbidden + "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
                       ("watch=1&resourceVersionMatch=x", f"[{forbidden}resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided, "
                        'resourceVersionMatch: Unsupported value: "x": supported values: "NotOlderThan"]')):
        refused(c, 422, invalid + what, "GET", f"{mine}&{args}")
    by_path = f"/api/v1/watch/namespaces/{p.ns}/configmaps"
    check_equal([(kind, o["metadata"]["name"]) for kind, o in watch(c, by_path + "/m")], [("ADDED", "m")], "one object by its path")
    refused(c, 400, "fieldSelector metadata.name doesn't match requested name", "GET", by_path + "/m?fieldSelector=metadata.name%3Dn")
    refused(c, 405, NOT_ALLOWED, "POST", by_path, {})
    initial = {"resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true", "labelSelector": "t"}
    events = watch(c, p.maps, sendInitialEvents="true", **initial)
    check_equal([(kind, o["metadata"].get("name"), o["metadata"].get("annotations")) for kind, o in events],
                [("ADDED", "m", None), ("ADDED", "n", None), ("BOOKMARK", None, {"k8s.io/initial-events-end": "true"})], "sendInitialEvents=true")
    check_equal(watch(c, p.maps, sendInitialEvents="false", **initial), [], "sendInitialEvents=false")
    future = watch(c, p.maps, sendInitialEvents="true", resourceVersion="99999999", timeoutSeconds=8, **initial)
    check_equal([(kind, o.get("code"), o.get("reason")) for kind, o in future], [("ERROR", 504, "Timeout")], "all there is at a version that is not yet")


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


# ---- who may, what is there -------------------------------------------------------------------------------------------------------------------------


@case("requests: a wrong token is 401, an unknown resource or group 404, a method that a path does not have 405")
def doors(suite):
    p, c = Place(suite), suite.cluster
    p.make_pod("p")
    stranger = copy.copy(c)
    stranger.token = "not-a-token"
    refused(stranger, 401, "Unauthorized", "GET", p.pods)
    refused(stranger, 401, "Unauthorized", "POST", p.maps, {"metadata": {"name": "x"}})
    for path in ("/api/v1/bogus", p.of("bogus"), p.pods + "/p/bogus", p.maps + "/x/status"):
        check_equal(refused(c, 404, NOT_FOUND, "GET", path)["details"], {}, "details")
    for path in ("/apis/bogus.io/v1/things", "/bogus"):
        check_equal(c.request("GET", path), (404, "404 page not found\n"), path)
    for method, path in (("POST", p.pods + "/p"), ("PUT", p.pods), ("PATCH", p.pods), ("DELETE", "/api/v1/pods"), ("POST", "/api/v1/pods"),
                         ("GET", p.pods + "/p/binding"), ("PUT", p.pods + "/p/binding"), ("GET", p.pods + "/p/eviction"), ("DELETE", p.pods + "/p/status"),
                         ("DELETE", "/api/v1/namespaces")):
        check_equal(refused(c, 405, NOT_ALLOWED, method, path, {}, MERGE if method == "PATCH" else "application/json")["details"], {}, "details")


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
