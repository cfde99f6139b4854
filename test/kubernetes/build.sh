#!/bin/bash
# Finds or builds etcd and the Kubernetes programs.
#
# usage: build.sh [PROGRAM...]      default: all six
#        build.sh helm              helm alone, for the cases that install the chart
# Progress goes to stderr; the last line of stdout is the directory with the programs.
#
# With KUBEBUILDER_ASSETS set the programs there are used and nothing is built. Otherwise they are
# built from the Go module proxy once per version and kept outside the checkout, in
# ${COSCHED_CACHE:-${XDG_CACHE_HOME:-~/.cache}/cosched}/k8s-VERSION/bin. A program appears there only
# when it is complete, and a lock keeps two builds from running at once. helm has a version and a directory
# of its own (helm-VERSION/bin); with KUBEBUILDER_ASSETS set it is taken from there if it is there.
#
# K8S_VERSION=v1.33.13 is an older one; each minor version that can be built has its module, build/kubernetes-MINOR.
set -euo pipefail

NEWEST=v1.36.4
VERSION=${K8S_VERSION:-$NEWEST}
HELM_VERSION=v3.22.0
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
MODULE=kubernetes
if [ "$VERSION" != "$NEWEST" ]; then MODULE=kubernetes-${VERSION%.*}; fi
CACHE=${COSCHED_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/cosched}
BIN=$CACHE/k8s-$VERSION/bin
ALL=(etcd kube-apiserver kubectl kube-controller-manager kube-scheduler kubelet)
# Seconds of a cold build on two cores, measured; each profits from the ones before it.
declare -A SECONDS_COLD=([etcd]=70 [kube-apiserver]=280 [kubectl]=30 [kube-controller-manager]=80 [kube-scheduler]=10 [kubelet]=25 [helm]=100)

say() { echo "k8s build: $*" >&2; }
die() {
  echo "k8s build: error: $*" >&2
  exit 1
}

version_of() { # version_of PATH
  case ${1##*/} in
  kubectl) "$1" version --client 2>/dev/null | sed -n 1p ;;
  helm) "$1" version --short 2>/dev/null ;;
  *) "$1" --version 2>/dev/null | sed -n 1p ;;
  esac
}

use_assets() {
  local program version
  for program in "$@"; do
    [ -x "$KUBEBUILDER_ASSETS/$program" ] || die "KUBEBUILDER_ASSETS has no $program: $KUBEBUILDER_ASSETS/$program"
    version=$(version_of "$KUBEBUILDER_ASSETS/$program") || die "$KUBEBUILDER_ASSETS/$program does not run"
    say "$program: $version"
  done
  echo "$KUBEBUILDER_ASSETS"
}

link_flags() {
  local v=k8s.io/component-base/version
  echo "-s -w -X $v.gitVersion=$VERSION -X $v.gitMajor=1 -X $v.gitMinor=$(echo "$VERSION" | cut -d. -f2) -X $v.gitTreeState=clean" \
    "-X $v.gitCommit=0000000000000000000000000000000000000000 -X $v.buildDate=1970-01-01T00:00:00Z" \
    "-X helm.sh/helm/v3/internal/version.version=$HELM_VERSION"
}

go_build() { # go_build PROGRAM OUT
  local module=$MODULE package=k8s.io/kubernetes/cmd/$1 toolchain=local
  case $1 in
  etcd) module=etcd package=go.etcd.io/etcd/server/v3 ;;
  helm) module=helm package=helm.sh/helm/v3/cmd/helm ;;
  esac
  # An older Go fetches the one that go.mod names from the module proxy.
  if ! "$GO" version | grep -Eq 'go1\.(2[6-9]|[3-9][0-9])'; then toolchain=auto; fi
  cd "$HERE/build/$module"
  CGO_ENABLED=0 GOFLAGS='-mod=readonly -buildvcs=false' GOWORK=off GOTOOLCHAIN=$toolchain \
    exec "$GO" build -trimpath -ldflags "$(link_flags)" -o "$2" "$package"
}

# build_one PROGRAM POSITION COUNT EXPECTED-TOTAL: builds with a line every 10 s.
build_one() {
  local program=$1 new=$BIN/.new-$1.$$ log=$BIN/.log-$1 began=$SECONDS pid status=0 tick=0
  say "building $program ($2 of $3), expect about $((SECONDS_COLD[$program] / 60 + 1)) min on 2 cores, $4 in all"
  go_build "$program" "$new" >"$log" 2>&1 9>&- &
  pid=$!
  BUILDING=$pid
  while kill -0 "$pid" 2>/dev/null; do
    sleep 1
    tick=$((tick + 1))
    if [ $((tick % 10)) -eq 0 ]; then say "building $program ($2 of $3), $((SECONDS - began)) s, expect about $4 in all on 2 cores"; fi
  done
  wait "$pid" || status=$?
  BUILDING=
  if [ "$status" -ne 0 ]; then
    grep -v '^go: downloading' "$log" | tail -n 15 | sed 's/^/    /' >&2 || true
    rm -f "$new"
    die "$program was not built; the whole output: $log"
  fi
  mv "$new" "$BIN/$program"
  rm -f "$log"
  say "built $program in $((SECONDS - began)) s"
}

missing() {
  local program
  for program in "$@"; do
    [ -x "$BIN/$program" ] || echo "$program"
  done
}

build_missing() {
  local programs=() program total=0 position=0
  mapfile -t programs < <(missing "$@")
  [ "${#programs[@]}" -gt 0 ] || return 0
  GO=$("$HERE/go.sh") || exit 1
  for program in "${programs[@]}"; do total=$((total + SECONDS_COLD[$program])); done
  for program in "${programs[@]}"; do
    position=$((position + 1))
    build_one "$program" "$position" "${#programs[@]}" "$(((total + 59) / 60)) min"
  done
}

stop_build() {
  if [ -n "${BUILDING:-}" ]; then kill "$BUILDING" 2>/dev/null || true; fi
  rm -f "$BIN"/.new-*.$$
}

main() {
  local programs=("$@") program
  [ "$#" -gt 0 ] || programs=("${ALL[@]}")
  grep -qs "^require k8s.io/kubernetes $VERSION\$" "$HERE/build/$MODULE/go.mod" ||
    die "K8S_VERSION is '$VERSION'; there are:$(sed -n 's/^require k8s.io\/kubernetes / /p' "$HERE"/build/kubernetes*/go.mod | tr -d '\n')"
  for program in "${programs[@]}"; do
    if [ "$program" = helm ] && [ "$#" -gt 1 ]; then die "helm is built alone"; fi
    [ -n "${SECONDS_COLD[$program]:-}" ] || die "no such program: $program (there are ${ALL[*]})"
  done
  if [ -n "${KUBEBUILDER_ASSETS:-}" ] && { [ "${programs[*]}" != helm ] || [ -x "$KUBEBUILDER_ASSETS/helm" ]; }; then
    use_assets "${programs[@]}"
    return
  fi
  if [ "${programs[*]}" = helm ]; then BIN=$CACHE/helm-$HELM_VERSION/bin; fi
  if [ -n "$(missing "${programs[@]}")" ]; then
    mkdir -p "$BIN"
    exec 9>"${BIN%/bin}/lock"
    if ! flock -n 9; then
      say "another build runs: waiting for it"
      flock 9
    fi
    trap stop_build EXIT
    build_missing "${programs[@]}"
  fi
  echo "$BIN"
}

main "$@"
