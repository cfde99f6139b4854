# shellcheck shell=bash
# Takes a cluster down and proves that nothing is left.

COMPONENTS=(kubelet scheduler controller-manager containerd namespace apiserver etcd)

end_node() {
  stop_component kubelet "$1"
  [ -n "${NODE_INDEX:-}" ] || return 0
  end_processes container_processes
  stop_component containerd "$1"
  end_processes namespace_processes # shims outlive containerd; the holder of the namespace too
  stop_component namespace KILL
  remove_cgroups
  leave_host
}

# remains: one line for everything that should be gone.
remains() {
  local name pid
  for name in "${COMPONENTS[@]}"; do
    if pid=$(pid_of "$name"); then echo "process $pid ($name)"; fi
  done
  awk -v dir="$DIR/" 'index($2, dir) == 1 { print "mount " $2 }' /proc/mounts
  if [ -n "${PORT_BASE:-}" ] && [ -e "$(port_claim "$PORT_BASE")" ] && [ "$(cat "$(port_claim "$PORT_BASE")")" = "$DIR" ]; then
    echo "port claim $(port_claim "$PORT_BASE")"
  fi
  [ -n "${NODE_INDEX:-}" ] || return 0
  for pid in $(namespace_processes); do echo "process $pid in the node's mount namespace"; done
  for pid in $(container_processes); do echo "process $pid of a container"; done
  our_cgroups | sed 's/^/cgroup /'
  if ip -o address show dev lo | grep -qF " $NODE_IP/32 "; then echo "address $NODE_IP on lo"; fi
  if [ -e "$REGISTER/users/$NODE_INDEX" ] && [ "$(cat "$REGISTER/users/$NODE_INDEX")" = "$DIR" ]; then echo "entry $REGISTER/users/$NODE_INDEX"; fi
  if [ -f "$DIR/node/chains-before" ]; then kube_chains | grep -vxFf "$DIR/node/chains-before" | sed 's/^/chain: /' || true; fi
}

# take_down [keep]: with keep, processes end in order and the state directory stays.
take_down() {
  local keep=${1:-} signal=KILL name left
  if [ "$keep" = keep ]; then signal=TERM; fi
  end_node "$signal"
  for name in scheduler controller-manager apiserver etcd; do stop_component "$name" "$signal"; done
  release_ports
  left=$(remains)
  if [ -n "$left" ]; then
    while read -r name; do echo "k8s: error: still there: $name" >&2; done <<<"$left"
    say "the state directory is kept: $DIR"
    return 1
  fi
  if [ "$keep" = keep ]; then
    touch "$DIR/is-down"
  else
    rm -rf "$DIR"
  fi
}
