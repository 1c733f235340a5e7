"""Capture as nodes of the graph: one for each method of a resource.

A node needs the data manager and the resource, so it ends before either does, writing what it has, and comes back
with it. Another resource's capture never notices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, cast

import trio

from nursery_graph import Node, Restart
from runtime.builtin.data.manager import BuiltinDataManager
from runtime.components.sensor import Sensor
from runtime.data.collector import EXTRA, Capture, Collector
from runtime.data.control import PERIOD, Override, overridden, parse_overrides
from runtime.data.settings import Wish, wishes
from runtime.host import ResourceHost
from runtime.machine import INTERNAL
from runtime.parts import Surroundings
from runtime.services.data_manager import DataManager
from schema.errors import ConfigError, MachineError
from schema.machine import MachineDocument, ResourceEntry

PREFIX: Final = f"{INTERNAL}capture/"
CONTROL: Final = f"{INTERNAL}capture-control"
NO_RESTART: Final = Restart(kind="temporary")
RESTART: Final = Restart(kind="permanent", intensity=1_000_000, max_delay=10.0)


class Captures:
    """What is captured on one machine."""

    def __init__(self, around: Surroundings) -> None:
        self._machine = around.machine
        self._changed = around.changed
        self._overrides: tuple[Override, ...] = ()
        self._told: set[str] = set()

    def nodes(self, document: MachineDocument) -> list[Node]:
        """One for each method, and one for the sensor that controls them."""
        service = manager_of(document)
        found = wishes(document)
        if service is None:
            return [_no_manager(wish) for wish in found if wish.active]
        if service.attributes.get("capture_disabled") is True:
            return []
        names = {wanted.name for wanted in self._machine.wanted.values()} | {one.name for one in document.resources}
        found, problems = overridden(found, self._overrides, names)
        for problem in problems:
            self._tell(problem)
        nodes = [self._node(wish, str(service.name)) for wish in found if wish.active]
        control = service.attributes.get("capture_control_sensor")
        if isinstance(control, Mapping) and control.get("name") and control.get("key"):
            nodes.append(self._control_node(document, str(service.name), control["name"], control["key"]))
        return nodes

    def _tell(self, problem: MachineError) -> None:
        """Log it, once."""
        if str(problem) not in self._told:
            self._told.add(str(problem))
            self._machine.log.warning("not captured", problem=str(problem))

    def _node(self, wish: Wish, service: str) -> Node:
        if wish.fault is not None:
            return _failing(wish, wish.fault)
        return Node(
            f"{PREFIX}{wish.key}",
            partial(self._run, wish, service),
            requires=frozenset({service, wish.resource}),
            version=wish.version,
            restart=RESTART,
        )

    async def _run(
        self, wish: Wish, service: str, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]
    ) -> None:
        manager = deps[service].resource
        if not isinstance(manager, BuiltinDataManager):
            raise MachineError(f"{service} does not capture", remedy="configure its model as rdk:builtin:builtin")
        assert wish.source is not None
        assert wish.method is not None
        tags = wish.tags if wish.only_these_tags else tuple(dict.fromkeys((*manager.store.tags, *wish.tags)))
        capture = Capture(
            wish.key, replace(wish.source, tags=tags), wish.method, wish.arguments, wish.frequency, wish.queue
        )
        host: ResourceHost = deps[wish.resource]
        await Collector(capture, host, manager.store, self._machine.hardware).run(task_status=task_status)

    # ---- the sensor that controls capture

    def _control_node(self, document: MachineDocument, service: str, name: str, key: str) -> Node:
        full = next(
            (str(one.name) for one in document.resources if name in (one.name.short, str(one.name))),
            name if "/" in name else f"{Sensor.API}/{name}",
        )
        return Node(
            CONTROL,
            partial(self._control, full, key),
            requires=frozenset({service, full}),
            version=(full, key),
            restart=RESTART,
        )

    async def _control(
        self, full: str, key: str, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]
    ) -> None:
        host: ResourceHost = deps[full]
        task_status.started()
        trouble = ""
        try:
            async with self._machine.hardware.ticks(PERIOD) as ticks:
                async for _ in ticks:
                    before, trouble = trouble, await self._ask(host, key)
                    if trouble and trouble != before:
                        self._machine.log.warning(
                            "the sensor that controls capture fails: everything is captured as configured",
                            sensor=full,
                            error=trouble,
                        )
        finally:
            self._override(())

    async def _ask(self, host: ResourceHost, key: str) -> str:
        """Take over what the sensor says; why it is of no use, or nothing."""
        try:
            async with host.use() as resource:
                readings = await cast("Sensor", resource).get_readings(extra=dict(EXTRA))
            self._override(parse_overrides(readings, key))
        except Exception as error:  # a driver's own code, and what it returned
            self._override(())
            return str(error) or repr(error)
        return ""

    def _override(self, overrides: tuple[Override, ...]) -> None:
        if overrides != self._overrides:
            self._overrides = overrides
            if not self._machine.stopping.is_set():
                self._changed()


def manager_of(document: MachineDocument) -> ResourceEntry | None:
    """The data manager of a machine: the first one that is configured."""
    return next((entry for entry in document.services if entry.api == DataManager.API), None)


def _no_manager(wish: Wish) -> Node:
    fault = ConfigError(
        wish.path,
        "nothing is captured: there is no data manager",
        remedy='add {"api": "rdk:service:data_manager", "name": "data"} to services',
    )
    return _failing(wish, wish.fault or fault)


def _failing(wish: Wish, fault: ConfigError) -> Node:
    async def fail(deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        raise fault

    return Node(f"{PREFIX}{wish.key}", fail, version=(str(fault),), restart=NO_RESTART)
