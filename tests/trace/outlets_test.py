#!/usr/bin/env python3
"""Who reads a trace: Prometheus, an InfluxDB, Perfetto, a campaign, a page for people."""

import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import urllib.request

import claims
import lab
from claims import expect, of, veth_pair, warm
from lab import Lab, Sink, Trace, send, sh, skip


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
    journeys = os.path.join(claims.FOLDER, "journeys.json")
    with Lab() as made:
        a, b = veth_pair(made)
        sink = Sink(b, "10.8.0.2", 9000)
        rules = of(a, port=9000)
        rules["rules"][0]["sample"] = 10
        with Trace(rules, claims.FOLDER, "--openmetrics", ":0", "--perfetto", journeys,
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
        sh(f"ip netns exec {h} tc filter add dev pa ingress bpf da obj {claims.DROP} sec tc")  # a fourth, from 300 bytes on
        hop = f"{h}/pa>{h}/pb"
        sheet = {"version": 1, "name": "hops", "design": "full",
                 "factors": {"payload_bytes": {"type": "numeric", "levels": [64, 400]},
                             "colour": {"type": "categorical", "levels": ["red", "green"]}},
                 "baseline": {"payload_bytes": 64, "colour": "red"},
                 "wall": {"metric": f"hop_loss_share.{hop}", "above": 0.1}, "measure": {"repeats": 2, "seconds": 1}}
        paths = {name: os.path.join(claims.FOLDER, name) for name in ("sheet.json", "rules.json", "measure.py", "hops.db")}
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
        fitted = subprocess.run([lab.GREYNIC, "fit", paths["hops.db"]], capture_output=True, text=True)
        assert f"hop_p99_us.{hop}" in fitted.stdout, fitted


BURN = """
import sys, time
sys.stdin.readline()
end = time.process_time() + 0.3
while time.process_time() < end: pass
print("burnt", flush=True)
sys.stdin.readline()
"""


def page():
    """The page shows devices, hops, containers and packets in a browser without a complaint; its counts are those of the lines,
    and a container's CPU time is what its process has counted."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not browser:
        skip("no Chromium here; scripts/setup.sh --test installs it")
    with Lab() as made:
        a, b = veth_pair(made)
        sink = Sink(b, "10.8.0.2", 9000)
        rules = of(a, port=9000)
        rules["rules"][0]["sample"] = 10
        worker = subprocess.Popen(["ip", "netns", "exec", b, sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True)
        with Trace(rules, claims.FOLDER, "--serve", ":0") as trace:
            url = next(word for word in trace.said.split() if word.startswith("http://"))
            time.sleep(1.2)
            worker.stdin.write("\n")
            worker.stdin.flush()
            expect("worker", worker.stdout.readline(), "burnt\n")
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
            with open(os.path.join(claims.FOLDER, "console"), "w+") as console:
                dom = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                                      "--virtual-time-budget=5000", f"--user-data-dir={claims.FOLDER}/profile",
                                      "--enable-logging=stderr", "--dump-dom", url],
                                     stdout=subprocess.PIPE, stderr=console, text=True, timeout=100).stdout
                console.seek(0)
                complaints = [line for line in console if ":CONSOLE" in line]
            expect("complaints", complaints, [])
            used = dom[dom.index('id="containers"'):]
            assert f"<td>{b}</td>" in used, dom[-4000:]
            hops = dom[dom.index('id="hops"'):]
            assert f"{a}/veth0</td><td>{b}/veth0" in hops, dom[-4000:]
            expect("drawings", dom.count("<canvas"), 2)
            assert "10.8.0.1:4000 &gt; 10.8.0.2:9000" in dom, dom[-4000:]
        worker.communicate("\n")
        used = [one for one in trace.summary["containers"] if one["container"] == b]
        expect("containers", [one["source"] for one in used], ["processes"])
        tick = 1 / os.sysconf("SC_CLK_TCK")  # the kernel's grain, for user and system time each
        assert 0.3 - 2 * tick <= used[0]["cpu_seconds"] and used[0]["memory_bytes"] > 1 << 20, used
        sink.close()


claims.hold(outlets, campaign, page)
