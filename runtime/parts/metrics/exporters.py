"""Exporters of spans and metrics: terminal, ring of files, OpenTelemetry collector.

An exporter never raises: it drops what it cannot deliver.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import structlog
import trio

from engine.metrics import CUMULATIVE, UNITS
from runtime.parts.metrics.post import CollectorEndpoint, post
from schema import MachineError
from support import Worker
from support.files import FileRing
from telemetry.logs import ERROR, INFO, ConsoleSink, Entry
from telemetry.logs.logger_names import ROOT
from telemetry.metrics import Span, metrics_request, spans_request

BATCH: Final = 512  # spans in one request
QUEUE: Final = 4096  # spans that wait for the collector or the disk; then the oldest are dropped
GATHER: Final = 1.0  # seconds from the first span to the request
POST_LIMIT: Final = 10.0  # seconds for one request
LAST_LIMIT: Final = 2.0  # seconds to send the rest when the server stops
LONGEST_PAUSE: Final = 60.0  # seconds between two attempts

Send = Callable[[CollectorEndpoint, str, bytes], Awaitable[None]]
"""Delivers a document to a path below an endpoint. Raises MachineError unless it is accepted."""

_log = structlog.get_logger(f"{ROOT}.telemetry")


class Printer:
    """Writes spans and metrics to standard output as log lines, with one line per span or group of metrics."""

    def __init__(self, sink: ConsoleSink | None = None) -> None:
        self._sink = sink or ConsoleSink()
        self._printed = 0

    def span(self, span: Span) -> None:
        """Print a finished span."""
        fields: dict[str, Any] = {"ms": round(span.milliseconds, 3), "trace": span.trace, "span": span.id}
        if span.parent:
            fields["parent"] = span.parent
        if span.error:
            fields["error"] = span.error
        self._print(ERROR if span.error else INFO, "spans", span.name, {**fields, **span.attributes})

    def metrics(self, values: Mapping[str, float]) -> None:
        """Print one sample."""
        groups: dict[str, dict[str, float]] = {}
        for name, value in values.items():
            group, _, word = name.rpartition(".")
            groups.setdefault(group, {})[word] = round(value, 6)
        for group, fields in groups.items():
            self._print(INFO, "metrics", group, fields)

    def _print(self, level: int, logger: str, message: str, fields: Mapping[str, Any]) -> None:
        self._printed += 1
        self._sink.write(Entry(self._printed, time.time(), level, f"{ROOT}.{logger}", "", message, fields))


class SpanFile:
    """Writes spans to files in the format of the OpenTelemetry file exporter: OTLP JSON lines.

    All calls that may block on the disk run in `worker`, which the caller opens.
    """

    def __init__(self, ring: FileRing, resource: Mapping[str, Any], worker: Worker) -> None:
        self._ring = ring
        self._resource = resource
        self._worker = worker
        self._spans: deque[Span] = deque(maxlen=QUEUE)
        self._queued = trio.Event()
        self._failing = False

    def span(self, span: Span) -> None:
        """Queue a finished span; drop the oldest one if the queue is full."""
        self._spans.append(span)
        self._queued.set()

    async def run(self) -> None:
        """Write queued spans until cancelled."""
        while True:
            await self._queued.wait()
            await self._write_queued()

    async def finish(self) -> None:
        """Write the remaining spans within LAST_LIMIT seconds, even if cancelled, and close the file."""
        with trio.move_on_after(LAST_LIMIT, shield=True):
            await self._write_queued()
        self._worker.post(self._ring.close)

    async def _write_queued(self) -> None:
        """Write the queued spans. One that cannot be written is dropped; only the first failure in a row is logged."""
        self._queued = trio.Event()
        if not self._spans:
            return
        try:
            await self._worker.run(self._write)
        except OSError as error:
            if not self._failing:
                self._failing = True
                _log.warning("spans are not written to disk", folder=str(self._ring.folder), reason=error.strerror)
        else:
            self._failing = False

    def _write(self) -> None:
        """Write and remove the queued spans, in the worker's thread: then none is lost if the caller is cancelled."""
        try:
            while self._spans:
                span = self._spans.popleft()
                if not self._ring.is_open or self._ring.is_full:
                    self._ring.open(datetime.now(UTC))
                self._ring.write(msgspec.json.encode(spans_request([span], self._resource)) + b"\n")
        except OSError:
            self._ring.close()
            raise


class CollectorExporter:
    """Sends spans and metrics to an OpenTelemetry collector, with `send`."""

    def __init__(self, endpoint: CollectorEndpoint, resource: Mapping[str, Any], *, send: Send = post) -> None:
        self._endpoint = endpoint
        self._send_body = send
        self._resource = resource
        self._spans: deque[Span] = deque(maxlen=QUEUE)
        self._metrics: bytes = b""
        self._queued = trio.Event()
        self._failing = False
        self.dropped = 0
        self.started = time.time_ns()

    def span(self, span: Span) -> None:
        """Queue a finished span; drop the oldest one if the queue is full."""
        self.dropped += len(self._spans) == QUEUE
        self._spans.append(span)
        self._queued.set()

    def metrics(self, values: Mapping[str, float]) -> None:
        """Queue one sample, which replaces a sample that has not been sent yet."""
        request = metrics_request(values, start=self.started, now=time.time_ns(), kind=kind_of, resource=self._resource)
        self._metrics = msgspec.json.encode(request)
        self._queued.set()

    async def run(self) -> None:
        """Send spans and metrics until cancelled; then send the rest within LAST_LIMIT seconds."""
        pause = GATHER
        try:
            while True:
                await self._queued.wait()
                await trio.sleep(pause)
                pause = GATHER if await self._send() else min(LONGEST_PAUSE, 2 * pause)
        finally:
            with trio.move_on_after(LAST_LIMIT, shield=True):
                await self._send()

    async def _send(self) -> bool:
        """Send everything that is queued. Return False if the collector did not accept it."""
        self._queued = trio.Event()
        try:
            while self._spans:
                batch = [self._spans[index] for index in range(min(BATCH, len(self._spans)))]
                newest = batch[-1]
                await self._post("/v1/traces", msgspec.json.encode(spans_request(batch, self._resource)))
                while self._spans and self._spans.popleft() is not newest:
                    pass
            if self._metrics:
                body, self._metrics = self._metrics, b""
                await self._post("/v1/metrics", body)
        except MachineError as error:
            self._queued.set()
            if not self._failing:
                self._failing = True
                _log.warning("telemetry cannot be delivered", reason=str(error), kept=len(self._spans))
            return False
        if self._failing:
            self._failing = False
            _log.info("telemetry is delivered again", dropped=self.dropped)
        return True

    async def _post(self, path: str, body: bytes) -> None:
        with trio.move_on_after(POST_LIMIT) as limit:
            await self._send_body(self._endpoint, path, body)
        if limit.cancelled_caught:
            raise MachineError(f"{self._endpoint} did not answer within {POST_LIMIT:g} s")


def kind_of(name: str) -> tuple[str, bool]:
    """Return the unit of a metric, and whether it is a cumulative counter."""
    word = name.rpartition(".")[2]
    if word in CUMULATIVE:
        return CUMULATIVE[word].removesuffix("/s").replace("cores", "s"), True
    return UNITS.get(word, ""), False
