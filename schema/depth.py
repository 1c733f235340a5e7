"""How deeply JSON may be nested in what people configure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from schema.errors import ConfigError
from schema.report import join

MAX_DEPTH: Final = 32
"""Objects and lists inside each other. Libraries of protobuf read 100 messages inside each other; an object of a Struct
takes three of them."""
TOO_DEEP: Final = f"more than {MAX_DEPTH} objects and lists are inside each other"
REMEDY: Final = "make it flatter: clients cannot read it"
_SHOWN: Final = 5  # keys of a path that is longer than anybody reads


def nested_too_deeply(path: str = "") -> ConfigError:
    """The error for a document with more than `MAX_DEPTH` levels; `path` leads to what is too deep, if it is known."""
    return ConfigError(path, f"the JSON is nested too deeply: {TOO_DEEP}", remedy=REMEDY)


def check_depth(document: Any) -> None:
    """Raise ConfigError, with the beginning of the path, for a document with more than `MAX_DEPTH` levels."""
    level: list[tuple[str, Any]] = [("", document)]
    for depth in range(MAX_DEPTH + 1):
        inner: list[tuple[str, Any]] = []
        for path, value in level:
            items: Iterable[tuple[Any, Any]]
            if isinstance(value, Mapping):
                items = value.items()
            elif isinstance(value, list | tuple):
                items = enumerate(value)
            else:
                continue
            if depth == MAX_DEPTH:
                raise nested_too_deeply(path)
            for key, one in items:
                if isinstance(one, Mapping | list | tuple):
                    inner.append((join(path, key) if depth < _SHOWN else path, one))
        level = inner
