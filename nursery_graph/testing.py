"""For tests of and with graphs: nodes that misbehave as told, and a witness that knows what must never happen.

Import this module only in tests: it reaches for Trio's scheduler to make runs repeatable.
"""

from __future__ import annotations

import math
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import trio
import trio.testing

from nursery_graph.instance import current_node
from nursery_graph.lifecycle import State
from nursery_graph.node import Node
from nursery_graph.status import Transition


class Fault(Exception):
    """What a scripted node raises."""


@dataclass(frozen=True, slots=True)
class Script:
    """How one run of a node goes. Times in seconds."""

    start: float = 0.0  # until it is ready; math.inf: hangs
    life: float = math.inf  # how long it is ready before it ends by itself
    cleanup: float = 0.0  # how long its shielded cleanup takes after cancellation
    deaf: float = 0.0  # how long it ignores cancellation before that
    fails: bool = True  # ends with `error` rather than by returning
    error: type[BaseException] = Fault
    refuses: bool = False  # ends after `start` instead of becoming ready
    breaks: bool = False  # raises Fault at the end of its cleanup
    sick_at: float = math.inf  # after how long it reports itself unhealthy; well again after as long


@dataclass(eq=False, slots=True)
class Record:
    """One run of a node as the node itself saw it. It is also the value that the node hands out."""

    name: str
    stop_timeout: float
    deps: Mapping[str, Record]
    ready: bool = False
    cancelled_at: float = math.inf
    ended: bool = False
    crashed: bool = False

    def overdue(self, now: float) -> bool:
        """Whether the graph may go on without it."""
        return now >= self.cancelled_at + self.stop_timeout


@dataclass
class Witness:
    """Makes nodes, watches their runs and writes down each violation of the contract.

    `script` is asked for the script of each run, by the node's name.
    """

    script: Callable[[str], Script] = lambda name: Script()
    violations: list[str] = field(default_factory=list)
    live: dict[str, Record] = field(default_factory=dict)
    begun: list[str] = field(default_factory=list)  # names in the order of runs
    ended: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    events: int = 0
    order_given_up: bool = False  # set it when the graph says so: from then on stop order is not checked

    def node(self, name: str, **options: Any) -> Node:
        """A node that follows the script under the eyes of this witness."""

        async def run(deps: Mapping[str, Record], *, task_status: trio.TaskStatus[Record]) -> None:
            await self._live(made, deps, task_status)

        made = Node(name, run, **options)
        return made

    def check(self) -> None:
        """Raise AssertionError with all violations, if there are any."""
        assert not self.violations, "\n".join(self.violations)

    def on_transition(self, event: Transition) -> None:
        """Subscribe this to check what the graph says against what is."""
        self.events += 1
        record = self.live.get(event.name)
        if event.after is None and record is not None and not record.ended:
            self._violated(f"{event.name} was forgotten while it runs")
        if event.after is State.READY and record is None:
            self._violated(f"{event.name} is said to be ready but does not run")

    def _violated(self, what: str) -> None:
        self.violations.append(f"{trio.current_time():.3f}: {what}")

    async def _live(self, node: Node, deps: Mapping[str, Record], task_status: trio.TaskStatus[Record]) -> None:
        record = self._begin(node, deps)
        script = self.script(node.name)
        try:
            await self._follow(script, record, task_status)
        except trio.Cancelled:
            self._check_stop_order(record)
            raise
        except BaseException:
            record.crashed = True
            raise
        finally:
            try:
                if record.cancelled_at != math.inf:
                    with trio.CancelScope(shield=True):
                        await trio.sleep(script.deaf + script.cleanup)
                    self._check_dependencies(record, "finished its cleanup")
            finally:
                record.ended = True
                self.ended.append(node.name)
                self.events += 1
                if self.live.get(node.name) is record:
                    del self.live[node.name]
            if script.breaks:
                raise Fault(f"cleanup of {node.name}")

    def _begin(self, node: Node, deps: Mapping[str, Record]) -> Record:
        record = Record(node.name, node.stop_timeout, deps)
        self.events += 1
        self.begun.append(node.name)
        if node.name in self.live:
            self._violated(f"{node.name} begins while its previous run goes on")
        self.live[node.name] = record
        for name in node.requires:
            if name not in deps:
                self._violated(f"{node.name} begins without {name}, which it requires")
        for name, dependency in deps.items():
            if self.live.get(name) is not dependency or not dependency.ready:
                self._violated(f"{node.name} is given {name}, which is not running and ready")
            elif dependency.cancelled_at != math.inf:
                self._violated(f"{node.name} is given {name}, which has been cancelled")
        return record

    async def _follow(self, script: Script, record: Record, task_status: trio.TaskStatus[Record]) -> None:
        await trio.sleep(script.start)
        if script.refuses:
            raise script.error(f"{record.name} does not start")
        record.ready = True
        task_status.started(record)
        if script.sick_at < script.life:
            await trio.sleep(script.sick_at)
            current_node().unhealthy("unplugged")
            await trio.sleep(script.sick_at)
            current_node().healthy()
        await trio.sleep(script.life)
        record.crashed = True
        if script.fails:
            raise script.error(f"{record.name} crashed")

    def _check_stop_order(self, record: Record) -> None:
        record.cancelled_at = now = trio.current_time()
        self.events += 1
        self.cancelled.append(record.name)
        if not self.order_given_up:
            for other in self.live.values():
                if other.deps.get(record.name) is record and not other.overdue(now):
                    self._violated(f"{record.name} is cancelled while {other.name}, which depends on it, runs")
        self._check_dependencies(record, "is cancelled")

    def _check_dependencies(self, record: Record, moment: str) -> None:
        if self.order_given_up or record.overdue(trio.current_time()):
            return
        for name, dependency in record.deps.items():
            # A dependency that crashed is gone before its dependents can be; no order could help.
            if not dependency.crashed and (dependency.ended or dependency.cancelled_at != math.inf):
                self._violated(f"{record.name} {moment} but {name}, which it depends on, is ending or gone")


def seed_scheduler(seed: int) -> None:
    """Make the order in which Trio runs ready tasks repeatable, and different for each seed.

    Trio offers this to its own Hypothesis plugin only; the names are private, which is why they are used here alone.
    """
    trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc]
    trio._core._run._r = random.Random(seed)


def run_seeded(seed: int, main: Callable[[], Awaitable[None]], *, limit: float = 50_000) -> None:
    """Run `main` on a virtual clock that jumps as soon as all tasks wait, with the scheduler seeded.

    After `limit` virtual seconds it fails with TooSlowError, so that a deadlock is a failure and not a hang.
    """

    async def limited() -> None:
        with trio.fail_after(limit):
            await main()

    seed_scheduler(seed)
    trio.run(limited, clock=trio.testing.MockClock(autojump_threshold=0))
