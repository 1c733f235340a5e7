"""Simulate years of a graph: `python -m tests.sim.nursery_graph.million [--events N] [--seed S] [--nodes N]`.

A random graph has nodes that are slow, crash, refuse to start, hang at start, ignore cancellation or fail in their
cleanup, under a storm of new configurations, restarts and retries. Events are counted: begins, cancellations and ends
of runs as the nodes see them, and transitions as the graph reports them. Each world ends through one of CAUSES, and
another follows until the given number of events is reached.

Every event is checked against the contract (see nursery_graph.testing), the transition table as seen from outside, and
the actual state of the nodes. Between storms, with well-behaved nodes, everything that can become ready must do so.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from dataclasses import dataclass, field

import trio

from nursery_graph import Graph, Node, Restart, State, Transition
from nursery_graph.testing import Fault, Script, Witness, run_seeded

START_TIMEOUT = 5.0
STOP_TIMEOUT = 4.0
CALM = Script(start=0.1, cleanup=0.05)
CAUSES = ("stop", "cancel", "deadline", "neighbour", "interrupt")

# Legal successors of each state, seen from outside; None is "not in the graph".
LEGAL = {
    None: {State.UNCONFIGURED},
    State.UNCONFIGURED: {State.CONFIGURING, None, State.UNCONFIGURED},
    State.CONFIGURING: {State.READY, State.UNHEALTHY, State.REMOVING},
    State.READY: {State.UNHEALTHY, State.REMOVING},
    State.UNHEALTHY: {State.UNHEALTHY, State.READY, State.REMOVING, State.UNCONFIGURED, None},
    State.REMOVING: {State.REMOVING, State.UNCONFIGURED, None},
}


@dataclass
class World:
    """One graph from its first node to its end."""

    draw: random.Random
    size: int
    budget: int  # events
    counts: dict[str, int]
    calm: bool = False
    states: dict[str, State] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.witness = Witness(self.script)
        names = [f"n{number}" for number in range(self.size)]
        self.edges = {
            name: tuple(
                frozenset(self.draw.sample(names[:number], min(number, self.draw.randrange(3)))) for _ in range(2)
            )
            for number, name in enumerate(names)
        }
        self.graph = Graph(shutdown_timeout=10_000, jitter=self.draw.random)
        self.graph.subscribe(self.on_transition)
        self.graph.subscribe(self.witness.on_transition)

    def script(self, name: str) -> Script:
        draw = self.draw
        if self.calm:
            return CALM
        fault = draw.choice(("none", "none", "crash", "crash", "refuse", "hang", "deaf", "breaks", "returns", "sick"))
        self.counts[fault] = self.counts.get(fault, 0) + 1
        slow = draw.random() < 0.1
        return Script(
            start=math.inf if fault == "hang" else draw.uniform(0, START_TIMEOUT * 0.9 if slow else 0.3),
            life=draw.expovariate(1 / 20) if fault in ("crash", "returns") else math.inf,
            cleanup=draw.uniform(0, 3 if slow else 0.1),
            deaf=draw.uniform(0, 12) if fault == "deaf" else 0.0,
            fails=fault != "returns",
            start_fails=fault == "refuse",
            cleanup_fails=fault == "breaks",
            unhealthy_after=draw.uniform(0.1, 5) if fault == "sick" else math.inf,
        )

    def on_transition(self, event: Transition) -> None:
        before = self.states.get(event.name)
        if before is not event.before or event.after not in LEGAL[event.before]:
            self.witness.violations.append(f"{event}: illegal, was {before}")
        if event.after is None:
            self.states.pop(event.name, None)
        else:
            self.states[event.name] = event.after
        if event.after is State.CONFIGURING:
            for name in self.edges[event.name][0]:
                # A running but unhealthy node still counts as present; a failed node does not run.
                if self.states.get(name) is not State.READY and name not in self.witness.live:
                    self.witness.violations.append(f"{event}: {name} is {self.states.get(name)}")

    def nodes(self, present: set[str]) -> list[Node]:
        kinds = ("permanent", "permanent", "transient", "temporary")
        nodes = []
        for number, (name, (requires, uses)) in enumerate(self.edges.items()):
            if name in present:
                nodes.append(
                    self.witness.node(
                        name,
                        requires=requires,
                        uses=uses,
                        version=self.versions.setdefault(name, 0),
                        start_timeout=START_TIMEOUT,
                        stop_timeout=STOP_TIMEOUT,
                        restart=Restart(kinds[number % 4], intensity=3, period=60),
                    )
                )
        return nodes

    def disturb(self) -> None:
        """Do one random thing that a user or a neighbor could do."""
        draw, graph = self.draw, self.graph
        what = draw.choice(("apply", "apply", "storm", "restart", "retry", "restart"))
        self.counts[what] = self.counts.get(what, 0) + 1
        if what in ("restart", "retry"):
            names = sorted(graph.snapshot().nodes)
            if names:
                name = draw.choice(names)
                graph.retry(name) if what == "retry" else graph.restart(name, "because")
            return
        for _ in range(draw.randrange(2, 6) if what == "storm" else 1):
            present = {name for name in self.edges if draw.random() < 0.9}
            for name in draw.sample(sorted(self.edges), draw.randrange(3)):
                self.versions[name] = self.versions.get(name, 0) + 1
            extra = []
            if draw.random() < 0.1:  # add a cycle and a duplicate name
                extra = [Node("x", _never, {"y"}), Node("y", _never, {"x"}), Node("z", _never), Node("z", _never)]
                self.edges.update(dict.fromkeys("xyz", (frozenset(), frozenset())))
            graph.apply([*self.nodes(present - set("xyz")), *extra])

    async def calm_down(self) -> None:
        """Let all nodes behave, and check that every node becomes ready."""
        self.calm = True
        everything = set(self.edges) - set("xyz")
        for name in everything:
            self.versions[name] = self.versions.get(name, 0) + 1
        self.graph.apply(self.nodes(everything))
        await trio.sleep(60)  # the last nodes that ignore cancellation end
        snapshot = await self.graph.settled()
        late = {name: status for name, status in snapshot.nodes.items() if status.state is not State.READY}
        if late or self.witness.live.keys() != everything:
            self.witness.violations.append(f"not ready although all is calm: {late}")
        self.calm = False

    async def live(self) -> None:
        """Run until the budget of events is spent, then end through a random cause."""
        cause = self.draw.choice(CAUSES)
        self.counts[cause] = self.counts.get(cause, 0) + 1
        with trio.CancelScope() as scope:
            try:
                async with trio.open_nursery() as nursery:
                    await nursery.start(self.graph.run)
                    while self.witness.events < self.budget:
                        for _ in range(self.draw.randrange(40)):
                            self.disturb()
                            await trio.sleep(self.draw.expovariate(1 / 3))
                            self.witness.check()
                        await self.calm_down()
                        self.witness.check()
                        self.disturb()
                        await trio.sleep(self.draw.expovariate(1 / 3))
                    if cause == "cancel":
                        nursery.cancel_scope.cancel()
                    elif cause == "deadline":
                        scope.deadline = trio.current_time() + self.draw.random()
                        await trio.sleep_forever()
                    elif cause == "neighbour":
                        raise Fault("a neighbour failed")
                    elif cause == "interrupt":
                        raise KeyboardInterrupt
                    self.graph.stop()
            except* (Fault, KeyboardInterrupt):
                pass
        if self.witness.live:
            self.witness.violations.append(f"still running after the end: {sorted(self.witness.live)}")
        self.witness.check()


async def _never(deps: object, *, task_status: object) -> None:
    raise AssertionError("a node with a problem was started")


def simulate(events: int, seed: int, size: int, world_events: int = 20_000) -> dict[str, int]:
    """Simulate worlds until `events` have happened. Return counts by kind; raise on a violation."""
    draw = random.Random(seed)
    counts: dict[str, int] = {"events": 0, "runs": 0, "worlds": 0}
    while counts["events"] < events:
        budget = min(world_events, events - counts["events"])
        world = World(draw, draw.randrange(2, size + 1), budget, counts)
        run_seeded(draw.randrange(2**32), world.live, limit=math.inf)
        counts["events"] += world.witness.events
        counts["runs"] += len(world.witness.begun)
        counts["worlds"] += 1
    return counts


def main(argv: list[str]) -> int:
    """Run the simulation from the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim.nursery_graph.million")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=40)
    options = parser.parse_args(argv)
    begin = time.perf_counter()
    counts = simulate(options.events, options.seed, options.nodes)
    seconds = time.perf_counter() - begin
    total = counts.pop("events")
    what_else = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    sys.stdout.write(f"seed {options.seed}: {total:,} events in {seconds:.1f} s, no violation\n  {what_else}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
