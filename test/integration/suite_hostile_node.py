# SPDX-License-Identifier: Apache-2.0
"""Hostile tenants on a node: attacks on the device plugin, its folders and its audit, each beside a bystander whose grant, limits and service must stay.

The nodes are simulated, with the real plugin on the fake NVML and the fake CUDA driver (suite_isolation.Library); what a process in a container may do to the files that
Allocate mounted for it, the case does to the same files. The numbers are those of docs/security.md's table; suite_hostile has the rest.
"""
import contextlib
import errno
import json
import os
import re
import shutil
import struct
import subprocess

from harness import MERGE, Failed, case, check, check_equal, http_get, wait_until
from hostile_tenant import plain, post, tenant
from suite_isolation import GIB, INSIDE, Library
from suite_nodes import CLAIM, MEM, PERCENT, T4, Nodes, gpu_node, memory_pod, wait_pod
from suite_plugin_life import engine_place
from suite_policy import policy_path, pool, put_policy
from suite_webhook import start_webhook

NUL = "a\0b"
GROWN = 64 << 20
LOCKS = int(os.environ.get("COSCHED_LOCKS", "20000"))  # 50,000 take the kernel half a minute to make


def mounts(nodes, pod, container="main"):
    """{path inside: (path on the host, "ro" or "rw")} of what Allocate mounted."""
    words = [line.split() for line in nodes.devices(pod, container) if line.startswith("mount ")]
    return {inside: (host, how) for _, host, inside, how in words}


def folder_of(nodes, pod, container="main"):
    return mounts(nodes, pod, container)[INSIDE][0]


def region_of(nodes, pod):
    return mounts(nodes, pod)[f"{INSIDE}/region"][0]


def read(path):
    with open(path, "rb") as f:
        return f.read()


def as_old(folder):
    """As if it had been there for an hour."""
    os.utime(folder, (0, 0))


def swept(nodes, c, ns, name):
    """A pod comes, goes, and its folder with it: the plugin has swept."""
    memory_pod(c, ns, name, 1, nodes.name)
    folder = folder_of(nodes, wait_pod(c, ns, name))
    c.delete_pod(ns, name)

    def ask():
        with contextlib.suppress(FileNotFoundError):
            as_old(folder)
        return not os.path.exists(folder)

    wait_until(ask, "the folder of a pod that has gone is swept", 30)


def poison(c, ns, name):
    c.do("PATCH", f"/api/v1/namespaces/{ns}/pods/{name}", {"metadata": {"annotations": {"note": NUL}}}, MERGE)


@case("hostile_01_poison_and_folder: a running pod whose annotation is poisoned keeps its folder, and so its limits, over sweeps and a restart of the plugin; so does a bystander's")
def poison_and_folder(suite):
    (evil, evil_ns), (good, good_ns) = tenant(suite), tenant(suite)
    nodes = Library(suite, "h01-folder", "cgpu")
    suite.scheduler()
    nodes.offers("h01-folder", mem=15, count=1)
    memory_pod(evil, evil_ns, "evil", 3, "h01-folder")
    memory_pod(good, good_ns, "bystander", 4, "h01-folder")
    folders = [folder_of(nodes, wait_pod(c, ns, name)) for c, ns, name in ((evil, evil_ns, "evil"), (good, good_ns, "bystander"))]
    limits = [read(f"{folder}/limits") for folder in folders]
    held = nodes.process(evil.pod(evil_ns, "evil"), 0)
    check_equal(held.ask(f"alloc plain {3 * GIB}"), "0 0", "all of its share")
    poison(evil, evil_ns, "evil")
    for when in ("after the poison", "after a restart of the plugin"):
        for folder in folders:
            with contextlib.suppress(FileNotFoundError):
                as_old(folder)
        swept(nodes, good, good_ns, "marker")
        check([os.path.exists(f"{folder}/limits") for folder in folders] == [True, True], f"{when}: a folder whose container runs is swept")
        check_equal([read(f"{folder}/limits") for folder in folders], limits, f"{when}: limits")
        plugin = nodes.plugin_pid("h01-folder")
        os.kill(plugin, 15)
        wait_until(lambda p=plugin: nodes.plugin_pid("h01-folder") not in (None, p), "another plugin runs")
        nodes.offers("h01-folder", mem=15, count=1)
    check_equal(held.ask("alloc plain 1"), "2 -1", "not one byte more")


# ---- 2 ----

def has_card(nodes, pod, container):
    with contextlib.suppress(FileNotFoundError):
        return nodes.environment(pod, container).get("NVIDIA_VISIBLE_DEVICES") not in (None, "", "none", "void")
    return False


@case("hostile_02_compute_alone_on_the_node: a container that asks for compute without memory, past scheduler and webhook, gets no card without limits")
def compute_alone_on_the_node(suite):
    (evil, evil_ns), (good, good_ns) = tenant(suite), tenant(suite)
    nodes = Library(suite, "h02", "core_mem")
    suite.scheduler()
    nodes.offers("h02", mem=15, percent=100, count=1)
    good.create_pod(good_ns, "bystander", limits={MEM: "4", PERCENT: "20"}, node_selector={"kubernetes.io/hostname": "h02"})
    folder = folder_of(nodes, wait_pod(good, good_ns, "bystander"))
    before = read(f"{folder}/limits")
    rows = {"alone": plain("alone", limits={PERCENT: "20"}), "opted-out": plain("opted-out", limits={PERCENT: "20"}), "beside": plain("beside", limits={MEM: "1", PERCENT: "5"}),
            "zero": plain("zero", limits={MEM: "0", PERCENT: "20"}), "nul": plain("nul", limits={PERCENT: "20"})}
    rows["nul"]["metadata"]["annotations"]["note"] = NUL
    rows["opted-out"]["metadata"]["annotations"]["cosched.io/inject"] = "false"
    rows["beside"]["spec"]["containers"].append({**rows["alone"]["spec"]["containers"][0], "name": "second"})
    rows["sidecar"] = plain("sidecar", limits={MEM: "1", PERCENT: "5"}, initContainers=[{**rows["alone"]["spec"]["containers"][0], "name": "second", "restartPolicy": "Always"}])
    rows["init"] = plain("init", limits={MEM: "1", PERCENT: "5"}, initContainers=[{**rows["alone"]["spec"]["containers"][0], "name": "second"}])
    free = []
    for name, pod in rows.items():
        pod["spec"].update(schedulerName="somebody-else", nodeName="h02")
        status, reply = post(evil, evil_ns, pod)
        check_equal(status, 201, f"{name}: {reply}")
        decided = lambda n=name: evil.pod(evil_ns, n)["status"].get("phase") in ("Running", "Failed") or evil.events(evil_ns, n, "GpuRefused")
        wait_until(decided, f"{name} runs or is refused")
        pod = evil.pod(evil_ns, name)
        for container in [c["name"] for c in pod["spec"]["containers"] + pod["spec"].get("initContainers", [])]:
            if has_card(nodes, pod, container) and INSIDE not in mounts(nodes, pod, container):
                free.append(f"{name}/{container}")
        evil.delete_pod(evil_ns, name)
    check(not free, f"these containers have a card and no limits: {', '.join(free)}")
    check_equal(read(f"{folder}/limits"), before, "the bystander's limits")
    check_equal(good.pod(good_ns, "bystander")["status"]["phase"], "Running", "the bystander")


# ---- 3: the audit ----

def lie(nodes, p, uid, lines):
    """What the kernel says of the process's mounts, which its pod's spec decides."""
    with open(f"{nodes.place}/proc/{p.process.pid}/mountinfo", "w", encoding="ascii") as f:
        f.write("24 1 0:21 / / rw - overlay overlay rw\n" + "".join(line.format(uid=uid, place=nodes.place) + "\n" for line in lines))


VOLUME = "25 24 254:0 /var/lib/kubelet/pods/{uid}/volumes/kubernetes.io~empty-dir/%s " + INSIDE + " rw,relatime - ext4 /dev/vda rw"


def rewrite(path, data):
    with open(path, "r+b") as f:
        f.truncate(0)
        f.write(data)


@case("hostile_03_audit_sees: a process past the library is told of, whatever its pod has written into its region or mounted over the folder, and a bystander is not accused")
def audit_sees(suite):
    (evil, evil_ns), (good, good_ns) = tenant(suite), tenant(suite)
    nodes = Library(suite, "h03", "cgpu")
    suite.scheduler()
    nodes.offers("h03", mem=15, count=1)
    # What is done to the region, what the mounts say, and how much it takes beyond its share of 1 GiB, in MiB.
    rows = {"empty": (b"", None, 0), "noise": (os.urandom(4096), None, 1024), "unknown": (None, [VOLUME % "unknown-GPU-0"], 1024), "both": (b"", [VOLUME % "unknown-x.0"], 1024),
            "other": (None, ["25 24 254:0 {place}/shares/00000000-0000-0000-0000-000000000000.0 " + INSIDE + " ro,relatime - ext4 /dev/vda rw"], 1024),
            "nothing": (b"\0" * 4096, [], 1024)}
    memory_pod(good, good_ns, "bystander", 2, "h03")
    honest = nodes.process(wait_pod(good, good_ns, "bystander"), 0)
    check_equal(honest.ask(f"alloc plain {2 * GIB}"), "0 0", "the bystander has all of its share")
    for i, (name, (region, lines, beyond)) in enumerate(rows.items()):
        memory_pod(evil, evil_ns, name, 1, "h03")
        pod = wait_pod(evil, evil_ns, name)
        p = nodes.process(pod, i + 1, preloaded=False)
        if region is not None:
            rewrite(region_of(nodes, pod), region)
        if lines is not None:
            lie(nodes, p, pod["metadata"]["uid"], lines)
        check_equal(p.ask(f"alloc plain {GIB + (beyond << 20)}"), "0 0", "nothing holds it")
    left = set(rows)

    def told():
        left.difference_update({n for n in left if evil.events(evil_ns, n, "GpuIsolationBypassed")})
        return not left

    try:
        wait_until(told, "each is told of", 15)
    except Failed as e:
        raise Failed(f"the audit is blind to: {', '.join(sorted(left))}") from e
    check_equal(good.events(good_ns, "bystander", "GpuIsolationBypassed"), [], "nobody accuses the bystander")
    check_equal(honest.ask("info"), f"0 0 {2 * GIB}", "the bystander's share")


@case("hostile_01_unreadable: an object that cannot be decoded, which no API server stores, ends no program: its pod keeps what it holds, nobody else loses or gains by it", needs=("local",))
def unreadable(suite):
    c = suite.cluster
    hook, _ns = start_webhook(suite)
    ns = suite.namespace({"hook": "yes", "cosched.io/inject": "enabled"})
    nodes = Library(suite, "h01u", "cgpu")
    scheduler = suite.scheduler()
    nodes.offers("h01u", mem=15, count=1)
    memory_pod(c, ns, "victim", 10, "h01u")
    victim = wait_pod(c, ns, "victim")
    limits, plugin = f"{folder_of(nodes, victim)}/limits", nodes.plugin_pid("h01u")
    before, process = read(limits), nodes.process(victim, 0)
    c.do("POST", f"/api/v1/namespaces/{ns}/pods", plain("waits", requests={"cpu": "10m"}, nodeSelector={"nobody": "has-it"}))
    put_policy(c, ns, "policy", [pool("ecs")], {"a": "b"})
    send = lambda: post(c, ns, {**plain("p", schedulerName="default-scheduler"), "metadata": {"name": "p", "labels": {"a": "b"}}}, dry=True)
    wait_until(lambda: send()[1]["spec"]["schedulerName"] == "ack-co-scheduler", "the webhook injects for the policy")
    garble = lambda resource, name, **more: c.do("POST", "/cosched/faults", {"fault": "garble", "resource": resource, "namespace": ns, "name": name, **more})
    garble("pods", "victim")
    garble("pods", "waits")
    garble("resourcepolicies", "policy", member="selector")
    said = "object not understood, its last good version stays"
    scheduler.wait_output(said)
    wait_until(lambda: said in nodes.plugin_log("h01u"), "the plugin says so")
    hook.wait_output("object treated as absent")
    count = re.search(r"^cosched_scheduler_unreadable_pods_total (\d+)$", http_get(scheduler.port, "/metrics")[1], re.M)
    check(count and int(count[1]) >= 2, f"the scheduler counts them: {count}")
    check_equal(send()[0], 201, "a review is answered")
    # 10 of 15 GiB are still the victim's: a bystander gets 5, and no other gets 6.
    memory_pod(c, ns, "large", 6, "h01u")
    c.wait_refused(ns, "large", "GPU|gpu")
    memory_pod(c, ns, "bystander", 5, "h01u")
    other = wait_pod(c, ns, "bystander")
    check_equal(nodes.process(other, 1).ask("info"), f"0 {5 * GIB} {5 * GIB}", "the bystander's share")
    c.delete_pod(ns, "bystander")
    as_old(os.path.dirname(limits))
    swept(nodes, c, ns, "short")
    check_equal(read(limits), before, "the victim's limits")
    check_equal(process.ask(f"alloc plain {10 * GIB}"), "0 0", "the victim has its share")
    check_equal(nodes.plugin_pid("h01u"), plugin, "the same plugin")
    check(f"pod={ns}/waits node=" not in scheduler.output(), "what cannot be read is not placed")
    c.delete_pod(ns, "victim")
    c.do("DELETE", policy_path(ns, "policy"))
    memory_pod(c, ns, "after", 15, "h01u")
    c.delete_pod(ns, "large")
    wait_pod(c, ns, "after")
    scheduler.stop()
    hook.stop()


# ---- 5 and 6: the region ----

def grow(path, size):
    """As a process in the container would: through what is mounted, with all of root's rights. The error, or None."""
    try:
        with open(path, "r+b", buffering=0) as f:
            f.truncate(size)
            for at in range(0, size, 1 << 20):
                f.seek(at)
                f.write(b"x" * (1 << 20))
    except OSError as e:
        return e
    return None


@case("hostile_05_region_grows: a region that its container makes larger is told of as a bypass or cannot grow, and a set-user-id program in it is nobody's way to root")
def region_grows(suite):
    (evil, evil_ns), (good, good_ns) = tenant(suite), tenant(suite)
    nodes = Library(suite, "h05", "cgpu")
    os.chmod(nodes.place, 0o755)
    suite.scheduler()
    nodes.offers("h05", mem=15, count=1)
    memory_pod(good, good_ns, "bystander", 4, "h05")
    other = wait_pod(good, good_ns, "bystander")
    before = read(f"{folder_of(nodes, other)}/limits")
    memory_pod(evil, evil_ns, "evil", 3, "h05")
    pod = wait_pod(evil, evil_ns, "evil")
    region = region_of(nodes, pod)
    # A set-user-id root program, from inside; run from outside, by nobody.
    with contextlib.suppress(OSError):
        rewrite(region, read(shutil.which("id")))
        os.chmod(region, 0o4755)
    try:
        ran = subprocess.run([region, "-u"], user=65534, group=65534, extra_groups=[], capture_output=True, text=True, timeout=10, check=False, cwd="/")
        check(ran.returncode != 0 or ran.stdout.strip() != "0", f"a user of the host became root by a tenant's file: {ran.stdout}")
    except OSError as e:
        check(e.errno in (errno.EACCES, errno.ENOEXEC), e)
    check_equal(os.stat(f"{nodes.place}/shares").st_mode & 0o077, 0, "others may not look into the base directory")
    refused = grow(region, GROWN)
    if not refused and os.stat(region).st_blocks * 512 >= GROWN:
        wait_until(lambda: evil.events(evil_ns, "evil", "GpuIsolationBypassed"), f"an Event tells of a region of {GROWN >> 20} MiB", 15)
    check_equal(good.events(good_ns, "bystander", "GpuIsolationBypassed"), [], "nobody accuses the bystander")
    check_equal(read(f"{folder_of(nodes, other)}/limits"), before, "the bystander's limits")
    check_equal(nodes.process(other, 1).ask("info"), f"0 {4 * GIB} {4 * GIB}", "the bystander's share")


@case("hostile_06_record_locks: record locks on a region by the ten thousand, and slots that all claim to be in use: /healthz and /metrics answer, and a bystander's pod gets its card")
def record_locks(suite):
    (evil, evil_ns), (good, good_ns) = tenant(suite), tenant(suite)
    nodes = Library(suite, "h06", "cgpu")
    suite.scheduler()
    nodes.offers("h06", mem=15, count=1)
    memory_pod(evil, evil_ns, "evil", 3, "h06")
    region = region_of(nodes, wait_pod(evil, evil_ns, "evil"))
    # A region of its own size in which all slots are in use: each is asked of the kernel, whose list of locks is long. (A larger one
    # would be cut at once, and no lock asked about.)
    header = struct.pack("<QIIIIIIIII", 0x636f736368656447, 1, 200 + 256 * 96, 1, 64, 136, 256, 200, 96, 32)
    with open(region, "r+b") as f:
        check_equal(os.fstat(f.fileno()).st_size, 200 + 256 * 96, "size of a region of one card")
        f.write(header.ljust(64, b"\0") + b"\1" * (136 + 256 * 96))
    # A process that ends with its standard input.
    script = ("import fcntl,os,struct,sys\n"
              "f=open(sys.argv[1],'r+b')\n"
              "for i in reversed(range(int(sys.argv[2]))):\n"
              " fcntl.fcntl(f,fcntl.F_SETLK,struct.pack('hhqqixxxx',fcntl.F_WRLCK,os.SEEK_SET,(1<<20)+2*i,1,0))\n"
              "print('ready',flush=True)\nsys.stdin.read()\n")
    attacker = subprocess.Popen(["python3", "-c", script, region, str(LOCKS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    suite.stack.callback(attacker.wait)
    suite.stack.callback(attacker.stdin.close)
    suite.stack.callback(attacker.stdout.close)
    check_equal(attacker.stdout.readline().strip(), "ready", "the locks are held")
    late = []
    for i in range(8):
        for path in ("/healthz", "/metrics"):
            try:
                status = http_get(nodes.port, path)[0]
            except OSError as e:
                status = repr(e)
            if status != 200:
                late.append(f"{path} {i}: {status}")
    check(not late, "; ".join(late))
    memory_pod(good, good_ns, "bystander", 4, "h06")
    other = wait_pod(good, good_ns, "bystander")
    check_equal(nodes.process(other, 1).ask("info"), f"0 {4 * GIB} {4 * GIB}", "the bystander's share")


# ---- 7: mode mps ----

@case("hostile_07_mps_mounts: a client of MPS gets the daemon's pipe and a shared memory of MPS' own, and nothing of the node's own", needs=("local",))
def mps_mounts(suite):
    c, ns = suite.cluster, suite.namespace()
    _module, pipe, args = engine_place(suite)
    nodes = Nodes(suite, [{**gpu_node("h07", "mps", T4, 1), "isolation": "auto", "pluginArgs": args}])
    suite.scheduler()
    nodes.offers("h07", mem=15, count=1)
    memory_pod(c, ns, "client", 3, "h07")
    pod = wait_pod(c, ns, "client")
    given = mounts(nodes, pod)
    check_equal(given["/dev/shm"][0], os.path.join(os.path.dirname(pipe), "shm"), "its shared memory")
    check_equal({host for host, _ in given.values()} & {"/dev/shm", "/dev", "/run", "/tmp", "/"}, set(), "nothing of the node's own")
    check_equal(given[pipe][0], pipe, "the daemon's pipe")
    env = nodes.environment(pod, "main")
    check_equal(env["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"], "0=3G", "its limit")
    log = os.path.join(os.path.dirname(pipe), "log")
    check(log not in [host for host, _ in given.values()], "the daemon's log is not the client's")


# ---- 9: grants that are written again ----

@case("hostile_09_lost_patches: an API server that fails and loses the plugin's patches makes no older grant the last: each pod's is what its container was given", needs=("local",))
def lost_patches(suite):
    c, ns = suite.cluster, suite.namespace()
    suite.scheduler()
    nodes = Nodes(suite, [gpu_node("h09", "share", T4, 4)])
    nodes.offers("h09", mem=60, count=4)
    match = {"method": "PATCH", "agent": "device-plugin", "path": "/pods/"}
    for fault in ({"fault": "reply", "code": 500, "every": 2}, {"fault": "lose-reply", "every": 2}, {"fault": "delay", "ms": 200, "percent": 30}):
        c.do("POST", "/cosched/faults", {**fault, "match": match})
    suite.stack.callback(c.do, "DELETE", "/cosched/faults")
    for turn in range(3):  # the same names again: an older pod's write must not reach its successor
        names = [f"p{i}" for i in range(8)]
        for name in names:
            memory_pod(c, ns, name, 5, "h09")
        pods = [wait_pod(c, ns, name) for name in names]
        fired = lambda at: [rule["fired"] >= at for rule in c.get("/cosched/faults")["rules"]]
        wait_until(lambda: all(fired(turn + 1)), "patches fail, are lost and are late")
        if turn == 2:
            c.do("DELETE", "/cosched/faults")
        else:
            for name in names:
                c.delete_pod(ns, name)
            wait_until(lambda: not c.pods(ns), "they are gone")
    uuids = nodes.uuids("h09")

    def agreed():
        """What each pod says of itself is what its container has, and is confirmed."""
        for pod in pods:
            now = c.pod(ns, pod["metadata"]["name"])["metadata"]
            cards = [card for share in json.loads(now["annotations"][CLAIM]).values() for card in share]
            if now["uid"] != pod["metadata"]["uid"] or now["annotations"].get("scheduler.framework.gpushare.assigned") != "true" or \
               [uuids[card] for card in cards] != nodes.environment(pod, "main")["NVIDIA_VISIBLE_DEVICES"].split(","):
                return False
        return True

    wait_until(agreed, "each pod's grant is what its container was given", 30)
