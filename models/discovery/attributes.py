"""Attributes of `discovery`. Pure."""

from __future__ import annotations

from schema import Attributes


class HardwareConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of the hardware discovery service."""

    scan: bool = True  # probe the addresses of I2C buses; `extra` of a call overrides this
