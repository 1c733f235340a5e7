"""Evaluation of readings against conditions and of events against triggers, with explanations. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from schema.decoding.report import shown
from triggers.condition import Comparison, Eval, comparisons
from triggers.document import CONDITIONAL, DATA, LOGS, OFFLINE, ONLINE, Trigger, split_method
from triggers.events import Firing, Happening, Ingested, Logged, Presence
from triggers.operators import OPERATORS, Verdict, to_double, type_of
from triggers.regex import Effort

_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one comparison with one reading."""

    path: str  # "" for the reading itself
    operator: str
    found: Any  # value in the reading, None if absent
    right: Any
    holds: bool
    reason: str  # explanation, such as `31.5 is greater than 30`


@dataclass(frozen=True, slots=True)
class Explanation:
    """Result of a dry run of a trigger."""

    fires: bool
    reason: str  # explanation of the whole result
    findings: tuple[Finding, ...] = ()  # of the reading that fires, otherwise of the first reading


def holds(wanted: Eval, reading: Any) -> bool:
    """Return True if a reading satisfies an eval. Missing, null, non-finite and differently typed values never do."""
    return _holds(_asked((wanted,)), reading)


def satisfies(evals: Sequence[Eval], reading: Any) -> bool:
    """Return True if a reading satisfies all evals. Without evals, every reading does."""
    return _holds(_asked(evals), reading)


def _asked(evals: Sequence[Eval]) -> list[tuple[str, Comparison]]:
    """Return all comparisons with their operators."""
    return [(wanted.operator, one) for wanted in evals for one in comparisons(wanted)]


def _holds(asked: Sequence[tuple[str, Comparison]], reading: Any, effort: Effort | None = None) -> bool:
    for operator, one in asked:
        if effort is not None:
            if effort.left <= 0:
                return False
            effort.left -= 1
        if not _compare(operator, one, lookup(reading, one.path), effort)[0]:
            return False
    return True


def findings(evals: Sequence[Eval], reading: Any) -> tuple[Finding, ...]:
    """Return the results of all comparisons with a reading, in the order of the condition."""
    result = []
    for wanted in evals:
        for one in comparisons(wanted):
            found = lookup(reading, one.path)
            verdict, reason = _compare(wanted.operator, one, found)
            known = None if found is _MISSING else found
            words = _filled(reason, found, one)
            result.append(Finding(".".join(one.path), wanted.operator, known, one.right, verdict, words))
    return tuple(result)


def fires(trigger: Trigger, event: Happening, effort: Effort | None = None) -> Firing | None:
    """Return the firing of a trigger for an event, None if it does not fire; at most one for all readings of an upload.

    Readings that are not evaluated because `effort` is used up count as not satisfying the condition.
    """
    wanted = trigger.event
    if isinstance(event, Presence):
        kind = ONLINE if event.online else OFFLINE
        return Firing(trigger.name, kind, event) if wanted.type == kind else None
    if isinstance(event, Logged):
        if wanted.type != LOGS:
            return None
        lines = [line for level in dict.fromkeys(wanted.log_levels) for line in event.entries.get(level, ())]
        lines.sort(key=lambda line: line.time)
        return Firing(trigger.name, LOGS, event, count=len(lines), lines=tuple(lines)) if lines else None
    if wanted.type == DATA and wanted.data_ingested is not None:
        if event.data_type not in wanted.data_ingested.data_types:
            return None
        return Firing(trigger.name, DATA, event, reading=next(iter(event.readings), None), count=len(event.readings))
    if wanted.type == CONDITIONAL and wanted.conditional is not None:
        if not listens(wanted.conditional.data_capture_method, event):
            return None
        evals = wanted.conditional.evals
        asked = _asked(evals)
        matching = [reading for reading in event.readings if _holds(asked, reading.data, effort)]
        if evals and not matching:
            return None
        return Firing(trigger.name, CONDITIONAL, event, evals, next(iter(matching), None), len(matching))
    return None


def explain(trigger: Trigger, event: Happening) -> Explanation:
    """Explain whether and why a trigger fires for an event, consistent with `fires`."""
    firing = fires(trigger, event)
    wanted = trigger.event
    if isinstance(event, Presence):
        said = f"the part {'came online' if event.online else 'went offline'}"
        return Explanation(firing is not None, f"{said}; the trigger waits for {wanted.type}")
    if isinstance(event, Logged):
        counts = ", ".join(f"{len(lines)} {level}" for level, lines in event.entries.items()) or "nothing"
        levels = ", ".join(wanted.log_levels) if wanted.type == LOGS else wanted.type
        return Explanation(firing is not None, f"logged: {counts}; the trigger waits for {levels}")
    came = f"{event.component_type}:{event.component_name}:{event.method}"
    if wanted.type == DATA and wanted.data_ingested is not None:
        types = ", ".join(wanted.data_ingested.data_types)
        return Explanation(firing is not None, f"data of type {event.data_type} came; the trigger waits for {types}")
    if wanted.type != CONDITIONAL or wanted.conditional is None:
        return Explanation(False, f"data came; the trigger waits for {wanted.type}")
    method = wanted.conditional.data_capture_method
    if not listens(method, event):
        return Explanation(False, f"data came from {came}; the trigger listens to {method}")
    return _explained(wanted.conditional.evals, event, firing)


def _explained(evals: tuple[Eval, ...], event: Ingested, firing: Firing | None) -> Explanation:
    if not evals:
        return Explanation(True, "there are no conditions: every upload from this component fires")
    shown_reading = firing.reading if firing and firing.reading else next(iter(event.readings), None)
    if shown_reading is None:
        return Explanation(False, "the upload holds no readings")
    found = findings(evals, shown_reading.data)
    if firing is None:
        failed = sum(not one.holds for one in found)
        several = (
            f"none of {len(event.readings)} readings satisfies them; of the first, " if len(event.readings) > 1 else ""
        )
        return Explanation(False, f"all comparisons must hold: {several}{failed} of {len(found)} do not", found)
    satisfied = (
        f"{firing.count} of {len(event.readings)} readings satisfy"
        if len(event.readings) > 1
        else "the reading satisfies"
    )
    return Explanation(True, f"{satisfied} all comparisons", found)


def listens(method: str, event: Ingested) -> bool:
    """Return True if a `data_capture_method` is the source of an upload: type, component and method must be equal."""
    kind, name, called = split_method(method)
    came = event.component_type.rpartition(":")[2]
    return (kind, name, called) == (came, event.component_name, event.method)


def lookup(reading: Any, path: Sequence[str]) -> Any:
    """Return the value at a path, first inside `readings`, then at the top level; `_MISSING` if absent.

    An empty path is the reading itself unless it is an object. Keys that contain dots are also found.
    """
    inner = reading.get("readings", _MISSING) if isinstance(reading, Mapping) else _MISSING
    for start in (inner, reading):
        found = _walk(start, path)
        if found is not _MISSING and (path or not isinstance(found, Mapping)):
            return found
    return _MISSING


def _walk(value: Any, path: Sequence[str]) -> Any:
    at = 0
    while at < len(path):
        if not isinstance(value, Mapping):
            return _MISSING
        for end in range(at + 1, len(path) + 1):
            key = ".".join(path[at:end])
            if key in value:
                value, at = value[key], end
                break
        else:
            return _MISSING
    return value


def _compare(operator: str, one: Comparison, left: Any, effort: Effort | None = None) -> Verdict:
    """Return whether a comparison holds, and an explanation with {here} and {there} for the two sides."""
    if left is _MISSING:
        return False, "the reading has no such field" if one.path else "the reading is an object, not a single value"
    if left is None:
        return False, "the field is null"
    kind, other = type_of(left), type_of(one.right)
    if kind == "a number" and to_double(left) is None:
        return False, "{here} is no finite number"
    row = OPERATORS[operator]
    if kind != other and not row.any_type:
        return False, f"{{here}} is {kind}, {{there}} is {other}: they are not compared"
    return row.compare(left, one.right, effort)


def _filled(reason: str, left: Any, one: Comparison) -> str:
    name = one.path[-1] if one.path else ""
    sides = {"here": left, "there": one.right}
    return _SIDE.sub(lambda match: _shown(sides[match[1]], name), reason)


def _shown(value: Any, name: str) -> str:
    try:
        return shown(value, name)
    except RecursionError:
        return "something nested too deeply"


_SIDE = re.compile(r"\{(here|there)\}")
