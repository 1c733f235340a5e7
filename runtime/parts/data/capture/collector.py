"""Capture of one method of a resource, at a fixed frequency, but never faster than the resource answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

import structlog
import trio

from engine import ResourceHost
from hal import Hardware
from rpc.api import FitError
from runtime.parts.data.files.encode import Encode, Times, encoder
from runtime.parts.data.files.messages import CaptureSource
from runtime.parts.data.files.store import Store
from runtime.parts.data.files.writer import Writer
from runtime.parts.data.methods import Method
from schema import ErrorKind, MachineError

CALL_LIMIT: Final = 600.0  # seconds for one reading, as for calls of clients
CLOSE_LIMIT: Final = 5.0  # seconds for writing the last readings when capture ends
EXTRA: Final[Mapping[str, Any]] = {"fromDataManagement": True}
"""The argument `extra` of a call for capture, by which a driver can filter readings; published."""

NO_CAPTURE: Final = "no capture from filter module"
"""Text of the error (FAILED_PRECONDITION) with which a driver says that there is nothing to store; published."""


@dataclass(frozen=True, slots=True)
class Capture:
    """The task of one collector."""

    key: str  # its name in status and logs
    source: CaptureSource
    method: Method
    arguments: Mapping[str, Any]
    frequency: float  # Hz
    queue: int  # readings that may wait for the disk


class Collector:
    """Captures one method of a resource, in the capture's node."""

    def __init__(self, capture: Capture, host: ResourceHost, store: Store, hardware: Hardware) -> None:
        self._capture = capture
        self._host = host
        self._store = store
        self._hardware = hardware
        self._log: structlog.stdlib.BoundLogger = store.log.bind(capture=capture.key)
        self._arguments = dict(capture.arguments)
        if capture.method.extra:
            self._arguments["extra"] = dict(EXTRA)
        if capture.method.shape == "audio":
            self._arguments.setdefault("duration_seconds", 1 / capture.frequency)
        self._failures = 0
        self._error = ""

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Capture until cancelled; then write the remaining readings within CLOSE_LIMIT seconds and close the files."""
        capture = self._capture
        encode = encoder(self._host.name.api, capture.method, capture.source.parameters)
        with self._store.writing(capture.key, capture.source, capture.queue) as writer:
            async with trio.open_nursery() as nursery:
                scope = trio.CancelScope(shield=True)
                nursery.start_soon(_in_scope, scope, writer)
                try:
                    task_status.started()
                    await self._capture_at_ticks(encode, writer)
                finally:
                    writer.close()
                    with trio.move_on_after(CLOSE_LIMIT, shield=True) as limit:
                        await writer.done.wait()
                    if limit.cancelled_caught:
                        self._log.error(
                            "the disk did not answer: files are recovered at the next start", seconds=CLOSE_LIMIT
                        )
                    scope.cancel()

    async def _capture_at_ticks(self, encode: Encode, writer: Writer) -> None:
        async with self._hardware.ticks(1 / self._capture.frequency) as ticks:
            async for passed in ticks:
                writer.counters.missed += passed - 1
                try:
                    await self._capture_once(encode, writer)
                finally:
                    writer.counters.waiting_for = ""

    async def _capture_once(self, encode: Encode, writer: Writer) -> None:
        counters, clock = writer.counters, self._store.clock
        requested = clock()
        counters.waiting_for = "resource"
        try:
            with trio.move_on_after(CALL_LIMIT) as limit:
                async with self._host.use() as resource:
                    result = await self._call(resource)
            if limit.cancelled_caught:
                raise MachineError(f"no reading within {CALL_LIMIT:g} s", kind=ErrorKind.TIMEOUT)
            records = list(encode(result, Times(requested, clock())))
        except MachineError as error:
            if error.kind is ErrorKind.PRECONDITION and NO_CAPTURE in error.message:
                counters.filtered += 1
            else:
                self._failed(writer, str(error))
            return
        except FitError as error:
            self._failed(writer, f"its result does not match its API: {error}")
            return
        except NotImplementedError:
            self._failed(writer, f"its model does not implement {self._capture.method.python}")
            return
        except Exception as error:  # a driver's own code
            self._failed(writer, repr(error))
            return
        self._succeeded()
        if not records:
            counters.filtered += 1
        counters.waiting_for = "disk"
        for record in records:
            await writer.backlog.put(record)
            counters.captured += 1
            if record.note:
                counters.mended += 1
                self._log.warning("annotations of a picture were changed to store it", annotations=record.note)

    async def _call(self, resource: Any) -> Any:
        function = getattr(resource, self._capture.method.python)
        if self._capture.method.shape != "audio":
            return await function(**self._arguments)
        generator: AsyncGenerator[Any, None] = function(**self._arguments)
        async with aclosing(generator) as chunks:
            return [chunk async for chunk in chunks]

    def _failed(self, writer: Writer, error: str) -> None:
        """Count a failure, and log it if it is the first one or has another reason than the last one."""
        writer.counters.failed += 1
        writer.counters.last_error = error
        self._failures += 1
        if error != self._error:
            self._error = error
            self._log.warning("capture fails", error=error)

    def _succeeded(self) -> None:
        if self._failures:
            self._log.info("capture works again", failures=self._failures)
            self._failures, self._error = 0, ""


async def _in_scope(scope: trio.CancelScope, writer: Writer) -> None:
    with scope:
        await writer.run()
