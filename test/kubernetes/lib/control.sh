# shellcheck shell=bash
# The control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler.
# Extra arguments of each come from `up` in the arrays ETCD_ARGS, API_ARGS,
# CONTROLLER_MANAGER_ARGS and SCHEDULER_ARGS and are given last, so they win.

etcd_ready() { curl -fsS --noproxy '*' --max-time 2 "http://127.0.0.1:$ETCD_PORT/health"; }
apiserver_ready() { api /readyz --max-time 3; }
controller_manager_ready() { curl -fsSk --noproxy '*' --max-time 2 "https://127.0.0.1:$CONTROLLER_MANAGER_PORT/healthz"; }
scheduler_ready() { curl -fsSk --noproxy '*' --max-time 2 "https://127.0.0.1:$SCHEDULER_PORT/healthz"; }

# wait_ready COMPONENT: the readiness of one component, by the name the verbs use.
wait_ready() {
  case $1 in
  etcd) wait_for 60 etcd healthy etcd_ready ;;
  apiserver) wait_for 120 apiserver ready apiserver_ready ;;
  controller-manager) wait_for 90 controller-manager healthy controller_manager_ready ;;
  scheduler) wait_for 90 scheduler healthy scheduler_ready ;;
  containerd) wait_for 60 containerd serving ctr_ready ;;
  kubelet) wait_for 90 kubelet healthy kubelet_healthy ;;
  *) die "no such component: $1" ;;
  esac
}

start_etcd() {
  local client=http://127.0.0.1:$ETCD_PORT peer=http://127.0.0.1:$ETCD_PEER_PORT
  # A test cluster may lose its data with the machine: no fsync.
  run_component etcd "$BIN/etcd" --name test --data-dir "$DIR/etcd" --unsafe-no-fsync --log-level warn \
    --quota-backend-bytes 4294967296 --listen-client-urls "$client" --advertise-client-urls "$client" \
    --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "test=$peer" \
    "${ETCD_ARGS[@]}"
  wait_ready etcd
}

start_apiserver() {
  local pki=$DIR/pki
  run_component apiserver "$BIN/kube-apiserver" --etcd-servers="http://127.0.0.1:$ETCD_PORT" \
    --bind-address=127.0.0.1 --advertise-address=127.0.0.1 --secure-port="$API_PORT" \
    --endpoint-reconciler-type=none --allow-privileged=true --service-cluster-ip-range=10.96.0.0/16 \
    --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" \
    --client-ca-file="$pki/ca.crt" --token-auth-file="$pki/tokens.csv" \
    --requestheader-client-ca-file="$pki/ca.crt" --requestheader-allowed-names=front-proxy \
    --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group \
    --requestheader-extra-headers-prefix=X-Remote-Extra- \
    --service-account-issuer=https://kubernetes.default.svc \
    --service-account-key-file="$pki/sa.pub" --service-account-signing-key-file="$pki/sa.key" \
    --authorization-mode=Node,RBAC \
    --kubelet-client-certificate="$pki/apiserver-kubelet.crt" \
    --kubelet-client-key="$pki/apiserver-kubelet.key" --kubelet-preferred-address-types=Hostname \
    "${API_ARGS[@]}"
  wait_ready apiserver
}

start_controller_manager() {
  local config=$DIR/kubeconfig.controller-manager controllers='*'
  # Nodes without a kubelet send no heartbeat: nothing may taint them or evict their pods.
  if [ "$NODES" -gt 0 ]; then controllers='*,-node-lifecycle-controller,-taint-eviction-controller'; fi
  run_component controller-manager "$BIN/kube-controller-manager" --kubeconfig="$config" \
    --authentication-kubeconfig="$config" --authorization-kubeconfig="$config" --leader-elect=false \
    --bind-address=127.0.0.1 --secure-port="$CONTROLLER_MANAGER_PORT" --controllers="$controllers" \
    --service-account-private-key-file="$DIR/pki/sa.key" --root-ca-file="$DIR/pki/ca.crt" \
    --use-service-account-credentials=false "${CONTROLLER_MANAGER_ARGS[@]}"
}

# scheduler_config: kube-scheduler's configuration file, for what has no flag: its client's limits (50
# requests/s unless lifted), the name its pods have, an extender that is asked over HTTP after all
# filters of its own.
scheduler_config() {
  local limit=${SCHEDULER_QPS:-50}
  echo 'apiVersion: kubescheduler.config.k8s.io/v1'
  echo 'kind: KubeSchedulerConfiguration'
  echo "clientConnection: {kubeconfig: \"$DIR/kubeconfig.scheduler\", qps: $limit, burst: $((limit * 2))}"
  echo 'leaderElection: {leaderElect: false}'
  echo "profiles: [{schedulerName: \"${SCHEDULER_NAME:-default-scheduler}\"}]"
  if [ -n "$SCHEDULER_EXTENDER" ]; then
    echo "extenders: [{urlPrefix: \"$SCHEDULER_EXTENDER\", filterVerb: filter, nodeCacheCapable: true, httpTimeout: 10s}]"
  fi
}

start_scheduler() {
  local config=$DIR/kubeconfig.scheduler source
  source=(--kubeconfig="$config")
  if [ -n "$SCHEDULER_NAME$SCHEDULER_QPS$SCHEDULER_EXTENDER" ]; then
    scheduler_config >"$DIR/scheduler.yaml"
    source=(--config="$DIR/scheduler.yaml")
  fi
  run_component scheduler "$BIN/kube-scheduler" "${source[@]}" \
    --authentication-kubeconfig="$config" --authorization-kubeconfig="$config" --leader-elect=false \
    --bind-address=127.0.0.1 --secure-port="$SCHEDULER_PORT" "${SCHEDULER_ARGS[@]}"
}

# Without a controller-manager nobody makes the objects that every pod needs.
make_default_objects() {
  local namespace
  for namespace in default kube-system; do
    kubectl -n "$namespace" create serviceaccount default >/dev/null
    kubectl -n "$namespace" create configmap kube-root-ca.crt --from-file="ca.crt=$DIR/pki/ca.crt" >/dev/null
  done
}

has_default_account() { api /api/v1/namespaces/default/serviceaccounts/default; }

start_control_plane() {
  start_etcd
  start_apiserver
  if [ "$WITH_CONTROLLER_MANAGER" = yes ]; then start_controller_manager; fi
  if [ "$WITH_SCHEDULER" = yes ]; then start_scheduler; fi
  if [ "$WITH_CONTROLLER_MANAGER" = yes ]; then
    wait_for 90 controller-manager "serving (default service account made)" has_default_account
  else
    make_default_objects
  fi
  if [ "$WITH_SCHEDULER" = yes ]; then wait_ready scheduler; fi
}

# compact_etcd: etcd forgets every revision before the current one; prints it.
compact_etcd() {
  local url=http://127.0.0.1:$ETCD_PORT revision answer
  revision=$(curl -fsS --noproxy '*' --max-time 10 "$url/v3/kv/range" -d '{"key":"AA=="}' |
    sed -n 's/.*"revision":"\([0-9]*\)".*/\1/p')
  [ -n "$revision" ] || die "etcd does not tell its revision"
  answer=$(curl -sS --noproxy '*' --max-time 30 "$url/v3/kv/compaction" -d "{\"revision\":\"$revision\",\"physical\":true}")
  case $answer in
  *'has been compacted'*) ;; # nothing was written since the last time
  *'"revision"'*) ;;
  *) die "etcd refuses to compact at $revision: $answer" ;;
  esac
  echo "$revision"
}
