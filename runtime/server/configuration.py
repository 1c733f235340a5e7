"""Applies configuration documents: receives new documents and decides when each becomes active.

A document that is unusable as a whole changes nothing. A document that waits for maintenance changes only network and
keys. A newer document replaces an older one at every step.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import msgspec
import trio

from engine import resource_nodes
from engine.planning import INTERNAL, RETRY_INTERVAL, SESSIONS, Decision, plan, with_defaults
from engine.views import ConfigProblem, MachineState
from models import RESOURCES, Checked, checked_in_steps
from nursery_graph import Node, Restart
from runtime.server.hotplug import NODE as HOTPLUG
from runtime.server.hotplug import Hotplug
from runtime.server.machine import Machine
from runtime.server.port.serving import Serving
from runtime.server.window import Window
from schema import ConfigError, MachineError, fill_placeholders, masked
from schema.document import Decoded, MachineDocument, decode_document
from support import version
from telemetry.logs import REVEALED, Logs, log_event
from uplink import FileReading, decode_text

if TYPE_CHECKING:
    from runtime.parts.packages.part import Packages

NODE: Final = f"{INTERNAL}configuration"
LOGS: Final = f"{INTERNAL}logs"


class DocumentSource(Protocol):
    """A source of documents, such as FileSource."""

    def readings(self) -> AbstractAsyncContextManager[AsyncIterator[FileReading]]:
        """Return an iterator that yields the current text, and then each changed text."""
        ...

    async def used(self, reading: FileReading) -> None:
        """Record that a reading was accepted, so that it can be cached for a start without the source. Never raises."""
        ...


class Configuration:
    """Applies the newest usable document to the graph of `machine`."""

    def __init__(
        self, machine: Machine, serving: Serving, logs: Logs, source: DocumentSource, environment: Mapping[str, str]
    ) -> None:
        self.machine = machine
        self._serving = serving
        self._logs = logs
        self._source = source
        self._environment = environment
        self._last_data: bytes | None = None
        self._next_document: MachineDocument | None = None  # newest usable document that is not active yet
        self._hotplug = Hotplug(machine.bench.hardware, machine.graph, machine.roster, machine.log)
        self.context = machine.part_context(serving.router, environment, self._replan)
        self._wake = trio.Event()
        self._settling = trio.Event()
        self._window = Window(machine.roster, machine.configured, machine.log)
        machine.configured.ask_maintenance = self.ask
        self._applied = False  # a document is active
        self._apply_started: float | None = None  # when applying the current document started
        self._resources: list[Node] = []
        self._unresolved: list[str] = []  # warnings about placeholders in the active document that were not replaced

    def node(self) -> Node:
        """Return the node that follows the source."""
        return Node(NODE, self.run, start_timeout=30.0, restart=Restart(intensity=1_000_000, max_delay=10.0))

    # ---- receiving documents

    async def _follow(self, *, task_status: trio.TaskStatus[None]) -> None:
        async with self._source.readings() as readings:
            task_status.started()
            async for reading in readings:
                if reading.data is None:
                    self._last_data = None
                    self._reject(str(reading.problem))
                elif reading.data != self._last_data:
                    self._last_data = reading.data
                    decoded = (
                        decode_text(reading.data, self._environment)
                        if reading.expand
                        else decode_document(reading.data)
                    )
                    if self.take(with_revision(decoded, reading.data)):
                        await self._source.used(reading)

    def take(self, decoded: Decoded) -> bool:
        """Accept a new document, to be applied later; returns False if it is unusable as a whole."""
        machine = self.machine
        for warning in decoded.warnings:
            machine.log.warning("warning about the configuration", problem=str(warning))
        for error in decoded.problems:
            machine.log.error("mistake in the configuration", problem=str(error))
        document = decoded.document
        if document is None:
            self._reject(str(decoded.problems[0]) if decoded.problems else "it cannot be used")
            return False
        try:
            self._serving.gate.credentials(document)
        except ConfigError as error:
            self._reject(str(error))
            return False
        machine.configured.note(rejected="", problems=tuple(_problem(error) for error in decoded.problems))
        if self._applied and document == machine.configured.document:
            self._next_document = None
            machine.configured.note(pending="")
        else:
            self._next_document = document
        self._wake.set()
        return True

    def _reject(self, reason: str) -> None:
        """Record and log that the newest document cannot be used; the active one is kept."""
        self.machine.configured.note(rejected=reason)
        log_event("reconfigure", "fail", reason=reason)
        self.machine.log.error("the configuration cannot be used; the active one is kept", reason=reason)

    # ---- applying documents

    async def run(self, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[Configuration]) -> None:
        """Follow the source and maintenance until cancelled."""
        async with trio.open_nursery() as nursery:
            self._last_data = None
            await nursery.start(self._follow)
            task_status.started(self)
            nursery.start_soon(self._watch_settling)
            while True:
                self._wake = trio.Event()
                document = self._next_document or self.machine.configured.document
                decision = await self._window.ask(document)
                self.machine.configured.maintenance = decision
                if self._next_document is document:
                    if not self._applied or decision.allowed:
                        self._next_document = None
                        await self._apply(document)
                    else:
                        self._hold(document, decision)
                windowed = document.maintenance is not None
                with trio.move_on_after(RETRY_INTERVAL if windowed else float("inf")):
                    await self._wake.wait()

    async def ask(self) -> None:
        """Read the sensor of the maintenance window now; apply a waiting document if maintenance is allowed."""
        document = self._next_document or self.machine.configured.document
        if document.maintenance is not None:
            self.machine.configured.maintenance = await self._window.ask(document)
            if self._next_document is not None and self.machine.configured.maintenance.allowed:
                self._wake.set()

    def _hold(self, document: MachineDocument, decision: Decision) -> None:
        """Apply only network and keys of the new document, because maintenance is not allowed."""
        machine = self.machine
        if machine.configured.status.pending != decision.reason:
            machine.log.info("the new configuration is waiting for maintenance", reason=decision.reason)
            machine.configured.note(pending=decision.reason)
        self._serving.follow(document)
        machine.graph.apply(
            [*self._internal(document), *self._part_nodes(self._filled(machine.configured.document)), *self._resources]
        )

    async def _apply(self, document: MachineDocument) -> None:
        machine = self.machine
        log_event("reconfigure", "start", revision=document.revision)
        self._apply_started = trio.current_time()
        previous = machine.configured.document
        if self._applied:
            self._log_changes(previous, document)
        self._logs.apply(document, debug=machine.options.debug)
        machine.configured.masker = self._logs.masker
        self._serving.follow(document)
        # The port first: importing drivers takes time, and clients may ask how far the machine is.
        machine.configured.applying = True
        machine.graph.apply(
            [*self._internal(document), *self._part_nodes(self._filled(machine.configured.document)), *self._resources]
        )
        await self._serving.bound.wait()  # no driver may start if another program, or another machine-server, has it
        await self._load_classes(document)
        if self._next_document is not None:
            machine.configured.note(pending="")
            log_event("reconfigure", "fail", revision=document.revision, reason="a newer configuration arrived")
            return  # overtaken: the newer one is next
        machine.configured.document = document
        machine.configured.note(revision=document.revision, last_updated=datetime.now(UTC), pending="")
        self._applied = True
        self._plan(document)
        await self._check(document)

    async def _check(self, document: MachineDocument) -> None:
        """Log mistakes that decoding does not detect.

        Mistakes of resources are shown in their states instead.
        """
        steps = checked_in_steps(Decoded(document, readable=self._filled(document)), self.machine.registry)
        checked: Checked | None = None
        while checked is None:
            try:
                next(steps)
            except StopIteration as end:
                checked = cast("Checked", end.value)
            await trio.lowlevel.checkpoint()
        for warning in checked.warnings:
            self.machine.log.warning("warning about the configuration", problem=str(warning))
        for error in checked.problems:
            if not error.path.startswith(RESOURCES):
                self.machine.log.error("mistake in the configuration", problem=str(error))

    def _plan(self, document: MachineDocument) -> None:
        """Plan `document` with the models that modules offer now, and apply the plan to the graph."""
        machine = self.machine
        document = with_defaults(self._filled(document))
        part_nodes = self._part_nodes(document)  # first: the plan asks modules
        remotes = machine.parts.remotes
        new_plan = plan(
            document,
            machine.registry,
            modules=machine.parts.modules,
            others=remotes.planned_resources() if remotes is not None else (),
            remotes=remotes,
            trusted=not machine.options.untrusted_env,
            levels=self._logs.rules,
        )
        machine.traffic.sessions.forget(machine.roster.planned.keys() - new_plan.resources.keys())
        machine.roster.planned, machine.roster.aliases = new_plan.resources, new_plan.aliases
        self._resources = resource_nodes(machine.roster, machine.bench, new_plan, machine.configured.status.revision)
        machine.graph.apply([*self._internal(document), *part_nodes, *self._resources])
        self._settling.set()

    def _filled(self, document: MachineDocument) -> MachineDocument:
        """Return the document with the placeholders replaced whose packages are installed."""
        packages = cast("Packages | None", self.machine.parts.part_of(self.context, document, "packages"))
        folders = packages.find(document) if packages is not None else {}
        filled, warnings = fill_placeholders(document, self._environment, lambda kind, name: folders.get((kind, name)))
        texts = [str(warning) for warning in warnings]
        if texts != self._unresolved:
            self._unresolved = texts
            for text in texts:
                self.machine.log.warning("warning about the configuration", problem=text)
        return filled

    def _replan(self) -> None:
        """Plan the active document again, because the offers of a part have changed."""
        if self._applied:
            self._plan(self.machine.configured.document)

    async def _load_classes(self, document: MachineDocument) -> None:
        """Import the classes that the document needs; other tasks run in between."""
        for entry in with_defaults(document).resources:
            if not self.machine.registry.is_loaded(entry.api, entry.model):
                try:
                    self.machine.registry.find(entry.api, entry.model)
                except MachineError:
                    pass  # the plan reports it at the resource
                await trio.lowlevel.checkpoint()

    def _internal(self, document: MachineDocument) -> list[Node]:
        """Return the nodes of the server's own parts for `document`."""
        machine = self.machine
        return [
            Node(LOGS, lambda deps, *, task_status: self._logs.run(task_status=task_status)),
            Node(SESSIONS, lambda deps, *, task_status: machine.traffic.sessions.run(task_status=task_status)),
            Node(HOTPLUG, self._hotplug.run, restart=Restart(intensity=1_000_000, max_delay=10.0)),
            self._serving.node(document),
            self.node(),
        ]

    def _part_nodes(self, document: MachineDocument) -> list[Node]:
        """Return the nodes of the parts that `document` needs."""
        return self.machine.parts.nodes(self.context, document)

    async def _watch_settling(self) -> None:
        """Detect when all nodes of a document have been tried once, and update the state of the machine."""
        machine = self.machine
        while True:
            await self._settling.wait()
            self._settling = trio.Event()
            await machine.graph.settled()
            if self._settling.is_set():
                continue
            machine.configured.applying = False
            if self._apply_started is not None:
                duration, self._apply_started = round(trio.current_time() - self._apply_started, 3), None
                counts = {"ready": len(machine.roster.hosts), "configured": len(machine.roster.planned)}
                log_event(
                    "reconfigure", "complete", revision=machine.configured.status.revision, duration=duration, **counts
                )
            if machine.lifecycle.state is MachineState.INITIALIZING:
                machine.lifecycle.state = MachineState.RUNNING
                machine.lifecycle.running.set()
                machine.log.info(
                    "running",
                    version=version(),
                    ready=len(machine.roster.hosts),
                    configured=len(machine.roster.planned),
                )

    def _log_changes(self, old: MachineDocument, new: MachineDocument) -> None:
        from schema import difference

        reveal = self.machine.options.reveal_sensitive_config_diffs
        changes = list(difference(old, new, reveal=reveal).lines)
        self.machine.log.info("the configuration changed", **{REVEALED if reveal else "changes": changes})


def with_revision(decoded: Decoded, data: bytes) -> Decoded:
    """Return `decoded` with a digest of the text `data` as revision, unless a cloud assigns revisions.

    The digest ignores whitespace, the order of keys, and the values of secrets, because it must not help to guess a
    password.
    """
    document = decoded.document
    if document is None or document.revision or document.cloud is not None:
        return decoded
    try:
        content = msgspec.json.encode(masked(msgspec.json.decode(data)), order="deterministic")
    except msgspec.MsgspecError:  # text with variables in place of values is not valid JSON
        content = data
    revision = f"file-{hashlib.sha256(content).hexdigest()[:12]}"
    return replace(decoded, document=replace(document, revision=revision))


def _problem(error: ConfigError) -> ConfigProblem:
    return ConfigProblem(error.path, error.reason, error.remedy)
