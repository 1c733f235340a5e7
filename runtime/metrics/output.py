"""The part that gives spans and metrics away: to -output-telemetry and to what `tracing` names."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any, Final

import trio

from nursery_graph import Node
from runtime.ftdc.recorder import LOCAL
from runtime.ftdc.ring import FileRing
from runtime.machine import INTERNAL
from runtime.metrics.exporters import Collector, Disk, Printer
from runtime.metrics.post import Endpoint
from runtime.metrics.sample import Sampler
from runtime.modules.command import home
from runtime.parts import Surroundings
from runtime.version import version
from schema.errors import ConfigError
from schema.machine import MachineDocument
from schema.tracing import Tracing
from telemetry.spans import Span

NODE: Final = f"{INTERNAL}telemetry"
FOLDER: Final = "traces"
PERIOD: Final = 10.0  # seconds between two samples of metrics; reference value
LIMIT: Final = 10_000_000  # bytes of a file of spans
KEEP: Final = 5  # such files


class Telemetry:
    """A part of the machine."""

    def __init__(self, around: Surroundings) -> None:
        self._machine = around.machine
        self._environment = around.environment

    def nodes(self, document: MachineDocument) -> list[Node]:
        """One while anybody wants spans or metrics."""
        tracing, printed = document.tracing, self._machine.options.output_telemetry
        if not printed and not tracing.enabled:
            return []
        part = document.cloud.id if document.cloud is not None else LOCAL
        return [Node(NODE, partial(self._live, tracing, part), version=(repr(tracing), part))]

    async def _live(
        self, tracing: Tracing, part: str, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]
    ) -> None:
        machine = self._machine
        resource = {
            "service.name": "machine-server",
            "service.version": version(),
            "service.instance.id": part,
            "host.name": socket.gethostname(),
        }
        printed = machine.options.output_telemetry
        printer = Printer() if printed or tracing.console else None
        with ExitStack() as stack:
            disk = None
            if tracing.enabled and tracing.disk:
                ring = FileRing(
                    home(self._environment) / FOLDER / part, "machine-server-", ".jsonl", limit=LIMIT, keep=KEEP
                )
                disk = Disk(ring, resource)
                stack.callback(disk.close)
            collector = _collector(tracing, resource, wanted=printed)
            takers = [taker for taker in (printer, disk, collector) if taker is not None]

            def collect(span: Span) -> None:
                for taker in takers:
                    taker.span(span)

            machine.tracer.start(collect, machine.graph.snapshot())
            stack.callback(machine.tracer.stop)
            stack.callback(machine.graph.subscribe(machine.tracer.note_transition))
            task_status.started()
            async with trio.open_nursery() as nursery:
                if collector is not None:
                    nursery.start_soon(collector.run)
                if printed:
                    await self._measure([taker for taker in (printer, collector) if taker is not None])
                else:
                    await trio.sleep_forever()

    async def _measure(self, takers: list[Printer | Collector]) -> None:
        sampler = Sampler(self._machine)
        while True:
            await trio.sleep(PERIOD)
            values = sampler.sample()
            for taker in takers:
                taker.metrics(values)


def _collector(tracing: Tracing, resource: Mapping[str, Any], *, wanted: bool) -> Collector | None:
    """The collector that is configured, if spans or metrics are `wanted`; ConfigError if it is no address."""
    if not tracing.otlp_endpoint or not (tracing.enabled or wanted):
        return None
    try:
        return Collector(Endpoint.parse(tracing.otlp_endpoint), resource)
    except ValueError as error:
        raise ConfigError("tracing.otlpendpoint", str(error), value=tracing.otlp_endpoint) from None
