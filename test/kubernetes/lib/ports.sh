# shellcheck shell=bash
# A block of ten loopback ports per cluster, claimed for as long as the cluster exists, so
# that a stopped component finds its port free when it starts again:
#   +0 etcd  +1 etcd peer  +2 API server  +3 controller-manager  +4 scheduler
#   +5 kubelet  +6 kubelet healthz  +7 +8 +9 free for the tests (a webhook, ...)
# A claim is a file, made with O_EXCL, that holds the state directory; it counts only while
# that directory has a cluster.

port_claim() { echo "${TMPDIR:-/tmp}/cosched-k8s-ports-$1"; }

port_used() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# try_block BASE: claims the block if nobody has it and nobody listens there.
try_block() {
  local base=$1 claim p
  claim=$(port_claim "$base")
  if [ -O "$claim" ] && [ ! -f "$(cat "$claim")/settings" ]; then rm -f "$claim"; fi
  (set -o noclobber && echo "$DIR" >"$claim") 2>/dev/null || return 1
  for p in 0 1 2 3 4 5 6 7 8 9; do
    if port_used $((base + p)); then
      rm -f "$claim"
      return 1
    fi
  done
}

# claim_ports [BASE]: sets PORT_BASE and the ports. Blocks lie below the kernel's range for
# outgoing connections and below the node ports.
claim_ports() {
  local wanted=${1:-} base
  if [ -n "$wanted" ]; then
    try_block "$wanted" || die "ports $wanted to $((wanted + 9)) are not all free"
    base=$wanted
  else
    for ((base = 20000; base < 29990; base += 10)); do
      if try_block "$base"; then break; fi
    done
    [ "$base" -lt 29990 ] || die "no ten free ports in a row between 20000 and 29999"
  fi
  set_value PORT_BASE "$base"
  set_value ETCD_PORT "$base"
  set_value ETCD_PEER_PORT $((base + 1))
  set_value API_PORT $((base + 2))
  set_value CONTROLLER_MANAGER_PORT $((base + 3))
  set_value SCHEDULER_PORT $((base + 4))
  set_value KUBELET_PORT $((base + 5))
  set_value KUBELET_HEALTHZ_PORT $((base + 6))
}

release_ports() {
  local claim
  [ -n "${PORT_BASE:-}" ] || return 0
  claim=$(port_claim "$PORT_BASE")
  if [ "$(cat "$claim" 2>/dev/null)" = "$DIR" ]; then rm -f "$claim"; fi
}
