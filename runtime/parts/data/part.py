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

from engine import DataManager, PartContext, ResourceHost
from engine.planning import INTERNAL, NO_RESTART, refusal
from models.data_manager import DataManagerConfig
from nursery_graph import Node
from runtime.parts.data.capture.collector import Capture, Collector
from runtime.parts.data.capture.control import Override, overridden
from runtime.parts.data.capture.settings import ConfiguredCapture, configured_captures
from runtime.parts.data.capture.steering import RESTART, steering_nodes
from runtime.parts.data.gate import NO_CLOUD
from runtime.parts.data.manager import BuiltinDataManager
from runtime.parts.data.sync_part import sync_node
from schema import ConfigError, MachineError, decode_attributes
from schema.document import MachineDocument, ResourceEntry

PREFIX: Final = f"{INTERNAL}capture/"


class Captures:
    """The data capture of one machine."""

    def __init__(self, context: PartContext) -> None:
        self._context = context
        self._changed = context.changed
        self._overrides: tuple[Override, ...] = ()
        self._logged: set[str] = set()

    def nodes(self, document: MachineDocument) -> list[Node]:
        """Return a node for each captured method, and the nodes for steering sensors and upload."""
        service = manager_of(document)
        captures = configured_captures(document)
        if service is None:
            return [_no_manager(capture) for capture in captures if capture.active]
        name, config = str(service.name), config_of(service)
        steering = steering_nodes(document, config, name, self._context.hardware, self._override) if config else []
        if config is not None and self._context.cloud is not None:
            steering.append(sync_node(self._context.cloud.address, config, name))
        elif config is not None and (config.additional_sync_paths or config.selective_syncer_name):
            self._warn_once(MachineError(NO_CLOUD), "not uploaded")
        if config is not None and config.capture_disabled:
            return steering
        names = {planned.name for planned in self._context.roster.planned.values()} | {
            entry.name for entry in document.resources
        }
        captures, problems = overridden(captures, self._overrides, names)
        for problem in problems:
            self._warn_once(problem)
        nodes = [self._node(capture, name) for capture in captures if capture.active]
        return nodes + steering

    def _warn_once(self, problem: MachineError, what: str = "not captured") -> None:
        """Log a problem once."""
        if str(problem) not in self._logged:
            self._logged.add(str(problem))
            self._context.log.warning(what, problem=str(problem))

    def _node(self, capture: ConfiguredCapture, service: str) -> Node:
        if capture.fault is not None:
            return _failing(capture, capture.fault)
        return Node(
            f"{PREFIX}{capture.key}",
            partial(self._run, capture, service),
            requires=frozenset({service, capture.resource}),
            version=capture.version,
            restart=RESTART,
        )

    async def _run(
        self,
        configured: ConfiguredCapture,
        service: str,
        deps: Mapping[str, Any],
        /,
        *,
        task_status: trio.TaskStatus[None],
    ) -> None:
        manager = deps[service].resource
        if not isinstance(manager, BuiltinDataManager):
            raise MachineError(f"{service} cannot capture data", remedy="configure its model as rdk:builtin:builtin")
        assert configured.source is not None
        assert configured.method is not None
        tags = (
            configured.tags
            if configured.only_these_tags
            else tuple(dict.fromkeys((*manager.store.tags, *configured.tags)))
        )
        task = Capture(
            configured.key,
            replace(configured.source, tags=tags),
            configured.method,
            configured.arguments,
            configured.frequency,
            configured.queue,
        )
        host: ResourceHost = deps[configured.resource]
        await Collector(task, host, manager.store, self._context.hardware).run(task_status=task_status)

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
        config, _ = decode_attributes(DataManagerConfig, service.attributes, path="")
    except ConfigError:
        return None
    return config


def _no_manager(capture: ConfiguredCapture) -> Node:
    fault = ConfigError(
        capture.path,
        "nothing is captured: there is no data manager",
        remedy='add {"api": "rdk:service:data_manager", "name": "data"} to services',
    )
    return _failing(capture, capture.fault or fault)


def _failing(capture: ConfiguredCapture, fault: ConfigError) -> Node:
    return Node(f"{PREFIX}{capture.key}", refusal(fault), version=(str(fault),), restart=NO_RESTART)
