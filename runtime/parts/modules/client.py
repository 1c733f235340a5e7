"""The server's side of the module protocol: calls to a module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import trio
from grpclib.const import Cardinality, Status
from grpclib.exceptions import GRPCError, StreamTerminatedError

from rpc import within
from rpc.api import ApiClient
from rpc.client import Channel
from schema import API, ErrorKind, MachineError, Model
from schema.document import ResourceEntry

SERVICE: Final = "viam.module.v1.ModuleService"
READY_LIMIT: Final = 3.0  # seconds for one answer; reference value
READY_PAUSE: Final = 0.2  # seconds between calls to a module that is not ready; reference value
VALIDATE_LIMIT: Final = 5.0  # seconds; reference value
REMOVE_LIMIT: Final = 20.0  # seconds; reference value
HEALTH: Final = "/grpc.health.v1.Health/Check"  # the standard cheap call; an error status is an answer, too
_NOT_YET: Final = (ErrorKind.UNAVAILABLE, ErrorKind.EXHAUSTED, ErrorKind.TIMEOUT, ErrorKind.CANCELLED)


@dataclass(frozen=True, slots=True)
class Needs:
    """The dependencies that a module reports for a resource, or the error in the resource's configuration."""

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    error: str = ""
    silent: bool = False  # the module did not answer: repeat the call


@dataclass(frozen=True, slots=True)
class Offer:
    """The models that a module offers, with their APIs, and the protobuf service of each API."""

    models: frozenset[tuple[API, Model]] = frozenset()
    services: tuple[tuple[API, str], ...] = ()


class ModuleClient:
    """Calls one module over `channel`."""

    def __init__(self, channel: Channel, name: str) -> None:
        self.channel = channel
        self.calls = ApiClient(channel)
        self.not_ready_reason = ""  # why the module was not ready at the last call
        self.building = 0  # calls in progress that may keep the process from answering others
        self.built = 0  # total number of such calls
        self._name = name

    async def ready(self, parent: str) -> Offer:
        """Wait until the module reports that it is ready, and return what it offers.

        Has no time limit; the caller sets it.
        """
        addresses = {"parent_address": parent, "raw_parent_address": parent}
        while True:
            try:
                answer = await within(READY_LIMIT, partial(self._ask, "ready", **addresses))
                if answer["ready"]:
                    return _offer(answer["handlermap"] or {})
                self.not_ready_reason = "it reports that it is not ready yet"
            except trio.TooSlowError:
                self.not_ready_reason = f"no answer within {READY_LIMIT:g} s"
            except MachineError as error:
                self.not_ready_reason = error.message
                if error.kind not in _NOT_YET:
                    raise
            await trio.sleep(READY_PAUSE)

    async def probe(self) -> None:
        """Return when the module has answered a health check with any result.

        Has no time limit; the caller sets it.
        """
        while True:
            try:
                async with self.channel.request(HEALTH, Cardinality.UNARY_UNARY, _Empty, _Empty) as call:
                    await call.send_message(_Empty(), end=True)
                    await call.recv_message()
                return
            except GRPCError as error:
                if error.status is not Status.UNAVAILABLE:
                    return
            except (StreamTerminatedError, OSError):
                pass
            await trio.sleep(READY_PAUSE)

    async def validate(self, entry: ResourceEntry) -> Needs:
        """Let the module validate an entry. A module that does not implement validation accepts every entry."""
        with self._busy():
            try:
                answer = await within(VALIDATE_LIMIT, partial(self._ask, "validate_config", config=config_of(entry)))
            except trio.TooSlowError:
                return Needs(error=f"it did not answer within {VALIDATE_LIMIT:g} s", silent=True)
            except MachineError as error:
                return Needs() if error.kind is ErrorKind.UNSUPPORTED else Needs(error=error.message)
        return Needs(
            _without_frame_system(answer["dependencies"]), _without_frame_system(answer["optional_dependencies"])
        )

    async def add(self, entry: ResourceEntry, level: str, dependencies: Iterable[str]) -> None:
        """Let the module build the resource with log level `level`. Raises MachineError if the module refuses."""
        with self._busy():
            config = {**config_of(entry), "log_configuration": {"level": level}}
            await self.calls.call(SERVICE, "", "add_resource", config=config, dependencies=sorted(dependencies))

    async def remove(self, entry: ResourceEntry) -> None:
        """Let the module close the resource."""
        await self.calls.call(SERVICE, "", "remove_resource", name=str(entry.name))

    async def _ask(self, method: str, /, **arguments: Any) -> Any:
        return await self.calls.call(SERVICE, "", method, **arguments)

    @contextmanager
    def _busy(self) -> Iterator[None]:
        self.building += 1
        self.built += 1
        try:
            yield
        finally:
            self.building -= 1


class _Empty:
    """A message without content."""

    def SerializeToString(self) -> bytes:
        return b""

    @classmethod
    def FromString(cls, data: bytes) -> _Empty:
        return cls()


def config_of(entry: ResourceEntry) -> dict[str, Any]:
    """Return an entry in the form of the protocol, without the log level, which depends on more than the entry."""
    return {
        "name": entry.name.name,
        "namespace": entry.name.api.namespace,
        "type": entry.name.api.subtype,
        "api": str(entry.name.api),
        "model": str(entry.model),
        "attributes": dict(entry.attributes),
        "depends_on": list(entry.depends_on),
        "service_configs": [{"type": config.type, "attributes": config.attributes} for config in entry.service_configs],
    }


def _offer(handlermap: Mapping[str, Any]) -> Offer:
    """Convert a handler map. Raises MachineError (INVALID) if it is malformed."""
    models: set[tuple[API, Model]] = set()
    services: dict[API, str] = {}
    for handler in handlermap.get("handlers", ()):
        subtype = handler["subtype"] or {}
        api = API.parse((subtype.get("subtype") or "").partition("/")[0])
        services[api] = subtype.get("proto_service", "")
        models.update((api, Model.parse(model)) for model in handler["models"])
    return Offer(frozenset(models), tuple(services.items()))


def _without_frame_system(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names without the frame system, which is not a resource in this implementation."""
    return tuple(name for name in names if name.lstrip("$") != "framesystem")
