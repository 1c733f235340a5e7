"""Parts of the agent as nodes of a graph: how they are started again, and what is logged and reported about them.

A part that fails is started again after a delay, and the others run on, except those that cannot work without it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import aclosing
from typing import Any, Final, Protocol

import structlog
import trio

from agent.control.report import PartReport, ProblemReport
from nursery_graph import FailureCount, Graph, Node, NodeStatus, Restart, State
from schema import MachineError
from support import ChangeSignal

RESTART: Final = Restart(intensity=1_000_000, first_delay=1.0, max_delay=60.0)
"""A part is started again however often it fails: the device may be out of reach of people."""
START_TIMEOUT: Final = 120.0  # seconds; a card that is worn out may take a minute for a file
STOP_TIMEOUT: Final = 5.0
REMEDY: Final = "it is started again by itself; if it stays: send `machine agent bundle` to the maker of the machine"

_log = structlog.get_logger("agent")


class PartRun(Protocol):
    """The whole life of a part: `started` is called when it is ready."""

    def __call__(self, *, task_status: trio.TaskStatus[Any]) -> Awaitable[None]:
        """Run until cancelled."""
        ...


def part(
    name: str,
    run: PartRun,
    *,
    requires: Collection[str] = (),
    uses: Collection[str] = (),
    start_timeout: float = START_TIMEOUT,
    stop_timeout: float = STOP_TIMEOUT,
    restart: Restart = RESTART,
) -> Node:
    """Return the node of a part. `run` may be called again after it has failed, on the same objects.

    A failure that is not a MachineError or OSError is a defect, and is logged with its place, once until another one.
    """
    defect = ""

    async def run_node(deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[Any]) -> None:
        nonlocal defect
        try:
            await run(task_status=task_status)
        except Exception as error:
            if not _is_expected(error) and repr(error) != defect:
                defect = repr(error)
                _log.exception("a part of the agent has a defect", part=name)
            raise

    return Node(
        name,
        run_node,
        requires=frozenset(requires),
        uses=frozenset(uses),
        start_timeout=start_timeout,
        stop_timeout=stop_timeout,
        restart=restart,
    )


def at_once(function: Callable[[], Awaitable[object]]) -> PartRun:
    """Return the life of a part that is ready at once, and ends only when it is cancelled or fails."""

    async def run(*, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        await function()

    return run


def _is_expected(error: Exception) -> bool:
    if isinstance(error, ExceptionGroup):
        return error.split((MachineError, OSError))[1] is None
    return isinstance(error, MachineError | OSError)


class PartStates:
    """What is known about the parts in `graph`. Run `follow` while the graph runs."""

    def __init__(self, graph: Graph, wall: Callable[[], float] = time.time) -> None:
        self._graph, self._wall = graph, wall
        self._failed: dict[str, tuple[float | None, float]] = {}  # since when, by Trio's clock and since 1970
        self._changed = ChangeSignal()
        self._reports: tuple[PartReport, ...] = ()

    def reports(self) -> tuple[PartReport, ...]:
        """Return the state of all parts, in the order in which they were added."""
        nodes = self._graph.snapshot().nodes.values()
        return tuple(self._report(node) for node in nodes)

    def has_failed(self, name: str) -> bool:
        """Return whether a part has failed and does not run again."""
        return any(report.since > 0 for report in self.reports() if report.name == name)

    @property
    def problems(self) -> tuple[ProblemReport, ...]:
        """A problem for each part that has failed and does not run again."""
        return tuple(
            ProblemReport(
                f"machine-agent, {report.name}", f"this part of the agent has failed: {report.reason}", REMEDY
            )
            for report in self.reports()
            if report.since
        )

    def changes(self) -> AsyncGenerator[None, None]:
        """Yield now and after each change of `reports`. A slow reader misses intermediate ones."""
        return self._changed.values(lambda: None)

    async def follow(self, failed: Callable[[str, str], Awaitable[None]]) -> None:
        """Log failures, and call `failed` with the part and the reason of each one, until the graph has ended."""
        count = FailureCount()
        runs: dict[str, int] = {}
        async for snapshot in self._graph.changes():
            for node in snapshot.nodes.values():
                if times := count.note(node):
                    _log.error("a part of the agent has failed", part=node.name, reason=node.failure, failures=times)
                if node.failure and runs.get(node.name) != node.runs:
                    runs[node.name] = node.runs
                    await failed(node.name, node.failure)
            reports = self.reports()
            if reports != self._reports:
                self._reports = reports
                self._changed.announce()

    def _report(self, node: NodeStatus) -> PartReport:
        if not node.failure or node.failed_since is None:
            self._failed.pop(node.name, None)
            return PartReport(node.name, node.state.value, node.reason if node.state is not State.READY else "")
        since, wall = self._failed.get(node.name, (None, 0.0))
        if since != node.failed_since:
            since, wall = node.failed_since, self._wall() - (trio.current_time() - node.failed_since)
            self._failed[node.name] = since, wall
        # The state alternates while attempts fail. The report does not, and is not sent to the cloud each time.
        return PartReport(node.name, State.UNHEALTHY.value, node.failure, wall)


async def forward(generators: Iterable[AsyncGenerator[object, None]], notice: Callable[[], None]) -> None:
    """Call `notice` at each value of each generator, until cancelled."""

    async def follow(generator: AsyncGenerator[object, None]) -> None:
        async with aclosing(generator):
            async for _ in generator:
                notice()

    async with trio.open_nursery() as nursery:
        for generator in generators:
            nursery.start_soon(follow, generator)
