"""Calls of the configuration pages beyond the published API, with the same permission checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from cloud.documents.resolve import Resolved, entries
from cloud.domain.configurations import configurations, fragments
from cloud.domain.configurations.fragment_uses import parts_using
from cloud.domain.configurations.fragments import FragmentRecord
from cloud.domain.configurations.revisions import Revision
from cloud.domain.fleet import watching
from cloud.domain.machines import machines
from cloud.domain.machines.machines import PartRecord
from cloud.domain.machines.online import Presence, presence
from cloud.domain.organizations import keys, tenants
from cloud.domain.organizations.tenants import missing
from cloud.domain.permissions import call_rules
from cloud.domain.permissions.access import Of, Place, Role, is_home, place_of, role_at, visible
from cloud.domain.permissions.shown import Shown, nothing, reads_secrets, shown
from cloud.domain.registry.deprecation import advice
from cloud.editing.catalogue import EditingContext
from cloud.services.common.base import Service, guarded
from cloud.store.sql import Sql
from cloud.values.author import KEY, MACHINES, Author
from schema.errors import MachineError


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
    known: EditingContext
    running: Running


@dataclass(frozen=True, slots=True)
class Running:
    """How the machine runs the configuration in force. `trouble` has name, state and reason of failing resources."""

    part: PartRecord
    presence: Presence
    version: str
    told: str  # the version that the machine reports
    fresh: bool  # whether the machine has reported its resources in this version
    trouble: Sequence[tuple[str, str, str]] = ()
    problems: Sequence[tuple[str, str]] = ()
    rejected: str = ""
    pending: str = ""

    @property
    def runs(self) -> bool:
        """Whether the machine runs the configuration in force."""
        return self.told == self.version


@dataclass(frozen=True, slots=True)
class Save:
    """A revision with the name of its author.

    Only `shown` may leave the cloud. `revision` is for differences, which are always masked, and for owners who restore
    it.
    """

    revision: Revision
    who: str
    shown: Shown = field(default_factory=nothing)


@dataclass(frozen=True, slots=True)
class FragmentEditing:
    """A fragment, as its page shows it. `users` are the machine parts that use it and that the caller may see."""

    fragment: FragmentRecord
    document: Shown
    tags: Sequence[tuple[str, int]]
    users: Sequence[PartRecord]
    others: int  # number of users that the caller may not see
    may_save: bool
    known: EditingContext


@guarded(call_rules.EDITOR)
class Editor(Service):
    """A request of a configuration page."""

    async def editing(self, part: str) -> Editing:
        """Return a part with its configuration in force."""

        def work(sql: Sql) -> Editing:
            found, place = machines.part(sql, part), place_of(sql, Of.PART, part)
            (save,) = configurations.history(sql, part, limit=1)
            version, resolved = configurations.resolution(sql, part)
            may_save = role_at(sql, self.author, place) is Role.OWNER
            return Editing(
                found,
                place.organization,
                shown(save.document, whole=may_save, alongside=[resolved.document]),
                name_of(sql, save.author),
                resolved,
                shown(resolved.document, whole=False, alongside=[save.document]),
                may_save,
                self._known(sql, place, resolved),
                _running(found, version, watching.latest_snapshot(sql, part), self.now()),
            )

        return await self.read(work)

    async def known(self, part: str) -> EditingContext:
        """Return the context for completion beyond the text."""

        def work(sql: Sql) -> EditingContext:
            return self._known(sql, place_of(sql, Of.PART, part), configurations.resolution(sql, part)[1])

        return await self.read(work)

    async def running(self, part: str) -> Running:
        """Return how the machine runs its configuration."""

        def work(sql: Sql) -> Running:
            found = machines.part(sql, part)
            version = configurations.resolution(sql, part)[0]
            return _running(found, version, watching.latest_snapshot(sql, part), self.now())

        return await self.read(work)

    async def watch(self, part: str) -> None:
        """Have the machine report its live state for a limited time."""
        await self.write(lambda sql: watching.watch(sql, part, self.now()))

    async def revision(self, part: str, number: int) -> Save:
        """Return a revision; NOT_FOUND if it does not exist."""

        def work(sql: Sql) -> Save:
            found = configurations.history(sql, part, before=number + 1, limit=1)
            if not found or found[0].number != number:
                raise missing("revision", str(number))
            return Save(found[0], name_of(sql, found[0].author))

        return await self.read(work)

    async def revisions(self, part: str, before: int | None, limit: int) -> list[Save]:
        """Return the revisions below `before`, newest first."""

        def work(sql: Sql) -> list[Save]:
            found = configurations.history(sql, part, before=before, limit=limit)
            return self._saves(sql, found, Of.PART, part)

        return await self.read(work)

    # ---- fragments

    async def organizations(self) -> list[tuple[tenants.Organization, bool]]:
        """Return the organizations whose fragments the caller may see, and whether it may create fragments there."""

        def work(sql: Sql) -> list[tuple[tenants.Organization, bool]]:
            grants = [one for one in visible(sql, self.author) if one.kind == "organization"]
            return [(tenants.organization(sql, one.subject), one.role == "owner") for one in grants]

        return await self.read(work)

    async def fragment_editing(self, fragment: str) -> FragmentEditing:
        """Return a fragment in its newest revision."""

        def work(sql: Sql) -> FragmentEditing:
            found = fragments.fragment(sql, fragment)
            may_save = reads_secrets(sql, self.author, Of.FRAGMENT, fragment)
            using = parts_using(sql, fragment)
            seen = [one for one in using if self._sees(sql, one)]
            return FragmentEditing(
                found,
                shown(fragments.document_of(sql, fragment, found.revision), whole=may_save),
                fragments.tags(sql, fragment),
                [machines.part(sql, one) for one in seen],
                len(using) - len(seen),
                may_save,
                EditingContext(_fragments(sql, found.organization_id), advice=advice(sql, found.organization_id)),
            )

        return await self.read(work)

    async def fragment_revisions(self, fragment: str, before: int | None, limit: int) -> list[Save]:
        """Return the revisions of a fragment below `before`, newest first."""

        def work(sql: Sql) -> list[Save]:
            found = fragments.revisions(sql, fragment, before=before, limit=limit)
            return self._saves(sql, found, Of.FRAGMENT, fragment)

        return await self.read(work)

    def _saves(self, sql: Sql, found: Sequence[Revision], of: Of, subject: str) -> list[Save]:
        whole, beside = reads_secrets(sql, self.author, of, subject), [one.document for one in found]
        return [
            Save(one, name_of(sql, one.author), shown(one.document, whole=whole, alongside=beside)) for one in found
        ]

    def _known(self, sql: Sql, place: Place, resolved: Resolved) -> EditingContext:
        """Return the context against which a text is checked. Callers with only shared access to the machine do not see
        its organization's fragments and private modules."""
        names = [
            str(one["name"])
            for section in ("components", "services")
            for one in entries(resolved.document, section)
            if resolved.used and isinstance(one, Mapping) and isinstance(one.get("name"), str)
        ]
        home = is_home(sql, self.author, place)
        told = advice(sql, place.organization if home else "")
        return EditingContext(_fragments(sql, place.organization) if home else {}, tuple(names), told)

    def _sees(self, sql: Sql, part: str) -> bool:
        return role_at(sql, self.author, place_of(sql, Of.PART, part)) is not Role.NONE


def _fragments(sql: Sql, organization: str) -> Mapping[str, str]:
    return {one.id: one.name for one in fragments.fragments(sql, organization)}


def _running(part: PartRecord, version: str, told: watching.LiveSnapshot | None, now: datetime) -> Running:
    snapshot = told.snapshot if told is not None else {}
    fresh = snapshot.get("revision") == version
    said = str(part.reported.get("revision", ""))
    words = {"unhealthy", "unconfigured"} if snapshot.get("state") == "running" else {"unhealthy"}
    trouble = [
        (str(one.get("name", "")), str(one.get("state", "")), str(one.get("reason", "")))
        for one in snapshot.get("resources", ())
        if fresh and one.get("state") in words
    ]
    problems = [
        (str(one.get("path", "")), _sentence(str(one.get("message", "")), str(one.get("remedy", ""))))
        for one in snapshot.get("problems", ())
        if fresh
    ]
    return Running(
        part,
        presence(part.seen, now, online=part.online),
        version,
        version if fresh else said,
        fresh,
        trouble,
        problems,
        str(part.reported.get("rejected", "")),
        str(snapshot.get("pending", "")) if told is not None else "",
    )


def _sentence(message: str, remedy: str) -> str:
    return f"{message}: {remedy}" if remedy and remedy not in message else message


def name_of(sql: Sql, author: Author) -> str:
    """Return a display name of an author: for a key, its name while it exists."""
    if author.type == KEY:
        try:
            return keys.key(sql, author.name).name
        except MachineError:
            return f"the deleted key {author.name}"
    return "the machine" if author.type in MACHINES else author.name
