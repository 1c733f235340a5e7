"""Schemas of -dump-resources are complete, match their own defaults and accept every published example."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.registry import Registry
from models import BUILTIN
from runtime.server.dump import comments, resources
from schema.attributes import decode_attributes
from schema.errors import ConfigError, ConfigErrors
from schema.names import API, Model
from tests.unit.runtime.server.dump.validator import errors

ROOT = Path(__file__).parents[5]
BLOCK = re.compile(r"^```json\n(.*?)^```", re.MULTILINE | re.DOTALL)


@cache
def schemas() -> dict[tuple[str, str], dict[str, Any] | None]:
    """Return the schemas by API and model; None for a model without attributes."""
    return {(entry["api"], entry["model"]): entry.get("attribute_schema") for entry in resources(Registry(BUILTIN))}


def documents() -> Iterator[tuple[str, Any]]:
    """Yield every published piece of JSON: example files and code blocks of the documentation."""
    for path in sorted(ROOT.glob("examples/**/*.json")):
        yield str(path.relative_to(ROOT)), json.loads(path.read_text())
    for path in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]:
        if "_build" in path.parts:
            continue
        for number, block in enumerate(BLOCK.findall(path.read_text())):
            try:
                yield f"{path.relative_to(ROOT)}, block {number + 1}", json.loads(block)
            except ValueError:
                continue  # an abbreviated example with dots


def entries(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every resource entry in the value."""
    if isinstance(value, dict):
        if isinstance(value.get("api"), str) and isinstance(value.get("model"), str):
            yield value
        for item in value.values():
            yield from entries(item)
    elif isinstance(value, list):
        for item in value:
            yield from entries(item)


def configured() -> list[Any]:
    return [
        pytest.param(entry, id=f"{where}: {entry.get('name', '')}")
        for where, document in documents()
        for entry in entries(document)
        if (str(API.parse(entry["api"])), str(Model.parse(entry["model"]))) in schemas()
    ]


def test_there_are_examples_in_files_and_pages() -> None:
    places = {str(param.id).partition("/")[0] for param in configured()}
    assert {"examples", "docs"} <= places
    assert len(configured()) > 40


@pytest.mark.parametrize("entry", configured())
def test_every_published_entry_fits_the_schema_of_its_model(entry: dict[str, Any]) -> None:
    schema = schemas()[str(API.parse(entry["api"])), str(Model.parse(entry["model"]))]
    attributes = entry.get("attributes", {})
    if schema is None:
        assert attributes == {}
    else:
        assert list(errors(schema, attributes, schema)) == []


def test_every_model_is_there_and_has_a_schema_unless_it_reads_nothing() -> None:
    registry = Registry(BUILTIN)
    assert schemas().keys() == set(registry.pairs())
    for (api, model), schema in schemas().items():
        fields = msgspec.structs.fields(registry.find(API.parse(api), Model.parse(model)).Config)
        assert (schema is None) is not bool(fields)


def properties(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, definition in schema["$defs"].items():
        for key, result in definition.get("properties", {}).items():
            yield f"{name}.{key}", result


@pytest.mark.parametrize("pair", [pair for pair, schema in schemas().items() if schema is not None], ids="/".join)
def test_every_attribute_says_what_it_means_and_its_default_fits(pair: tuple[str, str]) -> None:
    schema = schemas()[pair]
    assert schema is not None
    for name, result in properties(schema):
        assert result.get("description"), name
        if "default" in result:
            assert list(errors(result, result["default"], schema)) == [], name


@pytest.mark.parametrize("pair", [pair for pair, schema in schemas().items() if schema is not None], ids="/".join)
def test_attributes_required_by_the_schema_are_required_by_the_driver(pair: tuple[str, str]) -> None:
    schema = schemas()[pair]
    assert schema is not None
    top = schema["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    config = Registry(BUILTIN).find(API.parse(pair[0]), Model.parse(pair[1])).Config
    missing = sorted(error.removeprefix(".").partition(":")[0] for error in errors(schema, {}, schema))
    assert missing == sorted(top.get("required", ()))
    if missing:
        with pytest.raises((ConfigError, ConfigErrors)) as caught:
            decode_attributes(config, {}, path="attributes")
        assert all(repr(name) in str(caught.value) for name in missing)


class Base(msgspec.Struct):
    inherited: int = 0  # of the base; m


class Example(Base, rename={"renamed": "as-written"}):
    """Nothing more."""

    renamed: float = 1.0  # Hz, é before the field ends
    bare: str = ""
    # a comment above is not a description
    hashed: str = "#"  # after a hash


def test_comments_are_those_after_the_field() -> None:
    assert comments(Example) == {
        "inherited": "of the base; m",
        "as-written": "Hz, é before the field ends",
        "hashed": "after a hash",
    }


def test_without_source_there_are_no_comments() -> None:
    assert comments(msgspec.defstruct("Made", [("x", int)])) == {}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 1.5),
        ({"type": "integer"}, True),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, {"b": ""}),
        ({"type": "object", "required": ["a"]}, {}),
        ({"type": "array", "items": {"enum": [1]}}, [2]),
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, 1),
        ({"minimum": 1}, 0),
        ({"exclusiveMaximum": 1}, 1),
        ({"minItems": 1}, []),
    ],
)
def test_the_validator_of_these_tests_refuses(schema: dict[str, Any], value: Any) -> None:
    assert list(errors(schema, value, schema))
