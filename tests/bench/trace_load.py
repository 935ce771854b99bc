#!/usr/bin/env python3
"""What `greynic trace` takes of the CPUs at 100,000 packets a second, over one veth pair (2 hop events a packet) and over two
hosts with VXLAN (8 events), and what lowers it: counts alone, a rule for other packets, a budget.

Two senders at real-time priority, one on each of two CPUs, send 64-byte datagrams at a fixed rate; bottom halves run in their own
time, so their CPU time is that of the whole way. Short runs of all states take turns. Given are medians of the rounds'
differences to no rules, as a share of two CPUs, with 95 % of what resampled rounds give.

usage: trace_load.py GREYNIC [ROUNDS]
"""

import json
import os
import random
import socket
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(os.path.dirname(os.path.abspath(__file__)) + "/../trace"))
import lab  # noqa: E402

RATE = 100_000  # of both senders
SENDERS = 2
TICK = 0.001
RUN = 0.3  # seconds
BUDGET_PERCENT = 1
SETTLE = 5  # the governor looks once a second


def drive(place, address, seconds):
    """Packets a second, and the share of two CPUs that they took."""
    pipes = []
    for cpu in range(SENDERS):
        ours, theirs = os.pipe()
        if os.fork() == 0:
            lab.enter(place)
            os.sched_setaffinity(0, {cpu})
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
            sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sender.connect((address, 9000))
            sent, begin, used = 0, time.monotonic(), time.thread_time()
            while (now := time.monotonic() - begin) < seconds:
                for _ in range(int(now * RATE / SENDERS) - sent):
                    sender.send(b"x" * 64)
                    sent += 1
                time.sleep(TICK)
            took = time.monotonic() - begin
            os.write(theirs, json.dumps([sent / took, (time.thread_time() - used) / took]).encode())
            os._exit(0)
        pipes.append(ours)
        os.close(theirs)
    found = []
    for pipe in pipes:
        found.append(json.loads(os.read(pipe, 4096)))
        os.close(pipe)
        os.wait()
    return sum(one[0] for one in found), sum(one[1] for one in found) / SENDERS


def median_with_interval(values):
    dice = random.Random(1)
    medians = sorted(statistics.median(dice.choices(values, k=len(values))) for _ in range(1000))
    return f"{100 * statistics.median(values):.2f} % ({100 * medians[25]:.2f} to {100 * medians[974]:.2f})"


def put(trace, rules, **more):
    with open(trace.path + ".new", "w") as file:
        json.dump({"version": 1, "rules": rules, "note": str(time.time_ns())} | more, file)
    os.replace(trace.path + ".new", trace.path)
    trace.process.stderr.readline()
    time.sleep(0.06)  # no window of the kernel's own counting, which begins with the rules


def hold(name, made, place, address, folder, rounds):
    match = {"destination": address, "protocol": "udp"}
    states = {"no rules": [], "delays and losses": [{"match": match}], "counts alone": [{"match": match, "actions": ["count"]}],
              "a rule for other packets": [{"match": match | {"port": 9}}]}
    shares, rates = {name: [] for name in states}, []
    with lab.Trace({"version": 1, "rules": []}, folder) as trace:
        for _ in range(rounds):
            for state, rules in states.items():
                put(trace, rules)
                rate, share = drive(place, address, RUN)
                shares[state].append(share)
                rates.append(rate)
    plain = shares["no rules"]
    print(f"{name}: {statistics.median(rates):.0f} packets/s; {100 * statistics.median(plain):.1f} % of two CPUs without rules; {rounds} rounds")
    for state in list(states)[1:]:
        print(f"  {state}: {median_with_interval([one - other for one, other in zip(shares[state], plain)])} more", flush=True)
    differences = []
    for _ in range(max(1, rounds // 4)):
        base = drive(place, address, 1)[1]
        with lab.Trace({"version": 1, "cpu_budget_percent": BUDGET_PERCENT, "rules": states["delays and losses"]}, folder) as trace:
            drive(place, address, SETTLE)
            differences.append(drive(place, address, 1)[1] - base)
            time.sleep(0.1)
        one_in = trace.summary["one_in"]
    print(f"  a budget of {BUDGET_PERCENT} %: {median_with_interval(differences)} more, one packet in {one_in} followed", flush=True)


def main():
    lab.GREYNIC = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    with tempfile.TemporaryDirectory() as folder:
        with lab.Lab() as made:
            a, b = made.namespace("a"), made.namespace("b")
            made.veth(a, "veth0", b, "veth0")
            made.address(a, "veth0", "10.8.0.1/24")
            made.address(b, "veth0", "10.8.0.2/24")
            sink = lab.Sink(b, "10.8.0.2", 9000)
            hold("a veth pair", made, a, "10.8.0.2", folder, rounds)
            sink.close()
        with lab.Overlay() as made:
            made.quiet()
            sink = lab.Sink(made.containers[1], "10.42.2.1", 9000)
            hold("two hosts with VXLAN", made, made.containers[0], "10.42.2.1", folder, rounds)
            sink.close()


main()
