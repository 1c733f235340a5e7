"""The actions of the steps until a release is staged, and the changes of the links. Waiting and trial: `driver`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

from agent.actions import disk
from agent.actions.program import ReleaseFiles, UpdatedProgram
from agent.launch import links
from agent.layout import Layout
from agent.update.record import Release, UpdateRecord, UpdateStep
from agent.update.steps import fallback, subject
from schema import ErrorKind, MachineError
from uplink.releases import normal_platform

MAX_WRONG: Final = 3
"""Downloads with wrong content after which a release is rejected; a proxy or a bad disk may cause a few."""


class StepFailedError(Exception):
    """A step has failed; `permanent` if the same release would fail again."""

    def __init__(self, reason: str, *, permanent: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.permanent = reason, permanent


class Actions:
    """Carries out the steps for one program. `run_blocking` calls functions in a worker thread, one after the other."""

    def __init__(
        self,
        layout: Layout,
        program: UpdatedProgram,
        source: ReleaseFiles,
        run_blocking: Callable[[Callable[[], Any]], Awaitable[Any]],
        *,
        platform: str,
        unpack: disk.Unpack,
    ) -> None:
        self._layout, self._program, self._source, self._run = layout, program, source, run_blocking
        self._platform, self._unpack = normal_platform(platform), unpack
        self._wrong: Counter[str] = Counter()  # downloads with wrong content, by hash

    async def carry_out(self, step: UpdateStep, record: UpdateRecord) -> None:
        """Carry out a step of TABLE. Raises StepFailedError."""
        try:
            await _ACTIONS[step](self, record, subject(record))
        except MachineError as error:
            permanent = error.kind is ErrorKind.INVALID and step is not UpdateStep.DOWNLOAD
            if isinstance(error, disk.WrongContentError) or (
                step is UpdateStep.DOWNLOAD and error.kind is ErrorKind.INVALID
            ):
                permanent = self._is_wrong_again(subject(record))
            if error.kind is ErrorKind.NOT_FOUND and step is UpdateStep.RESOLVE:
                permanent = True
            raise StepFailedError(str(error), permanent=permanent) from None
        except OSError as error:
            raise StepFailedError(f"{error.filename or self._layout.root}: {error.strerror or error}") from None

    async def clean(self, record: UpdateRecord) -> None:
        """End an update: link the current release without a trial, and delete what is no longer needed.

        If the launcher has started an older release before the end of the trial was linked, restart the program. Does
        not return if that is this agent. Raises MachineError, OSError.
        """
        self._wrong.clear()
        fell_back = await self._run(partial(self._settle, record))
        current, running = record.slots.current.sha256, (await self._program.facts()).sha256
        if fell_back and running not in ("", current):
            await self._program.start(current)
        running = (await self._program.facts()).sha256
        await self._run(partial(disk.clean, self._layout, record, {running}))

    def _is_wrong_again(self, release: Release) -> bool:
        self._wrong[release.sha256] += 1
        return self._wrong[release.sha256] >= MAX_WRONG

    def _end_trial(self, record: UpdateRecord) -> None:
        """Link the current release without a trial, if a roll-back that this update follows has left it on trial."""
        layout, program = self._layout, record.program
        if links.read(layout, program).on_trial and links.is_usable(layout, program, record.slots.current.sha256):
            self._settle(record)

    def _settle(self, record: UpdateRecord) -> bool:
        """Link the current release without a trial; return whether the launcher has started the one below it."""
        fell_back = links.read(self._layout, record.program).fell_back
        slots, back = record.slots, fallback(record)
        links.point(
            self._layout,
            record.program,
            run=slots.current.sha256,
            back=back.sha256 if back is not None else None,
            trial=False,
        )
        return fell_back

    # ---- the steps

    async def _resolve(self, record: UpdateRecord, release: Release) -> None:
        if normal_platform(release.platform) != self._platform:
            raise MachineError(
                f"version {release.version} is built for {release.platform}, and this device is {self._platform}",
                kind=ErrorKind.INVALID,
                remedy=f"select a version for {self._platform}",
            )
        await self._run(partial(self._end_trial, record))
        running = (await self._program.facts()).sha256
        await self._run(partial(disk.clean, self._layout, record, {running}))
        await self._source.check(release)
        await self._run(partial(disk.check_space, self._layout, record.program, release))

    async def _download(self, record: UpdateRecord, release: Release) -> None:
        layout, program = self._layout, record.program
        if await self._run(partial(disk.is_complete, layout, program, release)):
            return
        await self._run(partial(disk.check_space, layout, program, release))
        await self._source.download(release, disk.download_path(layout, program, release.sha256))

    async def _verify(self, record: UpdateRecord, release: Release) -> None:
        await self._run(partial(disk.verify, self._layout, record.program, release))

    async def _stage(self, record: UpdateRecord, release: Release) -> None:
        await self._run(partial(disk.stage, self._layout, record.program, release, self._unpack))
        await self._run(partial(disk.reserve_space, self._layout))

    async def _switch(self, record: UpdateRecord, release: Release) -> None:
        await self._program.stop(f"it is updated to version {release.version}")
        await self._point(record, release, back=record.slots.current)

    async def _roll_back(self, record: UpdateRecord, release: Release) -> None:
        await self._program.stop(f"it goes back to version {release.version}")
        await self._point(record, release, back=fallback(record))

    async def _point(self, record: UpdateRecord, release: Release, *, back: Release | None) -> None:
        """Link a release whose starts are counted; PRECONDITION is a permanent failure: its files are damaged."""
        try:
            await self._run(
                partial(
                    links.point, self._layout, record.program,
                    run=release.sha256, back=back.sha256 if back is not None else None, trial=True,
                )
            )  # fmt: skip
        except MachineError as error:
            raise StepFailedError(str(error), permanent=True) from None


_ACTIONS: Final[Mapping[UpdateStep, Callable[[Actions, UpdateRecord, Release], Awaitable[None]]]] = {
    UpdateStep.RESOLVE: Actions._resolve,
    UpdateStep.DOWNLOAD: Actions._download,
    UpdateStep.VERIFY: Actions._verify,
    UpdateStep.STAGE: Actions._stage,
    UpdateStep.SWITCH: Actions._switch,
    UpdateStep.ROLL_BACK: Actions._roll_back,
}
