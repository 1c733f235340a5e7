"""Limit of nesting in configured JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from schema.decoding.report import join
from schema.errors import ConfigError

MAX_DEPTH: Final = 32
"""Maximum nesting of objects and lists. Protobuf libraries read 100 nested messages; an object of a Struct takes three
of them."""
TOO_DEEP: Final = f"more than {MAX_DEPTH} levels of objects and lists"
DEPTH_REMEDY: Final = "reduce the nesting: clients cannot read it"
_SHOWN: Final = 5  # keys shown of a long path


def nested_too_deeply(path: str = "") -> ConfigError:
    """Return the error for a document with more than `MAX_DEPTH` levels, at `path` if it is known."""
    return ConfigError(path, f"the JSON is nested too deeply: {TOO_DEEP}", remedy=DEPTH_REMEDY)


def check_depth(document: Any) -> None:
    """Raise ConfigError, with the first keys of the path, if a document has more than `MAX_DEPTH` levels."""
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
            for key, item in items:
                if isinstance(item, Mapping | list | tuple):
                    inner.append((join(path, key) if depth < _SHOWN else path, item))
        level = inner
