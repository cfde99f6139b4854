# SPDX-License-Identifier: Apache-2.0
"""What the suites of the API share: a namespace with its paths, bodies, a watch that ends, and the answer of what is refused, checked whole."""
import json
import re
import urllib.parse

from harness import check, check_equal

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
