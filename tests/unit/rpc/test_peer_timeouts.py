"""Time for which this process stood still does not count as silence of a peer."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from rpc.peer_timeouts import silence, within


async def test_silence_ends_after_exactly_one_window(autojump_clock: MockClock):
    begun = trio.current_time()
    await silence(lambda: begun, lambda: 2.0)
    assert trio.current_time() - begun == pytest.approx(2.0)


async def test_unread_bytes_that_arrived_before_the_deadline_count(nursery: trio.Nursery):
    """The loop is blocked from before the sign of life until after the deadline."""
    near, far = trio.socket.socketpair()
    last = trio.current_time()
    heard = [last]

    async def listen() -> None:
        await far.recv(1)
        await trio.lowlevel.checkpoint()  # a call begins in a later pass of the loop
        heard[0] = trio.current_time()

    nursery.start_soon(listen)
    await trio.testing.wait_all_tasks_blocked()
    await near.send(b"x")
    while trio.current_time() < last + 0.11:  # block the loop for longer than the window
        pass
    begun = trio.current_time()
    await silence(lambda: heard[0], lambda: 0.1)
    assert heard[0] >= begun
    assert trio.current_time() >= heard[0] + 0.1
    near.close()
    far.close()


async def test_a_process_that_stood_still_waits_a_whole_window_again(mock_clock: MockClock, nursery: trio.Nursery):
    begun = trio.current_time()
    done = trio.Event()

    async def watch() -> None:
        await silence(lambda: begun, lambda: 2.0)
        done.set()

    nursery.start_soon(watch)
    await trio.testing.wait_all_tasks_blocked()
    mock_clock.jump(50)
    await trio.testing.wait_all_tasks_blocked()
    assert not done.is_set()
    mock_clock.jump(2.01)
    await trio.testing.wait_all_tasks_blocked()
    assert done.is_set()


async def test_a_process_that_is_always_late_gives_up_at_last(mock_clock: MockClock, nursery: trio.Nursery):
    done = trio.Event()

    async def watch() -> None:
        await silence(lambda: 0.0, lambda: 2.0)
        done.set()

    nursery.start_soon(watch)
    for _ in range(5):
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(10)
    await trio.testing.wait_all_tasks_blocked()
    assert done.is_set()


async def test_work_has_its_whole_limit_though_this_process_stood_still(
    mock_clock: MockClock, nursery: trio.Nursery
) -> None:
    """The process stands still twice: before the first answer is read, and before the second is requested."""
    answers = [trio.Event(), trio.Event()]
    ended: list[str] = []

    async def work() -> str:
        for answer in answers:
            await answer.wait()
            await trio.lowlevel.checkpoint()
        return "done"

    async def run() -> None:
        ended.append(await within(2.0, work))

    nursery.start_soon(run)
    await trio.testing.wait_all_tasks_blocked()
    for answer in answers:
        answer.set()
        mock_clock.jump(50)
        await trio.testing.wait_all_tasks_blocked()
    assert ended == ["done"]


async def test_work_that_takes_too_long_is_cancelled_and_errors_stay_themselves(autojump_clock: MockClock) -> None:
    begun = trio.current_time()
    with pytest.raises(trio.TooSlowError):
        await within(2.0, trio.sleep_forever)
    assert trio.current_time() - begun == pytest.approx(2.0)

    async def fail() -> None:
        raise LookupError("as it is")

    with pytest.raises(LookupError, match="as it is"):
        await within(2.0, fail)
    with trio.move_on_after(1.0) as outer:
        await within(2.0, trio.sleep_forever)
    assert outer.cancelled_caught
