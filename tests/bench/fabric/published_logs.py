#!/usr/bin/env python3
"""Stock perftest in virtual time beside the published logs of a ConnectX-6 (ScalaCN): the same
programs with the same options, behind the same flow groups, on `twin:cx6`.

For each log: error of t_typical (half a round trip) over 23 sizes, or of the bandwidth of 64 B,
4 KiB and 8 MiB. `greynic validate twin:cx6` accepts 3 % in the mean and 8 % at worst of a latency
log, 10 % of a bandwidth and 1 % of 8 MiB without groups: the last column says whether it holds.

usage: published_logs.py GREYNIC FOLDER_OF_LOGS [WORDS IN THE LOG'S NAME ...]
"""

import glob
import os
import re
import subprocess
import sys

LATENCY = [["-a", "-n", "30", "-m", "1024", "-I", "220"]]
BANDWIDTH = [["-s", size, "-n", count, "-q", "4", "-m", "1024"]
             for size, count in (("64", "2000"), ("4096", "1000"), ("8388608", "100"))]


def table_of(text, column):
    """Bytes to the number in a column of perftest's table."""
    rows = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) > 4 and words[0].isdigit() and words[1].isdigit():
            rows[int(words[0])] = float(words[column])
    return rows


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    greynic, folder, wanted = sys.argv[1], sys.argv[2], sys.argv[3:]
    names = sorted(glob.glob(os.path.join(folder, "*_pod.log")))
    if not names:
        sys.exit(f"published_logs.py: no logs in {folder}")
    held = True
    for name in names:
        found = re.fullmatch(r"cen_(\d+)_cde_(\d+)_sen_(\d+)_sde_(\d+)_(\w+)_(bw|lat)_pod\.log",
                             os.path.basename(name))
        if not found or not all(word in name for word in wanted):
            continue
        client_out, client_in, server_out, server_in, verb, kind = found.groups()
        lab = [greynic, "lab-run", "twin:cx6", "--virtual-time",
               "--client-groups", f"{client_out},{client_in}",
               "--server-groups", f"{server_out},{server_in}", "--pair", "--", f"ib_{verb}_{kind}"]
        column = 4 if kind == "lat" else 3
        shown = {}
        for options in LATENCY if kind == "lat" else BANDWIDTH:
            done = subprocess.run(lab + options, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                sys.exit(f"published_logs.py: {' '.join(lab + options)}: {done.stderr}")
            shown.update(table_of(done.stdout, column))
        with open(name, encoding="utf-8") as file:
            published = table_of(file.read(), column)
        error = {size: shown[size] / value - 1 for size, value in published.items() if size in shown}
        setting = f"ib_{verb}_{kind} {client_out}/{client_in}/{server_out}/{server_in}"
        if kind == "lat":
            mean = sum(abs(e) for e in error.values()) / len(error)
            worst = max(error, key=lambda size: abs(error[size]))
            holds = mean <= 0.03 and abs(error[worst]) <= 0.08
            what = f"{len(error)} sizes, mean {mean:.1%}, worst {error[worst]:+.1%} at {worst} B"
        else:
            limits = {64: 0.1, 4096: 0.1, 8388608: 0.01 if server_in == "0" else 0.1}
            holds = all(abs(error[size]) <= limit for size, limit in limits.items())
            what = ", ".join(f"{size} B {error[size]:+.1%}" for size in limits)
        held = held and holds
        print(f"{setting:28} {what:58} {'holds' if holds else 'MISSED'}", flush=True)
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
