"""All modules of one machine: their nodes, and what the plan may ask of them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio

from nursery_graph import Node, Restart
from rpc.call import ServerCore
from rpc.listeners import open_unix_listener
from rpc.port import serve
from runtime.machine import INTERNAL
from runtime.modules.life import ModuleLife
from runtime.modules.link import ModuleLink
from runtime.parts import Surroundings
from schema.errors import ConfigError, MachineError
from schema.machine import MachineDocument, ResourceEntry
from schema.modules import Module

PARENT: Final = f"{INTERNAL}module-parent"
START_LIMIT: Final = 300.0  # seconds until a module must be ready; reference: 5 min
STOP_LIMIT: Final = 40.0  # seconds; more than the grace between SIGTERM and SIGKILL
TRUSTED_NAMESPACE: Final = "viam"  # whose modules run in an untrusted environment; reference value

RESTART: Final = Restart(kind="permanent", intensity=1_000_000, first_delay=0.5, max_delay=30.0)
NO_RESTART: Final = Restart(kind="temporary")


class Modules:
    """The modules of one machine. The document is planned anew when one of them has something new to offer."""

    def __init__(self, around: Surroundings) -> None:
        self._machine = around.machine
        self._router = around.router
        self._environment = around.environment
        self._changed = around.changed
        self.links: dict[str, ModuleLink] = {}

    # ---- for the plan

    def offer(self, entry: ResourceEntry) -> ModuleLink | None:
        """The module that offers the model of `entry`, whether it runs now or not."""
        for link in self.links.values():
            if (entry.api, entry.model) in link.offers:
                return link
        return None

    def not_ready(self) -> list[str]:
        """Configured modules that are not ready, each with the reason."""
        return [
            f"{link.module.name} ({link.failure or 'starting'})" for link in self.links.values() if link.client is None
        ]

    # ---- for the graph

    def nodes(self, document: MachineDocument) -> list[Node]:
        """The nodes of the modules of `document`, and of their parent if there are any."""
        wanted: dict[str, tuple[Module, str]] = {
            module.name: (module, path)
            for module, path in zip(document.modules, document.places("modules"), strict=True)
        }
        for gone in self.links.keys() - wanted.keys():
            del self.links[gone]
        nodes = []
        for name, (module, path) in wanted.items():
            link = self.links.get(name)
            if link is None or link.module != module:
                link = self.links[name] = ModuleLink(module, path, self._changed)
            link.configure(module, path, document.resources)
            fault = self._fault(module, path)
            if fault is not None:
                link.failure = str(fault)
            nodes.append(self._node(link, fault))
        return [self._parent_node(), *nodes] if nodes else []

    def _fault(self, module: Module, path: str) -> MachineError | None:
        if self._machine.options.untrusted_env and module.module_id.partition(":")[0] != TRUSTED_NAMESPACE:
            return ConfigError(
                path,
                f"the module {module.name} is a program of the configuration, which -untrusted-env refuses",
                value=module.name,
                remedy="start machine-server without -untrusted-env, or remove the module",
            )
        return None

    def _node(self, link: ModuleLink, fault: MachineError | None) -> Node:
        module = link.module
        return Node(
            link.node,
            partial(_fail, fault) if fault is not None else partial(self._live, link),
            requires={PARENT},
            version=(repr(module) + repr(sorted(module.env.items())), str(fault)),
            start_timeout=START_LIMIT,
            stop_timeout=STOP_LIMIT,
            restart=NO_RESTART if fault is not None else RESTART,
        )

    def _parent_node(self) -> Node:
        return Node(PARENT, self._serve_parent, restart=RESTART)

    async def _live(
        self, link: ModuleLink, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[ModuleLink]
    ) -> None:
        debug = self._machine.options.debug or self._machine.document.debug
        life = ModuleLife(link, deps[PARENT], debug=debug, environment=self._environment)
        try:
            await life.run(task_status=task_status)
        except MachineError as error:
            link.failed(str(error))
            raise

    async def _serve_parent(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[Path]) -> None:
        """Modules call the machine through a socket in a folder that only this user may enter: no further keys."""
        folder = Path(tempfile.mkdtemp(prefix="machine-module-"))
        try:
            path = folder / "parent.sock"
            listener = await open_unix_listener(path)
            async with trio.open_nursery() as nursery:
                core = ServerCore(self._router)
                await nursery.start(partial(serve, [listener], core, app=None, tls=None))
                task_status.started(path)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


async def _fail(fault: MachineError, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[Any]) -> None:
    raise fault
