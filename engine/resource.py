"""The base classes of drivers, and the context in which a driver is constructed.

A driver is a class derived from a base class in `engine.components` or `engine.services`. It is
constructed from a Context, then `run` is called in its own nursery. The driver is ready when it has called
`task_status.started()`. It is stopped by cancelling `run`, which cleans up in `finally`. During cleanup, its
dependencies are still running, and no method call is in progress.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, TypeVar

import structlog
import trio

from hal import Hardware
from hal.sim import World
from schema import API, ErrorKind, Geometry, MachineError, Model, ResourceName
from schema import Attributes as Attributes

if TYPE_CHECKING:
    from schema.document import MachineDocument

Value: TypeAlias = "bool | int | float | str | bytes | list[Value] | dict[str, Value] | None"
"""A value in a reading, a command or `extra`: JSON and bytes (base64 on the wire)."""

Extra: TypeAlias = Mapping[str, Any] | None
"""Optional additional arguments of a call; the driver defines them."""

Started: TypeAlias = trio.TaskStatus[None]


class Unsupported(MachineError):
    """The driver does not support the request; clients receive UNIMPLEMENTED."""

    kind = ErrorKind.UNSUPPORTED


class ResourceAccess(Protocol):
    """Access to a resource that is not a dependency and may stop at any time."""

    def use(self) -> AbstractAsyncContextManager[Resource]:
        """Return a context manager for using the resource.

        It raises MachineError (UNAVAILABLE) if the resource is not ready or stops during the use.
        """
        ...


Others: TypeAlias = Callable[[API], Mapping[ResourceName, ResourceAccess]]
"""A function that returns the resources of an API that are ready now, including those of remotes."""


def no_others(api: API) -> Mapping[ResourceName, ResourceAccess]:
    """Return no resources; for a resource that runs outside a machine."""
    return {}


def no_document() -> MachineDocument:
    """Return an empty document; for a resource that runs outside a machine."""
    from schema.document import MachineDocument

    return MachineDocument()


@dataclass(frozen=True, slots=True)
class Context:
    """The arguments with which a resource is constructed."""

    name: ResourceName
    attributes: Any  # an instance of the driver's Config
    dependencies: Mapping[ResourceName, Resource]
    world: World  # the simulated hardware of this machine, for simulated models
    hardware: Hardware  # the pins, buses and ports that drivers open
    log: structlog.stdlib.BoundLogger
    others: Others = no_others
    document: Callable[[], MachineDocument] = no_document  # the configuration in force, for services that need frames


ResourceT = TypeVar("ResourceT", bound="Resource")


class Resource:
    """Base class of all components and services.

    Methods are coroutines and may be cancelled at any checkpoint: by the caller's deadline, by a lost connection, by
    CancelOperation, and before the resource stops. Raise MachineError (or a subclass) for errors that clients should
    see.
    """

    API: ClassVar[API]
    Config: ClassVar[type[Attributes]] = Attributes
    NEEDS_TRUST: ClassVar[bool] = False  # runs programs that the configuration names; rejected with -untrusted-env
    MODEL: ClassVar[Model | None] = None  # set by `model`
    OTHER_MODELS: ClassVar[Sequence[Model]] = ()  # of the same model, set by `model`

    def __init__(self, context: Context) -> None:
        self.name = context.name
        self.attributes = context.attributes
        self.dependencies = context.dependencies
        self.world = context.world
        self.hardware = context.hardware
        self.log = context.log
        self.others = context.others
        self.document = context.document

    async def run(self, *, task_status: Started) -> None:
        """Run the resource until cancelled; returning earlier counts as a failure.

        Call `task_status.started()` when ready, and clean up in `finally`. By default a resource is ready immediately.
        """
        task_status.started()
        await trio.sleep_forever()

    def dependency(self, base: type[ResourceT], name: str) -> ResourceT:
        """Return the dependency of type `base` with the (simple or full) name; raises MachineError if there is none.

        `left` also matches `pi:left` of the remote `pi`, unless there is a dependency `left`.
        """
        candidates = {full: resource for full, resource in self.dependencies.items() if isinstance(resource, base)}
        for full, resource in candidates.items():
            if name in (full.short, str(full)):
                return resource
        for full, resource in candidates.items():
            if name in (full.name, f"{full.api}/{full.name}"):
                return resource
        raise MachineError(
            f"{self.name}: no {base.API.subtype} named {name!r} among its dependencies",
            kind=ErrorKind.PRECONDITION,
            remedy=f"configure a {base.API.subtype} with that name",
        )

    def reserve(self, *things: str) -> AbstractContextManager[None]:
        """Return a context manager that reserves `things` (the key of a pin, see `Board.identify`, or an address).

        Raises HalError (busy), which names the owner, if one of them is already reserved.
        """
        return self.hardware.reservations.hold(str(self.name), *things)

    async def do_command(self, command: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run a command for which the API has no method; the driver documents its commands."""
        raise Unsupported(f"{self.name} has no commands")

    async def get_status(self) -> Mapping[str, Any]:
        """Return a short summary for people; empty by default."""
        return {}


def model(triple: str, *other_names: str) -> Callable[[type[ResourceT]], type[ResourceT]]:
    """Class decorator that names the model that a driver implements, such as `acme:demo:thermometer`.

    Documents may use `other_names` for the same model; only those of built-in models are registered. Raises ConfigError
    if a name is not a valid model.
    """
    parsed, others = Model.parse(triple), tuple(map(Model.parse, other_names))

    def set_model(cls: type[ResourceT]) -> type[ResourceT]:
        cls.MODEL, cls.OTHER_MODELS = parsed, others
        return cls

    return set_model


class Component(Resource):
    """Base class of all components, which may have a place in space and a shape."""

    async def get_geometries(self, *, extra: Extra = None) -> list[Geometry]:
        """Return the shapes of the component in its own frame (mm); none by default."""
        return []


class Service(Resource):
    """Base class of all services."""


class Actuator:
    """Mixin for components that move or drive something; any client can stop them at any time."""

    async def stop(self, *, extra: Extra = None) -> None:
        """Stop moving now. Called for StopAll, when a session expires, and before the resource stops."""
        raise NotImplementedError

    async def is_moving(self) -> bool:
        """Return True while a commanded movement is in progress."""
        raise NotImplementedError

    async def come_to_rest(self) -> None:
        """Stop moving before the driver ends, after all calls have ended; calls `stop` by default."""
        await self.stop()
