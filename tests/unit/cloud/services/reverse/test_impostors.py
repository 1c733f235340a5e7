"""A client that knows the secret of a location must not answer other clients as the machine."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing
from grpclib.const import Status
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request

from cloud.server.memory import MemoryCloud
from cloud.services.reverse.opening import message_of
from cloud.work import reverse
from rpc.access.credential_types import LOCATION_SECRET
from tests.unit.cloud.services.reverse.site import site
from tests.unit.rpc.test_calls import refused


async def test_it_gets_no_requests_and_serves_no_calls(
    cloud: MemoryCloud, part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reverse, "WAIT", 0.3)
    location = await cloud.app("create_location_secret", location_id=cloud.first.location)
    async with site(cloud, tmp_path) as opened, opened.caller(part) as stub:
        impostor = await opened.impostor(part, location["secrets"][0]["secret"], LOCATION_SECRET)
        requested: list[object] = []
        impostor.source.answer_calls(requested.append)
        assert (await refused(stub.Echo(Request(host="x")))).status is Status.UNAVAILABLE
        assert requested == []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(refused, stub.Echo(Request(host="x")))
            while not (awaited := opened.cloud.cloud.reverses.awaited(part)):
                await trio.testing.wait_all_tasks_blocked(0.01)
            impostor.calls.requested(message_of(awaited[0], ""))  # as if it had seen the request
        assert impostor.callers == []
