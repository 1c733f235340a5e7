"""Which failures of parts of the cloud are logged."""

from __future__ import annotations

import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from cloud.server.failures import log_failures
from nursery_graph import Graph, Node, Restart


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
