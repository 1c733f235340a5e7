"""A validator for the part of JSON Schema (2020-12) that the dumped schemas use; unknown keywords are errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "integer": (int,),
    "number": (int, float),
}
ANNOTATIONS = {"title", "description", "default", "examples", "format"}


def errors(schema: Mapping[str, Any], value: Any, root: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield every error in `value`, including properties that the schema does not name."""
    for keyword, operand in schema.items():
        if keyword in ANNOTATIONS or keyword == "$defs":
            continue
        check = CHECKS.get(keyword)
        if check is None:
            raise NotImplementedError(f"{path}: {keyword}")
        yield from check(operand, value, root, path, schema)


def _ref(expected: str, value: Any, root: Any, path: str, schema: Any) -> Iterator[str]:
    yield from errors(root["$defs"][expected.removeprefix("#/$defs/")], value, root, path)


def _type(expected: Any, value: Any, root: Any, path: str, schema: Any) -> Iterator[str]:
    kinds = [expected] if isinstance(expected, str) else expected
    if not any(isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool)) for kind in kinds):
        yield f"{path}: {value!r} is not {' or '.join(kinds)}"


def _properties(expected: Any, value: Any, root: Any, path: str, schema: Any) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    for key, item in value.items():
        if key in expected:
            yield from errors(expected[key], item, root, f"{path}.{key}")
        elif "additionalProperties" not in schema:
            yield f"{path}.{key}: there is no such attribute"


def _additional(expected: Any, value: Any, root: Any, path: str, schema: Any) -> Iterator[str]:
    if isinstance(value, dict) and isinstance(expected, dict):
        for key, item in value.items():
            if key not in schema.get("properties", {}):
                yield from errors(expected, item, root, f"{path}.{key}")


def _required(expected: Any, value: Any, root: Any, path: str, schema: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (f"{path}.{key}: is missing" for key in expected if key not in value)


def _items(expected: Any, value: Any, root: Any, path: str, schema: Any) -> Iterator[str]:
    if isinstance(value, list) and expected is not False:
        for index, item in enumerate(value[len(schema.get("prefixItems", ())) :]):
            yield from errors(expected, item, root, f"{path}.{index}")


def _prefix(expected: Any, value: Any, root: Any, path: str, schema: Any) -> Iterator[str]:
    if isinstance(value, list):
        for index, (item_schema, item) in enumerate(zip(expected, value, strict=False)):
            yield from errors(item_schema, item, root, f"{path}.{index}")


def _any_of(expected: Any, value: Any, root: Any, path: str, schema: Any) -> Iterator[str]:
    if all(any(errors(alternative, value, root, path)) for alternative in expected):
        yield f"{path}: {value!r} fits none of {len(expected)} kinds"


def _holds(test: Any, words: str) -> Any:
    def check(expected: Any, value: Any, root: Any, path: str, schema: Any) -> Iterator[str]:
        if not test(expected, value):
            yield f"{path}: {value!r} {words} {expected!r}"

    return check


def _number(test: Any) -> Any:
    return lambda expected, value: (
        isinstance(value, bool) or not isinstance(value, (int, float)) or test(expected, value)
    )


def _sized(test: Any) -> Any:
    return lambda expected, value: not isinstance(value, (list, str, dict)) or test(expected, len(value))


CHECKS: dict[str, Any] = {
    "$ref": _ref,
    "type": _type,
    "properties": _properties,
    "additionalProperties": _additional,
    "required": _required,
    "items": _items,
    "prefixItems": _prefix,
    "anyOf": _any_of,
    "enum": _holds(lambda expected, value: value in expected, "is not one of"),
    "const": _holds(lambda expected, value: value == expected, "is not"),
    "minimum": _holds(_number(lambda expected, value: value >= expected), "is less than"),
    "maximum": _holds(_number(lambda expected, value: value <= expected), "is more than"),
    "exclusiveMinimum": _holds(_number(lambda expected, value: value > expected), "is not more than"),
    "exclusiveMaximum": _holds(_number(lambda expected, value: value < expected), "is not less than"),
    "minItems": _holds(_sized(lambda expected, size: size >= expected), "has fewer than"),
    "maxItems": _holds(_sized(lambda expected, size: size <= expected), "has more than"),
    "minLength": _holds(_sized(lambda expected, size: size >= expected), "is shorter than"),
    "maxLength": _holds(_sized(lambda expected, size: size <= expected), "is longer than"),
    "minProperties": _holds(_sized(lambda expected, size: size >= expected), "has fewer than"),
    "pattern": _holds(
        lambda expected, value: not isinstance(value, str) or re.search(expected, value), "does not match"
    ),
}
