"""Readings of the configured channels of analog-to-digital converters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from engine import Value
from models.chips.common.channel_attributes import Channel


async def readings(channels: Sequence[Channel], volts: Callable[[str], Awaitable[float]]) -> Mapping[str, Value]:
    """Measure all channels one after the other; return the scaled values by name."""
    return {channel.name: await volts(channel.input) * channel.factor + channel.offset for channel in channels}
