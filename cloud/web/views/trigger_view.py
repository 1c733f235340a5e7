"""View models of the trigger pages: triggers in words, deliveries, and live parts of the pages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cloud.domain.triggering.deliveries import Attempt, Delivery
from cloud.domain.triggering.senders import message_of
from cloud.services.triggers.trigger_messages import Trigger, Triggers, TriggerTest
from cloud.services.triggers.triggers import Overview
from rpc.pages import Piece
from schema import ErrorKind, MachineError
from schema.decoding import parse_json
from triggers import CONDITIONAL, DATA, EMAIL, LOGS, OFFLINE, ONLINE, OPERATORS, WEBHOOK

MAX_SHOWN: Final = 64 * 1024  # characters of a body

_EVENTS: Final = {
    "part_data_ingested": "data is ingested",
    "conditional_data_ingested": "data meets a condition",
    "conditional_logs_ingested": "a message is logged",
    "part_online": "it comes online",
    "part_offline": "it goes offline",
}


_SIGNS: Final = {"lt": "less", "gt": "greater", "lte": "at most", "gte": "at least", "eq": "equal", "neq": "different"}


@dataclass(frozen=True, slots=True)
class DryRun:
    """A test of a trigger and its result. `text` is the reading as typed."""

    trigger: str
    text: str
    result: TriggerTest | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class TriggerDraft:
    """The form of a trigger: of a new one, or of the one named `old`. Without a form, `error` says why."""

    old: str
    form: Mapping[str, str] | None
    error: str = ""


FORM_CHOICES: Final[Mapping[str, Sequence[tuple[str, str]]]] = {
    "event": (
        (CONDITIONAL, "a reading meets a condition"),
        (DATA, "any data arrives"),
        (LOGS, "a message is logged"),
        (OFFLINE, "the machine goes offline"),
        (ONLINE, "the machine comes online"),
    ),
    "operator": [
        (row.name, row.sign if row.sign == "matches" else f"{row.sign} {_SIGNS[row.name]}")
        for row in OPERATORS.values()
    ],
    "kind": (("tabular", "readings"), ("binary", "pictures and other files")),
    "level": (("error", "error"), ("warn", "warning"), ("info", "information")),
    "to": ((WEBHOOK, "webhook"), (EMAIL, "email")),
}
"""Choices of the form of a trigger: values and texts, by field."""


def event_of(delivery: Delivery) -> str:
    """Return the event of a delivery in words."""
    return _EVENTS.get(delivery.event, delivery.event)


def words(rule: Trigger) -> tuple[str, list[str], str]:
    """Return a description of a trigger: its event, its conditions, one per line, and an example reading as JSON."""
    description, condition = _EVENTS.get(rule.event, rule.event), rule.condition
    if types := condition.get("data_types"):
        description = f"{', '.join(types)} {description}"
    if levels := condition.get("log_levels"):
        description += f" at {', '.join(levels)}"
    if method := condition.get("data_capture_method"):
        description = f"data from {method} meets a condition" if condition["evals"] else f"data comes from {method}"
    evals = condition.get("evals", ())
    return description, [line for comparison in evals for line in _conditions(comparison)], _example(evals)


def _example(evals: Sequence[Mapping[str, Any]]) -> str:
    """Return an example reading with the fields that the conditions compare."""
    reading: dict[str, Any] = {}
    for comparison in evals:
        if isinstance(comparison["value"], Mapping):
            reading = _merged(reading, comparison["value"])
    return json.dumps(reading or {"temperature": 31.5}, ensure_ascii=False)


def _merged(reading: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two nested objects; values of `more` take precedence."""
    combined = dict(reading)
    for key, value in more.items():
        nested = combined.get(key)
        combined[key] = _merged(nested, value) if isinstance(nested, Mapping) and isinstance(value, Mapping) else value
    return combined


def _conditions(comparison: Mapping[str, Any]) -> list[str]:
    sign, value = OPERATORS[comparison["operator"]].sign, comparison["value"]
    if not isinstance(value, Mapping):
        return [f"reading {sign} {json.dumps(value, ensure_ascii=False)}"]
    lines = []
    for name, inner in value.items():
        path = name
        while isinstance(inner, Mapping) and len(inner) == 1:
            key, inner = next(iter(inner.items()))
            path += f".{key}"
        lines.append(f"{path} {sign} {json.dumps(inner, ensure_ascii=False)}")
    return lines


def reading_in(text: str) -> Mapping[str, Any] | None:
    """Parse the reading that the user typed; None if the field is empty. INVALID if it is not a JSON object."""
    if not text:
        return None
    reading = parse_json(text.encode())
    if not isinstance(reading, Mapping):
        raise MachineError(
            "the reading is not a JSON object", kind=ErrorKind.INVALID, remedy='write for example {"temperature": 31.5}'
        )
    return reading


def body_of(delivery: Delivery) -> str:
    """Return the body of a delivery as readable text."""
    if delivery.type == EMAIL:
        part = message_of(delivery).get_body(("plain",))
        text = part.get_content() if part is not None else ""
    else:
        text = delivery.body.decode("utf-8", "replace")
        try:
            text = json.dumps(json.loads(text), indent=2, ensure_ascii=False) if text else ""
        except ValueError:
            pass  # shown unchanged
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}\n(truncated: {len(text)} characters)"


def digest_of(triggers: Triggers) -> str:
    """Return a digest of the triggers as displayed, to detect that a page is outdated."""
    displayed = (
        [(trigger.name, trigger.notes, words(trigger)) for trigger in triggers.triggers],
        triggers.problems,
        triggers.warnings,
    )
    return hashlib.blake2s(repr(displayed).encode(), digest_size=8).hexdigest()


def pieces_of_part(
    part: str, triggers: Triggers, shown_digest: str, log: Sequence[Delivery], older: str, *, narrowed: bool
) -> list[Piece]:
    """Return the live parts of a part's trigger page, which shows the triggers with `shown_digest`."""
    changed = digest_of(triggers) != shown_digest
    targets = [
        Piece(f"targets-{at}", "targets", (rule.targets, at), rule.targets)
        for at, rule in enumerate(triggers.triggers, 1)
    ]
    log_facts = [(delivery.id, delivery.state, delivery.due, delivery.attempts) for delivery in log]
    return [
        Piece("changed", "changed", (changed,), changed),
        *([] if changed else targets),
        Piece("delivery-log", "log", (part, log, older, narrowed), log_facts),
    ]


def pieces_of_delivery(part: str, delivery: Delivery, attempts: Sequence[Attempt], owner: bool) -> list[Piece]:
    """Return the live parts of the page of a delivery."""
    facts = (delivery.state, delivery.due)
    return [
        Piece("state", "delivery_state", (delivery,), facts),
        Piece("facts", "delivery_facts", (delivery, event_of(delivery)), facts),
        Piece("again", "again", (part, delivery, owner), (facts, owner)),
        Piece("tries", "tries", (attempts,), len(attempts)),
    ]


def overview_pieces(rows: Sequence[Overview]) -> list[Piece]:
    """Return the live part of the page of all machines with triggers."""
    facts = [
        (
            row.part,
            row.name,
            row.location,
            row.triggers,
            row.problems,
            row.latest and (row.latest.id, row.latest.state, row.latest.tries),
        )
        for row in rows
    ]
    return [Piece("overview", "overview", (rows,), facts)]
