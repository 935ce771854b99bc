#!/usr/bin/env bash
# Installs what greynic is built from, by name, from Debian's and npm's registries. Idempotent: what
# is there stays. `--test` adds what only the tests need, `--all` also clang-tidy and clang-format. Works
# as root or with sudo.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

classes="build optional"
case "${1:-}" in
  "") ;;
  --test) classes="$classes test" ;;
  --all) classes="$classes test tidy" ;;
  *) echo "usage: scripts/setup.sh [--test | --all]" >&2; exit 2 ;;
esac

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else echo "setup: this needs root to install packages: run it as root or install sudo" >&2; exit 3
  fi
}

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# npm is asked for only where there is none: a newer one from elsewhere does as well.
command -v npm >/dev/null || classes="$classes npm"

missing=()
while read -r class package; do
  case " $classes " in *" $class "*) installed "$package" || missing+=("$package") ;; esac
done < <(grep -v '^#' scripts/packages.txt | awk 'NF == 2')

if [ ${#missing[@]} -gt 0 ]; then
  echo "setup: installing ${missing[*]}" >&2
  as_root apt-get update -qq
  # Services that packages would start are not wanted: tests start their own, in private folders.
  policy=/usr/sbin/policy-rc.d
  if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null
    as_root chmod +x $policy
    trap 'as_root rm -f /usr/sbin/policy-rc.d' EXIT
  fi
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >/dev/null
else
  echo "setup: all packages are there" >&2
fi

# Pictures are drawn by Apache ECharts, from npm, at the version that the lock file names.
web=results/web
if [ -f $web/package-lock.json ] && ! cmp -s $web/package-lock.json $web/node_modules/.installed; then
  echo "setup: installing the npm packages of $web" >&2
  (cd $web && npm ci --silent --no-audit --no-fund --ignore-scripts)
  cp $web/package-lock.json $web/node_modules/.installed
fi
