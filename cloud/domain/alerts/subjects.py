"""Places of alerts: a part with a component, a program, or a model that is trained."""

from __future__ import annotations

from dataclasses import dataclass

from cloud.domain.triggering.configured import where
from cloud.store.sql import Sql
from schema import ErrorKind, MachineError
from triggers import Where


@dataclass(frozen=True, slots=True)
class Subject:
    """The place of an alert. `part` is empty for training jobs; the names are those that people see."""

    organization: str
    part: str
    source: str
    machine_id: str = ""
    machine: str = ""
    location: str = ""


def subject_at(place: Where, source: str = "") -> Subject:
    """Return the subject at a part."""
    name = place.machine_name
    return Subject(place.organization_id, place.part_id, source, place.machine_id, name, place.location_name)


def subject_of(sql: Sql, organization: str, part: str, source: str) -> tuple[Subject, Where | None]:
    """Return the subject with these ids, and its place; None for training jobs, and if the part was deleted."""
    place = place_of(sql, part) if part else None
    if place is None or place.organization_id != organization:
        return Subject(organization, part, source), None
    return subject_at(place, source), place


def place_of(sql: Sql, part: str) -> Where | None:
    """Return the place of a part; None if it was deleted."""
    try:
        return where(sql, part)
    except MachineError as error:
        if error.kind is not ErrorKind.NOT_FOUND:
            raise
        return None
