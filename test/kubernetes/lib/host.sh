# shellcheck shell=bash
# What a kubelet changes on the machine, and how it is put back.
#
# The kubelet has its device-plugin directory compiled in (/var/lib/kubelet/device-plugins), and
# containerd its shim sockets. So both run in a mount namespace of their own, in which these
# directories are bind mounts of the state directory: two kubelets run side by side, one that
# belongs to the machine is not disturbed, and every mount dies with the namespace. What a mount
# namespace does not hide is shared by all kubelet clusters and kept in a register, /run/cosched-k8s:
#   users/N    state directory of the cluster with address 10.240.0.N on lo
#   created    directories that had to be made as mount points
#   sysctl     values from before the first kubelet
#   cgroup     controllers that the root of cgroup v2 gave to its children before
# The first one in writes, the last one out restores. /run itself is the lock.

REGISTER=/run/cosched-k8s
PRIVATE_DIRS=(/var/lib/kubelet /var/lib/cni /var/log/pods /var/log/containers /run/containerd)
SYSCTLS=(vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops
  kernel/keys/root_maxkeys kernel/keys/root_maxbytes net/ipv4/ip_forward)

lock_register() {
  exec 8</run
  flock 8
}
unlock_register() { exec 8<&-; }

# cgroup_mounts [TYPE]: the mount point of every cgroup hierarchy, v1 (cgroup) and v2 (cgroup2).
cgroup_mounts() { awk -v type="${1:-}" '$3 ~ /^cgroup2?$/ && (type == "" || $3 == type) { print $2 }' /proc/mounts; }

kubepods_exists() { # kubepods_exists ROOT
  local mount
  for mount in $(cgroup_mounts); do
    if [ -d "$mount/${1#/}/kubepods" ]; then return 0; fi
  done
  return 1
}

save_sysctls() {
  local name
  for name in "${SYSCTLS[@]}"; do
    if [ -r "/proc/sys/$name" ]; then echo "$name $(cat "/proc/sys/$name")"; fi
  done >"$REGISTER/sysctl"
}

restore_sysctls() {
  local name value
  [ -f "$REGISTER/sysctl" ] || return 0
  while read -r name value; do
    # Only a changed one: writing ip_forward resets settings of every interface.
    [ "$(cat "/proc/sys/$name")" = "$value" ] || echo "$value" >"/proc/sys/$name"
  done <"$REGISTER/sysctl"
}

# With cgroup v2 the kubelet turns on the controllers it needs for the children of the root.
subtree_control() {
  local mount
  for mount in $(cgroup_mounts cgroup2); do
    if [ -s "$mount/cgroup.controllers" ]; then echo "$mount/cgroup.subtree_control"; fi
  done
}

save_controllers() {
  local file
  for file in $(subtree_control); do echo "$file $(cat "$file")"; done >"$REGISTER/cgroup"
}

restore_controllers() {
  local file before now name
  [ -f "$REGISTER/cgroup" ] || return 0
  while read -r file before; do
    read -r now <"$file" || true
    for name in $now; do
      case " $before " in
      *" $name "*) ;;
      *) { echo "-$name" >"$file"; } 2>/dev/null || true ;; # somebody else may use it by now
      esac
    done
  done <"$REGISTER/cgroup"
}

# controllers_usable: on cgroup v2 the root must be able to give cpu, cpuset, memory and pids to its
# children. In a container whose root cgroup holds processes it is not.
controllers_usable() {
  local file missing='' name
  for file in $(subtree_control); do
    for name in cpu cpuset memory pids; do
      if ! grep -qw "$name" "$file"; then missing+=" +$name"; fi
    done
    [ -n "$missing" ] || return 0
    { echo "$missing" >"$file"; } 2>/dev/null || return 1
    { echo "${missing//+/-}" >"$file"; } 2>/dev/null || true
  done
}

drop_stale_users() {
  local user
  for user in "$REGISTER"/users/*; do
    if [ -f "$user" ] && [ ! -f "$(cat "$user")/settings" ]; then rm -f "$user"; fi
  done
}

# join_host: takes an address and a cgroup root, makes the mount points.
join_host() {
  local index dir root=/
  lock_register
  mkdir -p "$REGISTER/users"
  drop_stale_users
  [ -f "$REGISTER/sysctl" ] || save_sysctls
  [ -f "$REGISTER/cgroup" ] || save_controllers
  for dir in "${PRIVATE_DIRS[@]}"; do
    if [ ! -d "$dir" ]; then
      mkdir -p "$dir"
      echo "$dir" >>"$REGISTER/created"
    fi
  done
  for ((index = 1; index < 255; index++)); do
    [ -e "$REGISTER/users/$index" ] || break
  done
  echo "$DIR" >"$REGISTER/users/$index"
  # Pods are under /kubepods as everywhere, unless another kubelet already has that.
  if kubepods_exists / || { [ "$index" -gt 1 ] && [ -e "$REGISTER/users/1" ]; }; then root=/cosched-k8s-$index; fi
  set_value NODE_INDEX "$index"
  set_value NODE_IP "10.240.0.$index"
  set_value CGROUP_ROOT "$root"
  set_value NODE_MARK "cosched-k8s-$index-$(openssl rand -hex 8)"
  make_cgroup_root
  # The kubelet refuses 127.x as its address; nothing dials this one.
  ip address add "$NODE_IP/32" dev lo 2>/dev/null || die "cannot add the address $NODE_IP to lo"
  unlock_register
}

make_cgroup_root() {
  local mount file
  [ "$CGROUP_ROOT" != / ] || return 0
  for mount in $(cgroup_mounts); do
    mkdir -p "$mount$CGROUP_ROOT"
    for file in cpuset.cpus cpuset.mems; do # cgroup v1 starts a cpuset empty, and unusable
      if [ -f "$mount/$file" ] && [ -f "$mount$CGROUP_ROOT/$file" ] && [ -f "$mount/cgroup.clone_children" ]; then
        cat "$mount/$file" >"$mount$CGROUP_ROOT/$file"
      fi
    done
  done
}

leave_host() {
  local dir
  [ -n "${NODE_INDEX:-}" ] || return 0
  lock_register
  ip address del "$NODE_IP/32" dev lo 2>/dev/null || true
  if [ "$(cat "$REGISTER/users/$NODE_INDEX" 2>/dev/null)" = "$DIR" ]; then rm -f "$REGISTER/users/$NODE_INDEX"; fi
  drop_stale_users
  if [ -d "$REGISTER" ] && [ -z "$(ls -A "$REGISTER/users")" ]; then
    restore_sysctls
    restore_controllers
    if [ -f "$REGISTER/created" ]; then
      while read -r dir; do rmdir "$dir" 2>/dev/null || true; done <"$REGISTER/created"
    fi
    rm -rf "$REGISTER"
  fi
  unlock_register
}

# in_our_namespace PID: does it see the mount that marks our namespace?
in_our_namespace() { grep -q " - tmpfs $NODE_MARK " "/proc/$1/mountinfo" 2>/dev/null; }

namespace_processes() {
  local entry
  [ -n "${NODE_MARK:-}" ] || return 0
  for entry in /proc/[0-9]*; do
    if in_our_namespace "${entry#/proc/}"; then echo "${entry#/proc/}"; fi
  done
}

container_processes() {
  local mount
  for mount in $(cgroup_mounts); do
    find "$mount/${CGROUP_ROOT#/}/kubepods" -name cgroup.procs -exec cat {} + 2>/dev/null || true
  done | sort -un
}

# end_processes LISTER: KILL everything that LISTER names until it names nothing; 10 s.
end_processes() {
  local lister=$1 deadline pids
  deadline=$(($(now_ms) + 10000))
  while pids=$("$lister") && [ -n "$pids" ] && [ "$(now_ms)" -lt "$deadline" ]; do
    # shellcheck disable=SC2086
    kill -KILL $pids 2>/dev/null || true
    sleep 0.1
  done
}

our_cgroups() { # deepest first
  local mount
  [ -n "${CGROUP_ROOT:-}" ] || return 0
  for mount in $(cgroup_mounts); do
    if [ "$CGROUP_ROOT" = / ]; then
      find "$mount/kubepods" -depth -type d 2>/dev/null || true
    else
      find "$mount$CGROUP_ROOT" -depth -type d 2>/dev/null || true
    fi
  done
}

remove_cgroups() {
  local deadline dirs dir
  deadline=$(($(now_ms) + 10000))
  while dirs=$(our_cgroups) && [ -n "$dirs" ] && [ "$(now_ms)" -lt "$deadline" ]; do
    while read -r dir; do rmdir "$dir" 2>/dev/null || true; done <<<"$dirs"
    [ -z "$(our_cgroups)" ] || sleep 0.1
  done
}

# kube_chains: names of the chains Kubernetes programs make, to compare before and after.
kube_chains() {
  local tool
  for tool in iptables-save ip6tables-save; do
    if command -v "$tool" >/dev/null; then "$tool" 2>/dev/null | grep '^:KUBE-' | sed "s/^/$tool /;s/ \[.*//" || true; fi
  done
}
