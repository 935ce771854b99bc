#!/usr/bin/env python3
"""What headers and devices a trace knows, here and on Debian's kernel."""

import json
import os
import shutil
import struct
import subprocess
import time

import claims
import lab
from claims import check_path, expect, of, veth_pair, warm
from lab import Lab, Sink, Trace, send, sh, skip


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
            with Trace(of(a, port=9000), claims.FOLDER) as trace:
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
        skip("this kernel has none of these devices; GREYNIC_NIGHTLY=1 tries them on Debian's, in Trace.debian_headers")


def queue_pairs():
    """RoCE's queue pair is part of a flow, and a rule takes the packets of one alone."""
    with Lab() as made:
        a, b = veth_pair(made)
        sink = Sink(b, "10.8.0.2", 4791)
        transport = lambda pair: struct.pack(">BBHII", 4, 0, 0xFFFF, pair, 77) + b"x" * 64
        with Trace(of(a, queue_pair=0x1234), claims.FOLDER) as trace:
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
        with Trace(of(m, port=9000), claims.FOLDER) as trace:
            send(m, ("10.8.0.1", 4000), ("10.8.0.2", 9000), b"x" * 300, 1000)
            send(b, ("10.8.0.2", 4000), ("10.8.0.1", 9000), b"x" * 300, 1000)
        there.close()
        back.close()
        expect("received", (there.count, back.count), (1000, 1000))
        check_path(trace, "> 10.8.0.2:9000", [(f"{m}/mv", "queue"), (f"{h}/veth0", "queue"), (f"{b}/veth0", "receive")], 1000)
        check_path(trace, "> 10.8.0.1:9000", [(f"{b}/veth0", "queue"), (f"{h}/veth0", "receive")], 1000)
        expect("losses", [hop for hop in trace.hops if hop["lost"]], [])


def ifbs():
    """A packet that is sent through an ifb on its way in is seen there, and where it comes back."""
    with Lab() as made:
        a, b = veth_pair(made)
        if not lab.tried(f"ip -n {b} link add shaped type ifb"):
            skip("this kernel has no ifb")
        sh(f"ip -n {b} link set shaped up; ip netns exec {b} tc qdisc add dev veth0 clsact;"
           f"ip netns exec {b} tc filter add dev veth0 ingress protocol ip u32 match u32 0 0 action mirred egress redirect dev shaped")
        warm(a, "10.8.0.2")
        places = json.loads(subprocess.run([lab.GREYNIC, "trace", "topology", "--json"], capture_output=True, text=True).stdout)
        kinds = {device["name"]: device["kind"] for place in places if place["name"] == b for device in place["devices"]}
        expect("kind of the ifb", kinds["shaped"], "ifb")
        sink = Sink(b, "10.8.0.2", 9000)
        with Trace(of(a, port=9000), claims.FOLDER) as trace:
            send(a, ("10.8.0.1", 4000), ("10.8.0.2", 9000), b"x" * 300, 1000)
        sink.close()
        expect("received", sink.count, 1000)
        points = [(f"{a}/veth0", "queue"), (f"{b}/veth0", "receive"), (f"{b}/shaped", "queue"), (f"{b}/veth0", "receive")]
        check_path(trace, "> 10.8.0.2:9000", points, 1000)
        expect("lost events", trace.summary["events_lost"], 0)


def soft_roce():
    """What Soft-RoCE sends is followed by queue pair, packet for packet of the device's own count: with the template, and with
    rules of which each takes one queue pair. Packets that it has used up are no losses."""
    counter = "/sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts"
    if not os.path.exists(counter) or not shutil.which("ibv_rc_pingpong"):
        skip("needs Soft-RoCE and ibv_rc_pingpong; GREYNIC_NIGHTLY=1 has both on Debian's kernel, in Trace.debian_roce")

    def sent():
        with open(counter) as file:
            return int(file.read())

    def traced(rules):
        """Traffic from rxe0 to rxe1 under these rules: the trace, the queue pair of rxe1, and what rxe0 has sent."""
        ping = ["ibv_rc_pingpong", "-g", "1", "-n", "200"]
        with Trace(rules, claims.FOLDER) as trace:
            before = sent()
            server = subprocess.Popen(ping + ["-d", "rxe1"], stdout=subprocess.DEVNULL)
            for _ in range(50):
                time.sleep(0.2)  # until it listens
                client = subprocess.run(ping + ["-d", "rxe0", "10.77.0.2"], capture_output=True, text=True)
                if client.returncode == 0:
                    break
            server.wait(timeout=60)
            count = sent() - before
        assert "QPN" in client.stdout and count >= 200, client.stderr
        return trace, int(client.stdout.split("remote address")[1].split("QPN ")[1].split(",")[0], 16), count

    def there(trace):
        return [(hop["rule"], hop["flow"].split("> ")[1], hop["packets"], hop["timed"]) for hop in trace.hops
                if hop["from"].endswith("/veth0") and hop["from_direction"] == "queue"]

    trace, pair, count = traced("soft_roce")
    expect("packets to rxe1", there(trace), [("roce", f"10.77.0.2:4791 qp {pair}", count, count)])
    expect("losses", [hop for hop in trace.hops if hop["lost"]], [])
    # The next pairs have the next numbers.
    rules = [{"name": f"pair {number}", "match": {"queue_pair": number, "destination": "10.77.0.2"}} for number in range(pair, pair + 8)]
    trace, pair, count = traced({"version": 1, "rules": rules})
    expect("packets of one pair", there(trace), [(f"pair {pair}", f"10.77.0.2:4791 qp {pair}", count, count)])
    expect("hops of others", len(trace.hops), 1)


claims.hold(parsing, queue_pairs, macvlans, ifbs, soft_roce)
