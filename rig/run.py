"""One test run: clock, Ctrl-C, time limit, and the final check that outputs are safe.

pytest-trio calls `Run` instead of `trio.run`, so this code runs even if the test, its fixtures or the event loop fail.
"""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

import pytest
import trio
import trio.testing

TEST_TASK: Final = "<test "  # prefix of the name that pytest-trio gives the task of a test
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class TooLong(Exception):
    """A test exceeded its time limit."""


class UnsafeOutputs(Exception):
    """Outputs were not at their safe level after a test. Nothing else may run on this rig."""


class Interrupted(Exception):
    """Ctrl-C or SIGTERM was received. Becomes KeyboardInterrupt after everything has stopped in order."""


class Run:
    """The run of one test. `limit` is in seconds on the clock of the test, virtual or real; 0: no limit."""

    def __init__(self, *, virtual: bool, limit: float) -> None:
        self._virtual = virtual
        self._limit = limit
        self._token: trio.lowlevel.TrioToken | None = None
        self._interrupt = trio.Event()
        self.signalled = 0
        self.wrong: list[str] = []
        self.begin: list[Callable[[], None]] = []  # called before the event loop starts
        self.finish: list[Callable[[], None]] = []  # called after the event loop has ended

    def __call__(
        self,
        function: Callable[[], Awaitable[Any]],
        *,
        clock: trio.abc.Clock | None = None,
        instruments: Sequence[trio.abc.Instrument] = (),
    ) -> Any:
        """Run `function` like `trio.run`, then check the outputs. Raises UnsafeOutputs if they are not safe."""
        __tracebackhide__ = True
        if clock is None and self._virtual:
            clock = trio.testing.MockClock(autojump_threshold=0)
        for begin in self.begin:
            begin()
        try:
            with self._signals():
                return trio.run(self._main, function, clock=clock, instruments=instruments)
        except BaseException as error:
            leaf = _unwrap(error)
            if self.signalled:
                raise KeyboardInterrupt from error
            if isinstance(leaf, TooLong):
                pytest.fail(str(leaf), pytrace=False)
            if leaf is error:
                raise
            raise leaf from leaf.__cause__  # keeps its own traceback, which pytest shows with values
        finally:
            for finish in self.finish:
                finish()
            if self.wrong and not self.signalled:
                raise UnsafeOutputs("outputs are not safe after the test:\n" + "\n".join(self.wrong))

    async def _main(self, function: Callable[[], Awaitable[Any]]) -> Any:
        self._token = trio.lowlevel.current_trio_token()
        try:
            return await function()
        finally:
            self._token = None

    async def watch(self) -> None:
        """Wait for a signal or the time limit, then raise Interrupted or TooLong. Runs as a task during the test."""
        with trio.move_on_after(self._limit or float("inf")):
            await self._interrupt.wait()
            raise Interrupted
        raise TooLong(f"the test took longer than {self._limit:g} s; its stack:\n{_test_stack()}")

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Handle signals: the first stops the test in order, later ones raise KeyboardInterrupt at once."""
        before: dict[signal.Signals, Any] = {}
        try:
            for number in SIGNALS:
                handler = signal.getsignal(number)
                if handler in (signal.SIG_DFL, signal.default_int_handler):
                    before[number] = handler
                    signal.signal(number, self._signal)
        except ValueError:
            pass  # not in the main thread: signals cannot be handled here
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _signal(self, number: int, frame: FrameType | None) -> None:
        self.signalled += 1
        if self.signalled > 1 or self._token is None:
            raise KeyboardInterrupt
        try:
            self._token.run_sync_soon(self._interrupt.set)
        except trio.RunFinishedError:
            raise KeyboardInterrupt from None


def _unwrap(error: BaseException) -> BaseException:
    """Unwrap nested groups of one exception; return a group of several unchanged."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _test_stack() -> str:
    """Return the stack of the task of the test."""
    root = trio.lowlevel.current_root_task()
    todo = [root] if root is not None else []
    while todo:
        task = todo.pop()
        if task.name.startswith(TEST_TASK):
            return "".join(
                f"  {frame.f_code.co_filename}:{line} in {frame.f_code.co_name}\n"
                for frame, line in task.iter_await_frames()
                if "/trio/" not in frame.f_code.co_filename and "pytest_trio" not in frame.f_code.co_filename
            )
        todo += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
    return "  (the test had not started)"
