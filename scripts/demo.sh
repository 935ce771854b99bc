#!/usr/bin/env bash
# Installs what is missing, builds, and runs the whole loop on a virtual ConnectX-6: finds a wall,
# names its cause, fits the law, proposes a faster rule layout, proves it, applies it, measures again.
# Only what the demo uses is installed and built; scripts/setup.sh brings the drivers of real devices.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
started=$SECONDS

scripts/setup.sh --demo
# The report's pictures come from npm. A bare system has to install npm first, which happens while the compiler works.
scripts/setup.sh --web &
web=$!
scripts/build.sh release greynic
if wait $web; then
  scripts/build.sh release greynic  # takes the pictures in
else
  echo "demo: goes on without the report's pictures" >&2
fi
echo "demo: ready after $((SECONDS - started)) s" >&2

out=results/$(date +%Y-%m-%d)-demo
rm -rf "$out"
build/release/bin/greynic tune configs/campaigns/mask_wall.json --target twin:cx6 \
  --rules configs/rules/container_host.flows --traffic zipf:1.1 --seed 7 --out "$out"
echo "demo: done after $((SECONDS - started)) s" >&2
