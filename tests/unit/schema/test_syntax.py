"""Errors in JSON text: the position, the line with a caret, a suggestion, and no secrets."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.decoding.syntax import JSONSyntaxError, parse_json, repeated_keys
from schema.errors import ConfigError


def error(text: str | bytes) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        parse_json(text if isinstance(text, bytes) else text.encode())
    return caught.value


@pytest.mark.parametrize(
    ("text", "line", "column", "remedy"),
    [
        ('{"a": 1,}', 1, 9, "remove the comma"),
        ('{"a": [1,\n  2,\n]}', 3, 1, "remove the comma"),
        ("{'a': 1}", 1, 2, "double quotes"),
        ("{\"a\": 'b'}", 1, 7, "double quotes"),
        ('{\n  // note\n  "a": 1}', 2, 3, "remove the comment"),
        ('{"a": 1 /* note */}', 1, 9, "remove the comment"),
        ('# note\n{"a": 1}', 1, 1, "remove the comment"),
        ('{"a": True}', 1, 7, "write true, false, null"),
        ('{"a": None}', 1, 7, "write true, false, null"),
        ("[1, None]", 1, 5, "write true, false, null"),
        ('{"a": NaN}', 1, 7, "write true, false, null"),
        ('{"a": 1 "b": 2}', 1, 9, "comma is probably missing"),
        ('{"a" 1}', 1, 6, "colon"),
        ("{a: 1}", 1, 2, "double quotes"),
        ('{"a": "b\n"}', 1, 9, "close the string"),
        ('{"a": "C:\\x"}', 1, 11, "backslash"),
        ('{"a": 1} x', 1, 10, "end of the document"),
        ('{"a": {"b": 1}', 1, 15, "close every"),
    ],
)
def test_place_and_remedy(text: str, line: int, column: int, remedy: str) -> None:
    result = error(text)
    assert isinstance(result, JSONSyntaxError)
    assert (result.line, abs(result.column - column) <= 1) == (line, True)
    assert remedy in result.remedy
    assert str(result).endswith(result.excerpt)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("[" * 100_000, "nested too deeply"),
        ("[" * 600 + "]" * 600, "0.0.0.0.0: the JSON is nested too deeply: more than 32 levels of objects and lists"),
        ('{"a":' * 33 + "1" + "}" * 33, "a.a.a.a.a: the JSON is nested too deeply"),
        ("1e999", "too large"),
        (b'{"a": "\xff"}', "UTF-8"),
        (b"\xff", "UTF-8"),
    ],
)
def test_other_reasons(text: str | bytes, reason: str) -> None:
    assert reason in str(error(text))


def test_the_caret_stands_under_the_mistake() -> None:
    result = error('{\n  "näme": "left", "b": [1 2]\n}')
    assert isinstance(result, JSONSyntaxError)
    line, caret = result.excerpt.split("\n")
    assert line[caret.index("^")] == "2"
    assert '"näme": "..."' in line


def test_a_long_line_is_cut_around_the_mistake() -> None:
    result = error("[" + "1, " * 1000 + "x" + ", 1" * 1000 + "]")
    assert isinstance(result, JSONSyntaxError)
    line, caret = result.excerpt.split("\n")
    assert len(line) <= 120
    assert line[caret.index("^")] == "x"


def test_a_byte_order_mark_is_skipped() -> None:
    assert parse_json(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


SECRET = "hunter2hunter2"


@pytest.mark.parametrize(
    "text",
    [
        '{"secret": "%s", "a": [1,]}',
        '{"a": [1,], "secret": "%s"}',
        '{"secret": "%s"',
        '{"secret": "%s\n}',
        '{"secret": "x%s\\q"}',
        "{\"secret\": '%s'}",
        '{"secret": %s}',
        '{"secret": "a\\"%s" 1}',
        '{"id": {"x": "%s" "y"}}',
        '["%s" 1]',
    ],
)
def test_values_are_never_shown(text: str) -> None:
    assert SECRET not in str(error(text % SECRET))


@given(st.binary(max_size=60) | st.text(alphabet="{}[]\":,\\'/ \n01aetrufalsnxu#.-", max_size=60).map(str.encode))
def test_any_bytes_give_a_value_or_an_error_with_its_place(data: bytes) -> None:
    try:
        parse_json(data)
    except JSONSyntaxError as failure:
        problem = failure
    except ConfigError:
        return
    else:
        return
    assert 1 <= problem.line <= data.count(b"\n") + 1
    line, caret = problem.excerpt.split("\n")
    assert re.fullmatch(r" *\^", caret)
    assert len(caret) <= len(line) + 1


@pytest.mark.parametrize(
    ("text", "column"),
    [
        (r'{"a": "\ud800"}', 8),
        (r'{"a": "\udc00"}', 8),
        (r'{"a": "\ud83dx"}', 8),
        (r'["\ud83d\ude00", "\\\\", "\ud83d\u0041"]', 27),
    ],
)
def test_half_of_a_surrogate_pair(text: str, column: int) -> None:
    result = error(text)
    assert isinstance(result, JSONSyntaxError)
    assert "surrogate pair is incomplete" in result.reason
    assert result.column == column


def test_a_whole_surrogate_pair_and_an_escaped_backslash_are_fine() -> None:
    assert parse_json(rb'["\ud83d\ude00", "\\ud800"]') == ["\U0001f600", "\\ud800"]


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("{}", ()),
        ('{"a": 1, "b": 1}', ()),
        ('{"a": 1, "a": 1}', ("a",)),
        ('{"a": 1, "a": 1, "a": 1}', ("a",)),
        ('{"a": 1, "b": 1, "a": 1}', ("a",)),
        (r'{"a": 1, "\u0061": 1}', ("a",)),
        ('[{"x": {"b": 1, "c": {}, "b": 2, "c": 3}}, {"d": [], "d": 1}]', ("0.x.b", "0.x.c", "1.d")),
        ('{"a": {"b": 1, "b": 2}, "a": {"c": 1}}', ("a",)),
        ("1" * 5000, ()),
    ],
)
def test_repeated_keys(text: str, paths: tuple[str, ...]) -> None:
    assert repeated_keys(text.encode()) == paths
