#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test of the release build. What this machine
# cannot run is skipped, with the reason and the remedy. `scripts/test.sh --all` runs tests that take
# minutes too, then the unit tests again under the address, undefined-behaviour and thread sanitizers,
# feeds every reader with changed input for half a minute, and runs clang-tidy; a cold machine of 2
# cores needs more than an hour for that. docs/sanitizers.md lists what it leaves out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
started=$SECONDS
case "${1:-}" in
  "" | --all) ;;
  *) echo "usage: scripts/test.sh [--all]" >&2; exit 2 ;;
esac

scripts/setup.sh "${1:---test}"
scripts/build.sh release
# Tests that take minutes and belong to --all look for this.
if [ "${1:-}" = --all ]; then export GREYNIC_ALL=1; fi
ctest --preset release -j 2
if [ "${1:-}" = --all ]; then
  for preset in asan tsan; do
    scripts/build.sh $preset unit_tests
    ctest --preset $preset -j 2
  done
  scripts/fuzz.sh asan 30
  scripts/tidy.sh
fi
echo "test: all done in $((SECONDS - started)) s" >&2
