#!/usr/bin/env python3
"""The fabric beside csg-htsim (github.com/Broadcom/csg-htsim): the same topology and load, in turn.

Both send 64-byte messages between pairs of hosts through one switch; every packet and every
acknowledgement crosses four queues and wires. The fabric moves real bytes, and models the RNICs
too. What starting costs cancels: each cost is the difference of a run and one of twice its length.

HTSIM_PAIRS is a program on htsim's library that takes HOSTS MESSAGES: RoCE sources, a pair of hosts
each, with 64-byte packets at 8 Gbit/s, two queues of 1 MB and two wires of 300 ns a way. It ends when
that many packets were acknowledged, and prints packets, messages and CPU seconds.

usage: beside_htsim.py FABRIC_BENCH HTSIM_PAIRS [--hosts N] [--messages N] [--rounds N]
"""

import argparse
import os
import statistics
import subprocess


def cost(program, hosts, messages):
    """ns of processor time for a packet."""
    runs = []
    for count in (messages, 2 * messages):
        out = subprocess.run(program + [str(hosts), str(count)], check=True, capture_output=True,
                             text=True).stdout.split()
        runs.append((float(out[0]), float(out[2])))
    return (runs[1][1] - runs[0][1]) / (runs[1][0] - runs[0][0]) * 1e9


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fabric_bench")
    parser.add_argument("htsim_pairs")
    parser.add_argument("--hosts", type=int, default=16)
    parser.add_argument("--messages", type=int, default=400000)
    parser.add_argument("--rounds", type=int, default=7)
    flags = parser.parse_args()
    ratios = []
    for turn in range(flags.rounds):
        pair = [cost([flags.fabric_bench, "--once"], flags.hosts, flags.messages),
                cost([flags.htsim_pairs], flags.hosts, flags.messages)]
        ratios.append(pair[1] / pair[0])
        print(f"round {turn + 1}: fabric {pair[0]:.0f} ns a packet, htsim {pair[1]:.0f}, "
              f"{ratios[-1]:.2f} times", flush=True)
    ratios.sort()
    print(f"{flags.hosts} hosts, {flags.rounds} rounds: the fabric is {statistics.median(ratios):.2f} "
          f"times as fast ({ratios[0]:.2f} to {ratios[-1]:.2f})")


if __name__ == "__main__":
    main()
