"""The server's side of the module protocol: what is asked of a module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import trio
from grpclib.const import Cardinality, Status
from grpclib.exceptions import GRPCError, StreamTerminatedError

from rpc.api.client import ApiClient
from rpc.client import Channel
from rpc.silence import within
from schema.errors import ErrorKind, MachineError
from schema.machine import ResourceEntry
from schema.names import API, Model

SERVICE: Final = "viam.module.v1.ModuleService"
READY_LIMIT: Final = 3.0  # seconds for one answer; reference value
READY_PAUSE: Final = 0.2  # seconds between questions to a module that is not ready; reference value
VALIDATE_LIMIT: Final = 5.0  # seconds; reference value
REMOVE_LIMIT: Final = 20.0  # seconds; reference value
HEALTH: Final = "/grpc.health.v1.Health/Check"  # the standard cheap call; a refusal is an answer, too
_NOT_YET: Final = (ErrorKind.UNAVAILABLE, ErrorKind.EXHAUSTED, ErrorKind.TIMEOUT, ErrorKind.CANCELLED)


@dataclass(frozen=True, slots=True)
class Needs:
    """What a resource of a module depends on, as the module says; or why its configuration is wrong."""

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    error: str = ""
    silent: bool = False  # it did not answer: it is to be asked again


@dataclass(frozen=True, slots=True)
class Offer:
    """What a module says that it offers: models by API, and the protobuf service that speaks for each API."""

    models: frozenset[tuple[API, Model]] = frozenset()
    services: tuple[tuple[API, str], ...] = ()


class ModuleClient:
    """Speaks to one module over `channel`."""

    def __init__(self, channel: Channel, name: str) -> None:
        self.channel = channel
        self.calls = ApiClient(channel)
        self.trouble = ""  # why it was not ready when asked last
        self.building = 0  # questions under way that may keep its process from answering others
        self.built = 0  # how many of them there were
        self._name = name

    async def ready(self, parent: str) -> Offer:
        """Wait until the module says that it is ready; what it offers. Without end: the caller sets the limit."""
        addresses = {"parent_address": parent, "raw_parent_address": parent}
        while True:
            try:
                answer = await within(READY_LIMIT, partial(self._ask, "ready", **addresses))
                if answer["ready"]:
                    return _offer(answer["handlermap"] or {})
                self.trouble = "it says that it is not ready yet"
            except trio.TooSlowError:
                self.trouble = f"no answer within {READY_LIMIT:g} s"
            except MachineError as error:
                self.trouble = error.message
                if error.kind not in _NOT_YET:
                    raise
            await trio.sleep(READY_PAUSE)

    async def probe(self) -> None:
        """Return when the module has answered a cheap call, whatever it says. Without end: as `ready`."""
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
        """Ask about an entry. A module that has no such question has no objection."""
        with self._busy():
            try:
                answer = await within(VALIDATE_LIMIT, partial(self._ask, "validate_config", config=config_of(entry)))
            except trio.TooSlowError:
                return Needs(error=f"it did not answer within {VALIDATE_LIMIT:g} s", silent=True)
            except MachineError as error:
                return Needs() if error.kind is ErrorKind.UNSUPPORTED else Needs(error=error.message)
        return Needs(_known(answer["dependencies"]), _known(answer["optional_dependencies"]))

    async def add(self, entry: ResourceEntry, level: str, dependencies: Iterable[str]) -> None:
        """Have the resource built, to log at `level`. MachineError as the module says."""
        with self._busy():
            config = {**config_of(entry), "log_configuration": {"level": level}}
            await self.calls.call(SERVICE, "", "add_resource", config=config, dependencies=sorted(dependencies))

    async def remove(self, entry: ResourceEntry) -> None:
        """Have the resource closed."""
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
    """An entry as the protocol writes it, without its log level, which depends on more than the entry."""
    return {
        "name": entry.name.name,
        "namespace": entry.name.api.namespace,
        "type": entry.name.api.subtype,
        "api": str(entry.name.api),
        "model": str(entry.model),
        "attributes": dict(entry.attributes),
        "depends_on": list(entry.depends_on),
        "service_configs": [{"type": one.type, "attributes": one.attributes} for one in entry.service_configs],
    }


def _offer(handlermap: Mapping[str, Any]) -> Offer:
    """What a handler map says. MachineError (INVALID) for one that says nothing sensible."""
    models: set[tuple[API, Model]] = set()
    services: dict[API, str] = {}
    for handler in handlermap.get("handlers", ()):
        subtype = handler["subtype"] or {}
        api = API.parse((subtype.get("subtype") or "").partition("/")[0])
        services[api] = subtype.get("proto_service", "")
        models.update((api, Model.parse(model)) for model in handler["models"])
    return Offer(frozenset(models), tuple(services.items()))


def _known(names: Iterable[str]) -> tuple[str, ...]:
    """Without the frame system, which is no resource here."""
    return tuple(name for name in names if name.lstrip("$") != "framesystem")
