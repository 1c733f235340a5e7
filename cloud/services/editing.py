"""What the pages of the configuration need beside the published calls, guarded like those."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from cloud import configurations, fragments, keys, machines, permissions, tenants, watching
from cloud.access import Of, Place, Role, is_home, place_of, role_at, visible
from cloud.author import KEY, MACHINES, Author
from cloud.editing.catalogue import Known
from cloud.fragment_uses import parts_using
from cloud.fragments import FragmentRecord
from cloud.machines import PartRecord
from cloud.online import Presence, presence
from cloud.registry.deprecation import advice
from cloud.resolve import Resolved, entries
from cloud.revisions import Revision
from cloud.services.base import Service, guarded
from cloud.shown import Shown, nothing, reads_secrets, shown
from cloud.store.sql import Sql
from cloud.tenants import missing
from schema.errors import MachineError


@dataclass(frozen=True, slots=True)
class Editing:
    """A part as its configuration page shows it. `merged` is what the machine runs, without secrets."""

    part: PartRecord
    organization: str
    document: Shown
    author: str
    resolved: Resolved
    merged: Shown
    may_save: bool
    known: Known


@dataclass(frozen=True, slots=True)
class Running:
    """What the machine makes of the configuration in force. `trouble`: resources that do not work, each with why."""

    part: PartRecord
    presence: Presence
    version: str
    told: str  # the version that the machine says it runs
    fresh: bool  # it has told of its resources since it runs this version
    trouble: Sequence[tuple[str, str, str]] = ()
    problems: Sequence[tuple[str, str]] = ()
    rejected: str = ""
    pending: str = ""

    @property
    def runs(self) -> bool:
        """Whether it runs the configuration in force."""
        return self.told == self.version


@dataclass(frozen=True, slots=True)
class Save:
    """One revision with the name of who made it. Only `shown` leaves the cloud; `revision` is for differences, which
    are masked for everybody, and for what an owner saves again."""

    revision: Revision
    who: str
    shown: Shown = field(default_factory=nothing)


@dataclass(frozen=True, slots=True)
class FragmentEditing:
    """A fragment as its page shows it. `users` are machine parts that the caller may see, by name."""

    fragment: FragmentRecord
    document: Shown
    tags: Sequence[tuple[str, int]]
    users: Sequence[PartRecord]
    others: int  # users that the caller may not see
    may_save: bool
    known: Known


@guarded(permissions.EDITOR)
class Editor(Service):
    """One request of a page."""

    async def editing(self, part: str) -> Editing:
        """A part with its configuration in force."""

        def work(sql: Sql) -> Editing:
            found, place = machines.part(sql, part), place_of(sql, Of.PART, part)
            (save,) = configurations.history(sql, part, limit=1)
            resolved = configurations.resolution(sql, part)[1]
            may_save = role_at(sql, self.author, place) is Role.OWNER
            return Editing(
                found,
                place.organization,
                shown(save.document, whole=may_save, beside=[resolved.document]),
                name_of(sql, save.author),
                resolved,
                shown(resolved.document, whole=False, beside=[save.document]),
                may_save,
                self._known(sql, place, resolved),
            )

        return await self.read(work)

    async def known(self, part: str) -> Known:
        """What completion knows besides the text."""

        def work(sql: Sql) -> Known:
            return self._known(sql, place_of(sql, Of.PART, part), configurations.resolution(sql, part)[1])

        return await self.read(work)

    async def running(self, part: str) -> Running:
        """What the machine makes of it."""

        def work(sql: Sql) -> Running:
            found = machines.part(sql, part)
            version = configurations.resolution(sql, part)[0]
            return _running(found, version, watching.told(sql, part), self.now())

        return await self.read(work)

    async def watch(self, part: str) -> None:
        """Have the machine tell how it is, for a while."""
        await self.write(lambda sql: watching.watch(sql, part, self.now()))

    async def revision(self, part: str, number: int) -> Save:
        """One revision; NOT_FOUND."""

        def work(sql: Sql) -> Save:
            found = configurations.history(sql, part, before=number + 1, limit=1)
            if not found or found[0].number != number:
                raise missing("revision", str(number))
            return Save(found[0], name_of(sql, found[0].author))

        return await self.read(work)

    async def revisions(self, part: str, before: int | None, limit: int) -> list[Save]:
        """Revisions below `before`, the newest first."""

        def work(sql: Sql) -> list[Save]:
            found = configurations.history(sql, part, before=before, limit=limit)
            return self._saves(sql, found, Of.PART, part)

        return await self.read(work)

    # ---- fragments

    async def organizations(self) -> list[tuple[tenants.Organization, bool]]:
        """Those at which the caller has a role, so that it sees their fragments; whether it may make some."""

        def work(sql: Sql) -> list[tuple[tenants.Organization, bool]]:
            grants = [one for one in visible(sql, self.author) if one.kind == "organization"]
            return [(tenants.organization(sql, one.subject), one.role == "owner") for one in grants]

        return await self.read(work)

    async def fragment_editing(self, fragment: str) -> FragmentEditing:
        """A fragment in its newest revision."""

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
                Known(_fragments(sql, found.organization_id), advice=advice(sql, found.organization_id)),
            )

        return await self.read(work)

    async def fragment_revisions(self, fragment: str, before: int | None, limit: int) -> list[Save]:
        """Revisions of a fragment below `before`, the newest first."""

        def work(sql: Sql) -> list[Save]:
            found = fragments.revisions(sql, fragment, before=before, limit=limit)
            return self._saves(sql, found, Of.FRAGMENT, fragment)

        return await self.read(work)

    def _saves(self, sql: Sql, found: Sequence[Revision], of: Of, subject: str) -> list[Save]:
        whole, beside = reads_secrets(sql, self.author, of, subject), [one.document for one in found]
        return [Save(one, name_of(sql, one.author), shown(one.document, whole=whole, beside=beside)) for one in found]

    def _known(self, sql: Sql, place: Place, resolved: Resolved) -> Known:
        """What a text is checked against. Those with whom a machine is shared are told of its organization's fragments
        and private modules nothing.
        """
        names = [
            str(one["name"])
            for section in ("components", "services")
            for one in entries(resolved.document, section)
            if resolved.used and isinstance(one, Mapping) and isinstance(one.get("name"), str)
        ]
        home = is_home(sql, self.author, place)
        told = advice(sql, place.organization if home else "")
        return Known(_fragments(sql, place.organization) if home else {}, tuple(names), told)

    def _sees(self, sql: Sql, part: str) -> bool:
        return role_at(sql, self.author, place_of(sql, Of.PART, part)) is not Role.NOBODY


def _fragments(sql: Sql, organization: str) -> Mapping[str, str]:
    return {one.id: one.name for one in fragments.fragments(sql, organization)}


def _running(part: PartRecord, version: str, told: watching.Told | None, now: datetime) -> Running:
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
    """Who it was, in words for people: a key by its name, as long as there is that key."""
    if author.type == KEY:
        try:
            return keys.key(sql, author.name).name
        except MachineError:
            return f"the deleted key {author.name}"
    return "the machine" if author.type in MACHINES else author.name
