"""Changing single values of a configuration by path."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud.documents.paths import LONGEST, changed, values_of
from schema.errors import ErrorKind, MachineError

DOCUMENT = {
    "debug": True,
    "components": [{"name": "arm", "attributes": {"speed": 1}}, {"name": "eye"}],
    "log": [{"pattern": "a", "level": "info"}],
}


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("debug", False, {**DOCUMENT, "debug": False}),
        ("debug", None, {key: DOCUMENT[key] for key in ("components", "log")}),
        ("network.bind_address", ":8081", {**DOCUMENT, "network": {"bind_address": ":8081"}}),
        (
            "components.arm.attributes.speed",
            2,
            {**DOCUMENT, "components": [{"name": "arm", "attributes": {"speed": 2}}, {"name": "eye"}]},
        ),
        (
            "components.1.attributes",
            {"a": 1},
            {**DOCUMENT, "components": [DOCUMENT["components"][0], {"name": "eye", "attributes": {"a": 1}}]},
        ),
        ("components.arm", None, {**DOCUMENT, "components": [{"name": "eye"}]}),
        ("log.0.level", "debug", {**DOCUMENT, "log": [{"pattern": "a", "level": "debug"}]}),
        ("missing", None, DOCUMENT),
    ],
)
def test_a_value_is_set_at_its_path(path: str, value: Any, expected: Any) -> None:
    assert changed(DOCUMENT, path, value) == expected


@pytest.mark.parametrize(
    ("path", "kind", "words"),
    [
        ("", ErrorKind.INVALID, "not a valid path"),
        ("a..b", ErrorKind.INVALID, "not a valid path"),
        ("components.leg.attributes", ErrorKind.NOT_FOUND, "components.leg: existing names: arm, eye"),
        ("components.2", ErrorKind.NOT_FOUND, "components.2"),
        ("debug.x", ErrorKind.INVALID, "debug is True"),
    ],
)
def test_an_invalid_path_is_named(path: str, kind: ErrorKind, words: str) -> None:
    with pytest.raises(MachineError) as caught:
        changed(DOCUMENT, path, 1)
    assert caught.value.kind is kind
    for word in words.split(": "):
        assert word in str(caught.value)


words = st.text(st.characters(categories=["Ll"]), min_size=1, max_size=4)


@given(st.dictionaries(words, st.dictionaries(words, st.integers())), words, words, st.integers())
def test_only_the_value_at_the_path_changes(
    document: dict[str, dict[str, int]], first: str, second: str, value: int
) -> None:
    before = {key: dict(inner) for key, inner in document.items()}
    after = changed(document, f"{first}.{second}", value)
    assert after[first][second] == value
    assert document == before
    assert changed(after, f"{first}.{second}", None)[first] == {
        key: left for key, left in before.get(first, {}).items() if key != second
    }


def test_values_are_listed_with_the_paths_that_change_them() -> None:
    values = values_of({**DOCUMENT, "a.b": 1, "none": None}, 10)
    assert values == [
        ("debug", True),
        ("components.arm.name", "arm"),
        ("components.arm.attributes.speed", 1),
        ("components.eye.name", "eye"),
    ]
    assert all(values_of(changed(DOCUMENT, path, 7), 10).count((path, 7)) for path, _ in values if "name" not in path)
    assert values_of(DOCUMENT, 2) == values[:2]
    assert values_of({"a" * LONGEST: 1, "b" * (LONGEST - 1): {"c": 1}, "d": 1}, 10) == [("a" * LONGEST, 1), ("d", 1)]
