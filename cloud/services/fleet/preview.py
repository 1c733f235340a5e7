"""What a job would change, before it starts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from cloud.documents import pieces
from cloud.domain.configurations import configurations
from cloud.domain.fleet.fleet import Reached
from cloud.domain.fleet.work import CONFIGURES, Work, WorkKind, described
from cloud.domain.machines import machines
from cloud.domain.organizations import tags
from cloud.services.fleet import fleet_messages as m
from cloud.services.fleet.applying import changed
from cloud.store.sql import Sql
from schema import MachineError, difference_lines

EXAMINED: Final = 500
"""Machines whose configurations a preview compares."""
MAX_TEXT: Final = 16 * 1024 * 1024
"""Characters of configurations that a preview reads."""
MAX_REFUSALS: Final = 10
MAX_LINES: Final = 40


@dataclass(slots=True)
class Examined:
    """Machines with what decides whether they change: a configuration as text, tags, or a location."""

    texts: list[tuple[str, str]] = field(default_factory=list)
    tags: list[tuple[str, list[str]]] = field(default_factory=list)
    places: list[tuple[str, str]] = field(default_factory=list)


def examined(sql: Sql, work: Work, permitted: Sequence[Reached]) -> Examined:
    """Read what decides whether machines change, of the first ones."""
    result = Examined()
    if work.kind in CONFIGURES:
        size = 0
        for machine in permitted[:EXAMINED]:
            text = configurations.current_text(sql, machines.parts(sql, machine.id)[0])
            size += len(text)
            if size > MAX_TEXT and result.texts:
                break
            result.texts.append((machine.name, text))
    elif work.kind in (WorkKind.ADD_TAGS, WorkKind.REMOVE_TAGS):
        by_machine = tags.tags_of(sql, [machine.id for machine in permitted])
        result.tags = [(machine.name, by_machine.get(machine.id, [])) for machine in permitted]
    else:
        result.places = [(machine.name, machine.location_id) for machine in permitted]
    return result


def preview(work: Work, facts: Examined, selected: int, not_permitted: int) -> m.PreviewFleetJobResponse:
    """Return what a job would do. This may take long: it parses configurations."""
    changes: list[tuple[str, tuple[str, ...]]] = []
    refusals: list[m.Refusal] = []
    unchanged = refused = 0
    for name, before in [*facts.texts, *facts.tags, *facts.places]:
        try:
            old, new = _pair(work, before)
        except MachineError as error:
            refused += 1
            if len(refusals) < MAX_REFUSALS:
                refusals.append(m.Refusal(name, str(error)))
            continue
        if old == new:
            unchanged += 1
        else:
            changes.append((name, () if changes else _lines(work, old, new)))
    return m.PreviewFleetJobResponse(
        described(work),
        selected,
        not_permitted,
        len(facts.texts) + len(facts.tags) + len(facts.places),
        len(changes),
        unchanged,
        refused,
        refusals,
        changes[0][0] if changes else "",
        list(changes[0][1]) if changes else [],
    )


def _pair(work: Work, before: Any) -> tuple[Any, Any]:
    """Return what the work concerns, before and after it."""
    if work.kind in CONFIGURES:
        document: Mapping[str, Any] = pieces.loads(before)
        return document, changed(work, document)
    if work.kind is WorkKind.ADD_TAGS:
        return before, sorted({*before, *work.tags})
    if work.kind is WorkKind.REMOVE_TAGS:
        return before, [tag for tag in before if tag not in work.tags]
    return (before, work.location_id) if work.kind is WorkKind.MOVE else (False, True)


def _lines(work: Work, old: Any, new: Any) -> tuple[str, ...]:
    if work.kind is WorkKind.RESTART:
        return ()
    if work.kind in CONFIGURES:
        return difference_lines(old, new)[:MAX_LINES]
    if work.kind is WorkKind.MOVE:
        return (f"~ location: {old} → {new}",)
    return (f"~ tags: {json.dumps(old, ensure_ascii=False)} → {json.dumps(new, ensure_ascii=False)}",)
