#!/usr/bin/env bash
# Installs what is missing, builds, and runs the whole loop on a virtual ConnectX-6: finds a wall,
# names its cause, fits the law, proposes a faster rule layout, proves it, applies it, measures again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup.sh
scripts/build.sh release greynic
out=results/$(date +%Y-%m-%d)-demo
rm -rf "$out"
exec build/release/bin/greynic tune configs/campaigns/mask_wall.json --target twin:cx6 \
  --rules configs/rules/container_host.flows --traffic zipf:1.1 --seed 7 --out "$out"
