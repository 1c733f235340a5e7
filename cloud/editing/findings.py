"""Checks of a configuration's text, with the position of each problem. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from catalogue.check import check, in_cloud
from catalogue.models import builtin
from cloud.documents.paths import index_of
from cloud.editing.catalogue import Known
from cloud.editing.tree import Lines, Node, place, read
from schema.decoding.report import join
from schema.decoding.syntax import JSONSyntaxError
from schema.document.machine import CLOUD_KEYS, decode
from schema.errors import ConfigError

ERROR: Final = "error"
WARNING: Final = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem. `line` and `column` count from 1; `start` and `end` are offsets in characters."""

    severity: str
    path: str
    text: str
    line: int
    column: int
    start: int
    end: int


def findings(text: str, known: Known, *, partial: bool = False) -> tuple[Finding, ...]:
    """Return the problems in text order.

    `partial` marks a fragment, which may rely on the configuration that uses it.
    """
    decoded = decode(text.encode("utf-8", "surrogatepass"))
    syntax = next((one for one in decoded.problems if isinstance(one, JSONSyntaxError)), None)
    if syntax is not None:
        return (_of_syntax(syntax, text),)
    root = read(text)
    if root is None or root.kind != "object":
        return tuple(Finding(ERROR, "", _said(one), 1, 1, 0, len(text)) for one in decoded.problems)
    document = root.value
    checked = check(decoded, builtin(), in_cloud(document, known.resources, partial=partial))
    found = [
        *((ERROR, one) for one in checked.problems),
        *((WARNING, one) for one in checked.warnings if one.path.partition(".")[0] not in CLOUD_KEYS),
        *_advised(document, known),
    ]
    kept = {(one.path, one.message): (severity, one) for severity, one in found if not _variable(root, one.path)}
    lines = Lines(text)
    return tuple(sorted((_placed(*one, lines, root) for one in kept.values()), key=lambda one: (one.start, one.end)))


def _said(error: ConfigError) -> str:
    return f"{error.reason}: {error.remedy}" if error.remedy else error.reason


def _placed(severity: str, error: ConfigError, lines: Lines, root: Node) -> Finding:
    start, end = place(root, error.path)
    return Finding(severity, error.path, _said(error), *lines.position(start), start, end)


def _of_syntax(error: JSONSyntaxError, text: str) -> Finding:
    lines = text.split("\n")
    start = min(sum(len(line) + 1 for line in lines[: error.line - 1]) + error.column - 1, len(text))
    reason = error.reason.partition(": ")[2] or error.reason
    said = f"{reason}: {error.remedy}" if error.remedy else reason
    return Finding(ERROR, "", said, error.line, error.column, start, min(start + 1, len(text)))


def _variable(root: Node, path: str) -> bool:
    """Return whether the path lies in a fragment variable, whose value is not known yet."""
    node: Node | None = root
    for word in path.split("."):
        if node is None:
            return False
        if node.kind == "object":
            node = node.get(word)
        elif node.kind == "array" and (index := index_of(word)) is not None and index < len(node.items):
            node = node.items[index]
        else:
            return False
        if node is not None and node.kind == "object" and node.get("$variable") is not None:
            return True
    return False


def _advised(document: Mapping[str, Any], known: Known) -> Iterator[tuple[str, ConfigError]]:
    """Yield warnings for deprecated modules and packages."""
    for section, key in (("modules", "module_id"), ("packages", "package")):
        for index, entry in enumerate(_list(document, section)):
            if not isinstance(entry, Mapping) or (section == "modules" and entry.get("type") != "registry"):
                continue
            named = str(entry.get(key))
            for version, at in {str(entry.get("version") or ""): "version", "": key}.items():
                message = known.advice.get((named.replace("/", ":", 1), version))
                if message is not None:
                    reason = f"{named} {version}".rstrip() + " is deprecated"
                    yield WARNING, ConfigError(join(section, index, at), reason, remedy=message)


def _list(document: Mapping[str, Any], key: str) -> Iterable[Any]:
    found = document.get(key)
    return found if isinstance(found, list) else ()
