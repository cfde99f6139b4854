# SPDX-License-Identifier: Apache-2.0
"""What the chart grants our programs, what they ask for, and whether the two are the same: by the API server's audit log."""
import json
import os

from harness import Failed, check

HOME = "cosched-system"
ACCOUNTS = {f"system:serviceaccount:{HOME}:cosched-{name}": name for name in ("scheduler", "webhook", "device-plugin")}


BY_NAME = {"leases", "secrets", "mutatingwebhookconfigurations", "validatingwebhookconfigurations"}


def audit_arguments(directory, log):
    """For `k8s up`: the API server writes down who of ours asked for what, and what came of it."""
    policy = os.path.join(directory, os.path.basename(log) + ".policy.json")
    with open(policy, "w", encoding="utf-8") as f:
        json.dump({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
                   "rules": [{"level": "Metadata", "users": list(ACCOUNTS)}, {"level": "None"}]}, f)
    return [f"--apiserver-arg=--audit-policy-file={policy}", f"--apiserver-arg=--audit-log-path={log}", "--apiserver-arg=--audit-log-mode=blocking"]


def of_roles(roles):
    """{program: {(verb, resource)}} of the Roles and ClusterRoles that are called cosched-PROGRAM."""
    found = {name: set() for name in ACCOUNTS.values()}
    for role in roles:
        name = role["metadata"]["name"].removeprefix("cosched-")
        if name not in found or not role["metadata"]["name"].startswith("cosched-"):
            continue
        for rule in role["rules"]:
            groups = [g + "/" if g else "" for g in rule["apiGroups"]]
            found[name] |= {(verb, group + resource) for verb in rule["verbs"] for group in groups for resource in rule["resources"]}
    return found


def of_cluster(c):
    """As the API server has them now."""
    paths = ("/apis/rbac.authorization.k8s.io/v1/clusterroles", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{HOME}/roles")
    return of_roles(role for path in paths for role in c.get(path)["items"])


def is_refused(entry):
    """Refused for lack of rights, or by one of our admission policies. A namespace that is going takes nothing new from anybody, whatever his rights."""
    status = entry.get("responseStatus", {})
    return status.get("code") == 401 or (status.get("code") == 403 and "being terminated" not in status.get("message", ""))


def of_log(*paths):
    """({program: {(verb, resource)}} that was asked for, [sentence about a request that was refused], number of requests).

    An API server that is starting refuses for a moment what it allows before and after, because it does not know the roles yet: a refusal counts only if the same was never allowed. The
    same is the verb and the resource, and the name where rights are granted by name."""
    used, refused, allowed, requests = {name: set() for name in ACCOUNTS.values()}, {}, set(), 0
    for path in paths:
        with open(path, encoding="utf-8") as f:
            for line in f:
                entry = json.loads(line)
                ref, name = entry.get("objectRef"), ACCOUNTS.get(entry["user"]["username"])
                # Requests of a case that has taken an account's token are not the program's: Python's say no agent.
                if not name or not ref or entry.get("impersonatedUser") or not entry.get("userAgent"):
                    continue
                requests += 1
                group = ref["apiGroup"] + "/" if ref.get("apiGroup") else ""
                resource = group + ref["resource"] + ("/" + ref["subresource"] if ref.get("subresource") else "")
                same = (name, entry["verb"], resource, ref.get("name") if ref["resource"] in BY_NAME else None)
                used[name].add((entry["verb"], resource))
                # A PUT that makes the object: the API server asks for "create" as well, and writes down "update".
                if entry["verb"] == "update" and entry.get("responseStatus", {}).get("code") == 201:
                    used[name].add(("create", resource))
                if is_refused(entry):
                    refused.setdefault(same, f"{name}: {entry['verb']} {entry['requestURI']}: {entry['responseStatus'].get('message')}")
                else:
                    allowed.add(same)
    return used, [sentence for same, sentence in refused.items() if same not in allowed], requests


def judge(granted, used, refused, idle_matters=True):
    """Fails when a right is missing (a request was refused) or superfluous (never used); returns the number of rights."""
    check(not refused, f"{len(refused)} requests were refused, the first: {refused[:3]}")
    for name, mine in granted.items():
        check(mine, f"no role of {name} was found")
        idle = mine - used[name]
        check(not idle or not idle_matters, f"{name} was granted what it never used: {sorted(idle)}")
    return sum(map(len, granted.values()))


def judge_can_fail(granted, used):
    """The judgement itself is tried: one right more is found, and so is one request that was refused."""
    for more, refused, words in (({("delete", "secrets")}, [], "never used: [('delete', 'secrets')]"), (set(), ["webhook: list nodes"], "1 requests were refused")):
        try:
            judge({**granted, "webhook": granted["webhook"] | more}, used, refused)
        except Failed as e:
            check(words in str(e), f"the judgement says: {e}")
            continue
        raise Failed(f"nobody noticed {more or refused}")
