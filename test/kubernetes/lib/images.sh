# shellcheck shell=bash
# Container images without a registry: pause and busybox are made from static binaries of
# this machine and imported; other names are tags of them. Pods use imagePullPolicy Never
# or IfNotPresent.

PAUSE_IMAGE=registry.k8s.io/pause:3.10.2
BUSYBOX_IMAGE=docker.io/library/busybox:test

ctr_cmd() { ctr --address "$DIR/node/containerd.sock" --namespace k8s.io "$@"; }
ctr_ready() { ctr_cmd --timeout 2s version; }

image_arch() {
  case $(uname -m) in
  x86_64) echo amd64 ;;
  aarch64) echo arm64 ;;
  *) uname -m ;;
  esac
}

# full_reference NAME: the name as the kubelet resolves it (busybox -> docker.io/library/busybox:latest).
full_reference() {
  local name=$1 first=${1%%/*}
  if [ "$first" = "$name" ]; then
    name=docker.io/library/$name
  elif [[ $first != *[.:]* && $first != localhost ]]; then
    name=docker.io/$name
  fi
  case ${name##*/} in
  *:* | *@*) ;;
  *) name=$name:latest ;;
  esac
  echo "$name"
}

# import_rootfs REFERENCE ROOTFS ENTRYPOINT-JSON
import_rootfs() {
  local tar
  tar=$(mktemp "$DIR/node/image.XXXXXX")
  python3 "$HERE/lib/image.py" "$1" "$2" "$(image_arch)" "$3" "$tar"
  import_archive "$tar"
  rm -f "$tar"
}

import_archive() { ctr_cmd images import --snapshotter "$SNAPSHOTTER" "$1" >/dev/null; }

make_pause() { # make_pause FILE: what holds a pod's namespaces; PID 1 must reap
  "${CC:-cc}" -Os -static -s -x c -o "$1" - <<'EOF'
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
static void end(int s) { (void)s; _exit(0); }
static void reap(int s) { (void)s; while (waitpid(-1, 0, WNOHANG) > 0) {} }
int main(void) { signal(SIGINT, end); signal(SIGTERM, end); signal(SIGCHLD, reap); for (;;) pause(); }
EOF
}

make_base_images() {
  local work applet busybox
  busybox=$(command -v busybox)
  work=$(mktemp -d "$DIR/node/rootfs.XXXXXX")
  mkdir -p "$work/pause" "$work/busybox"/{bin,etc,tmp,proc,sys,dev,var,root}
  make_pause "$work/pause/pause"
  import_rootfs "$PAUSE_IMAGE" "$work/pause" '["/pause"]'
  cp "$busybox" "$work/busybox/bin/busybox"
  for applet in $(busybox --list); do
    [ "$applet" = busybox ] || ln -s busybox "$work/busybox/bin/$applet"
  done
  echo root:x:0:0:root:/root:/bin/sh >"$work/busybox/etc/passwd"
  import_rootfs "$BUSYBOX_IMAGE" "$work/busybox" '["/bin/sh"]'
  rm -rf "$work"
}

# tag_image NAME: the busybox image is known by this name too.
tag_image() {
  local name
  name=$(full_reference "$1")
  ctr_cmd images tag --force "$BUSYBOX_IMAGE" "$name" >/dev/null
  echo "$name"
}
