"""What must be true of a device at every step: of its files, and of what its programs do.

Nothing here asks the agent whether a release is good: that is judged by what the device has seen of it. Limits are
those of the documentation, written down here again.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from agent.actions import disk
from agent.layout import PROGRAMS
from agent.update.record import InvalidRecord, UpdateProgress, UpdateRecord, UpdateStep, decode
from schema.errors import MachineError
from support.files.durable import is_link, read_link
from tests.helpers.agent.cloud import CONTENT

if TYPE_CHECKING:
    from tests.helpers.agent.device import Device

HOUR: Final = 3600.0
STAY_UP: Final = 600.0  # seconds
LIMITS: Final = {UpdateStep.WAIT: 7 * 24 * HOUR, UpdateStep.DOWNLOAD: 6 * HOUR}
"""Seconds of one attempt of a step; of the other steps, half an hour."""
SLACK: Final = HOUR
"""Seconds for hooks, for errors of the disk, and for an agent on trial that hangs until it is replaced."""

_BEGINS: Final = frozenset({None, UpdateStep.RESOLVE})
"""Steps in which links of an update that is over may still be on trial."""
_PREPARES: Final = frozenset(
    {None, UpdateStep.RESOLVE, UpdateStep.DOWNLOAD, UpdateStep.VERIFY, UpdateStep.STAGE, UpdateStep.WAIT}
)
_RETURNS: Final = frozenset({UpdateStep.ROLL_BACK, UpdateStep.RECOVER})


class Run(NamedTuple):
    """One process of a program, as the device saw it."""

    sha256: str
    begin: float
    end: float
    configured: bool  # the cloud could be reached, and the release could read its configuration


class Candidate(NamedTuple):
    """A release that the launcher starts."""

    name: str  # of the link
    sha256: str
    starts: str | None  # the file that counts the starts; None if `run` is not on trial


def pause(attempts: int) -> float:
    """Return the shortest pause after so many failed attempts; the longest is a tenth more."""
    return min(10.0 * 2.0 ** (attempts - 1), HOUR) if attempts < 20 else HOUR


def _identity(path: Path) -> tuple[int, ...]:
    """Return what changes when a file is replaced or written."""
    stat = path.stat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


class Invariants:
    """Checks a device. Each method raises AssertionError."""

    def __init__(self, device: Device) -> None:
        self._device, self._layout = device, device.layout
        self.checks = 0
        self.confirmed: Counter[str] = Counter()  # releases, by program
        self.tried_offline: set[str] = set()  # releases whose trial began offline: they need no configuration
        self.unreadable: set[str] = set()  # programs whose record was damaged and has not been stored again
        self.outdated: set[str] = set()  # programs whose record was damaged during an update that is not over
        self.copied: set[str] = set()  # programs whose record is an older one, of which `previous` may be gone
        self._runs: dict[str, list[Run]] = {program: [] for program in PROGRAMS}
        self._trials: dict[str, float] = {}  # when the trial began, by program
        self._pauses: dict[str, float] = {}  # when the pause began, by program
        self._saved: dict[str, trio.Event] = {program: trio.Event() for program in PROGRAMS}
        self._progress: dict[str, UpdateProgress | None] = {}
        self._verified: dict[str, tuple[int, ...]] = {}  # files whose content was compared, by hash
        self._records: dict[str, tuple[tuple[int, ...], UpdateRecord]] = {}  # what was read last, and from which file

    def damage(self, program: str) -> None:
        """Accept that the record of a program cannot be used: the disk is broken."""
        self.unreadable.add(program)
        self.outdated.add(program)
        self.copied.add(program)

    def ran(self, program: str, run: Run) -> None:
        """Note a process that has ended."""
        self._runs[program] = [*self._runs[program][-20:], run]

    # ---- whenever files may have changed

    def check(self) -> None:
        """Check that a device in this state can go on by itself, and starts nothing that it must not."""
        self.checks += 1
        for program in PROGRAMS:
            try:
                record = self._record(program)
            except FileNotFoundError:
                continue
            except InvalidRecord:
                assert program in self.unreadable, f"the record of {program} was destroyed"
                self._check_rebuilt(program)
                continue
            self._check_files(program, record)
            self._check_launch(program, record)

    def _record(self, program: str) -> UpdateRecord:
        path = self._layout.record(program)
        key = _identity(path)
        if (cached := self._records.get(program)) is None or cached[0] != key:
            cached = self._records[program] = (key, decode(path.read_bytes()))
        return cached[1]

    def _check_rebuilt(self, program: str) -> None:
        try:
            self._device.record(program)
        except MachineError:
            assert disk.rebuild(self._layout, program, 0.0) is not None, f"the record of {program} is lost for good"

    def _check_files(self, program: str, record: UpdateRecord) -> None:
        slots = record.slots
        for name, release in (("current", slots.current), ("previous", slots.previous), ("factory", slots.factory)):
            if release is not None and not (name == "previous" and program in self.copied):
                run = self._layout.release(program, release.sha256) / "run"
                assert run.is_file(), f"the {name} release of {program} is missing"
        for name in ("run", "back", "factory"):
            link = self._link(program, name)
            if not is_link(link):
                assert name != "run", f"the link of {program} is missing"
                continue
            sha256 = Path(read_link(link)).name
            file = self._layout.release(program, sha256) / CONTENT
            try:
                key = _identity(file)
            except OSError:
                raise AssertionError(f"{sha256[:12]} is linked as `{name}` of {program}, but was deleted") from None
            if self._verified.get(sha256) != key:
                genuine = self._device.cloud.published[sha256].genuine
                assert file.read_bytes() == genuine, "a file that was not verified is linked"
                self._verified[sha256] = key

    def _check_launch(self, program: str, record: UpdateRecord) -> None:
        """Check that the launcher would start the current release now, or one on trial whose start is counted."""
        candidate = self.candidate(program)
        assert candidate is not None, f"the launcher has no release of {program}"
        name, sha256, starts = candidate
        slots, progress = record.slots, record.progress
        step = progress.step if progress is not None else None
        if program in self.outdated:
            return
        if step in _PREPARES:
            assert starts is None or step in _BEGINS, f"starts of {program} are counted although nothing is on trial"
            assert sha256 == slots.current.sha256 or starts is not None, f"{program} would start as `{name}`: {step}"
            return
        assert progress is not None
        target = progress.target.sha256
        if step in _RETURNS:
            kept = {release.sha256 for release in (slots.current, slots.previous, slots.factory) if release is not None}
            allowed = sha256 in kept or (sha256 == target and (starts is not None or self.confirmed[sha256] > 0))
            assert allowed, f"{program} would start {sha256[:12]}, which was never confirmed, without a count"
        else:
            allowed = sha256 == slots.current.sha256 or (sha256 == target and starts is not None)
            assert allowed, f"{program} would start {sha256[:12]} during {step}: starts {starts}"
        if step is UpdateStep.TRIAL:
            run = Path(read_link(self._link(program, "run"))).name
            assert (run, starts is not None) == (target, True), f"a release of {program} is tried, but not linked"
            if progress.offline_before:
                self.tried_offline.add(target)
        if not progress.explicit and record.is_quarantined(progress.target):
            assert step in _RETURNS, "a release in quarantine is installed again"

    def _link(self, program: str, name: str) -> Path:
        return (self._layout.releases(program) if name == "factory" else self._layout.launch(program)) / name

    def candidate(self, program: str, *, full: bool = False) -> Candidate | None:
        """Return what the launcher would start now; `full`: the disk is, so that nothing can be counted."""
        trial = self._layout.launch(program) / "trial"
        starts = trial.read_bytes().decode("ascii", "replace").strip() if trial.exists() else None
        for name in ("run", "back", "factory"):
            try:
                sha256 = Path(read_link(self._link(program, name))).name
            except OSError:
                continue
            if not (self._layout.release(program, sha256) / "run").is_file():
                continue
            if name == "run" and starts is not None and (starts not in ("0", "1", "2") or full):
                continue
            return Candidate(name, sha256, starts)
        return None

    # ---- whenever a record is stored

    def stored(self, before: UpdateRecord | None, after: UpdateRecord) -> None:
        """Check what a record that is stored now says about what has happened since the one `before`."""
        program, now = after.program, trio.current_time()
        old, new = before.progress if before is not None else None, after.progress
        self.unreadable.discard(program)
        if new is None:
            self.outdated.discard(program)
        if before is not None and before.slots.previous != after.slots.previous:
            self.copied.discard(program)
        for release in (after.slots.factory, after.slots.previous) if not self.confirmed else ():
            self.confirmed[release.sha256 if release is not None else ""] += 1
        if new is not None and new.step is UpdateStep.TRIAL and (old is None or old.step is not UpdateStep.TRIAL):
            self._trials[program] = now
        if old is not None and old.step is UpdateStep.TRIAL and after.slots.current == old.target:
            self._check_confirmation(program, old)
        if old is not None and new is not None and old.pausing and (old.target, old.step) == (new.target, new.step):
            waited = now - self._pauses.get(program, now)
            assert new.pausing or waited >= pause(old.attempts), f"it was tried again after {waited} s: {old}"
        if new is not None and new.pausing and (old is None or old.deadline != new.deadline):
            self._pauses[program] = now
        self._progress[program] = new
        saved, self._saved[program] = self._saved[program], trio.Event()
        saved.set()

    def _check_confirmation(self, program: str, trial: UpdateProgress) -> None:
        """Check that a release that is confirmed has run long enough, served, and reached the cloud."""
        sha256 = trial.target.sha256
        self.confirmed[sha256] += 1
        behavior = self._device.cloud.behavior(sha256)
        runs = [run for run in self._runs[program] if run.end >= self._trials.get(program, 0.0)]
        running = self._device.running(program)
        runs += [running] if running is not None else []
        runs = [run for run in runs if run.sha256 == sha256 and run.end - run.begin >= STAY_UP]
        assert runs, f"a release of {program} was confirmed that has not run for {STAY_UP} s"
        after = behavior.serves_after if behavior.serves_after is not None else float("inf")
        served = [run for run in runs if run.end - run.begin >= after]
        assert served, f"a release of {program} was confirmed that never served"
        assert trial.offline_before or any(run.configured for run in served), (
            f"a release of {program} was confirmed that never had its configuration"
        )

    # ---- as time passes

    async def watch(self, program: str) -> None:
        """Check that no step and no pause lasts longer than documented, and that what was confirmed runs in the end."""
        while True:
            saved, progress = self._saved[program], self._progress.get(program)
            with trio.move_on_after(self._longest(progress)):
                await saved.wait()
                continue
            if self._device.filled:
                await saved.wait()
                continue
            assert progress is None, f"{program} has not gone on: {progress}"
            self._check_rest(program)
            await saved.wait()

    def _longest(self, progress: UpdateProgress | None) -> float:
        if progress is None:
            return SLACK
        if progress.pausing:
            return 1.1 * pause(progress.attempts) + SLACK
        return LIMITS.get(progress.step, HOUR / 2) + SLACK

    def _check_rest(self, program: str) -> None:
        """Check a program some time after its update has ended."""
        if program in self.unreadable or not self._layout.record(program).exists():
            return
        candidate, current = self.candidate(program), self._device.record(program).slots.current.sha256
        assert candidate is not None
        assert candidate.starts is None, f"{program} is still on trial, an hour after its update ended"
        running = self._device.running(program)
        assert running is None or running.sha256 == current, f"another release of {program} runs than the current one"
