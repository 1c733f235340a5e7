"""The module watchdog: a module is not ended because this process was suspended."""

from __future__ import annotations

from typing import cast

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from runtime.parts.modules.client import ModuleClient
from runtime.parts.modules.watchdog import watch_answers
from schema.document.modules import Module
from schema.errors import MachineError

LIMIT = 30.0


class Client:
    """Answer when the test sets `answer`."""

    building = built = 0

    def __init__(self) -> None:
        self.asked = 0
        self.answer = trio.Event()

    async def probe(self) -> None:
        self.asked += 1
        self.answer = trio.Event()
        await self.answer.wait()


async def test_a_process_that_stood_still_asks_again_before_it_ends_a_module(
    mock_clock: MockClock, nursery: trio.Nursery
) -> None:
    client = Client()
    ended: list[MachineError] = []

    async def watch() -> None:
        module = Module(name="demo", executable_path="x", watchdog=LIMIT)
        try:
            await watch_answers(cast(ModuleClient, client), module, 0.0)
        except MachineError as error:
            ended.append(error)

    nursery.start_soon(watch)
    for asked in (1, 2):
        await wait_all_tasks_blocked()
        assert (client.asked, ended) == (asked, [])
        mock_clock.jump(3600)  # suspended while the module's answer is under way
    await wait_all_tasks_blocked()
    assert client.asked == 3
    client.answer.set()
    await wait_all_tasks_blocked()
    mock_clock.jump(10)
    await wait_all_tasks_blocked()
    assert (client.asked, ended) == (4, [])
    mock_clock.jump(LIMIT + 1)  # the process ran during this silence
    await wait_all_tasks_blocked()
    assert "has not answered for 31 s" in str(ended[0])
