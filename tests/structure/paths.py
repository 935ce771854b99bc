"""Claim: a path that a page names is there. Pages are README.md, CONTRIBUTING.md and all of docs/; a path is
what stands in backquotes and begins with a folder or file of the root, with or without `{a,b}`, `*` and `#anchor`.
Links between pages lead somewhere too, and `Suite.Test` is a test, of GoogleTest or of a CMakeLists.txt.

usage: paths.py SOURCE_DIR             checks the pages
       paths.py SOURCE_DIR --self-test  checks that a planted wrong path, dead link and test are found
"""

import itertools
import pathlib
import re
import sys

TEST = re.compile(r"^(?:\w+/)?([A-Z]\w*[a-z]\w*\.[A-Z]\w*)$")
QUOTED = re.compile(r"`([^`\s]+)`")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
# What the build, a run or a user makes; and results/<date>-<name>, which is a pattern.
MADE = re.compile(r"^(build/|results/(2|mine|<)|results/web/node_modules)")


def spelled_out(path):
    found = BRACES.search(path)
    if not found:
        return [path]
    head, tail = path[: found.start()], path[found.end():]
    return list(itertools.chain.from_iterable(
        spelled_out(head + choice + tail) for choice in found.group(1).split(",")))


def tests_of(root):
    """What matches the names of all tests. What CMake puts into ${} is a word of the same file."""
    names = []
    for path in (root / "tests").rglob("*.cc"):
        for suite, name in re.findall(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", path.read_text(), re.M):
            names.append(f"{suite}\\.{name}")
    for path in (root / "tests").rglob("CMakeLists.txt"):
        text = path.read_text()
        words = "(?:" + "|".join(sorted(set(re.findall(r"\w+", text)))) + ")"
        for name in re.findall(r"(?:add_test\(NAME|greynic_vm_test\() ?(\S+)", text):
            names.append(re.sub(r"\$\{\w+\}", lambda _: words, name.replace(".", "\\.")))
    return re.compile("|".join(names))


def complaints(root, text, page, tops, tests):
    for number, line in enumerate(text.splitlines(), 1):
        for quoted in QUOTED.findall(line):
            if (test := TEST.match(quoted)) and not tests.fullmatch(test[1]):
                yield f"{page}:{number}: there is no test {quoted}"
            path = quoted.split("#")[0].rstrip(".,;:")
            if path.split("/")[0] not in tops or "/" not in path or MADE.match(path):
                continue
            for one in spelled_out(path):
                if not (list(root.glob(one.rstrip("/"))) if "*" in one else (root / one).exists()):
                    yield f"{page}:{number}: {one} is not in the tree"
        for link in LINK.findall(line):
            if "://" not in link and not (root / page).parent.joinpath(link).exists():
                yield f"{page}:{number}: the link to {link} leads nowhere"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    tests = tests_of(root)
    tops = {path.name for path in root.iterdir()}
    pages = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]
    found = []
    for page in pages:
        found += complaints(root, page.read_text(), page.relative_to(root).as_posix(), tops, tests)
    if "--self-test" in sys.argv:
        for planted in ("see `core/src/nothing.cc`", "see `core/src/{units,nothing}.cc`", "[x](nothing.md)", "`Door.ServesNobody`",
                        "`Kill.Nobody`"):
            if not list(complaints(root, planted, "README.md", tops, tests)):
                found.append(f"self-test: '{planted}' was not found")
    print("\n".join(found) or "every path and test is in the tree")
    return 1 if found else 0


sys.exit(main())
