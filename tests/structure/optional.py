#!/usr/bin/env python3
"""Compiles, without its optional libraries, every file that asks for them with #ifdef GREYNIC_...

This machine may have all of them; a file must compile on one that has none. Each file is compiled
for its errors alone, by the command of compile_commands.json without those definitions.

  optional.py SOURCE BUILD [--self-test]
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys

ASKED = re.compile(r"^#\s*if(?:def|ndef)?\b.*\b(GREYNIC_\w*WITH_\w+)", re.M)


def without(command: list[str], names: set[str]) -> list[str]:
    """The command that only looks for errors, with these definitions taken out."""
    kept, skip = [], False
    for word in command:
        if skip:
            skip = False
        elif word in ("-o", "-MF", "-MT"):
            skip = True
        elif word.startswith("-D") and word[2:].split("=")[0] in names or word in ("-MD", "-c"):
            continue
        elif not word.endswith("ccache"):
            kept.append(word)
    return kept + ["-fsyntax-only"]


def sources_of(entry: dict) -> list[pathlib.Path]:
    """The file of an entry, or the files that it joins where a room is compiled in tens."""
    path = pathlib.Path(entry["directory"], entry["file"])
    if path.parent.name != "Unity":
        return [path]
    return [pathlib.Path(name) for name in re.findall(r'#include "([^"]+)"', path.read_text())]


def main() -> int:
    source, build = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    if "--self-test" in sys.argv:
        made = without(shlex.split("/usr/bin/ccache g++ -DA_WITH_B -DC -MD -MF x -o y -c z.cc"), {"A_WITH_B"})
        assert made == ["g++", "-DC", "z.cc", "-fsyntax-only"], made
        assert ASKED.search("#ifdef GREYNIC_FLOWS_WITH_DPDK").group(1) == "GREYNIC_FLOWS_WITH_DPDK"
    found, failed = 0, 0
    commands = {path: entry for entry in json.loads((build / "compile_commands.json").read_text())
                for path in sources_of(entry) if source in path.parents and build not in path.parents}
    for path, entry in commands.items():
        names = set(ASKED.findall(path.read_text()))
        if not names:
            continue
        found += 1
        command = [str(path) if word == entry["file"] else word
                   for word in without(shlex.split(entry["command"]), names)]
        done = subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True)
        if done.returncode != 0:
            failed += 1
            print(f"{path.relative_to(source)} does not compile without {', '.join(sorted(names))}:\n{done.stderr}")
    if found == 0:
        print(f"no file under {source} asks for an optional library: has the way of asking changed?")
    return 1 if failed or not found else 0


sys.exit(main())
