"""Upload of captured files, at each interval and on demand, oldest first; failed uploads are repeated.

Files are deleted here after the cloud has acknowledged them. A file that the cloud refuses permanently is moved to
`failed`, with the reason in a second file, and does not block others. While the cloud cannot be reached, open files are
not closed for the upload, so that they grow to their full size.
"""

from __future__ import annotations

import heapq
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog
import trio

from runtime.parts.data.files.disk import Disk
from runtime.parts.data.files.store import Store
from runtime.parts.data.sync import waiting
from runtime.parts.data.sync.delivery import Parcel, Sent
from runtime.parts.data.sync.upload import Busy, Uploader
from runtime.parts.data.sync.waiting import Waiting, shown
from schema.errors import ErrorKind, MachineError

FIRST_DELAY: Final = 0.5  # seconds until the next attempt while the cloud accepts nothing; doubled, with jitter
MAX_DELAY: Final = 60.0  # seconds; reference value
FILE_DELAY: Final = 0.2  # seconds until the next attempt if only this file fails; doubled; reference value
MAX_FILE_DELAY: Final = 3600.0  # seconds; reference value
MAX_FULL_DELAY: Final = 300.0  # seconds; instead of MAX_FILE_DELAY if the cloud reports an exhausted quota or disk

_NOBODY: Final = frozenset(
    {
        ErrorKind.UNAVAILABLE,
        ErrorKind.TIMEOUT,
        ErrorKind.UNAUTHENTICATED,
        ErrorKind.PERMISSION,
        ErrorKind.UNSUPPORTED,
    }
)
"""Errors that do not depend on the file and would affect all files. NOT_FOUND may be about a file's dataset."""

_WRONG: Final = _NOBODY - {ErrorKind.UNAVAILABLE, ErrorKind.TIMEOUT}
"""Those of them that do not disappear without intervention."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Upload settings from the data manager's attributes."""

    interval: float  # seconds
    others: tuple[Path, ...] = ()  # folders with further files to upload
    untouched: float = 10.0  # seconds without a change before a file in them is uploaded
    at_once: int = 1  # simultaneous uploads
    automatic: bool = True  # if false, upload only on demand


@dataclass(slots=True)
class _Request:
    done: trio.Event = field(default_factory=trio.Event)
    problem: str = "the data manager ended before everything was uploaded"


class Syncer:
    """Uploads the files that `store` has closed. `run` is the task of a node.

    `may_leave` returns, before each automatic round, whether uploads are allowed. `report` is called with a problem
    that needs intervention, or "".
    """

    def __init__(
        self,
        store: Store,
        disk: Disk,
        uploader: Uploader,
        settings: Settings,
        *,
        may_leave: Callable[[], bool] = lambda: True,
        report: Callable[[str], None] = lambda reason: None,
        today: Callable[[], float] = time.time,
    ) -> None:
        self.store = store
        self.sent = Sent()
        self.refused = 0  # files moved to `failed` since the start
        self.trouble = ""  # why nothing can be uploaded now
        self.waiting = 0  # number of files, at the last count
        self.uploader = uploader
        self._disk = disk
        self._settings = settings
        self._may_leave = may_leave
        self._report = report
        self._today = today
        self._log: structlog.stdlib.BoundLogger = store.log
        self._wake = trio.Event()
        self._requests: list[_Request] = []
        self._delay = FIRST_DELAY
        self._after = 0.0  # seconds that the cloud asked to wait
        self._serious = ""  # the trouble, if it needs intervention
        self._later: dict[Path, tuple[float, float]] = {}  # due time and next delay of files that failed individually
        self._last = ""  # reason of the last failure of a file

    # ---- for others

    def wake(self) -> None:
        """Start the next round now."""
        self._wake.set()

    def cloud_is_back(self) -> None:
        """Start the next round now if uploads failed because of the cloud."""
        if self.trouble:
            self._delay = FIRST_DELAY
            self.wake()

    async def sync(self) -> None:
        """Upload everything captured so far, even if `may_leave` is false.

        Raises MachineError (UNAVAILABLE) if not everything could be uploaded.
        """
        request = _Request()
        self._requests.append(request)
        self.wake()
        await request.done.wait()
        if request.problem:
            raise MachineError(
                request.problem,
                kind=ErrorKind.UNAVAILABLE,
                remedy="nothing is lost: it is tried again by itself",
            )

    def status(self) -> Mapping[str, Any]:
        """Return the status for people."""
        return {
            "problem": self.trouble,
            "waiting_files": self.waiting,
            "uploaded": asdict(self.sent),
            "put_aside": self.refused,
            "last_error": self._last,
        }

    # ---- the rounds

    async def run(self) -> None:
        """Upload until cancelled."""
        try:
            while True:
                self._wake = trio.Event()
                requests, self._requests = self._requests, []
                try:
                    if requests or (self._settings.automatic and self._may_leave()):
                        problem = await self._round(demanded=bool(requests))
                        for request in requests:
                            request.problem = problem
                finally:
                    for request in requests:
                        request.done.set()
                with trio.move_on_after(self._pause()):
                    await self._wake.wait()
        finally:
            for request in self._requests:
                request.done.set()

    def _pause(self) -> float:
        if not self.trouble:
            return self._settings.interval
        delay, self._delay = self._delay, min(2 * self._delay, MAX_DELAY)
        return max(delay * random.uniform(0.5, 1.0), self._after * random.uniform(1.0, 1.2))

    async def _round(self, *, demanded: bool) -> str:
        """Upload all files that are due (all files if `demanded`). Return why files still wait, or ""."""
        if demanded or not self.trouble:
            await self.store.flush()
        try:
            found = await self._found()
        except OSError as error:
            self._last = f"a folder cannot be read: {error}"
            return self._last
        now = trio.current_time()
        due = [one for one in found if demanded or self._later.get(one.path, (0.0, 0.0))[0] <= now]
        before = self.refused
        lanes = _Lanes(due)
        async with trio.open_nursery() as nursery:
            for _ in range(self._settings.at_once):
                nursery.start_soon(self._work, lanes)
        await self._tell()
        if self.trouble:
            return f"{self.waiting} files wait for the cloud: {self.trouble}"
        if self._later:
            return f"{len(self._later)} files could not be uploaded: {self._last}"
        return f"the cloud has refused a file, which was put aside: {self._last}" if self.refused > before else ""

    async def _found(self) -> Sequence[Waiting]:
        settings = self._settings
        found = await self._disk.run(
            partial(waiting.waiting, self.store.folder, settings.others, self._today(), settings.untouched)
        )
        self.waiting = len(found)
        there = {one.path for one in found}
        self._later = {path: when for path, when in self._later.items() if path in there}
        return found

    async def _work(self, lanes: _Lanes) -> None:
        """Upload files one by one, until none is left or the cloud accepts none."""
        while (lane := lanes.take()) is not None:
            one = lane.popleft()
            if not await self._one(one):
                return
            lanes.give_back(lane)

    async def _one(self, one: Waiting) -> bool:
        """Upload a file, and handle its failure. Return False if the cloud accepts nothing at all."""
        parcel = Parcel(one, self._disk, self.uploader)
        try:
            async with self.store.held(one.path):
                await parcel.send()
        except FileNotFoundError:
            pass  # deleted to make room
        except MachineError as error:
            if error.kind in _NOBODY or isinstance(error, Busy):
                self._no_cloud(error)
                return False
            if error.kind is ErrorKind.INVALID:
                await self._put_aside(one, str(error))
            else:
                most = MAX_FULL_DELAY if error.kind is ErrorKind.EXHAUSTED else MAX_FILE_DELAY
                self._try_later(one, str(error), most)
        else:
            self._later.pop(one.path, None)
        finally:
            self.sent.add(parcel.sent)
        self.waiting = max(0, self.waiting - 1)
        self._cloud_works()
        return True

    # ---- failures

    def _no_cloud(self, error: MachineError) -> None:
        if not self.trouble:
            self._log.warning("captured data waits for the cloud", reason=str(error), files=self.waiting)
        self.trouble = str(error)
        self._after = error.after if isinstance(error, Busy) else 0.0
        self._serious = self.trouble if error.kind in _WRONG else ""

    def _cloud_works(self) -> None:
        self._delay = FIRST_DELAY
        if self.trouble:
            self._log.info("captured data goes to the cloud again", files=self.waiting)
            self.trouble = self._serious = ""

    def _try_later(self, one: Waiting, reason: str, most: float = MAX_FILE_DELAY) -> None:
        _, delay = self._later.get(one.path, (0.0, FILE_DELAY))
        delay = min(delay, most)
        self._later[one.path] = (trio.current_time() + delay * random.uniform(0.5, 1.0), 2 * delay)
        if reason != self._last:
            self._log.warning("a file could not be uploaded and is tried again", file=shown(one.path), reason=reason)
        self._last = reason

    async def _put_aside(self, one: Waiting, reason: str) -> None:
        try:
            target = await self._disk.run(partial(waiting.put_aside, one, reason))
        except FileNotFoundError:
            return
        except OSError as error:
            self._try_later(one, f"it is refused ({reason}) and cannot be put aside: {error}")
            return
        self.refused += 1
        self._later.pop(one.path, None)
        self._last = reason
        self._log.error("a file cannot be uploaded and is put aside", file=shown(target), reason=reason)

    async def _tell(self) -> None:
        """Report problems that need intervention. That the cloud cannot be reached now is not one of them."""
        roots = (self.store.folder, *self._settings.others)
        try:
            aside = await self._disk.run(partial(waiting.put_aside_before, roots))
        except OSError:
            aside = []
        words = ""
        if self._serious:
            words = f"captured data waits for the cloud: {self._serious}"
        elif self._later:
            words = f"{len(self._later)} files could not be uploaded and are tried again: {self._last}"
        elif aside:
            words = (
                f"{len(aside)} files could not be uploaded; each has its reason beside it, such as {shown(aside[0])}"
            )
        self._report(words)


class _Lanes:
    """Files grouped by lane. A task that takes a lane has exclusive use of it until it gives it back."""

    def __init__(self, files: Iterable[Waiting]) -> None:
        lanes: dict[Path, deque[Waiting]] = {}
        for one in files:
            lanes.setdefault(one.lane, deque()).append(one)
        self._heap = [(lane[0].time, str(path), lane) for path, lane in lanes.items()]
        heapq.heapify(self._heap)

    def take(self) -> deque[Waiting] | None:
        """Return the lane with the oldest file, or None if all lanes are taken or empty."""
        return heapq.heappop(self._heap)[2] if self._heap else None

    def give_back(self, lane: deque[Waiting]) -> None:
        """Make a lane available again, unless it is empty."""
        if lane:
            heapq.heappush(self._heap, (lane[0].time, str(lane[0].lane), lane))
