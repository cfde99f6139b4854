#!/bin/bash
# Tests the harness itself: clusters side by side, restarts, a real pod, and that nothing is left.
#
# usage: selftest.sh [--no-kubelet]     the last line is "N passed, N failed"
# Takes about a minute. Without root or containerd the kubelet part fails; it is never skipped
# unless --no-kubelet says so. Other clusters may run meanwhile: only our own traces are looked for.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
WORK=$(mktemp -d "${TMPDIR:-/tmp}/k8s-self.XXXXXX")
PASSED=0 FAILED=0 KUBELET=yes

k8s() { timeout 180 "$HERE/k8s" "$@" 2>>"$WORK/log"; }
on() { # on CLUSTER VERB...: a verb on one of our clusters
  local name=$1 verb=$2
  shift 2
  k8s "$verb" --dir "$WORK/$name" "$@"
}
kubectl_on() { # kubectl_on CLUSTER ARGS...
  local name=$1
  shift
  K8S_DIR=$WORK/$name k8s kubectl "$@"
}

# check SENTENCE CMD...: the command must succeed.
check() {
  local sentence=$1
  shift
  if "$@" >>"$WORK/log" 2>&1; then
    PASSED=$((PASSED + 1))
    echo "ok      $sentence"
  else
    FAILED=$((FAILED + 1))
    echo "FAILED  $sentence"
    tail -n 12 "$WORK/log" | sed 's/^/          /'
  fi
}

equals() { # equals EXPECTED GOT
  [ "$1" = "$2" ] || {
    echo "expected '$1', got '$2'"
    return 1
  }
}

clean_up() {
  local dir
  for dir in "$WORK"/*/; do
    if [ -f "$dir/settings" ]; then "$HERE/k8s" down --dir "$dir" >/dev/null 2>&1 || true; fi
  done
  rm -rf "$WORK"
}

# until_true SECONDS CMD...
until_true() {
  local limit=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$limit" ] || return 1
    sleep 0.2
  done
}

ready_nodes() { kubectl_on "$1" get nodes --no-headers | grep -c ' Ready '; }
nodes_ready() { equals "$2" "$(ready_nodes "$1")"; }

# variable CLUSTER NAME: one variable of `k8s env`.
variable() { (eval "$(on "$1" env)" && echo "${!2}"); }

watch_once() { # watch_once CLUSTER RESOURCE_VERSION: the first answer of a watch from there
  (
    eval "$(on "$1" env)"
    curl -sS -N --noproxy '*' --max-time 3 --cacert "$K8S_CA" --cert "$K8S_CLIENT_CERT" --key "$K8S_CLIENT_KEY" \
      "$K8S_URL/api/v1/configmaps?watch=1&timeoutSeconds=1&resourceVersion=$2"
  )
}

hangs() { # hangs CLUSTER: the API server accepts and does not answer
  local status=0
  kubectl_on "$1" get --raw /readyz --request-timeout=1s || status=$?
  [ "$status" -ne 0 ]
}

test_control_plane() {
  local version
  check "a control plane with ten API-only nodes comes up" on a up --nodes 10 --node-resource example.com/gpu=8
  check "all ten nodes are Ready" nodes_ready a 10
  check "an API-only node has the extended resource" equals 8 \
    "$(kubectl_on a get node node-10 -o 'jsonpath={.status.allocatable.example\.com/gpu}')"
  version=${K8S_VERSION:-v1.36.4}
  check "kubectl and the server say $version" equals 2 "$(kubectl_on a version | grep -cF ": $version")"
  check "the kubeconfig with a token works" equals admin-by-token \
    "$(kubectl_on a --kubeconfig "$WORK/a/kubeconfig.token" auth whoami -o 'jsonpath={.status.userInfo.username}')"
  check "kube-scheduler binds a pod to an API-only node" scheduled_by_kube_scheduler
  check "a second cluster runs beside it without scheduler and controller-manager" on b up --no-scheduler --no-controller-manager --nodes 2
  check "the second cluster has its own nodes" nodes_ready b 2
  check "the first cluster is undisturbed" nodes_ready a 10
  check "kube-scheduler starts in the second on demand, under a name of its own" on b scheduler start --scheduler-name other --scheduler-qps 1000
  check "it binds a pod with that name" scheduled_by_other
  check "and is stopped" on b scheduler stop
  check "a third on the same ports is refused" refuses on c up --port-base "$(variable a K8S_PORT_BASE)"
  check "what it left of its state is taken away by down" on c down
  check "the API server restarts and keeps its state" restarts_apiserver
  check "etcd is killed and comes back" restarts_etcd
  check "a paused API server hangs" pauses_apiserver
  check "a resumed API server answers" until_true 20 nodes_ready b 2
  version=$(kubectl_on b get --raw '/api/v1/configmaps?limit=1' | grep -o '"resourceVersion":"[0-9]*"' | head -n 1 | tr -cd 0-9)
  kubectl_on b create configmap one >/dev/null
  check "compaction makes an old watch answer 410" compacts "$version"
}

scheduled_by_kube_scheduler() {
  pod_yaml plain | kubectl_on a create -f -
  kubectl_on a wait --for=condition=PodScheduled pod/plain --timeout=30s
}

scheduled_by_other() {
  pod_yaml other | sed 's/^spec:/spec:\n  schedulerName: other/' | kubectl_on b create -f -
  kubectl_on b wait --for=condition=PodScheduled pod/other --timeout=30s
}

refuses() { ! "$@"; }

restarts_apiserver() {
  on a stop apiserver && refuses kubectl_on a get --raw /readyz && on a start apiserver && until_true 20 nodes_ready a 10
}

restarts_etcd() { on b kill etcd && on b start etcd && until_true 30 nodes_ready b 2; }

pauses_apiserver() { on b pause apiserver && hangs b && on b resume apiserver; }

compacts() { # compacts RESOURCE_VERSION
  local answer
  on b compact && answer=$(watch_once b "$1") && [[ $answer == *'"code":410'* ]]
}

pod_yaml() { # pod_yaml NAME [NODE]
  cat <<EOF
apiVersion: v1
kind: Pod
metadata: {name: "$1"}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  nodeName: "${2:-}"
  containers: [{name: c, image: "${IMAGE:-busybox:test}", imagePullPolicy: Never, command: [sh, -c, "echo hello; sleep 1000"]}]
EOF
}

pod_runs() { # pod_runs NAME [NODE]
  pod_yaml "$@" | kubectl_on k create -f - && kubectl_on k wait --for=condition=Ready "pod/$1" --timeout=60s
}

pod_says_hello() { until_true 10 equals hello "$(kubectl_on k logs "$1")"; }

test_kubelet() {
  local chains_before uid ip registration
  chains_before=$(chains)
  check "a cluster with a real kubelet comes up" on k up --kubelet
  check "a pod placed by kube-scheduler runs" pod_runs scheduled
  check "a pod placed by nodeName runs" pod_runs placed localhost
  check "its log can be read" pod_says_hello placed
  check "a command runs in it" equals yes "$(kubectl_on k exec placed -- echo yes)"
  check "busybox gets another name" on k image-tag example.com/team/tool:v1
  check "a pod with that image runs" env_image_runs
  registration=$(variable k KUBELET_DEVICE_PLUGIN_DIR)/kubelet.sock
  check "the device-plugin socket is where env says" test -S "$registration"
  check "the pod-resources socket is where env says" test -S "$(variable k KUBELET_POD_RESOURCES_SOCKET)"
  check "the kubelet restarts and its pods stay" restarts_kubelet
  uid=$(kubectl_on k get pod placed -o 'jsonpath={.metadata.uid}')
  ip=$(variable k K8S_NODE_IP)
  check "the pod has a cgroup" pod_has_cgroup "$uid"
  check "a second cluster with a kubelet runs beside it" on l up --kubelet
  check "the first node is still Ready" nodes_ready k 1
  check "down ends the first" on k down
  check "no cgroup of its pod is left" refuses pod_has_cgroup "$uid"
  check "its address is gone from lo" refuses has_address "$ip"
  check "the second node is still Ready" nodes_ready l 1
  check "down ends the second" on l down
  check "no iptables chain was made" equals "$chains_before" "$(chains)"
}

# shellcheck disable=SC2016
# fails_saying WORDS SETUP: in a mount namespace where SETUP was run, up --kubelet fails with WORDS.
fails_saying() {
  local words=$1 setup=$2 output status=0
  output=$(unshare --mount sh -c "$setup"' && exec "$0" up --kubelet --dir "$1"' "$HERE/k8s" "$WORK/f" 2>&1) || status=$?
  echo "$output"
  [ "$status" -eq 1 ] && [[ $output == *"$words"* ]]
}

# shellcheck disable=SC2016
test_unable_machine() {
  check "without containerd the kubelet part fails loudly" fails_saying \
    "containerd not found: install the Debian package containerd" 'mount --bind /dev/null "$(command -v containerd)"'
  check "without the right to make cgroups it fails loudly" fails_saying \
    "no right to make cgroups" 'm=$(awk "\$3 ~ /cgroup/ { print \$2; exit }" /proc/mounts) && mount -o remount,bind,ro "$m"'
}

env_image_runs() { IMAGE=example.com/team/tool:v1 pod_runs tagged localhost; }

restarts_kubelet() {
  on k stop kubelet && on k start kubelet && until_true 30 nodes_ready k 1 &&
    equals 0 "$(kubectl_on k get pod placed -o 'jsonpath={.status.containerStatuses[0].restartCount}')"
}

pod_has_cgroup() { find /sys/fs/cgroup -type d -name "pod$1" | grep -q .; }
has_address() { ip -o address show dev lo | grep -qF " $1/32 "; }
chains() { if command -v iptables-save >/dev/null; then iptables-save 2>/dev/null | grep '^:KUBE' | cut -d' ' -f1 || true; fi; }

our_processes() { # all that name a file in our directory
  local entry line
  for entry in /proc/[0-9]*; do
    line=$({ tr '\0' ' ' <"$entry/cmdline"; } 2>/dev/null) || continue
    if [[ $line == *"$WORK"/* ]]; then echo "${entry#/proc/} ${line:0:100}"; fi
  done
}

our_mounts() { cat /proc/[0-9]*/mountinfo 2>/dev/null | grep -F "${WORK##*/}" || true; }

test_nothing_left() {
  check "down ends the first control plane" on a down
  check "down ends the second control plane" on b down
  check "down again has nothing to do" on a down
  check "no state directory is left" equals '' "$(find "$WORK" -mindepth 1 -type d)"
  check "no process is left" equals '' "$(our_processes)"
  check "no mount is left in any namespace" equals '' "$(our_mounts)"
}

main() {
  if [ "${1:-}" = --no-kubelet ]; then KUBELET=no; fi
  trap clean_up EXIT
  check "the programs are built or found" build_programs
  test_control_plane
  if [ "$KUBELET" = yes ]; then
    test_kubelet
    test_unable_machine
  fi
  test_nothing_left
  echo "$PASSED passed, $FAILED failed"
  [ "$FAILED" -eq 0 ]
}

build_programs() { "$HERE/k8s" build 2>&1 | tee -a "$WORK/log" >&3; }

exec 3>&2
main "$@"
