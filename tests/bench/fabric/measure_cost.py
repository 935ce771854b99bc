#!/usr/bin/env python3
"""Instructions that `measure` takes for a packet, of two builds of greynic: a count, which no other
program on the machine changes. What starting costs cancels: each count is the difference of a run
and one of three times its length.

usage: measure_cost.py OLD_GREYNIC NEW_GREYNIC      needs valgrind
"""

import json
import os
import re
import subprocess
import sys
import tempfile

LOADS = {
    "8 MiB SEND, 4 QPs": {"operation": "SEND", "qp_count": 4, "message_bytes": 8388608},
    "64 B WRITE, 4 QPs": {"operation": "WRITE", "qp_count": 4, "message_bytes": 64},
    "4 KiB READ, 64 QPs": {"operation": "READ", "qp_count": 64, "message_bytes": 4096},
    "64 KiB SEND, 20 masks": {"operation": "SEND", "qp_count": 4, "message_bytes": 65536,
                              "server_decap_masks": 20},
}


def run(program, load, seconds, folder):
    """Instructions, and packets that the client sent and received."""
    point = dict(load)
    campaign = {
        "version": 1, "name": "cost",
        "factors": {name: {"type": "categorical" if isinstance(level, str) else "numeric",
                           "levels": [level]} for name, level in point.items()},
        "design": "full", "baseline": point,
        "wall": {"metric": "bandwidth_gbps", "below_baseline_by": 0.2},
        "measure": {"repeats": 1, "seconds": seconds}}
    path, out = os.path.join(folder, "cost.json"), os.path.join(folder, "cost.db")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(campaign, file)
    if os.path.exists(out):
        os.remove(out)
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program,
                           "run", path, "--target", "twin:cx6?stop=duration", "--out", out],
                          capture_output=True, text=True, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not found:
        sys.exit(f"measure_cost.py: {program}: {done.stderr[-800:]}")
    rows = subprocess.run([program, "export", out], capture_output=True, text=True, check=True).stdout
    counters = json.loads(rows.splitlines()[0])["counters"]
    packets = sum(value for name, value in counters.items()
                  if name.endswith("x_vport_rdma_unicast_packets"))
    return float(found.group(1)), packets


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print(f"{'load':24} {'old':>10} {'new':>10} {'new over old':>13}   instructions a packet")
    with tempfile.TemporaryDirectory() as folder:
        for name, load in LOADS.items():
            each = []
            for program in sys.argv[1:]:
                short, long = (run(program, load, seconds, folder) for seconds in (0.002, 0.006))
                each.append((long[0] - short[0]) / (long[1] - short[1]))
            print(f"{name:24} {each[0]:10.1f} {each[1]:10.1f} {each[1] / each[0]:13.4f}", flush=True)


if __name__ == "__main__":
    main()
