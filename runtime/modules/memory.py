"""Modules in memory: the protocol without processes, sockets and files. For tests, also in virtual time."""

from __future__ import annotations

import itertools
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Final

import trio
from trio.testing import memory_stream_pair

from rpc.api.adapter import serve_api, serve_service
from rpc.api.target import CallInfo
from rpc.call import Router, ServerCore
from rpc.client import Channel
from rpc.http2_server import serve_http2
from runtime.components.sensor import Sensor
from runtime.module.service import ReadyResponse, ValidateConfigResponse
from runtime.modules.client import SERVICE
from runtime.modules.command import Program
from runtime.modules.limits import Usage
from runtime.modules.output import Output
from runtime.modules.process import CHANNEL, STOP_GRACE
from schema.errors import ErrorKind, MachineError
from schema.modules import Module, ModuleLimits

PARENT: Final = "/memory/parent.sock"


@dataclass(slots=True)
class Behaviour:
    """How one run of a module goes. Times are seconds."""

    models: tuple[str, ...] = ("acme:memory:sensor",)  # of the API sensor
    start_after: float = 0.0  # until it listens
    ready: bool = True  # whether it ever says that it is
    add_takes: float = 0.0  # to build a resource
    exit_after: float = inf  # until it ends by itself
    memory: int = 0  # bytes that it uses
    refuses: frozenset[str] = field(default_factory=frozenset)  # names of resources that it does not build


class MemoryProcess:
    """One run of a module: `built` has the names of its resources, `levels` the log level that each was built with.

    `end` and `freeze` are what happens to processes.
    """

    _ids = itertools.count(1)

    def __init__(self, behaviour: Behaviour, nursery: trio.Nursery) -> None:
        self.pid = next(self._ids)
        self.behaviour = behaviour
        self.built: set[str] = set()
        self.levels: dict[str, str] = {}
        self.connections = 0
        self.awake = trio.Event()
        self.awake.set()
        self._nursery = nursery
        self._listens = trio.Event()
        self._ended = trio.Event()
        self._status = 0
        handlers = {**serve_service(SERVICE, _Service, self), **serve_api(Sensor.API, Sensor, self)}
        self._core = ServerCore(handlers)

    # ---- as Running

    def follow(self, nursery: trio.Nursery, output: Output) -> None:
        """It prints nothing."""

    async def wait(self) -> int:
        """As Running."""
        await self._ended.wait()
        return self._status

    async def appeared(self) -> None:
        """As Running."""
        await self._listens.wait()

    def usage(self) -> Usage:
        """As Running."""
        return Usage(self.behaviour.memory, 1)

    def kill(self) -> None:
        """As Running."""
        self.end(-signal.SIGKILL)

    # ---- what happens to it

    @property
    def frozen(self) -> bool:
        """Whether it was stopped and does not go on."""
        return not self.awake.is_set()

    def freeze(self) -> None:
        """As SIGSTOP."""
        self.awake = trio.Event()

    def thaw(self) -> None:
        """As SIGCONT."""
        self.awake.set()

    def end(self, status: int) -> None:
        """It ends, and its connections with it."""
        if not self._ended.is_set():
            self._status = status
            self._ended.set()
            self._nursery.cancel_scope.cancel()

    async def run(self) -> None:
        """Its life, until it ends by itself."""
        await trio.sleep(self.behaviour.start_after)
        self._listens.set()
        await trio.sleep(self.behaviour.exit_after)
        self.end(1)

    # ---- as a server

    async def dial(self) -> trio.abc.Stream:
        """A connection to it; OSError if nobody listens."""
        if not self._listens.is_set() or self._ended.is_set():
            raise ConnectionRefusedError("nobody listens")
        near, far = memory_stream_pair()
        self._nursery.start_soon(self._serve, far)
        return near

    async def _serve(self, stream: trio.abc.Stream) -> None:
        self.connections += 1
        try:
            await serve_http2(_Freezing(stream, self), self._core)
        finally:
            self.connections -= 1
            await trio.aclose_forcefully(stream)

    @asynccontextmanager
    async def call(self, request: CallInfo) -> AsyncIterator[Any]:
        """As Target."""
        if request.api is None:
            yield _Service(self)
        elif request.name in self.built:
            yield _Readings(self.pid)
        else:
            raise MachineError(f"no sensor {request.name!r}", kind=ErrorKind.NOT_FOUND)


class MemoryProcesses:
    """Runs modules in memory: `behave` says by a module's name how its next run goes; `running` has what runs."""

    def __init__(self, behave: Callable[[str], Behaviour]) -> None:
        self.running: dict[str, MemoryProcess] = {}  # by address
        self.starts = 0
        self._behave = behave

    @asynccontextmanager
    async def parent(self, router: Router, *, tcp: bool) -> AsyncIterator[str]:
        """Nobody calls it."""
        yield "127.0.0.1:1" if tcp else PARENT

    async def prepare(self, module: Module, path: str) -> Program:
        """As Processes."""
        return Program(Path("/memory") / module.name, Path("/memory"))

    async def first_run(self, module: Module, program: Program, environment: Mapping[str, str]) -> None:
        """There is none."""

    def address(self, module: Module, parent: str, *, tcp: bool) -> str:
        """As Processes."""
        self.starts += 1
        return f"/memory/{module.name}-{self.starts}.sock"

    @asynccontextmanager
    async def start(
        self, command: Sequence[str], address: str, environment: Mapping[str, str], kept: ModuleLimits
    ) -> AsyncIterator[MemoryProcess]:
        """As Processes: at the end it is asked to stop, and killed if it is frozen."""
        async with trio.open_nursery() as outer:
            nursery = await outer.start(_own_nursery)
            process = MemoryProcess(self._behave(environment["VIAM_MODULE_NAME"]), nursery)
            self.running[address] = process
            nursery.start_soon(process.run)
            try:
                yield process
            finally:
                with trio.CancelScope(shield=True):
                    with trio.move_on_after(STOP_GRACE):
                        await process.awake.wait()
                    process.end(-signal.SIGTERM)
                del self.running[address]

    def channel(self, address: str) -> Channel:
        """As Processes."""

        async def connect() -> trio.abc.Stream:
            process = self.running.get(address)
            if process is None:
                raise ConnectionRefusedError("nobody listens")
            return await process.dial()

        return Channel(f"unix:{address}", connect=connect, limits=CHANNEL)


async def _own_nursery(*, task_status: trio.TaskStatus[trio.Nursery]) -> None:
    """A nursery whose cancellation ends nothing else."""
    async with trio.open_nursery() as nursery:
        task_status.started(nursery)
        await trio.sleep_forever()


class _Freezing(trio.abc.Stream):
    """A stream of a process: nothing moves while that is frozen."""

    def __init__(self, stream: trio.abc.Stream, process: MemoryProcess) -> None:
        self._stream = stream
        self._process = process

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._process.awake.wait()
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        data = await self._stream.receive_some(max_bytes)
        await self._process.awake.wait()
        return data

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Service:
    """Methods are the RPCs of the module's side."""

    def __init__(self, process: MemoryProcess) -> None:
        self._process = process

    async def ready(self, parent_address: str, raw_parent_address: str, webrtc_offer: str) -> ReadyResponse:
        subtype = {"subtype": Sensor.API, "proto_service": "viam.component.sensor.v1.SensorService"}
        models = list(self._process.behaviour.models)
        return ReadyResponse(self._process.behaviour.ready, {"handlers": [{"subtype": subtype, "models": models}]})

    async def validate_config(self, config: Mapping[str, Any]) -> ValidateConfigResponse:
        return ValidateConfigResponse([], [])

    async def add_resource(self, config: Mapping[str, Any], dependencies: Sequence[str]) -> None:
        await trio.sleep(self._process.behaviour.add_takes)
        if config["name"] in self._process.behaviour.refuses:
            raise MachineError(f"{config['name']} cannot be built", kind=ErrorKind.PRECONDITION)
        self._process.built.add(config["name"])
        self._process.levels[config["name"]] = (config.get("log_configuration") or {}).get("level", "")

    async def remove_resource(self, name: str) -> None:
        self._process.built.discard(name.rpartition("/")[2])
        self._process.levels.pop(name.rpartition("/")[2], None)


class _Readings(Sensor):
    def __init__(self, pid: int) -> None:
        self._pid = pid

    async def get_readings(self, *, extra: Any = None) -> Mapping[str, Any]:
        return {"pid": self._pid}
