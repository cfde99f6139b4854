# shellcheck shell=bash
# Shared by every part of the harness: messages, the state directory, and processes.
#
# The state directory ($DIR) of a cluster, mode 0700:
#   settings   shell variables, the truth about this cluster (ports, options)
#   pid/NAME   "pid start-time boot-id" of a component; it is ours only if all three match
#   cmd/NAME   argv, NUL-separated, so that `start` runs exactly what `up` ran
#   log/NAME.log, pki/, kubeconfig*, etcd/, and node/ for the kubelet and containerd
# A process is only ever signalled after its identity was checked: never by name.

say() { echo "k8s: $*" >&2; }
die() {
  echo "k8s: error: $*" >&2
  exit 1
}

now_ms() { date +%s%3N; }

# elapsed SINCE_MS: seconds with one decimal since then.
elapsed() {
  local ms=$(($(now_ms) - $1))
  printf '%d.%d s' $((ms / 1000)) $((ms % 1000 / 100))
}

need_tool() { # need_tool PROGRAM PACKAGE
  [ -x "$(command -v "$1")" ] || die "$1 not found: install the Debian package $2"
}

# proc_identity PID: "start-time boot-id", nothing if it is gone or a zombie.
proc_identity() {
  local stat rest
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  read -ra rest <<<"${stat##*) }" # the name may hold spaces; fields count from the state
  [ "${rest[0]}" != Z ] && [ "${rest[0]}" != X ] || return 1
  echo "${rest[19]} $(cat /proc/sys/kernel/random/boot_id)"
}

pid_of() { # pid_of NAME: prints the pid if the component runs
  local pid start boot
  read -r pid start boot 2>/dev/null <"$DIR/pid/$1" || return 1
  [ "$(proc_identity "$pid")" = "$start $boot" ] || return 1
  echo "$pid"
}

alive() { pid_of "$1" >/dev/null; }

# close_files: a daemon must not inherit our locks, nor a pipe whose reader waits for its end.
close_files() {
  local file
  for file in /proc/self/fd/*; do
    file=${file##*/}
    if [ "$file" -gt 2 ]; then eval "exec $file>&-"; fi
  done
}

# spawn NAME: runs cmd/NAME detached in its own session; logs to log/NAME.log.
spawn() {
  local name=$1 argv=() pid
  if alive "$name"; then
    say "$name already runs"
    return 0
  fi
  mapfile -d '' argv <"$DIR/cmd/$name"
  (close_files && cd "$DIR" && exec setsid "${argv[@]}" >>"$DIR/log/$name.log" 2>&1 </dev/null) &
  pid=$!
  echo "$pid $(proc_identity "$pid")" >"$DIR/pid/$name"
  disown "$pid"
}

# run_component NAME ARGV...: remembers the command line, then spawns it.
run_component() {
  local name=$1
  shift
  printf '%s\0' "$@" >"$DIR/cmd/$name"
  spawn "$name"
}

# wait_for SECONDS NAME WHAT CMD...: until CMD succeeds. Dies with the end of NAME's log
# if the time is over or the component has ended.
wait_for() {
  local limit=$1 name=$2 what=$3 began
  shift 3
  began=$(now_ms)
  until "$@" >/dev/null 2>&1; do
    if ! alive "$name"; then
      show_log "$name"
      die "$name ended before it was $what; log: $DIR/log/$name.log"
    fi
    if [ $(($(now_ms) - began)) -ge $((limit * 1000)) ]; then
      show_log "$name"
      die "$name is not $what after $limit s; log: $DIR/log/$name.log"
    fi
    sleep 0.1
  done
  say "$name $what after $(elapsed "$began")"
}

show_log() { tail -n 12 "$DIR/log/$1.log" 2>/dev/null | cut -c1-400 | sed 's/^/    /' >&2 || true; }

# stop_component NAME [SIGNAL [SECONDS]]: signal, wait, then KILL. Quiet if it does not run.
stop_component() {
  local name=$1 signal=${2:-TERM} limit=${3:-10} pid deadline
  if pid=$(pid_of "$name"); then
    kill -CONT "$pid" 2>/dev/null || true # a paused process could not act on TERM
    kill "-$signal" "$pid" 2>/dev/null || true
    deadline=$(($(now_ms) + limit * 1000))
    while alive "$name" && [ "$(now_ms)" -lt "$deadline" ]; do sleep 0.05; done
    if alive "$name"; then
      [ "$name" = apiserver ] || say "$name does not end within $limit s: killing it"
      kill -KILL "$pid" 2>/dev/null || true
      while alive "$name"; do sleep 0.05; done
    fi
  fi
  rm -f "$DIR/pid/$name"
}

# set_value NAME VALUE: keeps it in the settings of the cluster and in this shell.
set_value() {
  printf '%s=%q\n' "$1" "$2" >>"$DIR/settings"
  printf -v "$1" '%s' "$2"
}

MARK='# a cosched-k8s cluster; k8s down removes this directory'

# is_cluster: only a directory that we made is ever read, or removed.
is_cluster() { [ "$(sed -n 1p "$DIR/settings" 2>/dev/null)" = "$MARK" ]; }

# load_state: reads the settings of the cluster in $DIR, or dies.
load_state() {
  is_cluster || die "no cluster in $DIR (see: k8s up --help)"
  # shellcheck disable=SC1091
  . "$DIR/settings"
}

# The discovery cache goes by address, and ports are used again: it must not outlive the cluster.
kubectl() { KUBECACHEDIR="$DIR/kubectl-cache" "$BIN/kubectl" --kubeconfig "$DIR/kubeconfig" "$@"; }

# api PATH [CURL ARGS...]: one call to the API server as the administrator.
api() {
  local path=$1
  shift
  curl -fsS --noproxy '*' --max-time 30 --cacert "$DIR/pki/ca.crt" --cert "$DIR/pki/admin.crt" \
    --key "$DIR/pki/admin.key" "$@" "https://127.0.0.1:$API_PORT$path"
}
