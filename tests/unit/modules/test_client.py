"""Questions to a module: their limits do not count time in which this process stood still."""

from __future__ import annotations

from typing import Any, cast

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rpc.client import Channel
from runtime.modules.client import ModuleClient, Needs
from schema.names import API, Model, ResourceName
from schema.resources import ResourceEntry


class Calls:
    """Calls whose answers arrive when the test says so."""

    def __init__(self) -> None:
        self.asked = 0
        self.answer = trio.Event()

    async def call(self, *names: str, **arguments: Any) -> Any:
        self.asked += 1
        await self.answer.wait()
        await trio.lowlevel.checkpoint()
        return {"ready": True, "handlermap": None, "dependencies": ["arm"], "optional_dependencies": []}


async def test_answers_that_came_while_this_process_was_stopped_count(
    mock_clock: MockClock, nursery: trio.Nursery
) -> None:
    client, calls = ModuleClient(cast(Channel, None), "demo"), Calls()
    client.calls = cast(Any, calls)
    sensor = API("rdk", "component", "sensor")
    entry = ResourceEntry(ResourceName(sensor, "one"), Model.parse("acme:demo:one"))
    found: list[Needs] = []

    async def validate() -> None:
        found.append(await client.validate(entry))

    nursery.start_soon(validate)
    nursery.start_soon(client.ready, "parent")
    await wait_all_tasks_blocked()
    calls.answer.set()
    mock_clock.jump(60)
    await wait_all_tasks_blocked()
    assert found == [Needs(required=("arm",))]
    assert (calls.asked, client.trouble) == (2, "")
