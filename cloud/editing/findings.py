"""Everything that is wrong with a configuration's text, each with its place. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cloud.editing.catalogue import Catalogue, Known
from cloud.editing.conforming import mistakes
from cloud.editing.tree import Node, place, position, read
from cloud.paths import index_of
from schema.errors import ConfigError
from schema.machine import Decoded, decode, default_services
from schema.names import ResourceName
from schema.report import did_you_mean, join
from schema.syntax import JSONSyntaxError

ERROR: Final = "error"
WARNING: Final = "warning"
_CLOUD_ONLY: Final = ("fragments", "fragment_mods")
"""Keys that the cloud takes out before the machine sees the document."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong. Lines and columns count from 1, `start` and `end` are characters from the beginning."""

    severity: str
    path: str
    text: str
    line: int
    column: int
    start: int
    end: int


def findings(text: str, known: Known, catalogue: Catalogue, *, partial: bool = False) -> tuple[Finding, ...]:
    """Mistakes in the order of the text. `partial`: it is a fragment, which may leave things to who uses it."""
    decoded = decode(text.encode("utf-8", "surrogatepass"))
    syntax = next((one for one in decoded.problems if isinstance(one, JSONSyntaxError)), None)
    if syntax is not None:
        return (_of_syntax(syntax, text),)
    root = read(text)
    if root is None or root.kind != "object":
        return tuple(Finding(ERROR, "", _said(one), 1, 1, 0, len(text)) for one in decoded.problems)
    document = root.value
    found = [
        *((ERROR, one) for one in decoded.problems),
        *((WARNING, one) for one in decoded.warnings if one.path.partition(".")[0] not in _CLOUD_ONLY),
        *_attributes(document, catalogue),
        *_advised(document, known),
        *(() if partial else _dependencies(decoded, document, known)),
    ]
    kept = {(one.path, one.message): (severity, one) for severity, one in found if not _variable(root, one.path)}
    return tuple(sorted((_placed(*one, text, root) for one in kept.values()), key=lambda one: (one.start, one.end)))


def _said(error: ConfigError) -> str:
    return f"{error.reason}: {error.remedy}" if error.remedy else error.reason


def _placed(severity: str, error: ConfigError, text: str, root: Node) -> Finding:
    start, end = place(root, error.path)
    return Finding(severity, error.path, _said(error), *position(text, start), start, end)


def _of_syntax(error: JSONSyntaxError, text: str) -> Finding:
    lines = text.split("\n")
    start = min(sum(len(line) + 1 for line in lines[: error.line - 1]) + error.column - 1, len(text))
    reason = error.reason.partition(": ")[2] or error.reason
    said = f"{reason}: {error.remedy}" if error.remedy else reason
    return Finding(ERROR, "", said, error.line, error.column, start, min(start + 1, len(text)))


def _variable(root: Node, path: str) -> bool:
    """Whether a fragment's variable stands there: what it will be is not known."""
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


def _attributes(document: Mapping[str, Any], catalogue: Catalogue) -> Iterator[tuple[str, ConfigError]]:
    """Attributes of built-in models; those of a module's models are the module's own business."""
    for section in ("components", "services"):
        for index, entry in enumerate(_list(document, section)):
            if not isinstance(entry, Mapping):
                continue
            api, model = entry.get("api"), entry.get("model") or ("builtin" if section == "services" else "")
            if not (isinstance(api, str) and isinstance(model, str) and model):
                continue
            path = join(section, index)
            found = catalogue.find(api, model)
            if found is None:
                words = [one.word for one in catalogue.of(api)]
                if (":" not in model or model.startswith("rdk:builtin:")) and words and section == "components":
                    remedy = did_you_mean(model, words) or f"there are {', '.join(words)}"
                    yield (
                        WARNING,
                        ConfigError(join(path, "model"), f"no built-in model of {api} is {model!r}", remedy=remedy),
                    )
                continue
            attributes = entry.get("attributes")
            if found.schema is not None and isinstance(attributes or {}, Mapping):
                problems, warnings = mistakes(found.schema, attributes or {}, join(path, "attributes"))
                at = "attributes" if attributes is not None else ""
                yield from ((ERROR, _moved(one, path, at)) for one in problems)
                yield from ((WARNING, one) for one in warnings)


def _advised(document: Mapping[str, Any], known: Known) -> Iterator[tuple[str, ConfigError]]:
    """Modules and packages that their owners advise against."""
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


def _moved(error: ConfigError, path: str, key: str) -> ConfigError:
    """Something is missing in attributes that are not there: the place is the resource."""
    if key or error.path != join(path, "attributes"):
        return error
    return ConfigError(path, f"{error.reason} in its attributes", remedy=error.remedy)


def _dependencies(decoded: Decoded, document: Mapping[str, Any], known: Known) -> Iterator[tuple[str, ConfigError]]:
    """Names in `depends_on` that nothing has. Remotes and fragments may bring names that are not known here."""
    if decoded.document is None or document.get("remotes") or (document.get("fragments") and not known.resources):
        return
    own = {one.name.name for one in decoded.document.resources} | {one.name for one in decoded.document.broken}
    own |= set(known.resources)
    names = own | {one.name.name for one in default_services(decoded.document)}
    for section in ("components", "services"):
        for index, entry in enumerate(_list(document, section)):
            needed = entry.get("depends_on") if isinstance(entry, Mapping) else None
            for number, name in enumerate(needed if isinstance(needed, list) else ()):
                if isinstance(name, str) and name and _last(name) not in names:
                    path = join(section, index, "depends_on", number)
                    remedy = did_you_mean(_last(name), own) or "add it, or remove the entry"
                    yield WARNING, ConfigError(path, f"there is no resource {name!r}", remedy=remedy)


def _last(name: str) -> str:
    if "/" not in name:
        return name
    try:
        return ResourceName.parse(name).name
    except ConfigError:
        return name


def _list(document: Mapping[str, Any], key: str) -> Iterable[Any]:
    found = document.get(key)
    return found if isinstance(found, list) else ()
