"""Test helpers for graphs: nodes with scripted misbehaviour, and a witness that checks the contract.

Import this module only in tests: it changes Trio's scheduler to make runs reproducible.
"""

from __future__ import annotations

import math
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import trio
import trio.testing

from nursery_graph.execution.current_node import current_node
from nursery_graph.lifecycle import State
from nursery_graph.node import Node
from nursery_graph.status import Transition


class Fault(Exception):
    """The exception that a scripted node raises."""


@dataclass(frozen=True, slots=True)
class Script:
    """The course of one run of a node. Times are in seconds."""

    start: float = 0.0  # time until it is ready; math.inf: hangs
    life: float = math.inf  # time for which it is ready before it ends by itself
    cleanup: float = 0.0  # duration of its shielded cleanup after cancellation
    deaf: float = 0.0  # time for which it ignores cancellation before the cleanup
    fails: bool = True  # ends with `error` instead of returning
    error: type[BaseException] = Fault
    start_fails: bool = False  # raises `error` after `start` instead of becoming ready
    cleanup_fails: bool = False  # raises Fault at the end of its cleanup
    unhealthy_after: float = math.inf  # time until it reports itself unhealthy; healthy again after the same time


@dataclass(eq=False, slots=True)
class ObservedRun:
    """One run of a node as the node itself observed it. It is also the value of the node."""

    name: str
    stop_timeout: float
    deps: Mapping[str, ObservedRun]
    ready: bool = False
    cancelled_at: float = math.inf
    ended: bool = False
    crashed: bool = False

    def overdue(self, now: float) -> bool:
        """Return whether its stop timeout has passed, so that the graph may go on without it."""
        return now >= self.cancelled_at + self.stop_timeout


@dataclass
class Witness:
    """Creates nodes, watches their runs and records each violation of the contract.

    `script` returns the script of each run, given the node's name.
    """

    script: Callable[[str], Script] = lambda name: Script()
    violations: list[str] = field(default_factory=list)
    live: dict[str, ObservedRun] = field(default_factory=dict)
    begun: list[str] = field(default_factory=list)  # names in the order of runs
    ended: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    events: int = 0
    order_given_up: bool = False  # set when the graph reports Overdue: the stop order is not checked from then on

    def node(self, name: str, **options: Any) -> Node:
        """Return a node that follows the script and is watched by this witness."""

        async def run(deps: Mapping[str, ObservedRun], *, task_status: trio.TaskStatus[ObservedRun]) -> None:
            await self._live(node, deps, task_status)

        node = Node(name, run, **options)
        return node

    def check(self) -> None:
        """Raise AssertionError with all violations if there are any."""
        assert not self.violations, "\n".join(self.violations)

    def on_transition(self, event: Transition) -> None:
        """Check a transition that the graph reports against the actual runs; subscribe this to the graph."""
        self.events += 1
        record = self.live.get(event.name)
        if event.after is None and record is not None and not record.ended:
            self._violated(f"{event.name} was removed while it runs")
        if event.after is State.READY and record is None:
            self._violated(f"{event.name} is reported ready but does not run")

    def _violated(self, violation: str) -> None:
        self.violations.append(f"{trio.current_time():.3f}: {violation}")

    async def _live(
        self, node: Node, deps: Mapping[str, ObservedRun], task_status: trio.TaskStatus[ObservedRun]
    ) -> None:
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
            if script.cleanup_fails:
                raise Fault(f"cleanup of {node.name}")

    def _begin(self, node: Node, deps: Mapping[str, ObservedRun]) -> ObservedRun:
        record = ObservedRun(node.name, node.stop_timeout, deps)
        self.events += 1
        self.begun.append(node.name)
        if node.name in self.live:
            self._violated(f"{node.name} begins while its previous run continues")
        self.live[node.name] = record
        for name in node.requires:
            if name not in deps:
                self._violated(f"{node.name} begins without {name}, which it requires")
        for name, dependency in deps.items():
            if self.live.get(name) is not dependency or not dependency.ready:
                self._violated(f"{node.name} receives {name}, which is not running and ready")
            elif dependency.cancelled_at != math.inf:
                self._violated(f"{node.name} receives {name}, which has been cancelled")
        return record

    async def _follow(self, script: Script, record: ObservedRun, task_status: trio.TaskStatus[ObservedRun]) -> None:
        await trio.sleep(script.start)
        if script.start_fails:
            raise script.error(f"{record.name} does not start")
        record.ready = True
        task_status.started(record)
        if script.unhealthy_after < script.life:
            await trio.sleep(script.unhealthy_after)
            current_node().unhealthy("unplugged")
            await trio.sleep(script.unhealthy_after)
            current_node().healthy()
        await trio.sleep(script.life)
        record.crashed = True
        if script.fails:
            raise script.error(f"{record.name} crashed")

    def _check_stop_order(self, record: ObservedRun) -> None:
        record.cancelled_at = now = trio.current_time()
        self.events += 1
        self.cancelled.append(record.name)
        if not self.order_given_up:
            for other in self.live.values():
                if other.deps.get(record.name) is record and not other.overdue(now):
                    self._violated(f"{record.name} is cancelled while {other.name}, which depends on it, runs")
        self._check_dependencies(record, "is cancelled")

    def _check_dependencies(self, record: ObservedRun, moment: str) -> None:
        if self.order_given_up or record.overdue(trio.current_time()):
            return
        for name, dependency in record.deps.items():
            # A dependency that crashed has ended before its dependents can end; that does not violate the order.
            if not dependency.crashed and (dependency.ended or dependency.cancelled_at != math.inf):
                self._violated(f"{record.name} {moment} but {name}, which it depends on, is ending or gone")


def seed_scheduler(seed: int) -> None:
    """Make the order in which Trio runs ready tasks reproducible, and different for each seed.

    Trio offers this only to its Hypothesis plugin. The names are private, so they are used in this function only.
    """
    trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc]
    trio._core._run._r = random.Random(seed)


def run_seeded(seed: int, main: Callable[[], Awaitable[None]], *, limit: float = 50_000) -> None:
    """Run `main` with a seeded scheduler on a virtual clock that jumps forward when all tasks wait.

    Raises TooSlowError after `limit` virtual seconds, so that a deadlock fails instead of hanging.
    """

    async def limited() -> None:
        with trio.fail_after(limit):
            await main()

    seed_scheduler(seed)
    trio.run(limited, clock=trio.testing.MockClock(autojump_threshold=0))
