"""Which revision of a fragment a machine gets, while a rollout gives a new one to some machines before others."""

from __future__ import annotations

from typing import Final

from cloud.store.sql import Sql
from schema import ErrorKind, MachineError


def offered_revision(sql: Sql, subject: str, version: str, part: str = "") -> int | None:
    """Return the revision that a part gets for a version: a number, a tag, or "" for the fragment's own choice.

    Without a part, that of machines which no rollout has reached. None if there is no such version.
    """
    if version.isascii() and version.isdigit() and len(version) < 10:
        query = "SELECT revision FROM fragment_revisions WHERE fragment_id = ? AND revision = ?"
        row = sql.row(query, subject, int(version))
        return None if row is None else int(row["revision"])
    if version:
        row = sql.row("SELECT revision FROM fragment_tags WHERE fragment_id = ? AND tag = ?", subject, version)
    else:
        row = sql.row("SELECT COALESCE(offered, revision) AS revision FROM fragments WHERE id = ?", subject)
    if row is None:
        return None
    reached = _reached(sql, subject, version, part) if part else None
    return int(row["revision"]) if reached is None else reached


def _reached(sql: Sql, subject: str, channel: str, part: str) -> int | None:
    """Return the revision of the open rollout, if it has reached the part.

    While it is paused or stopped, only parts that have taken the revision keep it.
    """
    row = sql.row(_OPEN, subject, channel)
    if row is None:
        return None
    member = sql.row("SELECT stage, taken FROM staged_machines WHERE rollout_id = ? AND part_id = ?", row["id"], part)
    if member is None or member["stage"] > row["stage"]:
        return None
    kept = row["state"] == ACTIVE or member["taken"] is not None
    return int(row["revision_to"]) if kept else None


ACTIVE: Final = "active"
"""cloud.domain.rollouts.life.RolloutState.ACTIVE as it is stored; a test compares them."""
_OPEN: Final = (
    "SELECT id, revision_to, state, stage FROM staged_rollouts "
    "WHERE subject = ? AND channel = ? AND kind = 'fragment' AND ended IS NULL"
)


def check_not_rolled_out(sql: Sql, subject: str, channel: str, what: str) -> None:
    """Raise PRECONDITION while a rollout decides which machines get which revision."""
    if sql.row(_OPEN, subject, channel) is not None:
        raise MachineError(
            f"a rollout of the fragment is open, so {what}",
            kind=ErrorKind.PRECONDITION,
            remedy="finish the rollout or go back, on the page Rollouts; or save the revision for a later rollout",
        )
