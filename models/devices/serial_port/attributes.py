"""Attributes of `serial_port`. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

from models.devices.common.attributes import SerialAttributes
from models.devices.common.encodings import Encoding


class SerialPortConfig(SerialAttributes, kw_only=True, frozen=True):
    """Attributes of the raw serial port."""

    encoding: Encoding = "utf-8"  # encoding of data in commands: utf-8, latin-1 or base64
    buffer_bytes: Annotated[int, msgspec.Meta(ge=256, le=16 * 1024 * 1024)] = 65536  # receive buffer
