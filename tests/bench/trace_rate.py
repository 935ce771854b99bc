#!/usr/bin/env python3
"""Whether `greynic trace` counts all that passes when packets come as fast as the kernel can make them.

A tc program makes 64 copies of each packet that is sent, so they cost no system calls: two threads send, each copy is an event
where it is queued and one where it is received. What the devices counted is the truth.

usage: trace_rate.py GREYNIC FLOOD_OBJECT [SECONDS]
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "trace"))
import lab  # noqa: E402
from lab import sh  # noqa: E402


def packets(place, device, direction):
    told = subprocess.run(["ip", "-n", place, "-s", "-j", "link", "show", device], capture_output=True, text=True, check=True)
    return json.loads(told.stdout)[0]["stats64"][direction]["packets"]


def flood(place, port, seconds):
    """In a process of its own, so that two of them run at once."""
    child = os.fork()
    if child:
        return child
    lab.enter(place)
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.bind(("10.9.0.1", port))
    sender.connect(("10.9.0.2", 9000))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(20):
            sender.send(b"x" * 64)
    os._exit(0)


def main():
    lab.GREYNIC, flood_object = sys.argv[1:3]
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 5
    match = {"destination": "10.9.0.2", "protocol": "udp"}
    sets = {"no rules": [], "one rule": [{"match": match}], "two rules": [{"match": match | {"source_port": 4000 + i}} for i in (0, 1)],
            "counts alone": [{"match": match, "actions": ["count", "loss"]}], "one in 1000 kept": [{"match": match, "sample": 1000}],
            "all kept": [{"match": match, "actions": ["stamp"]}]}
    with tempfile.TemporaryDirectory() as folder, lab.Lab() as made:
        g, p = made.namespace("g"), made.namespace("p")
        made.veth(g, "gen", p, "unused")
        made.veth(g, "out", p, "in")
        made.address(g, "gen", "10.9.0.1/24")
        sh(f"ip -n {g} neigh replace 10.9.0.2 lladdr 02:00:00:00:00:99 dev gen")  # so that nobody answers
        for place in (g, p):
            sh(f"ip netns exec {place} sysctl -qw net.ipv6.conf.all.disable_ipv6=1")
        sh(f"ip netns exec {g} tc qdisc add dev gen clsact")
        sh(f"ip netns exec {g} tc filter add dev gen egress bpf da obj {flood_object} sec tc")
        for name, rules in sets.items():
            before = packets(g, "out", "tx"), packets(p, "in", "rx")
            with lab.Trace({"version": 1, "rules": rules}, folder) as trace:
                began, used = time.monotonic(), os.times()
                for child in [flood(g, 4000 + i, seconds) for i in range(2)]:
                    os.waitpid(child, 0)
                took = time.monotonic() - began
            now = os.times()
            cpu = now.children_user + now.children_system - used.children_user - used.children_system
            sent, received = packets(g, "out", "tx") - before[0], packets(p, "in", "rx") - before[1]
            counted = sum(hop["packets"] for hop in trace.hops if hop["to"] == f"{p}/in")
            lost = sum(hop["lost"] for hop in trace.hops)
            begun = trace.summary["journeys"]
            print(f"{name}: {(sent + received) / took:.0f} events/s ({sent} sent, {received} received in {took:.1f} s, {cpu:.1f} s of "
                  f"CPU); counted {begun} and {counted}; drops told {lost}; events lost {trace.summary['events_lost']} "
                  f"{trace.summary['events_lost_why']}; {100 * trace.summary['cpu_share']:.0f} % of the CPUs, "
                  f"{trace.summary['event_ns'] or 0:.0f} ns a run")


main()
