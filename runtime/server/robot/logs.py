"""Writes log messages from modules and clients to this machine's log, under logger names that identify the sender."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

from runtime.server.robot.messages import LogEntry
from schema import ConfigError
from schema.document import LEVELS, parse_level
from telemetry.logs import MAX_MESSAGE, REVEALED
from telemetry.logs.logger_names import ACTIVITY, FULL_NAME, MODULES, ROOT, of_module, of_resource

if TYPE_CHECKING:
    from engine.planning import PlannedResource
    from runtime.parts.modules.manager import Modules

LATE: Final = timedelta(seconds=1)  # older entries keep their own time in an extra field
_RESERVED: Final = frozenset(
    {"event", "level", "logger", "timestamp", "exc_info", "stack_info", "log_ts", "host", "stack", REVEALED}
)
_SDK_LEVELS: Final = {
    "trace": "debug",
    "notice": "info",
    **dict.fromkeys(("critical", "dpanic", "panic", "fatal"), "error"),
}
"""Levels of the SDKs' logging libraries that the machine does not have."""

MAX_LOGGER: Final = 256
"""Characters of a logger name that a module or client chooses; the rest is cut off."""

_CALLER = re.compile(r"(?P<file>[^\s:]{1,500}\.\w{1,20}):(?P<line>\d{1,9})\t")  # prefix of messages from the Python SDK
_BOOL, _STRING = 4, 15
"""Types of field values in the logging library of Go modules (zapcore.FieldType)."""

_NO_STACK: Final = "exc_info: None, exc_text: None, stack_info: None"  # sent by the Python SDK without a stack


def forward(
    entries: Iterable[LogEntry],
    *,
    sender: str = "",
    modules: Modules | None = None,
    planned: Mapping[str, PlannedResource] = MappingProxyType({}),
) -> None:
    """Log each entry; an unknown level counts as info.

    `sender` is the name of the module that sends them. If it is empty, the logger's name identifies the
    module: it is the name of one of `modules`, or of one of the resources in `planned`.
    """
    now = datetime.now(UTC)
    for entry in entries:
        fields: dict[str, Any] = {
            f"field_{key}" if key.rstrip("_") in _RESERVED or key.startswith("_") else key: value
            for field in entry.fields
            for key, value in _pairs(field)
        }
        if entry.time is not None and now - entry.time > LATE:
            fields["log_ts"] = entry.time.isoformat()
        if entry.stack and entry.stack != _NO_STACK:
            fields["stack"] = entry.stack
        _log(entry, logger_of(entry.logger_name, sender, lambda part: _module_of(modules, planned, part)), fields)


def logger_of(name: str, sender: str = "", module_of: Callable[[str], str] = lambda part: "") -> str:
    """Return the logger for a message whose sender uses the logger name `name`.

    If `name` contains the full name of a resource, this is the resource's logger, below that of its module if known.
    Otherwise it is the module's logger with the rest of the name. The module is `sender`, or the result of `module_of`
    for the full name of the resource or the first part of `name`.
    """
    name = name[:MAX_LOGGER]
    match = FULL_NAME.search(name)
    dotted = name.replace("/", ".").strip(".")
    bare = dotted.removeprefix(f"{MODULES}.")
    first, _, rest = bare.partition(".")
    module = sender or module_of(match["full"] if match else first)
    if match:
        return f"{of_module(module)}.{match['full']}" if module else of_resource(match["full"])
    if module:
        below = rest if first == module else bare
        return f"{of_module(module)}.{below}" if below else of_module(module)
    # for the machine's own entries, which are never suppressed
    reserved = dotted == ACTIVITY or dotted.startswith(f"{ACTIVITY}.")
    return f"{ROOT}.client.{dotted}" if reserved else dotted or ROOT


def _module_of(modules: Modules | None, planned: Mapping[str, PlannedResource], name: str) -> str:
    if modules is None:
        return ""
    if name in modules.links:
        return name
    resource = planned.get(name)
    link = getattr(resource.attributes, "link", None) if resource is not None else None
    return link.module.name if link is not None else ""


def _log(entry: LogEntry, name: str, fields: dict[str, Any]) -> None:
    # Not the logger of this name: the standard library keeps each for ever, and others choose the names.
    logger, level = logging.getLogger(), _level(entry.level)
    if not logger.isEnabledFor(level):
        return
    message, file, line = entry.message[: 2 * MAX_MESSAGE], "", 0
    if match := _CALLER.match(message):
        message, file, line = message[match.end() :], match["file"], int(match["line"])
    elif isinstance(caller_file := entry.caller.get("File"), str):
        file, line = caller_file, int(cast("float", entry.caller.get("Line") or 0))
    logger.handle(logging.LogRecord(name, level, file, line, {"event": message, **fields}, None, None))


def _pairs(field: object) -> Iterable[tuple[str, object]]:
    """Return the items of a field: `{"Key": name, "String": text, ...}` from Go modules, or a plain mapping."""
    if not isinstance(field, dict):
        return ()
    if isinstance(key := field.get("Key"), str):
        return ((key, _value(field)),)
    return field.items()


def _value(field: Mapping[str, Any]) -> object:
    """Return the value of a field of a Go module. Unused kinds have zero values, so the type tells 0 from ""."""
    if field.get("Type") == _BOOL:
        return bool(field.get("Integer"))
    zero = field.get("Integer", "") if field.get("Type") != _STRING else ""
    return next((field[kind] for kind in ("String", "Integer", "Interface") if field.get(kind)), zero)


def _level(word: str) -> int:
    try:
        return parse_level(_SDK_LEVELS.get(word.strip().lower(), word))
    except ConfigError:
        return LEVELS["info"]
