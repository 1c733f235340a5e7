"""Messages to systemd while all tasks make progress, and none while one does not."""

from __future__ import annotations

import trio
import trio.testing

from agent.supervise.watchdog import Watchdog
from support.systemd import ServiceManager


class Manager(ServiceManager):
    def __init__(self, watchdog: float) -> None:
        super().__init__("@unused", watchdog)
        self.times: list[float] = []

    async def send(self, **variables: str) -> None:
        assert variables == {"WATCHDOG": "1"}
        self.times.append(trio.current_time())


async def test_messages_come_three_times_in_each_period(autojump_clock: trio.testing.MockClock) -> None:
    manager = Manager(30.0)
    with trio.move_on_after(95):
        await Watchdog(manager).run()
    assert manager.times == [float(number) for number in range(0, 95, 10)]


async def test_a_task_without_progress_ends_the_messages(autojump_clock: trio.testing.MockClock) -> None:
    manager = Manager(30.0)
    watchdog = Watchdog(manager)
    with watchdog.task("config", limit=20.0) as progress, trio.move_on_after(1000):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watchdog.run)
            for _ in range(10):
                await trio.sleep(15)
                progress.made()
            with progress.waiting():  # for an event, however late it comes
                await trio.sleep(500)
            await trio.sleep_forever()
    assert manager.times[-1] == 670.0  # 650 s, and the limit of the task


async def test_a_task_that_has_ended_is_not_watched(autojump_clock: trio.testing.MockClock) -> None:
    manager = Manager(30.0)
    watchdog = Watchdog(manager)
    with watchdog.task("config", limit=1.0):
        pass
    with trio.move_on_after(60.5):
        await watchdog.run()
    assert manager.times[-1] == 60.0


async def test_without_a_watchdog_nothing_is_sent() -> None:
    manager = Manager(0.0)
    await Watchdog(manager).run()
    assert manager.times == []
