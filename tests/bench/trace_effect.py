#!/usr/bin/env python3
"""What `greynic trace` does to those it traces: a UDP ping-pong and, where memcached is installed, its GETs, from
container to container over two hosts in namespaces, with rules and without, in turn; the share of the CPUs at a steady
rate; and whether events are lost when packets come as fast as they can be sent.

Rounds are many and short: what others do on the machine then falls on both sides alike. Of each round the ratio of the two 99th
percentiles, of the two medians, and of the CPU time that a trip takes here; given are the medians of the ratios with 95 % of
what resampled rounds give.

usage: trace_effect.py GREYNIC [ROUNDS]
"""

import json
import os
import pathlib
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "trace"))
import lab  # noqa: E402

TRIPS = 1000  # of a round, on each side
RULES = [{"match": {"address": "10.42.2.1"}}]


class Echo:
    """Sends back what it gets."""

    def __init__(self, namespace, address, port):
        def make():
            made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            made.bind((address, port))
            return made

        self.socket = lab.inside(namespace, make)
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            data, peer = self.socket.recvfrom(2048)
            self.socket.sendto(data, peer)


def trips(trip):
    """99th percentile and median of a trip, and CPU time of this process for one."""
    times = []
    used = time.process_time_ns()
    for _ in range(TRIPS):
        begin = time.perf_counter_ns()
        trip()
        times.append(time.perf_counter_ns() - begin)
    used = time.process_time_ns() - used
    return statistics.quantiles(times, n=100)[98], statistics.median(times), used / TRIPS


def median_with_interval(ratios):
    dice = random.Random(1)
    medians = sorted(statistics.median(dice.choices(ratios, k=len(ratios))) for _ in range(1000))
    return f"{statistics.median(ratios):.3f} ({medians[25]:.3f} to {medians[974]:.3f})"


def ping_pong(made):
    def work():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.connect(("10.42.2.1", 9001))
            sender.settimeout(5)

            def trip():
                sender.send(b"x" * 64)
                sender.recv(2048)

            return trips(trip)

    return lab.inside(made.containers[0], work)


def memcached(made):
    def work():
        with socket.create_connection(("10.42.2.1", 11211)) as sender:
            sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sender.sendall(b"set k 0 0 100\r\n" + b"v" * 100 + b"\r\n")
            sender.recv(4096)

            def trip():
                sender.sendall(b"get k\r\n")
                got = b""
                while not got.endswith(b"END\r\n"):
                    got += sender.recv(4096)

            return trips(trip)

    return lab.inside(made.containers[0], work)


def put(trace, rules):
    with open(trace.path + ".new", "w") as file:
        json.dump({"version": 1, "rules": rules, "note": str(time.time_ns())}, file)
    os.replace(trace.path + ".new", trace.path)
    trace.process.stderr.readline()
    time.sleep(0.06)


def flood(made, seconds):
    """Sends as fast as one thread can; gives the packets."""
    def work():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.connect(("10.42.2.1", 9000))
            count, end = 0, time.monotonic() + seconds
            while time.monotonic() < end:
                for _ in range(200):
                    sender.send(b"x" * 64)
                count += 200
            return count

    return lab.inside(made.containers[0], work)


def main():
    lab.GREYNIC = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    with tempfile.TemporaryDirectory() as folder, lab.Overlay() as made:
        made.quiet()
        Echo(made.containers[1], "10.42.2.1", 9001)
        sink = lab.Sink(made.containers[1], "10.42.2.1", 9000)
        server = None
        if shutil.which("memcached"):
            server = subprocess.Popen(["ip", "netns", "exec", made.containers[1], "memcached", "-u", "nobody", "-l", "10.42.2.1"])
            time.sleep(0.5)
        else:
            print("memcached: left out, it is not installed (apt-get install memcached)")
        loads = {"ping-pong": ping_pong} | ({"memcached": memcached} if server else {})
        ratios = {name: [] for name in loads}
        with lab.Trace({"version": 1, "rules": []}, folder) as trace:
            for turn in range(rounds):
                for name, load in loads.items():
                    got = {}
                    for traced in (turn % 2 == 0, turn % 2 == 1):  # each goes first as often
                        put(trace, RULES if traced else [])
                        got[traced] = load(made)
                    ratios[name].append([one / other for one, other in zip(got[True], got[False])])
        for name, found in ratios.items():
            p99, middle, cpu = (median_with_interval([row[i] for row in found]) for i in range(3))
            print(f"{name}: with tracing p99 is {p99} times that without, p50 {middle}, CPU time {cpu}; {rounds} rounds of {TRIPS} trips")
        if server:
            server.terminate()
            server.wait()
        with lab.Trace({"version": 1, "rules": RULES}, folder) as trace:
            begin = time.monotonic()
            sent = flood(made, 5)
            rate = sent / (time.monotonic() - begin)
        sink.close()
        summary = trace.summary
        print(f"flood: {rate:.0f} packets/s, {summary['events']} events, {summary['events_lost']} lost, "
              f"{100 * summary['cpu_share']:.1f} % of the CPUs, {summary['event_ns']:.0f} ns a run by the kernel's count")


main()
