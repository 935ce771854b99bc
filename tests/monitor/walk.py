#!/usr/bin/env python3
"""The monitor as docs/zero.md describes it, from the command line, with what Debian has to read it.

usage: walk.py BUILD_DIR [PART...] [--by-all]     exit code 77: a part cannot run here, and why

--by-all: only under `scripts/test.sh --all`, which sets GREYNIC_ALL, or with GREYNIC_NIGHTLY

tables:    an agent, a program that counts, `watch`, `zero collect` into a store, `zero show`
examples:  watched.c and watched.cc compiled against what `cmake --install` gives
databases: promtool and Prometheus read --openmetrics, InfluxDB takes --influx
page:      --serve in headless Chromium: one chart for each series, one cell for each host
standby:   a second collector takes over when the first is killed
hosts:     mistakes in a list of hosts: exit code, file and place
disk:      a store on a disk that is full goes on when there is room again (root)
rnic:      `zero rnic` where there is no RNIC
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(SOURCE / "tests/outlets"))
import databases as outlets  # noqa: E402


class Skipped(Exception):
    pass


class Walk:
    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self.greynic = str(build / "bin/greynic")
        self.socket = str(folder / "agent")
        os.environ["GREYNIC_ZERO_SOCKET"] = self.socket

    def run(self, *words, code=0, seconds=60):
        done = subprocess.run([self.greynic, *words], capture_output=True, text=True, timeout=seconds)
        assert done.returncode == code, f"{words}: exit code {done.returncode} instead of {code}\n{done.stdout}{done.stderr}"
        return done

    def hosts(self, *hosts, **more):
        path = self.folder / f"hosts{time.monotonic_ns()}.json"
        path.write_text(json.dumps({"version": 1, "interval": "10ms", "hosts": list(hosts)} | more))
        return str(path)

    def here(self, *more):
        return self.hosts({"name": "h", "agent": self.socket}, *more)

    @contextlib.contextmanager
    def running(self, *command, until=None):
        """A process until the block ends; `until`: a pattern of its stderr that is waited for, which is given too."""
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            found = None
            while until and not found:
                line = process.stderr.readline()
                assert line, f"{command} ended before it said '{until}'"
                found = re.search(until, line)
            process.found = found
            yield process
        finally:
            process.terminate()
            process.communicate(timeout=30)

    @contextlib.contextmanager
    def watched(self):
        """An agent and a program that counts."""
        with self.running(self.greynic, "zero", "agent", "--socket", self.socket):
            outlets.until("the agent's socket", lambda: os.path.exists(self.socket), True)
            with self.running(str(self.build / "bin/zero_watched_c"), "600"):
                yield

    def series(self, store, *words):
        shown = self.run("zero", "show", store, "--json", *words).stdout
        return [json.loads(line) for line in shown.splitlines()]


def tables(walk):
    with walk.watched():
        hosts = walk.here({"name": "gone", "agent": str(walk.folder / "nobody")})
        frame = walk.run("watch", walk.socket, "--every", "500ms", "--count", "3").stdout
        assert "1 of 1 hosts are read" in frame and re.search(r'here +server_requests\{port="80"\} +\d+ +[\d.e+]+/s', frame), frame
        frame = walk.run("watch", hosts, "--every", "500ms", "--count", "2").stdout
        assert "1 of 2 hosts are read" in frame and "gone: no agent at" in frame, frame
        store = str(walk.folder / "store")
        lines = str(walk.folder / "lines")
        said = walk.run("zero", "collect", hosts, "--store", store, "--json-lines", lines, "--for", "2s").stderr
        assert " 0 lost" in said and "gone: not read" in said, said
        [requests] = [one for one in walk.series(store, "--metric", "server_requests", "--host", "h") if one["labels"] == 'port="80"']
        written = [line for line in map(json.loads, open(lines)) if (line.get("name"), line.get("labels")) == ("server_requests", 'port="80"')]
        assert requests["samples"] == len(written) > 20 and requests["last"] == written[-1]["value"], requests
        [gap] = walk.series(store, "--gaps")
        assert gap["host"] == "gone" and "no agent" in gap["reason"], gap
        for step in ("raw", "10s"):
            assert walk.series(store, "--samples", "--step", step)


def examples(walk):
    prefix = walk.folder / "installed"
    subprocess.run(["cmake", "--install", walk.build, "--prefix", prefix, "--component", "library"], check=True, capture_output=True)
    compiled = []
    for name, compiler in (("watched.c", "cc"), ("watched.cc", "c++")):
        found = list(prefix.rglob(name))
        assert len(found) == 1, f"{name} is installed {len(found)} times"
        compiled.append(str(walk.folder / name.replace(".", "_")))
        subprocess.run([compiler, *(["-std=c++20"] if compiler == "c++" else []), str(found[0]), f"-I{prefix}/include", f"-L{prefix}/lib",
                        "-lgreynic_zero", "-lpthread", "-o", compiled[-1]], check=True)
    with walk.running(walk.greynic, "zero", "agent", "--socket", walk.socket):
        for program in compiled:
            with walk.running(program, "60"):
                store = program + ".store"
                walk.run("zero", "collect", walk.here(), "--store", store, "--for", "2s")
                names = {one["name"] for one in walk.series(store)}
                assert len(names) > 2, f"{program}: {names}"


def databases(walk):
    if why := outlets.missing():
        raise Skipped(why)
    influx = outlets.Influx(str(walk.folder))
    influx.start()
    with contextlib.ExitStack() as held:
        held.callback(influx.kill)
        held.enter_context(walk.watched())
        collector = held.enter_context(walk.running(
            walk.greynic, "zero", "collect", walk.here(), "--openmetrics", ":0", "--influx", f"{influx.url}/lab",
            until=r"metrics at http://(\S+)/metrics"))
        address = collector.found[1]
        text = urllib.request.urlopen(f"http://{address}/metrics", timeout=10).read()
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True)
        assert checked.returncode == 0 and not checked.stderr, checked.stderr.decode()
        prometheus = outlets.Prometheus(str(walk.folder), address)
        held.callback(prometheus.kill)
        outlets.until("that Prometheus scrapes", lambda: prometheus.value("up"), 1.0)
        outlets.until("that the host is up", lambda: prometheus.value('greynic_zero_host_up{host="h"}'), 1.0)
        first = outlets.until("a counter in Prometheus", lambda: prometheus.value('server_requests_total{host="h"}'), lambda n: n > 0)
        outlets.until("that it counts", lambda: prometheus.value('server_requests_total{host="h"}'), lambda n: n > first)
        # Names of measurements are those of the structures; fields those of the metrics.
        stored = outlets.until("rows", lambda: influx.rows("SELECT * FROM server_requests WHERE port = '80' AND host = 'h'"),
                               lambda rows: len(rows) > 2)
        assert stored[0][0] < stored[-1][0], stored[:2]
        # Ten functions of a millisecond each second: each comes, though the lines are those of a second.
        calls = outlets.until("calls that have ended", lambda: influx.rows("SELECT value FROM call_bytes"), lambda rows: len(rows) > 40)
        assert {value for _, value in calls} <= {0, 4096} and sum(value for _, value in calls) > 40 * 4096 / 2, calls


def page(walk):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not chromium:
        raise Skipped("there is no Chromium; apt-get install chromium")
    with walk.watched(), walk.running(walk.greynic, "watch", walk.here({"name": "gone", "agent": str(walk.folder / "nobody")}),
                                      "--serve", ":0", until=r"page is at http://(\S+)/|no pictures|echarts") as watch:
        if not watch.found[1]:
            raise Skipped("this greynic has no charts; scripts/setup.sh --web installs them")
        shown = subprocess.run(
            [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,2000",
             "--virtual-time-budget=4000", f"--user-data-dir={walk.folder}/profile", "--enable-logging=stderr", "--dump-dom",
             f"http://{watch.found[1]}/"], capture_output=True, text=True, timeout=120)
        assert ":CONSOLE" not in shown.stderr, shown.stderr
        for part in ("1 of 2", 'h server_requests{port="80"}', "no agent at", "<svg"):
            assert part in shown.stdout, f"no '{part}' in the page"


def standby(walk):
    store = str(walk.folder / "shared")
    with walk.watched():
        collect = (walk.greynic, "zero", "collect", walk.here(), "--store", store, "--lease", "1s")
        first = subprocess.Popen(collect, stderr=subprocess.DEVNULL)
        outlets.until("a store", lambda: os.path.isdir(store), True)
        time.sleep(1.5)
        with walk.running(*collect, "--standby") as second:
            time.sleep(1)
            assert second.poll() is None
            first.send_signal(signal.SIGKILL)
            first.wait()
            killed = time.time_ns()
            outlets.until("samples of the second", lambda: max(one["last_ns"] for one in walk.series(store)),
                          lambda last: last > killed + 2_000_000_000)
        times = [one["time_ns"] for one in walk.series(store, "--samples", "--metric", "server_requests")]
        after = min(time_ns for time_ns in times if time_ns > killed)
        taken = (after - killed) / 1e9
        print(f"the standby's first sample came {taken:.2f} s after the kill, at a lease of 1 s")
        assert taken < 1 + 10, "later than a lease, and what a very busy machine takes to open a store"


def hosts(walk):
    empty = walk.folder / "empty"
    empty.mkdir(exist_ok=True)
    far = {"name": "b", "remote": "127.0.0.1:1"}
    for code, parts, path in (
            (2, ("/hosts/0/certificates", "/no/such"), walk.hosts(far | {"certificates": "/no/such"})),
            (2, (": at /certificates", "/no/such"), walk.hosts(far, certificates="/no/such")),
            (3, (f"{empty}/ca.pem", "agent init"), walk.hosts(far | {"certificates": str(empty)})),
            (3, ("device nowhere0",), walk.hosts(far | {"device": "nowhere0"})),
            (2, ("/hosts/0/interval",), walk.hosts(far | {"interval": "0ms"})),
            (2, ("/hosts/0", "give one of them"), walk.hosts({"name": "b"})),
            (2, ("/hosts/1/name", "stands twice"), walk.hosts(far, far)),
            (2, ("/hosts/0/remote",), walk.hosts({"name": "b", "remote": "nowhere"})),
            (2, ("/nofile.json",), str(walk.folder / "nofile.json"))):
        for words in (("zero", "collect", path, "--for", "100ms"), ("watch", path, "--count", "1")):
            said = walk.run(*words, code=code).stderr
            assert all(part in said for part in parts) and said.count("\n") == 1, f"{parts}: {said}"


def disk(walk):
    if os.geteuid() != 0:
        raise Skipped("fills a disk of its own; run as root")
    small = walk.folder / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", small], capture_output=True).returncode != 0:
        raise Skipped("this machine lets nobody mount a disk")
    try:
        with walk.watched():
            store, log = str(small / "store"), walk.folder / "collector.log"
            collector = subprocess.Popen([walk.greynic, "zero", "collect", walk.here(), "--store", store, "--lease", "1s"],
                                         stdout=subprocess.DEVNULL, stderr=open(log, "w"))
            try:
                outlets.until("samples", lambda: len(walk.series(store)) > 0, True)
                with contextlib.suppress(OSError), open(small / "filler", "wb") as file:
                    while True:
                        file.write(bytes(1024))
                        file.flush()
                outlets.until("word of the full disk", lambda: "No space left" in log.read_text(), True)
                time.sleep(2)
                (small / "filler").unlink()
                freed = time.time_ns()
                outlets.until("samples once there is room", lambda: max(one["last_ns"] for one in walk.series(store)),
                              lambda last: last > freed + 1_000_000_000)
            finally:
                collector.terminate()
                collector.wait(30)
            said = log.read_text()
            assert said.count("samples are lost") == 1 and said.count("are stored again") == 1, said
    finally:
        subprocess.run(["umount", "-l", small])


def rnic(walk):
    if os.path.isdir("/sys/class/infiniband") and os.listdir("/sys/class/infiniband"):
        raise Skipped("there is an RNIC here")
    said = walk.run("zero", "rnic", "--list", code=3).stderr
    assert "no RDMA device" in said and said.count("\n") == 1, said


PARTS = (tables, examples, databases, page, standby, hosts, disk, rnic)


def main():
    build, names = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    if "--by-all" in names:
        names.remove("--by-all")
        if not (os.environ.get("GREYNIC_ALL") or os.environ.get("GREYNIC_NIGHTLY")):
            print("skipped: takes a minute; scripts/test.sh --all runs it, and GREYNIC_NIGHTLY=1")
            sys.exit(77)
    chosen = [part for part in PARTS if not names or part.__name__ in names]
    skipped = failed = 0
    for part in chosen:
        with tempfile.TemporaryDirectory(prefix="greynic_walk_") as folder:
            try:
                part(Walk(build, pathlib.Path(folder)))
                print(f"ok: {part.__name__}", flush=True)
            except Skipped as why:
                skipped += 1
                print(f"skipped: {part.__name__}: {why}", flush=True)
            except (AssertionError, ValueError, subprocess.SubprocessError) as why:
                failed += 1
                print(f"FAILED: {part.__name__}: {why}", flush=True)
    sys.exit(1 if failed else 77 if skipped else 0)


main()
