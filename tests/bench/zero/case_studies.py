#!/usr/bin/env python3
"""What monitoring costs three watched systems, beside node_exporter and Netdata from Debian.

usage: case_studies.py BUILD_DIR [redis] [kernel] [ebpf] [others] [jitter] [interference] [--seconds 6] [--rounds 500] [--no-others]
       [--deployment NAME]...

redis:         Debian's Redis with the module of probes/zero/examples, under redis-benchmark
kernel, ebpf:  the helpers of probes/zero/examples (ebpf needs root)
others:        CPU of node_exporter with a scrape a second, and of Netdata
jitter:        when samples come beside busy loops on all cores, as any program and with --realtime (needs root), in turns
interference:  p99 of Redis alone, with greynic at 10 ms, with node_exporter and with Netdata, in turns (needs root); --no-others:
               greynic alone, for the small machine, whose clock counts instructions: tests/vm/run --count-instructions;
               --deployment: "as any program", "before others", "on a core of their own", "the agent alone"; all unless given

Each prints rows of a Markdown table. CPU is what the kernel counts for the process's threads
(/proc/PID/task/*/schedstat). Nothing is asserted.
"""

import argparse
import contextlib
import glob
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

INTERVAL_MS = 10


def cpu_ns(pid):
    """CPU time of a process and its children that still run."""
    total = 0
    for task in glob.glob(f"/proc/{pid}/task/*"):
        with contextlib.suppress(OSError):
            total += int(open(task + "/schedstat").read().split()[0])
        with contextlib.suppress(OSError):
            for child in open(task + "/children").read().split():
                total += cpu_ns(int(child))
    return total


class Bench:
    def __init__(self, build, folder, seconds):
        self.bin = build / "bin"
        self.folder = folder
        self.seconds = seconds
        self.socket = str(folder / "agent")
        os.environ["GREYNIC_ZERO_SOCKET"] = self.socket
        hosts = {"version": 1, "interval": f"{INTERVAL_MS}ms", "hosts": [{"name": "h", "agent": self.socket}]}
        (folder / "hosts.json").write_text(json.dumps(hosts))

    @contextlib.contextmanager
    def running(self, *command):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True)
        time.sleep(1)
        if process.poll() is not None:
            raise SystemExit(f"{command[0]} ended at once with {process.returncode}")
        try:
            yield process.pid
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)

    def agent(self):
        return self.running(str(self.bin / "greynic"), "zero", "agent", "--socket", self.socket)

    def redis(self, port=7379):
        return self.running("redis-server", "--port", str(port), "--save", "", "--dir", str(self.folder),
                            "--loadmodule", str(self.bin / "zero_redis.so"))

    def collecting(self, name, *flags):
        store = str(self.folder / name)
        return store, self.running(str(self.bin / "greynic"), "zero", "collect",
                                   str(self.folder / "hosts.json"), "--store", store, *flags)

    def times_of(self, store, metric):
        """When a series was sampled, in ns."""
        shown = subprocess.run([str(self.bin / "greynic"), "zero", "show", store, "--metric", metric,
                                "--samples", "--json"], capture_output=True, text=True, check=True).stdout
        return sorted({json.loads(line)["time_ns"] for line in shown.splitlines()})


def percent(ns, seconds):
    return 100 * ns / (seconds * 1e9)


def jitter(times, *quantiles):
    """Quantiles of what the distance of two samples is off, in percent of the interval."""
    off = sorted(abs(b - a - INTERVAL_MS * 1e6) / (INTERVAL_MS * 1e4) for a, b in zip(times, times[1:]))
    return [off[min(int(len(off) * one), len(off) - 1)] for one in quantiles]


def study(bench, name, watched, metric, load=None):
    """CPU of the watched process with and without a collector, of the agent, of the collector."""
    with bench.agent() as agent, watched as pid:
        def spend():
            before, started = cpu_ns(pid), time.monotonic()
            work = subprocess.Popen(load, stdout=subprocess.DEVNULL) if load else None
            time.sleep(bench.seconds)
            spent = (cpu_ns(pid) - before) / (time.monotonic() - started) / 1e7
            if work:
                work.terminate()
                work.wait()
            return spent
        alone = spend()
        store, collecting = bench.collecting(name)
        with collecting as collector:
            agent_before, collector_before, started = cpu_ns(agent), cpu_ns(collector), time.monotonic()
            read = spend()
            seconds = time.monotonic() - started
            agent_share = percent(cpu_ns(agent) - agent_before, seconds)
            collector_share = percent(cpu_ns(collector) - collector_before, seconds)
        times = bench.times_of(store, metric)
        p50, p99 = jitter(times, 0.5, 0.99)
        print(f"| {name} | {alone:.2f} % | {read:.2f} % | {agent_share:.3f} % | {collector_share:.2f} % "
              f"| {len(times)} | {p50:.1f} %, {p99:.1f} % |", flush=True)


def beside_busy_loops(bench):
    """Three rounds; loops on all cores, twice as many as cores, fill the machine besides."""
    print("\n| how the collector waits | samples | p50 | p90 | p99 | worst |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    with contextlib.ExitStack() as stack:
        stack.enter_context(bench.agent())
        stack.enter_context(bench.running(str(bench.bin / "zero_watched_c"), "1000"))
        for _ in range(2 * os.cpu_count()):
            stack.enter_context(bench.running("sh", "-c", "while :; do :; done"))
        for turn in range(3):
            for name, flags in (("as any program", []), ("--realtime", ["--realtime"])):
                store, collecting = bench.collecting(f"jitter{turn}{len(flags)}", *flags)
                with collecting:
                    time.sleep(bench.seconds)
                times = bench.times_of(store, "server_requests")
                print(f"| {name} | {len(times)} | " + " | ".join(f"{one:.2f} %" for one in jitter(times, 0.5, 0.9, 0.99, 1)) + " |", flush=True)


def scrape(address):
    started = time.monotonic()
    body = urllib.request.urlopen(address, timeout=10).read()
    return time.monotonic() - started, len(body)


def others(bench):
    print("\n| agent | CPU | a scrape takes | bytes |\n| --- | ---: | ---: | ---: |")
    with node_exporter(bench) as pid:
        before, started, scrapes = cpu_ns(pid), time.monotonic(), []
        while time.monotonic() - started < bench.seconds:
            scrapes.append(scrape("http://127.0.0.1:19100/metrics"))
            time.sleep(1)
        share = percent(cpu_ns(pid) - before, time.monotonic() - started)
        print(f"| node_exporter, a scrape a second | {share:.2f} % "
              f"| {1e3 * statistics.median(s for s, _ in scrapes):.1f} ms | {scrapes[-1][1]} |", flush=True)
    with netdata(bench) as pid:
        time.sleep(3)
        before, started = cpu_ns(pid), time.monotonic()
        time.sleep(bench.seconds)
        print(f"| Netdata, each second | {percent(cpu_ns(pid) - before, time.monotonic() - started):.2f} % | - | - |",
              flush=True)


def node_exporter(bench):
    return bench.running("prometheus-node-exporter", "--web.listen-address=127.0.0.1:19100")


def netdata(bench):
    for name in ("lib", "cache", "log"):
        (bench.folder / name).mkdir(exist_ok=True)
    settings = bench.folder / "netdata.conf"
    settings.write_text(f"[directories]\n lib = {bench.folder}/lib\n cache = {bench.folder}/cache\n log = {bench.folder}/log\n"
                        f"[db]\n mode = ram\n[web]\n bind to = 127.0.0.1:19999\n[ml]\n enabled = no\n"
                        f"[global]\n run as user = root\n")
    return bench.running("netdata", "-D", "-c", str(settings), "-P", str(bench.folder / "netdata.pid"))


def schedule(pid, policy, priority):
    """Every thread of a process and of its children."""
    for task in glob.glob(f"/proc/{pid}/task/*"):
        with contextlib.suppress(OSError):
            os.sched_setscheduler(int(os.path.basename(task)), policy, os.sched_param(priority))
            for child in open(task + "/children").read().split():
                schedule(int(child), policy, priority)


def before_others(pid):
    """Under the same realtime scheduler (round robin), so that other work of the host takes no turn of theirs."""
    schedule(pid, os.SCHED_RR, 1)


@contextlib.contextmanager
def asked_each_second(address):
    script = f"while :; do curl -s {address} >/dev/null; sleep 1; done"
    asking = subprocess.Popen(["sh", "-c", script], start_new_session=True)
    try:
        yield asking.pid
    finally:
        os.killpg(asking.pid, signal.SIGKILL)
        asking.wait()


def on_cores(pid, cores):
    for task in glob.glob(f"/proc/{pid}/task/*"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(int(os.path.basename(task)), cores)


# Where monitors run: policy and priority of theirs, and whether the service and they have cores of their own.
DEPLOYMENTS = {"as any program": (os.SCHED_OTHER, 0, False), "before others": (os.SCHED_RR, 1, False),
               "on a core of their own": (os.SCHED_OTHER, 0, True)}


def interference(bench, rounds, beside_others, deployments):
    """Redis and its client run before all other work of the host; monitors run in turns with nobody: greynic in blocks of
    0.1 s, and its agent alone, as where the collector is on another host; then all in blocks of a second, as a scrape comes
    once in it."""
    print(f"\nload {os.getloadavg()[0]:.1f}\n", flush=True)
    with contextlib.ExitStack() as stack:
        agent = stack.enter_context(bench.agent())
        redis = stack.enter_context(bench.redis())
        collector = stack.enter_context(bench.collecting("interference")[1])
        monitors, others = [agent, collector], []
        if beside_others:
            exporter = stack.enter_context(node_exporter(bench))
            asking = stack.enter_context(asked_each_second("http://127.0.0.1:19100/metrics"))
            monitors += [exporter, asking, stack.enter_context(netdata(bench))]
            others = [f"node_exporter, a scrape a second:{exporter},{asking}", f"Netdata:{monitors[-1]}"]
        time.sleep(3)
        for pid in (redis, os.getpid()):
            before_others(pid)
        both, alone = f"greynic at {INTERVAL_MS} ms:{agent},{collector}", f"its agent alone:{agent}"
        for pid in monitors[1:]:
            os.kill(pid, signal.SIGSTOP)
        client = [str(bench.bin / "zero_interference_bench"), "7379"]
        first, last = {min(os.sched_getaffinity(0))}, {max(os.sched_getaffinity(0))}
        try:
            if "the agent alone" in deployments:
                subprocess.run([*client, str(rounds), "100", "5000", "nobody:", alone], check=True)
            for name in (one for one in DEPLOYMENTS if one in deployments):
                policy, priority, apart = DEPLOYMENTS[name]
                for pid in monitors:
                    schedule(pid, policy, priority)
                    if apart:
                        on_cores(pid, last)
                if apart:
                    on_cores(redis, first)
                    on_cores(os.getpid(), first)
                print(f"\nmonitors run {name}\n", flush=True)
                subprocess.run([*client, str(rounds), "100", "5000", "nobody:", both], check=True)
                if beside_others:
                    subprocess.run([*client, str(max(1, rounds // 20)), "1000", "5000", "nobody:", both, *others], check=True)
        finally:
            for pid in monitors:
                os.kill(pid, signal.SIGCONT)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("what", nargs="*")
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--deployment", action="append", choices=["the agent alone", *DEPLOYMENTS])
    parser.add_argument("--no-others", action="store_true")
    flags = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what it started ends with it
    what = flags.what or ["redis", "kernel", "ebpf", "others", "jitter", "interference"]
    with tempfile.TemporaryDirectory(prefix="greynic_case_") as folder:
        bench = Bench(flags.build.resolve(), pathlib.Path(folder), flags.seconds)
        if {"redis", "kernel", "ebpf"} & set(what):
            print("| watched | its CPU, alone | its CPU, read each 10 ms | agent's CPU | collector's CPU | samples "
                  "| jitter of the interval, p50 and p99 |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
        if "redis" in what:
            study(bench, "Redis, idle", bench.redis(), "redis_commands")
            study(bench, "Redis under redis-benchmark", bench.redis(), "redis_commands",
                  ["redis-benchmark", "-p", "7379", "-t", "get", "-n", "100000000", "-c", "8", "-q"])
        if "kernel" in what:
            study(bench, "kernel, helper each 100 ms",
                  bench.running(str(bench.bin / "zero_kernel_metrics"), "100"), "kernel_switches")
        if "ebpf" in what:
            study(bench, "eBPF, array of the kernel",
                  bench.running(str(bench.bin / "zero_ebpf_metrics")), "tracepoint_sched_switch")
        if "others" in what:
            others(bench)
        if "jitter" in what:
            beside_busy_loops(bench)
        if "interference" in what:
            interference(bench, flags.rounds, not flags.no_others, flags.deployment or ["the agent alone", *DEPLOYMENTS])


if __name__ == "__main__":
    main()
