"""One thread for one bus: blocking transactions, one after the other, awaited from Trio.

The only place in the project where threads are made. A bus has a thread of its own, so a device that hangs in the
kernel delays nobody but those who wait for the same bus, and transactions keep the order in which they were asked for.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from queue import SimpleQueue
from typing import Final, TypeVar

import outcome
import trio

from hal.errors import Fault, HalError

CLOSING_LIMIT: Final = 5.0  # seconds to wait for the transaction in progress; the kernel's own limits are set lower

T = TypeVar("T")


class _Job:
    """One transaction, and the task that waits for it, if one does, unless it was cancelled."""

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
    """A running thread: its queue, and the event that it has ended."""

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
                self._tell(job.deliver)
            del job  # so that it does not keep the result until the next one comes
        self._tell(self.ended.set)

    def _tell(self, function: Callable[[], object]) -> None:
        try:
            self._token.run_sync_soon(function)
        except trio.RunFinishedError:
            pass  # nobody is left to hear it

    async def end(self) -> bool:
        """Let the transaction in progress finish, then end; False if that takes longer than the limit."""
        self.jobs.put(None)
        with trio.move_on_after(CLOSING_LIMIT, shield=True):
            await self.ended.wait()
            self._thread.join()  # it has nothing left to do
            return True
        return False


class BusWorker:
    """The thread of one bus. `name` is what the bus is called in errors; the thread is called so too."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._users = 0
        self._thread: _Thread | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Use the bus while the context is open: the first user starts the thread, the last one ends it.

        Leaving waits, shielded, for the transaction in progress; HalError (timeout) names the bus if that hangs. Its
        thread then ends by itself as soon as the kernel lets it.
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
                    raise HalError(
                        f"{self.name}: a transaction has been hanging in the kernel for {CLOSING_LIMIT:g} s",
                        Fault.TIMEOUT,
                        remedy="unplug the adapter, or power the bus off and on: its driver does not give up by itself",
                    )

    async def run(self, function: Callable[[], T]) -> T:
        """Carry out `function` in the thread, after what was asked for before; returns or raises what it does.

        Cancelled before it began, it never begins. Cancelled while it runs, the caller goes on at once, the thread
        finishes it, and what it returned is dropped. RuntimeError if the bus is not open.
        """
        if self._thread is None:
            raise RuntimeError(f"{self.name} is not open")
        await trio.lowlevel.checkpoint_if_cancelled()
        job = _Job(function, trio.lowlevel.current_task())
        self._thread.jobs.put(job)
        result: T = await trio.lowlevel.wait_task_rescheduled(job.drop)
        return result

    def post(self, function: Callable[[], object]) -> None:
        """Carry out `function` after what was asked for before, without waiting; what it returns or raises is dropped.

        For cleanup: the last user's leaving waits for it. RuntimeError if the bus is not open.
        """
        if self._thread is None:
            raise RuntimeError(f"{self.name} is not open")
        self._thread.jobs.put(_Job(function, None))
