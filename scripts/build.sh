#!/usr/bin/env bash
# Configures and builds one preset: scripts/build.sh PRESET [TARGET...]. On a terminal it shows how far it is and
# how long that will still take; elsewhere it is quiet unless something is wrong.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=${1:?usage: scripts/build.sh PRESET [TARGET...]}
shift

log=$(mktemp)
trap 'rm -f "$log"' EXIT
fail() {
  grep -E 'error|Error|FAILED|undefined' -A 6 "$log" | head -80 >&2 || tail -40 "$log" >&2
  echo "build: $1 failed" >&2
  exit 1
}

# Draws a bar of ninja's "[finished/total seconds]" lines.
show_progress() {
  awk -v terminal="$([ -t 2 ] && echo 1 || echo 0)" -v preset="$preset" '
    match($0, /^\[[0-9]+\/[0-9]+ [0-9.]+\]/) {
      if (!terminal) next
      split(substr($0, 2, RLENGTH - 2), part, /[\/ ]/)
      left = part[3] * (part[2] - part[1]) / part[1]
      bar = sprintf("%*s", int(30 * part[1] / part[2]), ""); gsub(/ /, "#", bar)
      printf "\rbuild: %s [%-30s] %d of %d, %d:%02d left ", preset, bar, part[1], part[2],
             left / 60, left % 60 > "/dev/stderr"
    }
    END { if (terminal) printf "\r%79s\r", "" > "/dev/stderr" }'
}

echo "build: $preset" >&2
cmake --preset "$preset" >"$log" 2>&1 || fail "configuring $preset"
grep -E '^-- off:' "$log" >&2 || true  # parts that are switched off say so
NINJA_STATUS='[%f/%t %e] ' cmake --build --preset "$preset" ${1:+--target "$@"} 2>&1 |
  tee "$log" | show_progress || fail "building $preset"
