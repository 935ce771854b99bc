#!/usr/bin/env python3
"""Walls of real programs whose every configuration was measured: what `greynic explain` names, and what is true.

    python3 tests/bench/causal/real_systems.py measure FOLDER                     # zlib and SQLite, some minutes
    python3 tests/bench/causal/real_systems.py explain FOLDER GREYNIC [CASES [SEED]]

`measure` runs each configuration five times and keeps the rates by CPU time in FOLDER. `explain` draws walls,
asks greynic about each, and answers its tests from the table, one of the five measurements at a time: so
each test has the program's own noise, and the truth is known.

The truth takes no code of greynic's. Where a wall and the baseline differ in some settings, each subset of them is put
on the baseline; the smallest subsets whose median is a wall are the causes. Of a numeric setting in a cause, the
levels on both sides of the wall's are tried with the cause's other settings as they are: where they stop being walls is
the threshold. A wall is drawn only when all these medians are more than MARGIN away from the bound: what lies nearer
is a wall or not by chance, and levels there may be said or not. MARGIN is three times the error of a median of five
at the noise that `measure` prints.
What greynic calls emergent wakes when other settings are healed. Where the terms that the baseline does not meet are one
of these causes, it says besides what heals it; other emergent causes are not held against anything.
"""
import itertools
import json
import math
import pathlib
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import zlib

REPEATS = 5
BELOW = 0.5    # a wall loses this share of the baseline's rate
MARGIN = 0.25  # of the logarithm of a rate, over the bound or under it

SYSTEMS = {
    "zlib": dict(
        levels={"level": [1, 2, 3, 4, 5, 6, 7, 8, 9], "memory_level": [1, 3, 5, 7, 9],
                "window_bits": [9, 11, 13, 15], "strategy": ["default", "filtered", "huffman", "rle"],
                "data": ["records", "text", "random", "zeros"]},
        baseline={"level": 1, "memory_level": 9, "window_bits": 15, "strategy": "default", "data": "records"}),
    "sqlite": dict(
        levels={"page_bytes": [512, 1024, 4096, 16384, 65536], "cache_pages": [10, 100, 1000],
                "journal": ["off", "memory", "delete", "wal"], "synchronous": ["off", "full"],
                "rows_per_commit": [1, 4, 16, 64, 256], "secure_delete": ["no", "yes"], "index": ["no", "yes"]},
        baseline={"page_bytes": 4096, "cache_pages": 1000, "journal": "off", "synchronous": "off",
                  "rows_per_commit": 256, "secure_delete": "no", "index": "no"}),
}


def data_of(kind, size=1 << 15):
    draw = random.Random(1)
    if kind == "random":
        return draw.randbytes(size)
    if kind == "zeros":
        return bytes(size)
    if kind == "text":
        words = ["".join(draw.choices("etaoinshrdlu", k=draw.randint(2, 9))) for _ in range(500)]
        return " ".join(draw.choices(words, k=size // 4)).encode()[:size]
    return b"".join(b"%08d,%06d,ok;" % (i, draw.randrange(1000)) for i in range(size // 19))


def zlib_rate(at, data):
    strategy = {"default": zlib.Z_DEFAULT_STRATEGY, "filtered": zlib.Z_FILTERED,
                "huffman": zlib.Z_HUFFMAN_ONLY, "rle": zlib.Z_RLE}[at["strategy"]]
    began = time.process_time_ns()
    one = zlib.compressobj(at["level"], zlib.DEFLATED, at["window_bits"], at["memory_level"], strategy)
    one.compress(data[at["data"]])
    one.flush()
    return 1e9 / (time.process_time_ns() - began)


def sqlite_rate(at, folder):
    path = pathlib.Path(folder) / "one.db"
    for old in path.parent.glob("one.db*"):
        old.unlink()
    base = sqlite3.connect(path, isolation_level=None)
    for name, value in [("page_size", at["page_bytes"]), ("cache_size", at["cache_pages"]),
                        ("journal_mode", at["journal"]), ("synchronous", at["synchronous"]),
                        ("secure_delete", at["secure_delete"])]:
        base.execute(f"PRAGMA {name} = {value}").fetchall()
    base.execute("CREATE TABLE t (k INTEGER, v TEXT)")
    if at["index"] == "yes":
        base.execute("CREATE INDEX i ON t (v)")
    rows, value = 256, "x" * 100
    began = time.process_time_ns()
    for first in range(0, rows, at["rows_per_commit"]):
        base.execute("BEGIN")
        for k in range(first, first + at["rows_per_commit"]):
            base.execute("INSERT INTO t VALUES (?, ?)", (k, f"{k * 7919 % 256}{value}"))
        base.execute("COMMIT")
    base.execute("DELETE FROM t WHERE k % 2 = 0")
    took = time.process_time_ns() - began
    base.close()
    return 1e9 * rows / took


def key_of(at, names):
    return json.dumps([at[name] for name in names])


def measure(folder):
    folder.mkdir(parents=True, exist_ok=True)
    data = {kind: data_of(kind) for kind in SYSTEMS["zlib"]["levels"]["data"]}
    for system, about in SYSTEMS.items():
        names = list(about["levels"])
        table = {}
        with tempfile.TemporaryDirectory() as scratch:
            for _ in range(REPEATS):  # round by round, so that drift meets all alike
                for levels in itertools.product(*about["levels"].values()):
                    at = dict(zip(names, levels))
                    rate = zlib_rate(at, data) if system == "zlib" else sqlite_rate(at, scratch)
                    table.setdefault(key_of(at, names), []).append(rate)
        (folder / f"{system}.json").write_text(json.dumps(table))
        spread = statistics.median(statistics.stdev(map(math.log, rates)) for rates in table.values())
        print(f"{system}: {len(table)} configurations, {REPEATS} times each; median noise {spread:.3f}")


class Truth:
    """What the whole table says."""

    def __init__(self, system, table):
        self.levels, self.baseline = SYSTEMS[system]["levels"], SYSTEMS[system]["baseline"]
        self.names = list(self.levels)
        self.median = {key: statistics.median(rates) for key, rates in table.items()}
        self.bound = (1 - BELOW) * self.rate(self.baseline)

    def rate(self, at):
        return self.median[key_of(at, self.names)]

    def is_wall(self, at):
        """None: too near to the bound to tell."""
        ratio = self.rate(at) / self.bound
        return None if abs(math.log(ratio)) < MARGIN else ratio < 1

    def causes(self, wall):
        """The smallest sets of the wall's settings that are a wall; None: some subset is too near to the bound."""
        differing = [name for name in self.names if wall[name] != self.baseline[name]]
        found = []
        for size in range(len(differing) + 1):
            for subset in itertools.combinations(differing, size):
                verdict = self.is_wall(self.baseline | {name: wall[name] for name in subset})
                if verdict is None:
                    return None
                if verdict and not any(set(less) <= set(subset) for less in found):
                    found.append(subset)
        return found

    def range_of(self, wall, cause, name):
        """Places of levels: (first that may be said, first that must), (last that must, last that may)."""
        levels = self.levels[name]
        ends = []
        for step in (-1, 1):
            must = may = levels.index(wall[name])
            while 0 <= may + step < len(levels):
                verdict = self.is_wall(self.baseline | {n: wall[n] for n in cause} | {name: levels[may + step]})
                if verdict is False:
                    break
                may += step
                if verdict and must == may - step:
                    must = may
            ends.append((must, may))
        return (ends[0][1], ends[0][0]), ends[1]


def serve(path, seed):
    """Answers greynic's tests."""
    table = json.loads(pathlib.Path(path).read_text())
    system = pathlib.Path(path).stem
    names = list(SYSTEMS[system]["levels"])
    draw = random.Random(seed)
    for line in sys.stdin:
        request = json.loads(line)
        rates = table[key_of(request["configuration"], names)]
        print(json.dumps({"id": request["id"], "message_rate_mops": draw.choice(rates) * 1e-6}), flush=True)


def campaign_of(system):
    about = SYSTEMS[system]
    factors = {name: {"type": "categorical" if isinstance(levels[0], str) else "numeric", "levels": levels}
               for name, levels in about["levels"].items()}
    return {"version": 1, "name": system, "factors": factors, "design": "pairwise", "baseline": about["baseline"],
            "wall": {"metric": "message_rate_mops", "below_baseline_by": BELOW},
            "measure": {"repeats": 1, "seconds": 1}}


def holds(term, level):
    op, value = term["op"], term["value"]
    return {"==": lambda x: x == value, "in": lambda x: x in value, ">=": lambda x: x >= value,
            "<=": lambda x: x <= value, "between": lambda x: value[0] <= x <= value[1]}[op](level)


def range_said(term, levels):
    kept = [place for place, level in enumerate(levels) if holds(term, level)]
    return kept[0], kept[-1]


def terms_by_names(said, wanted, baseline):
    """Of each cause, the terms that the baseline does not meet."""
    got = {}
    for cause in said["causes"]:
        terms = [term for term in cause["terms"] if not holds(term, baseline[term["factor"]])]
        names = tuple(sorted(term["factor"] for term in terms))
        if not cause.get("emergent") or names in wanted:
            got[names] = terms
    return got


def fits(said, known):
    return all(least <= place <= most for place, (least, most) in zip(said, known))


def ask(greynic, folder, scratch, system, wall, seed):
    campaign, witness = scratch / "campaign.json", scratch / "wall.json"
    campaign.write_text(json.dumps(campaign_of(system)))
    witness.write_text(json.dumps(wall))
    target = f"exec:{sys.executable} {pathlib.Path(__file__).resolve()} serve {folder / system}.json {seed}"
    done = subprocess.run([greynic, "explain", campaign, "--target", target, "--witness", witness, "--json"],
                          capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"greynic explain ended with {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def explain(folder, greynic, cases, seed):
    print(f"{'system':8} {'cases':>5} {'settings right':>14} {'with thresholds':>15} {'tests':>6} {'most':>5} "
          f"{'of all':>7} {'no wall refused':>16}")
    misses = []
    for system in SYSTEMS:
        path = folder / f"{system}.json"
        if not path.is_file():
            sys.exit(f"{path} is missing: run `measure {folder}` first")
        truth = Truth(system, json.loads(path.read_text()))
        every = [dict(zip(truth.names, levels)) for levels in itertools.product(*truth.levels.values())]
        random.Random(seed).shuffle(every)
        settings = ranges = refused = clear = 0
        tests = []
        with tempfile.TemporaryDirectory() as scratch:
            for number, at in enumerate(every):
                verdict = truth.is_wall(at)
                if verdict is False and clear < cases:
                    clear += 1
                    said = ask(greynic, folder, pathlib.Path(scratch), system, at, number)
                    refused += said["verdict"] != "wall"
                    continue
                causes = truth.causes(at) if verdict and len(tests) < cases else None
                known = {(cause, name): truth.range_of(at, cause, name) for cause in causes or () for name in cause
                         if not isinstance(truth.levels[name][0], str)}
                if not causes:
                    continue
                said = ask(greynic, folder, pathlib.Path(scratch), system, at, number)
                tests.append(said["tests"])
                wanted = {tuple(sorted(cause)): cause for cause in causes}
                got = terms_by_names(said, wanted, truth.baseline)
                right = set(got) == set(wanted)
                settings += right
                same = right and all(
                    fits(range_said(term, truth.levels[term["factor"]]), known[cause, term["factor"]])
                    for names, cause in wanted.items() for term in got[names] if (cause, term["factor"]) in known)
                ranges += same
                if not same:
                    misses.append((system, number, at, said, causes, known))
                if len(tests) == cases and clear == cases:
                    break
        told = len(tests)
        if told == 0:
            sys.exit(f"{path}: no wall lies far enough from the bound; measure again on a quiet machine")
        print(f"{system:8} {told:5} {settings:14} {ranges:15} {statistics.mean(tests):6.1f} {max(tests):5} "
              f"{statistics.mean(tests) / len(every):7.4f} {refused:9} of {clear}", flush=True)
    for system, number, at, said, causes, known in misses:
        terms = [[(t["factor"], t["op"], t["value"]) for t in cause["terms"]] for cause in said["causes"]]
        print(f"{system} {number}: {json.dumps(at)}\n  said {said['verdict']}, complete {said['complete']}: {terms}\n"
              f"  true {[list(cause) for cause in causes]}, ranges {[(n, r) for (_, n), r in known.items()]}")


def main():
    words = sys.argv[1:]
    if len(words) == 2 and words[0] == "measure":
        measure(pathlib.Path(words[1]))
    elif len(words) == 3 and words[0] == "serve":
        serve(words[1], int(words[2]))
    elif 3 <= len(words) <= 5 and words[0] == "explain":
        explain(pathlib.Path(words[1]).resolve(), words[2], int(words[3]) if len(words) > 3 else 20,
                int(words[4]) if len(words) > 4 else 1)
    else:
        print(__doc__.strip(), file=sys.stderr)
        sys.exit(2)


main()
