# SPDX-License-Identifier: Apache-2.0
"""The scheduler on a real API server, with nodes that are only API objects."""
import json
import re
import threading
import time

from harness import MERGE, SCHEDULER, case, check, check_equal, http_get, wait_until

INVENTORY = {"v": 1, "mode": "share", "switchingTo": None, "isolation": "none",
             "cards": [{"i": i, "uuid": f"GPU-{i}", "model": "Tesla T4", "mib": 16160, "numa": 0, "pci": f"0000:0{i}:00.0", "health": "ok"}
                       for i in range(2)],
             "links": [["X", "PIX"], ["PIX", "X"]]}


def gpu_node(suite, name, **what):
    return suite.node(name, extra={"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"},
                      annotations={"cosched.io/gpu-inventory": json.dumps(INVENTORY)}, **what)


@case("pods are bound by CPU, memory, pod count and extended resources, and no node is overfilled")
def fit(suite):
    c, ns = suite.cluster, suite.namespace()
    suite.scheduler()
    rows = [  # resource asked for, node's amounts, how many of four pods fit
        ({"cpu": "500m"}, {"cpu": "1", "memory": "8Gi", "pods": "10"}, 2, r"too little cpu \(asked: 500m, largest free: 0 "),
        ({"memory": "1Gi"}, {"cpu": "4", "memory": "3Gi", "pods": "10"}, 3, r"too little memory \(asked: 1Gi, largest free: 0 "),
        ({"cpu": "1m"}, {"cpu": "4", "memory": "8Gi", "pods": "1"}, 1, r"no pod place left"),
        ({"example.com/thing": "2"}, {"cpu": "4", "memory": "8Gi", "pods": "10", "extra": {"example.com/thing": "5"}}, 2,
         r"too little example.com/thing \(asked: 2, largest free: 1 "),
    ]
    for number, (ask, amounts, fits, _why) in enumerate(rows):
        node = suite.node(f"fit-{number}", **amounts)
        for i in range(4):
            c.create_pod(ns, f"fit-{number}-{i}", requests=ask, limits=ask, node_selector={"pool": node})
    for number, (ask, _amounts, fits, why) in enumerate(rows):
        names = [f"fit-{number}-{i}" for i in range(4)]
        wait_until(lambda n=names, f=fits: sum(c.node_of(ns, x) is not None for x in n) == f, f"{fits} of 4 pods with {ask} are bound")
        for name in names:
            if c.node_of(ns, name) is None:
                c.wait_refused(ns, name, r"^0/\d+ nodes? fit: .*" + why)
        check_equal(sum(c.node_of(ns, x) is not None for x in names), fits, f"bound pods with {ask}")


@case("a pod that does not fit says why in its condition and in one event, and other schedulers' pods are left alone")
def refusal(suite):
    c, ns = suite.cluster, suite.namespace()
    node = suite.node("refusal-1", cpu="2")
    suite.scheduler()
    c.create_pod(ns, "foreign", requests={"cpu": "100m"}, node_selector={"pool": node}, scheduler="some-other-scheduler")
    c.create_pod(ns, "big", requests={"cpu": "3"}, node_selector={"pool": node})
    c.wait_refused(ns, "big", r"too little cpu even when empty \(asked: 3, largest: 2 on refusal-1\)")
    event = wait_until(lambda: c.events(ns, "big", "FailedScheduling"), "an event says so")[0]
    check("too little cpu" in event["message"] and event["type"] == "Warning", event)
    check(c.node_of(ns, "foreign") is None and c.condition(ns, "foreign") is None, "the foreign pod was touched")


@case("/metrics has attempts by result, queue lengths, latencies of cycles, binds and from watch to bind, cache sizes, Events; classes and plugins never disagreed")
def metrics(suite):
    c, ns = suite.cluster, suite.namespace()
    node = suite.node("metrics-1", cpu="2")
    p = suite.scheduler()
    c.create_pod(ns, "big", requests={"cpu": "3"}, node_selector={"pool": node})
    c.create_pod(ns, "small", requests={"cpu": "1"}, node_selector={"pool": node})
    c.wait_bound(ns, "small")
    c.wait_refused(ns, "big", "too little cpu")
    wait_until(lambda: c.events(ns, "small", "Scheduled"), "an Event says that it was bound")
    for line in (r'attempts_total\{result="placed"\} [1-9]', r'attempts_total\{result="unschedulable"\} [1-9]', r'queue_gangs\{state="active"\} 0',
                 r'queue_gangs\{state="backoff"\} ', r'queue_gangs\{state="parked"\} [1-9]', "cycle_duration_seconds_count [1-9]", "bind_duration_seconds_count [1-9]",
                 "watch_to_bind_seconds_count [1-9]", "cached_nodes [1-9]", "cached_pods [1-9]", r'condition_writes_total\{result="written"\} [1-9]',
                 r"preemptions_total \d", "class_disagreements 0"):
        wait_until(lambda line=line: re.search("^cosched_scheduler_" + line, http_get(p.port, "/metrics")[1], re.M), f"/metrics has {line}")
    check('\ncosched_events_total{result="sent"} ' in http_get(p.port, "/metrics")[1], "Events are not counted")


@case("what asks for dynamic resource allocation is told that it is not supported: resource claims, and a resource that only a DeviceClass offers")
def dynamic_resources(suite):
    c, ns = suite.cluster, suite.namespace()
    node = suite.node("dra-1", cpu="2")
    c.do("POST", "/apis/resource.k8s.io/v1/deviceclasses", {"metadata": {"name": "dra.example.com"}, "spec": {"extendedResourceName": "example.com/dra"}})
    try:
        suite.scheduler()
        c.create_pod(ns, "extended", limits={"example.com/dra": "1"}, node_selector={"pool": node})
        c.wait_refused(ns, "extended", r"1 has example.com/dra only by dynamic resource allocation \(DeviceClass dra.example.com\), which is not supported by this scheduler")
        c.create_pod(ns, "claims", node_selector={"pool": node}, resourceClaims=[{"name": "x", "resourceClaimName": "none"}])
        c.wait_refused(ns, "claims", r"^spec.resourceClaims \(dynamic resource allocation\) is not supported by this scheduler$")
    finally:
        c.do("DELETE", "/apis/resource.k8s.io/v1/deviceclasses/dra.example.com")


@case("a waiting pod is bound when a pod goes, when a node grows, and when a node comes: events, no polling")
def room_appears(suite):
    c, ns = suite.cluster, suite.namespace()
    suite.scheduler()
    node = suite.node("room-1", cpu="1")
    c.create_pod(ns, "first", requests={"cpu": "1"}, node_selector={"pool": node})
    c.wait_bound(ns, "first")
    c.create_pod(ns, "second", requests={"cpu": "1"}, node_selector={"pool": node})
    c.wait_refused(ns, "second", "too little cpu")
    c.delete_pod(ns, "first")
    c.wait_bound(ns, "second")
    c.create_pod(ns, "third", requests={"cpu": "1"}, node_selector={"pool": node})
    c.wait_refused(ns, "third", "too little cpu")
    c.patch_node_status(node, {"cpu": "2", "memory": "8Gi", "pods": "110"})
    c.wait_bound(ns, "third")
    c.create_pod(ns, "fourth", requests={"cpu": "1"}, node_selector={"pool": "room-2"})
    c.wait_refused(ns, "fourth", "node selector")
    suite.node("room-2", cpu="1")
    check_equal(c.wait_bound(ns, "fourth"), "room-2", "fourth's node")


@case("amounts beyond everything, and bytes that nobody reads, close no node", needs={"real"})
def absurd_pods(suite):
    c, ns = suite.cluster, suite.namespace()
    node = suite.node("absurd-1", cpu="4")
    c.create_pod(ns, "huge", requests={"cpu": "1e30"}, nodeName=node)  # the API server takes that
    c.create_pod(ns, "nul", requests={"cpu": "1"}, nodeName=node, annotations={"note": "a\0b"})
    suite.scheduler()
    c.create_pod(ns, "small", requests={"cpu": "3"}, node_selector={"pool": node})
    c.wait_bound(ns, "small")
    c.create_pod(ns, "waits", requests={"cpu": "1e30"}, node_selector={"pool": node})
    c.wait_refused(ns, "waits", "too little cpu")


@case("a change that cannot help wakes nothing")
def no_useless_wakeups(suite):
    c, ns = suite.cluster, suite.namespace()
    node = suite.node("sleep-1", cpu="1")
    p = suite.scheduler()
    c.create_pod(ns, "big", requests={"cpu": "2"}, node_selector={"pool": node})
    c.wait_refused(ns, "big", "too little cpu")
    tried = lambda: sum(int(n) for n in re.findall(r'attempts_total\{[^}]*unschedulable[^}]*\} (\d+)', http_get(p.port, "/metrics")[1]))
    before = tried()
    check(before >= 1, "no attempt was counted")
    for i in range(20):  # labels and heartbeats of nodes: fit does not care
        c.do("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"annotations": {"beat": str(i)}}}, MERGE)
    c.create_pod(ns, "small", requests={"cpu": "1m"}, node_selector={"pool": node})
    c.wait_bound(ns, "small")  # so everything before it was seen
    check_equal(tried(), before, "attempts")


@case("taints, nodeSelector, node affinity and cordoned nodes are obeyed")
def constraints(suite):
    c, ns = suite.cluster, suite.namespace()
    suite.scheduler()
    suite.node("con-tainted", labels={"zone": "con"}, taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])
    suite.node("con-plain", labels={"zone": "con", "disk": "ssd", "size": "7"})
    suite.node("con-cordoned", labels={"zone": "con"}, unschedulable=True)  # from the beginning: a cordon of later may be seen after the pod
    affinity = lambda *e: {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["con"]}, *e]}]}}}}
    c.create_pod(ns, "plain", requests={"cpu": "1"}, **affinity())
    check_equal(c.wait_bound(ns, "plain"), "con-plain", "a pod without tolerations")
    c.create_pod(ns, "gt", requests={"cpu": "1"}, **affinity({"key": "size", "operator": "Gt", "values": ["6"]}))
    check_equal(c.wait_bound(ns, "gt"), "con-plain", "Gt 6")
    c.create_pod(ns, "lt", requests={"cpu": "1"}, **affinity({"key": "size", "operator": "Lt", "values": ["7"]}))
    c.wait_refused(ns, "lt", "node selector or affinity")
    c.create_pod(ns, "tolerant", requests={"cpu": "1"}, node_selector={"pool": "con-tainted"},
                 tolerations=[{"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}])
    check_equal(c.wait_bound(ns, "tolerant"), "con-tainted", "a tolerant pod")
    c.create_pod(ns, "cordoned", requests={"cpu": "1"}, node_selector={"pool": "con-cordoned"})
    c.wait_refused(ns, "cordoned", "is cordoned")
    c.do("PATCH", "/api/v1/nodes/con-cordoned", {"spec": {"unschedulable": None}}, MERGE)
    c.wait_bound(ns, "cordoned")


@case("a GPU claim arrives in the same version of the pod as its node, on a card with room")
def gpu_claims(suite):
    c, ns = suite.cluster, suite.namespace()
    suite.scheduler()
    node = gpu_node(suite, "gpu-1")
    seen = {}
    version = c.get(f"/api/v1/namespaces/{ns}/pods")["metadata"]["resourceVersion"]
    for i, gib in enumerate((9, 9, 6)):
        c.create_pod(ns, f"p{i}", limits={"aliyun.com/gpu-mem": str(gib)}, node_selector={"pool": node})
        c.wait_bound(ns, f"p{i}")
        claim = json.loads(c.pod(ns, f"p{i}")["metadata"]["annotations"]["scheduler.framework.gpushare.allocation"])
        (card, got), = claim["0"].items()
        check_equal(got, gib, f"GiB of p{i}")
        seen[card] = seen.get(card, 0) + got
        annotations = c.pod(ns, f"p{i}")["metadata"]["annotations"]
        check_equal(annotations["ALIYUN_COM_GPU_MEM_IDX"], card, "older form: card")
        check_equal(annotations["ALIYUN_COM_GPU_MEM_POD"], str(gib), "older form: GiB of the pod")
        check_equal(annotations["ALIYUN_COM_GPU_MEM_DEV"], "15", "older form: GiB of the card")
        check_equal(annotations["scheduler.framework.gpushare.assigned"], "false", "assigned")
    check(sorted(seen.values()) == [9, 15], f"binpack fills one card before the next: {seen}")
    # Every version of the pods, from the watch: none has a node without its claim.
    versions = c.watch(f"/api/v1/namespaces/{ns}/pods", version)
    bound = [p for p in versions if p["spec"].get("nodeName")]
    check(len(bound) >= 3, f"only {len(bound)} bound versions seen")
    for p in bound:
        check(p["metadata"]["annotations"].get("scheduler.framework.gpushare.allocation"), f"{p['metadata']['name']}: node without claim")
    c.create_pod(ns, "large", limits={"aliyun.com/gpu-mem": "7"}, node_selector={"pool": node})
    c.wait_refused(ns, "large", r"no card with 7 GiB of GPU memory free \(largest free: 6 GiB on gpu-1\)|too little aliyun.com/gpu-mem")


@case("the condition of a pod that waits follows what comes free on the node; each member of a gang has an Event")
def conditions_follow(suite):
    c, ns = suite.cluster, suite.namespace()
    suite.scheduler()
    node = gpu_node(suite, "follow-1")
    for name, gib in (("whole", 13), ("most", 8), ("some", 5)):
        c.create_pod(ns, name, limits={"aliyun.com/gpu-mem": str(gib)}, node_selector={"pool": node})
        c.wait_bound(ns, name)
    c.create_pod(ns, "waits", limits={"aliyun.com/gpu-mem": "12"}, node_selector={"pool": node})
    told = c.wait_refused(ns, "waits", r"1 has too little aliyun.com/gpu-mem \(asked: 12, largest free: 4 on follow-1\)")
    c.delete_pod(ns, "some")
    again = c.wait_refused(ns, "waits", r"1 has too little aliyun.com/gpu-mem \(asked: 12, largest free: 9 on follow-1\)", seconds=60)
    check_equal(told["lastTransitionTime"], again["lastTransitionTime"], "the time since when it waits")
    check_equal(len(c.events(ns, "waits", "FailedScheduling")), 1, "Events: other amounts make no other one")
    gang = {"pod-group.scheduling.sigs.k8s.io/name": "g", "pod-group.scheduling.sigs.k8s.io/min-available": "2"}
    for name in ("m0", "m1"):
        c.create_pod(ns, name, limits={"aliyun.com/gpu-mem": "7"}, node_selector={"pool": node}, labels=gang)
    for name in ("m0", "m1"):
        c.wait_refused(ns, name, r"^gang .*: room for 1 of 2 pods; pod m1: ")
        event = wait_until(lambda n=name: c.events(ns, n, "FailedScheduling"), f"an Event of {name}")[0]
        check("room for" in event["message"] or "pods exist" in event["message"], event)


@case("a node without a GPU inventory takes no shared-GPU pod and says so, until the inventory comes; a restart remembers claims")
def gpu_inventory(suite):
    c, ns = suite.cluster, suite.namespace()
    first = suite.scheduler()
    node = suite.node("inv-1", extra={"aliyun.com/gpu-mem": "30"})
    c.create_pod(ns, "a", limits={"aliyun.com/gpu-mem": "10"}, node_selector={"pool": node})
    c.wait_refused(ns, "a", "no (usable )?GPU inventory")
    c.do("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"annotations": {"cosched.io/gpu-inventory": "{not json"}}}, MERGE)
    c.do("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"annotations": {"cosched.io/gpu-inventory": json.dumps(INVENTORY)}}}, MERGE)
    c.wait_bound(ns, "a")
    first.stop()
    suite.scheduler()
    c.create_pod(ns, "b", limits={"aliyun.com/gpu-mem": "10"}, node_selector={"pool": node})
    c.wait_bound(ns, "b")
    cards = [list(json.loads(c.pod(ns, p)["metadata"]["annotations"]["scheduler.framework.gpushare.allocation"])["0"])[0] for p in "ab"]
    check(cards[0] != cards[1], f"both pods of 10 GiB are on card {cards[0]} of 15 GiB")


@case("a gang is placed whole or not at all, and says how many of its pods exist")
def gang(suite):
    c, ns = suite.cluster, suite.namespace()
    suite.scheduler()
    node = suite.node("squad-1", cpu="2")
    labels = {"pod-group.scheduling.sigs.k8s.io/name": "g", "pod-group.scheduling.sigs.k8s.io/min-available": "3"}
    for i in range(2):
        c.create_pod(ns, f"g{i}", requests={"cpu": "1"}, labels=labels, node_selector={"pool": node})
    c.wait_refused(ns, "g0", "2 of 3 pods exist", reason="WaitingForGang")
    c.create_pod(ns, "g2", requests={"cpu": "1"}, labels=labels, node_selector={"pool": node})
    c.wait_refused(ns, "g2", "room for 2 of 3 pods.*too little cpu")
    check(all(c.node_of(ns, f"g{i}") is None for i in range(3)), "a gang without room holds a node")
    suite.node("squad-2", cpu="1", labels={"pool": "squad-1"})
    for i in range(3):
        c.wait_bound(ns, f"g{i}")


@case("hostile pods and nodes (absurd amounts, wrong annotations) are refused by name and everything else goes on")
def hostile(suite):
    c, ns = suite.cluster, suite.namespace()
    p = suite.scheduler()
    node = suite.node("hostile-1", annotations={"cosched.io/gpu-inventory": "[" * 5000, "cosched.io/cpu-topology": "{}"})
    c.create_pod(ns, "huge", requests={"cpu": "9223372036854775", "memory": "8191Pi"}, node_selector={"pool": node})
    c.wait_refused(ns, "huge", "too little")
    c.create_pod(ns, "liar", requests={"cpu": "1m"}, node_selector={"pool": node},
                 annotations={"scheduler.framework.gpushare.allocation": '{"0":{"0":999999999999}}', "ALIYUN_COM_GPU_MEM_IDX": "-7"})
    c.wait_bound(ns, "liar")
    check_equal({k: v for k, v in c.pod(ns, "liar")["metadata"]["annotations"].items() if v}, {}, "what a pod claimed for itself")
    c.create_pod(ns, "badgang", requests={"cpu": "1m"}, node_selector={"pool": node},
                 labels={"pod-group.scheduling.sigs.k8s.io/name": "g", "pod-group.scheduling.sigs.k8s.io/min-available": "none"})
    c.wait_refused(ns, "badgang", "min-available", reason="WaitingForGang")
    p.stop()


@case("two replicas: the leader is ended with SIGKILL, the other takes over, nothing is bound twice", needs={"alone"})
def failover(suite):
    c, ns = suite.cluster, suite.namespace()
    lease = f"failover-{ns}"
    for i in range(4):
        suite.node(f"fo-{i}", cpu="30", labels={"pool": "fo"})
    one = suite.scheduler(lease=lease)
    one.wait_output('msg="?scheduling"?')
    two = suite.scheduler(lease=lease)
    wait_until(lambda: http_get(two.port, "/readyz")[0] == 200, "the standby is ready to stand by")
    stop = threading.Event()
    made = []

    def create():
        while not stop.is_set() and len(made) < 110:
            name = f"p{len(made)}"
            c.create_pod(ns, name, requests={"cpu": "1"}, node_selector={"pool": "fo"})
            made.append(name)
            time.sleep(0.02)

    maker = threading.Thread(target=create)
    maker.start()
    wait_until(lambda: one.output().count("pod bound") > 20, "the leader binds")
    one.kill()
    killed = time.monotonic()
    two.wait_output('msg="?scheduling"?', seconds=40)
    took = time.monotonic() - killed
    maker.join()
    for name in made:
        c.wait_bound(ns, name, seconds=30)
    check(took >= 10, f"the new leader did not wait out the lease: {took:.1f} s")
    bound = re.findall(r"msg=\"pod bound\".* pod=(\S+)", one.output()) + re.findall(r"msg=\"pod bound\".* pod=(\S+)", two.output())
    check_equal(sorted(set(bound)), sorted(bound), "pods bound, each once")
    for i in range(4):
        used = sum(p["spec"].get("nodeName") == f"fo-{i}" for p in c.pods(ns))
        check(used <= 30, f"fo-{i} has {used} pods of 1 CPU on 30 CPUs")
    two.stop()
    lease_object = c.get(f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{lease}")
    check(not lease_object["spec"].get("holderIdentity"), "SIGTERM did not release the lease")
    c.do("DELETE", f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{lease}")


@case("a leader that is paused past its lease ends at once instead of binding", needs={"alone"})
def paused_leader(suite):
    c, ns = suite.cluster, suite.namespace()
    lease = f"paused-{ns}"
    suite.node("paused-1", cpu="30")
    one = suite.scheduler(lease=lease)
    one.wait_output('msg="?scheduling"?')
    two = suite.scheduler(lease=lease)
    one.may_end = True
    one.process.send_signal(19)  # SIGSTOP
    two.wait_output('msg="?scheduling"?', seconds=40)
    c.create_pod(ns, "p", requests={"cpu": "1"}, node_selector={"pool": "paused-1"})
    one.process.send_signal(18)  # SIGCONT
    c.wait_bound(ns, "p")
    wait_until(lambda: one.process.poll() is not None, "the old leader ends", 15)
    check(one.process.returncode != 0 and "pod bound" not in one.output(), one.output()[-2000:])
    two.stop()
    c.do("DELETE", f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{lease}")


@case("the API server is killed, restarted and made to hang while pods arrive: all are bound once", needs={"real", "outage"})
def api_server_faults(suite):
    c, ns = suite.cluster, suite.namespace()
    p = suite.scheduler("--request-timeout=5s", "--watch-idle=5s")
    node = suite.node("fault-1", cpu="64", pods="200")
    for round_, fault in enumerate(("kill", "pause")):
        for i in range(10):
            c.create_pod(ns, f"a{round_}-{i}", requests={"cpu": "100m"}, node_selector={"pool": node})
        if fault == "kill":
            c.k8s("kill", "apiserver")
            c.k8s("start", "apiserver")
        else:
            c.k8s("pause", "apiserver")
            time.sleep(7)  # longer than --watch-idle: the hang itself is what is tested
            c.k8s("resume", "apiserver")
        wait_until(lambda: c.request("GET", "/readyz")[0] == 200, "the API server is back", 60)
        for i in range(10):
            c.create_pod(ns, f"b{round_}-{i}", requests={"cpu": "100m"}, node_selector={"pool": node})
        for kind in "ab":
            for i in range(10):
                c.wait_bound(ns, f"{kind}{round_}-{i}", seconds=60)
    p.stop()
