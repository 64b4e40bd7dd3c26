#!/usr/bin/env bash
# What the tests need beside Node, installed where it is missing (Debian, as root): bubblewrap, busybox, and Python's datasets.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
need=()
command -v bwrap >/dev/null || need+=(bubblewrap)
command -v nsenter >/dev/null || need+=(util-linux)
[ -x /bin/busybox ] || [ -x /usr/bin/busybox ] || need+=(busybox-static)
command -v python3 >/dev/null || need+=(python3)
if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then need+=(python3-venv); fi
if [ ${#need[@]} -gt 0 ]; then
  apt-get update -qq >&2
  apt-get install -y -qq --no-install-recommends "${need[@]}" >&2
fi
VENV=${BATCH_RUNNER_VENV:-/var/tmp/batch-runner-venv}
if ! "$VENV/bin/python" -c 'import datasets' 2>/dev/null; then
  rm -rf "$VENV"
  python3 -m venv "$VENV"
  "$VENV/bin/pip" install --quiet 'datasets==5.2.0' >&2
fi
echo "export DATASETS_PYTHON=$VENV/bin/python"
