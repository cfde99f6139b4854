# SPDX-License-Identifier: Apache-2.0
"""A way to the API server on which replies get lost and events come late, for what programs do only then.

It ends TLS with a certificate of the cluster's own CA, so that the programs trust it, and passes each request on with the token it came with. One request for each
connection on both sides: nothing has to be understood of a reply but its end.
"""
import os
import re
import socket
import ssl
import subprocess
import threading
import time

from harness import Failed

HEAD_MAX = 65536


def make_certificate(env, directory):
    """(certificate, key) for 127.0.0.1, by the cluster's CA."""
    key, pem, ext = (os.path.join(directory, f"proxy.{x}") for x in ("key", "crt", "ext"))
    with open(ext, "w", encoding="ascii") as f:
        f.write("subjectAltName=IP:127.0.0.1\n")
    for command in (["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", pem + ".csr", "-subj", "/CN=proxy"],
                    ["openssl", "x509", "-req", "-in", pem + ".csr", "-CA", env["K8S_CA"], "-CAkey", env["K8S_CA_KEY"], "-set_serial", str(time.time_ns()), "-days", "2",
                     "-extfile", ext, "-out", pem]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        if done.returncode != 0:
            raise Failed(f"{command[:2]}: {done.stderr}")
    return pem, key


class Proxy:
    """rules: (pattern of "METHOD path user-agent", what); what: lose (done, and no reply), stall (not done, and no reply as long as the rule is there), hold (its reply comes when the rule is gone)."""

    def __init__(self, suite, cluster):
        self.rules, self.lines = {}, []
        self.target = (cluster.url.hostname, cluster.url.port)
        self.client = ssl.create_default_context(cafile=cluster.env["K8S_CA"])
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server.load_cert_chain(*make_certificate(cluster.env, suite.directory))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        suite.stack.callback(self.listener.close)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                raw, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(raw,), daemon=True).start()

    def verdict(self, line):
        return next((what for pattern, what in list(self.rules.items()) if re.search(pattern, line)), None)

    def saw(self, pattern):
        return any(re.search(pattern, line) for line in list(self.lines))

    def serve(self, raw):
        try:
            with raw, self.server.wrap_socket(raw, server_side=True) as inner:
                self.pass_on(inner)
        except (OSError, ValueError):
            pass

    def pass_on(self, inner):
        data = b""
        while b"\r\n\r\n" not in data:
            more = inner.recv(65536)
            if not more or len(data) > HEAD_MAX:
                return
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        fields = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
        if fields.get("expect"):
            inner.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        while len(body) < int(fields.get("content-length", "0")):
            body += inner.recv(65536)
        method, path, _ = lines[0].split(" ")
        line = f"{method} {path} {fields.get('user-agent', '')}"
        what = self.verdict(line)
        self.lines.append(line)
        if what == "stall":
            while self.verdict(line) == "stall":
                time.sleep(0.02)
            return
        kept = [x for x in lines[1:] if x.partition(":")[0].lower() not in ("connection", "expect")]
        with socket.create_connection(self.target) as bare, self.client.wrap_socket(bare, server_hostname=self.target[0]) as outer:
            outer.sendall("\r\n".join([lines[0], *kept, "Connection: close", "", ""]).encode("latin-1") + body)
            while chunk := outer.recv(65536):
                if what == "lose":
                    return  # it has been answered: so it was done
                while self.verdict(line) == "hold":
                    time.sleep(0.02)
                inner.sendall(chunk)
