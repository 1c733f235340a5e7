"""DataCaptureMetadata, the message at the beginning of each capture file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rpc.api import fill_value, messages, read_value
from runtime.parts.data.files.encode import DAT, EXTENSIONS
from runtime.parts.data.files.frames import framed


@dataclass(frozen=True)
class CaptureSource:
    """The source of readings: the resource (as in capture files), the method, its parameters and tags."""

    component_type: str  # rdk:component:sensor
    component_name: str
    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    binary: bool = False

    def header(self, mime_type: str = "") -> bytes:
        """Return the framed DataCaptureMetadata of a file. `mime_type` is empty for tabular readings."""
        sync = messages.load("app.datasync.v1.data_sync_pb2")
        message = sync.DataCaptureMetadata(
            component_type=self.component_type,
            component_name=self.component_name,
            method_name=self.method,
            type=sync.DATA_TYPE_BINARY_SENSOR if self.binary else sync.DATA_TYPE_TABULAR_SENSOR,
            file_extension=EXTENSIONS.get(mime_type, DAT),
            tags=self.tags,
            mime_type=mime_type,
        )
        for name, value in self.parameters.items():
            message.method_parameters[name].Pack(_value(value))
        return framed(message.SerializeToString(deterministic=True))


def _value(value: Any) -> Any:
    from google.protobuf.struct_pb2 import Value

    message = Value()
    fill_value(message, value)
    return message


def parameters_of(header: Any) -> dict[str, Any]:
    """Return the parameters in a DataCaptureMetadata as plain values, or the type URL for types other than Value."""
    from google.protobuf.struct_pb2 import Value

    parameters: dict[str, Any] = {}
    for name, packed in header.method_parameters.items():
        message = Value()
        parameters[name] = read_value(message) if packed.Unpack(message) else packed.type_url
    return parameters
