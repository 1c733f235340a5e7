"""Compare the start and stop of 1,000 nodes of a graph with bare nurseries.

Both sides do the same work in turn: a thousand tasks, each in a cancel scope, report that they are ready and sleep
until cancelled. The bare side starts all of them with `start_soon` in one nursery, counts the reports, and cancels the
nursery; it has no order, limits or states. Budget: the graph takes at most 3 times as long.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import trio

from nursery_graph import Graph, Node

BUDGET = 3.0
FAN_IN = 3  # largest number of dependencies of a node


async def node(deps: Mapping[str, Any], *, task_status: trio.TaskStatus[None]) -> None:
    task_status.started()
    await trio.sleep_forever()


def chart(shape: str, size: int, seed: int) -> list[Node]:
    """Create nodes. `flat`: no edges; `chain`: each requires the previous; `random`: up to three earlier nodes."""
    draw = random.Random(seed)
    nodes = []
    for number in range(size):
        if shape == "chain":
            requires = {str(number - 1)} if number else set()
        elif shape == "random":
            requires = {str(draw.randrange(number)) for _ in range(draw.randrange(FAN_IN + 1))} if number else set()
        else:
            requires = set()
        nodes.append(Node(str(number), node, requires=requires))
    return nodes


async def run_graph(nodes: list[Node]) -> None:
    graph = Graph()
    graph.apply(nodes)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(graph.run)
        snapshot = await graph.settled()
        assert all(status.state.value == "ready" for status in snapshot.nodes.values())
        nursery.cancel_scope.cancel()


class Countdown:
    """A task_status that counts the tasks that are ready."""

    def __init__(self, count: int) -> None:
        self.left = count
        self.done = trio.Event()

    def started(self, value: object = None) -> None:
        self.left -= 1
        if not self.left:
            self.done.set()


async def run_bare(size: int) -> None:
    ready = Countdown(size)

    async def child() -> None:
        with trio.CancelScope():
            await node({}, task_status=ready)

    async with trio.open_nursery() as nursery:
        for _ in range(size):
            nursery.start_soon(child)
        await ready.done.wait()
        nursery.cancel_scope.cancel()


def timed(run: Callable[..., Any], *args: object) -> float:
    gc.collect()
    begin = time.perf_counter()
    trio.run(run, *args)
    return time.perf_counter() - begin


def main(argv: list[str]) -> int:
    """Print the ratio for each shape; return 0 if all are within the budget."""
    parser = argparse.ArgumentParser(prog="python -m bench graph", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    charts = {shape: chart(shape, options.nodes, options.seed) for shape in ("flat", "random", "chain")}
    bare: list[float] = []
    graph: dict[str, list[float]] = {shape: [] for shape in charts}
    timed(run_bare, options.nodes)
    for nodes in charts.values():
        timed(run_graph, nodes)
    for _ in range(options.rounds):
        bare.append(timed(run_bare, options.nodes))
        for shape, nodes in charts.items():
            graph[shape].append(timed(run_graph, nodes))
    base = statistics.median(bare)
    print(f"{options.nodes} nodes, start plus stop, median of {options.rounds} interleaved rounds")
    print(f"  bare nursery  {base * 1e3:7.2f} ms")
    worst = 0.0
    for shape, times in graph.items():
        ratio = statistics.median(times) / base
        worst = max(worst, ratio)
        print(f"  graph, {shape:7}{statistics.median(times) * 1e3:7.2f} ms   {ratio:.2f} times bare")
    print(f"budget {BUDGET:g}: {'held' if worst <= BUDGET else 'MISSED'}")
    return 0 if worst <= BUDGET else 1


if __name__ == "__main__":
    import sys

    sys.exit(main(sys.argv[1:]))
