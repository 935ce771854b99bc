#!/usr/bin/env bash
# Feeds every reader of a build for some seconds each: scripts/fuzz.sh PRESET [SECONDS [SEED]]. The preset fuzz needs clang:
# its libFuzzer follows what each input reaches; the others change inputs blindly. What ends a reader is left in
# build/PRESET/fuzz; once it is repaired, it belongs into tests/fuzz/cases, in a folder of the name of the reader.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=${1:?usage: scripts/fuzz.sh PRESET [SECONDS [SEED]]}
seconds=${2:-30}
seed=${3:-$(date +%s)}
scripts/build.sh "$preset" fuzz
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1  # what is undefined would only be printed
fuzz=$PWD/build/$preset/bin/fuzz
mkdir -p "build/$preset/fuzz"
cd "build/$preset/fuzz"
if [ "$preset" != fuzz ]; then
  "$fuzz" --list | xargs -P 2 -I{} "$fuzz" {} --seconds "$seconds" --seed "$seed"
  exit
fi
"$fuzz" --list | xargs -P 2 -I{} env GREYNIC_FUZZ_TARGET={} "$fuzz" -max_total_time="$seconds" -seed="$seed" \
  -max_len=100000 -timeout=10 -rss_limit_mb=4096 -artifact_prefix={}- -print_final_stats=1 -verbosity=0
