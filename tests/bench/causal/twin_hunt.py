#!/usr/bin/env python3
"""S1 to S9 and Collie's C1 to C18 on the twin, from the covering plan: no run, no witness and no hint.

    python3 tests/bench/causal/twin_hunt.py build/release/bin/greynic [--five-way] [--plan N] [CAMPAIGN...]

C5, C9 and C18 have five parts: whether a 4-way plan has them together is chance. With --five-way, the plans of
their campaigns are 5-way. --plan N makes other plans: each must have a row with three random levels, of seed N.

A campaign is a workload with its settings, not a defect: all defects that its settings can bring
about are on at once. Its plan is walked, each wall is explained, and what a known cause explains is
skipped. A defect is named when one cause has its trigger, with exactly the levels of the campaign at
which docs/twin/defects.md says that each part holds; parts that the workload shares are no settings.

Collie calls slow what stays below a rate that its RNIC always reaches. Here that is a rate of packets
between the lowest of any configuration without defects and the highest with one.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

BOTH = ["unidirectional", "bidirectional"]
C_ALL = ",".join(f"C{i}" for i in range(1, 19))
SWITCH = {
    "counter_poll_ms": ([100, 5000, 10000], 100),
    "flow_idle_ms": ([10000, 60000], 60000),
    "flow_count": ([3000, 100000, 1000000], 100000),
    "flow_setup_rate": ([0, 1000, 100000], 0),
    "rules_per_mask": ([1, 1000, 10000], 1),
    "container_count": ([1, 16], 1),
    "server_decap_masks": ([0, 20, 200], 0),
    "client_encap_masks": ([0, 5], 0),
    "vxlan_contexts": ([16, 4096, 5000], 16),
    "vf_unbind_rate": ([0, 1], 0),
    "message_bytes": ([16384, 65536], 65536),
    "qp_count": ([16, 64], 16),
}
OVERLOAD = {"flow_setup_rate": [100000], "rules_per_mask": [10000]}
LOOPS = ["bidirectional", "loopback"]  # a loopback is a wall by itself, so these are one class

# name: what is shared, what varies (levels, baseline), design, wall, which defects are on, and what
# each of them needs: the levels of each setting.
CAMPAIGNS = {
    "ud_send": dict(
        shared={"transport": "UD", "operation": "SEND", "mtu_bytes": 4096, "thread_count": 4},
        varied={
            "qp_count": ([4, 64], 4),
            "send_queue_depth": ([16, 1024], 16),
            "receive_queue_depth": ([128, 1024], 128),
            "message_bytes": ([512, 4096], 4096),
            "post_batch": ([1, 16, 64], 16),
            "receive_post_batch": ([1, 16], 1),
            "sge_count": ([1, 4], 1),
        },
        below=4, on=C_ALL,
        needs={  # no queue of 16 takes 64 at once, so C1's deep queue goes with its batch
            "C1": {"post_batch": [64], "receive_queue_depth": [1024]},
            "C2": {"post_batch": [1], "receive_queue_depth": [1024], "message_bytes": [512],
                   "qp_count": [64]},
            "C15": {"send_queue_depth": [1024], "qp_count": [64]},
        }),
    "rc_send": dict(
        shared={"transport": "RC", "operation": "SEND", "thread_count": 4},
        varied={
            "qp_count": ([4, 64], 4),
            "send_queue_depth": ([32, 1024], 32),
            "receive_queue_depth": ([128, 1024], 128),
            "message_bytes": ([512, 4096, 65536], 65536),
            "post_batch": ([1, 32, 64], 32),
            "receive_post_batch": ([1, 16], 1),
            "sge_count": ([1, 4], 1),
            "mtu_bytes": ([1024, 4096], 4096),
        },
        below=4, on=C_ALL,
        needs={
            "C5": {"mtu_bytes": [1024], "post_batch": [64], "receive_post_batch": [16],
                   "receive_queue_depth": [1024], "message_bytes": [4096]},
            "C6": {"mtu_bytes": [1024], "post_batch": [1], "receive_post_batch": [16],
                   "sge_count": [4], "send_queue_depth": [1024], "receive_queue_depth": [1024],
                   "message_bytes": [512], "qp_count": [64]},
            "C17": {"post_batch": [1], "send_queue_depth": [1024], "message_bytes": [512],
                    "qp_count": [64]},
        }),
    "rc_write": dict(
        shared={"transport": "RC", "operation": "WRITE", "thread_count": 4},
        varied={
            "qp_count": ([8, 64, 512], 8),
            "send_queue_depth": ([16, 128], 128),
            "message_bytes": ([512, 65536, 262144], 262144),
            "post_batch": ([1, 16, 64], 16),
            "mr_count": ([1, 16384], 1),
            "mtu_bytes": ([1024, 4096], 4096),
            "direction": (BOTH, "unidirectional"),
            "message_mix": (["uniform", "mixed_requests"], "uniform"),
        },
        below=4, on=C_ALL,
        needs={
            "C7": {"post_batch": [1], "message_bytes": [512], "mr_count": [16384]},
            "C8": {"post_batch": [1], "send_queue_depth": [16], "message_bytes": [512],
                   "qp_count": [512]},
            "C10": {"direction": ["bidirectional"], "post_batch": [64],
                    "message_mix": ["mixed_requests"], "qp_count": [512]},
            "C18": {"direction": ["bidirectional"], "mtu_bytes": [1024], "post_batch": [64],
                    "message_bytes": [512, 65536], "qp_count": [64, 512]},
        }),
    "rc_read": dict(
        shared={"transport": "RC", "operation": "READ", "thread_count": 4},
        varied={
            "qp_count": ([8, 80, 512], 8),
            "message_bytes": ([4096, 65536], 4096),
            "post_batch": ([1, 32], 1),
            "sge_count": ([1, 4], 1),
            "mtu_bytes": ([1024, 4096], 4096),
            "direction": (BOTH, "unidirectional"),
            "send_queue_depth": ([64, 128], 64),
        },
        below=4, on=C_ALL,
        needs={
            "C3": {"mtu_bytes": [1024], "message_bytes": [65536]},
            "C4": {"direction": ["bidirectional"], "post_batch": [32], "sge_count": [4],
                   "qp_count": [80, 512]},
            "C16": {"mtu_bytes": [1024], "post_batch": [32], "qp_count": [512]},
        }),
    "host": dict(
        shared={"transport": "RC", "operation": "WRITE", "message_bytes": 262144,
                "post_batch": 16, "thread_count": 4},
        varied={
            "qp_count": ([8, 1024], 8),
            "sge_count": ([1, 4], 1),
            "mtu_bytes": ([1024, 4096], 1024),
            "message_mix": (["uniform", "mixed_sge"], "uniform"),
            "direction": (["unidirectional", "bidirectional", "loopback"], "unidirectional"),
            "memory_placement": (["local", "cross_socket", "gpu"], "local"),
            "host_platform": (["intel", "amd"], "intel"),
            "pcie_relaxed_ordering": ([False, True], True),
            "pcie_acs_redirect": ([False, True], False),
        },
        below=4, on=C_ALL,
        needs={
            "C9": {"direction": LOOPS, "sge_count": [4], "message_mix": ["mixed_sge"],
                   "host_platform": ["amd"], "pcie_relaxed_ordering": [False]},
            "C11": {"direction": LOOPS, "memory_placement": ["cross_socket"],
                    "host_platform": ["amd"]},
            "C12": {"memory_placement": ["gpu"], "host_platform": ["amd"],
                    "pcie_acs_redirect": [True]},
            "C13": {"direction": ["loopback"]},
            "C14": {"direction": LOOPS, "mtu_bytes": [4096], "sge_count": [4], "qp_count": [1024]},
        }),
    "switch": dict(
        varied=SWITCH, on="S1,S2,S3,S5,S6,S7,S8",
        needs={
            "S1": {"counter_poll_ms": [10000], "flow_idle_ms": [10000], "flow_count": [1000000]},
            "S2": OVERLOAD,
            "S3": {"container_count": [16], "flow_count": [1000000]},
            "S5": {"counter_poll_ms": [5000, 10000], "flow_setup_rate": [1000, 100000],
                   "flow_count": [3000]},
            "S6": {"server_decap_masks": [20, 200]},
            "S7": {"vf_unbind_rate": [1], "container_count": [16]},
            "S8": {"vxlan_contexts": [5000]},
        }),
    "deletion": dict(
        varied=SWITCH, on="S4", metric="rule_delete_us",
        needs={"S4": {"rules_per_mask": [10000], "flow_setup_rate": [1000, 100000]}}),
    # S2's trigger is S9's: on a device with S9, no other load shows what it leaves behind.
    "recovery": dict(varied=SWITCH, on="S9", needs={"S9": OVERLOAD}),
}


def factor(levels):
    if isinstance(levels[0], bool):
        return {"type": "bool", "levels": levels}
    return {"type": "categorical" if isinstance(levels[0], str) else "numeric", "levels": levels}


def strength_of(name, five_way):
    """No less than the largest number of parts, with --five-way; but for C6, which is no least cause at these levels."""
    plan = CAMPAIGNS[name]
    most = max(sum(len(held) < len(plan["varied"][one][0]) for one, held in parts.items())
               for defect, parts in plan["needs"].items() if defect != "C6")
    return max(4 if "shared" in plan else 3, most if five_way else 0)


def campaign_of(name, options):
    plan = CAMPAIGNS[name]
    shared = plan.get("shared", {})
    factors = {one: factor([level]) for one, level in shared.items()}
    factors |= {one: factor(levels) for one, (levels, _) in plan["varied"].items()}
    wall = {"metric": "bandwidth_gbps", "below_baseline_by": 0.2}
    if "below" in plan:
        wall = {"metric": "packet_rate_mpps", "below": plan["below"]}
    if "metric" in plan:
        wall = {"metric": plan["metric"], "above_baseline_by": 0.5}
    asked = {}
    if options.plan:
        drawn = random.Random(f"{name} {options.plan}")
        asked["seeds"] = [{one: drawn.choice(plan["varied"][one][0])
                           for one in drawn.sample(sorted(plan["varied"]), 3)}]
    return asked | {
        "version": 1,
        "name": name,
        "factors": factors,
        "design": f"{strength_of(name, options.five_way)}-way",
        "baseline": shared | {one: base for one, (_, base) in plan["varied"].items()},
        "wall": wall,
        "measure": {"repeats": 1, "seconds": 0.002 if shared else 0.005},
    }


def levels_of(term, levels):
    """The campaign's levels at which a term holds."""
    value = term["value"]
    holds = {
        "==": lambda level: level == value,
        "in": lambda level: level in value,
        ">=": lambda level: level >= value,
        "<=": lambda level: level <= value,
        "between": lambda level: value[0] <= level <= value[1],
    }.get(term["op"])
    return sorted(level for level in levels if holds and holds(level))


def explain(program, folder, name, options):
    path = folder / (name + ".json")
    path.write_text(json.dumps(campaign_of(name, options)))
    made = subprocess.run(
        [program, "explain", path, "--target", f"twin:cx6?defects={CAMPAIGNS[name]['on']}",
         "--most-tests", "2000", "--json"], capture_output=True, text=True)
    if made.returncode not in (0, 1):
        sys.exit(f"{name}: {made.stderr.strip()}")
    return json.loads(made.stdout)


def hunt(program, folder, name, options):
    """Prints what was named, and gives how many defects were, how many not, and the tests."""
    plan = CAMPAIGNS[name]
    told = explain(program, folder, name, options)
    causes = [{term["factor"]: levels_of(term, plan["varied"][term["factor"]][0])
               for term in cause["terms"]} for cause in told["causes"]]
    wanted = {defect: {one: sorted(levels) for one, levels in parts.items()}
              for defect, parts in plan["needs"].items()}
    named = [defect for defect, parts in wanted.items() if parts in causes]
    missed = [defect for defect in wanted if defect not in named]
    print(f"{name:<9} {told['tests']:>4} tests  named {' '.join(named) or 'none'}"
          + (f"; MISSED {' '.join(missed)}" if missed else ""))
    for cause in causes:
        if cause not in wanted.values():
            print(f"          also told: {cause}")
    return len(named), len(missed), told["tests"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("campaigns", nargs="*", metavar="CAMPAIGN", help=", ".join(CAMPAIGNS))
    parser.add_argument("--five-way", action="store_true")
    parser.add_argument("--plan", type=int, default=0)
    options = parser.parse_intermixed_args()
    unknown = [name for name in options.campaigns if name not in CAMPAIGNS]
    if unknown:
        parser.error(f"no campaign {', '.join(unknown)}; there are {', '.join(CAMPAIGNS)}")
    with tempfile.TemporaryDirectory() as folder:
        rows = [hunt(options.program, pathlib.Path(folder), name, options)
                for name in options.campaigns or CAMPAIGNS]
    named, missed, tests = (sum(column) for column in zip(*rows))
    print(f"{named} of {named + missed} named in {tests} tests")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
