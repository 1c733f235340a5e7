"""Variables in the text and placeholders in the document."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.document.machine import MachineDocument, decode_document, decode_document_value
from schema.substitution import fill_placeholders, has_placeholder, substitute


def document(**parts: Any) -> MachineDocument:
    result = decode_document_value(parts).document
    assert result is not None
    return result


def test_variables_inside_and_outside_of_strings() -> None:
    text, warnings = substitute('{"a": "x${A}y", "b": ${B}}', {"A": 'q"\\\n', "B": "[1, 2]"})
    assert warnings == ()
    assert json.loads(text) == {"a": 'xq"\\\ny', "b": [1, 2]}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$RPM", "60"),
        ("${RPM}", "60"),
        ("${RPM-33}", "60"),
        ("${RPM:-33}", "60"),
        ("${RPM=33}", "60"),
        ("${RPM+33}", "33"),
        ("${RPM:+33}", "33"),
        ("${EMPTY-33}", ""),
        ("${EMPTY:-33}", "33"),
        ("${EMPTY:=33}", "33"),
        ("${EMPTY+33}", "33"),
        ("${NONE-33}", "33"),
        ("${NONE:-33}", "33"),
        ("${NONE:-}", ""),
        ("${NONE+33}", ""),
        ("${NONE:-$RPM}", "60"),
        ("${NONE:-a${RPM}b$EMPTY}", "a60b"),
        ("${NONE:-${NONE:-7}}", "7"),
        ("${NONE:-a:b/c d.-=+}", "a:b/c d.-=+"),
        ("$$RPM $${RPM}", "$RPM ${RPM}"),
        ("^a$ $5 $ ${} ${1} ${A B} $_.", "^a$ $5 $ ${} ${1} ${A B} ."),
    ],
)
def test_variables_as_shells_write_them(text: str, value: str) -> None:
    result, _ = substitute(f'{{"a": "{text}"}}', {"RPM": "60", "EMPTY": ""})
    assert json.loads(result) == {"a": value}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${RPM:-33}", 33),
        ("${SET:-33}", 60),
        ("$SET", 60),
        ('${NAME:-"le}ft"}', "le}ft"),
        ('${NAME:-"$SET"}', "60"),
        ("${LIST:-[1, 2]}", [1, 2]),
    ],
)
def test_variables_in_place_of_a_value(text: str, value: object) -> None:
    result, warnings = substitute(f'{{"a": {text}, "b": 1}}', {"SET": "60"})
    assert json.loads(result) == {"a": value, "b": 1}
    assert warnings == ()


def test_a_dollar_in_a_key_is_not_a_variable() -> None:
    text, warnings = substitute('{"$schema": "x", "$set" : 1, "${KEY}": 2}', {"KEY": "k"})
    assert json.loads(text) == {"$schema": "x", "$set": 1, "k": 2}
    assert warnings == ()


def test_unset_variables_become_empty_with_one_warning_and_its_line() -> None:
    text = '{"a": "${HOMME}",\n\n "b": "${HOMME} ${X}"}'
    result, warnings = substitute(text, {"HOME": "/root"})
    assert result == '{"a": "",\n\n "b": " "}'
    assert [str(warning) for warning in warnings] == [
        "line 1: the environment has no HOMME: did you mean 'HOME'?",
        "line 3: the environment has no X: set it, or give a default: ${X:-...}",
    ]


def test_a_warning_does_not_repeat_a_part_of_a_password() -> None:
    result, warnings = substitute('{\n"payload": "pa$Sword"}', {})
    assert json.loads(result) == {"payload": "pa"}
    assert [str(warning) for warning in warnings] == [
        "line 2, column 15: the variable after this dollar sign is not set: "
        "set it in the environment, or write $$ for a dollar sign"
    ]


def test_placeholders_are_left_alone() -> None:
    text = '{"a": "${packages.ml_model.m} ${packages.m} ${environment.A} ${} ${1} ${x.y} ${A B}"}'
    assert substitute(text, {"A": "no", "packages": "no", "environment": "no"}) == (text, ())


def test_hostile_text_is_expanded_in_bounded_time() -> None:
    for text in ("${A-" * 20_000, '"' + "${A:-" * 20_000, "$" * 50_001, "${A-${" * 20_000):
        substitute(text, {})


def test_an_escaped_quote_does_not_end_a_string() -> None:
    text, _ = substitute(r'{"a\"${A}": "${A}"}', {"A": '"'})
    assert json.loads(text) == {'a""': '"'}


@given(st.text(), st.text(alphabet='"\\{}A :,n', max_size=30))
def test_a_value_never_breaks_out_of_its_string(value: str, text: str) -> None:
    whole = json.dumps({"k": text + "${A}" + text})
    result, _ = substitute(whole, {"A": value})
    assert json.loads(result) == {"k": (text + "${A}" + text).replace("${A}", value)}


@given(st.text(alphabet='{}AB"\\. \n', max_size=40))
def test_without_variables_nothing_changes(text: str) -> None:
    assert substitute(text, {})[0] == text


def test_fill_replaces_in_attributes_and_modules_only() -> None:
    doc = document(
        components=[
            {
                "name": "a",
                "type": "camera",
                "model": "m",
                "attributes": {
                    "p": "${packages.eyes}/x",
                    "q": [{"r": "${environment.A}-${packages.slam_map.m}"}],
                    "n": 1,
                },
            }
        ],
        modules=[{"name": "m", "executable_path": "${packages.module.m}/run", "env": {"A": "${environment.A}"}}],
        revision="${environment.A}",
    )
    packages = {("ml_model", "eyes"): "/p/eyes", ("slam_map", "m"): "/p/map", ("module", "m"): "/p/m"}
    filled, warnings = fill_placeholders(doc, {"A": "a"}, lambda kind, name: packages.get((kind, name)))
    assert warnings == ()
    assert filled.components[0].attributes == {"p": "/p/eyes/x", "q": [{"r": "a-/p/map"}], "n": 1}
    assert filled.modules[0].executable_path == "/p/m/run"
    assert filled.modules[0].env == {"A": "a"}
    assert filled.revision == "${environment.A}"
    assert doc.components[0].attributes["p"] == "${packages.eyes}/x"


def test_unresolved_placeholders_stay_and_each_is_reported() -> None:
    doc = document(
        services=[{"type": "vision", "attributes": {"a": ["${packages.x}"], "b": "${environment.HOMME}"}}],
    )
    filled, warnings = fill_placeholders(doc, {"HOME": "/"})
    assert filled == doc
    assert [str(warning) for warning in warnings] == [
        "services.0.attributes.a.0: ${packages.x} was not replaced: there is no package 'x': add it to 'packages'",
        "services.0.attributes.b: ${environment.HOMME} was not replaced: "
        "the environment has no 'HOMME': did you mean 'HOME'?",
    ]


def test_a_value_is_not_read_for_placeholders_again() -> None:
    doc = document(services=[{"type": "vision", "attributes": {"a": "${environment.A}"}}])
    filled, _ = fill_placeholders(doc, {"A": "${environment.A}"})
    assert filled.services[0].attributes == {"a": "${environment.A}"}


def test_the_reading_order() -> None:
    text, _ = substitute('{"services":[{"type":"${T}","attributes":{"a":"${environment.T}"}}]}', {"T": "vision"})
    result = decode_document(text.encode()).document
    assert result is not None
    filled, _ = fill_placeholders(result, {"T": "vision"})
    assert str(filled.services[0].api) == "rdk:service:vision"
    assert filled.services[0].attributes == {"a": "vision"}


def test_placeholders_are_seen_at_any_depth() -> None:
    value = "${packages.ml_model.m}/labels.txt"
    assert has_placeholder({"a": [{"b": value}]})
    assert has_placeholder((value,))
    assert not has_placeholder({"a": ["packages.ml_model.m", 1, None]})
