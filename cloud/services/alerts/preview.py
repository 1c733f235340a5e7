"""What a rule would have caused, computed from the numbers of a plot. Pure.

A bucket of time has a least and a greatest number; the one that is nearer to an alert counts, at the start of the
bucket. So short excesses are seen, and a duration is as exact as the length of a bucket.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase

from cloud.domain.alerts.life import OPEN, Event, Happened, Observed, Silenced, State, Tick, due, step
from cloud.domain.alerts.reading import level_of
from cloud.domain.alerts.rule import Condition, Rule
from cloud.domain.data.buckets import FieldNumbers
from cloud.values.buckets import Buckets
from cloud.values.times import moment_of


@dataclass(frozen=True, slots=True)
class Preview:
    """What would have happened at one source: when it would have fired, and whether it would fire at the end."""

    fired: tuple[datetime, ...]
    open: bool
    least: float
    greatest: float


def matching(condition: Condition, fields: Sequence[FieldNumbers]) -> list[FieldNumbers]:
    """Return the fields at the path of a condition, below `readings` or else at the top level."""
    pattern = condition.path.replace("[", "[[]").replace("?", "[?]")
    inner = [field for field in fields if fnmatchcase(field.name, f"readings.{pattern}")]
    return inner or [field for field in fields if fnmatchcase(field.name, pattern)]


def previewed(rule: Rule, fields: Sequence[FieldNumbers], buckets: Buckets, end: datetime) -> Preview | None:
    """Return what a rule would have caused at a source with these fields; None if it cannot be compared with them."""
    condition = rule.condition
    assert condition is not None
    up = condition.comparison not in ("lt", "lte")
    observed = []
    for start, values in zip(
        buckets.starts(), zip(*(field.greatest if up else field.least for field in fields), strict=True), strict=True
    ):
        numbers = [number for number in values if number is not None]
        if not numbers:
            continue
        value = max(numbers) if up else min(numbers)
        level = level_of(condition, bool(value) if fields[0].boolean else value)
        if level is None:
            return None
        observed.append(Observed(min(moment_of(start), end), level, value))
    if not observed:
        return None
    fired, state = _lived(rule, observed, end)
    least = min(number for field in fields for number in field.least if number is not None)
    greatest = max(number for field in fields for number in field.greatest if number is not None)
    return Preview(tuple(fired), state.phase in OPEN, least, greatest)


def _lived(rule: Rule, observed: Sequence[Observed], end: datetime) -> tuple[list[datetime], State]:
    timing, state = rule.timing, State()
    fired: list[datetime] = []
    events: list[tuple[datetime, Event]] = [(each.at, each) for each in observed]
    for moment, event in [*events, (end, Silenced(None))]:
        while (deadline := due(timing, state)) is not None and deadline < moment:
            before = state
            state, outputs = step(timing, state, Tick(), deadline)
            fired += [output.at for output in outputs if output.happened is Happened.FIRED]
            if state == before:
                break
        state, outputs = step(timing, state, event, moment)
        fired += [output.at for output in outputs if output.happened is Happened.FIRED]
    return fired, state
