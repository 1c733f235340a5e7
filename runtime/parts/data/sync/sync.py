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
from schema import ErrorKind, MachineError
from support import DoublingDelay

FIRST_DELAY: Final = 0.5  # seconds until the next attempt while the cloud accepts nothing; doubled, with jitter
MAX_DELAY: Final = 60.0  # seconds; reference value
FILE_DELAY: Final = 0.2  # seconds until the next attempt if only this file fails; doubled; reference value
MAX_FILE_DELAY: Final = 3600.0  # seconds; reference value
MAX_FULL_DELAY: Final = 300.0  # seconds; instead of MAX_FILE_DELAY if the cloud reports an exhausted quota or disk

_CLOUD_FAILURES: Final = frozenset(
    {
        ErrorKind.UNAVAILABLE,
        ErrorKind.TIMEOUT,
        ErrorKind.UNAUTHENTICATED,
        ErrorKind.PERMISSION,
        ErrorKind.UNSUPPORTED,
    }
)
"""Errors that do not depend on the file and would affect all files. NOT_FOUND may be about a file's dataset."""

_NEEDS_ACTION: Final = _CLOUD_FAILURES - {ErrorKind.UNAVAILABLE, ErrorKind.TIMEOUT}
"""Those of them that last until someone corrects the cause."""


@dataclass(frozen=True, slots=True)
class SyncSettings:
    """Upload settings from the data manager's attributes."""

    interval: float  # seconds
    other_folders: tuple[Path, ...] = ()  # folders with further files to upload
    minimum_age: float = 10.0  # seconds without a change before a file in them is uploaded
    simultaneous: int = 1  # simultaneous uploads
    automatic: bool = True  # if false, upload only on demand


@dataclass(slots=True)
class _Request:
    done: trio.Event = field(default_factory=trio.Event)
    problem: str = "the data manager ended before everything was uploaded"


class Syncer:
    """Uploads the files that `store` has closed. `run` is the task of a node.

    `may_upload` returns, before each automatic round, whether uploads are allowed. `report` is called with a problem
    that needs intervention, or "".
    """

    def __init__(
        self,
        store: Store,
        disk: Disk,
        uploader: Uploader,
        settings: SyncSettings,
        *,
        may_upload: Callable[[], bool] = lambda: True,
        report: Callable[[str], None] = lambda reason: None,
        today: Callable[[], float] = time.time,
    ) -> None:
        self.store = store
        self.sent = Sent()
        self.refused = 0  # files moved to `failed` since the start
        self.cloud_problem = ""  # why nothing can be uploaded now
        self.waiting = 0  # number of files, at the last count
        self.uploader = uploader
        self._disk = disk
        self._settings = settings
        self._may_upload = may_upload
        self._report = report
        self._today = today
        self._log: structlog.stdlib.BoundLogger = store.log
        self._wake = trio.Event()
        self._requests: list[_Request] = []
        self._delays = DoublingDelay(FIRST_DELAY, MAX_DELAY)
        self._requested_delay = 0.0  # seconds that the cloud asked to wait
        self._urgent_problem = ""  # `cloud_problem`, if it does not disappear by itself
        self._retries: dict[Path, tuple[float, float]] = {}  # due time and next delay of files that failed individually
        self._last_error = ""  # reason of the last failure of a file

    # ---- for other tasks

    def wake(self) -> None:
        """Start the next round now."""
        self._wake.set()

    def cloud_is_back(self) -> None:
        """Start the next round now if uploads failed because of the cloud."""
        if self.cloud_problem:
            self._delays.reset()
            self.wake()

    async def sync(self) -> None:
        """Upload everything captured so far, even if `may_upload` is false.

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
                remedy="nothing is lost: uploads are retried automatically",
            )

    def status(self) -> Mapping[str, Any]:
        """Return the status for people."""
        return {
            "problem": self.cloud_problem,
            "waiting_files": self.waiting,
            "uploaded": asdict(self.sent),
            "put_aside": self.refused,
            "last_error": self._last_error,
        }

    # ---- the rounds

    async def run(self) -> None:
        """Upload until cancelled."""
        try:
            while True:
                self._wake = trio.Event()
                requests, self._requests = self._requests, []
                try:
                    if requests or (self._settings.automatic and self._may_upload()):
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
        if not self.cloud_problem:
            return self._settings.interval
        return max(self._delays.next() * random.uniform(0.5, 1.0), self._requested_delay * random.uniform(1.0, 1.2))

    async def _round(self, *, demanded: bool) -> str:
        """Upload all files that are due (all files if `demanded`). Return why files still wait, or ""."""
        if demanded or not self.cloud_problem:
            await self.store.flush()
        try:
            files = await self._list_files()
        except OSError as error:
            self._last_error = f"a folder cannot be read: {error}"
            return self._last_error
        now = trio.current_time()
        due = [file for file in files if demanded or self._retries.get(file.path, (0.0, 0.0))[0] <= now]
        before = self.refused
        lanes = _Lanes(due)
        async with trio.open_nursery() as nursery:
            for _ in range(self._settings.simultaneous):
                nursery.start_soon(self._work, lanes)
        await self._report_problems()
        if self.cloud_problem:
            return f"{self.waiting} files wait for the cloud: {self.cloud_problem}"
        if self._retries:
            return f"{len(self._retries)} files could not be uploaded: {self._last_error}"
        return (
            f"the cloud refused a file, which was moved to the folder `failed`: {self._last_error}"
            if self.refused > before
            else ""
        )

    async def _list_files(self) -> Sequence[Waiting]:
        settings = self._settings
        files = await self._disk.run(
            partial(waiting.waiting, self.store.folder, settings.other_folders, self._today(), settings.minimum_age)
        )
        self.waiting = len(files)
        present = {file.path for file in files}
        self._retries = {path: when for path, when in self._retries.items() if path in present}
        return files

    async def _work(self, lanes: _Lanes) -> None:
        """Upload files one by one, until none is left or the cloud accepts none."""
        while (lane := lanes.take()) is not None:
            file = lane.popleft()
            if not await self._upload(file):
                return
            lanes.give_back(lane)

    async def _upload(self, file: Waiting) -> bool:
        """Upload a file, and handle its failure. Return False if the cloud accepts nothing at all."""
        parcel = Parcel(file, self._disk, self.uploader)
        try:
            async with self.store.held(file.path):
                await parcel.send()
        except FileNotFoundError:
            pass  # deleted to make room
        except MachineError as error:
            if error.kind in _CLOUD_FAILURES or isinstance(error, Busy):
                self._cloud_failed(error)
                return False
            if error.kind is ErrorKind.INVALID:
                await self._move_to_failed(file, str(error))
            else:
                most = MAX_FULL_DELAY if error.kind is ErrorKind.EXHAUSTED else MAX_FILE_DELAY
                self._retry_later(file, str(error), most)
        else:
            self._retries.pop(file.path, None)
        finally:
            self.sent.add(parcel.sent)
        self.waiting = max(0, self.waiting - 1)
        self._cloud_works()
        return True

    # ---- failures

    def _cloud_failed(self, error: MachineError) -> None:
        if not self.cloud_problem:
            self._log.warning("captured data waits for the cloud", reason=str(error), files=self.waiting)
        self.cloud_problem = str(error)
        self._requested_delay = error.after if isinstance(error, Busy) else 0.0
        self._urgent_problem = self.cloud_problem if error.kind in _NEEDS_ACTION else ""

    def _cloud_works(self) -> None:
        self._delays.reset()
        if self.cloud_problem:
            self._log.info("uploads of captured data work again", files=self.waiting)
            self.cloud_problem = self._urgent_problem = ""

    def _retry_later(self, file: Waiting, reason: str, most: float = MAX_FILE_DELAY) -> None:
        _, delay = self._retries.get(file.path, (0.0, FILE_DELAY))
        delay = min(delay, most)
        self._retries[file.path] = (trio.current_time() + delay * random.uniform(0.5, 1.0), 2 * delay)
        if reason != self._last_error:
            self._log.warning("a file could not be uploaded and will be retried", file=shown(file.path), reason=reason)
        self._last_error = reason

    async def _move_to_failed(self, file: Waiting, reason: str) -> None:
        try:
            target = await self._disk.run(partial(waiting.move_to_failed, file, reason))
        except FileNotFoundError:
            return
        except OSError as error:
            self._retry_later(file, f"the cloud refuses it ({reason}), and it cannot be moved to `failed`: {error}")
            return
        self.refused += 1
        self._retries.pop(file.path, None)
        self._last_error = reason
        self._log.error(
            "a file cannot be uploaded and was moved to the folder `failed`", file=shown(target), reason=reason
        )

    async def _report_problems(self) -> None:
        """Report problems that need intervention. That the cloud cannot be reached now is not one of them."""
        roots = (self.store.folder, *self._settings.other_folders)
        try:
            reasons = await self._disk.run(partial(waiting.reason_files, roots))
        except OSError:
            reasons = []
        problem = ""
        if self._urgent_problem:
            problem = f"captured data waits for the cloud: {self._urgent_problem}"
        elif self._retries:
            problem = f"{len(self._retries)} files could not be uploaded and will be retried: {self._last_error}"
        elif reasons:
            problem = (
                f"{len(reasons)} files could not be uploaded; the reasons are in files such as {shown(reasons[0])}"
            )
        self._report(problem)


class _Lanes:
    """Files grouped by lane. A task that takes a lane has exclusive use of it until it gives it back."""

    def __init__(self, files: Iterable[Waiting]) -> None:
        lanes: dict[Path, deque[Waiting]] = {}
        for file in files:
            lanes.setdefault(file.lane, deque()).append(file)
        self._heap = [(lane[0].time, str(path), lane) for path, lane in lanes.items()]
        heapq.heapify(self._heap)

    def take(self) -> deque[Waiting] | None:
        """Return the lane with the oldest file, or None if all lanes are taken or empty."""
        return heapq.heappop(self._heap)[2] if self._heap else None

    def give_back(self, lane: deque[Waiting]) -> None:
        """Make a lane available again, unless it is empty."""
        if lane:
            heapq.heappush(self._heap, (lane[0].time, str(lane[0].lane), lane))
