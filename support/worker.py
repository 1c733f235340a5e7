"""Threads that run blocking calls one after the other, awaited from Trio.

This is the only module of the project that creates threads. Each worker has its own thread, so a call that hangs in
the kernel delays only users of the same worker, and calls run in the order in which they were requested.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from queue import SimpleQueue
from typing import Final, Protocol, TypeVar

import outcome
import trio

from schema import ErrorKind, MachineError

CLOSING_LIMIT: Final = 5.0  # seconds to wait for the call in progress; the timeouts that we set in the kernel are lower

T = TypeVar("T")


class _Job:
    """A call, and the task that waits for its result, if any."""

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
        # The frames of the caller hold this job. If it still held an exception, whose traceback refers to these frames,
        # the arguments of every failed call would exist until the next garbage collection.
        result, self.result = self.result, outcome.Value(None)
        if self.task is not None and not self.dropped:
            trio.lowlevel.reschedule(self.task, result)


class _Thread:
    """A running thread with its queue; `ended` is set when it has ended."""

    def __init__(self, name: str) -> None:
        self.jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self.ended = trio.Event()
        self._token = trio.lowlevel.current_trio_token()
        # It is joined at the end unless it hangs in the kernel; as a daemon it does not keep the process running then.
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while (job := self.jobs.get()) is not None:
            if not job.dropped:
                job.result = outcome.capture(job.function)
                self._call_soon(job.deliver)
            del job  # do not keep the result until the next job arrives
        self._call_soon(self.ended.set)

    def _call_soon(self, function: Callable[[], object]) -> None:
        try:
            self._token.run_sync_soon(function)
        except trio.RunFinishedError:
            pass  # no task is waiting

    async def end(self) -> bool:
        """End the thread after the call in progress; return False if that takes longer than CLOSING_LIMIT."""
        self.jobs.put(None)
        with trio.move_on_after(CLOSING_LIMIT, shield=True):
            await self.ended.wait()
            self._thread.join()  # does not block: it has nothing left to do
            return True
        return False


class HangingCallError(MachineError):
    """A call had not returned within CLOSING_LIMIT when its worker was closed."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name}: a call has not returned for {CLOSING_LIMIT:g} s",
            kind=ErrorKind.TIMEOUT,
            remedy="check the disk or the network file system that it uses",
        )


class RunBlocking(Protocol):
    """Runs blocking functions: `Worker.run`, or directly in tests."""

    def __call__(self, function: Callable[[], T], /) -> Awaitable[T]:
        """Return the result of `function` or raise its exception."""
        ...


class Worker:
    """A thread that exists while the worker is open. `name` is the name of the thread and is used in error messages."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._users = 0
        self._thread: _Thread | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Keep the thread running while the context is open: the first user starts it, the last one ends it.

        Leaving waits, shielded, at most CLOSING_LIMIT for the call in progress; then `hanging()` is raised, and the
        thread ends when the call returns.
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
        """Return the error for a call that has not returned within CLOSING_LIMIT."""
        return HangingCallError(self.name)

    async def run(self, function: Callable[[], T]) -> T:
        """Call `function` in the thread, after all earlier calls; return its result or raise its exception.

        If cancelled before the call begins, it is not made. If cancelled during the call, this raises at once, the
        thread finishes the call, and its result is dropped. RuntimeError if the worker is not open.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        job = _Job(function, trio.lowlevel.current_task())
        self._jobs().put(job)
        result: T = await trio.lowlevel.wait_task_rescheduled(job.drop)
        return result

    def post(self, function: Callable[[], object]) -> None:
        """Call `function` in the thread, after all earlier calls, without waiting for it.

        Its result or exception is dropped. Meant for cleanup: closing the worker waits for the call. RuntimeError if
        the worker is not open.
        """
        self._jobs().put(_Job(function, None))

    def _jobs(self) -> SimpleQueue[_Job | None]:
        if self._thread is None:
            raise RuntimeError(f"{self.name} is not open: use it inside `async with worker.opened()`")
        return self._thread.jobs


async def run_once(name: str, function: Callable[[], T]) -> T:
    """Call `function` in a thread of its own with this name, as `Worker.run` does: for rare work, such as an import."""
    worker = Worker(name)
    async with worker.opened():
        return await worker.run(function)
