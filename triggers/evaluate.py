"""Evaluation of readings against conditions and of events against triggers, with explanations. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from schema.decoding import Effort, shown
from triggers.condition import Comparison, Eval, comparisons
from triggers.document import CONDITIONAL, DATA, LOGS, OFFLINE, ONLINE, Trigger, split_method
from triggers.events import Firing, Ingested, Logged, Presence, TriggerEvent
from triggers.operators import OPERATORS, Verdict, to_double, type_of

_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """Result of one comparison with one reading."""

    path: str  # "" for the reading itself
    operator: str
    value: Any  # in the reading, None if absent
    right: Any
    holds: bool
    reason: str  # explanation, such as `31.5 is greater than 30`


@dataclass(frozen=True, slots=True)
class Explanation:
    """Result of a dry run of a trigger."""

    fires: bool
    reason: str  # explanation of the whole result
    findings: tuple[ComparisonResult, ...] = ()  # of the reading that fires, otherwise of the first reading


def holds(condition: Eval, reading: Any) -> bool:
    """Return True if a reading satisfies an eval. Missing, null, non-finite and differently typed values never do."""
    return _holds(_comparisons_of((condition,)), reading)


def satisfies(evals: Sequence[Eval], reading: Any) -> bool:
    """Return True if a reading satisfies all evals. Without evals, every reading does."""
    return _holds(_comparisons_of(evals), reading)


def _comparisons_of(evals: Sequence[Eval]) -> list[tuple[str, Comparison]]:
    """Return all comparisons with their operators."""
    return [(condition.operator, comparison) for condition in evals for comparison in comparisons(condition)]


def _holds(operations: Sequence[tuple[str, Comparison]], reading: Any, effort: Effort | None = None) -> bool:
    for operator, comparison in operations:
        if effort is not None:
            if effort.left <= 0:
                return False
            effort.left -= 1
        if not _compare(operator, comparison, lookup(reading, comparison.path), effort)[0]:
            return False
    return True


def findings(evals: Sequence[Eval], reading: Any) -> tuple[ComparisonResult, ...]:
    """Return the results of all comparisons with a reading, in the order of the condition."""
    result = []
    for condition in evals:
        for comparison in comparisons(condition):
            left = lookup(reading, comparison.path)
            held, reason = _compare(condition.operator, comparison, left)
            value = None if left is _MISSING else left
            reason_text = _filled(reason, left, comparison)
            result.append(
                ComparisonResult(
                    ".".join(comparison.path), condition.operator, value, comparison.right, held, reason_text
                )
            )
    return tuple(result)


def fires(trigger: Trigger, event: TriggerEvent, effort: Effort | None = None) -> Firing | None:
    """Return the firing of a trigger for an event, None if it does not fire; at most one for all readings of an upload.

    Readings that are not evaluated because `effort` is used up count as not satisfying the condition.
    """
    configured = trigger.event
    if isinstance(event, Presence):
        kind = ONLINE if event.online else OFFLINE
        return Firing(trigger.name, kind, event) if configured.type == kind else None
    if isinstance(event, Logged):
        if configured.type != LOGS:
            return None
        lines = [line for level in dict.fromkeys(configured.log_levels) for line in event.entries.get(level, ())]
        lines.sort(key=lambda line: line.time)
        return Firing(trigger.name, LOGS, event, count=len(lines), lines=tuple(lines)) if lines else None
    if configured.type == DATA and configured.data_ingested is not None:
        if event.data_type not in configured.data_ingested.data_types:
            return None
        return Firing(trigger.name, DATA, event, reading=next(iter(event.readings), None), count=len(event.readings))
    if configured.type == CONDITIONAL and configured.conditional is not None:
        if not listens(configured.conditional.data_capture_method, event):
            return None
        evals = configured.conditional.evals
        operations = _comparisons_of(evals)
        matching = [reading for reading in event.readings if _holds(operations, reading.data, effort)]
        if evals and not matching:
            return None
        return Firing(trigger.name, CONDITIONAL, event, evals, next(iter(matching), None), len(matching))
    return None


def explain(trigger: Trigger, event: TriggerEvent) -> Explanation:
    """Explain whether and why a trigger fires for an event, consistent with `fires`."""
    firing = fires(trigger, event)
    configured = trigger.event
    if isinstance(event, Presence):
        change = f"the part {'came online' if event.online else 'went offline'}"
        return Explanation(firing is not None, f"{change}; the trigger waits for {configured.type}")
    if isinstance(event, Logged):
        counts = ", ".join(f"{len(lines)} {level}" for level, lines in event.entries.items()) or "nothing"
        levels = ", ".join(configured.log_levels) if configured.type == LOGS else configured.type
        return Explanation(firing is not None, f"logged: {counts}; the trigger waits for {levels}")
    source = f"{event.component_type}:{event.component_name}:{event.method}"
    if configured.type == DATA and configured.data_ingested is not None:
        types = ", ".join(configured.data_ingested.data_types)
        return Explanation(
            firing is not None, f"data of type {event.data_type} was received; the trigger waits for {types}"
        )
    if configured.type != CONDITIONAL or configured.conditional is None:
        return Explanation(False, f"data was received; the trigger waits for {configured.type}")
    method = configured.conditional.data_capture_method
    if not listens(method, event):
        return Explanation(False, f"data was received from {source}; the trigger listens to {method}")
    return _explained(configured.conditional.evals, event, firing)


def _explained(evals: tuple[Eval, ...], event: Ingested, firing: Firing | None) -> Explanation:
    if not evals:
        return Explanation(True, "there are no conditions: every upload from this component fires")
    reading = firing.reading if firing and firing.reading else next(iter(event.readings), None)
    if reading is None:
        return Explanation(False, "the upload contains no readings")
    results = findings(evals, reading.data)
    if firing is None:
        failed = sum(not finding.holds for finding in results)
        several = (
            f"none of {len(event.readings)} readings satisfies them; of the first, " if len(event.readings) > 1 else ""
        )
        return Explanation(False, f"all comparisons must hold: {several}{failed} of {len(results)} do not", results)
    satisfied = (
        f"{firing.count} of {len(event.readings)} readings satisfy"
        if len(event.readings) > 1
        else "the reading satisfies"
    )
    return Explanation(True, f"{satisfied} all comparisons", results)


def listens(method: str, event: Ingested) -> bool:
    """Return True if a `data_capture_method` is the source of an upload: type, component and method must be equal."""
    kind, name, called = split_method(method)
    component_type = event.component_type.rpartition(":")[2]
    return (kind, name, called) == (component_type, event.component_name, event.method)


def lookup(reading: Any, path: Sequence[str]) -> Any:
    """Return the value at a path, first inside `readings`, then at the top level; `_MISSING` if absent.

    An empty path is the reading itself unless it is an object. Keys that contain dots are also found.
    """
    inner = reading.get("readings", _MISSING) if isinstance(reading, Mapping) else _MISSING
    for start in (inner, reading):
        value = _walk(start, path)
        if value is not _MISSING and (path or not isinstance(value, Mapping)):
            return value
    return _MISSING


def _walk(value: Any, path: Sequence[str]) -> Any:
    index = 0
    while index < len(path):
        if not isinstance(value, Mapping):
            return _MISSING
        for end in range(index + 1, len(path) + 1):
            key = ".".join(path[index:end])
            if key in value:
                value, index = value[key], end
                break
        else:
            return _MISSING
    return value


def _compare(operator: str, comparison: Comparison, left: Any, effort: Effort | None = None) -> Verdict:
    """Return whether a comparison holds, and an explanation with {here} and {there} for the two sides."""
    if left is _MISSING:
        return (
            False,
            "the reading has no such field" if comparison.path else "the reading is an object, not a single value",
        )
    if left is None:
        return False, "the field is null"
    kind, other = type_of(left), type_of(comparison.right)
    if kind == "a number" and to_double(left) is None:
        return False, "{here} is not a finite number"
    row = OPERATORS[operator]
    if kind != other and not row.any_type:
        return False, f"{{here}} is {kind}, {{there}} is {other}: values of different types are not compared"
    return row.compare(left, comparison.right, effort)


def _filled(reason: str, left: Any, comparison: Comparison) -> str:
    name = comparison.path[-1] if comparison.path else ""
    sides = {"here": left, "there": comparison.right}
    return _SIDE.sub(lambda match: _shown(sides[match[1]], name), reason)


def _shown(value: Any, name: str) -> str:
    try:
        return shown(value, name)
    except RecursionError:
        return "something nested too deeply"


_SIDE = re.compile(r"\{(here|there)\}")
