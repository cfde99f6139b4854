# shellcheck shell=bash
# The real node: containerd and the kubelet, in a mount namespace of their own (lib/host.sh).

NODE_NAME=localhost # the API server dials the kubelet by this name, so traffic stays on loopback

# preflight_node: every reason why this machine cannot run a kubelet, in one line each.
preflight_node() {
  local tool mount probe
  [ "$(id -u)" -eq 0 ] || die "a kubelet needs root (without: up without --kubelet)"
  for tool in containerd:containerd ctr:containerd runc:runc ip:iproute2 unshare:util-linux nsenter:util-linux \
    mount:mount busybox:busybox-static python3:python3 "${CC:-cc}:gcc"; do
    need_tool "${tool%%:*}" "${tool##*:}"
  done
  if ldd "$(command -v busybox)" >/dev/null 2>&1; then die "busybox is not static: install the Debian package busybox-static"; fi
  [ -n "$(cgroup_mounts)" ] || die "no cgroup file system is mounted: a kubelet cannot run here"
  for mount in $(cgroup_mounts); do
    probe=$mount/cosched-k8s-probe-$$
    mkdir "$probe" 2>/dev/null || die "no right to make cgroups in $mount: a kubelet cannot run here"
    rmdir "$probe"
  done
  controllers_usable || die "cgroup v2: the root cannot give cpu, cpuset, memory and pids to its children: a kubelet cannot run here"
  unshare --mount true 2>/dev/null || die "no right to make a mount namespace: a kubelet cannot run here"
  [ "${#DIR}" -le 52 ] || die "the state directory's path is too long for sockets below it (52 characters): $DIR"
}

# pick_snapshotter: overlayfs, or plain copies where the file system cannot carry an overlay.
pick_snapshotter() {
  local work=$DIR/node/overlay
  mkdir -p "$work"/{lower,upper,work,merged}
  # shellcheck disable=SC2016
  if unshare --mount --propagation private sh -c \
    'mount -t overlay overlay -o "lowerdir=$1/lower,upperdir=$1/upper,workdir=$1/work" "$1/merged"' \
    sh "$work" 2>/dev/null; then
    set_value SNAPSHOTTER overlayfs
  else
    say "no overlay mount on this file system: containers get plain copies"
    set_value SNAPSHOTTER native
  fi
  rm -rf "$work"
}

write_containerd_config() {
  local node=$DIR/node cri='plugins."io.containerd.grpc.v1.cri"'
  mkdir -p "$node/cni"
  cat >"$node/containerd.toml" <<EOF
version = 2
root = "$node/containerd"
state = "$node/containerd-run"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.nri.v1.nri"]
[grpc]
  address = "$node/containerd.sock"
[$cri]
  sandbox_image = "$PAUSE_IMAGE"
  # Without CAP_SYS_RESOURCE runc dies on a negative oom_score_adj ("EOF" from a pipe).
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [$cri.containerd]
    snapshotter = "$SNAPSHOTTER"
    default_runtime_name = "runc"
    [$cri.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [$cri.containerd.runtimes.runc.options]
        SystemdCgroup = false
  [$cri.cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$node/cni"
EOF
  cat >"$node/cni/10-ptp.conflist" <<EOF
{"cniVersion": "0.4.0", "name": "test", "plugins": [{"type": "ptp", "mtu": 1400, "ipMasq": false,
 "ipam": {"type": "host-local", "dataDir": "$node/cni-ipam", "ranges": [[{"subnet": "10.244.$NODE_INDEX.0/24"}]],
          "routes": [{"dst": "0.0.0.0/0"}]}}]}
EOF
}

write_kubelet_config() {
  mkdir -p "$DIR/node/manifests"
  cat >"$DIR/node/kubelet.yaml" <<EOF
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
cgroupRoot: "$CGROUP_ROOT"
containerRuntimeEndpoint: "unix://$DIR/node/containerd.sock"
address: 127.0.0.1
port: $KUBELET_PORT
healthzBindAddress: 127.0.0.1
healthzPort: $KUBELET_HEALTHZ_PORT
makeIPTablesUtilChains: false
volumePluginDir: /var/lib/kubelet/volume-plugins
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: "$DIR/pki/ca.crt"}}
authorization: {mode: Webhook}
tlsCertFile: "$DIR/pki/kubelet-serving.crt"
tlsPrivateKeyFile: "$DIR/pki/kubelet-serving.key"
staticPodPath: "$DIR/node/manifests"
resolvConf: /etc/resolv.conf
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
nodeStatusUpdateFrequency: 2s
syncFrequency: 10s
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 50Mi, nodefs.available: "0%", imagefs.available: "0%"}
EOF
}

# node_command ARGV...: sets NODE_COMMAND to ARGV run in the node's namespace.
node_command() {
  NODE_COMMAND=(nsenter "--mount=/proc/$(pid_of namespace)/ns/mnt" "--wd=/" env "PATH=$PATH:/usr/sbin:/sbin" "$@")
}

start_namespace() {
  rm -f "$DIR/node/namespace-ready"
  run_component namespace unshare --mount --propagation slave \
    bash "$HERE/lib/namespace.sh" "$DIR" "$NODE_MARK" "${PRIVATE_DIRS[@]}"
  wait_for 10 namespace ready test -e "$DIR/node/namespace-ready"
}

start_containerd() {
  node_command containerd --config "$DIR/node/containerd.toml"
  run_component containerd "${NODE_COMMAND[@]}"
  wait_ready containerd
}

start_kubelet() {
  node_command "$BIN/kubelet" --config="$DIR/node/kubelet.yaml" --kubeconfig="$DIR/kubeconfig.kubelet" \
    --hostname-override="$NODE_NAME" --node-ip="$NODE_IP" "${KUBELET_ARGS[@]}"
  run_component kubelet "${NODE_COMMAND[@]}"
  wait_ready kubelet
}

kubelet_healthy() { curl -fsS --noproxy '*' --max-time 2 "http://127.0.0.1:$KUBELET_HEALTHZ_PORT/healthz"; }

node_usable() { # Ready and without the taint that a new node carries until a controller has seen it
  [ "$(kubectl get node "$NODE_NAME" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}/{.spec.taints}')" = True/ ]
}

start_node() {
  local began
  began=$(now_ms)
  kube_chains >"$DIR/node/chains-before"
  join_host
  (make_node_certs "$NODE_NAME" "$NODE_IP") || die "openssl cannot make the node's certificates"
  cert_kubeconfig "$DIR/kubeconfig.kubelet" node
  pick_snapshotter
  write_containerd_config
  write_kubelet_config
  start_namespace
  start_containerd
  make_base_images || die "cannot make the pause and busybox images"
  start_kubelet
  wait_for 60 kubelet "Ready as node $NODE_NAME" node_usable
  say "node up after $(elapsed "$began")"
}
