"""Published calls for configurations: saving, single properties, history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

from cloud.documents import pieces
from cloud.documents.paths import changed
from cloud.documents.pieces import LARGE, heavy
from cloud.documents.readable import check_text, document_text
from cloud.documents.resolve import uses
from cloud.domain.configurations import configurations, fragments
from cloud.domain.configurations.revisions import Revisions, Stale, until_fresh
from cloud.domain.machines import logs, machines
from cloud.domain.organizations import keys, tenants
from cloud.domain.permissions.access import ObjectKind, is_home, place_of
from cloud.domain.permissions.rules import allow, operator, owner
from cloud.domain.permissions.shown import reads_secrets, shown
from cloud.services.common import messages as m
from cloud.services.common.base import Service
from cloud.services.machines.machines import PartFacts, historical, part_facts, part_message
from cloud.store.sql import Sql
from cloud.values.author import KEY, LOCATION, PART, Author
from models import builtin_models, check_document, in_cloud
from schema import ErrorKind, MachineError, Masker
from schema.decoding import nested_too_deeply
from schema.document import decode_document_value

PAGE: Final = 100
MAX_PAGE: Final = 1000
MAX_CHANGES: Final = 1000  # changes of one SetConfigProperty: each copies the objects on its path
MAX_LOGGED: Final = 20  # logged problems of one save
LOGGER: Final = "cloud.configuration"
MAX_DIGITS: Final = 18  # digits of a page token, so that it fits an integer of the database
_AUTHORS: Final = {
    KEY: m.AuthenticationType.API_KEY,
    PART: m.AuthenticationType.ROBOT_PART_SECRET,
    LOCATION: m.AuthenticationType.LOCATION_SECRET,
}


@dataclass(frozen=True, slots=True)
class _Saved:
    """A new revision, and its document with the fragments merged in."""

    revision: int
    merged: Mapping[str, Any]


class Configurations(Service):
    """Configurations of machine parts."""

    @allow(owner(ObjectKind.PART, "id"))
    async def update_robot_part(
        self,
        id: str,  # noqa: A002 - field of the wire
        name: str = "",
        robot_config: Mapping[str, Any] | None = None,
        last_known_update: datetime | None = None,
        robot_config_json: str | None = None,
    ) -> m.RobotPart:
        """Save a configuration, rename the part, or both; `robot_config_json` takes precedence over `robot_config`.

        `robot_config` cannot represent every document. FAILED_PRECONDITION if there is a save after
        `last_known_update`.
        """
        document = robot_config
        if (sent := robot_config_json) is not None:
            document = await self.offload(len(sent), lambda: decoded(sent))

        text = None if document is None else await self._encoded(document)

        def work(candidate: configurations.CheckedConfiguration | None, sql: Sql) -> tuple[PartFacts, _Saved | None]:
            if name and name != machines.part(sql, id).name:
                machines.rename_part(sql, id, name)
            saved = None if candidate is None else self._put(candidate, sql)
            return part_facts(self, sql, machines.part(sql, id)), saved

        def check(sql: Sql) -> configurations.CheckedConfiguration | None:
            return None if document is None else self._candidate(id, document, last_known_update, text, sql)

        async def attempt() -> tuple[PartFacts, _Saved | None]:
            candidate = None if document is None else await self.read(check)
            return await self.change(partial(work, candidate))

        facts, saved = await until_fresh(attempt, lambda: self.change(lambda sql: work(check(sql), sql)))
        if saved is not None:
            await self._log_problems(id, saved, len(text or ""))
        return await self.offload(len(facts.text), partial(part_message, facts, self.now()))

    async def _encoded(self, document: Mapping[str, Any]) -> str:
        """Check and encode a configuration; see `document_text`. Not for use in a transaction: others would wait."""
        if not heavy(document):
            return document_text(document, "the configuration")
        return await self.offload(LARGE, lambda: document_text(document, "the configuration"))

    @allow(owner(ObjectKind.PART, "robot_part_id"))
    async def set_config_property(
        self, robot_part_id: str, property_changes: Sequence[m.ConfigPropertyChange]
    ) -> list[m.ConfigPropertyChangeResult]:
        """Change single values in one save. If any change fails, none is made, and each result has its error."""
        if len(property_changes) > MAX_CHANGES:
            text = f"the call has {len(property_changes)} changes"
            raise MachineError(text, kind=ErrorKind.INVALID, remedy=f"send at most {MAX_CHANGES} in one call")

        async def attempt() -> tuple[list[m.ConfigPropertyChangeResult], _Saved | None]:
            part, before = await self.read(lambda sql: _current(sql, robot_part_id))
            document, text, results = await self.offload(LARGE, partial(_apply_changes, before, property_changes))
            if document is None:
                return results, None
            candidate = await self.read(partial(self._candidate, robot_part_id, document, None, text))
            if candidate.revision != part.revision:
                raise Stale
            return results, await self.change(partial(self._put, candidate))

        results, saved = await until_fresh(attempt, attempt)
        if saved is not None:
            await self._log_problems(robot_part_id, saved, LARGE)
        return results

    def _candidate(
        self, part: str, document: Mapping[str, Any], last_known: datetime | None, text: str | None, sql: Sql
    ) -> configurations.CheckedConfiguration:
        """Check a document in a read-only transaction, so that writers need not wait.

        Callers with only shared access to the machine may not add private fragments of its organization, whose content
        they would learn.
        """
        lookups: fragments.Lookups = {}
        home = is_home(sql, self.author, place_of(sql, ObjectKind.PART, part))
        if not home:
            find = fragments.finder(sql, keys.organization_of(sql, self.author.name), lookups, part)
            for fragment in sorted(uses(document) - uses(configurations.current(sql, part)[1])):
                if find(fragment, "") is None:
                    raise tenants.missing("fragment", fragment)
        candidate = configurations.candidate(sql, part, document, last_known, text, lookups)
        if not home and _fqdn(candidate.merged) not in ("", _fqdn(configurations.resolved(sql, part))):
            raise MachineError(
                "network.fqdn names the machine in certificates of another organization, so it cannot be changed by "
                "someone with whom the machine is only shared",
                kind=ErrorKind.PERMISSION,
                remedy="ask an owner of the machine's organization, or leave network.fqdn as it is",
            )
        return candidate

    def _put(self, candidate: configurations.CheckedConfiguration, sql: Sql) -> _Saved | None:
        """Save a candidate; None if nothing has changed. Raises Stale if it must be checked again."""
        self.again(sql)
        revision = configurations.put(sql, candidate, self.author, self.now())
        if revision == candidate.revision:
            return None
        self.record(revision=revision)
        return _Saved(revision, candidate.merged)

    async def _log_problems(self, part: str, saved: _Saved, size: int) -> None:
        """Write the problems of a saved configuration to the part's log, because the reply has no field for them."""
        now = self.now()
        entries = await self.offload(size, lambda: _problem_entries(saved.merged, saved.revision, now))
        if entries:
            await self.write(lambda sql: logs.append(sql, part, entries, now))

    @allow(operator(ObjectKind.PART, "id"))
    async def get_robot_part_history(
        self,
        id: str,  # noqa: A002 - field of the wire
        page_token: str | None = None,
        page_limit: int | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> m.GetRobotPartHistoryResponse:
        """Return the saves of a part, newest first, each with the configuration that it replaced."""
        before = page_start(page_token)
        limit = max(1, min(page_limit or PAGE, MAX_PAGE))

        def work(sql: Sql) -> tuple[machines.PartRecord, Revisions, bool]:
            revisions = configurations.history(sql, id, before=before, limit=limit, start=start, end=end)
            return machines.part(sql, id), revisions, reads_secrets(sql, self.author, ObjectKind.PART, id)

        part, revisions, whole = await self.read(work)

        def response() -> m.GetRobotPartHistoryResponse:
            documents = [revision.document for revision in revisions]
            entries = [
                m.RobotPartHistoryEntry(
                    part=id,
                    robot=part.machine_id,
                    when=revision.saved,
                    old=historical(part, shown(revision.before, whole=whole, alongside=documents), revision.saved),
                    edited_by=editor(revision.author),
                )
                for revision in revisions
                if revision.before is not None
            ]
            more = revisions.more and revisions[-1].number > 2  # the first revision replaced nothing
            return m.GetRobotPartHistoryResponse(entries, str(revisions[-1].number) if more else "")

        return await self.offload(revisions.size, response)


def _fqdn(document: Mapping[str, Any]) -> str:
    network = document.get("network")
    return str(network.get("fqdn") or "") if isinstance(network, Mapping) else ""


def _current(sql: Sql, subject: str) -> tuple[machines.PartRecord, str]:
    part = machines.part(sql, subject)
    return part, configurations.current_text(sql, part)


def _apply_changes(
    text: str, changes: Sequence[m.ConfigPropertyChange]
) -> tuple[Mapping[str, Any] | None, str, list[m.ConfigPropertyChangeResult]]:
    """Apply changes; return the new document (None if a change fails), its text, and the result of each change."""
    document: Any = pieces.loads(text)
    results = []
    for change in changes:
        try:
            document = changed(document, change.path, change.value)
            results.append(m.ConfigPropertyChangeResult(change.path, change.value, success=True))
        except MachineError as error:
            results.append(m.ConfigPropertyChangeResult(change.path, change.value, error=str(error)))
    if all(result.success for result in results):
        return document, document_text(document, "the configuration"), results
    reason = "not applied, because another change of the same call is invalid"
    return (
        None,
        "",
        [m.ConfigPropertyChangeResult(result.path, result.value, error=result.error or reason) for result in results],
    )


def _problem_entries(document: Mapping[str, Any], revision: int, now: datetime) -> list[logs.LogRecord]:
    """Return log entries for the problems of a configuration."""
    checked = check_document(decode_document_value(document), builtin_models(), in_cloud(document))
    masker = Masker().and_those_of(document)
    entries = [
        logs.LogRecord(now, "warn", LOGGER, masker.text(f"revision {revision} of the configuration: {problem}"))
        for problem in checked.problems[:MAX_LOGGED]
    ]
    if len(checked.problems) > MAX_LOGGED:
        rest = f"and {len(checked.problems) - MAX_LOGGED} further problems: see the configuration's page"
        entries.append(logs.LogRecord(now, "warn", LOGGER, rest))
    return entries


def decoded(text: str) -> Mapping[str, Any]:
    """Parse the JSON text of a configuration; INVALID if it is not a JSON object."""
    check_text(text)
    try:
        document = pieces.loads(text or "{}")
    except RecursionError:
        raise nested_too_deeply() from None
    except ValueError as error:
        raise MachineError(
            f"the configuration is not JSON: {error}",
            kind=ErrorKind.INVALID,
            remedy="correct the text at this position",
        ) from None
    if not isinstance(document, dict):
        raise MachineError(
            "the configuration is not a JSON object", kind=ErrorKind.INVALID, remedy="send an object: {...}"
        )
    return document


def page_start(token: str | None) -> int | None:
    """Return the revision below which a page begins; None for the first page."""
    if not token:
        return None
    if not (token.isascii() and token.isdigit() and len(token) <= MAX_DIGITS):
        raise MachineError(
            "the page token is not valid", kind=ErrorKind.INVALID, remedy="pass the token of the previous page"
        )
    return int(token)


def editor(author: Author) -> m.AuthenticatorInfo:
    """Return the author of a save as a published message."""
    return m.AuthenticatorInfo(_AUTHORS.get(author.type, m.AuthenticationType.UNSPECIFIED), author.name)
