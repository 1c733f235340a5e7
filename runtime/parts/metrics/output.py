"""The part that exports spans and metrics, as -output-telemetry and the section `tracing` say."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final

import trio

from engine import PartContext, home
from engine.planning import INTERNAL
from nursery_graph import Node
from runtime.parts.metrics.exporters import CollectorExporter, Printer, SpanFile
from runtime.parts.metrics.post import CollectorEndpoint
from schema import ConfigError
from schema.document import MachineDocument, Tracing
from support import Worker, version
from support.files import FileRing
from telemetry.metrics import Span

NODE: Final = f"{INTERNAL}telemetry"
FOLDER: Final = "traces"
LOCAL: Final = "local-config"  # in place of the part id of a machine without cloud
PERIOD: Final = 10.0  # seconds between two samples of metrics; reference value
LIMIT: Final = 10_000_000  # maximum bytes of a file of spans
KEEP: Final = 5  # files of spans


class Telemetry:
    """The part of machine-server that exports spans and metrics."""

    def __init__(self, context: PartContext) -> None:
        self._context = context

    def nodes(self, document: MachineDocument) -> list[Node]:
        """Return one node if spans or metrics are exported."""
        tracing, printed = document.tracing, self._context.options.output_telemetry
        if not printed and not tracing.enabled:
            return []
        part = document.cloud.id if document.cloud is not None else LOCAL
        return [Node(NODE, partial(self._live, tracing, part), version=(repr(tracing), part))]

    async def _live(
        self, tracing: Tracing, part: str, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]
    ) -> None:
        context = self._context
        resource = {
            "service.name": "machine-server",
            "service.version": version(),
            "service.instance.id": part,
            "host.name": socket.gethostname(),
        }
        printed = context.options.output_telemetry
        printer = Printer() if printed or tracing.console else None
        async with AsyncExitStack() as stack:
            disk = None
            if tracing.enabled and tracing.disk:
                ring = FileRing(
                    home(context.environment) / FOLDER / part, "machine-server-", ".jsonl", limit=LIMIT, keep=KEEP
                )
                worker = Worker("span files")
                await stack.enter_async_context(worker.opened())
                disk = SpanFile(ring, resource, worker)
                stack.push_async_callback(disk.finish)  # after the tracer was stopped
            collector = _collector(tracing, resource, metrics=printed)
            exporters = [exporter for exporter in (printer, disk, collector) if exporter is not None]

            def collect(span: Span) -> None:
                for exporter in exporters:
                    exporter.span(span)

            context.tracer.start(collect, context.graph.snapshot())
            stack.callback(context.tracer.stop)
            stack.callback(context.graph.subscribe(context.tracer.note_transition))
            task_status.started()
            async with trio.open_nursery() as nursery:
                if collector is not None:
                    nursery.start_soon(collector.run)
                if disk is not None:
                    nursery.start_soon(disk.run)
                if printed:
                    await self._measure([exporter for exporter in (printer, collector) if exporter is not None])
                else:
                    await trio.sleep_forever()

    async def _measure(self, exporters: list[Printer | CollectorExporter]) -> None:
        while True:
            await trio.sleep(PERIOD)
            values = self._context.sample()
            for exporter in exporters:
                exporter.metrics(values)


def _collector(tracing: Tracing, resource: Mapping[str, Any], *, metrics: bool) -> CollectorExporter | None:
    """Return the configured collector, or None unless tracing is enabled or `metrics` are exported.

    Raises ConfigError if its address is invalid.
    """
    if not tracing.otlp_endpoint or not (tracing.enabled or metrics):
        return None
    try:
        return CollectorExporter(CollectorEndpoint.parse(tracing.otlp_endpoint), resource)
    except ValueError as error:
        raise ConfigError("tracing.otlpendpoint", str(error), value=tracing.otlp_endpoint) from None
