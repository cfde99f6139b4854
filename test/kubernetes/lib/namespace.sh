#!/bin/bash
# Runs first in the mount namespace of a node and then holds it: sees the machine's mounts, shows
# it none of its own, and puts the state directory in the place of the private directories.
# usage: namespace.sh NODE-DIR MARK DIRECTORY...
set -euo pipefail

node=$1 mark=$2
shift 2
mount --make-rshared / # our own group: the kubelet wants shared mounts, the machine gets none of them
mkdir -p "$node/mark"
mount -t tmpfs -o size=4k,mode=0700 "$mark" "$node/mark"
for dir in "$@"; do
  own=$node/root$dir
  mkdir -p "$own"
  mount --bind "$own" "$dir"
done
touch "$node/namespace-ready"
exec sleep infinity
