#!/usr/bin/env python3
"""Writes an OCI image archive of one layer from a directory.

usage: image.py REFERENCE ROOTFS ARCHITECTURE ENTRYPOINT-JSON OUT.tar

Made by hand because no image can be pulled and no image builder is needed for
one layer. The same input gives the same bytes: times and owners are zero.
"""
import hashlib
import io
import json
import os
import sys
import tarfile


def plain(info):
    info.mtime = info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def layer_of(root):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name in sorted(os.listdir(root)):
            tar.add(os.path.join(root, name), arcname=name, filter=plain)
    return out.getvalue()


def blob(kind, data):
    return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest(data), "size": len(data)}


def main():
    reference, root, arch, entrypoint, out = sys.argv[1:]
    layer = layer_of(root)
    config = json.dumps({
        "architecture": arch, "os": "linux",
        "config": {"Entrypoint": json.loads(entrypoint), "Env": ["PATH=/usr/local/bin:/usr/bin:/bin:/sbin"]},
        "rootfs": {"type": "layers", "diff_ids": [digest(layer)]}}).encode()
    manifest = json.dumps({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob("config.v1+json", config), "layers": [blob("layer.v1.tar", layer)]}).encode()
    index = json.dumps({"schemaVersion": 2, "manifests": [{
        **blob("manifest.v1+json", manifest), "platform": {"architecture": arch, "os": "linux"},
        "annotations": {"io.containerd.image.name": reference,
                        "org.opencontainers.image.ref.name": reference}}]}).encode()
    with tarfile.open(out, "w") as tar:
        files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": index}
        files.update({"blobs/sha256/" + digest(data)[7:]: data for data in (layer, config, manifest)})
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


main()
