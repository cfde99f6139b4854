# SPDX-License-Identifier: Apache-2.0
"""The API itself, verb by verb: what every other test takes for granted. Here what only reads; suite_api_writes and suite_api_pods go on.

Each case is a list of requests with what a real API server (1.36) answers. It runs against the real one to prove that this is the truth, and against cosched-local
to prove that it says the same: status code, reason, and the sentence wherever it does not contain what differs from server to server (a diff, a JSON parser's words).
"""
import copy
import re
import threading
import time

from api_requests import NOT_ALLOWED, NOT_FOUND, Place, binding, names, query, refused, starts, watch
from harness import MERGE, case, check, check_equal, wait_until


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
    # A server also sends bookmarks of its own accord, shortly before a watch ends.
    wanted = lambda events: [(kind, o) for kind, o in events if kind != "BOOKMARK" or "annotations" in o["metadata"]]
    events = wanted(watch(c, p.maps, sendInitialEvents="true", **initial))
    check_equal([(kind, o["metadata"].get("name"), o["metadata"].get("annotations")) for kind, o in events],
                [("ADDED", "m", None), ("ADDED", "n", None), ("BOOKMARK", None, {"k8s.io/initial-events-end": "true"})], "sendInitialEvents=true")
    check_equal(wanted(watch(c, p.maps, sendInitialEvents="false", **initial)), [], "sendInitialEvents=false")
    future = watch(c, p.maps, sendInitialEvents="true", resourceVersion="99999999", timeoutSeconds=8, **initial)
    check_equal([(kind, o.get("code"), o.get("reason")) for kind, o in future], [("ERROR", 504, "Timeout")], "all there is at a version that is not yet")


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
