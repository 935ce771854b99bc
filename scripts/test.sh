#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test: the release build's, then the unit tests
# again under address and undefined-behaviour sanitizers and under the thread sanitizer, then
# clang-tidy. What this machine cannot run is skipped, with the reason and the remedy.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
started=$SECONDS

scripts/setup.sh --test
scripts/build.sh release
ctest --preset release -j 2
for preset in asan tsan; do
  scripts/build.sh $preset unit_tests
  ctest --preset $preset -j 2
done
scripts/tidy.sh
echo "test: all done in $((SECONDS - started)) s" >&2
