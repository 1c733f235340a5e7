"""Results that are heavy: their conversion leaves the event loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec import Struct

from cloud.documents.pieces import MAX_EXAMINED, SMALL, heavy


@dataclass(frozen=True, slots=True)
class Fields:
    """A dataclass."""

    text: str
    more: Any = None


class Message(Struct, frozen=True):
    """A Struct."""

    text: str
    more: Any = None


@pytest.mark.parametrize("make", [Fields, Message, lambda text, more: {"text": text, "more": more}])
def test_nested_values_of_a_result_are_counted(make: Callable[[str, Any], Any]) -> None:
    many, long = MAX_EXAMINED // 3, "x" * (SMALL + 1)
    assert not heavy([make("x", None)])
    assert not heavy(make("x" * SMALL, None))
    assert heavy(make(long, None))
    assert heavy(make("x", make(long, None)))
    assert heavy([make("x", None) for _ in range(many)])
    assert heavy(make("x", ["x"] * MAX_EXAMINED))


@pytest.mark.parametrize("result", [None, True, SMALL, "x" * SMALL, b"x" * SMALL * 10, [1.0] * 10, Message])
def test_plain_values_are_light(result: Any) -> None:
    assert not heavy(result)


def test_a_size_is_compared_with_the_limit_of_small_input() -> None:
    assert heavy(SMALL + 1)
