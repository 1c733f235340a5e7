"""Modules in memory, without processes, sockets or files: for tests, also in virtual time."""

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

from engine import Sensor
from rpc import Router, ServerCore
from rpc.api import CallInfo, serve_api, serve_service
from rpc.client import Channel
from rpc.http2 import serve_http2
from runtime.parts.modules.client import SERVICE
from runtime.parts.modules.limits import ProcessUsage
from runtime.parts.modules.process import CHANNEL, STOP_GRACE
from runtime.programs.command import Program
from runtime.programs.output import Output
from runtime.sdk.service import ReadyResponse, ValidateConfigResponse
from schema import ErrorKind, MachineError
from schema.document import Module, ModuleLimits

PARENT: Final = "/memory/parent.sock"
KILL: Final = 9  # the number of SIGKILL, which Windows does not have


@dataclass(slots=True)
class Behaviour:
    """Behavior of one run of a module. Times are in seconds."""

    models: tuple[str, ...] = ("acme:memory:sensor",)  # of the API sensor
    start_after: float = 0.0  # time until it listens
    ready: bool = True  # whether it ever reports that it is ready
    add_takes: float = 0.0  # time to build a resource
    exit_after: float = inf  # time until it ends by itself
    memory: int = 0  # bytes that it uses
    refuses: frozenset[str] = field(default_factory=frozenset)  # names of resources that it refuses to build


class MemoryProcess:
    """One run of a module in memory, with `end`, `freeze` and `thaw` to simulate signals.

    `built` contains the names of its resources, `levels` the log level of each.
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

    # ---- the protocol Running

    def follow(self, nursery: trio.Nursery, output: Output) -> None:
        """Do nothing: there is no output."""

    async def wait(self) -> int:
        """Wait for its end; return the exit status, or the negative number of the signal that ended it."""
        await self._ended.wait()
        return self._status

    async def appeared(self) -> None:
        """Wait until its address exists, so that it can be dialed."""
        await self._listens.wait()

    async def usage(self) -> ProcessUsage:
        """Return its current usage, including its descendants."""
        await trio.lowlevel.checkpoint()
        return ProcessUsage(self.behaviour.memory, 1)

    async def kill(self) -> None:
        """Kill it and its descendants with SIGKILL."""
        await trio.lowlevel.checkpoint()
        self.end(-KILL)

    # ---- simulated signals

    @property
    def frozen(self) -> bool:
        """Whether it is stopped, as after SIGSTOP."""
        return not self.awake.is_set()

    def freeze(self) -> None:
        """Stop it, as with SIGSTOP."""
        self.awake = trio.Event()

    def thaw(self) -> None:
        """Continue it, as with SIGCONT."""
        self.awake.set()

    def end(self, status: int) -> None:
        """End it with `status`, and close its connections. No effect if it has ended already."""
        if not self._ended.is_set():
            self._status = status
            self._ended.set()
            self._nursery.cancel_scope.cancel()

    async def run(self) -> None:
        """Listen and end as its behavior says."""
        await trio.sleep(self.behaviour.start_after)
        self._listens.set()
        await trio.sleep(self.behaviour.exit_after)
        self.end(1)

    # ---- the module's server

    async def dial(self) -> trio.abc.Stream:
        """Return a connection to it. Raises ConnectionRefusedError if it does not listen."""
        if not self._listens.is_set() or self._ended.is_set():
            raise ConnectionRefusedError("no module listens at this address")
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
        """Return a context manager for one call, which yields the object whose method is called."""
        if request.api is None:
            yield _Service(self)
        elif request.name in self.built:
            yield _Readings(self.pid)
        else:
            raise MachineError(f"no sensor {request.name!r}", kind=ErrorKind.NOT_FOUND)


class MemoryProcesses:
    """Runs modules in memory. `behave` returns the behavior of the next run by the module's name."""

    def __init__(self, behave: Callable[[str], Behaviour]) -> None:
        self.running: dict[str, MemoryProcess] = {}  # by address
        self.starts = 0
        self._behave = behave

    @asynccontextmanager
    async def parent(self, router: Router, *, tcp: bool) -> AsyncIterator[str]:
        """Yield a fixed address, at which nothing is served. See Processes.parent."""
        yield "127.0.0.1:1" if tcp else PARENT

    async def prepare(self, module: Module, path: str) -> Program:
        """Return the program of a module, after unpacking if necessary."""
        return Program(Path("/memory") / module.name, Path("/memory"))

    async def first_run(self, module: Module, program: Program, environment: Mapping[str, str]) -> None:
        """Do nothing. See Processes.first_run."""

    def address(self, module: Module, parent: str, *, tcp: bool) -> str:
        """Return the address at which the next process of a module is to listen; `parent` is the parent's address."""
        self.starts += 1
        return f"/memory/{module.name}-{self.starts}.sock"

    @asynccontextmanager
    async def start(
        self, command: Sequence[str], address: str, environment: Mapping[str, str], kept: ModuleLimits
    ) -> AsyncIterator[MemoryProcess]:
        """Run a module while the context is open; then wait up to STOP_GRACE seconds if it is frozen, and end it.

        See Processes.start.
        """
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
        """Return a channel to a module's address."""

        async def connect() -> trio.abc.Stream:
            process = self.running.get(address)
            if process is None:
                raise ConnectionRefusedError("no module listens at this address")
            return await process.dial()

        return Channel(f"unix:{address}", connect=connect, limits=CHANNEL)


async def _own_nursery(*, task_status: trio.TaskStatus[trio.Nursery]) -> None:
    """Start a nursery whose cancellation affects nothing else."""
    async with trio.open_nursery() as nursery:
        task_status.started(nursery)
        await trio.sleep_forever()


class _Freezing(trio.abc.Stream):
    """A stream that transfers nothing while its process is frozen."""

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
    """The module's side of the protocol, with a method for each RPC."""

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
