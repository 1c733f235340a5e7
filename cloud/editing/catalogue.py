"""What may stand in a configuration: `models.json`, which machine-server's own types were written to."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from catalogue.models import described
from cloud.editing.sections import NAMED, SECTIONS
from cloud.paths import index_of
from schema.errors import ConfigError
from schema.names import API, Model

Schema = Mapping[str, Any]
BUILTIN: Final = "rdk:builtin:"


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model that machine-server has built in. `schema` is that of its attributes; None if it reads none."""

    api: str
    model: str
    schema: Schema | None

    @property
    def word(self) -> str:
        """As one writes it: `fake` for `rdk:builtin:fake`."""
        return self.model.removeprefix(BUILTIN)

    @property
    def section(self) -> str:
        """Where it belongs, `components` or `services`."""
        return "services" if ":service:" in self.api else "components"

    @property
    def summary(self) -> str:
        """What it is, in a sentence; empty if nobody has said."""
        return str(resolved(self.schema).get("description", "")) if self.schema else ""


@dataclass(frozen=True, slots=True)
class Known:
    """What the text alone does not tell: fragments by id with their names, resources that fragments bring.

    `advice`: the message by id and version of what the registry advises against; no version for all of an item.
    """

    fragments: Mapping[str, str] = field(default_factory=dict)
    resources: Sequence[str] = ()
    advice: Mapping[tuple[str, str], str] = field(default_factory=dict)


class Catalogue:
    """The models, and the schema of a whole document."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        self.models = tuple(
            ModelEntry(one["api"], one["model"], one.get("attribute_schema")) for one in found["models"]
        )
        document = found["document"]
        for (name, key), more in NAMED.items():
            document["$defs"][name]["properties"][key].update(more)
        self.document: Schema = {
            "type": "object",
            "properties": {**SECTIONS, **document["properties"], "triggers": SECTIONS["triggers"]},
            "$defs": document["$defs"],
        }
        self.apis = tuple(sorted({one.api for one in self.models}))

    def find(self, api: str, model: str) -> ModelEntry | None:
        """The entry of a model as a document writes it; None for a model of a module."""
        try:
            full = (str(API.parse(api)), str(Model.parse(model)))
        except ConfigError:
            return None
        return next((one for one in self.models if (one.api, one.model) == full), None)

    def of(self, api: str) -> Iterator[ModelEntry]:
        """The models of an API."""
        return (one for one in self.models if one.api == api)


@cache
def catalogue() -> Catalogue:
    """The one of this version."""
    return Catalogue(copy.deepcopy(described()))


# ---- schemas


def resolved(schema: Schema, root: Schema | None = None) -> Schema:
    """`schema` without a reference and without the choice of null; `root` has the definitions."""
    root = schema if root is None else root
    for _ in range(20):
        if "$ref" in schema:
            target = root.get("$defs", {}).get(schema["$ref"].rpartition("/")[2], {})
            schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
        elif "anyOf" in schema and len(some := [one for one in schema["anyOf"] if one.get("type") != "null"]) == 1:
            schema = {**some[0], **{key: value for key, value in schema.items() if key != "anyOf"}}
        else:
            break
    return schema


def inside(schema: Schema, word: str, root: Schema) -> Schema | None:
    """The schema of a member or an item; None if nothing is known of it."""
    schema = resolved(schema, root)
    for choice in schema.get("anyOf", ()):
        if (found := inside(choice, word, root)) is not None:
            return found
    properties = schema.get("properties", {})
    if word in properties:
        return resolved(properties[word], root)
    extra = schema.get("additionalProperties")
    if schema.get("type") == "object" and isinstance(extra, Mapping):
        return resolved(extra, root)
    if (index := index_of(word)) is not None:
        first = schema.get("prefixItems", ())
        if index < len(first):
            return resolved(first[index], root)
        if isinstance(schema.get("items"), Mapping):
            return resolved(schema["items"], root)
    return None


def types_of(schema: Schema) -> tuple[str, ...]:
    """The JSON types that a resolved schema allows; none if it does not say."""
    if "anyOf" in schema:
        return tuple(word for one in schema["anyOf"] for word in types_of(one))
    found = schema.get("type", ())
    return (found,) if isinstance(found, str) else tuple(found)
