"""Attributes that `runtime.builtin.discovery.hardware` reads."""

from __future__ import annotations

from schema.attributes import Attributes


class HardwareConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of the discovery of hardware."""

    scan: bool = True  # ask the addresses of I2C buses who answers; `extra` of a call may say otherwise
