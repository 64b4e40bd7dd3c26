#!/usr/bin/env bash
# Starts a Docker engine for the tests alone, beside any other on this machine, and prints the line that leads to it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${BATCH_RUNNER_DOCKER:-/var/tmp/batch-runner-docker}
socket=$folder/docker.sock
pid_file=$folder/docker.pid
log=$folder/dockerd.log
containerd_pid_file=$folder/exec/containerd/containerd.pid

say() { echo "docker: $*" >&2; }
fail() { say "$@"; exit 1; }
answers() { curl -sf -o /dev/null --max-time 5 --unix-socket "$socket" http://docker/_ping; }
# Whether the process of a pid file lives on and is the one of this folder: pids are given out again, and a zombie holds nothing.
lives() {
  local pid
  pid=$(cat "$1" 2>/dev/null) && [ -n "$pid" ] || return 1
  tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF "$folder/"
}
# until_true <tenths of a second> <command...>
until_true() {
  local tries=$1
  shift
  while [ "$tries" -gt 0 ]; do
    if "$@"; then return 0; fi
    tries=$((tries - 1))
    sleep 0.1
  done
  return 1
}

bash "$here/packages.sh" dockerd=docker.io curl
PATH=$PATH:/usr/sbin
mkdir -p "$folder"
exec 9>"$folder/lock"
flock 9

answers_or_ends() { answers || ! lives "$pid_file"; }
answers_or_ended() { answers || ! kill -0 "$started" 2>/dev/null; }
containerd_ended() { ! lives "$containerd_pid_file"; }

# A daemon may be starting or stopping at this moment.
until_true 300 answers_or_ends || fail "the daemon of $pid_file does not answer (log: $log)"
if ! answers; then
  # containerd outlives a killed dockerd for a moment, and the next dockerd would wait for that one in vain.
  until_true 100 containerd_ended || fail "the containerd of $containerd_pid_file does not end"
  rm -f "$pid_file" "$socket" "$containerd_pid_file"
  grep -qE ' /sys/fs/cgroup[/ ]' /proc/mounts || mount -t cgroup2 none /sys/fs/cgroup

  # overlay2 does not work on every file system, an overlay among them.
  driver=vfs
  trial=$(mktemp -d "$folder/overlay.XXXXXX")
  mkdir "$trial"/{lower,upper,work,merged}
  if mount -t overlay overlay -o "lowerdir=$trial/lower,upperdir=$trial/upper,workdir=$trial/work" "$trial/merged" 2>/dev/null; then
    umount "$trial/merged"
    driver=overlay2
  fi
  rm -rf "$trial"

  echo '{}' >"$folder/daemon.json"
  say "starting ($driver)"
  # Without bridge, iptables and forwarding the host's network stays as it is.
  bash "$here/daemon.sh" "$log" dockerd --config-file "$folder/daemon.json" --host "unix://$socket" --pidfile "$pid_file" \
    --data-root "$folder/data" --exec-root "$folder/exec" --storage-driver "$driver" \
    --bridge none --iptables=false --ip6tables=false --ip-forward=false --shutdown-timeout 5 &
  started=$!
  until_true 300 answers_or_ended || true
  answers || { tail -n 20 "$log" >&2; fail "the daemon did not start (log: $log)"; }
fi
echo "export DOCKER_HOST=unix://$socket"
