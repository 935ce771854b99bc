#!/usr/bin/env bash
# clang-tidy and clang-format over the project's own sources, with its own configuration.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mapfile -t sources < <(git ls-files '*.cc' '*.h')
clang-format --dry-run --Werror "${sources[@]}"

# A file that was clean stays clean until it, or something that it includes, changes. Lines of
# "digest file" for what is to be looked at; the build of the address sanitizer, which compiles file by
# file, knows what each includes.
export build=build/asan stamps=build/asan/tidy
scripts/build.sh asan unit_tests
mkdir -p $stamps
todo=$(python3 - <<'PY'
import hashlib, json, os, subprocess
root, build = os.getcwd() + "/", os.environ["build"]
includes, files = {}, None
listing = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True)
for line in listing.stdout.splitlines():
    if not line.startswith(" "):
        files = includes.setdefault(line.split(":")[0], [])
    elif line.strip():
        path = os.path.normpath(os.path.join(root + build, line.strip()))
        if path.startswith(root) and not path.startswith(root + build):
            files.append(path)
for entry in json.load(open(build + "/compile_commands.json")):
    path = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
    if not path.startswith(root) or path.startswith(root + build):
        continue
    target = entry["command"].split(" -o ")[1].split(" ")[0]
    digest = hashlib.sha256(open(".clang-tidy", "rb").read())
    for include in [path] + sorted(includes.get(target, [])):
        digest.update(open(include, "rb").read())
    digest = digest.hexdigest()[:32]
    if not os.path.exists(os.path.join(os.environ["stamps"], digest)):
        print(digest, path[len(root):])
PY
)
[ -n "$todo" ] || { echo "tidy: nothing changed" >&2; exit 0; }
echo "tidy: $(wc -l <<<"$todo") files" >&2
xargs -P 2 -L 1 bash -c '
  clang-tidy --quiet -p "$build" "$1" 2>/dev/null && touch "$stamps/$0"' <<<"$todo"
