"""Which failures of parts of the cloud are logged."""

from __future__ import annotations

import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from cloud.server.failures import Failures, log_failures
from nursery_graph import Graph, Node, NodeStatus, Restart, State


def status(reason: str, runs: int) -> NodeStatus:
    return NodeStatus("training", State.UNHEALTHY, 0.0, reason, "", frozenset(), frozenset(), runs=runs, failure=reason)


def test_failures_are_logged_less_and_less_often() -> None:
    failures = Failures()
    assert [failures.note(status("a", run)) for run in (1, 1, 2, 3, 4, 5, 6, 7, 8, 8)] == [1, 0, 2, 0, 4, 0, 0, 0, 8, 0]
    assert [failures.note(status("b", run)) for run in (9, 9, 10)] == [1, 0, 2], "a new reason"
    assert failures.note(status("", 11)) == 0


async def test_a_part_that_fails_again_and_again_is_in_the_log(autojump_clock: MockClock) -> None:
    async def fail(deps: object, /, *, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        raise RecursionError("too deep")

    graph = Graph()
    with capture_logs() as entries:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(log_failures, graph)
            nursery.start_soon(graph.run)
            graph.apply([Node("training", fail, restart=Restart(kind="permanent", intensity=1000, first_delay=0.5))])
            await trio.sleep(60)
            nursery.cancel_scope.cancel()
    assert [(entry["log_level"], entry["part"], entry["failures"]) for entry in entries][:2] == [
        ("error", "training", 1),
        ("error", "training", 2),
    ]
    assert all("RecursionError: too deep" in entry["reason"] for entry in entries)
