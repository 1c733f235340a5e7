"""A value held against a JSON Schema of models.json: what is wrong, each with its path. Pure.

Only the words that these schemas use; what a schema does not say is right.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from cloud.editing.catalogue import Schema, resolved, types_of
from schema.errors import ConfigError
from schema.report import did_you_mean, join, shown

_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "integer": (int,),
}
_WORDS: Final[Mapping[str, str]] = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "integer": "a whole number",
}
_BOUNDS: Final = (
    ("minimum", operator.ge, "at least"),
    ("exclusiveMinimum", operator.gt, "more than"),
    ("maximum", operator.le, "at most"),
    ("exclusiveMaximum", operator.lt, "less than"),
)


def mistakes(schema: Schema, value: Any, path: str) -> tuple[list[ConfigError], list[ConfigError]]:
    """Problems and warnings of `value`, which stands at `path`."""
    found: list[ConfigError] = []
    warned: list[ConfigError] = []
    for error, only_warning in _walk(resolved(schema), value, path, schema):
        (warned if only_warning else found).append(error)
    return found, warned


def _walk(schema: Schema, value: Any, path: str, root: Schema) -> Iterator[tuple[ConfigError, bool]]:
    if isinstance(value, Mapping) and "$variable" in value:
        return  # a fragment's variable may stand for anything
    if "anyOf" in schema:
        choices = [resolved(one, root) for one in schema["anyOf"]]
        fitting = [one for one in choices if _is(one, value)]
        if not fitting:
            yield _wrong(schema, value, path), False
        results = [list(_walk(one, value, path, root)) for one in fitting]
        if results and all(any(not warning for _, warning in result) for result in results):
            yield from min(results, key=len)
        return
    if not _is(schema, value):
        yield _wrong(schema, value, path), False
    elif isinstance(value, Mapping):
        yield from _object(schema, value, path, root)
    elif isinstance(value, list):
        yield from _array(schema, value, path, root)
    elif (text := _unfit(schema, value)) is not None:
        yield ConfigError(path, f"{shown(value, path)} {text[0]}", remedy=text[1]), False


def _is(schema: Schema, value: Any) -> bool:
    types = types_of(schema)
    if isinstance(value, bool):
        return not types or "boolean" in types
    if isinstance(value, float) and value.is_integer() and "integer" in types:
        return True
    return not types or any(isinstance(value, _KINDS[one]) for one in types if one != "boolean")


def _wrong(schema: Schema, value: Any, path: str) -> ConfigError:
    wanted = " or ".join(_WORDS[one] for one in dict.fromkeys(types_of(schema)) if one != "null")
    return ConfigError(path, f"{shown(value, path)} stands where {wanted} is needed", remedy=f"write {wanted}")


def _object(schema: Schema, value: Mapping[str, Any], path: str, root: Schema) -> Iterator[tuple[ConfigError, bool]]:
    properties = schema.get("properties", {})
    for key in schema.get("required", ()):
        if key not in value:
            yield ConfigError(path, f"{key!r} is missing", remedy=f"add {key!r}"), False
    extra = schema.get("additionalProperties")
    for key, one in value.items():
        here = join(path, key)
        if key in properties:
            yield from _walk(resolved(properties[key], root), one, here, root)
        elif isinstance(extra, Mapping):
            yield from _walk(resolved(extra, root), one, here, root)
        elif properties and extra is not True:
            remedy = did_you_mean(key, properties.keys() - value.keys()) or "remove it"
            yield ConfigError(here, "nothing reads this key", remedy=remedy), True


def _array(schema: Schema, value: list[Any], path: str, root: Schema) -> Iterator[tuple[ConfigError, bool]]:
    first = schema.get("prefixItems", ())
    least, most = schema.get("minItems"), schema.get("maxItems")
    if (least is not None and len(value) < least) or (most is not None and len(value) > most):
        wanted = str(least) if least == most else f"{least or 0} to {most}" if most is not None else f"at least {least}"
        yield ConfigError(path, f"the list has {len(value)} items", remedy=f"write {wanted}"), False
    for index, one in enumerate(value):
        item = first[index] if index < len(first) else schema.get("items")
        if isinstance(item, Mapping):
            yield from _walk(resolved(item, root), one, join(path, index), root)


def _unfit(schema: Schema, value: Any) -> tuple[str, str] | None:
    """What is wrong with a scalar of the right type, and what would be right."""
    if "enum" in schema and value not in schema["enum"]:
        choices = [str(one) for one in schema["enum"] if one != ""]
        return "is none of the choices", did_you_mean(str(value), choices) or f"write one of {', '.join(choices)}"
    if isinstance(value, (int, float)):
        for key, fits, words in _BOUNDS:
            if key in schema and not fits(value, schema[key]):
                return "is out of range", f"write {words} {schema[key]}"
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        return "is not written as it should be", f"it must match {schema['pattern']}"
    return None
