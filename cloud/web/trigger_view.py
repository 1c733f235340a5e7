"""What the pages of triggers show: triggers in words, deliveries, and which parts of a page are live."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cloud.access import Role
from cloud.author import Author
from cloud.fleet import fleet
from cloud.store.sql import Sql
from cloud.triggering.api import Rule, Tried, Triggers
from cloud.triggering.configured import with_triggers
from cloud.triggering.deliveries import Attempt, Delivery, latest
from cloud.triggering.senders import message_of
from rpc.pages.patches import Piece
from schema.errors import ErrorKind, MachineError
from schema.syntax import parse_json
from triggers.document import EMAIL

MAX_SHOWN: Final = 64 * 1024  # characters of a body

_EVENTS: Final = {
    "part_data_ingested": "data is ingested",
    "conditional_data_ingested": "data meets a condition",
    "conditional_logs_ingested": "something is logged",
    "part_online": "it comes online",
    "part_offline": "it goes offline",
}
_OPERATORS: Final = {"lt": "<", "gt": ">", "lte": "≤", "gte": "≥", "eq": "=", "neq": "≠", "regex": "matches"}


@dataclass(frozen=True, slots=True)
class Overview:
    """One part in the list of all."""

    part: str
    machine: str
    name: str
    location: str
    triggers: int
    problems: int
    latest: Delivery | None


@dataclass(frozen=True, slots=True)
class DryRun:
    """What somebody has asked of one trigger, and the answer. `text` is what was typed."""

    trigger: str
    text: str
    tried: Tried | None = None
    error: str = ""


def overview(sql: Sql, author: Author) -> list[Overview]:
    """All parts that have triggers, or mistakes in them, by their names."""
    shown = [
        (machine, part) for machine in fleet(sql, author) if machine.role >= Role.OPERATOR for part in machine.parts
    ]
    found = with_triggers(sql, [part.id for _, part in shown])
    sent = latest(sql, list(found))
    rows = [
        Overview(
            part.id,
            machine.name,
            machine.name if part.main else f"{machine.name} / {part.name}",
            machine.location.path,
            len(found[part.id].triggers),
            len(found[part.id].problems),
            sent.get(part.id),
        )
        for machine, part in shown
        if part.id in found
    ]
    return sorted(rows, key=lambda row: row.name.lower())


def event_of(one: Delivery) -> str:
    """What a delivery tells of, in words."""
    return _EVENTS.get(one.event, one.event)


def words(rule: Rule) -> tuple[str, list[str], str]:
    """Describe a trigger: what it waits for, its conditions, one per line, and an example of a reading as JSON."""
    said, condition = _EVENTS.get(rule.event, rule.event), rule.condition
    if types := condition.get("data_types"):
        said = f"{', '.join(types)} {said}"
    if levels := condition.get("log_levels"):
        said += f" at {', '.join(levels)}"
    if method := condition.get("data_capture_method"):
        said = f"data from {method} meets a condition" if condition["evals"] else f"data comes from {method}"
    evals = condition.get("evals", ())
    return said, [line for one in evals for line in _conditions(one)], _example(evals)


def _example(evals: Sequence[Mapping[str, Any]]) -> str:
    """Write a reading that has the fields which the conditions compare."""
    reading: dict[str, Any] = {}
    for one in evals:
        if isinstance(one["value"], Mapping):
            reading = _merged(reading, one["value"])
    return json.dumps(reading or {"temperature": 31.5}, ensure_ascii=False)


def _merged(reading: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two nested objects; the values of `more` win."""
    both = dict(reading)
    for key, value in more.items():
        nested = both.get(key)
        both[key] = _merged(nested, value) if isinstance(nested, Mapping) and isinstance(value, Mapping) else value
    return both


def _conditions(one: Mapping[str, Any]) -> list[str]:
    sign, value = _OPERATORS[one["operator"]], one["value"]
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
    """The reading that somebody has typed; None for an empty field. INVALID."""
    if not text:
        return None
    found = parse_json(text.encode())
    if not isinstance(found, Mapping):
        raise MachineError(
            "the reading is not a JSON object", kind=ErrorKind.INVALID, remedy='write such as {"temperature": 31.5}'
        )
    return found


def body_of(one: Delivery) -> str:
    """The text of what is delivered, as a person can read it."""
    if one.type == EMAIL:
        part = message_of(one).get_body(("plain",))
        text = part.get_content() if part is not None else ""
    else:
        text = one.body.decode("utf-8", "replace")
        try:
            text = json.dumps(json.loads(text), indent=2, ensure_ascii=False) if text else ""
        except ValueError:
            pass  # shown as it is
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}\n(cut off: {len(text)} characters)"


def digest_of(found: Triggers) -> str:
    """The same as long as the page of these triggers says the same of them."""
    told = [(one.name, one.notes, words(one)) for one in found.triggers], found.problems, found.warnings
    return hashlib.blake2s(repr(told).encode(), digest_size=8).hexdigest()


def pieces_of_part(
    part: str, found: Triggers, known: str, log: Sequence[Delivery], older: str, *, narrowed: bool
) -> list[Piece]:
    """The live parts of the page of one machine's triggers, whose triggers were those with the digest `known`."""
    changed = digest_of(found) != known
    targets = [
        Piece(f"targets-{at}", "targets", (rule.targets, at), rule.targets) for at, rule in enumerate(found.triggers, 1)
    ]
    told = [(one.id, one.state, one.due, one.attempts) for one in log]
    return [
        Piece("changed", "changed", (changed,), changed),
        *([] if changed else targets),
        Piece("delivery-log", "log", (part, log, older, narrowed), told),
    ]


def pieces_of_delivery(part: str, one: Delivery, attempts: Sequence[Attempt], owner: bool) -> list[Piece]:
    """The live parts of the page of one delivery."""
    facts = (one.state, one.due)
    return [
        Piece("state", "delivery_state", (one,), facts),
        Piece("facts", "delivery_facts", (one, event_of(one)), facts),
        Piece("again", "again", (part, one, owner), (facts, owner)),
        Piece("tries", "tries", (attempts,), len(attempts)),
    ]


def overview_pieces(rows: Sequence[Overview]) -> list[Piece]:
    """The live part of the page of all machines with triggers."""
    told = [
        (
            one.part,
            one.name,
            one.location,
            one.triggers,
            one.problems,
            one.latest and (one.latest.id, one.latest.state, one.latest.tries),
        )
        for one in rows
    ]
    return [Piece("overview", "overview", (rows,), told)]
