# shellcheck shell=bash
# Nodes that are only API objects: Ready, with allocatable, but no kubelet behind them.
# A node may be created with its status, so one POST each; curl sends them over eight
# connections. Needs a cluster started with --nodes or --no-controller-manager: elsewhere
# the node-lifecycle controller taints a node that sends no heartbeat.

# node_json NAME: one Node on one line. NODE_CPU, NODE_MEMORY, NODE_PODS, and the arrays
# NODE_RESOURCES and NODE_LABELS of NAME=VALUE say what it has.
node_json() {
  local name=$1 resources labels item
  resources="\"cpu\":\"$NODE_CPU\",\"memory\":\"$NODE_MEMORY\",\"pods\":\"$NODE_PODS\",\"ephemeral-storage\":\"1Ti\""
  for item in "${NODE_RESOURCES[@]}"; do resources+=",\"${item%%=*}\":\"${item#*=}\""; done
  labels="\"kubernetes.io/hostname\":\"$name\",\"kubernetes.io/os\":\"linux\",\"kubernetes.io/arch\":\"amd64\""
  for item in "${NODE_LABELS[@]}"; do labels+=",\"${item%%=*}\":\"${item#*=}\""; done
  printf '{"apiVersion":"v1","kind":"Node","metadata":{"name":"%s","labels":{%s}},' "$name" "$labels"
  printf '"status":{"capacity":{%s},"allocatable":{%s},"conditions":[' "$resources" "$resources"
  printf '{"type":"Ready","status":"True","reason":"ApiObjectOnly","message":"no kubelet"},'
  printf '{"type":"MemoryPressure","status":"False"},{"type":"DiskPressure","status":"False"},'
  printf '{"type":"PIDPressure","status":"False"}],'
  printf '"addresses":[{"type":"Hostname","address":"%s"}],' "$name"
  printf '"nodeInfo":{"machineID":"","systemUUID":"","bootID":"","kernelVersion":"","osImage":"",'
  printf '"containerRuntimeVersion":"","kubeletVersion":"%s","kubeProxyVersion":"",' "$K8S_VERSION"
  printf '"operatingSystem":"linux","architecture":"amd64"}}}'
}

# create_nodes COUNT PREFIX: PREFIX-1 to PREFIX-COUNT.
create_nodes() {
  local count=$1 prefix=$2 began template i name failed
  [ "$count" -gt 0 ] || return 0
  began=$(now_ms)
  template=$(node_json @NAME@)
  template=${template//\"/\\\"}
  for ((i = 1; i <= count; i++)); do
    name=$prefix-$i
    [ "$i" -eq 1 ] || echo next
    printf 'url="https://127.0.0.1:%s/api/v1/nodes"\ncacert="%s"\ncert="%s"\nkey="%s"\n' \
      "$API_PORT" "$DIR/pki/ca.crt" "$DIR/pki/admin.crt" "$DIR/pki/admin.key"
    printf 'silent\nshow-error\nnoproxy="*"\nheader="Content-Type: application/json"\ndata-raw="%s"\n' "${template//@NAME@/$name}"
    printf 'output="/dev/null"\nwrite-out="%%{http_code} %s\\n"\n' "$name"
  done >"$DIR/nodes.curl"
  curl --no-progress-meter --parallel --parallel-max 8 -K "$DIR/nodes.curl" >"$DIR/nodes.out" || true
  rm -f "$DIR/nodes.curl"
  failed=$(grep -vc '^201 ' "$DIR/nodes.out" || true)
  if [ "$failed" -gt 0 ] || [ "$(wc -l <"$DIR/nodes.out")" -ne "$count" ]; then
    grep -v '^201 ' "$DIR/nodes.out" | head -n 3 | sed 's/^/    HTTP status /' >&2
    die "$failed of $count nodes were not created"
  fi
  rm -f "$DIR/nodes.out"
  say "$count nodes $prefix-1 to $prefix-$count created after $(elapsed "$began")"
}
