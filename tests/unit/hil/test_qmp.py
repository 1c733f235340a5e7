"""The rig's client of QEMU's monitor."""

from __future__ import annotations

import json

import pytest
import trio
from trio.testing import memory_stream_pair, wait_all_tasks_blocked

from tests.hil.rig.qmp import Qmp, QmpError


async def test_the_answer_of_a_cancelled_command_is_dropped() -> None:
    mine, its = memory_stream_pair()
    qmp = Qmp(mine)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(qmp.receive)
        with trio.CancelScope() as first:
            async with trio.open_nursery() as asking:
                asking.start_soon(qmp, "device_add")
                await wait_all_tasks_blocked()
                first.cancel()
        requests = [json.loads(await its.receive_some())]

        async def answer() -> None:
            requests.append(json.loads(await its.receive_some()))
            for request in requests:
                said = {"return": request["execute"], "id": request["id"]}
                await its.send_all(json.dumps(said).encode() + b"\n")

        nursery.start_soon(answer)
        assert await qmp("device_del") == "device_del"
        assert [request["execute"] for request in requests] == ["device_add", "device_del"]
        nursery.cancel_scope.cancel()


async def test_a_refusal_is_the_askers() -> None:
    mine, its = memory_stream_pair()
    qmp = Qmp(mine)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(qmp.receive)

        async def refuse() -> None:
            request = json.loads(await its.receive_some())
            said = {"error": {"desc": "no such port"}, "id": request["id"]}
            await its.send_all(b'{"event": "RESUME"}\n' + json.dumps(said).encode() + b"\n")

        nursery.start_soon(refuse)
        with pytest.raises(QmpError, match="device_add: no such port"):
            await qmp("device_add")
        await qmp.wait_event("RESUME")
        nursery.cancel_scope.cancel()
