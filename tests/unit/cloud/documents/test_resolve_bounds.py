"""Fragments that expand beyond the limits are refused, in time proportional to what is stored."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud.documents.merge import merge, name_of
from cloud.documents.resolve import MAX_MODS, MAX_USES, Fragment, FragmentProblemKind, Resolved, resolve, uses


def merged(fragments: Mapping[str, Any], *entries: Any, **document: Any) -> Resolved:
    def find(subject: str, version: str) -> Fragment | None:
        return Fragment(subject, 1, fragments[subject]) if subject in fragments else None

    return resolve({"fragments": list(entries), **document}, find)


def many(of: str, count: int = 100) -> list[dict[str, Any]]:
    return [{"id": of, "prefix": f"p{number}"} for number in range(count)]


def problems_of(result: Resolved) -> set[tuple[FragmentProblemKind, str]]:
    return {(problem.kind, problem.text) for problem in result.problems}


ARM = {"components": [{"name": "arm"}]}


def test_exponentially_nested_fragments_are_abandoned_early() -> None:
    nested = {"f0": ARM, **{f"f{depth}": {"fragments": many(f"f{depth - 1}")} for depth in range(1, 5)}}
    result = merged(nested, *many("f4"))  # would expand to 10,000,000,000 arms
    assert len(result.document["components"]) <= MAX_USES
    ((kind, text),) = problems_of(result)
    assert kind is FragmentProblemKind.NESTING
    assert "more than 1000 fragments or 100000 values" in text


def test_entries_are_processed_a_limited_number_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0

    def counted(entry: Any) -> str | None:
        nonlocal looked
        looked += 1
        return name_of(entry)

    monkeypatch.setattr("cloud.documents.merge.name_of", counted)
    arms = {"components": [{"name": f"arm{number}"} for number in range(20)]}
    result = merged({"f": arms}, *many("f", 200))
    assert len(result.document["components"]) == 4000
    assert looked <= 3 * 4000


ENTRIES = st.lists(st.integers(0, 3) | st.fixed_dictionaries({"name": st.sampled_from("ab"), "x": st.integers(0, 2)}))
VALUES = st.recursive(st.integers(0, 3) | ENTRIES, lambda inner: st.dictionaries(st.sampled_from("abc"), inner))


@given(st.lists(st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3), max_size=4))
def test_many_fragments_merge_like_one_after_another(documents: list[dict[str, Any]]) -> None:
    assert merge(*documents) == reduce(merge, documents, {})
    assert merge(*documents[:1]) == (documents[0] if documents else {})


def test_exponentially_growing_variables_are_abandoned_early() -> None:
    variable = {"$variable": {"name": "x"}}
    nested: dict[str, Any] = {"f0": {"log": [variable] * 100}}
    for depth in range(1, 5):
        use = {"id": f"f{depth - 1}", "variables": {"x": [variable] * 100}}
        nested[f"f{depth}"] = {"fragments": [use]}
    result = merged(nested, {"id": "f4", "variables": {"x": "text"}})
    assert {kind for kind, _ in problems_of(result)} == {FragmentProblemKind.NESTING}
    assert merged(nested, {"id": "f1", "variables": {"x": "text"}}).document == {"log": [["text"] * 100] * 100}


@pytest.mark.parametrize("document", [{"log": ["a" * 100_000]}, {"log": [{"a" * 100_000: 1}]}])
def test_long_texts_count_towards_the_limit(document: dict[str, Any]) -> None:
    result = merged({"f": document}, *many("f", 200))
    assert {kind for kind, _ in problems_of(result)} == {FragmentProblemKind.NESTING}
    assert len(result.document["log"]) == 100_000 // (100_000 // 32 + 4) < 200


def test_mods_and_prefixes_are_limited() -> None:
    mod = {"$set": {"components.arm.x": 1}}
    more = [{"fragment_id": "f", "mods": [mod] * (MAX_MODS + 1)}]
    result = merged({"f": ARM}, "f", fragment_mods=more)
    assert [problem.text for problem in result.problems] == ["there are more than 1000 mods"]
    assert not merged({"f": ARM}, "f", fragment_mods=[{"fragment_id": "f", "mods": [mod] * MAX_MODS}]).problems
    result = merged({"f": ARM}, {"id": "f", "prefix": "p" * 101})
    assert [(item.kind, item.path) for item in result.problems] == [(FragmentProblemKind.MISTAKE, "fragments.0.prefix")]


def test_fragments_for_a_thousand_machines_are_merged() -> None:
    result = merged({"f": ARM}, *many("f", MAX_USES))
    assert not result.problems
    assert len(result.document["components"]) == MAX_USES


def test_an_invalid_id_is_not_cached() -> None:
    assert uses({"fragments": ["a", {"id": "b" * 101, "disabled": True}, {"id": "c", "disabled": True}]}) == {"a", "c"}
