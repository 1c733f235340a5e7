"""Findings by line, differences without secrets, and merging without data loss."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud.editing.catalogue import EditingContext, catalogue
from cloud.editing.documents import model_named, outline, required, with_resource, written
from cloud.editing.findings import findings
from cloud.editing.merging import ABSENT, merged, same
from cloud.editing.review import review
from schema.document.machine import KEYS, decode_document_value
from schema.errors import MachineError

ROOT = Path(__file__).parents[4]
BLOCK = re.compile(r"^```json\n(.*?)^```", re.MULTILINE | re.DOTALL)
SENSOR = {"name": "heat", "api": "rdk:component:sensor", "model": "fake"}


def test_the_models_are_those_of_this_version() -> None:
    spec = importlib.util.spec_from_file_location("gen_cloud_models", ROOT / "tools" / "gen_cloud_models.py")
    assert spec is not None
    assert spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    current = (ROOT / "models" / "models.json").read_text() == generator.page()
    assert current, "run make generate"


def test_every_section_of_the_document_is_known() -> None:
    properties = set(catalogue().document["properties"])
    assert set(KEYS) - properties == {"cloud", "revision", "processes"}  # set by the cloud; not supported


# ---- findings


def reported(text: str, accepted: EditingContext | None = None, **more: bool) -> list[tuple[str, int, str]]:
    return [
        (finding.severity, finding.line, finding.text)
        for finding in findings(text, accepted or EditingContext(), **more)
    ]


ACME = {"name": "acme", "type": "registry", "module_id": "acme:robots", "version": "1.0.0"}


def resource(*, modules: Any = (), **more: Any) -> str:
    document: dict[str, Any] = {"components": [{**SENSOR, **more}]}
    return json.dumps({**document, "modules": modules} if modules else document, indent=1)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('{\n "a": 1,\n}', 3, "remove the comma"),
        ('{\n "debug": 1\n}', 2, "true or false"),
        ('{"components": [\n{"name": "x y", "api": "rdk:component:sensor", "model": "fake"}]}', 2, "x y"),
        (resource(model="fakee"), 6, "did you mean 'fake'?"),
        (resource(model="gpio", api="rdk:component:motor"), 3, "'board' is missing in its attributes"),
        (resource(model="gpio", api="rdk:component:motor", attributes={}), 7, "'board' is missing"),
        (resource(depends_on=["heet"]), 8, "no resource 'heet' is configured"),
        (resource(attributes={"nix": 1}), 8, "unknown key"),
        ('{\n"components": {}\n}', 2, "a list"),
        ("[]", 1, "object"),
        ("", 1, "empty"),
        ('{"debug": true,\n"debug": false}', 2, "more than once"),
        ('{"debugg": 1}', 1, "did you mean 'debug'"),
    ],
)
def test_errors_are_reported_at_their_lines(text: str, line: int, words: str) -> None:
    result = reported(text)
    assert any(at == line and words in said for _, at, said in result), result


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        resource(),
        resource(model="acme:robots:laser", attributes={"anything": [1]}, modules=[ACME]),
        resource(api="acme:component:laser", model="acme:robots:laser", modules=[ACME]),
        '{"fragments": [{"id": "x"}], "fragment_mods": [], "triggers": []}',
        json.dumps({"fragments": ["x"], "components": [{**SENSOR, "depends_on": ["of-the-fragment"]}]}),
        json.dumps({"remotes": [{"name": "r", "address": "h:1"}], "components": [{**SENSOR, "depends_on": ["r:arm"]}]}),
        json.dumps({"services": [{"api": "rdk:service:data_manager", "attributes": {"capture_dir": "captured"}}]}),
    ],
)
def test_valid_documents_and_models_of_modules_have_no_errors(text: str) -> None:
    assert reported(text) == []


def test_variables_of_fragments_may_have_any_value() -> None:
    variable = {"$variable": {"name": "n"}}
    text = json.dumps({"components": [{**SENSOR, "name": variable, "attributes": variable, "depends_on": ["x"]}]})
    assert reported(text, partial=True) == []
    assert reported(json.dumps({"debug": 1}), partial=True)


def published() -> Iterator[Any]:
    for path in sorted(ROOT.glob("examples/**/*.json")):
        yield pytest.param(json.loads(path.read_text()), id=str(path.relative_to(ROOT)))
    for path in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]:
        for number, block in enumerate(BLOCK.findall(path.read_text()) if "_build" not in path.parts else ()):
            try:
                value = json.loads(block)
            except ValueError:
                continue  # an abbreviated example
            if isinstance(value, dict) and isinstance(value.get("components", value.get("services")), list):
                yield pytest.param(value, id=f"{path.relative_to(ROOT)}, block {number + 1}")


@pytest.mark.parametrize("document", list(published()))
def test_published_examples_have_no_errors(document: Any) -> None:
    wrong = [
        finding.text
        for finding in findings(json.dumps(document), EditingContext(), partial=True)  # may be part of a configuration
        if finding.severity == "error" and decode_document_value(document).problems == ()
    ]
    assert wrong == []


def test_every_model_can_be_added() -> None:
    """The template's values have the right kinds: the only findings are required values that a person must enter."""
    for entry in catalogue().models:
        document = with_resource({"components": [], "services": []}, entry, "x")
        result = findings(json.dumps(document), EditingContext())
        assert [item for item in result if "is missing in its attributes" in item.text] == [], entry
        assert set(required(entry)) == set(document[entry.section][0]["attributes"])


def test_a_used_or_invalid_name_is_rejected() -> None:
    entry = model_named(catalogue(), "rdk:component:sensor fake")
    for name in ("heat", "", "a b"):
        with pytest.raises(MachineError):
            with_resource({"components": [SENSOR]}, entry, name)
    with pytest.raises(MachineError, match="no model"):
        model_named(catalogue(), "rdk:component:sensor nonsense")


# ---- differences


def test_a_difference_names_what_changed_and_hides_secrets() -> None:
    old = {"components": [{**SENSOR, "attributes": {"password": "correct horse", "n": 1}}], "fragments": []}
    new = {"components": [{**SENSOR, "attributes": {"password": "battery staple", "n": 2}}], "debug": True}
    result = review(old, new)
    shown = repr(result)
    assert "correct" not in shown
    assert "battery" not in shown
    (heat, debug, fragments) = result.groups
    assert (heat.sign, heat.title) == ("~", "components.heat")
    assert heat.lines == ("attributes.password: changed (hidden)", "attributes.n: 1 -> 2")
    assert (debug.title, fragments.sign, fragments.title) == ("debug", "-", "fragments")
    assert result.summary == "1 removed, 2 changed"
    assert [line.text.strip() for line in result.lines if line.sign == "+"] == ['"n": 2', '"debug": true']


def test_a_secret_is_hidden_wherever_it_is_repeated() -> None:
    old = {"components": [{**SENSOR, "attributes": {"password": "correct horse"}}]}
    new = {"components": [{**SENSOR, "attributes": {"password": "", "note": "it was correct horse"}}]}
    assert "correct horse" not in repr(review(old, new))


def test_a_difference_of_a_secret_only() -> None:
    old, new = ({"agent": {"secret": text}} for text in ("one-secret", "two-secret"))
    result = review(old, new)
    assert result
    assert not result.lines
    assert not review(old, old)


@given(st.lists(st.sampled_from("abcdef"), max_size=12), st.lists(st.sampled_from("abcdef"), max_size=12))
def test_lines_of_a_difference_are_those_of_both_texts(old: list[str], new: list[str]) -> None:
    documents = [{"agent": {"x": [{"k": word} for word in words]}} for words in (old, new)]
    before, after = (written(document).splitlines() for document in documents)
    for line in review(*documents).lines:
        if line.sign == "@":
            continue
        assert line.old is None or before[line.old - 1] == line.text
        assert line.new is None or after[line.new - 1] == line.text
        assert (line.old is None, line.new is None) == (line.sign == "+", line.sign == "-")


# ---- merging

VALUES = st.recursive(
    st.booleans() | st.integers(0, 2),
    lambda inner: (
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
        | st.lists(st.fixed_dictionaries({"name": st.sampled_from("xyz"), "v": inner}), max_size=3)
    ),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


@given(DOCUMENTS, DOCUMENTS)
def test_an_unchanged_side_does_not_win_a_merge(base: Any, changed: Any) -> None:
    for theirs, mine in ((changed, base), (base, changed), (changed, changed)):
        result = merged(base, theirs, mine)
        assert same(result.document, changed)
        assert result.conflicts == ()


@given(DOCUMENTS, DOCUMENTS, DOCUMENTS)
def test_a_merge_keeps_all_changes(base: Any, theirs: Any, mine: Any) -> None:
    """Every top-level change of either side is in the result or reported as a conflict."""
    content = merged(base, theirs, mine)
    for key in {*base, *theirs, *mine}:
        old, other, own = (item.get(key, ABSENT) for item in (base, theirs, mine))
        result = content.document.get(key, ABSENT)
        results = [conflict for conflict in content.conflicts if conflict.path.partition(".")[0] == key]
        if same(old, own):
            assert same(result, other)
        elif same(old, other) or same(own, other):
            assert same(result, own)
        elif not results:
            assert not same(result, old) or same(own, other)
    swapped = merged(base, mine, theirs)
    assert {element.path for element in swapped.conflicts} == {entry.path for entry in content.conflicts}


def test_entries_are_merged_by_name() -> None:
    base = {"components": [{"name": "a", "v": 1}, {"name": "b", "v": 1}]}
    theirs = {"components": [{"name": "b", "v": 2}, {"name": "c", "v": 1}]}  # a removed, b changed, c added
    mine = {"components": [{"name": "d", "v": 1}, {"name": "a", "v": 1}, {"name": "b", "v": 1, "w": 3}]}
    result = merged(base, theirs, mine)
    assert result.conflicts == ()
    assert result.document == {
        "components": [{"name": "d", "v": 1}, {"name": "b", "v": 2, "w": 3}, {"name": "c", "v": 1}]
    }


def test_a_removal_conflicts_with_a_change() -> None:
    base = {"components": [{"name": "a", "v": 1}]}
    (conflict,) = merged(base, {"components": []}, {"components": [{"name": "a", "v": 2}]}).conflicts
    assert (conflict.path, conflict.theirs) == ("components.a", ABSENT)


class Text(str):
    """A string that counts the characters that its own methods read."""

    read = 0

    def count(self, sub: str, start: Any = 0, end: Any = None) -> int:
        self.read += len(super().__getitem__(slice(start, end)))
        return super().count(sub, start, end)

    def __getitem__(self, key: Any) -> str:
        result = super().__getitem__(key)
        self.read += len(result)
        return result


def steps(count: int) -> int:
    """Return how many lines of Python `outline` executes for `count` entries, plus how many characters it reads."""
    text = Text(
        json.dumps({"components": [{"name": f"c{number:04}", "notes": "x"} for number in range(count)]}, indent=1)
    )
    lines = 0

    def trace(_frame: Any, event: str, _what: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        result = outline(text)
    finally:
        sys.settrace(before)
    assert len(result) == count
    return lines + text.read


def test_the_steps_for_an_outline_are_in_proportion_to_the_document() -> None:
    small, large = steps(30), steps(300)
    assert large < 11 * small
