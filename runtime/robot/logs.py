"""Messages that others logged and sent here: into this machine's own log, under names that say who sent them."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, cast

from runtime.robot.messages import LogEntry
from schema.errors import ConfigError
from schema.log import LEVELS, parse_level
from telemetry.log import REVEALED
from telemetry.names import ACTIVITY, FULL_NAME, MODULES, ROOT, of_module, of_resource

if TYPE_CHECKING:
    from runtime.machine import Machine

LATE: Final = timedelta(seconds=1)  # an entry older than this keeps its own time beside the time of arrival
_RESERVED: Final = frozenset(
    {"event", "level", "logger", "timestamp", "exc_info", "stack_info", "log_ts", "host", "stack", REVEALED}
)
_ALSO: Final = {"trace": "debug", "notice": "info", **dict.fromkeys(("critical", "dpanic", "panic", "fatal"), "error")}
"""Levels of the SDKs' own logging libraries that the machine does not have."""

_CALLER = re.compile(r"(?P<file>[^\s:]+\.\w+):(?P<line>\d+)\t")  # the Python SDK writes it before the message
_BOOL, _STRING = 4, 15
"""Types of a field's value, as the logging library of Go modules numbers them (zapcore.FieldType)."""

_NO_STACK: Final = "exc_info: None, exc_text: None, stack_info: None"  # the Python SDK's word for none


def forward(entries: Iterable[LogEntry], *, sender: str = "", machine: Machine | None = None) -> None:
    """Log each entry; a level that is not known counts as info.

    `sender` is the module that sends them, as it says itself. Without it, the module is that which offers the resource
    or has the name that the logger is called by on `machine`.
    """
    now = datetime.now(UTC)
    for entry in entries:
        fields: dict[str, Any] = {
            f"field_{key}" if key.rstrip("_") in _RESERVED or key.startswith("_") else key: value
            for one in entry.fields
            for key, value in _pairs(one)
        }
        if entry.time is not None and now - entry.time > LATE:
            fields["log_ts"] = entry.time.isoformat()
        if entry.stack and entry.stack != _NO_STACK:
            fields["stack"] = entry.stack
        _log(entry, logger_of(entry.logger_name, sender, lambda part: _module_of(machine, part)), fields)


def logger_of(name: str, sender: str = "", module_of: Callable[[str], str] = lambda part: "") -> str:
    """The logger of a message whose sender calls it `name`.

    That of the resource whose full name stands in `name`, below its module if that is known: by `sender`, or by
    `module_of`, which knows the module of a resource's full name and of its own name. Else that of the module and the
    rest of the name.
    """
    found = FULL_NAME.search(name)
    dotted = name.replace("/", ".").strip(".")
    bare = dotted.removeprefix(f"{MODULES}.")
    first, _, rest = bare.partition(".")
    module = sender or module_of(found["full"] if found else first)
    if found:
        return f"{of_module(module)}.{found['full']}" if module else of_resource(found["full"])
    if module:
        below = rest if first == module else bare
        return f"{of_module(module)}.{below}" if below else of_module(module)
    forged = dotted == ACTIVITY or dotted.startswith(f"{ACTIVITY}.")  # it is never suppressed, so it is ours alone
    return f"{ROOT}.client.{dotted}" if forged else dotted or ROOT


def _module_of(machine: Machine | None, name: str) -> str:
    modules = machine.modules if machine is not None else None
    if machine is None or modules is None:
        return ""
    if name in modules.links:
        return name
    wanted = machine.wanted.get(name)
    link = getattr(wanted.attributes, "link", None) if wanted is not None else None
    return link.module.name if link is not None else ""


def _log(entry: LogEntry, name: str, fields: dict[str, Any]) -> None:
    logger, level = logging.getLogger(name), _level(entry.level)
    if not logger.isEnabledFor(level):
        return
    message, file, line = entry.message, "", 0
    if match := _CALLER.match(message):
        message, file, line = message[match.end() :], match["file"], int(match["line"])
    elif isinstance(told := entry.caller.get("File"), str):
        file, line = told, int(cast("float", entry.caller.get("Line") or 0))
    logger.handle(logging.LogRecord(name, level, file, line, {"event": message, **fields}, None, None))


def _pairs(field: object) -> Iterable[tuple[str, object]]:
    """One field of an entry: `{"Key": name, "String": text, ...}` as Go modules write it, else plain keys."""
    if not isinstance(field, dict):
        return ()
    if isinstance(key := field.get("Key"), str):
        return ((key, _value(field)),)
    return field.items()


def _value(field: Mapping[str, Any]) -> object:
    """All kinds of value are written, those that it has not as nothing: 0 and "" are told apart by its type."""
    if field.get("Type") == _BOOL:
        return bool(field.get("Integer"))
    nothing = field.get("Integer", "") if field.get("Type") != _STRING else ""
    return next((field[kind] for kind in ("String", "Integer", "Interface") if field.get(kind)), nothing)


def _level(word: str) -> int:
    try:
        return parse_level(_ALSO.get(word.strip().lower(), word))
    except ConfigError:
        return LEVELS["info"]
