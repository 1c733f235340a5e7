"""Variables in the text and placeholders in the document."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from schema.machine import MachineDocument, decode, decode_value
from schema.substitution import fill, substitute


def document(**parts: Any) -> MachineDocument:
    found = decode_value(parts).document
    assert found is not None
    return found


def test_variables_inside_and_outside_of_strings() -> None:
    text, warnings = substitute('{"a": "x${A}y", "b": ${B}}', {"A": 'q"\\\n', "B": "[1, 2]"})
    assert warnings == ()
    assert json.loads(text) == {"a": 'xq"\\\ny', "b": [1, 2]}


def test_what_is_not_set_stays_with_one_warning_and_its_line() -> None:
    text = '{"a": "${HOMME}",\n\n "b": "${HOMME} ${X}"}'
    result, warnings = substitute(text, {"HOME": "/root"})
    assert result == text
    assert [str(warning) for warning in warnings] == [
        "line 1: the environment has no HOMME: did you mean 'HOME'?",
        "line 3: the environment has no X: known are HOME",
    ]


def test_placeholders_and_other_dollars_are_left_alone() -> None:
    text = '{"a": "${packages.ml_model.m} ${packages.m} ${environment.A} $A ${} ${1} $${x.y} ${A B}"}'
    assert substitute(text, {"A": "no", "packages": "no", "environment": "no"}) == (text, ())


def test_an_escaped_quote_does_not_end_a_string() -> None:
    text, _ = substitute(r'{"a\"${A}": "${A}"}', {"A": '"'})
    assert json.loads(text) == {'a""': '"'}


@given(st.text(), st.text(alphabet='"\\{}$A :,n', max_size=30))
def test_a_value_never_breaks_out_of_its_string(value: str, text: str) -> None:
    whole = json.dumps({"k": text + "${A}" + text})
    result, _ = substitute(whole, {"A": value})
    assert json.loads(result) == {"k": (text + "${A}" + text).replace("${A}", value)}


@given(st.text(alphabet='${}AB"\\. \n', max_size=40))
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
    filled, warnings = fill(doc, {"A": "a"}, lambda kind, name: packages.get((kind, name)))
    assert warnings == ()
    assert filled.components[0].attributes == {"p": "/p/eyes/x", "q": [{"r": "a-/p/map"}], "n": 1}
    assert filled.modules[0].executable_path == "/p/m/run"
    assert filled.modules[0].env == {"A": "a"}
    assert filled.revision == "${environment.A}"
    assert doc.components[0].attributes["p"] == "${packages.eyes}/x"


def test_what_cannot_be_resolved_stays_and_every_place_is_named() -> None:
    doc = document(
        services=[{"type": "vision", "attributes": {"a": ["${packages.x}"], "b": "${environment.HOMME}"}}],
    )
    filled, warnings = fill(doc, {"HOME": "/"})
    assert filled == doc
    assert [str(warning) for warning in warnings] == [
        "services.0.attributes.a.0: ${packages.x} stays as it is: there is no package 'x': add it to 'packages'",
        "services.0.attributes.b: ${environment.HOMME} stays as it is: "
        "the environment has no 'HOMME': did you mean 'HOME'?",
    ]


def test_a_value_is_not_read_for_placeholders_again() -> None:
    doc = document(services=[{"type": "vision", "attributes": {"a": "${environment.A}"}}])
    filled, _ = fill(doc, {"A": "${environment.A}"})
    assert filled.services[0].attributes == {"a": "${environment.A}"}


def test_the_reading_order() -> None:
    text, _ = substitute('{"services":[{"type":"${T}","attributes":{"a":"${environment.T}"}}]}', {"T": "vision"})
    found = decode(text.encode()).document
    assert found is not None
    filled, _ = fill(found, {"T": "vision"})
    assert str(filled.services[0].api) == "rdk:service:vision"
    assert filled.services[0].attributes == {"a": "vision"}
