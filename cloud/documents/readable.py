"""Limits of documents, and values that every client can read: pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from cloud.documents.pieces import dumps
from cloud.values.limits import DOCUMENT, DOCUMENT_VALUES, METADATA, SECTION, Limit
from schema import PLAIN, ErrorKind, MachineError
from schema.decoding import DEPTH_REMEDY, MAX_DEPTH, TOO_DEEP

SECTIONS: Final = (
    "components",
    "services",
    "modules",
    "remotes",
    "packages",
    "jobs",
    "processes",
    "fragments",
    "fragment_mods",
)


def document_text(document: Mapping[str, Any], what: str) -> str:
    """Return the JSON text to store for a configuration or fragment. INVALID if not all clients could read it.

    INVALID also if it exceeds the limits of documents; `what` is the subject of the error message, such as "the
    configuration".
    """
    text = _encoded(document, what, DOCUMENT)
    for name in SECTIONS:
        section = document.get(name)
        if isinstance(section, list):
            SECTION.check(len(section), f"{name} of {what}")
    return text


def metadata_text(data: Mapping[str, Any]) -> str:
    """Return the JSON text to store for metadata; see `document_text`."""
    return _encoded(data, "the metadata", METADATA)


def check_text(text: str) -> None:
    """Raise INVALID if the text of a configuration or fragment is too large to be parsed."""
    DOCUMENT.check(len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass")), "the document")


def _encoded(document: Mapping[str, Any], what: str, limit: Limit) -> str:
    check_readable(document)
    text = dumps(document)
    limit.check(len(text.encode()), what)
    return text


def check_readable(document: Mapping[str, Any]) -> None:
    """Raise INVALID, with the position, for values that JSON or the protocol cannot represent.

    These are numbers that are not finite, unpaired surrogates, nesting deeper than MAX_DEPTH, and more values than the
    limit `document_values`.
    """
    count = 1
    waiting: list[tuple[Any, tuple[str, ...]]] = [(document, ())]
    while waiting:
        container, path = waiting.pop()
        if len(path) >= MAX_DEPTH:
            raise _unreadable(path, TOO_DEEP, DEPTH_REMEDY)
        count += len(container)
        if count > DOCUMENT_VALUES.value:
            raise MachineError(
                f"the document has more than {DOCUMENT_VALUES.value:,} values, the limit `{DOCUMENT_VALUES.name}`",
                kind=DOCUMENT_VALUES.kind,
                remedy=DOCUMENT_VALUES.remedy,
            )
        if isinstance(container, dict | Mapping):
            for name in container:
                if not name.isascii():
                    _check_text(name, path)
            entries: Iterable[tuple[Any, Any]] = container.items()
        else:
            entries = enumerate(container)
        for name, value in entries:
            if isinstance(value, float) and not math.isfinite(value):
                value_path = (*path, str(name))
                raise _unreadable(value_path, f"{value} is not a JSON number", "write a finite number, or leave it out")
            if type(value) in PLAIN:
                continue
            if isinstance(value, str):
                if not value.isascii():
                    _check_text(value, (*path, str(name)))
            elif isinstance(value, dict | list | tuple | Mapping):
                waiting.append((value, (*path, str(name))))


def _check_text(text: str, path: tuple[str, ...]) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        reason = f"{text[:40]!a} contains half of a surrogate pair (\\ud800 to \\udfff)"
        raise _unreadable(path, reason, "write both halves, or neither") from None


def _unreadable(path: tuple[str, ...], text: str, remedy: str) -> MachineError:
    shown_path = ".".join(path).encode("ascii", "backslashreplace").decode()
    return MachineError(f"{shown_path[:120] or 'the document'}: {text}", kind=ErrorKind.INVALID, remedy=remedy)
