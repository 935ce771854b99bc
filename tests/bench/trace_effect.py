#!/usr/bin/env python3
"""What `greynic trace` does to those it traces: p99 of a UDP ping-pong and of memcached's GETs, from container to container
over two hosts in namespaces (8 hops each way), with rules and without.

Client and server run at real-time priority, so that other programs of the machine do not take a CPU from a trip, and on one
CPU, so that no trip waits for another to wake up: all that a hop costs is on the way. Pairs of short runs, one with rules and
one without, take turns in going first. Given are the medians of the pairs' ratios with 95 % of what resampled pairs give.

usage: trace_effect.py GREYNIC [PAIRS]
"""

import gc
import json
import math
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(os.path.dirname(os.path.abspath(__file__)) + "/../trace"))
import lab  # noqa: E402

TRIPS = 1000  # of a run
CPU = 0
RULES = [{"match": {"address": "10.42.2.1"}}]


def at_real_time():
    os.sched_setaffinity(0, {CPU})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))


def child(namespace, work):
    """A process of its own, in a namespace, at real-time priority."""
    process = os.fork()
    if process == 0:
        lab.enter(namespace)
        at_real_time()
        work()
        os._exit(0)
    return process


def echo():
    """Sends back what it gets."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.bind(("10.42.2.1", 9001))
        while True:
            data, peer = made.recvfrom(2048)
            made.sendto(data, peer)


def ping_pong():
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.connect(("10.42.2.1", 9001))

    def trip():
        made.send(b"x" * 64)
        made.recv(2048)

    return trip


def get():
    made = socket.create_connection(("10.42.2.1", 11211))
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.sendall(b"set k 0 0 100\r\n" + b"v" * 100 + b"\r\n")
    made.recv(4096)

    def trip():
        made.sendall(b"get k\r\n")
        got = b""
        while not got.endswith(b"END\r\n"):
            got += made.recv(4096)

    return trip


def runs(namespace, connect, traced, put):
    """99th percentile and median of each run: traced[i] says whether with rules. The trips are a child's, the rules ours."""
    ours, theirs = socket.socketpair()

    def work():
        trip = connect()
        gc.disable()
        while theirs.recv(1):
            times = []
            for _ in range(TRIPS + 100):
                begin = time.perf_counter_ns()
                trip()
                times.append(time.perf_counter_ns() - begin)
            times = times[100:]
            theirs.sendall(json.dumps([statistics.quantiles(times, n=100)[98], statistics.median(times)]).encode())

    client = child(namespace, work)
    theirs.close()
    found = []
    for one in traced:
        put(RULES if one else [])
        ours.sendall(b"x")
        found.append(json.loads(ours.recv(4096)))
    ours.close()
    os.kill(client, 9)
    os.waitpid(client, 0)
    return found


def median_with_interval(ratios):
    dice = random.Random(1)
    medians = sorted(statistics.median(dice.choices(ratios, k=len(ratios))) for _ in range(2000))
    return f"{statistics.median(ratios):.3f} ({medians[50]:.3f} to {medians[1949]:.3f})"


def main():
    lab.GREYNIC = sys.argv[1]
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    with tempfile.TemporaryDirectory() as folder, lab.Overlay() as made:
        made.quiet()
        servers = [child(made.containers[1], echo)]
        loads = {"ping-pong": ping_pong}
        if shutil.which("memcached"):
            servers.append(child(made.containers[1], lambda: os.execlp("memcached", "memcached", "-t", "1", "-u", "nobody", "-l", "10.42.2.1")))
            loads["memcached"] = get
            time.sleep(1)
        else:
            print("memcached: left out, it is not installed (apt-get install memcached)")
        turns = [traced for i in range(pairs) for traced in (i % 2 == 0, i % 2 == 1)]
        with lab.Trace({"version": 1, "rules": []}, folder) as trace:
            def put(rules):
                with open(trace.path + ".new", "w") as file:
                    json.dump({"version": 1, "rules": rules, "note": str(time.time_ns())}, file)
                os.replace(trace.path + ".new", trace.path)
                trace.process.stderr.readline()
                time.sleep(0.06)  # no window of the kernel's own counting, which begins with the rules

            for name, connect in loads.items():
                found = runs(made.containers[0], connect, turns, put)
                of = [{traced: one for traced, one in zip(turns[i:i + 2], found[i:i + 2])} for i in range(0, len(found), 2)]
                for what, index in (("p99", 0), ("p50", 1)):
                    ratios = [one[True][index] / one[False][index] for one in of]
                    plain = statistics.median(one[False][index] for one in of) / 1000
                    scatter = math.exp(statistics.pstdev(math.log(ratio) for ratio in ratios))
                    print(f"{name}: {what} {plain:.1f} us without, with tracing {median_with_interval(ratios)} times that; {pairs} "
                          f"pairs of {TRIPS} trips, which scatter by a factor of {scatter:.2f}", flush=True)
        for server in servers:
            os.kill(server, 9)
            os.waitpid(server, 0)


main()
