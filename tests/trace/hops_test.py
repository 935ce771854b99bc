#!/usr/bin/env python3
"""Hops and losses of packets: each is counted once, whatever becomes of it on the way."""

import json
import os
import socket
import subprocess
import threading

import claims
import lab
from claims import check_path, expect, of, pairs, warm
from lab import Lab, Overlay, Sink, Trace, send, sh


def completeness():
    """Every hop of every packet over two hosts is counted once, with its delay, small and large."""
    count = 8000 if os.environ.get("GREYNIC_VM") else 80000  # fewer where a processor is emulated
    for payload in (64, 1400):
        with Overlay() as made:
            c1, c2 = made.containers
            warm(c1, "10.42.2.1")
            sink = Sink(c2, "10.42.2.1", 9000)
            with Trace(of(c1), claims.FOLDER) as trace:
                send(c1, ("10.42.1.1", 4000), ("10.42.2.1", 9000), b"x" * payload, count)
            sink.close()
            expect("received", sink.count, count)
            check_path(trace, "10.42.1.1:4000 > 10.42.2.1:9000", made.hops(), count)
            expect("lost events", trace.summary["events_lost"], 0)
            print(f"{payload} B: {count} packets on 8 hops; {trace.summary}")


def losses():
    """1,000 packets dropped at each of five places: place, reason and count are exact."""
    def places(made):
        c1, c2 = made.containers
        h1, h2 = made.hosts
        return [(c1, "veth0", "egress"), (h1, "port", "ingress"), (h1, "under", "egress"), (h2, "vx", "ingress"),
                (c2, "veth0", "ingress")]

    for index in range(5):
        with Overlay() as made:
            c1, c2 = made.containers
            warm(c1, "10.42.2.1")
            where, device, side = places(made)[index]
            sh(f"ip netns exec {where} tc qdisc add dev {device} clsact")
            sh(f"ip netns exec {where} tc filter add dev {device} {side} bpf da obj {claims.DROP} sec tc")
            sink = Sink(c2, "10.42.2.1", 9000)
            with Trace(of(c1), claims.FOLDER) as trace:
                send(c1, ("10.42.1.1", 4000), ("10.42.2.1", 9000), b"x" * 400, 5000)
            sink.close()
            expect("received", sink.count, 4000)
            lossy = [hop for hop in trace.hops if hop["lost"]]
            expect(f"places of loss {lossy}", len(lossy), 1)
            hop = lossy[0]
            expect("lost", hop["lost"], 1000)
            expect("reasons", hop["lost_reasons"], {f"TC_{side.upper()}": 1000})
            at = hop["to"] if side == "egress" else hop["from"]
            expect("place", at, f"{where}/{device}")
            print(f"{side} of {device}: {hop['from']} -> {hop['to']}: {hop['lost_reasons']} {hop['lost_places']}")


def flooding():
    """Copies that a bridge floods are counted on each port, and are no loss where nobody wants them."""
    with Lab() as made:
        h = made.namespace("h")
        hosts = [made.namespace(f"c{i}") for i in range(4)]
        for i, host in enumerate(hosts):
            made.veth(host, "veth0", h, f"port{i}")
            made.address(host, "veth0", f"10.7.0.{i + 1}/24")
        made.bridge(h, "br0", [f"port{i}" for i in range(4)])
        # An address that the bridge never learns: everything for it is flooded.
        sh(f"ip -n {hosts[0]} neigh add 10.7.0.99 lladdr 02:00:00:00:00:99 dev veth0")
        with Trace(of(hosts[0]), claims.FOLDER) as trace:
            send(hosts[0], ("10.7.0.1", 4000), ("10.7.0.99", 9000), b"x" * 100, 3000)
        flow = "10.7.0.1:4000 > 10.7.0.99:9000"
        for i in range(1, 4):
            hop = trace.hop(flow, (f"{h}/port0", "receive"), (f"{h}/port{i}", "queue"))
            expect(f"copies to port{i}", hop and (hop["packets"], hop["timed"]), (3000, 3000))
            hop = trace.hop(flow, (f"{h}/port{i}", "queue"), (f"{hosts[i]}/veth0", "receive"))
            expect(f"arrived behind port{i}", hop and (hop["packets"], hop["timed"], hop["lost"]), (3000, 3000, 0))
        expect("losses", [hop for hop in trace.hops if hop["lost"]], [])


def tcp(ports, c1, c2, address, amount):
    """Sends so many bytes over TCP; gives the packets that the sender's device counted."""
    server = lab.inside(c2, lambda: socket.create_server((address, ports)))

    def take():
        connection, _ = server.accept()
        got = 0
        while chunk := connection.recv(1 << 20):
            got += len(chunk)
        return got

    box = []
    reader = threading.Thread(target=lambda: box.append(take()), daemon=True)
    reader.start()

    def give():
        with socket.create_connection((address, ports)) as made:
            made.sendall(b"x" * amount)

    lab.inside(c1, give)
    reader.join()
    server.close()
    expect("bytes", box[0], amount)


def sent_packets(place, device):
    out = subprocess.run(["ip", "-n", place, "-s", "-j", "link", "show", device], capture_output=True, text=True).stdout
    return json.loads(out)[0]["stats64"]["tx"]["packets"], json.loads(out)[0]["stats64"]["rx"]["packets"]


def large_packets():
    """TCP in large packets of GSO, segmented in software or not, merged by GRO: devices' own counts are met."""
    for offload in ("on", "off"):
        with Overlay() as made:
            c1, c2 = made.containers
            h1, h2 = made.hosts
            if offload == "off":  # cut before the sender's veth, merged again behind the tunnel
                lab.set_offload(c1, "veth0", 0x1F, 0)
            made.quiet()
            warm(c1, "10.42.2.1")
            before = sent_packets(c1, "veth0"), sent_packets(h1, "under"), sent_packets(c2, "veth0")
            with Trace(of(c1, protocol="tcp"), claims.FOLDER) as trace:
                tcp(9100, c1, c2, "10.42.2.1", 20_000_000)
            after = sent_packets(c1, "veth0"), sent_packets(h1, "under"), sent_packets(c2, "veth0")
            points = made.hops()
            flow = "> 10.42.2.1:9100"
            found = [trace.hop(flow, a, b) for a, b in pairs(points)]
            assert all(found), found
            counts = [hop["packets"] for hop in found]
            segments = [hop["segments"] for hop in found]
            print(f"TSO {offload}: packets {counts}, segments {segments}, timed {[hop['timed'] for hop in found]}")
            # A device counts packets as they leave it: behind the cut into segments.
            expect("arrived at h1", counts[0], after[0][0] - before[0][0])
            expect("under", counts[3], after[1][0] - before[1][0])
            expect("arrived at c2", counts[6], after[2][1] - before[2][1])
            expect("timed but where they are cut", [hop["timed"] for hop in found][1:], counts[1:])
            # TCP itself drops what comes twice or too late, behind the last point.
            if not any(hop["lost"] for hop in found):
                expect("segments", segments, [segments[0]] * 7)
            expect("lost events", trace.summary["events_lost"], 0)


def fragments():
    """Datagrams that are sent in fragments are followed with all of them, though only the first has ports."""
    with Overlay() as made:
        c1, c2 = made.containers
        warm(c1, "10.42.2.1")
        sink = Sink(c2, "10.42.2.1", 9000)
        with Trace(of(c1, destination_port=9000), claims.FOLDER) as trace:
            send(c1, ("10.42.1.1", 4000), ("10.42.2.1", 9000), b"x" * 3000, 2000)
        sink.close()
        expect("received", sink.count, 2000)
        check_path(trace, "10.42.1.1:4000 > 10.42.2.1:9000", made.hops(), 6000)
        expect("losses", [hop for hop in trace.hops if hop["lost"]], [])


def twice():
    """A tunnel in a tunnel, over IPv6 between containers: the innermost flow keeps its hops."""
    with Overlay(mtu=1600) as made:
        c1, c2 = made.containers
        for i, place in enumerate((c1, c2)):  # the containers run an overlay of their own on top
            sh(f"ip -n {place} link add inner type vxlan id 7 local 10.42.{i + 1}.1 remote 10.42.{2 - i}.1 dstport 4789 dev veth0")
            sh(f"ip -n {place} link set inner up")
            made.address(place, "inner", f"fd77::{i + 1}/64")
        warm(c1, "fd77::2", socket.AF_INET6)
        sink = Sink(c2, "fd77::2", 9000, socket.AF_INET6)
        with Trace(of(c1), claims.FOLDER) as trace:
            send(c1, ("fd77::1", 4000), ("fd77::2", 9000), b"x" * 500, 5000, family=socket.AF_INET6)
        sink.close()
        expect("received", sink.count, 5000)
        points = [(f"{c1}/inner", "queue")] + made.hops() + [(f"{c2}/inner", "receive")]
        check_path(trace, "[fd77::1]:4000 > [fd77::2]:9000", points, 5000)
        expect("lost events", trace.summary["events_lost"], 0)


claims.hold(completeness, losses, flooding, large_packets, fragments, twice)
