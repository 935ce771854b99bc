#!/usr/bin/env python3
"""S1 to S9 on the twin: is each named by exactly its trigger, and by its symptom, and in how many tests?

    python3 tests/bench/causal/twin_defects.py build/release/bin/greynic

Each trigger with its example, and where each part is at rest, is a line of docs/twin/defects.md. The
witness has all parts of it, and message_bytes and qp_count beside them, which are innocent.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

# factor: (where the symptom shows, at rest)
DEFECTS = {
    "S1": {"counter_poll_ms": (1000, 999), "flow_idle_ms": (1000, 1001), "flow_count": (1000000, 16)},
    "S2": {"flow_setup_rate": (100000, 20000), "rules_per_mask": (10000, 1000)},
    "S3": {"container_count": (8, 1), "flow_count": (1000000, 16)},
    "S4": {"rules_per_mask": (10000, 8192), "flow_setup_rate": (1000, 0)},
    "S5": {"counter_poll_ms": (5000, 3000), "flow_setup_rate": (1000, 0), "flow_count": (3000, 100000)},
    "S6": {"server_decap_masks": (200, 0)},
    "S7": {"vf_unbind_rate": (1, 0), "container_count": (16, 8)},
    "S8": {"vxlan_contexts": (4097, 4096)},
    "S9": {"flow_setup_rate": (100000, 20000), "rules_per_mask": (10000, 1000)},
}
DECOYS = {"message_bytes": (4096, 65536), "qp_count": (16, 64)}


def explain(program, folder, defect, trigger):
    settings = trigger | DECOYS
    metric = {"metric": "bandwidth_gbps", "below_baseline_by": 0.2}
    if defect == "S4":
        metric = {"metric": "rule_delete_us", "above_baseline_by": 0.5}
    campaign = {
        "version": 1,
        "name": defect.lower(),
        "factors": {
            name: {"type": "numeric", "levels": sorted(levels)} for name, levels in settings.items()
        },
        "design": "pairwise",
        "baseline": {name: levels[1] for name, levels in settings.items()},
        "wall": metric,
        "measure": {"repeats": 1, "seconds": 0.02},
    }
    files = {"campaign.json": campaign,
             "witness.json": {name: levels[0] for name, levels in settings.items()}}
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    command = [program, "explain", folder / "campaign.json", "--target",
               f"twin:cx6?defects={defect}", "--witness", folder / "witness.json", "--critical-path",
               "--json"]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode not in (0, 1):
        sys.exit(f"{defect}: {made.stderr.strip()}")
    return json.loads(made.stdout)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    all_named = True
    tests = 0
    with tempfile.TemporaryDirectory() as folder:
        for defect, trigger in DEFECTS.items():
            told = explain(sys.argv[1], pathlib.Path(folder), defect, trigger)
            causes = [{term["factor"] for term in cause["terms"]} for cause in told["causes"]]
            symptom = (told.get("critical_path") or {}).get("symptom")
            named = causes == [set(trigger)] and symptom == defect
            all_named = all_named and named
            tests += told["tests"]
            what = ", ".join(sorted(trigger)) if named else f"{causes}, symptom {symptom}"
            print(f"{defect:<4} {'named' if named else 'MISSED'} {told['tests']:>4} tests  {what}")
    print(f"{tests} tests")
    return 0 if all_named else 1


if __name__ == "__main__":
    sys.exit(main())
