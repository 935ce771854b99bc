"""What tests of `greynic trace` share: rules, comparisons, what the kernel has attached, and trials.

Each file of claims ends with claims.hold(...); usage: NAME_test.py GREYNIC DROP_OBJECT [CLAIM...]
Oracle of all: what was sent, what the receiver's socket took, and what a tc program dropped.
"""

import ctypes
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time

import lab
from lab import send, skip

FOLDER = ""  # of this run, gone behind it
DROP = ""  # an object of a tc program that drops packets
PROGRAMS = (b"on_queue", b"on_receive", b"on_consume", b"on_free", b"first_point", b"last_point", b"guard",
            *(b"point_%d" % point for point in range(1, 7)))


def of(container, **match):
    """Rules for packets of a container of this test: others use this machine too."""
    return {"version": 1, "rules": [{"match": {"container": container, "protocol": "udp"} | match}]}


def pairs(points):
    return list(zip(points, points[1:]))


def warm(place, address, family=socket.AF_INET):
    """Resolves neighbours first, so that no packet waits for that."""
    for _ in range(3):
        try:
            send(place, ("::" if family == socket.AF_INET6 else "0.0.0.0", 0), (address, 9), b"x", 1, family)
        except ConnectionRefusedError:
            pass
        time.sleep(0.2)


def veth_pair(made):
    """Two namespaces, 10.8.0.1 and 10.8.0.2 at the ends of a veth pair between them."""
    a, b = made.namespace("a"), made.namespace("b")
    made.veth(a, "veth0", b, "veth0")
    made.address(a, "veth0", "10.8.0.1/24")
    made.address(b, "veth0", "10.8.0.2/24")
    warm(a, "10.8.0.2")
    return a, b


def expect(what, got, wanted):
    assert got == wanted, f"{what}: {got} instead of {wanted}"


def check_path(trace, flow, points, packets, segments=None, timed=None):
    for start, end in pairs(points):
        hop = trace.hop(flow, start, end)
        assert hop, f"no hop {start} -> {end} among {json.dumps(trace.hops, indent=1)}"
        expect(f"packets {start} -> {end}", hop["packets"], packets)
        expect(f"timed {start} -> {end}", hop["timed"], packets if timed is None else timed)
        expect(f"lost {start} -> {end} {hop['lost_places']}", hop["lost"], 0)
        if segments:
            expect(f"segments {start} -> {end}", hop["segments"], segments)
        assert 0 < hop["p50_ns"] <= hop["p99_ns"] + hop["error_ns"], hop
        assert hop["p99_ns"] <= hop["max_ns"] + hop["error_ns"], hop


def kernel(command, *words):
    """One call of bpf(2) with 32-bit words; gives the result and what stands in them then."""
    attr = ctypes.create_string_buffer(struct.pack(f"{len(words)}I", *words), 128)
    result = ctypes.CDLL(None, use_errno=True).syscall(321, command, attr, 128)
    return result, struct.unpack_from("4I", attr.raw)


def about(descriptor):
    """What the kernel tells of a program or link."""
    info = ctypes.create_string_buffer(256)
    attr = ctypes.create_string_buffer(struct.pack("IIQ", descriptor, 256, ctypes.addressof(info)), 128)
    ctypes.CDLL(None).syscall(321, 15, attr, 128)  # BPF_OBJ_GET_INFO_BY_FD
    return info.raw


def filters():
    """How many programs of a tracer are filters of clsact, on devices of this test's namespaces: kernels before 6.6."""
    found = 0
    for place in os.listdir("/run/netns") if os.path.exists("/run/netns") else ():
        if not place.endswith(f"-{os.getpid()}"):
            continue
        devices = [name for _, name in lab.inside(place, socket.if_nameindex)]
        asked = "".join(f"filter show dev {device} {side}\n" for device in devices for side in ("ingress", "egress"))
        told = subprocess.run(["tc", "-force", "-netns", place, "-batch", "-"], input=asked.encode(), capture_output=True).stdout
        found += sum(told.count(b" %s:[" % name) for name in PROGRAMS)
    return found


def attached():
    """How many programs of a tracer are attached now, by the kernel's lists of links and of filters."""
    found, number = 0, 0
    while True:
        result, words = kernel(31, number)  # BPF_LINK_GET_NEXT_ID
        if result != 0:
            return found + filters()
        number = words[1]
        link, _ = kernel(30, number)  # BPF_LINK_GET_FD_BY_ID
        if link < 0:
            continue
        program, _ = kernel(13, struct.unpack_from("3I", about(link))[2])  # BPF_PROG_GET_FD_BY_ID
        os.close(link)
        if program >= 0:
            name = about(program)[64:80].rstrip(b"\0")
            found += name in PROGRAMS
            os.close(program)


def try_claim(claim):
    """A kernel may keep some tasks from being traced: while one of them holds a processor, no tracepoint fires for what
    interrupts move there, and no program sees it (docs/trace/out_of_band.md). That is rare, so a claim has four trials; a
    fault of the program shows in each."""
    for trials_left in range(3, -1, -1):
        try:
            claim()
            print(f"{claim.__name__}: holds")
            return
        except AssertionError as error:
            if trials_left == 0:
                raise
            print(f"{claim.__name__}: once more, since {error}")


def hold(*claims):
    """Tries the claims that the command line names; all when it names none."""
    global FOLDER, DROP
    lab.GREYNIC, DROP = sys.argv[1:3]
    if subprocess.run([lab.GREYNIC, "trace", "hooks"], capture_output=True).returncode != 0:
        skip("this kernel lacks a hook that tracing needs; `greynic trace hooks` says which")
    by_name = {claim.__name__: claim for claim in claims}
    with tempfile.TemporaryDirectory() as folder:
        FOLDER = folder
        for name in sys.argv[3:] or by_name:
            try_claim(by_name[name])
