#!/usr/bin/env python3
"""A trace over several hosts, and the databases that read it."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request

import claims
import lab
from claims import attached, expect, warm
from lab import Lab, Sink, send, sh, skip

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


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(url, **words):
    with urllib.request.urlopen(f"{url}?{urllib.parse.urlencode(words)}", timeout=5) as answer:
        return json.load(answer)


def until(what, question, wanted, seconds=40):
    """Asks again until the answer is there."""
    end = time.monotonic() + seconds
    got = None
    while time.monotonic() < end:
        with contextlib.suppress(OSError, KeyError, IndexError):
            if (got := question()) == wanted:
                return
        time.sleep(0.3)
    raise AssertionError(f"{what}: {got} instead of {wanted}")


class Influx:
    """Debian's InfluxDB in a folder of its own; may be killed and started again."""

    def __init__(self):
        self.folder = os.path.join(claims.FOLDER, f"influx{time.monotonic_ns()}")
        self.port = free_port()
        os.makedirs(self.folder)
        with open(f"{self.folder}/conf", "w") as file:
            file.write(f'reporting-disabled = true\nbind-address = "127.0.0.1:{free_port()}"\n[meta]\n dir = "{self.folder}/meta"\n'
                       f'[data]\n dir = "{self.folder}/data"\n wal-dir = "{self.folder}/wal"\n'
                       f'[http]\n bind-address = "127.0.0.1:{self.port}"\n log-enabled = false\n')
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self):
        self.process = subprocess.Popen(["influxd", "-config", f"{self.folder}/conf"], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)

        def made():
            urllib.request.urlopen(f"{self.url}/query", data=b"q=CREATE DATABASE lab", timeout=5).read()
            return True

        until("a database", made, True)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def last_count(self, start, end):
        found = ask(f"{self.url}/query", db="lab", q=f'SELECT last(packets) FROM greynic_hop WHERE "from" = \'{start}\' AND "to" = \'{end}\'')
        return found["results"][0]["series"][0]["values"][0][1]


def databases():
    """A real InfluxDB that dies and comes back, and a real Prometheus, have what the lines of two hosts say in the end."""
    if not os.environ.get("GREYNIC_NIGHTLY"):
        skip("two databases take most of a minute; set GREYNIC_NIGHTLY=1")
    for program in ("influxd", "prometheus"):
        if not shutil.which(program):
            skip(f"there is no {program}; apt-get install influxdb prometheus")
    influx, metrics, port = Influx(), free_port(), free_port()
    config = os.path.join(claims.FOLDER, "prometheus.yml")
    with open(config, "w") as file:
        file.write(f"global: {{scrape_interval: 1s}}\nscrape_configs: [{{job_name: trace, static_configs: [{{targets: ['127.0.0.1:{metrics}']}}]}}]\n")
    influx.start()
    prometheus = subprocess.Popen(["prometheus", f"--config.file={config}", f"--storage.tsdb.path={claims.FOLDER}/prometheus",
                                   f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with TwoHosts() as made:
            sink = Sink(made.b, "10.8.0.2", 9000)
            collector = made.collect("--influx", f"{influx.url}/lab", "--openmetrics", f"127.0.0.1:{metrics}")
            send(made.a, ("10.8.0.1", 4000), ("10.8.0.2", 9000), b"x", 1000)
            until("packets in InfluxDB", lambda: influx.last_count(*made.way), 1000)
            influx.kill()
            send(made.a, ("10.8.0.1", 4000), ("10.8.0.2", 9000), b"x", 500)
            time.sleep(3)
            influx.start()
            until("packets in InfluxDB that was away", lambda: influx.last_count(*made.way), 1500)
            query = f'greynic_hop_packets_total{{from="{made.way[0]}",to="{made.way[1]}"}}'

            def scraped():
                return float(ask(f"http://127.0.0.1:{port}/api/v1/query", query=query)["data"]["result"][0]["value"][1])

            until("packets in Prometheus", scraped, 1500.0)
            lines, err = ended(collector)
            sink.close()
            hop = next(line for line in lines[:-1] if (line["from"], line["to"]) == made.way)
            expect("packets", (hop["packets"], hop["timed"]), (1500, 1500))
            assert "InfluxDB did not get" not in err, err
    finally:
        influx.kill()
        prometheus.kill()
        prometheus.wait()


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
