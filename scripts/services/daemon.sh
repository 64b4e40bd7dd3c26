#!/usr/bin/env bash
# daemon.sh <log> <command...>: becomes a program that may outlive its starter, in a session of its own.
set -euo pipefail
# Whatever the starter holds open (locks, pipes whose end somebody waits for) is not for the program.
for descriptor in "/proc/$$/fd"/*; do
  number=${descriptor##*/}
  if [ "$number" -gt 2 ]; then eval "exec $number>&-"; fi
done
exec setsid "${@:2}" </dev/null >"$1" 2>&1
