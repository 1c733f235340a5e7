"""What a driver author builds on: a resource, its attributes and what it is given.

A driver is a class derived from one of the bases in `runtime.components` or `runtime.services`. It is constructed from
a Context, then `run` is called in a nursery of its own; it is ready once `task_status.started()` was called; it is
stopped by cancelling `run`, whose `finally` is its cleanup. While it cleans up, everything it depends on is still
alive, and no method call is running any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

import structlog
import trio

from hal.ports.hardware import Hardware
from hal.sim import World
from schema.attributes import Attributes as Attributes
from schema.errors import ErrorKind, MachineError
from schema.geometry import Geometry
from schema.names import API, Model, ResourceName

Value: TypeAlias = "bool | int | float | str | bytes | list[Value] | dict[str, Value] | None"
"""What a reading, a command or an `extra` holds: JSON plus bytes (base64 on the wire)."""

Extra: TypeAlias = Mapping[str, Any] | None
"""Optional additional arguments of a call; their meaning is the driver's."""

Started: TypeAlias = trio.TaskStatus[None]


class Unsupported(MachineError):
    """This driver cannot do what was asked; clients see UNIMPLEMENTED."""

    kind = ErrorKind.UNSUPPORTED


class Door(Protocol):
    """The way to a resource that is no dependency and may stop at any time."""

    def use(self) -> AbstractAsyncContextManager[Resource]:
        """Bracket its use. Raises MachineError (UNAVAILABLE) when it is not ready or stops meanwhile."""
        ...


Others: TypeAlias = Callable[[API], Mapping[ResourceName, Door]]
"""The resources of an API that are ready now, those of remotes included."""


def no_others(api: API) -> Mapping[ResourceName, Door]:
    """No resources: for one that runs outside a machine."""
    return {}


@dataclass(frozen=True, slots=True)
class Context:
    """What a resource is given when it is constructed."""

    name: ResourceName
    attributes: Any  # an instance of the class's Config
    dependencies: Mapping[ResourceName, Resource]
    world: World  # the simulated bench of this machine, for models that live on it
    hardware: Hardware  # what this machine's drivers open: pins, buses, ports
    log: structlog.stdlib.BoundLogger
    others: Others = no_others


ResourceT = TypeVar("ResourceT", bound="Resource")


class Resource:
    """Base of every component and service.

    Methods are coroutines and may be cancelled at any checkpoint: by the caller's deadline, by a vanished connection,
    by CancelOperation and before the resource stops. Raise MachineError (or a subclass) for errors a client should
    read.
    """

    API: ClassVar[API]
    Config: ClassVar[type[Attributes]] = Attributes
    NEEDS_TRUST: ClassVar[bool] = False  # runs programs that the configuration names; refused with -untrusted-env
    MODEL: ClassVar[Model | None] = None  # set by `model`; built-ins are named in a table instead

    def __init__(self, context: Context) -> None:
        self.name = context.name
        self.attributes = context.attributes
        self.dependencies = context.dependencies
        self.world = context.world
        self.hardware = context.hardware
        self.log = context.log
        self.others = context.others

    async def run(self, *, task_status: Started) -> None:
        """Live. Call `task_status.started()` when ready; clean up in `finally`. Returning early counts as a failure."""
        task_status.started()
        await trio.sleep_forever()

    def dependency(self, base: type[ResourceT], name: str) -> ResourceT:
        """The dependency called `name` (simple or full), checked to be a `base`; raises MachineError otherwise.

        `left` is also `pi:left` of the remote `pi` unless there is a `left`.
        """
        found = {full: resource for full, resource in self.dependencies.items() if isinstance(resource, base)}
        for full, resource in found.items():
            if name in (full.short, str(full)):
                return resource
        for full, resource in found.items():
            if name in (full.name, f"{full.api}/{full.name}"):
                return resource
        raise MachineError(
            f"{self.name}: no {base.API.subtype} named {name!r} among its dependencies",
            kind=ErrorKind.PRECONDITION,
            remedy=f"configure a {base.API.subtype} with that name",
        )

    def reserve(self, *things: str) -> AbstractContextManager[None]:
        """Have `things` (a pin by `Board.identify`, an address) alone; HalError (busy) names who has one already."""
        return self.hardware.reservations.hold(str(self.name), *things)

    async def do_command(self, command: Mapping[str, Any]) -> Mapping[str, Any]:
        """Anything the API has no method for; the driver documents its commands."""
        raise Unsupported(f"{self.name} has no commands")

    async def get_status(self) -> Mapping[str, Any]:
        """What a person would want to see at a glance; empty by default."""
        return {}


def model(triple: str) -> Callable[[type[ResourceT]], type[ResourceT]]:
    """Class decorator: names the model that a driver implements, such as `acme:demo:thermometer`.

    Raises ConfigError if `triple` is not a model.
    """
    named = Model.parse(triple)

    def name(cls: type[ResourceT]) -> type[ResourceT]:
        cls.MODEL = named
        return cls

    return name


class Component(Resource):
    """Base of every component: something with a place and perhaps a shape."""

    async def get_geometries(self, *, extra: Extra = None) -> list[Geometry]:
        """Shapes of the component in its own frame (mm); none by default."""
        return []


class Service(Resource):
    """Base of every service."""


class Actuator:
    """Mixed into whatever moves or drives something: it can be stopped, by anybody, at any time."""

    async def stop(self, *, extra: Extra = None) -> None:
        """Bring it to rest now. Called on StopAll, when a session expires and before the resource stops."""
        raise NotImplementedError

    async def is_moving(self) -> bool:
        """True while it moves by command."""
        raise NotImplementedError

    async def come_to_rest(self) -> None:
        """Called before the driver ends, when no call is inside any more: `stop`, unless that is not its to do."""
        await self.stop()
