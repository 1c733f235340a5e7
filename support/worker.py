"""A thread for blocking calls, one after the other, awaited from Trio.

The only place in the project where threads are made. Each user has a thread of its own, so a call that hangs in the
kernel delays only those who wait for the same thread, and calls keep the order in which they were asked for.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from queue import SimpleQueue
from typing import Final, TypeVar

import outcome
import trio

from schema.errors import ErrorKind, MachineError

CLOSING_LIMIT: Final = 5.0  # seconds to wait for the call in progress; our time limits of the kernel are lower

T = TypeVar("T")


class _Job:
    """One call, and the task that waits for its result unless it was cancelled or nobody waits."""

    __slots__ = ("dropped", "function", "result", "task")

    def __init__(self, function: Callable[[], object], task: trio.lowlevel.Task | None) -> None:
        self.function = function
        self.task = task
        self.dropped = False
        self.result: outcome.Outcome[object] = outcome.Value(None)

    def drop(self, _: object) -> trio.lowlevel.Abort:
        self.dropped = True
        return trio.lowlevel.Abort.SUCCEEDED

    def deliver(self) -> None:
        if self.task is not None and not self.dropped:
            trio.lowlevel.reschedule(self.task, self.result)


class _Thread:
    """A running thread with its queue; `ended` is set when it has ended."""

    def __init__(self, name: str) -> None:
        self.jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self.ended = trio.Event()
        self._token = trio.lowlevel.current_trio_token()
        # It is joined at the end, unless it hangs in the kernel: then, as a daemon, it does not keep the process alive.
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while (job := self.jobs.get()) is not None:
            if not job.dropped:
                job.result = outcome.capture(job.function)
                self._call_soon(job.deliver)
            del job  # so that it does not keep the result until the next one comes
        self._call_soon(self.ended.set)

    def _call_soon(self, function: Callable[[], object]) -> None:
        try:
            self._token.run_sync_soon(function)
        except trio.RunFinishedError:
            pass  # nobody waits any more

    async def end(self) -> bool:
        """Let the call in progress finish, then end; False if that takes longer than CLOSING_LIMIT."""
        self.jobs.put(None)
        with trio.move_on_after(CLOSING_LIMIT, shield=True):
            await self.ended.wait()
            self._thread.join()  # it has nothing left to do
            return True
        return False


class HangingCallError(MachineError):
    """A call had not returned when its worker was closed."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name}: a call has not returned for {CLOSING_LIMIT:g} s",
            kind=ErrorKind.TIMEOUT,
            remedy="check the disk or the network file system that it uses",
        )


class Worker:
    """A thread that exists while somebody has the worker open. `name` names the thread, and the worker in errors."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._users = 0
        self._thread: _Thread | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Keep the thread while the context is open: the first user starts it, the last one ends it.

        Leaving waits, shielded, for the call in progress, at most CLOSING_LIMIT; then `hanging()` is raised,
        and the thread ends by itself when the call returns.
        """
        if self._thread is None:
            self._thread = _Thread(self.name)
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            if not self._users:
                thread, self._thread = self._thread, None
                if not await thread.end():
                    raise self.hanging()

    def hanging(self) -> MachineError:
        """Make the error for a call that has not returned within CLOSING_LIMIT of closing."""
        return HangingCallError(self.name)

    async def run(self, function: Callable[[], T]) -> T:
        """Call `function` in the thread, after the calls that were made before; return or raise what it does.

        Cancelled before the call begins, it never begins. Cancelled during the call, this raises at once, the thread
        finishes the call, and its result is dropped. RuntimeError if the worker is not open.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        job = _Job(function, trio.lowlevel.current_task())
        self._jobs().put(job)
        result: T = await trio.lowlevel.wait_task_rescheduled(job.drop)
        return result

    def post(self, function: Callable[[], object]) -> None:
        """Call `function` in the thread, after the calls that were made before, without waiting for it.

        Its result, or what it raises, is dropped. For cleanup: closing waits for it. RuntimeError if the worker is not
        open.
        """
        self._jobs().put(_Job(function, None))

    def _jobs(self) -> SimpleQueue[_Job | None]:
        if self._thread is None:
            raise RuntimeError(f"{self.name} is not open")
        return self._thread.jobs
