#!/usr/bin/env python3
"""The sweep of the monitor as one page with pictures: interval, metrics and hosts; latency, and CPU on both sides.

usage: sweep.py BUILD_DIR PAGE.html [--seconds 2] [--json MEASURED.json]

One host: a mapping and process_vm_readv beside RPC over a unix socket and over TCP, and text over TCP (zero_cost_bench).
Many hosts: READs with credits on the twin's fabric, in virtual time (zero_fabric_bench). Beside them node_exporter and
Netdata from Debian, which read the whole host each second. --json keeps what was measured, or draws it again without
measuring where the file is there. Nothing is asserted.
"""

import argparse
import datetime
import html
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import case_studies

WEB = pathlib.Path(__file__).resolve().parents[3] / "results" / "web"


def lines_of(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in done.splitlines() if line.startswith("{")]


def agents(build, seconds):
    """Debian's agents of a whole host, each second: CPU of the agent, and for how long an answer is waited."""
    found = []
    with tempfile.TemporaryDirectory(prefix="greynic_sweep_") as folder:
        bench = case_studies.Bench(build, pathlib.Path(folder), seconds)
        for name, started, address in (
                ("node_exporter", case_studies.node_exporter, "http://127.0.0.1:19100/metrics"),
                ("Netdata", case_studies.netdata, "http://127.0.0.1:19999/api/v1/allmetrics?format=prometheus")):
            try:
                with started(bench) as pid:
                    time.sleep(3)
                    idle, began = case_studies.cpu_ns(pid), time.monotonic()
                    time.sleep(seconds)
                    idle = (case_studies.cpu_ns(pid) - idle) / (time.monotonic() - began)
                    before, scrapes = case_studies.cpu_ns(pid), []
                    for _ in range(10):
                        scrapes.append(case_studies.scrape(address))
                    asked = (case_studies.cpu_ns(pid) - before) / len(scrapes)
                    found.append({"way": name, "idle_cpu_share": idle / 1e9, "answer_cpu_ns": asked, "bytes": scrapes[-1][1],
                                  "p50_ns": 1e9 * statistics.median(s for s, _ in scrapes)})
            except (OSError, SystemExit) as error:
                found.append({"way": name, "missing": f"{error}; apt install prometheus-node-exporter netdata-core"})
    return found


def measure(build, seconds):
    return {"measured": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "cores": os.cpu_count(), "load": os.getloadavg()[0],
            "one_host": lines_of(build / "bin" / "zero_cost_bench", "sweep", seconds),
            "many_hosts": lines_of(build / "bin" / "zero_fabric_bench", "sweep"),
            "agents": agents(build, seconds)}


def table(columns, rows):
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td class=\"number\">{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<details><summary>{len(rows)} numbers</summary><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></details>"


def picture(title, x, y, series):
    """A chart with logarithmic axes: [(name, [(x, y)...])]."""
    return {"title": {"text": title, "textStyle": {"fontSize": 14}}, "animation": False,
            "legend": {"type": "scroll", "bottom": 0}, "grid": {"left": 64, "right": 16, "top": 48, "bottom": 72},
            "tooltip": {"trigger": "axis"},
            "xAxis": {"type": "log", "name": x, "nameLocation": "middle", "nameGap": 24},
            "yAxis": {"type": "log", "name": y},
            "series": [{"name": name, "type": "line", "symbolSize": 7, "data": [list(p) for p in points]}
                       for name, points in series]}


def by(rows, key):
    groups = {}
    for row in rows:
        groups.setdefault(row[key], []).append(row)
    return groups.items()


def pictures_of(found):
    one, many = found["one_host"], found["many_hosts"]
    at_10ms = [r for r in one if r["interval_ns"] == 10e6]
    at_512 = [r for r in one if r["metrics"] == 512]
    share = lambda r, side: max(r[side + "_cpu_ns"], 0) / r["interval_ns"] * 100
    log = lambda points: [(x, y) for x, y in points if y > 0]
    result = [picture("Latency of a look, each 10 ms", "metrics", "p50, us",
                      [(way, [(r["metrics"], r["p50_ns"] / 1e3) for r in rows]) for way, rows in by(at_10ms, "way")]),
              picture("Latency of a look at 512 metrics", "interval, ms", "p50, us",
                      [(way, [(r["interval_ns"] / 1e6, r["p50_ns"] / 1e3) for r in rows]) for way, rows in by(at_512, "way")])]
    for side, name in (("watched", "watched process"), ("reader", "reader")):
        result.append(picture(f"CPU of the {name}, each 10 ms (0 is not drawn)", "metrics", "% of a core",
                              [(way, log((r["metrics"], share(r, side)) for r in rows)) for way, rows in by(at_10ms, "way")]))
        result.append(picture(f"CPU of the {name}, 512 metrics (0 is not drawn)", "interval, ms", "% of a core",
                              [(way, log((r["interval_ns"] / 1e6, share(r, side)) for r in rows)) for way, rows in by(at_512, "way")]))
    label = lambda m: f"{m} metrics"
    result.append(picture("One round over all hosts, 100 Gbit/s, virtual time", "hosts", "ms",
                          [(label(m), [(r["hosts"], r["round_ns"] / 1e6) for r in rows]) for m, rows in by(many, "metrics")]))
    result.append(picture("Latency of a READ among them, virtual time", "hosts", "p99, us",
                          [(label(m), [(r["hosts"], r["p99_ns"] / 1e3) for r in rows]) for m, rows in by(many, "metrics")]))
    return result


def page(found):
    echarts = WEB / "node_modules/echarts/dist/echarts.min.js"  # scripts/setup.sh brings it
    drawn = pictures_of(found)
    one = table(["way", "metrics", "interval, ms", "p50, us", "p99, us", "watched CPU, us a look", "reader CPU, us a look"],
                [[r["way"], r["metrics"], r["interval_ns"] / 1e6, round(r["p50_ns"] / 1e3, 2), round(r["p99_ns"] / 1e3, 2),
                  round(r["watched_cpu_ns"] / 1e3, 3), round(r["reader_cpu_ns"] / 1e3, 3)] for r in found["one_host"]])
    many = table(["hosts", "metrics", "round, ms", "p50, us", "p99, us", "queue, KiB", "line used, %", "failed"],
                 [[r["hosts"], r["metrics"], round(r["round_ns"] / 1e6, 4), round(r["p50_ns"] / 1e3, 2), round(r["p99_ns"] / 1e3, 2),
                   round(r["queue_bytes"] / 1024, 1), round(100 * r["line_share"], 1), r["failed"]] for r in found["many_hosts"]])
    beside = table(["agent", "CPU, % of a core", "CPU of an answer, ms", "an answer takes, ms", "bytes"],
                   [[r["way"], r.get("missing")] if "missing" in r else
                    [r["way"], round(100 * r["idle_cpu_share"], 3), round(r["answer_cpu_ns"] / 1e6, 2),
                     round(r["p50_ns"] / 1e6, 2), r["bytes"]] for r in found["agents"]]).replace("<details>", "<details open>")
    figures = lambda these: "".join(f'<div class="sweep" data-i="{i}"></div>' for i in these)
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>What reading metrics costs</title>
<style>{(WEB / "page.css").read_text()}
.sweep {{ height: 340px; }} .sweeps {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(420px, 1fr)); gap: 16px; }}</style>
</head><body><main><h1>What reading metrics costs</h1>
<p>Measured {found["measured"]} on {found["cores"]} cores with a load of {found["load"]:.1f}. CPU is by the clocks of the processes;
latencies of one host include what else ran there; those of many hosts are in virtual time.</p>
<h2>One host</h2><div class="sweeps">{figures(range(6))}</div>{one}
<h2>Many hosts behind one port</h2><p>No watched host spends CPU time: a READ is answered by its RNIC.</p>
<div class="sweeps">{figures(range(6, 8))}</div>{many}
<h2>Agents of a whole host, from Debian</h2><p>Each collects once a second by itself; its CPU while nobody asks, and what an answer
costs.</p>{beside}</main>
<script>{echarts.read_text()}</script><script>const drawn = {json.dumps(drawn)};
for (const element of document.querySelectorAll(".sweep")) {{
  const chart = echarts.init(element, null, {{renderer: "svg"}});
  chart.setOption(drawn[element.dataset.i]);
  addEventListener("resize", () => chart.resize());
}}</script></body></html>
"""


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--json", type=pathlib.Path)
    flags = parser.parse_args()
    if flags.json and flags.json.exists():
        found = json.loads(flags.json.read_text())
    else:
        found = measure(flags.build.resolve(), flags.seconds)
        if flags.json:
            flags.json.write_text(json.dumps(found, indent=1))
    flags.page.write_text(page(found))
    print(flags.page)


if __name__ == "__main__":
    main()
