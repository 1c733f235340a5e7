"""Check file sizes against docs/design/architecture.md, section 2: hard cap, median, files in a folder, share of tests.

The page asks for at least as much test code as source. TEST_SHARE is the share reached today: raise it, never lower it.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path

HARD_CAP = 25 * 1024
MEDIAN_CAP = 5 * 1024
TEST_SHARE = 0.92
FLAT_CAP = 15
PACKAGES = [
    "schema",
    "nursery_graph",
    "telemetry",
    "hal",
    "support",
    "rpc",
    "uplink",
    "netmgr",
    "triggers",
    "training",
    "engine",
    "models",
    "runtime",
    "rig",
    "agent",
    "cloud",
    "command",
    "micro",
]


def main() -> int:
    """Print every violation; return 1 if there is one."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    sizes = {path: Path(path).stat().st_size for path in listed if Path(path).exists()}
    source = {path: size for path, size in sizes.items() if path.split("/")[0] in PACKAGES and size > 0}
    tests = {path: size for path, size in sizes.items() if path.startswith("tests/")}
    problems = [f"{path}: {size} bytes, hard cap {HARD_CAP}" for path, size in sizes.items() if size > HARD_CAP]
    median = statistics.median(source.values()) if source else 0
    if median > MEDIAN_CAP:
        problems.append(f"median source file {median:.0f} bytes, cap {MEDIAN_CAP}")
    folders = Counter(path.rpartition("/")[0] for path in source)
    problems += [
        f"{folder}/: {count} files flat, cap {FLAT_CAP}; group some of them in a folder"
        for folder, count in folders.items()
        if count > FLAT_CAP
    ]
    share = sum(tests.values()) / (sum(source.values()) or 1)
    if share < TEST_SHARE:
        problems.append(f"tests are {share:.2f} of the source in bytes, must be at least {TEST_SHARE}")
    for problem in problems:
        print(problem)
    if "-v" in sys.argv:
        print(f"{len(source)} source files, median {median:.0f} bytes")
        print(f"source {sum(source.values())} bytes, tests {sum(tests.values())} bytes: {share:.2f}")
    return int(bool(problems))


if __name__ == "__main__":
    raise SystemExit(main())
