"""Incomplete JSON: parsed without an error, with a position for every path."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cloud.editing.catalogue import EditingContext, catalogue
from cloud.editing.completion import Choice, completions
from cloud.editing.documents import outline, written
from cloud.editing.findings import findings
from cloud.editing.tree import JsonNode, Lines, at, read, span_of, spot

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)
ROUGH = st.text(st.sampled_from('{}[]:,"\\ \n\tab1-ü😀'), max_size=60)


def nodes(node: JsonNode, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], JsonNode]]:
    results = [(path, node)]
    for member in node.members:
        if member.value is not None:
            results += nodes(member.value, (*path, member.name))
    for index, item in enumerate(node.items):
        results += nodes(item, (*path, str(index)))
    return results


@given(JSON, st.sampled_from([None, 1, 2]))
@example({"a": "\\", 'q"': ["]"]}, None)
def test_json_is_read_as_its_value(value: Any, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    root = read(text)
    assert root is not None
    assert root.value == value
    assert (root.start, root.end) == (0, len(text))
    for _, node in nodes(root):
        assert json.loads(text[node.start : node.end]) == node.value


@given(JSON)
def test_a_written_document_keeps_its_content_and_order(value: Any) -> None:
    text = written(value)
    assert json.loads(text) == value
    assert json.dumps(json.loads(text)) == json.dumps(value)


@given(ROUGH, st.integers(0, 60))
@example('{"a', 3)
@example('{"a":', 5)
@example('[{"b": [1, {"c": "', 18)
def test_any_text_is_read_with_positions_inside_it(text: str, cursor: int) -> None:
    cursor = min(cursor, len(text))
    root = read(text)
    outline(text)
    if root is None:
        return
    for path, node in nodes(root):
        assert 0 <= node.start < node.end <= len(text)
        start, end = span_of(root, ".".join(path))
        assert 0 <= start <= end <= len(text)
    result = spot(text, root, cursor)
    if result is not None:
        assert result.start <= cursor <= result.end
        assert at(root, result.path if result.key else result.path[:-1]) is not None
    answer = completions(text, cursor, EditingContext(), catalogue())
    assert not answer.choices or answer.start <= cursor <= answer.end
    for finding in findings(text, EditingContext()):
        assert 0 <= finding.start <= finding.end <= max(len(text), 1)
        assert finding.line >= 1
        assert finding.text


def test_deep_nesting_is_read() -> None:
    deep = "[" * 100_000
    assert read(deep) is not None
    assert findings(deep, EditingContext())
    assert completions(deep, 50_000, EditingContext(), catalogue()).choices == ()
    objects = '{"components":' * 50_000
    assert findings(objects, EditingContext())
    completions(objects, 100, EditingContext(), catalogue())
    assert json.dumps(outline(objects), default=str)


@pytest.mark.parametrize("key", ["²", "9" * 5000, "٣"])
def test_a_key_that_looks_like_an_index_is_a_key(key: str) -> None:
    for section in ("services", "log", "network", "x"):
        text = f'{{"{section}": {{"{key}": {{"name": }}}}}}'
        completions(text, len(text) - 4, EditingContext(), catalogue())
        findings(text, EditingContext(), partial=True)
    root = read('{"a": [1]}')
    assert root is not None
    assert at(root, ("a", key)) is None
    assert at(root, ("a", "0")) is not None


def test_lines_and_columns_count_from_one() -> None:
    assert Lines("ab\ncd").position(0) == (1, 1)
    assert Lines("ab\ncd").position(2) == (1, 3)
    assert Lines("ab\ncd").position(4) == (2, 2)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a", '"a"'),
        ("a.b", "1"),
        ("a.missing", "{"),
        ("l.1", "3"),
        ("l.9", "["),
        ("l", '"l"'),
        ("dotted.key", "7"),
        ("a.b.c", "1"),
        ("", "{"),
    ],
)
def test_paths_have_positions(path: str, expected: str) -> None:
    text = '{"a": {"b": 1}, "l": [2, 3], "dotted.key": 7}'
    root = read(text)
    assert root is not None
    start, end = span_of(root, path)
    assert text[start:end] == expected


def complete(marked: str, accepted: EditingContext | None = None) -> tuple[str, list[Choice]]:
    """Return the text after the first choice at `|` was accepted, and the choices."""
    cursor = marked.index("|")
    text = marked[:cursor] + marked[cursor + 1 :]
    answer = completions(text, cursor, accepted or EditingContext(), catalogue())
    if not answer.choices:
        return "", []
    return text[: answer.start] + answer.choices[0].insert + text[answer.end :], list(answer.choices)


MOTOR = '{"components": [{"name": "m", "api": "rdk:component:motor", "model": "gpio", "attributes": {%s}}]}'


@pytest.mark.parametrize(
    ("marked", "labels"),
    [
        ('{"comp|"}', ["components"]),
        ("{|}", ["components", "services", "fragments"]),
        ('{"components": [{"api": "rdk:component:motor", "model": "|"}]}', ["fake", "gpio", "gpiostepper"]),
        ('{"components": [{"model": "|", "api": "rdk:component:servo"}]}', ["fake", "gpio"]),
        ('{"components": [{"api": "|"}]}', ["rdk:component:arm", "rdk:component:audio_in"]),
        ('{"services": [{"api": "vis|"}]}', ["rdk:service:vision"]),
        (MOTOR % '"|"', ["board", "pins"]),
        (MOTOR % '"board": "b", "max|"', ["max_rpm", "max_power_pct"]),
        ('{"components": [{"name": "x", "depends_on": ["|"]}, {"name": "y"}, {"name": "z"}]}', ["y", "z"]),
        ('{"components": [{"name": "x", "frame": {"parent": "|"}}, {"name": "y"}]}', ["world", "y"]),
        ('{"debug": |}', ["true", "false"]),
        ('{"log": [{"level": "|"}]}', ["debug", "info", "warn", "error"]),
        ('{"modules": [{"type": "l|"}]}', ["local"]),
        ('{"triggers": [{"event": {"type": "part_o|"}}]}', ["part_online", "part_offline"]),
        ('{"components": [{"service_configs": [{"attributes": {"capture_methods": [{"|"}]}}]}]}', ["method"]),
        ('{"jobs": [{"resource": "|"}], "components": [{"name": "y"}]}', ["y"]),
        ('{"components": [{"model": "of:a:module", "attributes": {"|"}}]}', []),
        ('{"nonsense": {"|"}}', []),
        ('"|"', []),
        ('{"debug" | }', []),
    ],
)
def test_completion_offers_allowed_values(marked: str, labels: list[str]) -> None:
    _, choices = complete(marked)
    assert [choice.label for choice in choices][: len(labels)] == labels
    assert bool(choices) == bool(labels)


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ('{"de|"}', '{"debug": false}'),
        ('{"de|": true}', '{"debug": true}'),
        ("{|}", '{"components": []}'),
        ('{"components": [|]}', '{"components": [{"name": "", "api": "", "model": ""}]}'),
        ('{"components": [{"name": "a"}|]}', '{"components": [{"name": "a"}, {"name": "", "api": "", "model": ""}]}'),
        ('{"debug": true|}', '{"debug": true}'),
        ('{|"debug": true}', '{"components": [], "debug": true}'),
        ('{"components": [|{"name": "a"}]}', '{"components": [{"name": "", "api": "", "model": ""}, {"name": "a"}]}'),
        ('{"debug": | , "log": []}', '{"debug": true , "log": []}'),
        ('{"debug": t|}', '{"debug": true}'),
        ('{"log": [{"level": "e|"}]}', '{"log": [{"level": "error"}]}'),
        ('{"de|"log": []}', '{"debug": false, "log": []}'),
        ('{"|"log": []}', '{"components": [], "log": []}'),
        ('{"de|\n"log": []}', '{"debug": false, \n"log": []}'),
        ('{de|\n"log": []}', '{"debug": false, \n"log": []}'),
        ('{\n  "de|" "log": []}', '{\n  "debug": false,  "log": []}'),
        ('{"log": []\n"de|"}', '{"log": []\n, "debug": false}'),
        ('{"log": [{"level": "e|\n"pattern": "x"}]}', '{"log": [{"level": "error", \n"pattern": "x"}]}'),
        (
            '{"components": [{"name": "", "depends_on": ["c" "c|"]}, {"name": "c"}]}',
            '{"components": [{"name": "", "depends_on": ["c" , "c"]}, {"name": "c"}]}',
        ),
        ('{"de|": {"log": ":8080"}}', '{"debug": {"log": ":8080"}}'),
    ],
)
def test_an_accepted_completion_leaves_valid_json(marked: str, expected: str) -> None:
    assert complete(marked)[0] == expected
    json.loads(expected)


def test_fragments_are_offered_by_name() -> None:
    _, (choice,) = complete('{"fragments": [{"id": "|"}]}', EditingContext({"f-1": "base"}))
    assert (choice.label, choice.detail) == ("f-1", "base")
    _, choices = complete('{"components": [{"name": "a", "depends_on": ["|"]}]}', EditingContext({}, ("brought",)))
    assert [item.label for item in choices] == ["brought"]


def test_required_attributes_come_first_with_descriptions() -> None:
    _, choices = complete(MOTOR % "|")
    assert [choice.detail for choice in choices[:2]] == ["required", "required"]
    assert "required" not in [item.detail for item in choices[2:]]
    assert all(element.meaning for element in choices[:1])
    assert choices[0].insert[: choices[0].cursor] == '"board": "'


def test_the_most_used_keys_come_first() -> None:
    _, choices = complete(MOTOR % '"board": "b", "pins": {}, "|"')
    assert [choice.label for choice in choices[:3]] == ["max_rpm", "encoder", "ticks_per_rotation"]


@pytest.mark.parametrize("inside", ["y", r"\\"])
def test_a_long_string_takes_little_memory(inside: str) -> None:
    text = json.dumps({"x": 1})[:-1] + ', "y": "' + inside * 500_000 + '"}'
    tracemalloc.start()
    try:
        root = read(text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert root is not None
    assert (value := root.get("y")) is not None
    assert value.closed
    assert peak < 4 * len(text)
