"""A cloud in memory that accepts uploads: it deduplicates as the real one does, and fails as the test asks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog
import trio
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError

from rpc.api import messages
from rpc.api.client import find_method
from rpc.api.convert import values
from rpc.api.memory import MemoryChannel
from runtime.parts.data.files.disk import InlineDisk
from runtime.parts.data.files.files import CaptureFile
from runtime.parts.data.files.frames import framed
from runtime.parts.data.files.messages import CaptureSource
from runtime.parts.data.files.names import folder_of
from runtime.parts.data.files.store import Store
from runtime.parts.data.sync.sync import Syncer, SyncSettings
from runtime.parts.data.sync.upload import SERVICE, Uploader
from uplink.contact import Contact

LOG = structlog.stdlib.get_logger("test")
SYNC = messages.load("app.datasync.v1.data_sync_pb2")
T0 = 1_790_000_000 * 10**9  # nanoseconds since 1970: when the first file of a test was begun


@dataclass(slots=True)
class Upload:
    """One complete upload call."""

    method: str
    metadata: Any
    contents: list[Any] = field(default_factory=list)
    data: bytes = b""
    pieces: int = 0
    time: float = 0.0

    @property
    def key(self) -> tuple[Any, ...]:
        """Return the key that a repeated upload shares."""
        return (
            self.metadata.SerializeToString(deterministic=True),
            tuple(content.SerializeToString(deterministic=True) for content in self.contents),
            self.data,
        )

    @property
    def name(self) -> str:
        """Return the name of the file."""
        return str(self.metadata.file_name)


Judge = Callable[[Upload], Awaitable[None]]


async def takes(upload: Upload) -> None:
    """Accept every upload."""


class FakeCloud:
    """Keep the uploads that `before` accepts; `after` may lose the answer. Also stands in for CloudAddress."""

    url = "http://cloud.test"
    part = "part-1"
    certificate = None

    def __init__(self) -> None:
        self.calls: list[Upload] = []  # every call
        self.kept: list[Upload] = []  # without repetitions, in order
        self.before: Judge = takes
        self.after: Judge = takes
        self.logs: list[Any] = []
        self.contact = Contact()
        self.at_once = 0  # calls in progress
        self.most_at_once = 0
        self._keys: set[Any] = set()

    @property
    def address(self) -> FakeCloud:
        """Stand in for CloudLink."""
        return self

    @asynccontextmanager
    async def channel(self) -> AsyncIterator[Any]:
        """Stand in for CloudAddress."""
        yield MemoryChannel(self)

    def uploader(self) -> Uploader:
        return Uploader(MemoryChannel(self), self.part)

    def numbers(self) -> list[int]:
        """Return the readings `number` in the order in which they were kept."""
        return [number(content) for upload in self.kept for content in upload.contents if content.HasField("struct")]

    def chunks(self) -> list[list[int]]:
        """Return the numbers in each call, whether it was kept or not."""
        return [[number(content) for content in upload.contents] for upload in self.calls]

    # ---- as a router

    def get(self, path: str) -> Handler | None:
        service, _, name = path.lstrip("/").rpartition("/")
        if service == "viam.app.v1.RobotService" and name == "Log":
            method = find_method(service, "log")
            return Handler(self._log, Cardinality.UNARY_UNARY, method.request_class, method.reply_class)
        if service != SERVICE:
            return None
        method = find_method(
            SERVICE,
            {
                "DataCaptureUpload": "data_capture_upload",
                "FileUpload": "file_upload",
                "StreamingDataCaptureUpload": "streaming_data_capture_upload",
            }[name],
        )
        cardinality = Cardinality((method.client_streaming, method.server_streaming))
        handle = self._stream if method.client_streaming else self._unary
        return Handler(handle, cardinality, method.request_class, method.reply_class)

    async def _log(self, stream: Any) -> None:
        request = await stream.recv_message()
        await self.before(Upload("Log", request, [*request.logs]))
        self.logs += request.logs
        await self.after(Upload("Log", request, [*request.logs]))
        await stream.send_message(messages.load("app.v1.robot_pb2").LogResponse())

    async def _unary(self, stream: Any) -> None:
        request = await stream.recv_message()
        upload = Upload("DataCaptureUpload", request.metadata, [*request.sensor_contents])
        await self._take(stream, upload, SYNC.DataCaptureUploadResponse)

    async def _stream(self, stream: Any) -> None:
        first = await stream.recv_message()
        if isinstance(first, SYNC.FileUploadRequest):
            upload, reply = Upload("FileUpload", first.metadata), SYNC.FileUploadResponse
        else:
            upload = Upload("StreamingDataCaptureUpload", first.metadata.upload_metadata)
            upload.contents.append(SYNC.SensorData(metadata=first.metadata.sensor_metadata))
            reply = SYNC.StreamingDataCaptureUploadResponse
        async for request in stream:
            upload.data += request.file_contents.data if upload.method == "FileUpload" else request.data
            upload.pieces += 1
        await self._take(stream, upload, reply)

    async def _take(self, stream: Any, upload: Upload, reply: Any) -> None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            upload.time = trio.current_time()
            self.calls.append(upload)
            await self.before(upload)
            if upload.key not in self._keys:
                self._keys.add(upload.key)
                self.kept.append(upload)
            await self.after(upload)
            await stream.send_message(reply(file_id="f"))
        finally:
            self.at_once -= 1


def failing(
    status: Status,
    *,
    when: Callable[[Upload], bool] = lambda upload: True,
    message: str = "no",
    details: Sequence[Any] | None = None,
) -> Judge:
    """Return a judge that refuses the uploads for which `when` is true."""

    async def judge(upload: Upload) -> None:
        if when(upload):
            raise GRPCError(status, message, details)

    return judge


# ---- files as capture writes them


def number(reading: Any) -> int:
    return int(values.read_struct(reading.struct)["readings"]["number"])


def reading(value: int, *, padding: int = 0) -> bytes:
    """Return a framed SensorData of a counting sensor."""
    message = SYNC.SensorData()
    message.metadata.time_requested.FromNanoseconds(T0 + value * 1000)
    message.metadata.time_received.FromNanoseconds(T0 + value * 1000 + 1)
    said: dict[str, Any] = {"number": value} | ({"padding": "x" * padding} if padding else {})
    values.fill_fields(message.struct.fields, {"readings": said})
    return framed(message.SerializeToString())


def picture(data: bytes, *, label: str = "") -> bytes:
    message = SYNC.SensorData(binary=data)
    message.metadata.time_requested.FromNanoseconds(T0)
    if label:
        message.metadata.annotations.classifications.add(label=label)
    return framed(message.SerializeToString())


def write(folder: Path, source: CaptureSource, content: bytes, at: int = 0, mime_type: str = "") -> Path:
    """Write a closed capture file that was begun `at` microseconds after the first."""
    place = folder / folder_of(source.component_type, source.component_name, source.method)
    file = CaptureFile(place, source.header(mime_type), lambda: T0 + at * 1000)
    file.append(content, 1)
    return file.finish()


def sensor(name: str = "s", **more: Any) -> CaptureSource:
    return CaptureSource("rdk:component:sensor", name, "Readings", **more)


def camera(name: str = "c") -> CaptureSource:
    return CaptureSource("rdk:component:camera", name, "GetImages", binary=True)


def counted(
    folder: Path, count: int, *, each: int = 1, name: str = "s", padding: int = 0, first: int = 0
) -> list[Path]:
    """Write `count` files of `each` readings with consecutive numbers."""
    return [
        write(
            folder,
            sensor(name),
            b"".join(reading(first + index * each + offset, padding=padding) for offset in range(each)),
            index,
        )
        for index in range(count)
    ]


@asynccontextmanager
async def syncing(
    folder: Path, cloud: FakeCloud, *, settings: SyncSettings | None = None, disk: InlineDisk | None = None, **more: Any
) -> AsyncIterator[Syncer]:
    """Run a syncer of `folder`."""
    store = Store(folder, InlineDisk(), LOG, largest=2**18)
    syncer = Syncer(store, disk or InlineDisk(), cloud.uploader(), settings or SyncSettings(6.0), **more)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(syncer.run)
        yield syncer
        nursery.cancel_scope.cancel()


def left(folder: Path) -> list[str]:
    """Return every file below a folder except those moved to `failed`."""
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and path.relative_to(folder).parts[0] != "failed"
    )
