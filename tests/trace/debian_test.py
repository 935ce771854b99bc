#!/usr/bin/env python3
"""The claims of the other files on Debian's kernel, in an emulated machine: one boot for each part, by night."""

import functools
import os
import subprocess
import sys

import claims
import lab
from lab import skip

PARTS = {"hops": ("hops", "completeness"), "copies": ("hops", "flooding fragments twice"), "large": ("hops", "large_packets"),
         "losses": ("hops", "losses"), "headers": ("devices", "parsing"), "devices": ("devices", "queue_pairs macvlans ifbs"),
         "roce": ("devices", "soft_roce"), "in_band": ("in_band", "intact ipv6"), "refused": ("in_band", "refused strays"),
         "running": ("running", "rules_while_it_runs window killed")}


def there(file, names):
    if not os.environ.get("GREYNIC_NIGHTLY"):
        skip("an emulated machine takes minutes; set GREYNIC_NIGHTLY=1")
    here = os.path.dirname(os.path.abspath(__file__))
    setup = ["--setup", "soft-roce"] if "roce" in names else []
    done = subprocess.run([os.path.join(here, "..", "vm", "run"), *setup, "--take-turns", "--timeout", "1400",
                           "--memory", "2048", "--", sys.executable, f"{here}/{file}_test.py", lab.GREYNIC, claims.DROP, *names.split()])
    if done.returncode != 0:  # no AssertionError: the claims inside have had their trials. 77: no small machine here
        sys.exit(done.returncode)


def part(name):
    claim = functools.partial(there, *PARTS[name])
    claim.__name__ = f"debian_{name}"
    return claim


claims.hold(*(part(name) for name in PARTS))
