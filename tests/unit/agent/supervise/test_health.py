"""When a server is dead, and how long its restart is delayed."""

from __future__ import annotations

import pytest

from agent.supervise.health import HealthLimits, ProbeAnswer, ServerHealth, crashes_in_a_row, judge, restart_delay

YES, NO, EXCUSED = ProbeAnswer.ANSWERED, ProbeAnswer.SILENT, ProbeAnswer.EXCUSED
LIMITS = HealthLimits(start=600.0, failures=3)


@pytest.mark.parametrize(
    ("answers", "killed_after"),
    [
        ([YES, NO, NO, NO], 4),
        ([YES, NO, NO, YES, NO, NO], None),
        ([YES, NO, EXCUSED, EXCUSED, EXCUSED, NO], None),
        ([YES, NO, EXCUSED, NO, NO], 5),
        ([NO, NO, NO, NO, NO], None),  # it is still starting
    ],
)
def test_a_server_is_dead_after_failures_in_a_row(answers: list[ProbeAnswer], killed_after: int | None) -> None:
    health, killed = ServerHealth(deadline=1000.0), None
    for count, answer in enumerate(answers, 1):
        health, reason = judge(health, answer, 10.0, LIMITS)
        if reason:
            assert "3 requests in a row" in reason
            killed = killed or count
    assert killed == killed_after


@pytest.mark.parametrize(
    ("now", "answer", "killed"),
    [(599.0, NO, False), (600.0, NO, True), (600.0, EXCUSED, False), (9000.0, EXCUSED, False), (600.0, YES, False)],
)
def test_the_start_has_a_limit(now: float, answer: ProbeAnswer, killed: bool) -> None:
    _, reason = judge(ServerHealth(deadline=600.0), answer, now, LIMITS)
    assert bool(reason) is killed
    assert not reason or reason == "it did not serve within 10 minutes"


def test_restarts_are_delayed_more_and_more() -> None:
    assert [restart_delay(crashes) for crashes in (0, 1, 2, 3, 6, 7, 10**6)] == [0, 5, 10, 20, 160, 300, 300]


def test_a_long_run_makes_the_next_crash_the_first_one() -> None:
    assert [crashes_in_a_row(before, ran) for before, ran in ((0, 1), (1, 599), (9, 600), (0, 600))] == [1, 2, 1, 1]
