#!/bin/bash
# Runs first in the mount namespace of a node and then holds it: sees the machine's mounts, shows
# it none of its own, and puts the state directory in the place of the private directories.
# usage: namespace.sh STATE-DIR MARK DIRECTORY...   (/var/lib/kubelet is STATE-DIR/kubelet: sockets
# below it may have 107 characters, so the path is kept short)
set -euo pipefail

state=$1 mark=$2
shift 2
mount --make-rshared / # our own group: the kubelet wants shared mounts, the machine gets none of them
mkdir -p "$state/node/mark"
mount -t tmpfs -o size=4k,mode=0700 "$mark" "$state/node/mark"
for dir in "$@"; do
  own=$state/${dir##*/}
  mkdir -p "$own"
  mount --bind "$own" "$dir"
done
touch "$state/node/namespace-ready"
exec sleep infinity
