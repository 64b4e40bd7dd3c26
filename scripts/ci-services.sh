#!/usr/bin/env bash
# What the tests need beside Node, installed and started where it is missing (Debian, as root), and the lines that lead to it:
# bubblewrap, busybox, Chromium, espeak-ng, Python's datasets, and the engines, registries and images that containers are tested with.
set -euo pipefail
services=$(cd "$(dirname "$0")/services" && pwd)
outputs=$(mktemp -d)
trap 'rm -rf "$outputs"' EXIT

# All packages at once: one run of apt is much faster than one for each service.
packages=(bwrap=bubblewrap nsenter=util-linux chromium curl debootstrap docker-registry dockerd=docker.io espeak-ng mksquashfs=squashfs-tools patchelf podman runc)
[ -x /bin/busybox ] || packages+=(busybox-static)
python3 -c 'import venv, ensurepip' 2>/dev/null || packages+=(python3 python3-venv)
bash "$services/packages.sh" "${packages[@]}"

datasets() {
  local venv=${BATCH_RUNNER_VENV:-/var/tmp/batch-runner-venv}
  # To look up the package's version takes a tenth of the time of importing it; pip installs it after all that it needs.
  if ! "$venv/bin/python" -c 'from importlib.metadata import version; version("datasets")' 2>/dev/null; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet 'datasets==5.2.0' >&2
  fi
  echo "export DATASETS_PYTHON=$venv/bin/python"
}

# one_by_one <script...>: each sees what those before it export
one_by_one() {
  local name lines
  for name in "$@"; do
    lines=$(bash "$services/$name.sh") || { echo "could not be set up: $name" >&2; return 1; }
    [ -z "$lines" ] || echo "$lines"
    eval "$lines"
  done
}

(set -e; datasets) >"$outputs/datasets" &
jobs=($!)
one_by_one docker registry images >"$outputs/docker" &
jobs+=($!)
one_by_one podman >"$outputs/podman" &
jobs+=($!)
if [ -e "$services/apptainer.sh" ]; then
  one_by_one apptainer >"$outputs/apptainer" &
  jobs+=($!)
fi
wait "${jobs[0]}" || { echo "could not be set up: datasets" >&2; failed=1; }
for job in "${jobs[@]:1}"; do wait "$job" || failed=1; done
cat "$outputs"/*
[ -z "${failed:-}" ]
