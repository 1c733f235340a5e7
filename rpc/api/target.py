"""Who answers calls, and what it is told about each."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from schema.names import API


@dataclass(slots=True)
class CallInfo:
    """One call before it reaches its driver. Only `reply_metadata` is written to by the target."""

    api: API | None  # None for a machine-wide service
    name: str  # of the resource, with its remote prefixes; "" for a machine-wide service
    method: str  # the Python method: set_power
    rpc: str  # as on the wire: /viam.component.motor.v1.MotorService/SetPower
    monitored: bool  # moves something: bound to the caller's session
    streaming: bool  # in either direction
    metadata: Mapping[str, Any]  # a MultiDict
    identity: Any = None  # rpc.carrier.Identity, if the caller has one
    peer: Any = None  # rpc.carrier.Peer
    reply_metadata: dict[str, str] = field(default_factory=dict)  # sent as initial metadata
    arguments: Mapping[str, Any] | None = None  # of the method; a stream of requests among them
    call: Any = None  # rpc.server_call.ServerCall, for observers: its bytes, its status, and when it has ended


class Target(Protocol):
    """Finds the object that a call is for and brackets the call: operations, sessions, limits, the driver's life."""

    def call(self, request: CallInfo) -> AbstractAsyncContextManager[Any]:
        """Enter for one call; gives the object whose method is to be called. Raises MachineError if there is none.

        A target may also have `async def aside(stream, path, message_or_result, function)`: it carries out `function`,
        which reads the message of a request or writes the result of a unary call, here or in a thread, and returns what
        that does.
        """
        ...
