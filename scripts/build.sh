#!/usr/bin/env bash
# Configures and builds one preset, quietly unless something is wrong: scripts/build.sh release
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=${1:?usage: scripts/build.sh PRESET [TARGET...]}
shift

log=$(mktemp)
trap 'rm -f "$log"' EXIT
quietly() {
  if ! "$@" >"$log" 2>&1; then
    grep -E 'error|Error|FAILED|undefined' -A 6 "$log" | head -80 >&2 || tail -40 "$log" >&2
    echo "build: '$*' failed" >&2
    exit 1
  fi
  grep -E '^-- off:' "$log" >&2 || true  # parts that are switched off say so
}
echo "build: $preset" >&2
quietly cmake --preset "$preset"
quietly cmake --build --preset "$preset" ${1:+--target "$@"}
