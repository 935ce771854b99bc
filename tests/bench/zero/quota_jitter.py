#!/usr/bin/env python3
"""How regular samples are while the watched service stands at its CPU quota (cgroup v2, cpu.max).

usage: quota_jitter.py BUILD_DIR [--seconds 10] [--interval-ms 10] [--quota 20] [--check]

A service that never sleeps and the program that is watched are in one group that may use so many
percent of a core. Agent and collector are outside of it. Beside them, for comparison: a program in
the group that answers over TCP when it is asked, at the same interval. Jitter is the distance of two
samples (of two answers) less the interval, as a share of the interval. With --check the exit code is
1 when the p99 with --realtime is above 5 %.

Needs root, and a kernel with quotas. In the small machine, whose clock counts instructions, so that
nothing else disturbs it:

  tests/vm/run --count-instructions python3 tests/bench/zero/quota_jitter.py build/release
"""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

GROUP = pathlib.Path("/sys/fs/cgroup/greynic_quota")


@contextlib.contextmanager
def quota(percent):
    """A group with a quota; gives what runs a command in it."""
    try:
        (GROUP.parent / "cgroup.subtree_control").write_text("+cpu")
        GROUP.mkdir(exist_ok=True)
        (GROUP / "cpu.max").write_text(f"{percent * 1000} 100000")
    except OSError as error:
        raise SystemExit(f"quota_jitter.py: no CPU quota can be set: {error}; run as root on a kernel with cgroup v2 "
                         "and CONFIG_CFS_BANDWIDTH, such as tests/vm/run has")
    try:
        yield lambda *command, **options: subprocess.Popen(
            command, preexec_fn=lambda: (GROUP / "cgroup.procs").write_text("0"), **options)
    finally:
        with contextlib.suppress(OSError):
            (GROUP / "cgroup.kill").write_text("1")
            time.sleep(0.5)
            GROUP.rmdir()


def throttled():
    stat = dict(line.split() for line in (GROUP / "cpu.stat").read_text().splitlines())
    return int(stat["nr_throttled"]), int(stat["throttled_usec"]) / 1e6


def shares(times_ns, interval_ns):
    off = sorted(100 * abs(b - a - interval_ns) / interval_ns for a, b in zip(times_ns, times_ns[1:]))
    return [off[int(len(off) * share)] for share in (0.5, 0.9, 0.99)] + [off[-1]]


def row(name, times_ns, interval_ns, before):
    p50, p90, p99, worst = shares(times_ns, interval_ns)
    count, seconds = (now - then for now, then in zip(throttled(), before))
    print(f"| {name} | {len(times_ns)} | {p50:.2f} % | {p90:.2f} % | {p99:.2f} % | {worst:.1f} % "
          f"| {count} times, {seconds:.1f} s |", flush=True)
    return p99


ANSWER = """
import socket
server = socket.create_server(("127.0.0.1", 17171))
link, _ = server.accept()
while link.recv(1):
    link.sendall(b"x" * 4096)
"""


def ask(flags, run_in_group):
    """When answers come from a program in the group, asked at the interval."""
    program = run_in_group(sys.executable, "-c", ANSWER)
    for _ in range(600):
        with contextlib.suppress(OSError):
            link = socket.create_connection(("127.0.0.1", 17171))
            break
        time.sleep(0.1)
    before, times, due = throttled(), [], time.monotonic_ns()
    end = due + int(flags.seconds * 1e9)
    while due < end:
        time.sleep(max(0, due - time.monotonic_ns()) / 1e9)
        link.sendall(b"?")
        left = 4096
        while left > 0:
            left -= len(link.recv(left))
        times.append(time.monotonic_ns())
        due = max(due + flags.interval_ms * 1_000_000, time.monotonic_ns() - flags.interval_ms * 1_000_000)
    program.kill()
    return times, before


def read(flags, folder, *options):
    """When samples were taken by a collector."""
    greynic, store = str(flags.build / "bin/greynic"), str(folder / f"store{len(options)}")
    before = throttled()
    subprocess.run([greynic, "zero", "collect", str(folder / "hosts.json"), "--store", store, "--for",
                    f"{flags.seconds}s", *options], check=True)
    shown = subprocess.run([greynic, "zero", "show", store, "--metric", "server_requests", "--samples", "--json"],
                           capture_output=True, text=True, check=True).stdout
    return sorted({json.loads(line)["time_ns"] for line in shown.splitlines()}), before


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--interval-ms", type=int, default=10)
    parser.add_argument("--quota", type=int, default=20)
    parser.add_argument("--check", action="store_true")
    flags = parser.parse_args()
    interval_ns = flags.interval_ms * 1_000_000
    with tempfile.TemporaryDirectory(prefix="greynic_quota_") as name, quota(flags.quota) as run_in_group:
        folder = pathlib.Path(name)
        agent_socket = str(folder / "agent")
        hosts = {"version": 1, "interval": f"{flags.interval_ms}ms", "hosts": [{"name": "h", "agent": agent_socket}]}
        (folder / "hosts.json").write_text(json.dumps(hosts))
        os.environ["GREYNIC_ZERO_SOCKET"] = agent_socket
        agent = subprocess.Popen([str(flags.build / "bin/greynic"), "zero", "agent", "--socket", agent_socket],
                                 stdout=subprocess.PIPE)
        agent.stdout.readline()
        watched = run_in_group(str(flags.build / "bin/zero_watched_c"), "100000", stdout=subprocess.PIPE)
        watched.stdout.readline()
        run_in_group("sh", "-c", "while :; do :; done")
        time.sleep(2)
        print(f"kernel {os.uname().release}, {os.cpu_count()} cores; the service may use {flags.quota} % of one\n\n"
              "| how | samples | jitter p50 | p90 | p99 | worst | the service was held |\n"
              "| --- | ---: | ---: | ---: | ---: | ---: | --- |", flush=True)
        try:
            times, before = read(flags, folder)
            row("READ, collector as any program", times, interval_ns, before)
            times, before = read(flags, folder, "--realtime")
            p99 = row("READ, `--realtime`", times, interval_ns, before)
            times, before = ask(flags, run_in_group)
            row("asked over TCP", times, interval_ns, before)
        finally:
            agent.send_signal(signal.SIGTERM)
    return 1 if flags.check and p99 > 5 else 0


if __name__ == "__main__":
    sys.exit(main())
