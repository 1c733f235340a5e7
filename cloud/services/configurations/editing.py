"""Calls of the configuration pages beyond the published API, with the same permission checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from cloud.documents.pieces import LARGE
from cloud.documents.readable import check_text
from cloud.documents.resolve import Resolved, entries
from cloud.domain.configurations import configurations, fragments, written_texts
from cloud.domain.configurations.fragment_uses import machines_of, parts_using
from cloud.domain.configurations.fragments import FragmentRecord
from cloud.domain.configurations.revisions import Revision
from cloud.domain.fleet import watching
from cloud.domain.fleet.fleet import reached
from cloud.domain.machines import machines
from cloud.domain.machines.machines import PartRecord
from cloud.domain.machines.online import Presence, presence
from cloud.domain.machines.reported import problem_count
from cloud.domain.organizations import keys, tenants
from cloud.domain.organizations.tenants import missing
from cloud.domain.permissions.access import ObjectKind, Place, Role, is_home, place_of, role_at, visible
from cloud.domain.permissions.rules import ROLE_ANYWHERE, allow, operator, owner
from cloud.domain.permissions.shown import Shown, empty, reads_secrets, shown
from cloud.domain.registry.deprecation import advice
from cloud.editing.catalogue import EditingContext
from cloud.editing.comments import check_written
from cloud.services.common.base import Service, guarded
from cloud.store.sql import Sql
from cloud.values.author import KEY, MACHINES, Author
from schema import MachineError


@dataclass(frozen=True, slots=True)
class Editing:
    """A part, as its configuration page shows it. `merged` is the document that the machine runs, without secrets."""

    part: PartRecord
    organization: str
    document: Shown
    author: str
    resolved: Resolved
    merged: Shown
    may_save: bool
    context: EditingContext
    running: Running
    text: str = ""  # the document as a person wrote it, with comments; empty if there is none, or for readers


@dataclass(frozen=True, slots=True)
class Running:
    """How the machine runs the configuration in force. `trouble` has name, state and reason of failing resources."""

    part: PartRecord
    presence: Presence
    version: str
    reported_version: str  # the version that the machine reports
    fresh: bool  # whether the machine has reported its resources in this version
    trouble: Sequence[tuple[str, str, str]] = ()
    problems: Sequence[tuple[str, str]] = ()
    rejected: str = ""
    pending: str = ""
    count: int = 0  # problems, as on all other pages

    @property
    def runs(self) -> bool:
        """Whether the machine runs the configuration in force."""
        return self.reported_version == self.version


@dataclass(frozen=True, slots=True)
class Save:
    """A revision with the name of its author.

    Only `shown` may leave the cloud. `revision` is for differences, which are always masked, and for owners who restore
    it.
    """

    revision: Revision
    who: str
    shown: Shown = field(default_factory=empty)


USERS: Final = 50
"""Machines that a fragment's page names."""


@dataclass(frozen=True, slots=True)
class FragmentEditing:
    """A fragment, as its page shows it. `users` are parts that use it and that the caller may see, at most USERS."""

    fragment: FragmentRecord
    document: Shown
    tags: Sequence[tuple[str, int]]
    users: Sequence[PartRecord]
    seen: int  # number of users that the caller may see
    others: int  # number of users that the caller may not see
    may_save: bool
    context: EditingContext
    text: str = ""  # as in Editing


@guarded
class Editor(Service):
    """A request of a configuration page."""

    @allow(operator(ObjectKind.PART, "part", inside=True))
    async def editing(self, part: str) -> Editing:
        """Return a part with its configuration in force."""

        def work(sql: Sql) -> Editing:
            record, place = machines.part(sql, part), place_of(sql, ObjectKind.PART, part)
            (save,) = configurations.history(sql, part, limit=1)
            version, resolved = configurations.resolution(sql, part)
            may_save = role_at(sql, self.author, place) is Role.OWNER
            return Editing(
                record,
                place.organization,
                shown(save.document, whole=may_save, alongside=[resolved.document]),
                name_of(sql, save.author),
                resolved,
                shown(resolved.document, whole=False, alongside=[save.document]),
                may_save,
                self._context(sql, place, resolved),
                _running(record, version, watching.latest_snapshot(sql, part), self.now()),
                written_texts.text_of(sql, "part", part, save.document) if may_save else "",
            )

        return await self.read_checked(work)

    @allow(owner(ObjectKind.PART, "part"))
    async def keep_text(self, part: str, document: Mapping[str, Any], text: str) -> None:
        """Store the text that means a document which is saved next, or is in force; an empty text deletes it."""
        content = await self._content(document, text)
        await self.write(lambda sql: written_texts.keep(sql, "part", part, content, text))

    @allow(owner(ObjectKind.FRAGMENT, "fragment"))
    async def keep_fragment_text(self, fragment: str, document: Mapping[str, Any], text: str) -> None:
        """Store the text of a fragment's document; see `keep_text`."""
        content = await self._content(document, text)
        await self.write(lambda sql: written_texts.keep(sql, "fragment", fragment, content, text))

    async def _content(self, document: Mapping[str, Any], text: str) -> str:
        check_written(text)
        check_text(text)
        return await self.offload(LARGE, lambda: written_texts.content_of(document))

    @allow(operator(ObjectKind.PART, "part", inside=True))
    async def context(self, part: str) -> EditingContext:
        """Return the context for completion beyond the text."""

        def work(sql: Sql) -> EditingContext:
            return self._context(sql, place_of(sql, ObjectKind.PART, part), configurations.resolution(sql, part)[1])

        return await self.read_checked(work)

    @allow(operator(ObjectKind.PART, "part", inside=True))
    async def running(self, part: str) -> Running:
        """Return how the machine runs its configuration."""

        def work(sql: Sql) -> Running:
            record = machines.part(sql, part)
            version = configurations.resolution(sql, part)[0]
            return _running(record, version, watching.latest_snapshot(sql, part), self.now())

        return await self.read_checked(work)

    @allow(operator(ObjectKind.PART, "part"))
    async def watch(self, part: str) -> None:
        """Have the machine report its live state for a limited time."""
        await self.write(lambda sql: watching.watch(sql, part, self.now()))

    @allow(operator(ObjectKind.PART, "part", inside=True))
    async def revision(self, part: str, number: int) -> Save:
        """Return a revision; NOT_FOUND if it does not exist."""

        def work(sql: Sql) -> Save:
            revisions = configurations.history(sql, part, before=number + 1, limit=1)
            if not revisions or revisions[0].number != number:
                raise missing("revision", str(number))
            return Save(revisions[0], name_of(sql, revisions[0].author))

        return await self.read_checked(work)

    @allow(operator(ObjectKind.PART, "part", inside=True))
    async def revisions(self, part: str, before: int | None, limit: int) -> list[Save]:
        """Return the revisions below `before`, newest first."""

        def work(sql: Sql) -> list[Save]:
            revisions = configurations.history(sql, part, before=before, limit=limit)
            return self._saves(sql, revisions, ObjectKind.PART, part)

        return await self.read_checked(work)

    # ---- fragments

    @allow(ROLE_ANYWHERE)
    async def organizations(self) -> list[tuple[tenants.Organization, bool]]:
        """Return the organizations whose fragments the caller may see, and whether it may create fragments there."""

        def work(sql: Sql) -> list[tuple[tenants.Organization, bool]]:
            grants = [grant for grant in visible(sql, self.author) if grant.kind == "organization"]
            return [(tenants.organization(sql, grant.subject), grant.role == "owner") for grant in grants]

        return await self.read(work)

    @allow(operator(ObjectKind.FRAGMENT, "fragment", inside=True))
    async def fragment_editing(self, fragment: str) -> FragmentEditing:
        """Return a fragment in its newest revision."""

        def work(sql: Sql) -> FragmentEditing:
            record = fragments.fragment(sql, fragment)
            may_save = reads_secrets(sql, self.author, ObjectKind.FRAGMENT, fragment)
            using = parts_using(sql, fragment)
            visible_parts = self._seen_of(sql, using)
            document = fragments.document_of(sql, fragment, record.revision)
            return FragmentEditing(
                record,
                shown(document, whole=may_save),
                fragments.tags(sql, fragment),
                [machines.part(sql, part) for part in visible_parts[:USERS]],
                len(visible_parts),
                len(using) - len(visible_parts),
                may_save,
                EditingContext(_fragments(sql, record.organization_id), advice=advice(sql, record.organization_id)),
                written_texts.text_of(sql, "fragment", fragment, document) if may_save else "",
            )

        return await self.read_checked(work)

    @allow(operator(ObjectKind.FRAGMENT, "fragment"))
    async def fragment_revisions(self, fragment: str, before: int | None, limit: int) -> list[Save]:
        """Return the revisions of a fragment below `before`, newest first."""

        def work(sql: Sql) -> list[Save]:
            revisions = fragments.revisions(sql, fragment, before=before, limit=limit)
            return self._saves(sql, revisions, ObjectKind.FRAGMENT, fragment)

        return await self.read(work)

    def _saves(self, sql: Sql, revisions: Sequence[Revision], of: ObjectKind, subject: str) -> list[Save]:
        whole, documents = reads_secrets(sql, self.author, of, subject), [revision.document for revision in revisions]
        return [
            Save(revision, name_of(sql, revision.author), shown(revision.document, whole=whole, alongside=documents))
            for revision in revisions
        ]

    def _context(self, sql: Sql, place: Place, resolved: Resolved) -> EditingContext:
        """Return the context against which a text is checked. Callers with only shared access to the machine do not see
        its organization's fragments and private modules."""
        names = [
            str(entry["name"])
            for section in ("components", "services")
            for entry in entries(resolved.document, section)
            if resolved.used and isinstance(entry, Mapping) and isinstance(entry.get("name"), str)
        ]
        home = is_home(sql, self.author, place)
        advice_by_module = advice(sql, place.organization if home else "")
        return EditingContext(_fragments(sql, place.organization) if home else {}, tuple(names), advice_by_module)

    def _seen_of(self, sql: Sql, parts: Sequence[str]) -> list[str]:
        """Return those of these parts that the caller may see, by the names of their machines."""
        by_part = machines_of(sql, parts)
        names = {each.id: each.name for each in reached(sql, self.author, list(dict.fromkeys(by_part.values())))}
        seen = [part for part, machine in by_part.items() if machine in names]
        return sorted(seen, key=lambda part: (names[by_part[part]].lower(), part))


def _fragments(sql: Sql, organization: str) -> Mapping[str, str]:
    return {fragment.id: fragment.name for fragment in fragments.fragments(sql, organization)}


def _running(part: PartRecord, version: str, live: watching.LiveSnapshot | None, now: datetime) -> Running:
    snapshot = live.snapshot if live is not None else {}
    fresh = snapshot.get("revision") == version
    reported_version = str(part.reported.get("revision", ""))
    failing_states = {"unhealthy", "unconfigured"} if snapshot.get("state") == "running" else {"unhealthy"}
    trouble = [
        (str(entry.get("name", "")), str(entry.get("state", "")), str(entry.get("reason", "")))
        for entry in snapshot.get("resources", ())
        if fresh and entry.get("state") in failing_states
    ]
    problems = [
        (str(entry.get("path", "")), _with_remedy(str(entry.get("message", "")), str(entry.get("remedy", ""))))
        for entry in snapshot.get("problems", ())
        if fresh
    ]
    return Running(
        part,
        presence(part.seen, now, online=part.online, gone=part.gone),
        version,
        version if fresh else reported_version,
        fresh,
        trouble,
        problems,
        str(part.reported.get("rejected", "")),
        str(snapshot.get("pending", "")) if live is not None else "",
        problem_count(part.reported),
    )


def _with_remedy(message: str, remedy: str) -> str:
    return f"{message}: {remedy}" if remedy and remedy not in message else message


def name_of(sql: Sql, author: Author) -> str:
    """Return a display name of an author: for a key, its name while it exists."""
    if author.type == KEY:
        try:
            return keys.key(sql, author.name).name
        except MachineError:
            return f"the deleted key {author.name}"
    return "the machine" if author.type in MACHINES else author.name
