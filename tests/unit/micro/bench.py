"""A machine without a network, on Trio's clock."""

from __future__ import annotations

import hashlib
from typing import Any

import trio

from micro.engine.calls import Calls
from micro.engine.machine import Machine
from micro.hosts.fake import FakePort
from micro.wire import protobuf
from micro.wire.messages import SERVICES

CALLS = {
    (api or service.rpartition(".")[2], name): (f"/{service}/{name}", request, reply)
    for service, api, calls in SERVICES
    for name, _, request, reply, _ in calls
}


class TrioPort(FakePort):
    """Pins that are values, and the clock of the test."""

    def __init__(self) -> None:
        super().__init__()
        self.restarts = 0
        self.count = 0

    def now(self) -> int:
        return int(trio.current_time() * 1000) + 1

    def unix(self) -> tuple[int, int]:
        return 1_800_000_000 + int(trio.current_time()), 0

    async def sleep(self, ms: int) -> None:
        await trio.sleep(ms / 1000)

    def random(self, count: int) -> bytes:
        self.count += 1
        return self.count.to_bytes(count, "big")

    def free(self) -> int:
        return 1 << 20

    def restart(self) -> None:
        self.restarts += 1


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


class MicroBench:
    """A machine whose calls are those of the wire."""

    def __init__(self, *components: dict[str, Any], **sections: Any) -> None:
        self.port = TrioPort()
        self.machine = Machine(self.port, sha256)
        self.calls = Calls(self.machine)
        self.lines: list[str] = []
        self.machine.print = self.lines.append
        self.apply(*components, **sections)

    def apply(self, *components: dict[str, Any], **sections: Any) -> None:
        self.machine.apply({"components": list(components), **sections}, "1")

    async def call(self, api: str, method: str, owner: str | None = None, sid: str = "", **fields: Any) -> Any:
        path, request, reply = CALLS[api, method]
        headers = {b":path": path.encode(), **({b"viam-sid": sid.encode()} if sid else {})}
        answer = self.calls.call(headers, bytes(protobuf.encode(request, fields)), owner)
        if hasattr(answer, "send"):
            answer = await answer
        return protobuf.decode(reply, bytes(answer))

    def states(self) -> dict[str, tuple[int, str]]:
        return {entry.key[1]: (entry.state, entry.reason) for entry in self.machine.entries}

    async def ticking(self) -> None:
        while True:
            await trio.sleep(0.1)
            self.machine.tick()


def component(api: str, name: str, model: str = "fake", **attributes: Any) -> dict[str, Any]:
    return {"name": name, "api": f"rdk:component:{api}", "model": f"rdk:builtin:{model}", "attributes": attributes}


BOARD = component("board", "pins", "esp32")
