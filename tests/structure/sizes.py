"""Claim: rooms stay readable. No folder holds more than 25 files of code, no file is much longer than 500
lines, and no function longer than 80. Functions are found by clang-format's layout: a body ends with the first brace
at the column where its first line begins.

usage: sizes.py SOURCE_DIR             checks the tree
       sizes.py SOURCE_DIR --self-test  checks that a planted long function is found
"""

import collections
import pathlib
import re
import subprocess
import sys

MOST_FILES, MOST_LINES, MOST_FUNCTION_LINES, MOST_TEST_LINES = 25, 520, 85, 100
OPENS = re.compile(r"^( *)(?!namespace|struct|class|union|enum|extern|constexpr \w+ k|static const|const )"
                   r"[\w\[:~].*[)\w>] (?:const |noexcept |override |final )*\{$|^( *)\S.*\) (?:const )?(?:override )?\{$")


def long_functions(lines, most):
    start = None
    for number, line in enumerate(lines, 1):
        if start is None:
            opened = OPENS.match(line)
            # Only whole functions: in namespaces at column 0, in classes at column 2.
            if opened and len(opened.group(1) or opened.group(2) or "") <= 2:
                indent = len(line) - len(line.lstrip(" "))
                if line.lstrip().split("(")[0].split(" ")[0] in ("if", "for", "while", "switch", "else", "}"):
                    continue
                start, end = number, " " * indent + "}"
        elif line.startswith(end) and line[len(end):] in ("", ";"):
            if number - start + 1 > most:
                yield start, number - start + 1
            start = None


def complaints(root):
    names = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True).stdout.split()
    code = [name for name in names or [p.relative_to(root).as_posix() for p in root.rglob("*.*")]
            if name.endswith((".cc", ".h", ".c", ".js")) and (root / name).exists()]
    folders = collections.Counter(pathlib.PurePath(name).parent.as_posix() for name in code)
    for folder, count in sorted(folders.items()):
        if count > MOST_FILES:
            yield f"{folder}: {count} files of code; more than {MOST_FILES} want subfolders"
    for name in code:
        lines = (root / name).read_text().splitlines()
        if len(lines) > MOST_LINES:
            yield f"{name}: {len(lines)} lines; more than {MOST_LINES} are more than one idea"
        if name.endswith((".cc", ".h")):
            most = MOST_TEST_LINES if name.startswith("tests/") else MOST_FUNCTION_LINES
            for start, length in long_functions(lines, most):
                yield f"{name}:{start}: a function of {length} lines; split it below 80"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    found = list(complaints(root))
    if "--self-test" in sys.argv:
        planted = ["void f() {"] + ["  g();"] * MOST_FUNCTION_LINES + ["}"]
        if not list(long_functions(planted, MOST_FUNCTION_LINES)):
            found.append("self-test: a planted long function was not found")
    print("\n".join(found) or "sizes are fine")
    return 1 if found else 0


sys.exit(main())
