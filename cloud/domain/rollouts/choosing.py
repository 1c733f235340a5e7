"""Which machines a rollout concerns, and the start of a rollout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cloud.domain.configurations import fragments
from cloud.domain.configurations.fragment_uses import owners, parts_using
from cloud.domain.machines.machines import part as part_of
from cloud.domain.organizations.tags import tags_of
from cloud.domain.organizations.tenants import location, missing
from cloud.domain.releases import repository
from cloud.domain.releases import rollouts as versions
from cloud.domain.rollouts import records, stepping
from cloud.domain.rollouts.life import StagedRolloutState
from cloud.domain.rollouts.plan import Plan, RolloutKind, assigned
from cloud.domain.rollouts.records import RolloutMember, StagedRollout
from cloud.domain.rollouts.using import Documents, uses_fragment
from cloud.store.sql import Sql
from cloud.values.author import Author
from cloud.values.names import new_id
from schema import ErrorKind, MachineError, SemanticVersion
from uplink.releases import PROGRAMS, STABLE

BATCH: Final = 100
"""Parts whose configurations one transaction reads."""


@dataclass(frozen=True, slots=True)
class Target:
    """What is rolled out, and from what: a revision of a fragment to machines that name a tag or none, or a version."""

    kind: RolloutKind
    subject: str
    channel: str
    called: str
    before: str
    after: str


def target(sql: Sql, owner: str, kind: str, subject: str, channel: str, after: str) -> Target:
    """Return what is to be rolled out. NOT_FOUND; INVALID; PRECONDITION if machines have it already."""
    if kind == RolloutKind.PROGRAM:
        if subject not in PROGRAMS:
            raise MachineError(
                f"there is no program {subject[:60]!r}", kind=ErrorKind.INVALID, remedy=f"use {' or '.join(PROGRAMS)}"
            )
        if all(each.custom.version != after for each in repository.targets(sql, owner, subject)):
            raise missing("release", f"{subject} {after}")
        return Target(RolloutKind.PROGRAM, subject, "", subject, "", after)
    if kind != RolloutKind.FRAGMENT:
        raise MachineError(
            f"there is no kind {kind[:40]!r}", kind=ErrorKind.INVALID, remedy=f"use {' or '.join(RolloutKind)}"
        )
    record = fragments.fragment(sql, subject)
    if record.organization_id != owner:
        raise missing("fragment", subject)
    revision = fragments.revision_of(sql, subject, after)
    if revision is None or not after:
        raise missing("revision", after)
    before = fragments.usable(sql, owner, subject, channel)
    if before is None or channel.isdigit():
        raise missing("tag", channel)
    if before == revision:
        raise MachineError(
            f"all machines that use the fragment {record.name} {f'by its tag {channel} ' if channel else ''}have "
            f"revision {revision} already",
            kind=ErrorKind.PRECONDITION,
            remedy="save a new revision for a rollout, or choose another revision",
        )
    fragments.check_shareable(sql, subject, revision, record.visibility)
    return Target(RolloutKind.FRAGMENT, subject, channel, record.name, str(before), str(revision))


def candidates(sql: Sql, owner: str, of: Target) -> list[str]:
    """Return parts of an organization that a rollout may concern, in order."""
    if of.kind is RolloutKind.PROGRAM:
        rows = sql.rows(
            "SELECT parts.id AS id FROM fleet_rows JOIN parts ON parts.machine_id = fleet_rows.machine_id "
            "JOIN agent_programs ON agent_programs.part_id = parts.id AND program = ? WHERE organization_id = ? "
            "ORDER BY parts.id",
            of.subject,
            owner,
        )
        return [row["id"] for row in rows]
    return parts_using(sql, of.subject)


def elsewhere(sql: Sql, owner: str, of: Target) -> int:
    """Return how many machines of other organizations use the fragment."""
    if of.kind is RolloutKind.PROGRAM:
        return 0
    return sum(other != owner for other in owners(sql, parts_using(sql, of.subject)).values())


def concerned(sql: Sql, owner: str, of: Target, parts: Sequence[str]) -> list[RolloutMember]:
    """Return those of some candidates that get the fragment by the channel, or run the program, with their tags."""
    documents: Documents = {}
    members = []
    for subject in parts:
        try:
            record = part_of(sql, subject)
        except MachineError:
            continue  # it was deleted
        if record.organization_id != owner:
            continue
        if of.kind is RolloutKind.PROGRAM or uses_fragment(sql, owner, record.id, (of.subject, of.channel), documents):
            members.append(RolloutMember(record.id, record.machine_id, record.machine))
    tags = tags_of(sql, list(dict.fromkeys(member.machine for member in members)))
    return [
        RolloutMember(each.part, each.machine, each.name, frozenset(tags.get(each.machine, ()))) for each in members
    ]


def places(sql: Sql, owner: str, plan: Plan) -> frozenset[str]:
    """Return the ids of the locations of a plan, and of those below; empty for all. NOT_FOUND."""
    chosen: set[str] = set()
    pending = list(plan.locations)
    for subject in pending:
        if location(sql, subject).organization_id != owner:
            raise missing("location", subject)
    while pending:
        subject = pending.pop()
        if subject not in chosen:
            chosen.add(subject)
            pending += [row["id"] for row in sql.rows("SELECT id FROM locations WHERE parent_id = ?", subject)]
    return frozenset(chosen)


def selected(sql: Sql, plan: Plan, members: Sequence[RolloutMember], at: frozenset[str]) -> list[RolloutMember]:
    """Return those of some members that the tags and locations of a plan select."""
    chosen = [each for each in members if not plan.tags or not each.tags.isdisjoint(plan.tags)]
    if not plan.locations:
        return chosen
    homes: dict[str, str] = {}
    machines = list(dict.fromkeys(each.machine for each in chosen))
    for start in range(0, len(machines), BATCH):
        batch = machines[start : start + BATCH]
        marks = ", ".join("?" * len(batch))
        for row in sql.rows(f"SELECT id, location_id FROM machines WHERE id IN ({marks})", *batch):
            homes[row["id"]] = row["location_id"]
    return [each for each in chosen if homes.get(each.machine) in at]


def start(
    sql: Sql, owner: str, author: Author, of: Target, plan: Plan, members: Sequence[RolloutMember], now: datetime
) -> str:
    """Start a rollout that is to reach selected members; return its id.

    INVALID without machines; EXISTS while one of the same is open; PRECONDITION if versions do not permit it.
    """
    subject = new_id()
    stages = assigned(subject, plan.stages, {each.part: each.tags for each in members})
    if not stages:
        raise MachineError(
            "the rollout would reach no machine",
            kind=ErrorKind.INVALID,
            remedy="choose other tags and locations" if plan.tags or plan.locations else "let machines use it first",
        )
    entry = StagedRollout(
        subject,
        owner,
        of.kind,
        of.subject,
        of.channel,
        of.called,
        of.before,
        of.after,
        plan,
        StagedRolloutState.ACTIVE,
        0,
        "",
        0,
        len(stages),
        now,
        now,
        None,
    )
    records.create(sql, entry, stages, members)
    if of.kind is RolloutKind.PROGRAM:
        versions.start(sql, owner, of.subject, of.after, now, percent=100, staged=subject)
    stepping.begin(sql, entry, author, now)
    return subject


def check_may_return(sql: Sql, entry: StagedRollout) -> None:
    """Raise PRECONDITION if machines could not return: no older version of a program is signed for `stable`."""
    if entry.kind is RolloutKind.FRAGMENT:
        return
    newest = SemanticVersion.parse(entry.revision_to)
    for each in repository.targets(sql, entry.organization_id, entry.subject):
        if STABLE in each.custom.channels and SemanticVersion.parse(each.custom.version) < newest:
            return
    raise MachineError(
        f"no older version of {entry.subject} is signed in the channel {STABLE}, to which machines could return",
        kind=ErrorKind.PRECONDITION,
        remedy="stop the rollout, so that no one else gets the version; then publish an older or a corrected version",
    )
