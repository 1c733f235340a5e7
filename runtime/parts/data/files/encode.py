"""Conversion of method results to messages of the published file format, with one SensorData for each reading.

Tabular readings are Structs with the field names of the published API. Empty values are included, so that columns are
always present. Binary readings are the bytes themselves, with their media type in the file's header.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError

from engine import base_of
from rpc.api import (
    field_filler,
    fill_fields,
    find_method,
    message_fill,
    messages,
    read_struct,
    read_value,
    signature_of,
)
from runtime.parts.data.files.frames import framed
from runtime.parts.data.methods import BETWEEN_KEY, Method
from schema import API, ErrorKind, MachineError
from schema.data import Annotation, mended
from schema.decoding import MAX_DEPTH

EXTENSIONS: Final[Mapping[str, str]] = {
    "image/jpeg": ".jpeg",
    "image/png": ".png",
    "pointcloud/pcd": ".pcd",
    "audio/wav": ".wav",
    "audio/mpeg": ".mp3",
    "video/mp4": ".mp4",
}
"""File extension by media type. Tabular readings and other media types have `.dat`."""

DAT: Final = ".dat"
_EDGES: Final = ("x_min_normalized", "y_min_normalized", "x_max_normalized", "y_max_normalized")
_PCM: Final[Mapping[str, tuple[int, int]]] = {"pcm16": (1, 16), "pcm32": (1, 32), "pcm32_float": (3, 32)}
"""WAVE format tag and bits per sample by codec (Microsoft, Multimedia Programming Interface 1.0, WAVE)."""


@dataclass(frozen=True, slots=True)
class CaptureRecord:
    """One reading in the form of a file. Tabular readings have no media type."""

    data: bytes  # the message, preceded by its length
    mime_type: str = ""
    note: str = ""  # what was changed so that the reading can be stored; empty if nothing


@dataclass(frozen=True, slots=True)
class Times:
    """The times of request and arrival of a reading, in nanoseconds since 1970 by the computer's clock."""

    requested: int
    received: int


Encode = Callable[[Any, Times], Iterator[CaptureRecord]]
"""Yields the readings in one result, none if there is nothing to store.

Raises FitError or MachineError if the driver's result does not fit its API.
"""


def encoder(api: API, method: Method, parameters: Mapping[str, Any] = MappingProxyType({})) -> Encode:
    """Return an encoder for results of `method` when called with these additional parameters.

    Loads the messages of `api`.
    """
    data = messages.load("app.datasync.v1.data_sync_pb2").SensorData
    if method.shape == "tabular":
        return _Tabular(api, method.python, data)
    return {
        "readings": _keyed("readings", data),
        "command": _keyed("docommand_output", data),
        "images": _images(data, lambda images: images, named=True),
        "image": _images(data, partial(_preferred, str(parameters.get("mime_type", ""))), named=False),
        "point_cloud": _point_cloud(data),
        "audio": _audio(data),
        "vision": _vision(data, parameters.get(BETWEEN_KEY)),
    }[method.shape]


def _stamped(data: Any, times: Times) -> Any:
    message = data()
    message.metadata.time_requested.FromNanoseconds(times.requested)
    message.metadata.time_received.FromNanoseconds(times.received)
    return message


def _record(message: Any, mime_type: str = "", note: str = "") -> CaptureRecord:
    return CaptureRecord(framed(message.SerializeToString()), mime_type, note)


def _tabular(message: Any) -> CaptureRecord:
    """Return the record of a tabular reading. INVALID if it could be written, but not read again."""
    content = message.SerializeToString()
    try:
        type(message).FromString(content)
    except DecodeError:
        raise MachineError(
            "the reading is nested too deeply to be stored",
            kind=ErrorKind.INVALID,
            remedy=f"return at most {MAX_DEPTH} levels of objects and lists",
        ) from None
    return CaptureRecord(framed(content))


def _keyed(key: str, data: Any) -> Encode:
    """Return an encoder that puts a free-form mapping under one key."""

    def encode(result: Mapping[str, Any], times: Times) -> Iterator[CaptureRecord]:
        message = _stamped(data, times)
        part = message.struct.fields[key].struct_value
        part.SetInParent()
        fill_fields(part.fields, result)
        yield _tabular(message)

    return encode


class _Tabular:
    """An encoder for other results, which have the fields of the RPC's reply."""

    def __init__(self, api: API, python: str, data: Any) -> None:
        method = find_method(api, python)
        base = base_of(api)
        assert base is not None
        self._data = data
        self._reply = method.reply_class
        whole = method.is_whole(signature_of(getattr(base, python)).result)
        self._fill = message_fill(method.reply) if whole else field_filler(method.reply.fields[0])

    def __call__(self, result: Any, times: Times) -> Iterator[CaptureRecord]:
        reply = self._reply()
        self._fill(reply, result)
        message = _stamped(self._data, times)
        fill_fields(message.struct.fields, plain(reply))
        yield _tabular(message)


def plain(message: Any) -> dict[str, Any]:
    """Convert a message to a mapping with its published field names. Enums are numbers, absent messages are None."""
    return {
        field.name: _plain_field(message, field) for field in message.DESCRIPTOR.fields if _is_included(message, field)
    }


def _is_included(message: Any, field: FieldDescriptor) -> bool:
    """Return whether to include a field. A scalar alternative of a oneof is included only if it is set."""
    return not field.has_presence or field.message_type is not None or message.HasField(field.name)


def _plain_field(message: Any, field: FieldDescriptor) -> Any:
    value = getattr(message, field.name)
    if field.is_repeated:
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            return {str(key): _plain_value(value[key]) for key in value}
        return [_plain_value(item) for item in value]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _plain_value(value)


def _plain_value(value: Any) -> Any:
    descriptor = getattr(value, "DESCRIPTOR", None)
    if descriptor is None:
        return value
    if descriptor.full_name == "google.protobuf.Struct":
        return read_struct(value)
    if descriptor.full_name == "google.protobuf.Value":
        return read_value(value)
    if descriptor.full_name == "google.protobuf.Timestamp":
        return value.ToJsonString()
    return plain(value)


def _preferred(mime_type: str, images: Sequence[Any]) -> Sequence[Any]:
    """Return the first image of a media type, else the first image: cameras choose their own encoding."""
    return [*(image for image in images if image.mime_type == mime_type), *images][:1]


def _images(data: Any, choose: Callable[[Sequence[Any]], Sequence[Any]], *, named: bool) -> Encode:
    """Return an encoder with a reading for each image. With `named`, its source name is a label.

    The published service adds this label for GetImages, and not for ReadImage.
    """

    def encode(result: Any, times: Times) -> Iterator[CaptureRecord]:
        for image in choose(result.images):
            message = _stamped(data, times)
            message.binary = bytes(image.image)
            annotations = message.metadata.annotations
            if image.annotations is not None:
                message_fill(annotations.DESCRIPTOR)(annotations, image.annotations)
            note = _mend(annotations)
            if named and image.source_name:
                annotations.classifications.add(label=image.source_name)
            yield _record(message, image.mime_type, note)

    return encode


def _mend(message: Any) -> str:
    """Bring annotations into the form that can be stored; return what was changed, in words."""
    result = mended(
        Annotation(
            item.label,
            tuple(getattr(item, edge) for edge in _EDGES) if kind == "bboxes" else None,
            item.confidence if item.HasField("confidence") else None,
        )
        for kind in ("bboxes", "classifications")
        for item in getattr(message, kind)
    )
    if result.note:
        message.Clear()
        for annotation in result.annotations:
            edges = annotation.edges
            values_of_item = {"label": annotation.label, "confidence": annotation.confidence}
            if edges is None:
                message.classifications.add(**values_of_item)
            else:
                message.bboxes.add(**values_of_item, **dict(zip(_EDGES, edges, strict=True)))
    return result.note


def _point_cloud(data: Any) -> Encode:
    def encode(result: Any, times: Times) -> Iterator[CaptureRecord]:
        message = _stamped(data, times)
        message.binary = bytes(result.point_cloud)
        yield _record(message, result.mime_type or "pointcloud/pcd")

    return encode


def _vision(data: Any, between: Sequence[float] | None) -> Encode:
    """Return an encoder for the image given to a vision service, annotated with detections and classifications.

    With the two bounds `between`, results without an uncertain one give no reading.
    """

    def encode(result: Any, times: Times) -> Iterator[CaptureRecord]:
        if result.image is None or not result.image.image:
            raise MachineError("the vision service returned no image", kind=ErrorKind.PRECONDITION)
        if between is not None and not _is_uncertain(result, between[0], between[1]):
            return
        message = _stamped(data, times)
        message.binary = bytes(result.image.image)
        annotations = message.metadata.annotations
        for detection in result.detections or ():
            if detection.x_max_normalized is not None:
                annotations.bboxes.add(
                    label=detection.class_name,
                    confidence=detection.confidence,
                    x_min_normalized=detection.x_min_normalized or 0.0,
                    y_min_normalized=detection.y_min_normalized or 0.0,
                    x_max_normalized=detection.x_max_normalized,
                    y_max_normalized=detection.y_max_normalized or 0.0,
                )
        for classification in result.classifications or ():
            annotations.classifications.add(label=classification.class_name, confidence=classification.confidence)
        yield _record(message, result.image.mime_type, _mend(annotations))

    return encode


def _is_uncertain(result: Any, low: float, high: float) -> bool:
    """Return whether the confidence of any detection, or of the most likely label, is between two bounds."""
    confidences = [detection.confidence for detection in result.detections or ()]
    if result.classifications:
        confidences.append(max(label.confidence for label in result.classifications))
    return any(low <= confidence <= high for confidence in confidences)


def _audio(data: Any) -> Encode:
    """Return an encoder that joins the chunks of a recording. Raw samples get a WAVE header."""

    def encode(chunks: Any, times: Times) -> Iterator[CaptureRecord]:
        sound = b"".join(chunk.audio.audio_data for chunk in chunks)
        if not sound:
            return
        info = chunks[0].audio.audio_info
        message = _stamped(data, times)
        pcm = _PCM.get(info.codec)
        message.binary = sound if pcm is None else wave_header(info, len(sound), *pcm) + sound
        yield _record(message, "audio/wav" if pcm else f"audio/{info.codec or 'unknown'}".replace("mp3", "mpeg"))

    return encode


def wave_header(info: Any, size: int, tag: int, bits: int) -> bytes:
    """Return the 44-byte header of a WAVE file. `size` is the number of bytes of the samples."""
    frame = info.num_channels * bits // 8
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF",
        36 + size,
        b"WAVE",
        b"fmt ",
        16,
        tag,
        info.num_channels,
        info.sample_rate_hz,
        info.sample_rate_hz * frame,
        frame,
        bits,
        b"data",
        size,
    )
