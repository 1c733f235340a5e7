"""Interface to the objects that answer calls, and the description of a call."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from schema import API


@dataclass(slots=True)
class CallInfo:
    """Description of one call. The target may modify only `reply_metadata`."""

    api: API | None  # None for a machine-wide service
    name: str  # name of the resource with remote prefixes; "" for a machine-wide service
    method: str  # name of the Python method, such as set_power
    rpc: str  # path of the RPC, such as /viam.component.motor.v1.MotorService/SetPower
    monitored: bool  # moves something and is bound to the caller's session
    streaming: bool  # in at least one direction
    metadata: Mapping[str, Any]  # a MultiDict
    identity: Any = None  # rpc.carrier.Identity of the caller, or None
    peer: Any = None  # rpc.carrier.Peer
    reply_metadata: dict[str, str] = field(default_factory=dict)  # sent as initial metadata
    arguments: Mapping[str, Any] | None = None  # of the method, including a stream of requests
    call: Any = None  # rpc.server_call.ServerCall, for observers of its bytes, status and end


class CallTarget(Protocol):
    """Provider of the object for a call and of its context: operations, sessions, limits and driver lifetime."""

    def call(self, request: CallInfo) -> AbstractAsyncContextManager[Any]:
        """Return a context manager for one call, which yields the object whose method is called.

        Raises MachineError if there is none. A target may also have `async def offload(stream, path, message_or_result,
        function)`, which runs `function` on the event loop or in a thread and returns its result; `function` converts a
        request, or the result of a unary call.
        """
        ...
