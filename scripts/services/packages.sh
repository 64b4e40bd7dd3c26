#!/usr/bin/env bash
# Installs the Debian packages whose commands are missing; several callers at once take turns.
# Each argument is a package named like its command, or command=package.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive PATH=$PATH:/usr/sbin:/sbin

missing() {
  local each
  for each in "$@"; do
    command -v "${each%%=*}" >/dev/null || echo "${each#*=}"
  done
}

[ -n "$(missing "$@")" ] || exit 0
[ "$(id -u)" = 0 ] || { echo "packages: only root can install $(missing "$@" | xargs)" >&2; exit 1; }
# apt waits for dpkg's lock when it is asked to, but not for that of its package lists.
exec 9>/var/tmp/batch-runner-packages.lock
flock 9
mapfile -t packages < <(missing "$@")
[ ${#packages[@]} -gt 0 ] || exit 0
echo "packages: installing ${packages[*]}" >&2
apt-get update -qq >&2 9>&-
apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 "${packages[@]}" >&2 9>&-
