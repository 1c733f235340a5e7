"""Calls for signed releases and their rollouts, for commands and pages.

Metadata of people arrives signed: the cloud verifies it, and cannot make it. Without people who hold keys, the cloud
signs with its own; see cloud.domain.releases.own.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Sequence
from dataclasses import replace
from typing import Final

import trio
from msgspec import structs

from cloud.blobs import discard
from cloud.documents.pieces import LARGE
from cloud.domain.organizations.tenants import missing
from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import allow, operator, owner
from cloud.domain.releases import files, imports, metadata, own, reports, repository, rollouts
from cloud.domain.releases.decision import RolloutState
from cloud.services.common.base import Service, guarded
from cloud.services.common.standing import while_allowed
from cloud.services.releases import release_messages as m
from cloud.store.sql import Sql
from cloud.work.openings import STREAMS
from schema import ErrorKind, MachineError
from uplink.releases import CHANNELS, MAX_FILE, OFFLINE, ONLINE

MAX_LISTED: Final = 1000  # machines in the status of a rollout
IMPORT_WAIT: Final = 20.0  # seconds that a call waits for news of an import


class Releases(Service):
    """Releases of an organization."""

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def create_release_keys(self, organization_id: str) -> list[m.ReleaseKey]:
        """Create keys of the cloud for snapshot and timestamp, which are in use once a root.json lists them."""
        await self._load()
        keys = await self.change(lambda sql: repository.create_keys(sql, organization_id, self.now()))
        return [m.ReleaseKey(role, key.keyid, key.public) for role, key in keys.items()]

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def update_release_metadata(
        self, organization_id: str, root_json: bytes = b"", targets_json: bytes = b""
    ) -> list[m.ReleaseMetadata]:
        """Publish a new version of root.json, targets.json or both; see cloud.domain.releases.own.publish_of_people."""
        await self._load()

        def work(sql: Sql) -> list[m.ReleaseMetadata]:
            new = (root_json or None, targets_json or None)
            own.publish_of_people(sql, organization_id, self.now(), root=new[0], targets=new[1])
            return _metadata(sql, organization_id)

        return await self.change(work)

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def rotate_release_keys(self, organization_id: str) -> list[m.ReleaseMetadata]:
        """Replace the keys that the cloud keeps for an organization; see cloud.domain.releases.own.rotate."""
        await self._load()

        def work(sql: Sql) -> list[m.ReleaseMetadata]:
            own.rotate(sql, organization_id, self.now())
            return _metadata(sql, organization_id)

        return await self.change(work)

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def set_release_channels(
        self, organization_id: str, program: str, version: str, channels: Sequence[str]
    ) -> list[m.ReleaseTarget]:
        """Put all files of a version into these channels, and return them; without a channel they are withdrawn.

        PRECONDITION if people hold the keys of the organization; NOT_FOUND, INVALID.
        """
        if unknown := sorted(set(channels) - set(CHANNELS)):
            raise MachineError(
                f"there is no channel {unknown[0][:60]!r}",
                kind=ErrorKind.INVALID,
                remedy=f"use {' or '.join(CHANNELS)}, or none to withdraw the version",
            )
        chosen = tuple(channel for channel in CHANNELS if channel in channels)
        await self._load()

        def change(entries: Sequence[metadata.SignedTarget]) -> list[metadata.SignedTarget]:
            named = [entry for entry in entries if (entry.custom.program, entry.custom.version) == (program, version)]
            if not named:
                raise missing("release", f"{program} {version}")
            others = [entry for entry in entries if entry not in named]
            changed = [replace(entry, custom=structs.replace(entry.custom, channels=chosen)) for entry in named]
            return [*others, *(changed if chosen else [])]

        def work(sql: Sql) -> list[m.ReleaseTarget]:
            own.publish(sql, organization_id, self.now(), change)
            return _targets(sql, organization_id, program, version)

        return await self.change(work)

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def start_release_import(self, organization_id: str) -> m.ReleaseImport:
        """Import the programs of the cloud's own version; the call does not wait for it. See `importing`.

        PRECONDITION if people hold the keys of the organization.
        """

        def work(sql: Sql) -> m.ReleaseImport:
            if not own.kept(sql, organization_id):
                raise own.held_by_people()
            imports.request(sql, organization_id, self.now())
            return _import(sql, organization_id)

        return await self.change(work)

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id"))
    async def get_release_import(self, organization_id: str) -> m.ReleaseImport:
        """Return the newest import of an organization."""
        return await self.read(lambda sql: _import(sql, organization_id))

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id"))
    async def wait_for_release_import(self, organization_id: str, number: int) -> m.ReleaseImport:
        """Return the newest import of an organization, once its number differs, or after IMPORT_WAIT."""
        with (
            self.cloud.openings.hold(f"the key {self.author.name}", STREAMS),
            self.cloud.events.listening(imports.TOPIC, organization_id) as news,
        ):
            state = await self.read(lambda sql: _import(sql, organization_id))
            with trio.move_on_after(IMPORT_WAIT):
                with while_allowed(self.cloud, self.author, self.again):
                    while state.number == number and not self.cloud.openings.closing:
                        await news.next()
                        state = await self.read(lambda sql: _import(sql, organization_id))
        return state

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def upload_release_file(self, organization_id: str, sha256: str, pieces: AsyncIterator[bytes]) -> int:
        """Store the file with this SHA-256, and return its size in bytes. Nothing is stored if the upload ends early.

        A file that is stored already is not stored again. A file that no targets.json lists within a day is removed.
        INVALID for other content, EXHAUSTED.
        """
        stored = await self.read(lambda sql: files.by_digest(sql, organization_id, sha256))
        if stored is not None:
            return stored.size
        blobs = self.cloud.blobs
        blob = await blobs.put(_limited(pieces))
        try:
            if blob.digest != sha256:
                raise MachineError(
                    f"the upload has the SHA-256 {blob.digest}, not {sha256[:64]}",
                    kind=ErrorKind.INVALID,
                    remedy="repeat the upload: the file changed, or the connection broke",
                )
            return (await self.change(lambda sql: files.add(sql, organization_id, blob, self.now()))).size
        except MachineError as error:
            if error.kind is not ErrorKind.UNAVAILABLE:  # otherwise the transaction may have been committed
                await discard(blobs, [blob.key])
            if error.kind is ErrorKind.EXISTS:  # another upload of the same file was faster
                return blob.size
            raise

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def has_release_file(self, organization_id: str, sha256: str) -> bool:
        """Return whether the file with this SHA-256 is stored, so that it need not be sent again."""
        return await self.read(lambda sql: files.by_digest(sql, organization_id, sha256)) is not None

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id"))
    async def get_release_metadata(self, organization_id: str, name: str) -> bytes:
        """Return a metadata file by its name, such as `targets.json` or `2.root.json`; NOT_FOUND."""
        return (await self.read(lambda sql: repository.document(sql, organization_id, name))).content

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id"))
    async def list_releases(self, organization_id: str) -> m.ReleaseRepository:
        """Return metadata, targets and rollouts; all empty without a repository."""

        def work(sql: Sql) -> m.ReleaseRepository:
            entries = rollouts.rollouts(sql, organization_id)
            infos = [_rollout(sql, organization_id, entry) for entry in entries]
            kept = own.kept(sql, organization_id)
            return m.ReleaseRepository(
                _metadata(sql, organization_id), _targets(sql, organization_id), infos, "cloud" if kept else "people"
            )

        return await self.read(work)

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def start_rollout(
        self,
        organization_id: str,
        program: str,
        version: str,
        percent: float = 100.0,
        tags: Sequence[str] = (),
        location_ids: Sequence[str] = (),
        stop_after: int | None = None,
    ) -> m.RolloutInfo:
        """Start a rollout or widen it; see cloud.domain.releases.rollouts.start."""

        def work(sql: Sql) -> m.RolloutInfo:
            entry = rollouts.start(
                sql,
                organization_id,
                program,
                version,
                self.now(),
                percent=percent,
                tags=tags,
                locations=location_ids,
                stop_after=stop_after,
            )
            return _rollout(sql, organization_id, entry)

        return await self.change(work)

    @allow(owner(ObjectKind.ORGANIZATION, "organization_id"))
    async def set_rollout_state(self, organization_id: str, program: str, version: str, state: str) -> m.RolloutInfo:
        """Pause (`paused`), resume (`active`), stop (`stopped`) or finish (`finished`) a rollout."""
        if state not in _SETTABLE:
            raise MachineError(
                f"there is no state {state[:40]!r}", kind=ErrorKind.INVALID, remedy=f"use {', '.join(_SETTABLE)}"
            )

        def work(sql: Sql) -> m.RolloutInfo:
            reason = "stopped by a person" if state == RolloutState.STOPPED.value else ""
            rollouts.check_not_staged(rollouts.rollout(sql, organization_id, program, version).rollout)
            rollouts.set_state(sql, organization_id, program, version, RolloutState(state), self.now(), reason)
            return _rollout(sql, organization_id, rollouts.rollout(sql, organization_id, program, version))

        return await self.change(work)

    @allow(operator(ObjectKind.ORGANIZATION, "organization_id"))
    async def get_rollout(self, organization_id: str, program: str, version: str) -> m.RolloutStatus:
        """Return a rollout and its machines, at most MAX_LISTED."""

        def work(sql: Sql) -> m.RolloutStatus:
            entry = rollouts.rollout(sql, organization_id, program, version)
            machines = [
                m.RolloutMachine(
                    item.part, item.name, item.machine, item.location, item.state, item.version, item.reason, item.since
                )
                for item in reports.progress(sql, organization_id, program, version, MAX_LISTED)
            ]
            return m.RolloutStatus(_rollout(sql, organization_id, entry), machines)

        return await self.read(work)

    async def _load(self) -> None:
        """Import the library for metadata in a thread, because that takes long."""
        await self.offload(LARGE, metadata.load)


@guarded
class ReleaseService(Releases):
    """machine.cloud.v1.ReleaseService."""


_SETTABLE: Final = tuple(state.value for state in RolloutState if state is not RolloutState.REVERTED)


def _metadata(sql: Sql, owner: str) -> list[m.ReleaseMetadata]:
    documents = [repository.newest(sql, owner, role) for role in (*OFFLINE, *ONLINE)]
    return [m.ReleaseMetadata(entry.role, entry.version, entry.expires) for entry in documents if entry is not None]


def _import(sql: Sql, owner: str) -> m.ReleaseImport:
    state = imports.state_of(sql, owner)
    if state is None:
        return m.ReleaseImport()
    notes = [m.ReleaseImportNote(note.platform, note.reason, note.remedy) for note in state.notes]
    return m.ReleaseImport(state.state, state.step, state.done, state.total, notes, state.number)


def _targets(sql: Sql, owner: str, program: str = "", version: str = "") -> list[m.ReleaseTarget]:
    """Return the targets in force, of all versions or one."""
    return [
        m.ReleaseTarget(
            target.custom.program,
            target.custom.version,
            target.custom.platform,
            list(target.custom.channels),
            target.digest,
            target.size,
        )
        for target in repository.targets(sql, owner, program)
        if version in ("", target.custom.version)
    ]


def _rollout(sql: Sql, owner: str, entry: rollouts.StoredRollout) -> m.RolloutInfo:
    rollout = entry.rollout
    return m.RolloutInfo(
        rollout.program,
        rollout.version,
        rollout.percent,
        sorted(rollout.tags),
        sorted(rollout.locations),
        -1 if rollout.stop_after is None else rollout.stop_after,
        rollout.state.value,
        rollout.reason,
        entry.created,
        entry.changed,
        len(rollouts.rolled_back(sql, owner, entry)),
        rollout.staged,
    )


async def _limited(pieces: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    size = 0
    async for piece in pieces:
        size += len(piece)
        if size > MAX_FILE:
            raise MachineError(
                f"the file is larger than {MAX_FILE // 1024**2} MiB", kind=ErrorKind.EXHAUSTED, remedy="make it smaller"
            )
        yield piece
    if not size:
        raise MachineError("the file is empty", kind=ErrorKind.INVALID)
