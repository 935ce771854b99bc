#!/usr/bin/env bash
# Installs what greynic is built from, by name, from Debian's and npm's registries. What is there stays.
#   scripts/setup.sh          all that greynic can use
#   scripts/setup.sh --demo   the compiler and the libraries, without drivers of real devices
#   scripts/setup.sh --web    the npm packages of the report's pictures, and npm itself where there is none
#   scripts/setup.sh --test   all that greynic can use, and what its tests need
#   scripts/setup.sh --all    and what clang-tidy and the sanitizers need
# Works as root or with sudo.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

web=yes
case "${1:-}" in
  "") classes="build optional" ;;
  --demo) classes="build" web=no ;;
  --web) classes="" ;;
  --test) classes="build optional test" ;;
  --all) classes="build optional test tidy" ;;
  *) sed -n '2,8p' "$0" | cut -c3- >&2; exit 2 ;;
esac
# npm is asked for only where there is none: a newer one from elsewhere does as well.
if [ $web = yes ] && ! command -v npm >/dev/null; then classes="$classes npm"; fi

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else echo "setup: this needs root to install packages: run it as root or install sudo" >&2; exit 3
  fi
}

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

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
  # Packages are not synced to disk one by one: what a power cut takes away is installed again.
  install=(apt-get install -y --no-install-recommends -o Dpkg::Options::=--force-unsafe-io "${missing[@]}")
  if [ -t 2 ]; then
    as_root env DEBIAN_FRONTEND=noninteractive "${install[@]}" -q -o Dpkg::Progress-Fancy=1 >&2
  else
    as_root env DEBIAN_FRONTEND=noninteractive "${install[@]}" -qq >/dev/null
  fi
elif [ -n "$classes" ]; then
  echo "setup: all packages are there" >&2
fi

# Pictures are drawn by Apache ECharts, from npm, at the version that the lock file names.
folder=results/web
if [ $web = yes ] && ! cmp -s $folder/package-lock.json $folder/node_modules/.installed; then
  echo "setup: installing the npm packages of $folder" >&2
  (cd $folder && npm ci --loglevel=error --no-audit --no-fund --ignore-scripts >/dev/null) || {
    echo "setup: npm cannot install the packages of $folder (its words are above); without them reports have no pictures" >&2
    exit 3
  }
  cp $folder/package-lock.json $folder/node_modules/.installed
fi
