"""Attributes of `nmea`. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

from models.devices.common.attributes import SerialAttributes


class NmeaConfig(SerialAttributes, kw_only=True, frozen=True):
    """Attributes of the NMEA receiver."""

    baud: Annotated[int, msgspec.Meta(gt=0)] = 9600  # bits per second; 9600 is usual, some receivers use 4800 or 38400
    max_age_s: Annotated[float, msgspec.Meta(gt=0)] = 5.0  # largest age of a value; an older one is an error
