"""Fragments: configuration that machines share, with permanent revisions, some of them tagged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from cloud.documents import pieces, resolve
from cloud.documents.readable import document_text
from cloud.documents.unmasked import check_unmasked
from cloud.domain.configurations.fragment_uses import note_uses, notify_parts, parts_using, pinned
from cloud.domain.configurations.offered import check_not_rolled_out, offered_revision
from cloud.domain.configurations.revisions import Revisions, Stale, within_limit
from cloud.domain.organizations.tenants import missing
from cloud.store.sql import Conflict, Sql, Value, counted, inserted
from cloud.values.author import Author
from cloud.values.limits import FRAGMENT_TAGS, FRAGMENTS
from cloud.values.names import checked_name, new_id
from cloud.values.times import moment_of, stored
from schema import ErrorKind, MachineError

Visibility = Literal["private", "public", "unlisted"]
SEARCHED: Final = 50
"""Users of a fragment among which those of its organization are looked for, to name them."""
_TAG: Final = re.compile(r"(?!v)[a-z_-][a-z0-9_-]{0,59}")


Lookups = dict[tuple[str, str, str], int | None]
"""Revisions that were looked up, by organization, fragment and version; None for a fragment that may not be used."""


@dataclass(frozen=True, slots=True)
class FragmentRecord:
    """A fragment. `saved` is the time of its newest revision.

    `offered` is the revision of machines that name none and that no rollout has reached: usually the newest.
    """

    id: str
    organization_id: str
    organization: str
    name: str
    visibility: Visibility
    created: datetime
    revision: int
    saved: datetime
    offered: int


_FRAGMENT: Final = """
    SELECT fragments.id, organization_id, organizations.name AS organization, fragments.name, visibility,
        fragments.created, revision, saved, COALESCE(offered, revision) AS offered
    FROM fragments JOIN organizations ON organizations.id = fragments.organization_id
"""


def create_fragment(sql: Sql, owner: str, name: str, candidate: CheckedFragment, author: Author, now: datetime) -> None:
    """Add a fragment to an organization. EXISTS if the name is taken; Stale if it must be checked again."""
    FRAGMENTS.check_count(counted(sql, "fragments", "organization_id", owner), "the organization")
    _require_fresh(sql, candidate)
    name, moment = checked_name(name, "a fragment"), stored(now)
    row: dict[str, Value] = {
        "id": candidate.id,
        "organization_id": owner,
        "name": name,
        "visibility": candidate.visibility,
    }
    try:
        inserted(sql, "fragments", {**row, "created": moment, "revision": 1, "saved": moment})
    except Conflict:
        raise _name_taken(name) from None
    _add_revision(sql, candidate, moment, author)


def fragment(sql: Sql, subject: str) -> FragmentRecord:
    """Return one fragment; NOT_FOUND."""
    row = sql.row(f"{_FRAGMENT} WHERE fragments.id = ?", subject)
    if row is None:
        raise missing("fragment", subject)
    return _record(row)


def fragments(sql: Sql, owner: str) -> list[FragmentRecord]:
    """Return all fragments of an organization, ordered by name."""
    return [_record(row) for row in sql.rows(f"{_FRAGMENT} WHERE organization_id = ? ORDER BY fragments.name", owner)]


def public_fragments(sql: Sql, but: str) -> list[FragmentRecord]:
    """Return the public fragments of other organizations, ordered by name."""
    where = "WHERE visibility = 'public' AND organization_id <> ? ORDER BY fragments.name, fragments.id"
    return [_record(row) for row in sql.rows(f"{_FRAGMENT} {where}", but)]


@dataclass(frozen=True, slots=True)
class CheckedFragment:
    """A checked document, which can be saved as a fragment's newest revision if the database has not changed since."""

    id: str
    text: str
    equal: bool  # same as the newest revision: nothing to save
    revision: int  # revision that it replaces; 0 for a new fragment
    visibility: Visibility
    uses: frozenset[str]  # ids of the fragments that it uses
    lookups: Lookups


def new_candidate(sql: Sql, owner: str, document: Mapping[str, Any], visibility: Visibility) -> CheckedFragment:
    """Check the document of a new fragment, without writing. INVALID if it cannot be merged."""
    subject, lookups = new_id(), Lookups()
    text = document_text(document, "the fragment")
    check_unmasked(document, {})
    _check(sql, subject, owner, document, visibility, lookups)
    return CheckedFragment(subject, text, False, 0, visibility, frozenset(resolve.uses(document)), lookups)


def candidate(
    sql: Sql, subject: str, document: Mapping[str, Any], last_seen: datetime | None = None
) -> CheckedFragment:
    """Check a document for a fragment, without writing.

    PRECONDITION if another caller saved after `last_seen`; INVALID if it cannot be merged.
    """
    record, lookups = fragment(sql, subject), Lookups()
    if last_seen is not None and stored(last_seen) != stored(record.saved):
        raise MachineError(
            f"the fragment was changed in the meantime (at {record.saved.isoformat()})",
            kind=ErrorKind.PRECONDITION,
            remedy="read it again and apply your change to the newest revision",
        )
    current_document = document_of(sql, subject, record.revision)
    equal, text = current_document == document, ""
    if not equal:
        check_unmasked(document, current_document)
        text = document_text(document, "the fragment")
        _check(sql, subject, record.organization_id, document, record.visibility, lookups)
    uses = frozenset(resolve.uses(document))
    return CheckedFragment(subject, text, equal, record.revision, record.visibility, uses, lookups)


def put(sql: Sql, candidate: CheckedFragment, author: Author, now: datetime, *, held: bool = False) -> None:
    """Save a candidate as the newest revision and notify machines that use it. Stale if it must be checked again.

    With `held`, no machine gets the revision until a rollout gives it to some. Without it, PRECONDITION while a rollout
    decides which machines get which revision.
    """
    record = fragment(sql, candidate.id)
    if (record.revision, record.visibility) != (candidate.revision, candidate.visibility):
        raise Stale
    _require_fresh(sql, candidate)
    if candidate.equal:
        return
    if not held:
        check_not_rolled_out(sql, candidate.id, "", "its newest revision cannot be given to all machines at once")
    revision, moment = candidate.revision + 1, max(stored(now), stored(record.saved) + 1)
    _add_revision(sql, candidate, moment, author)
    sql.run(
        "UPDATE fragments SET revision = ?, saved = ?, offered = ? WHERE id = ?",
        revision,
        moment,
        record.offered if held else None,
        candidate.id,
    )
    if not held:
        notify_parts(sql, candidate.id)


def give(sql: Sql, subject: str, channel: str, revision: int) -> None:
    """Give a revision to all machines that name the tag `channel`, or none if it is empty."""
    if channel:
        sql.run("UPDATE fragment_tags SET revision = ? WHERE fragment_id = ? AND tag = ?", revision, subject, channel)
    else:
        newest = fragment(sql, subject).revision
        sql.run("UPDATE fragments SET offered = ? WHERE id = ?", None if revision == newest else revision, subject)
    notify_parts(sql, subject)


def _require_fresh(sql: Sql, candidate: CheckedFragment) -> None:
    if any(usable(sql, *lookup) != revision for lookup, revision in candidate.lookups.items()):
        raise Stale


def rename_fragment(sql: Sql, subject: str, name: str) -> None:
    """Rename a fragment; EXISTS if the name is taken in the organization."""
    try:
        sql.run("UPDATE fragments SET name = ? WHERE id = ?", checked_name(name, "a fragment"), subject)
    except Conflict:
        raise _name_taken(name) from None


def show_fragment(sql: Sql, subject: str, visibility: Visibility) -> None:
    """Change the visibility. PRECONDITION if it would become private while other organizations use it."""
    record = fragment(sql, subject)
    foreign_parts = [part for part in parts_using(sql, subject) if organization_of(sql, part) != record.organization_id]
    if visibility == "private" and foreign_parts:
        raise MachineError(
            f"{len(foreign_parts)} machine parts of other organizations use the fragment",
            kind=ErrorKind.PRECONDITION,
            remedy="keep it public or unlisted",
        )
    _check(sql, subject, record.organization_id, document_of(sql, subject, record.revision), visibility, Lookups())
    for revision in {record.offered, *(number for _, number in tags(sql, subject))}:
        check_shareable(sql, subject, revision, visibility)
    sql.run("UPDATE fragments SET visibility = ? WHERE id = ?", visibility, subject)


def delete_fragment(sql: Sql, subject: str) -> None:
    """Delete a fragment with its revisions; PRECONDITION while it is used."""
    owner = fragment(sql, subject).organization_id
    users = sql.rows("SELECT kind, subject FROM fragment_uses WHERE fragment_id = ? AND subject <> ?", subject, subject)
    if users:
        own = [row for row in users[:SEARCHED] if _owner_of_use(sql, row) == owner][:5]
        shown_users = ", ".join(f"{row['kind']} {row['subject']}" for row in own)
        raise MachineError(
            f"the fragment is used by {len(users)} parts or fragments{f' ({shown_users})' if own else ''}",
            kind=ErrorKind.PRECONDITION,
            remedy="remove it from their configurations first",
        )
    check_not_rolled_out(sql, subject, "", "it cannot be deleted")
    for tag, _ in tags(sql, subject):
        check_not_rolled_out(sql, subject, tag, "it cannot be deleted")
    sql.run("DELETE FROM fragment_uses WHERE kind = 'fragment' AND subject = ?", subject)
    sql.run("DELETE FROM fragment_tags WHERE fragment_id = ?", subject)
    sql.run("DELETE FROM written_texts WHERE kind = 'fragment' AND subject = ?", subject)
    sql.run("DELETE FROM fragment_revisions WHERE fragment_id = ?", subject)
    sql.run("DELETE FROM fragments WHERE id = ?", subject)


# ---- revisions and tags


def document_of(sql: Sql, subject: str, revision: int) -> Mapping[str, Any]:
    """Return the document of a revision; NOT_FOUND."""
    row = sql.row("SELECT document FROM fragment_revisions WHERE fragment_id = ? AND revision = ?", subject, revision)
    if row is None:
        raise missing("revision", str(revision))
    document: Mapping[str, Any] = pieces.loads(row["document"])
    return document


def revision_of(sql: Sql, subject: str, version: str) -> int | None:
    """Return the revision for a version: a number, a tag, or "" for the newest; None if there is none."""
    return offered_revision(sql, subject, version) if version else fragment(sql, subject).revision


def revisions(sql: Sql, subject: str, *, before: int | None = None, limit: int) -> Revisions:
    """Return revisions below `before`, newest first; fewer than `limit` if they exceed the limit `history`."""
    return within_limit(
        sql,
        """
        SELECT revision, document, saved, author_type, author,
            (SELECT document FROM fragment_revisions AS older WHERE older.fragment_id = fragment_revisions.fragment_id
             AND older.revision = fragment_revisions.revision - 1) AS before
        FROM fragment_revisions WHERE fragment_id = ? AND revision < ? ORDER BY revision DESC LIMIT 1 OFFSET ?
        """,
        (subject, before or 2**62),
        limit,
    )


def saves(sql: Sql, subject: str, limit: int) -> list[tuple[int, datetime]]:
    """Return numbers and times of revisions, newest first."""
    query = "SELECT revision, saved FROM fragment_revisions WHERE fragment_id = ? ORDER BY revision DESC LIMIT ?"
    return [(row["revision"], moment_of(row["saved"])) for row in sql.rows(query, subject, limit)]


def tags(sql: Sql, subject: str) -> list[tuple[str, int]]:
    """Return all tags with their revisions, ordered by tag."""
    rows = sql.rows("SELECT tag, revision FROM fragment_tags WHERE fragment_id = ? ORDER BY tag", subject)
    return [(row["tag"], row["revision"]) for row in rows]


def set_tag(sql: Sql, subject: str, tag: str, revision: int) -> None:
    """Point `tag` to a revision. Configurations that are pinned to the tag change at once."""
    if not _TAG.fullmatch(tag):
        raise MachineError(
            f"{tag[:70]!r} is not a valid tag",
            kind=ErrorKind.INVALID,
            remedy="use 1 to 60 lowercase letters, digits, - and _; the first must not be a digit or v",
        )
    check_shareable(sql, subject, revision, fragment(sql, subject).visibility)
    check_not_rolled_out(sql, subject, tag, f"its tag {tag} cannot be moved")
    if tag not in dict(tags(sql, subject)):
        FRAGMENT_TAGS.check_count(counted(sql, "fragment_tags", "fragment_id", subject), "the fragment")
    sql.run(
        "INSERT INTO fragment_tags (fragment_id, tag, revision) VALUES (?, ?, ?) "
        "ON CONFLICT (fragment_id, tag) DO UPDATE SET revision = excluded.revision",
        subject,
        tag,
        revision,
    )
    notify_parts(sql, subject)


def delete_tag(sql: Sql, subject: str, tag: str) -> None:
    """Delete a tag; NOT_FOUND. PRECONDITION while a current configuration is pinned to it."""
    check_not_rolled_out(sql, subject, tag, f"its tag {tag} cannot be deleted")
    parts = [part for part in parts_using(sql, subject) if pinned(sql, part, subject, tag)]
    if parts:
        raise MachineError(
            f"{len(parts)} machine parts are pinned to the tag {tag!r}",
            kind=ErrorKind.PRECONDITION,
            remedy="change their configurations first, or move the tag",
        )
    if not sql.run("DELETE FROM fragment_tags WHERE fragment_id = ? AND tag = ?", subject, tag):
        raise missing("tag", tag)


# ---- merging


def usable(sql: Sql, organization: str, subject: str, version: str, part: str = "") -> int | None:
    """Return the revision that a part gets for a version of a fragment, without a part that of machines which no
    rollout has reached; None if the organization may not use the fragment.
    """
    row = sql.row("SELECT organization_id, visibility FROM fragments WHERE id = ?", subject)
    if row is None or (row["organization_id"] != organization and row["visibility"] == "private"):
        return None
    return offered_revision(sql, subject, version, part)


def finder(sql: Sql, organization: str, lookups: Lookups | None = None, part: str = "") -> resolve.Find:
    """Return a function that finds the fragments that an organization may use: its own and non-private ones, in the
    revisions that a part gets; see `usable`. `lookups` records its results.
    """

    def find(subject: str, version: str) -> resolve.Fragment | None:
        revision = usable(sql, organization, subject, version, part)
        if lookups is not None:
            lookups[organization, subject, version] = revision
        return None if revision is None else resolve.Fragment(subject, revision, document_of(sql, subject, revision))

    return find


def checked(resolved: resolve.Resolved) -> None:
    """Raise INVALID with up to five problems if a document cannot be merged."""
    if resolved.problems:
        raise MachineError(
            "; ".join(str(problem) for problem in resolved.problems[:5]),
            kind=ErrorKind.INVALID,
            remedy="correct `fragments` and `fragment_mods`; nothing was saved",
        )


def _check(
    sql: Sql, subject: str, owner: str, document: Mapping[str, Any], visibility: Visibility, lookups: Lookups
) -> None:
    """Raise INVALID if a fragment cannot be merged without variables, or would publish a password."""
    find = finder(sql, owner, lookups)

    def find_own(requested: str, version: str) -> resolve.Fragment | None:
        return resolve.Fragment(subject, 0, document) if requested == subject else find(requested, version)

    resolved = resolve.resolve({"fragments": [subject]}, find_own)
    checked(
        resolve.Resolved(
            {},
            tuple(problem for problem in resolved.problems if problem.kind is not resolve.FragmentProblemKind.MISTAKE),
        )
    )
    if visibility != "private":
        _check_no_secrets(document)


def check_shareable(sql: Sql, subject: str, revision: int, visibility: Visibility) -> None:
    """Raise INVALID if a revision would give a secret to machines of other organizations; NOT_FOUND."""
    document = document_of(sql, subject, revision)
    if visibility != "private":
        _check_no_secrets(document)


def _check_no_secrets(document: Mapping[str, Any]) -> None:
    for index, trigger in enumerate(resolve.entries(document, "triggers")):
        for notification in resolve.entries(trigger, "notifications") if isinstance(trigger, Mapping) else ():
            if isinstance(notification, Mapping) and (notification.get("auth") or notification.get("secret")):
                raise MachineError(
                    f"triggers.{index}.notifications: other organizations could read the secret in this fragment",
                    kind=ErrorKind.INVALID,
                    remedy="keep the fragment private, or put the secret into the machine's own configuration",
                )


def _add_revision(sql: Sql, candidate: CheckedFragment, moment: int, author: Author) -> None:
    revision = candidate.revision + 1
    row: dict[str, Value] = {
        "fragment_id": candidate.id,
        "revision": revision,
        "document": candidate.text,
        "saved": moment,
    }
    inserted(sql, "fragment_revisions", {**row, "author_type": author.type, "author": author.name})
    note_uses(sql, "fragment", candidate.id, candidate.uses, only=False)


def _owner_of_use(sql: Sql, row: Mapping[str, Any]) -> str:
    if row["kind"] == "part":
        return organization_of(sql, row["subject"])
    return fragment(sql, row["subject"]).organization_id


def organization_of(sql: Sql, part: str) -> str:
    """Return the organization of a part; "" if the part was deleted."""
    row = sql.row(
        "SELECT organization_id FROM parts JOIN machines ON machines.id = machine_id "
        "JOIN locations ON locations.id = location_id WHERE parts.id = ?",
        part,
    )
    return "" if row is None else str(row["organization_id"])


def _record(row: Mapping[str, Any]) -> FragmentRecord:
    return FragmentRecord(
        row["id"],
        row["organization_id"],
        row["organization"],
        row["name"],
        row["visibility"],
        moment_of(row["created"]),
        row["revision"],
        moment_of(row["saved"]),
        row["offered"],
    )


def _name_taken(name: str) -> MachineError:
    return MachineError(
        f"there is already a fragment called {name!r}", kind=ErrorKind.EXISTS, remedy="choose another name"
    )
