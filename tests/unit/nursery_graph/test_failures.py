"""Which failures of nodes are worth a message."""

from __future__ import annotations

from nursery_graph.failures import FailureCount
from nursery_graph.lifecycle import State
from nursery_graph.status import NodeStatus


def status(reason: str, runs: int) -> NodeStatus:
    return NodeStatus("training", State.UNHEALTHY, 0.0, reason, "", frozenset(), frozenset(), runs=runs, failure=reason)


def test_a_failure_for_the_same_reason_counts_less_and_less_often() -> None:
    failures = FailureCount()
    assert [failures.note(status("a", run)) for run in (1, 1, 2, 3, 4, 5, 6, 7, 8, 8)] == [1, 0, 2, 0, 4, 0, 0, 0, 8, 0]
    assert [failures.note(status("b", run)) for run in (9, 9, 10)] == [1, 0, 2], "a new reason"
    assert failures.note(status("", 11)) == 0
