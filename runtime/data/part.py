"""Capture as nodes of the graph: one for each method of a resource.

A node needs the data manager and the resource, so it ends before either does, writing what it has, and comes back
with it. Another resource's capture never notices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import trio

from catalogue.data.manager import DataManagerConfig
from nursery_graph import Node
from runtime.builtin.data.manager import BuiltinDataManager
from runtime.data.collector import Capture, Collector
from runtime.data.control import Override, overridden
from runtime.data.gate import NO_CLOUD
from runtime.data.settings import Wish, wishes
from runtime.data.steering import RESTART, steering_nodes
from runtime.data.sync_part import sync_node
from runtime.host import ResourceHost
from runtime.machine import INTERNAL
from runtime.parts import Surroundings
from runtime.refused import NO_RESTART, refused
from runtime.services.data_manager import DataManager
from schema.attributes import decode
from schema.errors import ConfigError, MachineError
from schema.machine import MachineDocument, ResourceEntry

PREFIX: Final = f"{INTERNAL}capture/"


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
        name, config = str(service.name), config_of(service)
        steering = steering_nodes(document, config, name, self._machine.hardware, self._override) if config else []
        if config is not None and self._machine.cloud is not None:
            steering.append(sync_node(self._machine.cloud.address, config, name))
        elif config is not None and (config.additional_sync_paths or config.selective_syncer_name):
            self._tell(MachineError(NO_CLOUD), "not uploaded")
        if config is not None and config.capture_disabled:
            return steering
        names = {wanted.name for wanted in self._machine.wanted.values()} | {one.name for one in document.resources}
        found, problems = overridden(found, self._overrides, names)
        for problem in problems:
            self._tell(problem)
        nodes = [self._node(wish, name) for wish in found if wish.active]
        return nodes + steering

    def _tell(self, problem: MachineError, what: str = "not captured") -> None:
        """Log it, once."""
        if str(problem) not in self._told:
            self._told.add(str(problem))
            self._machine.log.warning(what, problem=str(problem))

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

    def _override(self, overrides: tuple[Override, ...]) -> None:
        """A sensor says what is to be captured."""
        if overrides != self._overrides:
            self._overrides = overrides
            if not self._machine.stopping.is_set():
                self._changed()


def manager_of(document: MachineDocument) -> ResourceEntry | None:
    """The data manager of a machine: the first one that is configured."""
    return next((entry for entry in document.services if entry.api == DataManager.API), None)


def config_of(service: ResourceEntry) -> DataManagerConfig | None:
    """Attributes of the data manager; None if they are wrong, which its own node says."""
    try:
        config, _ = decode(DataManagerConfig, service.attributes, path="")
    except ConfigError:
        return None
    return config


def _no_manager(wish: Wish) -> Node:
    fault = ConfigError(
        wish.path,
        "nothing is captured: there is no data manager",
        remedy='add {"api": "rdk:service:data_manager", "name": "data"} to services',
    )
    return _failing(wish, wish.fault or fault)


def _failing(wish: Wish, fault: ConfigError) -> Node:
    return Node(f"{PREFIX}{wish.key}", refused(fault), version=(str(fault),), restart=NO_RESTART)
