#!/usr/bin/env python3
"""A trace over several hosts, and the databases that read it."""

import json
import os
import pathlib
import subprocess
import sys
import time

import claims
import lab
from claims import attached, expect, warm
from lab import Lab, Sink, send, sh, skip

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "outlets"))
import databases as outlets

RULES = {"version": 1, "rules": [{"name": "all", "sample": 1, "match": {"destination": "10.8.0.2", "port": 9000}}]}


class TwoHosts(Lab):
    """Two hosts with a switch between them, an agent on each, and files for a collector."""

    def __init__(self):
        super().__init__()
        self.agents = []
        folder = os.path.join(claims.FOLDER, f"lab{time.monotonic_ns()}")
        subprocess.run([lab.GREYNIC, "agent", "init", folder, "--name", "127.0.0.1"], check=True, capture_output=True)
        self.a, self.s, self.b = self.namespace("a"), self.namespace("s"), self.namespace("b")
        self.veth(self.a, "veth0", self.s, "pa")
        self.veth(self.b, "veth0", self.s, "pb")
        self.bridge(self.s, "br0", ["pa", "pb"])
        self.address(self.a, "veth0", "10.8.0.1/24")
        self.address(self.b, "veth0", "10.8.0.2/24")
        warm(self.a, "10.8.0.2")
        for place in (self.a, self.b):
            self.agents.append(subprocess.Popen(
                [lab.GREYNIC, "trace", "agent", "--listen", "127.0.0.1:0", "--certificates", folder, "--place", place],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
        at = [agent.stdout.readline().strip() for agent in self.agents]
        self.hosts = self.file("hosts.json", {"version": 1, "certificates": folder, "hosts": [
            {"name": name, "agent": agent} for name, agent in zip("AB", at)]})
        self.rules = self.file("hosts_rules.json", RULES)
        self.way = (f"A:{self.a}/veth0", f"B:{self.b}/veth0")

    @staticmethod
    def file(name, content):
        path = os.path.join(claims.FOLDER, name)
        with open(path, "w") as file:
            json.dump(content, file)
        return path

    def collect(self, *options):
        process = subprocess.Popen([lab.GREYNIC, "trace", "collect", self.hosts, self.rules, "--json", *options],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.said = ""
        while "tracing" not in (line := process.stderr.readline()):
            assert line, f"the collector did not begin: {process.said}"
            process.said += line
        return process

    def close(self):
        for agent in self.agents:
            agent.kill()
            agent.communicate()
        super().close()


def ended(collector):
    """Its lines and what it said, when it is told to end."""
    collector.send_signal(2)
    out, err = collector.communicate(timeout=60)
    return [json.loads(line) for line in out.splitlines()], err


def hosts():
    """Two agents and a collector: what a switch between them loses is counted, each packet that arrives has its delay; a
    collector that is killed costs nothing, an agent that is killed leaves nothing attached."""
    before = attached()
    with TwoHosts() as made:
        expect("programs without rules", attached(), before)
        first = made.collect()
        first.kill()
        first.communicate()
        sink = Sink(made.b, "10.8.0.2", 9000)
        collector = made.collect("--perfetto", os.path.join(claims.FOLDER, "between.json"))
        expect("programs of two agents", attached(), before + 8)
        sh(f"ip netns exec {made.s} tc qdisc add dev pa clsact")
        sh(f"ip netns exec {made.s} tc filter add dev pa ingress bpf da obj {claims.DROP} sec tc")
        send(made.a, ("10.8.0.1", 4000), ("10.8.0.2", 9000), b"x" * 400, 5000)
        time.sleep(1)
        lines, err = ended(collector)
        sink.close()
        expect("received", sink.count, 4000)
        between = [line for line in lines[:-1] if (line["from"], line["to"]) == made.way]
        expect(f"hops between hosts of {lines} {err}", len(between), 1)
        hop = between[0]
        print(hop)
        expect("counts", (hop["packets"], hop["lost"], hop["lost_reasons"]), (4000, 1000, {"BETWEEN_HOSTS": 1000}))
        expect("timed", hop["timed"], 4000)
        assert 0 < hop["p50_ns"] <= hop["p99_ns"] + hop["error_ns"], hop
        expect("clocks", lines[-1]["clocks"], {name: "ours: the same kernel" for name in "AB"})
        made.file("hosts_rules.json", {"version": 1, "rules": [{"match": {"container": "nobody"}}]})
        wrong = subprocess.run([lab.GREYNIC, "trace", "collect", made.hosts, made.rules], capture_output=True, text=True)
        expect("exit code of a rule that fits no host", wrong.returncode, 2)
        assert "/rules/0/match/container" in wrong.stderr, wrong.stderr
    for _ in range(100):
        if attached() == before:
            break
        time.sleep(0.05)
    expect("programs behind agents that were killed", attached(), before)


def databases():
    """A real InfluxDB that dies and comes back, and a real Prometheus, have what the lines of two hosts say in the end."""
    if not os.environ.get("GREYNIC_NIGHTLY"):
        skip("two databases take most of a minute; set GREYNIC_NIGHTLY=1")
    if why := outlets.missing():
        skip(why)
    metrics = f"127.0.0.1:{outlets.free_port()}"
    influx = outlets.Influx(claims.FOLDER)
    influx.start()
    prometheus = outlets.Prometheus(claims.FOLDER, metrics)
    try:
        with TwoHosts() as made:
            sink = Sink(made.b, "10.8.0.2", 9000)
            collector = made.collect("--influx", f"{influx.url}/lab", "--openmetrics", metrics)
            last = 'SELECT last(packets) FROM greynic_hop WHERE "from" = \'%s\' AND "to" = \'%s\'' % made.way

            def stored():
                return influx.rows(last)[0][1]

            send(made.a, ("10.8.0.1", 4000), ("10.8.0.2", 9000), b"x", 1000)
            outlets.until("packets in InfluxDB", stored, 1000)
            influx.kill()
            send(made.a, ("10.8.0.1", 4000), ("10.8.0.2", 9000), b"x", 500)
            time.sleep(3)
            influx.start()
            outlets.until("packets in InfluxDB that was away", stored, 1500)
            query = f'greynic_hop_packets_total{{from="{made.way[0]}",to="{made.way[1]}"}}'
            outlets.until("packets in Prometheus", lambda: prometheus.value(query), 1500.0)
            lines, err = ended(collector)
            sink.close()
            hop = next(line for line in lines[:-1] if (line["from"], line["to"]) == made.way)
            expect("packets", (hop["packets"], hop["timed"]), (1500, 1500))
            assert "InfluxDB did not get" not in err, err
    finally:
        influx.kill()
        prometheus.kill()


def disk_full():
    """A disk that is full costs the file of journeys alone: hops are told, and exit code 3 and the reason."""
    with TwoHosts() as made:
        small = os.path.join(claims.FOLDER, "small")
        os.makedirs(small, exist_ok=True)
        sh(f"mount -t tmpfs -o size=64k none {small}")
        try:
            sink = Sink(made.b, "10.8.0.2", 9000)
            collector = made.collect("--perfetto", f"{small}/journeys.json")
            send(made.a, ("10.8.0.1", 4000), ("10.8.0.2", 9000), b"x", 3000)
            time.sleep(1)
            lines, err = ended(collector)
            sink.close()
            hop = next(line for line in lines[:-1] if (line["from"], line["to"]) == made.way)
            expect("packets", (hop["packets"], hop["timed"]), (3000, 3000))
            expect("exit code", collector.returncode, 3)
            assert "journeys.json" in err and "No space" in err, err
            expect("left in the folder", os.listdir(small), [])
        finally:
            sh(f"umount {small}")


claims.hold(hosts, databases, disk_full)
