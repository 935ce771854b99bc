#!/usr/bin/env bash
# clang-tidy and clang-format over the project's own sources, with its own configuration.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mapfile -t sources < <(git ls-files '*.cc' '*.h')
clang-format --dry-run --Werror "${sources[@]}"

# A file that was clean stays clean until it, or something that it includes, changes. Lines of "digest file" for what is
# to be looked at. The preset dev compiles file by file; it is configured for its list of commands, and made are only the
# headers that tools write.
export build=build/dev stamps=build/dev/tidy
cmake --preset dev >/dev/null
ninja -C $build -t targets all | sed -n 's/^\([^/].*\.pb\.h\): CUSTOM_COMMAND$/\1/p' | xargs -r ninja -C $build >/dev/null
mkdir -p $stamps
todo=$(python3 - <<'PY'
import functools, hashlib, json, os, re
root, build, stamps = os.getcwd() + "/", os.environ["build"], os.environ["stamps"]

@functools.cache
def read(path):
    text = open(path, "rb").read()
    return hashlib.sha256(text).digest(), re.findall(r'^#include "(.+)"', text.decode(), re.M)

def included(path, folders, found):
    for name in read(path)[1]:
        for folder in [os.path.dirname(path)] + folders:
            header = os.path.normpath(os.path.join(folder, name))
            if header.startswith(root) and not header.startswith(root + "build/") and os.path.exists(header):
                if header not in found:
                    found.add(header)
                    included(header, folders, found)
                break
    return found

for entry in json.load(open(build + "/compile_commands.json")):
    path = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
    if not path.startswith(root) or path.startswith(root + "build/"):
        continue
    folders = re.findall(r" -I(\S+)", entry["command"])
    digest = hashlib.sha256(open(".clang-tidy", "rb").read())
    for one in [path] + sorted(included(path, folders, set())):
        digest.update(read(one)[0])
    digest = digest.hexdigest()[:32]
    if not os.path.exists(os.path.join(stamps, digest)):
        print(digest, path[len(root):])
PY
)
[ -n "$todo" ] || { echo "tidy: nothing changed" >&2; exit 0; }
echo "tidy: $(wc -l <<<"$todo") files" >&2
xargs -P 2 -L 1 bash -c '
  clang-tidy --quiet -p "$build" "$1" 2>/dev/null && touch "$stamps/$0"' <<<"$todo"
