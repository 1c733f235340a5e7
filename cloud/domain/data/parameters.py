"""Parameters of a captured method: conversion of protobuf's Any to plain values."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from google.protobuf import struct_pb2, wrappers_pb2
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError

_MESSAGES: Final = {
    cls.DESCRIPTOR.full_name: cls
    for cls in (
        wrappers_pb2.BoolValue,
        wrappers_pb2.BytesValue,
        wrappers_pb2.DoubleValue,
        wrappers_pb2.FloatValue,
        wrappers_pb2.Int32Value,
        wrappers_pb2.Int64Value,
        wrappers_pb2.StringValue,
        wrappers_pb2.UInt32Value,
        wrappers_pb2.UInt64Value,
        struct_pb2.ListValue,
        struct_pb2.Struct,
        struct_pb2.Value,
    )
}


def plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return each parameter as a plain value; unknown messages as their type and their bytes in base64."""
    return {name: _plain(value) for name, value in parameters.items()}


def _plain(value: Any) -> Any:
    if not isinstance(value, Mapping) or "type_url" not in value:
        return value
    cls = _MESSAGES.get(str(value["type_url"]).rpartition("/")[2])
    content = value.get("value", b"")
    if cls is not None:
        try:
            return MessageToDict(cls.FromString(content))
        except DecodeError:
            pass
    return {"type": value["type_url"], "value": base64.b64encode(content).decode()}
