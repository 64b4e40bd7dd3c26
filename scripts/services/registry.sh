#!/usr/bin/env bash
# Starts two image registries on this machine for the tests, an open and a private one, and prints the lines that name them.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${BATCH_RUNNER_REGISTRY:-/var/tmp/batch-runner-registry}

fail() { echo "registry: $*" >&2; exit 1; }
is_registry() { curl -s --max-time 5 -D - -o /dev/null "http://127.0.0.1:$1/v2/" | grep -qi '^docker-distribution-api-version:'; }
# Whether anything accepts connections there.
is_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# serve <name> <port> <further lines of its configuration>
serve() {
  local name=$1 port=$2 started
  if is_registry "$port"; then return; fi
  # A registry that is starting accepts connections a moment before it answers.
  if is_taken "$port"; then
    sleep 1
    is_registry "$port" || fail "port $port is held by something that is not a registry"
    return
  fi
  mkdir -p "$folder/$name"
  cat >"$folder/$name.yml" <<END
version: 0.1
log: { level: warn }
storage:
  filesystem: { rootdirectory: $folder/$name }
  delete: { enabled: true }
http: { addr: "127.0.0.1:$port" }
$3
END
  echo "registry: starting the $name one on port $port" >&2
  bash "$here/daemon.sh" "$folder/$name.log" docker-registry serve "$folder/$name.yml" &
  started=$!
  for _ in $(seq 100); do
    if is_registry "$port"; then return; fi
    kill -0 "$started" 2>/dev/null || break
    sleep 0.1
  done
  tail -n 20 "$folder/$name.log" >&2
  fail "the $name one did not start (log: $folder/$name.log)"
}

bash "$here/packages.sh" docker-registry curl
mkdir -p "$folder"
exec 9>"$folder/lock"
flock 9
serve open 5000 ""
# The password is `secret`: it guards nothing but images of the tests.
# shellcheck disable=SC2016
echo 'tester:$2b$12$p7YbZiDXdHaCf7DDF4Ig0.N2YJ3cBXuC2SM1NU25ugR4tAnEI0T72' >"$folder/htpasswd"
serve private 5001 "auth: { htpasswd: { realm: tests, path: $folder/htpasswd } }"
echo "export TEST_REGISTRY=localhost:5000"
echo "export TEST_PRIVATE_REGISTRY=localhost:5001"
