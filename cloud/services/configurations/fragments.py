"""Published calls for fragments: configurations that many machines share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from cloud.documents import resolve
from cloud.domain.configurations import configurations, fragments
from cloud.domain.configurations.fragment_uses import owners, parts_using
from cloud.domain.configurations.revisions import Revisions, until_fresh
from cloud.domain.machines import machines
from cloud.domain.organizations.tenants import missing
from cloud.domain.permissions.access import ObjectKind, Role, is_home, place_of
from cloud.domain.permissions.registry_access import organizations_of
from cloud.domain.permissions.rules import READABLE, allow, operator, owner
from cloud.domain.permissions.shown import Shown, reads_secrets, shown, text_of
from cloud.services.common.base import Service
from cloud.services.configurations import fragment_messages as m
from cloud.services.configurations.configurations import decoded, editor, page_start
from cloud.store.sql import Sql
from schema import ErrorKind, MachineError

PAGE: Final = 100
MAX_PAGE: Final = 1000
MAX_REQUESTED: Final = 100  # fragments that one call may resolve
_VISIBILITY: Final[Mapping[m.Visibility, fragments.Visibility]] = {
    m.Visibility.PRIVATE: "private",
    m.Visibility.PUBLIC: "public",
    m.Visibility.PUBLIC_UNLISTED: "unlisted",
}
_VISIBILITY_NUMBERS: Final = {word: number for number, word in _VISIBILITY.items()}


class Fragments(Service):
    """Fragments: configurations that many machines share."""

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id"))
    async def list_fragments(
        self, organization_id: str, show_public: bool = False, fragment_visibility: Sequence[m.Visibility] = ()
    ) -> m.ListFragmentsResponse:
        """Return the fragments of an organization, and with `show_public` the public ones of others.

        `fragment_visibility` restricts the result to some visibilities, and includes public ones if it names them.
        """
        visibilities = {_VISIBILITY[value] for value in fragment_visibility if value in _VISIBILITY}

        def work(sql: Sql) -> m.ListFragmentsResponse:
            fragment_records = fragments.fragments(sql, organization_id)
            if show_public or "public" in visibilities:
                fragment_records += fragments.public_fragments(sql, organization_id)
            matching = [
                fragment for fragment in fragment_records if not visibilities or fragment.visibility in visibilities
            ]
            return m.ListFragmentsResponse(
                [self._message(sql, fragment) for fragment in matching],
                [_usage(sql, fragment.id, organization_id) for fragment in matching],
            )

        return await self.read(work)

    @allow(READABLE)
    async def get_fragment(
        self,
        id: str,  # noqa: A002 - field of the wire
        current_organization_id: str = "",
        version: str | None = None,
    ) -> m.GetFragmentResponse:
        """Return a fragment in its newest revision, or in `version` (a revision number or a tag)."""

        def work(sql: Sql) -> m.GetFragmentResponse:
            record = self._readable(sql, id)
            revision = fragments.revision_of(sql, id, version or "")
            if revision is None:
                raise missing("version", version or "")
            if current_organization_id:
                self.require(sql, Role.OPERATOR, ObjectKind.ORGANIZATION, current_organization_id)
            saves = fragments.saves(sql, id, MAX_PAGE)
            return m.GetFragmentResponse(
                self._message(sql, record, revision),
                _usage(sql, id, current_organization_id),
                [m.FragmentRevision(str(number), saved) for number, saved in saves],
                _tags(sql, id),
            )

        return await self.read(work)

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def create_fragment(
        self,
        name: str,
        organization_id: str,
        config: Mapping[str, Any] | None = None,
        visibility: m.Visibility | None = None,
    ) -> m.Fragment:
        """Create a fragment, which is private by default."""
        stored_visibility = _VISIBILITY.get(visibility or m.Visibility.PRIVATE, "private")

        def check(sql: Sql) -> fragments.CheckedFragment:
            return fragments.new_candidate(sql, organization_id, config or {}, stored_visibility)

        def work(candidate: fragments.CheckedFragment, sql: Sql) -> m.Fragment:
            self.again(sql)
            fragments.create_fragment(sql, organization_id, name, candidate, self.author, self.now())
            return self._message(sql, fragments.fragment(sql, candidate.id))

        async def attempt() -> m.Fragment:
            return await self.change(partial(work, await self.read(check)))

        return await until_fresh(attempt, lambda: self.change(lambda sql: work(check(sql), sql)))

    @allow(owner(ObjectKind.FRAGMENT, "id"))
    async def update_fragment(
        self,
        id: str,  # noqa: A002 - field of the wire
        name: str = "",
        config: Mapping[str, Any] | None = None,
        public: bool | None = None,
        visibility: m.Visibility | None = None,
        last_known_update: datetime | None = None,
        fragment_config_json: str | None = None,
    ) -> m.Fragment:
        """Change a fragment's configuration, name or visibility; `fragment_config_json` takes precedence over `config`.

        FAILED_PRECONDITION if there is a save after `last_known_update`.
        """
        document = config
        if (text := fragment_config_json) is not None:
            document = await self.offload(len(text), lambda: decoded(text))
        stored_visibility = _VISIBILITY.get(visibility) if visibility else None
        if stored_visibility is None and public is not None:
            stored_visibility = "public" if public else "private"

        def work(candidate: fragments.CheckedFragment | None, sql: Sql) -> m.Fragment:
            self.again(sql)
            if name and name != fragments.fragment(sql, id).name:
                fragments.rename_fragment(sql, id, name)
            if candidate is not None:
                fragments.put(sql, candidate, self.author, self.now())
                if (revision := fragments.fragment(sql, id).revision) != candidate.revision:
                    self.record(revision=revision)
            if stored_visibility is not None and stored_visibility != fragments.fragment(sql, id).visibility:
                fragments.show_fragment(sql, id, stored_visibility)
            return self._message(sql, fragments.fragment(sql, id))

        def check(sql: Sql) -> fragments.CheckedFragment | None:
            return None if document is None else fragments.candidate(sql, id, document, last_known_update)

        async def attempt() -> m.Fragment:
            candidate = None if document is None else await self.read(check)
            return await self.change(partial(work, candidate))

        return await until_fresh(attempt, lambda: self.change(lambda sql: work(check(sql), sql)))

    @allow(owner(ObjectKind.FRAGMENT, "id"))
    async def delete_fragment(self, id: str) -> None:  # noqa: A002 - field of the wire
        """Delete a fragment that nothing uses."""
        await self.change(lambda sql: fragments.delete_fragment(sql, id))

    @allow(operator(ObjectKind.FRAGMENT, "id"))
    async def get_fragment_history(
        self,
        id: str,  # noqa: A002 - field of the wire
        page_token: str | None = None,
        page_limit: int | None = None,
    ) -> m.GetFragmentHistoryResponse:
        """Return the saves of a fragment, newest first."""
        before, limit = page_start(page_token), max(1, min(page_limit or PAGE, MAX_PAGE))

        def work(sql: Sql) -> tuple[fragments.FragmentRecord, Revisions, bool]:
            saves = fragments.revisions(sql, id, before=before, limit=limit)
            return fragments.fragment(sql, id), saves, self._whole(sql, id)

        fragment, saves, whole = await self.read(work)

        def response() -> m.GetFragmentHistoryResponse:
            documents = [save.document for save in saves]
            entries = [
                m.FragmentHistoryEntry(
                    fragment=id,
                    edited_on=save.saved,
                    old=_historical(fragment, save.number - 1, shown(save.before, whole=whole, alongside=documents))
                    if save.before is not None
                    else None,
                    edited_by=editor(save.author),
                    revision=str(save.number),
                    config=shown(save.document, whole=whole, alongside=documents),
                )
                for save in saves
            ]
            more = saves.more and saves[-1].number > 1
            return m.GetFragmentHistoryResponse(entries, str(saves[-1].number) if more else "")

        return await self.offload(saves.size, response)

    @allow(operator(ObjectKind.FRAGMENT, "fragment_id"))
    async def get_fragment_usage(self, fragment_id: str) -> list[m.FragmentUsage]:
        """Return the number of users of each version in use."""

        def work(sql: Sql) -> list[m.FragmentUsage]:
            record = fragments.fragment(sql, fragment_id)
            versions: dict[str, set[str]] = {}
            for part in parts_using(sql, fragment_id):
                for used in configurations.resolution(sql, part)[1].used:
                    if used.id == fragment_id:
                        versions.setdefault(str(used.revision), set()).add(part)
            return [
                _usage_of(sql, fragment_id, parts, record.organization_id, version)
                for version, parts in sorted(versions.items(), key=lambda item: -int(item[0]))
            ]

        return await self.read(work)

    @allow(owner(ObjectKind.FRAGMENT, "fragment_id"))
    async def set_fragment_tag(self, fragment_id: str, tag: str, revision: str) -> list[m.FragmentTag]:
        """Set a tag to a revision; all machines that are pinned to the tag follow."""

        def work(sql: Sql) -> list[m.FragmentTag]:
            number = fragments.revision_of(sql, fragment_id, revision)
            if number is None or not revision:
                raise missing("revision", revision)
            fragments.set_tag(sql, fragment_id, tag, number)
            return _tags(sql, fragment_id)

        return await self.change(work)

    @allow(owner(ObjectKind.FRAGMENT, "fragment_id"))
    async def delete_fragment_tag(self, fragment_id: str, tag: str) -> list[m.FragmentTag]:
        """Delete a tag to which no machine is pinned."""

        def work(sql: Sql) -> list[m.FragmentTag]:
            fragments.delete_tag(sql, fragment_id, tag)
            return _tags(sql, fragment_id)

        return await self.change(work)

    @allow(READABLE)
    async def list_nested_fragments(
        self, fragment_id: str | None = None, additional_fragments: Sequence[m.AdditionalFragment] = ()
    ) -> m.Resolution:
        """Return the fragments nested in a fragment and in `additional_fragments`, each merged."""
        requested = [*([m.AdditionalFragment(fragment_id)] if fragment_id else []), *additional_fragments]
        _check_count(requested)
        if not requested:
            raise MachineError("the call names no fragment", kind=ErrorKind.INVALID, remedy="set fragment_id")

        def work(sql: Sql) -> m.Resolution:
            for fragment in requested:
                self._readable(sql, fragment.fragment_id)
            find = self._finder(sql)
            return self._resolution(
                sql, [({"id": fragment.fragment_id, "version": fragment.version or ""}, find) for fragment in requested]
            )

        return await self.read(work)

    @allow(operator(ObjectKind.ROBOT, "machine_id"))
    async def list_machine_fragments(
        self,
        machine_id: str,
        additional_fragment_ids: Sequence[str] = (),
        additional_fragments: Sequence[m.AdditionalFragment] = (),
    ) -> m.Resolution:
        """Return the fragments of all parts of a machine and additional ones, each merged as the machine requests."""
        _check_count([*additional_fragment_ids, *additional_fragments])

        def work(sql: Sql) -> m.Resolution:
            place = place_of(sql, ObjectKind.ROBOT, machine_id)
            find_own = fragments.finder(sql, place.organization)
            if not is_home(sql, self.author, place):
                find_own = self._finder(sql)
                for subject in (*additional_fragment_ids, *(each.fragment_id for each in additional_fragments)):
                    self._readable(sql, subject)
            entries: list[tuple[Any, resolve.Find]] = []
            for part in machines.parts(sql, machine_id):
                document = configurations.current(sql, part.id)[1]
                find = fragments.finder(sql, place.organization, part=part.id)
                entries += [(entry, find) for entry in resolve.entries(document, "fragments")]
            entries += [({"id": subject}, find_own) for subject in additional_fragment_ids]
            entries += [
                ({"id": each.fragment_id, "version": each.version or ""}, find_own) for each in additional_fragments
            ]
            return self._resolution(sql, entries, whole=reads_secrets(sql, self.author, ObjectKind.ROBOT, machine_id))

        return await self.read(work)

    def _finder(self, sql: Sql) -> resolve.Find:
        """Return a function that finds the fragments available to the caller's organization. Private fragments that
        others nest in public ones stay hidden."""
        return fragments.finder(sql, next(iter(organizations_of(sql, self.author)), ""))

    def _readable(self, sql: Sql, subject: str) -> fragments.FragmentRecord:
        fragment = fragments.fragment(sql, subject)
        if fragment.visibility == "private":
            self.require(sql, Role.OPERATOR, ObjectKind.FRAGMENT, subject)
        return fragment

    def _message(self, sql: Sql, fragment: fragments.FragmentRecord, revision: int | None = None) -> m.Fragment:
        document = shown(
            fragments.document_of(sql, fragment.id, revision or fragment.revision), whole=self._whole(sql, fragment.id)
        )
        parts = parts_using(sql, fragment.id)
        organizations = set(owners(sql, parts).values())
        return m.Fragment(
            id=fragment.id,
            name=fragment.name,
            fragment=document,
            organization_owner=fragment.organization_id,
            public=fragment.visibility == "public",
            created_on=fragment.created,
            organization_name=fragment.organization,
            robot_part_count=len(parts),
            organization_count=len(organizations),
            only_used_by_owner=organizations <= {fragment.organization_id},
            visibility=_VISIBILITY_NUMBERS[fragment.visibility],
            last_updated=fragment.saved,
            revision=str(revision or fragment.revision),
            fragment_config_json=text_of(document),
        )

    def _resolution(self, sql: Sql, entries: Sequence[tuple[Any, resolve.Find]], *, whole: bool = True) -> m.Resolution:
        """Merge each entry with the fragments that its function finds. Secrets are included only if the caller may read
        those of all merged fragments."""
        messages: dict[str, m.Fragment] = {}
        resolved = []
        for entry, find in entries:
            merged = resolve.resolve({"fragments": [entry]}, find)
            subject = (
                entry if isinstance(entry, str) else str(entry.get("id", "")) if isinstance(entry, Mapping) else ""
            )
            for used in merged.used:
                messages.setdefault(used.id, self._message(sql, fragments.fragment(sql, used.id), used.revision))
            first = next((used for used in merged.used if used.id == subject), None)
            problem = merged.problems[0] if merged.problems else None
            document = shown(merged.document, whole=whole and all(self._whole(sql, used.id) for used in merged.used))
            error = m.FragmentError(problem.kind, problem.fragment, str(problem)) if problem is not None else None
            resolved.append(m.ResolvedFragment(subject, document, error, str(first.revision) if first else ""))
        return m.Resolution(list(messages.values()), resolved)

    def _whole(self, sql: Sql, fragment: str) -> bool:
        return reads_secrets(sql, self.author, ObjectKind.FRAGMENT, fragment)


def _historical(fragment: fragments.FragmentRecord, number: int, document: Shown) -> m.Fragment:
    return m.Fragment(
        fragment.id,
        fragment.name,
        document,
        fragment.organization_id,
        revision=str(number),
        fragment_config_json=text_of(document),
    )


def _tags(sql: Sql, subject: str) -> list[m.FragmentTag]:
    return [m.FragmentTag(tag, str(revision)) for tag, revision in fragments.tags(sql, subject)]


def _usage(sql: Sql, subject: str, current: str) -> m.FragmentUsage:
    return _usage_of(sql, subject, set(parts_using(sql, subject)), current, None)


def _usage_of(sql: Sql, subject: str, parts: set[str], current: str, version: str | None) -> m.FragmentUsage:
    by_machine = owners(sql, parts)
    here = sum(owner == current for owner in by_machine.values())
    return m.FragmentUsage(subject, len(set(by_machine.values())), len(by_machine), here, version)


def _check_count(requested: Sequence[Any]) -> None:
    if len(requested) > MAX_REQUESTED:
        text = f"the call requests {len(requested)} fragments"
        raise MachineError(text, kind=ErrorKind.INVALID, remedy=f"request at most {MAX_REQUESTED} in one call")
