"""How rollouts proceed: looks at machines, and what a rollout does then. Each step is one transaction.

Nothing happens outside of the database, so a process that is killed leaves no step half done: what is due stays due.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from cloud.domain.configurations import fragments
from cloud.domain.machines import listed
from cloud.domain.machines import reported as report
from cloud.domain.machines.online import Presence, presence
from cloud.domain.releases import decision
from cloud.domain.releases import rollouts as versions
from cloud.domain.rollouts import records
from cloud.domain.rollouts.life import (
    ENDED,
    OPEN,
    TAKING,
    Facts,
    Life,
    MachineFacts,
    MachineState,
    Move,
    StagedRolloutState,
    decide,
    expires,
    look,
)
from cloud.domain.rollouts.plan import RolloutKind
from cloud.domain.rollouts.records import StagedRollout, note
from cloud.domain.rollouts.using import uses_fragment
from cloud.store.sql import Row, Sql
from cloud.values.author import Author
from cloud.values.times import moment_of, stored
from schema import ErrorKind, MachineError

BATCH: Final = 50
"""Machines that one transaction looks at."""

BROKEN: Final = timedelta(hours=1)
"""Time before a machine or a rollout that cannot be looked at is looked at again, unless the machine reports."""

Turn = tuple[str, str]
"""The last rollout and part of which a report was handled in this round."""
FIRST: Final[Turn] = ("", "")

_COLUMNS: Final = (
    "SELECT rollout_id, staged_machines.part_id AS part_id, staged_machines.machine_id AS machine_id, stage, state, "
    "offered, up, problems, taken, worse, reason FROM staged_machines "
)
_REPORTED: Final = (
    f"{_COLUMNS} WHERE due = 0 AND (rollout_id, part_id) > (?, ?) ORDER BY due, rollout_id, part_id LIMIT ?"
)
_EXPIRED: Final = f"{_COLUMNS} WHERE due > 0 AND due <= ? ORDER BY due, rollout_id, part_id LIMIT ?"


@dataclass(slots=True)
class StepPosition:
    """What a step is working on: a rollout, and the part at which it looks; empty before and after all of them."""

    rollout: str = ""
    part: str = ""


def step(sql: Sql, now: datetime, turn: Turn = FIRST, position: StepPosition | None = None) -> Turn | None:
    """Look at machines that are due, and let their rollouts proceed; return the turn of the next step, or None if no
    machine is due.

    Half of the machines are those with a deadline. Those that reported have their turn in rounds, so that some that
    report all the time do not hold up the rollouts of others. `position` is kept up to date, so that it shows where a
    step has failed.
    """
    here = StepPosition() if position is None else position
    here.rollout = here.part = ""
    reported = sql.rows(f"{_REPORTED}{sql.skip_locked}", *turn, BATCH // 2)
    expired = sql.rows(f"{_EXPIRED}{sql.skip_locked}", stored(now), BATCH - BATCH // 2)
    touched: dict[str, StagedRollout] = {}
    for row in (*reported, *expired):
        subject = here.rollout = row["rollout_id"]
        here.part = row["part_id"]
        entry = touched.setdefault(subject, records.by_id(sql, subject))
        _look(sql, entry, row, now)
    here.part = ""
    for subject in touched:
        here.rollout = subject
        settle(sql, subject, now)
    here.rollout = ""
    if len(reported) == BATCH // 2:
        return reported[-1]["rollout_id"], reported[-1]["part_id"]
    return FIRST if touched or turn != FIRST else None


def set_apart(sql: Sql, position: StepPosition, now: datetime) -> None:
    """Look at a part, or at all due parts of a rollout, only after BROKEN again, because a step has failed there."""
    until, condition = stored(now + BROKEN), "rollout_id = ? AND due >= 0 AND due <= ?"
    if position.part:
        condition += " AND part_id = ?"
    parts = [position.part] if position.part else []
    sql.run(f"UPDATE staged_machines SET due = ? WHERE {condition}", until, position.rollout, stored(now), *parts)


def next_due(sql: Sql) -> datetime | None:
    """Return when the next machine is to be looked at; None if none is."""
    row = sql.row("SELECT due FROM staged_machines WHERE due >= 0 ORDER BY due LIMIT 1")
    return None if row is None else moment_of(row["due"])


def _look(sql: Sql, entry: StagedRollout, row: Row, now: datetime) -> None:
    before = _life(row, now)
    facts = _facts(sql, entry, row)
    asked = entry.kind is RolloutKind.FRAGMENT and facts.exists and facts.reports and not facts.runs
    if asked and expires(entry.timing, before, now):
        named = entry.subject, entry.channel
        facts = replace(facts, concerned=uses_fragment(sql, entry.organization_id, row["part_id"], named, {}))
    after, due = look(entry.timing, before, facts, now)
    if entry.state is not StagedRolloutState.ACTIVE and before.state in TAKING and after.taken is None:
        after, due = before, None  # it does not get the change now
    changed = after.state is not before.state
    watched = after.state in OPEN or after.state is MachineState.RETURNING
    sql.run(
        "UPDATE staged_machines SET state = ?, offered = ?, up = ?, taken = ?, worse = ?, reason = ?, due = ?, "
        f"watched = ?{', changed = ?' if changed else ''} WHERE rollout_id = ? AND part_id = ?",
        after.state.value,
        stored(after.offered),
        int(after.up),
        None if after.taken is None else stored(after.taken),
        None if after.worse is None else stored(after.worse),
        after.reason[:500],
        None if due is None else stored(due),
        int(watched),
        *([stored(now)] if changed else []),
        entry.id,
        row["part_id"],
    )
    if changed:
        records.add(sql, entry.id, row["stage"], before.state, -1)
        records.add(sql, entry.id, row["stage"], after.state, 1)
        if after.state is MachineState.FAILED:
            sql.run("UPDATE staged_rollouts SET failures = failures + 1 WHERE id = ?", entry.id)


def _life(row: Row, now: datetime) -> Life:
    moments = {name: None if row[name] is None else moment_of(row[name]) for name in ("offered", "taken", "worse")}
    return Life(
        MachineState(row["state"]),
        moments["offered"] or now,
        bool(row["up"]),
        row["problems"],
        moments["taken"],
        moments["worse"],
        row["reason"],
    )


def _facts(sql: Sql, entry: StagedRollout, row: Row) -> MachineFacts:
    part = sql.row(
        "SELECT seen, gone, reported, online, calm FROM parts LEFT JOIN trigger_presence ON part_id = parts.id "
        "LEFT JOIN fleet_rows ON fleet_rows.machine_id = parts.machine_id WHERE parts.id = ?",
        row["part_id"],
    )
    if part is None:
        return MachineFacts(exists=False)
    seen = None if part["seen"] is None else moment_of(part["seen"])
    # The clock decides only for a part whose presence is not recorded yet: `online` is what the cloud has observed.
    online = seen is not None and presence(seen, seen, online=bool(part["online"]), gone=bool(part["gone"]))
    recorded = part["online"] is None or bool(part["online"])
    reported = json.loads(part["reported"])
    runs, failure = _runs(sql, entry, row, reported)
    return MachineFacts(
        online=online is Presence.ONLINE and recorded,
        runs=runs,
        reports=entry.kind is not RolloutKind.FRAGMENT or bool(report.text_of(reported, "revision")),
        problems=-(part["calm"] or 0),
        rejected=report.rejected(reported),
        failure=failure,
    )


def _runs(sql: Sql, entry: StagedRollout, row: Row, reported: dict[str, object]) -> tuple[bool, str]:
    """Return whether a part runs what is rolled out, and why it went back from it."""
    part = row["part_id"]
    if entry.kind is RolloutKind.FRAGMENT:
        return entry.revision_to in report.fragment_revisions(reported, entry.subject), ""
    program = sql.row("SELECT version FROM agent_programs WHERE part_id = ? AND program = ?", part, entry.subject)
    outcome = sql.row(
        "SELECT result, reason FROM agent_outcomes WHERE part_id = ? AND program = ? AND version = ? AND received >= ? "
        "ORDER BY received DESC, ended DESC LIMIT 1",
        part,
        entry.subject,
        entry.revision_to,
        row["offered"] or 0,
    )
    failed = outcome is not None and outcome["result"] in versions.FAILED
    failure = f"{outcome['result'].replace('_', ' ')}: {outcome['reason']}" if outcome is not None and failed else ""
    return program is not None and program["version"] == entry.revision_to, failure


# ---- what a rollout does


def settle(sql: Sql, subject: str, now: datetime) -> None:
    """Let a rollout do what it does by itself, until it waits for something."""
    while True:
        entry = records.by_id(sql, subject)
        move, reason = decide(facts_of(sql, entry))
        if move is Move.STOP:
            pause(sql, entry, StagedRolloutState.STOPPED, None, now, reason)
        elif move is Move.NEXT:
            advance(sql, entry, None, now)
        elif move is Move.FINISH:
            finish(sql, entry, None, now)
        else:
            sql.notify(records.TOPIC, entry.organization_id)
            return


def facts_of(sql: Sql, entry: StagedRollout) -> Facts:
    """Return what decides about a rollout."""
    counts = records.counts(sql, entry.id)
    return Facts(
        entry.state,
        entry.stage,
        len(entry.plan.stages),
        counts[entry.stage] if 0 <= entry.stage < len(counts) else {},
        entry.failures,
        entry.plan.stop_after,
        entry.plan.automatic,
        entry.plan.covers_all,
    )


def begin(sql: Sql, entry: StagedRollout, author: Author, now: datetime) -> None:
    """Record that a rollout has started, and include its first stage."""
    note(sql, entry.id, author, "started", "", now)
    _include(sql, entry, 0, now)
    settle(sql, entry.id, now)


def advance(sql: Sql, entry: StagedRollout, author: Author | None, now: datetime) -> None:
    """Include the next stage. PRECONDITION unless it is active and there is one."""
    if entry.state is not StagedRolloutState.ACTIVE or entry.stage + 1 >= len(entry.plan.stages):
        what = f"is {entry.state}" if entry.state is not StagedRolloutState.ACTIVE else "has no further stage"
        raise MachineError(
            f"the rollout {what}",
            kind=ErrorKind.PRECONDITION,
            remedy="resume it first"
            if entry.state not in (StagedRolloutState.ACTIVE, *ENDED)
            else "finish it, or go back",
        )
    sql.run("UPDATE staged_rollouts SET stage = ?, changed = ? WHERE id = ?", entry.stage + 1, stored(now), entry.id)
    note(sql, entry.id, author, "next", f"stage {entry.stage + 2}", now)
    _include(sql, entry, entry.stage + 1, now)


def _include(sql: Sql, entry: StagedRollout, stage: int, now: datetime) -> None:
    records.include(sql, entry, stage, now)
    if entry.kind is RolloutKind.FRAGMENT:
        records.notify_stage(sql, entry, stage)
    sql.notify(listed.DUE, "")
    sql.notify(records.TOPIC, entry.organization_id)


def pause(
    sql: Sql, entry: StagedRollout, state: StagedRolloutState, author: Author | None, now: datetime, reason: str = ""
) -> None:
    """Pause or stop a rollout: no one else gets the change, and machines that have it keep it. PRECONDITION."""
    _require_open(entry)
    if entry.state is state:
        return
    _set_state(sql, entry, state, now, reason)
    note(sql, entry.id, author, state.value, reason, now)
    _notify_taking(sql, entry)


def resume(sql: Sql, entry: StagedRollout, author: Author, now: datetime) -> None:
    """Go on with a rollout that is paused or stopped; failures count from zero. PRECONDITION."""
    _require_open(entry)
    if entry.state is StagedRolloutState.ACTIVE:
        return
    _set_state(sql, entry, StagedRolloutState.ACTIVE, now)
    sql.run("UPDATE staged_rollouts SET failures = 0 WHERE id = ?", entry.id)
    note(sql, entry.id, author, "resumed", "", now)
    records.watch_again(sql, entry.id, TAKING, now, offered=True)
    sql.notify(listed.DUE, "")
    _notify_taking(sql, entry)
    settle(sql, entry.id, now)


def finish(sql: Sql, entry: StagedRollout, author: Author | None, now: datetime) -> None:
    """Give the change to all machines, also those that were not selected. PRECONDITION."""
    _require_open(entry)
    _end(sql, entry, StagedRolloutState.FINISHED, author, now)
    records.end_watch(sql, entry.id)
    if entry.kind is RolloutKind.FRAGMENT:
        fragments.give(sql, entry.subject, entry.channel, int(entry.revision_to))


def back(sql: Sql, entry: StagedRollout, author: Author, now: datetime) -> None:
    """Let all machines return to what they had before, at once. PRECONDITION."""
    _require_open(entry)
    _end(sql, entry, StagedRolloutState.REVERTED, author, now)
    parts = records.returning(sql, entry, now)
    if entry.kind is RolloutKind.FRAGMENT:
        for part in parts:
            sql.notify("part", part)
    sql.notify(listed.DUE, "")


def _end(sql: Sql, entry: StagedRollout, state: StagedRolloutState, author: Author | None, now: datetime) -> None:
    _set_state(sql, entry, state, now, entry.reason)
    sql.run("UPDATE staged_rollouts SET ended = ? WHERE id = ?", stored(now), entry.id)
    note(sql, entry.id, author, state.value, "", now)
    sql.notify(records.TOPIC, entry.organization_id)


def _set_state(sql: Sql, entry: StagedRollout, state: StagedRolloutState, now: datetime, reason: str = "") -> None:
    sql.run(
        "UPDATE staged_rollouts SET state = ?, reason = ?, changed = ? WHERE id = ?",
        state.value,
        reason,
        stored(now),
        entry.id,
    )
    if entry.kind is RolloutKind.PROGRAM:
        new = decision.RolloutState(state.value)
        versions.set_state(sql, entry.organization_id, entry.subject, entry.revision_to, new, now, reason)
    sql.notify(records.TOPIC, entry.organization_id)


def _notify_taking(sql: Sql, entry: StagedRollout) -> None:
    """Notify parts that have not taken the change: whether they get it has changed."""
    if entry.kind is RolloutKind.FRAGMENT:
        for part in records.parts_in(sql, entry.id, (*TAKING, MachineState.FAILED)):
            sql.notify("part", part)


def _require_open(entry: StagedRollout) -> None:
    if entry.state in ENDED:
        raise MachineError(f"the rollout is {entry.state}", kind=ErrorKind.PRECONDITION, remedy="start another one")
