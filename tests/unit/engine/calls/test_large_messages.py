"""Large messages and JSON are processed in a thread that exists only while there is such work."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any

import pytest
import trio

from engine.calls.large_messages import LARGE
from engine.components.generic import Generic
from engine.registry import Registry
from rpc.api import gateway
from rpc.api.convert import values
from runtime.server.memory import open_machine
from runtime.server.port.serving import Listening
from schema.document.network import Network
from schema.names import Model

MODEL = "test:large:echo"
DOCUMENT = {"components": [{"name": "g", "api": "rdk:component:generic", "model": MODEL}]}


class Echo(Generic):
    async def do_command(self, command: Mapping[str, Any], *, timeout: float | None = None) -> Mapping[str, Any]:
        return {"count": len(command["x"])}


@pytest.fixture
def registry() -> Registry:
    result = Registry({})
    result.add(Generic.API, Model.parse(MODEL), Echo)
    return result


def noted_threads(monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, str]]:
    """Record which functions read values or process JSON, and in which threads."""
    seen: set[tuple[str, str]] = set()
    for module, name in ((values, "read_fields"), (gateway, "_request"), (gateway, "_reply_json")):
        original = getattr(module, name)

        def noted(*value: Any, name: str = name, original: Any = original) -> Any:
            seen.add((name, threading.current_thread().name))
            return original(*value)

        monkeypatch.setattr(module, name, noted)
    return seen


@pytest.mark.parametrize(("count", "in_thread"), [(10, False), (LARGE // 8, True)])
async def test_a_large_request_is_read_in_a_thread(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, *, count: int, in_thread: bool
) -> None:
    seen = noted_threads(monkeypatch)
    async with open_machine(DOCUMENT, registry=registry) as memory:
        await memory.graph.settled()
        answer = await memory.client().call("rdk:component:generic", "g", "do_command", command={"x": [1] * count})
    assert answer == {"count": count}
    assert (("read_fields", "large messages") in seen) == in_thread


@pytest.mark.parametrize(("count", "in_thread"), [(10, False), (LARGE // 3 + 1000, True)])
async def test_long_json_is_read_and_written_in_a_thread(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, *, count: int, in_thread: bool
) -> None:
    seen = noted_threads(monkeypatch)
    async with open_machine(DOCUMENT, registry=registry) as memory, trio.open_nursery() as nursery:
        await memory.graph.settled()
        listening = Listening(memory.serving, Network(), "127.0.0.1:0", None)
        (address,) = await nursery.start(lambda task_status: listening({}, task_status=task_status))
        body = json.dumps({"command": {"x": [1] * count}}).encode()
        head = (
            f"POST /viam/api/v1/component/generic/g/do_command HTTP/1.1\r\nhost: {address}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        with trio.fail_after(30):
            async with await trio.open_tcp_stream("127.0.0.1", int(address.rpartition(":")[2])) as stream:
                await stream.send_all(head.encode() + body)
                answer = b"".join([data async for data in stream])
        nursery.cancel_scope.cancel()
    assert json.loads(answer.partition(b"\r\n\r\n")[2]) == {"result": {"count": count}}
    where = "large messages" if in_thread else threading.current_thread().name
    assert {("_request", where), ("read_fields", where)} <= seen
    assert ("_reply_json", threading.current_thread().name) in seen  # the reply is small
    assert "large messages" not in {item.name for item in threading.enumerate()}
