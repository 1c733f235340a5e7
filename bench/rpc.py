"""Compare the throughput of our RPC server with grpclib (asyncio) and grpcio.aio.

`python -m bench rpc [--rounds N]` starts each server in a separate process in every round, in alternating order, and
loads it from one raw client process. The figures are medians over the rounds; only ratios within one run are
meaningful. Exits 1 if the budget is missed: the rate of unary calls at 64 streams is at least 6 times that of grpclib
and 3 times that of grpcio.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence

SCENARIOS = (  # mode, streams, size of a message in bytes
    ("unary", 1, 16),
    ("unary", 16, 16),
    ("unary", 64, 16),
    ("stream", 1, 1024),
    ("stream", 1, 65536),
)
KINDS = ("ours", "grpclib", "grpcio")
BUDGET = {"grpclib": 6.0, "grpcio": 3.0}  # ratio of unary calls at 64 streams

Results = dict[tuple[str, str], list[dict[str, float]]]


def name_of(mode: str, streams: int, size: int) -> str:
    return f"{mode} {streams} x {size} B"


def measure(kind: str, seconds: float, scenarios: Sequence[tuple[str, int, int]], results: Results) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "bench.rpc_servers", kind], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            port = server.stdout.readline().strip()
            for scenario in scenarios:
                mode, streams, size = scenario
                load = [sys.executable, "-m", "bench.rpc_load", port, mode, str(streams), str(seconds), str(size)]
                done = subprocess.run(load, capture_output=True, text=True, timeout=30, check=False)
                if done.returncode:
                    print(f"{kind} {name_of(*scenario)}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
                    continue
                results[kind, name_of(*scenario)].append(json.loads(done.stdout))
        finally:
            server.kill()


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.6, help="seconds per measurement")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--only", default="", help="run only scenarios whose name contains this")
    options = parser.parse_args(argv)
    kinds = options.kinds.split(",")
    scenarios = [scenario for scenario in SCENARIOS if options.only in name_of(*scenario)]
    results: Results = defaultdict(list)
    for turn in range(options.rounds):
        for kind in kinds if turn % 2 == 0 else kinds[::-1]:
            measure(kind, options.seconds, scenarios, results)
    met = True
    for scenario in scenarios:
        name = name_of(*scenario)
        print(name)
        medians = {
            kind: {
                key: statistics.median(result[key] for result in results[kind, name]) for key in ("rate", "p50", "p99")
            }
            for kind in kinds
            if results[kind, name]
        }
        for kind, figures in medians.items():
            ratio = medians["ours"]["rate"] / figures["rate"] if "ours" in medians else 0.0
            text = f"ours is {ratio:.2f} times" if kind != "ours" else "per second"
            times = f"p50 {figures['p50']:.2f} ms  p99 {figures['p99']:.2f} ms"
            print(f"  {kind:8} {figures['rate']:9.0f}  {text:20}  {times}")
            if name == name_of("unary", 64, 16) and kind in BUDGET and ratio < BUDGET[kind]:
                met = False
                print(f"  below the budget of {BUDGET[kind]} times {kind}")
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
