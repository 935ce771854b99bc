"""Debian's InfluxDB and Prometheus, each in a folder of its own, for tests of whoever sends to them or is scraped."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request


def missing():
    """Why these tests cannot run here; None when they can."""
    for program, package in (("influxd", "influxdb"), ("prometheus", "prometheus"), ("promtool", "prometheus")):
        if not shutil.which(program):
            return f"there is no {program}; apt-get install {package}"
    return None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(url, **words):
    with urllib.request.urlopen(f"{url}?{urllib.parse.urlencode(words)}", timeout=5) as answer:
        return json.load(answer)


def until(what, question, wanted, seconds=40):
    """Asks again until the answer is there; `wanted` is that, or a function that knows it."""
    end = time.monotonic() + seconds
    got = None
    while time.monotonic() < end:
        with contextlib.suppress(OSError, LookupError, ValueError, AssertionError):
            got = question()
            if wanted(got) if callable(wanted) else got == wanted:
                return got
        time.sleep(0.3)
    raise AssertionError(f"{what}: {got} instead of {'what was waited for' if callable(wanted) else wanted}")


class Influx:
    """May be killed and started again."""

    def __init__(self, folder):
        self.folder = os.path.join(folder, f"influx{time.monotonic_ns()}")
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

    def rows(self, query):
        """Of the first series that the query gives; KeyError while there is none."""
        return ask(f"{self.url}/query", db="lab", q=query)["results"][0]["series"][0]["values"]


class Prometheus:
    """Scrapes one address each second."""

    def __init__(self, folder, target):
        config = os.path.join(folder, "prometheus.yml")
        with open(config, "w") as file:
            file.write("global: {scrape_interval: 1s}\n"
                       f"scrape_configs: [{{job_name: greynic, static_configs: [{{targets: ['{target}']}}]}}]\n")
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/prometheus",
                                         f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def value(self, query):
        """Of the first series that the query gives; IndexError while there is none."""
        return float(ask(f"{self.url}/api/v1/query", query=query)["data"]["result"][0]["value"][1])
