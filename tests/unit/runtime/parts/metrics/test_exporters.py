"""Queues, retries and the final export of exporters, in virtual time and without a socket."""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
import structlog.testing
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from runtime.parts.data.files.disk import InlineDisk
from runtime.parts.metrics import exporters
from runtime.parts.metrics.exporters import (
    BATCH,
    GATHER,
    LONGEST_PAUSE,
    POST_LIMIT,
    QUEUE,
    CollectorExporter,
    Printer,
    SpanFile,
)
from runtime.parts.metrics.post import CollectorEndpoint
from schema.errors import MachineError
from support.files.file_ring import FileRing
from support.worker import Worker
from telemetry.logs.sinks import ConsoleSink
from telemetry.metrics.spans import Span

ENDPOINT = CollectorEndpoint("collector", 4318, tls=False)


def span(name: str = "x") -> Span:
    return Span("1" * 32, "2" * 16, "", name, 1, 2_000_000)


class Wire:
    """A simulated network: it accepts requests, refuses them, or never answers."""

    def __init__(self) -> None:
        self.taken: list[tuple[float, str, Any]] = []
        self.attempts = 0
        self.mode = "takes"

    async def post(self, endpoint: CollectorEndpoint, path: str, body: bytes) -> None:
        self.attempts += 1
        await trio.lowlevel.checkpoint()
        if self.mode == "refuses":
            raise MachineError("the collector cannot be reached")
        if self.mode == "hangs":
            await trio.sleep_forever()
        self.taken.append((trio.current_time(), path, json.loads(body)))

    def names(self) -> list[str]:
        bodies = [body for _, path, body in self.taken if path == "/v1/traces"]
        return [item["name"] for body in bodies for item in body["resourceSpans"][0]["scopeSpans"][0]["spans"]]


@pytest.fixture
def wire() -> Wire:
    return Wire()


async def test_spans_of_a_second_go_in_one_request(wire: Wire, autojump_clock: MockClock) -> None:
    collector = CollectorExporter(ENDPOINT, {}, send=wire.post)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(collector.run)
        begun = trio.current_time()
        for number in range(3):
            collector.span(span(str(number)))
            await trio.sleep(GATHER / 10)
        await trio.sleep(2 * GATHER)
        assert wire.names() == ["0", "1", "2"]
        assert [when for when, _, _ in wire.taken] == [begun + GATHER]
        nursery.cancel_scope.cancel()


async def test_many_spans_go_in_batches(wire: Wire, autojump_clock: MockClock) -> None:
    collector = CollectorExporter(ENDPOINT, {}, send=wire.post)
    for number in range(BATCH + 1):
        collector.span(span(str(number)))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(collector.run)
        await trio.sleep(2 * GATHER)
        nursery.cancel_scope.cancel()
    assert len(wire.taken) == 2
    assert wire.names() == [str(number) for number in range(BATCH + 1)]


async def test_an_outage_is_reported_once_and_retried_with_increasing_delays_without_loss(
    wire: Wire, autojump_clock: MockClock
) -> None:
    collector = CollectorExporter(ENDPOINT, {}, send=wire.post)
    wire.mode = "refuses"
    with structlog.testing.capture_logs() as logs:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(collector.run)
            collector.span(span("during the outage"))
            await trio.sleep(10 * LONGEST_PAUSE)
            assert 10 <= wire.attempts <= 20
            wire.mode = "takes"
            await trio.sleep(2 * LONGEST_PAUSE)
            nursery.cancel_scope.cancel()
    assert wire.names() == ["during the outage"]
    assert [entry["log_level"] for entry in logs] == ["warning", "info"]


async def test_the_oldest_are_dropped_and_counted(wire: Wire, autojump_clock: MockClock) -> None:
    collector = CollectorExporter(ENDPOINT, {}, send=wire.post)
    for number in range(QUEUE + 5):
        collector.span(span(str(number)))
    assert collector.dropped == 5
    async with trio.open_nursery() as nursery:
        nursery.start_soon(collector.run)
        await trio.sleep(2 * GATHER)
        nursery.cancel_scope.cancel()
    assert wire.names()[0] == "5"
    assert len(wire.names()) == QUEUE


async def test_a_collector_that_does_not_answer_has_a_limit(wire: Wire, autojump_clock: MockClock) -> None:
    collector = CollectorExporter(ENDPOINT, {}, send=wire.post)
    wire.mode = "hangs"
    with structlog.testing.capture_logs() as logs:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(collector.run)
            collector.span(span())
            await trio.sleep(GATHER + POST_LIMIT + 0.5)
            nursery.cancel_scope.cancel()
    assert "did not answer within" in logs[0]["reason"]


async def test_remaining_spans_are_sent_at_the_end_within_a_limit(wire: Wire, autojump_clock: MockClock) -> None:
    collector = CollectorExporter(ENDPOINT, {}, send=wire.post)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(collector.run)
        await trio.sleep(GATHER)
        collector.span(span("last words"))
        nursery.cancel_scope.cancel()
    assert wire.names() == ["last words"]

    wire.mode = "hangs"
    begun = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(collector.run)
        collector.span(span())
        nursery.cancel_scope.cancel()
    assert trio.current_time() - begun <= exporters.LAST_LIMIT


async def test_only_the_newest_metrics_are_sent(wire: Wire, autojump_clock: MockClock) -> None:
    collector = CollectorExporter(ENDPOINT, {}, send=wire.post)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(collector.run)
        for number in range(3):
            collector.metrics({"a.State": float(number)})
        await trio.sleep(2 * GATHER)
        nursery.cancel_scope.cancel()
    ((_, path, body),) = wire.taken
    assert path == "/v1/metrics"
    metric = body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]
    assert metric["gauge"]["dataPoints"][0]["asDouble"] == 2.0


def test_the_printer_writes_a_line_for_each_span_and_group() -> None:
    reading, writing = os.pipe()
    printer = Printer(ConsoleSink(writing))
    printer.span(span("motor.stop"))
    failed = span("motor.go")
    failed.error = "INTERNAL"
    printer.span(failed)
    printer.metrics({"proc.x.RssMB": 1.23456789, "proc.x.Threads": 2, "trio.TasksLiving": 3})
    os.close(writing)
    with open(reading, encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file]
    assert [(line[1], line[2], line[4]) for line in lines] == [
        ("INFO", "rdk.spans", "motor.stop"),
        ("ERROR", "rdk.spans", "motor.go"),
        ("INFO", "rdk.metrics", "proc.x"),
        ("INFO", "rdk.metrics", "trio"),
    ]
    assert json.loads(lines[2][5]) == {"RssMB": 1.234568, "Threads": 2}
    assert json.loads(lines[0][5])["ms"] == 2.0


def names_on_disk(folder: Path) -> list[str]:
    """Return the names of the spans in all files, in order."""
    lines = [line for path in sorted(folder.iterdir()) for line in path.read_text().splitlines()]
    return [json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["name"] for line in lines]


@asynccontextmanager
async def span_file(folder: Path, worker: Worker) -> AsyncIterator[SpanFile]:
    """Yield a running SpanFile, and finish it at the end."""
    disk = SpanFile(FileRing(folder, "m-", ".jsonl", limit=10_000, keep=2), {"service.name": "m"}, worker)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(disk.run)
        yield disk
        nursery.cancel_scope.cancel()
    await disk.finish()


async def test_spans_on_disk_are_lines_and_a_failing_disk_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with span_file(tmp_path / "t", cast("Worker", InlineDisk())) as disk:
        disk.span(span("one"))
        await wait_all_tasks_blocked()
        with monkeypatch.context() as patch, structlog.testing.capture_logs() as logs:

            def full(fd: int, data: bytes) -> int:
                raise OSError(errno.ENOSPC, "No space left on device")

            patch.setattr(os, "write", full)
            for name in ("two", "three"):
                disk.span(span(name))
                await wait_all_tasks_blocked()
        assert [entry["reason"] for entry in logs] == ["No space left on device"]
        disk.span(span("four"))
    assert names_on_disk(tmp_path / "t") == ["one", "four"]


async def test_spans_are_written_by_a_thread_and_the_rest_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, writers, write = threading.current_thread(), set[threading.Thread](), os.write

    def noted(fd: int, data: bytes) -> int:
        if data.startswith(b"{"):
            writers.add(threading.current_thread())
        return write(fd, data)

    monkeypatch.setattr(os, "write", noted)
    worker = Worker("spans")
    async with worker.opened(), span_file(tmp_path / "t", worker) as disk:
        for name in ("one", "two"):
            disk.span(span(name))
    assert names_on_disk(tmp_path / "t") == ["one", "two"]
    assert writers
    assert loop not in writers


async def test_a_slow_disk_keeps_only_the_newest_spans(tmp_path: Path) -> None:
    disk = SpanFile(FileRing(tmp_path, "m-", ".jsonl", limit=10_000_000, keep=2), {}, cast("Worker", InlineDisk()))
    for number in range(QUEUE + 2):
        disk.span(span(str(number)))
    await disk.finish()
    names = names_on_disk(tmp_path)
    assert (len(names), names[0], names[-1]) == (QUEUE, "2", str(QUEUE + 1))
