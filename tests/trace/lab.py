"""Topologies of network namespaces for tests of `greynic trace`, and traffic on them.

Names carry the number of the process, and what a lab made is gone when it is closed.
"""
import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time

SKIP = 77
GREYNIC = ""


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIP)


def sh(command):
    subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL)


def tried(command):
    return subprocess.run(command, shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def enter(namespace):
    """Moves the calling thread into a namespace."""
    with open(f"/run/netns/{namespace}") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), 0x40000000) != 0:
            raise OSError(ctypes.get_errno(), "setns")


def station(place, device):
    """Its address on the link."""
    out = subprocess.run(["ip", "-n", place, "-j", "link", "show", device], capture_output=True, text=True).stdout
    return json.loads(out)[0]["address"]


def inside(namespace, work):
    """Runs work() on a thread of its own in a namespace; gives what it returns, raises what it raises."""
    box = {}

    def run():
        try:
            enter(namespace)
            box["value"] = work()
        except BaseException as error:  # told to the caller
            box["error"] = error

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if "error" in box:
        raise box["error"]
    return box.get("value")


def set_offload(namespace, device, command, value):
    """What `ethtool -K` does: command 0x1f is TSO, 0x24 is GSO, 0x2c is GRO."""
    def work():
        data = ctypes.create_string_buffer(struct.pack("II", command, value))
        request = struct.pack("16sP", device.encode(), ctypes.addressof(data)) + bytes(16)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
            fcntl.ioctl(made.fileno(), 0x8946, request)

    inside(namespace, work)


class Lab:
    def __init__(self):
        if os.geteuid() != 0:
            skip("namespaces need root; run as root")
        self.made = []

    def name(self, short):
        return f"{short}-{os.getpid()}"

    def namespace(self, short):
        name = self.name(short)
        sh(f"ip netns add {name}")
        self.made.append(name)
        sh(f"ip -n {name} link set lo up")
        for family in ("ipv4.conf.all.rp_filter=0", "ipv4.ping_group_range='0 0'"):
            tried(f"ip netns exec {name} sysctl -qw net.{family}")
        return name

    def veth(self, one, one_name, other, other_name, mtu=1500):
        sh(f"ip link add {one_name} netns {one} mtu {mtu} type veth peer name {other_name} netns {other} mtu {mtu}")
        sh(f"ip -n {one} link set {one_name} up")
        sh(f"ip -n {other} link set {other_name} up")

    def bridge(self, where, name, ports):
        sh(f"ip -n {where} link add {name} type bridge forward_delay 0 mcast_snooping 0")
        sh(f"ip -n {where} link set {name} up")
        for port in ports:
            sh(f"ip -n {where} link set {port} master {name}")

    def address(self, where, device, address):
        sh(f"ip -n {where} addr add {address} dev {device} {'nodad' if ':' in address else ''}")

    def close(self):
        for name in self.made:
            tried(f"ip netns del {name}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Overlay(Lab):
    """Two hosts, a container on each: veth - bridge - VXLAN - underlay veth, and the same back up.

    Points of a packet from c1 to c2: c1/veth0 q, h1/port r, h1/vx q, h1/under q, h2/under r, h2/vx r, h2/port q,
    c2/veth0 r: eight.
    """

    def __init__(self, containers=1, mtu=1500, bound=True):
        super().__init__()
        self.hosts = [self.namespace("h1"), self.namespace("h2")]
        h1, h2 = self.hosts
        self.veth(h1, "under", h2, "under", mtu)
        self.containers = []
        for h, host in enumerate(self.hosts):
            self.address(host, "under", f"192.168.9.{h + 1}/24")
            sh(f"ip -n {host} link add vx type vxlan id 42 local 192.168.9.{h + 1} remote 192.168.9.{2 - h} "
               f"dstport 4789 {'dev under' if bound else ''}")
            sh(f"ip -n {host} link set vx up")
            ports = ["vx"]
            for i in range(containers):
                name = self.namespace(f"c{h + 1}" + (f"-{i}" if containers > 1 else ""))
                self.veth(name, "veth0", host, f"port{i}" if containers > 1 else "port", mtu - 50)
                self.address(name, "veth0", f"10.42.{h + 1}.{i + 1}/16")
                self.address(name, "veth0", f"fd42::{h + 1}:{i + 1}/64")
                ports.append(f"port{i}" if containers > 1 else "port")
                self.containers.append(name)
            self.bridge(host, "br0", ports)

    def quiet(self):
        """No packets but those of the test: no IPv6, neighbours known for good."""
        for place in self.made:
            sh(f"ip netns exec {place} sysctl -qw net.ipv6.conf.all.disable_ipv6=1")
        for ends, device, addresses in ((self.containers, "veth0", ("10.42.1.1", "10.42.2.1")),
                                        (self.hosts, "under", ("192.168.9.1", "192.168.9.2"))):
            sh(f"ip -n {ends[0]} neigh replace {addresses[1]} lladdr {station(ends[-1], device)} dev {device}")
            sh(f"ip -n {ends[-1]} neigh replace {addresses[0]} lladdr {station(ends[0], device)} dev {device}")

    def hops(self, reverse=False):
        """The eight points, first to last, as (label, direction)."""
        c1, c2 = self.containers[0], self.containers[-1]
        h1, h2 = self.hosts
        if reverse:
            c1, c2, h1, h2 = c2, c1, h2, h1
        return [(f"{c1}/veth0", "queue"), (f"{h1}/port", "receive"), (f"{h1}/vx", "queue"), (f"{h1}/under", "queue"),
                (f"{h2}/under", "receive"), (f"{h2}/vx", "receive"), (f"{h2}/port", "queue"), (f"{c2}/veth0", "receive")]


class Sink:
    """A UDP receiver; counts what comes and keeps the first payloads."""

    def __init__(self, namespace, address, port, family=socket.AF_INET):
        def make():
            made = socket.socket(family, socket.SOCK_DGRAM)
            made.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)  # SO_RCVBUFFORCE
            made.bind((address, port))
            made.settimeout(0.2)
            return made

        self.socket = inside(namespace, make)
        self.count = 0
        self.bytes = 0
        self.ended = False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.ended:
            try:
                while True:
                    self.bytes += len(self.socket.recv(65536))
                    self.count += 1
            except socket.timeout:
                pass

    def close(self):
        self.ended = True
        self.thread.join()
        self.socket.close()


def send(namespace, source, destination, payload, count, family=socket.AF_INET, pause_every=64, options=()):
    """UDP datagrams; a pause now and then lets the receiving CPU keep up."""
    def work():
        with socket.socket(family, socket.SOCK_DGRAM) as made:
            for option in options:
                made.setsockopt(*option)
            made.bind(source)
            made.connect(destination)
            for i in range(count):
                made.send(payload)
                if i % pause_every == pause_every - 1:
                    time.sleep(0.0002)

    inside(namespace, work)


class Trace:
    """`greynic trace run` beside a test: with Trace(rules) as t: ...; t.hops, t.summary. Rules, or the name of a template."""

    def __init__(self, rules, folder, *options):
        self.options = options
        self.path = rules
        if isinstance(rules, str):  # a template
            return
        self.path = os.path.join(folder, f"rules-{os.getpid()}.json")
        with open(self.path, "w") as file:
            json.dump(rules, file)

    def __enter__(self):
        self.process = subprocess.Popen([GREYNIC, "trace", "run", self.path, "--json", *self.options], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.said = ""
        while "tracing" not in (line := self.process.stderr.readline()) and line:
            self.said += line
        if not line:
            raise RuntimeError(self.said)
        return self

    def __exit__(self, *_):
        time.sleep(0.1)
        self.process.send_signal(2)
        out, err = self.process.communicate(timeout=60)
        if self.process.returncode not in (0, 130):
            raise RuntimeError(err)
        self.lines = [json.loads(line) for line in out.splitlines()]
        self.summary = self.lines[-1]
        self.hops = self.lines[:-1]

    def hop(self, flow, start, end):
        """The line of a flow (a part of its name) from one point to the next; None when there is none."""
        found = [hop for hop in self.hops if flow in hop["flow"] and
                 (hop["from"], hop["from_direction"]) == start and (hop["to"], hop["to_direction"]) == end]
        assert len(found) < 2, found
        return found[0] if found else None
