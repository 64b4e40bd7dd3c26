#!/usr/bin/env bash
# Starts Podman's Docker-compatible service for the tests alone and prints the line that leads to it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${BATCH_RUNNER_PODMAN:-/var/tmp/batch-runner-podman}
socket=$folder/podman.sock
log=$folder/podman.log

answers() { curl -sf -o /dev/null --max-time 5 --unix-socket "$socket" http://podman/_ping; }

bash "$here/packages.sh" podman runc curl
mkdir -p "$folder"
exec 9>"$folder/lock"
flock 9
if ! answers; then
  # Podman's default limits may exceed those of this machine, and it holds its own processes to the kernel's number of pids.
  files=$(ulimit -Hn)
  processes=$(printf '%s\n' "$(ulimit -Hu)" "$(cat /proc/sys/kernel/pid_max)" | sort -n | grep -v unlimited | head -n 1)
  # The host's own configuration is left alone. Without systemd neither its cgroups nor its journal are there.
  cat >"$folder/containers.conf" <<END
[containers]
default_ulimits = ["nofile=$files:$files", "nproc=$processes:$processes"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
END
  cat >"$folder/registries.conf" <<'END'
[[registry]]
location = "localhost:5000"
insecure = true

[[registry]]
location = "localhost:5001"
insecure = true
END
  rm -f "$socket"
  echo "podman: starting" >&2
  # Its helpers leave files in the folder they were started from.
  cd "$folder"
  CONTAINERS_CONF=$folder/containers.conf CONTAINERS_REGISTRIES_CONF=$folder/registries.conf \
    bash "$here/daemon.sh" "$log" podman --root "$folder/data" --runroot "$folder/run" --tmpdir "$folder/tmp" \
    system service --time 0 "unix://$socket" &
  started=$!
  for _ in $(seq 300); do
    if answers || ! kill -0 "$started" 2>/dev/null; then break; fi
    sleep 0.1
  done
  answers || { tail -n 20 "$log" >&2; echo "podman: the service did not start (log: $log)" >&2; exit 1; }
fi
echo "export TEST_PODMAN_HOST=unix://$socket"
