"""Arrangements of cards as scripts of pages send them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rpc.pages.arrangement import CHARACTERS, NAMES, SIZE, arrangement_of
from schema.errors import ConfigError


def sent(**fields: Any) -> bytes:
    return json.dumps({"hidden": [], "order": []} | fields).encode()


def test_names_are_kept_in_order_and_once() -> None:
    text = arrangement_of(sent(order=["motor/b", "motor/a", "motor/b"], hidden=["sensor/ü"]))
    assert text == '{"hidden":["sensor/ü"],"order":["motor/b","motor/a"]}'
    assert arrangement_of(text.encode()) == text


def test_the_largest_arrangement_is_accepted_and_fits() -> None:
    names = [f"{number}/".ljust(CHARACTERS, "x") for number in range(NAMES)]
    assert len(arrangement_of(sent(order=names, hidden=names))) < SIZE


@pytest.mark.parametrize(
    ("body", "path", "said"),
    [
        (b"", "", "empty"),
        (b"[]", "", "not an arrangement"),
        (b"{}", "", "not an arrangement"),
        (sent(more=1), "", "not an arrangement"),
        (sent(order="x"), "order", "not a list"),
        (sent(hidden=["a", 1]), "hidden.1", "not the name of a card"),
        (sent(hidden=[""]), "hidden.0", "not the name of a card"),
        (sent(order=["a\n"]), "order.0", "not the name of a card"),
        (sent(order=["x" * (CHARACTERS + 1)]), "order.0", f"1 to {CHARACTERS}"),
        (sent(order=[str(number) for number in range(NAMES + 1)]), "order", f"at most {NAMES}"),
        (b" " * SIZE + sent(), "", f"longer than {SIZE}"),
        (b"[" * 100_000, "", "nested"),
    ],
)
def test_anything_else_is_refused(body: bytes, path: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        arrangement_of(body)
    assert caught.value.path == path
    assert said in str(caught.value)
