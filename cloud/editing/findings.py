"""Checks of a configuration's text, with the position of each problem. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cloud.documents.paths import index_of
from cloud.editing.catalogue import EditingContext
from cloud.editing.comments import without_comments
from cloud.editing.tree import JsonNode, Lines, at, read, span_of
from models import builtin_models, check_document, in_cloud
from schema import ConfigError
from schema.decoding import JSONSyntaxError, join
from schema.document import CLOUD_KEYS, decode_document

NAMED: Final = ("components", "services", "modules", "remotes", "packages", "jobs", "triggers")
_MUST_BE: Final = re.compile(r"must be ([^,]*+), not ")
ERROR: Final = "error"
WARNING: Final = "warning"


@dataclass(frozen=True, slots=True)
class DocumentFinding:
    """A problem. `line` and `column` count from 1; `start` and `end` are offsets in characters.

    `sentence` says the same to readers of a form: `left › max_rpm must be a number, not "fast"`.
    """

    severity: str
    path: str
    text: str
    line: int
    column: int
    start: int
    end: int
    sentence: str = ""


def findings(text: str, context: EditingContext, *, partial: bool = False) -> tuple[DocumentFinding, ...]:
    """Return the problems in text order. The text may have comments.

    `partial` marks a fragment, which may rely on the configuration that uses it.
    """
    text = without_comments(text)
    decoded = decode_document(text.encode("utf-8", "surrogatepass"))
    syntax = next((problem for problem in decoded.problems if isinstance(problem, JSONSyntaxError)), None)
    if syntax is not None:
        return (_of_syntax(syntax, text),)
    root = read(text)
    if root is None or root.kind != "object":
        return tuple(
            DocumentFinding(ERROR, "", _message_of(problem), 1, 1, 0, len(text)) for problem in decoded.problems
        )
    document = root.value
    checked = check_document(decoded, builtin_models(), in_cloud(document, context.resources, partial=partial))
    problems = [
        *((ERROR, problem) for problem in checked.problems),
        *((WARNING, problem) for problem in checked.warnings if problem.path.partition(".")[0] not in CLOUD_KEYS),
        *_deprecations(document, context),
    ]
    unique = {
        (problem.path, problem.message): (severity, problem)
        for severity, problem in problems
        if not _in_variable(root, problem.path)
    }
    lines = Lines(text)
    return tuple(
        sorted(
            (_finding(*problem, text, lines, root) for problem in unique.values()),
            key=lambda problem: (problem.start, problem.end),
        )
    )


def _message_of(problem: ConfigError) -> str:
    return f"{problem.reason}: {problem.remedy}" if problem.remedy else problem.reason


def _finding(severity: str, problem: ConfigError, text: str, lines: Lines, root: JsonNode) -> DocumentFinding:
    start, end = span_of(root, problem.path)
    sentence = _sentence(problem, root)
    return DocumentFinding(severity, problem.path, _message_of(problem), *lines.position(start), start, end, sentence)


def _sentence(problem: ConfigError, root: JsonNode) -> str:
    """Return the problem with the names of the entry and its keys instead of a path."""
    place = " › ".join(_names_on(problem.path, root))
    needed = _MUST_BE.match(problem.reason)
    if needed is None:
        return f"{place}: {_message_of(problem)}" if place else _message_of(problem)
    obvious = problem.remedy == f"write {needed[1]}"
    return f"{place} {problem.reason if obvious else _message_of(problem)}"


def _names_on(path: str, root: JsonNode) -> Iterator[str]:
    """Yield the names that a form shows on the way to a path: an entry's name, not its section and number."""
    segments = path.split(".")
    entry = at(root, tuple(segments[:2])) if len(segments) > 1 else None
    name = entry.get("name") if entry is not None and entry.kind == "object" else None
    if segments[0] in NAMED and name is not None and isinstance(name.value, str):
        yield name.value
        segments = segments[2:]
    yield from (segment for segment in segments if segment != "attributes")


def _of_syntax(error: JSONSyntaxError, text: str) -> DocumentFinding:
    lines = text.split("\n")
    start = min(sum(len(line) + 1 for line in lines[: error.line - 1]) + error.column - 1, len(text))
    reason = error.reason.partition(": ")[2] or error.reason
    message = f"{reason}: {error.remedy}" if error.remedy else reason
    return DocumentFinding(ERROR, "", message, error.line, error.column, start, min(start + 1, len(text)))


def _in_variable(root: JsonNode, path: str) -> bool:
    """Return whether the path lies in a fragment variable, whose value is not known yet."""
    node: JsonNode | None = root
    for segment in path.split("."):
        if node is None:
            return False
        if node.kind == "object":
            node = node.get(segment)
        elif node.kind == "array" and (index := index_of(segment)) is not None and index < len(node.items):
            node = node.items[index]
        else:
            return False
        if node is not None and node.kind == "object" and node.get("$variable") is not None:
            return True
    return False


def _deprecations(document: Mapping[str, Any], context: EditingContext) -> Iterator[tuple[str, ConfigError]]:
    """Yield warnings for deprecated modules and packages."""
    for section, key in (("modules", "module_id"), ("packages", "package")):
        for index, entry in enumerate(_section(document, section)):
            if not isinstance(entry, Mapping) or (section == "modules" and entry.get("type") != "registry"):
                continue
            item_name = str(entry.get(key))
            for version, advised_key in {str(entry.get("version") or ""): "version", "": key}.items():
                advice = context.advice.get((item_name.replace("/", ":", 1), version))
                if advice is not None:
                    reason = f"{item_name} {version}".rstrip() + " is deprecated"
                    yield WARNING, ConfigError(join(section, index, advised_key), reason, remedy=advice)


def _section(document: Mapping[str, Any], key: str) -> Iterable[Any]:
    section = document.get(key)
    return section if isinstance(section, list) else ()
