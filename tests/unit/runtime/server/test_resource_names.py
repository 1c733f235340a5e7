"""The official Python SDK uses its new connection only if the list of resources has changed."""

from __future__ import annotations

from typing import Any

import pytest

from rpc.api.server.target import CallInfo
from rpc.carrier import Peer
from runtime.server.memory import open_machine
from runtime.server.robot.service import RobotService, permuted

NO_OPERATION: Any = None  # names are read without one


def call(peer: Peer | None) -> CallInfo:
    return CallInfo(None, "", "resource_names", "", False, False, {}, peer=peer)


@pytest.mark.parametrize("count", [0, 1, 2, 5])
async def test_consecutive_connections_have_the_names_in_another_order(count: int) -> None:
    sensors = [{"name": f"s{number}", "api": "rdk:component:sensor", "model": "fake"} for number in range(count)]
    async with open_machine({"components": sensors}) as memory:
        await memory.graph.settled()

        async def names(peer: Peer | None) -> list[Any]:
            return await RobotService(memory.machine, call(peer), NO_OPERATION).resource_names()

        first, second = Peer(), Peer()
        assert await names(first) == await names(first)
        assert (await names(first) != await names(second)) is (count > 1)
        assert {name.name for name in await names(second)} == {f"s{number}" for number in range(count)}
        assert [name.name for name in await names(None)] == [f"s{number}" for number in range(count)]


def test_each_number_names_another_permutation() -> None:
    assert permuted("abcd", 0) == list("abcd")
    assert len({tuple(permuted("abcd", number)) for number in range(24)}) == 24
    assert permuted("abcd", 24) == permuted("abcd", 0)
    assert permuted("", 5) == []
