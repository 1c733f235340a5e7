"""Alerts and their rules as pages show them: words, links, and the form of a rule."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlencode

from cloud.domain.alerts.wording import shown_value
from cloud.services.alerts.alert_messages import Alert, AlertEvent, AlertRule
from schema import ErrorKind, MachineError

AROUND: Final = timedelta(hours=2)  # before and after the beginning of an alert, in its plot
KINDS: Final = (
    ("reading", "a reading"),
    ("offline", "the machine is offline"),
    ("health", "resources do not work"),
    ("update", "an update failed"),
    ("training", "a training job failed"),
)
OPERATORS: Final = (
    ("gt", "is above"),
    ("gte", "is at least"),
    ("lt", "is below"),
    ("lte", "is at most"),
    ("eq", "equals"),
    ("neq", "does not equal"),
)
NO_DATA: Final = (("keep", "keeps its state"), ("alert", "alerts"), ("resolve", "resolves"))
MODES: Final = (("delay", "wait for their end"), ("drop", "are dropped"))
HAPPENED: Final = {
    "fired": ("unhealthy", "fires"),
    "acknowledged": ("configuring", "acknowledged"),
    "resolved": ("ready", "resolved"),
    "closed": ("unconfigured", "closed"),
    "silenced": ("unconfigured", "silenced"),
    "unsilenced": ("unconfigured", "silence ended"),
}
FIELDS: Final = (
    *("name", "kind", "method", "field", "operator", "value", "recovery", "minutes", "recover", "scope", "tags"),
    *("no_data", "no_data_minutes", "repeat", "group", "message", "targets", "secret"),
    *("zone", "quiet_start", "quiet_end", "quiet_mode", "days"),
)
EMPTY: Final[Mapping[str, str]] = {
    **dict.fromkeys(FIELDS, ""),
    "kind": "reading",
    "operator": "gt",
    "minutes": "5",
    "recover": "0",
    "repeat": "24",
    "group": "30",
    "no_data": "keep",
    "no_data_minutes": "60",
    "quiet_mode": "delay",
    "scope": "{}",
}
CHOICES: Final[Mapping[str, Any]] = {
    "kind": KINDS,
    "operator": OPERATORS,
    "no_data": NO_DATA,
    "mode": MODES,
}


@dataclass(frozen=True, slots=True)
class ShownEvent:
    """An event with its word and the color of it."""

    event: AlertEvent
    color: str
    word: str


def shown_events(events: Sequence[AlertEvent]) -> list[ShownEvent]:
    """Return events as pages show them."""
    return [ShownEvent(event, *HAPPENED.get(event.kind, ("unconfigured", event.kind))) for event in events]


def plot_link(alert: Alert) -> str:
    """Return the address of the plot of what an alert is about, around its beginning; "" unless it is a reading."""
    if alert.kind != "reading" or alert.since is None or not alert.part_id:
        return ""
    kind, _, rest = alert.source.partition(":")
    component, _, method = rest.rpartition(":")
    span = {"start": alert.since - AROUND, "end": alert.since + AROUND}
    times = {name: moment.strftime("%Y-%m-%dT%H:%M:%S") for name, moment in span.items()}
    names = {"part": alert.part_id, "component": component, "type": kind, "method": method}
    return f"/data?{urlencode({'view': 'readings', **names, **times})}"


def rule_link(part: str, machine: str, source: Sequence[str]) -> str:
    """Return the address of the form of a new rule about readings of a machine, and a source in it if that is known.

    The form plots the readings, and its value is a line to drag.
    """
    fields = {"new": "1", "part": part, "method": ":".join(source)}
    if machine:
        fields["scope"] = json.dumps({"machines": [machine]})
    return f"/alerts/rules?{urlencode({name: value for name, value in fields.items() if value})}#form"


def words(record: AlertRule) -> str:
    """Return what a rule alerts about, in words."""
    rule = record.rule
    text = dict(KINDS)[rule["kind"]]
    condition = rule.get("condition")
    if condition:
        of = f" of {condition['component']}" if condition.get("component") else ""
        text = (
            f"{condition['path']}{of} {dict(OPERATORS)[condition['comparison']]} {shown_value(condition['threshold'])}"
        )
    seconds = rule.get("for_seconds", 0)
    return f"{text} for {_duration(seconds)}" if seconds else text


def _duration(seconds: int) -> str:
    for size, name in ((3600, "h"), (60, "min")):
        if seconds % size == 0:
            return f"{seconds // size} {name}"
    return f"{seconds} s"


def form_of(rule: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of the form for a rule."""
    form = dict(EMPTY)
    condition, quiet = rule.get("condition") or {}, rule.get("quiet") or {}
    if condition:
        parts = (condition.get("component_type", ""), condition.get("component", ""), condition.get("method", ""))
        form["method"] = ":".join(parts) if any(parts) else ""
        form |= {"field": condition["path"], "operator": condition["comparison"]}
        form["value"] = json.dumps(condition["threshold"]).strip('"')
        form["recovery"] = "" if condition.get("recovery") is None else f"{condition['recovery']:g}"
    scope = dict(rule.get("scope") or {})
    form["tags"] = ", ".join(scope.pop("tags", ()))
    form |= {
        "name": rule["name"],
        "kind": rule["kind"],
        "scope": json.dumps(scope),
        "minutes": _minutes(rule.get("for_seconds", 0)),
        "recover": _minutes(rule.get("recover_seconds", 0)),
        "repeat": f"{rule.get('repeat_seconds', 0) / 3600:g}",
        "group": str(rule.get("group_seconds", 30)),
        "no_data": rule.get("no_data", "keep"),
        "no_data_minutes": _minutes(rule.get("no_data_seconds", 3600)),
        "message": rule.get("message", ""),
        "targets": "\n".join(target["value"] for target in rule.get("targets", ())),
        "zone": quiet.get("zone", ""),
        "quiet_start": quiet.get("start", ""),
        "quiet_end": quiet.get("end", ""),
        "quiet_mode": quiet.get("mode", "delay"),
        "days": ", ".join(quiet.get("days", ())),
    }
    return form


def rule_of(form: Mapping[str, str], *, enabled: bool) -> dict[str, Any]:
    """Return the rule in a form, as JSON-like data; INVALID for numbers that are none. Services check the rest."""
    scope = _scope(form["scope"], form["tags"])
    rule: dict[str, Any] = {
        "name": form["name"],
        "kind": form["kind"],
        "enabled": enabled,
        "scope": scope,
        "for_seconds": _seconds(form["minutes"], 60, "Minutes"),
        "recover_seconds": _seconds(form["recover"], 60, "Recovery"),
        "repeat_seconds": _seconds(form["repeat"], 3600, "Reminder"),
        "group_seconds": _seconds(form["group"], 1, "Group"),
        "no_data": form["no_data"],
        "no_data_seconds": _seconds(form["no_data_minutes"], 60, "Minutes without data"),
        "message": form["message"].strip(),
        "targets": [_target(line, form["secret"]) for line in form["targets"].split() if line],
    }
    if form["kind"] == "reading":
        rule["condition"] = _condition(form)
    if form["zone"] or form["quiet_start"] or form["quiet_end"]:
        days = [day for day in form["days"].replace(",", " ").lower().split() if day]
        rule["quiet"] = {"zone": form["zone"], "start": form["quiet_start"], "end": form["quiet_end"]}
        rule["quiet"] |= {"mode": form["quiet_mode"], "days": days}
    return rule


def _condition(form: Mapping[str, str]) -> dict[str, Any]:
    kind, _, rest = form["method"].strip().partition(":")
    component, _, method = rest.rpartition(":")
    if kind and not rest:
        raise MachineError(
            f"{kind!r} is not a source of readings",
            kind=ErrorKind.INVALID,
            remedy="write sensor:door:Readings, or nothing for any",
        )
    condition = {
        "path": form["field"].strip(),
        "comparison": form["operator"],
        "threshold": _value(form["value"]),
        "component_type": kind,
        "component": component,
        "method": method,
    }
    if form["recovery"].strip():
        condition["recovery"] = _number(form["recovery"], "Resolves at")
    return condition


def _scope(text: str, tags: str) -> dict[str, Any]:
    try:
        scope = json.loads(text or "{}")
    except (ValueError, RecursionError):
        scope = None
    if not isinstance(scope, dict):
        raise MachineError("the machines are not valid", kind=ErrorKind.INVALID, remedy="choose them from the list")
    names = [tag.strip() for tag in tags.split(",") if tag.strip()]
    return {**scope, **({"tags": names} if names else {})}


def _target(value: str, secret: str) -> dict[str, str]:
    if "://" in value:
        return {"type": "webhook", "value": value, **({"secret": secret.strip()} if secret.strip() else {})}
    return {"type": "email", "value": value}


def _value(text: str) -> float | str | bool:
    text = text.strip()
    if text in ("true", "false"):
        return text == "true"
    try:
        return float(text)
    except ValueError:
        return text


def _minutes(seconds: int) -> str:
    return f"{seconds / 60:g}"


def _seconds(text: str, unit: int, name: str) -> int:
    return round(_number(text or "0", name) * unit)


def _number(text: str, name: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not abs(number) < 1e15:  # NaN, too
        raise MachineError(f"{name}: {text[:40]!r} is not a number", kind=ErrorKind.INVALID, remedy="write a number")
    return number
