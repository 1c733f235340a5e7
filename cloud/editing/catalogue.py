"""Schema of a configuration: `models.json`, generated from the types of machine-server."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from cloud.documents.paths import index_of
from cloud.editing.sections import NAMED, SECTIONS
from models import described
from schema import API, ConfigError, Model

Schema = Mapping[str, Any]
BUILTIN: Final = "rdk:builtin:"


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A built-in model of machine-server. `schema` is that of its attributes; None if it has none."""

    api: str
    model: str
    schema: Schema | None

    @property
    def word(self) -> str:
        """The short form used in documents: `fake` for `rdk:builtin:fake`."""
        return self.model.removeprefix(BUILTIN)

    @property
    def section(self) -> str:
        """The section of its resources: `components` or `services`."""
        return "services" if ":service:" in self.api else "components"

    @property
    def summary(self) -> str:
        """A one-sentence description; empty if there is none."""
        return str(resolved(self.schema).get("description", "")) if self.schema else ""


@dataclass(frozen=True, slots=True)
class EditingContext:
    """Context that the text does not contain: names of fragments by id, and resources that fragments add.

    `advice` holds deprecation messages by id and version; an empty version applies to the whole item.
    """

    fragments: Mapping[str, str] = field(default_factory=dict)
    resources: Sequence[str] = ()
    advice: Mapping[tuple[str, str], str] = field(default_factory=dict)


class Catalogue:
    """The built-in models and the schema of a whole document."""

    def __init__(self, description: Mapping[str, Any]) -> None:
        self.models = tuple(
            ModelEntry(entry["api"], entry["model"], entry.get("attribute_schema")) for entry in description["models"]
        )
        document = description["document"]
        for (name, key), additions in NAMED.items():
            document["$defs"][name]["properties"][key].update(additions)
        self.document: Schema = {
            "type": "object",
            "properties": {**SECTIONS, **document["properties"], "triggers": SECTIONS["triggers"]},
            "$defs": document["$defs"],
        }
        self.apis = tuple(sorted({entry.api for entry in self.models}))

    def find(self, api: str, model: str) -> ModelEntry | None:
        """Return the entry of a model as written in a document; None for a model of a module."""
        try:
            full = (str(API.parse(api)), str(Model.parse(model)))
        except ConfigError:
            return None
        return next((entry for entry in self.models if (entry.api, entry.model) == full), None)

    def of(self, api: str) -> Iterator[ModelEntry]:
        """Yield the models of an API."""
        return (entry for entry in self.models if entry.api == api)


@cache
def catalogue() -> Catalogue:
    """Return the catalogue of this version."""
    return Catalogue(copy.deepcopy(described()))


# ---- schemas


def resolved(schema: Schema, root: Schema | None = None) -> Schema:
    """Return `schema` with references resolved and nullable choices removed; `root` holds the definitions."""
    root = schema if root is None else root
    for _ in range(20):
        if "$ref" in schema:
            target = root.get("$defs", {}).get(schema["$ref"].rpartition("/")[2], {})
            schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
        elif (
            "anyOf" in schema
            and len(choices := [choice for choice in schema["anyOf"] if choice.get("type") != "null"]) == 1
        ):
            schema = {**choices[0], **{key: value for key, value in schema.items() if key != "anyOf"}}
        else:
            break
    return schema


def inside(schema: Schema, name: str, root: Schema) -> Schema | None:
    """Return the schema of a member or an item; None if it is unknown."""
    schema = resolved(schema, root)
    for choice in schema.get("anyOf", ()):
        if (nested := inside(choice, name, root)) is not None:
            return nested
    properties = schema.get("properties", {})
    if name in properties:
        return resolved(properties[name], root)
    extra = schema.get("additionalProperties")
    if schema.get("type") == "object" and isinstance(extra, Mapping):
        return resolved(extra, root)
    if (index := index_of(name)) is not None:
        prefix_items = schema.get("prefixItems", ())
        if index < len(prefix_items):
            return resolved(prefix_items[index], root)
        if isinstance(schema.get("items"), Mapping):
            return resolved(schema["items"], root)
    return None


def types_of(schema: Schema) -> tuple[str, ...]:
    """Return the JSON types that a resolved schema allows; empty if it does not specify any."""
    if "anyOf" in schema:
        return tuple(type_name for choice in schema["anyOf"] for type_name in types_of(choice))
    declared = schema.get("type", ())
    return (declared,) if isinstance(declared, str) else tuple(declared)
