#!/usr/bin/env python3
"""What a hop event of `greynic trace` costs in CPU time: the same packets with and without programs attached, in turn.

A thread sends 64-byte datagrams from container to container over two hosts in namespaces (8 hops); bottom halves run in
its own time, so its CPU time is that of the whole way. It has real-time priority on one CPU: what other programs do comes
between two batches, not into one. An empty set of rules attaches nothing, so the states differ by the programs alone. In
each round each state sends short batches, and its cost is their lower quartile: what others do on the machine makes
batches dearer, never cheaper. Given are the medians of the rounds' differences an event, with 95 % of what resampled
rounds give. Beside it stand, at the same hooks: programs that do nothing, and programs that do what others' tools do there; and the
kernel's own count of run time (run_time_ns / run_cnt), less what it counts for a program that does nothing.

usage: trace_cost.py GREYNIC FOLDER_OF_OBJECTS [ROUNDS]    # build/release/tests/bench
"""

import ctypes
import json
import os
import pathlib
import random
import socket
import statistics
import struct
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "trace"))
import lab  # noqa: E402

HOPS = 8
BATCHES = 10
PACKETS = 500  # a batch
PROGRAMS = (b"on_queue", b"on_receive", b"empty_queue", b"empty_receive", b"hash_queue", b"hash_receive", b"event_queue",
            b"event_receive", b"first_point", b"last_point", *(b"point_%d" % point for point in range(1, 7)))
OTHERS = {"empty programs": "empty_hops", "a hash table, as netstacklat": "hash_hops", "an event each, as pwru and bcc": "event_hops"}
SWITCH = "/proc/sys/kernel/bpf_stats_enabled"


class Programs:
    """Those of an object, attached by libbpf until closed."""

    def __init__(self, path):
        pointer = ctypes.c_void_p
        self.bpf = ctypes.CDLL("libbpf.so.1")
        for name, arguments in (("bpf_object__open_file", 2), ("bpf_object__load", 1), ("bpf_program__attach", 1),
                                ("bpf_object__next_program", 2), ("bpf_object__close", 1), ("bpf_link__destroy", 1)):
            function = getattr(self.bpf, name)
            function.argtypes = [pointer] * arguments
            function.restype = pointer
        self.object = self.bpf.bpf_object__open_file(ctypes.create_string_buffer(os.fsencode(path)), None)
        if not self.object or self.bpf.bpf_object__load(self.object):
            lab.skip(f"{path} does not load")
        self.links, program = [], None
        while program := self.bpf.bpf_object__next_program(self.object, program):
            self.links.append(self.bpf.bpf_program__attach(program))

    def close(self):
        for link in self.links:
            self.bpf.bpf_link__destroy(link)
        self.bpf.bpf_object__close(self.object)


def run_time():
    """Runs and nanoseconds of the programs at points, by the kernel's count."""
    runs = nanoseconds = number = 0
    while True:
        attr = ctypes.create_string_buffer(struct.pack("I", number), 128)
        if ctypes.CDLL(None).syscall(321, 11, attr, 128) != 0:  # BPF_PROG_GET_NEXT_ID
            return runs, nanoseconds
        number = struct.unpack_from("2I", attr.raw)[1]
        attr = ctypes.create_string_buffer(struct.pack("I", number), 128)
        program = ctypes.CDLL(None).syscall(321, 13, attr, 128)  # BPF_PROG_GET_FD_BY_ID
        if program < 0:
            continue
        info = ctypes.create_string_buffer(256)
        ask = ctypes.create_string_buffer(struct.pack("IIQ", program, 256, ctypes.addressof(info)), 128)
        ctypes.CDLL(None).syscall(321, 15, ask, 128)  # BPF_OBJ_GET_INFO_BY_FD
        if info.raw[64:80].rstrip(b"\0") in PROGRAMS:
            with open(f"/proc/self/fdinfo/{program}") as file:
                told = dict(line.split(":", 1) for line in file if ":" in line)
            runs += int(told["run_cnt"])
            nanoseconds += int(told["run_time_ns"])
        os.close(program)


def cpu_ns_a_packet(made):
    """The lower quartile of the batches."""
    def work():
        os.sched_setaffinity(0, {0})
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.connect(("10.42.2.1", 9000))
            payload = b"x" * 64
            costs = []
            for _ in range(BATCHES):
                begin = time.thread_time_ns()
                for _ in range(PACKETS):
                    sender.send(payload)
                costs.append((time.thread_time_ns() - begin) / PACKETS)
            return statistics.quantiles(costs, n=4)[0]

    return lab.inside(made.containers[0], work)


def median_with_interval(values):
    dice = random.Random(1)
    medians = sorted(statistics.median(dice.choices(values, k=len(values))) for _ in range(1000))
    return f"{statistics.median(values):.0f} ns ({medians[25]:.0f} to {medians[974]:.0f})"


def put(trace, rules, engine):
    with open(trace.path + ".new", "w") as file:
        json.dump({"version": 1, "engine": engine, "rules": rules, "note": str(time.time_ns())}, file)
    os.replace(trace.path + ".new", trace.path)
    trace.process.stderr.readline()


def main():
    lab.GREYNIC, objects = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 40
    rule = {"match": {"destination": "10.42.2.1", "protocol": "udp", "port": 9000}}
    states = {"nothing": [], **{name: [] for name in OTHERS}, "aggregated": [rule],
              "stamped": [rule | {"name": "stamped", "actions": ["stamp"]}], "in band": []}
    costs = {name: [] for name in states}
    kernel = {name: [] for name in states}
    with tempfile.TemporaryDirectory() as folder, lab.Overlay() as made:
        made.quiet()
        points = [{"device": device, "direction": direction} for device, direction in made.hops()]
        states["in band"] = [rule | {"points": points, "most_bytes": 1410, "through_netfilter": True}]
        sink = lab.Sink(made.containers[1], "10.42.2.1", 9000)
        with lab.Trace({"version": 1, "rules": []}, folder) as trace:
            for _ in range(rounds):
                for name, rules in states.items():
                    put(trace, rules, "in_band" if name == "in band" else "out_of_band")
                    other = Programs(f"{objects}/{OTHERS[name]}.bpf.o") if name in OTHERS else None
                    time.sleep(0.06)  # no window of the kernel's own counting, which begins with the rules
                    costs[name].append(cpu_ns_a_packet(made))
                    if name != "nothing":
                        runs, nanoseconds = run_time()
                        pathlib.Path(SWITCH).write_text("1")
                        cpu_ns_a_packet(made)
                        pathlib.Path(SWITCH).write_text("0")
                        now = run_time()
                        kernel[name].append((now[1] - nanoseconds) / max(1, now[0] - runs))
                    if other:
                        other.close()
        sink.close()
    base = costs["nothing"]
    print(f"a packet without programs: {statistics.median(base):.0f} ns; {rounds} rounds of {BATCHES * PACKETS} packets")
    for name in list(states)[1:]:
        by_time = [(one - other) / HOPS for one, other in zip(costs[name], base)]
        by_kernel = [one - other for one, other in zip(kernel[name], kernel["empty programs"])]
        print(f"{name}: {median_with_interval(by_time)} an event by CPU time; {median_with_interval(by_kernel)} by the kernel's count")


main()
