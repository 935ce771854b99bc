#!/usr/bin/env python3
"""A trace that runs: other rules, a budget, containers that come, a kill."""

import json
import os
import socket
import subprocess
import time

import claims
import lab
from claims import attached, expect, of, veth_pair
from lab import Lab, Sink, Trace, send, sh, skip


def until(holds):
    for _ in range(600):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("it never came")


def rules_while_it_runs():
    """Rules change while a trace runs: none attaches nothing, and others count from then on; a wrong file changes nothing."""
    with Lab() as made:
        a, b = veth_pair(made)
        before = attached()
        sink = Sink(b, "10.8.0.2", 9000)

        def put(trace, rules):
            with open(trace.path + ".new", "w") as file:
                file.write(rules if isinstance(rules, str) else json.dumps(rules))
            os.rename(trace.path + ".new", trace.path)
            start = time.monotonic()
            line = trace.process.stderr.readline()
            print(f"{1000 * (time.monotonic() - start):.0f} ms: {line.strip()}")
            return line

        with Trace({"version": 1, "rules": []}, claims.FOLDER) as trace:
            expect("programs without rules", attached(), before)
            send(a, ("10.8.0.1", 4000), ("10.8.0.2", 9000), b"x", 100)
            assert "in force" in put(trace, of(a))
            expect("programs with rules", attached(), before + 4)
            send(a, ("10.8.0.1", 4001), ("10.8.0.2", 9000), b"x", 200)
            assert "old rules stay" in put(trace, '{"version": 1, "rules": [{"match": {"container": "nobody"}}]}')
            send(a, ("10.8.0.1", 4002), ("10.8.0.2", 9000), b"x", 300)
            assert "in force" in put(trace, {"version": 1, "rules": []})
            expect("programs without rules again", attached(), before)
            send(a, ("10.8.0.1", 4003), ("10.8.0.2", 9000), b"x", 400)
        sink.close()
        way = (f"{a}/veth0", "queue"), (f"{b}/veth0", "receive")
        counts = [(trace.hop(f":{port} >", *way) or {"packets": 0})["packets"] for port in (4000, 4001, 4002, 4003)]
        expect("packets under each set of rules", counts, [0, 200, 300, 0])


def window():
    """Programs are attached while the window is open: what passes before and behind it is not counted, and the trace ends."""
    with Lab() as made:
        a, b = veth_pair(made)
        way = [(f"{a}/veth0", "queue"), (f"{b}/veth0", "receive")]
        in_band = {"points": [{"device": device, "direction": direction} for device, direction in way], "most_bytes": 1000}
        for engine, more, programs in (("out_of_band", {}, 4), ("in_band", in_band, 2)):
            before = attached()
            rules = of(a) | {"engine": engine, "window": {"after": "2s", "for": "2s"}}
            rules["rules"][0] |= more
            sink = Sink(b, "10.8.0.2", 9000)
            counted = []

            def send_while(count, port, packets):
                """Packets that are sent while so many programs are attached."""
                until(lambda: attached() == before + count)
                send(a, ("10.8.0.1", port), ("10.8.0.2", 9000), b"x", packets)
                expect("programs behind the packets", attached(), before + count)

            with Trace(rules, claims.FOLDER) as trace:
                send_while(0, 4000, 100)
                send_while(programs, 4001, 200)
                trace.process.wait(timeout=60)
                send_while(0, 4002, 300)
            sink.close()
            for port, packets in ((4000, 0), (4001, 200), (4002, 0)):
                expect(f"{engine}, packets from {port}", (trace.hop(f":{port} >", *way) or {"packets": 0})["packets"], packets)


def governor():
    """Above the budget fewer packets are followed, and the summary says so; all losses stay counted."""
    with Lab() as made:
        a, b = veth_pair(made)
        rules = of(a) | {"cpu_budget_percent": 0.001}
        sink = Sink(b, "10.8.0.2", 9000)
        sent = 0
        with Trace(rules, claims.FOLDER) as trace:
            end = time.monotonic() + 4  # the cost is looked at once a second
            while time.monotonic() < end:
                send(a, ("10.8.0.1", 4000), ("10.8.0.2", 9000), b"x", 2000)
                sent += 2000
            sh(f"ip netns exec {b} tc qdisc add dev veth0 clsact")
            sh(f"ip netns exec {b} tc filter add dev veth0 ingress bpf da obj {claims.DROP} sec tc")
            send(a, ("10.8.0.1", 4000), ("10.8.0.2", 9000), b"x" * 400, 5000)
        sink.close()
        expect("received", sink.count, sent + 4000)
        hop = trace.hop("> 10.8.0.2:9000", (f"{a}/veth0", "queue"), (f"{b}/veth0", "receive"))
        print(f"one in {trace.summary['one_in']}: {hop['packets']} of {sent + 5000} packets")
        assert trace.summary["one_in"] > 1, trace.summary
        assert 0 < hop["packets"] < sent, (hop, sent)
        expect("lost", sum(hop["lost"] for hop in trace.hops), 1000)
        expect("lost events", trace.summary["events_lost"], 0)


def killed():
    """A trace that is killed leaves no program attached."""
    before = attached()
    trace = Trace({"version": 1, "rules": [{"match": {"protocol": "sctp"}}]}, claims.FOLDER)
    trace.process = subprocess.Popen([lab.GREYNIC, "trace", "run", trace.path], stderr=subprocess.PIPE, text=True)
    trace.process.stderr.readline()
    programs = attached()
    trace.process.kill()
    trace.process.communicate()
    expect("programs while it runs", programs, before + 4)
    for _ in range(100):
        if attached() == before:
            return
        time.sleep(0.05)
    expect("programs behind it", attached(), before)


def many():
    """200 containers on a host: all are traced, and one that comes while the trace runs is followed within a second."""
    if not os.environ.get("GREYNIC_NIGHTLY"):
        skip("200 containers take most of a minute; set GREYNIC_NIGHTLY=1")
    with Lab() as made:
        h = made.namespace("h")
        sh(f"ip -n {h} link add br0 type bridge forward_delay 0 mcast_snooping 0")
        sh(f"ip -n {h} link set br0 up")

        def add(i):
            c = made.namespace(f"m{i}")
            sh(f"ip link add veth0 netns {c} type veth peer name p{i} netns {h}; ip -n {h} link set p{i} master br0 up;"
               f"ip -n {c} link set veth0 up; ip -n {c} addr add 10.77.{i // 200}.{i % 200 + 1}/16 dev veth0")
            return c

        containers = [add(i) for i in range(200)]
        made.address(h, "br0", "10.77.9.9/16")
        sink = Sink(h, "10.77.9.9", 9000)
        rules = {"version": 1, "rules": [{"match": {"destination": "10.77.9.9", "protocol": "udp", "port": 9000}}]}
        for c in containers:
            warm_one = lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("10.77.9.9", 9001))
            lab.inside(c, warm_one)
        time.sleep(0.3)
        with Trace(rules, claims.FOLDER) as trace:
            for i, c in enumerate(containers):
                send(c, ("0.0.0.0", 4000), ("10.77.9.9", 9000), b"x", 50)
            late = add(200)
            start = time.monotonic()
            lab.inside(late, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("10.77.9.9", 9001)))
            time.sleep(1.0 - (time.monotonic() - start))
            send(late, ("0.0.0.0", 4000), ("10.77.9.9", 9000), b"x", 50)
        sink.close()
        for i, c in enumerate(containers + [late]):
            hop = trace.hop(f"10.77.{i // 200}.{i % 200 + 1}:4000", (f"{c}/veth0", "queue"), (f"{h}/p{i}", "receive"))
            expect(f"packets of {c}", hop and hop["packets"], 50)
        expect("lost events", trace.summary["events_lost"], 0)


claims.hold(rules_while_it_runs, window, governor, killed, many)
