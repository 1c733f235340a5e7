"""The nodes of data capture, with one for each captured method of a resource.

A node requires the data manager and the resource, so it ends before either of them, writes its readings, and restarts
with them. This does not affect the capture of other resources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import trio

from catalogue.data.manager import DataManagerConfig
from nursery_graph import Node
from runtime.engine.host import ResourceHost
from runtime.engine.part import PartContext
from runtime.engine.planning.node_names import INTERNAL
from runtime.engine.planning.refused import NO_RESTART, refused
from runtime.engine.services.data_manager import DataManager
from runtime.parts.data.capture.collector import Capture, Collector
from runtime.parts.data.capture.control import Override, overridden
from runtime.parts.data.capture.settings import Wish, wishes
from runtime.parts.data.capture.steering import RESTART, steering_nodes
from runtime.parts.data.gate import NO_CLOUD
from runtime.parts.data.manager import BuiltinDataManager
from runtime.parts.data.sync_part import sync_node
from schema.attributes import decode
from schema.document.machine import MachineDocument, ResourceEntry
from schema.errors import ConfigError, MachineError

PREFIX: Final = f"{INTERNAL}capture/"


class Captures:
    """The data capture of one machine."""

    def __init__(self, context: PartContext) -> None:
        self._context = context
        self._changed = context.changed
        self._overrides: tuple[Override, ...] = ()
        self._told: set[str] = set()

    def nodes(self, document: MachineDocument) -> list[Node]:
        """Return a node for each captured method, and the nodes for steering sensors and upload."""
        service = manager_of(document)
        found = wishes(document)
        if service is None:
            return [_no_manager(wish) for wish in found if wish.active]
        name, config = str(service.name), config_of(service)
        steering = steering_nodes(document, config, name, self._context.hardware, self._override) if config else []
        if config is not None and self._context.cloud is not None:
            steering.append(sync_node(self._context.cloud.address, config, name))
        elif config is not None and (config.additional_sync_paths or config.selective_syncer_name):
            self._tell(MachineError(NO_CLOUD), "not uploaded")
        if config is not None and config.capture_disabled:
            return steering
        names = {wanted.name for wanted in self._context.roster.planned.values()} | {
            one.name for one in document.resources
        }
        found, problems = overridden(found, self._overrides, names)
        for problem in problems:
            self._tell(problem)
        nodes = [self._node(wish, name) for wish in found if wish.active]
        return nodes + steering

    def _tell(self, problem: MachineError, what: str = "not captured") -> None:
        """Log a problem once."""
        if str(problem) not in self._told:
            self._told.add(str(problem))
            self._context.log.warning(what, problem=str(problem))

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
        await Collector(capture, host, manager.store, self._context.hardware).run(task_status=task_status)

    def _override(self, overrides: tuple[Override, ...]) -> None:
        """Set the overrides from the control sensor, and request a new plan if they changed."""
        if overrides != self._overrides:
            self._overrides = overrides
            if not self._context.stopping.is_set():
                self._changed()


def manager_of(document: MachineDocument) -> ResourceEntry | None:
    """Return the entry of the data manager: the first one that is configured, or None."""
    return next((entry for entry in document.services if entry.api == DataManager.API), None)


def config_of(service: ResourceEntry) -> DataManagerConfig | None:
    """Return the attributes of the data manager, or None if they are invalid, which its own node reports."""
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
