"""Insertion of resources that were discovered into a configuration. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from schema import ErrorKind, MachineError

MOST: Final = 100  # resources at once: what a discovery service finds on one machine
LONGEST: Final = 256 << 10  # characters of JSON
_TEXTS: Final = ("name", "api", "model")


def resources_in(text: str) -> list[dict[str, Any]]:
    """Parse resources: a JSON list of objects with `name`, `api`, `model` and `attributes`. INVALID otherwise."""
    if len(text) > LONGEST:
        raise MachineError(f"the resources are longer than {LONGEST >> 10} KiB", kind=ErrorKind.INVALID)
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MachineError(
            f"the resources are not JSON, or nested too deeply: {error}", kind=ErrorKind.INVALID
        ) from None
    if not isinstance(entries, list) or not 0 < len(entries) <= MOST or not all(map(_is_resource, entries)):
        raise MachineError(
            f"the resources are not a list of 1 to {MOST} objects with name, api, model and attributes",
            kind=ErrorKind.INVALID,
        )
    return [
        {**{field: entry[field] for field in _TEXTS}, "attributes": entry.get("attributes") or {}} for entry in entries
    ]


def with_resources(document: Mapping[str, Any], entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the document with resources added; those that it has, whatever their name, are left out.

    A resource whose name is taken gets a number: `camera-2`.
    """
    result = {key: list(value) if isinstance(value, list) else value for key, value in document.items()}
    for entry in entries:
        section = "services" if ":service:" in entry["api"] else "components"
        present = result.setdefault(section, [])
        if not isinstance(present, list):
            raise MachineError(
                f"{section} is not a list", kind=ErrorKind.PRECONDITION, remedy="correct it in the editor first"
            )
        if any(_same(entry, other) for other in present):
            continue
        names = {other.get("name") for other in present if isinstance(other, Mapping)}
        numbers = (f"{entry['name']}-{number}" for number in range(2, len(names) + 3))
        name = entry["name"] if entry["name"] not in names else next(each for each in numbers if each not in names)
        present.append({**entry, "name": name})
    return result


def _is_resource(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and all(isinstance(entry.get(field), str) and entry[field] for field in _TEXTS)
        and isinstance(entry.get("attributes") or {}, dict)
    )


def _same(entry: Mapping[str, Any], other: Any) -> bool:
    """Return whether two resources are the same device."""
    return isinstance(other, Mapping) and all(
        (entry.get(field) or {}) == (other.get(field) or {}) for field in ("api", "model", "attributes")
    )
