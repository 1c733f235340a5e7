"""Comments in texts, and texts that are changed to mean another document."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloud.editing.catalogue import EditingContext
from cloud.editing.comments import check_written, without_comments
from cloud.editing.edits import rewritten
from cloud.editing.findings import findings
from cloud.editing.merging import same
from schema import ErrorKind, MachineError

ROVER = """{
  // the rover in the shed
  "components": [
    {
      "name": "left", /* the front */
      "attributes": {"max_rpm": 1e3, "zero": 1.0} // keep
    },
    {"name": "right"} // the other
  ],
  "debug" : true
}
"""


def plain(text: str) -> Any:
    return json.loads(without_comments(text))


def comments(text: str) -> list[str]:
    return re.findall(r"/\*.*?\*/|//[^\n]*", re.sub(r'"(?:[^"\\\n]|\\.)*"', "", text), re.DOTALL)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", "{}"),
        ('{"a": "//"} // b', '{"a": "//"}     '),
        ('{"a": "\\"/*"/* b\n */}', '{"a": "\\"/*"    \n   }'),
        ("// all", "      "),
        ("/* open", "       "),
        ('"open // text', '"open // text'),
        ('"open\n// text', '"open\n       '),
    ],
)
def test_comments_become_spaces(text: str, expected: str) -> None:
    assert without_comments(text) == expected


@given(st.text(alphabet='"\\/*\n a{', max_size=60))
def test_positions_and_lines_stay(text: str) -> None:
    result = without_comments(text)
    assert len(result) == len(text)
    assert [at for at, each in enumerate(result) if each == "\n"] == [
        at for at, each in enumerate(text) if each == "\n"
    ]
    assert without_comments(result) == result


def test_findings_are_where_the_text_has_them() -> None:
    text = '{ // first\n  "debug": 1 /* no */ }'
    (finding,) = findings(text, EditingContext())
    assert (finding.line, finding.column, text[finding.start : finding.end]) == (2, 12, "1")
    assert findings('{"debug": true} // it works', EditingContext()) == ()


@pytest.mark.parametrize("text", ["// \0", "// \ud800"])
def test_a_comment_that_no_database_keeps_is_refused(text: str) -> None:
    with pytest.raises(MachineError) as caught:
        check_written(text)
    assert caught.value.kind is ErrorKind.INVALID


def test_one_value_changes_and_all_else_stays() -> None:
    document = plain(ROVER)
    document["components"][0]["attributes"]["max_rpm"] = 60
    assert rewritten(ROVER, document) == ROVER.replace("1e3", "60")


def test_entries_are_added_and_removed_with_their_lines() -> None:
    document = plain(ROVER)
    document["components"].append({"name": "new"})
    added = rewritten(ROVER, document)
    assert added == ROVER.replace(
        '{"name": "right"} // the other', '{"name": "right"}, // the other\n    {\n      "name": "new"\n    }'
    )
    del document["components"][0], document["debug"]
    removed = rewritten(added, document)
    assert plain(removed) == document
    assert "// the rover in the shed" in removed
    assert "// the other" in removed


def test_a_text_of_another_shape_is_replaced() -> None:
    assert rewritten("", {"a": 1}) == '{\n  "a": 1\n}\n'
    assert rewritten('{"a": 1, "a": 2}', {"a": 3}) == '{\n  "a": 3\n}'
    assert rewritten("{ // empty\n}", {"a": [1]}) == '{ // empty\n  "a": [1]\n}'


WORDS = st.sampled_from(["a", "b", "name", "c d", "é"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "//", "/* x */", 'q"', "text"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(WORDS, VALUES, max_size=4)


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, Any]:
    """A document as text with comments and white space in every gap."""
    document = draw(DOCUMENTS)
    gaps = iter(
        draw(st.lists(st.sampled_from(["", " ", "\n  ", " /* c */ ", " // d\n", "\n"]), min_size=200, max_size=200))
    )

    def write(value: Any) -> str:
        if isinstance(value, dict):
            parts = [
                f"{next(gaps)}{json.dumps(key)}{next(gaps)}:{next(gaps)}{write(each)}{next(gaps)}"
                for key, each in value.items()
            ]
            return "{" + (",".join(parts) or next(gaps)) + "}"
        if isinstance(value, list):
            return "[" + (",".join(f"{next(gaps)}{write(each)}{next(gaps)}" for each in value) or next(gaps)) + "]"
        return json.dumps(value)

    return next(gaps) + write(document) + next(gaps), document


@given(texts(), DOCUMENTS)
@settings(max_examples=300)
def test_any_text_is_changed_to_any_document(text: tuple[str, Any], document: Any) -> None:
    written, before = text
    assert same(plain(written), before)
    assert rewritten(written, before) == written
    assert same(plain(rewritten(written, document)), document)


@given(texts(), st.data())
@settings(max_examples=300)
def test_comments_outside_of_the_change_stay(text: tuple[str, Any], data: st.DataObject) -> None:
    written, before = text
    document = copy.deepcopy(before)
    key = data.draw(WORDS)
    if key in document:
        return
    document[key] = data.draw(VALUES)
    result = rewritten(written, document)
    assert same(plain(result), document)
    assert comments(result) == comments(written) or not isinstance(before, dict)
