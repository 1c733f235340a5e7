"""Failed attempts to log in, by peer."""

from __future__ import annotations

from rpc.access.attempts import Attempts


def test_the_peer_whose_period_began_first_is_forgotten() -> None:
    attempts = Attempts(failures=1, period=60, max_peers=2)
    attempts.failed("first", 0)
    attempts.failed("second", 1)
    attempts.failed("first", 70)  # a new period, which is younger than that of the second
    attempts.failed("third", 71)
    assert [attempts.wait(peer, 71) for peer in ("first", "second", "third")] == [59, 0, 60]


def test_more_failures_of_a_period_do_not_keep_a_peer_from_being_forgotten() -> None:
    attempts = Attempts(failures=1, period=60, max_peers=2)
    attempts.failed("first", 0)
    attempts.failed("second", 1)
    attempts.failed("first", 2)
    attempts.failed("third", 3)
    assert [attempts.wait(peer, 3) for peer in ("first", "second", "third")] == [0, 58, 60]
