#!/usr/bin/env python3
"""What a hop event of `greynic trace` costs in CPU time: the same packets with and without programs attached, in turn.

A thread sends 64-byte datagrams from container to container over two hosts in namespaces (8 hops); bottom halves run in
its own time, so its CPU time is that of the whole way. An empty set of rules attaches nothing, so the two states differ
by the programs alone. Gives the median of the differences, an event; and the same with every journey stamped.

usage: trace_cost.py GREYNIC [ROUNDS]
"""

import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "trace"))
import lab  # noqa: E402

HOPS = 8
PACKETS = 20000


def cpu_ns_a_packet(made):
    box = []

    def work():
        import socket
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.connect(("10.42.2.1", 9000))
            payload = b"x" * 64
            begin = time.thread_time_ns()
            for i in range(PACKETS):
                sender.send(payload)
            box.append((time.thread_time_ns() - begin) / PACKETS)

    lab.inside(made.containers[0], work)
    return box[0]


def main():
    lab.GREYNIC = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    rule = {"match": {"destination": "10.42.2.1", "protocol": "udp", "port": 9000}}
    states = {"without": [], "aggregated": [rule], "stamped": [rule | {"name": "stamped", "actions": ["stamp"]}]}
    costs = {name: [] for name in states}
    with tempfile.TemporaryDirectory() as folder, lab.Overlay() as made:
        made.quiet()
        sink = lab.Sink(made.containers[1], "10.42.2.1", 9000)
        with lab.Trace({"version": 1, "rules": []}, folder) as trace:
            for _ in range(rounds):
                for name, rules in states.items():
                    with open(trace.path + ".new", "w") as file:
                        json.dump({"version": 1, "rules": rules, "note": f"{name} {time.time_ns()}"}, file)
                    os.replace(trace.path + ".new", trace.path)
                    trace.process.stderr.readline()
                    time.sleep(0.06)  # no window of the kernel's own counting, which begins with the rules
                    costs[name].append(cpu_ns_a_packet(made))
        sink.close()
    base = costs["without"]
    for name in ("aggregated", "stamped"):
        differences = sorted((one - other) / HOPS for one, other in zip(costs[name], base))
        print(f"{name}: {statistics.median(differences):.0f} ns an event "
              f"({differences[0]:.0f} to {differences[-1]:.0f}; {rounds} rounds of {PACKETS} packets; "
              f"a packet without programs {statistics.median(base):.0f} ns)")


main()
