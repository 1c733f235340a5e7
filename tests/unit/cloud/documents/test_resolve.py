"""Merging of fragments into a document: a table of examples, and properties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud.documents.merge import merge
from cloud.documents.resolve import Fragment, FragmentProblemKind, Resolved, prefixed, resolve, version_of

MOTOR = {"name": "left", "api": "rdk:component:motor", "model": "fake", "attributes": {"board": "local", "rpm": 10}}
BOARD = {"name": "local", "api": "rdk:component:board", "model": "fake"}
BASE = {
    "name": "base",
    "api": "rdk:component:base",
    "model": "wheeled",
    "depends_on": ["left", "rdk:component:board/local"],
    "frame": {"parent": "left"},
}
ARM_ENTRY = {"name": "arm", "api": "rdk:component:arm", "model": "fake", "attributes": {"arm-model": "xarm6"}}
ARM = {"components": [ARM_ENTRY]}


def mods(fragment: str, *changes: dict[str, Any]) -> dict[str, Any]:
    return {"fragments": [fragment], "fragment_mods": [{"fragment_id": fragment, "mods": list(changes)}]}


def variable(name: str, **more: Any) -> dict[str, Any]:
    return {"$variable": {"name": name, **more}}


LIBRARY: dict[str, Mapping[str, Any]] = {
    "rover": {"components": [BOARD, MOTOR, BASE], "log": [{"pattern": "a", "level": "warn"}], "debug": True},
    "arm": ARM,
    "both": {"fragments": [{"id": "arm"}, "rover"]},
    "speedy": {"components": [{**MOTOR, "attributes": {"rpm": variable("rpm", default=5), "pin": variable("pin")}}]},
    "named": {"components": [{"name": variable("name"), "api": "rdk:component:motor", "model": "fake"}]},
    "self": {"fragments": ["self"], "components": [BOARD]},
    "ping": {"fragments": ["pong"]},
    "pong": {"fragments": ["ping"], "components": [BOARD]},
    "outer": {"fragments": [{"id": "speedy", "variables": {"rpm": variable("speed"), "pin": "1"}}]},
    **{f"deep{level}": {"fragments": [f"deep{level + 1}"]} for level in range(6)},
    "deep6": {"components": [BOARD]},
}


def find(subject: str, version: str) -> Fragment | None:
    if version == "old" and subject == "arm":
        return Fragment("arm", 1, {"components": []})
    return Fragment(subject, 2, LIBRARY[subject]) if subject in LIBRARY and not version else None


def merged(**document: Any) -> Resolved:
    return resolve(document, find)


def names(resolved: Resolved) -> list[str]:
    return [component["name"] for component in resolved.document.get("components", [])]


CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("nothing to merge", {"components": [BOARD]}, {"components": [BOARD]}),
    ("an id alone", {"fragments": ["arm"]}, ARM),
    ("an entry", {"fragments": [{"id": "arm"}]}, ARM),
    ("an older version", {"fragments": [{"id": "arm", "version": "old"}]}, {"components": []}),
    ("disabled", {"fragments": [{"id": "arm", "disabled": True}]}, {}),
    ("own entries win", {"fragments": ["arm"], "components": [{"name": "arm", "x": 1}]},
     {"components": [{"name": "arm", "x": 1}]}),
    ("own come last", {"fragments": ["arm"], "components": [BOARD]}, {"components": [*ARM["components"], BOARD]}),
    ("lists without names are joined", {"fragments": ["rover"], "log": [{"pattern": "b", "level": "info"}]},
     {**LIBRARY["rover"], "log": [{"pattern": "a", "level": "warn"}, {"pattern": "b", "level": "info"}]}),
    ("plain values: the document's", {"fragments": ["rover"], "debug": False}, {**LIBRARY["rover"], "debug": False}),
    ("set", mods("arm", {"$set": {"components.arm.attributes.x": 1}}),
     {"components": [{**ARM_ENTRY, "attributes": {"arm-model": "xarm6", "x": 1}}]}),
    ("unset", mods("arm", {"$unset": {"components.arm.attributes.arm-model": ""}}),
     {"components": [{**ARM_ENTRY, "attributes": {}}]}),
    ("mods in order", mods("rover", {"$set": {"debug": 1}}, {"$set": {"debug": 2}}), {**LIBRARY["rover"], "debug": 2}),
    ("a variable and a default", {"fragments": [{"id": "speedy", "variables": {"pin": "7"}}]},
     {"components": [{**MOTOR, "attributes": {"rpm": 5, "pin": "7"}}]}),
    ("a variable for a nested fragment", {"fragments": [{"id": "outer", "variables": {"speed": 3}}]},
     {"components": [{**MOTOR, "attributes": {"rpm": 3, "pin": "1"}}]}),
    ("a variable as a name", {"fragments": [{"id": "named", "variables": {"name": "wheel"}}]},
     {"components": [{"name": "wheel", "api": "rdk:component:motor", "model": "fake"}]}),
]  # fmt: skip


@pytest.mark.parametrize(("words", "document", "expected"), CASES, ids=[case[0] for case in CASES])
def test_merged(words: str, document: dict[str, Any], expected: dict[str, Any]) -> None:
    result = merged(**document)
    assert result.document == expected
    assert result.problems == ()


def test_nested_fragments_come_first_and_all_are_listed() -> None:
    result = merged(fragments=["both"])
    assert names(result) == ["arm", "local", "left", "base"]
    assert {item.id for item in result.used} == {"both", "arm", "rover"}
    assert version_of(7, result) == "7+arm-2.both-2.rover-2"
    assert version_of(7, merged(components=[])) == "7"


def test_a_prefix_changes_names_and_every_reference() -> None:
    result = merged(fragments=[{"id": "rover", "prefix": "front"}, {"id": "rover", "prefix": "rear"}])
    assert names(result) == [f"{item}-{name}" for item in ("front", "rear") for name in ("local", "left", "base")]
    _, motor, base = result.document["components"][3:]
    assert motor["attributes"] == {"board": "rear-local", "rpm": 10}
    assert base["depends_on"] == ["rear-left", "rdk:component:board/rear-local"]
    assert (base["frame"], base["api"], base["model"]) == ({"parent": "rear-left"}, "rdk:component:base", "wheeled")


PROBLEMS: list[tuple[dict[str, Any], FragmentProblemKind, str]] = [
    ({"fragments": ["nothing"]}, FragmentProblemKind.NO_ACCESS, "fragments.0: there is no fragment 'nothing'"),
    ({"fragments": [{"id": "arm", "version": "9"}]}, FragmentProblemKind.NO_ACCESS, "in version '9'"),
    ({"fragments": [7]}, FragmentProblemKind.CHILD_ID_INVALID, "fragments.0: an entry must be an id"),
    ({"fragments": [{"name": "arm"}]}, FragmentProblemKind.CHILD_ID_INVALID, "fragments.0"),
    ({"fragments": [{"id": "arm", "prefix": 1}]}, FragmentProblemKind.MISTAKE, "fragments.0.prefix: 1"),
    ({"fragments": ["arm", "arm"]}, FragmentProblemKind.MISTAKE, "needs a different `prefix`"),
    ({"fragments": ["self"]}, FragmentProblemKind.CYCLE, "self > self"),
    ({"fragments": ["ping"]}, FragmentProblemKind.CYCLE, "ping > pong > ping"),
    ({"fragments": ["deep0"]}, FragmentProblemKind.NESTING, "more than 5"),
    ({"fragments": ["speedy"]}, FragmentProblemKind.MISTAKE, "'pin' has neither"),
    ({"fragments": [{"id": "arm", "variables": {"speed": 1}}]},
     FragmentProblemKind.MISTAKE, "variables.speed: the fragment has"),
    ({"fragment_mods": [{"fragment_id": "arm", "mods": []}]},
     FragmentProblemKind.MISTAKE, "fragment_mods.0.fragment_id"),
    (mods("arm", {"$push": {}}), FragmentProblemKind.MISTAKE, "mods.0"),
    (mods("arm", {"$set": {"components.leg.x": 1}}), FragmentProblemKind.MISTAKE, "there is no components.leg"),
]  # fmt: skip


@pytest.mark.parametrize(("document", "kind", "text"), PROBLEMS, ids=[case[2][:30] for case in PROBLEMS])
def test_fragments_that_cannot_be_merged_are_left_out_with_an_error(
    document: dict[str, Any], kind: FragmentProblemKind, text: str
) -> None:
    result = merged(**document, services=[{"name": "kept"}])
    assert result.document["services"] == [{"name": "kept"}]
    assert result.problems[0].kind is kind
    assert text in str(result.problems[0])


def test_five_deep_is_allowed() -> None:
    assert names(merged(fragments=["deep2"])) == ["local"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(st.sampled_from(["fragments", "fragment_mods", "components", "log", "debug", "x"]), JSON)


@given(document=DOCUMENTS)
def test_any_document_is_resolved_or_reported(document: dict[str, Any]) -> None:
    result = resolve(document, find)
    assert not {"fragments", "fragment_mods"} & result.document.keys()


@given(below=DOCUMENTS, above=DOCUMENTS)
def test_the_including_document_wins(below: dict[str, Any], above: dict[str, Any]) -> None:
    result = merge(below, above)
    assert result.keys() == below.keys() | above.keys()
    for key, value in above.items():
        if not isinstance(value, dict | list):
            assert result[key] == value


@given(document=DOCUMENTS)
def test_a_prefix_keeps_the_structure(document: dict[str, Any]) -> None:
    assert prefixed(document, "p").keys() == document.keys()
