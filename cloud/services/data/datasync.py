"""viam.app.datasync.v1.DataSyncService: uploads of data that machines have captured.

An acknowledged upload is on disk, and was passed to the triggers in the same transaction. Uploads are idempotent: a
repeated upload, such as after a lost answer, adds nothing and returns the same id. Files are equal if part, component,
method, name, times and content are; readings, if also their tags are. Readings without any time always count as new.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from json.encoder import encode_basestring_ascii
from typing import Any, Final

import structlog

from cloud.blobs import Blob, discard
from cloud.domain.alerts.observing import listens
from cloud.domain.data import datasets, files, labels, media, sources
from cloud.domain.data.parameters import plain
from cloud.domain.data.readings import NewReading, NewUpload
from cloud.domain.organizations.tenants import missing
from cloud.domain.permissions.access import ObjectKind, Role
from cloud.domain.permissions.rules import ITSELF_UPLOADS, allow, machine
from cloud.domain.triggering.configured import uses_data
from cloud.domain.triggering.ingestion import Ingestion, ingested
from cloud.domain.triggering.upload_groups import CheckedUpload, WaitingUpload
from cloud.services.common.base import Service, guarded
from cloud.services.data import data_messages as m
from cloud.services.data.contents import Captured, UploadContents
from cloud.store.sql import Sql
from cloud.values.author import PART
from cloud.values.times import moment_of, stored
from schema import ErrorKind, MachineError
from schema.data import Annotation, mended

_log = structlog.get_logger("cloud.data")
MIME: Final = {
    m.MimeType.IMAGE_JPEG: "image/jpeg",
    m.MimeType.IMAGE_PNG: "image/png",
    m.MimeType.APPLICATION_PCD: "pointcloud/pcd",
    m.MimeType.VIDEO_MP4: "video/mp4",
}
KINDS: Final = {m.DataType.BINARY_SENSOR: "binary", m.DataType.TABULAR_SENSOR: "tabular", m.DataType.FILE: "file"}
TOGETHER: Final = 100  # readings that are encoded as JSON at a time
BEGINNING: Final = 16  # bytes needed to detect the type of content


@guarded
class DataSyncService(Service):
    """An upload, by a machine or with an owner's key of its organization."""

    @allow(ITSELF_UPLOADS)
    async def data_capture_upload(self, metadata: m.UploadMetadata, sensor_contents: UploadContents) -> m.Uploaded:
        """Store captured items: either only readings or only contents of files."""
        problem = _shape_error(metadata, sensor_contents)
        if problem is None and sensor_contents.readings:
            return await self._keep_readings(metadata, sensor_contents.readings)
        await self._require_machine(metadata)
        if problem is not None:
            raise problem
        ids = [
            await self._keep_file(metadata, item.metadata, _single(item.binary or b""))
            for item in sensor_contents.items
        ]
        return m.Uploaded(ids[0], ids[0])

    @allow(machine("part_id"))
    async def file_upload(
        self,
        part_id: str,
        contents: AsyncIterator[bytes],
        component_type: str = "",
        component_name: str = "",
        method_name: str = "",
        type: m.DataType = m.DataType.FILE,  # noqa: A002 - field of the wire
        method_parameters: Mapping[str, Any] | None = None,
        file_name: str = "",
        file_extension: str = "",
        file_create_time: datetime | None = None,
        file_modify_time: datetime | None = None,
        tags: Sequence[str] = (),
        dataset_ids: Sequence[str] = (),
        mime_type: str = "",
    ) -> m.Uploaded:
        """Store a file that arrives in pieces."""
        metadata = m.UploadMetadata(
            part_id,
            component_type,
            component_name,
            method_name,
            m.DataType.FILE if type is m.DataType.UNSPECIFIED else type,
            method_parameters or {},
            file_name,
            file_extension,
            file_create_time,
            file_modify_time,
            list(tags),
            list(dataset_ids),
            mime_type,
        )
        times = m.SensorMetadata(file_create_time, file_modify_time) if file_create_time is not None else None
        subject = await self._keep_file(metadata, times, contents)
        return m.Uploaded(subject, subject)

    @allow(ITSELF_UPLOADS)
    async def streaming_data_capture_upload(
        self,
        upload_metadata: m.UploadMetadata,
        pieces: AsyncIterator[bytes],
        sensor_metadata: m.SensorMetadata | None = None,
    ) -> m.Uploaded:
        """Store one captured item that arrives in pieces."""
        await self._require_machine(upload_metadata)
        subject = await self._keep_file(upload_metadata, sensor_metadata, pieces)
        return m.Uploaded(subject, subject)

    async def _require_machine(self, metadata: m.UploadMetadata) -> None:
        await self.read(lambda sql: self.require(sql, Role.MACHINE, ObjectKind.PART, metadata.part_id))

    async def _keep_readings(self, metadata: m.UploadMetadata, captured: Sequence[Captured]) -> m.Uploaded:
        """Store readings; the permission check is in the same transaction."""
        now, tags, parameters = self.now(), sources.usable_tags(metadata.tags), plain(metadata.method_parameters)
        if metadata.dataset_ids and not self._by_machine:
            raise MachineError(
                "datasets cannot contain readings", kind=ErrorKind.INVALID, remedy="leave out dataset_ids"
            )
        origin = [metadata.component_type, metadata.component_name, metadata.method_name, metadata.file_name]

        def prepare() -> tuple[list[NewReading], str | None]:
            new_readings = _dated(captured, stored(now))
            has_time = any(requested is not None for requested, _, _ in captured)
            parts = (metadata.part_id, *origin, parameters, tags)
            return new_readings, _key(*parts, new_readings=new_readings) if has_time else None

        new_readings, key = await self.offload(self.request.call.size if self.request is not None else 0, prepare)
        kind = "unspecified" if metadata.type is m.DataType.UNSPECIFIED else "tabular"

        def check(sql: Sql) -> CheckedUpload:
            self.require(sql, Role.MACHINE, ObjectKind.PART, metadata.part_id)
            source, queued = _source(sql, metadata, parameters), uses_data(sql, metadata.part_id)
            origin = (source.component_type, source.component, source.method)
            alerts = listens(sql, source.organization_id, *origin, new_readings)
            upload = NewUpload(key, source, tags, new_readings, now)
            if not queued and not alerts:
                return CheckedUpload(upload, None)
            times = [received for _, received, _ in new_readings]
            span = moment_of(min(times)), moment_of(max(times))
            return CheckedUpload(
                upload,
                lambda subject: replace(_ingestion(source, kind, subject, *span, new_readings), alerts=alerts),
            )

        waiting = WaitingUpload(check, key is not None, len(new_readings))
        return m.Uploaded(await self.cloud.uploads.keep(self.cloud.store, waiting), "")

    async def _keep_file(
        self, metadata: m.UploadMetadata, sensor: m.SensorMetadata | None, pieces: AsyncIterator[bytes]
    ) -> str:
        now, tags, parameters = self.now(), sources.usable_tags(metadata.tags), plain(metadata.method_parameters)
        requested, received = _times(sensor, now)
        name = sources.usable(metadata.file_name)
        limited = _LimitedFile(self.cloud.limits.file)
        async with aclosing(limited.passing(pieces)) as content:
            blob = await self.cloud.blobs.put(content)
        mime_type = metadata.mime_type or (MIME.get(sensor.mime_type, "") if sensor is not None else "")
        mime = media.mime_of(mime_type, media.extension_of(metadata.file_extension, name, ""), limited.beginning)
        times = [stored(requested), stored(received)] if sensor is not None and sensor.time_requested else []
        origin = [metadata.component_type, metadata.component_name, metadata.method_name]
        key = _key(metadata.part_id, *origin, parameters, name, times, blob.digest, blob.size)

        def work(sql: Sql) -> tuple[str, bool]:
            source, queued = _source(sql, metadata, parameters), uses_data(sql, metadata.part_id)
            dataset_ids = self._datasets(sql, metadata.dataset_ids, source.organization_id)
            kind = KINDS.get(metadata.type, "unspecified")
            new_file = files.NewFile(
                key,
                source,
                kind,
                name,
                sources.usable(media.extension_of(metadata.file_extension, name, mime)),
                mime,
                requested,
                received,
            )
            subject, new = files.keep(sql, new_file, blob, now)
            files.add_tags(sql, [subject], tags)
            for dataset in dataset_ids:
                datasets.add(sql, dataset, [subject])
            if new:
                _annotate(sql, subject, sensor)
            if new and queued:
                ingested(sql, _ingestion(source, kind, subject, received, received))
            return subject, new

        return await self._store(work, blob)

    @property
    def _by_machine(self) -> bool:
        """Whether a machine uploads what it captured: it cannot correct the upload, as a person or program can."""
        return self.author.type == PART

    def _datasets(self, sql: Sql, dataset_ids: Iterable[str], organization: str) -> list[str]:
        """Return the datasets of an upload; NOT_FOUND for others. Of a machine's upload, others are left out."""
        existing = []
        for dataset in dataset_ids:
            try:
                if datasets.dataset(sql, dataset).organization_id != organization:
                    raise missing("dataset", dataset)
                existing.append(dataset)
            except MachineError:
                if not self._by_machine:
                    raise
                _log.warning("a captured file was stored without a dataset that does not exist", dataset=dataset)
        return existing

    async def _store(self, work: Any, blob: Blob) -> str:
        """Run a transaction. The blob is kept only if a row refers to it or the outcome is unknown."""
        try:
            subject, new = await self.write(work)
        except MachineError as error:
            if error.kind is not ErrorKind.UNAVAILABLE:  # otherwise the transaction may have been committed
                await discard(self.cloud.blobs, [blob.key])
            raise
        if not new:
            await discard(self.cloud.blobs, [blob.key])
        return str(subject)


class _LimitedFile:
    """Passes on the pieces of a file up to a limit, and keeps the beginning."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.beginning = b""

    async def passing(self, pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        """Yield the pieces; INVALID, which machines treat as permanent, once the limit is exceeded."""
        size = 0
        async for piece in pieces:
            size += len(piece)
            if size > self.limit:
                raise MachineError(
                    f"the file is larger than the limit of {self.limit} bytes",
                    kind=ErrorKind.INVALID,
                    remedy="split it, or start machine-cloud with a larger --max-file",
                )
            if len(self.beginning) < BEGINNING:
                self.beginning += piece[: BEGINNING - len(self.beginning)]
            yield piece


async def _single(content: bytes) -> AsyncIterator[bytes]:
    yield content


def _shape_error(metadata: m.UploadMetadata, contents: UploadContents) -> MachineError | None:
    """Return the error of an upload of wrong shape, or None."""
    if not contents.items and not contents.readings:
        return MachineError("the upload is empty", kind=ErrorKind.INVALID, remedy="send sensor_contents")
    binary = sum(item.binary is not None for item in contents.items)
    if binary != len(contents.items) or metadata.type is m.DataType.FILE:
        return MachineError(
            "readings and files cannot be in one upload",
            kind=ErrorKind.INVALID,
            remedy="send `struct` in all of sensor_contents or `binary` in all; files with FileUpload",
        )
    if bool(binary) != (metadata.type is m.DataType.BINARY_SENSOR) and metadata.type is not m.DataType.UNSPECIFIED:
        return MachineError(
            f"the upload has type {metadata.type.name}, but its contents do not", kind=ErrorKind.INVALID
        )
    return None


def _source(sql: Sql, metadata: m.UploadMetadata, parameters: Mapping[str, Any]) -> sources.DataSource:
    return sources.source_of(
        sql, metadata.part_id, metadata.component_type, metadata.component_name, metadata.method_name, parameters
    )


def _times(sensor: m.SensorMetadata | None, now: datetime) -> tuple[datetime, datetime]:
    """Return request and receipt time of an item; a missing one equals the other, or is now if both are missing."""
    requested = sensor.time_requested if sensor is not None else None
    received = sensor.time_received if sensor is not None else None
    return requested or received or now, received or requested or now


def _dated(captured: Iterable[Captured], now: int) -> list[NewReading]:
    """Return readings with both times; see `_times`."""
    return [
        (
            requested if requested is not None else received if received is not None else now,
            received if received is not None else requested if requested is not None else now,
            text,
        )
        for requested, received, text in captured
    ]


def _ingestion(
    source: sources.DataSource,
    kind: str,
    subject: str,
    first: datetime,
    last: datetime,
    new_readings: Sequence[NewReading] = (),
) -> Ingestion:
    origin = (source.part_id, source.component_type, source.component, source.method)
    return Ingestion(*origin, kind, subject, first, last, new_readings)


def _annotate(sql: Sql, subject: str, sensor: m.SensorMetadata | None) -> None:
    """Add the labels of an uploaded picture to it. They are mended: odd ones must not cost the picture."""
    sent = sensor.annotations if sensor is not None else None
    if sent is None:
        return
    boxes = (
        Annotation(
            box.label,
            (box.x_min_normalized, box.y_min_normalized, box.x_max_normalized, box.y_max_normalized),
            box.confidence,
        )
        for box in sent.bboxes
    )
    whole = (Annotation(each.label, None, each.confidence) for each in sent.classifications)
    result = mended((*boxes, *whole))
    for item in result.annotations:
        edges = labels.Edges(*item.edges) if item.edges is not None else None
        labels.add(sql, subject, item.label, edges, item.confidence)
    if result.note:
        _log.warning(
            "annotations of an uploaded picture were changed to store it", file=subject, annotations=result.note
        )


def _key(*parts: Any, new_readings: Sequence[NewReading] | None = None) -> str:
    """Return the digest of `parts` and readings as one JSON list. Keys that are stored depend on each of its bytes."""
    digest = sha256(json.dumps(parts, sort_keys=True, default=str)[:-1].encode())
    if new_readings is not None:
        digest.update(b", [")
        for start in range(0, len(new_readings), TOGETHER):
            some = new_readings[start : start + TOGETHER]
            texts = _quoted([text for _, _, text in some])
            rows = [f'[{row[0]}, {row[1]}, "{text}"]' for row, text in zip(some, texts, strict=True)]
            digest.update(f"{', ' if start else ''}{', '.join(rows)}".encode())
        digest.update(b"]")
    digest.update(b"]")
    return digest.hexdigest()


def _quoted(texts: Sequence[str]) -> list[str]:
    """Return JSON texts as strings in ASCII JSON, without quotation marks: all in one step."""
    joined = "\0".join(texts)  # they have no NUL
    if "u0000" in joined:  # where NUL becomes this
        return [encode_basestring_ascii(text)[1:-1] for text in texts]
    return encode_basestring_ascii(joined)[1:-1].split("\\u0000")
