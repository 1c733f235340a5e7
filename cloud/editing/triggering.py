"""Triggers as forms on pages: a form becomes an entry of `triggers` in a configuration, and an entry a form. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from schema import ConfigError, ErrorKind, MachineError
from triggers import CONDITIONAL, DATA, LOGS, examine_triggers

FIELDS: Final = ("name", "event", "method", "field", "operator", "value", "level", "kind", "to", "address", "pause")
"""Fields of the form; those that the event does not use are ignored."""

LABELS: Final[Mapping[str, str]] = {
    "seconds_between_notifications": "Pause",
    "notifications": "To",
    "data_capture_method": "Readings of",
    "evals": "Value",
    "name": "Name",
    "type": "When",
}
"""Labels of fields in the form, by a part of the path of what they become."""

EMPTY: Final[Mapping[str, str]] = {**dict.fromkeys(FIELDS, ""), "event": CONDITIONAL, "operator": "gt", "to": "webhook"}


def entry_of(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the trigger that a form describes. INVALID, with the reasons, if it is not one."""
    kind = form["event"]
    event: dict[str, Any] = {"type": kind}
    if kind == DATA:
        event["data_ingested"] = {"data_types": [form["kind"] or "tabular"]}
    elif kind == CONDITIONAL:
        event["conditional"] = {"data_capture_method": form["method"]}
        if form["field"]:
            comparison = {"operator": form["operator"], "value": {form["field"]: _value(form)}}
            event["conditional"]["conditions"] = {"evals": [comparison]}
    elif kind == LOGS:
        event["log_levels"] = [form["level"] or "error"]
    target: dict[str, Any] = {"type": form["to"], "value": form["address"]}
    if form["pause"] and kind in (DATA, CONDITIONAL):
        target["seconds_between_notifications"] = _seconds(form["pause"])
    entry = {"name": form["name"], "event": event, "notifications": [target]}
    if problems := examine_triggers([entry], "").problems:
        raise MachineError("; ".join(map(_said, problems)), kind=ErrorKind.INVALID)
    return entry


def form_of(document: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return the form of a trigger of a configuration. NOT_FOUND if it has none with this name; PRECONDITION if the
    form cannot express it, so that only the editor can change it.
    """
    entry = next((each for each in _triggers(document) if _name(each) == name), None)
    if entry is None:
        raise _missing(name)
    form = _form(entry)
    try:
        if form is not None and entry_of(form) == entry:
            return form
    except MachineError:
        pass
    raise MachineError(
        f"the trigger {name[:100]!r} has more than the form can show",
        kind=ErrorKind.PRECONDITION,
        remedy="change it in the configuration",
    )


def with_trigger(document: Mapping[str, Any], entry: Mapping[str, Any], old: str = "") -> dict[str, Any]:
    """Return the document with a trigger added, or with the trigger named `old` replaced.

    EXISTS if the name is taken, NOT_FOUND if there is no `old`.
    """
    present = _triggers(document)
    names = [_name(each) for each in present]
    if old and old not in names:
        raise _missing(old)
    if entry["name"] in names and entry["name"] != old:
        raise MachineError(
            f"there is already a trigger {entry['name']!r}", kind=ErrorKind.EXISTS, remedy="choose another name"
        )
    if not old:
        return {**document, "triggers": [*present, entry]}
    place = names.index(old)
    return {**document, "triggers": [*present[:place], entry, *present[place + 1 :]]}


def _said(problem: ConfigError) -> str:
    """Return an error with the label of its field instead of its path."""
    label = next((label for part, label in LABELS.items() if part in problem.path), "")
    text = f"{label}: {problem.reason}" if label else str(problem)
    return f"{text}: {problem.remedy}" if label and problem.remedy else text


def _triggers(document: Mapping[str, Any]) -> list[Any]:
    present = document.get("triggers") or []
    if not isinstance(present, list):
        raise MachineError(
            "triggers is not a list", kind=ErrorKind.PRECONDITION, remedy="correct it in the editor first"
        )
    return present


def _name(entry: Any) -> Any:
    return entry.get("name") if isinstance(entry, Mapping) else None


def _missing(name: str) -> MachineError:
    return MachineError(
        f"the configuration of this machine has no trigger {name[:100]!r}",
        kind=ErrorKind.NOT_FOUND,
        remedy="a trigger of a fragment is changed in the fragment",
    )


def _form(entry: Mapping[str, Any]) -> dict[str, str] | None:
    """Return a form that may describe an entry; None for one that no form describes."""
    try:
        event = entry["event"]
        conditional = event.get("conditional") or {}
        comparison = ((conditional.get("conditions") or {}).get("evals") or [{}])[0]
        field, value = next(iter(comparison.get("value", {"": ""}).items()))
        target = entry["notifications"][0]
        pause = target.get("seconds_between_notifications", 0)
        operator = comparison.get("operator", EMPTY["operator"])
        text = isinstance(value, str) and (operator == "regex" or not _is_json(value))
        return {
            "name": entry["name"],
            "event": event["type"],
            "method": conditional.get("data_capture_method", ""),
            "field": field,
            "operator": operator,
            "value": value if text else json.dumps(value, ensure_ascii=False),
            "level": (event.get("log_levels") or [""])[0],
            "kind": ((event.get("data_ingested") or {}).get("data_types") or [""])[0],
            "to": target["type"],
            "address": target["value"],
            "pause": f"{pause:g}" if pause else "",
        }
    except (KeyError, IndexError, AttributeError, TypeError, ValueError, StopIteration):
        return None


def _value(form: Mapping[str, str]) -> Any:
    """Return the value of a comparison: JSON such as 30 or true, or else the text itself. A pattern is always text."""
    if form["operator"] != "regex" and _is_json(form["value"]):
        return json.loads(form["value"])
    return form["value"]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise MachineError(
            f"the pause {text[:40]!r} is not a number of seconds", kind=ErrorKind.INVALID, remedy="write for example 60"
        ) from None
