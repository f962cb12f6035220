"""The two steps of tests/coverage that are no shell.

programs BUILD.json        of cargo's messages: name, folder and path of each test program, a line each
table SUMMARY.json ROOT    of llvm-cov's summary: lines and regions that are reached, by crate, and the files reached least
"""

import json
import os
import sys

# Folders of the table; a file counts for the longest that holds it.
CRATES = ["scheduler", "scheduler/network", "stages", "engine", "schemas", "schemas/events", "replay"]
# Tests that stand in files of their own beside the code.
TESTS = ("/tests/", "/tests.rs", "/benches/", "/examples/")
LEAST = 15
# Files with fewer lines say little.
LINES_MIN = 20


def programs(path):
    with open(path) as messages:
        for message in map(json.loads, messages):
            if message.get("executable") and message["profile"]["test"]:
                folder = os.path.dirname(message["manifest_path"])
                print(message["target"]["name"], folder, message["executable"])


def crate_of(file):
    return max((crate for crate in CRATES if file.startswith(f"{crate}/src/")), key=len, default=None)


def percent(count):
    return 100 * count["covered"] / count["count"] if count["count"] else 100


def table(path, root):
    with open(path) as summary:
        files = json.load(summary)["data"][0]["files"]
    found = []
    for file in files:
        name = os.path.relpath(file["filename"], root)
        crate = crate_of(name)
        if crate and not any(part in name for part in TESTS):
            found.append((name, crate, file["summary"]))
    print("\n| crate | lines | reached | regions | reached |\n|---|---|---|---|---|")
    for crate in CRATES:
        total = {kind: {"count": 0, "covered": 0} for kind in ("lines", "regions")}
        for _, of, summary in found:
            for kind, sum_of in total.items():
                if of == crate:
                    for key in sum_of:
                        sum_of[key] += summary[kind][key]
        lines, regions = total["lines"], total["regions"]
        if not lines["count"]:
            continue
        print(f"| `{crate}` | {lines['count']:,} | {percent(lines):.1f} % | {regions['count']:,} | {percent(regions):.1f} % |")
    print("\nThe files reached least, by lines:")
    long = [(percent(summary["lines"]), name, summary["lines"]) for name, _, summary in found if summary["lines"]["count"] >= LINES_MIN]
    for share, name, lines in sorted(long)[:LEAST]:
        print(f"{share:5.1f} % of {lines['count']:4} lines: {name}")


if __name__ == "__main__":
    {"programs": programs, "table": table}[sys.argv[1]](*sys.argv[2:])
