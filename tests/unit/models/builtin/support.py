"""A bench that runs single models as the machine would."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import structlog
import trio

from engine.registry import Registry
from engine.resource import Context, Resource, ResourceAccess
from hal.sim import World
from hal.sim.hardware import SimHardware
from models import BUILTIN
from schema.attributes import decode_attributes
from schema.names import API, Model, ResourceName

FAKE = "rdk:builtin:fake"


class OpenDoor:
    """Give access to a resource that stays available."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource

    @asynccontextmanager
    async def use(self) -> AsyncIterator[Resource]:
        yield self._resource


class Bench:
    """Start models in a nursery, give each the dependencies that its configuration names, and stop them."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.world = World(seed=7)
        self.hardware = SimHardware(self.world)
        self.resources: dict[ResourceName, Resource] = {}
        self._nursery = nursery
        self._scopes: dict[Resource, tuple[trio.CancelScope, trio.Event]] = {}

    async def add(
        self,
        api: str,
        name: str = "it",
        attributes: Mapping[str, Any] | None = None,
        *,
        model: str = FAKE,
        depends_on: tuple[str, ...] = (),
        cls: type[Resource] | None = None,
    ) -> Any:
        """Construct and start a resource of `model` or of `cls`; return it when it is ready."""
        full = ResourceName(API.parse(api if ":" in api else f"rdk:component:{api}"), name)
        cls = cls or Registry(BUILTIN).find(full.api, Model.parse(model))
        config, warnings = decode_attributes(cls.Config, attributes or {}, path="attributes")
        assert not warnings
        names = {*config.requires(), *config.uses(), *depends_on}
        dependencies = {n: r for n, r in self.resources.items() if n.name in names or str(n) in names}
        log = structlog.get_logger("test")
        resource = cls(Context(full, config, dependencies, self.world, self.hardware, log, self._others))
        scope, gone = trio.CancelScope(), trio.Event()

        async def live(*, task_status: trio.TaskStatus[None]) -> None:
            try:
                with scope:
                    await resource.run(task_status=task_status)
            finally:
                gone.set()

        await self._nursery.start(live)
        self.resources[full] = resource
        self._scopes[resource] = scope, gone
        return resource

    def _others(self, api: API) -> dict[ResourceName, ResourceAccess]:
        return {name: OpenDoor(resource) for name, resource in self.resources.items() if name.api == api}

    async def remove(self, resource: Resource) -> None:
        """Stop a resource; return when it has stopped."""
        scope, gone = self._scopes.pop(resource)
        scope.cancel()
        await gone.wait()
        self.resources = {n: r for n, r in self.resources.items() if r is not resource}
