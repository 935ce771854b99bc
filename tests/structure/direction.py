"""Claim: dependencies point one way, as rooms.txt says: no room includes or links a room that it may
not know, every room is listed, and the listed rooms form no cycle. What causal, model and optimizer
must infer is sealed from them by the same table: none of them may know the twin.

usage: direction.py SOURCE_DIR            checks the tree
       direction.py SOURCE_DIR --self-test  plants a forbidden include and a forbidden link, and a
                                            room that is not listed, and expects each to be found
"""

import pathlib
import re
import shutil
import sys
import tempfile

INCLUDE = re.compile(r'#include\s+"greynic/([a-z_]+)/')
LINK = re.compile(r"greynic::([a-z_]+)")


def read_rooms(root):
    rooms = {}
    for line in (root / "tests/structure/rooms.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            head, allowed = line.split(":")
            name, folder = head.split()
            rooms[name] = (folder, set(allowed.split()))
    return rooms


def files_of(root, folder, rooms):
    inner = [other for other, _ in rooms.values() if other.startswith(folder + "/")]
    for path in sorted((root / folder).rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_file() and not any(name.startswith(other + "/") for other in inner):
            yield name, path


def complaints(root):
    rooms = read_rooms(root)
    found = []
    for name, (folder, allowed) in rooms.items():
        for used in allowed - set(rooms):
            found.append(f"rooms.txt: {name} names the unknown room {used}")
        for file, path in files_of(root, folder, rooms):
            if path.suffix in (".h", ".cc"):
                pattern = INCLUDE
            elif path.name == "CMakeLists.txt":
                pattern = LINK
            else:
                continue
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                for used in pattern.findall(line.split("#")[0] if pattern is LINK else line):
                    if used != name and used not in allowed:
                        found.append(f"{file}:{number}: {name} may not know {used}")
    listed = {folder for folder, _ in rooms.values()}
    for cmake in sorted(root.rglob("CMakeLists.txt")):
        folder = cmake.parent.relative_to(root).as_posix()
        if folder.split("/")[0] in ("tests", "build", "docs"):
            continue
        if "greynic_library(" in cmake.read_text() and folder not in listed:
            found.append(f"{folder}: is a room that rooms.txt does not list")
    seen = {}

    def visit(name, path):
        if name in path:
            found.append("rooms.txt: a cycle: " + " -> ".join(path + [name]))
        elif name not in seen:
            seen[name] = True
            for used in sorted(rooms.get(name, ("", set()))[1]):
                visit(used, path + [name])

    for name in rooms:
        visit(name, [])
    return found


def self_test(root):
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "tree"
        shutil.copytree(root, copy, ignore=shutil.ignore_patterns(
            ".git", "build", "docs", "node_modules", "*.json", "*.db"))

        def found_after(path, text):
            path.parent.mkdir(parents=True, exist_ok=True)
            old = path.read_text() if path.exists() else None
            path.write_text((old or "") + text)
            result = complaints(copy)
            path.write_text(old) if old is not None else path.unlink()
            return result

        planted = [
            (copy / "causal/src/planted.cc", '#include "greynic/twin/twin.h"\n'),
            (copy / "model/CMakeLists.txt", "target_link_libraries(greynic_model PRIVATE greynic::twin)\n"),
            (copy / "core/src/planted.cc", '#include "greynic/files/json_file.h"\n'),
            (copy / "testgen/check/src/planted.cc", '#include "greynic/testgen/cover.h"\n'),
            (copy / "testgen/check/CMakeLists.txt", "target_link_libraries(greynic_check PRIVATE greynic::testgen)\n"),
            (copy / "attic/CMakeLists.txt", "greynic_library(attic)\n"),
        ]
        for path, text in planted:
            if not found_after(path, text):
                return [f"planted in {path.relative_to(copy)}, not found: {text.strip()}"]
    return []


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    found = complaints(root)
    if "--self-test" in sys.argv and not found:
        found = self_test(root)
    print("\n".join(found) or "no forbidden include or link")
    return 1 if found else 0


sys.exit(main())
