"""GetOperations shows the arguments of a call without secrets, long values or streams."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from engine.components.generic import Generic
from engine.registry import Registry
from runtime.server.memory import open_machine
from runtime.server.robot.arguments import ITEMS, TEXT, shown_arguments
from schema.names import Model

ROBOT = "viam.robot.v1.RobotService"


class Slow(Generic):
    async def do_command(self, command: Any) -> Any:
        await trio.sleep_forever()


async def test_arguments_of_a_call_in_progress(autojump_clock: MockClock) -> None:
    registry = Registry({})
    registry.add(Slow.API, Model.parse("rdk:builtin:slow"), Slow)
    document = {"components": [{"name": "g", "api": "rdk:component:generic", "model": "slow"}]}
    async with open_machine(document, registry=registry) as memory, trio.open_nursery() as nursery:
        await memory.machine.lifecycle.running.wait()

        async def call() -> None:
            command = {"go": 1, "password": "hunter2"}
            await memory.client().call("rdk:component:generic", "g", "do_command", command=command)

        nursery.start_soon(call)
        await wait_all_tasks_blocked()
        (operation,) = await memory.client().call(ROBOT, "", "get_operations")
        assert operation["method"].endswith("/DoCommand")
        assert operation["arguments"]["command"]["go"] == 1
        assert "hunter2" not in str(operation)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"power_pct": 0.5, "extra": None}, {"power_pct": 0.5}),
        ({"data": b"x"}, {"data": "eA=="}),
        ({"text": "x" * (TEXT + 1)}, {"text": f"{'x' * TEXT}… ({TEXT + 1} characters)"}),
        ({"many": list(range(100))}, {"many": [*range(ITEMS), "... (100 in all)"]}),
        ({"many": {str(n): n for n in range(99)}}, {"many": {**{str(n): n for n in range(ITEMS)}, "...": "99 in all"}}),
        ({"items": aiter(trio.open_memory_channel[int](0)[1]), "n": 1}, {"n": 1}),
    ],
)
def test_shown_operations(value: dict[str, Any], shown: dict[str, Any]) -> None:
    assert shown_arguments(value) == shown
