"""Carries out calls: who may call, the request, the component, its session, and the reply."""

from micro.engine.robot import Caller, Robot
from micro.wire import protobuf
from micro.wire.faults import INVALID, UNAVAILABLE, UNIMPLEMENTED, CallFailure
from micro.wire.messages import SERVICES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from micro.engine.machine import Machine


class Calls:
    """The calls of a machine."""

    def __init__(self, machine: "Machine") -> None:
        self.machine = machine
        self._robot = Robot(machine)

    def call(self, headers: "dict[bytes, bytes]", body: "bytes | bytearray", owner: "str | None" = None) -> "Any":
        """Carry out a call, and return the encoded reply, or a coroutine that returns it if the call takes time.

        `owner` is the caller, if the connection has said who that is. Raises CallFailure, as the coroutine does.
        """
        service, _, name = str(headers.get(b":path", b""), "utf-8")[1:].partition("/")
        for title, api, calls in SERVICES:
            if title == service:
                for call in calls:
                    if call[0] == name:
                        return self._call(api, call, headers, body, owner)
        raise CallFailure(UNIMPLEMENTED, f"this server does not have {service}.{name}")

    def _call(
        self,
        api: str,
        call: "tuple[str, str, int, int, bool]",
        headers: "dict[bytes, bytes]",
        body: "bytes | bytearray",
        owner: "str | None",
    ) -> "Any":
        name, method, request_number, reply_number, moves = call
        if owner is None and method != "authenticate":
            owner = self.machine.access.caller(headers.get(b"authorization", b""))
        request = protobuf.decode(request_number, body)
        if not api:
            reply = getattr(self._robot, method)(request, Caller(owner or "", headers))
            if hasattr(reply, "send"):
                return self._finish(name, "the machine", reply, reply_number)
            return protobuf.encode(reply_number, reply)
        key = (api, request.get("name") or request.get("board_name") or "")
        resource = self.machine.find(key)
        handler = getattr(resource, method, None)
        if handler is None:
            raise CallFailure(UNIMPLEMENTED, f"{key[1]} does not have {name}")
        if moves:
            sid = headers.get(b"viam-sid", b"")
            session = self.machine.sessions.find(str(sid, "utf-8"), owner or "") if sid else None
            self.machine.sessions.moved(key, session, self.machine.port.now())
        try:
            reply = handler(request)
        except (OSError, ValueError) as error:
            raise _failure(key[1], error) from None
        if hasattr(reply, "send"):
            return self._finish(f"{api}.{name}", key[1], reply, reply_number)
        return protobuf.encode(reply_number, reply)

    async def _finish(self, method: str, name: str, reply: "Any", number: int) -> bytearray:
        port, running = self.machine.port, self.machine.running
        operation = port.random(16).hex()
        running[operation] = (method, port.unix())
        try:
            return protobuf.encode(number, await reply)
        except (OSError, ValueError) as error:
            raise _failure(name, error) from None
        finally:
            del running[operation]


def _failure(name: str, error: Exception) -> CallFailure:
    if isinstance(error, OSError):
        return CallFailure(UNAVAILABLE, f"{name}: the hardware does not answer: {error}")
    return CallFailure(INVALID, f"{name}: {error}")
