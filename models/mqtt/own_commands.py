"""Commands of the resources' own (`DoCommand`) from a broker, each answered by a message."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import trio

from engine import BASES, Actuator, ResourceAccess
from models.mqtt.connection import MqttConnection
from models.mqtt.using import used
from schema import API, ErrorKind, MachineError, ResourceName

TOPIC: Final = "do_command"
ANSWER: Final = f"{TOPIC}/answer"
LIMIT_S: Final = 60.0  # for a command
LONGEST: Final = 16_384  # bytes of a command
LONGEST_ANSWER: Final = 262_144  # bytes
MOST_WAITING: Final = 10  # commands of one resource; more are refused

Others = Callable[[API], Mapping[ResourceName, ResourceAccess]]


class OwnCommands:
    """Runs the commands of some resources, those of each resource one after the other.

    `moving` is called with the name of an actuator before its command, because that may move it.
    """

    def __init__(self, names: Sequence[str], others: Others, moving: Callable[[str], None], log: Any) -> None:
        self._others = others
        self._moving = moving
        self._log = log
        self._waiting = {name: trio.open_memory_channel[bytes](MOST_WAITING) for name in names}

    def put(self, name: str, payload: bytes) -> None:
        """Queue a command. MachineError for a resource that has none, and for too large or too many commands."""
        reason = ""
        if name not in self._waiting:
            reason = f"{name!r} is not among `do_commands`"
        elif len(payload) > LONGEST:
            reason = f"the command has {len(payload)} bytes, and {LONGEST} are allowed"
        else:
            try:
                self._waiting[name][0].send_nowait(payload)
            except trio.WouldBlock:
                reason = f"{MOST_WAITING} commands are waiting already"
        if reason:
            raise MachineError(reason, kind=ErrorKind.PRECONDITION)

    async def run(self, connection: MqttConnection, topic: str, failed: Callable[[str, MachineError], None]) -> None:
        """Run commands and publish their answers below `topic` until cancelled; `failed` gets the errors."""

        async def answer(name: str, waiting: trio.MemoryReceiveChannel[bytes]) -> None:
            async for payload in waiting:
                try:
                    text = await self._answer(name, payload)
                except MachineError as error:
                    failed(name, error)
                else:
                    connection.publish(f"{topic}/{name}/{ANSWER}", text, retain=False)

        async with trio.open_nursery() as nursery:
            for name, (_, waiting) in self._waiting.items():
                nursery.start_soon(answer, name, waiting)

    async def _answer(self, name: str, payload: bytes) -> bytes:
        command = _command_of(payload)
        with trio.move_on_after(LIMIT_S) as scope:
            result = await self._result(name, command)
        if scope.cancelled_caught:
            raise MachineError(f"{name} has not answered for {LIMIT_S:g} s", kind=ErrorKind.TIMEOUT)
        answer = {"command": command, "result": dict(result)}
        text = json.dumps(answer, ensure_ascii=False, default=str).encode(errors="replace")
        if len(text) > LONGEST_ANSWER:
            raise MachineError(
                f"the answer has {len(text)} bytes, and {LONGEST_ANSWER} are allowed", kind=ErrorKind.EXHAUSTED
            )
        return text

    async def _result(self, name: str, command: Mapping[str, Any]) -> Mapping[str, Any]:
        async with used(self._find(name), name, self._log) as resource:
            if isinstance(resource, Actuator):
                self._moving(name)
            return await resource.do_command(command)

    def _find(self, name: str) -> ResourceAccess:
        for api in BASES:
            for full, access in self._others(api).items():
                if name == full.short:
                    return access
        raise MachineError(
            f"no resource named {name!r} is ready", kind=ErrorKind.UNAVAILABLE, remedy="check its name and its state"
        )


def _command_of(payload: bytes) -> dict[str, Any]:
    try:
        command = json.loads(payload)
    except (ValueError, RecursionError):
        command = None
    if not isinstance(command, dict):
        raise MachineError(
            "the command is not a JSON object", kind=ErrorKind.INVALID, remedy='send one such as {"reset": true}'
        )
    return command
