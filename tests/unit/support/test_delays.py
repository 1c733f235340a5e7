"""Delays between attempts."""

from __future__ import annotations

from support.delays import DoublingDelay, doubled


def test_a_delay_doubles_up_to_the_longest() -> None:
    assert [doubled(1.5, 10.0, failures) for failures in range(6)] == [0.0, 1.5, 3.0, 6.0, 10.0, 10.0]
    assert doubled(1.0, 60.0, 100_000) == 60.0


def test_a_success_begins_again() -> None:
    delay = DoublingDelay(2.0, 5.0)
    assert [delay.next() for _ in range(4)] == [2.0, 4.0, 5.0, 5.0]
    delay.reset()
    assert delay.next() == 2.0
