"""Reasons of close frames fit, and end with a whole character."""

from rpc.pages.closing import MAX_REASON, close_reason


def test_a_short_reason_is_unchanged() -> None:
    assert close_reason("the key was deleted") == "the key was deleted"


def test_a_long_reason_ends_before_a_character_that_does_not_fit() -> None:
    assert close_reason("é" * 100) == "é" * (MAX_REASON // 2)
