"""Texts of notifications: templates with placeholders, webhooks and emails. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from cloud.domain.alerts.life import Value
from cloud.values.limits import ALERT_MESSAGE
from schema import ErrorKind, MachineError

PLACEHOLDERS: Final = ("value", "machine", "location", "rule", "state", "since", "component", "threshold", "link")
DEFAULT: Final = "{machine}: {rule}, {state}"
SHOWN: Final = 20  # alerts in one message; the rest is counted
MAX_LINE: Final = 500  # characters of the line about one alert, which is also a subject
_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")

STATES: Final = {"fired": "firing", "reminded": "still firing", "resolved": "resolved"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One alert in a notification. `state` is one of STATES."""

    alert: str
    state: str
    machine_id: str
    machine: str
    location: str
    component: str
    value: Value
    since: datetime | None
    at: datetime
    link: str


def check_template(text: str) -> None:
    """Raise INVALID if a template is too long or has a placeholder that does not exist."""
    ALERT_MESSAGE.check(len(text), "the message")
    for name in _PLACEHOLDER.findall(text):
        if name not in PLACEHOLDERS:
            raise MachineError(
                f"message: there is no placeholder {{{name[:40]}}}",
                kind=ErrorKind.INVALID,
                remedy=f"use {', '.join('{' + each + '}' for each in PLACEHOLDERS)}",
            )


def shown_value(value: Value) -> str:
    """Return a value for people."""
    if value is None:
        return "no data"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.6g}" if isinstance(value, float | int) else value


def line_of(template: str, rule: str, threshold: str, entry: Entry) -> str:
    """Return the line about one alert: the template with its placeholders filled, on one line."""
    values = {
        "value": shown_value(entry.value),
        "machine": entry.machine,
        "location": entry.location,
        "rule": rule,
        "state": STATES.get(entry.state, entry.state),
        "since": "" if entry.since is None else entry.since.isoformat(timespec="seconds"),
        "component": entry.component,
        "threshold": threshold,
        "link": entry.link,
    }
    text = _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), template or DEFAULT)
    line = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}…"


def subject_of_message(rule: str, lines: Sequence[str], entries: Sequence[Entry]) -> str:
    """Return the subject of a message: the line if there is one alert, otherwise their number."""
    if len(entries) == 1:
        return lines[0]
    counts: dict[str, int] = {}
    for entry in entries:
        state = STATES.get(entry.state, entry.state)
        counts[state] = counts.get(state, 0) + 1
    return f"{rule}: {', '.join(f'{count} {state}' for state, count in counts.items())}"


def body_of(
    rule_id: str, rule: str, organization: Mapping[str, str], lines: Sequence[str], entries: Sequence[Entry], link: str
) -> dict[str, Any]:
    """Return the JSON value of a webhook. `organization` has `id` and `name`; `lines` are about the first SHOWN."""
    return {
        "type": "alert",
        "subject": subject_of_message(rule, lines, entries),
        "rule_id": rule_id,
        "rule": rule,
        "organization_id": organization["id"],
        "org_name": organization["name"],
        "url": link,
        "more": max(0, len(entries) - SHOWN),
        "alerts": [
            {
                "alert_id": entry.alert,
                "state": STATES.get(entry.state, entry.state),
                "message": line,
                "machine_id": entry.machine_id,
                "machine_name": entry.machine,
                "location_name": entry.location,
                "component_name": entry.component,
                "value": entry.value,
                "since": None if entry.since is None else _rfc3339(entry.since),
                "time": _rfc3339(entry.at),
                "url": entry.link,
            }
            for line, entry in zip(lines, entries[:SHOWN], strict=True)
        ],
    }


def _rfc3339(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
