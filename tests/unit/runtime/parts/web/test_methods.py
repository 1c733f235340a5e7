"""Forms for the methods of the published APIs."""

from __future__ import annotations

import pytest

from engine.apis import BASES
from engine.views.source import Field
from rpc.api.arguments import parse_arguments
from runtime.parts.web.methods import methods_of
from schema.names import API

MOTOR = API("rdk", "component", "motor")


@pytest.mark.parametrize("api", list(BASES), ids=str)
def test_every_published_api_has_forms(api: API) -> None:
    methods = methods_of(api)
    assert [method.name for method in methods] == sorted({method.name for method in methods})
    for method in methods:
        assert method.summary, method.name
        assert "`" not in method.summary + method.detail
        for field in method.fields:
            assert field.control in ("number", "integer", "text", "choice", "json")
            assert field.name != "extra"
            assert not field.choices or field.default in (*field.choices, "")


@pytest.mark.parametrize("api", list(BASES), ids=str)
def test_form_values_are_parsed(api: API) -> None:
    for method in methods_of(api):
        filled = [f"{field.name}={field.default}" for field in method.fields if field.default]
        parse_arguments(api, method.name, filled)
        chosen = [f"{field.name}={field.choices[-1]}" for field in method.fields if field.choices]
        parse_arguments(api, method.name, chosen)


def test_units_come_from_names_and_documentation_is_split() -> None:
    methods = {method.name: method for method in methods_of(MOTOR)}
    go_for = methods["go_for"]
    assert go_for.fields == (Field("rpm", "number", hint="rev/min"), Field("revolutions", "number", hint="rev"))
    assert go_for.summary.endswith(".")
    assert go_for.detail
    assert not go_for.streaming


def test_streams_are_marked_and_an_unknown_api_has_no_forms() -> None:
    board = {method.name: method for method in methods_of(API("rdk", "component", "board"))}
    assert board["stream_ticks"].streaming
    assert board["set_gpio"].fields[1] == Field("high", "choice", choices=("true", "false"))
    assert methods_of(API("acme", "component", "toaster")) == ()
