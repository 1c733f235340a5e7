"""A worker's thread: order, cancellation, closing. A real thread, so real time; the tests wait for events."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from functools import partial

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from schema.errors import ErrorKind
from support import worker as module
from support.worker import HangingCallError, Worker


class Hold:
    """A transaction that runs until it is released."""

    def __init__(self) -> None:
        self.begun = trio.Event()
        self.release = threading.Event()
        self.token = trio.lowlevel.current_trio_token()

    def __call__(self) -> str:
        self.token.run_sync_soon(self.begun.set)
        assert self.release.wait(20)
        return "held"


def threads(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == name]


async def test_a_transaction_runs_in_the_thread_of_the_bus_and_returns_its_result() -> None:
    bus = Worker("i2c-1")
    async with bus.opened():
        assert await bus.run(lambda: threading.current_thread().name) == "i2c-1"
        assert await bus.run(lambda: 42) == 42


async def test_an_exception_is_raised_to_the_caller_and_the_thread_continues() -> None:
    bus = Worker("bus")

    def fail() -> None:
        raise OSError(5, "garbled")

    async with bus.opened():
        with pytest.raises(OSError, match="garbled"):
            await bus.run(fail)
        assert await bus.run(lambda: 1) == 1


async def test_the_arguments_of_a_failed_call_are_freed_without_garbage_collection() -> None:
    class Argument:
        pass

    def fail(argument: Argument) -> None:
        raise ValueError("refused")

    worker = Worker("files")
    argument = Argument()
    alive = weakref.ref(argument)
    gc.disable()
    try:
        async with worker.opened():
            with pytest.raises(ValueError, match="refused"):
                await worker.run(partial(fail, argument))
            del argument
            await worker.run(lambda: None)  # the thread has dropped the earlier call
            assert alive() is None
    finally:
        gc.enable()


async def test_even_an_exit_is_the_callers() -> None:
    bus = Worker("bus")
    async with bus.opened():
        with pytest.raises(SystemExit):
            await bus.run(sys.exit)
        assert await bus.run(lambda: 1) == 1


async def test_transactions_keep_the_order_in_which_they_were_asked_for() -> None:
    bus = Worker("bus")
    done: list[int] = []
    async with bus.opened(), trio.open_nursery() as nursery:
        hold = Hold()
        nursery.start_soon(bus.run, hold)
        await hold.begun.wait()
        for number in range(50):

            def append(number: int = number) -> None:
                done.append(number)

            nursery.start_soon(bus.run, append)
            await wait_all_tasks_blocked()
        assert done == []
        hold.release.set()
    assert done == list(range(50))


async def test_cancelled_before_it_began_it_never_begins() -> None:
    bus = Worker("bus")
    done: list[str] = []
    async with bus.opened(), trio.open_nursery() as nursery:
        hold = Hold()
        nursery.start_soon(bus.run, hold)
        await hold.begun.wait()
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as inner:
                inner.start_soon(bus.run, lambda: done.append("cancelled"))
                await wait_all_tasks_blocked()
                scope.cancel()
        assert scope.cancelled_caught
        hold.release.set()
        await bus.run(lambda: done.append("after"))
    assert done == ["after"]


async def test_a_caller_that_is_already_cancelled_asks_for_nothing() -> None:
    bus = Worker("bus")
    done: list[str] = []
    async with bus.opened():
        with trio.CancelScope() as scope:
            scope.cancel()
            await bus.run(lambda: done.append("cancelled"))
        await bus.run(lambda: done.append("after"))
    assert done == ["after"]


async def test_cancelled_while_it_runs_the_caller_goes_on_and_the_thread_finishes_it() -> None:
    bus = Worker("bus")
    finished = threading.Event()
    hold = Hold()

    def transaction() -> str:
        hold()
        finished.set()
        return "dropped"

    async with bus.opened():
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(bus.run, transaction)
                await hold.begun.wait()
                scope.cancel()
        assert not finished.is_set()  # the caller continues while it still runs
        hold.release.set()
        assert await bus.run(lambda: "next") == "next"
        assert finished.is_set()


async def test_an_error_of_a_dropped_transaction_is_dropped_too() -> None:
    bus = Worker("bus")
    hold = Hold()

    def transaction() -> None:
        hold()
        raise OSError("no caller is left")

    async with bus.opened():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bus.run, transaction)
            await hold.begun.wait()
            nursery.cancel_scope.cancel()
        hold.release.set()
        assert await bus.run(lambda: "next") == "next"


async def test_the_first_user_starts_the_thread_and_the_last_one_ends_it() -> None:
    bus = Worker("counted bus")
    assert threads("counted bus") == []
    async with bus.opened():
        (first,) = threads("counted bus")
        async with bus.opened():
            assert threads("counted bus") == [first]
        assert await bus.run(lambda: 1) == 1
    assert not first.is_alive()
    async with bus.opened():
        assert await bus.run(lambda: 2) == 2
    assert threads("counted bus") == []


async def test_a_bus_that_is_not_open_refuses() -> None:
    bus = Worker("bus")
    with pytest.raises(RuntimeError, match="bus is not open"):
        await bus.run(lambda: 1)
    async with bus.opened():
        pass
    with pytest.raises(RuntimeError, match="bus is not open"):
        await bus.run(lambda: 1)


async def test_closing_under_cancellation_waits_for_the_transaction_in_progress() -> None:
    bus = Worker("closing bus")
    hold = Hold()
    async with trio.open_nursery() as nursery:

        async def use() -> None:
            async with bus.opened():
                await bus.run(hold)

        nursery.start_soon(use)
        await hold.begun.wait()
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await wait_all_tasks_blocked()
        (thread,) = threads("closing bus")
        hold.release.set()
    assert not thread.is_alive()


async def test_a_transaction_that_hangs_in_the_kernel_is_named_when_the_bus_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "CLOSING_LIMIT", 0.05)
    bus = Worker("i2c-7")
    hold = Hold()

    async def use() -> None:
        async with bus.opened(), trio.open_nursery() as nursery:
            nursery.start_soon(bus.run, hold)
            await hold.begun.wait()
            nursery.cancel_scope.cancel()

    with pytest.raises(HangingCallError, match=r"i2c-7: a call has not returned for 0\.05 s") as caught:
        await use()
    assert caught.value.kind is ErrorKind.TIMEOUT
    (stuck,) = threads("i2c-7")
    async with bus.opened():  # a new thread: the stuck one blocks no call
        assert await bus.run(lambda: threading.current_thread()) is not stuck
    hold.release.set()
    await trio.to_thread.run_sync(stuck.join, 10)
    assert not stuck.is_alive()


async def test_a_hanging_bus_does_not_delay_another() -> None:
    stuck, fine = Worker("stuck"), Worker("fine")
    async with stuck.opened(), fine.opened(), trio.open_nursery() as nursery:
        hold = Hold()
        nursery.start_soon(stuck.run, hold)
        await hold.begun.wait()
        for number in range(100):  # more than the slots of the default limiter
            assert await fine.run(lambda number=number: number) == number  # type: ignore[misc]
        assert trio.to_thread.current_default_thread_limiter().borrowed_tokens == 0
        hold.release.set()


async def test_many_callers_with_random_deadlines_lose_nothing() -> None:
    bus = Worker("bus")
    begun: list[int] = []
    returned: list[int] = []
    cancelled: list[int] = []

    def transaction(number: int) -> Callable[[], int]:
        def run() -> int:
            begun.append(number)
            return number

        return run

    async def call(number: int) -> None:
        with trio.move_on_after(number % 7 * 0.0002) as scope:
            assert await bus.run(transaction(number)) == number
            returned.append(number)
        if scope.cancelled_caught:
            cancelled.append(number)

    async with bus.opened(), trio.open_nursery() as nursery:
        for number in range(1000):
            nursery.start_soon(call, number)
    assert sorted(returned + cancelled) == list(range(1000))
    assert cancelled, "the deadlines were meant to cut some of them"
    assert set(returned) <= set(begun)
    assert len(begun) == len(set(begun))


async def test_posted_work_is_done_in_order_before_the_last_user_leaves() -> None:
    bus = Worker("bus")
    done: list[str] = []

    def fail() -> None:
        done.append("failed")
        raise OSError("no caller waits")

    async with bus.opened(), trio.open_nursery() as nursery:
        hold = Hold()
        nursery.start_soon(bus.run, hold)
        await hold.begun.wait()
        bus.post(lambda: done.append("posted"))
        bus.post(fail)
        nursery.start_soon(bus.run, lambda: done.append("asked for later"))
        await wait_all_tasks_blocked()
        bus.post(lambda: done.append("last"))
        assert done == []
        hold.release.set()
    assert done == ["posted", "failed", "asked for later", "last"]
    with pytest.raises(RuntimeError, match="bus is not open"):
        bus.post(fail)


SCRIPT = """
import threading, trio
from support import worker
worker.CLOSING_LIMIT = 0.05

async def main():
    bus = worker.Worker("i2c-9")
    async with bus.opened():
        with trio.move_on_after(0.1):
            await bus.run(threading.Event().wait)

trio.run(main)
"""


def test_a_transaction_that_never_ends_does_not_keep_the_process_alive() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 1
    assert "HangingCallError: i2c-9: a call has not returned" in done.stderr
