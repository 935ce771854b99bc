#!/usr/bin/env python3
"""Traces in band: packets carry their times, and nobody behind the path can tell."""

import hashlib
import json
import os
import random
import socket
import struct
import subprocess
import threading
import time

import claims
import lab
from claims import attached, expect, pairs, veth_pair, warm
from lab import Lab, Overlay, Trace, send, sh

OPTION = bytes((94, 40))  # type and length


def path(points, **rule):
    """Rules of one in-band path over (label, direction)s."""
    return {"version": 1, "engine": "in_band",
            "rules": [{"points": [{"device": label, "direction": direction} for label, direction in points]} | rule]}


class Listener:
    """All that a socket gets, until closed."""

    def __init__(self, namespace, *kind, bind=None):
        def make():
            made = socket.socket(*kind)
            made.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)  # SO_RCVBUFFORCE
            if bind:
                made.bind(bind)
            made.settimeout(0.2)
            return made

        self.socket = lab.inside(namespace, make)
        self.got = []
        self.ended = False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.ended:
            try:
                while True:
                    self.got.append(self.socket.recv(65536))
            except socket.timeout:
                pass

    def close(self):
        time.sleep(0.3)
        self.ended = True
        self.thread.join()
        self.socket.close()


def folded(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF ^ total


def datagram(source, destination, payload, identification, service):
    """A whole IPv4 packet with UDP in it, as the kernel would have made it."""
    addresses = socket.inet_aton(source) + socket.inet_aton(destination)
    udp = struct.pack("!4H", 4000, 9000, 8 + len(payload), 0) + payload
    pseudo = addresses + struct.pack("!BBH", 0, 17, len(udp)) + udp
    udp = udp[:6] + struct.pack("!H", folded(pseudo + bytes(len(pseudo) % 2)) or 0xFFFF) + udp[8:]
    head = struct.pack("!BBHHHBBH", 0x45, service, 20 + len(udp), identification, 0x4000, 61, 17, 0) + addresses
    return head[:10] + struct.pack("!H", folded(head)) + head[12:] + udp


def intact(count=3000):
    """What carried stamps arrives byte for byte as it was sent, IP header and all; packets too large for the path are left
    as they are; the stamps were there on the wire between the hosts; TCP's stream is whole."""
    seed = random.randrange(1 << 30)
    dice = random.Random(seed)
    print(f"seed {seed}")
    with Overlay() as made:
        c1, c2 = made.containers
        made.quiet()
        warm(c1, "10.42.2.1")  # what waits for a neighbour would come behind others, and ...
        lab.set_offload(made.hosts[1], "vx", 0x2C, 0)  # ... GRO takes what `wire` still has a copy of another way
        arrived = Listener(c2, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
        wire = Listener(made.hosts[1], socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3), bind=("under", 0))
        sent = [datagram("10.42.1.1", "10.42.2.1", dice.randbytes(dice.randint(1, 1422)), dice.randint(1, 65535),
                         dice.randrange(0, 256, 4)) for _ in range(count)]
        fitting = sum(len(packet) <= 1410 for packet in sent)
        rules = path(made.hops(), match={"container": c1, "protocol": "udp", "port": 9000}, most_bytes=1410, sample=10,
                     through_netfilter=True)
        journeys = os.path.join(claims.FOLDER, "in_band.json")
        with Trace(rules, claims.FOLDER, "--perfetto", journeys) as trace:
            def work():
                os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # a sender that moves overtakes its own packets
                with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
                    for i, packet in enumerate(sent):
                        raw.sendto(packet, ("10.42.2.1", 0))
                        if i % 64 == 63:
                            time.sleep(0.0002)

            lab.inside(c1, work)
            time.sleep(0.3)
        arrived.close()
        wire.close()
        expect("received", len(arrived.got), count)
        wrong = [(i, sent.index(got) if got in sent else got) for i, got in enumerate(arrived.got) if got != sent[i]]
        expect("places of other packets than were sent there", wrong[:5] + wrong[-5:], [])
        for start, end in pairs(made.hops()):
            hop = trace.hop("udp 10.42.1.1:4000 > 10.42.2.1:9000", start, end)
            assert hop, trace.lines
            expect(f"{start} -> {end}", (hop["packets"], hop["timed"], hop["lost"]), (fitting, fitting, 0))
            assert 0 < hop["p50_ns"] <= hop["max_ns"] + hop["error_ns"], hop
        expect("left out", trace.summary["left_out"], {"larger than the path carries with stamps": count - fitting})
        expect("engine", trace.summary["engine"], "in_band")
        inner = 14 + 20 + 8 + 8 + 14  # what VXLAN puts in front
        expect("with stamps on the wire", sum(frame[inner + 20:inner + 22] == OPTION for frame in wire.got), fitting)
        with open(journeys) as file:
            slices = json.load(file)
        slices = slices["traceEvents"] if isinstance(slices, dict) else slices
        kept = sum(event.get("ph") == "X" for event in slices) / 7
        assert abs(kept - fitting / 10) <= os.cpu_count(), (kept, fitting)
        print(f"{fitting} of {count} packets carried stamps: {trace.summary}")
        stream(made, dice.randbytes(1 << 20))


def stream(made, data):
    """TCP over the same path, with large packets switched off."""
    c1, c2 = made.containers
    sh(f"ip -n {c1} link set veth0 gso_max_segs 1")
    sh(f"ip -n {c1} route change 10.42.0.0/16 dev veth0 src 10.42.1.1 mtu 1410")
    server = lab.inside(c2, lambda: socket.create_server(("10.42.2.1", 9000)))
    box = []

    def take():
        connection, _ = server.accept()
        digest, size = hashlib.sha256(), 0
        while chunk := connection.recv(1 << 16):
            digest.update(chunk)
            size += len(chunk)
        box.append((digest.hexdigest(), size))

    reader = threading.Thread(target=take, daemon=True)
    reader.start()
    rules = path(made.hops(), match={"container": c1, "protocol": "tcp", "destination_port": 9000}, most_bytes=1410,
                 through_netfilter=True)
    with Trace(rules, claims.FOLDER) as trace:
        def work():
            with socket.create_connection(("10.42.2.1", 9000)) as client:
                client.sendall(data)

        lab.inside(c1, work)
        reader.join()
        time.sleep(0.2)
    server.close()
    expect("stream", box, [(hashlib.sha256(data).hexdigest(), len(data))])
    hop = trace.hop("tcp", *made.hops()[-2:])
    assert hop and hop["packets"] >= len(data) // 1410, trace.lines
    expect("left out", trace.summary["left_out"], {})
    print(f"TCP: {hop['packets']} packets with stamps")


def ipv6():
    """Packets of IPv6 arrive, and are counted as left out; those of IPv4 beside them carry stamps. A rule for IPv6 alone is
    refused (see below)."""
    with Lab() as made:
        a, b = veth_pair(made)
        for i, place in enumerate((a, b), 1):
            made.address(place, "veth0", f"fd08::{i}/64")
        warm(a, "fd08::2", socket.AF_INET6)
        way = [(f"{a}/veth0", "queue"), (f"{b}/veth0", "receive")]
        sinks = [lab.Sink(b, "10.8.0.2", 9000), lab.Sink(b, "fd08::2", 9000, socket.AF_INET6)]
        with Trace(path(way, match={"container": a, "protocol": "udp", "port": 9000}, most_bytes=1000), claims.FOLDER) as trace:
            send(a, ("10.8.0.1", 4000), ("10.8.0.2", 9000), b"x" * 99, 300)
            send(a, ("fd08::1", 4000), ("fd08::2", 9000), b"x" * 99, 500, family=socket.AF_INET6)
        for sink in sinks:
            sink.close()
        expect("received", [(sink.count, sink.bytes) for sink in sinks], [(300, 29700), (500, 49500)])
        expect("with stamps", [(hop["packets"], hop["lost"]) for hop in trace.hops], [(300, 0)])
        expect("left out", trace.summary["left_out"], {"of IPv6": 500})


def refused():
    """A path that would harm packets is refused with exit code 3 and the reason, a rule without a path with 2 and its place
    in the file; nothing is attached then."""
    before = attached()
    with Overlay() as made:
        c1, c2 = made.containers
        made.quiet()
        rules_file = os.path.join(claims.FOLDER, "refused.json")

        def told(code, words, rules):
            with open(rules_file, "w") as file:
                json.dump(rules, file)
            done = subprocess.run([lab.GREYNIC, "trace", "run", rules_file, "--for", "100ms"], capture_output=True, text=True)
            expect(f"exit code, {done.stderr}", done.returncode, code)
            assert words in done.stderr, (words, done.stderr)
            expect("programs", attached(), before)
            print(done.stderr.strip())

        udp = {"match": {"container": c1, "protocol": "udp"}}
        hops = made.hops()
        # The smallest MTU.
        told(3, "\"most_bytes\": 1410", path(hops, **udp))
        told(3, "grows by 40", path(hops, most_bytes=1411, **udp))
        # GSO.
        told(3, "large packets of TCP (GSO)", path(hops, match={"container": c1, "protocol": "tcp"}, most_bytes=1410))
        # GRO: a tap is the one device without hardware that has packets from outside, as a real NIC has.
        h1 = made.hosts[0]
        lab.tried("modprobe tun")
        sh(f"ip -n {h1} tuntap add dev tap0 mode tap; ip -n {h1} link set tap0 master br0 up")
        from_outside = path([(f"{h1}/tap0", "receive"), *hops[2:]], match={"destination": "10.42.2.1", "protocol": "tcp"},
                            most_bytes=1410, through_netfilter=True)
        told(3, "takes large packets of TCP (GRO)", from_outside)
        lab.set_offload(h1, "tap0", 0x2C, 0)
        told(0, "", from_outside)
        # br_netfilter: of the namespace, and of the bridge alone.
        switch = "/proc/sys/net/bridge/bridge-nf-call-iptables"

        def netfilter(on):
            for host in made.hosts:
                sh(f"ip netns exec {host} sysctl -qw net.bridge.bridge-nf-call-iptables={on}")

        if os.path.exists(switch):
            netfilter(1)
            told(3, "shows packets to netfilter", path(hops, most_bytes=1410, **udp))
            told(0, "", path(hops, most_bytes=1410, through_netfilter=True, **udp))
            netfilter(0)
        else:
            print("left out: this kernel has no br_netfilter")
        told(0, "", path(hops, most_bytes=1410, **udp))
        sh(f"ip -n {made.hosts[1]} link set br0 type bridge nf_call_iptables 1")
        told(3, "shows packets to netfilter", path(hops, most_bytes=1410, **udp))
        sh(f"ip -n {made.hosts[1]} link set br0 type bridge nf_call_iptables 0")
        # A real NIC in the middle.
        places = json.loads(subprocess.run([lab.GREYNIC, "trace", "topology", "--json"], capture_output=True, text=True).stdout)
        nics = [f"{place['name']}/{device['name']}" for place in places for device in place["devices"]
                if not device["kind"] and device["name"] != "lo"]
        if nics:
            told(3, "is a real NIC", path([hops[0], (nics[0], "queue"), hops[-1]], most_bytes=1000, **udp))
        else:
            print("left out: no real NIC here")
        # Rules that are none.
        told(2, "/rules/0/points", {"version": 1, "engine": "in_band", "rules": [{}]})
        told(2, "/rules/0/points/0/device", path([(f"{c1}/*", "queue"), hops[-1]], **udp))
        told(2, "/rules/0/points/1", path([hops[0], (hops[-1][0], "both")], **udp))
        told(2, "/rules/0/match/destination", path(hops, match={"destination": "fd42::1"}))
        told(2, "/rules/0/most_bytes", {"version": 1, "rules": [{"most_bytes": 1000}]})


def strays():
    """Copies that a bridge floods leave without stamps; packets that die on the way are counted where they are missing; a trace
    that is killed leaves nothing attached."""
    before = attached()
    with Lab() as made:
        h = made.namespace("h")
        hosts = [made.namespace(f"c{i}") for i in range(3)]
        for i, host in enumerate(hosts):
            made.veth(host, "veth0", h, f"port{i}")
            made.address(host, "veth0", f"10.7.0.{i + 1}/24")
        made.bridge(h, "br0", [f"port{i}" for i in range(3)])
        sh(f"ip -n {hosts[0]} neigh add 10.7.0.99 lladdr 02:00:00:00:00:99 dev veth0")  # always flooded
        sniffers = [Listener(host, socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3), bind=("veth0", 0)) for host in hosts]
        points = [(f"{hosts[0]}/veth0", "queue"), (f"{h}/port0", "receive"), (f"{h}/port1", "queue"),
                  (f"{hosts[1]}/veth0", "receive")]
        rules = path(points, match={"destination": "10.7.0.99", "port": 9000}, most_bytes=1000, through_netfilter=True)
        rules["rules"][0]["match"]["protocol"] = "udp"
        with Trace(rules, claims.FOLDER) as trace:
            lab.tried(f"ip netns exec {h} tc qdisc add dev port0 clsact")  # before 6.6 the trace has added it
            sh(f"ip netns exec {h} tc filter add dev port0 ingress bpf da obj {claims.DROP} sec tc")  # a fourth, from 300 bytes on
            send(hosts[0], ("10.7.0.1", 4000), ("10.7.0.99", 9000), b"x" * 400, 5000)
            time.sleep(0.3)
        for sniffer in sniffers:
            sniffer.close()
        flow = "10.7.0.1:4000 > 10.7.0.99:9000"
        counts = [(hop["packets"], hop["lost_reasons"]) for hop in (trace.hop(flow, *pair) for pair in pairs(points))]
        expect("hops", counts, [(5000, {}), (4000, {"NOT_AT_NEXT_POINT": 1000}), (4000, {})])
        expect("copies", trace.summary["left_out"], {"came another way than its path": 4000})
        copies = [frame for frame in sniffers[2].got if b"x" * 400 in frame]
        expect("copies beside the path", len(copies), 4000)
        expect("of them with stamps", sum(OPTION in frame[30:40] for frame in copies), 0)
        with open(trace.path, "w") as file:
            json.dump(rules, file)
        run = subprocess.Popen([lab.GREYNIC, "trace", "run", trace.path], stderr=subprocess.PIPE, text=True)
        run.stderr.readline()
        programs = attached()
        run.kill()
        run.communicate()
        assert programs > before
        for _ in range(100):
            if attached() == before:
                return
            time.sleep(0.05)
        expect("programs behind a trace that was killed", attached(), before)


claims.hold(intact, ipv6, refused, strays)
