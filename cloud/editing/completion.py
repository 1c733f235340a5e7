"""Completion at the cursor. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from cloud.editing.catalogue import Catalogue, EditingContext, ModelEntry, Schema, inside, resolved, types_of
from cloud.editing.comments import without_comments
from cloud.editing.tree import JsonNode, Spot, at, read, spot

MAX_CHOICES: Final = 60
RESOURCES: Final = ("components", "services")
_FOLLOWED_BY_KEY: Final = re.compile(r'"[\w$.-]+"\s*:')
_EMPTY: Final[Mapping[str, str]] = {"object": "{}", "array": "[]", "string": '""'}
_NAMES: Final = re.compile(r"\bnames? of (?:the|its|another|a|an|each|every|motors?|boards?|sensors?|cameras?)\b")


@dataclass(frozen=True, slots=True)
class Choice:
    """A completion: `insert` replaces the text from `start` to `end` of the answer. The cursor is then placed `cursor`
    characters after the beginning of the inserted text."""

    label: str
    insert: str
    cursor: int
    detail: str = ""  # short note: its type, or required
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Choices:
    """The completions at a position, likeliest first."""

    start: int
    end: int
    choices: tuple[Choice, ...]


NOTHING: Final = Choices(0, 0, ())


def completions(text: str, cursor: int, context: EditingContext, catalogue: Catalogue) -> Choices:
    """Return the completions at `cursor`, an offset in characters into `text`."""
    if (plain := without_comments(text)) != text:
        if plain[max(0, cursor - 1) : cursor] != text[max(0, cursor - 1) : cursor]:
            return NOTHING  # in a comment
        text = plain
    if _FOLLOWED_BY_KEY.match(text, cursor) and text.count('"', text.rfind("\n", 0, cursor) + 1, cursor) % 2:
        text = f"{text[:cursor]}\n{text[cursor:]}"  # close the string at its line end, not at the next key's quote
    root = read(text)
    position = spot(text, root, cursor)
    if root is None or position is None:
        return NOTHING
    completion = _Completion(text, root, position, context, catalogue)
    choices = _ranked(completion.keys() if position.key else completion.values(), position.typed)
    before, after = ", " if position.comma_before else "", ", " if position.comma_after else ""
    choices = [replace(c, insert=before + c.insert + after, cursor=len(before) + c.cursor) for c in choices]
    return Choices(position.start, position.end, tuple(choices[:MAX_CHOICES]))


def _ranked(choices: Iterable[Choice], typed: str) -> list[Choice]:
    """Return the choices that contain `typed`, those that start with it first, otherwise in the order of `choices`."""
    typed = typed.lower()
    matching = {choice.label: choice for choice in choices if typed in choice.label.lower()}.values()
    return sorted(matching, key=lambda choice: not choice.label.lower().startswith(typed))


def schema_of(root: JsonNode, path: tuple[str, ...], catalogue: Catalogue) -> Schema | None:
    """Return the schema of the value at a path; for attributes, that of the model named in the text."""
    schema: Schema | None = catalogue.document
    base = catalogue.document
    for index, segment in enumerate(path):
        if index == 2 and path[0] in RESOURCES and segment == "attributes":
            entry = model_at(root, path[:2], catalogue)
            schema = base = {} if entry is None or entry.schema is None else entry.schema
            schema = resolved(schema, base)
            continue
        schema = None if schema is None else inside(schema, segment, base)
    return schema


def model_at(root: JsonNode, path: tuple[str, ...], catalogue: Catalogue) -> ModelEntry | None:
    """Return the built-in model of the resource at a path."""
    api, model = (_text(at(root, (*path, key))) for key in ("api", "model"))
    return catalogue.find(api, model or ("builtin" if path[0] == "services" else ""))


def names_in(root: JsonNode) -> Iterator[tuple[str, str]]:
    """Yield name and API of every resource in the text."""
    for section in RESOURCES:
        section_node = at(root, (section,))
        for item in section_node.items if section_node is not None else ():
            if name := _text(item.get("name")):
                yield name, _text(item.get("api"))


def _text(node: JsonNode | None) -> str:
    value = node.value if node is not None and node.kind == "string" else ""
    return value if isinstance(value, str) else ""


class _Completion:
    def __init__(
        self, text: str, root: JsonNode, position: Spot, context: EditingContext, catalogue: Catalogue
    ) -> None:
        self.text, self.root, self.spot, self.context, self.catalogue = text, root, position, context, catalogue

    # ---- keys

    def keys(self) -> Iterator[Choice]:
        schema = schema_of(self.root, self.spot.path, self.catalogue)
        parent = at(self.root, self.spot.path)
        if schema is None or parent is None:
            return
        present = {member.name for member in parent.members} - {self.spot.member}
        base = self._base()
        properties = {
            key: resolved(property_schema, base)
            for choice in schema.get("anyOf", (schema,))
            for key, property_schema in resolved(choice, base).get("properties", {}).items()
            if key not in present
        }
        required = schema.get("required", ())
        filled = self._has_value()
        for key in sorted(properties, key=lambda key: key not in required):
            property_schema = properties[key]
            detail = "required" if key in required else " or ".join(types_of(property_schema))
            value = skeleton(property_schema)
            insert = json.dumps(key) if filled else f"{json.dumps(key)}: {value}"
            inner = 1 if value[:1] in '"{[' and len(value) == 2 else 0
            yield Choice(key, insert, len(insert) - inner, detail, property_schema.get("description", ""))

    def _has_value(self) -> bool:
        """Return whether the key at the cursor already has a colon."""
        return self.text[self.spot.end :].lstrip()[:1] == ":" and self.spot.end > self.spot.start

    def _base(self) -> Schema:
        path = self.spot.path
        if len(path) > 2 and path[0] in RESOURCES and path[2] == "attributes":
            entry = model_at(self.root, path[:2], self.catalogue)
            return entry.schema if entry is not None and entry.schema is not None else {}
        return self.catalogue.document

    # ---- values

    def values(self) -> Iterator[Choice]:
        schema = schema_of(self.root, self.spot.path, self.catalogue)
        if schema is None:
            return
        yield from self._named(schema)
        for value in schema.get("enum", ()):
            yield _value(value, "default" if value == schema.get("default") else "")
        types = types_of(schema)
        if "boolean" in types:
            default = schema.get("default")
            for value in (True, False):
                yield _value(value, "default" if value is default else "")
        elif "default" in schema and not schema.get("enum") and schema["default"] not in ("", None, [], {}):
            yield _value(schema["default"], "default")
        if self.spot.start == self.spot.end:
            for kind in types:
                if kind in ("object", "array"):
                    yield self._container(kind, schema)

    def _container(self, kind: str, schema: Schema) -> Choice:
        if kind == "array":
            return Choice("[ ]", "[]", 1, "list")
        base = self._base()
        required = {
            key: resolved(schema.get("properties", {}).get(key, {}), base) for key in schema.get("required", ())
        }
        insert = (
            "{"
            + ", ".join(f"{json.dumps(key)}: {skeleton(property_schema)}" for key, property_schema in required.items())
            + "}"
        )
        first = insert.find('""')
        return Choice(
            "{ }", insert, first + 1 if first >= 0 else len(insert) - 1, "object", schema.get("description", "")
        )

    def _named(self, schema: Schema) -> Iterator[Choice]:
        kind = schema.get("x-names", "")
        path = self.spot.path
        if kind == "api":
            api_kind = ":service:" if path[0] == "services" else ":component:"
            yield from (_word(api, "") for api in self.catalogue.apis if api_kind in api)
        elif kind == "model":
            api = _text(at(self.root, (*path[:-1], "api")))
            yield from (_word(entry.word, "built in", entry.summary) for entry in self.catalogue.of(api))
        elif kind == "fragment":
            yield from (_word(subject, name) for subject, name in self.context.fragments.items())
        elif kind or self._means_names(schema):
            if kind == "frame":
                yield _word("world", "frame")
            own = _text(at(self.root, (*path[:2], "name"))) if path[0] in RESOURCES else ""
            yield from (_word(name, api.rpartition(":")[2]) for name, api in names_in(self.root) if name != own)
            yield from (_word(name, "from a fragment") for name in self.context.resources)

    def _means_names(self, schema: Schema) -> bool:
        """Return whether an attribute is the name of a resource, judged by its description."""
        path = self.spot.path
        if len(path) < 4 or path[2] != "attributes" or "enum" in schema or "string" not in types_of(schema):
            return False
        parent = schema_of(self.root, path[:-1], self.catalogue) if path[-1].isdigit() else None
        meaning = str((parent or schema).get("description", ""))
        return bool(_NAMES.search(meaning)) and "I2C" not in meaning


def skeleton(schema: Schema) -> str:
    """Return JSON text as a placeholder for a value, to be filled in."""
    if schema.get("enum"):
        return json.dumps(schema.get("default", schema["enum"][0]), ensure_ascii=False) if not _free(schema) else '""'
    if schema.get("default") not in (None, "", [], {}):
        return json.dumps(schema["default"], ensure_ascii=False)
    types = types_of(schema)
    if not types:
        return '""'
    if types[0] in ("integer", "number"):
        return json.dumps(schema.get("minimum", 0))
    return _EMPTY.get(types[0], "false" if types[0] == "boolean" else "null")


def _free(schema: Schema) -> bool:
    """Return whether an enumeration consists of strings and has no default, so that the user must choose."""
    return "default" not in schema and all(isinstance(value, str) for value in schema["enum"])


def _word(word: str, detail: str, meaning: str = "") -> Choice:
    insert = json.dumps(word, ensure_ascii=False)
    return Choice(word, insert, len(insert), detail, meaning)


def _value(value: Any, detail: str) -> Choice:
    insert = json.dumps(value, ensure_ascii=False)
    label = value if isinstance(value, str) and value else insert
    return Choice(label, insert, len(insert), detail)
