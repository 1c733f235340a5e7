"""View models of the trigger pages: triggers in words, deliveries, and live parts of the pages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cloud.domain.triggering.deliveries import Attempt, Delivery
from cloud.domain.triggering.senders import message_of
from cloud.services.triggers import Overview, Rule, Tried, Triggers
from rpc.pages.patches import Piece
from schema.decoding.syntax import parse_json
from schema.errors import ErrorKind, MachineError
from triggers.document import EMAIL
from triggers.operators import OPERATORS

MAX_SHOWN: Final = 64 * 1024  # characters of a body

_EVENTS: Final = {
    "part_data_ingested": "data is ingested",
    "conditional_data_ingested": "data meets a condition",
    "conditional_logs_ingested": "a message is logged",
    "part_online": "it comes online",
    "part_offline": "it goes offline",
}


@dataclass(frozen=True, slots=True)
class DryRun:
    """A test of a trigger and its result. `text` is the reading as typed."""

    trigger: str
    text: str
    tried: Tried | None = None
    error: str = ""


def event_of(one: Delivery) -> str:
    """Return the event of a delivery in words."""
    return _EVENTS.get(one.event, one.event)


def words(rule: Rule) -> tuple[str, list[str], str]:
    """Return a description of a trigger: its event, its conditions, one per line, and an example reading as JSON."""
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
    """Return an example reading with the fields that the conditions compare."""
    reading: dict[str, Any] = {}
    for one in evals:
        if isinstance(one["value"], Mapping):
            reading = _merged(reading, one["value"])
    return json.dumps(reading or {"temperature": 31.5}, ensure_ascii=False)


def _merged(reading: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two nested objects; values of `more` take precedence."""
    both = dict(reading)
    for key, value in more.items():
        nested = both.get(key)
        both[key] = _merged(nested, value) if isinstance(nested, Mapping) and isinstance(value, Mapping) else value
    return both


def _conditions(one: Mapping[str, Any]) -> list[str]:
    sign, value = OPERATORS[one["operator"]].sign, one["value"]
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
    found = parse_json(text.encode())
    if not isinstance(found, Mapping):
        raise MachineError(
            "the reading is not a JSON object", kind=ErrorKind.INVALID, remedy='write for example {"temperature": 31.5}'
        )
    return found


def body_of(one: Delivery) -> str:
    """Return the body of a delivery as readable text."""
    if one.type == EMAIL:
        part = message_of(one).get_body(("plain",))
        text = part.get_content() if part is not None else ""
    else:
        text = one.body.decode("utf-8", "replace")
        try:
            text = json.dumps(json.loads(text), indent=2, ensure_ascii=False) if text else ""
        except ValueError:
            pass  # shown unchanged
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}\n(truncated: {len(text)} characters)"


def digest_of(found: Triggers) -> str:
    """Return a digest of the triggers as displayed, to detect that a page is outdated."""
    told = [(one.name, one.notes, words(one)) for one in found.triggers], found.problems, found.warnings
    return hashlib.blake2s(repr(told).encode(), digest_size=8).hexdigest()


def pieces_of_part(
    part: str, found: Triggers, known: str, log: Sequence[Delivery], older: str, *, narrowed: bool
) -> list[Piece]:
    """Return the live parts of a part's trigger page, which shows the triggers with the digest `known`."""
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
    """Return the live parts of the page of a delivery."""
    facts = (one.state, one.due)
    return [
        Piece("state", "delivery_state", (one,), facts),
        Piece("facts", "delivery_facts", (one, event_of(one)), facts),
        Piece("again", "again", (part, one, owner), (facts, owner)),
        Piece("tries", "tries", (attempts,), len(attempts)),
    ]


def overview_pieces(rows: Sequence[Overview]) -> list[Piece]:
    """Return the live part of the page of all machines with triggers."""
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
