#!/usr/bin/env bash
# usage: docs/pictures/make.sh [greynic]
# Makes the pictures of README and docs/ from the demo's run: the head of the report, its walls, and its law.
# Needs Chromium (scripts/setup.sh --test). The default program is build/release/bin/greynic.
set -euo pipefail
cd "$(dirname "$0")/../.."
greynic=${1:-build/release/bin/greynic}
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

greynic=$(realpath "$greynic")
(cd "$work" && "$greynic" tune mask_wall --target twin:cx6 --rules container_host --traffic zipf:1.1 --seed 7 \
  --out demo) > "$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }

# picture NAME WIDTH HEIGHT CSS: the report with some CSS more, as docs/pictures/NAME.png
picture() {
  local page
  page=$(< "$work/demo/report.html")
  printf '%s' "${page/'</head>'/"<style>$4</style></head>"}" > "$work/page.html"
  "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
    --user-data-dir="$work/profile" --virtual-time-budget=10000 --window-size="$2,$3" \
    --screenshot="docs/pictures/$1.png" "file://$work/page.html" 2> "$work/log" || { cat "$work/log" >&2; exit 1; }
}

bare='header, nav { display: none; } main { padding: 0; } section { border: 0; margin: 0; } body { background: #fff; }'
picture report 1240 860 ''
picture wall 1000 450 "$bare section:not(#walls), #walls > :not(figure) { display: none; }"
picture law 1240 350 "$bare section:not(#model), #model > :not(.grid) { display: none; }
  #model > .grid ~ .grid ~ .grid, figure:has([data-kind=predicted], [data-kind=residuals]) { display: none; }
  .grid:has([data-kind=predicted]) { display: none; }
  figure:has([aria-label=message_bytes], [aria-label=qp_count]) { display: none; }"
