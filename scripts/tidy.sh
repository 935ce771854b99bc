#!/usr/bin/env bash
# clang-tidy and clang-format over the project's own sources, with its own configuration.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mapfile -t sources < <(git ls-files '*.cc' '*.h')
clang-format --dry-run --Werror "${sources[@]}"

# A file that was clean stays clean until it, or something that it may include, changes.
stamps=build/release/tidy
mkdir -p $stamps
headers=$( { cat .clang-tidy; git ls-files '*.h' | sort | xargs cat; } | sha256sum | cut -c1-16)
todo=()
while read -r source; do
  [ -f "$stamps/$(cat "$source" | sha256sum | cut -c1-32).$headers" ] || todo+=("$source")
done < <(python3 - <<'PY'
import json, os
root = os.getcwd() + "/"
for entry in json.load(open("build/release/compile_commands.json")):
    path = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
    if path.startswith(root) and not path.startswith(root + "build/"):
        print(path[len(root):])
PY
)
[ ${#todo[@]} -gt 0 ] || { echo "tidy: nothing changed" >&2; exit 0; }
echo "tidy: ${#todo[@]} files" >&2
export stamps headers
printf '%s\n' "${todo[@]}" | xargs -P 2 -I{} bash -c '
  clang-tidy --quiet -p build/release "{}" 2>/dev/null &&
    touch "$stamps/$(sha256sum < "{}" | cut -c1-32).$headers"'
