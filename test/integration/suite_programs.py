# SPDX-License-Identifier: Apache-2.0
"""What every program has: --help, --version, an error for what it does not know, probes, an orderly end."""
import contextlib
import os
import re
import selectors
import socket
import subprocess

from harness import BUILD, case, check, check_equal, http_get, wait_until

PROGRAMS = ("cosched-scheduler", "cosched-webhook", "cosched-device-plugin")


def call(program, *args, env=None):
    return subprocess.run([os.path.join(BUILD, "bin", program), *args], capture_output=True, text=True, timeout=20, check=False,
                          env={"PATH": os.environ["PATH"], **(env or {})})


def write_kubeconfig(suite, server, user):
    path = os.path.join(suite.directory, "odd.kubeconfig")
    with open(path, "w", encoding="ascii") as f:
        f.write("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
                f"clusters: [{{name: c, cluster: {{server: '{server}'}}}}]\nusers: [{{name: u, user: {user}}}]\n")
    return path


@case("--help is a manual page and --version names a version")
def help_and_version(_suite):
    for program in PROGRAMS:
        done = call(program, "--help")
        check_equal(done.returncode, 0, f"{program} --help")
        for heading in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "--log-format", "--http-port"):
            check(heading in done.stdout, f"{program} --help lacks {heading}")
        done = call(program, "--version")
        check(done.returncode == 0 and re.search(r"\d+\.\d+", done.stdout), f"{program} --version: {done.stdout!r}")


@case("an unknown flag, a bad value and a stray operand are errors that name it")
def unknown_flags(_suite):
    for program in PROGRAMS:
        for args, names in ((["--no-such-flag"], "no-such-flag"), (["--http-port=70000"], "http-port"), (["stray"], "stray"),
                            (["--log-level=loud"], "log-level")):
            done = call(program, *args)
            check_equal(done.returncode, 2, f"{program} {args}")
            check(names in done.stderr and "Sanitizer" not in done.stderr, f"{program} {args}: {done.stderr}")


@case("a kubeconfig that asks for an exec plugin is refused in one clear line")
def exec_plugin(suite):
    path = write_kubeconfig(suite, "https://127.0.0.1:1", "{exec: {command: x}}")
    done = call("cosched-scheduler", f"--kubeconfig={path}")
    check(done.returncode == 1 and "exec" in done.stderr and "not supported" in done.stderr, done.stderr)


@case("the scheduler serves /healthz, /readyz and /metrics, logs JSON on request, and ends within 2 s of SIGTERM")
def scheduler_probes(suite):
    p = suite.scheduler("--log-format=json", wait=False)
    p.wait_output('"msg": ?"scheduling"')
    wait_until(lambda: http_get(p.port, "/readyz")[0] == 200, "/readyz is 200")
    check_equal(http_get(p.port, "/healthz")[0], 200, "/healthz")
    status, text = http_get(p.port, "/metrics")
    check(status == 200 and "# TYPE cosched_scheduler_attempts_total counter" in text, text[:500])
    check_equal(http_get(p.port, "/nothing")[0], 404, "/nothing")
    p.stop()
    for line in p.output().splitlines():
        check(line.startswith("{") and line.endswith("}"), f"not a JSON line: {line}")


@case("an API server that is not there: the scheduler waits, is not ready, and still ends within 2 s")
def no_api_server(suite):
    path = write_kubeconfig(suite, "https://127.0.0.1:1", "{token: t0psecret}")
    p = suite.scheduler(f"--kubeconfig={path}", wait=False)
    wait_until(lambda: http_get(p.port, "/readyz")[0] == 503, "/readyz is 503")
    check_equal(http_get(p.port, "/healthz")[0], 200, "/healthz")
    p.stop()
    check("t0psecret" not in p.output(), "the token is in the log")


def first_bytes(server, connections):
    """What is said first on any connection. Some are made ahead, for Bindings to come, and say nothing for a while."""
    with selectors.DefaultSelector() as all_of_them:
        all_of_them.register(server, selectors.EVENT_READ)
        while True:
            ready = all_of_them.select(timeout=20)
            check(ready, "somebody says something within 20 s")
            for key, _ in ready:
                if key.fileobj is server:
                    all_of_them.register(connections.enter_context(server.accept()[0]), selectors.EVENT_READ)
                else:
                    return key.fileobj.recv(16)


@case("an API server that takes requests and never answers: leading or standing by, the scheduler still ends within 2 s")
def hanging_api_server(suite):
    for lease in (None, "hang"):
        with socket.create_server(("127.0.0.1", 0), backlog=64) as server:  # the kernel accepts; nobody reads
            path = write_kubeconfig(suite, f"http://127.0.0.1:{server.getsockname()[1]}", "{token: t0psecret}")
            p = suite.scheduler(f"--kubeconfig={path}", lease=lease, wait=False)
            with contextlib.ExitStack() as connections:
                check(first_bytes(server, connections).startswith(b"GET "), "the first request")
                p.stop()
