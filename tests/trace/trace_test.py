#!/usr/bin/env python3
"""Claims about `greynic trace`, on topologies of network namespaces and traffic that this test makes and counts.

usage: trace_test.py GREYNIC DROP_OBJECT CLAIM...
Oracle: what was sent, what the receiver's socket took, and what a tc program dropped.
"""

import ctypes
import http.server
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import lab
from lab import SKIP, Lab, Overlay, Sink, Trace, send, sh, skip

FOLDER = ""
DROP = ""


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


def expect(what, got, wanted):
    assert got == wanted, f"{what}: {got} instead of {wanted}"


def check_path(trace, flow, points, packets, segments=None, timed=None):
    for start, end in pairs(points):
        hop = trace.hop(flow, start, end)
        assert hop, f"no hop {start} -> {end} among {json.dumps(trace.hops, indent=1)}"
        expect(f"packets {start} -> {end}", hop["packets"], packets)
        expect(f"timed {start} -> {end}", hop["timed"], packets if timed is None else timed)
        expect(f"lost {start} -> {end}", hop["lost"], 0)
        if segments:
            expect(f"segments {start} -> {end}", hop["segments"], segments)
        assert 0 < hop["p50_ns"] <= hop["p99_ns"] + hop["error_ns"], hop
        assert hop["p99_ns"] <= hop["max_ns"] + hop["error_ns"], hop


def completeness(count=80000):
    """Every hop of every packet over two hosts is counted once, with its delay, small and large."""
    for payload in (64, 1400):
        with Overlay() as made:
            c1, c2 = made.containers
            warm(c1, "10.42.2.1")
            sink = Sink(c2, "10.42.2.1", 9000)
            with Trace(of(c1), FOLDER) as trace:
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
            sh(f"ip netns exec {where} tc filter add dev {device} {side} bpf da obj {DROP} sec tc")
            sink = Sink(c2, "10.42.2.1", 9000)
            with Trace(of(c1), FOLDER) as trace:
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
        with Trace(of(hosts[0]), FOLDER) as trace:
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
    reader = threading.Thread(target=lambda: box.append(take()))
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
            with Trace(of(c1, protocol="tcp"), FOLDER) as trace:
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
        with Trace(of(c1, destination_port=9000), FOLDER) as trace:
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
        with Trace(of(c1), FOLDER) as trace:
            send(c1, ("fd77::1", 4000), ("fd77::2", 9000), b"x" * 500, 5000, family=socket.AF_INET6)
        sink.close()
        expect("received", sink.count, 5000)
        points = [(f"{c1}/inner", "queue")] + made.hops() + [(f"{c2}/inner", "receive")]
        check_path(trace, "[fd77::1]:4000 > [fd77::2]:9000", points, 5000)
        expect("lost events", trace.summary["events_lost"], 0)


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


def attached():
    """How many programs of a tracer are attached now, by the kernel's list of links."""
    found, number = 0, 0
    while True:
        result, words = kernel(31, number)  # BPF_LINK_GET_NEXT_ID
        if result != 0:
            return found
        number = words[1]
        link, _ = kernel(30, number)  # BPF_LINK_GET_FD_BY_ID
        if link < 0:
            continue
        program, _ = kernel(13, struct.unpack_from("3I", about(link))[2])  # BPF_PROG_GET_FD_BY_ID
        os.close(link)
        if program >= 0:
            name = about(program)[64:80].rstrip(b"\0")
            found += name in (b"on_queue", b"on_receive", b"on_consume", b"on_free")
            os.close(program)


def rules_while_it_runs():
    """Rules change while a trace runs: none attaches nothing, and others count from then on; a wrong file changes nothing."""
    with Lab() as made:
        a, b = made.namespace("a"), made.namespace("b")
        made.veth(a, "veth0", b, "veth0")
        made.address(a, "veth0", "10.8.0.1/24")
        made.address(b, "veth0", "10.8.0.2/24")
        warm(a, "10.8.0.2")
        before = attached()
        sink = Sink(b, "10.8.0.2", 9000)

        def put(trace, rules):
            with open(trace.path, "w") as file:
                file.write(rules if isinstance(rules, str) else json.dumps(rules))
            start = time.monotonic()
            line = trace.process.stderr.readline()
            print(f"{1000 * (time.monotonic() - start):.0f} ms: {line.strip()}")
            return line

        with Trace({"version": 1, "rules": []}, FOLDER) as trace:
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


def outlets():
    """Prometheus, an InfluxDB and Perfetto get the counts that the lines have."""
    lines = []

    class Database(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            lines.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    database = http.server.HTTPServer(("127.0.0.1", 0), Database)
    threading.Thread(target=database.serve_forever, daemon=True).start()
    journeys = os.path.join(FOLDER, "journeys.json")
    with Lab() as made:
        a, b = made.namespace("a"), made.namespace("b")
        made.veth(a, "veth0", b, "veth0")
        made.address(a, "veth0", "10.8.0.1/24")
        made.address(b, "veth0", "10.8.0.2/24")
        warm(a, "10.8.0.2")
        sink = Sink(b, "10.8.0.2", 9000)
        rules = of(a, port=9000)
        rules["rules"][0]["sample"] = 10
        with Trace(rules, FOLDER, "--openmetrics", ":0", "--perfetto", journeys,
                   "--influx", f"http://127.0.0.1:{database.server_port}/lab") as trace:
            send(a, ("10.8.0.1", 4000), ("10.8.0.2", 9000), b"x", 1000)
            time.sleep(1.5)
            url = next(word for word in trace.said.split() if word.startswith("http://"))
            with urllib.request.urlopen(url) as answer:
                scraped = answer.read().decode()
        sink.close()
    packets = [line for line in scraped.splitlines() if line.startswith("greynic_hop_packets_total")]
    expect("lines of packets", len(packets), 1)
    expect("packets scraped", float(packets[0].split()[-1]), 1000)
    assert 'greynic_hop_delay_seconds_count' in scraped, scraped
    assert any("greynic_hop," in text and "packets=1000i" in text for text in lines), lines
    with open(journeys) as file:
        events = json.load(file)
    events = events["traceEvents"] if isinstance(events, dict) else events
    slices = len([event for event in events if event.get("ph") == "X"])
    assert abs(slices - 100) <= os.cpu_count(), slices  # each CPU counts to ten for itself


def killed():
    """A trace that is killed leaves no program attached."""
    before = attached()
    trace = Trace({"version": 1, "rules": [{"match": {"protocol": "sctp"}}]}, FOLDER)
    trace.process = subprocess.Popen([lab.GREYNIC, "trace", "run", trace.path], stderr=subprocess.PIPE, text=True)
    trace.process.stderr.readline()
    expect("programs while it runs", attached(), before + 4)
    trace.process.kill()
    trace.process.communicate()
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
        with Trace(rules, FOLDER) as trace:
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


def wired(made, command):
    """Two places with a veth between them, and a device of each from a command with {own} and {other}; the places, or
    nothing when this kernel has no such device."""
    a, b = made.namespace("a"), made.namespace("b")
    made.veth(a, "veth0", b, "veth0", mtu=1600)
    for i, place in enumerate((a, b), 1):
        made.address(place, "veth0", f"10.8.0.{i}/24")
        if not lab.tried(f"ip -n {place} link add up0 " + command.format(own=f"10.8.0.{i}", other=f"10.8.0.{3 - i}")):
            if os.environ.get("GREYNIC_VM"):
                raise AssertionError(f"the small machine has no such device: {command}")
            print(f"left out: this kernel has no such device: {command}")
            return None
        sh(f"ip -n {place} link set up0 up mtu 1400")
        made.address(place, "up0", f"10.9.0.{i}/24")
    return a, b


def parsing():
    """A flow is known through VLAN tags, Geneve, GRE and GRETAP: the same innermost ports at all points, none twice."""
    ways = {
        "link veth0 type vlan id 7": ("", False),
        "link veth0 type vlan protocol 802.1ad id 7": ("", False),
        "type geneve id 9 remote {other}": (" vni 9", True),
        "type gretap local {own} remote {other} key 5": (" vni 5", True),
        "type gre local {own} remote {other} key 6": (" vni 6", True),
        "type ipip local {own} remote {other}": ("", True),
    }
    tried = 0
    for command, (mark, received) in ways.items():
        with Lab() as made:
            places = wired(made, command)
            if not places:
                continue
            a, b = places
            warm(a, "10.9.0.2")
            sink = Sink(b, "10.9.0.2", 9000)
            with Trace(of(a, port=9000), FOLDER) as trace:
                send(a, ("10.9.0.1", 4000), ("10.9.0.2", 9000), b"x" * 300, 1000)
            sink.close()
            expect("received", sink.count, 1000)
            points = [(f"{a}/up0", "queue"), (f"{a}/veth0", "queue"), (f"{b}/veth0", "receive")]
            points += [(f"{b}/up0", "receive")] if received else []  # a VLAN device has no point on the way in
            flow = "10.9.0.1:4000 > 10.9.0.2:9000"
            check_path(trace, flow, points, 1000)
            expect(f"hops {trace.hops}", len(trace.hops), len(points) - 1)
            assert all(hop["flow"].endswith(flow + mark) or not mark for hop in trace.hops), trace.hops
            expect("lost events", trace.summary["events_lost"], 0)
            print(f"{command}: {len(points)} points")
            tried += 1
    if tried == 0:
        skip("this kernel has none of these devices; GREYNIC_NIGHTLY=1 tries them on Debian's, in Trace.small_machine")


def queue_pairs():
    """RoCE's queue pair is part of a flow, and a rule takes the packets of one alone."""
    with Lab() as made:
        a, b = made.namespace("a"), made.namespace("b")
        made.veth(a, "veth0", b, "veth0")
        made.address(a, "veth0", "10.8.0.1/24")
        made.address(b, "veth0", "10.8.0.2/24")
        warm(a, "10.8.0.2")
        sink = Sink(b, "10.8.0.2", 4791)
        transport = lambda pair: struct.pack(">BBHII", 4, 0, 0xFFFF, pair, 77) + b"x" * 64
        with Trace(of(a, queue_pair=0x1234), FOLDER) as trace:
            for pair, count in ((0x1234, 300), (0x4321, 200)):
                send(a, ("10.8.0.1", 49152), ("10.8.0.2", 4791), transport(pair), count)
        sink.close()
        expect("received", sink.count, 500)
        expect("hops", [(hop["flow"].split()[-2:], hop["packets"]) for hop in trace.hops], [(["qp", str(0x1234)], 300)])


def macvlans():
    """What a container sends by a macvlan is seen there and at the device below; what is sent to it arrives."""
    with Lab() as made:
        h, m, b = made.namespace("h"), made.namespace("m"), made.namespace("b")
        made.veth(h, "veth0", b, "veth0")
        sh(f"ip -n {h} link add mv link veth0 netns {m} type macvlan mode bridge; ip -n {m} link set mv up")
        made.address(m, "mv", "10.8.0.1/24")
        made.address(b, "veth0", "10.8.0.2/24")
        warm(m, "10.8.0.2")
        there, back = Sink(b, "10.8.0.2", 9000), Sink(m, "10.8.0.1", 9000)
        with Trace(of(m, port=9000), FOLDER) as trace:
            send(m, ("10.8.0.1", 4000), ("10.8.0.2", 9000), b"x" * 300, 1000)
            send(b, ("10.8.0.2", 4000), ("10.8.0.1", 9000), b"x" * 300, 1000)
        there.close()
        back.close()
        expect("received", (there.count, back.count), (1000, 1000))
        check_path(trace, "> 10.8.0.2:9000", [(f"{m}/mv", "queue"), (f"{h}/veth0", "queue"), (f"{b}/veth0", "receive")], 1000)
        check_path(trace, "> 10.8.0.1:9000", [(f"{b}/veth0", "queue"), (f"{h}/veth0", "receive")], 1000)
        expect("losses", [hop for hop in trace.hops if hop["lost"]], [])


def governor():
    """Above the budget fewer packets are followed, and the summary says so; all losses stay counted."""
    with Lab() as made:
        a, b = made.namespace("a"), made.namespace("b")
        made.veth(a, "veth0", b, "veth0")
        made.address(a, "veth0", "10.8.0.1/24")
        made.address(b, "veth0", "10.8.0.2/24")
        warm(a, "10.8.0.2")
        rules = of(a) | {"cpu_budget_percent": 0.001}
        sink = Sink(b, "10.8.0.2", 9000)
        sent = 0
        with Trace(rules, FOLDER) as trace:
            end = time.monotonic() + 4  # the cost is looked at once a second
            while time.monotonic() < end:
                send(a, ("10.8.0.1", 4000), ("10.8.0.2", 9000), b"x", 2000)
                sent += 2000
            sh(f"ip netns exec {b} tc qdisc add dev veth0 clsact")
            sh(f"ip netns exec {b} tc filter add dev veth0 ingress bpf da obj {DROP} sec tc")
            send(a, ("10.8.0.1", 4000), ("10.8.0.2", 9000), b"x" * 400, 5000)
        sink.close()
        expect("received", sink.count, sent + 4000)
        hop = trace.hop("> 10.8.0.2:9000", (f"{a}/veth0", "queue"), (f"{b}/veth0", "receive"))
        print(f"one in {trace.summary['one_in']}: {hop['packets']} of {sent + 5000} packets")
        assert trace.summary["one_in"] > 1, trace.summary
        assert 0 < hop["packets"] < sent, (hop, sent)
        expect("lost", sum(hop["lost"] for hop in trace.hops), 1000)
        expect("lost events", trace.summary["events_lost"], 0)


MEASURE = """
import json, subprocess, sys
sys.path.insert(0, sys.argv[1])
import lab
greynic, rules, sender = sys.argv[2:5]
for line in sys.stdin:
    request = json.loads(line)
    trace = subprocess.Popen([greynic, "trace", "run", rules, "--measures"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    trace.stderr.readline()
    payload = b"x" * request["configuration"]["payload_bytes"]
    lab.send(sender, ("10.8.0.1", 4000), ("10.8.0.2", 9000), payload, 400)
    trace.send_signal(2)
    answer = json.loads(trace.communicate()[0])
    print(json.dumps(answer | {"id": request["id"]}), flush=True)
"""


def campaign():
    """In a campaign a trace is a measure: explain finds the setting whose packets a hop loses."""
    with Lab() as made:
        a, h, b = made.namespace("a"), made.namespace("h"), made.namespace("b")
        made.veth(a, "veth0", h, "pa")
        made.veth(b, "veth0", h, "pb")
        made.bridge(h, "br0", ["pa", "pb"])
        made.address(a, "veth0", "10.8.0.1/24")
        made.address(b, "veth0", "10.8.0.2/24")
        warm(a, "10.8.0.2")
        sh(f"ip netns exec {h} tc qdisc add dev pa clsact")
        sh(f"ip netns exec {h} tc filter add dev pa ingress bpf da obj {DROP} sec tc")  # a fourth, from 300 bytes on
        hop = f"{h}/pa>{h}/pb"
        sheet = {"version": 1, "name": "hops", "design": "full",
                 "factors": {"payload_bytes": {"type": "numeric", "levels": [64, 400]},
                             "colour": {"type": "categorical", "levels": ["red", "green"]}},
                 "baseline": {"payload_bytes": 64, "colour": "red"},
                 "wall": {"metric": f"hop_loss_share.{hop}", "above": 0.1}, "measure": {"repeats": 2, "seconds": 1}}
        paths = {name: os.path.join(FOLDER, name) for name in ("sheet.json", "rules.json", "measure.py", "hops.db")}
        texts = {"sheet.json": json.dumps(sheet), "rules.json": json.dumps(of(a, port=9000)), "measure.py": MEASURE}
        for name, text in texts.items():
            with open(paths[name], "w") as file:
                file.write(text)
        sink = Sink(b, "10.8.0.2", 9000)
        here = os.path.dirname(os.path.abspath(__file__))
        command = " ".join((sys.executable, paths["measure.py"], here, lab.GREYNIC, paths["rules.json"], a))
        subprocess.run([lab.GREYNIC, "run", paths["sheet.json"], "--target", f"exec:{command}", "--seed", "3",
                        "-o", paths["hops.db"]], check=True, capture_output=True)
        sink.close()
        expect("received", sink.count, 4 * 400 + 4 * 300)
        rows = subprocess.run([lab.GREYNIC, "export", paths["hops.db"], "--format", "jsonl"], check=True, capture_output=True,
                              text=True)
        for row in map(json.loads, rows.stdout.splitlines()):
            loss = 0.25 if row["configuration"]["payload_bytes"] == 400 else 0
            expect("loss", row[f"hop_loss_share.{hop}"], loss)
            assert 0 < row[f"hop_p50_us.{hop}"] <= row[f"hop_p99_us.{hop}"], row
        explained = subprocess.run([lab.GREYNIC, "explain", paths["hops.db"], "--json"], capture_output=True, text=True)
        print(explained.stdout)
        causes = json.loads(explained.stdout)
        assert "payload_bytes" in json.dumps(causes), explained.stderr

def page():
    """The page shows devices, hops and packets in a browser without a complaint, and its counts are those of the lines."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not browser:
        skip("no Chromium here; scripts/setup.sh --test installs it")
    with Lab() as made:
        a, b = made.namespace("a"), made.namespace("b")
        made.veth(a, "veth0", b, "veth0")
        made.address(a, "veth0", "10.8.0.1/24")
        made.address(b, "veth0", "10.8.0.2/24")
        warm(a, "10.8.0.2")
        sink = Sink(b, "10.8.0.2", 9000)
        rules = of(a, port=9000)
        rules["rules"][0]["sample"] = 10
        with Trace(rules, FOLDER, "--serve", ":0") as trace:
            url = next(word for word in trace.said.split() if word.startswith("http://"))
            time.sleep(1.2)
            send(a, ("10.8.0.1", 4000), ("10.8.0.2", 9000), b"x", 1000)
            time.sleep(2.2)

            def ask(path):
                with urllib.request.urlopen(url + path) as answer:
                    return json.load(answer)

            last = ask("state")
            states = [ask(f"state?at_ms={at}") for at in range(last["first_ms"], last["last_ms"] + 1, 1000)]
            # Each state is told once, though two questions may meet it.
            once = {state["time_ms"]: state for state in states + [last]}.values()
            expect("packets over all states", sum(edge["packets"] for state in once for edge in state["edges"]), 1000)
            # A journey's way, and how long it took.
            ways = {tuple(point["point"] for point in journey["points"]) for journey in ask("journeys")}
            expect("ways of kept packets", ways, {(f"{a}/veth0", f"{b}/veth0")})
            with open(os.path.join(FOLDER, "console"), "w+") as console:
                dom = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                                      "--virtual-time-budget=5000", f"--user-data-dir={FOLDER}/profile",
                                      "--enable-logging=stderr", "--dump-dom", url],
                                     stdout=subprocess.PIPE, stderr=console, text=True, timeout=100).stdout
                console.seek(0)
                complaints = [line for line in console if ":CONSOLE" in line]
            expect("complaints", complaints, [])
            hops = dom[dom.index('id="hops"'):]
            assert f"{a}/veth0</td><td>{b}/veth0" in hops, dom[-4000:]
            expect("drawings", dom.count("<canvas"), 2)
            assert "10.8.0.1:4000 &gt; 10.8.0.2:9000" in dom, dom[-4000:]
        sink.close()


def hosts():
    """Two agents and a collector: what a switch between them loses is counted, each packet that arrives has its delay; a
    collector that is killed costs nothing, an agent that is killed leaves nothing attached."""
    before = attached()
    lab_folder = os.path.join(FOLDER, "lab")
    subprocess.run([lab.GREYNIC, "agent", "init", lab_folder, "--name", "127.0.0.1"], check=True, capture_output=True)
    with Lab() as made:
        a, s, b = made.namespace("a"), made.namespace("s"), made.namespace("b")
        made.veth(a, "veth0", s, "pa")
        made.veth(b, "veth0", s, "pb")
        made.bridge(s, "br0", ["pa", "pb"])
        made.address(a, "veth0", "10.8.0.1/24")
        made.address(b, "veth0", "10.8.0.2/24")
        warm(a, "10.8.0.2")
        agents = [subprocess.Popen([lab.GREYNIC, "trace", "agent", "--listen", "127.0.0.1:0", "--certificates", lab_folder,
                                    "--place", place], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                  for place in (a, b)]
        try:
            at = [agent.stdout.readline().strip() for agent in agents]
            expect("programs without rules", attached(), before)
            paths = {name: os.path.join(FOLDER, name) for name in ("hosts.json", "hosts_rules.json", "between.json")}
            rules = {"version": 1, "rules": [{"name": "all", "sample": 1, "match": {"destination": "10.8.0.2", "port": 9000}}]}
            with open(paths["hosts.json"], "w") as file:
                json.dump({"version": 1, "certificates": "lab",
                           "hosts": [{"name": name, "agent": agent} for name, agent in zip("AB", at)]}, file)
            with open(paths["hosts_rules.json"], "w") as file:
                json.dump(rules, file)

            def collect(*options):
                process = subprocess.Popen([lab.GREYNIC, "trace", "collect", paths["hosts.json"], paths["hosts_rules.json"], "--json",
                                            *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                line = process.stderr.readline()
                while line and "tracing" not in line:
                    line = process.stderr.readline()
                assert line, "the collector did not begin"
                return process

            first = collect()
            first.kill()
            first.communicate()
            sink = Sink(b, "10.8.0.2", 9000)
            collector = collect("--perfetto", paths["between.json"])
            expect("programs of two agents", attached(), before + 8)
            sh(f"ip netns exec {s} tc qdisc add dev pa clsact")
            sh(f"ip netns exec {s} tc filter add dev pa ingress bpf da obj {DROP} sec tc")
            send(a, ("10.8.0.1", 4000), ("10.8.0.2", 9000), b"x" * 400, 5000)
            time.sleep(1)
            collector.send_signal(2)
            out, err = collector.communicate(timeout=60)
            sink.close()
            expect("received", sink.count, 4000)
            lines = [json.loads(line) for line in out.splitlines()]
            way = (f"A:{a}/veth0", f"B:{b}/veth0")
            between = [line for line in lines[:-1] if (line["from"], line["to"]) == way]
            expect(f"hops between hosts of {out} {err}", len(between), 1)
            hop = between[0]
            print(hop)
            expect("counts", (hop["packets"], hop["lost"], hop["lost_reasons"]), (4000, 1000, {"BETWEEN_HOSTS": 1000}))
            expect("timed", hop["timed"], 4000)
            assert 0 < hop["p50_ns"] <= hop["p99_ns"] + hop["error_ns"], hop
            with open(paths["hosts_rules.json"], "w") as file:
                json.dump({"version": 1, "rules": [{"match": {"container": "nobody"}}]}, file)
            wrong = subprocess.run([lab.GREYNIC, "trace", "collect", paths["hosts.json"], paths["hosts_rules.json"]],
                                   capture_output=True, text=True)
            expect("exit code of a rule that fits no host", wrong.returncode, 2)
            assert "/rules/0/match/container" in wrong.stderr, wrong.stderr
        finally:
            for agent in agents:
                agent.kill()
                agent.communicate()
        for _ in range(100):
            if attached() == before:
                break
            time.sleep(0.05)
        expect("programs behind agents that were killed", attached(), before)


def small_machine():
    """The same on Debian's kernel, and there also for the devices that other kernels leave out."""
    if not os.environ.get("GREYNIC_NIGHTLY"):
        skip("an emulated machine takes minutes; set GREYNIC_NIGHTLY=1")
    here = os.path.dirname(os.path.abspath(__file__))
    claims = ("parsing", "queue_pairs", "macvlans", "losses", "flooding", "fragments", "twice", "rules_while_it_runs", "killed")
    done = subprocess.run([os.path.join(here, "..", "vm", "run"), "--timeout", "900", "--memory", "2048", "--",
                           sys.executable, os.path.abspath(__file__), lab.GREYNIC, DROP, *claims])
    if done.returncode == SKIP:
        skip("no small machine here")
    expect("exit code", done.returncode, 0)


CLAIMS = {claim.__name__: claim for claim in (completeness, losses, flooding, large_packets, fragments, twice, parsing, queue_pairs,
                                            macvlans, governor, rules_while_it_runs, outlets, campaign, page, hosts, killed,
                                            many, small_machine)}


def hold(name):
    """A kernel may keep some tasks from being traced: while one of them holds a processor, no tracepoint fires for what interrupts
    move there, and no program sees it (docs/trace/out_of_band.md). That is rare, so a claim has four trials; a fault of the program
    shows in each."""
    for trials_left in range(3, -1, -1):
        try:
            CLAIMS[name]()
            print(f"{name}: holds")
            return
        except AssertionError as error:
            if trials_left == 0:
                raise
            print(f"{name}: once more, since {error}")


def main():
    global FOLDER, DROP
    lab.GREYNIC, DROP = sys.argv[1:3]
    if subprocess.run([lab.GREYNIC, "trace", "hooks"], capture_output=True).returncode != 0:
        skip("this kernel lacks a hook that tracing needs; `greynic trace hooks` says which")
    with tempfile.TemporaryDirectory() as folder:
        FOLDER = folder
        for name in sys.argv[3:] or CLAIMS:
            hold(name)


main()
