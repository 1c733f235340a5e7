"""All modules of one machine: their nodes, and queries for the plan."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import structlog
import trio

from engine import PartContext
from engine import start_limit as nodes_start_limit
from engine.planning import INTERNAL, NO_RESTART, PlannedResource, package_node, refusal
from nursery_graph import Node, Restart
from runtime.parts.modules.life import START_LIMIT, START_LIMIT_VARIABLE, ModuleLife, Setting
from runtime.parts.modules.link import PREFIX, ModuleLink
from runtime.parts.modules.process import LocalProcesses, Processes
from runtime.parts.modules.resource import plan_module_resource
from runtime.parts.modules.tidy import Tidy
from runtime.programs.command import data_folder, log_level, machine_facts, uses_tcp
from runtime.programs.environment import inherited
from schema import ConfigError, Directory, MachineError, parse_duration
from schema.document import MachineDocument, Module, ResourceEntry
from telemetry.logs import Rules
from telemetry.logs.logger_names import of_module

if TYPE_CHECKING:
    from runtime.parts.modules.foreign import ForeignServices

PARENT: Final = f"{INTERNAL}module-parent"
PARENT_TCP: Final = f"{INTERNAL}module-parent-tcp"
RELOAD: Final = f"{INTERNAL}module-reload/"
UNPACK_LIMIT: Final = 600.0  # seconds to unpack an archive
STOP_LIMIT: Final = 40.0  # seconds; more than the grace between SIGTERM and SIGKILL
LONGEST_REASON: Final = 120  # maximum characters of a module's reason within the reason of a resource
TRUSTED_NAMESPACE: Final = "viam"  # namespace of modules that run in an untrusted environment; reference value

RESTART: Final = Restart(kind="permanent", intensity=1_000_000, first_delay=0.5, max_delay=30.0)


class InstalledPackages(Protocol):
    """The packages of one machine, as far as its modules ask for them; the part `packages`."""

    def module(self, module: Module) -> Module | None:
        """Return the entry of a registry module with the installed version; None if no version is installed."""
        ...

    def failure(self, kind: str, name: str) -> str:
        """Return why the configured version of a package could not be installed; empty if it has not failed."""
        ...


class Modules:
    """The modules of one machine. Requests a new plan when a module changes what it offers or needs."""

    def __init__(self, context: PartContext, processes: Processes | None = None) -> None:
        self._options = context.options
        self._graph = context.graph
        self._parts = context.parts
        self._router = context.router
        self._environment = context.environment
        self._changed = context.changed
        self._processes = processes or LocalProcesses(dict(context.environment))
        self._tidy = Tidy(context.graph, context.environment)
        self.links: dict[str, ModuleLink] = {}
        self.tcp_address = ""  # of this machine for modules that use TCP; empty if there are none

    # ---- for the plan and the router

    def offers(self, entry: ResourceEntry) -> bool:
        """Return whether a module offers the model of `entry`, even if it does not run now."""
        return self._offer(entry) is not None

    def plan_resource(self, entry: ResourceEntry, directory: Directory, levels: Rules) -> PlannedResource:
        """Return the resource that a module offers for `entry`; raises ConfigError."""
        link = self._offer(entry)
        assert link is not None
        return plan_module_resource(link, entry, directory, levels)

    def _offer(self, entry: ResourceEntry) -> ModuleLink | None:
        for link in self.links.values():
            if (entry.api, entry.model) in link.offers:
                return link
        return None

    def not_ready(self) -> Mapping[str, str]:
        """Return short reasons for all modules that are not ready, by the name of their node."""
        return {link.node: _in_short(link.waiting) for link in self.links.values() if link.client is None}

    def starting(self) -> list[str]:
        """Return the nodes of modules that are starting and have not failed before."""
        return [link.node for link in self.links.values() if link.client is None and not link.failure]

    @cached_property
    def foreign(self) -> ForeignServices:
        """Services of APIs that this machine has no class for."""
        from runtime.parts.modules.foreign import ForeignServices

        return ForeignServices()

    # ---- for the graph

    def nodes(self, document: MachineDocument) -> list[Node]:
        """Return the nodes of the modules of `document`, the nodes that they share, and the tidy node."""
        configured: dict[str, tuple[Module, str]] = {
            module.name: (module, path)
            for module, path in zip(document.modules, document.places("modules"), strict=True)
        }
        removed = self.links.keys() - configured.keys()
        for name in removed:
            del self.links[name]
        data = data_folder(self._environment, document)
        # A module whose entry has become invalid keeps its data: the entry was not removed on purpose.
        all_valid = not any(entry.section == "modules" for entry in document.broken)
        self._tidy.plan({name: f"{PREFIX}{name}" for name in removed if all_valid}, configured.keys(), data)
        nodes: list[Node] = []
        for name, (entry, path) in configured.items():
            module = self._startable(entry)
            link = self.links.get(name)
            if link is None or link.module != module:
                link = self.links[name] = ModuleLink(module, path, self._changed)
            link.configure(module, path, document.resources)
            nodes += self._nodes(link, document, data)
        self._serve_foreign()
        if any(PARENT_TCP in node.requires for node in nodes):
            nodes.append(Node(PARENT_TCP, partial(self._serve_parent, tcp=True), restart=RESTART))
        if configured:
            nodes.append(Node(PARENT, partial(self._serve_parent, tcp=False), restart=RESTART))
        return [*nodes, self._tidy.node()]

    def _startable(self, module: Module) -> Module:
        """Return a registry module's entry with the version that is installed; other entries unchanged."""
        packages = self._packages if module.type == "registry" else None
        return (packages.module(module) if packages is not None else None) or module

    @property
    def _packages(self) -> InstalledPackages | None:
        return cast("InstalledPackages | None", self._parts.get("packages"))

    def _serve_foreign(self) -> None:
        apis = [api for link in self.links.values() for api in link.apis.values()]
        if apis or "foreign" in self.__dict__:
            self.foreign.serve(apis)

    def _nodes(self, link: ModuleLink, document: MachineDocument, data: Path) -> list[Node]:
        module = link.module
        fault = self._fault(module, link.path)
        if fault is not None:
            link.failure = str(fault)
            return [
                Node(link.node, refusal(fault), requires={PARENT}, version=str(fault), restart=NO_RESTART),
            ]
        setting = Setting(
            level=log_level(module, document, debug=self._options.debug),
            tcp=uses_tcp(module, self._environment),
            data=data / module.name,
            facts=machine_facts(document, tracing=self._options.output_telemetry or document.tracing.enabled),
            start_limit=start_limit(self._environment),
            build_limit=nodes_start_limit(),
        )
        before = module.first_run_limit + UNPACK_LIMIT if module.is_archive else 0.0
        requires = {PARENT_TCP if setting.tcp else PARENT}
        if (packages := self._packages) is not None and module.type == "registry" and not packages.module(module):
            requires.add(package_node("module", module.name))
            version = (module.source.version if module.source is not None else "") or module.version
            link.phase = f"installing {module.module_id} {version}".rstrip()
            failure = packages.failure("module", module.name)
            link.failure = f"{link.phase}: {failure}" if failure else ""
        nodes = [
            Node(
                link.node,
                partial(self._live, link, setting),
                requires=requires,
                version=(repr(module), repr(sorted(module.env.items())), setting.version),
                start_timeout=before + setting.start_limit + 10.0,  # later than its own limits, whose errors say more
                stop_timeout=STOP_LIMIT,
                restart=RESTART,
            )
        ]
        if module.reload_on_change and module.type != "registry" and not self._options.untrusted_env:
            nodes.append(
                Node(
                    f"{RELOAD}{module.name}",
                    partial(self._reload, link),
                    version=(repr(module), repr(sorted(module.env.items()))),
                    restart=RESTART,
                )
            )
        return nodes

    def _fault(self, module: Module, path: str) -> MachineError | None:
        if self._options.untrusted_env and module.module_id.partition(":")[0] != TRUSTED_NAMESPACE:
            return ConfigError(
                path,
                f"the module {module.name!r} runs a program that the configuration names, which -untrusted-env forbids",
                value=module.name,
                remedy="start machine-server without -untrusted-env, or remove the module",
            )
        return None

    async def _live(
        self, link: ModuleLink, setting: Setting, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[Any]
    ) -> None:
        parent = deps[PARENT_TCP if setting.tcp else PARENT]
        life = ModuleLife(link, parent, setting, processes=self._processes, environment=inherited(self._environment))
        try:
            await life.run(task_status=task_status)
        except MachineError as error:
            link.failed(str(error))
            raise

    async def _reload(
        self, link: ModuleLink, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]
    ) -> None:
        from runtime.parts.modules.reload import Reloader

        def restart(reason: str) -> None:
            structlog.get_logger(of_module(link.module.name)).info("restarted", reason=reason)
            self._graph.restart(link.node, reason)

        await Reloader(link.module, restart).run(deps, task_status=task_status)

    async def _serve_parent(self, deps: Mapping[str, Any], /, *, tcp: bool, task_status: trio.TaskStatus[str]) -> None:
        """Serve the machine's API to modules, without authentication."""
        async with self._processes.parent(self._router, tcp=tcp) as address:
            if tcp:
                self.tcp_address = address
            try:
                task_status.started(address)
                await trio.sleep_forever()
            finally:
                if tcp:
                    self.tcp_address = ""


def _in_short(reason: str) -> str:
    """Shorten a module's reason to its first line and the last line that the module printed, at most SHORT characters.

    The status of the module has the whole reason.
    """
    first, separator, printed = reason.partition("; its last output: ")
    last = next((line.strip() for line in reversed(printed.split(" | ")) if line.strip()), "")
    text = first.partition("\n")[0] + (f"{separator}{last}" if last else "")
    return text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]}…"


def start_limit(environment: Mapping[str, str]) -> float:
    """Return the seconds within which a module must be ready: START_LIMIT unless the environment sets another limit."""
    text = environment.get(START_LIMIT_VARIABLE, "")
    try:
        seconds = float(text) if re.fullmatch(r"[0-9.]+", text) else parse_duration(text)
    except ValueError:
        return START_LIMIT
    return seconds if seconds > 0 else START_LIMIT
