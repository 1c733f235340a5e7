"""Imports of the cloud's own programs: finds or builds the release files, stores them, and publishes them at once."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import structlog
import trio

from cloud.blobs import discard
from cloud.domain.releases import files, imports, metadata, own
from cloud.domain.releases.imports import DONE, FAILED, LEASE, Note
from cloud.domain.releases.metadata import SignedTarget
from cloud.services.common.base import Cloud
from cloud.services.common.standing import patiently
from cloud.services.releases.sources import PLATFORMS, Sources
from cloud.store.sql import Sql
from schema import ErrorKind, MachineError
from uplink.releases import DEV, PROGRAMS, STABLE, Custom

CHUNK: Final = 1 << 20
"""Bytes that are read in one step."""
SAID: Final = 0.5
"""Seconds between two stored states of a step."""
BEAT: Final = LEASE.total_seconds() / 3
"""Seconds after which the lease of a silent step is extended."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger("cloud")


async def run(cloud: Cloud, sources: Sources, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Work on imports, one after the other, until cancelled. Run it once in each process; they share the work."""
    with cloud.events.listening(imports.TOPIC) as news:
        task_status.started()
        while True:
            while await run_next(cloud, sources):
                pass
            due = await patiently(lambda: cloud.store.read(imports.next_claim))
            wait = LEASE if due is None else due - cloud.clock()
            with trio.move_on_after(max(wait.total_seconds(), 1.0)):
                await news.all()


async def run_next(cloud: Cloud, sources: Sources) -> bool:
    """Work on the import that has waited longest; return False if there is none."""
    owner = await patiently(lambda: cloud.store.write(lambda sql: imports.claim(sql, cloud.clock())))
    if not owner:
        return False
    result = await _Import(cloud, sources, owner).result()
    if result.state == FAILED:
        _log.warning("the import of releases failed", organization=owner, reason=result.step)
    await patiently(
        lambda: cloud.store.write(
            lambda sql: imports.finish(sql, owner, cloud.clock(), result.state, result.step, result.notes)
        )
    )
    return True


@dataclass(frozen=True, slots=True)
class _Result:
    state: str
    step: str
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class _File:
    custom: Custom
    path: Path
    digest: str
    size: int


class _Import:
    def __init__(self, cloud: Cloud, sources: Sources, owner: str) -> None:
        self._cloud, self._sources, self._owner = cloud, sources, owner
        self._step: tuple[str, int, int] = ("", 0, 0)
        self._stored = 0.0

    async def result(self) -> _Result:
        """Import what can be had, with a lease that is extended meanwhile, and return the result."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._beat)
            try:
                result = await self._imported()
            except MachineError as error:
                result = _Result(FAILED, error.message, (Note("", error.message, error.remedy),))
            except OSError as error:  # of a file that is being read
                result = _Result(FAILED, str(error), (Note("", str(error), "try again"),))
            nursery.cancel_scope.cancel()
        return result

    async def _imported(self) -> _Result:
        notes, ready = list[Note](), list[_File]()
        for platform in PLATFORMS:
            try:
                ready += await self._files(platform)
            except MachineError as error:
                notes.append(Note(platform, error.message, error.remedy))
        if not ready:
            return _Result(FAILED, "no release could be imported", tuple(notes))
        for file in ready:
            await self._store(file)
        await self._cloud.room.run(self._owner, metadata.load)
        now = self._cloud.clock()
        await self._cloud.store.write(lambda sql: own.publish(sql, self._owner, now, partial(_with, ready)))
        platforms = " and ".join(dict.fromkeys(file.custom.platform for file in ready))
        return _Result(DONE, f"version {self._sources.version} is ready for {platforms}", tuple(notes))

    async def _files(self, platform: str) -> list[_File]:
        """Return the files of both programs for a platform, which are built if they are absent. Raises MachineError."""
        in_room, sources = partial(self._cloud.room.run, self._owner), self._sources
        paths = await in_room(partial(sources.files, platform))
        if len(paths) < len(PROGRAMS):
            refusal = await in_room(partial(sources.refusal, platform))
            if refusal is not None:
                raise refusal

            async def say(line: str) -> None:
                await self._say(f"building for {platform}: {line.strip()}")

            await self._say(f"building for {platform}")
            await sources.build(platform, say)
            paths = await in_room(partial(sources.files, platform))
        result = []
        for program, path in sorted(paths.items()):
            digest, size = hashlib.sha256(), 0
            async with aclosing(self._pieces(path)) as pieces:
                async for piece in pieces:
                    digest.update(piece)
                    size += len(piece)
            custom = Custom(program, sources.version, platform, (STABLE, DEV))
            result.append(_File(custom, path, digest.hexdigest(), size))
        return result

    async def _store(self, file: _File) -> None:
        """Store a file, unless it is stored already. Raises MachineError, and OSError if it cannot be read."""
        cloud, owner = self._cloud, self._owner
        if await cloud.store.read(lambda sql: files.by_digest(sql, owner, file.digest)) is not None:
            return
        async with aclosing(self._reported(file)) as pieces:
            blob = await cloud.blobs.put(pieces)
        try:
            if blob.digest != file.digest:
                raise MachineError(
                    f"{file.path} changed while it was imported", kind=ErrorKind.UNAVAILABLE, remedy="try again"
                )
            await cloud.store.write(lambda sql: files.add(sql, owner, blob, cloud.clock()))
        except MachineError as error:
            if error.kind is not ErrorKind.UNAVAILABLE or blob.digest != file.digest:
                await discard(cloud.blobs, [blob.key])  # otherwise the transaction may have been committed
            if error.kind is not ErrorKind.EXISTS:
                raise

    async def _reported(self, file: _File) -> AsyncGenerator[bytes, None]:
        done = 0
        async with aclosing(self._pieces(file.path)) as pieces:
            async for piece in pieces:
                done += len(piece)
                await self._say(f"storing {file.custom.program} for {file.custom.platform}", done, file.size)
                yield piece

    async def _pieces(self, path: Path) -> AsyncGenerator[bytes, None]:
        in_room = partial(self._cloud.room.run, self._owner)
        with await in_room(lambda: path.open("rb")) as file:
            while piece := await in_room(partial(file.read, CHUNK)):
                yield piece

    # ---- progress

    async def _say(self, step: str, done: int = 0, total: int = 0) -> None:
        """Store a state; those that follow the previous one closely are stored only if they end a step."""
        self._step, now = (step, done, total), trio.current_time()
        if now - self._stored >= SAID or (total and done == total):
            self._stored = now
            await self._note()

    async def _note(self) -> None:
        def work(sql: Sql) -> None:
            imports.progress(sql, self._owner, self._cloud.clock(), *self._step)

        await patiently(lambda: self._cloud.store.write(work))

    async def _beat(self) -> None:
        while True:
            await trio.sleep(BEAT)
            await self._note()


def _with(new: Sequence[_File], before: Sequence[SignedTarget]) -> list[SignedTarget]:
    """Return targets with new files. A version goes into `stable` only where nothing is, so that no machine is updated
    by an import. EXISTS if a version was published with another content.
    """
    by_path = {entry.custom.path: entry for entry in before}
    stable = {(entry.custom.program, entry.custom.platform) for entry in before if STABLE in entry.custom.channels}
    for file in new:
        custom = file.custom
        published = by_path.get(custom.path)
        if published is None:
            channels = (DEV,) if (custom.program, custom.platform) in stable else custom.channels
            custom = Custom(custom.program, custom.version, custom.platform, channels)
            by_path[custom.path] = SignedTarget(custom, file.digest, file.size)
        elif published.digest != file.digest:
            raise MachineError(
                f"{custom.path} was published with another content",
                kind=ErrorKind.EXISTS,
                remedy=f"`machine cloud releases withdraw {custom.program} {custom.version}`, then import again",
            )
    return list(by_path.values())
