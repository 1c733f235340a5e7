"""Fields of the form of a configuration, from the schemas of the models and of the document. Pure.

A form needs less than a schema: one kind for each field, without references between types. What a schema does not say,
such as which texts are names of resources or pins, is recognized by `cloud.editing.form_rules`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import msgspec

from cloud.editing.catalogue import Catalogue, ModelEntry, Schema, catalogue, resolved, types_of
from cloud.editing.form_rules import API_SUMMARIES, MODEL_SUMMARIES, Pins, is_duration, pins_of, reference_of, unit_of
from schema import is_secret

DEEPEST: Final = 12  # levels of objects; deeper ones are edited as JSON


class FormField(msgspec.Struct, omit_defaults=True, frozen=True, kw_only=True):
    """A field of the form. `kind` is text, number, integer, duration, switch, choice, list, map, group or json."""

    kind: str
    about: str = ""
    unit: str = ""
    default: Any = None
    required: bool = False
    secret: bool = False
    also_number: bool = False  # a text that may also be a whole number
    choices: tuple[Any, ...] = ()
    range: str = ""  # such as "0 to 1", for people
    names: str = ""  # of resources of this API, or of "*", "frame", "fragment", "api" or "model"
    pins: str = ""  # "pin", or "interrupt" of the board that the entry names
    of: FormField | None = None  # items of a list, values of a map
    fields: Mapping[str, FormField] = msgspec.field(default_factory=dict)


class FormModel(msgspec.Struct, frozen=True):
    """A built-in model: `word` is its short name; `fields` are its attributes."""

    api: str
    word: str
    section: str
    about: str
    simulated: bool
    fields: Mapping[str, FormField]


class FormSchema(msgspec.Struct, frozen=True):
    """All fields: `sections` are the keys of a document, `apis` a line about each API."""

    sections: Mapping[str, FormField]
    models: tuple[FormModel, ...]
    apis: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class EncodedSchema:
    """The JSON text of the form's schema, and a text that is different for each content."""

    data: bytes
    version: str


@cache
def encoded_schema() -> EncodedSchema:
    """Return the schema of this version."""
    data = msgspec.json.encode(form_schema(catalogue()))
    return EncodedSchema(data, hashlib.sha256(data).hexdigest()[:16])


def form_schema(of: Catalogue) -> FormSchema:
    """Return the fields of a document and of all models."""
    document = of.document
    sections = {key: _field(key, schema, document, 0) for key, schema in document["properties"].items()}
    return FormSchema(
        sections,
        tuple(_model(entry) for entry in of.models),
        {api: API_SUMMARIES.get(api.rpartition(":")[2], "") for api in of.apis},
    )


def _model(entry: ModelEntry) -> FormModel:
    schema = entry.schema or {}
    own = MODEL_SUMMARIES.get((entry.api.rpartition(":")[2], entry.word))
    about = own or entry.summary.removeprefix("Attributes of ").partition(". ")[0].rstrip(".")
    simulated = entry.word in ("fake", "simulated")
    kind = entry.api.rpartition(":")[2].replace("_", " ")
    return FormModel(
        entry.api,
        entry.word,
        entry.section,
        (about[:1].upper() + about[1:]) or f"{'Simulated' if simulated else 'Built-in'} {kind}",
        simulated,
        _fields(resolved(schema), schema, 0),
    )


def _fields(schema: Schema, root: Schema, depth: int, pins: Pins = Pins.NONE) -> dict[str, FormField]:
    required = schema.get("required", ())
    return {
        key: _field(key, each, root, depth + 1, required=key in required, pins=pins)
        for key, each in schema.get("properties", {}).items()
    }


def _field(
    key: str, schema: Schema, root: Schema, depth: int, *, required: bool = False, pins: Pins = Pins.NONE
) -> FormField:
    described = schema
    schema = resolved(schema, root)
    about = str(described.get("description") or schema.get("description", ""))
    pins = pins_of(key, about, pins)
    names = str(schema.get("x-names", "")).replace("resource", "*") or reference_of(key, about)
    default = schema.get("default")
    field = FormField(
        kind="json",
        about=about,
        unit=unit_of(key, about),
        default=None if default in ("", [], {}) else default,
        required=required,
        secret=is_secret(key),
    )
    return _typed(field, key, schema, root, depth, pins, names)


def _typed(field: FormField, key: str, schema: Schema, root: Schema, depth: int, pins: Pins, names: str) -> FormField:
    """Return the field with its kind, and what belongs to the kind."""
    change = msgspec.structs.replace
    types = set(types_of(schema)) | {"string" for _ in _choices(schema)}
    if is_duration(key, types):
        return change(field, kind="duration", unit="")
    if depth >= DEEPEST or not types:
        return field
    if choices := _choices(schema):
        return change(field, kind="choice", choices=choices, names=names)
    if types == {"boolean"}:
        return change(field, kind="switch")
    if types == {"number"} or types == {"number", "integer"} or types == {"integer"}:
        kind = "integer" if types == {"integer"} else "number"
        return change(field, kind=kind, range=_range(schema), secret=False)
    if types in ({"string"}, {"string", "integer"}):
        return change(field, kind="text", also_number="integer" in types, names=names, pins="" if names else pins.value)
    if types == {"array"} and isinstance(schema.get("items"), Mapping):
        item = _field(key, schema["items"], root, depth + 1, pins=pins)
        if item.kind == "text" and not item.names:
            item = change(item, names=names, pins=pins.value)
        return change(field, kind="list", of=change(item, required=False), secret=False)
    if types == {"object"} and schema.get("properties"):
        return change(field, kind="group", fields=_fields(schema, root, depth, pins), secret=False)
    if types == {"object"} and isinstance(schema.get("additionalProperties"), Mapping):
        value = _field(key, schema["additionalProperties"], root, depth + 1, pins=pins)
        return change(field, kind="map", of=value, secret=False)
    return change(field, secret=False) if types == {"object"} else field


def _choices(schema: Schema) -> tuple[Any, ...]:
    """Return the values of which one can be chosen, also of several lists."""
    if schema.get("enum"):
        return tuple(schema["enum"])
    choices = schema.get("anyOf", ())
    return tuple(value for each in choices for value in each["enum"]) if all("enum" in each for each in choices) else ()


def _range(schema: Schema) -> str:
    least, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    most, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    low = f"more than {above:g}" if above is not None else "" if least is None else f"{least:g}"
    high = f"less than {below:g}" if below is not None else "" if most is None else f"{most:g}"
    if low and high:
        return f"{low} to {high}" if above is None and below is None else f"{low}, at most {high}"
    return (low if above is not None else f"at least {low}") if low else (high and f"at most {high}")
