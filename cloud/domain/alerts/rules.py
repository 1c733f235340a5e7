"""Rules of an organization: the built-in ones, as they were changed, and its own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import msgspec

from cloud.domain.alerts.presets import PRESETS
from cloud.domain.alerts.rule import Kind, Rule
from cloud.domain.organizations.tenants import above, missing
from cloud.domain.triggering.alert_targets import of_rule
from cloud.domain.triggering.training_targets import check_target
from cloud.store.sql import Sql, Value, counted, inserted
from cloud.values.limits import ALERT_RULES
from cloud.values.names import new_id
from cloud.values.times import stored
from schema import ErrorKind, MachineError
from triggers import Where

_CACHE_SIZE: Final = 4096  # decoded rules


@dataclass(frozen=True, slots=True)
class RuleRecord:
    """A rule with its id. `builtin` rules cannot be deleted; `changed` says if one differs from what is built in."""

    id: str
    rule: Rule
    builtin: bool
    changed: bool


def rules(sql: Sql, owner: str) -> list[RuleRecord]:
    """Return the rules of an organization, the built-in ones first, the others by name."""
    rows = sql.rows("SELECT id, document FROM alert_rules WHERE organization_id = ?", owner)
    own = {row["id"]: _decoded(row["document"]) for row in rows}
    builtin = [RuleRecord(name, own.pop(name, rule), True, any(row["id"] == name for row in rows))
               for name, rule in PRESETS.items()]  # fmt: skip
    others = sorted(own.items(), key=lambda item: (item[1].name.lower(), item[0]))
    return [*builtin, *(RuleRecord(subject, rule, builtin=False, changed=True) for subject, rule in others)]


def rule(sql: Sql, owner: str, subject: str) -> RuleRecord:
    """Return one rule of an organization; NOT_FOUND."""
    row = sql.row("SELECT document FROM alert_rules WHERE organization_id = ? AND id = ?", owner, subject)
    if row is not None:
        return RuleRecord(subject, _decoded(row["document"]), subject in PRESETS, True)
    if subject not in PRESETS:
        raise missing("rule", subject)
    return RuleRecord(subject, PRESETS[subject], True, False)


def enabled(sql: Sql, owner: str, *kinds: Kind) -> list[RuleRecord]:
    """Return the enabled rules of these kinds."""
    return [record for record in rules(sql, owner) if record.rule.enabled and record.rule.kind in kinds]


def save(sql: Sql, owner: str, subject: str, new: Rule, now: datetime) -> str:
    """Create a rule, or change the one with the id `subject`; return its id.

    A target without a secret keeps the one that it has. NOT_FOUND, INVALID, EXHAUSTED for too many rules, EXISTS for a
    name that another rule has.
    """
    new.check()
    before = rule(sql, owner, subject) if subject else None
    secrets = {(target.type, target.value): target.secret for target in before.rule.targets} if before else {}
    targets = tuple(
        msgspec.structs.replace(target, secret=target.secret or secrets.get((target.type, target.value), ""))
        for target in new.targets
    )
    for target in targets:
        check_target(target.type, target.value, target.secret)
    new = msgspec.structs.replace(new, name=new.name.strip(), targets=targets)
    for other in rules(sql, owner):
        if other.rule.name.lower() == new.name.lower() and other.id != subject:
            raise MachineError(
                f"there is already a rule {new.name!r}", kind=ErrorKind.EXISTS, remedy="choose another name"
            )
    document = msgspec.json.encode(new).decode()
    if before is not None and before.changed:
        sql.run(
            "UPDATE alert_rules SET document = ?, changed = ? WHERE organization_id = ? AND id = ?",
            *(document, stored(now), owner, subject),
        )
        return subject
    ALERT_RULES.check_count(counted(sql, "alert_rules", "organization_id", owner), "the organization")
    row: dict[str, Value] = {
        "organization_id": owner,
        "id": subject or new_id(),
        "document": document,
        "created": stored(now),
        "changed": stored(now),
    }
    inserted(sql, "alert_rules", row)
    return str(row["id"])


def delete(sql: Sql, owner: str, subject: str) -> None:
    """Delete a rule, or return a built-in one to what is built in; NOT_FOUND."""
    rule(sql, owner, subject)
    sql.run("DELETE FROM alert_rules WHERE organization_id = ? AND id = ?", owner, subject)


def applies(sql: Sql, chosen: Rule, place: Where) -> bool:
    """Return whether a machine is in the scope of a rule."""
    scope = chosen.scope
    if not scope or place.machine_id in scope.machines:
        return True
    if scope.locations and {location.id for location in above(sql, place.location_id)} & set(scope.locations):
        return True
    return bool(scope.tags) and bool(tags_of(sql, place) & set(scope.tags))


def tags_of(sql: Sql, place: Where) -> set[str]:
    """Return the texts in the list `tags` of the metadata of a machine and its part, as rollouts read them."""
    tags: set[str] = set()
    for statement, subject in (
        ("SELECT metadata FROM machines WHERE id = ?", place.machine_id),
        ("SELECT metadata FROM parts WHERE id = ?", place.part_id),
    ):
        row = sql.row(statement, subject)
        own: Any = json.loads(row["metadata"]).get("tags") if row is not None else None
        tags |= {tag for tag in own if isinstance(tag, str)} if isinstance(own, list) else set()
    return tags


def reaches(sql: Sql, owner: str, subject: str) -> bool:
    """Return whether a rule has targets, its own or those of the organization."""
    return bool(of_rule(sql, owner, subject))


@lru_cache(_CACHE_SIZE)
def _decoded(document: str) -> Rule:
    return msgspec.json.decode(document, type=Rule)
