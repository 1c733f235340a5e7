"""Client of viam.app.datasync.v1.DataSyncService. Messages from capture files are sent without conversion."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

import trio
from google.rpc.error_details_pb2 import RetryInfo
from grpclib.const import Cardinality
from grpclib.exceptions import GRPCError, StreamTerminatedError

from rpc import to_machine_error
from rpc.api import find_method, messages
from runtime.parts.data.files.messages import parameters_of
from runtime.parts.data.methods import DATASETS_KEY
from schema import ErrorKind, MachineError
from support import unwrap

SERVICE: Final = "viam.app.datasync.v1.DataSyncService"
UNARY: Final = 1024 * 1024  # bytes; larger readings are streamed; reference value
PIECE: Final = 64 * 1024  # bytes of a file in one message; reference value
CALL_LIMIT: Final = 30.0  # seconds for a call, in addition to the time for its bytes
SLOWEST: Final = 8 * 1024  # assumed minimum bytes per second of a connection

Read = Callable[[int, int], Awaitable[bytes]]
"""Called with offset and size, returns at least one and at most `size` bytes. Raises MachineError if that fails."""


MAX_AFTER: Final = 3600.0  # maximum seconds that a cloud can ask to wait


class Busy(MachineError):
    """The cloud accepts nothing now, and asks to wait for `after` seconds (google.rpc.RetryInfo)."""

    def __init__(self, reason: MachineError, after: float) -> None:
        super().__init__(reason.message, kind=reason.kind)
        self.after = min(max(after, 0.0), MAX_AFTER)


def limit_of(size: int) -> float:
    """Return the time limit in seconds for a call that sends `size` bytes."""
    return CALL_LIMIT + size / SLOWEST


class Uploader:
    """Uploads for one part over `channel`, which the caller closes.

    Every upload returns when the cloud has acknowledged it. It raises MachineError: the error of the cloud, UNAVAILABLE
    if the connection is lost, TIMEOUT if there is no answer in time, or an error of `read`.
    """

    def __init__(self, channel: Any, part: str) -> None:
        self._channel = channel
        self._part = part
        self._sync = messages.load("app.datasync.v1.data_sync_pb2")

    def metadata(self, header: Any, name: str) -> Any:
        """Return the UploadMetadata for a capture file with the DataCaptureMetadata `header`."""
        metadata = self._sync.UploadMetadata(
            part_id=self._part,
            component_type=header.component_type,
            component_name=header.component_name,
            method_name=header.method_name,
            type=header.type,
            file_name=name,
            file_extension=header.file_extension,
            tags=header.tags,
            dataset_ids=_datasets_of(header),
            mime_type=header.mime_type,
        )
        for key, value in header.method_parameters.items():
            metadata.method_parameters[key].CopyFrom(value)
        return metadata

    def file_metadata(
        self, name: str, extension: str, changed: float, tags: Iterable[str] = (), datasets: Iterable[str] = ()
    ) -> Any:
        """Return the UploadMetadata for another file. `changed` is its modification time, in seconds since 1970."""
        metadata = self._sync.UploadMetadata(
            part_id=self._part,
            type=self._sync.DATA_TYPE_FILE,
            file_name=name,
            file_extension=extension,
            tags=tags,
            dataset_ids=datasets,
        )
        metadata.file_modify_time.FromNanoseconds(int(changed * 1e9))
        return metadata

    def binary_metadata(
        self, service: str, name: str, mime_type: str, extension: str, tags: Iterable[str], datasets: Iterable[str]
    ) -> Any:
        """Return the UploadMetadata for bytes that a client passed to the data manager `service`."""
        return self._sync.UploadMetadata(
            part_id=self._part,
            component_type="rdk:service:data_manager",
            component_name=service,
            method_name="UploadBinaryDataToDatasets",
            type=self._sync.DATA_TYPE_BINARY_SENSOR,
            file_name=name,
            file_extension=extension,
            tags=tags,
            dataset_ids=datasets,
            mime_type=mime_type,
        )

    async def binary(self, metadata: Any, data: bytes, moment: int) -> None:
        """Upload bytes in memory. `moment` is the time of their arrival, in nanoseconds since 1970."""
        sensor = self._sync.SensorMetadata()
        sensor.time_requested.FromNanoseconds(moment)
        sensor.time_received.FromNanoseconds(moment)
        if len(data) <= UNARY:
            await self.readings(metadata, [self._sync.SensorData(metadata=sensor, binary=data)])
            return

        async def read(offset: int, size: int) -> bytes:
            return data[offset : offset + size]

        await self.large(metadata, sensor, len(data), read)

    async def readings(self, metadata: Any, readings: Iterable[Any]) -> None:
        """Upload readings (SensorData) that fit into one message."""
        request = self._sync.DataCaptureUploadRequest(metadata=metadata, sensor_contents=readings)
        await self._call("data_capture_upload", request, request.ByteSize())

    async def large(self, metadata: Any, sensor: Any, size: int, read: Read) -> None:
        """Upload a binary reading of `size` bytes in pieces."""
        kind = self._sync.StreamingDataCaptureUploadRequest
        first = kind(metadata=self._sync.DataCaptureUploadMetadata(upload_metadata=metadata, sensor_metadata=sensor))
        await self._call("streaming_data_capture_upload", first, size, lambda piece: kind(data=piece), read)

    async def file(self, metadata: Any, size: int, read: Read) -> None:
        """Upload another file of `size` bytes in pieces."""
        kind, data = self._sync.FileUploadRequest, self._sync.FileData
        first = kind(metadata=metadata)
        await self._call("file_upload", first, size, lambda piece: kind(file_contents=data(data=piece)), read)

    async def _call(
        self, name: str, first: Any, size: int, wrap: Callable[[bytes], Any] | None = None, read: Read | None = None
    ) -> None:
        method = find_method(SERVICE, name)
        kinds = Cardinality((method.client_streaming, method.server_streaming))
        limit = limit_of(size)
        try:
            with trio.fail_after(limit):
                async with self._channel.request(method.path, kinds, method.request_class, method.reply_class) as call:
                    if wrap is None or read is None or not size:
                        await call.send_message(first, end=True)
                        reply = await call.recv_message()
                    else:
                        await call.send_message(first)
                        reply = await _exchanged(call, size, wrap, read)
        except trio.TooSlowError:
            raise MachineError(f"no answer within {limit:.0f} s", kind=ErrorKind.TIMEOUT) from None
        except GRPCError as error:
            raise _cloud_error(error) from None
        except (StreamTerminatedError, OSError) as error:
            raise MachineError(f"the connection was lost: {error}", kind=ErrorKind.UNAVAILABLE) from error
        if reply is None:
            raise MachineError("the cloud ended the call without an answer", kind=ErrorKind.UNAVAILABLE)


def _datasets_of(header: Any) -> list[str]:
    """Return the datasets that a capture file names. The file may come from another program."""
    ids = parameters_of(header).get(DATASETS_KEY)
    return [item for item in ids if isinstance(item, str)] if isinstance(ids, list) else []


def _cloud_error(error: GRPCError) -> MachineError:
    cloud_error = to_machine_error(error)
    for detail in error.details or ():
        if isinstance(detail, RetryInfo):
            return Busy(cloud_error, detail.retry_delay.ToTimedelta().total_seconds())
    return cloud_error


async def _exchanged(call: Any, size: int, wrap: Callable[[bytes], Any], read: Read) -> Any:
    """Send all pieces and return the answer, which may come earlier if the cloud refuses the upload."""

    async def send() -> None:
        offset = 0
        while offset < size:
            piece = await read(offset, min(PIECE, size - offset))
            offset += len(piece)
            await call.send_message(wrap(piece), end=offset >= size)

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            reply = await call.recv_message()
            nursery.cancel_scope.cancel()
            return reply
    except BaseExceptionGroup as group:
        raise _only(group) from None


def _only(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the relevant exception of a group: a MachineError, else the cloud's error, else the first one."""
    ours = unwrap(group)
    if ours is not group:
        return ours
    leaf: BaseException = group.subgroup(GRPCError) or group
    while isinstance(leaf, BaseExceptionGroup):
        leaf = leaf.exceptions[0]
    return leaf
